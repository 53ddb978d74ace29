"""`scipy.stats` with expressions among the arguments: densities and distribution functions.

Reads graph, ops, ops.matrix, scipy.
"""

from __future__ import annotations

from typing import Any

import scipy.stats

from ..namespace import member
from .continuous import CONTINUOUS
from .discrete import DISCRETE
from .vectors import VECTORS

__all__ = sorted(name for name in dir(scipy.stats) if not name.startswith("_"))

globals().update(CONTINUOUS, **DISCRETE, **VECTORS)


def __getattr__(name: str) -> Any:
    found = member(scipy.stats, globals(), name)
    globals()[name] = found
    return found
