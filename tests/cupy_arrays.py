"""Arrays and sparse matrices of the stand-in for CuPy: they refuse names that CuPy's have not."""

from __future__ import annotations

import inspect
import json
import operator
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse

from tests.cupy_device import DEVICE
from tests.cupy_table import TABLE

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
        if name == "data":
            return SimpleNamespace(ptr=self.host.ctypes.data)
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


class DeviceSparse:
    """A sparse matrix on the device that there is not, of one of three formats."""

    __array_ufunc__ = None
    #: Attributes of instances alone, which no table of a class has.
    HELD: ClassVar[dict[str, tuple[str, ...]]] = {
        "csr": ("data", "indices", "indptr"), "csc": ("data", "indices", "indptr"),
        "coo": ("data", "row", "col"),
    }  # fmt: skip

    def __init__(self, host: Any, canonical: bool = False) -> None:
        self.__dict__.update(host=host, canonical=canonical)

    def __getattr__(self, name: str) -> Any:
        form = self.host.format
        if name in self.HELD[form]:
            return wrapped(getattr(self.host, name))
        text = API[f"cupyx.scipy.sparse.{form}_matrix"].get(name)
        if text is None:
            raise AttributeError(f"CuPy's {form}_matrix has no {name}")
        if name == "has_canonical_format" and form != "coo":
            return self._looked()
        if name == "get":
            DEVICE.wait()
            return self.host.copy
        if name == "sum_duplicates":
            return self._looked
        found = getattr(self.host, name)
        if not callable(found):
            return DeviceSparse(found, self.canonical) if name == "T" else found
        signature(text)  # known by name; what it takes is SciPy's
        return lambda *args, **options: self._of(found(*unwrapped(list(args)), **options))

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "has_canonical_format":
            self.__dict__["canonical"] = value
        else:
            assert name == "data", name
            self.host.data = value.host

    def __array__(self, *options: Any, **more: Any) -> np.ndarray:
        raise TypeError("Implicit conversion to a NumPy array is not allowed")

    def __deepcopy__(self, memo: Any) -> DeviceSparse:
        return DeviceSparse(self.host.copy(), self.canonical)

    def _of(self, found: Any) -> Any:
        same = getattr(found, "format", None) in ("csr", "csc", "coo")
        return DeviceSparse(found, self.canonical) if same else wrapped(found)

    def _looked(self) -> bool:
        """Each entry stands once now; CuPy waits to see whether it did, the first time."""
        if not self.canonical:
            DEVICE.wait()
            self.host.sum_duplicates()
            self.__dict__["canonical"] = True
        return True

    def __matmul__(self, other: Any) -> Any:
        self._looked()
        if isinstance(other, DeviceSparse):
            other._looked()
            DEVICE.wait()
            return DeviceSparse((self.host @ other.host).tocsr())
        assert other.ndim in (1, 2)
        return wrapped(self.host @ unwrapped(other))


def sparse_matrix(form: str) -> Callable[..., DeviceSparse]:
    """The constructor of a format, from a sparse matrix, or from arrays of the device."""

    def make(given: Any, shape: Any = None, dtype: Any = None, copy: bool = False) -> DeviceSparse:
        if isinstance(given, DeviceSparse):
            return DeviceSparse(given.host.asformat(form), given.canonical)
        parts = given if hasattr(given, "tocsr") else unwrapped(given)
        made = getattr(scipy.sparse, f"{form}_matrix")(parts, shape=shape, dtype=dtype, copy=True)
        return DeviceSparse(made)

    return make


def _binary(name: str) -> None:
    quiet = np.errstate(all="ignore")  # a device warns of nothing
    apply = quiet(getattr(operator, {"and": "and_", "or": "or_"}.get(name, name)))
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
    if isinstance(given, DeviceArray | DeviceSparse):
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
