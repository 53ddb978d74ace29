"""`scipy.integrate`: on arrays SciPy's own; expressions are refused by name."""

from __future__ import annotations

from typing import Any

import scipy.integrate

from .namespace import member

__all__ = sorted(name for name in dir(scipy.integrate) if not name.startswith("_"))


def __getattr__(name: str) -> Any:
    found = member(scipy.integrate, globals(), name)
    globals()[name] = found
    return found
