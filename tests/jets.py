"""A slow and simple second oracle: arrays that carry their first and second derivatives.

A `Jet` holds a value, and dense first and second derivatives by one flat vector of all inputs. Every
function is written out over full index grids, with no sharing, no unit tensors and no modes.
"""

# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np


class Jet:
    """v of shape s, g of shape s + (N,), h of shape s + (N, N)."""

    #: So that NumPy's arrays leave arithmetic with jets to them.
    __array_ufunc__ = None

    def __init__(self, v: Any, g: Any, h: Any) -> None:
        self.v, self.g, self.h = v, g, h
        #: Of the matrix that was inverted or factored for it.
        self.condition = 1.0

    @property
    def largest(self) -> float:
        return float(np.max([np.max(np.abs(a), initial=0) for a in (self.v, self.g, self.h)]))

    def map(self, move: Callable[[np.ndarray], np.ndarray]) -> Jet:
        """A linear function of the leading axes, written for arrays with any trailing axes."""
        return Jet(move(self.v), move(self.g), move(self.h))

    def __getitem__(self, key: Any) -> Jet:
        key = key if isinstance(key, tuple) else (key,)
        return self.map(lambda a: a[key])

    def __add__(self, other: Any) -> Jet:
        return plus(*aligned([self, self.like(other)]))

    def __mul__(self, other: Any) -> Jet:
        return times(*aligned([self, self.like(other)]))

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self) -> Jet:
        return self.map(np.negative)

    def __sub__(self, other: Any) -> Jet:
        return self + -self.like(other)

    def __truediv__(self, other: Any) -> Jet:
        return self * ELEMENTWISE["reciprocal"](self.like(other))

    def __matmul__(self, other: Jet) -> Jet:
        """Matrix by matrix or by vector."""
        columns = "k"[: other.v.ndim - 1]
        return einsum(f"ij,j{columns}->i{columns}", self, other, sizes={}, total=self.g.shape[-1])

    @property
    def T(self) -> Jet:
        """A matrix transposed."""
        return self.map(lambda a: np.swapaxes(a, 0, 1))

    def like(self, other: Any) -> Jet:
        """A number as a constant of this one's inputs."""
        return other if isinstance(other, Jet) else constant(other, self.g.shape[-1])


def inputs(arrays: Mapping[str, np.ndarray]) -> tuple[dict[str, Jet], dict[str, slice]]:
    """One jet per array, and where its entries stand among all inputs."""
    total = sum(a.size for a in arrays.values())
    jets, places, start = {}, {}, 0
    for name, a in arrays.items():
        places[name] = slice(start, start + a.size)
        g = np.eye(total)[:, places[name]].T.reshape(*a.shape, total)
        jets[name] = Jet(a, g, np.zeros((*a.shape, total, total)))
        start += a.size
    return jets, places


def constant(a: Any, total: int) -> Jet:
    a = np.asarray(a, dtype=float)
    return Jet(a, np.zeros((*a.shape, total)), np.zeros((*a.shape, total, total)))


def times(a: Jet, b: Jet) -> Jet:
    """The product of jets of one shape."""
    cross = a.g[..., :, None] * b.g[..., None, :]
    return Jet(
        a.v * b.v,
        a.g * b.v[..., None] + a.v[..., None] * b.g,
        a.h * b.v[..., None, None]
        + a.v[..., None, None] * b.h
        + cross
        + np.swapaxes(cross, -1, -2),
    )


def plus(a: Jet, b: Jet) -> Jet:
    return Jet(a.v + b.v, a.g + b.g, a.h + b.h)


def chain(f: Any, first: Any, second: Any) -> Callable[[Jet], Jet]:
    """An elementwise function from its first two derivatives."""

    def compute(a: Jet) -> Jet:
        outer = a.g[..., :, None] * a.g[..., None, :]
        d = first(a.v)[..., None]
        return Jet(f(a.v), d * a.g, d[..., None] * a.h + second(a.v)[..., None, None] * outer)

    return compute


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


ELEMENTWISE: dict[str, Callable[[Jet], Jet]] = {
    "sin": chain(np.sin, np.cos, lambda x: -np.sin(x)),
    "cos": chain(np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x)),
    "tanh": chain(np.tanh, lambda x: np.cosh(x) ** -2, lambda x: -2 * np.tanh(x) / np.cosh(x) ** 2),
    "arctan": chain(np.arctan, lambda x: 1 / (1 + x * x), lambda x: -2 * x / (1 + x * x) ** 2),
    "sigmoid": chain(_sigmoid, lambda x: _sigmoid(x) * _sigmoid(-x), lambda x: _sigmoid(x) * _sigmoid(-x) * (1 - 2 * _sigmoid(x))),
    "softplus": chain(lambda x: np.log1p(np.exp(x)), _sigmoid, lambda x: _sigmoid(x) * _sigmoid(-x)),
    "relu": chain(lambda x: np.maximum(x, 0), lambda x: 1.0 * (x > 0), lambda x: 0 * x),
    "abs": chain(np.abs, np.sign, lambda x: 0 * x),
    "negative": chain(lambda x: -x, lambda x: 0 * x - 1, lambda x: 0 * x),
    "square": chain(lambda x: x * x, lambda x: 2 * x, lambda x: 0 * x + 2),
    "cube": chain(lambda x: x**3, lambda x: 3 * x * x, lambda x: 6 * x),
    "halved": chain(lambda x: x / 2, lambda x: 0 * x + 0.5, lambda x: 0 * x),
    "exp": chain(np.exp, np.exp, np.exp),
    "log": chain(np.log, lambda x: 1 / x, lambda x: -1 / (x * x)),
    "reciprocal": chain(lambda x: 1 / x, lambda x: -1 / (x * x), lambda x: 2 / x**3),
    "log1psq": chain(lambda x: np.log1p(x * x), lambda x: 2 * x / (1 + x * x), lambda x: 2 * (1 - x * x) / (1 + x * x) ** 2),
    "rootsq": chain(lambda x: np.sqrt(1 + x * x), lambda x: x / np.sqrt(1 + x * x), lambda x: (1 + x * x) ** -1.5),
}  # fmt: skip


