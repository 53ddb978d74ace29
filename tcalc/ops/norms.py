"""Norms of vectors and matrices, those of singular values included."""

from __future__ import annotations

from ..array import Axis, as_expr, chosen_axes, matmul, public, sum
from ..expr import Expr
from ..normal import view
from . import reductions
from .eigh import eigh
from .elementwise import less, sqrt, where

__all__ = ["norm"]


def _singular(e: Expr) -> Expr:
    """The singular values of matrices, ascending, from the smaller of the two Gram matrices."""
    m, n = e.shape[-2:]
    wide = isinstance(m, int) and isinstance(n, int) and m < n
    w, _ = eigh(matmul(e, e.mT) if wide else matmul(e.mT, e))
    return where(less(0, w), sqrt(w), 0)  # rounding can make a zero negative


@public
def norm(a: object, ord: int | float | str | None = None, axis: Axis = None) -> Expr:
    """Vector norms 1, 2, inf and matrix norms "fro" (the default), 1, 2, inf, "nuc", as NumPy's.

    The spectral norm 2 and the nuclear norm are of the eigenvalues of the Gram matrix: singular
    values below 1e-8 of the largest are lost in rounding, and second derivatives need distinct
    singular values. The nuclear norm has derivatives where the rank is full; give a matrix with
    named dimensions at least as many rows as columns.
    """
    e = as_expr(a)
    axes = chosen_axes(axis, e.ndim, "norm")
    if len(axes) != 2 or ord not in (2, "nuc"):
        return reductions.norm(e, ord, axis)
    rest = [k for k in range(e.ndim) if k not in axes]
    values = _singular(view(e, rest + axes))
    return sum(values, axis=-1) if ord == "nuc" else reductions.max(values, axis=-1)
