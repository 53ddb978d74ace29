"""Calls of programs with loops, and with tiles: C is entered once, and leaves as NumPy ends."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c import embedded
from tcalc.backends.c.background import BACKGROUND
from tcalc.graph.trees import leaves
from tcalc.plan.steps import TiledLoop
from tests.test_backends import failure
from tests.test_c_calls import agree, entered, functions_called, wrong_in_threads

X, W, U = tc.var("X", ("T", "n")), tc.var("W", ("n", "n")), tc.var("U", ("n", "T"))
s0, r, counts = tc.var("s0", "n"), tc.var("r"), tc.var("counts", "p", integer=True)
RNG = np.random.default_rng(0)
VALUES: dict[str, Any] = {
    "X": RNG.normal(size=(7, 5)), "U": RNG.normal(size=(5, 7)), "s0": RNG.normal(size=5),
    "W": RNG.normal(size=(5, 5)) / 4, "r": 0.25,
    "counts": np.array([4, 2]),
}  # fmt: skip


def cell(rows: tc.Expr) -> Callable[[tc.Expr, tc.Expr], tc.Expr]:
    return lambda s, t: tc.tanh(W @ s + rows[t])


def factored(p: tc.Expr, t: tc.Expr) -> tc.Expr:
    """Of a matrix that is positive definite while X's rows are not too long."""
    outer = tc.einsum("i,j->ij", X[t], X[t])
    return tc.linalg.cholesky((1 + r + tc.sum(p * p) / 100) * tc.eye("n") - outer / 9)


LAST = tc.fold(cell(X), s0, "T")
LOSS = tc.sum(LAST**2)
SMALL = tc.fold(lambda s, t: s / 2 + X[t], s0, until=lambda s: tc.sum(s * s) < r, limit="T")
#: Outputs of programs with loops: states that are outputs, at once, turned and read by others;
#: operands that lie in any way; one loop after another, and in another; those that a condition or
#: a number ends.
LOOPS: dict[str, Any] = {
    "a last state": LAST,
    "a history": tc.fold(cell(X), s0, "T", history=True),
    "a history turned": tc.fold(cell(X), s0, "T", history=True).T * r,
    "states twice": [LAST, LAST + 1, tc.sum(LAST)],
    "value and gradients": [LOSS, *leaves(tc.grad(LOSS, [W, X, s0]))],
    "a hessian": tc.hessian(LOSS, s0),
    "slices across": tc.grad(tc.sum(tc.fold(cell(U.T), s0, "T") ** 3), U),
    "a loop in a loop": tc.fold(
        lambda s, t: tc.fold(lambda q, k: tc.sin(q) + X[k] * X[t], s, "T"), s0, "T"
    ),
    "one after another": tc.grad(tc.sum(tc.fold(cell(X), LAST, "T")), W),
    "a condition": [SMALL.state, SMALL.steps, SMALL.met, tc.grad(tc.sum(SMALL.state), X)],
    "a computed number": tc.grad(tc.sum(tc.fold(cell(X), s0, counts[0], limit="T")), X),
    "factors": tc.value_and_grad(tc.sum(tc.fold(factored, tc.eye("n"), "T")), r),
    "steps of Python": tc.fold(
        lambda s, t: tc.linalg.eigvalsh(W + W.T + X[t][:, None] * s) / 9, s0, "T"
    ),
}


def of(outputs: Any, **others: Any) -> dict[str, Any]:
    used = {name for e in leaves(outputs) for name in e.variables}
    return {name: v for name, v in (VALUES | others).items() if name in used}


@pytest.mark.parametrize("name", LOOPS)
def test_loops_are_part_of_an_entry(name: str) -> None:
    outputs = LOOPS[name]
    values = of(outputs)
    step, plain = entered(outputs, values), tc.compile(outputs, backend="numpy")
    others = {n: v if n == "counts" else v * 0.75 for n, v in values.items()}
    for given in (values, others, values):
        agree(step(**given), plain(**given), 1e-9)
    if all(type(v) is np.ndarray for v in values.values()):
        assert functions_called(functools.partial(step, **values))["call"] == 1


