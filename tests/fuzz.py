"""Random programs through every back end, printer and language: ``python -m tests.fuzz``.

Each program is drawn from a seed, as in `random_programs`, where `--boost` asks for more steps of a
family, and `--zeros` for data at zeros and ties. Its value and derivatives by random variables in
random modes are compared with jets, dense derivatives without any of tcalc's code:

* run on every back end, a device or its stand-in among them, and held compressed;
* planned as it is spelled, in the cheapest and in the dearest of the forms that plans know;
* printed as a program of NumPy and of C, and run;
* printed in every language of text, read back, and run where the node is another one;
* printed as LaTeX, whose braces match, and as MathML, whose elements are read;
* in float32, pickled, with other variables in place of its own, and as a batch.

All of this takes a quarter of a second a program. With ``--every 40``, the first of each 40 pieces
of 25 seeds has all of it; a program of the others has its value and one derivative, planned three
ways and in one other comparison without C, as its seed draws. ``--log`` names a file in which each
piece is a line that tells which seeds were compared where; pieces that it has are not run again.

What differs is told with the seed that repeats it, after the smallest program found that differs in
the same place, as `random_corpus` holds such programs; the exit status is 1 where anything did.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import random
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from multiprocessing import TimeoutError as NoResult
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tcalc as tc
from tests.fuzz_checks import CHECKS, TOGETHER, Case, Choice, Output
from tests.random_programs import (
    FAMILIES,
    Program,
    build,
    drawn,
    evaluated,
    holding,
    shrunk,
)

MODES = ("forward", "reverse", "cross-country", "auto")
#: Numbers on the way above this are not compared: rounding errors are.
LARGEST = 1e5
#: Programs that are compiled to C at once, and seconds that one program may take.
PIECE, SECONDS = 25, 120
#: Seconds in which the programs that are compiled at once are done.
LONGEST = 1800


class Mismatch(NamedTuple):
    """What went wrong where."""

    seed: int
    where: str
    what: str


class Tier(NamedTuple):
    """Which derivatives of a program are compared, and where."""

    orders: tuple[int, ...] = (0, 1, 2)
    checks: tuple[str, ...] = (*CHECKS, *TOGETHER)


#: In one of these each program is compared that is not compared in all.
OTHERS = tuple([where for where in CHECKS if where != "planned three ways"])


def tier(seed: int, every: int) -> Tier:
    """Everything for one piece of so many, and for the others what their seeds draw."""
    if seed // PIECE % every == 0:
        return Tier()
    draw = random.Random(seed)
    return Tier((0, draw.choice((1, 1, 2))), ("planned three ways", draw.choice(OTHERS)))


class Draw(NamedTuple):
    """What programs are drawn from besides a seed."""

    families: tuple[str, ...] = ()
    zeros: bool = False


def case(
    seed: int,
    program: Program | None = None,
    draw: Draw = Draw(),  # noqa: B008
    choice: Choice | None = None,
    orders: Collection[int] = Tier().orders,
) -> Case | None:
    """A program, that of the seed; None where its numbers are too large to compare."""
    generator = drawn(seed, *draw) if program is None else holding(program, seed, *draw)
    try:
        example = evaluated(generator.program, generator.arrays())
    except np.linalg.LinAlgError:  # a singular matrix, which has a condition without bound
        return None
    if not example.largest < LARGEST:
        return None

    def name(plain: str) -> str:
        return f"{plain}{seed}"

    def extent(e: int | str) -> int | str:
        return e if isinstance(e, int) else name(e[0]) + e[1:]

    drawn_program = example.program
    declared = {k: {word: True} for k, word in drawn_program.declared.items()}
    variables: dict[str, Any] = {
        plain: tc.var(name(plain), tuple([extent(e) for e in shape]), **declared.get(plain, {}))
        for plain, shape in drawn_program.shapes.items()
    }
    integers: dict[str, Any] = {
        plain: tc.var(name(plain), (extent(e),), integer=True)
        for plain, (e, _) in drawn_program.integers.items()
    }
    bind: dict[str, Any] = {name(plain): a for plain, a in example.arrays.items()}
    bind |= {name(plain): n for plain, n in drawn_program.extents.items()}
    bind |= {name(plain): np.array(a, int) for plain, (_, a) in drawn_program.integers.items()}
    e = build(drawn_program, tc, list(variables.values()), extent, integers)
    if choice is None:
        names = [generator.pick(list(variables)) for _ in range(3)]
        choice = Choice(names, [generator.pick(MODES) for _ in range(3)])
    (x, y, z), (mode, inner, outer) = choice
    outputs = []
    if 0 in orders:
        outputs.append(Output("value", e, example.jet.v))
    if 1 in orders:
        by = tc.jacobian(e, variables[x], mode=mode)
        outputs.append(Output(f"d/d{x} {mode}", by, example.first(x)))
    if 2 in orders:
        both = tc.jacobian(tc.jacobian(e, variables[y], mode=inner), variables[z], mode=outer)
        outputs.append(Output(f"d/d{y} {inner}, d/d{z} {outer}", both, example.second(y, z)))
    known = {v.name: v for v in [*variables.values(), *integers.values()]}
    return Case(seed, example, known, bind, outputs, choice)


# --- one piece of work ----------------------------------------------------------------------------


@contextlib.contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """An error where the block takes longer."""

    def stop(number: int, frame: Any) -> None:
        raise TimeoutError(f"more than {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def guarded(seed: int, where: str, work: Callable[[], list[Mismatch]]) -> list[Mismatch]:
    """The mismatches of some work, an error being one too."""
    try:
        with at_most(SECONDS):
            return work()
    except Exception as error:
        return [Mismatch(seed, where, f"{type(error).__name__}: {error!s:.600}")]


def compared(case: Case, where: str) -> list[Mismatch]:
    def work() -> list[Mismatch]:
        results = [(o, case.differs(found, o)) for o, found in CHECKS[where](case)]
        return [Mismatch(case.seed, where, f"{o.what}: {told}") for o, told in results if told]

    return guarded(case.seed, where, work)


def together(cases: Sequence[Case], where: str) -> list[Mismatch]:
    """Many programs at once, and one by one where that fails."""

    def work() -> list[Mismatch]:
        told = [(c, o, c.differs(found, o)) for c, o, found in TOGETHER[where](cases)]
        return [Mismatch(c.seed, where, f"{o.what}: {text}") for c, o, text in told if text]

    found = guarded(cases[0].seed, where, work) if cases else []
    if found and len(cases) > 1:
        return [mismatch for c in cases for mismatch in together([c], where)]
    return found


class Work(NamedTuple):
    """Programs of consecutive seeds, and where they are not compared."""

    first: int
    count: int
    without: Collection[str] = ()
    draw: Draw = Draw()
    every: int = 1


class Done(NamedTuple):
    """How many programs were compared, the seeds of those compared somewhere, what differed."""

    programs: int
    seeds: dict[str, list[int]]
    mismatches: list[Mismatch]


def piece(work: Work) -> Done:
    cases: dict[str, list[Case]] = defaultdict(list)
    programs, mismatches = 0, []
    for seed in range(work.first, work.first + work.count):
        orders, checks = tier(seed, work.every)
        try:
            with at_most(SECONDS):
                found = case(seed, draw=work.draw, orders=orders)
        except Exception as error:
            told = f"{type(error).__name__}: {error!s:.600}"
            mismatches.append(Mismatch(seed, "building", told))
            continue
        if found is None:
            continue
        programs += 1
        for where in checks:
            if where not in work.without:
                cases[where].append(found)
                mismatches += compared(found, where) if where in CHECKS else []
    for where in TOGETHER:
        mismatches += together(cases[where], where) if where in cases else []
    seeds = {where: [c.seed for c in some] for where, some in cases.items()}
    return Done(programs, seeds, mismatches)


def settle() -> None:
    """What was imported is not looked through for cycles again and again: a third of the time."""
    gc.collect()
    gc.freeze()


# --- pieces that are done -------------------------------------------------------------------------


class Log:
    """A file with a line for each piece that is done, if there is a file."""

    def __init__(self, path: Path | None, options: Mapping[str, Any]) -> None:
        self.path, self.options = path, {**options}
        lines = path.read_text().splitlines() if path is not None and path.exists() else []
        rows = [json.loads(line) for line in lines]
        #: By the first seed of each piece that was drawn as it would be now.
        self.done = {
            row["first"]: Done(*[row[key] for key in Done._fields])
            for row in rows
            if {key: row[key] for key in self.options} == self.options
        }

    def write(self, first: int, done: Done) -> None:
        if self.path is not None:
            row = {"first": first, **self.options, **done._asdict()}
            with self.path.open("a") as file:
                file.write(json.dumps(row) + "\n")


# --- the smallest program -------------------------------------------------------------------------


def still_differs(mismatch: Mismatch, draw: Draw) -> Callable[[Program], bool]:
    """Does a program differ where that of the seed did, in derivatives by the same variables?"""
    before = None
    if mismatch.where != "building":
        before = case(mismatch.seed, draw=draw)
    choice = None if before is None else before.choice

    def differs(program: Program) -> bool:
        try:
            with at_most(SECONDS):
                found = case(mismatch.seed, program, draw, choice)
        except Exception:
            return mismatch.where == "building"
        if found is None or mismatch.where == "building":
            return False
        check = compared if mismatch.where in CHECKS else lambda c, where: together([c], where)
        return bool(check(found, mismatch.where))

    return differs


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="programs to compare")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first program")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=[*CHECKS, *TOGETHER],
        help="leave this out",
    )
    parser.add_argument(
        "--boost", action="append", default=[], choices=list(FAMILIES), help="more steps of these"
    )
    parser.add_argument(
        "--every", type=int, default=1, help="all comparisons for one piece of so many"
    )
    parser.add_argument("--log", type=Path, help="a file that tells what was compared")
    parser.add_argument("--zeros", action="store_true", help="data at zeros and ties")
    options = parser.parse_args(argv)
    draw = Draw(tuple(options.boost), options.zeros)
    told = {"every": options.every, "without": options.without, "draw": [options.boost, draw.zeros]}
    log = Log(options.log, told)
    done: Counter[str] = Counter()
    programs, wrong, start, seed = 0, 0, time.perf_counter(), options.seed
    with get_context("spawn").Pool(options.jobs, settle, maxtasksperchild=200) as pool:
        while programs < options.count:
            # Some programs have numbers too large to compare: so many more are drawn.
            missing = options.count - programs
            pieces = min(-(-missing // PIECE), 40 * options.jobs)
            firsts = [seed + PIECE * k for k in range(pieces)]
            seed += PIECE * pieces
            for first in log.done.keys() & set(firsts):
                programs += log.done[first].programs
                wrong += len(log.done[first].mismatches)
            work = [
                Work(first, PIECE, options.without, draw, options.every)
                for first in firsts
                if first not in log.done
            ]
            results = pool.imap(piece, work)
            for first, *_ in work:
                try:
                    found = results.next(timeout=LONGEST)
                except NoResult:
                    # A process that crashes tells nothing, and takes the later results with it.
                    print(f"no result of the {PIECE} seeds from {first} on", flush=True)
                    return 1
                log.write(first, found)
                programs, wrong = programs + found.programs, wrong + len(found.mismatches)
                done.update({where: len(seeds) for where, seeds in found.seeds.items()})
                for mismatch in found.mismatches:
                    print(f"seed {mismatch.seed}, {mismatch.where}: {mismatch.what}", flush=True)
                    smallest = shrunk(mismatch.seed, still_differs(mismatch, draw), draw)
                    print(f"    {smallest!r}", flush=True)
            minutes = (time.perf_counter() - start) / 60
            print(f"{programs} programs, {wrong} mismatches, {minutes:.1f} minutes", flush=True)
    print(", ".join([f"{where} {count}" for where, count in done.items()]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
