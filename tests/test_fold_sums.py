"""Sums over the steps of a loop are made in it where no history is needed then; numbers by jax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Expr, Part, postorder
from tcalc.graph.normal import bare
from tcalc.plan.lowering.spellings import summed_inside
from tcalc.support.machine import Machine

N, T = 4, 5
SIZES = {"n": N, "T": T}
RNG = np.random.default_rng(0)
ARRAYS = {
    "x": RNG.uniform(0.5, 1.5, N),
    "h": RNG.uniform(0.1, 0.3, T),
    "A": RNG.normal(size=(T, N)),
}
INPUTS = {"x": ("n",), "h": ("T",), "A": ("T", "n")}


def shifted(xp: Any, s: Any) -> Any:
    return xp.concatenate([xp.ones(1), s[:-1]])


STEPS: dict[str, Callable[..., Any]] = {
    "entrywise": lambda xp, s, x, h, a: s + h * xp.sin(x * s) * a,
    "quotients": lambda xp, s, x, h, a: (s + a) / (1 + x * x * h),
    "shifts": lambda xp, s, x, h, a: s + h * x * shifted(xp, s + h / 2 * x * shifted(xp, s)),
    "inner products": lambda xp, s, x, h, a: xp.tanh(s * (x @ s) + a),
    "sums": lambda xp, s, x, h, a: s * 0.5 + xp.sum(x * s * h) / 4,
}


def histories(name: str, history: bool = True) -> tuple[Expr, Expr, Expr, Expr]:
    """The state after every step or the last one, and the variables."""
    x, h, A = (tc.var(name, shape) for name, shape in INPUTS.items())
    step = STEPS[name]
    states = tc.fold(lambda s, t: step(tc, s, x, h[t], A[t]), tc.ones("n"), "T", history)
    return states, x, h, A


def by_jax(name: str, loss: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def value(x: Any, h: Any, A: Any) -> Any:
        def step(s: Any, row: Any) -> Any:
            after = STEPS[name](jnp, s, x, *row)
            return after, after

        return loss(jax.lax.scan(step, jnp.ones(N), (h, A))[1], A)

    return value


def inside(e: Expr) -> Expr:
    (found,) = summed_inside([bare(e)], SIZES, Machine(call=1))
    return found


def kept(e: Expr) -> int:
    """How many histories are read."""
    return sum([
        isinstance(node, Part) and node.index >= node.args[0].params[0].results
        for node in postorder([bare(e)])
    ])  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_a_loss_of_all_steps_needs_no_history(name: str) -> None:
    states, _, _, A = histories(name)
    e = tc.sum((states - A) ** 2) + 3 * tc.sum(A * states)
    found = inside(e)
    assert kept(e)
    assert not kept(found)
    wanted = by_jax(name, lambda s, A: jnp.sum((s - A) ** 2) + 3 * jnp.sum(A * s))(**ARRAYS)
    np.testing.assert_allclose(found(**ARRAYS), wanted, rtol=1e-12)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", STEPS)
def test_gradients_add_up_step_by_step(name: str, backend: str) -> None:
    last, x, h, A = histories(name, history=False)
    e = tc.sum(last**2)
    wanted = jax.grad(by_jax(name, lambda s, A: jnp.sum(s[-1] ** 2)), (0, 1, 2))(*ARRAYS.values())
    for made in (lambda g: g, inside):
        gradients = [made(tc.grad(e, v)) for v in (x, h, A)]
        found = tc.compile(gradients, backend=backend)(**ARRAYS)
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert kept(inside(tc.grad(e, x))) < kept(tc.grad(e, x))


def test_second_derivatives() -> None:
    states, x, _, _ = histories("entrywise")
    hessian = tc.hessian(tc.sum(states), x)
    wanted = jax.hessian(by_jax("entrywise", lambda s, A: jnp.sum(s)))(*ARRAYS.values())
    np.testing.assert_allclose(inside(hessian)(**ARRAYS), wanted, rtol=1e-9)


def test_memory_of_a_loss_is_that_of_two_states() -> None:
    """On the machine whose steps cost no calls; the scanned array is the caller's."""
    states, _, _, A = histories("entrywise")
    peaks = [
        tc.compile(tc.sum((states - A) ** 2), backend="c").plan_for(A=(n, N)).peak_bytes
        for n in (10, 10_000)
    ]
    assert peaks[0] == peaks[1]


def read_twice(states: Expr, x: Expr) -> Expr:
    return tc.concatenate([tc.sum(states, axis=0), states[:, 0]])


def outer_products(states: Expr, x: Expr) -> Expr:
    return tc.einsum("ti,tj->ij", states, tc.sin(states))


def weights_of_the_last_state(states: Expr, x: Expr) -> Expr:
    return tc.sum(tc.exp(states - states[-1]))


def neighbours_in_time(states: Expr, x: Expr) -> Expr:
    return tc.sum(states[1:] * states[:-1])


def products_with_a_matrix(states: Expr, x: Expr) -> Expr:
    return tc.sum(tc.tanh(states @ tc.exp(tc.outer(x, x))))


@pytest.mark.parametrize(
    "read",
    [
        read_twice,
        outer_products,
        weights_of_the_last_state,
        neighbours_in_time,
        products_with_a_matrix,
    ],
)
def test_histories_that_are_needed_stay(read: Callable[[Expr, Expr], Expr]) -> None:
    """Of other steps, of all steps at once, or for products that are quicker of matrices."""
    states, x, _, _ = histories("entrywise")
    e = bare(read(states, x))
    assert inside(e) is e


def test_equal_extents_are_not_taken_for_steps() -> None:
    """Sums over the other axis of a history as long as it is wide."""
    x, A = tc.var("x", "n"), tc.var("A", ("n", "n"))
    states = tc.fold(lambda s, t: tc.sin(s * x + A[t]), tc.ones("n"), "n", history=True)
    arrays = {"x": ARRAYS["x"], "A": ARRAYS["A"][:N]}
    for e in (tc.sum(states, axis=1), tc.sum(states, axis=0), tc.einsum("ti,it->", states, states)):
        np.testing.assert_allclose(inside(e)(**arrays), e(**arrays), rtol=1e-12)


def test_loops_that_end_at_a_condition_keep_rows_that_no_step_made() -> None:
    """cos(0) is one: rows that are not made count as well."""
    a = tc.var("a")
    states = tc.fold(lambda s, t: s * a, 1.0, until=lambda s: s > 4, limit=6, history=True).state
    e = tc.sum(tc.cos(states))
    wanted = sum(np.cos(s) for s in (2, 4, 8, 0, 0, 0))
    assert float(inside(e)(a=2.0)) == pytest.approx(wanted)
