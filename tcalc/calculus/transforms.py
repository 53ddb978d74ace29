"""The public transforms: gradients, Jacobians, Hessians, higher orders, and products with vectors.

One pipeline for all of them: simplify the expression, accumulate partial derivatives in the order a
mode names, simplify the result, and mark its root with where it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..accumulation.orders import MODES, pullback, pushforward
from ..graph import trees
from ..graph.arraylike import surface
from ..graph.bound_variables import readable
from ..graph.extents import Shape, show_shape
from ..graph.nodes import Derivative, Expr, Var, declaration, slots_of
from ..graph.normal import bare, view
from ..graph.variables import canonical_name
from ..ops.arithmetic import as_expr
from ..plan.lowering.make import operations
from ..rules.strategy import simplified, simplify, substitute
from ..support.errors import ShapeError
from .projection import as_root, derivative_root, project

#: Far above the 64 axes that arrays can have.
MAX_ORDER = 256

#: The modes that "auto" chooses from; of equal cost, the first is taken.
AUTO_MODES = ("reverse", "forward", "cross-country")


def derivative(e: Any, x: Any, order: int = 1, mode: str = "auto") -> Any:
    """The derivative of an expression of any order.

    Parameters
    ----------
    e : Expr
    x : variable, name of a variable, or a nested tuple or dict of these
    order : int
        Each order appends the axes of x: the result has shape ``e.shape + order * x.shape``.
    mode : {"auto", "forward", "reverse", "cross-country"}
        Order in which partial derivatives are multiplied (Laue et al. 2020, section 3). "auto"
        takes the one with the fewest predicted operations; ties go to reverse.

    Returns
    -------
    Derivative, or a nest of them where x is a nest.

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
    root = as_root(e)
    if mode not in ("auto", *MODES):
        raise ValueError(f"mode {mode!r}: one of 'auto', " + ", ".join(map(repr, MODES)))
    targets = _variables(x, root) if check_order(order) else ()
    wrt = trees.leaves(targets)
    result: Any = root
    for _ in range(order):
        rows = _next_order(trees.leaves(result), wrt, mode)
        result = trees.rebuild(result, [trees.rebuild(targets, row) for row in rows])
    return result


def check_order(order: Any) -> int:
    """The order of a derivative as a user gives it, checked."""
    if not isinstance(order, int | np.integer) or isinstance(order, bool) or order < 0:
        raise ValueError(f"order {order!r} is not a whole number from 0 on")
    if order > MAX_ORDER:
        raise ValueError(f"order {order}: derivatives are of order {MAX_ORDER} at most")
    return int(order)


def grad(f: Any, x: Any, mode: str = "auto") -> Any:
    """The gradient of a scalar expression, of x's shape (see `derivative`)."""
    _scalar(f, "grad")
    return derivative(f, x, 1, mode)


def value_and_grad(f: Any, x: Any, mode: str = "auto") -> trees.Block:
    """The scalar expression itself and its gradient."""
    return trees.Block((as_root(f), grad(f, x, mode)))


def jacobian(e: Any, x: Any, mode: str = "auto") -> Any:
    """The Jacobian, of shape ``e.shape + x.shape`` (see `derivative`)."""
    return derivative(e, x, 1, mode)


def hessian(f: Any, x: Any, mode: str = "auto") -> Any:
    """The Hessian of a scalar expression; a nested tuple of blocks where x is a nest."""
    _scalar(f, "hessian")
    return derivative(f, x, 2, mode)


def jvp(e: Any, x: Any, v: Any) -> Expr:
    """The product of the Jacobian with v: the directional derivative of e along v, by forward mode.

    Parameters
    ----------
    e : Expr
    x : variable, name of a variable, or a nested tuple or dict of these
    v : array_like or Expr, or a nest of them like x
        Of x's shape, or with further axes, the same for all of a nest, for several directions.

    Returns
    -------
    Expr
        Of shape ``e.shape`` and then the further axes.

    Raises
    ------
    ShapeError
        Where shapes do not fit. ValueError where `v` is no nest like x.
    """
    root = as_root(e)
    seeds: dict[Var, Expr] = {}
    for target, direction in _pairs(_variables(x, root), v, "jvp"):
        seed = as_expr(direction)
        if seed.shape[: target.ndim] != target.shape:
            raise ShapeError(
                f"jvp: the direction for {target.name} has shape {show_shape(seed.shape)}, "
                f"expected {show_shape(target.shape)}"
            )
        seeds[target] = seed
    if len({s.shape[t.ndim :] for t, s in seeds.items()}) > 1:
        raise ShapeError("jvp: all directions need the same further axes")
    return keeping_variables(simplify(pushforward(simplify(_value(root)), seeds)), root)


