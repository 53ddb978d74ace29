"""Random programs through every back end, printer and language: ``python -m tests.fuzz``.

Each program is drawn from a seed, as in `random_programs`, where `--boost` asks for more steps of a
family, and `--zeros` for data at zeros and ties. Its value and derivatives by random variables in
random modes are compared with jets, dense derivatives without any of tcalc's code:

* run on every back end, and held compressed;
* planned as it is spelled, in the cheapest and in the dearest of the forms that plans know;
* printed as a program of NumPy and of C, and run;
* printed in every language of text, read back, and run where the node is another one;
* printed as LaTeX, whose braces match, and as MathML, whose elements are read;
* in float32, pickled, with other variables in place of its own, and as a batch.

What differs is told with the seed that repeats it, after the smallest program found that differs in
the same place, as `random_corpus` holds such programs; the exit status is 1 where anything did.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from multiprocessing import TimeoutError as NoResult
from multiprocessing import get_context
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


class Draw(NamedTuple):
    """What programs are drawn from besides a seed."""

    families: tuple[str, ...] = ()
    zeros: bool = False


def case(
    seed: int,
    program: Program | None = None,
    draw: Draw = Draw(),  # noqa: B008
    choice: Choice | None = None,
) -> Case | None:
    """A program, that of the seed; None where its numbers are too large to compare."""
    generator = drawn(seed, *draw) if program is None else holding(program, seed, *draw)
    example = evaluated(generator.program, generator.arrays())
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
    by = tc.jacobian(e, variables[x], mode=mode)
    both = tc.jacobian(tc.jacobian(e, variables[y], mode=inner), variables[z], mode=outer)
    outputs = [
        Output("value", e, example.jet.v),
        Output(f"d/d{x} {mode}", by, example.first(x)),
        Output(f"d/d{y} {inner}, d/d{z} {outer}", both, example.second(y, z)),
    ]
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


def piece(work: Work) -> tuple[int, Counter[str], list[Mismatch]]:
    """How many programs were compared, how often where, what differed."""
    cases, mismatches, done = [], [], Counter[str]()
    for seed in range(work.first, work.first + work.count):
        try:
            with at_most(SECONDS):
                found = case(seed, draw=work.draw)
        except Exception as error:
            told = f"{type(error).__name__}: {error!s:.600}"
            mismatches.append(Mismatch(seed, "building", told))
            continue
        if found is None:
            continue
        cases.append(found)
        for where in CHECKS.keys() - set(work.without):
            mismatches += compared(found, where)
            done[where] += len(found.outputs)
    for where in TOGETHER.keys() - set(work.without):
        mismatches += together(cases, where)
        done[where] += sum(len(found.outputs) for found in cases)
    return len(cases), done, mismatches


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
    parser.add_argument("--zeros", action="store_true", help="data at zeros and ties")
    options = parser.parse_args(argv)
    draw = Draw(tuple(options.boost), options.zeros)
    done: Counter[str] = Counter()
    programs, wrong, start, seed = 0, 0, time.perf_counter(), options.seed
    with get_context("spawn").Pool(options.jobs, maxtasksperchild=40) as pool:
        while programs < options.count:
            # Some programs have numbers too large to compare: so many more are drawn.
            missing = options.count - programs
            pieces = min(-(-missing // PIECE), 40 * options.jobs)
            work = [Work(seed + PIECE * k, PIECE, options.without, draw) for k in range(pieces)]
            seed += PIECE * pieces
            results = pool.imap(piece, work)
            for first, *_ in work:
                try:
                    count, where, mismatches = results.next(timeout=LONGEST)
                except NoResult:
                    # A process that crashes tells nothing, and takes the later results with it.
                    print(f"no result of the {PIECE} seeds from {first} on", flush=True)
                    return 1
                programs, wrong = programs + count, wrong + len(mismatches)
                done.update(where)
                for mismatch in mismatches:
                    print(f"seed {mismatch.seed}, {mismatch.where}: {mismatch.what}", flush=True)
                    smallest = shrunk(mismatch.seed, still_differs(mismatch, draw), draw)
                    print(f"    {smallest!r}", flush=True)
            minutes = (time.perf_counter() - start) / 60
            print(f"{programs} programs, {wrong} mismatches, {minutes:.1f} minutes", flush=True)
    print(", ".join([f"{where} {count}" for where, count in done.items()]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