@pytest.mark.parametrize("turned", [np.asfortranarray, lambda a: np.repeat(a, 2, -1)[..., ::2]])
def test_operands_of_loops_lie_anyhow(turned: Callable[[np.ndarray], np.ndarray]) -> None:
    outputs = LOOPS["value and gradients"]
    values = {n: turned(v) for n, v in of(outputs).items()}
    wanted = tc.compile(outputs, backend="numpy")(**values)
    step = tc.compile(outputs, backend="c")
    for _ in range(3):
        agree(step(**values), wanted, 1e-9)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("m", "k"), [(8, 8), (9, 13), (16, 40), (33, 8), (47, 64), (130, 70)])
def test_matrices_that_stay_are_read_by_columns(m: int, k: int, dtype: type) -> None:
    """Either way round, whatever is left of blocks of their rows and columns."""
    A, s = tc.var("A", ("m", "k")), tc.var("s", "k")
    e = tc.fold(lambda q, t: tc.sin(A.T @ tc.cos(A @ q + t)), s, 9)
    outputs = [e, *leaves(tc.grad(tc.sum(e * e), [A, s]))]
    values = {"A": RNG.normal(size=(m, k)) / 20, "s": RNG.normal(size=k)}
    values = {n: v.astype(dtype) for n, v in values.items()}
    step, plain = entered(outputs, values), tc.compile(outputs, backend="numpy")
    for given in (values, {"A": np.asfortranarray(values["A"]), "s": values["s"]}):
        for one, other in zip(step(**given), plain(**given), strict=True):
            tolerance = 1e-10 if dtype is np.float64 else 1e-4
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_states_that_are_returned_belong_to_the_caller() -> None:
    outputs = [LAST, LOOPS["a history"], LOOPS["a history"].T]
    step, values = entered(outputs, of(outputs)), of(outputs)
    found = [step(**values) for _ in range(3)]
    for k, array in enumerate([a for results in found for a in results]):
        array[...] = k
    assert [a.flat[-1] for results in found for a in results] == list(range(9))


def test_a_step_that_fails_is_told_as_ever() -> None:
    outputs = LOOPS["factors"]
    values, long = of(outputs), VALUES["X"].copy()
    long[4] *= 40
    step = entered(outputs, values)
    wanted = failure(lambda: tc.compile(outputs, backend="numpy")(**of(outputs, X=long)))
    assert "at step 5 of 7 of a loop" in wanted
    good = step(**values)
    for _ in range(3):
        assert failure(lambda: step(**of(outputs, X=long))) == wanted
        agree(step(**values), good)


def test_long_and_large_loops_are_looked_after(monkeypatch: pytest.MonkeyPatch) -> None:
    """They let Python look for interrupts, and hold no memory between calls."""
    values = of(LOSS)
    wanted = tc.compile(LOSS, backend="numpy")(**values)
    for limit in ("PAUSE", "MOST_BYTES"):
        with monkeypatch.context() as m:
            m.setattr(embedded, limit, 100)
            step = tc.compile(LOSS, backend="c")
            for _ in range(3):
                agree(step(**values), wanted)
            assert not step._engine.entries


def test_threads_have_memory_of_loops_each() -> None:
    outputs = LOOPS["value and gradients"]
    given = [of(outputs, X=RNG.normal(size=(7, 5))) for _ in range(4)]
    assert not wrong_in_threads(entered(outputs, given[0]), outputs, given)


def test_loops_go_over_to_entries_too() -> None:
    outputs = LOOPS["value and gradients"]
    step, values = tc.compile(outputs, backend="auto"), of(outputs)
    wanted = step(**values)
    agree(step(**values), wanted)
    assert BACKGROUND.wait(60)
    for _ in range(3):
        agree(step(**values), wanted, 1e-9)
    assert step._engine.entries


def test_tiles_are_part_of_an_entry() -> None:
    """Sums over rows, and a number for each row."""
    rows, v = tc.var("rows", ("m", "k")), tc.var("v")
    bent = tc.exp(tc.sin(rows) * v)
    outputs = [tc.sum(bent), tc.grad(tc.sum(bent**2), v), tc.sum(bent, axis=1)]
    values = {"rows": RNG.normal(size=(20000, 4)), "v": 0.5}
    step = entered(outputs, values)
    units = step.plan_for(rows=(20000, 4)).units
    assert any(isinstance(unit, TiledLoop) for unit in units)
    agree(step(**values), tc.compile(outputs, backend="numpy")(**values), 1e-10)
