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


def on_device(value: Any) -> bool:
    """Is it an array in a device's memory?"""
    return hasattr(value, "__cuda_array_interface__")


@cache
def _named(module: str) -> ArrayNamespace:
    return ArrayNamespace(module)


def namespace_of(array: AnyArray) -> ArrayNamespace:
    """The array library that an array is of."""
    if isinstance(array, np.ndarray | np.generic):
        return NUMPY
    return _named(type(array).__module__.partition(".")[0])
