"""Models whose one function is written in several spellings, which should be planned alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .namespaces import logsumexp
from .problem import Array
from .problems import gp

#: Features; points and features of k-means; features and classes of a regression.
D, (K, DIM), (P, C) = 4, (5, 3), (8, 5)
#: Matrices of which a covariance is made.
PARTS = 3


@dataclass(frozen=True)
class Model:
    """Objectives by the name of the spelling, each with its variables; all are one function.

    `data` draws arrays for all of them; `n` is how many rows make the model worth planning. The
    function in a namespace of arrays is there for models that no problem compares with.
    """

    name: str
    spellings: Callable[[], Mapping[str, tuple[Any, Any]]]
    data: Callable[[int], dict[str, Array]]
    n: int
    function: Callable[[Any, Any], Any] | None = None


def _process(squared: str, X: Any, y: Any, parameters: tuple[Any, Any, Any]) -> Any:
    import tcalc as tc

    w, s, t = parameters
    if squared == "differences":
        distances = (X[:, None, :] - X[None, :, :]) ** 2 @ tc.exp(w)
    else:
        scaled = X * tc.exp(w / 2)
        lengths = tc.sum(scaled * scaled, axis=1)
        distances = lengths[:, None] + lengths[None, :] - 2 * scaled @ scaled.T
    kernel = tc.exp(s - distances / 2) + tc.exp(t) * tc.eye("n")
    factor = tc.linalg.cholesky(kernel)
    white = tc.linalg.solve_triangular(factor, y, lower=True)
    return white @ white / 2 + tc.linalg.sumlogdiag(factor)


def processes() -> dict[str, tuple[Any, Any]]:
    """A Gaussian process: distances in two ways, parameters apart or in one vector."""
    import tcalc as tc

    X, y, th = tc.var("X", ("n", D)), tc.var("y", "n"), tc.var("th", D + 2)
    apart = tc.var("w", D), tc.var("s"), tc.var("t")
    slices = th[:D], th[D], th[D + 1]
    return {
        f"{squared}, {how}": (_process(squared, X, y, parameters), wrt)
        for squared in ("differences", "gram")
        for how, parameters, wrt in (("apart", apart, apart), ("one vector", slices, th))
    }


def _process_data(n: int) -> dict[str, Array]:
    data = gp.of_size(n, D).load(np.random.default_rng(0))
    return {**data, "th": np.concatenate([data["w"], [data["s"], data["t"]]])}


def mixtures() -> dict[str, tuple[Any, Any]]:
    """Logits by a matrix, offsets and a scale, apart or in one vector, in five ways."""
    import tcalc as tc

    Z, r = tc.var("Z", ("n", 7)), tc.var("r", "n")
    v, a, b, c = tc.var("v", 25), tc.var("a", (7, 3)), tc.var("b", 3), tc.var("c")

    def loss(a: Any, b: Any, c: Any) -> Any:
        scores = tc.exp(c) * (Z @ a) + b
        return tc.sum(tc.logsumexp(scores, axis=1)) + r @ tc.tanh(Z @ a) @ b

    def of_logarithms(a: Any, b: Any, c: Any) -> Any:
        products = Z @ a
        shares = np.log(np.sum(np.exp(np.exp(c) * products + b), axis=1))
        return np.sum(shares) + np.sum(r[:, None] * np.tanh(products) * b)

    def shifted(a: Any, b: Any, c: Any) -> Any:
        scores = np.exp(c) * Z @ a + b
        top = np.max(scores, axis=1, keepdims=True)
        shares = np.log(np.sum(np.exp(scores - top), axis=1))
        return np.sum(shares) + np.sum(top) + (np.tanh(Z @ a) @ b) @ r

    def of_scaled(a: Any, b: Any, c: Any) -> Any:
        scores = tc.einsum("np,pk->nk", Z, np.exp(c) * a) + b
        curved = tc.einsum("n,nk,k->", r, np.tanh(tc.einsum("np,pk->nk", Z, a)), b)
        return np.sum(tc.logsumexp(scores, axis=1)) + curved

    apart, slices = (a, b, c), (v[:21].reshape(7, 3), v[21:24], v[24])
    return {
        "apart": (loss(*apart), apart),
        "one vector": (loss(*slices), v),
        "logarithms of sums": (of_logarithms(*apart), apart),
        "shifted, one vector": (shifted(*slices), v),
        "scaled first": (of_scaled(*apart), apart),
    }


def _mixture_data(n: int) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    v = rng.normal(size=25) / 4
    parts = {"a": v[:21].reshape(7, 3), "b": v[21:24], "c": v[24]}
    return {"Z": rng.normal(size=(n, 7)), "r": rng.normal(size=n), "v": v, **parts}


# --- soft k-means ---------------------------------------------------------------------------------


def clusterings() -> dict[str, tuple[Any, Any]]:
    """Soft k-means: squared distances of points and centres in five ways."""
    import tcalc as tc

    X, centres, c = tc.var("X", ("n", DIM)), tc.var("centres", (K, DIM)), tc.var("c", K * DIM)
    rows = c.reshape(K, DIM)
    apart, slices = X[:, None, :] - centres, X[:, None, :] - rows
    lengths = tc.sum(X * X, axis=1)[:, None] + tc.sum(centres * centres, axis=1)
    nearest = tc.build(K, lambda k: np.sum(np.square(X - centres[k]), axis=1)).T

    def loss(distances: Any) -> Any:
        return -tc.sum(tc.logsumexp(-distances / 2, axis=1))

    return {
        "differences": (loss(tc.sum(apart**2, axis=2)), centres),
        "gram": (loss(lengths - 2 * X @ centres.T), centres),
        "einsum, one vector": (loss(tc.einsum("nkd,nkd->nk", slices, slices)), c),
        "norms": (loss(np.linalg.norm(apart, axis=2) ** 2), centres),
        "by centres": (loss(nearest), centres),
    }


def _clustering_data(n: int) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(K, DIM))
    return {"X": rng.normal(size=(n, DIM)), "centres": centres, "c": centres.ravel()}


def _clustering(xp: Any, data: Any) -> Any:
    apart = data["X"][:, None, :] - data["centres"]
    return -xp.sum(logsumexp(xp, -xp.sum(apart * apart, 2) / 2))


# --- multinomial regression -----------------------------------------------------------------------


def classifications() -> dict[str, tuple[Any, Any]]:
    """Multinomial regression of counts, log-sum-exp in five ways, weights apart or in a vector."""
    import tcalc as tc

    X, Y = tc.var("X", ("n", P)), tc.var("Y", ("n", C))
    W, b, v = tc.var("W", (P, C)), tc.var("b", C), tc.var("v", P * C + C)
    scores, sliced = X @ W + b, X @ v[: P * C].reshape(P, C) + v[P * C :]
    top = np.max(scores, axis=1, keepdims=True)
    shifted = np.log(np.sum(np.exp(scores - top), axis=1))
    powers = np.exp(scores)
    shares = powers / np.sum(powers, axis=1, keepdims=True)
    plain = np.log(np.sum(np.exp(sliced), axis=1))
    apart, counts = (W, b), np.sum(Y, axis=1)
    return {
        "logsumexp": (tc.sum(counts * tc.logsumexp(scores, axis=1) - tc.sum(Y * scores, 1)), apart),
        "log of sum, one vector": (counts @ plain - np.sum(Y * sliced), v),
        "shifted": (counts @ (shifted + top[:, 0]) - np.sum(Y * scores), apart),
        "log_softmax, one vector": (-np.sum(Y * tc.log_softmax(sliced, axis=1)), v),
        "log of shares": (-np.sum(Y * np.log(shares)), apart),
    }


def _classification_data(n: int) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    v = rng.normal(size=P * C + C) / 4
    data = {"X": rng.normal(size=(n, P)), "Y": rng.multinomial(3, np.full(C, 1 / C), size=n) * 1.0}
    return {**data, "v": v, "W": v[: P * C].reshape(P, C), "b": v[P * C :]}


def _classification(xp: Any, data: Any) -> Any:
    scores = data["X"] @ data["W"] + data["b"]
    return xp.sum(xp.sum(data["Y"], 1) * logsumexp(xp, scores)) - xp.sum(data["Y"] * scores)


# --- generalised least squares --------------------------------------------------------------------


def covariances() -> dict[str, tuple[Any, Any]]:
    """Components of variance: quadratic forms and log determinants in five ways."""
    import tcalc as tc

    la = tc.linalg
    y, w, s, v = tc.var("y", "n"), tc.var("w", PARTS), tc.var("s"), tc.var("v", PARTS + 1)
    known = [tc.var(f"B{k}", ("n", "n"), positive_definite=True) for k in range(PARTS)]

    def covariance(w: Any, s: Any) -> Any:
        return sum(tc.exp(w[k]) * B for k, B in enumerate(known)) + tc.exp(s) * tc.eye("n")

    one, two = covariance(w, s), covariance(v[:PARTS], v[PARTS])
    factor, other, apart = la.cholesky(one), la.cholesky(two), (w, s)
    white, alpha = la.solve_triangular(factor, y, lower=True), la.solve(one, y)
    halved = np.sum(np.log(np.diag(other)))
    return {
        "inverse": (y @ la.inv(one) @ y / 2 + la.slogdet(one)[1] / 2, apart),
        "solve, one vector": (y @ la.solve(two, y) / 2 + la.logdet(two) / 2, v),
        "cholesky": (white @ white / 2 + la.sumlogdiag(factor), apart),
        "cho_solve, one vector": (y @ la.cho_solve((other, True), y) / 2 + halved, v),
        "quadratic form": (alpha @ one @ alpha / 2 + np.log(la.det(one)) / 2, apart),
    }


def _covariance_data(n: int) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    roots = [rng.normal(size=(n, n)) for _ in range(PARTS)]
    matrices = {f"B{k}": A @ A.T / n + np.eye(n) for k, A in enumerate(roots)}
    v = rng.normal(size=PARTS + 1) / 4
    return {**matrices, "y": rng.normal(size=n), "v": v, "w": v[:PARTS], "s": v[PARTS]}


def _covariance(xp: Any, data: Any) -> Any:
    y = data["y"]
    matrix = xp.exp(data["s"]) * xp.eye(len(y))
    for k in range(PARTS):
        matrix = matrix + xp.exp(data["w"][k]) * data[f"B{k}"]
    return y @ xp.linalg.solve(matrix, y) / 2 + xp.linalg.slogdet(matrix)[1] / 2


MODELS = {
    model.name: model
    for model in (
        Model("gp", processes, _process_data, 1000),
        Model("mixture", mixtures, _mixture_data, 30_000),
        Model("k-means", clusterings, _clustering_data, 20_000, _clustering),
        Model("softmax", classifications, _classification_data, 20_000, _classification),
        Model("covariance", covariances, _covariance_data, 400, _covariance),
    )
}
