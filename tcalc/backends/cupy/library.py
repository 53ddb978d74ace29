"""CuPy as an array namespace: NumPy's and SciPy's names for arrays of a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from importlib import import_module
from math import prod
from typing import Any

import numpy as np
import scipy.special

from ...support.arrays import AnyArray, Array, Sizes
from ...support.errors import Error
from ...support.namespaces import ArrayNamespace, on_device
from ...support.records import NamedTuple
from .factorisations import Factorisations
from .triangles import solved

#: Functions of entries that SciPy has and CuPy has not: the host computes them.
BY_HOST = ("iv", "ive", "jv", "kv", "spherical_jn", "stdtr", "yv")

#: What to install, by the version of CUDA that the driver has.
EXTRAS = 'pip install "tcalc[cuda12]" (or cuda13)'


class MissingDevice(Error, RuntimeError):
    """CuPy, or a device that it finds, is not there."""


def available() -> None:
    """Raises an Error where CuPy is not installed, or finds no device."""
    try:
        cupy = import_module("cupy")
    except ImportError as error:
        raise MissingDevice(f'backend "cupy" needs CuPy: {EXTRAS}; {error}') from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except Exception as error:  # CUDA's own, where there is no driver
        raise MissingDevice(f'backend "cupy": CuPy finds no device; {error}') from error
    if not count:
        raise MissingDevice('backend "cupy": CuPy finds no device')


def free_memory() -> int:
    """Bytes that the device has, those that CuPy keeps for further arrays among them."""
    cupy = import_module("cupy")
    free, _ = cupy.cuda.runtime.memGetInfo()
    return int(free) + int(cupy.get_default_memory_pool().free_bytes())


#: Results from which on each has a block of threads for itself, the length of sums from which on
#: several share one, and that of the least part.
BLOCKS, LONG, LEAST = 1024, 4096, 512


class Cut(NamedTuple):
    """An axis of a sum that is cut into equal parts.

    Attributes
    ----------
    inner, behind : tuple of int
        The axes that are summed with parts as an axis of their own, and where that is after it.
    """

    ndim: int
    axis: int
    extent: int
    parts: int
    each: int
    inner: Sizes
    behind: Sizes


@lru_cache(1024)
def _cut(shapes: tuple[Sizes, ...], axes: Sizes) -> Cut | None:
    """How the sum over axes of arrays of these shapes is cut, if it should be."""
    shape = np.broadcast_shapes(*shapes)
    axes = tuple([axis % len(shape) for axis in axes])
    length = prod([shape[axis] for axis in axes])
    results = prod(shape) // max(length, 1)
    if results >= BLOCKS or length < LONG:
        return None
    longest = max(axes, key=shape.__getitem__)
    extent = shape[longest]
    most = min(-(-BLOCKS // max(results, 1)), length // LEAST, extent)
    exact = [k for k in range(max(most // 4, 1), most + 1) if extent % k == 0]
    parts = max(exact, default=most)
    inner = tuple([axis + (axis >= longest) for axis in axes])
    behind = longest - sum([axis < longest for axis in axes])
    return Cut(len(shape), longest, extent, parts, extent // parts, inner, (behind,))


@cache
def library() -> CuPy:
    """The one of this process."""
    return CuPy()


class CuPy(ArrayNamespace):
    """CuPy's functions, and under their names what it has otherwise or not at all.

    Functions of entries that only SciPy has are computed by the host.
    """

    def __init__(self) -> None:
        super().__init__("cupy", "cupyx.scipy.special")
        self._cupyx = import_module("cupyx")
        self.linalg = Factorisations(self)
        self._sums: dict[tuple[str, str], Any] = {}

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name not in BY_HOST:
                raise
        return lambda *arrays: self._by_host(name, arrays)

    def on_host(self, arrays: Sequence[AnyArray]) -> list[Array]:
        """Those of the device as NumPy's; it is waited for once, if there are any."""
        if not any(map(on_device, arrays)):
            return [np.asarray(a) for a in arrays]
        stream = self.cuda.get_current_stream()
        found = [self.asnumpy(a, stream, blocking=False) if on_device(a) else a for a in arrays]
        stream.synchronize()
        return found

    def _by_host(self, name: str, arrays: Sequence[AnyArray]) -> AnyArray:
        return self.asarray(getattr(scipy.special, name)(*self.on_host(arrays)))

    def argsort(self, a: AnyArray, axis: int, stable: bool) -> AnyArray:
        """CuPy's is by radix or merges, and keeps the order of equal entries."""
        return import_module("cupy").argsort(a, axis=axis, kind="stable" if stable else None)

    def bincount(self, x: AnyArray, weights: AnyArray, minlength: int) -> AnyArray:
        """Of integers from 0 to below `minlength`: CuPy's own waits to see that they are."""
        found = self.zeros(minlength, weights.dtype)
        self._cupyx.scatter_add(found, x, weights)
        return found

    @contextmanager
    def failures(self, way: str) -> Iterator[None]:
        """Within it factorisations that fail raise, each waited for; or CuPy goes on: "ignore"."""
        with self._cupyx.errstate(linalg=way):
            yield

    def triangular(
        self, a: AnyArray, b: AnyArray, transposed: bool = False, fresh: bool = False
    ) -> AnyArray:
        """The solution of a lower triangle's equations, the other one is not read.

        Where `b` is fresh it may lie in its memory.
        """
        if a.ndim > 2 or len(a) < b.size < len(a) ** 2:
            solve = import_module("cupyx.scipy.linalg").solve_triangular
            return solve(a, b, trans=int(transposed), lower=True)
        own = fresh and b.flags.c_contiguous
        return solved(self, a, b if own else self.array(b, order="C"), transposed)

    def inner(self, a: AnyArray, b: AnyArray, axes: Sizes) -> AnyArray:
        """The sum of products over axes, of views too: nothing is copied, no product stored."""
        return self.reduced(self._sum(a.dtype.name, "x * y", "x", "y"), [a, b], axes)

    def reduced(self, kernel: Any, arrays: Sequence[AnyArray], axes: Sizes) -> AnyArray:
        """A kernel's sums over axes of what arrays are together.

        CuPy has a block of threads for each result. Where these are few, the longest of the axes is
        cut into parts, which are results of their own; what is left of it when all have as many
        entries as the others comes in by a third kernel.
        """
        cut = _cut(tuple([a.shape for a in arrays]), axes)
        if cut is None:
            return kernel(*arrays, axis=axes)
        views = [self._parts(a, cut) for a in arrays]
        whole = self._sum(arrays[0].dtype.name, "x", "x")
        found = whole(kernel(*views, axis=cut.inner), axis=cut.behind)
        if cut.parts * cut.each == cut.extent:
            return found
        return found + kernel(*[self._rest(a, cut) for a in arrays], axis=axes)

    def _parts(self, a: AnyArray, cut: Cut) -> AnyArray:
        """A view of the parts of an axis, which is two in it."""
        a = a[(None,) * (cut.ndim - a.ndim)]
        shape, strides, k = list(a.shape), list(a.strides), cut.axis
        shape[k : k + 1] = [cut.parts, cut.each] if shape[k] > 1 else [1, 1]
        strides[k : k + 1] = [cut.each * strides[k], strides[k]]
        return self.viewed(a, tuple(shape), tuple(strides))

    def _rest(self, a: AnyArray, cut: Cut) -> AnyArray:
        """A view of what is behind them."""
        a = a[(None,) * (cut.ndim - a.ndim)]
        last = slice(cut.parts * cut.each, None) if a.shape[cut.axis] > 1 else slice(None)
        return a[(slice(None),) * cut.axis + (last,)]

    def _sum(self, kind: str, entry: str, *names: str) -> Any:
        """The kernel that sums an entry of arrays with these names, in double precision."""
        if (kind, entry) not in self._sums:
            given = ", ".join([f"{kind} {x}" for x in names])
            self._sums[kind, entry] = self.ReductionKernel(
                given, f"{kind} z", entry, "a + b", "z = a", "0",
                name=f"tcalc_{'inner' if len(names) > 1 else 'sum'}", reduce_type="double",
            )  # fmt: skip
        return self._sums[kind, entry]

    def viewed(self, a: AnyArray, shape: Sizes, strides: Sizes) -> AnyArray:
        """The memory of an array with other extents and strides."""
        return self.lib.stride_tricks.as_strided(a, shape, strides)
