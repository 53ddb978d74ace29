"""Loops in C: the numbers of plain loops, and what Python is entered for while they run."""

from __future__ import annotations

import _thread
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c import loops
from tests import loop_cases
from tests.loop_cases import ARRAYS, Case
from tests.test_backends import failure


def compiled(outputs: Any, **options: Any) -> Any:
    return tc.compile(outputs, backend="c", **options)


def given(case: Case, count: int, dtype: Any) -> dict[str, np.ndarray]:
    arrays = loop_cases.data(case, count)
    return {k: a if a.dtype.kind == "i" else a.astype(dtype) for k, a in arrays.items()}


def targets(case: Case) -> tuple[str, ...]:
    return tuple(loop_cases.names(case)[: len(case.states)])


@pytest.mark.parametrize("case", loop_cases.CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_and_derivatives_at_any_length(case: Case, dtype: Any) -> None:
    """No step, one, and more: by a plain loop, and derivatives as on NumPy."""
    e = loop_cases.expression(case, "T")
    wanted = [e, tc.grad(e, targets(case))]
    on_c, on_numpy = compiled(wanted), tc.compile(wanted)
    tolerance = 1e-9 if dtype is np.float64 else 1e-3
    for count in (0, 1, 6):
        arrays = given(case, count, dtype)
        value, gradients = on_c(**arrays, T=count)
        if case.name != "kalman":  # whose determinants want NumPy's own type
            plain = loop_cases.loss(case, ARRAYS, list(arrays.values()), count)
            np.testing.assert_allclose(value, plain, rtol=tolerance)
        assert value.dtype == dtype
        others = on_numpy(**arrays, T=count)
        np.testing.assert_allclose(value, others[0], rtol=tolerance)
        for one, other in zip(gradients, others[1], strict=True):
            size = max(1.0, float(np.abs(other).max(initial=0)))
            np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance * size)
            assert one.dtype == dtype


@pytest.mark.parametrize("case", loop_cases.CASES, ids=lambda case: case.name)
def test_python_is_not_entered_between_steps(case: Case, entries: list[str]) -> None:
    e = loop_cases.expression(case, "T")
    step = compiled([e, tc.grad(e, targets(case))])
    step(**loop_cases.data(case, 5), T=5)
    assert not entries


