"""Low-rank updates of a tensor that is cheap to solve with: Woodbury, determinant lemma.

Where C is diagonal, or symmetric and made diagonal, U = W |C|^(1/2) and J the signs of C give
(D + U J U')⁻¹ = D⁻¹ - D⁻¹ U (J + U' D⁻¹ U)⁻¹ U' D⁻¹, whose small matrix is symmetric where D is.
For any other C the small matrix is I + C W' D⁻¹ W. C need not be invertible, so its
rank may be less than its size. Of a positive diagonal D the root is applied on both sides, so that
the one array held is D^(-1/2) U.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...support.arrays import Array
from ...support.errors import LinAlgError
from ...support.namespaces import namespace_of, on_host
from ..terms.numeric_terms import Terms, diagonals
from ..terms.tensor_layout import CoreProduct, TensorLayout
from .base import Scaling, SolveMethod, Solver, Unsuitable
from .blocks import Blocks
from .dense import NEARLY, greatest, greatest_of_each, singular_matrix_error
from .factors import factorise
from .inverses import InverseSolver, InverseTerms
from .lowrank_factors import low_rank_split, term_rank, vector_count, vectors_and_couplings

#: Entries of I + C W' D⁻¹ W above which the update cancels digits, so that a solution is refined
#: once, and above which it may cancel all of them.
REFINE_ABOVE, DOUBTFUL = 1e2, 1e6


class LowRank:
    """The solver of D + W C W'; tied axes are a batch."""

    def __init__(
        self, terms: Terms, low: tuple[int, ...], build: Callable[[Terms], Solver]
    ) -> None:
        layout = terms.layout
        self._layout, self._terms, self._given = layout, terms, (terms, low, build)
        self._batch = layout.tied
        self._axes = tuple([k for k in range(layout.columns) if k not in layout.tied])
        self._order = (*self._batch, *self._axes)
        shape = layout.column_shape
        self._sizes = [prod([shape[k] for k in axes]) for axes in (self._batch, self._axes)]
        if not self._batch:
            del self._sizes[0]
        try:
            self._base = build(terms.only([k for k in range(len(layout.terms)) if k not in low]))
        except LinAlgError as error:
            raise Unsuitable(str(error)) from None
        w, c = _with_diagonal_coupling(*vectors_and_couplings(layout, low).collected(terms))
        if not self._batch:
            w, c = w[0], c[0]
        self._signs: Array | None = None
        self._c: Array | None = c
        small = self._general(w, c) if c.ndim == w.ndim else self._symmetrised(w, c)
        self._factorise(small)

    def _general(self, w: Array, c: Array) -> Array:
        self._scale: Array | None = None
        self._u, self._solved = w, self._flat(self._base.solve(self._full(w)))
        small: Array = c @ (w.mT @ self._solved)
        self._beside = 1 + greatest_of_each(small)
        diagonals(small)[...] += 1
        return small

    def _symmetrised(self, w: Array, c: Array) -> Array:
        """The small matrix J + U' D⁻¹ U, roots of |C| and of a positive diagonal D in U."""
        self._c = None
        xp = namespace_of(c)
        roots = xp.sqrt(xp.abs(c))[..., None, :]
        base = self._base
        self._scale = base.root() if isinstance(base, Scaling) else None
        if self._scale is not None:
            scale = self._scale
            if scale.size > 1:
                whole = xp.broadcast_to(scale, self._layout.column_shape)
                self._u = self._flat(whole[..., None]) * w
                self._u *= roots
            else:
                self._u = w * (roots * scale.reshape(()))
            self._solved = self._u
        else:
            self._u = w * roots
            self._solved = self._flat(base.solve(self._full(self._u)))
        small: Array = self._u.mT @ self._solved
        self._beside = 1 + greatest_of_each(small)
        diagonal = diagonals(small)
        if (c < 0).any():
            self._signs = xp.where(c < 0, -1, 1).astype(c.dtype)
            diagonal += self._signs
        else:
            diagonal += 1
        return small

    def _factorise(self, small: Array) -> None:
        size = self._layout.size
        growth = greatest(small)
        if self._scale is not None and self._scale.size == 1 and self._signs is None:
            # d I + U U' is itself conditioned as I + U' U / d is, so that no digits cancel.
            growth = 0
        doubtful, self._refine = not growth <= DOUBTFUL, not growth <= REFINE_ABOVE
        self._small = small
        try:
            # I + U' U for real U: no eigenvalue is below 1.
            least = 1.0 if self._scale is not None and self._signs is None else 0.0
            self._factor = factorise(small, "", "", least, 0.0 if least else self._beside)
        except LinAlgError as error:
            if doubtful:
                raise Unsuitable(str(error)) from None
            raise singular_matrix_error(f"the {size} x {size} matrix", 0.0) from None
        if doubtful:
            self._checked()

    def __reduce__(self) -> tuple[Any, ...]:
        return LowRank, self._given

    @property
    def rank(self) -> int:
        """Number of vectors."""
        return int(self._u.shape[-1])

    def _checked(self) -> None:
        """Refuse a base so small somewhere that the update cancels all digits."""
        n = self._layout.size
        xp = namespace_of(self._u)
        probe = xp.cos(xp.arange(n, dtype=self._u.dtype)).reshape((*self._layout.column_shape, 1))
        goal = self._terms.times(probe)
        missed = greatest(goal - self._terms.times(self.solve(goal)))
        if not missed <= np.finfo(goal.dtype).eps ** 0.6 * greatest(goal):
            raise Unsuitable("the base is nearly singular")

    def _full(self, flat: Array) -> Array:
        """(batch, n, r), or (n, r) without a batch, to the column shape and r."""
        shape = self._layout.column_shape
        whole = flat.reshape((*(shape[k] for k in self._order), flat.shape[-1]))
        return whole.transpose((*np.argsort(self._order).tolist(), len(shape)))

    def _flat(self, b: Array) -> Array:
        return b.transpose((*self._order, b.ndim - 1)).reshape((*self._sizes, b.shape[-1]))

    def solve(self, b: Array) -> Array:
        x = self._once(b)
        return x + self._once(b - self._terms.times(x)) if self._refine else x

    def _once(self, b: Array) -> Array:
        if self._scale is None:
            x = self._flat(self._base.solve(b))
            return self._full(x - self._solved @ self._coupled(self._u.mT @ x))
        scale = self._scale[..., None]
        x = self._flat(b * scale)
        found: Array = self._full(x - self._u @ self._coupled(self._u.mT @ x)) * scale
        return found

    def _coupled(self, y: Array) -> Array:
        """The inverse of the small matrix times y, or times C y."""
        found: Array = self._factor.solve(y if self._c is None else self._c @ y)
        return found

    @property
    def negatives(self) -> float:
        """Of [[D, U], [U', -J]], which is reduced to D and -(J + U' D⁻¹ U), or to H and -J
        (Haynsworth): both have as many negative eigenvalues as it has.

        What is not symmetrised is so for them, as if C were its symmetric part.
        """
        signs, found = self._signs, np.sum(self._factor.negatives)
        if self._c is not None:
            if not self._is_symmetric():
                return float("nan")
            signs, small = self._as_if_symmetric(on_host(self._c))
            found = (np.linalg.eigvalsh(small) < 0).sum()
        below = 0 if signs is None else (on_host(signs) < 0).sum()
        return self._base.negatives + float(below - found)

    def _as_if_symmetric(self, c: Array) -> tuple[Array, Array]:
        """J and J + U' D⁻¹ U for the symmetric part of C."""
        values, vectors = np.linalg.eigh((c + c.mT) / 2)
        least = np.finfo(c.dtype).eps * c.shape[-1] * np.abs(values).max(initial=0)
        values[np.abs(values) <= least] = 0
        turned = vectors * np.sqrt(np.abs(values))[..., None, :]
        small = turned.mT @ on_host(self._u.mT @ self._solved) @ turned
        signs = np.where(values < 0, -1, 1)
        diagonals(small)[...] += signs
        return signs, (small + small.mT) / 2

    def _is_symmetric(self) -> bool:
        """Is W C W' symmetric in five digits, by two directions?

        C need not be, where vectors are dependent.
        """
        assert self._c is not None
        c, xp = on_host(self._c), namespace_of(self._u)
        steps = xp.arange(1.0, self._sizes[-1] + 1)
        u, v = (on_host(self._u.mT @ xp.cos(steps * k)) for k in (1, 2))
        across, back = (np.einsum("...i,...ij,...j", x, c, y) for x, y in ((u, v), (v, u)))
        sizes = np.einsum("...i,...ij,...j", np.abs(u), np.abs(c), np.abs(v))
        bound = NEARLY * sizes.max(initial=0)
        return bool(np.abs(across - back).max(initial=0) <= bound)

    def slogdet(self) -> tuple[float, float]:
        sign, log = self._base.slogdet()
        signs, logs = self._factor.slogdet()
        if self._signs is not None:
            sign *= float(np.prod(on_host(self._signs)))
        return sign * float(np.prod(signs)), log + float(np.sum(logs))

    def inverse(self) -> Terms:
        base = self._base.inverse()
        r, dtype = self.rank, self._u.dtype
        batch = tuple(self._batch)
        shape = self._layout.column_shape
        xp = namespace_of(self._u)
        eye = xp.broadcast_to(xp.eye(r, dtype=dtype), (*self._sizes[:-1], r, r))
        coupling = self._coupled(eye)
        if self._scale is None:
            left = self._full(self._solved)
            right = self._base.inverse().transposed().times(self._full(self._u))
        else:
            left = right = self._full(self._u) * self._scale[..., None]
        columns = self._layout.columns
        rows, across = list(range(columns)), list(range(columns, 2 * columns))
        for k in batch:
            across[k] = k
        p, q = 2 * columns, 2 * columns + 1
        held = coupling.reshape((*(shape[k] for k in batch), r, r))
        factors = ((0, (*rows, p)), (1, (*batch, p, q)), (2, (*across, q)))
        product = CoreProduct(factors, (*rows, *across), (*shape, *shape, r, r))
        update = Terms(
            TensorLayout(self._layout.shape, columns, [product]), (left, held, right), (-1.0,)
        )
        found = base.plus(update)
        if isinstance(found, InverseTerms):
            found.back = InverseSolver(self._terms, self._terms.times, self)
        return found


