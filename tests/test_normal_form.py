"""The normal form: numbers that went wrong once, one node for equal products, and structure.

The first part is one test per trap of the design; the second asks that all orders of accumulation
arrive at the same compressed node.
"""

from __future__ import annotations

import random
import warnings
from itertools import permutations, product
from typing import Any

import jax
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Add, Einsum, Expr, postorder
from tcalc.graph.normal import bare, einsum, scale, view
from tcalc.graph.orientation import MINUS
from tests.cases import Reference

MODES = ("forward", "reverse", "cross-country")
PAIRS = list(product(MODES, MODES))
X, y, w = tc.var("X", ("m", "n")), tc.var("y", "m"), tc.var("w", "n")
A, B = tc.var("A", ("n", "n")), tc.var("B", ("n", "n"))
x, a = tc.var("x", "n"), tc.var("a", "n")
S = tc.var("S", ("n", "n"), symmetric=True)


def core(d: Expr) -> Einsum:
    """The value of a derivative, without the view that a transposition leaves."""
    value = bare(d)
    assert isinstance(value, Einsum)
    return value


# --- numbers that went wrong ----------------------------------------------------------------------

#: Expression, data, value: extents of labels that no operand has, means of nothing.
NUMBERS = [
    (tc.trace(tc.eye("n")), {"n": 3}, 3.0),
    (tc.trace(tc.eye(4)), {}, 4.0),
    (tc.sum(tc.ones(7)), {}, 7.0),
    (tc.sum(tc.ones(("m", "n"))), {"m": 2, "n": 5}, 10.0),
    (tc.sum(tc.eye("n")), {"n": 3}, 3.0),
    (tc.einsum("i,j->", tc.ones("n"), x), {"x": np.ones(3)}, 9.0),
    (tc.einsum("ii,jk->", tc.eye("n"), A), {"A": np.ones((2, 2))}, 8.0),
    (tc.mean(tc.ones("n")), {"n": 5}, 1.0),
    (tc.mean(tc.ones("n")), {"n": 0}, np.nan),
    (tc.mean(x), {"x": np.ones(0)}, np.nan),
    (tc.mean(x) * 0, {"x": np.ones(3)}, 0.0),
    (tc.sum(x - tc.mean(x)), {"x": np.array([1.0, 2, 6])}, 0.0),
    (tc.sum(tc.grad(tc.mean(x * x), x)), {"x": np.array([1.0, 2])}, 3.0),
    (tc.sum(x), {"x": np.ones(0)}, 0.0),
    (tc.prod(x), {"x": np.ones(0)}, 1.0),
    (tc.einsum("i,i->", tc.ones(1), tc.var("z", 1)), {"z": [4.0]}, 4.0),
]


@pytest.mark.parametrize(("e", "data", "wanted"), NUMBERS)
def test_extents_of_labels_without_operand(e: Expr, data: dict[str, Any], wanted: float) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = e(**data)
    np.testing.assert_allclose(found, wanted, rtol=1e-15)


def test_named_dimensions_never_broadcast() -> None:
    for build in (lambda: x + y, lambda: x * y, lambda: tc.var("p", (1,))[None] @ X, lambda: X + y):
        with pytest.raises(tc.ShapeError, match=r"m|n"):
            build()
    with pytest.raises(ValueError, match="n"):
        (x + a)(x=np.ones(1), a=np.ones(3))
    with pytest.raises(ValueError, match="n"):
        (X @ w)(X=np.ones((2, 1)), w=np.ones(3))


