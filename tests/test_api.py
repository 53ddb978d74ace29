"""Errors, identity, substitution and the shapes of derivatives: the promises to users."""


# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph import declarations
from tests.shared import DATA, A, X, c, same, w, y

RNG = np.random.default_rng(1)

#: Construction, and what the message must name.
WRONG = [
    (lambda: X @ y, tc.ShapeError, ["(m, n)", "(m,)", "n", "m"]),
    (lambda: X + y, tc.ShapeError, ["(m, n)", "(m,)", "index -1"]),
    (lambda: tc.einsum("ij,jk->ik", X, X), tc.ShapeError, ["index j", "n", "m"]),
    (lambda: tc.einsum("ij->ik", X), tc.ShapeError, ["index k", "sizes"]),
    (lambda: tc.einsum("ijk->i", X), tc.ShapeError, ["ijk", "(m, n)"]),
    (lambda: tc.einsum("ij,j->i", X), tc.Error, ["2", "1"]),
    (lambda: tc.einsum("i1->i", X), tc.Error, ["letters"]),
    (lambda: tc.linalg.inv(X), tc.ShapeError, ["inv", "square", "(m, n)"]),
    (lambda: tc.linalg.solve(X, y), tc.ShapeError, ["solve", "square"]),
    (lambda: tc.linalg.solve(A, y), tc.ShapeError, ["solve of", "(n, n)", "(m,)", "right-hand side"]),
    (lambda: tc.linalg.solve(A, 2.0), tc.ShapeError, ["solve of", "(n, n)", "right-hand side"]),
    (lambda: tc.linalg.solve_triangular(A, y), tc.ShapeError, ["solve_triangular of", "(n, n)", "(m,)"]),
    (lambda: tc.linalg.cho_solve((A, True), y), tc.ShapeError, ["cho_solve of", "(n, n)", "(m,)"]),
    (lambda: tc.sum(X, axis=2), ValueError, ["axis 2", "2 axes"]),
    (lambda: tc.softmax(X, axis=2), ValueError, ["softmax: axis 2", "2 axes"]),
    (lambda: tc.log_softmax(X, axis=-3), ValueError, ["log_softmax: axis -3", "2 axes"]),
    (lambda: np.std(X, axis=2), ValueError, ["std: axis 2", "2 axes"]),
    (lambda: np.var(X, axis=2), ValueError, ["var: axis 2", "2 axes"]),
    (lambda: tc.sum(X, axis=(0, 0)), ValueError, ["axis", "twice"]),
    (lambda: tc.transpose(X, (0, 0)), ValueError, ["transpose"]),
    (lambda: tc.tensordot(X, X, 1), tc.ShapeError, ["n", "m"]),
    (lambda: tc.grad(X @ w, w), tc.ShapeError, ["scalar", "(m,)", "jacobian"]),
    (lambda: tc.grad(tc.sum(w), w + 1), TypeError, ["variable"]),
    (lambda: tc.grad(tc.sum(w), "q"), TypeError, ["'q'", "w"]),
    (lambda: tc.grad(tc.sum(w), 3), TypeError, ["3"]),
    (lambda: tc.grad(tc.sum(w), w, mode="backward"), ValueError, ["backward", "reverse"]),
    (lambda: tc.derivative(w, w, order=-1), ValueError, ["-1"]),
    (lambda: tc.derivative(w, w, order=1.5), ValueError, ["1.5"]),
    (lambda: tc.var("2x"), ValueError, ["2x"]),
    (lambda: tc.var("x", ("n", -1)), tc.ShapeError, ["-1"]),
    (lambda: tc.var("x", ("n", 1.5)), TypeError, ["1.5"]),
    (lambda: tc.var("x", ("n", "a b")), tc.ShapeError, ["a b"]),
    (lambda: tc.var("S", ("m", "n"), symmetric=True), tc.ShapeError, ["symmetric", "square", "(m, n)"]),
    (lambda: tc.var("S", ("n", "n"), sparse=True), TypeError, ["sparse"]),
    (lambda: bool(w > 0), TypeError, ["where"]),
    (lambda: 1 if c == 1 else 0, TypeError, ["where"]),
    (lambda: c in [2 * c, c], TypeError, ["where"]),
    (lambda: float(c), TypeError, ["number"]),
    (lambda: int(c), TypeError, ["number"]),
    (lambda: [1, 2][c], TypeError, []),
    (lambda: np.asarray(w), TypeError, ["array"]),
    (lambda: np.array([w, w]), TypeError, ["stack"]),
    (lambda: len(w), TypeError, ["n"]),
    (lambda: iter(w), TypeError, ["n"]),
    (lambda: iter(c), TypeError, ["scalar"]),
    (lambda: X[:, :, :], IndexError, ["3", "(m, n)"]),
    (lambda: X[np.array([True, False])], TypeError, ["where"]),
    (lambda: np.exp(w, out=np.zeros(3)), TypeError, []),
    (lambda: np.subtract.reduce(w), TypeError, ["reduce"]),
    (lambda: np.linalg.eig(X), TypeError, ["eig"]),
    (lambda: tc.const([1 + 2j]), TypeError, ["complex"]),
    (lambda: tc.const(["a"]), TypeError, []),
    (lambda: tc.const(np.ma.array([1.0], mask=[True])), TypeError, ["mask"]),
    (lambda: w.subs({w: y}), tc.ShapeError, ["(n,)", "(m,)"]),
    (lambda: tc.jvp(X @ w, w, y), tc.ShapeError, ["jvp: ", "w", "(m,)", "(n,)"]),
    (lambda: tc.hvp(w @ w, w, y), tc.ShapeError, ["hvp: ", "w", "(m,)", "(n,)"]),
    (lambda: tc.vjp(X @ w, w, w), tc.ShapeError, ["(n,)", "(m,)"]),
    (lambda: tc.cross(w, w), tc.ShapeError, ["3"]),
    (lambda: (X @ w)(X=DATA["X"]), TypeError, ["w", "(n,)"]),
    (lambda: (X @ w)(X=DATA["X"], w=np.ones(5)), ValueError, ["n", "3", "5", "X", "w"]),
    (lambda: (X @ w)(X=DATA["X"], w=np.ones((3, 1))), ValueError, ["w", "(n,)"]),
    (lambda: (c * 2)(c=1j), TypeError, ["c"]),
    (lambda: (c * 2)(c="one"), TypeError, ["c"]),
    (lambda: (c * 2)(c=np.array([1.0, None])), (TypeError, ValueError), ["c"]),
    (lambda: tc.eye("n")(), TypeError, ["n"]),
    (lambda: tc.compile("x"), TypeError, []),
]  # fmt: skip


