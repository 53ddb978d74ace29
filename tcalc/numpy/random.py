"""`numpy.random` itself, so that one changed import is enough."""

from __future__ import annotations

from typing import Any

import numpy.random

__all__ = sorted(name for name in dir(numpy.random) if not name.startswith("_"))


def __getattr__(name: str) -> Any:
    return getattr(numpy.random, name)
