"""Loops over the rows of matrices, a block of them at a time, whose products are calls of routines.

Rows that several statements read are in cache while their block is at hand, and functions of
numbers stand in loops of their own, which compilers have vectors for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, MutableMapping, Sequence
from dataclasses import field, replace

from ...support.records import NamedTuple, record
from .c_fusion import calls_functions, places, row_of
from .c_nests import Array, Call, Line, Loop, Node, atom, flat, stored, targets
from .c_rows import terms
from .scope import unlike

#: Rows of a block: a few registers of their numbers, and little of a cache.
BLOCK = 32


def by_blocks(
    nodes: Sequence[Node], arrays: MutableMapping[str, Array], taken: Collection[str]
) -> list[Node]:
    """The nodes with loops over rows that hold such products, by blocks.

    Those whose statements share neither numbers nor matrices are loops over all rows, and calls.
    `arrays` has what a block holds; new names are none that are `taken`.
    """
    known = {*taken, *arrays, *[word for node in nodes for word in node.names]}
    low, high = (unlike(name, known, "_") for name in ("low", "high"))
    made = [n.written for n in flat(nodes) if isinstance(n, Line) and n.kind]
    return _blocked(nodes, arrays, _Names(low, high, known, made))


@record()
class _Names:
    """What blocks call their first row and their end; names that are taken, and made."""

    low: str
    high: str
    known: set[str]
    made: Sequence[str]

    def held(self, number: str) -> str:
        """The array of a block's numbers, under the name of one where nothing else has it."""
        if self.made.count(number) == 1:
            return number
        self.known.add(name := unlike(f"{number}_rows", self.known, "_"))
        return name


def _blocked(
    nodes: Sequence[Node], arrays: MutableMapping[str, Array], names: _Names
) -> list[Node]:
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            rest = [node.around(_blocked(node.body, arrays, names))]
            found += _by_parts(node, arrays, names) or rest
        else:
            found.append(node)
    return found


def _by_parts(loop: Loop, arrays: MutableMapping[str, Array], names: _Names) -> list[Node]:
    """The loop by blocks; nothing where it has no products, or its rows depend on each other."""
    made = [n for n in loop.body if isinstance(n, Line) and n.kind]
    if not loop.plain or loop.backward or loop.going or any("*" in n.kind for n in made):
        return []
    local = {line.written: line.kind.removeprefix("const ") for line in made}
    parts = _parts(loop, local)
    if not any(part.products for part in parts):
        return []
    wholes = [loop.around(part.nodes) for part in parts]
    shared = {w for k, a in enumerate(wholes) for b in wholes[:k] for w in a.names & b.names}
    numbers = {name: names.held(name) for name in local if name in shared}
    if any(n.names & numbers.keys() for n in flat(loop.body) if isinstance(n, Call)):
        return []
    for name in shared & loop.writes - local.keys():
        if {row_of(arrays.get(name), at) for at in places(name, wholes)} != {loop.index}:
            return []
    if not numbers and not any(p.matrix in shared for part in parts for p in part.products):
        return [node for part in parts for node in part.over(loop, numbers)]
    for name, array in numbers.items():
        arrays[array] = Array(array, (str(BLOCK),), local[name])
    end = f"smaller({names.low} + {BLOCK}, {loop.extent})"
    inner = replace(loop, first=names.low, extent=names.high)
    body: list[Node] = [Line(names.high, "=", end, "const ptrdiff_t")]
    body += [node for part in parts for node in part.over(inner, numbers)]
    return [Loop(names.low, loop.extent, body, plain=False, step=BLOCK)]


class _Product(NamedTuple):
    """Of a matrix and a vector by rows of so many entries; what of it is set, or `added` to."""

    entries: str
    matrix: str
    vector: str
    result: str
    added: bool


