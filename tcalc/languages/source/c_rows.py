"""Products of a matrix and a vector that a routine computes faster than a loop: by several rows."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .c_nests import Call, Line, Loop, Node, mapped, place


def by_rows_together(nodes: Sequence[Node]) -> list[Node]:
    """The nodes with loops over a matrix's rows that are such products as calls of a routine.

    What else a loop does with an entry of the product follows as a loop of its own, where that does
    not read the row again.
    """
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            found += _product(node) or [node.around(by_rows_together(node.body))]
        else:
            found.append(node)
    return found


def _product(loop: Loop) -> list[Node]:
    """The call, and a loop over the rest; nothing where the loop is no such product."""
    lines = [line for line in loop.body if isinstance(line, Line)]
    inner = loop.body[1] if len(loop.body) > 2 else None
    if not (isinstance(inner, Loop) and len(lines) == len(loop.body) - 1 and len(inner.body) == 1):
        return []
    (zero, stored, *rest), (term,) = lines, inner.body
    sums = isinstance(term, Line) and (term.target, term.sign) == (zero.target, "+=")
    kept = (stored.sign, stored.value) == ("=", zero.target)
    y = re.fullmatch(rf"(\w+)\[{loop.index}\]", stored.target)
    if not (sums and kept and y and loop.plain and (zero.kind, zero.value) == ("real", "0")):
        return []
    row = re.escape(place([loop.index, inner.index], [loop.extent, inner.extent]))
    a, x = rf"(?P<a>\w+)\[{row}\]", rf"(?P<x>\w+)\[{inner.index}\]"
    assert isinstance(term, Line)
    given = re.fullmatch(rf"{a} \* {x}", term.value) or re.fullmatch(rf"{x} \* {a}", term.value)
    if not given or {given["a"], given["x"]} & {line.written for line in lines}:
        return []
    sizes = f"{loop.extent}, {inner.extent}"
    call = Call(f"multiply_rows({sizes}, {given['a']}, {given['x']}, {y[1]})", (y[1],))
    word = re.compile(rf"\b{zero.target}\b")
    after = [mapped(line, lambda text: word.sub(stored.target, text)) for line in rest]
    return [call, loop.around(after)] if after else [call]
