"""Signs that are proved from expressions: true of numbers, and used by rules however they hide."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.applications import apply
from tcalc.graph.nodes import Expr
from tcalc.graph.normal import einsum
from tcalc.graph.operators import TABLE, Op
from tcalc.rules.facts import is_definite, is_nonnegative, is_positive
from tcalc.rules.strategy import simplify

N = 6
K = tc.var("K", (N, N))
W = tc.var("W", (N, 2 * N))
MATRIX = np.random.default_rng(1).normal(size=(N, 2 * N))
DATA = {"K": MATRIX @ MATRIX.T, "W": MATRIX}
KEEPING = [pytest.param(row, id=row.name) for row in TABLE.values() if row.meaning.positive_of]


@pytest.mark.parametrize("row", KEEPING)
def test_results_are_positive_where_these_operands_are(row: Op) -> None:
    operands = [tc.exp(tc.var(f"x{k}", N)) for k in range(len(row.core))]
    params = (1,) if any(row.core) else ()
    e = apply(row, *operands, params=params)
    assert is_positive(e)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        values = {f"x{k}": rng.uniform(-9, 2, N) for k in range(len(row.core))}
        assert (e(**values) > 0).all()


DIAGONALS: dict[str, tuple[Any, bool]] = {
    "cholesky": (tc.linalg.cholesky(K), True),
    "upper cholesky": (tc.linalg.potrf(K, lower=False), True),
    "lq": (tc.linalg.lq(W)[0], True),
    "qr": (tc.linalg.qr(W.T)[1], True),
    "gelqf": (tc.linalg.gelqf(W)[1], True),
    "definite": (tc.var("S", (N, N), positive_definite=True), True),
    "orthogonal": (tc.linalg.lq(K)[1], False),
    "symmetric": (tc.var("T", (N, N), symmetric=True), False),
    "any": (K, False),
}


@pytest.mark.parametrize("name", DIAGONALS)
def test_diagonals_of_factors_are_positive(name: str) -> None:
    matrix, positive = DIAGONALS[name]
    read = tc.diagonal(matrix)
    assert is_positive(read) == positive
    assert (simplify(abs(read)) is read) == positive
    assert not is_positive(matrix)


SPELLED: dict[str, tuple[Callable[[Any], Any], float]] = {
    "log": (lambda d: tc.sum(tc.log(d)), 1),
    "abs": (lambda d: tc.sum(tc.log(abs(d))), 1),
    "square": (lambda d: tc.sum(tc.log(d**2)), 2),
    "square of abs": (lambda d: tc.sum(tc.log(abs(d) ** 2)), 2),
    "cube": (lambda d: tc.sum(tc.log(d**3)), 3),
    "half": (lambda d: tc.sum(tc.log(d**0.5)), 0.5),
    "sqrt": (lambda d: tc.sum(tc.log(tc.sqrt(d))), 0.5),
    "reciprocal": (lambda d: tc.sum(tc.log(1 / d)), -1),
    "scaled": (lambda d: tc.sum(tc.log(3 * d)), 1),
    "twice": (lambda d: 2 * tc.sum(tc.log(d)), 2),
    "mean": (lambda d: tc.mean(tc.log(abs(d))), 1 / N),
    "prod": (lambda d: tc.log(tc.prod(d)), 1),
    "prod of squares": (lambda d: tc.log(tc.prod(d * d)), 2),
    "square of prod": (lambda d: tc.log(abs(tc.prod(d)) ** 2), 2),
    "of a prior": (lambda d: tc.sum(tc.log(d) - 2 * d), 1),
}


@pytest.mark.parametrize("name", SPELLED)
@pytest.mark.parametrize("lower", [True, False])
def test_logarithms_of_a_factors_diagonal_are_half_a_determinant(name: str, lower: bool) -> None:
    spelled, times = SPELLED[name]
    factor = tc.linalg.potrf(K, lower=lower)
    value = spelled(tc.diagonal(factor))
    found = tc.compile([value, tc.grad(value, K)])
    expected = spelled_by_numpy(name)
    np.testing.assert_allclose(found(**DATA)[0], expected, rtol=1e-12)
    if name == "of a prior":
        return
    symmetric = np.linalg.inv(DATA["K"]) * times / 2
    np.testing.assert_allclose(found(**DATA)[1], symmetric, rtol=1e-8, atol=1e-10)
    assert "tri_inverse" not in str(tc.grad(value, K))
    n = 300
    K2 = tc.var("K", (n, n))
    value = spelled(tc.diagonal(tc.linalg.potrf(K2, lower=lower)))
    flops = tc.compile([value, tc.grad(value, K2)]).plan.flops
    assert flops < 1.05 * n**3


def spelled_by_numpy(name: str) -> float:
    """Plain NumPy of the same formula."""
    d = np.diagonal(np.linalg.cholesky(DATA["K"]))
    powers = {"square": 2, "square of abs": 2, "cube": 3, "half": 0.5, "sqrt": 0.5}
    powers |= {"reciprocal": -1, "twice": 2, "mean": 1 / N, "prod of squares": 2}
    powers |= {"square of prod": 2}
    total = powers.get(name, 1) * np.log(d).sum()
    if name == "scaled":
        total += N * np.log(3)
    return float(total - 2 * d.sum() if name == "of a prior" else total)


def test_logarithms_of_what_may_be_negative_stay() -> None:
    x = tc.var("x", N)
    for e in (tc.log(x**2), tc.log(3 * x), tc.log(tc.prod(x)), abs(x), abs(tc.tanh(x))):
        assert simplify(e) is e
    values = np.linspace(-2, -1, N)
    np.testing.assert_allclose(simplify(tc.log(x**2))(x=values), np.log(values**2))


def test_positive_products_do_not_overflow() -> None:
    x = tc.var("x", N)
    e = simplify(tc.log(tc.prod(tc.exp(x))))
    np.testing.assert_allclose(e(x=np.full(N, 500.0)), 3000)
    np.testing.assert_allclose(
        simplify(tc.log(tc.softplus(x) ** 40))(x=np.full(N, 1e9)), 40 * np.log(1e9)
    )


#: Operands of small products.
POOL: dict[str, Expr] = {
    "X": tc.var("X", (2, 2)),
    "S": tc.var("S", (2, 2), positive_definite=True),
    "d": tc.exp(tc.var("v", 2)),
    "v": tc.var("v", 2),
}
OUTPUTS = [(0, 1), (0, 0), (2, 0, 1), (2, 3, 0, 1), (2, 0, 0)]
#: By operands, of how many products that are drawn proofs are known: of positive entries, of
#: entries not below 0, of definite matrices, of semidefinite ones.
PROVED = {
    "X": (0, 0, 0, 0), "S": (0, 1, 2, 2),
    "d": (0, 1, 1, 1), "XX": (0, 23, 0, 28),
    "SS": (2, 55, 0, 62), "Sd": (2, 11, 2, 9),
    "dd": (2, 11, 3, 11), "XXd": (0, 32, 0, 25),
    "XXv": (0, 0, 0, 0), "XXX": (0, 0, 0, 0), "XXS": (0, 8, 0, 5),
    "Sdd": (12, 79, 6, 47), "XXSd": (0, 8, 0, 0),
    "XXSS": (0, 6, 0, 3),
}  # fmt: skip


def small_products(names: str) -> list[tuple[list[tuple[int, ...]], tuple[int, ...]]]:
    """Words of the operands and of the output; some of them where there are many."""
    letters = [itertools.product(range(4), repeat=POOL[name].ndim) for name in names]
    found = [
        (list(words), out)
        for words in itertools.product(*letters)
        for out in OUTPUTS
        if {*out} <= {label for word in words for label in word}
    ]
    return found if len(found) < 600 else Random(0).sample(found, 600)


def entries(arrays: list[np.ndarray], words: list[tuple[int, ...]], out: tuple[int, ...]) -> Any:
    """A product of arrays of extent 2, entry by entry."""
    found = np.zeros((2,) * len(out))
    labels = sorted({label for word in words for label in word})
    for places in itertools.product(range(2), repeat=len(labels)):
        at = dict(zip(labels, places, strict=True))
        factors = [a[tuple([at[i] for i in w])] for a, w in zip(arrays, words, strict=True)]
        found[tuple([at[i] for i in out])] += np.prod(factors)
    return found


@pytest.mark.parametrize("names", PROVED)
def test_proofs_of_small_products_are_true_and_found(names: str) -> None:
    rng, points = np.random.default_rng(0), []
    for _ in range(3):
        X, Y, v = rng.normal(size=(2, 2)), rng.normal(size=(2, 3)), rng.normal(size=2)
        points.append({"X": X, "S": Y @ Y.T, "v": v, "d": np.exp(v)})
    proved = np.zeros(4, int)
    for words, out in small_products(names):
        e = einsum([POOL[name] for name in names], words, out)
        claims = [is_positive(e), is_nonnegative(e), is_definite(e), is_definite(e, False)]
        proved += claims
        for at in points if any(claims) else ():
            found = entries([at[name] for name in names], words, out)
            symmetric = np.allclose(found, np.swapaxes(found, -1, -2))
            least = np.linalg.eigvalsh(found).min() if symmetric else -np.inf
            slack = 1e-12 * np.abs(found).max()
            truths = [found.min() > 0, found.min() >= -slack, least > 0, least >= -slack]
            assert all(t for t, claimed in zip(truths, claims, strict=True) if claimed), (
                words,
                out,
            )
    assert tuple(proved) == PROVED[names]


def test_products_around_a_semidefinite_sum() -> None:
    """A sum of squares between X' and X is not strictly definite, and need not be."""
    X, Y, Z = tc.var("X", (N, 3)), tc.var("Y", (2, N)), tc.var("Z", (2, N))

    def between(matrix: Expr) -> Expr:
        return einsum([X, matrix, X], [(2, 0), (2, 3), (3, 1)], (0, 1))

    assert is_definite(between(Y.T @ Y + Z.T @ Z), False)
    assert not is_definite(between(Y.T @ Y + Z.T @ Z), True)
    assert not is_definite(between(Y.T @ Y - Z.T @ Z), False)


