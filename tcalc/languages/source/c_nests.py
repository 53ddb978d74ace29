"""Statements of C: assignments, calls and loops, what they name, and their text."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from ...support.errors import LimitError
from ...support.limits import spend
from ...support.records import record

#: Names of indices, in the order in which loops take them.
LETTERS = ("i", "j", "k", "l", "p", "q", "r", "s", "u", "v")
#: Blocks in each other that every compiler of C reads (C99, 5.2.4.1).
MAX_NESTED = 127
WORD = r"[A-Za-z_]\w*"
#: Characters of statements that are searched in a step.
CHARACTERS_A_STEP = 12


@record(frozen=True)
class Array:
    """A temporary: its extents as text of C, and the type of its entries."""

    name: str
    shape: tuple[str, ...]
    kind: str = "real"

    @cached_property
    def size(self) -> str:
        return " * ".join([atom(n) for n in self.shape]) or "1"


class _Statement(ABC):
    """What a statement names, and at which places (None: wherever)."""

    @property
    @abstractmethod
    def own(self) -> tuple[str, ...]:
        """Its text, without that of statements inside."""

    @property
    def inner(self) -> Sequence[Node]:
        """The statements inside."""
        return ()

    @cached_property
    def names(self) -> frozenset[str]:
        text = "\n".join(self.own)
        spend("steps", len(text) // CHARACTERS_A_STEP)
        return frozenset(re.findall(WORD, text)).union(*[node.names for node in self.inner])

    @cached_property
    def accesses(self) -> Mapping[str, frozenset[str | None]]:
        found: dict[str, set[str | None]] = {}
        for text in self.own:
            spend("steps", len(text) // CHARACTERS_A_STEP)
            for word in re.finditer(WORD, text):
                found.setdefault(word[0], set()).add(after(text, word.end()))
        own = {name: frozenset(places) for name, places in found.items()}
        return _joined([own, *[node.accesses for node in self.inner]])


@record()
class Line(_Statement):
    """An assignment; `kind` is the type where it declares its target."""

    target: str
    sign: str
    value: str
    kind: str = ""

    @property
    def text(self) -> str:
        head = f"{self.kind} " if self.kind and not self.kind.endswith("*") else self.kind
        return f"{head}{self.target} {self.sign} {self.value};"

    @property
    def own(self) -> tuple[str, ...]:
        return (self.text,)

    @property
    def written(self) -> str:
        """The name that is assigned to."""
        found = re.search(r"\w+", self.target)
        assert found is not None
        return found.group()


@record()
class Call(_Statement):
    """A routine that fills arrays; one that may fail returns a status that is handed on.

    It is called only `when` something holds, if that is said.
    """

    text: str
    writes: tuple[str, ...]
    status: str = ""
    when: str = ""

    @property
    def own(self) -> tuple[str, ...]:
        return self.text, self.when


@record()
class Loop(_Statement):
    """A loop over an index from `first` on, by steps; `plain` ones may be fused.

    It goes on only while `going` holds, if it is said. A sum in `short` ones is written out.
    """

    index: str
    extent: str
    body: list[Node]
    plain: bool = True
    backward: bool = False
    going: str = ""
    short: bool = False
    first: str = "0"
    step: int = 1

    def around(self, body: list[Node]) -> Loop:
        """The loop with another body."""
        return replace(self, body=body)

    def followed_by(self, other: Loop) -> Loop:
        """The loop with another one's statements after its own, which are not searched again."""
        found = self.around([*self.body, *other.body])
        found.__dict__["writes"] = self.writes | other.writes
        found.__dict__["names"] = self.names | other.names
        found.__dict__["accesses"] = _joined([self.accesses, other.accesses])
        return found

    @property
    def own(self) -> tuple[str, ...]:
        return self.first, self.extent, self.going

    @property
    def inner(self) -> Sequence[Node]:
        return self.body

    @cached_property
    def writes(self) -> frozenset[str]:
        return frozenset(name for line in flat([self]) for name in targets(line))


Node = Line | Call | Loop


class Statement(str):
    """Lines of a scope that hold their nodes; the text is all that they name."""

    __slots__ = ("made", "nodes")
    nodes: list[Node]
    made: list[Array]

    def __new__(cls, nodes: list[Node], made: list[Array]) -> Statement:
        found = super().__new__(cls, "\n".join([" ".join(n.names) for n in nodes]))
        found.nodes, found.made = nodes, made
        return found


def atom(text: str) -> str:
    """The text, in parentheses where it is a sum or a product."""
    if text.isidentifier() or text.isdecimal():
        return text
    depth = 0
    for k, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if not depth and not (character.isalnum() or character in "_)]"):
            return f"({text})"
        if not depth and character in ")]" and k < len(text) - 1:
            return f"({text})"
    return text


def nest(index: Sequence[str], extents: Sequence[str], body: list[Node]) -> list[Node]:
    """Loops around statements.

    Raises
    ------
    LimitError
        Of more than C promises to read.
    """
    if len(index) > MAX_NESTED:
        raise LimitError(f"more than {MAX_NESTED} loops in each other: C need not read them")
    for i, n in reversed(list(zip(index, extents, strict=True))):
        body = [Loop(i, n, body)]
    return body


def targets(node: Line | Call) -> tuple[str, ...]:
    """What is written to; where a pointer is made that others write by, what it points to too."""
    if isinstance(node, Line) and node.kind == "real *":
        return (node.written, *re.findall(r"(?<=&)\w+|(?<= : )\w+$", node.value))
    return node.writes if isinstance(node, Call) else (node.written,)


