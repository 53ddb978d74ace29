"""Tensors that are block diagonal over tied axes: division, one block repeated, or a batch."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from ...graph.extents import show_shape
from ...support.arrays import Array
from ...support.errors import LinAlgError
from ...support.namespaces import namespace_of, on_host
from ...support.records import NamedTuple
from ..terms.numeric_terms import Terms
from ..terms.tensor_layout import CoreProduct, OutputIndex, TableIndex, TensorLayout
from .base import SolveMethod
from .factors import factorise


class Arrangement(NamedTuple):
    """The column axes of a block diagonal tensor by what they are to the blocks.

    Attributes
    ----------
    carried : tuple of int
        Tied axes along which the blocks vary: the batch.
    shared : tuple of int
        Tied axes along which one block is repeated.
    inner : tuple of int
        Axes of a block.
    """

    carried: tuple[int, ...]
    shared: tuple[int, ...]
    inner: tuple[int, ...]

    def order(self) -> tuple[int, ...]:
        """The axes in the order batch, block, repetition."""
        return (*self.carried, *self.inner, *self.shared)

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, int, int]:
        """Number of blocks, rows of a block, and repetitions of each block."""
        b, n, s = (
            prod([shape[k] for k in axes]) for axes in (self.carried, self.inner, self.shared)
        )
        return b, n, s


def varies(term: CoreProduct, item: OutputIndex) -> bool:
    """Whether a term's blocks vary along the tied axis of an output index."""
    if isinstance(item, TableIndex):
        return True
    words = [word for _, word in term.factors] + [
        i.labels for i in term.out if isinstance(i, TableIndex)
    ]
    return any(item in word for word in words)


@lru_cache(1024)
def arrangement(layout: TensorLayout) -> Arrangement:
    """The axes of a layout sorted into tied ones that vary, tied ones that repeat, and others."""
    axes = range(layout.columns)
    carried = tuple([k for k in layout.tied if any(varies(t, t.out[k]) for t in layout.terms)])
    shared = tuple([k for k in layout.tied if k not in carried])
    return Arrangement(carried, shared, tuple([k for k in axes if k not in layout.tied]))


@lru_cache(1024)
def block_items(term: CoreProduct, found: Arrangement) -> tuple[OutputIndex, ...]:
    """Output indices of the array of blocks: carried axes, inner rows, inner columns."""
    half = len(term.out) // 2
    rows = [term.out[k] for k in found.inner]
    columns = [term.out[half + k] for k in found.inner]
    return (*(term.out[k] for k in found.carried), *rows, *columns)


@lru_cache(1024)
def _only_core(layout: TensorLayout, found: Arrangement) -> tuple[int, tuple[int, ...]] | None:
    """The core that is the array of blocks itself, and the order of its axes, if there is one."""
    if len(layout.terms) != 1 or layout.terms[0].has_tables or len(layout.terms[0].factors) != 1:
        return None
    (core, word), items = layout.terms[0].factors[0], block_items(layout.terms[0], found)
    if len(set(word)) < len(word) or sorted(word) != sorted(map(_label, items)):
        return None
    return core, tuple([word.index(_label(item)) for item in items])


def _label(item: OutputIndex) -> int:
    return -1 if isinstance(item, TableIndex) else item


def assemble_blocks(terms: Terms, found: Arrangement) -> Array:
    """The blocks, an array of shape carried + inner + inner; may be a view of a core."""
    layout = terms.layout
    if (known := _only_core(layout, found)) is not None:
        core, order = known
        held = terms.cores[core].transpose(order).astype(terms.dtype, copy=False)
        return held if terms.coefs[0] == 1 else held * terms.dtype.type(terms.coefs[0])
    shape = layout.column_shape
    carried, inner = ([shape[k] for k in axes] for axes in (found.carried, found.inner))
    if len(layout.terms) == 1 and not layout.terms[0].has_tables:
        items = block_items(layout.terms[0], found)
        labels = layout.terms[0].labels(items)
        if len(labels) == len(items):
            full: Array = terms.xp.broadcast_to(terms.values(0, labels), (*carried, *inner, *inner))
            return full
    whole: Array = terms.xp.zeros((*carried, *inner, *inner), terms.dtype)
    for k, term in enumerate(layout.terms):
        terms.accumulate(whole, k, block_items(term, found))
    return whole


