"""Kinds and rows that a device runs otherwise than their references say, and gives the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from ...ops.matrix.cholesky import CHOLESKY
from ...ops.matrix.cholesky_pullback import CHOLESKY_PULLBACK
from ...ops.matrix.definite import INVERSE as INVERSE_DEFINITE
from ...ops.matrix.triangular import TRI_INVERSE, ZERO
from ...ops.matrix_cores import refuse
from ...ops.selection import checked, in_range
from ...plan.kinds.kind import Params, Result
from ...plan.kinds.table import KINDS
from ...plan.kinds.views import AffinePlace
from ...support.arrays import AnyArray, Array
from ...support.conditions import looked_at_later
from ...support.namespaces import on_device
from ..numpy.strided import regions, slices
from .library import CuPy
from .sparse import SPARSE

Kernel = Callable[..., Any]
#: Slices from which on entries are placed by one kernel that is told where each comes.
MANY = 16


# --- rows -----------------------------------------------------------------------------------------


def _no_zeros(xp: CuPy, problem: str, a: AnyArray) -> None:
    refuse(problem, (xp.diagonal(a, axis1=-2, axis2=-1) == 0).any(axis=-1))


def _inverse_of(xp: CuPy, factor: AnyArray) -> AnyArray:
    """Of a lower triangle, by its solutions for the identity."""
    if not factor.size:
        return factor
    columns = xp.eye(factor.shape[-1], dtype=factor.dtype)
    if factor.ndim > 2:
        columns = xp.ascontiguousarray(xp.broadcast_to(columns, factor.shape))
    return xp.triangular(factor, columns, fresh=True)


def _tri_inverse(xp: CuPy, params: Params, a: AnyArray) -> AnyArray:
    _no_zeros(xp, ZERO, a)
    return _inverse_of(xp, a)


def _inverse_from_factor(xp: CuPy, params: Params, factor: AnyArray) -> AnyArray:
    x = _inverse_of(xp, factor)
    return xp.swapaxes(x, -1, -2) @ x


def _inverse_definite(xp: CuPy, params: Params, a: AnyArray) -> AnyArray:
    return _inverse_from_factor(xp, params, CHOLESKY.kernels.compute(xp, (), a))


def _cholesky_pullback(xp: CuPy, params: Params, factor: AnyArray, bar: AnyArray) -> AnyArray:
    """X' (T + T' - diag T) X / 2 for T the lower triangle of L' C."""
    if not bar.size:
        return bar
    product = xp.swapaxes(xp.tril(factor), -1, -2) @ bar
    inner = xp.tril(product) + xp.swapaxes(xp.tril(product, -1), -1, -2)
    left = xp.triangular(factor, inner, transposed=True)
    turned = xp.swapaxes(left, -1, -2)
    return xp.triangular(factor, turned, transposed=True) / 2


#: Computed from operands, and from the factor where the row has one.
ROWS: dict[str, Kernel] = {
    TRI_INVERSE.name: _tri_inverse,
    INVERSE_DEFINITE.name: _inverse_definite,
    CHOLESKY_PULLBACK.name: _cholesky_pullback,
}
FINISHED: dict[str, Kernel] = {INVERSE_DEFINITE.name: _inverse_from_factor}


# --- kinds ----------------------------------------------------------------------------------------


def _window(xp: CuPy, result: Result, params: Sequence[AffinePlace], a: AnyArray) -> AnyArray:
    """Entries at affine places as a view."""
    if not prod(result.shape):
        return xp.zeros(result.shape, a.dtype)
    corner = a[tuple([slice(start, None) for start, _ in params])]
    strides = [
        sum([coefs[k] * s for (_, coefs), s in zip(params, a.strides, strict=True)])
        for k in range(len(result.shape))
    ]
    return xp.viewed(corner, result.shape, tuple(strides))


def _repeated(
    xp: CuPy, result: Result, pattern: tuple[int, ...], a: AnyArray, out: AnyArray
) -> Any:
    """The part of an array that runs over the distinct labels of a pattern."""
    count = max(pattern) + 1
    shape, strides = [0] * count, [0] * count
    for label, extent, stride in zip(pattern, result.shape, out.strides, strict=True):
        shape[label] = extent
        strides[label] += stride
    return xp.viewed(out, tuple(shape), tuple(strides))


