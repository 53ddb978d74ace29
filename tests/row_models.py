"""Models whose data come by rows, with data for them: what tests of partitions go through."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

import tcalc as tc

ROWS, COLUMNS, CLASSES, GROUPS = 24, 3, 4, 5

X = tc.var("X", ("m", "n"))
y = tc.var("y", ("m",))
w = tc.var("w", ("n",))
W = tc.var("W", ("n", "k"))
b = tc.var("b", ("g",))
c = tc.var("c")
P = tc.var("P", ("m", "d", "d"))
U = tc.var("U", ("m", "k"))
V = tc.var("V", ("n", "k"))
label = tc.var("label", ("m",), integer=True)
group = tc.var("group", ("m",), integer=True)

_loss = tc.sum(tc.softplus(-y * (X @ w)))
_counts = tc.sum(tc.exp(X @ w) - y * (X @ w))
_softmax = tc.sum(tc.logsumexp(X @ W, axis=1) - tc.einsum("ij,ij->i", X @ W, tc.eye("k")[label]))
_factors = tc.sum((X - U @ V.T) ** 2) + c * tc.sum(V**2)
_groups = tc.sum((y - X @ w - b[group]) ** 2) + c * tc.sum(b**2) + c * w @ w
_ridge = tc.sum((X @ w - y) ** 2) + c * w @ w

#: Objectives, and by what they are differentiated.
OBJECTIVES: dict[str, tuple[tc.Expr, str]] = {
    "logistic": (_loss + c * w @ w, "w"),
    "poisson": (_counts + c * w @ w, "w"),
    "softmax": (_softmax + c * tc.sum(W**2), "W"),
    "matrix factorisation": (_factors, "V"),
    "ridge": (_ridge, "w"),
    "random effects": (_groups, "b"),
}
VALUES: dict[str, tc.Expr] = {
    "value of a mean": tc.mean(X @ w),
    "mean of squares": tc.mean((X @ w - y) ** 2),
    "sum of ones": tc.sum(tc.ones("m")) * tc.sum(y),
    "variance": np.var(X @ w),
    "standard deviation": tc.std(X, axis=0),
    "logarithm of a sum": tc.log(tc.sum(tc.exp(X @ w))),
    "solve": tc.linalg.solve(X.T @ X + tc.eye("n"), X.T @ y),
    "hat values": tc.einsum("ij,jk,ik->i", X, tc.linalg.inv(X.T @ X), X),
    "largest": tc.max(X @ w) + tc.sum(w),
    "smallest of columns": tc.min(X, axis=0),
    "product": tc.prod(tc.cos(X), axis=0),
    "norm": tc.norm(X @ w - y),
    "norms of columns": tc.norm(X, axis=0),
    "logsumexp": tc.logsumexp(X @ w),
    "logsumexp of columns": tc.logsumexp(X, axis=0),
    "weighted logsumexp": tc.weighted_logsumexp(3 * X, tc.relu(X) + 1, axis=0),
    "slopes of the largest": tc.grad(tc.max(X @ w), "w"),
    "slopes of the largest by rows": tc.grad(tc.max(tc.sin(y) * (X @ w)), "y"),
    "smallest of all entries": tc.grad(tc.min(X @ W), "W"),
    "shares of columns": tc.hardmax(tc.sign(X - tc.mean(X, axis=0)), axis=0),
    "slopes of logsumexp": tc.grad(tc.logsumexp(X @ w), "w"),
    "slopes of a variance": tc.grad(np.var(X @ w), "w"),
    "slopes of a norm": tc.grad(tc.norm(X @ w - y), "w"),
    "one product of two sums": tc.einsum("i,j->", y, y),
    "a sum beside others": tc.einsum("ij,i,k->jk", X, y, w),
    "two sums that share an index": tc.einsum("ij,kj,i,k->", X, X, y, y),
    "predictions": X @ w,
    "residuals": y - X @ w,
    "centred": X - tc.mean(X, axis=0),
    "standardised": (X - tc.mean(X, axis=0)) / tc.std(X, axis=0),
    "projected": X @ (X.T @ y),
    "projected at once": tc.einsum("ij,kj,k->i", X, X, y),
    "probabilities": tc.softmax(X @ W, axis=1),
    "transposed rows": (X @ W).T,
    "one by one": tc.linalg.inv(P + 3 * tc.eye("d")),
    "determinants": tc.sum(tc.linalg.logdet(P + 3 * tc.eye("d"))),
    "factors": tc.sum(tc.linalg.eigh(P + tc.swapaxes(P, 1, 2))[0] ** 2),
    "numbered rows": tc.sum(y * tc.arange("m")),
    "the first row": X[0] @ w,
    "groups' sums": tc.segment_sum(y, group, "g"),
    "groups' effects": b[group] * y,
    "distances to centres": tc.min(tc.sum((X[:, None, :] - W.T[None, :, :]) ** 2, axis=2), axis=1),
    "slopes by rows": tc.grad(_factors, "U"),
    "batches": tc.vmap(tc.sum(tc.exp(w) * tc.var("z", ("n",))), {"z": 0}, size="m"),
    "without data": w @ w,
}


class Refused(NamedTuple):
    """What no parts of the rows give, and what the message must say."""

    e: tc.Expr
    node: str
    why: str


_kernel = tc.exp(-tc.sum((X[:, None, :] - X[None, :, :]) ** 2, axis=2))
REFUSED: dict[str, Refused] = {
    "gaussian process": Refused(tc.linalg.logdet(_kernel + tc.eye("m")), "X", "pairs rows"),
    "products of rows": Refused(X @ X.T, "X*X'", "pairs rows"),
    "running sum": Refused(tc.sum(tc.exp(tc.cumsum(y))), "cumsum(y", "all rows at once"),
    "shifted rows": Refused(tc.sum((y[1:] - y[:-1]) ** 2), "y[", "shifted"),
    "sorted rows": Refused(tc.argsort(y), "argsort(y)", "all rows at once"),
    "merged rows": Refused(tc.exp(tc.ravel(X)), "reshape(exp(X)", "all rows at once"),
    "rows by index": Refused(y[group], "y[group]", "pairs rows"),
    "all second derivatives": Refused(
        tc.hessian(tc.sum(tc.exp(y)), "y"), "diag(exp(y))", "structured"
    ),
    "a loop over rows": Refused(
        tc.fold(lambda s, i: tc.tanh(s + y[i]), tc.zeros(()), "m"), "fold", "one row after"
    ),
}


def data(seed: int = 0, rows: int = ROWS) -> dict[str, Any]:
    """Arrays for all variables."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> Any:
        return rng.normal(size=shape)

    return {
        "X": normal(rows, COLUMNS), "y": normal(rows), "w": normal(COLUMNS), "c": 0.3,
        "g": GROUPS,
        "W": normal(COLUMNS, CLASSES), "b": normal(GROUPS), "P": normal(rows, 2, 2),
        "U": normal(rows, CLASSES), "V": normal(COLUMNS, CLASSES), "z": normal(rows, COLUMNS),
        "label": rng.integers(0, CLASSES, rows), "group": rng.integers(0, GROUPS, rows),
    }  # fmt: skip


def by_rows(values: Mapping[str, Any], e: tc.Expr) -> dict[str, Any]:
    """Those of an expression's variables that have an axis of the rows."""
    return {name: values[name] for name, v in e.variables.items() if "m" in v.shape}


def derivatives(name: str) -> dict[str, tc.Expr]:
    """Value, gradient and Hessian of an objective."""
    f, by = OBJECTIVES[name]
    return {"value": f, "gradient": tc.grad(f, by), "hessian": tc.hessian(f, by)}


#: Expressions by name: all objectives with their derivatives, and all values.
CASES: dict[str, tc.Expr] = {
    **{f"{name}, {k}": e for name in OBJECTIVES for k, e in derivatives(name).items()},
    **VALUES,
}
Runner = Callable[..., Any]