def test_a_literal_one_broadcasts() -> None:
    one = tc.var("one", (1,))
    found = (one * x)(one=[2.0], x=[1.0, 2, 3])
    np.testing.assert_array_equal(found, [2, 4, 6])
    for found in (tc.einsum("i,i->i", one, x), tc.einsum("i,i->i", tc.ones(1) * 2, x)):
        np.testing.assert_array_equal(found(one=[2.0], x=[1.0, 2, 3]), [2, 4, 6])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_softmax_hessian_at_large_logits(mode: str, dtype: Any) -> None:
    z, t = tc.var("z", 4), np.array([0.1, 0.2, 0.3, 0.4])
    f = tc.sum(tc.const(t.astype(np.float32)) * tc.exp(z) / tc.sum(tc.exp(z)))
    jax_f = lambda v: (t.astype(np.float32) * jax.nn.softmax(v)).sum()  # noqa: E731
    for at in ([400, 0.5, 1, 399], [-400, -401, -402, -500], [80, 90, 88, 1], [0.1, 0.2, 0.3, 0.4]):
        at = np.array(at, dtype)
        found = tc.hessian(f, z, mode=mode)(z=at)
        assert found.dtype == dtype
        wanted = np.asarray(jax.hessian(jax_f)(at.astype(np.float64)))
        tolerance = 1e-12 if dtype is np.float64 else 3e-6
        np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance)


@pytest.mark.parametrize("mode", MODES)
def test_entropy_at_zero_to_third_order(mode: str) -> None:
    z = tc.var("z", 3)
    f = tc.sum(tc.where(z > 0, z * tc.log(z), 0))
    at = np.array([0.0, 0.5, 2])
    wanted = [[0, 1 + np.log(0.5), 1 + np.log(2)], [0, 2, 0.5], [0, -4, -0.25]]
    for order, diagonal in enumerate(wanted, 1):
        found = tc.derivative(f, z, order, mode)(z=at)
        dense = np.zeros((3,) * order)
        dense[(np.arange(3),) * order] = diagonal
        np.testing.assert_allclose(found, dense, rtol=1e-14)


@pytest.mark.parametrize("mode", MODES)
def test_squared_differences_are_never_expanded(mode: str) -> None:
    f = tc.sum((x[:, None] - x[None, :]) ** 2)
    at = 1e4 + 1e-3 * np.random.default_rng(0).normal(size=50)
    exact = np.array(at, dtype=np.longdouble)
    wanted = ((exact[:, None] - exact[None, :]) ** 2).sum()
    gradient = 4 * (exact[:, None] - exact[None, :]).sum(axis=1)
    assert abs(f(x=at) - wanted) <= 1e-12 * wanted
    found = tc.grad(f, x, mode=mode)(x=at)
    assert np.max(np.abs(found - gradient)) <= 1e-9 * np.max(np.abs(gradient))
    np.testing.assert_allclose(
        tc.hessian(f, x, mode=mode)(x=at), 4 * (50 * np.eye(50) - 1), atol=1e-11
    )


#: Functions of a symmetric matrix and data: their derivatives are projected in every slot.
SYMMETRIC = [
    ("quadratic", lambda xp, S, v: v @ S @ v),
    ("square", lambda xp, S, v: xp.sum((S @ xp.outer(v, v + 1)) ** 2)),
    ("logdet", lambda xp, S, v: xp.logdet(S)),
    ("inverse", lambda xp, S, v: v @ xp.inv(S) @ (v * v)),
    ("elementwise", lambda xp, S, v: xp.sum(xp.exp(S) * v[:, None])),
]


