"""Loops in loops: of as many steps as an index says, and of optimisers that are differentiated."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc

BACKENDS = ["functional", "numpy", "c"]
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(6, 3)), np.sign(RNG.normal(size=6))


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)


def plain_fold(step: Any, init: Any, n: int, **_: Any) -> Any:
    for i in range(n):
        init = step(init, i)
    return init


def triangle(fold: Any, sin: Any, x: Any, w: Any) -> Any:
    """The length is an index, and affine forms of indices."""

    def row(total: Any, i: Any) -> Any:
        below = fold(lambda s, j: sin(s * w + x[j]), x[i], i)
        upto = fold(lambda s, j: sin(s + x[j] * i), total, i + 1)
        rest = fold(lambda s, j: sin(s * x[j]) + j, w, 4 - i)
        return below * upto + rest

    return fold(row, 0.1, 5)


def counted(fold: Any, sin: Any, x: Any, w: Any) -> Any:
    """The length is computed: none where it is below 0, and not more than the limit."""
    return fold(
        lambda s, i: sin(s + fold(lambda r, j: r * w + x[j], s, i * i - 2, limit=12)), 0.3, 4
    )


CASES: dict[str, tuple[Callable[..., Any], int]] = {
    "triangle": (triangle, 5),
    "counted": (counted, 12),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_lengths_are_indices(name: str, backend: str) -> None:
    make, n = CASES[name]
    x, w = tc.var("x", n), tc.var("w")
    given = RNG.normal(size=n)
    e = make(tc.fold, tc.sin, x, w)

    def plain(x: Any, w: Any) -> Any:
        return make(plain_fold, jnp.sin, x, w)

    wanted = [e, *tc.grad(e, (x, w)), tc.hessian(e, x), tc.grad(e, x, mode="forward")]
    found = tc.compile(wanted, backend=backend)(x=given, w=0.7)
    by_x, by_w = jax.grad(plain, (0, 1))(given, 0.7)
    others = [plain(given, 0.7), by_x, by_w, jax.hessian(plain)(given, 0.7), by_x]
    for one, other in zip(found, others, strict=True):
        close(one, other)


@pytest.mark.parametrize("backend", BACKENDS)
def test_rows_of_a_triangle_are_a_batch(backend: str) -> None:
    """Of named extent; histories have zeros behind the steps that are made."""
    x = tc.var("x", "n")
    rows = tc.build("n", lambda i: tc.fold(lambda s, j: s * x[j], 1.0, i + 1, history=True))
    given = np.array([2.0, 3.0, 0.5, -1.0])
    wanted = np.tril(np.tile(np.cumprod(given), (4, 1)))
    close(tc.compile(rows, backend=backend)(x=given), wanted)
    slope = tc.compile(tc.grad(tc.sum(rows), x), backend=backend)(x=given)
    total = jax.grad(lambda x: jnp.sum(jnp.cumprod(x) * jnp.arange(4, 0, -1)))(given)
    close(slope, total)


def test_lengths_that_are_none() -> None:
    a, x = tc.var("a"), tc.var("x", 4)
    step = lambda s, i: s + a  # noqa: E731
    for wrong in (a, x, tc.var("k", 3, integer=True), tc.const(1.5)):
        with pytest.raises(TypeError, match="the number of steps is one integer"):
            tc.fold(step, 0.0, wrong)
    k = tc.var("k", 3, integer=True)
    with pytest.raises(TypeError, match="say limit="):
        tc.fold(step, 0.0, k[0])
    end = tc.fold(step, 0.0, k[0], limit=5)
    assert [float(end(a=2.0, k=[n, 0, 0])) for n in (-1, 0, 3, 9)] == [0, 0, 6, 10]
    with pytest.raises(TypeError, match="no checkpoints"):
        tc.fold(step, 0.0, k[0], limit=5, checkpoint=True)


# --- derivatives in steps -------------------------------------------------------------------------


def of_library(xp: Any, w: Any, x: Any, y: Any, decay: Any) -> Any:
    return xp.sum(xp.log(1 + xp.exp(-y * (x @ w)))) + decay * xp.sum(w * w)


def descent(loss: Any, rate: Any, library: Any) -> Any:
    return lambda w, i: w - rate * library.grad(loss, w)


def newton(loss: Any, rate: Any, library: Any) -> Any:
    return lambda w, i: w - rate * library.solve(library.hessian(loss, w), library.grad(loss, w))


class Ours:
    solve = staticmethod(tc.linalg.solve)

    @staticmethod
    def grad(loss: Any, w: Any) -> Any:
        return tc.grad(loss(w), w)

    @staticmethod
    def hessian(loss: Any, w: Any) -> Any:
        return tc.hessian(loss(w), w)


class Jax:
    solve = staticmethod(jnp.linalg.solve)

    @staticmethod
    def grad(loss: Any, w: Any) -> Any:
        return jax.grad(loss)(w)

    @staticmethod
    def hessian(loss: Any, w: Any) -> Any:
        return jax.hessian(loss)(w)


@pytest.mark.parametrize("optimiser", [descent, newton])
@pytest.mark.parametrize("until", [False, True])
def test_optimisers_are_differentiated_by_hyperparameters(
    optimiser: Any, until: bool, entries: list[str]
) -> None:
    """On every back end; in C one function, from which Python is not entered."""
    x, y, rate, decay = tc.var("x", ("m", "n")), tc.var("y", "m"), tc.var("rate"), tc.var("decay")

    def loss(w: Any) -> Any:
        return of_library(tc, w, x, y, decay)

    step, start = optimiser(loss, rate, Ours), tc.zeros("n")
    if until:
        near = lambda w: tc.sum(Ours.grad(loss, w) ** 2) < 4e-3  # noqa: E731
        last, steps, met = tc.fold(step, start, until=near, limit=60)
    else:
        last, steps, met = tc.fold(step, start, 4), 4, 1
    e = loss(last)
    wanted = [e, *tc.grad(e, (rate, decay)), tc.hessian(e, rate)]
    arrays = {"x": X, "y": Y, "rate": 0.3, "decay": 0.1}
    count = int(steps(arrays)) if until else 4
    assert not until or (met(arrays) == 1 and 3 < count < 60)

    def plain(rate: Any, decay: Any) -> Any:
        def loss(w: Any) -> Any:
            return of_library(jnp, w, X, Y, decay)

        return loss(plain_fold(optimiser(loss, rate, Jax), jnp.zeros(3), count))

    others = [plain(0.3, 0.1), *jax.grad(plain, (0, 1))(0.3, 0.1), jax.hessian(plain)(0.3, 0.1)]
    for backend in BACKENDS:
        found = tc.compile(wanted, backend=backend)(arrays)
        for one, other in zip(found, others, strict=True):
            close(one, other)
    assert not entries


def test_states_that_are_indices_stay_in_c(entries: list[str]) -> None:
    """A walk along a table of successors, until it is back; its values are differentiated."""
    after, x, k = tc.var("after", 6, integer=True), tc.var("x", 6), tc.var("k", integer=True)
    at, product = tc.fold(lambda s, i: (after[s[0]], s[1] * x[s[0]]), (2, 1.0), k)
    round_trip = tc.fold(
        lambda s, i: (after[s[0]], s[1] * x[s[0]], 0), (after[2], x[2], 1),
        until=lambda s: s[0] == 2, limit=10,
    )  # fmt: skip
    wanted = [product, tc.grad(product, x), at, tc.grad(round_trip.state[1], x), round_trip.steps]
    arrays = {"x": np.array([2.0, 3, 5, 7, 11, 13]), "after": np.array([1, 4, 0, 3, 2, 5]), "k": 3}
    # 2, 0, 1, 4 and again 2
    for backend in BACKENDS:
        value, slope, place, around, steps = tc.compile(wanted, backend=backend)(arrays)
        assert (float(value), float(place), float(steps)) == (30.0, 4.0, 3.0)
        close(slope, [15, 10, 6, 0, 0, 0])
        close(around, 330 / arrays["x"] * np.array([1, 1, 1, 0, 1, 0]))
    assert not entries


INDICES: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "affine": lambda xp, x, s, i: x[2 * s + i],
    "product": lambda xp, x, s, i: x[s * i],
    "from the end": lambda xp, x, s, i: x[s - 4],
    "least": lambda xp, x, s, i: x[xp.minimum(3 * s, i + 1)],
    "condition": lambda xp, x, s, i: x[xp.where(s > i, s, 2 * i)],
    "comparison": lambda xp, x, s, i: x[(s == 1) + 2 * (i <= 1)],
    "distance": lambda xp, x, s, i: x[abs(s - 2 * i)],
}


@pytest.mark.parametrize("name", INDICES)
def test_integers_of_states_are_computed_in_c(name: str, entries: list[str]) -> None:
    x, after = tc.var("x", 9), tc.var("after", 3, integer=True)
    index = INDICES[name]
    last = tc.fold(lambda s, i: (after[s[0]], s[1] * index(tc, x, s[0], i)), (1, 1.0), 4)[1]
    given, table, state, total = RNG.normal(size=9), [1, 2, 0], 1, 1.0
    for i in range(4):
        state, total = table[state], total * index(np, given, state, i)
    for backend in BACKENDS:
        found = tc.compile([last, tc.grad(last, x)], backend=backend)(x=given, after=table)
        close(found[0], total)
        close(found[1] @ given, 4 * total)  # it is homogeneous
    assert not entries


def test_loops_in_loops_of_no_steps() -> None:
    """The step counts of the inner ones are none too, as are those of an empty batch."""
    a, k = tc.var("a"), tc.var("k", integer=True)
    for inner in (lambda i: i, lambda i: i + 1, lambda i: 2 * i + 1):
        loop = tc.fold(lambda s, i, n=inner: tc.fold(lambda t, j: tc.sin(t), s, n(i)), a, "n")
        assert loop(a=0.3, n=0) == 0.3
        assert tc.grad(loop, a)(a=0.3, n=0) == 1
        wanted = 0.3
        for i in range(3):
            for _ in range(inner(i)):
                wanted = np.sin(wanted)
        np.testing.assert_allclose(loop(a=0.3, n=3), wanted, rtol=1e-14)
    lengths = tc.fold(lambda s, i: tc.sin(s), a, k + 1, limit=5)
    ending = tc.fold(lambda s, i: tc.sin(s), a, until=lambda s: s < 0.5, limit=5).state
    nothing = {"k": np.zeros(0, int), "a": np.zeros(0)}
    assert tc.vmap(lengths, {"k": 0, "a": 0}, size="B")(nothing).shape == (0,)
    assert tc.vmap(ending, {"a": 0}, size="B")(a=np.zeros(0)).shape == (0,)


def by_hand(x: Any, counts: Any) -> Any:
    """The loop below, of all its numbers in a vector, the last of which every step adds."""
    s: Any = 0.5
    for row, count in zip(x[:-1].reshape(2, -1), counts, strict=True):
        r = s
        for a in row[:count]:
            r = x[-1] + np.sin(r) * a
        s = x[-1] + 0.4 * s * r
    return s


def slopes(x: Any, counts: Any) -> Any:
    """The gradient by complex steps."""
    return np.array([by_hand(x + 1e-20j * unit, counts).imag / 1e-20 for unit in np.eye(len(x))])


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("limit", [1, 2, 3])
def test_loops_in_loops_that_data_end(limit: int, backend: str) -> None:
    """Also where all steps are made: what is left is the state behind the last one."""
    A, v, k = tc.var("A", (2, limit)), tc.var("v"), tc.var("k", 2, integer=True)

    def inner(i: Any) -> Any:
        return lambda r, j: v + tc.sin(r) * A[i, j]

    e = tc.fold(lambda s, i: v + 0.4 * s * tc.fold(inner(i), s, k[i], limit=limit), 0.5, 2)
    by_v = tc.grad(e, v)
    outputs = [e, tc.grad(e, A), by_v, tc.jacobian(by_v, A), tc.hessian(e, v)]
    step = tc.compile(outputs, backend=backend)
    for counts in itertools.product(range(limit + 1), repeat=2):
        a, b, h = RNG.normal(size=(2, limit)), 0.3, np.append(np.zeros(2 * limit), 1e-6)
        x = np.append(a, b)
        second = (slopes(x + h, counts) - slopes(x - h, counts)) / 2e-6
        wanted = np.concatenate([[by_hand(x, counts)], slopes(x, counts), second])
        found = np.concatenate([np.ravel(part) for part in step(A=a, v=b, k=list(counts))])
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-7)