def einsum(spec: str, *jets: Jet, sizes: Mapping[str, int], total: int) -> Jet:
    """Sum over every value of every letter; repeated output letters fill diagonals."""
    left, _, out = spec.partition("->")
    words = left.split(",") if jets else []
    extents = dict(sizes)
    for word, jet in zip(words, jets, strict=True):
        extents.update(zip(word, jet.v.shape, strict=True))
    letters = list(extents)
    grid = np.indices([extents[c] for c in letters])
    product = constant(np.ones(grid.shape[1:]), total)
    for word, jet in zip(words, jets, strict=True):
        where = tuple([grid[letters.index(c)] for c in word])
        product = times(
            product,
            jet.map(
                lambda a, where=where: (
                    a[where] if where else np.broadcast_to(a, grid.shape[1:] + a.shape)
                )
            ),
        )
    kept = list(dict.fromkeys(out))
    summed = tuple([k for k, c in enumerate(letters) if c not in kept])
    order = [[c for c in letters if c in kept].index(c) for c in kept]

    def finish(a: np.ndarray) -> np.ndarray:
        a = a.sum(axis=summed)
        a = np.transpose(a, [*order, *range(len(order), a.ndim)])
        rows = np.indices(a.shape[: len(kept)])
        result = np.zeros([extents[c] for c in out] + list(a.shape[len(kept) :]))
        if out:
            result[tuple([rows[kept.index(c)] for c in out])] = a
            return result
        return a

    return product.map(finish)


def reduce(name: str, a: Jet, axis: int) -> Jet:
    """A reduction over one axis, entry after entry."""
    moved = a.map(lambda x: np.moveaxis(x, axis, 0))
    if name in ("sum", "mean"):
        total = moved.map(lambda x: x.sum(axis=0))
        return total.map(lambda x: x / a.v.shape[axis]) if name == "mean" else total
    if name == "cumsum":
        return moved.map(lambda x: np.moveaxis(np.cumsum(x, axis=0), 0, axis))
    if name == "logsumexp":
        return ELEMENTWISE["log"](ELEMENTWISE["exp"](moved).map(lambda x: x.sum(axis=0)))
    entries = [moved[k] for k in range(a.v.shape[axis])]
    if name == "prod":
        return functools.reduce(times, entries)
    best = moved.v == (moved.v.max(axis=0) if name == "max" else moved.v.min(axis=0))
    # Ties share evenly.
    share = constant(best / best.sum(axis=0), a.g.shape[-1])
    return functools.reduce(plus, [times(share[k], entry) for k, entry in enumerate(entries)])


def choose(c: np.ndarray, a: Jet, b: Jet) -> Jet:
    return Jet(
        np.where(c, a.v, b.v),
        np.where(c[..., None], a.g, b.g),
        np.where(c[..., None, None], a.h, b.h),
    )


def inverse(a: Jet) -> Jet:
    """inv(A), from A X = 1."""
    x = np.linalg.inv(a.v)
    g = -np.einsum("ij,jkp,kl->ilp", x, a.g, x)
    twice = np.einsum("ij,jkp,klq->ilpq", x, a.g, -g)
    h = twice + np.swapaxes(twice, -1, -2) - np.einsum("ij,jkpq,kl->ilpq", x, a.h, x)
    return Jet(x, g, h)


def logdet(a: Jet) -> Jet:
    x = inverse(a)
    g = np.einsum("ji,ijp->p", x.v, a.g)
    h = np.einsum("jiq,ijp->pq", x.g, a.g) + np.einsum("ji,ijpq->pq", x.v, a.h)
    return Jet(np.linalg.slogdet(a.v)[1], g, h)


def aligned(jets: Sequence[Jet]) -> list[Jet]:
    """Jets broadcast to one shape."""
    shape = np.broadcast_shapes(*[j.v.shape for j in jets])

    def stretch(j: Jet) -> Jet:
        ndim = j.v.ndim

        def move(a: np.ndarray) -> np.ndarray:
            a = a.reshape((1,) * (len(shape) - ndim) + a.shape)
            return np.broadcast_to(a, shape + a.shape[len(shape) :])

        return j.map(move)

    return [stretch(j) for j in jets]
