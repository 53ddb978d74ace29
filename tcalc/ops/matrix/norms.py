"""Norms of vectors and matrices, those of singular values included."""

from __future__ import annotations

from ...graph.nodes import Expr
from ...graph.normal import view
from .. import reductions
from ..arithmetic import Axis, as_expr, chosen_axes, keep, public, sum
from ..elementwise import less, where
from .svd import decomposed

__all__ = ["norm"]


@public
def norm(
    a: object,
    ord: int | float | str | None = None,
    axis: Axis = None,
    keepdims: bool = False,
) -> Expr:
    """Norms of vectors of any order, of matrices "fro" (the default), 1, 2, inf, "nuc", as NumPy's.

    The spectral norm 2 and the nuclear norm are of the singular values. A singular value of 0
    contributes nothing to a derivative, and several largest ones share that of the spectral norm.
    Second derivatives are those of distinct singular values also where others are equal; only the
    largest must stand alone in the spectral norm, and third derivatives need all to be distinct: a
    LinAlgError otherwise.
    """
    e = as_expr(a)
    axes = chosen_axes(axis, e.ndim, "norm")
    if len(axes) != 2 or ord not in (2, "nuc"):
        return keep(reductions.norm(e, ord, axis), axes, keepdims)
    rest = [k for k in range(e.ndim) if k not in axes]
    _, s, _ = decomposed(view(e, rest + axes), "nuclear" if ord == "nuc" else "spectral")
    values = where(less(0, s), s, 0)
    found = sum(values, axis=-1) if ord == "nuc" else reductions.max(values, axis=-1)
    return keep(found, axes, keepdims)
