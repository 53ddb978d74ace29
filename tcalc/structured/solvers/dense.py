"""Factors of dense symmetric or general matrices, one or a batch.

Cholesky where it succeeds, otherwise LDL^T of a symmetric matrix (Bunch and Kaufman), LU of any
other. A matrix that is singular to working precision is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from ...support.arrays import Array
from ...support.errors import LinAlgError
from ...support.namespaces import on_host

#: Units of rounding of its largest entry by which a symmetric matrix is not one.
ROUNDED = 100
#: The part of it by which Hessians of ill-conditioned functions are not. Such matrices are solved
#: with as they are, but their signs are told from the symmetric parts.
NEARLY = 1e-5
#: Units of rounding of what was summed below which nothing is left of a sum.
CANCELLED = 16
#: Rows up to which a batch is factored entry by entry, vectorised over the matrices.
VECTORISED = 24

#: Rows up to which multiplying with an inverse triangular factor is faster than substitution.
EXPLICIT_INVERSE = 64

_NAMES = (
    "lange", "potrf", "pocon", "potrs", "sytrf", "sycon", "sytrs", "getrf", "gecon", "getrs",
    "trtri", "pbtrf", "pbtrs", "gbtrf", "gbtrs",
)  # fmt: skip


def singular_matrix_error(what: str, rcond: float) -> LinAlgError:
    """The error for a matrix that has no inverse to working precision."""
    if rcond != rcond:
        return LinAlgError(f"{what} has entries that are not finite")
    known = f" (reciprocal condition {rcond:.1e})" if rcond > 0 else ""
    return LinAlgError(
        f"{what} is singular{known}; solve(…, damping=d) solves with d added to the diagonal"
    )


def greatest(a: Array) -> float:
    """The largest entry in absolute value, 0 without entries."""
    return float(max(a.max(), -a.min())) if a.size else 0.0


def greatest_of_each(a: Array) -> Array:
    """The same of every matrix of a batch, on the host."""
    if not a.size:
        return np.zeros(a.shape[:-2])
    found: Array = np.maximum(*(on_host(b.max((-2, -1))) for b in (a, -a)))
    return found


def asymmetry(a: Array) -> float:
    """How far matrices in the last two axes are from symmetric ones, beside the largest entry."""
    if a.size == 0 or bool((a == a.mT).all()):
        return 0.0
    largest = greatest(a)
    return greatest(a - a.mT) / largest if largest > 0 else float("nan")


def is_symmetric(a: Array) -> bool:
    """Whether matrices in the last two axes are symmetric up to rounding."""
    return asymmetry(a) <= ROUNDED * float(np.finfo(a.dtype).eps)


@cache
def lapack(char: str) -> dict[str, Any]:
    """LAPACK's functions for a dtype by their names without the first letter."""
    import scipy.linalg.lapack as named

    letter = {"f": "s", "d": "d"}[char]
    return {name: getattr(named, letter + name) for name in _NAMES}


def _middle(factor: Array, pivots: Array) -> Iterator[tuple[float, int]]:
    """The determinants of the blocks of D in LDL^T, and how many eigenvalues of each are negative.

    Those are all of D, and by Sylvester's law as many of the matrix are. Negative pivots come in
    pairs, which mark blocks of two rows.
    """
    diagonal, k = np.diagonal(factor).astype(np.float64).tolist(), 0
    while k < len(diagonal):
        value, step = diagonal[k], 1
        if pivots[k] < 0:
            value, step = value * diagonal[k + 1] - float(factor[k + 1, k]) ** 2, 2
        below = 1 if value < 0 else step * (diagonal[k] < 0)
        yield value, below
        k += step


