"""Something that solves plus a product of few vectors (Woodbury), with the determinant lemma.

The terms of low rank are W C W' over the distinct vectors W, each vector once. C need not be
invertible, so nothing is lost where its rank is less than its size:
(D + W C W')⁻¹ = D⁻¹ - D⁻¹ W (I + C W' D⁻¹ W)⁻¹ C W' D⁻¹.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from math import prod
from typing import NamedTuple

import numpy as np

from ..contract import Array, Labels, contract
from ..errors import LinAlgError
from ..terms import Layout, Product, Read, Terms
from .base import Solver, Unsuitable, Way
from .dense import factored, refuse

#: Entries of I + C W' D⁻¹ W above which the update cancels digits, so that a solution is refined
#: once, and above which it may cancel all of them.
REFINED, LARGE = 1e2, 1e6

Factor = tuple[int, Labels]
Key = tuple[tuple[Factor, ...], Labels]


class Split(NamedTuple):
    """A term of low rank: vectors of rows and of columns, and the factors between them.

    `rows` and `columns` are factors that carry row or column labels; their other labels are the
    summed labels `left` and `right`.
    """

    rows: tuple[Factor, ...]
    columns: tuple[Factor, ...]
    middle: tuple[Factor, ...]
    left: Labels
    right: Labels


@lru_cache(1024)
def split(term: Product, axes: Labels) -> Split | None:
    """The parts of a term over all axes but the tied ones, None where they are not apart."""
    half = len(term.out) // 2
    if term.reads:
        return None
    out: list[int] = [item for item in term.out if not isinstance(item, Read)]
    batch = {out[k] for k in range(half) if k not in axes}
    rows, columns = {out[k] for k in axes}, {out[half + k] for k in axes}
    if rows & columns or (rows | columns) & batch or min(len(rows), len(columns)) < len(axes):
        return None
    sides: list[list[Factor]] = [[], [], []]
    for factor in term.factors:
        word = set(factor[1])
        if word & rows and word & columns:
            return None
        sides[0 if word & rows else 1 if word & columns else 2].append(factor)
    shown = rows | columns | batch
    left, right = (
        tuple(dict.fromkeys([i for _, w in side for i in w if i not in shown]))
        for side in sides[:2]
    )
    return Split(tuple(sides[0]), tuple(sides[1]), tuple(sides[2]), left, right)


def rank(term: Product, found: Split) -> int:
    """Number of vectors on the larger side."""
    return max(prod([term.extents[i] for i in side]) for side in (found.left, found.right))


def _key(term: Product, factors: tuple[Factor, ...], shown: Labels, more: Labels) -> Key:
    """What tells vectors from others: factors under canonical labels, and their number."""
    rename = {label: k for k, label in enumerate((*shown, *more))}
    named = [(core, tuple([rename[i] for i in word])) for core, word in factors]
    return tuple(sorted(named)), tuple([term.extents[i] for i in more])


def _keys(term: Product, found: Split, batch: Labels, axes: Labels) -> tuple[Key, Key]:
    """The vectors of rows and those of columns."""
    half = len(term.out) // 2
    out = [item for item in term.out if not isinstance(item, Read)]
    rows = tuple([out[k] for k in (*batch, *axes)])
    columns = tuple([out[k] for k in batch] + [out[half + k] for k in axes])
    return (
        _key(term, found.rows, rows, found.left),
        _key(term, found.columns, columns, found.right),
    )


class LowRank:
    """Factors of D + W C W'; tied axes are a batch."""

    def __init__(self, terms: Terms, low: Sequence[int], build: Callable[[Terms], Solver]) -> None:
        layout = terms.layout
        self._layout, self._terms = layout, terms
        self._batch = layout.tied
        self._axes = tuple([k for k in range(layout.columns) if k not in layout.tied])
        base = terms.only([k for k in range(len(layout.terms)) if k not in low])
        try:
            self._base = build(base)
        except LinAlgError as error:
            raise Unsuitable(str(error)) from None
        shape = layout.column_shape
        self._b = prod([shape[k] for k in self._batch])
        self._n = prod([shape[k] for k in self._axes])
        vectors = _Vectors(terms, low, self._batch, self._axes)
        self._w, self._c = _reduced(*vectors.collected())
        self._solved = self._flat(self._base.solve(self._full(self._w)))
        gram = self._w.mT @ self._solved
        self._roots = _square_roots(self._c)
        if self._roots is None:
            middle = self._c @ gram
        else:
            middle = self._roots[..., None] * gram * self._roots[:, None]
        small = np.eye(middle.shape[-1], dtype=middle.dtype) + middle
        self._small = small
        growth = np.abs(small).max(initial=0)
        doubtful, self._refine = not growth <= LARGE, not growth <= REFINED
        try:
            self._factor = factored(small, "", "")
        except LinAlgError as error:
            if doubtful:
                raise Unsuitable(str(error)) from None
            raise refuse(f"the {layout.size} x {layout.size} matrix", 0.0) from None
        if doubtful:
            self._checked()

    @property
    def rank(self) -> int:
        """Number of vectors."""
        return int(self._w.shape[-1])

    def _checked(self) -> None:
        """Refuse a base so small somewhere that the update cancels all digits."""
        n = self._layout.size
        probe = np.cos(np.arange(n, dtype=self._w.dtype)).reshape((*self._layout.column_shape, 1))
        goal = self._terms.times(probe)
        missed = np.abs(goal - self._terms.times(self.solve(goal))).max(initial=0)
        if not missed <= np.finfo(goal.dtype).eps ** 0.6 * np.abs(goal).max(initial=0):
            raise Unsuitable("the base is nearly singular")

    def _full(self, flat: Array) -> Array:
        """(batch, n, r) to the column shape and r."""
        shape = self._layout.column_shape
        order = (*self._batch, *self._axes)
        whole = flat.reshape((*(shape[k] for k in order), flat.shape[-1]))
        return whole.transpose((*np.argsort(order).tolist(), len(shape)))

    def _flat(self, b: Array) -> Array:
        order = (*self._batch, *self._axes, b.ndim - 1)
        return b.transpose(order).reshape(self._b, self._n, b.shape[-1])

    def solve(self, b: Array) -> Array:
        x = self._once(b)
        return x + self._once(b - self._terms.times(x)) if self._refine else x

    def _once(self, b: Array) -> Array:
        x = self._flat(self._base.solve(b))
        return self._full(x - self._solved @ self._coupled(self._w.mT @ x))

    def _coupled(self, y: Array) -> Array:
        """(I + C W' D⁻¹ W)⁻¹ C y."""
        if self._roots is None:
            found: Array = self._factor.solve(self._c @ y)
            return found
        roots = self._roots[..., None]
        symmetric: Array = roots * self._factor.solve(roots * y)
        return symmetric

    @property
    def definite(self) -> bool:
        """By the eigenvalues of I + C W' D⁻¹ W, those of D^(-1/2) H D^(-1/2) that are not 1."""
        if not self._base.definite or self._roots is not None:
            return self._base.definite
        return self._is_symmetric() and bool((np.linalg.eigvals(self._small).real > 0).all())

    def _is_symmetric(self) -> bool:
        """Is W C W' symmetric, by two directions? C need not be, where vectors are dependent."""
        steps = np.arange(1.0, self._n + 1)
        u, v = (self._w.mT @ np.cos(steps * k) for k in (1, 2))
        across, back = (np.einsum("bi,bij,bj->b", x, self._c, y) for x, y in ((u, v), (v, u)))
        sizes = np.einsum("bi,bij,bj->b", np.abs(u), np.abs(self._c), np.abs(v))
        bound = 100 * np.finfo(self._c.dtype).eps * sizes.max(initial=0)
        return bool(np.abs(across - back).max(initial=0) <= bound)

    def slogdet(self) -> tuple[float, float]:
        sign, log = self._base.slogdet()
        signs, logs = self._factor.slogdet()
        return sign * float(np.prod(signs)), log + float(np.sum(logs))

    def inverse(self) -> Terms:
        base = self._base.inverse()
        r = self._w.shape[-1]
        coupling = self._coupled(np.broadcast_to(np.eye(r, dtype=self._w.dtype), self._c.shape))
        left = self._full(self._solved)
        right = self._full(self._flat(self._base.inverse().transposed().times(self._full(self._w))))
        rank = self._layout.columns
        rows, columns = list(range(rank)), list(range(rank, 2 * rank))
        for k in self._batch:
            columns[k] = k
        p, q = 2 * rank, 2 * rank + 1
        shape = self._layout.column_shape
        batch = tuple(self._batch)
        held = coupling.reshape((*(shape[k] for k in batch), r, r))
        factors = ((0, (*rows, p)), (1, (*batch, p, q)), (2, (*columns, q)))
        product = Product(factors, (*rows, *columns), (*shape, *shape, r, r))
        update = Terms(Layout(self._layout.shape, rank, [product]), (left, held, right), (-1.0,))
        return base.plus(update)


