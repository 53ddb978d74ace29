"""Faults in the functions of this process, switched on one at a time in its forks.

`plant` puts all faults of a run into the functions of the package at once: each place where one
was drawn asks a switch whether the fault or what stood there is computed. Nothing is on in this
process; `caught` runs trials in a fork, with one fault on. A fork has no threads of its parent, so
that the parent must have none.
"""

from __future__ import annotations

import ast
import builtins
import functools
import gc
import os
import resource
import select
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from types import CodeType, FunctionType
from typing import NamedTuple

from tests.documents import ROOT
from tests.mutations import Faults, Mutation, put

#: Trials that take so many times as long as without the fault, and some seconds, hang; by the
#: processor's time. On a busy machine they may take so many times as long by the clock.
PATIENCE, GRACE, BUSY = 5.0, 5.0, 30.0
MEMORY = 12 << 30
HANGS, DIED = "hangs", "died"
Cached = type(functools.cache(lambda: None))
#: The name of the switch where faults stand.
NAME = "_fault"
#: What modules of the package remember in tables of their own.
TABLES = (("tcalc.run.compiled", "_engines"), ("tcalc.calculus.deep_expressions", "_known"))


class Trial(NamedTuple):
    """Something that tells what went wrong, or nothing."""

    name: str
    run: Callable[[], str]


class Switch:
    """Which fault is on."""

    def __init__(self) -> None:
        self.on = ""

    def __call__(self, key: str) -> bool:
        return key == self.on


SWITCH = Switch()


# --- faults in place ------------------------------------------------------------------------------


def switched(faults: Faults, drawn: Mapping[str, Mutation], path: str) -> CodeType | None:
    """A module with faults by their keys, each behind the switch; None where no program is."""
    before = []
    for key, fault in drawn.items():
        parent, field, k = fault.place
        node = getattr(parent, field)
        node = node if k is None else node[k]
        before.append((fault.place, node))
        test = ast.Call(ast.Name(NAME, ast.Load()), [ast.Constant(key)], [])
        both: ast.AST
        if isinstance(node, ast.stmt):
            both = ast.If(test, [fault.changed], [node])
        else:
            both = ast.IfExp(test, fault.changed, node)
        if isinstance(parent, ast.JoinedStr):
            both = ast.FormattedValue(both, -1, None)
        put(fault.place, ast.copy_location(both, node))
    try:
        tree = ast.fix_missing_locations(faults.tree)
        return compile(tree, path, "exec", dont_inherit=True)
    except (SyntaxError, TypeError, ValueError):  # as in patterns, where only constants stand
        return None
    finally:
        for place, node in reversed(before):
            put(place, node)