@pytest.mark.parametrize("k", range(len(WRONG)))
def test_errors_say_what_is_wrong(k: int) -> None:
    build, kind, parts = WRONG[k]
    with pytest.raises(kind) as caught:
        build()
    for part in parts:
        assert part in str(caught.value), str(caught.value)


# --- identity -------------------------------------------------------------------------------------


def test_equal_constructions_are_one_object() -> None:
    assert tc.var("w", "n") is w
    assert tc.var("w", ("n",)) is w
    assert tc.var("w", "k") is not w
    assert tc.var("A", ("n", "n"), symmetric=True) is not A
    assert tc.var("S", ("n", "n"), positive_definite=True, symmetric=True) is tc.var(
        "S", ("n", "n"), positive_definite=True
    )
    assert A.T.T is A
    assert X @ w is X @ w
    assert {X @ w: 1}[X @ w] == 1
    assert hash(w) == hash(tc.var("w", "n"))


def test_comparisons_are_expressions() -> None:
    for e, compute in [
        (w == 1, lambda w: w == 1), (w != 1, lambda w: w != 1), (w < 1, lambda w: w < 1),
        (w <= 1, lambda w: w <= 1), (w > 1, lambda w: w > 1), (w >= 1, lambda w: w >= 1),
        (~(w > 1), lambda w: ~(w > 1)), ((w > 1) & (w < 2), lambda w: (w > 1) & (w < 2)),
        ((w > 1) | (w < 0), lambda w: (w > 1) | (w < 0)), (w < 1, lambda w: w < 1),
    ]:  # fmt: skip
        assert isinstance(e, tc.Expr)
        np.testing.assert_array_equal(e(w=[0.5, 1, 3]), compute(np.array([0.5, 1, 3])))