class Empty:
    """No rows at all."""

    def __init__(self, terms: Terms) -> None:
        self._layout = terms.layout

    def solve(self, b: Array) -> Array:
        return b

    @property
    def negatives(self) -> float:
        return 0

    def slogdet(self) -> tuple[float, float]:
        return 1.0, 0.0

    def inverse(self) -> Terms:
        return Terms(self._layout.only(()), (), ())


class Diagonal:
    """A diagonal tensor, where all axes are tied."""

    def __init__(self, terms: Terms) -> None:
        self._layout, self._found = terms.layout, arrangement(terms.layout)
        held = assemble_blocks(terms, self._found)
        with np.errstate(divide="ignore"):
            inverse = 1 / held
        good = terms.xp.isfinite(held) & terms.xp.isfinite(inverse)
        if not good.all():
            bad = tuple(np.argwhere(~on_host(good))[0].tolist())
            place = f" at {show_shape(bad)}" if held.ndim else ""
            raise LinAlgError(
                f"the diagonal has an entry {float(held[bad]):.1g}{place} and no inverse; "
                "solve(…, damping=d) solves with d added to the diagonal"
            )
        self._held, self._inverse = held, inverse
        keep = set(self._found.carried)
        self._spread = tuple([
            slice(None) if k in keep else None for k in range(terms.layout.columns)
        ])  # fmt: skip

    def solve(self, b: Array) -> Array:
        result: Array = b * self._inverse[(*self._spread, None)]
        return result

    @property
    def negatives(self) -> float:
        times = self._found.sizes(self._layout.column_shape)[2]
        return float((self._held < 0).sum()) * times

    def root(self) -> Array | None:
        """D^(-1/2), of the column shape or with extents 1, where D is positive."""
        if self.negatives:
            return None
        result: Array = namespace_of(self._inverse).sqrt(self._inverse)[self._spread]
        return result

    def slogdet(self) -> tuple[float, float]:
        times = self._found.sizes(self._layout.column_shape)[2]
        held = on_host(self._held)
        sign = np.prod(np.sign(held)) ** times
        return float(sign), times * float(np.log(np.abs(held)).sum())

    def inverse(self) -> Terms:
        shape = self._layout.column_shape
        axes = tuple(range(len(shape)))
        product = CoreProduct(((0, self._found.carried),), (*axes, *axes), shape)
        return Terms(
            TensorLayout(self._layout.shape, len(shape), [product]), (self._inverse,), (1.0,)
        )


class _BlockShapes(NamedTuple):
    """What `Blocks` needs of a layout: sizes, shapes, orders of axes, and names for errors."""

    found: Arrangement
    sizes: tuple[int, int, int]
    batched: bool
    cut: tuple[int, ...]
    order: tuple[int, ...]
    back: tuple[int, ...]
    straight: bool
    moved: tuple[int, ...]
    what: str
    item: str


@lru_cache(1024)
def _block_shapes(layout: TensorLayout) -> _BlockShapes:
    found, shape = arrangement(layout), layout.column_shape
    b, n, s = found.sizes(shape)
    order = (*found.order(), len(shape))
    batched = bool(found.carried)
    return _BlockShapes(
        found, (b, n, s), batched, (b, n, n) if batched else (n, n),
        order, tuple(np.argsort(order).tolist()), order == tuple(range(len(shape) + 1)),
        tuple([shape[k] for k in found.order()]),
        f"the {n} x {n} {'block' if layout.tied else 'matrix'}", f"the {n} x {n} block",
    )  # fmt: skip


