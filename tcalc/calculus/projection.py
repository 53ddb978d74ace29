"""Derivatives are projected onto the properties of variables, slot by slot.

The projector is applied to the whole derivative, never to seeds or partials, so that the value
inside keeps its unit tensors and its number of terms at every order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..graph import trees
from ..graph.extents import ONE, Coef
from ..graph.nodes import Derivative, Expr, Var, intern
from ..graph.normal import add, einsum, scale, view
from ..graph.subspaces import RELATIONS, Slot
from ..ops.arithmetic import as_expr
from ..ops.reductions import arange


def project(value: Expr, slots: Iterable[Slot]) -> Expr:
    """The value with every slot projected onto its subspace."""
    for slot in slots:
        value = _project_slot(value, slot)
    return value


def as_root(value: object) -> Expr:
    """What `as_expr` gives, but the root of a derivative as it is, not its projected value."""
    return value if isinstance(value, Expr) else as_expr(value)


def as_roots(value: Any) -> Any:
    """What `as_root` gives of an expression, and of all leaves of a nest of expressions."""
    nested = isinstance(value, tuple | list | dict)
    if nested and any(isinstance(leaf, Expr) for leaf in trees.leaves(value)):
        return trees.mapped(as_root, value)
    return as_root(value)


def derivative_root(
    value: Expr,
    of: Expr,
    wrt: Sequence[Var] = (),
    ways: Callable[[bool], Sequence[Expr]] | None = None,
    kept: Sequence[Var] = (),
) -> Derivative:
    """The root that marks a value as the derivative of `of` by `wrt` (see `Derivative`)."""
    made: Derivative = intern(Derivative, (len(wrt), project, ways), (value, of, *wrt, *kept))
    return made


def keeping_variables(value: Expr, used: Iterable[Var]) -> Expr:
    """The value, as a root that keeps those of some variables that are not in it any more.

    Their arrays may still be passed and bind dimensions, as for any derivative.
    """
    left = value.variables
    lost = {v.name: v for v in used if v.name not in left}
    return derivative_root(value, value, kept=list(lost.values())) if lost else value


def _project_slot(value: Expr, slot: Slot) -> Expr:
    i, j, (mirror, free) = slot
    if mirror:
        order = list(range(value.ndim))
        order[i], order[j] = j, i
        turned = scale(view(value, order), Coef(0.5 * mirror))
        value = add([scale(value, Coef(0.5)), turned])
    n = value.shape[i]
    for name in free:
        row, column = (einsum([arange(n)], [(k,)], (i, j), ONE, {i: n, j: n}) for k in (i, j))
        mask = RELATIONS[name].holds(row, column)
        value = einsum([value, mask], [range(value.ndim), (i, j)], range(value.ndim))
    return value
