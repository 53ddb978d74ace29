"""A stand-in for CuPy without a device: NumPy under CuPy's names and signatures, and no others.

Arrays refuse to become NumPy's and to be mixed with them, as CuPy's do; where the table has no name
there is none. What waits for the device is counted, and what is not waited for has no numbers.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from scipy import special

from tests.cupy_arrays import (
    API,
    DeviceArray,
    checked,
    signature,
    sparse_matrix,
    unwrapped,
    wrapped,
)
from tests.cupy_device import DEVICE
from tests.cupy_kernels import ElementwiseKernel, ReductionKernel
from tests.cupy_routines import as_attributes
from tests.cupy_table import CLASSES, MODULES

# --- what is not NumPy's or SciPy's under the same name -------------------------------------------


def asnumpy(a: Any, stream: Any = None, order: Any = None, out: Any = None, blocking: Any = True):
    """A copy; without blocking its numbers are there once the stream was waited for."""
    if blocking:
        DEVICE.wait()
        return np.array(a)
    found = np.full_like(a, 77)
    DEVICE.pending.append((found, a))
    return found


@contextmanager
def errstate(**options: Any) -> Iterator[None]:
    before, DEVICE.raising = DEVICE.raising, options["linalg"] == "raise"
    try:
        yield
    finally:
        DEVICE.raising = before


def garbage(a: np.ndarray) -> np.ndarray:
    """What a routine that failed may leave where its result should be."""
    return np.full_like(a, 77)


def factorised(compute: Callable[..., Any], waits: int) -> Callable[..., Any]:
    """Of a matrix that it cannot do with, garbage where nobody looks."""

    def function(a: np.ndarray, *args: Any, **options: Any) -> Any:
        for _ in range(waits if DEVICE.raising else 0):
            DEVICE.wait()
        try:
            return compute(a, *args, **options)
        except np.linalg.LinAlgError:
            if DEVICE.raising:
                raise
            if compute is np.linalg.eigh or compute is np.linalg.svd:
                # Results of the right shapes, of a matrix that it can do with.
                eye = np.broadcast_to(np.eye(*a.shape[-2:], dtype=a.dtype), a.shape)
                return tuple([garbage(part) for part in compute(eye, *args, **options)])
            return garbage(args[0] if args else a)

    return function


def solve(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Without broadcasting over batches."""
    if b.ndim > 1 and a.shape[:-1] != b.shape[:-1]:
        raise ValueError("a must have (..., M, M) shape and b must have (..., M, K)")
    return np.linalg.solve(a, b)


def solve_triangular(
    a: np.ndarray, b: np.ndarray, trans: int = 0, lower: bool = False, **options: Any
) -> np.ndarray:
    """Without a look at zeros on the diagonal."""
    triangle = np.tril(a) if lower else np.triu(a)
    triangle = np.swapaxes(triangle, -1, -2) if trans else triangle
    columns = b if b.ndim == a.ndim else b[..., None]
    assert a.shape[:-1] == columns.shape[:-1]
    try:
        return np.linalg.solve(triangle, columns).reshape(b.shape)
    except np.linalg.LinAlgError:
        return np.full_like(b, 77)


class Stream:
    def synchronize(self) -> None:
        DEVICE.wait()


