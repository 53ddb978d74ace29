"""A Gaussian linear dynamical system: minus the log-likelihood by the Kalman filter.

x_t = F x_(t-1) + N(0, diag(e^q)), y_t = x_t + N(0, e^r I), x_0 = N(0, I), n observations of k
numbers. The filter is a sequential loop, whose expression is the same for any n.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from ..namespaces import scan, solve_lower
from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes

TEXT = "sum_t log|S_t| / 2 + e_t' S_t^-1 e_t / 2 of the filter's innovations e_t ~ N(0, S_t)"


def objective(xp: Any, data: Any) -> Any:
    F = data["F"]
    process, observed = xp.diag(xp.exp(data["q"])), xp.exp(data["r"]) * xp.eye(len(F))

    def step(state: Any, y: Any) -> Any:
        m, P, total = state
        m, P = F @ m, F @ P @ F.T + process
        factor = xp.linalg.cholesky(P + observed)
        white = solve_lower(xp, factor, (y - m)[:, None])[:, 0]
        gain = solve_lower(xp, factor, P)
        total = total + white @ white / 2 + xp.sum(xp.log(xp.diag(factor)))
        return m + white @ gain, P - gain.T @ gain, total

    start = (xp.zeros(len(F)), xp.eye(len(F)), xp.zeros(()))
    return scan(xp, step, start, data["Y"])[2]


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    F, q, r = tc.var("F", ("k", "k")), tc.var("q", ("k",)), tc.var("r")
    Y = tc.var("Y", ("n", "k"))
    process, observed = tc.diag(tc.exp(q)), tc.exp(r) * tc.eye("k")

    def step(state: Any, t: Any) -> Any:
        m, P, total = state
        m, P = F @ m, F @ P @ F.T + process
        factor = tc.linalg.cholesky(P + observed)
        white = tc.linalg.solve_triangular(factor, Y[t] - m, lower=True)
        gain = tc.linalg.solve_triangular(factor, P, lower=True)
        total = total + white @ white / 2 + tc.linalg.sumlogdiag(factor)
        return m + white @ gain, P - gain.T @ gain, total

    return tc.fold(step, (tc.zeros("k"), tc.eye("k"), tc.zeros(())), "n")[2]


def of_size(n: int, k: int = 2) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        turn, x = np.eye(k), rng.standard_normal(k)
        turn[:2, :2] = 0.9 * np.array([[np.cos(0.5), np.sin(0.5)], [-np.sin(0.5), np.cos(0.5)]])
        Y = np.empty((n, k))
        for t in range(n):
            x = turn @ x + 0.5 * rng.standard_normal(k)
            Y[t] = x + 0.3 * rng.standard_normal(k)
        return with_parameters(Y)

    return Case(f"n={n}, k={k}", {"n": n, "k": k}, load)


def growth(n: int) -> Case:
    """Quarterly growth of the United States' output and consumption, the last n quarters."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        from statsmodels.datasets import macrodata

        levels = macrodata.load_pandas().data[["realgdp", "realcons"]].to_numpy()
        Y = np.diff(np.log(levels), axis=0)
        return with_parameters(((Y - Y.mean(axis=0)) / Y.std(axis=0))[-n:])

    return Case(f"growth, n={n}", {"n": n, "k": 2}, load)


def with_parameters(Y: Array) -> dict[str, Array]:
    k = Y.shape[1]
    F = 0.5 * np.eye(k) + 0.1 * np.tri(k) - 0.05
    return {"Y": Y, "F": F, "q": np.linspace(-1.0, -0.5, k), "r": np.array(-0.8)}


@dataclass(frozen=True, eq=False)
class Dual:
    """A matrix and its derivatives along every parameter."""

    value: Array
    along: Array
    __array_ufunc__ = None  # arrays leave mixed operations to this class

    def __add__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.along + other.along)
        return Dual(self.value + other, self.along)

    __radd__ = __add__

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.along)

    def __sub__(self, other: Any) -> Dual:
        return self + -other

    def __rsub__(self, other: Array) -> Dual:
        return -self + other

    def __matmul__(self, other: Any) -> Dual:
        if isinstance(other, Dual):
            along = self.along @ other.value
            along += self.value @ other.along
            return Dual(self.value @ other.value, along)
        return Dual(self.value @ other, self.along @ other)

    def __rmatmul__(self, other: Array) -> Dual:
        return Dual(other @ self.value, other @ self.along)

    @property
    def mT(self) -> Dual:
        return Dual(self.value.T, self.along.mT)


Matrix = TypeVar("Matrix", Array, Dual)


def inverse(matrix: Matrix) -> Matrix:
    if isinstance(matrix, Dual):
        found = np.linalg.inv(matrix.value)
        return Dual(found, -found @ matrix.along @ found)
    return np.linalg.inv(matrix)


