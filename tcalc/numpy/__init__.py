"""NumPy on expressions: its functions by name, options translated, and `import tcalc.numpy as np`,
in which lists of expressions are arrays too.

Reads graph, ops, ops.matrix, loops.
"""

from __future__ import annotations

from typing import Any

import numpy

from . import fft as fft
from . import linalg as linalg
from . import random as random
from .namespace import member

__all__ = sorted(name for name in dir(numpy) if not name.startswith("_"))


def __getattr__(name: str) -> Any:
    found = member(numpy, name)
    globals()[name] = found
    return found
