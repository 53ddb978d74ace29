"""What loops are: nodes, formulas, source, plans; batches of loops; errors."""

from __future__ import annotations

import pickle
import subprocess
import sys
import time
import tracemalloc
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.calculus.batching import with_batch_axis
from tcalc.graph.nodes import Expr, postorder
from tcalc.loops.closure_conversion import folded
from tcalc.plan.lowering.make import make_plan
from tcalc.plan.steps import Plan
from tests.loop_cases import CASES, Case, data, expression

CASE = {case.name: case for case in CASES}
RNG = np.random.default_rng(0)
s, item = tc.var("s", "n"), tc.var("item", "n")
w, x, s0 = tc.var("w", ("n", "n")), tc.var("x", ("T", "n")), tc.var("s0", "n")
DATA = {"w": RNG.normal(size=(3, 3)), "x": RNG.normal(size=(5, 3)), "s0": RNG.normal(size=3)}
IDS = {"argvalues": CASES, "ids": lambda case: case.name}


def rnn(history: bool = False, state: Expr = s, slice_: Expr = item) -> Expr:
    after = tc.tanh(w @ state + slice_)
    (found,) = folded([state], [slice_], [after], [s0], [x], "T", history)
    return found


def inner_plans(plan: Plan) -> list[Plan]:
    return [p for step in plan.steps for p in step.params if isinstance(p, Plan)]


# --- nodes ----------------------------------------------------------------------------------------


def test_equal_loops_are_one_node() -> None:
    """Whatever their variables are called, and in whichever order arrays are scanned."""
    assert rnn() is rnn(state=tc.var("other", "n"), slice_=tc.var("another", "n"))
    y, i, j = tc.var("y", ("T", "n")), tc.var("i", "n"), tc.var("j", "n")
    one = folded([s], [i, j], [s * i + j], [s0], [x, y], "T")
    two = folded([s], [i, j], [s * j + i], [s0], [y, x], "T")
    assert one[0] is two[0]


def test_variables_of_a_loop_are_not_those_of_the_user() -> None:
    assert sorted(rnn().variables) == ["s0", "w", "x"]
    own = tc.var("s", "n")
    (found,) = folded([tc.var("r", "n")], [], [tc.var("r", "n") + own], [own], [], 2)
    np.testing.assert_array_equal(found(s=[1.0, 2.0]), [3.0, 6.0])


def test_what_does_not_change_is_captured() -> None:
    (found,) = folded([s], [item], [tc.linalg.inv(w @ w.T) @ s + item], [s0], [x], "T")
    plan = tc.compile(found).plan_for(w=(3, 3), x=(5, 3), s0=(3,))
    (inner,) = inner_plans(plan)
    assert not any("inv" in str(step) or "solve" in str(step) for step in inner.steps)


def test_a_history_and_the_last_state_are_one_loop() -> None:
    nodes = postorder([rnn(), rnn(history=True)])
    assert sum([getattr(node, "op", None) is not None for node in nodes]) == 1
    last, every = tc.compile((rnn(), rnn(history=True)))(**DATA)
    assert every.shape == (5, 3)
    np.testing.assert_array_equal(every[-1], last)
    assert not np.shares_memory(every, last)
    last[:] = every[:] = 0


def test_a_state_that_stays_is_no_state() -> None:
    still = tc.var("still", "n")
    last, kept = folded([s, still], [], [s * still, still], [s0, x[0]], [], 3)
    assert kept is x[0]
    assert last is folded([s], [], [s * x[0]], [s0], [], 3)[0]
    every = folded([s, still], [], [s * still, still], [s0, x[0]], [], 3, True)[1]
    np.testing.assert_array_equal(every(**DATA), np.tile(DATA["x"][0], (3, 1)))


def test_slices_that_are_all_the_same_are_captured() -> None:
    y = tc.var("y", "n")
    (one,) = folded([s], [item], [s * item], [s0], [tc.einsum("i->ti", y, sizes={"t": 4})], 4)
    assert one is folded([s], [], [s * y], [s0], [], 4)[0]


