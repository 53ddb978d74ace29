"""Variables by name: which declaration is alive, and where two of one name meet.

A node that would hold two declarations of one name is refused when it is built. To see this costs
nothing as long as no name has been declared twice; from then on every node remembers which of these
names are below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from weakref import WeakValueDictionary

_latest: WeakValueDictionary[str, Any] = WeakValueDictionary()
_alive: WeakValueDictionary[Any, Any] = WeakValueDictionary()
_doubtful: set[str] = set()


def declared(name: str) -> list[Any]:
    """The variables of this name that are alive, whatever they are declared to be."""
    alive = [reference() for reference in _alive.valuerefs()]  # copied while others declare
    return [v for v in alive if v is not None and v.name == name]


def declare(name: str, variable: Any) -> None:
    """Remember a new variable, unless its name is one that no user gives."""
    if not name.isidentifier():
        return
    if _latest.get(name, variable) is not variable:
        _doubtful.add(name)
    _latest[name] = variable
    _alive[name, variable.shape, variable.properties] = variable


def meeting(nodes: Iterable[Any]) -> tuple[Any, Any] | None:
    """Two variables of one name below nodes that are to be put together; None where there are none.

    Every node has `args`, a variable a `name`, and each an attribute `_twice` for what is known.
    """
    if not _doubtful:
        return None
    found: dict[str, Any] = {}
    for node in nodes:
        for name, variable in _below(node).items():
            if found.setdefault(name, variable) is not variable:
                return found[name], variable
    return None


def _below(node: Any) -> dict[str, Any]:
    """The variables below a node whose names were declared twice."""
    now, waiting = len(_doubtful), [node]
    while waiting:
        top = waiting[-1]
        unknown = [arg for arg in top.args if arg._twice[0] != now]
        if unknown and top._twice[0] != now:
            waiting += unknown
            continue
        waiting.pop()
        if top._twice[0] != now:
            name = getattr(top, "name", None)
            own = {name: top} if name in _doubtful else {}
            below = [arg._twice[1] for arg in top.args]
            object.__setattr__(top, "_twice", (now, _merged([own, *below])))
    found: dict[str, Any] = node._twice[1]
    return found


def _merged(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """The union; one of the parts where that has all, so that nodes share it."""
    largest = max(parts, key=len)
    if all(part.keys() <= largest.keys() for part in parts):
        return largest
    return {name: variable for part in parts for name, variable in part.items()}
