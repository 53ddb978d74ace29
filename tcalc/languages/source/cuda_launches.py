"""The statements of a launcher: kernels on a stream, calls of libraries, loops of both.

A number that one statement leaves to others is an array of one entry in the workspace; the host
reads it only where it says how often a loop of launches runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

from ...support.records import record
from .c_fusion import conflict
from .c_module import headed
from .c_nests import Array, Call, Line, Loop, Node, flat, lines, replaced, targets
from .cuda_kernels import WORD, Shared, Writing, named, role, shared, typed
from .cuda_rows import BLOCKWISE, LIBRARY

TABLE = "static const "
#: Indices that a line of a kernel declares.
DECLARED = re.compile(r"(?:STRIDE\(|\bptrdiff_t )(\w+)")


@record()
class Launches:
    """The kernels of a function, and the statements that launch them.

    Parameters
    ----------
    name : str
        Of the function.
    known : dict
        The types of all that kernels may be given, by name.
    lengths : mapping
        Guesses of extents, by their text.
    unlike : callable
        Names that nothing has yet.

    Attributes
    ----------
    kernels : list of list of str
    numbers : dict
        The types of numbers that have an entry in the workspace.
    tables : dict
        Constants: the declarations of their numbers.
    spaces : list of str
        What calls of libraries need of one memory, as numbers.
    copied : list of Array
        Those of them that libraries read.
    same : dict
        Other names for numbers that the launcher is given.
    moved : set of str
        Pointers into other arrays.
    sums : int
        How many sums one kernel has at most.
    fails : bool
        May a matrix be refused?
    """

    name: str
    known: dict[str, str]
    lengths: Mapping[str, int]
    unlike: Callable[[], str]
    kernels: list[list[str]] = field(default_factory=list)
    numbers: dict[str, str] = field(default_factory=dict)
    tables: dict[str, str] = field(default_factory=dict)
    spaces: list[str] = field(default_factory=list)
    copied: list[Array] = field(default_factory=list)
    same: dict[str, str] = field(default_factory=dict)
    moved: set[str] = field(default_factory=set)
    sums: int = 0
    fails: bool = False

    def written(self, nodes: Sequence[Node]) -> list[str]:
        """The launcher's statements."""
        nodes = self.direct(replaced(self.outlined(nodes), self.same))
        body = self.statements(nodes)
        return [*[line for a in self.copied for line in self.filled(a)], *body]

    # --- numbers and tables ---

    def direct(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes with results that are numbers computed where the caller wants them."""
        made = {n.written for n in nodes if isinstance(n, Line) and n.kind and not pointer(n)}
        names, found = dict[str, str](), list[Node]()
        for node in nodes:
            given = node.value if isinstance(node, Line) and node.target.startswith("*") else ""
            if given in made and given not in names:
                assert isinstance(node, Line)
                names[given] = node.written
            else:
                found.append(node)
        return replaced(found, names)

    def outlined(self, nodes: Sequence[Node]) -> list[Node]:
        """The nodes without tables of constants, which stand beside the kernels."""
        host = {w for n in hosted(nodes) for w in n.names}
        found: list[Node] = []
        for node in nodes:
            if isinstance(node, Line) and node.kind.startswith(TABLE):
                self.table(node, node.written in host)
            elif isinstance(node, Line) and self.given(node):
                self.same[node.written] = node.value
            elif isinstance(node, Loop) and not node.plain:
                found.append(node.around(self.outlined(node.body)))
            else:
                found.append(node)
        return found

    def given(self, line: Line) -> bool:
        """Is it another name for a number that the launcher is given?"""
        number = line.kind.startswith("const") and not pointer(line)
        return number and not self.known.get(line.value, "*").endswith("*")

    def table(self, line: Line, host: bool) -> None:
        kind, name = line.kind.removeprefix(TABLE), line.written
        size = line.target[len(name) + 1 : -1]
        whole = f"{self.name}_{name}"
        self.tables[name] = f"static __device__ const {kind} {whole}[{size}] = {line.value};"
        if host:  # libraries read memory of the device
            self.copied.append(Array(name, (size,), kind))
            self.known[name] = f"{kind} *"

    def filled(self, a: Array) -> list[str]:
        line = Line(f"{a.name}[i]", "=", f"{self.name}_{a.name}[i]")
        return self.launched(Shared({"i": a.size}, [line]))

    def declared(self, nodes: Sequence[Node]) -> None:
        """Numbers of these statements go to the workspace."""
        for node in nodes:
            if isinstance(node, Line) and node.kind and not node.kind.endswith("*"):
                kind = node.kind.removeprefix("const ")
                self.numbers[node.written] = kind
                self.known[node.written] = f"{kind} *"

    # --- statements ---

    def statements(self, nodes: Sequence[Node]) -> list[str]:
        """Statements of the host for the statements of a function."""
        self.declared(nodes)
        found, waiting = list[str](), list[Node]()
        for node in nodes:
            if isinstance(node, Line) and node.kind.endswith("*"):
                self.known[node.written] = node.kind
                self.moved.add(node.written)
                found += [*self.alone(waiting), node.text]
                waiting = []
            elif self.serial(node):
                waiting.append(node)
            else:
                fresh = self.fresh(node, waiting)
                waiting = [n for n in waiting if all(n is not line for line in fresh.values())]
                if any(conflict(n, node) for n in waiting):
                    found += self.alone(waiting)
                    waiting = []
                found += self.one(node, frozenset(fresh))
        return [*found, *self.alone(waiting)]

    def serial(self, node: Node) -> bool:
        """Does one thread run it beside others of its kind?"""
        if any(isinstance(n, Call) for n in flat([node])) or node.names & BLOCKWISE:
            return False
        if isinstance(node, Loop) and not node.plain:
            return not any(isinstance(n, Loop) or pointer(n) for n in node.body)
        return isinstance(node, Line) or shared(node, BLOCKWISE, self.lengths) is None

    def fresh(self, node: Node, waiting: Sequence[Node]) -> dict[str, Line]:
        """Zeros that the node's sums begin with, by their numbers: they need not be stored."""
        nest = None if hosts(node) else shared(node, BLOCKWISE, self.lengths)
        found = {}
        for line in waiting:
            if isinstance(line, Line) and nest and line.target in nest.sums and line.kind:
                others = [n for n in waiting if n is not line and line.target in n.names]
                if line.value == "0" and not others:
                    found[line.target] = line
        return found

    def one(self, node: Node, fresh: frozenset[str]) -> list[str]:
        if isinstance(node, Call) and called(node) in LIBRARY:
            return self.library(node)
        if isinstance(node, Loop) and hosts(node):
            return self.loop(node)
        nest = shared(node, BLOCKWISE, self.lengths)
        return self.launched(nest, fresh) if nest else self.alone([node])

    def loop(self, node: Loop) -> list[str]:
        """A loop of launches."""
        self.known[node.index] = "ptrdiff_t"
        body, extent, before = self.statements(node.body), self.read(node.extent), list[str]()
        if extent != node.extent:
            local = self.unlike()
            before, extent = [f"const ptrdiff_t {local} = {extent};"], local
        going = f" && {self.read(node.going)}" if node.going else ""
        i = node.index
        head = f"for (ptrdiff_t {i} = 0; {i} < {extent}{going}; {i}++) {{"
        if node.backward:
            head = f"for (ptrdiff_t {i} = {extent}; {i}-- > 0;) {{"
        return [*before, head, *[f"    {line}" for line in body], "}"]

    def read(self, text: str) -> str:
        """A text of the host, in which numbers of the device are read."""
        return replaced_words(
            text, {n: f"number_at(stream, {n})" for n in self.numbers if n in named([text])}
        )

    def library(self, node: Call) -> list[str]:
        """A call of a library: cuBLAS or cuSOLVER."""
        name, row = called(node), LIBRARY[called(node)]
        given = arguments(node.text)
        if row.space:
            sizes = ", ".join(given[: row.space])
            self.spaces.append(f"library_{name}_space(solver, {sizes})")
        self.fails = self.fails or row.fails
        return [f"if (library_{name}(on, {', '.join(given)}))", "    return 2;"]

    # --- kernels ---

    def alone(self, nodes: Sequence[Node]) -> list[str]:
        """A kernel of one thread."""
        if not nodes:
            return []
        body = undeclared(nodes)
        text = [typed(line) for line in lines(self.noted(body), vectors=False)]
        return [self.launch(text, "1", "1", written(body))]

    def launched(self, nest: Shared, fresh: frozenset[str] = frozenset()) -> list[str]:
        """The launch of a kernel, and of what adds its blocks' sums up."""
        nest.body = self.noted(nest.body if nest.over else undeclared(nest.body))
        kinds = self.numbers | {
            line.written: line.kind
            for line in flat(nest.body)
            if isinstance(line, Line) and line.kind
        }
        places = {name: self.unlike() for name in nest.sums}
        text = Writing(nest, BLOCKWISE, kinds, self.unlike).written(places)
        count = self.read(nest.count)
        blocks = f"blocks({count}, {1 if nest.rows else 'THREADS'})"
        sums = {
            places[name]: (f"{kinds[name]} *", f"({kinds[name]} *)(sums + {k} * BLOCKS)")
            for k, name in enumerate(nest.sums)
        }
        self.sums = max(self.sums, len(sums))
        grid = blocks if nest.over else "1"
        found = [self.launch(text, grid, "THREADS", written(nest.body), sums)]
        for name, (_, given) in zip(nest.sums, sums.values(), strict=True):
            add = f"add_up<{kinds[name]}>"
            begins = "0" if name in fresh else "1"
            found.append(
                f"LAUNCH(({add}), 1, THREADS, stream, {blocks}, {given}, {name}, {begins});"
            )
        return found

    def noted(self, body: Sequence[Node]) -> list[Node]:
        """The body, in which routines that fail leave a note."""
        found: list[Node] = []
        for node in body:
            if isinstance(node, Loop):
                found.append(node.around(self.noted(node.body)))
            elif isinstance(node, Call) and node.status:
                self.fails = True
                self.known["failed"] = "int *"
                found.append(Call(f"note({node.text}, failed)", node.writes))
            else:
                found.append(node)
        return found

    def launch(
        self, text: list[str], blocks: str, threads: str, filled: set[str],
        more: Mapping[str, tuple[str, str]] | None = None,
    ) -> str:  # fmt: skip
        """The launch of a new kernel with these lines, which fill arrays."""
        text = [self.entries(line) for line in text]
        own = {w for line in text for w in DECLARED.findall(line)}
        names = sorted(named(text) & self.known.keys() - own)
        moving = any(self.known[n].startswith("const") and n in self.moved for n in names)
        given = {n: (constant(self.known[n], n in filled, moving), n) for n in names}
        given |= more or {}
        kernel = f"{self.name}_kernel{len(self.kernels) + 1}"
        parameters = [f"{kind if kind.endswith(('*', ' ')) else kind + ' '}{n}"
                      for n, (kind, _) in given.items()]  # fmt: skip
        self.kernels.append([*headed(f"static __global__ void {kernel}", parameters), "{",
                             *[f"    {line}" for line in text], "}"])  # fmt: skip
        arguments_ = ", ".join([text for _, text in given.values()])
        return f"LAUNCH({kernel}, {blocks}, {threads}, stream, {arguments_});"

    def entries(self, line: str) -> str:
        """A line of a kernel, its numbers as entries of the workspace."""
        names = {n: f"{n}[0]" for n in self.numbers}
        names |= {n: f"block_{n}" for n in BLOCKWISE}
        names |= {
            n: f"{self.name}_{n}" for n in self.tables if n not in [a.name for a in self.copied]
        }
        return replaced_words(line, names)


def replaced_words(text: str, names: Mapping[str, str]) -> str:
    return WORD.sub(lambda m: names.get(m.group(), m.group()), text)


def undeclared(nodes: Sequence[Node]) -> list[Node]:
    """Statements whose numbers have their places in the workspace."""
    return [replace(n, kind="") if isinstance(n, Line) else n for n in nodes]


def written(nodes: Sequence[Node]) -> set[str]:
    """What statements fill."""
    return {name for line in flat(nodes) for name in targets(line)} | {"failed"}


def constant(kind: str, filled: bool, moving: bool) -> str:
    """The type of a parameter: what a kernel only reads, at places that nothing fills, says so."""
    if filled or not kind.endswith("*"):
        return kind
    kind = kind if kind.startswith("const") else f"const {kind}"
    return kind if moving else f"{kind}__restrict__ "


def pointer(node: Node) -> bool:
    return isinstance(node, Line) and node.kind.endswith("*")


def called(node: Call) -> str:
    """The function that a call calls."""
    return node.text.partition("(")[0]


def arguments(text: str) -> list[str]:
    """The arguments of a call."""
    found, depth, inside = [""], 0, text[text.index("(") + 1 : -1]
    for character in inside:
        depth += (character in "([{") - (character in ")]}")
        if character == "," and not depth:
            found.append("")
        else:
            found[-1] += character
    return [part.strip() for part in found]


def hosts(node: Node) -> bool:
    """Does the host run it: a loop that calls libraries, or whose turns are in order?"""
    if not isinstance(node, Loop):
        return False
    return any(isinstance(n, Call) and called(n) in LIBRARY for n in flat([node])) or not (
        node.plain or routine(node)
    )


def routine(node: Loop) -> bool:
    """Is it one statement, for every item of a stack, in any order?"""
    inner: Node = node
    while isinstance(inner, Loop):
        if len(inner.body) != 1 or not role(inner).shared:
            return False
        (inner,) = inner.body
    return True


def hosted(nodes: Sequence[Node]) -> list[Node]:
    """Calls of libraries, and pointers that the host computes."""
    found: list[Node] = []
    for node in nodes:
        if isinstance(node, Loop):
            found += hosted(node.body) if hosts(node) else []
        elif pointer(node) or (isinstance(node, Call) and called(node) in LIBRARY):
            found.append(node)
    return found