def value(data: Data) -> Any:
    F, Y = data["F"], data["Y"]
    process, observed = noises(data)
    m, P, total = np.zeros(len(F)), np.eye(len(F)), 0.0
    for y in Y:
        m, P = F @ m, F @ P @ F.T + process
        S = P + observed
        gain = P @ np.linalg.inv(S)
        e = y - m
        step = gain @ e
        # S^-1 e = e^-r (e - gain e), as S = P + e^r I
        total += np.linalg.slogdet(S)[1] + e @ (e - step) / observed[0, 0]
        m, P = m + step, P - gain @ P
    return total / 2


def noises(data: Data) -> tuple[Array, Array]:
    return np.diag(np.exp(data["q"])), np.exp(data["r"]) * np.eye(len(data["q"]))


def moments(F: Matrix, process: Matrix, observed: Matrix, Y: Array) -> Sequence[Matrix]:
    """Sums over t of the smoother's E x x', E x+ x', E x+ x+', E (y - x+)(y - x+)'.

    x+ is the state at t and x the one before (Rauch, Tung and Striebel 1965).
    """
    k = Y.shape[1]
    m: Any = np.zeros((k, 1))
    P: Any = np.eye(k)
    passed = []
    for y in Y[:, :, None]:
        ahead, spread = F @ m, F @ P @ F.mT + process
        passed.append((m, P, ahead, spread))
        gain = spread @ inverse(spread + observed)
        m, P = ahead + gain @ (y - ahead), spread - gain @ spread
    sums: list[Any] = [np.zeros((k, k))] * 4
    for y, (before, spread_before, ahead, spread) in zip(
        Y[::-1, :, None], passed[::-1], strict=True
    ):
        back = spread_before @ F.mT @ inverse(spread)
        previous = before + back @ (m - ahead)
        smoothed = spread_before + back @ (P - spread) @ back.mT
        off = y - m
        terms = (
            smoothed + previous @ previous.mT,
            P @ back.mT + m @ previous.mT,
            P + m @ m.mT,
            P + off @ off.mT,
        )
        sums = [term + total for term, total in zip(terms, sums, strict=True)]
        m, P = previous, smoothed
    return sums


def score(F: Matrix, process: Matrix, observed: Matrix, Y: Array) -> tuple[Matrix, Matrix, Matrix]:
    """The gradient by Fisher's identity, E of the complete data's: in F, in log Q, in log R.

    The latter two are matrices of which the diagonal counts.
    """
    A, B, C, D = moments(F, process, observed, Y)
    moved = F @ A - B
    precision = inverse(process)
    drift = C - F @ B.mT + moved @ F.mT
    eye = len(Y) * np.eye(Y.shape[1])
    return precision @ moved, eye - precision @ drift, eye - inverse(observed) @ D


def gradient(data: Data) -> tuple[Array, Array, Any]:
    in_F, in_q, in_r = score(data["F"], *noises(data), data["Y"])
    return in_F, np.diagonal(in_q) / 2, np.trace(in_r) / 2


def hessian(data: Data) -> Any:
    """The smoother's derivative along every parameter."""
    k = len(data["F"])
    process, observed = noises(data)
    count = k * k + k + 1
    along_F, along_q, along_r = np.zeros((3, count, k, k))
    along_F[: k * k] = np.eye(k * k).reshape(k * k, k, k)
    along_q[k * k + np.arange(k), np.arange(k), np.arange(k)] = np.diagonal(process)
    along_r[-1] = observed
    F, Q, R = Dual(data["F"], along_F), Dual(process, along_q), Dual(observed, along_r)
    in_F, in_q, in_r = (part.along for part in score(F, Q, R, data["Y"]))
    columns = (in_F, np.diagonal(in_q, axis1=1, axis2=2) / 2, np.trace(in_r, axis1=1, axis2=2) / 2)
    rows: tuple[Any, ...] = (slice(k * k), slice(k * k, -1), -1)
    shapes = ((k, k), (k,), ())
    return tuple(
        [
            tuple([part[row].reshape(shape + part.shape[1:]) for part in columns])
            for row, shape in zip(rows, shapes, strict=True)
        ]
    )


PROBLEM = Problem(
    name="kalman",
    wrt=("F", "q", "r"),
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (of_size(2),),
        "small": (of_size(5), of_size(10)),
        "paper": (of_size(100), growth(200)),
        "real": (growth(200),),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, lambda s: 12.0 * s["n"] * s["k"] ** 3)},
        "gradient": {"": Form(gradient, lambda s: 40.0 * s["n"] * s["k"] ** 3)},
        "hessian": {"": Form(hessian, lambda s: 80.0 * s["n"] * s["k"] ** 4 * (s["k"] + 1))},
    },
    claims=(
        Claim(("gradient", "tcalc"), ("gradient", "hand"), 1.0),
        Claim(("hessian", "tcalc"), ("hessian", "hand"), 1.5),
    ),
    fit="trust-exact",
)