def writes_of(node: Node) -> frozenset[str]:
    """What a node fills."""
    return node.writes if isinstance(node, Loop) else frozenset(targets(node))


def inside(nodes: Sequence[Node]) -> Iterator[Node]:
    """The nodes and what stands in loops, in order."""
    waiting = [*reversed(nodes)]
    while waiting:
        yield (node := waiting.pop())
        if isinstance(node, Loop):
            waiting += reversed(node.body)


def flat(nodes: Sequence[Node]) -> Iterator[Line | Call]:
    """All lines and calls, loops opened."""
    return (node for node in inside(nodes) if not isinstance(node, Loop))


def texts(nodes: Sequence[Node]) -> Iterator[str]:
    """All text, extents of loops too."""
    return (text for node in inside(nodes) for text in node.own)


def _joined(
    several: Sequence[Mapping[str, frozenset[str | None]]],
) -> dict[str, frozenset[str | None]]:
    """The places at which several statements name what they name."""
    found: dict[str, frozenset[str | None]] = {}
    for accesses in several:
        for name, places in accesses.items():
            found[name] = found[name] | places if name in found else places
    return found


def after(text: str, start: int) -> str | None:
    """What is in brackets here, or added to a pointer."""
    opening = text[start : start + 1] == "["
    if not opening and text[start : start + 3] != " + ":
        return None
    first = start + 1 if opening else start + 3
    depth = 0
    for k, character in enumerate(text[first:], first):
        if not depth and character in ")],;":
            return text[first:k]
        depth += (character in "([") - (character in ")]")
    return None


def replaced(nodes: Sequence[Node], names: Mapping[str, str]) -> list[Node]:
    """The same with other words in place of some, all at once."""
    if not names:
        return list(nodes)
    pattern = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")

    def text(given: str) -> str:
        return pattern.sub(lambda m: names[m.group()], given)

    return [mapped(node, text) for node in nodes]


def lettered(nodes: Sequence[Node], taken: Collection[str]) -> list[Node]:
    """The same with letters for indices that nothing else is called."""
    used = {word for node in nodes for word in node.names}.union(taken)
    free = (name for name in (*LETTERS, *[f"i{k}" for k in range(1000)]) if name not in used)
    found = sorted([w for w in used if re.fullmatch(r"_\d+", w)], key=lambda w: int(w[1:]))
    return replaced(nodes, dict(zip(found, free, strict=False)))


def mapped(node: Node, text: Mapping[str, str] | object) -> Node:
    assert callable(text)
    if isinstance(node, Loop):
        body = [mapped(inner, text) for inner in node.body]
        going = text(node.going) if node.going else ""
        index, first, extent = text(node.index), text(node.first), text(node.extent)
        return replace(node, index=index, first=first, extent=extent, body=body, going=going)
    if isinstance(node, Call):
        written = tuple([str(text(name)) for name in node.writes])
        return Call(text(node.text), written, node.status, node.when and text(node.when))
    return Line(text(node.target), node.sign, text(node.value), node.kind)


def stored(node: Node, entries: Mapping[str, str]) -> Node:
    """The statement with numbers where `entries` says that they are held."""
    if not entries:
        return node
    pattern = re.compile(rf"\b({'|'.join(entries)})\b")
    found = mapped(node, lambda text: pattern.sub(lambda m: entries[m[0]], text))
    if isinstance(found, Line) and isinstance(node, Line) and node.written in entries:
        found.kind = ""
    return found


def place(index: Sequence[str], shape: Sequence[str]) -> str:
    """The place of an entry in memory, rows after each other."""
    text = factor = ""
    for k, n in zip(index, shape, strict=True):
        if text in ("", "0"):
            text, factor = k, atom(k)
        else:
            text = f"{factor} * {atom(n)}" + (f" + {k}" if k != "0" else "")
            factor = f"({text})"
    return text or "0"


# --- text -----------------------------------------------------------------------------------------


def lines(nodes: Sequence[Node], vectors: bool = True) -> list[str]:
    """The statements as lines; sums of numbers say that `vectors` may add them up."""
    found: list[str] = []
    for node in nodes:
        if isinstance(node, Line):
            found.append(node.text)
        elif isinstance(node, Call):
            status = [f"if ({node.text})", f"    return {node.status};"]
            called = status if node.status else [f"{node.text};"]
            when = [f"if ({node.when})"] if node.when else []
            found += [*when, *[f"    {line}" if when else line for line in called]]
        else:
            found += _loop(node, vectors)
    return found


def _loop(node: Loop, vectors: bool) -> list[str]:
    i, n = node.index, node.extent
    going = f" && {node.going}" if node.going else ""
    by = f"{i}++" if node.step == 1 else f"{i} += {node.step}"
    head = f"for (ptrdiff_t {i} = {node.first}; {i} < {n}{going}; {by})"
    if node.backward:
        head = f"for (ptrdiff_t {i} = {n}; {i}-- > 0;)"
    body = lines(node.body, vectors)
    one = len(node.body) == 1 and not (isinstance(node.body[0], Line) and node.body[0].kind)
    summed = [
        line.target
        for line in node.body
        if isinstance(line, Line) and line.sign == "+=" and line.target.isidentifier()
    ]
    straight = vectors and not node.short and all(isinstance(line, Line) for line in node.body)
    pragma = [f"#pragma omp simd reduction(+: {', '.join(summed)})"] if summed and straight else []
    inside = [line if line.startswith("#") else f"    {line}" for line in body]
    return [*pragma, head, *inside] if one else [*pragma, f"{head} {{", *inside, "}"]
