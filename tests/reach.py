"""Which tests enter which blocks of the package: what a planted fault meets.

`beacons` puts a call at the start of every block of a function's statements, `measured` runs trials
in a fork and tells of each what it entered, and `Reach` keeps that in a file. What functions
remember is forgotten before each trial, so that none profits from what another one entered.
"""

from __future__ import annotations

import ast
import builtins
import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from tests.planted import Trial, forget, forked, processor, replace

#: The name of what blocks call.
NAME = "_entered"
ENTERED: set[int] = set()
#: Statements that other statements hold, where these run when a function does.
SUITES = ("body", "orelse", "finalbody")


class Block(NamedTuple):
    """A block of statements, or a lambda's value: its name, and where it begins and ends."""

    name: str
    first: tuple[int, int]
    last: tuple[int, int]

    def holds(self, node: ast.AST) -> bool:
        return self.first <= begin(node) and end(node) <= self.last


def begin(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def end(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0


class Blocks:
    """The blocks of a module's functions, outer ones first."""

    def __init__(self, module: str, source: str) -> None:
        self.module = module
        self.tree = ast.parse(source)
        self.all: list[Block] = []
        self.places: list[tuple[ast.AST, list[ast.stmt] | None]] = []
        self.counts: dict[str, int] = defaultdict(int)
        self.walk(self.tree, "", inside=False)

    def walk(self, node: ast.AST, name: str, inside: bool) -> None:
        match node:
            case ast.FunctionDef(name=own):
                name, inside = f"{name}.{own}", True
            case ast.Lambda():
                name, inside = f"{name}.lambda", True
                self.add(node, None, name, node.body, node.body)
            case ast.ClassDef(name=own):
                name, inside = f"{name}.{own}", False
        for field, value in ast.iter_fields(node):
            if inside and isinstance(value, list) and value and isinstance(value[0], ast.stmt):
                self.add(node, value, name, value[0], value[-1])
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and field != "decorator_list":
                    outside = isinstance(node, ast.FunctionDef) and field in ("args", "returns")
                    self.walk(child, name, inside and not outside)

    def add(
        self, node: ast.AST, suite: list[ast.stmt] | None, name: str, first: ast.AST, last: ast.AST
    ) -> None:
        full = f"{self.module}:{name[1:]}:{self.counts[name]}"
        self.counts[name] += 1
        self.all.append(Block(full, begin(first), end(last)))
        self.places.append((node, suite))

    def beacons(self, numbers: Mapping[str, int], path: str) -> CodeType:
        """The module, where each block tells its number first."""
        for block, (node, suite) in zip(self.all, self.places, strict=True):
            call = ast.Call(ast.Name(NAME, ast.Load()), [ast.Constant(numbers[block.name])], [])
            last = dict(zip(("lineno", "col_offset"), block.last, strict=True))
            last |= {f"end_{key}": value for key, value in last.items()}
            for made in ast.walk(call):
                for key, value in last.items():
                    setattr(made, key, value)
            if suite is None:
                assert isinstance(node, ast.Lambda)
                both = ast.BoolOp(ast.Or(), [call, node.body])
                node.body = ast.copy_location(both, node.body)
            else:
                text = isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None
                suite.insert(int(text), ast.Expr(call, **last))
        return compile(self.tree, path, "exec", dont_inherit=True)


class Source:
    """The blocks that run where a fault of a module is."""

    def __init__(self, module: str, source: str) -> None:
        self.blocks = Blocks(module, source)
        self.tree = self.blocks.tree
        self.read: dict[str, set[str]] = defaultdict(set)
        for node in ast.walk(self.tree):
            name = getattr(node, "id", getattr(node, "attr", None))
            if isinstance(name, str) and (block := self.around(node)) is not None:
                self.read[name].add(block)

    def around(self, node: ast.AST) -> str | None:
        """The innermost block."""
        found = [block.name for block in self.blocks.all if block.holds(node)]
        return found[-1] if found else None

    def statement(self, node: ast.AST) -> ast.stmt:
        """What stands at the module's level around a node."""
        assert isinstance(self.tree, ast.Module)
        return next(s for s in self.tree.body if begin(s) <= begin(node) and end(node) <= end(s))

    def inside(self, node: ast.AST) -> set[str]:
        return {b.name for b in self.blocks.all if begin(node) <= b.first and b.last <= end(node)}


def blocks_of(module: str, node: ast.AST, sources: Mapping[str, Source]) -> set[str]:
    """The block around a node; outside of functions, those that read what it takes part in."""
    own = sources[module]
    if (found := own.around(node)) is not None:
        return {found}
    around = own.statement(node)
    blocks = own.inside(around)
    targets = [around.target] if isinstance(around, ast.AnnAssign) else []
    targets += around.targets if isinstance(around, ast.Assign) else []
    for target in targets:
        for name in ast.walk(target):
            if isinstance(name, ast.Name):
                blocks |= set[str]().union(*(s.read.get(name.id, ()) for s in sources.values()))
    return blocks or {block.name for block in own.blocks.all}


# --- measuring ------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A trial's seconds of the processor, and the blocks that it enters as bits."""

    seconds: float
    entered: int


def light(sources: Mapping[str, Source], paths: Mapping[str, str]) -> list[str]:
    """Put beacons into the functions of this process; the names of blocks by their numbers."""
    setattr(builtins, NAME, ENTERED.add)
    names = [block.name for source in sources.values() for block in source.blocks.all]
    numbers = {name: k for k, name in enumerate(names)}
    replace({paths[m]: source.blocks.beacons(numbers, paths[m]) for m, source in sources.items()})
    return names


def measured(
    trials: Sequence[Trial], seconds: float, known: Collection[str] = ()
) -> Iterator[tuple[Trial, Row | None]]:
    """What trials enter, of as many as begin within these seconds.

    Of each function a first case, by chance, before any second one; those that are `known` count.
    Trials that go wrong have no row.
    """
    order = list(range(len(trials)))
    random.Random(0).shuffle(order)
    cases = Counter(map(function_of, known))
    rank: dict[int, int] = {}
    for k in order:
        function = function_of(trials[k].name)
        rank[k] = cases[function]
        cases[function] += 1
    order.sort(key=rank.__getitem__)

    def work(tell: Callable[[str], None]) -> None:
        stop = processor() + seconds
        for k in order:
            forget()
            ENTERED.clear()
            start = processor()
            wrong = trials[k].run()
            spent = processor() - start
            tell(json.dumps([k, spent, "" if wrong else f"{bits(ENTERED):x}"]))
            if processor() > stop:
                return

    lines, _ = forked(work, 3 * seconds + 60)
    for k, spent, entered in map(json.loads, lines):
        yield trials[k], Row(spent, int(entered, 16)) if entered else None


def function_of(name: str) -> str:
    """The test function of a case."""
    return name.partition("[")[0]


def bits(numbers: Collection[int]) -> int:
    found = bytearray(max(numbers, default=0) // 8 + 1)
    for k in numbers:
        found[k // 8] |= 1 << k % 8
    return int.from_bytes(found, "little")


class Reach:
    """Rows by the names of trials, in a file if there is one: a run goes on where one stopped."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.names: list[str] = []
        self.rows: dict[str, Row | None] = {}
        #: Rows of other blocks than those of now, as after a module has changed.
        self.older: list[tuple[list[str], dict[str, Row | None]]] = []
        if path is not None and path.exists():
            with path.open() as file:
                for told in map(json.loads, file):
                    if "names" in told:
                        self.begin(told["names"])
                    else:
                        row = Row(told["seconds"], int(told["entered"], 16))
                        self.rows[told["trial"]] = row if row.entered else None

    def begin(self, names: list[str]) -> None:
        self.older.append((self.names, self.rows))
        self.names, self.rows = names, {}

    def now(self, names: list[str]) -> None:
        """From here on rows are of these blocks."""
        if names != self.names:
            self.begin(names)
            self.write({"names": names})

    def write(self, told: object) -> None:
        if self.path is not None:
            with self.path.open("a") as file:
                print(json.dumps(told), file=file)

    def add(self, trial: str, row: Row | None) -> None:
        self.rows[trial] = row
        spent, entered = row or (0.0, 0)
        self.write({"trial": trial, "seconds": spent, "entered": f"{entered:x}"})

    def known(self, trial: str) -> bool:
        return trial in self.rows or any(trial in rows for _, rows in self.older)

    def entering(self, blocks: Collection[str]) -> dict[str, float]:
        """The trials that enter some blocks, with their seconds."""
        found: dict[str, float] = {}
        for names, rows in [*self.older, (self.names, self.rows)]:
            mask = bits([k for k, name in enumerate(names) if name in blocks])
            found |= {t: r.seconds for t, r in rows.items() if r is not None and r.entered & mask}
        return found
