"""CuPy as an array namespace: NumPy's and SciPy's names for arrays of a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
import scipy.special

from ...support.arrays import AnyArray, Array, Sizes
from ...support.errors import Error
from ...support.namespaces import ArrayNamespace, on_device
from .factorisations import Factorisations

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
        self._inner: dict[str, Any] = {}

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
        self, a: AnyArray, b: AnyArray, lower: bool, transposed: bool = False
    ) -> AnyArray:
        """The solution of a triangle's equations; the other triangle is not read."""
        solve = import_module("cupyx.scipy.linalg").solve_triangular
        return solve(a, b, trans=int(transposed), lower=lower)

    def inner(self, a: AnyArray, b: AnyArray, axes: Sizes) -> AnyArray:
        """The sum of products over axes, of views too: nothing is copied, no product stored."""
        kernel = self._inner.get(a.dtype.name)
        if kernel is None:
            kernel = self._inner[a.dtype.name] = self.ReductionKernel(
                f"{a.dtype.name} x, {a.dtype.name} y", f"{a.dtype.name} z", "x * y", "a + b",
                "z = a", "0", name="tcalc_inner", reduce_type="double",
            )  # fmt: skip
        return kernel(a, b, axis=axes)

    def viewed(self, a: AnyArray, shape: Sizes, strides: Sizes) -> AnyArray:
        """The memory of an array with other extents and strides."""
        return self.lib.stride_tricks.as_strided(a, shape, strides)