def _with_diagonal_coupling(w: Array, c: Array) -> tuple[Array, Array]:
    """W C W' with a diagonal C by its eigenvectors, if it is symmetric and not batched."""
    if c.ndim < w.ndim or len(c) != 1 or not np.array_equal(held := on_host(c), held.mT):
        return w, c
    xp = namespace_of(c)
    values, vectors = np.linalg.eigh(held[0])
    least = np.finfo(c.dtype).eps * len(values) * np.abs(values).max(initial=0)
    kept = np.abs(values) > least
    if kept.all() or not kept.any():
        return (w, c) if len(values) > 1 else (w, xp.asarray(values[None]))
    return w @ xp.asarray(vectors[:, kept]), xp.asarray(values[None, kept])


def solve_methods(
    layout: TensorLayout, itemsize: int, further: Callable[[TensorLayout], list[SolveMethod]]
) -> list[SolveMethod]:
    """Woodbury, where some terms have low rank; `further` gives methods for the others."""
    axes = tuple([k for k in range(layout.columns) if k not in layout.tied])
    shape = layout.column_shape
    n, b = prod([shape[k] for k in axes]), prod([shape[k] for k in layout.tied])
    low = _low_rank_terms(layout, axes, n)
    total = vector_count(layout, low)
    if not low or len(low) == len(layout.terms):
        return []
    base = layout.only([k for k in range(len(layout.terms)) if k not in low])
    options = further(base)
    if not options or total >= n:
        return []
    best = options[0]
    if best.build is Blocks and base.tied == layout.tied:
        return []  # blocks as large as those of the whole, which may not even be symmetric
    flops = best.flops + b * (2.0 * n * total * total + 2 * total**3 / 3)

    def text(rank: int) -> str:
        return f"low rank: {rank} vector{'s' * (rank != 1)} on top of [{best.text}], Woodbury"

    bytes_ = best.bytes + 3.0 * b * n * total * itemsize
    build: Any = partial(LowRank, low=tuple(low), build=best.build)
    return [SolveMethod(text(total), flops, bytes_, build, lambda made: text(made.rank), best.host)]


def _low_rank_terms(layout: TensorLayout, axes: Sequence[int], n: int) -> list[int]:
    """Terms of fewer than n vectors."""
    found = [low_rank_split(term, tuple(axes)) for term in layout.terms]
    return [
        k
        for k, (term, apart) in enumerate(zip(layout.terms, found, strict=True))
        if apart is not None and term_rank(term, apart) < n
    ]