#: Rows of which facts know that their values end somewhere.
BOUNDED = [
    pytest.param(row, id=row.name)
    for row in TABLE.values()
    if row.elementwise and "##" not in row.name and np.isfinite(row.meaning.range).any()
]


@pytest.mark.parametrize("row", BOUNDED)
def test_ranges_are_those_of_the_values(row: Op) -> None:
    """Values stay within, and come as near to both ends as one in a hundred."""
    rng = np.random.default_rng(0)
    parts = [rng.uniform(-1, 1, 3000) * scale for scale in (1, 3, 40, 1e6)]
    few = np.array(list(itertools.product([-1, 0, 1, np.nan], repeat=len(row.core)))).T
    data = {
        f"x{k}": np.concatenate([few[k], rng.permutation(np.concatenate(parts))])
        for k in range(len(row.core))
    }
    e = apply(row, *[tc.var(name, a.shape) for name, a in data.items()])
    with np.errstate(all="ignore"):
        found = np.asarray(e(**data), float)
    found = found[~np.isnan(found)]
    low, high = row.meaning.range
    assert (found >= low - 1e-300).all()  # of positive numbers some become 0
    assert (found <= high).all()
    if np.isfinite(low):
        assert found.min() <= low + 0.01
    if np.isfinite(high):
        assert found.max() >= high - 0.01


def test_matrices_of_a_batch_across_its_axes_are_not_definite() -> None:
    M = tc.var("M", (N, N, N), positive_definite=True)
    assert is_definite(einsum([M], [(0, 1, 2)], (0, 2, 1)), True)
    assert not is_definite(einsum([M], [(0, 1, 2)], (2, 0, 1)), False)
    assert not is_definite(einsum([M], [(0, 1, 2)], (1, 0, 2)), False)


def test_products_of_antisymmetric_matrices_are_one_node() -> None:
    """A turned one is the other's negative, wherever it stands."""
    C = tc.var("C", (N, N))
    B = K - K.T
    assert B * B.T is -(B * B)
    assert B * B.T * C is -(B * B * C)
    assert B.T * B.T is B * B
    assert tc.sum(B * B.T) is -tc.sum(B * B)
    data = DATA["K"] + np.arange(N)
    wanted = -np.sum((data - data.T) ** 2)
    np.testing.assert_allclose(tc.sum(B * B.T)(K=data), wanted)