def test_attributes() -> None:
    e = tc.sum(X @ w) + c
    assert list(e.variables) == ["X", "c", "w"]
    assert e.variables["X"] is X
    assert X.shape == ("m", "n")
    assert (X.ndim, w.ndim, c.ndim) == (2, 1, 0)
    assert tc.var("k", 3).shape == (3,)
    assert len(tc.var("k", 3)) == 3
    assert copy.copy(e) is copy.deepcopy(e) is pickle.loads(pickle.dumps(e)) is e
    with pytest.raises(AttributeError):
        e.color = 1


def test_two_declarations_of_one_name() -> None:
    other = tc.var("w", "k")
    with pytest.raises(ValueError, match=r"w is declared twice: \(n,\) and \(k,\)"):
        tc.sum(w) + tc.sum(other)
    with pytest.raises(ValueError, match=r"w is declared twice"):
        tc.compile((tc.sum(w), tc.sum(other)))
    with pytest.raises(ValueError, match="w"):
        tc.grad(tc.sum(w), other)


def test_substitution_is_simultaneous() -> None:
    u, v = tc.var("u", "n"), tc.var("v", "n")
    e = tc.sin(u) * v
    same(e.subs({u: v, v: u}), lambda u, v: np.sin(v) * u, u=DATA["w"], v=DATA["A"][0])
    same(e.subs({"u": u * 2, "v": tc.ones("n")}), lambda u: np.sin(2 * u), u=DATA["w"])
    assert e.subs({}) is e
    assert e.subs({"absent": c}) is e
    assert c.subs({c: 3})() == 3
    same(
        (X @ w).subs({w: X.T @ (X @ w)}), lambda X, w: X @ (X.T @ (X @ w)), X=DATA["X"], w=DATA["w"]
    )


# --- derivatives ----------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["auto", "forward", "reverse", "cross-country"])
def test_mixed_second_derivatives_are_each_other_s_transposes(mode: str) -> None:
    A, x, t = tc.var("A", ("n", "n"), symmetric=True), tc.var("x", "n"), tc.var("t")
    f = tc.sum(tc.exp(t * (A @ x)) * x) + x @ A @ A @ x * t**3
    wrt = (A, x, t)
    rng = np.random.default_rng(0)
    data = {"A": (lambda a: a + a.T)(rng.normal(size=(3, 3)) / 4), "x": rng.normal(size=3)}
    data["t"] = np.array(0.7)
    second, third = tc.hessian(f, wrt, mode=mode), tc.derivative(f, wrt, order=3, mode=mode)
    for i, v in enumerate(wrt):
        row = tc.grad(f, v, mode=mode)
        for j, u in enumerate(wrt):
            apart = tc.jacobian(row, u, mode=mode)
            found = second[i][j]
            assert (found.wrt, found.shape) == (apart.wrt, apart.shape)
            np.testing.assert_allclose(found(**data), apart(**data), rtol=1e-12, atol=1e-12)
            for k, s in enumerate(wrt):
                found, apart_too = third[i][j][k], tc.jacobian(apart, s, mode=mode)
                np.testing.assert_allclose(found(**data), apart_too(**data), rtol=1e-11, atol=1e-11)


def test_nests_of_variables() -> None:
    f = tc.sum((X @ w) ** 2) * c
    gw, gc = tc.grad(f, (w, c))
    assert gw is tc.grad(f, w)
    assert gc is tc.grad(f, "c")
    nested = tc.grad(f, {"first": (w, "c"), "second": X})
    assert nested["first"][0] is gw
    assert nested["second"].shape == ("m", "n")
    values = nested(DATA)
    np.testing.assert_allclose(values["first"][0], gw(DATA))
    blocks = tc.hessian(f, (w, c))
    assert [[b.shape for b in row] for row in blocks] == [[("n", "n"), ("n",)], [("n",), ()]]
    dense = blocks(DATA)
    np.testing.assert_allclose(dense[0][1], dense[1][0])
    named = tc.hessian(f, {"w": w, "c": c})
    np.testing.assert_allclose(named(DATA)["w"]["c"], dense[0][1])
    value, gradient = tc.value_and_grad(f, w)(DATA)
    np.testing.assert_allclose(value, f(DATA))
    np.testing.assert_allclose(gradient, gw(DATA))


