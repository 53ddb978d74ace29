"""Properties of variables as subspaces: derivatives are projected onto them, slot by slot.

The projector stands outside a derivative, never in its seeds or partials, so that the value inside
keeps its unit tensors and its number of terms at every order.
"""

from __future__ import annotations

from ..graph.arraylike import surface
from ..graph.extents import ONE, Coef
from ..graph.nodes import Derivative, Expr, Var
from ..graph.normal import add, einsum, scale, view
from ..ops.elementwise import equal, less_equal
from ..ops.reductions import arange


def project(root: Derivative) -> Expr:
    """The value of a derivative, every slot projected onto its variable's subspace."""
    value, start = root.args[0], root.of.ndim
    for v in root.wrt:
        value = project_slot(value, start, v)
        start += v.ndim
    return value


def project_slot(value: Expr, start: int, v: Var) -> Expr:
    """Axes start … start + v.ndim of a value, projected onto the matrices that v ranges over."""
    i, j = start + v.ndim - 2, start + v.ndim - 1
    if "symmetric" in v.properties:
        order = list(range(value.ndim))
        order[i], order[j] = j, i
        half = Coef(0.5)
        value = add([scale(value, half), scale(view(value, order), half)])
    count = arange(v.shape[-1]) if v.ndim >= 2 else None
    for name, row, column in (("lower", j, i), ("upper", i, j), ("diagonal", i, j)):
        if name in v.properties and count is not None:
            first, second = (
                einsum([count], [(k,)], (i, j), ONE, {i: v.shape[-1], j: v.shape[-1]})
                for k in (row, column)
            )
            mask = equal(first, second) if name == "diagonal" else less_equal(first, second)
            axes = range(value.ndim)
            value = einsum([value, mask], [axes, (i, j)], axes)
    return value


surface["project"] = project
