"""A stand-in for CuPy without a device: NumPy under CuPy's names and signatures, and no others.

Arrays refuse to become NumPy's and to be mixed with them, as CuPy's do; where the table has no name
there is none.
"""

from __future__ import annotations

import inspect
import json
import operator
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import numpy as np
from scipy import special

from tests.cupy_table import MODULES, TABLE

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


class DeviceArray:
    """An array on the device that there is not."""

    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, host: np.ndarray) -> None:
        self.host = np.asarray(host)

    def __array__(self, *options: Any, **more: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __getattr__(self, name: str) -> Any:
        text = API["cupy.ndarray"].get(name)
        if text is None:
            raise AttributeError(f"CuPy's arrays have no {name}")
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
        return bool(self.host)

    def __int__(self) -> int:
        return int(self.host)

    def __float__(self) -> float:
        return float(self.host)

    def __neg__(self) -> Any:
        return wrapped(-self.host)

    def __invert__(self) -> Any:
        return wrapped(~self.host)


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


#: What is not NumPy's or SciPy's under the same name.
OWN: dict[str, Callable[..., Any]] = {
    "scatter_add": lambda a, slices, value: np.add.at(a, slices, value),
    "as_strided": np.lib.stride_tricks.as_strided,
}
#: Functions that take arrays of the host.
FROM_HOST = ("asarray", "array")


def module(name: str, source: Any) -> ModuleType:
    """A module of the table: what NumPy does not have either cannot be run here."""
    found = ModuleType(name)
    for key, text in API[name].items():
        compute = OWN.get(key) or getattr(source, key, None)
        if text == "value":
            setattr(found, key, compute)
        elif compute is not None:
            taken = _host if key in FROM_HOST else unwrapped
            setattr(found, key, checked(key, text, compute, convert=taken))
    if "asnumpy" in API[name]:
        found.asnumpy = lambda a: np.array(unwrapped(a))  # type: ignore[attr-defined]
    return found


def _host(given: Any) -> Any:
    """Arrays of either kind as NumPy's."""
    if isinstance(given, DeviceArray):
        return given.host
    if isinstance(given, tuple | list):
        return type(given)([_host(part) for part in given])
    return {k: _host(v) for k, v in given.items()} if isinstance(given, dict) else given


def modules() -> dict[str, ModuleType]:
    """All modules of the table, by the names under which they are imported."""
    sources = (np, np.linalg, np.lib.stride_tricks, np, special)
    found = {name: module(name, source) for name, source in zip(MODULES, sources, strict=True)}
    found["cupy.lib"] = ModuleType("cupy.lib")
    found["cupyx.scipy"] = ModuleType("cupyx.scipy")
    for name in found:
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(found[parent], last, found[name])
    return found