def test_order_is_deterministic() -> None:
    text = """
import tcalc as tc
from tests.loop_cases import CASES, expression
for case in CASES:
    e = expression(case, "T")
    print(tc.grad(e, sorted(e.variables)[0]), e.order[2].hex(), tc.to_code(e))
"""
    runs = [
        subprocess.run(
            [sys.executable, "-c", text], capture_output=True, check=True, text=True,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path), "PATH": ""},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert runs[0] == runs[1]
    assert len(runs[0]) > 1000


@pytest.mark.parametrize("case", **IDS)
def test_pickles(case: Case) -> None:
    e = tc.grad(expression(case, "T"), "init0")
    assert pickle.loads(pickle.dumps(e)) is e


# --- formulas and source --------------------------------------------------------------------------


def test_text() -> None:
    assert str(rnn()) == "fold(s -> tanh(item + w*s), s0, i=0..T-1)".replace("item", "x[i]")
    scalar = tc.var("r")
    (found,) = folded([scalar], [], [3 * scalar * (1 - scalar)], [tc.var("a")], [], 10)
    assert str(found) == "fold(s -> 3*s*(1 - s), a, i=0..9)"
    one, two = tc.var("one"), tc.var("two")
    both = folded([one, two], [], [two, one + two], [tc.var("a"), tc.var("s")], [], 10)
    assert str(both[1]) == "fold((s1, s2) -> (s2, s1 + s2), (a, s), i=0..9)[1]"
    assert r"\mapsto \tanh" in tc.to_latex(rnn())


@pytest.mark.parametrize("case", **IDS)
def test_all_forms_of_derivatives(case: Case) -> None:
    e = expression(case, "T")
    for mode in ("reverse", "forward"):
        hess = tc.jacobian(tc.grad(e, "init0", mode=mode), "init0", mode=mode)
        for form in (str, tc.to_latex, tc.to_einsum, tc.compress):
            text = str(form(hess))
            assert "fold" in text or not hess.variables
            assert "@" not in text
        assert "reverse" in str(tc.explain(hess, T=4))


def test_shared_parts_of_a_step_are_statements() -> None:
    """Text grows with the nodes of a step, not with the paths through it."""
    e = s
    for _ in range(40):
        e = tc.sin(e) * e
    (found,) = folded([s], [], [e], [s0], [], 3)
    assert len(str(found)) < 4000
    assert len(str(tc.grad(tc.sum(found), s0))) < 60_000


@pytest.mark.parametrize("case", **IDS)
def test_source(case: Case) -> None:
    e = expression(case, "T")
    given = data(case, 3)
    for found in (e, tc.grad(e, "init0"), tc.hessian(e, "init0", mode="reverse")):
        space: dict[str, Any] = {}
        exec(tc.to_code(found), space)  # printed by us
        sizes = {} if any("T" in v.shape for v in e.variables.values()) else {"T": 3}
        known = {k: v for k, v in given.items() if k in found.variables}
        np.testing.assert_allclose(space["f"](**known, **sizes), found(**given, T=3), rtol=1e-9)


# --- numbers --------------------------------------------------------------------------------------


def test_single_precision_and_numbers() -> None:
    single = {k: v.astype(np.float32) for k, v in DATA.items()}
    step = tc.compile((rnn(), tc.grad(tc.sum(rnn()), "w")))
    for one, other in zip(step(**single), step(**DATA), strict=True):
        assert one.dtype == np.float32
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
    assert rnn()(**{**single, "x": DATA["x"]}).dtype == np.float64
    half = tc.const(np.full(3, 0.5))
    (found,) = folded([tc.var("s", 3)], [], [half * tc.var("s", 3)], [tc.var("a", 3)], [], 2)
    assert found(a=np.ones(3, np.float32)).dtype == np.float64


def test_data_bound_once_and_threads_of_calls() -> None:
    step = tc.compile(tc.grad(tc.sum(rnn()), "w"), data={"x": DATA["x"], "s0": DATA["s0"]})
    wanted = tc.grad(tc.sum(rnn()), "w")(**DATA)
    for _ in range(2):
        np.testing.assert_array_equal(step(w=DATA["w"]), wanted)
    other = step(w=2 * DATA["w"])
    assert np.abs(other - wanted).max() > 1e-3


