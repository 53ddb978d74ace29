"""Check every value, then time what is right: interleaved, best of several, side by side.

A contestant's value is compared with one from another family (jax, by hand, autograd); products of
a core with random directions with jax's Hessian-vector products, of a Jacobian with its
pushforwards; so are large Hessians, which an oracle may be unable to hold. A Newton step is
multiplied by the Hessian again: its residual, relative to the right-hand side, may come to the
condition number times the rounding unit, and the problems are conditioned well enough for the
tolerance of all other values. A value that is wrong, or that nobody can check, gets no time.
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from . import nests
from .problem import QUANTITIES, AnyClaim, Array, Memory, Sizes, Task
from .rivals import ORACLES, RIVALS, Entry, Oracle

TOLERANCE = 1e-10
DIRECTIONS = 2
SHORTEST = 2e-3  # seconds in one measurement, repeating calls that are shorter
#: Seconds in which other threads are looked at, more than two ticks of the clock of processes, and
#: how often at most.
MOMENT, RESTS = 1e-2, 50
PATIENCE = 10.0  # seconds that one contestant may take in all
LONG = 3.0  # seconds from which on the call that is checked is the only one
LARGE = 2**20  # entries from which on a Hessian is judged by products with random directions

Tell = Callable[[str], None]


@dataclass
class Row:
    """One contestant's result: relative error, best seconds (None when refused), bytes returned,
    and the peak memory, predicted and traced; `once` where one call alone was timed."""

    quantity: str
    label: str
    error: float | None
    seconds: float | None
    refused: str
    flops: float | None
    bytes: int | None = None
    peak: int | None = None
    traced: int | None = None
    once: bool = False


@dataclass
class Rates:
    """What this machine reaches in the same run; a multiply and an add count two."""

    flops: float
    bytes: float


@dataclass
class Verdict:
    claim: str
    ratio: float | None
    met: bool | None


class Degenerate(ValueError):
    """A case that any wrong value would pass."""


def relative_error(found: Any, expected: Any) -> float:
    """Largest difference relative to the largest entry; inf where shapes or NaNs disagree.

    Every array of a nest is measured by itself, one of zeros by the largest entry of all. Zeros
    everywhere would agree with anything that forgot to compute, so they are refused.
    """
    pairs = list(zip(nests.leaves(found), nests.leaves(expected), strict=False))
    largest = max(float(np.max(np.abs(right), initial=0)) for _, right in pairs)
    if not largest:
        raise Degenerate("what is to be computed is zero")
    if nests.each(np.shape, found) != nests.each(np.shape, expected):
        return float("inf")
    return max(array_error(np.asarray(left), np.asarray(right), largest) for left, right in pairs)


def array_error(found: Array, expected: Array, otherwise: float) -> float:
    if not np.all(np.isfinite(found)):
        return float("inf")
    scale = float(np.max(np.abs(expected), initial=0)) or otherwise
    return float(np.max(np.abs(found - expected), initial=0)) / scale


def directions(task: Task) -> list[nests.Nest]:
    rng = np.random.default_rng(1)
    return [
        nests.each(lambda x: rng.standard_normal(np.shape(x)), task.rhs) for _ in range(DIRECTIONS)
    ]


def check(task: Task, entry: Entry, value: Any, oracle: Oracle) -> float:
    """Relative error of a contestant's value by the oracle."""
    value = entry.on_host(value)
    if entry.quantity == "newton":
        return relative_error(oracle.product(value), task.rhs)
    if entry.quantity in ("core", "jacobian"):
        if entry.product is None:
            raise TypeError(f"{entry.label} gives a core without a product to check it by")
        along = oracle.product if entry.quantity == "core" else oracle.pushforward
        return max(relative_error(entry.product(value, v), along(v)) for v in directions(task))
    value = nests.each(np.asarray, value)
    if entry.quantity == "hessian" and sum(map(np.size, nests.leaves(value))) >= LARGE:
        pairs = [(nests.times(value, v), oracle.product(v)) for v in directions(task)]
        return max(relative_error(found, expected) for found, expected in pairs)
    return relative_error(value, oracle.dense(entry.quantity))


def held(value: Any) -> int:
    """Bytes of an array, of core tensors, or of a tuple of arrays."""
    return sum(int(getattr(leaf, "nbytes", 8)) for leaf in nests.leaves(value))


def oracles(task: Task) -> list[Oracle]:
    made = [RIVALS[name].oracle(task) for name in ORACLES if RIVALS[name].installed]
    return [replace(oracle, dense=cache(oracle.dense)) for oracle in made if oracle is not None]


def enter(
    task: Task, rivals: Iterable[str], quantities: Iterable[str], tell: Tell = lambda _: None
) -> list[Entry]:
    """What the rivals that are installed offer for these quantities."""
    wanted = set(quantities)
    held = tuple([quantity for quantity in task.case.quantities if quantity in wanted])
    task = replace(task, case=replace(task.case, quantities=held))
    entries = []
    for name in rivals:
        if RIVALS[name].installed and name not in task.problem.without:
            tell(f"preparing {name}")
            for entry in RIVALS[name].entries(task):
                tell(f"prepared {entry.quantity}, {entry.label}")
                entries.append(entry)
    return [entry for entry in entries if entry.quantity in held]