def functions(code: CodeType) -> Iterator[CodeType]:
    """The functions of a module or a class, and those in them."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if not inner.co_name.startswith("<") or inner.co_name == "<lambda>":
                yield inner
            yield from functions(inner)


def place(code: CodeType) -> tuple[object, ...]:
    """Where a function stands: of several in one line, where it begins."""
    starts = [(line, column) for line, _, column, _ in code.co_positions() if line and column]
    return code.co_firstlineno, code.co_qualname, min(starts, default=None)


def keys(code: CodeType) -> set[str]:
    """The faults that a function holds, with those of functions in it."""
    inner = [keys(c) for c in code.co_consts if isinstance(c, CodeType)]
    own = {c for c in code.co_consts if isinstance(c, str)} if NAME in code.co_names else set()
    return own.union(*inner)


def plant(modules: Mapping[str, tuple[Faults, Mapping[str, Mutation]]]) -> set[str]:
    """Put the faults of modules behind the switch; the keys of those that functions have now.

    The others stand in what only runs when the module is imported.
    """
    setattr(builtins, NAME, SWITCH)
    codes: dict[str, CodeType] = {}
    known: set[str] = set()
    for module, (faults, drawn) in modules.items():
        path = str(ROOT / module)
        code = switched(faults, drawn, path)
        if code is None:
            single = {k: f for k, f in drawn.items() if switched(faults, {k: f}, path) is not None}
            code = switched(faults, single, path)
        assert code is not None
        codes[path] = code
        known |= {*drawn}
    return known & set[str]().union(*map(keys, replace(codes)))


def replace(modules: Mapping[str, CodeType]) -> list[CodeType]:
    """Have the functions of modules, by their paths, run what other code of these has for them."""
    become = {path: {place(c): c for c in functions(code)} for path, code in modules.items()}
    found: list[CodeType] = []
    gc.unfreeze()
    for f in gc.get_objects():
        if isinstance(f, FunctionType) and f.__code__.co_filename in become:
            code = become[f.__code__.co_filename].get(place(f.__code__))
            if code is not None and code.co_freevars == f.__code__.co_freevars:
                f.__code__ = code
                found.append(code)
    remembering()  # before what follows
    gc.freeze()  # forks leave alone what is here now
    return found


@functools.cache
def remembering() -> list[Callable[[], object]]:
    """What empties the memories of this process: of the package, and of what tests it."""
    found = [
        f.cache_clear
        for f in gc.get_objects()
        if isinstance(f, Cached) and f is not remembering and ours(getattr(f, "__module__", ""))
    ]
    tables = [getattr(sys.modules.get(module), name, None) for module, name in TABLES]
    return found + [table.clear for table in tables if table is not None]


def ours(module: str | None) -> bool:
    return (module or "").partition(".")[0] in ("tcalc", "tests")


def forget() -> None:
    """Empty what this process remembers of results."""
    for empty in remembering():
        empty()


# --- forks ----------------------------------------------------------------------------------------


def processor() -> float:
    """Seconds of this process, and of those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def threads() -> int:
    """The threads of this process, those of libraries too."""
    return len(os.listdir("/proc/self/task"))


def forked(work: Callable[[Callable[[str], None]], None], seconds: float) -> tuple[list[str], str]:
    """Lines that some work tells in a fork, and `hangs` or `died` where it does not end well.

    It hangs after so many seconds of the processor, or many more by the clock.

    Raises
    ------
    RuntimeError
        Where this process has threads: what they hold would stay held in the fork.
    """
    if threads() > 1:
        raise RuntimeError(f"{threads()} threads would be lost in a fork")
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        child = os.fork()
    if not child:
        status = 1
        try:
            os.setpgid(0, 0)
            os.close(reading)
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, resource.RLIM_INFINITY))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            work(lambda line: (os.write(writing, f"{line}\n".encode()), None)[1])
            status = 0
        finally:
            os._exit(status)
    os.close(writing)
    told, end = b"", time.monotonic() + BUSY * seconds
    try:
        while select.select([reading], [], [], max(0.0, end - time.monotonic()))[0]:
            some = os.read(reading, 1 << 16)
            if not some:
                break
            told += some
    finally:
        os.close(reading)
        late = time.monotonic() >= end
        with suppress(ProcessLookupError, PermissionError):
            if late:
                os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child, signal.SIGKILL)  # what it has started
    lines = told.decode(errors="replace").split("\n")[:-1]
    if late or (
        os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGVTALRM)
    ):
        return lines, HANGS
    return lines, DIED if status else ""


def caught(key: str, trials: Sequence[tuple[Trial, float]]) -> tuple[str, int]:
    """What the first trial tells that goes wrong with the fault, `hangs`, `died`, or nothing.

    Each has some times the seconds that it takes without; and the number of those that ended.
    """

    def work(tell: Callable[[str], None]) -> None:
        forget()
        SWITCH.on = key
        for trial, seconds in trials:
            signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE * seconds + GRACE)
            wrong = trial.run()
            tell(f"{trial.name}: {' '.join(wrong.split()):.200}" if wrong else "")
            if wrong:
                return

    lines, end = forked(work, PATIENCE * sum(s for _, s in trials) + GRACE * (1 + len(trials)))
    passed = len([line for line in lines if not line])
    if end and passed < len(trials):
        return f"{trials[passed][0].name}: {end}", passed
    return next((line for line in lines if line), ""), passed