def test_products_with_vectors() -> None:
    f, v = tc.sum(rnn() ** 2), tc.var("v", ("n", "n"))
    hess = tc.hessian(f, "w")(**DATA)
    along = RNG.normal(size=(3, 3))
    np.testing.assert_allclose(
        tc.hvp(f, "w", v)(**DATA, v=along), np.tensordot(hess, along), rtol=1e-10, atol=1e-12
    )
    jac = tc.jacobian(rnn(), "w", mode="forward")(**DATA)
    np.testing.assert_allclose(
        tc.jvp(rnn(), "w", v)(**DATA, v=along), np.tensordot(jac, along), rtol=1e-10
    )
    u = tc.var("u", "n")
    np.testing.assert_allclose(
        tc.vjp(rnn(), "w", u)(**DATA, u=[1.0, 2, 3]), np.tensordot([1.0, 2, 3], jac, 1), rtol=1e-10
    )


def test_compressed_hessians() -> None:
    """Of a loop that acts entry by entry: a diagonal."""
    (last,) = folded([s], [], [tc.sin(s)], [s0], [], 4)
    hess = tc.hessian(tc.sum(last**2), s0)
    held = tc.compile(hess, structured=True)(s0=DATA["s0"])
    np.testing.assert_allclose(held.todense(), hess(s0=DATA["s0"]), rtol=1e-12)
    assert held.solve(np.ones(3)).shape == (3,)


@pytest.mark.parametrize("mode", ["forward", "reverse", "cross-country"])
def test_unit_tensors_pass_through_loops(mode: str) -> None:
    """Of an entrywise loop, derivatives of all orders are diagonals, and carried as such."""
    (last,) = folded([s], [item], [s0 * tc.sin(s) + item], [s0], [x], "T")
    forms = {
        tc.jacobian(last, s0, mode=mode): "C1[i] * delta[i,j] ",
        tc.jacobian(last, x, mode=mode): "C1[i,j] * delta[i,k] ",
        tc.derivative(last, s0, 2, mode): "C1[i] * delta[i,j] * delta[i,k] ",
        tc.derivative(last, s0, 3, mode): "C1[i] * delta[i,j] * delta[i,k] * delta[i,l] ",
    }
    for e, text in forms.items():
        assert f"] = {text}" in str(tc.compress(e))
    rows = tc.vmap(rnn(), {"x": 0}, size="B")
    assert "delta[i,k]" in str(tc.compress(tc.jacobian(rows, "x", mode="reverse")))


def test_a_state_that_is_zero_is_no_state() -> None:
    (found,) = folded([s], [item], [tc.sin(s) * item], [tc.zeros("n")], [x], "T")
    assert found is tc.zeros("n")


@pytest.mark.parametrize("case", **IDS)
@pytest.mark.parametrize("every", [False, True])
def test_batches_of_loops(case: Case, every: bool) -> None:
    """A batch of the first arguments, or of all, is the same as one after the other."""
    e = expression(case, 3)
    several = [data(case, 3, seed) for seed in range(2)]
    names = list(e.variables) if every else ["init0"]
    wide = {
        n: tc.var(f"{n}_items", (2, *e.variables[n].shape), integer=n == "x0" and case.integers > 0)
        for n in names
    }
    values = {f"{n}_items": np.stack([given[n] for given in several]) for n in names}
    rest = {n: v for n, v in several[0].items() if n not in names}
    for found in (e, tc.grad(e, "init0")):
        (both,) = with_batch_axis([found], {e.variables[n]: v for n, v in wide.items()}, 2)
        for k, given in enumerate(several):
            one = found(**rest, **{n: given[n] for n in names})
            np.testing.assert_allclose(both(**rest, **values)[k], one, rtol=1e-9, atol=1e-12)


