"""Products of a matrix and a vector that a routine computes faster than a loop: by several rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from dataclasses import replace

from .c_nests import WORD, Array, Call, Line, Loop, Node, mapped, nest, place
from .scope import unlike

#: Entries of a row for which a sum along it costs more than its terms, where they fill a register.
SHORT = range(8, 65)


def by_rows_together(nodes: Sequence[Node], arrays: Mapping[str, Array]) -> list[Node]:
    """The nodes with loops over a matrix's rows that are such products as calls of a routine.

    What else a loop does stands in a loop of its own, before or behind, where it does not read the
    row again.
    """
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            rest = [node.around(by_rows_together(node.body, arrays))]
            found += _multiplied(node) or _added(node, arrays) or rest
        else:
            found.append(node)
    return found


def terms(loop: Loop, inner: Node, x: str) -> list[tuple[Line, re.Match[str]]]:
    """Lines of a loop in a loop, of which all add entries of a row, times `x`, to something.

    Each with the names of the matrix and of `x`, a pattern in which the inner index may stand.
    """
    if not isinstance(inner, Loop) or not inner.plain or inner.backward or inner.going:
        return []
    row = re.escape(place([loop.index, inner.index], [loop.extent, inner.extent]))
    a, x = rf"(?P<a>\w+)\[{row}\]", x.format(inner.index)
    found: list[tuple[Line, re.Match[str]]] = []
    for line in inner.body:
        if not isinstance(line, Line) or line.sign != "+=":
            return []
        value = line.value
        given = re.fullmatch(rf"{a} \* {x}", value) or re.fullmatch(rf"{x} \* {a}", value)
        if given is None:
            return []
        found.append((line, given))
    return found


def _term(loop: Loop, inner: Node | None, x: str) -> tuple[str, Line, re.Match[str]] | None:
    """Of a loop in a loop: its extent, the one line in it, and the names of a matrix and of `x`."""
    lines = [line for line in loop.body if isinstance(line, Line)]
    if not (isinstance(inner, Loop) and loop.plain and len(lines) == len(loop.body) - 1):
        return None
    found = terms(loop, inner, x)
    return (inner.extent, *found[0]) if len(found) == 1 else None


def _multiplied(loop: Loop) -> list[Node]:
    """The call for y = a x, and a loop over the rest; nothing where the loop is no such product."""
    at = next((k for k, n in enumerate(loop.body) if isinstance(n, Loop)), 0)
    found = _term(loop, loop.body[at] if 0 < at < len(loop.body) - 1 else None, r"(?P<x>\w+)\[{}\]")
    if found is None:
        return []
    extent, term, given = found
    lines = [line for line in loop.body if isinstance(line, Line)]
    before, (zero, stored, *rest) = lines[: at - 1], lines[at - 1 :]
    y = re.fullmatch(rf"(\w+)\[{loop.index}\]", stored.target)
    begun = (zero.kind, zero.value, zero.target) == ("real", "0", term.target)
    if not (begun and y and (stored.sign, stored.value) == ("=", zero.target)):
        return []
    if {given["a"], given["x"]} & {line.written for line in lines}:
        return []
    if any(line.kind or y[1] in line.names for line in before):
        return []
    call = f"multiply_rows({loop.extent}, {extent}, {given['a']}, {given['x']}, {y[1]})"
    word = re.compile(rf"\b{zero.target}\b")
    after = [mapped(line, lambda text: word.sub(stored.target, text)) for line in rest]
    parts = [loop.around([*part]) if part else None for part in (before, after)]
    return [node for node in (parts[0], Call(call, (y[1],)), parts[1]) if node is not None]


def _added(loop: Loop, arrays: Mapping[str, Array]) -> list[Node]:
    """A loop over the factors of rows, and the call for y += a' x; nothing where it is none."""
    found = _term(loop, loop.body[-1] if len(loop.body) > 1 else None, r"(?P<x>\w+)")
    if found is None:
        return []
    extent, term, given = found
    *_, inner = loop.body
    *before, factor = [line for line in loop.body if isinstance(line, Line)]
    assert isinstance(inner, Loop)
    y, x = re.fullmatch(rf"(\w+)\[{inner.index}\]", term.target), factor.target
    stored = x in arrays and arrays[x].shape == (loop.extent,) and arrays[x].kind == "real"
    if not (y and stored and factor.kind and x == given["x"]):
        return []
    named = loop.around([*before, factor]).names
    if y[1] in {*named, given["a"]} or given["a"] in {line.written for line in before}:
        return []
    line = Line(f"{x}[{loop.index}]", "=", factor.value)
    call = f"add_rows({loop.extent}, {extent}, {given['a']}, {x}, {y[1]})"
    return [loop.around([*before, line]), Call(call, (y[1],))]


