"""Bodies of loops that index NumPy's arrays: numbers of plain loops, wherever the array is read."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tcalc as tc

AROUND = np.random.default_rng(0).normal(size=(5, 3))
PLACES = np.array([2, 0, 1, 2, 1])
W = np.random.default_rng(1).normal(size=3)


def row(t: Any) -> Any:
    return AROUND[t]


def closed() -> Any:
    near = AROUND.copy()
    return lambda s, t: tc.sin(s) + near[t]


def by_default() -> Any:
    return lambda s, t, near=AROUND: tc.sin(s) + near[t]


def by_keyword() -> Any:
    def body(s: Any, t: Any, *, near: Any = AROUND) -> Any:
        return tc.sin(s) + near[t]

    return body


def helped() -> Any:
    def helper(t: Any) -> Any:
        return row(t) if t is None else AROUND[t]

    return lambda s, t: tc.sin(s) + helper(t)


def inside() -> Any:
    near = AROUND.copy()

    def body(s: Any, t: Any) -> Any:
        return tc.sin(s) + tc.build(3, lambda j: near[t, j])

    return body


BODIES = {
    "around": lambda: lambda s, t: tc.sin(s) + AROUND[t],
    "closed": closed,
    "by default": by_default,
    "by keyword": by_keyword,
    "helped": helped,
    "inside": inside,
}


def plainly(w: Any) -> Any:
    for t in range(5):
        w = np.sin(w) + AROUND[t]
    return w


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", BODIES)
def test_states_and_gradients_are_those_of_plain_loops(name: str, backend: str) -> None:
    w = tc.var("w", 3)
    last = tc.fold(BODIES[name](), w, 5)
    np.testing.assert_allclose(tc.compile(last, backend=backend)(w=W), plainly(W))
    slopes = tc.compile(tc.grad(tc.sum(last), w), backend=backend)(w=W)
    steps = [(plainly(W + h).sum() - plainly(W - h).sum()) / 2e-6 for h in 1e-6 * np.eye(3)]
    np.testing.assert_allclose(slopes, steps, rtol=1e-6)
    assert last is tc.fold(lambda s, t: tc.sin(s) + tc.const(AROUND)[t], w, 5)


def test_integers_of_arrays_are_places() -> None:
    x = tc.var("x", 3)
    found = tc.fold(lambda s, t: s * 0.5 + x[PLACES[t]] * PLACES[t], 0.0, 5)
    wanted = 0.0
    for place in PLACES:
        wanted = wanted * 0.5 + W[place] * place
    assert float(found(x=W)) == pytest.approx(wanted)


def test_checkpoints_conditions_and_ranges() -> None:
    w = tc.var("w", 3)
    saved = tc.fold(lambda s, t: tc.sin(s) + AROUND[t], w, 5, checkpoint=2)
    np.testing.assert_allclose(saved(w=W), plainly(W))
    far = np.array([100.0, 3.0])
    ended = tc.fold(
        lambda s, t: (s[0] * 2, s[1]), (w[0], 1), until=lambda s: s[0] > far[s[1]], limit=9
    )
    assert ended.steps(w=[1.0, 0.0, 0.0]) == 2
    np.testing.assert_allclose(tc.build(5, lambda i: AROUND[i] * 2)(), 2 * AROUND)
    with pytest.raises(IndexError):
        tc.fold(lambda s, t: s + AROUND[t], w, 6)


def test_arrays_are_as_before_and_other_errors_stay() -> None:
    before, w = AROUND.copy(), tc.var("w", 3)
    calls = []

    def body(s: Any, t: Any) -> Any:
        calls.append(AROUND)
        return s + AROUND[t]

    tc.fold(body, w, 5)
    assert calls[0] is AROUND
    np.testing.assert_array_equal(AROUND, before)
    with pytest.raises(tc.TraceError, match="truth value"):
        tc.fold(lambda s, t: s + AROUND[0] if s[0] > 0 else s, w, 5)
    with pytest.raises(tc.TraceError, match="const"):
        tc.fold(partial(lambda near, s, t: s + near[t], AROUND), w, 5)


def test_a_body_that_needs_no_constants_is_called_once() -> None:
    calls = []
    tc.fold(lambda s, t: calls.append(t) or s + AROUND[0], tc.var("w", 3), 5)
    assert len(calls) == 1