def test_what_needs_no_loop_is_not_in_it() -> None:
    """Of an affine step, the product with the slices is one matrix product for all steps."""
    u = tc.var("u", ("n", "n"))
    (found,) = folded([s], [item], [tc.tanh(w @ s + u @ item)], [s0], [x], "T")
    sizes = {"T": 5, "n": 3}
    (inner,) = inner_plans(make_plan([found], sizes))
    assert sum(["dot" in str(step) for step in inner.steps]) == 1
    (wide,) = folded([s], [item], [tc.tanh(tc.outer(item, item) @ s)], [s0], [x], "T")
    plan = make_plan([wide], sizes)
    assert all(np.prod(step.shape) < 45 for step in plan.steps)


# --- costs ----------------------------------------------------------------------------------------


def test_a_filter_of_many_steps() -> None:
    """Derived at once, whatever the number of steps; memory in proportion to that."""
    begin = time.perf_counter()
    e = expression(CASE["kalman"], "T")
    grad = tc.grad(e, ("c0", "c1", "x0", "init0"))
    assert time.perf_counter() - begin < 2
    sizes = dict.fromkeys(["T"], 200)
    one, two = [make_plan([g.args[0] for g in grad], {"T": count}) for count in (200, 400)]
    assert two.peak_bytes < 2.1 * one.peak_bytes
    assert two.flops < 2.1 * one.flops
    value = make_plan([e], sizes)
    assert one.flops < 8 * value.flops
    step = tc.compile(grad)
    given = data(CASE["kalman"], 200)
    step(**given)
    tracemalloc.start()
    step(**given)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2e6


# --- errors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "kind", "text"),
    [
        (([s], [], [tc.sum(s)], [s0], [], 3), tc.ShapeError, "next value of state 0"),
        (([s], [], [s], [w], [], 3), tc.ShapeError, "first value of state 0"),
        (([s], [item], [s + item], [s0], [x], 3), tc.ShapeError, "expected (3, n)"),
        (([s], [item], [s + item], [s0], [w[:, :2]], "n"), tc.ShapeError, "scanned array 0"),
        (([s], [], [s, s], [s0], [], 3), TypeError, "2 next states for 1"),
        (([s], [item], [s], [s0], [], 3), TypeError, "0 scanned arrays for 1"),
        (([s], [], [3.0], [s0], [], 3), TypeError, "3.0 is not an expression"),
        (([s * 2], [], [s], [s0], [], 3), TypeError, "is not a variable"),
        (([s], [s], [s], [s0], [x], "T"), TypeError, "stands for two"),
        (([s], [], [s], [s0], [], -1), ValueError, "-1"),
        (([s], [], [s], [s0], [], 1.5), TypeError, "1.5"),
    ],
)
def test_errors(arguments: Any, kind: type[Exception], text: str) -> None:
    with pytest.raises(kind) as found:
        folded(*arguments)
    assert text in str(found.value)


def test_bodies_take_their_parameters_in_any_way() -> None:
    x = tc.var("x", 3)
    one = tc.fold(lambda s, i: s * x[i], 1.0, 3)
    assert tc.fold(lambda *given: given[0] * x[given[1]], 1.0, 3) is one
    assert tc.build(3, lambda *given: x[given[0]]) is x
    assert tc.build(3, x.__getitem__) is x


def test_errors_of_a_step_name_it() -> None:
    (found,) = folded([w], [], [tc.linalg.inv(w - tc.eye("n"))], [2 * w], [], 4)
    with pytest.raises(tc.LinAlgError, match="step 1 of 4") as error:
        found(w=np.eye(3) / 2)
    assert "fold(" in str(error.value)
    with pytest.raises(TypeError, match="T"):
        folded([s], [], [s * s], [s0], [], "T")[0](s0=DATA["s0"])


def test_a_loop_that_does_not_fit() -> None:
    (found,) = folded([s], [], [tc.sin(s)], [s0], [], "T", True)
    step = tc.compile(found, memory_limit="1MiB")
    assert step(s0=np.ones(10), T=100).shape == (100, 10)
    with pytest.raises(tc.MemoryLimitError):
        step(s0=np.ones(10), T=100_000)