def test_loops_in_loops_and_optimizers_in_loops() -> None:
    """An inner loop over slices of slices; a step by a gradient, differentiated."""
    x, a = tc.var("x", ("T", "n")), tc.var("a")
    inner = tc.fold(
        lambda s, t: tc.fold(lambda r, j: tc.sin(r * a + x[t, j]), s, "n"), tc.const(0.3), "T"
    )
    w = tc.var("w", ("n",))
    descent = tc.fold(
        lambda v, t: v - a * (tc.grad(tc.sum(tc.cos(w * x[t]) ** 2), w).subs({w: v})),
        tc.ones("n"), 4,
    )  # fmt: skip
    arrays = {"x": np.random.default_rng(0).normal(size=(4, 3)), "a": 0.7}
    for e in (inner, tc.sum(descent**2)):
        wanted = [e, tc.grad(e, a), tc.hessian(e, a), tc.grad(e, x)]
        for one, other in zip(
            compiled(wanted)(**arrays), tc.compile(wanted)(**arrays), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
    s, r = 0.3, arrays["x"]
    for row in r:
        for item in row:
            s = np.sin(s * 0.7 + item)
    assert compiled(inner)(**arrays) == pytest.approx(s)


def test_batches_of_loops(entries: list[str]) -> None:
    x, w = tc.var("x", ("T", "n")), tc.var("w", ("n", "n"))
    e = tc.sum(tc.fold(lambda s, t: tc.tanh(w @ s + x[t]), tc.zeros("n"), "T"))
    many = tc.vmap(e, {"x": 0}, size="B")
    rng = np.random.default_rng(1)
    arrays = {"x": rng.normal(size=(5, 7, 3)), "w": rng.normal(size=(3, 3))}
    wanted = []
    for item in arrays["x"]:
        state = np.zeros(3)
        for row in item:
            state = np.tanh(arrays["w"] @ state + row)
        wanted.append(state.sum())
    np.testing.assert_allclose(compiled(many)(**arrays), wanted, rtol=1e-12)
    assert not entries


# --- extents, bound data, threads -----------------------------------------------------------------


@pytest.mark.parametrize("n", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_states_without_entries_and_with_one(n: int, count: int) -> None:
    x, w = tc.var("x", ("T", "n")), tc.var("w", ("n", "n"))
    e = tc.fold(lambda s, t: tc.tanh(w @ s + x[t]) * s, tc.ones("n"), "T", history=True)
    arrays = {"x": np.full((count, n), 0.5), "w": np.full((n, n), 0.3)}
    wanted = [e, tc.grad(tc.sum(e), w)]
    for one, other in zip(compiled(wanted)(**arrays), tc.compile(wanted)(**arrays), strict=True):
        assert one.shape == other.shape
        np.testing.assert_allclose(one, other)


def test_bound_data_and_threads() -> None:
    x, w = tc.var("x", ("T", "n")), tc.var("w", ("n", "n"))
    e = tc.sum(tc.fold(lambda s, t: tc.tanh(w @ s + x[t]), tc.zeros("n"), "T") ** 2)
    rng = np.random.default_rng(2)
    data = rng.normal(size=(40, 4))
    bound = compiled([e, tc.grad(e, w)], data={"x": data[::2]})
    free = tc.compile([e, tc.grad(e, w)])
    several = [rng.normal(size=(4, 4)) for _ in range(16)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda a: bound(w=a), several))
    for a, (value, gradient) in zip(several, found, strict=True):
        others = free(w=a, x=data[::2])
        np.testing.assert_allclose(value, others[0])
        np.testing.assert_allclose(gradient, others[1])


# --- errors, interrupts ---------------------------------------------------------------------------


def test_errors_name_the_steps_of_all_loops() -> None:
    A = tc.var("A", ("T", "K", 2, 2))
    e = tc.fold(
        lambda s, t: tc.fold(lambda r, k: tc.sum(tc.linalg.cholesky(A[t, k] * r) / 3), s, "K"),
        1.0, "T",
    )  # fmt: skip
    good = np.broadcast_to(2 * np.eye(2), (20, 3, 2, 2)).copy()
    bad = good.copy()
    bad[16, 1] *= -1
    wanted = failure(lambda: tc.compile(e)(A=bad))
    assert "at step 2 of 3 of a loop, at step 17 of 20 of a loop" in wanted
    step = compiled(e)
    for _ in range(2):
        assert failure(lambda: step(A=bad)) == wanted
        assert step(A=good) == pytest.approx(float(tc.compile(e)(A=good)))


def test_a_loop_comes_back_so_that_it_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tc.var("x", "T")
    e = tc.fold(lambda s, t: tc.sin(s) + x[t], 0.5, "T")
    arrays = {"x": np.random.default_rng(0).normal(size=1000)}
    wanted = compiled(e)(**arrays)
    monkeypatch.setattr(loops, "PAUSE", 300)
    assert compiled(e)(**arrays) == wanted
    monkeypatch.undo()
    endless = compiled(tc.fold(lambda s, t: tc.sin(s * s + 0.1), 0.5, "T"))
    timer = threading.Timer(0.2, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        endless(T=10**12)
    timer.join()
    assert endless(T=1) == pytest.approx(np.sin(0.35))


def test_what_is_computed_once_lies_apart_from_what_steps_write() -> None:
    """Of a pullback step by step, whose scaled rates come before steps and after results there."""
    m, b, rates = tc.var("m", (3, 2, 2)), tc.var("b", (3, 2)), tc.var("rates", 3)

    def step(s: Any, i: Any) -> Any:
        slope = tc.einsum("bij,bj->bi", m, s) - b
        ended = tc.max(tc.abs(slope), axis=-1) < 0.2
        return tc.where(ended[:, None], s, s - rates[:, None] * slope)

    e = tc.sum(tc.fold(step, tc.zeros((3, 2)), 2, checkpoint=True) ** 2)
    rng = np.random.default_rng(0)
    given = {"m": rng.normal(size=(3, 2, 2)), "b": rng.normal(size=(3, 2)), "rates": np.ones(3)}
    gradient = tc.grad(e, m)
    np.testing.assert_allclose(compiled(gradient)(given), gradient(given), rtol=1e-12)
