"""Rules on contractions in which a label stands in a batch and elsewhere, or an operand twice.

Values are NumPy's of the same operands; derivatives by jax where rules change their way.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tcalc.rules.facts import is_definite
from tcalc.rules.strategy import simplify

la = tc.linalg
RNG = np.random.default_rng(3)
EYE = np.eye(3)
a, b, v, c = tc.var("a", (3, 3)), tc.var("b", (3, 3, 3)), tc.var("v", 3), tc.var("c", (3, 3))
k, q = (tc.var("k", (3, 3), positive_definite=True),
        tc.var("q", (3, 3, 3), positive_definite=True))  # fmt: skip
A, B = 0.5 * RNG.normal(size=(3, 3)) + 1.5 * EYE, 0.5 * RNG.normal(size=(3, 3, 3)) + 1.5 * EYE
C = RNG.normal(size=(3, 3))
DATA = {
    "a": A, "b": B, "c": C, "v": np.array([0.0, 0.3, -0.2]), "k": C @ C.T + EYE,
    "q": B @ B.swapaxes(1, 2) + EYE,
}  # fmt: skip
V, K, Q = DATA["v"], DATA["k"], DATA["q"]


def of_data(e: tc.Expr) -> Any:
    return simplify(e)({name: DATA[name] for name in e.variables})


def test_logarithms_of_one_entry_of_each_diagonal() -> None:
    factor = np.linalg.cholesky(B @ B.swapaxes(1, 2) + EYE)
    logs = tc.log(tc.diagonal(la.cholesky(b @ b.mT + tc.eye(3)), 0, -2, -1))
    wanted = np.log(factor[range(3), range(3), range(3)])
    np.testing.assert_allclose(of_data(tc.einsum("bb->", logs)), wanted.sum())
    np.testing.assert_allclose(of_data(tc.einsum("bb,kj->", logs, c)), wanted.sum() * C.sum())

    def objective(x: Any) -> Any:
        lower = jnp.linalg.cholesky(x @ x.swapaxes(1, 2))
        return jnp.log(lower[jnp.arange(3), jnp.arange(3), jnp.arange(3)]).sum()

    lower, _ = la.lq(b)  # of positive diagonals or not: logarithms of their sizes
    logs = tc.log(tc.abs(tc.diagonal(lower, 0, -2, -1)))
    slope = tc.grad(tc.einsum("bb->", logs), b)(b=B)
    np.testing.assert_allclose(slope, jax.grad(objective)(B), rtol=1e-9, atol=1e-12)


def test_one_entry_of_each_function_of_a_matrix() -> None:
    def entry(xp: Any, eigh: Any, x: Any) -> Any:
        w, vectors = eigh(x + xp.swapaxes(x, 1, 2))
        return xp.einsum("bbl,bl,bbl->", vectors, xp.tanh(w), vectors)

    e = entry(tc, la.eigh, b)
    np.testing.assert_allclose(of_data(e), entry(np, np.linalg.eigh, B))
    slope = jax.grad(lambda x: entry(jnp, jnp.linalg.eigh, x))(B)
    np.testing.assert_allclose(tc.grad(e, b)(b=B), slope, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("spec", ["rc,rr->", "rc,rr->c", "rc,rr,c->", "rc,rc->"])
def test_row_spaces_and_the_diagonal_of_their_matrix(spec: str) -> None:
    def value(xp: Any, dual: Any, x: Any) -> Any:
        return xp.einsum(spec, dual, x, *([V] if spec.count(",") == 2 else []))

    lower, rows = la.lq(a)
    dual = la.tri_inverse(lower).T @ rows
    found = tc.jacobian(value(tc, dual, a), a)(a=A)

    def numbers(x: Any) -> Any:
        return value(jnp, jnp.linalg.solve(x @ x.T, x), x)

    np.testing.assert_allclose(found, jax.jacobian(numbers)(A), rtol=1e-9, atol=1e-12)


#: Products of which not all are symmetric, by the words of operands: none has Cholesky factors.
UNPROVEN = [
    ("pi,p,pq,qj->ij", (a, tc.exp(v), k, a), (A, np.exp(V), K, A)),
    ("pi,ppq,qj->ij", (a, q, a), (A, Q, A)),
    ("pi,qj,qpq->ij", (a, a, q), (A, A, Q)),
    ("pi,rpq,qj,pr->ij", (a, q, a, tc.exp(c)), (A, Q, A, np.exp(C))),
    ("pi,pq,pqr,qj->ij", (a, k, tc.exp(b), a), (A, K, np.exp(B), A)),
    ("ik,lk->ili", (a, a), (A, A)),
    ("ik,jk->jij", (a, a), (A, A)),
    ("ipq,pq,jqp->ij", (b, k, b), (B, K, B)),
    ("ij->iji", (k,), (K,)),
    ("k,ij->iji", (tc.exp(v), k), (np.exp(V), K)),
    ("kki,kkj->jij", (q, q), (Q, Q)),
]


@pytest.mark.parametrize(("spec", "operands", "arrays"), UNPROVEN)
def test_what_is_not_symmetric_is_not_taken_for_definite(
    spec: str, operands: Any, arrays: Any
) -> None:
    words, out = spec.split("->")
    distinct = "".join(dict.fromkeys(out))
    product = np.einsum(f"{words}->{distinct}", *arrays)
    if distinct != out:
        full = np.zeros((3, 3, 3))
        for x in range(3):
            for y in range(3):
                place = {distinct[0]: x, distinct[1]: y}
                full[tuple([place[letter] for letter in out])] = product[x, y]
        product = full
    e = tc.einsum(spec, *operands)
    np.testing.assert_allclose(of_data(e), product)
    if not np.allclose(product, np.swapaxes(product, -1, -2)):
        assert not is_definite(simplify(e), strictly=False)
    shifted = e + 9 * tc.eye(3)
    wanted = np.linalg.inv(product + 9 * EYE)
    np.testing.assert_allclose(of_data(la.inv(shifted)), wanted, rtol=1e-9, atol=1e-12)


#: And products that are, which proofs are for.
PROVEN = [
    ("pi,p,pj->ij", (a, tc.exp(v), a)),
    ("pi,pq,qj->ij", (a, k, a)),
    ("pi,qp,qj->ij", (a, k, a)),
    ("rpi,rpq,rqj,r->ij", (b, q, b, tc.exp(v))),
    ("ipq,pr,qs,jrs->ij", (b, k, k, b)),
    ("pi,p,pj,r->rij", (a, tc.exp(v), a, tc.exp(v))),
    ("ipp,jqq,pq->ij", (b, b, k)),
]


@pytest.mark.parametrize(("spec", "operands"), PROVEN)
def test_products_that_are_semidefinite_are_known_to_be(spec: str, operands: Any) -> None:
    e = simplify(tc.einsum(spec, *operands))
    assert is_definite(e, strictly=False)
    assert np.linalg.eigvalsh(of_data(e)).min() > -1e-12
