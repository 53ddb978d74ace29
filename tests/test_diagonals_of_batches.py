"""Rules on contractions in which a label stands in a batch and elsewhere, or an operand twice.

Values are NumPy's of the same operands, derivatives jax's. `TCALC_RANDOM` is a number of random
words in place of the usual ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from random import Random
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
    "a": A, "b": B, "c": C, "v": np.array([0.1, 0.4, -0.3]), "k": C @ C.T + EYE,
    "q": B @ B.swapaxes(1, 2) + EYE,
}  # fmt: skip
V, K, Q = DATA["v"], DATA["k"], DATA["q"]


SYMBOLS = {"a": a, "b": b, "k": k, "v": v}


def embedded(product: np.ndarray, letters: str, out: str) -> np.ndarray:
    """A product with an axis for each letter, on the diagonal where one stands twice in `out`."""
    full = np.zeros((3,) * len(out))
    for place in np.ndindex(product.shape):
        at = dict(zip(letters, place, strict=True))
        full[tuple([at[letter] for letter in out])] = product[place]
    return full


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


@pytest.mark.parametrize(("spec", "factors", "arrays"), UNPROVEN)
def test_what_is_not_symmetric_is_not_taken_for_definite(
    spec: str, factors: Any, arrays: Any
) -> None:
    words, out = spec.split("->")
    distinct = "".join(dict.fromkeys(out))
    product = embedded(np.einsum(f"{words}->{distinct}", *arrays), distinct, out)
    e = tc.einsum(spec, *factors)
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


@pytest.mark.parametrize(("spec", "factors"), PROVEN)
def test_products_that_are_semidefinite_are_known_to_be(spec: str, factors: Any) -> None:
    e = simplify(tc.einsum(spec, *factors))
    assert is_definite(e, strictly=False)
    assert np.linalg.eigvalsh(of_data(e)).min() > -1e-12


#: Operands of random products in any namespace of arrays, of which some come together: the letters
#: of each, of which l is mostly of them alone, and their numbers.
OPERANDS: dict[str, tuple[str, Callable[[Any, Any], list[Any]]]] = {
    "a": ("xy", lambda xp, at: [at["a"]]),
    "b": ("bxy", lambda xp, at: [at["b"]]),
    "k": ("xy", lambda xp, at: [at["k"]]),
    "exp v": ("x", lambda xp, at: [xp.exp(at["v"])]),
    "inverse of a": ("xy", lambda xp, at: [xp.linalg.inv(at["a"])]),
    "inverse of b": ("bxy", lambda xp, at: [xp.linalg.inv(at["b"])]),
    "inverse of v b": ("bxy", lambda xp, at: [xp.linalg.inv(at["v"][:, None, None] * at["b"])]),
    "inverse of k": ("xy", lambda xp, at: [xp.linalg.inv(at["k"])]),
    "factor": ("bxl", lambda xp, at: [_factor(xp, at)]),
    "factors": ("bxl byl", lambda xp, at: [_factor(xp, at)] * 2),
    "inverse factors": ("blx bly", lambda xp, at: [xp.linalg.inv(_factor(xp, at))] * 2),
    "logarithms": ("bx", lambda xp, at: [xp.log(xp.einsum("bii->bi", _factor(xp, at)))]),
    "function of a matrix": ("bxl bl byl", lambda xp, at: _eigen(xp, at)),
    "sum of a function": ("bl", lambda xp, at: _eigen(xp, at)[1:2]),
    "projector": ("lx ly", lambda xp, at: [_lq(xp, at)[1]] * 2),
    "row space": ("lx ly", lambda xp, at: [xp.linalg.inv(_lq(xp, at)[0]), _lq(xp, at)[1]]),
    "inverse of squares": ("lx ly", lambda xp, at: [xp.linalg.inv(_lq(xp, at)[0])] * 2),
}
COUNT = int(os.environ.get("TCALC_RANDOM", "60"))


def _factor(xp: Any, at: Any) -> Any:
    return xp.linalg.cholesky(at["b"] @ xp.swapaxes(at["b"], 1, 2) + xp.eye(3))


def _eigen(xp: Any, at: Any) -> list[Any]:
    w, vectors = xp.linalg.eigh(at["b"] + xp.swapaxes(at["b"], 1, 2))
    return [vectors, xp.tanh(w), vectors]


def _lq(xp: Any, at: Any) -> Any:
    if xp is tc:
        return la.lq(at["a"])
    columns, factor = xp.linalg.qr(at["a"].T)
    return factor.T, columns.T


def drawn(random: Random) -> tuple[str, list[str], str]:
    """Words of few letters, so that many stand twice, the operands, and distinct letters out."""
    names = [random.choice(list(OPERANDS)) for _ in range(random.choice((1, 2, 2, 3)))]
    letters, words = random.choice(("ijk", "ijkl")), list[str]()
    for own, name in zip("pqr", names, strict=False):
        of = {letter: random.choice(letters) for letter in "bxyl"}
        of["l"] = own if random.random() < 0.8 else of["l"]
        words += "".join([of.get(letter, " ") for letter in OPERANDS[name][0]]).split()
    used = sorted(set("".join(words)))
    out = "".join(random.sample(used, random.randint(0, min(3, len(used)))))
    return ",".join(words), names, out


def operands(names: list[str], xp: Any, at: Any) -> list[Any]:
    return [operand for name in names for operand in OPERANDS[name][1](xp, at)]


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_words_of_letters_that_stand_twice(seed: int) -> None:
    random = Random(seed)
    words, names, out = drawn(random)

    def value(xp: Any, at: Any) -> Any:
        return xp.einsum(f"{words}->{out}", *operands(names, xp, at))

    e = value(tc, SYMBOLS)
    wanted = value(np, DATA)
    told = (words, names, out)
    close = partial(np.testing.assert_allclose, rtol=1e-8, atol=1e-10, err_msg=str(told))
    close(of_data(e), wanted)
    weights = np.random.default_rng(seed).normal(size=wanted.shape)
    for name in sorted(e.variables.keys() & {"a", "b", "v"}):
        slope = jax.grad(lambda x, name=name: (value(jnp, {**DATA, name: x}) * weights).sum())
        close(of_data(tc.grad(tc.sum(e * weights), name)), slope(DATA[name]), atol=1e-8)
    definite(simplify(e), wanted)
    if 1 <= len(out) <= 2:  # with a unit tensor
        twice = "".join(random.sample([*out, random.choice(out)], len(out) + 1))
        whole = tc.einsum(f"{words}->{twice}", *operands(names, tc, SYMBOLS))
        full = embedded(wanted, out, twice)
        close(of_data(whole), full)
        definite(simplify(whole), full)


def definite(e: tc.Expr, matrices: np.ndarray) -> None:
    """Are matrices semidefinite if they are known to be?"""
    if e.ndim >= 2 and is_definite(e, strictly=False):
        np.testing.assert_allclose(matrices, np.swapaxes(matrices, -1, -2), atol=1e-11)
        assert np.linalg.eigvalsh(matrices).min() > -1e-11
        assert not is_definite(e) or np.linalg.eigvalsh(matrices).min() > 0
