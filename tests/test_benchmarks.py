"""The benchmark harness on tiny sizes: what it checks, refuses and reports. Nothing is timed here
but to see that a time appears."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from benchmarks import cli, fit, harness, nests
from benchmarks.problem import QUANTITIES, Claim, Faster, Limit, Memory, Promised, Task
from benchmarks.problems import PROBLEMS
from benchmarks.rivals import RIVALS, Entry, Oracle

#: The default back end comes to what runs in C, and waits for the compiler.
RIVAL_NAMES = [name for name, rival in RIVALS.items() if rival.installed and name != "tcalc-auto"]
#: What takes long to compile what it also judges others by: entered where that is little.
BY_JAX = ("logistic", "matrix-factorisation", "runge-kutta", "gp")
#: Whose printed programs are compared here: some are measured, and compared, by themselves, and
#: forms of the others are in the tables of every language.
PRINTED = ("hand-tracking", "stacked-lstm", "bundle-adjustment", "linear-regression", "gmm")
CONTESTS = [
    (problem, rival)
    for problem in PROBLEMS
    for rival in RIVAL_NAMES
    if (rival != "jax" or problem in BY_JAX) and (rival != "tcalc-source" or problem in PRINTED)
]


def tiny(problem: str) -> Task:
    return Task.of(PROBLEMS[problem], PROBLEMS[problem].cases["tiny"][0])


@cache
def judges(problem: str) -> list[Oracle]:
    """Kept, as jax takes seconds to compile."""
    return harness.oracles(tiny(problem))


@pytest.mark.parametrize(("problem", "rival"), CONTESTS)
def test_values_agree_with_another_family(problem: str, rival: str) -> None:
    task = tiny(problem)
    entries = harness.enter(task, [rival], QUANTITIES)
    offered = rival not in task.problem.without and (rival != "asdex" or task.problem.sparse)
    assert bool(entries) == offered
    for entry in entries:
        row, _ = harness.validate(task, entry, judges(problem))
        assert not row.refused
        assert row.error is not None
        assert row.error < harness.TOLERANCE
        assert row.seconds is None


@pytest.mark.parametrize("problem", ["logistic", "runge-kutta", "hand-tracking"])
def test_the_default_back_end_is_timed_once_functions_are_compiled(problem: str) -> None:
    task = tiny(problem)
    entries = harness.enter(task, ["tcalc-auto"], ("value", "gradient", "jacobian"))
    assert len(entries) == 2
    for row in harness.measure(task, entries, repeat=1):
        assert not row.refused
        assert row.seconds is not None


def faulty(change: Callable[[Any], Any]) -> tuple[Task, list[Entry]]:
    task = tiny("logistic")
    right = harness.enter(task, ["hand"], ["hessian"])
    wrong = [replace(entry, call=lambda e=entry: change(e.call())) for entry in right]  # type: ignore[misc]
    return task, wrong


@pytest.mark.parametrize(
    "change",
    [
        lambda h: -h,
        lambda h: h * 1.001,
        lambda h: h[:-1],
        lambda h: h.astype(np.float32),
        lambda h: h * np.nan,
        lambda h: np.triu(h),
    ],
)
def test_a_wrong_value_gets_no_time(change: Callable[[Any], Any]) -> None:
    task, entries = faulty(change)
    for row in harness.measure(task, entries, repeat=1):
        assert row.refused.startswith("wrong value")
        assert row.seconds is None


def test_a_wrong_core_gets_no_time() -> None:
    task = tiny("weighted-factorisation")
    (entry,) = harness.enter(task, ["hand"], ["core"])
    wrong = replace(entry, call=lambda: entry.call()[:, ::-1])
    (row,) = harness.measure(task, [wrong], repeat=1)
    assert row.refused.startswith("wrong value")
    assert row.seconds is None


def test_a_contestant_that_fails_is_reported() -> None:
    task = tiny("logistic")
    (entry,) = harness.enter(task, ["hand"], ["gradient"])
    (row,) = harness.measure(task, [replace(entry, call=lambda: [][0])], repeat=1)
    assert row.refused == "failed: IndexError: list index out of range"
    assert row.seconds is None


def test_a_wrong_newton_step_gets_no_time() -> None:
    task = tiny("matrix-factorisation")
    entry, _ = harness.enter(task, ["hand"], ["newton"])
    wrong = replace(entry, call=lambda: 2 * entry.call())
    (row,) = harness.measure(task, [wrong], repeat=1)
    assert row.refused
    assert row.seconds is None


def test_nobody_checks_his_own_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "ORACLES", ("hand",))
    task = tiny("logistic")
    (row,) = harness.measure(task, harness.enter(task, ["hand"], ["gradient"]), repeat=1)
    assert row.refused == "nobody to check it"
    assert row.seconds is None


def test_zeros_check_nothing() -> None:
    with pytest.raises(harness.Degenerate):
        harness.relative_error(np.zeros(3), np.zeros(3))


def test_a_right_value_gets_a_time() -> None:
    task = tiny("logistic")
    for row in harness.measure(task, harness.enter(task, ["hand"], ["hessian"]), repeat=1):
        assert row.seconds is not None
        assert row.seconds > 0


@pytest.mark.parametrize(("busy", "looks"), [(0, 1), (5, 6), (10_000, harness.RESTS)])
def test_a_turn_waits_for_threads_of_the_one_before(
    busy: int, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that looks for work for so many moments, by a clock of our own."""
    slept: list[float] = []
    monkeypatch.setattr(harness.time, "sleep", slept.append)
    monkeypatch.setattr(harness.time, "process_time", lambda: sum(slept[:busy]))
    harness.rest()
    assert len(slept) == looks


