"""States of loops that are kept for every step: made where they are kept, and read there."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

from .c_nests import (
    Array,
    Line,
    Loop,
    Node,
    atom,
    flat,
    nest,
    place,
    replaced,
    writes_of,
)


def kept_in_place(
    nodes: Sequence[Node],
    arrays: dict[str, Array],
    outputs: Collection[str],
    index: Sequence[str],
    fresh: Callable[[], str],
) -> list[Node]:
    """The nodes with states in their rows of arrays of all steps, where no step copies them.

    `arrays` has the pointers to a step's rows too, by `fresh` names.
    """
    found: list[Node] = []
    for k, node in enumerate(nodes):
        if isinstance(node, Loop) and not (node.plain or node.going):
            others = frozenset[str]().union(
                *[n.names for n in (*nodes[:k], *nodes[k + 1 :])], outputs
            )
            for history, state in _kept(node, arrays):
                moved = _moved(node, history, state, arrays, others, fresh)
                if moved is not None:
                    first = f"{node.extent} - 1" if node.backward else "0"
                    found += _begun(node.extent, first, history, state, arrays, index)
                    node = moved
        found.append(node)
    return found


def _copy(node: Node) -> tuple[list[Loop], Line] | None:
    """The loops and the line of a nest that fills an array, entry by entry."""
    loops: list[Loop] = []
    while isinstance(node, Loop) and len(node.body) == 1 and node.plain:
        loops.append(node)
        node = node.body[0]
    return (loops, node) if loops and isinstance(node, Line) and node.sign == "=" else None


def _same(node: Node, arrays: Mapping[str, Array], turn: str = "") -> tuple[str, str] | None:
    """Of a nest that copies an array, to a row of another one where there is a turn: both names."""
    found = _copy(node)
    if found is None:
        return None
    loops, line = found
    index, extents = [n.index for n in loops], [n.extent for n in loops]
    source = re.fullmatch(r"(\w+)\[.*\]", line.value)
    if source is None or source[1] not in arrays or arrays[source[1]].shape != tuple(extents):
        return None
    to, row = line.written, [turn] if turn else []
    shape = arrays[to].shape if to in arrays else ()
    whole = (
        shape[len(row) :] == tuple(extents)
        and line.target == f"{to}[{place([*row, *index], shape)}]"
    )
    read = line.value == f"{source[1]}[{place(index, extents)}]"
    return (to, source[1]) if whole and read else None


def _kept(loop: Loop, arrays: Mapping[str, Array]) -> list[tuple[str, str]]:
    """Arrays that have a state for every step, and that state."""
    pairs = [_same(node, arrays, loop.index) for node in loop.body]
    return [pair for pair in pairs if pair is not None]


def _moved(
    loop: Loop,
    history: str,
    state: str,
    arrays: dict[str, Array],
    others: Collection[str],
    fresh: Callable[[], str],
) -> Loop | None:
    """The loop with a state in its row; None where it is more than kept, then filled, in a step."""
    fills = [k for k, node in enumerate(loop.body) if state in writes_of(node)]
    uses = [k for k, node in enumerate(loop.body) if history in node.names]
    known = {a.kind for a in (arrays[history], arrays[state])} == {"real"}
    if not known or len(fills) != 1 or len(uses) != 1 or uses[0] > fills[0]:
        return None
    (at,), (end,) = uses, fills
    fill, after = loop.body[end], loop.body[end + 1 :]
    before = [*loop.body[:at], *loop.body[at + 1 : end]]
    if _copy(fill) is None:
        return None
    now, then = fresh(), fresh()
    pair = _same(fill, arrays)
    made = pair[1] if pair else ""
    filled = [_into(fill, state, then, now)]
    while made and _alone(made, [*before, *after], others, arrays):
        # What is copied to the state is made there.
        before, after, filled = *[replaced(part, {made: then}) for part in (before, after)], []
        copies = [k for k, node in enumerate(before) if then in writes_of(node)]
        pair = _same(before[copies[0]], arrays | {then: arrays[made]}) if len(copies) == 1 else None
        made = pair[1] if pair and not any(pair[1] in writes_of(n) for n in after) else ""
        if made and not any(made in writes_of(n) for n in before[copies[0] :]):
            if _alone(made, [*before, *after], others, arrays):
                del before[copies[0]]
        else:
            made = ""
    for name in (now, then):
        arrays[name] = Array(name, arrays[state].shape)
    size = atom(arrays[state].size)
    step, going = (
        ("- 1", loop.index) if loop.backward else ("+ 1", f"{loop.index} + 1 < {loop.extent}")
    )
    row, other = (f"&{history}[{k} * {size}]" for k in (loop.index, f"({loop.index} {step})"))
    head: list[Node] = [
        Line(now, "=", row, "const real *"),
        Line(then, "=", f"{going} ? {other} : {state}", "real *"),
    ]
    return loop.around(
        [*head, *replaced(before, {state: now}), *filled, *replaced(after, {state: then})]
    )


def _alone(
    name: str, nodes: Sequence[Node], others: Collection[str], arrays: Mapping[str, Array]
) -> bool:
    """Is it memory of its own, of numbers that one step makes and reads?"""
    declared = {n.written for n in flat(nodes) if isinstance(n, Line) and n.kind}
    return name in arrays and arrays[name].kind == "real" and name not in {*others, *declared}


def _into(node: Node, state: str, then: str, now: str) -> Node:
    """The nest that fills a state, in the next row, from this one."""
    if isinstance(node, Loop):
        return node.around([_into(inner, state, then, now) for inner in node.body])
    assert isinstance(node, Line)
    (target,) = replaced([Line(node.target, "=", "0")], {state: then})
    (value,) = replaced([Line("x", "=", node.value)], {state: now})
    assert isinstance(target, Line)
    assert isinstance(value, Line)
    return Line(target.target, node.sign, value.value, node.kind)


def _begun(
    extent: str,
    first: str,
    history: str,
    state: str,
    arrays: Mapping[str, Array],
    index: Sequence[str],
) -> list[Node]:
    """The first state in its row, if there is a step."""
    shape = arrays[state].shape
    once, index = index[len(shape)], index[: len(shape)]
    to, source = place([first, *index], (extent, *shape)), place(index, shape)
    copy = nest(index, shape, [Line(f"{history}[{to}]", "=", f"{state}[{source}]")])
    return [Loop(once, f"({extent} > 0)", copy, plain=False)]
