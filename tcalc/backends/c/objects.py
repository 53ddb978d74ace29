"""Objects of Python as C reads them, and the function that makes calls from C."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ...support.errors import Error
from .compiler import loaded

#: Bytes before an array object's address of its entries.
HEAD = object.__basicsize__
#: Of integers.
INTEGER = np.dtype(np.intp)
#: Numbers whose objects have their value there.
NUMBERS = (float, np.float64)

_P, _L, _I = ctypes.c_void_p, ctypes.c_long, ctypes.c_int


class ArrayObject(ctypes.Structure):
    _fields_ = (
        ("references", _L), ("type", _P), ("data", _P), ("axes", _I), ("extents", _P),
        ("strides", _P), ("base", _P), ("dtype", _P), ("flags", _I),
    )  # fmt: skip


def spelled(dtype: np.dtype[Any]) -> str:
    """The type of an array's entries in C."""
    return "long" if dtype == INTEGER else "real"


def check_addresses() -> None:
    """Raises an Error where array objects do not begin as NumPy's do in CPython."""
    if sys.implementation.name == "cpython":
        array = np.empty(1)
        if ctypes.c_void_p.from_address(id(array) + HEAD).value == array.ctypes.data:
            return
    raise Error('backend="c" needs CPython and NumPy\'s own arrays')


@cache
def calls() -> Any:
    """Makes an entry of its address and all that this needs; None where that cannot be."""
    source = Path(__file__).with_name("routines") / "calls.c"
    try:
        library = loaded(source.read_text(encoding="utf-8"), ("tcalc_entry",))
    except Error:
        return None
    make = ctypes.PyDLL(library._name, handle=library._handle).tcalc_entry
    make.argtypes, make.restype = [ctypes.py_object], ctypes.py_object
    return make if _as_declared() else None


def _as_declared() -> bool:
    """Do arrays and numbers keep what C reads where it reads it?"""
    a, numbers = np.empty((3, 8))[1:, ::4], [kind(0.75) for kind in NUMBERS]
    found = ArrayObject.from_address(id(a))
    lies = [(_L * 2).from_address(at or id(a)) for at in (found.extents, found.strides)]
    return (
        ArrayObject.data.offset == HEAD
        and (found.type, found.data, found.axes) == (id(np.ndarray), a.ctypes.data, 2)
        and [tuple(found) for found in lies] == [a.shape, a.strides]
        and (found.dtype, found.flags & 0x10F) == (id(a.dtype), 0x100)
        and all(ctypes.c_double.from_address(id(n) + HEAD).value == n for n in numbers)
    )