def _reduced(w: Array, c: Array) -> tuple[Array, Array]:
    """W C W' with as many vectors as C has rank, where C is one symmetric matrix."""
    if len(c) != 1 or not np.array_equal(c, c.mT) or np.count_nonzero(c) == len(c[0]):
        return w, c
    values, vectors = np.linalg.eigh(c[0])
    least = np.finfo(c.dtype).eps * len(values) * np.abs(values).max(initial=0)
    kept = np.abs(values) > least
    if kept.all() or not kept.any():
        return w, c
    return w @ vectors[:, kept], np.diag(values[kept])[None]


def _square_roots(c: Array) -> Array | None:
    """Of diagonal matrices without negative entries, which keep the small matrix symmetric."""
    diagonal = np.einsum("bii->bi", c)
    if np.count_nonzero(c) != np.count_nonzero(diagonal) or (diagonal < 0).any():
        return None
    roots: Array = np.sqrt(diagonal)
    return roots


class _Vectors:
    """The distinct vectors of terms of low rank, and the coefficients of their products."""

    def __init__(self, terms: Terms, low: Sequence[int], batch: Labels, axes: Labels) -> None:
        self.terms, self.batch, self.axes = terms, batch, axes
        self.place: dict[Key, tuple[int, int]] = {}
        self.parts: list[Array] = []
        self.r = 0
        self.products: list[tuple[Key, Key, Array]] = []
        for k in low:
            self._read(k)

    def collected(self) -> tuple[Array, Array]:
        """W of shape (batch, n, r) and C of shape (batch, r, r)."""
        shape = self.terms.layout.column_shape
        b = prod([shape[k] for k in self.batch])
        w = self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts, axis=-1)
        c = np.zeros((b, self.r, self.r), self.terms.dtype)
        for left, right, block in self.products:
            (i, ni), (j, nj) = self.place[left], self.place[right]
            c[:, i : i + ni, j : j + nj] += block
        return w, c

    def _read(self, k: int) -> None:
        term = self.terms.layout.terms[k]
        found = split(term, self.axes)
        assert found is not None
        half = len(term.out) // 2
        out = [item for item in term.out if not isinstance(item, Read)]
        batch = tuple([out[j] for j in self.batch])
        rows = tuple([out[j] for j in self.axes])
        columns = tuple([out[half + j] for j in self.axes])
        left = self._vector(term, found.rows, batch, rows, found.left)
        right = self._vector(term, found.columns, batch, columns, found.right)
        coefficient = self._between(term, found, batch) * self.terms.coefs[k]
        self.products.append((left, right, coefficient))

    def _vector(
        self, term: Product, factors: tuple[Factor, ...], batch: Labels, axes: Labels, more: Labels
    ) -> Key:
        """The place of the vectors that factors make up; equal ones have one place."""
        key = _key(term, factors, (*batch, *axes), more)
        if key not in self.place:
            count = prod(key[1])
            self.parts.append(self._entries(term, factors, batch, axes, more))
            self.place[key] = (self.r, count)
            self.r += count
        return key

    def _entries(
        self, term: Product, factors: tuple[Factor, ...], batch: Labels, rows: Labels, more: Labels
    ) -> Array:
        arrays = [self.terms.cores[c] for c, _ in factors]
        words = tuple([w for _, w in factors])
        found = contract(arrays, words, (*batch, *rows, *more), term.extents)
        sizes = [prod([term.extents[i] for i in part]) for part in (batch, rows, more)]
        return found.reshape(sizes).astype(self.terms.dtype, copy=False)

    def _between(self, term: Product, found: Split, batch: Labels) -> Array:
        """The middle factors as a matrix from right to left; a label on both sides ties them."""
        items = (*batch, *found.left, *found.right)
        held = Product(found.middle, items, term.extents)
        sizes = [term.extents[label] for label in items]
        whole = np.zeros(sizes, self.terms.dtype)
        lone = Terms(Layout(sizes, 0, [held]), self.terms.cores, (1.0,))
        lone.accumulate(whole, 0, items)
        cut = [prod([term.extents[i] for i in part]) for part in (batch, found.left, found.right)]
        return whole.reshape(cut)