def turned_ahead(
    nodes: Sequence[Node],
    arrays: MutableMapping[str, Array],
    taken: Collection[str],
    index: Sequence[str],
    length: Callable[[str], int],
) -> list[Node]:
    """Matrices that all steps of a loop multiply by, with short rows, by columns: copied before it.

    Then entries of a result are sums side by side, and none is along a row. Those of a transposed
    matrix are so as it lies: they need no zeros to begin with.
    """
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop) and not node.plain:
            copies: dict[str, Array] = {}
            named = {*taken, *arrays}
            node = node.around(_by_columns(node.body, node.writes, copies, named, length))
            for name, copy in copies.items():
                arrays[copy.name] = copy
                to, source = place(index, copy.shape), place(index[::-1], copy.shape[::-1])
                line = Line(f"{copy.name}[{to}]", "=", f"{name}[{source}]")
                found += nest(index, copy.shape, [line])
        found.append(node)
    return found


def _by_columns(
    nodes: Sequence[Node],
    written: Collection[str],
    copies: dict[str, Array],
    taken: set[str],
    length: Callable[[str], int],
) -> list[Node]:
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            node = node.around(_by_columns(node.body, written, copies, taken, length))
        elif isinstance(node, Call) and (given := _ROWS.fullmatch(node.text)):
            m, n, a, x, y = given.groups()
            if not {a, *re.findall(WORD, f"{m} {n}")} & {*written} and length(n) in SHORT:
                if a not in copies:
                    copies[a] = Array(unlike(f"{a}_columns", taken, "_"), (n, m))
                    taken.add(copies[a].name)
                name = copies[a].name
                node = replace(node, text=f"multiply_columns({n}, {m}, {name}, {x}, {y})")
        elif isinstance(node, Call) and (given := _ADDED.fullmatch(node.text)):
            begun = _begun(found, given[5], given[2]) if length(given[2]) in SHORT else None
            if begun is not None:
                found, text = begun, node.text.replace("add_rows", "multiply_columns")
                node = replace(node, text=text)
        found.append(node)
    return found


def _begun(nodes: Sequence[Node], y: str, extent: str) -> list[Node] | None:
    """The nodes without the loop that fills an array with zeros, where none names it since."""
    named = [k for k, node in enumerate(nodes) if y in node.names]
    loop = nodes[named[-1]] if named else None
    if not isinstance(loop, Loop) or loop.extent != extent:
        return None
    lines = [n for n in loop.body if isinstance(n, Line) and y not in n.names]
    zero = Line(f"{y}[{loop.index}]", "=", "0")
    if len(lines) != len(loop.body) - 1 or zero not in loop.body:
        return None
    rest = [loop.around([*lines])] if lines else []
    return [*nodes[: named[-1]], *rest, *nodes[named[-1] + 1 :]]


_ADDED = re.compile(r"add_rows\(([^,]+), ([^,]+), (\w+), (\w+), (\w+)\)")
_ROWS = re.compile(r"multiply_rows\(([^,]+), ([^,]+), (\w+), (\w+), (\w+)\)")
