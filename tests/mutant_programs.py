"""Do the random programs notice planted faults? ``python -m tests.mutant_programs [--part NAME]``.

A quick first look, without tests: functions with a fault take the place of those without in a
fork of this process, in which random programs run that reach them, up to the first that differs.
Which program reaches which lines is measured first. Faults outside of functions, which only a
new process would import, are left to `mutants`; what was made when the package was imported stays.
"""

from __future__ import annotations

import argparse
import functools
import gc
import json
import os
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from tests.documents import ROOT
from tests.fuzz import OTHERS, Draw, case, compared
from tests.mutant_parts import PARTS
from tests.mutants import UNREACHED, Mutant, drawn, report, tell
from tests.mutations import instructions
from tests.random_programs import FAMILIES

#: Seconds of the processor that the programs of one mutant may take while lines are noted, some
#: six times as many as without, and those after which they hang.
BUDGET, HANGS = 12.0, 30
Cached = type(functools.cache(lambda: None))
#: A line: its file from the repository's root, and its number.
Line = tuple[str, int]


class Unit(NamedTuple):
    """A program, and where it is compared."""

    seed: int
    draw: Draw
    checks: tuple[str, ...]


def wrong(unit: Unit) -> str:
    """What the first comparison tells that differs, or nothing."""
    try:
        found = case(unit.seed, draw=unit.draw)
    except Exception as error:
        return f"building {unit.seed}: {type(error).__name__}"
    for where in unit.checks if found is not None else ():
        if told := compared(found, where):
            return f"{where} of {unit.seed}: {told[0].what:.100}"
    return ""


# --- what programs run ----------------------------------------------------------------------------


def units(count: int) -> Iterator[Unit]:
    """Programs of every kind, each run, planned, and compared in two other ways in turn."""
    draws = [Draw(), *[Draw((family,)) for family in FAMILIES], Draw((), zeros=True)]
    for k in range(count):
        some = {OTHERS[j % len(OTHERS)] for j in (k, k // len(draws))}
        yield Unit(k, draws[k % len(draws)], ("numpy", "planned three ways", *sorted(some)))


def reached(unit: Unit) -> tuple[float, set[Line]]:
    """The seconds that a program takes, and the lines of the package that it runs."""
    found: dict[str, set[int]] = defaultdict(set)
    inside = f"{ROOT}/tcalc/"

    def enter(frame: FrameType, event: str, value: Any) -> Any:
        lines = found[frame.f_code.co_filename]

        def step(frame: FrameType, event: str, value: Any) -> Any:
            lines.add(frame.f_lineno)
            return step

        return step if frame.f_code.co_filename.startswith(inside) else None

    start = time.process_time()
    sys.settrace(enter)
    try:
        assert not wrong(unit), unit
    finally:
        sys.settrace(None)
    places = {
        (str(Path(file).relative_to(ROOT)), line)
        for file, lines in found.items()
        for line in lines
        if file.startswith(inside)
    }
    return time.process_time() - start, places


def measured(count: int) -> dict[Line, list[tuple[float, Unit]]]:
    """By line: programs that run it, quick ones first."""
    found: dict[Line, list[tuple[float, Unit]]] = defaultdict(list)
    for unit in units(count):
        seconds, places = reached(unit)
        for place in places:
            found[place].append((seconds, unit))
    return {place: sorted(rows, key=lambda row: row[0]) for place, rows in found.items()}


# --- faults in place ------------------------------------------------------------------------------


def replaced(plain: CodeType, faulty: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Functions' code that means something else, and what it becomes."""
    inner = [[c for c in code.co_consts if isinstance(c, CodeType)] for code in (plain, faulty)]
    if [c.co_name for c in inner[0]] == [c.co_name for c in inner[1]]:
        for one, other in zip(*inner, strict=True):
            if instructions(one) != instructions(other):
                yield one, other
                yield from replaced(one, other)


def place(code: CodeType) -> tuple[Any, ...]:
    """Where a function stands; functions of one line have other columns in the table of lines."""
    return code.co_firstlineno, code.co_qualname, code.co_linetable


def plant(mutant: Mutant) -> int:
    """How many functions of this process have the fault now; what was cached is forgotten."""
    path = str(ROOT / mutant.module)
    plain = compile(Path(path).read_bytes(), path, "exec", dont_inherit=True)
    faulty = compile(mutant.source, path, "exec", dont_inherit=True)
    other = {place(one): to for one, to in replaced(plain, faulty)}
    count = 0
    gc.unfreeze()
    for f in gc.get_objects():
        if isinstance(f, Cached):
            f.cache_clear()
        elif isinstance(f, FunctionType) and f.__code__.co_filename == path:
            code = other.get(place(f.__code__))
            if code is not None and len(code.co_freevars) == len(f.__code__.co_freevars):
                f.__code__ = code
                count += 1
    return count


def forked(work: Callable[[], str], seconds: int) -> str:
    """What a fork of this process answers: `hangs` after so many seconds of the processor."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        answer = "died"
        try:
            answer = work()
        finally:
            os.write(writing, answer.encode()[:4000])
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "hangs" if os.WTERMSIG(status) == signal.SIGXCPU else "died"
    return told


def verdict(mutant: Mutant, known: dict[Line, list[tuple[float, Unit]]]) -> dict[str, Any]:
    """The line of the log."""
    chosen: list[Unit] = []
    left = BUDGET
    for seconds, unit in known.get((mutant.module, mutant.fault.line), ()):
        left -= seconds
        if left > 0 or not chosen:
            chosen.append(unit)

    def work() -> str:
        if not plant(mutant):
            return UNREACHED
        return next((f"differs {told}" for unit in chosen if (told := wrong(unit))), "passed")

    start = time.monotonic()
    answer = forked(work, HANGS) if chosen else UNREACHED
    return {
        "key": mutant.key,
        "part": mutant.part,
        "at": f"{mutant.module}:{mutant.fault.line}",
        "what": mutant.fault.what,
        "caught": answer not in ("passed", UNREACHED),
        "answer": answer,
        "tests": len(chosen),
        "seconds": round(time.monotonic() - start, 1),
    }


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutant_programs", description=__doc__)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="default: all")
    parser.add_argument("--count", type=int, default=50, help="mutants of each part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", type=int, default=150, help="programs that are measured")
    parser.add_argument("--log", type=Path, help="a file to which a line a mutant is written")
    options = parser.parse_args(arguments)
    known = measured(options.programs)
    tell(f"{len(known)} lines are run")
    lines = []
    for name in options.part or PARTS:
        for mutant in drawn(name, options.count, options.seed):
            lines.append(verdict(mutant, known))
            tell(f"{lines[-1]['answer']}: {lines[-1]['at']}: {lines[-1]['what']}")
            if options.log:
                with options.log.open("a") as log:
                    print(json.dumps(lines[-1]), file=log)
    return report(lines)


if __name__ == "__main__":
    sys.exit(main())
