"""A stand-in for CuPy without a device: NumPy under CuPy's names and signatures, and no others.

Arrays refuse to become NumPy's and to be mixed with them, as CuPy's do; where the table has no name
there is none. What waits for the device is counted, and what is not waited for has no numbers.
"""

from __future__ import annotations

import importlib
import inspect
import json
import operator
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from scipy import special

from tests.cupy_device import DEVICE
from tests.cupy_kernels import ElementwiseKernel, ReductionKernel
from tests.cupy_table import CLASSES, MODULES, TABLE

API: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
OPERATORS = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
    "lt", "le", "eq", "ne", "gt", "ge",
)  # fmt: skip


def signature(text: str) -> inspect.Signature:
    """Of a text of the table."""
    scope: dict[str, Any] = {}
    exec(f"def f{text}: ...", scope)
    return inspect.signature(scope["f"])


#: Methods that wait.
WAITING = ("get", "item", "tolist", "tobytes", "nonzero")


class DeviceArray:
    """An array on the device that there is not."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray) -> None:
        self.host = np.asarray(host)
        DEVICE.hold(self.host)

    @property
    def __cuda_array_interface__(self) -> Mapping[str, Any]:
        return {"shape": self.host.shape, "version": 3}

    def __array__(self, *options: Any, **more: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __getattr__(self, name: str) -> Any:
        text = API["cupy.ndarray"].get(name)
        if text is None or name == "host":
            raise AttributeError(f"CuPy's arrays have no {name}")
        if name in WAITING:
            DEVICE.wait()
        if name == "get":
            return self.host.copy
        found = getattr(self.host, name)
        return checked(name, text, found, self) if callable(found) else wrapped(found)

    def __getitem__(self, key: Any) -> Any:
        return wrapped(self.host[unwrapped(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.host[unwrapped(key)] = unwrapped(value)

    def __iter__(self) -> Any:
        return iter([self[k] for k in range(len(self.host))])

    def __len__(self) -> int:
        return len(self.host)

    def __bool__(self) -> bool:
        DEVICE.wait()
        return bool(self.host)

    def __int__(self) -> int:
        DEVICE.wait()
        return int(self.host)

    def __float__(self) -> float:
        DEVICE.wait()
        return float(self.host)

    def __index__(self) -> int:
        DEVICE.wait()
        return operator.index(self.host)

    def __repr__(self) -> str:
        return f"device {self.host!r}"

    def __neg__(self) -> Any:
        return wrapped(-self.host)

    def __invert__(self) -> Any:
        return wrapped(~self.host)


DeviceArray.__module__ = "cupy"


def _binary(name: str) -> None:
    apply = getattr(operator, {"and": "and_", "or": "or_"}.get(name, name))
    setattr(DeviceArray, f"__{name}__", lambda a, b: wrapped(apply(a.host, unwrapped(b))))
    if name in OPERATORS[:11]:
        setattr(DeviceArray, f"__r{name}__", lambda a, b: wrapped(apply(unwrapped(b), a.host)))
        setattr(DeviceArray, f"__i{name}__", lambda a, b: _inplace(apply, a, b))


def _inplace(apply: Callable[..., Any], a: DeviceArray, b: Any) -> DeviceArray:
    a.host[...] = apply(a.host, unwrapped(b))
    return a


for name in OPERATORS:
    _binary(name)


def wrapped(found: Any) -> Any:
    """Arrays of NumPy's as those of the device."""
    if isinstance(found, np.ndarray | np.generic):
        return DeviceArray(np.asarray(found))
    if isinstance(found, tuple) and not all(isinstance(part, int) for part in found):
        return tuple([wrapped(part) for part in found])
    return found


def unwrapped(given: Any) -> Any:
    """Arrays of the device as NumPy's, which are refused themselves."""
    if isinstance(given, DeviceArray):
        return given.host
    if isinstance(given, np.ndarray) and given.ndim:
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(given, tuple | list):
        return type(given)([unwrapped(part) for part in given])
    if isinstance(given, Mapping):
        return {key: unwrapped(value) for key, value in given.items()}
    return given


def checked(
    name: str, text: str, compute: Callable[..., Any], *first: Any, convert: Any = unwrapped
) -> Callable[..., Any]:
    """A function that takes what the table says."""

    def function(*args: Any, **options: Any) -> Any:
        if text.startswith("ufunc"):
            assert len(args) == int(text.split()[1]), name
            assert options.keys() <= {"out", "dtype", "casting"}, name
        elif text != "value":
            signature(text).bind(*first, *args, **options)
        return wrapped(compute(*convert(list(args)), **convert(options)))

    return function


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
    "cupy.cuda": {
        "get_current_stream": Stream,
        "get_device_id": lambda: DEVICE.number,
        "runtime": SimpleNamespace(
            getDeviceCount=lambda: 1, memGetInfo=lambda: (1 << 30, 1 << 31)
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
        elif text == "value":
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
    """Within it there is a device, or this one in its place."""
    with mock.patch.dict(sys.modules, {} if has_device() else STAND_IN):
        yield
