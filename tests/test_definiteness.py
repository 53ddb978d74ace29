"""Signs of matrices whose rounding errors are not symmetric."""

from __future__ import annotations

import numpy as np
import pytest

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
