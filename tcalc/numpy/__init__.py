"""NumPy on expressions: its functions by name, options translated, and `import tcalc.numpy as np`,
in which lists of expressions are arrays too.

Reads graph, ops, ops.matrix, loops.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy

from . import linalg as linalg
from .namespace import member

__all__ = sorted(name for name in dir(numpy) if not name.startswith("_"))


#: Modules that NumPy does not load before they are asked for, either.
_LATER = ("fft", "random")


def __getattr__(name: str) -> Any:
    found = import_module(f".{name}", __name__) if name in _LATER else member(numpy, name)
    globals()[name] = found
    return found
