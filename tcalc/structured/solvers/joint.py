"""Variables with common tied axes: one block diagonal matrix over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from ...graph.nodes import Labels
from ...support.arrays import Array
from ...support.errors import LinAlgError
from ...support.records import NamedTuple
from ..terms.numeric_terms import Terms
from ..terms.tensor_layout import CoreProduct, OutputIndex, TensorLayout
from .base import BlockRows
from .block_rows import namespace_of_rows
from .factors import factorise


class TiedVariables(NamedTuple):
    """Numbers of variables, and the axes of each along which they are tied, in one order."""

    places: tuple[int, ...]
    axes: tuple[Labels, ...]

    def sizes(self, rows: BlockRows) -> tuple[int, int]:
        """Number of blocks, and rows of one block."""
        shapes = [rows[k][k].layout.column_shape for k in self.places]
        b = prod([shapes[0][axis] for axis in self.axes[0]])
        return b, sum([prod(shape) // max(1, b) for shape in shapes])


def are_tied(layout: TensorLayout, row: int, column: int) -> bool:
    """Whether all entries are zero at which a row index and a column index differ."""
    if layout.shape[row] != layout.column_shape[column]:
        return False
    column += layout.rows
    for term in layout.terms:
        item = term.out[row]
        others = [o for k, o in enumerate(term.out) if k not in (row, column)]
        if item != term.out[column] or item in others:
            return False
    return True


def tied_variables(rows: BlockRows) -> list[TiedVariables]:
    """Groups of two or more coupled variables with common tied axes."""
    found: dict[tuple[int, ...], TiedVariables] = {}
    for first in range(len(rows)):
        places, axes = [first], [rows[first][first].layout.tied]
        for other in range(len(rows)):
            if other in places or not any(rows[k][other].layout.terms for k in places):
                continue
            if (more := _extended(rows, places, axes, other)) is not None:
                places, axes = [*places, other], more
        if len(places) > 1:
            order = sorted(range(len(places)), key=places.__getitem__)
            tie = TiedVariables(tuple([places[k] for k in order]), tuple([axes[k] for k in order]))
            found.setdefault(tie.places, tie)
    return list(found.values())


def _extended(
    rows: BlockRows, places: list[int], axes: list[Labels], other: int
) -> list[Labels] | None:
    """The tied axes of the members and of one more variable, None where there are none."""
    own = rows[other][other].layout.tied
    kept, matched = [], []
    for n in range(len(axes[0])):
        for axis in own:
            if axis not in matched and all(
                are_tied(rows[k][other].layout, word[n], axis)
                for k, word in zip(places, axes, strict=True)
            ):
                kept.append(n)
                matched.append(axis)
                break
    if not kept:
        return None
    return [*(tuple([word[n] for n in kept]) for word in axes), tuple(matched)]


class JointBlocks:
    """Block diagonal over the tied axes: each block is dense, over several variables."""

    def __init__(self, rows: BlockRows, axes: Sequence[Labels]) -> None:
        self._rows, self._axes = rows, axes
        self._shapes = [row[k].layout.column_shape for k, row in enumerate(rows)]
        self._inner = [
            tuple([k for k in range(len(shape)) if k not in word])
            for shape, word in zip(self._shapes, axes, strict=True)
        ]
        self._batch = tuple([self._shapes[0][axis] for axis in axes[0]])
        self._b = prod(self._batch)
        self._n = [
            prod([shape[k] for k in inner])
            for shape, inner in zip(self._shapes, self._inner, strict=True)
        ]
        self._ends = np.cumsum([0, *self._n]).tolist()
        self._dtype = np.result_type(*[t.dtype for row in rows for t in row])
        n = sum(self._n)
        self._xp = namespace_of_rows(rows)
        whole = self._xp.zeros((self._b, n, n), self._dtype)
        for i, row in enumerate(rows):
            for j, terms in enumerate(row):
                rest = slice(self._ends[i], self._ends[i + 1]), slice(*self._ends[j : j + 2])
                whole[(slice(None), *rest)] = self._block(terms, i, j)
        what = f"the {n} x {n} block"
        try:
            self._factor = factorise(whole, what, what)
        except LinAlgError as error:
            raise LinAlgError(f"{error} (one block an item, over several variables)") from None

    def _block(self, terms: Terms, i: int, j: int) -> Array:
        """The block of two variables where tied indices agree: (batch, rows, columns)."""
        layout = terms.layout
        lead = [self._shapes[i][k] for k in self._inner[i]]
        more = [self._shapes[j][k] for k in self._inner[j]]
        whole: Array = self._xp.zeros((*self._batch, *lead, *more), self._dtype)
        for k, term in enumerate(layout.terms):
            items: list[OutputIndex] = [
                term.out[axis] for axis in (*self._axes[i], *self._inner[i])
            ]
            items += [term.out[layout.rows + axis] for axis in self._inner[j]]
            terms.accumulate(whole, k, items)
        return whole.reshape(self._b, self._n[i], self._n[j])

    def solve(self, b: Array) -> Array:
        count = b.shape[1]
        parts, low = [], 0
        for shape, word, inner, n in zip(
            self._shapes, self._axes, self._inner, self._n, strict=True
        ):
            part = b[low : low + prod(shape)].reshape((*shape, count))
            order = (*word, *inner, len(shape))
            parts.append(part.transpose(order).reshape(self._b, n, count))
            low += prod(shape)
        x = self._factor.solve(self._xp.concatenate(parts, axis=1))
        ends = enumerate(zip(self._ends, self._ends[1:], strict=False))
        found: Array = self._xp.concatenate(
            [self._placed(x[:, low:high], k) for k, (low, high) in ends]
        )
        return found

    def _placed(self, x: Array, k: int) -> Array:
        """(batch, inner, columns) of one variable as (size, columns), in C-order."""
        shape, word, inner = self._shapes[k], self._axes[k], self._inner[k]
        order = (*word, *inner)
        held = x.reshape((*(shape[a] for a in order), x.shape[-1]))
        back = (*np.argsort(order).tolist(), len(shape))
        return held.transpose(back).reshape(prod(shape), x.shape[-1])

    @property
    def negatives(self) -> float:
        return float(np.sum(self._factor.negatives))

    def slogdet(self) -> tuple[float, float]:
        signs, logs = self._factor.slogdet()
        return float(np.prod(signs)), float(np.sum(logs))

    def inverse(self) -> list[list[Terms]]:
        whole = self._factor.inverse()
        many = range(len(self._rows))
        return [[self._inverted(whole, i, j) for j in many] for i in many]

    def _inverted(self, whole: Array, i: int, j: int) -> Terms:
        layout = self._rows[i][j].layout
        part = whole[:, self._ends[i] : self._ends[i + 1], self._ends[j] : self._ends[j + 1]]
        lead = [self._shapes[i][k] for k in self._inner[i]]
        more = [self._shapes[j][k] for k in self._inner[j]]
        rows = list(range(layout.rows))
        columns = list(range(layout.rows, len(layout.shape)))
        for axis, other in zip(self._axes[i], self._axes[j], strict=True):
            columns[other] = axis
        word = (*self._axes[i], *self._inner[i], *(columns[k] for k in self._inner[j]))
        product = CoreProduct(((0, word),), (*rows, *columns), layout.shape)
        core = part.reshape((*self._batch, *lead, *more))
        return Terms(TensorLayout(layout.shape, layout.columns, [product]), (core,), (1.0,))

    def diagonal(self) -> list[Array]:
        whole = self._factor.inverse().diagonal(0, -2, -1)
        return [
            self._placed(whole[:, low:high, None], k).ravel()
            for k, (low, high) in enumerate(zip(self._ends, self._ends[1:], strict=False))
        ]
