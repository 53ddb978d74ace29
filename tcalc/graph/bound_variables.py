"""Bound variables: the arguments that the bodies of `build` and `fold` are called with.

A body is called once, with an index that is an integer variable of its own. No other expression
that is alive has its name, so bodies may nest, be differentiated and contain derivatives without
capture of variables. Names are made of the depth of nesting, not of a global counter, so that equal
bodies are equal expressions.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from itertools import count
from typing import TypeGuard
from weakref import WeakValueDictionary

from ..support.errors import TraceError
from .arraylike import OPEN
from .extents import Extent, Shape
from .nodes import Expr, Var, intern, postorder
from .properties import INTEGERS

#: Starts the names of bound variables, and never that of a variable which users declare.
PREFIX = "$"

_living: WeakValueDictionary[str, Var] = WeakValueDictionary()
_shown: dict[str, str] = {}
_open: dict[str, Extent | None] = {}
_counting: set[str] = set()
_lock = threading.Lock()
_thread = threading.local()


class Scope:
    """The bound variables of one body, open while it is called."""

    def __enter__(self) -> Scope:
        self.depth = getattr(_thread, "depth", 0)
        self.names: list[str] = []
        _thread.depth = self.depth + 1
        # Its variables are new each time: nothing is found again by them.
        self._retrace, OPEN.retrace = getattr(OPEN, "retrace", None), None
        return self

    def __exit__(self, *_: object) -> None:
        _thread.depth = self.depth
        OPEN.retrace = self._retrace
        for name in self.names:
            del _open[name]
            _counting.discard(name)

    def index(self, shown: str, extent: Extent) -> Var:
        """An integer that stands for 0, 1, … extent - 1."""
        return self._new("i", shown, (), INTEGERS, extent)

    def argument(self, shown: str, place: int, shape: Shape, integer: bool = False) -> Var:
        """An argument of a traced function: the same variable in every trace of this depth."""
        properties = INTEGERS if integer else ()
        return self._new(f"{shown}{place}_", shown, shape, properties, again=True)

    def state(self, place: int, shape: Shape, counting: bool) -> Var:
        """A state of a loop; `counting` says that it begins with integers, and may be an index."""
        found = self.number("state", place, shape)
        if counting:
            _counting.add(found.name)
        return found

    def number(self, kind: str, place: int, shape: Shape, integer: bool = False) -> Var:
        """A variable of this shape: a state, or what one step of a loop reads."""
        properties = INTEGERS if integer else ()
        return self._new(f"{kind}{place}_", f"{kind} {place}", shape, properties)

    def _new(
        self,
        kind: str,
        shown: str,
        shape: Shape,
        properties: tuple[str, ...],
        extent: Extent | None = None,
        again: bool = False,
    ) -> Var:
        with _lock:
            for turn in count():
                name = f"{PREFIX}{kind}{self.depth}" + (f".{turn}" if turn else "")
                # A variable that nothing uses is gone, and its name is open all the same.
                if name not in _open and (again or name not in _living):
                    break
            found: Var = intern(Var, (name, shape, properties))
            _living[name], _open[name], _shown[name] = found, extent, shown
        self.names.append(name)
        return found


def is_bound(e: Expr) -> TypeGuard[Var]:
    """Is this a variable of a body?"""
    return isinstance(e, Var) and e.name.startswith(PREFIX)


def stands_for_integers(v: Var) -> bool:
    """Does a variable stand for integers? A state that begins with these is taken to."""
    return v.integral or v.name in _counting


def shown(name: str) -> str:
    """What users call a bound variable."""
    return _shown.get(name, name)


def readable(text: str) -> str:
    """A text with the names that users know in place of those of open bodies' variables."""
    for name in sorted(_open, key=len, reverse=True):
        text = text.replace(name, shown(name))
    return text


def ranges(e: Expr) -> dict[Var, Extent]:
    """The indices of open bodies in an expression, and their extents."""
    found = {}
    for node in postorder([e]):
        extent = _open.get(node.name) if is_bound(node) else None
        if extent is not None and isinstance(node, Var):
            found[node] = extent
    return found


def refuse_strays(roots: Iterable[Expr]) -> None:
    """Refuse bound variables outside of their bodies.

    Raises
    ------
    TraceError
        A TypeError that names the variable.
    """
    for node in postorder(roots):
        if is_bound(node) and node.name not in _open:
            raise TraceError(f"{shown(node.name)} is used outside of the body that it belongs to")
