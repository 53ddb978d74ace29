"""The public transforms: gradients, Jacobians, Hessians, higher orders.

One pipeline for all of them: simplify the expression, accumulate partial derivatives in the order a
mode names, simplify the result, and mark its root with where it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ..accumulation.loops_once import sharing_loops
from ..accumulation.orders import MODES
from ..graph import trees
from ..graph.arraylike import surface
from ..graph.bound_variables import readable
from ..graph.extents import Shape, show_shape
from ..graph.nodes import Derivative, Expr, Var, declaration, variables
from ..graph.normal import bare, view
from ..graph.variables import canonical_name
from ..ops.arithmetic import as_expr
from ..rules.row_spaces import by_row_spaces
from ..rules.strategy import substitute
from ..support.collector import resting_collector
from ..support.errors import ShapeError
from .deep_expressions import shortened
from .modes import Accumulated, accumulated
from .projection import as_root, as_roots, derivative_root

#: Far above the 64 axes that arrays can have.
MAX_ORDER = 256


@resting_collector()
@sharing_loops()
def derivative(e: Any, x: Any, order: int = 1, mode: str = "auto") -> Any:
    """The derivative of an expression of any order.

    Parameters
    ----------
    e : Expr, or a nested tuple, list or dict of Expr
    x : variable, name of a variable, or a nested tuple or dict of these
    order : int
        Each order appends the axes of x: the result has shape ``e.shape + order * x.shape``.
    mode : {"auto", "forward", "reverse", "cross-country"}
        Order in which partial derivatives are multiplied (Laue et al. 2020, section 3). "auto"
        takes the one with the fewest predicted operations, which is found out when it is shown,
        derived or computed more than once; ties go to reverse. Of expressions with hundreds of
        nodes it takes forward mode, or reverse mode where x has more axes.

    Returns
    -------
    Derivative, or a nest of them where x or e is a nest: nested as e, then as x.

    Raises
    ------
    TypeError
        If x is not a variable. ValueError for an unknown mode or a negative order.

    Examples
    --------
    >>> import tcalc as tc
    >>> x, A = tc.var("x", "n"), tc.var("A", ("n", "n"))
    >>> tc.derivative(x @ A @ x, x, order=2).shape
    ('n', 'n')
    """
    root = as_roots(e)
    check_mode(mode)
    targets = variables_named(x, root) if check_order(order) else ()
    wrt = trees.leaves(targets)
    root = trees.rebuild(root, shortened(trees.leaves(root))) if order else root

    def of_one(part: Expr) -> Any:
        result: Any = part
        for _ in range(order):
            rows = _next_order(trees.leaves(result), wrt, mode)
            result = trees.rebuild(result, [trees.rebuild(targets, row) for row in rows])
        return result

    return trees.mapped(of_one, root)


def check_mode(mode: Any) -> None:
    """Refuse what is no mode."""
    if mode not in ("auto", *MODES):
        raise ValueError(f"mode {mode!r}: one of 'auto', " + ", ".join(map(repr, MODES)))


def check_order(order: Any) -> int:
    """The order of a derivative as a user gives it, checked."""
    if not isinstance(order, int | np.integer) or isinstance(order, bool) or order < 0:
        raise ValueError(f"order {order!r} is not a whole number from 0 on")
    if order > MAX_ORDER:
        raise ValueError(f"order {order}: derivatives are of order {MAX_ORDER} at most")
    return int(order)


def grad(f: Any, x: Any, mode: str = "auto") -> Any:
    """The gradient of a scalar expression (see `derivative`).

    Parameters
    ----------
    f, x, mode
        As for `derivative`; f is of shape ().

    Returns
    -------
    Derivative of x's shape, or a nest of them where x is a nest.
    """
    require_scalar(f, "grad")
    return derivative(f, x, 1, mode)


def value_and_grad(f: Any, x: Any, mode: str = "auto") -> trees.Block:
    """The scalar expression itself and its gradient, as one nest.

    Parameters
    ----------
    f, x, mode
        As for `derivative`; f is of shape ().

    Returns
    -------
    tuple of the expression and what `grad` gives; callable and compiled as one.
    """
    return trees.Block((as_root(f), grad(f, x, mode)))


def jacobian(e: Any, x: Any, mode: str = "auto") -> Any:
    """The Jacobian (see `derivative`).

    Parameters
    ----------
    e, x, mode
        As for `derivative`.

    Returns
    -------
    Derivative of shape ``e.shape + x.shape``, or a nest of them where x or e is a nest: nested as
    e, then as x.

    Examples
    --------
    >>> import tcalc as tc
    >>> A, x = tc.var("A", ("m", "n")), tc.var("x", "n")
    >>> by_x, by_A = tc.jacobian({"r": A @ x, "s": x @ x}, (x, A))["r"]
    >>> by_A.shape
    ('m', 'm', 'n')
    """
    return derivative(e, x, 1, mode)


def hessian(f: Any, x: Any, mode: str = "auto") -> Any:
    """The Hessian of a scalar expression.

    Parameters
    ----------
    f, x, mode
        As for `derivative`; f is of shape ().

    Returns
    -------
    Derivative of shape ``x.shape + x.shape``; a nested tuple of blocks where x is a nest.
    """
    require_scalar(f, "hessian")
    return derivative(f, x, 2, mode)


def subs(e: Expr, values: Mapping[Any, Any]) -> Expr:
    """The expression with variables replaced, all at once.

    Parameters
    ----------
    e : Expr
    values : mapping from variables or their names to Expr or array_like
        Of the variables' shapes. Variables that are not in `e` are passed over.

    Raises
    ------
    ShapeError
        Where a value has another shape than the variable. TypeError where a key is no variable.
    """
    if not isinstance(values, Mapping):
        raise TypeError(f"subs takes a mapping from variables to expressions, not {values!r:.60}")
    known = e.variables
    chosen: dict[Var, Expr] = {}
    for key, value in values.items():
        if not isinstance(key, str | Var):
            raise TypeError(f"subs replaces variables: {key!s:.60} is not a variable")
        target = known.get(canonical_name(key)) if isinstance(key, str) else _same(key, known)
        if target is None or target.name not in known:
            continue
        new = as_expr(value)
        if new.shape != target.shape:
            raise ShapeError(
                f"{target.name} of shape {show_shape(target.shape)} cannot be replaced "
                f"by shape {show_shape(new.shape)}"
            )
        chosen[target] = new
    return substitute(bare(e), chosen)


def unprojected(root: Expr) -> Expr:
    """What is differentiated further: a derivative without its projection."""
    return root.inner if isinstance(root, Derivative) else root


def require_scalar(f: Any, name: str) -> None:
    shape: Shape = as_root(f).shape
    if shape:
        raise ShapeError(
            f"{name} is of a scalar expression, not of shape {show_shape(shape)}; "
            f"{'take its one entry, [0]' if set(shape) == {1} else 'use jacobian'}"
        )


def variables_named(x: Any, root: Any) -> Any:
    """The nest of variables that `x` names, of an expression or of a nest of them."""
    known = variables(trees.leaves(root))

    def one(leaf: Any) -> Var:
        if isinstance(leaf, str) and canonical_name(leaf) in known:
            leaf = known[canonical_name(leaf)]
        if isinstance(leaf, Var):
            if leaf.integral:
                raise TypeError(
                    f"{readable(leaf.name)} is an integer variable, which has no derivative"
                )
            return _same(leaf, known)
        what = (
            f"{leaf!r} is no variable of the expression"
            if isinstance(leaf, str)
            else (f"{leaf!s:.60} is not a variable")
        )
        raise TypeError(f"derivatives are with respect to variables: {what} ({', '.join(known)})")

    return trees.mapped(one, x)


def _same(variable: Var, known: Mapping[str, Var]) -> Var:
    """The variable, which the expression does not know under another declaration."""
    other = known.get(variable.name, variable)
    if other is not variable:
        raise ValueError(
            f"{variable.name} {declaration(variable)} is not the variable "
            f"{other.name} {declaration(other)} in the expression"
        )
    return variable


def _next_order(parts: list[Expr], wrt: list[Var], mode: str) -> list[list[Derivative]]:
    """The derivatives of the parts of one order, one for every variable.

    Of second derivatives by two variables one is found, that of the part of fewer axes; the other
    one is the same with its axes exchanged.
    """
    n = len(wrt)
    if len(parts) == 1 or n == 1:
        return _first_order(parts, [wrt] * len(parts), mode)
    rank = [(v.ndim, k) for k, v in enumerate(wrt)]
    own = [[j for j in range(n) if rank[k % n] <= rank[j]] for k in range(len(parts))]
    by = [[wrt[j] for j in places] for places in own]
    if len(parts) == n:
        found = _first_order(parts, by, mode)
    else:  # of higher orders there are more rows than directions
        each = zip(parts, by, strict=True)
        found = [row for part, own_wrt in each for row in _first_order([part], [own_wrt], mode)]
    rows = [dict(zip(places, row, strict=True)) for places, row in zip(own, found, strict=True)]
    for k, row in enumerate(rows):
        for j in set(range(n)) - row.keys():
            row[j] = _mirrored(rows[k - k % n + j][k % n])
    return [[row[j] for j in range(n)] for row in rows]


def _mirrored(root: Derivative) -> Derivative:
    """The derivative by the last two variables in the other order."""
    *before, one, two = root.wrt
    first = root.ndim - one.ndim - two.ndim
    middle = first + one.ndim
    perm = (*range(first), *range(middle, root.ndim), *range(first, middle))
    ways = partial(_turned, root, perm) if root.ways else None
    return derivative_root(view(root.first, perm), root.of, (*before, two, one), ways)


def _turned(root: Derivative, perm: tuple[int, ...], ranked: bool) -> list[Expr]:
    values = root.values if ranked or root.ways is None else root.ways(False)
    return [view(value, perm) for value in values]


def _first_order(
    roots: Sequence[Expr], wrt: Sequence[Sequence[Var]], mode: str
) -> list[list[Derivative]]:
    """The derivatives of the roots, each by its own variables."""
    values = [by_row_spaces([unprojected(root)])[0] for root in roots]
    several = accumulated(list(zip(values, wrt, strict=True)), mode)
    return [_marked(root, found, by) for root, found, by in zip(roots, several, wrt, strict=True)]


def _marked(root: Expr, found: Accumulated, wrt: Sequence[Var]) -> list[Derivative]:
    of: Expr = root
    before: tuple[Var, ...] = ()
    if isinstance(root, Derivative) and root.wrt:
        of, before = root.of, root.wrt
    return [
        derivative_root(first, of, (*before, v), partial(found.by, k) if found.several else None)
        for k, (first, v) in enumerate(zip(found.first, wrt, strict=True))
    ]


surface.update(differentiate=derivative, subs=subs)
