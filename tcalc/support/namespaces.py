"""Array namespaces: what kernels call by NumPy's and SciPy's names, of any array library."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from .arrays import AnyArray, Array


class ArrayNamespace:
    """Functions of arrays by name, each from the first of some modules that has it.

    Parameters
    ----------
    *modules : str
        Names of an array module and of its special functions, imported when first needed.
    """

    def __init__(self, *modules: str) -> None:
        self._modules = modules

    def __getattr__(self, name: str) -> Any:
        for module in self._modules:
            found = getattr(import_module(module), name, None)
            if found is not None:
                setattr(self, name, found)
                return found
        raise AttributeError(f"no {name} in {', '.join(self._modules)}")

    def on_host(self, arrays: Sequence[AnyArray]) -> list[Array]:
        """Arrays of the namespace as NumPy's."""
        return [np.asarray(a) for a in arrays]


NUMPY = ArrayNamespace("numpy", "scipy.special")
#: By array library, where else it has functions.
FURTHER = {"cupy": ("cupyx", "cupyx.scipy.linalg")}


def is_sparse(value: Any) -> bool:
    """Is it a sparse matrix, of SciPy's or of CuPy's?"""
    return not isinstance(value, np.ndarray) and hasattr(value, "tocsr")


def on_device(value: Any) -> bool:
    """Is it an array in a device's memory, or a sparse matrix of such arrays?"""
    if isinstance(value, np.ndarray):
        return False
    held = getattr(value, "data", None) if is_sparse(value) else value
    return hasattr(held, "__cuda_array_interface__")


@cache
def _named(module: str) -> ArrayNamespace:
    return ArrayNamespace(module, *FURTHER.get(module, ()))


def on_host(array: AnyArray) -> Array:
    """An array as one of NumPy's; of a device it is waited for."""
    found: Array = array.get() if on_device(array) else np.asarray(array)
    return found


def moved(array: AnyArray, xp: ArrayNamespace) -> AnyArray:
    """The array itself, or a copy, where the arrays of a library lie."""
    if isinstance(array, np.ndarray):
        return array if xp is NUMPY else xp.asarray(array)
    return on_host(array) if xp is NUMPY else array


def namespace_of(array: AnyArray) -> ArrayNamespace:
    """The array library that an array is of."""
    if isinstance(array, np.ndarray | np.generic):
        return NUMPY
    return _named(type(array).__module__.partition(".")[0])
