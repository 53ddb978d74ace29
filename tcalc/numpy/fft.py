"""`numpy.fft` with expressions among the arguments, where numbers stay real."""

from __future__ import annotations

from typing import Any

import numpy.fft

from .namespace import member

__all__ = sorted(name for name in dir(numpy.fft) if not name.startswith("_"))


def __getattr__(name: str) -> Any:
    found = member(numpy.fft, name)
    globals()[name] = found
    return found