def row(label: str, seconds: float | None) -> harness.Row:
    return harness.Row("hessian", label, 0.0, seconds, "" if seconds else "wrong value", 1e6)


RATES = harness.Rates(flops=1000.0, bytes=1.0)  # a product of 10 x 10 takes 2 seconds


def test_claims_are_judged_by_the_measured_ratio() -> None:
    claims = [
        Claim(("hessian", "tcalc"), ("hessian", "hand"), 1.25),
        Claim(("hessian", "jax"), ("hessian", "hand"), 1.25),
        Claim(("hessian", "torch"), ("hessian", "hand"), 1.25),
    ]
    rows = [row("tcalc", 1.2), row("hand", 1.0), row("jax", 5.0), row("torch", None)]
    verdicts = harness.judge(claims, rows, RATES, {"n": 10})
    assert [verdict.met for verdict in verdicts] == [True, False, None]
    assert verdicts[1].ratio == 5


def test_limits_are_judged_by_matrix_products_and_by_predicted_memory() -> None:
    claims = [
        Limit(("hessian", "tcalc"), 8, "products"),
        Limit(("hessian", "tcalc"), 2, "matrices"),
        Limit(("hessian", "jax"), 2, "matrices"),
        Limit(("hessian", "tcalc"), 1, "products", least=11),
    ]
    rows = [replace(row("tcalc", 14.0), peak=2400), row("jax", 1.0)]
    verdicts = harness.judge(claims, rows, RATES, {"n": 10})
    assert [verdict.ratio for verdict in verdicts] == [7.0, 3.0, None]
    assert [verdict.met for verdict in verdicts] == [True, False, None]


def test_promises_are_judged_by_counted_operations() -> None:
    sides = ("hessian", "tcalc"), ("hessian", "hand low rank"), ("hessian", "hand")
    rows = [row("tcalc", 0.3), replace(row("hand low rank", 0.1), flops=1e5), row("hand", 1.0)]
    for within, met in ((4.0, True), (2.0, False)):
        (verdict,) = harness.judge([Promised(*sides, within=within)], rows, RATES, {"n": 10})
        assert verdict.ratio == pytest.approx(3.0)
        assert verdict.met == met
    (verdict,) = harness.judge([Promised(*sides, within=2)], rows[:2], RATES, {"n": 10})
    assert verdict.met is None


def test_memory_is_judged_by_the_item() -> None:
    side = ("hessian", "tcalc")
    claims = [
        Memory(side, 80, "held"),
        Memory(side, 7, "held", per="n"),
        Memory(side, 30, "traced", per="n"),
        Memory(("hessian", "jax"), 30, "traced"),
    ]
    rows = [replace(row("tcalc", 1.0), bytes=80, traced=200), row("jax", 1.0)]
    verdicts = harness.judge(claims, rows, RATES, {"n": 10})
    assert [verdict.ratio for verdict in verdicts] == [80, 8, 20, None]
    assert [verdict.met for verdict in verdicts] == [True, False, True, None]


def test_memory_that_is_claimed_is_traced() -> None:
    task = tiny("cosine-sum")
    (entry,) = harness.enter(task, ["hand"], ["core"])
    assert harness.measure(task, [entry], repeat=0)[0].traced is None
    claim = Memory(("core", "hand"), 1e9, "traced")
    task = replace(task, problem=replace(task.problem, claims=(claim,)))

    def call() -> Any:
        np.ones(100_000)
        return entry.call()

    (found,) = harness.measure(task, [replace(entry, call=call)], repeat=0)
    assert found.traced is not None
    assert 800_000 <= found.traced < 900_000


def test_a_long_call_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "LONG", 0.0)
    task = tiny("matrix-factorisation")
    made: list[str] = []

    def counted(entry: Entry) -> Entry:
        def call() -> Any:
            made.append(entry.label)
            return entry.call()

        return replace(entry, call=call)

    entries = harness.enter(task, ["tcalc", "hand"], ["newton"])
    rows = harness.measure(task, list(map(counted, entries)), repeat=2)
    assert {r.label: r.once for r in rows} == {"tcalc": False, "hand": True, "hand dense": True}
    assert all(r.seconds for r in rows)
    assert made.count("hand dense") == 1
    assert made.count("tcalc") > 3  # its first call also plans