def measure(
    task: Task,
    entries: list[Entry],
    repeat: int,
    tell: Tell = lambda _: None,
    patience: float = PATIENCE,
) -> list[Row]:
    """Rows of all entries: first everything is checked, then what is right is timed."""
    judges = oracles(task)
    traced = {
        claim.mine
        for claim in task.problem.claims
        if isinstance(claim, Memory) and claim.what == "traced"
    }
    rows, right = [], []
    for entry in entries:
        tell(f"checking {entry.quantity}, {entry.label}")
        row, second = validate(task, entry, judges, tell)
        rows.append(row)
        if row.refused:
            continue
        if (entry.quantity, entry.label) in traced and not row.once:
            row.traced = peak_traced(entry.call)
        if row.once and repeat:
            row.seconds = second
        elif repeat:
            right.append((entry, row, second))
    for quantity in QUANTITIES:
        if runs := [run for run in right if run[1].quantity == quantity]:
            tell(f"timing {quantity}")
            time_together(runs, repeat, patience)
    return sorted(rows, key=lambda row: QUANTITIES.index(row.quantity))


def validate(
    task: Task, entry: Entry, judges: list[Oracle], tell: Tell = lambda _: None
) -> tuple[Row, float]:
    """The row without a time yet, and how long a second call took.

    Where nothing is prepared at the first call and that takes long, there is no second one.
    """
    row = Row(entry.quantity, entry.label, None, None, "", entry.flops, peak=entry.peak)
    judge = next((j for j in judges if j.family != entry.family), None)
    if judge is None:
        row.refused = "nobody to check it"
        return row, 0.0
    try:
        start = time.perf_counter()
        value = entry.call()
        taken = time.perf_counter() - start
        tell(f"judging {entry.quantity}, {entry.label}")
        row.error = check(task, entry, value, judge)
        row.bytes = held(value)
        del value
        row.once = entry.ready and taken > LONG
        if not row.once:
            tell(f"calling {entry.quantity}, {entry.label}")
            taken = timed_alone(entry.call)
    except Degenerate:
        raise
    except Exception as error:
        row.refused = f"failed: {type(error).__name__}: {error}"
        return row, 0.0
    if not row.error <= TOLERANCE:
        row.refused = f"wrong value, error {row.error:.1e} by {judge.family}"
    return row, taken


def timed_alone(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def peak_traced(call: Callable[[], Any]) -> int:
    """The most bytes that a call takes at once, beside what there was; NumPy reports its arrays."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def time_together(
    runs: list[tuple[Entry, Row, float]], repeat: int, patience: float = PATIENCE
) -> None:
    """Best time of each entry, taking turns so that a noisy moment hits all alike."""
    spent = dict.fromkeys(range(len(runs)), 0.0)
    enabled = gc.isenabled()
    gc.disable()
    try:
        for turn in range(repeat):
            for place, (entry, row, first) in enumerate(runs):
                if turn and spent[place] > patience:
                    continue
                call = first if row.seconds is None else min(first, row.seconds)
                loops = max(1, int(SHORTEST / max(call, 1e-9)))
                rest()
                taken = entry.clock() if entry.clock else timed(entry.call, loops)
                spent[place] += taken * loops
                row.seconds = taken if row.seconds is None else min(row.seconds, taken)
    finally:
        if enabled:
            gc.enable()


def rest() -> None:
    """Wait for threads that look for work for a while after the call of another contestant."""
    for _ in range(RESTS):
        busy = time.process_time()
        time.sleep(MOMENT)
        if time.process_time() - busy < MOMENT / 2:
            return


def timed(call: Callable[[], Any], loops: int) -> float:
    """Seconds a call, after one that brings the operands back into the caches."""
    call()
    start = time.perf_counter()
    for _ in range(loops):
        call()
    return (time.perf_counter() - start) / loops


def machine_rates(n: int = 768, repeat: int = 5) -> Rates:
    """Rates of a matrix product and of writing an array, best of several."""
    rng = np.random.default_rng(0)
    a, b, out = rng.standard_normal((n, n)), rng.standard_normal((n, n)), np.empty((n, n))
    large = np.empty(8 * 2**20)
    product = min(timed(lambda: np.matmul(a, b, out=out), 1) for _ in range(repeat))
    write = min(timed(lambda: large.fill(1.0), 1) for _ in range(repeat))
    return Rates(2.0 * n**3 / product, large.nbytes / write)


def judge(claims: Iterable[AnyClaim], rows: list[Row], rates: Rates, sizes: Sizes) -> list[Verdict]:
    """Claims made at these sizes, with what was measured; one whose side has no time is open."""
    named = {(row.quantity, row.label): row for row in rows}
    n = sizes.get("n", 0)
    found = []
    for claim in claims:
        if n >= claim.least:
            ratio, met = claim.judge(named, rates, sizes) or (None, None)
            found.append(Verdict(str(claim), ratio, met))
    return found
