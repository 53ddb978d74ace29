"""Nests of derivatives: differentiated, compressed and multiplied as one, against dense arrays."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph import trees

jax.config.update("jax_enable_x64", True)

A, S = tc.var("A", ("m", "n")), tc.var("S", ("n", "n"), symmetric=True)
x, y = tc.var("x", "n"), tc.var("y", "m")
r = tc.tanh(A @ x) * y
s = tc.sum(tc.exp(x)) * tc.sum(y**2)
q = S @ x

rng = np.random.default_rng(3)
ROOT = rng.normal(size=(3, 3))
DATA = {
    "A": rng.normal(size=(2, 3)), "S": ROOT + ROOT.T,
    "x": rng.normal(size=3), "y": rng.normal(size=2),
}  # fmt: skip


def flat(tree: Any, more: int = 0) -> np.ndarray:
    """The leaves of a nest as rows of one matrix; the last `more` axes stay."""
    parts = [np.asarray(leaf) for leaf in trees.leaves(tree)]
    return np.concatenate([p.reshape(-1, *p.shape[p.ndim - more :]) for p in parts])


def dense(outputs: Any, wrt: Any) -> np.ndarray:
    """The matrix of a Jacobian, of its dense blocks one by one."""
    rows = []
    for e in trees.leaves(outputs):
        size = np.size(tc.compile(e)(DATA))
        blocks = [tc.compile(tc.jacobian(e, v))(DATA) for v in trees.leaves(wrt)]
        rows.append(np.concatenate([b.reshape(size, -1) for b in blocks], axis=1))
    return np.concatenate(rows)


NESTS = {
    "several variables": (r, (x, y)),
    "a dict of variables": (r, {"a": x, "b": (y, A)}),
    "a gradient": (s, (x, y)),
    "several outputs": ((r, s), x),
    "both": ({"r": r, "more": (s, q)}, (x, {"y": y})),
    "a single variable beside a nest": (((r,), s), (y, x)),
    "a variable with a property": ((q, s), (S, x)),
    "an absent variable": ((q, r), (x, y)),
}


def test_blocks_are_told_with_their_terms() -> None:
    a, b = tc.var("a", 4), tc.var("b", 4)
    J = tc.compile(tc.jacobian(tc.exp(a) * b + tc.sum(a) * b, (a, b)), structured=True)
    title, *blocks = J({"a": np.ones(4), "b": np.ones(4)}).explain().splitlines()
    assert "matrix of shape (4, 8)" in title
    assert ["2 terms" in blocks[0], "1 term," in blocks[1]] == [True, True]


@pytest.mark.parametrize("case", NESTS)
def test_a_compressed_jacobian_over_nests_is_one_linear_map(case: str) -> None:
    outputs, wrt = NESTS[case]
    J = tc.compile(tc.jacobian(outputs, wrt), structured=True)(DATA)
    expected = dense(outputs, wrt)
    assert isinstance(J, tc.BlockJacobian)
    assert J.shape == expected.shape
    assert J.nbytes == sum([core.nbytes for core in J.cores])
    np.testing.assert_allclose(J.todense(), expected, rtol=1e-12, atol=1e-14)
    v = trees.unflatten(wrt, iter([rng.normal(size=DATA[z.name].shape) for z in trees.leaves(wrt)]))
    u = trees.mapped(lambda e: rng.normal(size=np.shape(tc.compile(e)(DATA))), outputs)
    product, back = J @ v, J.T @ u
    np.testing.assert_allclose(flat(product), expected @ flat(v), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(flat(back), expected.T @ flat(u), rtol=1e-10, atol=1e-12)
    assert trees.mapped(np.shape, back) == trees.mapped(np.shape, v)
    assert trees.mapped(np.shape, product) == trees.mapped(np.shape, u)
    operator = J.to_scipy()
    np.testing.assert_allclose(operator @ flat(v), expected @ flat(v), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(operator.T @ flat(u), expected.T @ flat(u), rtol=1e-10, atol=1e-12)
    for other in (pickle.loads(pickle.dumps(J)), (J + J) / 2, J.T.T, 3 * J - 2 * J):
        np.testing.assert_allclose(other.todense(), expected, rtol=1e-12, atol=1e-14)
    assert len(J.explain().splitlines()) == 1 + len(trees.leaves(outputs)) * len(trees.leaves(wrt))


def test_blocks_are_nested_as_outputs_and_then_as_variables() -> None:
    J = tc.compile(tc.jacobian({"r": r, "s": s}, (x, y)), structured=True)(DATA)
    assert J["r"][1].shape == (2, 2)
    assert J.blocks()["s"][0].shape == (3,)
    # r is by y a diagonal, of which the diagonal is held
    assert J["r"][1].nbytes == 2 * 8


def test_products_of_block_jacobians_take_more_right_hand_sides() -> None:
    J = tc.compile(tc.jacobian((r, s), (x, y)), structured=True)(DATA)
    v = rng.normal(size=(3, 4)), rng.normal(size=(2, 4))
    found = J @ v
    assert [part.shape for part in found] == [(2, 4), (4,)]
    np.testing.assert_allclose(flat(found, 1), J.todense() @ np.concatenate(v), rtol=1e-12)
    with pytest.raises(tc.ShapeError, match="the array for y has shape"):
        J @ (v[0], v[0])
    with pytest.raises(TypeError, match="a tuple of 2"):
        J @ v[0]


def test_higher_orders_of_vectors_multiply_over_the_last_variable() -> None:
    T = tc.derivative(r, (x, y), order=2)
    held = tc.compile(T, structured=True)(DATA)
    v = rng.normal(size=3), rng.normal(size=2)
    for row, blocks in zip(held @ v, tc.compile(T)(DATA), strict=True):
        np.testing.assert_allclose(row, blocks[0] @ v[0] + blocks[1] @ v[1], rtol=1e-12)


def test_the_jacobian_of_a_gradient_is_a_hessian() -> None:
    f = s + tc.sum(r**2)
    H = tc.compile(tc.jacobian(tc.grad(f, (x, y)), (x, y)), structured=True)(DATA)
    assert isinstance(H, tc.BlockStructured)
    g = tc.compile(tc.grad(f, (x, y)))(DATA)
    np.testing.assert_allclose(flat(H.solve(g)), np.linalg.solve(H.todense(), flat(g)), rtol=1e-8)
    J = tc.compile(tc.jacobian(r, (x, y)), structured=True)(DATA)
    with pytest.raises(TypeError):
        H + J


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_nest_of_expressions_is_differentiated_part_by_part(order: int) -> None:
    def values(x: Any, y: Any) -> dict[str, Any]:
        a = jnp.array(DATA["A"])
        return {"r": jnp.tanh(a @ x) * y, "s": [jnp.sum(jnp.exp(x)) * jnp.sum(y**2)]}

    expected: Callable[..., Any] = values
    for _ in range(order):
        expected = jax.jacfwd(expected, argnums=(0, 1))
    oracle = jax.tree.leaves(expected(DATA["x"], DATA["y"]))
    found = tc.derivative({"r": r, "s": [s]}, ("x", y), order)
    assert isinstance(found["r"], tc.Expr if order == 0 else tuple)
    results = trees.leaves(found(DATA))
    assert len(results) == len(oracle)
    for one, other in zip(results, oracle, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_names_of_variables_are_those_of_all_parts() -> None:
    by_y = tc.jacobian((q, r), "y")
    assert not by_y[0](DATA).any()
    with pytest.raises(TypeError, match="no variable of the expression"):
        tc.jacobian((q, r), "zzz")
    with pytest.raises(tc.ShapeError, match="its one entry, \\[0\\]"):
        tc.grad(tc.ones(1) * tc.sum(x), x)


FUNCTIONS = {
    "hessian": (tc.hessian, jax.hessian, 0),
    "jacobian": (tc.jacobian, jax.jacobian, 0),
    "grad": (tc.grad, jax.grad, 0),
    "hessian over two": (tc.hessian, jax.hessian, (0, 1)),
    "jacobian over two": (tc.jacobian, jax.jacobian, (0, 1)),
}


@pytest.mark.parametrize("case", FUNCTIONS)
def test_transformed_functions_compile_to_compressed_results(case: str) -> None:
    transform, oracle, argnums = FUNCTIONS[case]
    weights = DATA["A"].copy()

    def fun(a: Any, b: Any) -> Any:
        np_ = jnp if isinstance(a, jax.Array) else np
        value = np_.tanh(weights @ a) * b
        return value if "jacobian" in case else np_.sum(value**2)

    step = tc.compile(transform(fun, argnums), structured=True)
    held = step(DATA["x"], DATA["y"])
    a, b = jnp.array(DATA["x"]), jnp.array(DATA["y"])
    expected = jax.tree.leaves(oracle(fun, argnums)(a, b))
    assert not isinstance(held, np.ndarray)
    found = trees.leaves(held.blocks()) if isinstance(held, tc.BlockJacobian) else [held]
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.todense(), other, rtol=1e-10, atol=1e-12)
    weights[:] = 0  # what fun reads was frozen by the first call
    again = step(DATA["x"], DATA["y"])
    np.testing.assert_array_equal(again.todense(), held.todense())
    assert step(DATA["x"] * 2, DATA["y"]).todense().any()


# --- shown and explained --------------------------------------------------------------------------

SHOWN = {
    "variables": (tc.jacobian(r, (x, y)), ["d/dx", "d/dy"]),
    "blocks of a Hessian": (
        tc.hessian(s, {"a": x, "b": y}),
        ["d2/dx dx", "d2/dx dy", "d2/dy dx", "d2/dy dy"],
    ),
    "outputs": (tc.jacobian((r, {"s": s}), x), ["[0] d/dx", "[1]['s'] d/dx"]),
    "a value and its gradient": (tc.value_and_grad(s, x), ["[0]", "[1] d/dx"]),
    "plain expressions": ({"r": r, "q": [s]}, ["['r']", "['q'][0]"]),
}


@pytest.mark.parametrize("case", SHOWN)
@pytest.mark.parametrize("write", [tc.to_text, tc.to_einsum, tc.to_index])
def test_nests_are_written_part_by_part_with_their_places(
    case: str, write: Callable[[Any], str]
) -> None:
    tree, places = SHOWN[case]
    texts = [write(leaf) for leaf in trees.leaves(tree)]
    text = write(tree)
    for place, part in zip(places, texts, strict=True):
        gap = "\n" if "\n" in part else " "
        head = f"{place}:{gap}{part}"
        assert text.startswith(head)
        text = text[len(head) + 1 :]
    assert not text


@pytest.mark.parametrize("case", SHOWN)
def test_nests_in_latex_are_aligned_lines(case: str) -> None:
    tree, places = SHOWN[case]
    text = tc.to_latex(tree)
    for leaf in trees.leaves(tree):
        assert f"& {tc.to_latex(leaf)} " in text
    assert text.count(r"\colon\quad &") == len(places)
    assert text.count("{") == text.count("}")
    if isinstance(tree, trees.Block | trees.NamedBlock):
        assert tree._repr_latex_() == f"${text}$"


@pytest.mark.parametrize("case", SHOWN)
def test_nests_are_compressed_part_by_part(case: str) -> None:
    tree, _ = SHOWN[case]
    found = tc.compress(tree)
    assert trees.mapped(lambda _: 0, found) == trees.mapped(lambda _: 0, tree)
    for form, leaf in zip(trees.leaves(found), trees.leaves(tree), strict=True):
        assert str(form) == str(tc.compress(leaf))


SIZES = {"m": 40, "n": 30}


@pytest.mark.parametrize("mode", ["reverse", "forward", "cross-country"])
@pytest.mark.parametrize("order", [1, 2])
def test_a_nest_is_explained_by_the_plan_of_all_parts(mode: str, order: int) -> None:
    def row(explained: Any) -> Any:
        return next(row for row in explained.rows if row.mode == mode)

    f = tc.sum(r**2) * s
    made = tc.derivative(f, (x, y), order)
    plan = tc.compile(tc.derivative(f, (x, y), order, mode)).plan_for(**SIZES)
    together = row(tc.explain(made, **SIZES))
    assert together.flops == plan.flops
    assert together.peak_bytes == plan.peak_bytes
    assert row(tc.explain(f, (x, y), order, **SIZES)) == together
    parts = [row(tc.explain(part, **SIZES)).flops for part in trees.leaves(made)]
    assert max(parts) <= together.flops < sum(parts)


def test_a_nest_of_other_expressions_is_explained_as_it_is() -> None:
    (row,) = tc.explain({"r": r, "s": [s]}, **SIZES).rows
    assert row.mode == "value"
    assert row.flops == tc.compile((r, s)).plan_for(**SIZES).flops
    mixed = tc.explain(tc.value_and_grad(s, x), **SIZES)
    assert [row.mode for row in mixed.rows] == ["reverse", "forward", "cross-country"]
    outputs = tc.explain((r, s), x, **SIZES)
    assert outputs.rows == tc.explain(tc.jacobian((r, s), x), **SIZES).rows
    with pytest.raises(TypeError, match="no dimension"):
        tc.explain((r, s), x, k=3)


# --- checked --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_variables_of_a_nest_are_checked_together(order: int) -> None:
    assert tc.check(s, (x, {"a": y, "b": ["x"]}), order).passed
    assert tc.check(r, (x, [y, A]), order).passed
    assert tc.check(q, (x, S), order).passed
    assert tc.check(q, y, order).passed


def test_a_check_of_several_variables_sees_mixed_derivatives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def derivative(e: Any, *arguments: Any) -> Any:
        return tc.derivative(e + tc.sum(x) * tc.sum(y) / 100, *arguments)

    monkeypatch.setattr("tcalc.app.check.derivative", derivative)
    assert tc.check(s, x, 2).passed
    assert tc.check(s, y, 2).passed
    assert not tc.check(s, (x, y), 2).passed


class Layer(NamedTuple):
    weights: Any
    bias: Any


PARAMETERS = {
    "a named tuple": Layer(np.array([1.0, -2.0]), 0.5),
    "an ordered dict": OrderedDict(weights=np.array([1.0, -2.0]), bias=0.5),
    "a list": [np.array([1.0, -2.0]), 0.5],
    "a tuple": (np.array([1.0, -2.0]), 0.5),
}


def loss(layer: Any) -> Any:
    weights, bias = layer.values() if isinstance(layer, dict) else layer
    return (weights**3).sum() * bias + bias**3


@pytest.mark.parametrize("kind", PARAMETERS)
def test_derivatives_of_functions_stand_in_what_parameters_do(kind: str) -> None:
    """As jax's do: to any depth, evaluated at once or compiled first."""
    given = PARAMETERS[kind]
    for make in (tc.grad, tc.hessian):
        wanted = getattr(jax, make.__name__)(loss)(given)
        for found in (make(loss)(given), tc.compile(make(loss))(given)):
            assert jax.tree.structure(found) == jax.tree.structure(wanted)
            for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-12)
    value, slopes = tc.value_and_grad(loss)(given)
    assert type(slopes) is type(given)
    np.testing.assert_allclose(value, loss(given))
    deep = {"first": given, "rest": [given, (given,)]}
    found = tc.grad(lambda p: loss(p["first"]) + loss(p["rest"][1][0]))(deep)
    assert jax.tree.structure(found) == jax.tree.structure(deep)
    assert not np.any(jax.tree.leaves(found["rest"][0])[0])


def test_nests_of_variables_keep_their_kinds() -> None:
    nest = tc.grad(s, Layer(x, [y]))
    assert isinstance(pickle.loads(pickle.dumps(tc.compile(nest)))(DATA), Layer)
    assert isinstance(nest(DATA), Layer)
    assert isinstance(nest(DATA).bias, list)
