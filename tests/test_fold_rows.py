"""Rows of large arrays are made in the steps of loops; numbers by jax."""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph import trees
from tcalc.graph.extents import extent_of
from tcalc.graph.nodes import Apply, Einsum, Expr, Part, postorder
from tcalc.graph.normal import bare
from tcalc.graph.operators import Loop
from tcalc.plan.lowering.factoring import factored
from tcalc.plan.lowering.spellings import rows_inside
from tcalc.plan.steps import VIEW, Plan
from tcalc.support.machine import Machine

N, K = 6, 3
SIZES = {"n": N, "k": K}
RNG = np.random.default_rng(0)
ARRAYS = {
    "W": RNG.normal(size=(K, K)) / 2,
    "U": RNG.normal(size=(K, K)),
    "b": RNG.normal(size=K),
    "X": RNG.normal(size=(N, K)),
}
LARGE = Machine(call=1, large=1)


def net() -> Expr:
    W, U = tc.var("W", ("k", "k")), tc.var("U", ("k", "k"))
    X, b = tc.var("X", ("n", "k")), tc.var("b", "k")
    last = tc.fold(lambda s, t: tc.tanh(W @ s + U @ X[t] + b), tc.zeros("k"), "n")
    loss: Expr = last @ last / 2
    return loss


def by_jax(W: Any, b: Any) -> Any:
    def step(s: Any, x: Any) -> Any:
        return jnp.tanh(W @ s + ARRAYS["U"] @ x + b), None

    last = jax.lax.scan(step, jnp.zeros(K), ARRAYS["X"])[0]
    return last @ last / 2


def loops(roots: list[Expr]) -> list[Apply]:
    nodes = postorder(roots)
    return [e for e in nodes if isinstance(e, Apply) and isinstance(e.op, Loop)]


def viewed(e: Expr) -> Expr:
    """What an expression with the same entries, axes permuted, is a view of."""
    while isinstance(e, Einsum) and not e.summed and len(e.args) == 1:
        e = e.args[0]
    return e


def reads(loop: Apply, e: Expr) -> bool:
    return any(viewed(arg) is viewed(bare(e)) for arg in loop.args)


def scanned(roots: list[Expr]) -> list[Expr]:
    """What loops scan that has as many entries in a row as a derivative of a state by W."""
    found = [e for loop in loops(roots) for e in loop.args[len(loop.params[0].states) :]]
    shapes = [[extent_of(x, SIZES) for x in e.shape] for e in found]
    return [viewed(e) for e, s in zip(found, shapes, strict=True) if prod(s) >= N * K**3]


@pytest.mark.parametrize("spelled", [list, factored])
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_second_derivatives(spelled: Any, backend: str) -> None:
    roots = [bare(e) for e in trees.leaves(tc.hessian(net(), ("W", "b")))]
    assert not all(isinstance(e, Part) for e in scanned(roots))
    machine = Machine(call=1, large=N * K**3)
    inside = list(rows_inside(spelled(roots), SIZES, machine))
    if spelled is factored:  # else two readers share an array
        assert scanned(inside)
        assert all(isinstance(e, Part) for e in scanned(inside))  # histories of other loops
    wanted = jax.tree_util.tree_leaves(jax.hessian(by_jax, (0, 1))(ARRAYS["W"], ARRAYS["b"]))
    for one, other in zip(tc.compile(inside, backend=backend)(**ARRAYS), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_what_others_read_is_made_for_all_steps() -> None:
    """Nothing is made twice: a scanned array that is an output, too, stays scanned."""
    rows = tc.exp(tc.var("A", ("n", "k")))
    last = tc.fold(lambda s, t: tc.sin(s) + rows[t], tc.zeros("k"), "n")
    (alone,) = rows_inside([bare(last)], SIZES, LARGE)
    together = list(rows_inside([bare(last), bare(rows)], SIZES, LARGE))
    assert not reads(loops([alone])[0], rows)
    assert reads(loops(together)[0], rows)
    np.testing.assert_allclose(alone(A=ARRAYS["X"]), last(A=ARRAYS["X"]), rtol=1e-12)


def test_a_product_that_every_step_would_read_a_matrix_for_stays_one_product() -> None:
    A, V, s0 = tc.var("A", ("n", "k")), tc.var("V", ("k", "k")), tc.var("b", "k")
    last = tc.fold(lambda s, t: tc.sin(s) * 2, s0, "n")
    product = A @ V
    last = tc.fold(lambda s, t: tc.sin(s) + product[t], last, "n")
    (found,) = rows_inside([bare(last)], SIZES | {"k": 64}, LARGE)
    assert any(reads(loop, product) for loop in loops([found]))


def planned(n: int, k: int) -> Plan:
    shapes = {"W": (k, k), "U": (k, k), "b": (k,), "X": (n, k)}
    made: Plan = tc.compile(tc.hessian(net(), ("W", "b")), backend="c").plan_for(**shapes)
    return made


def test_a_hessian_holds_two_histories_of_derivatives_and_multiplies_five_times() -> None:
    """What states are by W, and what they leave for one product at the end."""
    n, k = 1000, 16
    plan = planned(n, k)
    made = [s for s in plan.steps if plan.origin[s.out] is not VIEW]
    assert [s.kind for s in made if prod(s.shape) >= n * k**3] == ["loop", "loop"]
    assert plan.flops < 5.8 * 2 * n * k**4
    assert plan.peak_bytes < 2.4 * 8 * n * k**3


def test_steps_write_their_rows_as_they_lie() -> None:
    """No output of a large step is a transposed copy."""
    for step in planned(1000, 16).steps:
        if step.kind == "loop":
            inner = step.params[-1]
            turned = [inner.shapes[o.slot] for o in inner.outputs if o.perm is not None]
            assert all(prod(shape) < 16**3 for shape in turned)


def test_subnormal_terms_count_as_nothing_in_products_of_steps_alone() -> None:
    A, B = tc.var("A", ("m", "m")), tc.var("B", ("m", "m"))
    once = A @ B
    steps = tc.fold(lambda s, i: s @ B, A, 2)
    found = tc.compile([once, steps, steps * 2, tc.sum(A) * 0 + tc.exp(A)], backend="c")
    small, ones = np.full((32, 32), 1e-310), np.ones((32, 32))
    product, folded, twice, plain = found(A=small, B=ones)
    np.testing.assert_allclose(product, 32e-310, rtol=1e-9)
    np.testing.assert_allclose(folded, 1024e-310, rtol=0, atol=2 * 32 * 2.3e-308)
    np.testing.assert_array_equal(twice, 2 * folded)
    np.testing.assert_array_equal(plain, 1.0)
    large = tc.compile(steps, backend="c")(A=ones, B=ones / 32)
    np.testing.assert_allclose(large, 1.0, rtol=1e-14)
    assert np.float64(1e-310) * np.float64(1.0) > 0  # what was set before has come back