def vjp(e: Any, x: Any, u: Any) -> Any:
    """The product of u with the Jacobian, by reverse mode.

    Parameters
    ----------
    e : Expr
    x : variable, name of a variable, or a nested tuple or dict of these
    u : array_like or Expr
        Of e's shape, or with further axes in front for several products.

    Returns
    -------
    Expr, or a nest of them where x is a nest
        Of the further axes and then x's shape, projected onto the properties of x.

    Raises
    ------
    ShapeError
        Where the shape of `u` does not end in that of `e`.
    """
    root = as_root(e)
    seed = as_expr(u)
    value = simplify(_value(root))
    lead = seed.ndim - value.ndim
    if lead < 0 or seed.shape[lead:] != value.shape:
        raise ShapeError(
            f"vjp: u has shape {show_shape(seed.shape)}, expected {show_shape(value.shape)}"
        )
    targets = _variables(x, root)
    wrt = trees.leaves(targets)
    found = pullback(value, seed, wrt)
    parts = [
        keeping_variables(project(simplify(p), slots_of(lead, (t,))), root)
        for p, t in zip(found, wrt, strict=True)
    ]
    return trees.rebuild(targets, parts)


def hvp(f: Any, x: Any, v: Any) -> Any:
    """The product of the Hessian of a scalar expression with v, by forward over reverse mode.

    Parameters
    ----------
    f : Expr
        Of shape ().
    x : variable, name of a variable, or a nested tuple or dict of these
    v : array_like or Expr, or a nest of them like x
        Directions, as for `jvp`.

    Returns
    -------
    Expr, or a nest of them where x is a nest
        Of x's shape and then further axes of the directions.
    """
    _scalar(f, "hvp")
    root = as_root(f)
    targets = _variables(x, root)
    return trees.mapped(lambda g: jvp(g, targets, v), grad(root, targets, "reverse"))


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


def keeping_variables(value: Expr, of: Expr) -> Expr:
    """The value, as a root that keeps the variables of `of` where some are not in it any more.

    Their arrays may still be passed and bind dimensions, as for any derivative.
    """
    if not of.variables.keys() - value.variables.keys():
        return value
    return derivative_root(value, of)


def _value(root: Expr) -> Expr:
    """What is differentiated further: a derivative without its projection."""
    return root.inner if isinstance(root, Derivative) else root


def _scalar(f: Any, name: str) -> None:
    shape: Shape = as_root(f).shape
    if shape:
        raise ShapeError(
            f"{name} is of a scalar expression, not of shape {show_shape(shape)}; "
            f"{'take its one entry, [0]' if set(shape) == {1} else 'use jacobian'}"
        )


def _variables(x: Any, root: Expr) -> Any:
    """The nest of variables that `x` names."""
    known = root.variables

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


def _pairs(targets: Any, values: Any, what: str) -> list[tuple[Var, Any]]:
    """Variables and their directions, of nests that must have the same structure."""
    if isinstance(targets, dict):
        if not isinstance(values, Mapping) or values.keys() != targets.keys():
            names = ", ".join(map(repr, targets))
            raise ValueError(f"{what}: directions for a dict are a dict with the keys {names}")
        return [pair for key in targets for pair in _pairs(targets[key], values[key], what)]
    if isinstance(targets, tuple):
        given = values if isinstance(values, tuple | list) else [values]
        if len(given) != len(targets):
            raise ValueError(f"{what}: {len(given)} directions for {len(targets)} variables")
        pairs = zip(targets, given, strict=True)
        return [pair for t, v in pairs for pair in _pairs(t, v, what)]
    return [(targets, values)]


def _next_order(parts: list[Expr], wrt: list[Var], mode: str) -> list[list[Derivative]]:
    """The derivatives of the parts of one order, one for every variable.

    Of second derivatives by two variables one is found, that of the part of fewer axes; the other
    one is the same with its axes exchanged.
    """
    n = len(wrt)
    if len(parts) == 1 or n == 1:
        return [_first_order(part, wrt, mode) for part in parts]
    rank = [(v.ndim, k) for k, v in enumerate(wrt)]
    rows: list[dict[int, Derivative]] = []
    for k, part in enumerate(parts):
        own = [j for j in range(n) if rank[k % n] <= rank[j]]
        found = _first_order(part, [wrt[j] for j in own], mode)
        rows.append(dict(zip(own, found, strict=True)))
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
    options = [view(value, perm) for value in root.candidates or (root.inner,)]
    return _mark(options, root.of, (*before, two, one))


def _first_order(root: Expr, wrt: list[Var], mode: str) -> list[Derivative]:
    value = simplify(_value(root))
    of: Expr = root
    before: tuple[Var, ...] = ()
    if isinstance(root, Derivative) and root.wrt:
        of, before = root.of, root.wrt
    names = [mode] if mode != "auto" else list(AUTO_MODES if value.ndim else AUTO_MODES[:1])
    results = simplified([part for name in names for part in MODES[name](value, wrt)])
    found = []
    for k, target in enumerate(wrt):
        options = _distinct(results[k :: len(wrt)])
        if len(options) > 1:
            options.sort(key=operations)
        found.append(_mark(options, of, (*before, target)))
    return found


def _distinct(options: list[Expr]) -> list[Expr]:
    return list({id(option): option for option in options}.values())


def _mark(options: list[Expr], of: Expr, wrt: tuple[Var, ...]) -> Derivative:
    return derivative_root(options[0], of, wrt, options if len(options) > 1 else ())


surface.update(differentiate=derivative, subs=subs)
