"""The NumPy kernel of sums over windows that overlap, tile by tile."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from ..steps import Step
from .numpy_matrices import Maker, Run, Slots

Array = np.ndarray[Any, Any]

#: Entries of windows that are copied at a time, of a line that are correlated at a time, and of two
#: lines whose inner products are taken at a time.
TILE, LINE, PART = 1 << 16, 1 << 15, 1 << 12
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
    total = np.zeros((prod(left), prod(windows.shape[:few])), out.dtype)
    for here, tile in _tiles(windows, few, out.dtype):
        matrix = tile if same else other[(Ellipsis, *here)].reshape(len(total), -1)
        total += matrix @ tile.T
    out[...] = total.reshape(out.shape)


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
