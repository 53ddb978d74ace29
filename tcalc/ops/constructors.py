"""Arrays made like others, filled, or of equal steps, under NumPy's names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..graph.extents import Extent
from ..graph.nodes import Expr
from ..graph.variables import check_shape
from .arithmetic import as_expr, broadcast, broadcast_to, const, public
from .axes import broadcast_arrays, expand_dims, moveaxis
from .diagonals import diag
from .reshape import ravel
from .views import ones, zeros

__all__ = [
    "diagflat",
    "full",
    "full_like",
    "linspace",
    "meshgrid",
    "ones_like",
    "zeros_like",
]

Shaped = Extent | Sequence[Extent] | None


@public
def full(shape: Extent | Sequence[Extent], fill_value: object) -> Expr:
    """A number, or an array that broadcasts, in a shape."""
    return broadcast_to(fill_value, check_shape(shape, "full"))


@public
def full_like(a: object, fill_value: object, shape: Shaped = None) -> Expr:
    """A number, or an array that broadcasts, in the shape of a, or in another."""
    return full(as_expr(a).shape if shape is None else shape, fill_value)


@public
def zeros_like(a: object, shape: Shaped = None) -> Expr:
    """Zeros in the shape of a, or in another."""
    return zeros(as_expr(a).shape if shape is None else shape)


@public
def ones_like(a: object, shape: Shaped = None) -> Expr:
    """Ones in the shape of a, or in another."""
    return ones(as_expr(a).shape if shape is None else shape)


@public
def linspace(
    start: object, stop: object, num: int = 50, endpoint: bool = True, axis: int = 0
) -> Expr:
    """`num` values in equal steps from start to stop, as `numpy.linspace`, along a new axis."""
    low, high = broadcast(start, stop)
    steps = np.arange(num) / max(num - 1 if endpoint else num, 1)
    t = expand_dims(const(steps), list(range(1, low.ndim + 1)))
    return moveaxis(low * (1 - t) + high * t, 0, axis)


@public
def diagflat(v: object, k: int = 0) -> Expr:
    """The matrix with all entries, in C order, on a diagonal."""
    return diag(ravel(v), k)


@public
def meshgrid(*xi: object, indexing: str = "xy", sparse: bool = False) -> tuple[Expr, ...]:
    """Coordinates of a grid from those along its axes, as `numpy.meshgrid`."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing {indexing!r}; 'xy' or 'ij'")
    lines = [ravel(x) for x in xi]
    order = list(range(len(lines)))
    if indexing == "xy" and len(lines) > 1:
        order[:2] = 1, 0
    placed = [
        expand_dims(x, [k for k in range(len(lines)) if k != order[at]])
        for at, x in enumerate(lines)
    ]
    return tuple(placed) if sparse else broadcast_arrays(*placed)
