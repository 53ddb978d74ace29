"""Nests of loops as kernels of CUDA: which loops threads share, and how sums are added up.

Targets of a nest have all indices of the loops that fill them in their places, so a loop whose
index stands in every one of them may be shared. A loop that adds to numbers is shared too: threads
add up what they meet, blocks add up their threads, and one more block adds up all blocks, in an
order that only the extents decide. Nothing is atomic.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import field
from itertools import chain
from math import prod

from ...support.records import NamedTuple, record
from .c_nests import Call, Line, Loop, Node, atom, flat, lines, replaced, targets
from .c_orders import accesses

#: Turns of an inner loop that keep the threads of a block busy.
BUSY = 32
#: Entries that keep a device busy, one thread each.
MANY = 4096
#: Names; what stands behind a point is a member's.
WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
#: Numbers of a text, which are of the program's type.
_NUMBER = re.compile(r"(?<![\w.])(?:\d+\.\d*(?:e-?\d+)?|\d+e-?\d+)(?![\w.])")


class Role(NamedTuple):
    """What becomes of a loop: shared by threads or not, and the numbers that it adds to."""

    shared: bool
    sums: tuple[str, ...] = ()


def role(loop: Loop) -> Role:
    """May threads share the turns of a loop?"""
    inner = list(flat(loop.body))
    private = {line.written for line in inner if isinstance(line, Line) and line.kind}
    sums: dict[str, None] = {}
    for line in inner:
        if isinstance(line, Call):
            if loop.index not in line.names:
                return Role(False)
        elif line.written in private:
            continue
        elif line.target.isidentifier() and line.sign == "+=":
            sums[line.written] = None
        elif loop.index not in re.findall(r"\w+", line.target):
            return Role(False)
    read = {
        w
        for line in inner
        for w in re.findall(r"\w+", line.value if isinstance(line, Line) else "")
    }
    return Role(not loop.going and not loop.backward and not read & sums.keys(), tuple(sums))


@record()
class Shared:
    """A nest that threads share.

    Attributes
    ----------
    over : dict
        Extents of the loops that they share, by their indices.
    body : list of Node
    sums : tuple of str
        The numbers outside that it adds to.
    rows : bool
        Does a block, not a thread, take each turn, and share the loops inside?
    """

    over: dict[str, str]
    body: list[Node]
    sums: tuple[str, ...] = ()
    rows: bool = False

    @property
    def count(self) -> str:
        return " * ".join(map(atom, self.over.values())) if len(self.over) > 1 else self.extent

    @property
    def extent(self) -> str:
        return next(iter(self.over.values()), "1")


def shared(node: Node, blockwise: frozenset[str], lengths: Mapping[str, int]) -> Shared | None:
    """The nest as threads share it; None where one thread runs all of it.

    Parameters
    ----------
    node : Node
    blockwise : frozenset of str
        Functions that all threads of a block call together.
    lengths : mapping
        Guesses of extents, by their text.
    """
    found = Shared({}, [node])
    while len(found.body) == 1 and isinstance(loop := found.body[0], Loop):
        free, sums = role(loop)
        if not free:
            break
        found.sums = tuple(dict.fromkeys([*found.sums, *sums]))
        found.over[loop.index] = loop.extent
        found.body = loop.body
    together = any(line.names & blockwise for line in flat(found.body))
    if not found.over and not together:
        return None
    found.rows = together or _by_blocks(found, lengths)
    return found


def _by_blocks(s: Shared, lengths: Mapping[str, int]) -> bool:
    """Is a block's turn better than a thread's: are there long loops inside, along memory?"""
    inner = [n for n in s.body if isinstance(n, Loop)]
    if not inner or not all(loop.plain and role(loop).shared for loop in inner):
        return False

    def length(extent: str) -> int:
        return int(extent) if extent.isdecimal() else lengths.get(extent, BUSY)

    if max(length(loop.extent) for loop in inner) < BUSY:
        return False
    few = prod(map(length, s.over.values())) < MANY
    return few or any(
        access.along(loop.index) == 1
        for loop in inner
        for line in flat(loop.body)
        for access in accesses(line.value if isinstance(line, Line) else "")
    )


@record()
class Writing:
    """The text of a kernel's body.

    Attributes
    ----------
    nest : Shared
    blockwise : frozenset of str
    kinds : mapping
        The types of numbers, by their names.
    fresh : callable
        Names that nothing has yet.
    lines : list of str
    """

    nest: Shared
    blockwise: frozenset[str]
    kinds: Mapping[str, str]
    fresh: Callable[[], str]
    lines: list[str] = field(default_factory=list)

    def written(self, sums: Mapping[str, str]) -> list[str]:
        """The lines of the kernel, which keeps its sums under these names."""
        s = self.nest
        parts = {name: self.fresh() for name in s.sums}
        body = replaced(s.body, parts)
        self.lines += [f"{self.kinds[name]} {part} = 0;" for name, part in parts.items()]
        turn = "row" if s.rows else "entry"
        (name, places) = self.places(turn)
        if s.over:
            head = "BLOCK_STRIDE" if s.rows else "GRID_STRIDE"
            self.lines.append(f"{head}({name}, {s.count}) {{")
        inner = [
            *places,
            *(self.by_block(body, parts.values()) if s.rows else lines(body, vectors=False)),
        ]
        self.lines += [f"    {line}" for line in inner] + ["}"] if s.over else inner
        for sum_, part in parts.items():
            self.lines.append(f"keep_sum({part}, {sums[sum_]});")
        return [typed(line) for line in self.lines]

    def places(self, turn: str) -> tuple[str, list[str]]:
        """The index that the threads share, and how those of the loops follow from it."""
        over = self.nest.over
        if len(over) == 1:
            return next(iter(over)), []
        found, behind = list[str](), turn
        for k, (i, n) in enumerate(reversed(over.items())):
            n = "1" if n == "0" else n  # of which there is no turn
            last = k == len(over) - 1
            found.insert(0, f"const ptrdiff_t {i} = {behind}{'' if last else f' % {atom(n)}'};")
            behind = f"{behind} / {atom(n)}"
        used = frozenset().union(*[n.names for n in self.nest.body])
        return turn, [line for i, line in zip(over, found, strict=True) if i in used]

    def by_block(self, body: Sequence[Node], sums: Collection[str]) -> list[str]:
        """Statements that all threads of a block run together; they add to sums of their own."""
        found, filled, read = list[str](), set[str](), set[str]()
        own = {n.written for n in flat(body) if isinstance(n, Line) and n.kind}
        for node in body:
            fills = {name for line in flat([node]) for name in targets(line)} - own
            if filled & node.names or read & fills:
                found.append("__syncthreads();")
                filled, read = set(), set()
            if isinstance(node, Loop):
                found += self.strided(node, sums)
            elif isinstance(node, Call):
                found += lines([node])
            elif node.kind or node.written in own:
                found.append(node.text)
            elif node.names & self.blockwise:
                whole = self.fresh()
                found += [f"const auto {whole} = {node.value};", "if (threadIdx.x == 0)"]
                found.append(f"    {node.target} {node.sign} {whole};")
            else:
                found += ["if (threadIdx.x == 0)", f"    {node.text}"]
            filled |= fills
            read |= node.names
        return found

    def strided(self, loop: Loop, sums: Collection[str]) -> list[str]:
        """A loop whose turns the threads of a block share."""
        local = {name: self.fresh() for name in role(loop).sums if name not in sums}
        body = replaced(loop.body, local)
        return [
            *[f"{self.kinds[name]} {part} = 0;" for name, part in local.items()],
            f"THREAD_STRIDE({loop.index}, {loop.extent}) {{",
            *[f"    {line}" for line in lines(body, vectors=False)],
            "}",
            *[f"{name} += block_sum({part});" for name, part in local.items()],
        ]


def typed(text: str) -> str:
    """The text, its numbers of the program's type: others are double, and so is what meets them."""
    return _NUMBER.sub(lambda m: f"real({m.group()})", text)


def named(texts: Sequence[str]) -> set[str]:
    """All words of texts."""
    return set(chain.from_iterable(WORD.findall(text) for text in texts))
