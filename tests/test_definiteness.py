"""Signs of matrices whose rounding errors are not symmetric."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc
from tcalc.structured.tensor import Structured
from tcalc.structured.terms.numeric_terms import Terms
from tcalc.structured.terms.tensor_layout import CoreProduct, TableIndex, TensorLayout
from tests.test_solvers import dense_of


@pytest.mark.parametrize("structure", ["dense", "blocks", "low rank", "sparse", "band"])
@pytest.mark.parametrize("skew", [1e-16, 1e-12, 1e-3])
@pytest.mark.parametrize("lowest", [1.0, -0.5])
def test_signs_are_those_of_a_matrix_that_is_symmetric_in_most_digits(
    structure: str, skew: float, lowest: float
) -> None:
    """Rounding leaves Hessians of ill-conditioned functions so; solutions are the matrix's own."""
    rng = np.random.default_rng(3)
    n = 60 if structure in ("sparse", "band") else 5
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    S = (Q * np.linspace(lowest, 4, n)) @ Q.T
    if n > 5:
        S = np.diag(np.linspace(lowest, 4, n)) + 0.1 * (np.eye(n, k=1) + np.eye(n, k=-1))
    A = S + skew * np.triu(np.sign(S), 1)
    cores: list[np.ndarray] = [A]
    products = [CoreProduct(((0, (0, 1)),), (0, 1), (n, n))]
    if structure == "blocks":
        products = [CoreProduct(((0, (0, 1)),), (2, 0, 2, 1), (n, n, 3))]
    elif structure == "low rank":
        cores.append(np.linalg.qr(rng.normal(size=(400, n)))[0])
        factors = ((1, (0, 1)), (0, (1, 2)), (1, (3, 2)))
        products = [CoreProduct(factors, (0, 3), (400, n, n, 400)), CoreProduct((), (0, 0), (400,))]
    elif n > 5:
        order = np.arange(n) if structure == "band" else rng.permutation(n)
        cores = [
            np.diag(A)[np.argsort(order)],
            np.diag(A, 1),
            np.diag(A, -1),
            order[:-1],
            order[1:],
        ]
        left, right = TableIndex(3, (0,)), TableIndex(4, (0,))
        products = [
            CoreProduct(((0, (0,)),), (0, 0), (n,)),
            CoreProduct(((1, (0,)),), (left, right), (n - 1,)),
            CoreProduct(((2, (0,)),), (right, left), (n - 1,)),
        ]
    size = 400 if structure == "low rank" else n
    shape = (3, n, 3, n) if structure == "blocks" else (size, size)
    coefs = [1.0] * len(products) if structure != "low rank" else [1.0, 0.25]
    held = Structured(Terms(TensorLayout(shape, len(shape) // 2, products), cores, coefs))
    whole = dense_of(held.terms) if structure != "low rank" else held.todense()
    whole = whole.reshape(len(A) * 3 if structure == "blocks" else size, -1)
    factor = held.factor()
    lowest_of_all = np.linalg.eigvalsh(whole + whole.T)[0]
    assert factor.definite == (skew < 1e-4 and lowest_of_all > 0)
    g = rng.normal(size=len(whole))
    x = factor.solve(g.reshape(shape[: len(shape) // 2])).ravel()
    np.testing.assert_allclose(x, np.linalg.solve(whole, g), 1e-12 * np.linalg.cond(whole))


X, A, B = (tc.var(name, ("n", "n")) for name in "XAB")
Q = tc.var("Q", ("n", "n"))
T, P = tc.var("T", ("m", "n", "n")), tc.var("P", ("m", "n", "n"))
x, c, u, v = (tc.var(name, "n") for name in "xcuv")
k = tc.var("k", ())
SKEW = (tc.sum(Q * X) - tc.sum(Q * X.T)) ** 2
#: Functions or their gradients, what of, and words of the method.
COUNTED: dict[str, tuple[tc.Expr, tc.Expr, str]] = {
    "a product": (A @ X @ B, X, "Kronecker: "),
    "a product for each item": (tc.einsum("mij,mjk,kl->mil", P, T, B), T, "Kronecker: "),
    "a sum of products": (tc.sum(X * (A @ X)) + tc.sum(X * (X @ B)), X, "Kronecker sum"),
    "an exchange of axes": (k * tc.sum(X * X.T), X, "Kronecker: "),
    "crossed factors": (k * Q @ X.T @ Q, X, "Kronecker: "),
    "low rank": (tc.sum(c * x**2) + k * tc.sum(x) ** 2 + tc.sum(u * x) ** 2, x, "low rank"),
    "two vectors coupled": (
        tc.sum(c * x**2) + k * tc.sum(v * x) * tc.sum(u * x), x, "low rank",
    ),
    "low rank for each item": (
        tc.sum(T**2 * c) + tc.einsum("m,mij,mij->", tc.var("w", "m"), P, T) ** 2
        + tc.einsum("mij,mij,mkl,mkl,m->", P, T, P, T, tc.var("w", "m")), T, "low rank",
    ),
    "low rank on an exchange": (tc.sum(X * X.T) / 2 + k * SKEW, X, "low rank"),
    "a sparse matrix": (
        tc.sum(c * x**2) + k * tc.sum(tc.roll(x, 1) * x), x, "sparse",
    ),
    "low rank on a sparse matrix": (
        tc.sum(c * x**2) + tc.sum(tc.roll(x, 1) * x) / 9 + k * tc.sum(u * x) ** 2, x, "low rank",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTED)
def test_negative_eigenvalues_are_counted_as_those_of_the_dense_matrix_are(name: str) -> None:
    f, wrt, way = COUNTED[name]
    rng = np.random.default_rng(5)
    n = 60 if wrt is x else 4
    sizes, seen = {"n": n, "m": 3}, set()
    for _ in range(12):
        data = {s.name: rng.normal(size=[sizes[e] for e in s.shape]) for s in (A, B, P, Q, T, x, X)}
        for matrix in ("A", "B", "P"):
            signs = np.sign(rng.normal(size=n if n == 4 else 0) + rng.choice([-9, 0, 9]))
            if n == 4:
                data[matrix] = matrix_of_signs(rng, data[matrix].shape, signs)
        vectors = rng.normal(size=(3, n))
        data |= {"c": vectors[0] + rng.choice([0, 9]), "u": vectors[1], "v": vectors[2]}
        data["c"][0] = rng.choice([-1.0, 1.0]) / 9
        data |= {"k": np.float64(rng.choice([-9, -1, 1, 9])), "w": rng.normal(size=3)}
        H = tc.jacobian(f, wrt) if f.ndim else tc.hessian(f, wrt)
        held = tc.compile(H, structured=True)({s: data[s] for s in H.variables})
        solver = held.factor().solver
        assert way in held.explain()
        values = np.linalg.eigvalsh(held.tomatrix())
        seen.add(int((values < 0).sum()))
        assert solver.negatives == (values < 0).sum()
        assert held.factor().definite == (values[0] > 0)
    assert len(seen) > 1


def matrix_of_signs(
    rng: np.random.Generator, shape: tuple[int, ...], signs: np.ndarray
) -> np.ndarray:
    """Symmetric matrices of eigenvalues between 1 and 2 with these signs."""
    q = np.linalg.qr(rng.normal(size=shape))[0]
    found: np.ndarray = (q * (signs * rng.uniform(1, 2, len(signs)))) @ q.mT
    return (found + found.mT) / 2


def test_newton_ends_at_the_minimum_of_a_convex_function_with_an_indefinite_base() -> None:
    """The diagonal has a negative entry, which the sum's square makes good: one step."""
    f = tc.sum(c * x * x) / 2 + tc.sum(x) ** 2 / 2 - tc.sum(x)
    diagonal = np.array([-0.1, 1.0, 1.0])
    found = tc.newton(f, {"x": np.ones(3)}, data={"c": diagonal})
    assert found.success
    assert found.nit == 1
    wanted = np.linalg.solve(np.diag(diagonal) + 1, np.ones(3))
    np.testing.assert_allclose(found.x["x"], wanted, rtol=1e-12)


@pytest.mark.parametrize("entries", ["exchange", "shift", "nothing", "number"])
def test_few_entries_off_the_diagonal_are_no_multiple_of_the_identity(entries: str) -> None:
    """An exchange has as many entries as the identity, and zeros on its diagonal too."""
    n = 12
    P = {
        "exchange": np.eye(n)[::-1], "shift": np.eye(n, k=1),
        "nothing": np.zeros((n, n)), "number": 2 * np.eye(n),
    }[entries]  # fmt: skip
    other = np.diag(np.arange(1.0, n + 1)) + np.eye(n, k=1) + np.eye(n, k=-1)
    held = tc.compile(tc.jacobian(A @ X @ B + 7 * X, X), structured=True)(A=P, B=other)
    whole = np.kron(P, other.T) + 7 * np.eye(n * n)
    np.testing.assert_allclose(held.tomatrix(), whole)
    g = np.arange(144.0).reshape(n, n)
    np.testing.assert_allclose(held.solve(g).ravel(), np.linalg.solve(whole, g.ravel()), 1e-9, 1e-9)
    sign, log = np.linalg.slogdet(whole)
    assert held.slogdet() == pytest.approx((sign, log), rel=1e-10)