class Dense:
    """One factored matrix (n, n).

    A positive `least` is a lower bound of the eigenvalues of a matrix known to be symmetric, and
    `beside` the largest entry of what the matrix is a sum of.
    """

    def __init__(self, a: Array, what: str, least: float = 0.0, beside: float = 0.0) -> None:
        self.n, self.dtype = len(a), a.dtype
        self._call = call = lapack(a.dtype.char)
        self._half: Array | None = None
        #: Of the negative eigenvalues, nan where it is not symmetric.
        self.kind, self.negatives = "Cholesky", 0.0
        if not self.n:
            self._factor = a
            return
        norm = max(call["lange"]("1", a), CANCELLED * beside)
        if least or is_symmetric(a):
            self._factor, info = call["potrf"](a.T, lower=1)
            # The norm of the inverse is at most sqrt(n) / least.
            rcond = least / (norm * self.n**0.5) if norm > 0 else 0.0
            if info == 0 and not rcond >= np.finfo(a.dtype).eps:
                rcond, _ = call["pocon"](self._factor, norm, uplo="L")
            elif info:
                self.kind = "LDL^T"
                self._factor, self._pivots, _ = call["sytrf"](a.T, lower=1, lwork=64 * self.n)
                self.negatives = float(
                    sum([below for _, below in _middle(self._factor, self._pivots)])
                )
                rcond, _ = call["sycon"](self._factor, self._pivots, norm, lower=1)
        else:
            self.kind = "LU"
            self.negatives = np.nan
            if asymmetry(a) <= NEARLY:
                whole = call["sytrf"](a + a.T, lower=1, lwork=64 * self.n)
                self.negatives = float(sum([below for _, below in _middle(*whole[:2])]))
            self._factor, self._pivots, _ = call["getrf"](a)
            rcond, _ = call["gecon"](self._factor, norm, norm="1")
        if not rcond >= np.finfo(a.dtype).eps:
            raise singular_matrix_error(what, rcond if np.isfinite(norm) else np.nan)

    def solve(self, b: Array) -> Array:
        """The solution for columns b."""
        if 0 in b.shape:
            return np.zeros(b.shape, b.dtype)
        call = self._call
        if self.kind == "Cholesky":
            if self.n <= EXPLICIT_INVERSE and b.shape[1] >= 4 * self.n:
                if self._half is None:
                    # potrf leaves zeros above the diagonal.
                    self._half = call["trtri"](self._factor, lower=1)[0]
                return ((b.T @ self._half.T) @ self._half).T
            found, info = call["potrs"](self._factor, b, lower=1)
        elif self.kind == "LDL^T":
            found, info = call["sytrs"](self._factor, self._pivots, b, lower=1)
        else:
            found, info = call["getrs"](self._factor, self._pivots, b)
        assert info == 0
        result: Array = found
        return result

    def slogdet(self) -> tuple[float, float]:
        diagonal = np.diagonal(self._factor).astype(np.float64)
        if self.kind == "Cholesky":
            return 1.0, 2 * float(np.log(diagonal).sum())
        if self.kind == "LU":
            swaps = np.count_nonzero(self._pivots != np.arange(self.n))
            sign = np.prod(np.sign(diagonal)) * (-1) ** swaps
            return float(sign), float(np.log(np.abs(diagonal)).sum())
        values = np.array([value for value, _ in _middle(self._factor, self._pivots)])
        return float(np.prod(np.sign(values))), float(np.log(np.abs(values)).sum())

    def inverse(self) -> Array:
        found = self.solve(np.eye(self.n, dtype=self.dtype))
        if self.kind == "LU":
            return found
        symmetric: Array = (found + found.T) / 2
        return symmetric


