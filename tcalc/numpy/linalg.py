"""`numpy.linalg` with expressions among the arguments."""

from __future__ import annotations

from typing import Any

import numpy.linalg

from .namespace import member

__all__ = sorted(name for name in dir(numpy.linalg) if not name.startswith("_"))


def __getattr__(name: str) -> Any:
    found = member(numpy.linalg, name)
    globals()[name] = found
    return found
