"""Models with groups, classes and observations: derivatives, form, plans, text, source."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import cache
from inspect import signature
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tcalc.ops.selection import selection
from tests.test_derivatives import MODES, assert_equal
from tests.test_gather import X, idx, rows, x

jax.config.update("jax_enable_x64", True)

table = tc.var("table", ("e", "d"))
words = tc.var("words", ("s", "r"), integer=True)


def kinds(e: Any, **sizes: int) -> list[str]:
    return [step.kind for step in tc.compile(e).plan_for(**sizes).steps]


# --- models against jax ---------------------------------------------------------------------------

RNG = np.random.default_rng(7)
M, N, Q, K = 9, 3, 4, 3
DATA: dict[str, Any] = {
    "X": RNG.normal(size=(M, N)),
    "b": RNG.normal(size=N),
    "u": RNG.normal(size=Q),
    "v": RNG.normal(size=3),
    "g": RNG.integers(0, Q - 1, size=M),  # the last group is empty
    "h": RNG.integers(0, 3, size=M),
    "t": RNG.integers(0, 2, size=M),
    "W": RNG.normal(size=(N, K)),
    "y": RNG.integers(0, K, size=M),
    "table": RNG.normal(size=(5, 2)),
    "words": RNG.integers(-5, 5, size=(3, 4)),
    "cam": RNG.normal(size=(3, 6)) * 0.1 + [0, 0, 0, 0, 0, 4],
    "pts": RNG.normal(size=(4, 3)),
    "c": RNG.integers(0, 3, size=M),
    "p": RNG.integers(0, 4, size=M),
    "obs": RNG.normal(size=(M, 2)),
}
g, h, t, c, p = (tc.var(name, "m", integer=True) for name in "ghtcp")
b, u, v = tc.var("b", "n"), tc.var("u", "q"), tc.var("v", 3)
classes = tc.var("y", "m", integer=True)
W, cam, pts = tc.var("W", ("n", "k")), tc.var("cam", ("C", 6)), tc.var("pts", ("P", 3))
obs = tc.var("obs", ("m", 2))

Model = tuple[tc.Expr, Callable[..., Any], dict[str, int]]


def mixed() -> tc.Expr:
    eta = X @ b + u[g] + v[h]
    return tc.sum(tc.softplus(eta) - tc.var("t", "m", integer=True) * eta)


def mixed_jax(D: Any) -> Any:
    eta = D["X"] @ D["b"] + D["u"][D["g"]] + D["v"][D["h"]]
    return jnp.sum(jnp.logaddexp(eta, 0) - D["t"] * eta)


def entropy() -> tc.Expr:
    return -tc.sum(tc.log_softmax(X @ W, axis=-1)[tc.arange("m"), classes])


def entropy_jax(D: Any) -> Any:
    return -jnp.sum(jax.nn.log_softmax(D["X"] @ D["W"], axis=-1)[jnp.arange(M), D["y"]])


def projected(xp: Any, camera: Any, point: Any) -> Any:
    turn, move = camera[:, :3], camera[:, 3:]
    seen = point + xp.cross(turn, point) + move
    return seen[:, :2] / seen[:, 2:]


def residual() -> tc.Expr:
    return projected(tc, cam[c], pts[p]) - obs


def residual_jax(D: Any) -> Any:
    return projected(jnp, D["cam"][D["c"]], D["pts"][D["p"]]) - D["obs"]


def adjustment() -> tc.Expr:
    return 0.5 * tc.sum(residual() ** 2)


def adjustment_jax(D: Any) -> Any:
    return 0.5 * jnp.sum(residual_jax(D) ** 2)


def pooled() -> tc.Expr:
    return tc.sum(tc.tanh(tc.mean(table[words], axis=1)), axis=0)


def pooled_jax(D: Any) -> Any:
    return jnp.tanh(D["table"][D["words"]].mean(1)).sum(0)


def by_group() -> tc.Expr:
    return tc.log(1 + tc.segment_sum(X * X, g, "q"))


def by_group_jax(D: Any) -> Any:
    return jnp.log(1 + jax.ops.segment_sum(D["X"] * D["X"], D["g"], Q))


def twice() -> tc.Expr:
    """A gather of a gather, under a sum of squares of what both have in common."""
    return tc.sum((u[g] * u[g][tc.var("y", "m", integer=True)]) ** 2)


def twice_jax(D: Any) -> Any:
    found = D["u"][D["g"]]
    return jnp.sum((found * found[D["y"]]) ** 2)


MODELS = {
    "mixed": (mixed, mixed_jax, {"u": 3, "b": 3, "v": 2}),
    "entropy": (entropy, entropy_jax, {"W": 3}),
    "residual": (residual, residual_jax, {"cam": 1, "pts": 2}),
    "adjustment": (adjustment, adjustment_jax, {"cam": 2, "pts": 2}),
    "pooled": (pooled, pooled_jax, {"table": 3}),
    "by_group": (by_group, by_group_jax, {"X": 2}),
    "twice": (twice, twice_jax, {"u": 3}),
}
COLUMNS = [(name, v) for name, (_, _, orders) in MODELS.items() for v in orders]


@cache
def expected(name: str, variable: str) -> list[np.ndarray]:
    _, compute, orders = MODELS[name]

    def of(value: Any) -> Any:
        return compute({**DATA, variable: value})

    found, function = [], of
    for _ in range(orders[variable] + 1):
        found.append(np.asarray(function(jnp.asarray(DATA[variable]))))
        function = jax.jacobian(function)
    return found


@pytest.mark.parametrize(("name", "variable"), COLUMNS)
@pytest.mark.parametrize("mode", MODES)
def test_derivatives_of_models(name: str, variable: str, mode: str) -> None:
    build, _, orders = MODELS[name]
    e, data = build(), {**DATA, "q": Q}
    for order in range(orders[variable] + 1):
        found = tc.derivative(e, variable, order, mode)(data)
        assert_equal(found, expected(name, variable)[order])


def test_blocks_of_a_hessian_and_vector_products() -> None:
    f = mixed()
    blocks = tc.compile(tc.hessian(f, (b, u, v)))(DATA)
    wanted = jax.hessian(lambda b, u, v: mixed_jax({**DATA, "b": b, "u": u, "v": v}), (0, 1, 2))(
        *[jnp.asarray(DATA[k]) for k in "buv"]
    )
    for i in range(3):
        for j in range(3):
            np.testing.assert_allclose(blocks[i][j], wanted[i][j], rtol=1e-11, atol=1e-13)
    direction = np.arange(4.0)
    found = tc.hvp(f, u, tc.var("s", "q"))(DATA | {"s": direction})
    np.testing.assert_allclose(found, wanted[1][1] @ direction, rtol=1e-11)


# --- form -----------------------------------------------------------------------------------------


def test_the_hessian_of_groups_is_a_diagonal_of_segment_sums() -> None:
    for mode in MODES[:3]:
        hessian = tc.derivative(mixed(), u, 2, mode)
        value = hessian.args[0]
        assert value.out == (0, 0)
        assert [factor.shape for factor in value.args] == [("q",)]
        assert value is tc.hessian(mixed(), u).args[0]
    steps = kinds(hessian, m=1000, n=3, q=50)
    assert "segments" in steps
    assert "onehot" not in steps


@pytest.mark.parametrize(("variable", "letter"), [(cam, "C"), (pts, "P")])
def test_the_hessian_of_an_adjustment_has_a_block_for_each(variable: tc.Expr, letter: str) -> None:
    value = tc.hessian(adjustment(), variable).args[0]
    assert value.out == (0, 1, 0, 2)
    assert value.extents[0] == letter


def test_groups_and_their_mean_are_a_diagonal_and_low_rank() -> None:
    f = tc.sum(tc.exp(tc.var("z", "m") - u[g] - tc.mean(u)))
    for mode in MODES[:3]:
        terms = tc.derivative(f, u, 2, mode).args[0].args
        assert any(term.out == (0, 0) for term in terms)
        assert max(factor.ndim for term in terms for factor in term.args) == 1


def test_softmax_minus_labels() -> None:
    z = tc.var("z", ("m", "k"))
    gradient = tc.grad(-tc.sum(tc.log_softmax(z)[tc.arange("m"), classes]), z)
    assert gradient.args[0] is tc.softmax(z) - selection(classes, "k")


def test_all_entries_in_their_order_are_no_gather() -> None:
    z = tc.var("z", (4, "k"))
    assert z[np.arange(4)] is z
    assert z[[0, -3, 2, 3]] is z
    assert x[tc.arange("n")] is x
    assert z[1:] is not z
    assert tc.var("z", 4)[::-1](z=[1.0, 2.0, 3.0, 4.0]).tolist() == [4, 3, 2, 1]


def test_ones_are_counted_and_not_made() -> None:
    ones = tc.ones("n")[idx]
    assert ones is tc.ones("k")
    counts = tc.segment_sum(tc.ones("k"), idx, "q")
    assert kinds(counts, k=100, q=7) == ["index", "count"]
    assert counts(idx=[0, 2, 2], q=4).tolist() == [1, 0, 2, 0]


# --- plans ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "e",
    [
        mixed(),
        tc.hessian(mixed(), u),
        tc.hessian(mixed(), (b, v))[0][1],
        tc.jacobian(mixed(), u),
        adjustment(),
        tc.grad(adjustment(), pts),
        tc.hessian(adjustment(), cam),
        tc.grad(pooled() @ pooled(), table),
        entropy(),
        tc.grad(entropy(), W),
        X[rows, idx],
        tc.hvp(mixed(), u, tc.var("s", "q")),
    ],
    ids=lambda e: "x".join(map(str, e.shape)) or "scalar",
)
def test_plans_take_and_sum_instead_of_ones(e: tc.Expr) -> None:
    """Twice the observations, twice the operations and bytes, and no array of zeros and ones."""
    compiled = tc.compile(e)
    fixed = {"n": 5, "q": 200, "k": 10, "C": 20, "P": 200, "e": 50, "d": 3, "r": 4}
    costs = []
    for m in (100_000, 200_000):
        sizes = {**fixed, "m": m, "s": m} | ({"k": m, "n": 50} if "rows" in e.variables else {})
        known = {k: n for k, n in sizes.items() if k in tc.compile(e)._engine.dimensions}
        plan = compiled.plan_for(**known)
        costs.append((plan.flops, plan.peak_bytes))
        assert not [s for s in plan.steps if s.kind == "onehot" and np.prod(s.shape) > 18]
    (few, small), (many, large) = costs
    assert many <= 2.05 * few
    assert large <= 2.05 * small
    assert large <= 8 * 2 * m * 80


def test_crossed_groups_share_one_index() -> None:
    steps = kinds(tc.hessian(mixed(), (u, v))[0][1], m=1000, n=3, q=50)
    assert steps.count("segments") == 1
    assert steps.count("joint") == 1
    assert "onehot" not in steps


def test_two_arrays_take_at_once() -> None:
    steps = kinds(tc.sum(X[rows, idx]), m=50, n=60, k=100)
    assert steps.count("take") == 1
    assert "onehot" not in steps


def test_constant_indices_are_prepared_once() -> None:
    compiled = tc.compile(tc.take(X, [[0, 2], [1, -1]], axis=0), data={})
    plan = compiled.plan_for(m=3, n=4)
    assert [s.kind for s in plan.steps if s.out in plan.fixed] == ["index"]
    bound = tc.compile(tc.grad(mixed(), u), data={"g": DATA["g"], "h": DATA["h"]})
    rest = {k: DATA[k] for k in ("X", "b", "u", "v", "t")}
    np.testing.assert_allclose(bound(rest), tc.grad(mixed(), u)(DATA), rtol=1e-14)


def test_results_do_not_share_memory() -> None:
    data, index = np.arange(3.0), np.array([0, 1, 2])
    e = tc.compile({"a": x[idx], "b": x})
    first = e(x=data, idx=index)
    second = e(x=data, idx=index)
    first["a"][:] = 7
    assert second["a"].tolist() == [0, 1, 2]
    assert index.tolist() == [0, 1, 2]
    assert data.tolist() == [0, 1, 2]


# --- text and source ------------------------------------------------------------------------------

T = tc.var("T", ("a", "b", "c"))
eta = "X*b + u[g] + v[h]"

TEXT = [
    (x[idx], "x[idx]"),
    (X[rows, idx], "X[rows, idx]"),
    (X[:, idx], "X[:, idx]"),
    (X[0], "X[0]"),
    (X[:, -1], "X[:, -1]"),
    (x[[0, 2]], "x[[0, 2]]"),
    (table[words], "table[words]"),
    (T[rows, :, idx], "T[rows, :, idx]"),
    ((x + 1)[idx] * 2, "2*(x + 1)[idx]"),
    (tc.sum(table[words], axis=1), "#('ikj->ij', table[words])"),
    (tc.segment_sum(X, g, "q"), "segment_sum(X, g, q)"),
    (tc.segment_sum(tc.var("Z", ("m", "a", "b")), g, "q"), "segment_sum(Z, g, q)"),
    (tc.grad(mixed(), u), f"segment_sum(sigmoid({eta}) - t, g, q)"),
    (
        tc.hessian(mixed(), u),
        f"diag(segment_sum(sigmoid({eta}) .* sigmoid(-({eta})), g, q))",
    ),
    (tc.jacobian(x[idx], x), "selection(idx, n)"),
    (
        tc.grad(entropy(), W),
        "X'*(softmax(X*W) - selection(y, k))",
    ),
]


@pytest.mark.parametrize(("e", "text"), TEXT)
def test_text(e: tc.Expr, text: str) -> None:
    assert str(e) == text
    assert tc.to_einsum(e)


def test_latex() -> None:
    assert tc.to_latex(X[:, 0]) == "X[:, 0]"
    assert tc.to_latex(x[idx]) == r"x[\mathrm{idx}]"
    shown = tc.to_latex(tc.segment_sum(X, g, "q"))
    assert shown == r"\operatorname{segment\_sum}(X, g, q)"


SOURCE = [
    *[tc.derivative(mixed(), u, k) for k in range(3)],
    tc.hessian(mixed(), (u, v))[0][1],
    tc.grad(entropy(), W),
    tc.hessian(entropy(), W),
    tc.jacobian(table[words], table),
    tc.grad(pooled() @ pooled(), table),
    tc.jacobian(by_group(), X),
    tc.jacobian(residual(), pts),
    tc.hessian(twice(), u),
    X[0],
    X[:, [-1, 0]],
]


@pytest.mark.parametrize("e", SOURCE, ids=lambda e: "x".join(map(str, e.shape)) or "scalar")
def test_numpy_source(e: tc.Expr) -> None:
    source = tc.to_code(e, "numpy", check=True)
    assert "tcalc" not in source
    run = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr + run.stdout
    assert source.count("def _segment_sum") == (source.count("_segment_sum(") > 0)


def test_numpy_source_computes_the_same() -> None:
    e = tc.grad(adjustment(), cam)
    space: dict[str, Any] = {}
    exec(tc.to_code(e), space)
    given = {k: DATA[k] for k in signature(space["f"]).parameters}
    np.testing.assert_allclose(space["f"](**given), e(given), rtol=1e-12)