def test_an_absent_variable_gives_zeros() -> None:
    f = tc.sum(w * w)
    np.testing.assert_array_equal(tc.grad(f, X)(X=DATA["X"], w=DATA["w"]), np.zeros((4, 3)))
    np.testing.assert_array_equal(tc.jacobian(w, c)(w=DATA["w"]), np.zeros(3))
    np.testing.assert_array_equal(tc.hessian(f, c)(w=DATA["w"], c=1.0), 0)


def test_a_derivative_keeps_what_cancelled() -> None:
    M = tc.var("M", ("n", "n"))
    d = tc.grad(tc.trace(M), M)
    np.testing.assert_array_equal(d(M=np.ones((3, 3))), np.eye(3))
    assert list(d.variables) == ["M"]
    assert d.of is tc.trace(M)
    assert d.wrt == (M,) or d.wrt[0] is M
    second = tc.hessian(tc.sum(w * w), w)
    np.testing.assert_array_equal(second(w=np.ones(2)), 2 * np.eye(2))
    assert [v.name for v in second.wrt] == ["w", "w"]


def test_orders_and_spellings() -> None:
    e = tc.sin(w) * c
    assert tc.derivative(e, w, 0) is e
    assert e.diff(w, 2) is tc.derivative(e, w, 2)
    assert e.diff("w") is tc.jacobian(e, w)
    assert tc.derivative(e, w, 3).shape == ("n", "n", "n", "n")
    mixed = tc.jacobian(tc.grad(tc.sum(e), w), c)
    np.testing.assert_allclose(mixed(DATA), np.cos(DATA["w"]))


def test_products_with_many_directions() -> None:
    e, data = tc.exp(X @ w), {"X": DATA["X"], "w": DATA["w"]}
    J = tc.jacobian(e, w)(data)
    V, U = RNG.normal(size=(3, 5)), RNG.normal(size=(6, 4))
    np.testing.assert_allclose(tc.jvp(e, w, tc.var("V", ("n", "k")))(V=V, **data), J @ V)
    np.testing.assert_allclose(tc.vjp(e, w, tc.var("U", ("k", "m")))(U=U, **data), U @ J)
    both = tc.jvp(e, (w, X), (tc.ones("n"), X))(data)
    wanted = J @ np.ones(3) + np.tensordot(tc.jacobian(e, X)(data), data["X"], 2)
    np.testing.assert_allclose(both, wanted)
    first, second = tc.vjp(e, (w, X), tc.ones("m"))(data)
    np.testing.assert_allclose(first, np.ones(4) @ J)
    assert second.shape == (4, 3)
    f = tc.sum(e)
    hw, hX = tc.hvp(f, (w, X), (w, X))(data)
    blocks = tc.hessian(f, (w, X))(data)
    np.testing.assert_allclose(
        hw, blocks[0][0] @ data["w"] + np.tensordot(blocks[0][1], data["X"], 2)
    )
    assert hX.shape == (4, 3)


def test_the_callers_numpy_settings_stay() -> None:
    """No warning of ours, and the caller's error state is untouched."""
    with np.errstate(all="raise"):
        assert tc.log(c)(c=0.0) == -np.inf
        assert np.isnan(tc.sqrt(c)(c=-1.0))
        assert tc.exp(c)(c=1e4) == np.inf
        assert np.geterr()["over"] == "raise"


def test_names_that_no_user_gives_are_not_doubted() -> None:
    """Bodies of derived loops name their states alike, whatever shapes these have."""
    A, w = tc.var("A", ("k", "k")), tc.var("w", "k")
    total = tc.sum(tc.fold(lambda s, t: tc.tanh(A @ s + w), tc.zeros("k"), "n"))
    tc.hessian(total, (A, w))
    assert all(map(str.isidentifier, declarations._doubtful))