def test_backward_is_what_value_and_gradient_take_longer() -> None:
    claims = [Faster("forward", 0.9), Faster("backward", 4.0)]
    seconds = {"tcalc": (1.0, 2.0), "jax": (0.8, 6.0), "torch": (2.0, 5.0)}
    rows = [
        replace(row(label, taken), quantity=quantity)
        for label, both in seconds.items()
        for quantity, taken in zip(("value", "both"), both, strict=True)
    ]
    forward, backward = harness.judge(claims, rows, RATES, {"n": 10})
    assert (forward.ratio, forward.met) == (0.8, False)
    assert (backward.ratio, backward.met) == (3.0, False)
    assert [v.met for v in harness.judge(claims, rows[:2], RATES, {"n": 10})] == [None, None]


def test_a_claim_names_contestants_that_exist() -> None:
    for problem in PROBLEMS.values():
        forms = {
            (quantity, f"hand {name}".strip())
            for quantity, named in problem.hand.items()
            for name in named
        }
        others = {(q, name) for q in QUANTITIES for name in ("tcalc", "tcalc c", "jax")}
        others |= {("core", "asdex")} if problem.sparse else set()
        others |= {(q, "gradbench") for q in problem.suite.functions} if problem.suite else set()
        batched = {(q, f"jax {name}") for q, named in problem.batched.items() for name in named}
        for claim in problem.claims:
            if isinstance(claim, Faster):
                assert claim.mine in ("tcalc", "tcalc c")
                continue
            sides = {getattr(claim, side, None) for side in ("mine", "theirs", "counted")}
            assert sides - {None} <= forms | others | batched
            assert {getattr(claim, "per", "")} <= {"", *problem.cases["tiny"][0].sizes}


def test_arrays_are_the_same_every_time_and_read_only() -> None:
    first, second = tiny("net"), tiny("net")
    assert first.data.keys() == second.data.keys()
    for name, array in first.data.items():
        assert np.array_equal(array, second.data[name])
        assert not array.flags.writeable


def test_real_data_loads() -> None:
    real = [
        (problem, case)
        for problem in PROBLEMS.values()
        for case in (*problem.cases["paper"], *problem.cases.get("real", ()))
        if case.label.startswith(("breast", "digits", "diabetes", "growth", "modes"))
    ]
    assert {problem.name for problem, _ in real} >= {"logistic", *cli.FITTED}
    for problem, case in real:
        task = Task.of(problem, case)
        point = problem.point(task.data)
        assert nests.each(np.shape, task.rhs) == nests.each(np.shape, point)


def test_several_variables_are_one_vector() -> None:
    point = (np.arange(6.0).reshape(2, 3), np.array(6.0), np.arange(7.0, 9.0))
    vector = nests.flat(point)
    assert np.array_equal(vector, np.arange(9.0))
    again = nests.unflat(vector, point)
    assert nests.each(np.shape, again) == nests.each(np.shape, point)
    assert np.array_equal(nests.flat(again), vector)
    whole = np.random.default_rng(0).standard_normal((9, 9))
    ends = ((0, 6, (2, 3)), (6, 7, ()), (7, 9, (2,)))
    blocks = tuple(
        [tuple([whole[a:b, c:d].reshape(r + s) for c, d, s in ends]) for a, b, r in ends]
    )
    assert np.array_equal(nests.matrix(blocks), whole)
    assert np.allclose(nests.flat(nests.times(blocks, point)), whole @ vector)
    assert np.array_equal(nests.matrix(blocks[0][0]), whole[:6, :6])


def test_every_block_is_measured_by_itself() -> None:
    right = (np.array([1e6, 1.0]), np.array([1.0, 2.0]))
    assert harness.relative_error(right, right) == 0
    assert harness.relative_error((right[0], right[1] * 1.5), right) == 0.5
    assert harness.relative_error(right[:1], right) == np.inf
    assert harness.relative_error(right[0], right) == np.inf
    none = (right[0], np.zeros(2))
    assert harness.relative_error((right[0], np.array([1.0, 0.0])), none) == 1e-6


def test_both_forms_of_the_evidence_agree() -> None:
    task = tiny("linear-regression")
    for derive in (
        lambda f: f,
        lambda f: tc.grad(f, ("la", "lv")),
        lambda f: tc.hessian(f, ("la", "lv")),
    ):
        found = []
        for name in ("linear-regression", "linear-regression-lq"):
            f = PROBLEMS[name].expression(task.case.sizes)
            arrays = {variable: task.data[variable] for variable in f.variables}
            found.append(tc.compile(derive(f))(**arrays))
        cholesky, lq = found
        assert harness.relative_error(lq, nests.each(np.asarray, cholesky)) < 1e-12


@pytest.mark.parametrize("name", cli.FITTED)
def test_fits_end_at_a_minimum(name: str) -> None:
    found = fit.fit(PROBLEMS[name], PROBLEMS[name].cases["tiny"][0])
    assert found.converged
    assert found.end < found.start
    assert found.steps == len(found.trace) - 1 > 1
    assert found.point.keys() == set(nests.leaves(PROBLEMS[name].wrt))
