"""What few programs enter, of solving with compressed tensors: refusals, sums, many sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tcalc as tc

x, y, z, c = tc.var("x", "n"), tc.var("y", "n"), tc.var("z", "n"), tc.var("c")
X = tc.var("X", ("n", "m"))
A, B, C = tc.var("A", ("n", "n")), tc.var("B", ("n", "n")), tc.var("C", ("n", "n"))
S, E = tc.var("S", ("n", "n"), symmetric=True), tc.var("E", ("m", "m"), symmetric=True)
DATA = np.array([0.5, -0.2, 0.7])
RNG = np.random.default_rng(0)


def compressed(e: tc.Expr, v: Any, **options: Any) -> Any:
    return tc.compile(tc.hessian(e, v), structured=True, **options)


def agrees(held: Any, wanted: np.ndarray, rtol: float = 1e-9) -> None:
    """The tensor, its solutions, its determinant and its inverse are those of an array."""
    n = len(wanted)
    shape = held.shape[: held.ndim // 2]
    b = np.linspace(-1, 2, n)
    np.testing.assert_allclose(held.todense().reshape(n, n), wanted, rtol, 1e-12)
    solved = np.linalg.solve(wanted, b)
    np.testing.assert_allclose(held.solve(b.reshape(shape)).ravel(), solved, rtol, 1e-9)
    np.testing.assert_allclose(held.slogdet(), tuple(np.linalg.slogdet(wanted)), rtol)
    inverse = np.linalg.inv(wanted)
    np.testing.assert_allclose(held.inverse().todense().reshape(n, n), inverse, rtol, 1e-9)


# --- refusals -------------------------------------------------------------------------------------


def test_right_hand_sides_have_the_keys_of_the_variables() -> None:
    e = tc.sum(x**2 * y**2)
    held = compressed(e, {"x": x, "y": y})(x=DATA, y=DATA + 1)
    found = held @ {"y": DATA, "x": DATA}
    np.testing.assert_allclose(found["x"], (2 * (DATA + 1) ** 2 + 4 * DATA * (DATA + 1)) * DATA)
    for given in ({"x": DATA}, {"x": DATA, "z": DATA}, [DATA, DATA]):
        with pytest.raises(TypeError) as told:
            held @ given
        assert str(told.value) == "the right-hand side of @: a dict with the keys 'x', 'y'"
        with pytest.raises(TypeError) as told:
            held.solve(given)
        assert str(told.value) == "the right-hand side of solve: a dict with the keys 'x', 'y'"


def test_blocks_that_do_not_fit_the_memory() -> None:
    """Whether they fit is told before it is tried, and products serve all the same."""
    e = tc.sum(tc.exp(x * y)) + tc.sum(tc.sin(A @ x) * (C @ y))
    values = {"x": np.ones(8), "y": np.ones(8), "A": np.eye(8), "C": np.eye(8)}
    held = compressed(e, {"x": x, "y": y}, memory_limit=3000)(**values)
    assert held.explain().splitlines()[-1] == (
        "  solve: does not fit the memory; to_scipy() serves iterative solvers"
    )
    with pytest.raises(tc.MemoryLimitError, match="a dense 16 x 16 matrix and its factor take"):
        held.solve({"x": np.ones(8), "y": np.ones(8)})
    diagonal = np.e - np.sin(1)
    across = 2 * np.e + np.cos(1)
    np.testing.assert_allclose((held @ {"x": np.ones(8), "y": np.zeros(8)})["x"], diagonal)
    np.testing.assert_allclose((held @ {"x": np.ones(8), "y": np.zeros(8)})["y"], across)
    np.testing.assert_allclose((held @ {"x": np.zeros(8), "y": np.ones(8)})["y"], np.e)


def test_variables_with_properties_that_do_not_fit_the_memory() -> None:
    e = tc.sum(S**4) + tc.sum(S @ x) ** 2
    values = {"S": np.eye(6), "x": np.ones(6)}
    b = {"S": np.eye(6), "x": np.ones(6)}
    made = compressed(e, {"S": S, "x": x}, memory_limit=2000)
    # 3 matrices of (36 + 6)^2 doubles
    with pytest.raises(tc.MemoryLimitError) as told:
        made(**values).solve(b)
    assert str(told.value) == (
        f"variables with properties are solved densely, which takes {3 * 42**2 * 8 / 1024:.1f} KiB"
        ", 1.95 KiB allowed"
    )


@pytest.mark.parametrize("fits", [False, True])
def test_matrices_in_coordinates_take_memory(fits: bool) -> None:
    """Two dense matrices are needed of a tensor inside the subspace: 2 (n^2)^2 doubles."""
    n = 5
    need = 2 * n**4 * 8
    e = tc.sum((S @ A @ S) * C) + tc.sum((S @ S @ S) * A)
    given = {"S": np.eye(n), "A": RNG.normal(size=(n, n)), "C": RNG.normal(size=(n, n))}
    held = compressed(e, S, memory_limit=need if fits else need - 1)(**given)
    if not fits:
        with pytest.raises(tc.MemoryLimitError, match="a dense 25 x 25 matrix and its factor take"):
            held.solve(np.eye(n))
        return
    found = held.solve(np.eye(n))
    np.testing.assert_allclose(found, found.T)
    np.testing.assert_allclose(held @ found, np.eye(n), atol=1e-9)


@pytest.mark.parametrize("definite", [True, False])
def test_definite_inside_a_subspace(definite: bool) -> None:
    """-logdet(S) plus a square is convex; less a large one it is not."""
    q = np.array([[2.0, 0.3, 0], [0.3, 1, 0.2], [0, 0.2, 1.5]])
    e = -tc.logdet(S) + c * (tc.sum(S * A) ** 2 + tc.sum(S * C) ** 2)
    a, b = RNG.normal(size=(2, 3, 3))
    held = compressed(e, S)(S=q, A=a, C=b, c=1.0 if definite else -50.0)
    pairs = [(i, j) for i in range(3) for j in range(i + 1)]
    units = [np.zeros((3, 3)) for _ in pairs]
    for unit, (i, j) in zip(units, pairs, strict=True):
        unit[i, j] = unit[j, i] = 1
    inside = np.array([[(u * (held @ v)).sum() for v in units] for u in units])
    assert bool((np.linalg.eigvalsh(inside) > 0).all()) == definite
    assert held.factor().definite == definite


def test_vectors_of_sparse_data_that_do_not_fit() -> None:
    M = tc.var("M", ("m", "n"))
    data = scipy.sparse.random(200, 100, 0.5, random_state=0, format="csr")
    made = tc.compile(tc.jacobian(M @ x, x), structured=True, memory_limit=200 * 100 * 8 - 1)
    with pytest.raises(tc.MemoryLimitError) as told:
        made(M=data)
    assert str(told.value) == (
        "156 KiB needed for the vectors of a sparse matrix of shape (200, 100), 156 KiB available"
    )
    made = tc.compile(tc.jacobian(M @ x, x), structured=True, memory_limit=200 * 100 * 8)
    np.testing.assert_allclose(made(M=data) @ np.ones(100), data.toarray().sum(1))


# --- sums of tensors ------------------------------------------------------------------------------


def test_sums_of_tensors_of_two_dtypes() -> None:
    made = compressed(c * tc.sum(x**4) + tc.sum(y * x) ** 2, x)
    values = {"x": DATA, "y": DATA + 1, "c": 2.0}
    single = {name: np.float32(value) for name, value in values.items()}
    one, other = made(**single), made(**values)
    wanted = 2 * (np.diag(24 * DATA**2) + 2 * np.outer(DATA + 1, DATA + 1))
    for both in (one + other, other + one):
        assert both.dtype == np.float64
        for b in (DATA, np.float32(DATA)):
            found = both @ b
            assert found.dtype == np.float64
            np.testing.assert_allclose(found, wanted @ DATA, rtol=1e-6)
        np.testing.assert_allclose(both.todense(), wanted, rtol=1e-6)


@pytest.mark.parametrize("shares", [(1, 1, 1), (2, 2, 2), (2, 1, 0.25), (-2, -1, 0.25)])
def test_vectors_whose_coupling_has_a_null_space(shares: tuple[float, ...]) -> None:
    """p (u'x)^2 + q u'x z'x + r (z'x)^2 with q^2 = 4 p r is one vector, not two."""
    p, q, r = shares
    u, w = tc.sum(y * x), tc.sum(z * x)
    e = p / 2 * u * u + q * u * w + r / 2 * w * w + tc.sum(c * x * x) / 2
    vectors = RNG.normal(size=(2, 12))
    wanted = vectors.T @ np.array([[p, q], [q, r]]) @ vectors + 3 * np.eye(12)
    agrees(compressed(e, x)(x=np.ones(12), y=vectors[0], z=vectors[1], c=3.0), wanted)


def test_products_of_vectors_that_are_one() -> None:
    u, w = tc.sum(y * x), tc.sum(z * x)
    e = u * u + u * w + w * w / 4 + tc.sum(c * x * x) / 2
    vectors = RNG.normal(size=(2, 12))
    one = vectors[0] + vectors[1] / 2
    held = compressed(e, x)(x=np.ones(12), y=vectors[0], z=vectors[1], c=3.0)
    agrees(held, 2 * np.outer(one, one) + 3 * np.eye(12))
    assert held.factor().definite
    assert "1 vector on top" in repr(held.factor())


def test_base_too_small_for_an_update() -> None:
    """Where the diagonal is next to nothing somewhere, the dense matrix is solved."""
    W = tc.var("W", ("n", "k"))
    s = np.array([1.0, -1.0])
    vectors = RNG.normal(size=(12, 2))
    diagonal = np.ones(12)
    diagonal[0] = 1e-200
    e = tc.sum(y * x**2) / 2 + (x @ W @ tc.var("D", ("k", "k"), symmetric=True) @ W.T @ x) / 2
    held = compressed(e, x)(W=vectors, D=np.diag(s), y=diagonal)
    wanted = np.diag(diagonal) + vectors @ np.diag(s) @ vectors.T
    agrees(held, wanted, 1e-7)


# --- Kronecker products ---------------------------------------------------------------------------


def test_eigenvectors_in_common_tell_singular_sums() -> None:
    e = tc.sum((S @ X) * X) / 2 + tc.sum((X @ E) * X) / 2
    n, m = 12, 10
    made = compressed(e, X)
    left, right = np.arange(n) - 3.0, np.arange(m) + 0.5
    held = made(S=np.diag(left), E=np.diag(right), X=np.ones((n, m)))
    assert "Kronecker sum" in repr(held.factor())
    found = held.solve(np.ones((n, m)))
    np.testing.assert_allclose(found, 1 / (left[:, None] + right), rtol=1e-12)
    held = made(S=np.diag(left), E=np.diag(right - 0.5), X=np.ones((n, m)))
    with pytest.raises(np.linalg.LinAlgError, match="the 120 x 120 matrix is singular"):
        held.solve(np.ones((n, m)))


def test_axes_in_a_cycle() -> None:
    """A product of three matrices whose axes go round: solved by its factors."""
    T = tc.var("T", ("n", "n", "n"))
    J = tc.jacobian(tc.einsum("ai,bj,ck,jki->abc", A, B, C, T), T)
    a, b, g = RNG.normal(size=(3, 4, 4))
    held = tc.compile(J, structured=True)(A=a, B=b, C=g)
    agrees(held, np.einsum("ai,bj,ck->abcjki", a, b, g).reshape(64, 64))
    assert not held.factor().definite
    assert "4 x 4 ⊗ 4 x 4 ⊗ 4 x 4" in repr(held.factor())


def test_products_of_two_matrices_on_symmetric_ones() -> None:
    """Of A ⊗ C with other A and C no one matrix tells the factors inside the subspace."""
    a, b = RNG.normal(size=(2, 4, 4))
    held = tc.compile(tc.jacobian(A @ S @ C, S), structured=True)(A=a, C=b)
    found = held.solve(np.ones((4, 4)))
    np.testing.assert_allclose(found, found.T, atol=1e-12)
    image = a @ found @ b
    np.testing.assert_allclose((image + image.T) / 2, np.ones((4, 4)), atol=1e-9)


# --- sparse matrices ------------------------------------------------------------------------------

I, K = (tc.var(name, "e", integer=True) for name in "IK")
W = tc.var("w", "e")


def graph(n: int, more: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    ends = np.array([np.r_[np.arange(n - 1), rng.integers(0, n - 1, more)], np.zeros(n - 1 + more)])
    ends[1] = np.r_[np.arange(1, n), ends[0, n - 1 :] + 1 + rng.integers(0, 9, more)]
    one, other = np.array(ends % n, int)
    return one, other


def test_sparse_matrices_by_their_factors() -> None:
    e = tc.sum(W * (x[I] - x[K]) ** 2) / 2 + tc.sum(y * x**2) / 2
    n = 200
    one, other = graph(n, 60)
    weights = RNG.uniform(1, 2, len(one))
    wanted = np.eye(n)
    for i, k, weight in zip(one, other, weights, strict=True):
        wanted[[i, k], [i, k]] += weight
        wanted[[i, k], [k, i]] -= weight
    held = compressed(e, x)(I=one, K=other, w=weights, y=np.ones(n))
    assert "sparse: " in repr(held.factor())
    agrees(held, wanted)
    inverse = held.inverse()
    assert repr(inverse.terms) == "<InverseTerms (200, 200), 1.0 times, plus None>"
    twice = 2 * inverse + tc.identity_like(inverse)
    assert repr(twice.terms).startswith("<InverseTerms (200, 200), 2.0 times, plus <Terms (200, ")
    np.testing.assert_allclose(twice.todense(), 2 * np.linalg.inv(wanted) + np.eye(n), atol=1e-12)
    weights[(one == 5) | (other == 5)] = 0  # this node is alone
    diagonal = np.where(np.arange(n) == 5, 1e-20, 1)
    held = compressed(e, x)(I=one, K=other, w=weights, y=diagonal)
    with pytest.raises(np.linalg.LinAlgError, match="the sparse 200 x 200 matrix is singular"):
        held.solve(np.ones(n))


def test_terms_tell_their_labels() -> None:
    held = compressed(tc.sum(x**4), x)(x=DATA)
    assert repr(held.terms) == (
        "<Terms (3, 3), (CoreProduct(factors=((0, (0,)),), out=(0, 0), extents=(3,)),), "
        "coefficients (1.0,)>"
    )


# --- many sizes -----------------------------------------------------------------------------------


def test_compressed_tensors_at_more_sizes_than_are_kept() -> None:
    made = compressed(tc.sum(x**4) + tc.sum(x * y) ** 2, x)
    rng = np.random.default_rng(0)
    for n in [*range(1, 68), 3, 1, 66]:
        a, b = rng.uniform(0.5, 1, (2, n))
        wanted = np.diag(12 * a**2) + 2 * np.outer(b, b)
        held = made(x=a, y=b)
        np.testing.assert_allclose(held.todense(), wanted, rtol=1e-12)
        np.testing.assert_allclose(held.solve(a), np.linalg.solve(wanted, a), rtol=1e-9)
