"""Blocks of Hessians through one loop: by one loop for all rows, or apart where diagonals last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.accumulation.orders import loop_operator
from tcalc.graph import trees
from tcalc.graph.nodes import Expr, postorder

jax = pytest.importorskip("jax")

RNG = np.random.default_rng(0)


def loops(nest: Any) -> list[Any]:
    """Those by which a nest of derivatives was made first."""
    firsts: list[Expr] = [leaf.first for leaf in trees.leaves(nest)]
    return [node for node in postorder(firsts) if loop_operator(node)]


def gated(xp: Any, parameters: dict[str, Any], x: Any, state: Any) -> Any:
    p = parameters
    gate = 1 / (1 + xp.exp(-(p["W"] @ x + p["U"] @ state + p["b"])))
    return (1 - gate) * state + gate * xp.tanh(p["V"] @ x + p["R"] @ state)


SHAPES: dict[str, tuple[Any, ...]] = {
    "W": ("h", "d"), "U": ("h", "h"), "b": ("h",), "V": ("h", "d"), "R": ("h", "h")
}  # fmt: skip


def arrays_of(h: int, d: int, n: int) -> dict[str, Any]:
    sizes = {"h": h, "d": d, "n": n}
    shapes = SHAPES | {"X": ("n", "d")}
    return {k: RNG.normal(size=[sizes[s] for s in shape]) / 2 for k, shape in shapes.items()}


@pytest.fixture(scope="module")
def net() -> Expr:
    p: dict[str, Any] = {name: tc.var(name, shape) for name, shape in SHAPES.items()}
    X = tc.var("X", ("n", "d"))
    last = tc.fold(lambda s, t: gated(tc, p, X[t], s), tc.zeros("h"), "n")
    return tc.sum(last * last) / 2


def by_jax(arrays: dict[str, Any], names: tuple[str, ...]) -> list[Any]:
    def value(*found: Any) -> Any:
        p = {**arrays, **dict(zip(names, found, strict=True))}
        s = jax.numpy.zeros(len(arrays["b"]))
        for x in arrays["X"]:
            s = gated(jax.numpy, p, x, s)
        return s @ s / 2

    found = jax.hessian(value, tuple(range(len(names))))(*[arrays[name] for name in names])
    return jax.tree_util.tree_leaves(found)


@pytest.mark.parametrize("names", [("W", "U", "b"), tuple(SHAPES)], ids=len)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_all_rows_go_through_two_loops_more(
    net: Expr, names: tuple[str, ...], backend: str
) -> None:
    h = tc.hessian(net, names)
    assert len(loops(h)) == 4  # the value's, the gradient's, and both of these once more
    step = tc.compile(h, backend=backend)
    for sizes in ((3, 2, 5), (1, 1, 1), (2, 3, 0)):
        arrays = arrays_of(*sizes)
        wanted = by_jax(arrays, names)
        for _ in range(2):  # as found first, and as found to be the best
            found = trees.leaves(step(**arrays))
            for one, other in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_a_block_alone_is_written_without_the_others(net: Expr) -> None:
    (block, *_), *_ = tc.hessian(net, ("b", "U", "W"))
    (alone,) = trees.leaves(tc.hessian(net, ("b",)))
    assert block.first is not alone.first
    assert block.inner is alone.inner


def test_many_rows_are_found_together_alone(net: Expr) -> None:
    assert all(leaf.ways is None for leaf in trees.leaves(tc.hessian(net, tuple(SHAPES))))
    few = tc.hessian(net, ("b", "U", "W"))
    assert all(leaf.ways is not None for leaf in trees.leaves(few))


def test_rows_stay_apart_where_diagonals_last() -> None:
    """A recurrence for every entry by itself: second derivatives have one entry for each."""
    a, b, X = tc.var("a", "k"), tc.var("b", "k"), tc.var("X", ("n", "k"))
    start = tc.var("c", "k")
    last = tc.fold(lambda s, t: tc.tanh(a * s + b * X[t]), start, "n")
    h = tc.hessian(tc.sum(last), ("a", "b", "c"))
    states = {v.shape for loop in loops(h) for v in loop.params[0].states}
    assert states == {("k",)}
    assert [form.shape for form in tc.compress(h[0][1]).cores] == [("k",)]


def test_rows_of_a_batch_of_sequences_are_one_loop() -> None:
    """Items stay apart, and parameters are the same for all: no unit tensor is of the items."""
    W, b, X = tc.var("W", ("k", "k")), tc.var("b", "k"), tc.var("X", ("n", "m", "k"))
    start = tc.var("S", ("m", "k"))
    a = tc.var("a", "k")
    last = tc.fold(lambda s, t: tc.tanh(s @ W + X[t] * a + b), start, "n")
    value = tc.sum(last * last)
    assert len(loops(tc.hessian(value, ("W", "b", "a")))) == 4
    apart = tc.hessian(value, ("W", "b", "S"))
    assert len(loops(apart)) > 4
    arrays = {"W": (3, 3), "b": (3,), "X": (4, 2, 3), "S": (2, 3), "a": (3,)}
    data = {name: RNG.normal(size=shape) / 2 for name, shape in arrays.items()}

    def by_steps(W: Any, b: Any, S: Any) -> Any:
        for x in data["X"]:
            S = jax.numpy.tanh(S @ W + x * data["a"] + b)
        return (S * S).sum()

    wanted = jax.hessian(by_steps, (0, 1, 2))(data["W"], data["b"], data["S"])
    found = tc.compile(tc.hessian(value, ("W", "b", "S")))(**data)
    for one, other in zip(trees.leaves(found), jax.tree_util.tree_leaves(wanted), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


def test_numbers_and_matrices_meet_in_loops_that_end_by_themselves() -> None:
    r, F = tc.var("r"), tc.var("F", ("k", "k"))
    b = tc.var("b", "k")
    ended = tc.fold(
        lambda s, t: tc.tanh(F @ s + b) * tc.exp(r),
        tc.ones("k"),
        until=lambda s: tc.sum(s * s) < 1e-2,
        limit=6,
    )
    value = tc.sum(ended.state)
    data = {"r": np.array(-0.9), "F": RNG.normal(size=(3, 3)) / 3, "b": np.full(3, 0.01)}
    steps = int(tc.compile(ended.steps)(**data))

    def by_steps(r: Any, F: Any, b: Any) -> Any:
        s = jax.numpy.ones(3)
        for _ in range(steps):
            s = jax.numpy.tanh(F @ s + b) * jax.numpy.exp(r)
        return s.sum()

    wanted = jax.tree_util.tree_leaves(jax.hessian(by_steps, (0, 1, 2))(*data.values()))
    assert 0 < steps < 6
    found = trees.leaves(tc.compile(tc.hessian(value, ("r", "F", "b")))(**data))
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
