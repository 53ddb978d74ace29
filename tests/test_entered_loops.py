"""What few programs enter, of loops: choices in steps, endings, guards, convolutions."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.signal

import tcalc as tc
from tcalc.accumulation.orders import loop_operator
from tcalc.graph.nodes import postorder
from tcalc.loops.convolutions import convolved

N = 5


class Given(NamedTuple):
    """What steps read: expressions, or numbers."""

    x: Any
    y: Any
    s: Any
    c: Any
    k: Any
    X: Any
    Y: Any


GIVEN = Given(
    tc.var("x", "n"), tc.var("y", "n"), tc.var("s"), tc.var("c"), tc.var("k", integer=True),
    tc.var("X", ("m", "m")), tc.var("Y", ("m", "m")),
)  # fmt: skip
DATA = Given(
    np.array([0.5, -0.2, 0.7, 1.1, 0.3]), np.array([0.6, 2.2, 1.4, -0.4, 1.0]), 0.4, 1.3, 2,
    np.arange(9.0).reshape(3, 3) / 4, np.cos(np.arange(9.0)).reshape(3, 3),
)  # fmt: skip
Body = Callable[[Any, Any, Any, Given], Any]

#: States at first, and steps in one spelling for expressions and numbers.
STEPS: dict[str, tuple[Callable[[Given], Any], Body]] = {
    "a choice that is transposed": (
        lambda g: g.X, lambda np, S, i, g: np.where(g.x[i] > 0.4, S.T + g.X, S.T + g.Y * g.x[i]).T),
    "another for each entry": (
        lambda g: g.X,
        lambda np, S, i, g: np.where(g.x[i] * g.X > g.Y, S.T + g.X, S.T - g.Y * g.x[i]).T),
    "one that is transposed at each step": (
        lambda g: g.X, lambda np, S, i, g: np.where(g.x[i] + g.Y > g.X, S + g.X, S + g.Y).T),
    "another value than the one compared": (
        lambda g: g.c - 2, lambda np, S, i, g: np.where(g.x[i] > S, g.y[i], S)),
    "the value of a state": (
        lambda g: (g.c - 2, g.s),
        lambda np, S, i, g: (
            np.where(g.x[i] + S[1] > S[0], g.x[i] + S[1], S[0]), S[1] + g.y[i] * 0.1)),
    "one change at two steps": (
        lambda g: (g.c, g.s),
        lambda np, S, i, g: (np.where(np.equal(i, g.k), g.x[i] + S[1], S[0]),
                             np.where(np.equal(i, g.k + 1), g.y[i] * S[0], S[1]))),
    "one change of two states at a step": (
        lambda g: (g.c, g.s),
        lambda np, S, i, g: (np.where(np.equal(i, g.k), g.x[i] + S[1] ** 2, S[0]),
                             np.where(np.equal(i, g.k), np.sin(g.y[i] * S[0]), S[1]))),
    "one change where twice the index is a number": (
        lambda g: (g.c, g.s),
        lambda np, S, i, g: (np.where(np.equal(2 * i - 1, g.k + 1), g.x[i] + S[1], S[0]),
                             np.where(np.equal(2 * i - 1, g.k + 1), g.y[i] * S[0], S[1]))),
    "changes at the first steps": (
        lambda g: g.c, lambda np, S, i, g: np.where(np.less(i, g.k), 2 * g.x[i], S)),
    "changes of two states at the first steps": (
        lambda g: (g.c, g.s),
        lambda np, S, i, g: (np.where(np.less(i, g.k), g.x[i] * S[1], S[0]),
                             np.where(np.less(i, g.k), np.sin(S[0]), S[1]))),
    "a state that stays, as simplified": (
        lambda g: (g.c, g.s),
        lambda np, S, i, g: (S[0] * S[1] + g.x[i], np.log(np.exp(S[1])))),
    "a state that stays because another does": (
        lambda g: (g.c, g.s, g.c),
        lambda np, S, i, g: (S[0] * S[1] + g.x[i], S[1] + np.log(np.exp(S[2])) - S[2],
                             np.log(np.exp(S[2])))),
}  # fmt: skip


def total(np: Any, states: Any) -> Any:
    parts = states if isinstance(states, tuple) else (states,)
    return sum(np.sum(np.sin((k + 1) * part)) for k, part in enumerate(parts))


def stepped(first: Callable[[Given], Any], body: Body, given: Given) -> Any:
    states = first(given)
    for i in range(N):
        states = body(np, states, i, given)
    return states


@pytest.mark.parametrize("name", STEPS)
@pytest.mark.parametrize("k", [-1, 0, 2, 4, 5])
def test_steps_that_choose(name: str, k: int) -> None:
    """As many Python steps, and differences of them by what the steps read."""
    first, body = STEPS[name]
    e = tc.fold(lambda states, i: body(tc, states, i, GIVEN), first(GIVEN), "n")
    at = DATA._replace(k=k)
    arrays = at._asdict()
    wanted = stepped(first, body, at)
    results = list(zip(e, wanted, strict=True)) if isinstance(wanted, tuple) else [(e, wanted)]
    for found, want in results:
        np.testing.assert_allclose(found(**arrays), want, rtol=1e-13)
    loss = total(tc, e)
    for by in ("x", "s", "c"):
        if by not in loss.variables:
            continue
        slopes = tc.derivative(loss, by)(**arrays)
        for place in np.ndindex(np.shape(slopes)):
            ends = []
            for h in (1e-6, -1e-6):
                moved = np.array(arrays[by], float)
                moved[place] += h
                moved_given = at._replace(**{by: moved})
                ends.append(total(np, stepped(first, body, moved_given)))
            assert np.asarray(slopes)[place] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)


@pytest.mark.parametrize(("until", "steps"), [(0, 4), (1, 0), (0.0, 4), (-2, 0)])
def test_endings_at_a_number(until: float, steps: int) -> None:
    """Never, or before the first step."""
    s, c = GIVEN.s, GIVEN.c
    found = tc.fold(lambda a, i: a * c + i, s, until=lambda a: until, limit=4)
    state, count, met = (e(**{name: getattr(DATA, name) for name in e.variables}) for e in found)
    wanted = 0.4
    for i in range(steps):
        wanted = wanted * 1.3 + i
    assert (count, met) == (steps, until != 0)
    assert state == pytest.approx(wanted)


def test_checkpoints_of_a_number_of_steps_without_divisors() -> None:
    """What whole stretches leave are the last steps; backward, the first."""
    n, w = 37, tc.var("w")
    x = tc.var("x", n)
    data = np.sin(np.arange(37.0))

    def last(w: float, data: Any) -> Any:
        state = 0.1
        for item in data:
            state = np.tanh(w * state + item)
        return state

    for given, order in ((x, data), (x[::-1], data[::-1])):
        e = tc.fold(lambda a, i, given=given: tc.tanh(w * a + given[i]), 0.1, n, checkpoint=True)  # type: ignore[misc]
        assert e(w=0.7, x=data) == pytest.approx(last(0.7, order))
        slope = (last(0.7 + 1e-6, order) - last(0.7 - 1e-6, order)) / 2e-6
        assert tc.derivative(e, w)(w=0.7, x=data) == pytest.approx(slope, rel=1e-7)


@pytest.mark.parametrize("turned", [False, True])
def test_stretches_that_leave_a_rest(turned: bool) -> None:
    """Of a number of steps that is prime, where memory chooses checkpoints."""
    n, w, x = 1009, tc.var("w", (4, 4)), tc.var("x", ("n", 4))
    read = x[::-1] if turned else x
    states = tc.fold(lambda a, i: tc.tanh(w @ a + read[i]), np.full(4, 0.1), "n")
    gradient = tc.grad(tc.sum(states**2), ("w", "x"))
    rng = np.random.default_rng(2)
    arrays = {"w": rng.normal(size=(4, 4)) / 3, "x": rng.normal(size=(n, 4))}
    saving = tc.compile(gradient, memory_limit=4 * n * 4 * 8)
    assert "checkpoints" in saving.plan_for(x=(n, 4)).note
    rows = arrays["x"][::-1] if turned else arrays["x"]
    held = [np.full(4, 0.1)]
    for row in rows:
        held.append(np.tanh(arrays["w"] @ held[-1] + row))
    bar, in_w, in_x = 2 * held[-1], np.zeros((4, 4)), np.zeros((n, 4))
    for k in range(n - 1, -1, -1):
        in_x[k] = bar * (1 - held[k + 1] ** 2)
        in_w += np.outer(in_x[k], held[k])
        bar = arrays["w"].T @ in_x[k]
    found_w, found_x = saving(arrays)
    np.testing.assert_allclose(found_w, in_w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found_x[::-1] if turned else found_x, in_x, rtol=1e-9, atol=1e-12)


# --- accesses under conditions --------------------------------------------------------------------


def test_guarded_accesses() -> None:
    """Under a condition on the index alone, however its axes are repeated."""
    x, s, X, z = GIVEN.x, GIVEN.s, GIVEN.X, tc.var("z", 3)
    found = tc.build("n", lambda i: tc.where(i > 0, x[i - 1], s))
    np.testing.assert_array_equal(found(x=DATA.x, s=0.4), [0.4, *DATA.x[:-1]])
    repeated = tc.build(
        "n", lambda i: tc.where(tc.broadcast_to(tc.less(0, i), (3,)), x[i - 1] * z, -z)
    )
    wanted = np.outer([-1, *DATA.x[:-1]], [1, 2, 3])
    np.testing.assert_allclose(repeated(x=DATA.x, z=[1.0, 2, 3]), wanted)
    whole = tc.build("n", lambda i: tc.where((i > 0) * tc.ones(("m", "m")) > 0, x[i - 1] * X, -X))
    np.testing.assert_allclose(
        whole(x=DATA.x, X=DATA.X), np.multiply.outer([-1, *DATA.x[:-1]], DATA.X)
    )


def test_accesses_out_of_range_under_conditions() -> None:
    """Refused where the condition holds for such an index, and not where it never holds."""
    w, s = tc.var("w", 3), tc.var("s")
    with pytest.raises(tc.RangeError, match=r"index 4 is out of range .* where i >= 1"):
        tc.build(3, lambda i: tc.where(i > 0, w[i + 2], s))
    never = tc.build(3, lambda i: tc.where(i > 5, w[i + 2], s + i))
    np.testing.assert_array_equal(never(w=[1.0, 2, 3], s=0.5), [0.5, 1.5, 2.5])
    wide = tc.var("w", 5)
    squares = tc.build(3, lambda i: tc.where(i < 2, wide[i * i], s))
    np.testing.assert_array_equal(squares(w=[1.0, 2, 3, 4, 5], s=0.5), [1, 2, 0.5])


def test_bodies_without_names_of_parameters() -> None:
    """What Python tells no signature of is called all the same, and errors name the index."""
    with pytest.raises(TypeError):
        tc.build("n", max)
    found = tc.build("n", operator.attrgetter("T"))
    np.testing.assert_array_equal(found(n=3), [0, 1, 2])


# --- convolutions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize("traced", [False, True])
def test_convolutions_along_some_axes(mode: str, traced: bool) -> None:
    """Along none products are left; along all they are those of SciPy."""
    a, b = np.sin(np.arange(20.0)).reshape(4, 5), np.cos(np.arange(6.0)).reshape(2, 3)

    def value(*args: Any) -> Any:
        found = convolved(tc.var("a", a.shape) if traced else a, *args)
        return found(a=a) if traced else found

    np.testing.assert_allclose(value(b, mode), scipy.signal.convolve(a, b, mode), atol=1e-12)
    right = np.cos(np.arange(15.0)).reshape(5, 3)
    np.testing.assert_allclose(value(right, mode, ((), ()), ((1,), (0,))), a @ right, atol=1e-12)
    np.testing.assert_allclose(value(b, mode, ((), ())), np.multiply.outer(a, b), atol=1e-12)


def test_convolutions_that_do_not_exist() -> None:
    a = tc.var("a", (2, 5))
    with pytest.raises(tc.ShapeError, match="covers the other on all axes"):
        convolved(a, np.ones((3, 2)), "valid")
    with pytest.raises(tc.ShapeError, match="arrays of 2 and 1 axes"):
        convolved(a, np.ones(3), "valid")


@pytest.mark.parametrize("once", [lambda i: 2 * i + 1, lambda i: 3 - i, lambda i: i])
def test_states_that_change_at_one_value_of_an_affine_index_need_no_loop(
    once: Callable[[Any], Any],
) -> None:
    a, t, k = tc.var("a"), tc.var("t"), tc.var("k")
    found = tc.fold(lambda s, i: tc.where(tc.equal(once(i), k), tc.sin(s) + t * i, s), a, "n")
    assert not any(map(loop_operator, postorder([found])))
    for n in range(6):
        for at in range(8):
            state = 0.3
            for i in range(n):
                state = np.sin(state) + 2.0 * i if once(i) == at else state
            np.testing.assert_allclose(found(a=0.3, t=2.0, k=at, n=n), state, rtol=1e-14)
