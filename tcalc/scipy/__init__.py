"""SciPy on expressions: `special`, `stats` and `linalg` under SciPy's names, which on arrays are
SciPy's own functions. Much of SciPy is plain Python and cannot be called with expressions.

Reads graph, ops, ops.matrix, loops, numpy.
"""

from __future__ import annotations

from types import ModuleType

__all__ = ["integrate", "linalg", "signal", "special", "stats"]


def __getattr__(name: str) -> ModuleType:
    """The modules, imported when they are first named: SciPy's take long."""
    from importlib import import_module

    if name not in __all__:
        raise AttributeError(f"tcalc.scipy has no {name}; it has {', '.join(__all__)}")
    return import_module(f"tcalc.scipy.{name}")