#: By module. A number of waits: those of CuPy's routine where it looks at its status.
OWN: dict[str, dict[str, Any]] = {
    "cupy": {
        "asnumpy": asnumpy,
        "ElementwiseKernel": ElementwiseKernel,
        "ReductionKernel": ReductionKernel,
        "get_default_memory_pool": lambda: SimpleNamespace(free_bytes=lambda: 1 << 20),
    },
    "cupy.linalg": {
        **{name: factorised(getattr(np.linalg, name), waits)
           for name, waits in {"cholesky": 1, "inv": 2, "eigh": 1, "svd": 1, "qr": 2}.items()},
        "solve": factorised(solve, 2),
    },
    "cupy.lib.stride_tricks": {"as_strided": np.lib.stride_tricks.as_strided},
    "cupyx": {
        "scatter_add": lambda a, slices, value: np.add.at(a, slices, value),
        "errstate": errstate,
        "geterr": lambda: {"linalg": "raise" if DEVICE.raising else "ignore"},
    },
    "cupyx.scipy.special": {},
    "cupyx.scipy.linalg": {"solve_triangular": solve_triangular},
    "cupyx.scipy.sparse": {
        f"{form}_matrix": sparse_matrix(form) for form in ("csr", "csc", "coo")
    },
    "cupy.cuda": {
        "get_current_stream": Stream,
        "get_device_id": lambda: DEVICE.number,
        "runtime": SimpleNamespace(
            getDeviceCount=lambda: 1, getDevice=lambda: 0, memGetInfo=lambda: (1 << 30, 1 << 31),
            getDeviceProperties=lambda k: {"name": b"none", "major": 7, "minor": 0},
            runtimeGetVersion=lambda: 12090, driverGetVersion=lambda: 12090,
        ),
    },
}  # fmt: skip
SOURCES: dict[str, Any] = {
    "cupy": np, "cupy.linalg": np.linalg, "cupyx.scipy.special": special,
}  # fmt: skip


def from_device(text: str) -> Callable[..., Any]:
    """`asnumpy`, whose results are NumPy's."""

    def function(a: Any, *args: Any, **options: Any) -> Any:
        signature(text).bind(a, *args, **options)
        return asnumpy(unwrapped(a), *args, **options)

    return function


def checked_kernel(text: str, made: Any) -> Any:
    """A class of kernels that takes and gives arrays of the device."""

    def make(*args: Any, **options: Any) -> Callable[..., Any]:
        signature(text).bind(*args, **options)
        found = made(*args, **options)
        return lambda *arrays, **given: wrapped(found(*unwrapped(list(arrays)), **given))

    return make


#: Functions that take arrays of the host.
FROM_HOST = ("asarray", "array")


def module(name: str, source: Any) -> ModuleType:
    """A module of the table: what NumPy does not have either cannot be run here."""
    found = ModuleType(name)
    for key, text in API[name].items():
        compute = OWN[name].get(key) or getattr(source, key, None)
        if isinstance(compute, type) and key in CLASSES:
            setattr(found, key, checked_kernel(text, compute))
        elif text == "value" or compute in OWN["cupyx.scipy.sparse"].values():
            setattr(found, key, compute)
        elif key == "asnumpy":
            setattr(found, key, from_device(text))
        elif compute is not None:
            taken = _host if key in FROM_HOST else unwrapped
            setattr(found, key, checked(key, text, compute, convert=taken))
    return found


def _host(given: Any) -> Any:
    """Arrays of either kind as NumPy's."""
    if isinstance(given, DeviceArray):
        return given.host
    if isinstance(given, np.ndarray):
        DEVICE.uploads.append(given.shape)
    if isinstance(given, tuple | list):
        return type(given)([_host(part) for part in given])
    return {k: _host(v) for k, v in given.items()} if isinstance(given, dict) else given


def modules() -> dict[str, ModuleType]:
    """All modules of the table, by the names under which they are imported."""
    found = {name: module(name, SOURCES.get(name)) for name in MODULES}
    found["cupy"].ndarray = DeviceArray  # type: ignore[attr-defined]
    found["cupy.lib"] = ModuleType("cupy.lib")
    found["cupyx.scipy"] = ModuleType("cupyx.scipy")
    for name in found:
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(found[parent], last, found[name])
    vars(found["cupy.cuda"]).update(as_attributes())
    return found


STAND_IN = modules()


@cache
def has_device() -> bool:
    """Is there CuPy, and a device?"""
    try:
        cupy = importlib.import_module("cupy")
        return bool(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # CuPy has an error of its own for every missing part
        return False


@contextmanager
def some_device() -> Iterator[None]:
    """Within it there is a device, or this one in its place.

    Other modules that are imported meanwhile stay.
    """
    wanted = {} if has_device() else STAND_IN
    before = {name: sys.modules.get(name) for name in wanted}
    sys.modules.update(wanted)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
