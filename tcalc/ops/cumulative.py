"""Partial sums along an axis, from the first entry on or from the last one."""

from __future__ import annotations

from typing import Any

from ..graph.applications import apply
from ..graph.extents import ONE, Extent
from ..graph.nodes import Expr
from ..graph.normal import einsum, view
from ..graph.operators import TABLE, Kernels, Meaning, Op
from ..graph.orientation import inverse_permutation
from ..graph.spelling import Spelling
from .arithmetic import as_expr, chosen_axes, public
from .elementwise import less_equal
from .reductions import arange
from .reshape import ravel

__all__ = ["cumsum", "revcumsum"]


def _moved(row: Op, e: Expr, core: int) -> Expr:
    """A row with one core axis, applied to axis `core` of e."""
    order = [k for k in range(e.ndim) if k != core] + [core]
    return view(apply(row, view(e, order)), inverse_permutation(order))


def _cumulative(name: str, other: str, reverse: bool) -> Op:
    """Partial sums along the last axis; the row of another name is the adjoint."""

    def triangle(x: Expr, y: Expr) -> Expr:
        """Ones where an entry is in a sum: the Jacobian."""
        n, count = x.ndim, arange(x.shape[-1])
        extents: dict[int, Extent] = {**dict(enumerate(x.shape)), n: x.shape[-1]}
        entry, total = (einsum([count], [(k,)], (n - 1, n), ONE, extents) for k in (n, n - 1))
        held = less_equal(total, entry) if reverse else less_equal(entry, total)
        return einsum([held], [(n - 1, n)], range(n + 1), ONE, extents)

    def kernel(xp: Any, params: tuple[Any, ...], x: Any) -> Any:
        return xp.flip(xp.cumsum(xp.flip(x, -1), -1), -1) if reverse else xp.cumsum(x, -1)

    return Op(
        name, (1,),
        Meaning(
            (triangle,), shape=lambda params, shape: shape, domain=((-2.0, 2.0),),
            pushforward=lambda k, tangent, node: _moved(node.op, tangent, node.ndim - 1),
            pullback=lambda k, cotangent, node: apply(TABLE[other], cotangent),
        ),
        Kernels(kernel),
        Spelling(rf"\operatorname{{{{{name}}}}}({{0}})"),
    )  # fmt: skip


CUMSUM = _cumulative("cumsum", "revcumsum", False)
REVCUMSUM = _cumulative("revcumsum", "cumsum", True)


def _partial_sums(row: Op, a: object, axis: int | None) -> Expr:
    e = as_expr(a)
    if axis is None and e.ndim != 1:
        e = ravel(e)
    return _moved(row, e, *chosen_axes(axis, e.ndim, row.name))


@public
def cumsum(a: object, axis: int | None = None) -> Expr:
    """Partial sums along an axis, without one of all entries in C order."""
    return _partial_sums(CUMSUM, a, axis)


@public
def revcumsum(a: object, axis: int | None = None) -> Expr:
    """Sums from every entry to the last one along an axis: the adjoint of `cumsum`."""
    return _partial_sums(REVCUMSUM, a, axis)
