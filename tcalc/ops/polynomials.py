"""Powers side by side and polynomials, under NumPy's names."""

from __future__ import annotations

from ..graph.extents import Extent, show_shape
from ..graph.nodes import Expr
from ..support.errors import ShapeError
from .arithmetic import as_expr, multiply, public, sum
from .axes import expand_dims
from .elementwise import power
from .joining import flip
from .reductions import arange

__all__ = ["polyval", "vander"]


@public
def vander(x: object, N: Extent | None = None, increasing: bool = False) -> Expr:
    """The powers from 0 to N - 1 of a vector's entries, one entry's in a row, falling."""
    e = as_expr(x)
    if e.ndim != 1:
        raise ShapeError(f"vander: powers of a vector, not of shape {show_shape(e.shape)}")
    return _powers(e, e.shape[0] if N is None else N, increasing)


@public
def polyval(p: object, x: object) -> Expr:
    """The polynomial with coefficients p, that of the highest power first, at every entry of x.

    It is the sum of powers, not Horner's scheme: beyond their range entries are nan or infinite.
    """
    coefficients, e = as_expr(p), as_expr(x)
    if coefficients.ndim != 1:
        raise ShapeError(
            f"polyval: coefficients are a vector, not of shape {show_shape(coefficients.shape)}"
        )
    return sum(multiply(_powers(e, coefficients.shape[0], False), coefficients), -1)


def _powers(e: Expr, count: Extent, increasing: bool) -> Expr:
    """The powers of every entry along a new last axis."""
    exponents = arange(count)
    return power(expand_dims(e, -1), exponents if increasing else flip(exponents))
