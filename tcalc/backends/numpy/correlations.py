"""The NumPy kernel of sums over windows that overlap, tile by tile."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from ...plan.steps import Step
from ...support.arrays import Array
from ..host.slots import Run, Slots
from .matrices import Maker

#: Entries of windows that are copied at a time, of a line that are correlated at a time, and of two
#: lines whose inner products are taken at a time.
TILE, LINE, PART = 1 << 16, 1 << 15, 1 << 12
#: Entries across the axis that windows slide along, from which on they are copied as lines; and how
#: many entries of lines at a time.
ACROSS, LINES = 32, 1 << 17
#: Rows of a matrix of shifted weights, at least, and how many weights and blocks are worth one.
BLOCK, FEW = 32, 12
#: The least share of the largest energy of a window that all have, where one row of inner products
#: gives the others.
EVEN = 0.25


def _correlate(step: Step, dtype: np.dtype[Any]) -> Run:
    """Windows as few entries by many times the other operand, over the few or over the many."""
    (a, b), o, (few, keeps_many) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        windows, other, out = v[a], v[b], v[o]
        if keeps_many:
            _over_few(windows, other, out, few)
        else:
            _over_many(windows, other, out, few)

    return run


def _over_few(windows: Array, other: Array, out: Array, few: int) -> None:
    if other.ndim == few and _line(windows):
        _shifts(windows.T, other, out)
        return
    slide = Slide.of(windows, few)
    if slide is not None and out.flags.c_contiguous and slide.over_few(other, out):
        return
    vector = other.ndim == few
    count = prod(windows.shape[:few])
    matrix = other.reshape(count if vector else (-1, count))
    for here, tile in _tiles(windows, few, out.dtype):
        target = out[(Ellipsis, *here)]
        if vector:  # the entries of a tile lie together in the result
            np.dot(matrix, tile, out=target.reshape(-1))
        else:
            target[...] = np.dot(matrix, tile).reshape(target.shape)


def _over_many(windows: Array, other: Array, out: Array, few: int) -> None:
    many = windows.ndim - few
    if other.ndim == many and _line(windows):
        if windows.strides[0] != windows.strides[1]:
            windows, other = windows[:, ::-1], other[::-1]
        out[...] = _lags(_vector(windows), other)
        return
    twice = other.ndim == windows.ndim == 2 and _line(windows) and _line(other)
    if twice and _by_lags(windows, other, out):
        return
    left = other.shape[: other.ndim - many]
    same = _is_same(windows, other)
    slide = None if same else Slide.of(windows, few)
    if slide is not None:
        out[...] = slide.over_many(other).reshape(out.shape)
        return
    total = np.zeros((prod(left), prod(windows.shape[:few])), out.dtype)
    for here, tile in _tiles(windows, few, out.dtype):
        matrix = tile if same else other[(Ellipsis, *here)].reshape(len(total), -1)
        total += matrix @ tile.T
    out[...] = total.reshape(out.shape)


class Slide:
    """Windows that slide along their first long axis as one short one does.

    Lines, what lies across that axis, are copied once for every other short entry, not once for
    each entry of a window; what a block of rows reads then lies together as a matrix.
    """

    def __init__(self, windows: Array, few: int, axis: int) -> None:
        self.size, self.rows = windows.shape[axis], windows.shape[few]
        self.few, self.axis = few, axis
        self.short = windows.shape[:axis] + windows.shape[axis + 1 : few]
        self.others, self.across = prod(self.short), prod(windows.shape[few + 1 :])
        whole = np.moveaxis(windows, (few, axis), (0, 1))
        length = self.rows + self.size - 1
        self.lines = np.lib.stride_tricks.as_strided(
            whole, (length, *whole.shape[2:]), whole.strides[:1] + whole.strides[2:]
        )

    @classmethod
    def of(cls, windows: Array, few: int) -> Slide | None:
        if windows.ndim < few + 2 or prod(windows.shape[few + 1 :]) < ACROSS:
            return None
        alike = [k for k in range(few) if windows.strides[k] == windows.strides[few]]
        axis = max(alike, key=lambda k: windows.shape[k], default=None)
        return None if axis is None or windows.shape[axis] < 2 else cls(windows, few, axis)

    def blocks(self, size: int, dtype: Any) -> Iterator[tuple[slice, int, Array]]:
        """Which rows, so many a block and the rest one by one, and the matrices that they read."""
        margin = self.size - 1
        most = max(margin, LINES // (self.others * self.across) - margin, size)
        buffer = np.empty((most + margin, *self.lines.shape[1:]), dtype)
        step, whole = most // size * size, self.rows // size * size
        starts = [*range(0, whole, step), *range(whole, self.rows)]
        for low in starts:
            high, block = (min(low + step, whole), size) if low < whole else (low + 1, 1)
            tile = buffer[: high - low + margin]
            tile[...] = self.lines[low : high + margin]
            line = self.across * dtype.itemsize
            shape = (high - low) // block, (block + margin) * self.others, self.across
            strides = block * self.others * line, line, dtype.itemsize
            yield slice(low, high), block, np.lib.stride_tricks.as_strided(tile, shape, strides)

    def over_few(self, other: Array, out: Array) -> bool:
        """The sum over windows; False where an entry that is not finite met a zero of a block."""
        kept = other.ndim - self.few
        weights = np.moveaxis(other, kept + self.axis, kept).reshape(-1, self.size, self.others)
        left = len(weights)
        target = out.reshape(left, self.rows, self.across)
        size = 1 if left > 1 else 2
        shifted = {block: self._shifted(weights, block) for block in (1, size)}
        with np.errstate(invalid="ignore" if size > 1 else "warn"):
            for rows, block, matrices in self.blocks(size, out.dtype):
                part = target[:, rows]
                found = part.reshape(-1, block, self.across) if left == 1 else part.swapaxes(0, 1)
                np.matmul(shifted[block], matrices, out=found)
        return size == 1 or bool(np.isfinite(target).all())

    def _shifted(self, weights: Array, block: int) -> Array:
        """The weights of the lines that a block reads, one set further on for every row of it."""
        left = len(weights)
        shape = block, left, block + self.size - 1, self.others
        shifted = np.zeros(shape, weights.dtype)
        for k in range(block):
            shifted[k, :, k : k + self.size] = weights
        return shifted.reshape(block * left, -1)

    def over_many(self, other: Array) -> Array:
        """The sums over places, by what is left of the other operand and entries of a window."""
        rights = other.reshape(-1, self.rows, self.across)
        left = len(rights)
        total = np.zeros((left, self.size, self.others), other.dtype)
        for rows, block, matrices in self.blocks(1 if left > 1 else 2, other.dtype):
            part = rights[:, rows]
            right = part.reshape(-1, block, self.across) if left == 1 else part.swapaxes(0, 1)
            found = np.matmul(matrices, right.swapaxes(1, 2)).sum(axis=0)
            sums = found.reshape(block + self.size - 1, self.others, block, left)
            for k in range(block):
                total += sums[k : k + self.size, :, k].transpose(2, 0, 1)
        return np.moveaxis(total.reshape(left, self.size, *self.short), 1, 1 + self.axis)


def _tiles(windows: Array, few: int, dtype: Any) -> Iterator[tuple[Any, Array]]:
    """Slices of the long axes, and the windows there as a matrix: few rows, and its columns."""
    rows, many = windows.shape[:few], windows.shape[few:]
    count, further = prod(rows), prod(many[1:])
    step = max(1, min(many[0], TILE // max(1, count * further)))
    buffer = np.empty(count * step * further, dtype)
    rest = (slice(None),) * (len(many) - 1)
    for low in range(0, many[0], step):
        here: tuple[Any, ...] = (slice(low, low + step), *rest)
        part = windows[(Ellipsis, *here)]
        tile = buffer[: part.size].reshape(part.shape)
        tile[...] = part
        yield here, tile.reshape(count, -1)


def _line(windows: Array) -> bool:
    """Are these the windows of a vector, one entry further or back each?"""
    return windows.ndim == 2 and abs(windows.strides[0]) == abs(windows.strides[1])


def _is_same(x: Array, y: Array) -> bool:
    return x.shape == y.shape and x.__array_interface__ == y.__array_interface__


def _shifts(windows: Array, weights: Array, out: Array) -> None:
    """Windows of a vector times weights."""
    if windows.strides[0] != windows.strides[1]:
        windows, weights = windows[:, ::-1], weights[::-1]
    count, size = windows.shape
    line = _vector(windows)
    blocks = min(max(size, BLOCK), 2 * BLOCK)
    for low in range(0, count, LINE):
        part, target = line[low : low + LINE + size - 1], out[low : low + LINE]
        if (
            size < FEW
            or len(target) < FEW * blocks
            or not _by_blocks(part, weights, target, blocks)
        ):
            target[...] = np.correlate(part, weights, "valid")


def _by_blocks(line: Array, weights: Array, out: Array, block: int) -> bool:
    """Blocks of a vector are rows, times a matrix that holds the weights once a row, shifted.

    False where an entry that is not finite met the matrix's zeros.
    """
    size, rows = len(weights), len(out) // block
    matrix = np.zeros((block + size - 1, block), weights.dtype)
    step = matrix.strides
    np.lib.stride_tricks.as_strided(matrix, (block, size), (sum(step), step[0]))[...] = weights
    main = out[: rows * block].reshape(rows, block)
    with np.errstate(invalid="ignore"):
        for low in range(0, len(matrix), block):
            part = matrix[low : low + block]
            shape, strides = (rows, len(part)), (block * line.strides[0], line.strides[0])
            held = np.lib.stride_tricks.as_strided(line[low:], shape, strides, writeable=False)
            if low:
                main += held @ part
            else:
                np.dot(held, part, out=main)
    if len(out) > main.size:
        out[main.size :] = np.correlate(line[main.size :], weights, "valid")
    return bool(np.isfinite(main).all())


def _vector(windows: Array) -> Array:
    """What windows that go one entry further each are windows of."""
    length = sum(windows.shape) - 1
    return np.lib.stride_tricks.as_strided(windows, (length,), windows.strides[:1], writeable=False)


def _by_lags(x: Array, y: Array, out: Array) -> bool:
    """Inner products of windows with windows: each is the one before less one product, plus one.

    False where windows differ so much in size that digits would cancel.
    """
    if x.strides[0] != x.strides[1] or y.strides[0] != y.strides[1]:
        return False
    across, down, count = len(x), len(y), x.shape[1]
    first, second = _vector(x), _vector(y)
    if not (_even(first, across) and _even(second, down)):
        return False
    out[0] = _lags(first, second[:count])
    out[:, 0] = out[0] if _is_same(x, y) else _lags(second, first[:count])
    for k in range(1, down):
        gained = second[count + k - 1] * first[count : count + across - 1]
        lost = second[k - 1] * first[: across - 1]
        out[k, 1:] = out[k - 1, :-1] + (gained - lost)
    return True


def _lags(line: Array, other: Array) -> Array:
    """Inner products of a vector with the windows of a longer one, by parts that stay in cache."""
    further = len(line) - len(other)
    total = np.zeros(further + 1, line.dtype)
    for low in range(0, len(other), PART):
        part = other[low : low + PART]
        total += np.correlate(line[low : low + len(part) + further], part, "valid")
    return total


def _even(line: Array, windows: int) -> bool:
    """Have all windows of a vector much of the energy of the largest?"""
    squares = line * line
    count = len(line) - windows + 1
    change = squares[count:] - squares[: windows - 1]
    energy = squares[:count].sum() + np.concatenate([[0], np.cumsum(change)])
    return bool(energy.min() >= EVEN * energy.max())


CORRELATIONS: dict[str, Maker] = {"correlate": _correlate}
