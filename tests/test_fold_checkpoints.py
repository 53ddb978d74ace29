"""Folds with checkpoints: the numbers of those without, in memory for √n states."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc

BACKENDS = ["numpy", "c"]
H, D = 8, 3


def rnn(n: int, checkpoint: bool | int) -> tuple[tc.Expr, dict[str, Any]]:
    x, W, U = tc.var("x", (n, D)), tc.var("W", (H, H)), tc.var("U", (H, D))
    last = tc.fold(
        lambda s, t: tc.tanh(W @ s + U @ x[t]), tc.full(H, 0.1), n, checkpoint=checkpoint
    )
    rng = np.random.default_rng(n)
    arrays = {
        "x": rng.normal(size=(n, D)),
        "W": rng.normal(size=(H, H)) / 3,
        "U": rng.normal(size=(H, D)),
    }
    return tc.sum(last * last), arrays


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(("n", "length"), [(1, True), (2, True), (7, 3), (12, True), (13, 1)])
def test_values_and_gradients_are_those_without(n: int, length: bool | int, backend: str) -> None:
    """Against the derivative written as a loop backward."""
    e, arrays = rnn(n, length)
    value, (in_W, in_x) = tc.compile([e, tc.grad(e, ("W", "x"))], backend=backend)(arrays)
    states = [np.full(H, 0.1)]
    for row in arrays["x"]:
        states.append(np.tanh(arrays["W"] @ states[-1] + arrays["U"] @ row))
    assert value == pytest.approx(states[-1] @ states[-1])
    bar, wanted_W, wanted_x = 2 * states[-1], np.zeros((H, H)), np.zeros((n, D))
    for t in range(n - 1, -1, -1):
        inner = bar * (1 - states[t + 1] ** 2)
        wanted_W += np.outer(inner, states[t])
        wanted_x[t] = arrays["U"].T @ inner
        bar = arrays["W"].T @ inner
    np.testing.assert_allclose(in_W, wanted_W, rtol=1e-9, atol=1e-13)
    np.testing.assert_allclose(in_x, wanted_x, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
def test_second_derivatives_and_batches(backend: str) -> None:
    x = tc.var("x", 6)

    def total(checkpoint: bool) -> tc.Expr:
        a, b = tc.fold(
            lambda s, t: (tc.sin(s[0] * x[t]) + s[1], s[0] * s[1] * 0.5),
            (tc.const(0.3), tc.const(0.7)), 6, checkpoint=checkpoint,
        )  # fmt: skip
        return a * b + a

    values = np.random.default_rng(0).normal(size=(4, 6))
    plain, saved = total(False), total(True)
    for make in (lambda e: tc.hessian(e, x), lambda e: tc.jvp(tc.grad(e, x), x, tc.ones(6))):
        found = tc.compile(make(saved), backend=backend)(x=values[0])
        np.testing.assert_allclose(found, tc.compile(make(plain))(x=values[0]), rtol=1e-9)
    many = tc.compile(tc.vmap(tc.grad(saved, x), {"x": 0}, size="B"), backend=backend)(x=values)
    wanted = [tc.compile(tc.grad(plain, x))(x=row) for row in values]
    np.testing.assert_allclose(many, wanted, rtol=1e-9)


@pytest.mark.parametrize("n", [400, 9999, 10_000])
def test_memory_is_that_of_the_root_of_all_states(n: int) -> None:
    """Predicted: the last states of stretches, states of one stretch, and what is made of these."""
    W = tc.var("W", (H, H))
    peaks = []
    for checkpoint in (True, False):
        last = tc.fold(lambda s, t: tc.tanh(W @ s), tc.ones(H), n, checkpoint=checkpoint)
        plan = tc.compile(tc.grad(tc.sum(last * last), W)).plan_for(W=(H, H))
        peaks.append(plan.peak_bytes)
    state = H * 8
    assert peaks[0] <= 12 * np.sqrt(n) * state
    assert peaks[1] >= n * state


def held(plan: Any) -> int:
    """Entries of the states that loops hold, those of loops inside of them included."""
    loops = [step for step in plan.steps if step.kind == "loop"]
    found = 0
    for step in loops:
        op, *params, _, read, inner = step.params
        found += op.iteration(tuple(params), read).entries({}) + held(inner)
    return found


@pytest.mark.parametrize("n", [10_000, 99_999, 100_000])
def test_at_most_three_roots_of_all_states_are_held(n: int) -> None:
    """The first of each stretch, those of a stretch, and cotangents of these."""
    W = tc.var("W", (H, H))
    last = tc.fold(lambda s, t: tc.tanh(W @ s), tc.ones(H), n, checkpoint=True)
    plan = tc.compile(tc.grad(tc.sum(last * last), W)).plan_for(W=(H, H))
    assert held(plan) <= (3 * np.sqrt(n) + 3 * H) * H


def net(n: Any, history: bool) -> tc.Expr:
    """Of the last state, or a loss of all states."""
    W, x = tc.var("W", (H, H)), tc.var("x", (n, H))
    states = tc.fold(lambda s, t: tc.tanh(W @ s + x[t]), tc.full(H, 0.1), n, history)
    return tc.sum(states * states)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("history", [False, True])
@pytest.mark.parametrize(("n", "named"), [(400, True), (400, False), (1003, True)])
def test_a_limit_of_memory_chooses_checkpoints(
    n: int, named: bool, history: bool, backend: str
) -> None:
    gradient = tc.grad(net("n" if named else n, history), ("W", "x"))
    rng = np.random.default_rng(n)
    arrays = {"W": rng.normal(size=(H, H)) / 3, "x": rng.normal(size=(n, H))}
    plain = tc.compile(gradient, backend=backend)
    peak = plain.plan_for(x=(n, H)).peak_bytes
    limit = 4 * n * H * 8  # the result by x, what is made into it, and little else
    assert peak > limit
    saving = tc.compile(gradient, backend=backend, memory_limit=limit)
    plan = saving.plan_for(x=(n, H))
    assert plan.peak_bytes <= limit
    assert "checkpoints" in plan.note
    for one, other in zip(saving(arrays), plain(arrays), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [64, 256])
def test_second_derivatives_within_a_limit(n: int) -> None:
    """Of fewer steps than an extent is taken for where modes are compared, and of more."""
    hessian = tc.hessian(net("n", False), "W")
    x = np.random.default_rng(1).normal(size=(n, H))
    arrays = {"W": np.eye(H) / 2, "x": x}
    plain = tc.compile(hessian)
    saving = tc.compile(hessian, memory_limit=plain.plan_for(x=(n, H)).peak_bytes - 1)
    assert "checkpoints" in saving.plan_for(x=(n, H)).note
    np.testing.assert_allclose(saving(arrays), plain(arrays), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n", [99_999, 100_000])
def test_within_a_limit_three_roots_of_all_states_are_held(n: int) -> None:
    for history in (False, True):
        gradient = tc.grad(net("n", history), "W")
        plan = tc.compile(gradient, memory_limit="1MiB").plan_for(x=(n, H))
        assert plan.peak_bytes <= 2**20
        assert held(plan) <= (3 * np.sqrt(n) + 4 * H) * H


def test_a_plan_that_fits_and_one_that_no_checkpoint_helps() -> None:
    W = tc.var("W", (H, H))
    gradient = tc.grad(net("n", False), "W")
    roomy = tc.compile(gradient, memory_limit="1GiB").plan_for(x=(400, H))
    assert "checkpoints" not in roomy.note
    assert roomy.peak_bytes == tc.compile(gradient).plan_for(x=(400, H)).peak_bytes
    with pytest.raises(tc.MemoryLimitError, match="needed"):
        tc.compile(gradient, memory_limit=1000)(W=np.eye(H), x=np.ones((400, H)))
    with pytest.raises(tc.MemoryLimitError, match="needed"):
        tc.compile(W @ W, memory_limit=100)(W=np.eye(H))


def test_explain_says_so() -> None:
    e = net("n", False)
    plain = tc.explain(e, "W", n=10_000)
    saving = tc.explain(e, "W", n=10_000, memory_limit="1MiB")
    assert "checkpoints" not in str(plain)
    assert "reverse: loops with checkpoints" in str(saving)
    peaks = [{row.mode: row.peak_bytes for row in made.rows}["reverse"] for made in (plain, saving)]
    assert peaks[1] < 2**20 < peaks[0]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", [(6, 4), (4, 6, 3), (6,)])
def test_axes_of_arrays_are_taken_apart_where_they_lie(shape: Any, backend: str) -> None:
    """An axis before others is read as two: nothing is moved for that."""
    x = tc.var("x", shape)
    axis = shape.index(6)
    parts = (*shape[:axis], 2, 3, *shape[axis + 1 :])
    array = np.random.default_rng(0).normal(size=shape)
    for e, wanted in (
        (tc.sin(tc.reshape(x, parts)), np.sin(array.reshape(parts))),
        (tc.reshape(x.T, parts[::-1]) * 2, 2 * array.T.reshape(parts[::-1])),
        (tc.sum(tc.reshape(x, parts), axis=axis), array.reshape(parts).sum(axis=axis)),
    ):
        step = tc.compile(e, backend=backend)
        np.testing.assert_allclose(step(x=array), wanted, rtol=1e-12)
        assert len(shape) == 1 or "merge_axes" not in str(step.plan)


def test_what_has_no_checkpoints() -> None:
    x = tc.var("x", "n")
    for options in ({"n": "n"}, {"n": 4, "history": True}):
        with pytest.raises(TypeError, match="no checkpoints"):
            tc.fold(lambda s, t: s * x[t], 1.0, checkpoint=True, **options)
    with pytest.raises(ValueError, match="one or more"):
        tc.fold(lambda s, t: s * 2, 1.0, 4, checkpoint=-1)