@pytest.mark.parametrize("prop", ["symmetric", "lower", "upper", "diagonal"])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("name", "build"), SYMMETRIC)
def test_derivatives_stay_in_the_subspace(name: str, build: Any, mode: str, prop: str) -> None:
    """Equal to jax's derivative of f(P(S)), P the projector, and to differences along it."""
    s, v = tc.var("s", (3, 3), **{prop: True}), tc.var("v", 3)
    f = build(tc, s, v)
    project = {
        "symmetric": lambda m: (m + m.T) / 2,
        "lower": lambda m: m * np.tri(3),
        "upper": lambda m: m * np.tri(3).T,
        "diagonal": lambda m: m * np.eye(3),
    }[prop]
    rng = np.random.default_rng(4)
    data = {
        "s": np.array(project(rng.normal(size=(3, 3)) + 4 * np.eye(3))),
        "v": rng.normal(size=3),
    }
    composed = lambda m: build(Reference, project(m), data["v"])  # noqa: E731
    gradient, hessian = tc.grad(f, s, mode=mode)(data), tc.hessian(f, s, mode=mode)(data)
    np.testing.assert_allclose(gradient, jax.grad(composed)(data["s"]), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(hessian, jax.hessian(composed)(data["s"]), rtol=1e-11, atol=1e-11)
    along = project(rng.normal(size=(3, 3)))
    step = lambda h: f(s=data["s"] + h * along, v=data["v"])  # noqa: E731
    assert np.sum(gradient * along) == pytest.approx((step(1e-5) - step(-1e-5)) / 2e-5, rel=1e-7)


def test_constants_are_told_apart_by_bits() -> None:
    nodes = [tc.const(np.array([value, 1.0])) for value in (0.0, -0.0, 1.0, np.nan)]
    assert len({id(n) for n in nodes}) == 4
    assert tc.const([0.0, 1.0]) is nodes[0]
    assert tc.const(np.array([np.nan, 1.0])) is nodes[3]
    assert tc.const([1, 0]) is tc.const([1.0, 0.0])
    assert tc.const([True, False]) is tc.const(np.float32([1, 0])), "exact in any dtype"
    assert tc.const(np.float32([1])) is not tc.const(np.float64([1]))
    c = tc.var("c")
    assert c * 1 is c
    assert c * True is c
    assert c * 1.0 is c
    data = np.array([1.0, 2.0])
    node = tc.const(data)
    data[0] = 7
    np.testing.assert_array_equal(node(), [1, 2])
    with pytest.raises(ValueError, match="read-only"):
        node.value[0] = 1


# --- one node for equal products ------------------------------------------------------------------

SAME = [
    (lambda: A.T.T, lambda: A),
    (lambda: A + A.T.T, lambda: 2 * A),
    (lambda: A + A.T, lambda: A.T + A),
    (lambda: A - A, lambda: tc.zeros(("n", "n"))),
    (lambda: A + B, lambda: B + A),
    (lambda: (A @ B).T, lambda: B.T @ A.T),
    (lambda: S.T, lambda: S),
    (lambda: S + S.T, lambda: 2 * S),
    (lambda: S @ x, lambda: x @ S),
    (lambda: X.T @ X, lambda: (X.T @ X).T),
    (lambda: X.T @ tc.diag(y) @ X, lambda: (X.T @ tc.diag(y) @ X).T),
    (lambda: X.T @ tc.diag(y) @ X, lambda: (y[:, None] * X).T @ X),
    (lambda: tc.eye("n") @ x, lambda: x),
    (lambda: A @ tc.eye("n"), lambda: A),
    (lambda: tc.diag(x) @ a, lambda: x * a),
    (lambda: tc.diagonal(tc.diag(x)), lambda: x),
    (lambda: tc.diag(x) + tc.diag(a), lambda: tc.diag(x + a)),
    (lambda: tc.trace(tc.diag(x)), lambda: tc.sum(x)),
    (lambda: tc.trace(A @ B), lambda: tc.sum(A * B.T)),
    (lambda: tc.trace(A @ B), lambda: tc.trace(B @ A)),
    (lambda: tc.outer(x, a).T, lambda: tc.outer(a, x)),
    (lambda: tc.exp(A.T), lambda: tc.exp(A).T),
    (
        lambda: tc.exp(tc.broadcast_to(x, ("m", "n"))),
        lambda: tc.broadcast_to(tc.exp(x), ("m", "n")),
    ),
    (lambda: 2 * x / 2, lambda: x),
    (lambda: x / 0.5, lambda: 2 * x),
    (lambda: x * x, lambda: x**2),
    (lambda: tc.sum(x[None, :], axis=0), lambda: x),
    (lambda: tc.einsum("ij->ji", A), lambda: A.T),
    (lambda: x - (-a), lambda: x + a),
    (lambda: tc.cos(tc.diag(x)), lambda: 1 + tc.diag(tc.cos(x) - 1)),
]


@pytest.mark.parametrize("k", range(len(SAME)))
def test_two_spellings_are_one_node(k: int) -> None:
    left, right = SAME[k]
    one, other = left(), right()
    assert one is other, f"{one} and {other}"


def test_random_products_in_any_order_are_one_node() -> None:
    """2,000 products of repeated operands, each under six shuffles of operands and label names."""
    rng = random.Random(0)
    pool = [A, B, S, x, a, tc.var("C", ("n", "n")), tc.var("D", ("n", "n", "n"))]
    for _ in range(2000):
        ops = [rng.choice(pool[: rng.randint(1, 7)]) for _ in range(rng.randint(1, 5))]
        words = [tuple(rng.randrange(5) for _ in op.shape) for op in ops]
        used = sorted({label for word in words for label in word})
        out = tuple(rng.sample(used, rng.randint(0, min(3, len(used)))))
        found: dict[int, Expr] = {}  # keeps the nodes alive, so that ids stay theirs
        for _ in range(6):
            order = rng.sample(range(len(ops)), len(ops))
            names = dict(zip(used, rng.sample(range(20), len(used)), strict=True))
            spell = lambda word: [names[label] for label in word]  # noqa: B023, E731
            node = einsum([ops[k] for k in order], [spell(words[k]) for k in order], spell(out))
            found[id(node)] = node
        assert len(found) == 1, (ops, words, out)


# --- structure ------------------------------------------------------------------------------------


def all_compositions(f: Expr, v: Any, u: Any = None) -> list[Expr]:
    """The Hessian (or a mixed block) from the nine compositions of modes."""
    return [
        bare(tc.jacobian(tc.grad(f, v, mode=inner), v if u is None else u, mode=outer))
        for outer, inner in PAIRS
    ]


def the_one(nodes: list[Expr]) -> Any:
    assert len({id(n) for n in nodes}) == 1, "\n".join(sorted({str(n) for n in nodes}))
    return nodes[0]


def largest(e: Expr) -> int:
    """Most axes that any node below the root has."""
    return max([n.ndim for n in postorder([e]) if n is not e])


def test_logistic_hessian_is_one_contraction() -> None:
    f = tc.parse("sum(log(1 + exp(-y .* (X*w))))", X=("m", "n"), y=("m",), w=("n",))
    H = the_one(all_compositions(f, w))
    assert isinstance(H, Einsum)
    assert H.summed
    assert sorted(str(arg) for arg in H.args).count("X") == 2
    assert all(not isinstance(arg, Einsum) for arg in H.args)
    assert H.T is H


@pytest.mark.parametrize("weighted", [False, True])
def test_factorisation_core_is_small(weighted: bool) -> None:
    T, W = tc.var("T", ("m", "n")), tc.var("W", ("m", "n"))
    U, V = tc.var("U", ("m", "k")), tc.var("V", ("n", "k"))
    residual = T - U @ V.T
    f = tc.sum((W * residual) ** 2 if weighted else residual**2)
    H = the_one(all_compositions(f, U))
    assert H.shape == ("m", "k", "m", "k")
    assert len(H.out) == len(set(H.out)) + 1
    (inner,) = H.args
    assert sorted(inner.shape) == (["k", "k", "m"] if weighted else ["k", "k"])
    assert largest(H) <= 3
    blocks = tc.hessian(f, (U, V))
    assert tc.transpose(bare(blocks[1][0]), (2, 3, 0, 1)) is bare(blocks[0][1])


def test_diagonal_plus_rank_two() -> None:
    """sum(x^4)/4 + sum(x)^2 (a'x): diagonal and outer products, nothing of two axes between."""
    f = tc.sum(x**4) / 4 + tc.sum(x) ** 2 * (a @ x)
    H = the_one(all_compositions(f, x))
    assert isinstance(H, Add)
    assert largest(H) <= 2
    terms = [t for t in H.args if isinstance(t, Einsum)]
    assert len(terms) == len(H.args)
    assert sum(len(set(t.out)) == 1 for t in terms) == 1
    assert all(arg.ndim <= 1 for t in terms for arg in t.args)


@pytest.mark.parametrize("mode", MODES)
def test_symmetric_results_know_it(mode: str) -> None:
    b = tc.var("b", "m")
    for f in (
        tc.sum((X @ w - b) ** 2),
        tc.sum(tc.exp(X @ w)),
        tc.sum(tc.log(1 + tc.exp(-b * (X @ w)))),
        w @ A @ w + tc.sum(w**4),
    ):
        H = bare(tc.hessian(f, w, mode=mode))
        assert H.T is H


def test_shared_chains_stay_shared() -> None:
    """Gradients by all layers of a linear chain: linear, not quadratic, in its length."""

    def nodes(length: int) -> int:
        layers = [tc.var(f"W{k}", ("n", "n")) for k in range(length)]
        h = x
        for layer in layers:
            h = tc.tanh(layer @ h)
        return len(postorder(tc.grad(tc.sum(h), tuple(layers))))

    assert nodes(40) - nodes(30) == nodes(30) - nodes(20)


def test_squares_of_differences_are_symmetric() -> None:
    x, X, w = tc.var("x", "n"), tc.var("X", ("n", "d")), tc.var("w", "d")
    difference = x[:, None] - x[None, :]
    assert (difference * difference) is (difference.T * difference.T)
    assert (difference**2).T is difference**2
    assert difference.T is not difference
    cross = X[:, None, :] - X[None, :, :]
    kernel = tc.exp(-tc.sum(cross * cross * w, axis=-1))
    assert kernel.T is kernel
    data = np.random.default_rng(0).normal(size=3)
    wanted = data[:, None] - data
    np.testing.assert_array_equal((difference * difference.T)(x=data), -(wanted**2))
    np.testing.assert_allclose((difference**2 * difference.T)(x=data), -(wanted**3), 1e-15)


def test_sums_are_no_symmetries_of_freed_terms() -> None:
    """Ids of terms that are compared belong to living nodes: many sums, all of them right."""
    rng = np.random.default_rng(5)
    for k in range(40):
        x, y = tc.var(f"x{k}", (2, 2, 3)), tc.var(f"y{k}", (2, 3))
        data = {v.name: rng.normal(size=v.shape) for v in (x, y)}
        s = x[:, :, None, :] + y[None, None]
        e = tc.einsum("klji->ijkl", s)
        assert not s.args[0]._antisymmetries
        dense = data[x.name][:, :, None, :] + data[y.name][None, None]
        wanted = 1 + np.einsum("klji->ijkl", dense) ** 2
        np.testing.assert_allclose((1 + e * e)(data), wanted, rtol=1e-12)


def test_symmetries_of_sums_are_those_of_their_terms() -> None:
    """All permutations, tried one by one, agree with those that are found."""
    difference = x[:, None] - x[None, :]
    e = tc.exp(A)
    four = tc.einsum("ij,kl->ijkl", A, B)
    for total in (
        difference**2 + S,
        difference + A - A.T,
        A @ A.T + x[:, None] * x[None, :],
        e + e.T,
        four + four.transpose((2, 3, 0, 1)),
        four - four.transpose((1, 0, 3, 2)),  # antisymmetric in both pairs at once only
        tc.einsum("ij,kl->ikjl", S, S) + tc.einsum("ij,kl->iklj", S, S),
    ):
        node = next(n for n in reversed(postorder([total])) if isinstance(n, Add))
        negative = [scale(t, MINUS) for t in node.args]
        identity = tuple(range(node.ndim))
        for perm in permutations(identity):
            turned = [view(t, perm) for t in node.args]
            same = all(any(t is other for other in node.args) for t in turned)
            opposite = all(any(t is other for other in negative) for t in turned)
            assert same == (perm in (identity, *node._symmetries))
            assert opposite == (perm in node._antisymmetries)