class Blocks:
    """Dense blocks, batched over the carried tied axes; the whole matrix where nothing is tied."""

    def __init__(self, terms: Terms) -> None:
        self._layout = terms.layout
        known = _block_shapes(terms.layout)
        (self._found, (self._b, self._n, self._s), self._batched, cut,
         self._order, self._back, self._straight, self._moved, what, item) = known  # fmt: skip
        blocks = assemble_blocks(terms, self._found)
        try:
            self.factor = factorise(blocks.reshape(cut), what, item)
        except LinAlgError as error:
            raise _with_block_index(error, terms.layout.column_shape, self._found) from None

    def solve(self, b: Array) -> Array:
        columns = b.shape[-1]
        moved = b if self._straight else b.transpose(self._order)
        if self._batched:
            x = self.factor.solve(moved.reshape(self._b, self._n, self._s * columns))
        else:
            x = self.factor.solve(moved.reshape(self._n, self._s * columns))
        x = x.reshape((*self._moved, columns))
        result: Array = x if self._straight else x.transpose(self._back)
        return result

    @property
    def negatives(self) -> float:
        return float(np.sum(self.factor.negatives)) * self._s

    def slogdet(self) -> tuple[float, float]:
        signs, logs = self.factor.slogdet()
        return float(np.prod(signs)) ** self._s, self._s * float(np.sum(logs))

    def inverse(self) -> Terms:
        found, shape = self._found, self._layout.column_shape
        core = self.factor.inverse().reshape(
            [shape[k] for k in (*found.carried, *found.inner, *found.inner)]
        )
        rank = len(shape)
        second = {k: rank + place for place, k in enumerate(found.inner)}
        rows = tuple(range(rank))
        columns = tuple([second.get(k, k) for k in rows])
        word = (*found.carried, *found.inner, *(second[k] for k in found.inner))
        extents = (*shape, *(shape[k] for k in found.inner))
        product = CoreProduct(((0, word),), (*rows, *columns), extents)
        return Terms(TensorLayout(self._layout.shape, rank, [product]), (core,), (1.0,))


def _with_block_index(
    error: LinAlgError, shape: tuple[int, ...], found: Arrangement
) -> LinAlgError:
    """The error with the indices of a block instead of its number in the batch."""
    text = str(error)
    head, _, rest = text.partition(" block ")
    number, _, tail = rest.partition(" ")
    if not found.carried or not number.isdigit():
        return error
    place = np.unravel_index(int(number), [shape[k] for k in found.carried])
    where = ", ".join(str(int(k)) for k in place)
    return LinAlgError(f"{head} block at [{where}] {tail}")


def assembly_flops(term: CoreProduct, found: Arrangement) -> float:
    """Operations to add one term to the array of blocks."""
    labels = {label for _, word in term.factors for label in word}
    labels.update(term.labels(block_items(term, found)))
    return (1.0 + len(term.factors)) * prod([term.extents[label] for label in labels])


def solve_methods(layout: TensorLayout, itemsize: int) -> list[SolveMethod]:
    """Division, or dense blocks."""
    found = arrangement(layout)
    b, n, s = found.sizes(layout.column_shape)
    if not layout.size:
        return [SolveMethod("nothing to solve: no rows", 0.0, 0.0, Empty)]
    if not found.inner:
        return [SolveMethod("diagonal: division", float(b), float(2 * b * itemsize), Diagonal)]
    flops = b * (n**3 / 3 + 2 * n * n) + sum([assembly_flops(t, found) for t in layout.terms])
    if not layout.tied:
        text = f"dense: one {n} x {n} matrix, Cholesky (LDL^T or LU where that fails)"
    else:
        many = f"{b} blocks" if found.carried else f"one block for all {s} items"
        axes = ", ".join(map(str, layout.tied))
        text = f"block diagonal over axis {axes}: {many} of {n} x {n}, Cholesky"
    return [SolveMethod(text, flops, 2.0 * b * n * n * itemsize, Blocks)]
