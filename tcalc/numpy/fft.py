"""`numpy.fft` itself, so that one changed import is enough."""

from __future__ import annotations

from typing import Any

import numpy.fft

__all__ = sorted(name for name in dir(numpy.fft) if not name.startswith("_"))


def __getattr__(name: str) -> Any:
    return getattr(numpy.fft, name)
