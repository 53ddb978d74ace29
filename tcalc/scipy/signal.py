"""`scipy.signal` with expressions among the arguments: convolutions and correlations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import scipy.signal

from ..graph.extents import Extent
from ..graph.nodes import Expr
from ..loops.build import build
from ..loops.fold import fold
from ..ops.arithmetic import as_expr
from ..ops.joining import pad
from ..support.errors import ShapeError
from .namespace import member, stands_in

__all__ = sorted(name for name in dir(scipy.signal) if not name.startswith("_"))


@stands_in(scipy.signal)
def convolve(in1: object, in2: object, mode: str = "full", method: str = "auto") -> Expr:
    """As `scipy.signal.convolve`, of arrays whose extents are numbers; computed directly.

    Parameters
    ----------
    in1, in2 : array_like or Expr
        Of the same number of axes.
    mode : {"full", "valid", "same"}
    method : str
        As SciPy's, without a say.

    Returns
    -------
    Expr

    Raises
    ------
    ShapeError
        For extents that have names, and arrays of which neither covers the other where "valid".
    """
    a, b = as_expr(in1), as_expr(in2)
    if a.ndim != b.ndim:
        raise ShapeError(f"convolve: arrays of {a.ndim} and {b.ndim} axes")
    if not a.ndim:
        return a * b
    one, other = _numbers(a), _numbers(b)
    if mode == "valid":
        if any(m < n for m, n in zip(one, other, strict=True)):
            a, b, one, other = b, a, other, one
        if any(m < n for m, n in zip(one, other, strict=True)):
            raise ShapeError(f"convolve: neither {one} nor {other} covers the other on all axes")
        return _valid(a, b, one, other)
    if mode not in ("full", "same"):
        raise ValueError(f"convolve: mode {mode!r} is not 'full', 'valid' or 'same'")
    wide = [n - 1 for n in other]
    found = _valid(
        pad(a, [(n, n) for n in wide]),
        b,
        [m + 2 * n for m, n in zip(one, wide, strict=True)],
        other,
    )
    if mode == "same":
        cut = [slice(n // 2, n // 2 + m) for m, n in zip(one, wide, strict=True)]
        found = found[tuple(cut)]
    return found


@stands_in(scipy.signal)
def correlate(in1: object, in2: object, mode: str = "full", method: str = "auto") -> Expr:
    """As `scipy.signal.correlate`, by `convolve`."""
    b = as_expr(in2)
    return convolve(as_expr(in1), b[(slice(None, None, -1),) * b.ndim], mode)


def _numbers(e: Expr) -> list[int]:
    found: list[int] = []
    for extent in e.shape:
        if not isinstance(extent, int):
            raise ShapeError(f"convolve needs extents that are numbers, not {extent}")
        found.append(extent)
    return found


def _valid(a: Expr, b: Expr, one: Sequence[int], other: Sequence[int]) -> Expr:
    """Sums over all places of b inside of a: out[i] is the sum over k of a[i + n - 1 - k] b[k]."""
    ndim = len(one)

    def entry(outer: list[Any], inner: list[Any]) -> Any:
        if len(outer) < ndim:
            k = len(outer)
            extent: Extent = one[k] - other[k] + 1
            return build(extent, lambda i: entry([*outer, i], []))
        if len(inner) < ndim:
            k = len(inner)
            return fold(lambda s, j: s + entry(outer, [*inner, j]), 0, other[k])
        places = zip(outer, inner, other, strict=True)
        return a[tuple([i + (n - 1) - j for i, j, n in places])] * b[tuple(inner)]

    found: Expr = entry([], [])
    return found


def __getattr__(name: str) -> Any:
    found = member(scipy.signal, globals(), name)
    globals()[name] = found
    return found
