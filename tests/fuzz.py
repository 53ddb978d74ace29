"""Random programs through every back end, printer and language: ``python -m tests.fuzz``.

Each program is drawn from a seed, as in `random_programs`; its value and derivatives by random
variables in random modes are compared with jets, dense derivatives without any of tcalc's code:

* run on every back end, and held compressed;
* printed as a program, and run;
* printed in every language of text, read back, and run where the node is another one;
* printed as LaTeX, whose braces match, and as MathML, whose elements are read.

What differs is told with the seed that repeats it; the exit status is 1 where anything did.
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
from tests import mathml_text
from tests.random_programs import Evaluated, Program, build, drawn, evaluated, holding
from tests.shared import run_source

MODES = ("forward", "reverse", "cross-country", "auto")
#: Numbers on the way above this are not compared: rounding errors are.
LARGEST = 1e5
#: Programs that are compiled to C at once, and seconds that one program may take.
TOGETHER, SECONDS = 25, 120
#: Seconds in which the programs that are compiled at once are done.
LONGEST = 1800


class Output(NamedTuple):
    """An expression and what it is."""

    what: str
    expression: tc.Expr
    wanted: np.ndarray


class Case(NamedTuple):
    """One program with the outputs that are compared."""

    seed: int
    example: Evaluated
    variables: dict[str, tc.Expr]
    bind: dict[str, Any]
    outputs: list[Output]

    @property
    def tolerance(self) -> float:
        return 1e-11 * max(1.0, self.example.largest)

    def differs(self, found: Any, output: Output) -> str:
        """What is wrong with a result, or nothing."""
        shape, wanted = np.shape(found), output.wanted
        if shape != wanted.shape:
            return f"shape {shape}, not {wanted.shape}"
        error = np.abs(np.asarray(found) - wanted)
        if np.all(error <= self.tolerance + 1e-10 * np.abs(wanted)):
            return ""
        return f"error {np.max(error)}, found {np.asarray(found).tolist()!r:.300}"


class Mismatch(NamedTuple):
    """What went wrong where."""

    seed: int
    where: str
    what: str


def case(seed: int, program: Program | None = None) -> Case | None:
    """A program, that of the seed; None where its numbers are too large to compare."""
    generator = drawn(seed) if program is None else holding(program, seed)
    example = evaluated(generator.program, generator.arrays())
    if not example.largest < LARGEST:
        return None

    def name(plain: str) -> str:
        return f"{plain}{seed}"

    def extent(e: int | str) -> int | str:
        return e if isinstance(e, int) else name(e[0]) + e[1:]

    variables: dict[str, Any] = {
        plain: tc.var(name(plain), tuple([extent(e) for e in shape]))
        for plain, shape in example.program.shapes.items()
    }
    bind: dict[str, Any] = {name(plain): a for plain, a in example.arrays.items()}
    bind |= {name(plain): n for plain, n in example.program.extents.items()}
    e = build(example.program, tc, list(variables.values()), extent)
    x, y, z = (generator.pick(list(variables)) for _ in range(3))
    mode, inner, outer = (generator.pick(MODES) for _ in range(3))
    by = tc.jacobian(e, variables[x], mode=mode)
    both = tc.jacobian(tc.jacobian(e, variables[y], mode=inner), variables[z], mode=outer)
    outputs = [
        Output("value", e, example.jet.v),
        Output(f"d/d{x} {mode}", by, example.first(x)),
        Output(f"d/d{y} {inner}, d/d{z} {outer}", both, example.second(y, z)),
    ]
    known = {v.name: v for v in variables.values()}
    return Case(seed, example, known, bind, outputs)


# --- what is compared -----------------------------------------------------------------------------


def back_end(name: str) -> Callable[[Case], Iterator[tuple[Output, Any]]]:
    def run(case: Case) -> Iterator[tuple[Output, Any]]:
        step = tc.compile({o.what: o.expression for o in case.outputs}, backend=name)
        found = step(case.bind)
        yield from [(o, found[o.what]) for o in case.outputs]

    return run


def compressed(case: Case) -> Iterator[tuple[Output, Any]]:
    for output in case.outputs[1:]:
        held = tc.compile(output.expression, structured=True)(case.bind)
        yield output, held.todense()


def source(case: Case) -> Iterator[tuple[Output, Any]]:
    for output in case.outputs:
        yield output, run_source(output.expression, case.bind)


def language(
    write: Callable[[tc.Expr], str], read: Callable[..., tc.Expr]
) -> Callable[[Case], Iterator[tuple[Output, Any]]]:
    def run(case: Case) -> Iterator[tuple[Output, Any]]:
        for output in case.outputs:
            known = {**case.variables, **output.expression.variables}
            # What was written here may be longer than what strangers may ask for.
            with tc.limits(nodes=100_000, seconds=60):
                back = read(write(output.expression), **known)
            # The same node was run by the back ends.
            if back is not output.expression:
                yield output, back(case.bind)

    return run


def latex(case: Case) -> Iterator[tuple[Output, Any]]:
    for output in case.outputs:
        text = tc.to_latex(output.expression)
        depth = 0
        for character in text.replace(r"\{", "").replace(r"\}", ""):
            depth += (character == "{") - (character == "}")
            assert depth >= 0, text
        assert not depth, text
    yield from ()


def mathml(case: Case) -> Iterator[tuple[Output, Any]]:
    for output in case.outputs:
        mathml_text.checked(tc.to_mathml(output.expression))
    yield from ()


CHECKS: dict[str, Callable[[Case], Iterator[tuple[Output, Any]]]] = {
    "numpy": back_end("numpy"),
    "functional": back_end("functional"),
    "compressed": compressed,
    "source": source,
    "matrix text": language(str, tc.parse),
    "index text": language(tc.to_index, tc.parse_index),
    **(
        {"einsum text": language(tc.to_einsum, tc.parse_einsum)}
        if hasattr(tc, "parse_einsum")
        else {}
    ),
    "latex": latex,
    "mathml": mathml,
}


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


def in_c(cases: Sequence[Case]) -> list[Mismatch]:
    """All programs as one plan, and one by one where that fails."""

    def work() -> list[Mismatch]:
        tree = {str(c.seed): {o.what: o.expression for o in c.outputs} for c in cases}
        bind: dict[str, Any] = {}
        for c in cases:
            bind |= c.bind
        found = tc.compile(tree, backend="c")(bind)
        told = [(c, o, c.differs(found[str(c.seed)][o.what], o)) for c in cases for o in c.outputs]
        return [Mismatch(c.seed, "c", f"{o.what}: {text}") for c, o, text in told if text]

    found = guarded(cases[0].seed, "c", work) if cases else []
    if found and len(cases) > 1:
        return [mismatch for c in cases for mismatch in in_c([c])]
    return found


def piece(
    first: int, count: int, without: Collection[str] = ()
) -> tuple[int, Counter[str], list[Mismatch]]:
    """Programs of consecutive seeds: how many were compared, how often where, what differed."""
    cases, mismatches, done = [], [], Counter[str]()
    for seed in range(first, first + count):
        try:
            with at_most(SECONDS):
                found = case(seed)
        except Exception as error:
            mismatches.append(Mismatch(seed, "building", f"{type(error).__name__}: {error!s:.600}"))
            continue
        if found is None:
            continue
        cases.append(found)
        for where in CHECKS.keys() - set(without):
            mismatches += compared(found, where)
            done[where] += len(found.outputs)
    if "c" not in without:
        mismatches += in_c(cases)
        done["c"] += sum(len(found.outputs) for found in cases)
    return len(cases), done, mismatches


def _piece_of(work: tuple[int, int, Collection[str]]) -> tuple[int, Counter[str], list[Mismatch]]:
    return piece(*work)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=1000, help="programs to compare")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the first program")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument(
        "--without", action="append", default=[], choices=[*CHECKS, "c"], help="leave this out"
    )
    options = parser.parse_args(argv)
    done: Counter[str] = Counter()
    programs, wrong, start, seed = 0, 0, time.perf_counter(), options.seed
    with get_context("spawn").Pool(options.jobs, maxtasksperchild=40) as pool:
        while programs < options.count:
            # Some programs have numbers too large to compare: so many more are drawn.
            missing = options.count - programs
            pieces = min(-(-missing // TOGETHER), 40 * options.jobs)
            work = [(seed + TOGETHER * k, TOGETHER, options.without) for k in range(pieces)]
            seed += TOGETHER * pieces
            results = pool.imap(_piece_of, work)
            for first, *_ in work:
                try:
                    count, where, mismatches = results.next(timeout=LONGEST)
                except NoResult:
                    # A process that crashes tells nothing, and takes the later results with it.
                    print(f"no result of the {TOGETHER} seeds from {first} on", flush=True)
                    return 1
                programs, wrong = programs + count, wrong + len(mismatches)
                done.update(where)
                for mismatch in mismatches:
                    print(f"seed {mismatch.seed}, {mismatch.where}: {mismatch.what}", flush=True)
            minutes = (time.perf_counter() - start) / 60
            print(f"{programs} programs, {wrong} mismatches, {minutes:.1f} minutes", flush=True)
    print(", ".join([f"{where} {count}" for where, count in done.items()]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