def ways(layout: Layout, itemsize: int, further: Callable[[Layout], list[Way]]) -> list[Way]:
    """Woodbury, where some terms are of low rank and the others solve cheaply."""
    axes = tuple([k for k in range(layout.columns) if k not in layout.tied])
    shape = layout.column_shape
    n, b = prod([shape[k] for k in axes]), prod([shape[k] for k in layout.tied])
    low: list[int] = []
    vectors: set[Key] = set()
    for k, term in enumerate(layout.terms):
        found = split(term, axes)
        if found is not None and rank(term, found) < n:
            low.append(k)
            vectors.update(_keys(term, found, layout.tied, axes))
    total = sum([prod(extents) for _, extents in vectors])
    if not low or len(low) == len(layout.terms):
        return []
    base = layout.only([k for k in range(len(layout.terms)) if k not in low])
    options = further(base)
    if not options or total >= n:
        return []
    best = options[0]
    flops = best.flops + b * (2.0 * n * total * total + 2 * total**3 / 3)

    def text(rank: int) -> str:
        return f"low rank: {rank} vector{'s' * (rank != 1)} on top of [{best.text}], Woodbury"

    bytes_ = best.bytes + 3.0 * b * n * total * itemsize
    build = partial(LowRank, low=tuple(low), build=best.build)
    return [Way(text(total), flops, bytes_, build, lambda made: text(made.rank))]