@record()
class _Part:
    """Statements that all rows of a block may go through before those behind them; or products."""

    nodes: list[Node]
    products: list[_Product] = field(default_factory=list)

    def over(self, loop: Loop, numbers: Mapping[str, str]) -> list[Node]:
        """The same for the rows that a loop goes through, whose numbers are held in arrays."""
        i, low, found = loop.index, loop.first, list[Node]()
        if not self.products:
            entries = {name: f"{array}[{i} - {low}]" for name, array in numbers.items()}
            return [loop.around([stored(node, entries) for node in self.nodes])]
        count = loop.extent if low == "0" else f"{loop.extent} - {low}"
        for p in self.products:
            y = numbers.get(p.result, p.result)
            if p.vector in numbers or not p.added:
                x = numbers.get(p.vector, p.vector)
            else:
                x = _from(p.vector, low)
            a = _from(p.matrix, low, p.entries)
            name = "add_rows" if p.added else "multiply_rows"
            found.append(Call(f"{name}({count}, {p.entries}, {a}, {x}, {y})", (y,)))
        return found

    @property
    def loops(self) -> bool:
        return any(not isinstance(n, Line) for n in self.nodes)

    @property
    def calls(self) -> bool:
        """Is a function of numbers called beside the loops?"""
        return calls_functions([n for n in self.nodes if isinstance(n, Line)])


def _from(name: str, low: str, apart: str = "1") -> str:
    """A pointer to a row of an array, to a later one than the first."""
    step = low if apart == "1" else f"{low} * {atom(apart)}"
    return name if low == "0" else f"{name} + {step}"


def _parts(loop: Loop, local: Mapping[str, str]) -> list[_Part]:
    """What a loop does, in order; functions of numbers apart from loops in it."""
    parts: list[_Part] = []
    for node in loop.body:
        last = parts[-1] if parts and not parts[-1].products else _Part([])
        found = _added(loop, node, local) or _multiplied(loop, node, last)
        if found:
            parts.append(_Part([node], found))
            continue
        if isinstance(node, Line) and last.loops and calls_functions([node]):
            last = _Part([])
        elif not isinstance(node, Line) and last.calls:
            begun = [k for k, n in enumerate(last.nodes) if n.names & _written(node)]
            at = begun[0] if begun else len(last.nodes)
            last.nodes, last = last.nodes[:at], _Part(last.nodes[at:])
        if not parts or parts[-1] is not last:
            parts.append(last)
        last.nodes.append(node)
    return [part for part in parts if part.nodes]


def _written(node: Node) -> frozenset[str]:
    return frozenset(name for n in flat([node]) for name in targets(n))


def _multiplied(loop: Loop, node: Node, before: _Part) -> list[_Product]:
    """The products that a loop in a loop adds up, of rows and a vector.

    Their sums begin at zero in what stands `before`, which is without that then.
    """
    found, begun = list[_Product](), list[Node]()
    for line, given in terms(loop, node, r"(?P<x>\w+)\[{}\]"):
        named = [n for n in before.nodes if line.written in n.names]
        if named != [Line(line.target, "=", "0", "real")]:
            return []
        begun += named
        assert isinstance(node, Loop)
        found.append(_Product(node.extent, given["a"], given["x"], line.target, False))
    before.nodes = [n for n in before.nodes if n not in begun]
    return found


def _added(loop: Loop, node: Node, local: Mapping[str, str]) -> list[_Product]:
    """The products that a loop in a loop adds to a vector: of a row, and a number or an entry."""
    found = list[_Product]()
    for line, given in terms(loop, node, rf"(?P<x>\w+)(?P<at>\[{loop.index}\])?"):
        assert isinstance(node, Loop)
        y, x = line.target.removesuffix(f"[{node.index}]"), given["x"]
        known = local.get(x) == "real" or given["at"]
        if y == line.target or not y.isidentifier() or y in given.groups() or not known:
            return []
        found.append(_Product(node.extent, given["a"], x, y, True))
    return found
