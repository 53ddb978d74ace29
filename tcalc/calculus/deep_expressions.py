"""Deep expressions, such as loops of Python leave behind, before they are derived or planned.

What is done with a chain of operations takes as long as the chain is, what is done with a loop as
long as its body. So an expression that is very deep is computed with its equal steps as loops.
`loops`, which stands above, says how; what a person reads stays as it was written.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ..graph.nodes import Derivative, Expr, postorder

#: Nodes that stand one on the other from which on an expression is deep.
DEEP = 120

Roll = Callable[[Sequence[Expr]], list[Expr]]

#: What makes folds of equal steps; the module that defines it fills the list.
rolls: list[Roll] = []


def shortened(roots: Sequence[Expr]) -> list[Expr]:
    """The roots with loops in place of steps that repeat, where they are deep.

    Roots of derivatives stay: what was differentiated had its loops before.
    """
    written = {
        id(root): root.inner if isinstance(root, Derivative) else root
        for root in roots
        if not isinstance(root, Derivative) or root.as_written
    }
    found = dict(zip(written, _rolled(list(written.values())), strict=True))
    return [found.get(id(root), root) for root in roots]


#: By the ids of values: what sees them go, and what has loops in their place; None for those that
#: stay.
_known: dict[tuple[int, ...], tuple[Any, list[Expr | None]]] = {}


def _rolled(values: list[Expr]) -> list[Expr]:
    """The values with loops, which are kept until one of the values goes."""
    key = tuple(map(id, values))
    if key in _known:
        known = _known[key][1]
        return [e if new is None else new for e, new in zip(values, known, strict=True)]
    if not _deep(values):
        return values
    found = values
    for roll in rolls:
        found = roll(found)
    forget = _known.pop
    watch = [weakref.ref(value, lambda _: forget(key, None)) for value in values]
    others = [None if new is e else new for e, new in zip(values, found, strict=True)]
    _known[key] = watch, others
    return found


def _deep(roots: Sequence[Expr]) -> bool:
    nodes = postorder(roots)
    if len(nodes) < DEEP:
        return False
    depth: dict[int, int] = {}
    for node in nodes:
        depth[id(node)] = 1 + max([depth[id(arg)] for arg in node.args], default=0)
    return max(depth.values()) >= DEEP