class Batch:
    """A batch of factored matrices (count, n, n).

    Cholesky factors, vectorised over the batch where matrices are small; if a matrix has none, each
    is factored as `Dense` chooses.
    """

    def __init__(self, a: Array, what: str, least: float = 0.0, beside: Any = 0.0) -> None:
        sizes = np.broadcast_to(beside, len(a))
        self.count, self.n = len(a), a.shape[1]
        self._factor: Array | None = None
        self._lower: list[Array] = []
        self._each: list[Dense] = []
        self._pivots: Array | None = None
        if not a.size:
            self._pivots = np.ones((self.count, self.n), a.dtype)
        elif least or is_symmetric(a):
            at_once = self.n <= VECTORISED and self.count > 2 * self.n
            pivots = self._vectorised(a) if at_once else self._one_by_one(a)
            self._pivots = None if pivots is None else if_regular(pivots, sizes)
        if self._pivots is None:
            self._each = [
                Dense(block, f"{what} {k}", beside=float(size))
                for k, (block, size) in enumerate(zip(a, sizes, strict=True))
            ]

    def _vectorised(self, a: Array) -> Array:
        """Cholesky factors with the batch as last axis; their pivots, nan where there are none."""
        held = np.array(a.transpose(1, 2, 0), order="C")
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            for j in range(self.n):
                if j:
                    held[j:, j] -= np.einsum("ikb,kb->ib", held[j:, :j], held[j, :j])
                np.sqrt(held[j, j], out=held[j, j])
                held[j + 1 :, j] /= held[j, j]
        self._factor = held
        pivots: Array = np.einsum("iib->bi", held)
        return pivots

    def _one_by_one(self, a: Array) -> Array | None:
        potrf = lapack(a.dtype.char)["potrf"]
        for block in a:
            factor, info = potrf(block.T, lower=1)
            if info:
                return None
            self._lower.append(factor)
        return np.array([np.diagonal(factor) for factor in self._lower])

    @property
    def kind(self) -> str:
        kinds = sorted({d.kind for d in self._each})
        return " and ".join(kinds) or "Cholesky"

    def solve(self, b: Array) -> Array:
        """Solutions for b[k], columns, of every k."""
        if 0 in b.shape:
            return np.zeros(b.shape, b.dtype)
        if self._pivots is None:
            return np.stack([d.solve(c) for d, c in zip(self._each, b, strict=True)])
        if self._factor is None:
            potrs = lapack(self._pivots.dtype.char)["potrs"]
            pairs = zip(self._lower, b, strict=True)
            return np.stack([potrs(factor, c, lower=1)[0] for factor, c in pairs])
        held = self._factor
        x = np.array(b.transpose(1, 2, 0), order="C", dtype=np.result_type(b.dtype, held.dtype))
        for j in range(self.n):
            if j:
                x[j] -= np.einsum("kb,krb->rb", held[j, :j], x[:j])
            x[j] /= held[j, j]
        for j in range(self.n - 1, -1, -1):
            if j < self.n - 1:
                x[j] -= np.einsum("kb,krb->rb", held[j + 1 :, j], x[j + 1 :])
            x[j] /= held[j, j]
        return x.transpose(2, 0, 1)

    @property
    def negatives(self) -> Array:
        """Numbers of negative eigenvalues, one a matrix."""
        found = [d.negatives for d in self._each]
        return np.array(found) if self._pivots is None else np.zeros(self.count)

    def slogdet(self) -> tuple[Array, Array]:
        """Signs and logarithms, one a matrix."""
        if self._pivots is None:
            found = np.array([d.slogdet() for d in self._each])
            return found[:, 0], found[:, 1]
        logs = 2 * np.log(self._pivots.astype(np.float64)).sum(axis=1)
        return np.ones(self.count), logs

    def inverse(self) -> Array:
        if self._pivots is None:
            return np.stack([d.inverse() for d in self._each])
        eye = np.broadcast_to(np.eye(self.n, dtype=self._pivots.dtype), (self.count, *[self.n] * 2))
        found = self.solve(eye)
        symmetric: Array = (found + found.mT) / 2
        return symmetric


def if_regular(pivots: Array, beside: Any = 0.0) -> Array | None:
    """The pivots of Cholesky factors (count, n), None if one is singular to working precision.

    The squared ratio of pivots bounds the condition from below.
    """
    low, high = pivots.min(axis=1), pivots.max(axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        size = np.maximum(high * high, beside)
        good = (low > 0) & (low * low > CANCELLED * np.finfo(pivots.dtype).eps * size)
    return pivots if bool(good.all()) else None
