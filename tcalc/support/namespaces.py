"""Array namespaces: what kernels call by NumPy's and SciPy's names, of any array library."""

from __future__ import annotations

from importlib import import_module
from typing import Any


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


NUMPY = ArrayNamespace("numpy", "scipy.special")