def _embed(xp: CuPy, result: Result, params: Params, a: AnyArray) -> AnyArray:
    out = xp.zeros(result.shape, result.dtype)
    if out.size:
        _repeated(xp, result, params[0], a, out)[...] = a
    return out


def _embed_add(xp: CuPy, result: Result, params: Params, onto: AnyArray, a: AnyArray) -> AnyArray:
    out = xp.empty(result.shape, result.dtype)
    out[...] = onto
    if out.size:
        _repeated(xp, result, params[0], a, out)[...] += a
    return out


_regions = lru_cache(1024)(regions)


def _placed(
    xp: CuPy, params: Params, out: AnyArray, a: AnyArray
) -> Iterator[tuple[AnyArray, AnyArray]]:
    """Places of a result, as views, and the entries that come there."""
    counts, forms = params
    array = xp.broadcast_to(a, counts)
    for region in _regions(counts, forms, out.shape):
        yield region.of(out, xp.viewed), array[region.source].transpose(region.order)


def _place(xp: CuPy, result: Result, params: Params, a: AnyArray) -> AnyArray:
    if slices(*params) > MANY:
        return KINDS["place"].reference(xp, result, params, a)
    out = xp.zeros(result.shape, result.dtype)
    for place, entries in _placed(xp, params, out, a):
        place[...] = entries
    return out


def _place_add(xp: CuPy, result: Result, params: Params, onto: AnyArray, a: AnyArray) -> AnyArray:
    if slices(*params) > MANY:
        return KINDS["place_add"].reference(xp, result, params, onto, a)
    out = xp.empty(result.shape, result.dtype)
    out[...] = onto
    for place, entries in _placed(xp, params, out, a):
        place[...] = place + entries
    return out


def _correlate(
    xp: CuPy, result: Result, params: Params, windows: AnyArray, other: AnyArray
) -> AnyArray:
    """Sums over windows, which are views that overlap and are never copied."""
    few, keeps_many = params
    axes = list(range(windows.ndim))
    summed = axes[:few] if keeps_many else axes[few:]
    own = [k for k in axes if k not in summed]
    lead = other.ndim - len(summed)
    spread = (slice(None),) * lead + (None,) * len(own)
    places = tuple(range(lead + len(own), lead + len(axes)))
    return xp.inner(windows.transpose(own + summed), other[spread], places)


def _scratch(xp: CuPy, result: Result, params: Params) -> None:
    """Memory that no kernel here needs."""


def _trisolve(xp: CuPy, result: Result, params: Params, a: AnyArray, b: AnyArray) -> AnyArray:
    transposed, name = params
    _no_zeros(xp, f"{name}: a zero on the diagonal", a)
    return xp.triangular(a, b, transposed) if b.size else b


def _index(xp: CuPy, result: Result, params: Params, a: AnyArray) -> AnyArray:
    """Integers in range; those of the host are looked at there."""
    extent, what = params
    if not on_device(a):
        return xp.asarray(checked(a, extent, what))

    def look(wrong: Array) -> None:
        (index,) = xp.on_host([a])
        checked(index, extent, what)

    looked_at_later(~in_range(a, extent), look)
    whole = a.astype(xp.int64)
    return xp.clip(xp.where(whole < 0, whole + extent, whole), 0, max(extent - 1, 0))


def _integers(xp: CuPy, result: Result, params: Params, *arrays: AnyArray) -> AnyArray:
    """Exact in 64 bits, by the host."""
    return params[0](*xp.on_host(arrays))


#: Kinds that read integers where they are, on the host too.
OF_HOST = ("index", "integers")
KERNELS: dict[str, Kernel] = {
    "window": _window,
    "embed": _embed,
    "embed_add": _embed_add,
    "scratch": _scratch,
    "place": _place,
    "place_add": _place_add,
    "correlate": _correlate,
    "trisolve": _trisolve,
    "index": _index,
    "integers": _integers,
    **SPARSE,
}
