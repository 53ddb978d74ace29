"""Symmetric products Xᵀ diag(d) X: halves of them, of the rows that count."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...plan.steps import Step
from ...support.arrays import Array
from ...support.products import Product
from ..host.slots import Run, Slots

#: Of rows, the part with a weight up to which it pays to take them apart from the others.
WEIGHTED = 0.75
#: Of a product's trace, the part below which too many digits cancel between it and the identity.
CANCELLED = 0.1


def gram(multiply: Product, step: Step, dtype: np.dtype[Any]) -> Run:
    """Xᵀ diag(d) X; NumPy multiplies √d X with its own transpose by a symmetric rank update.

    Where many rows have no weight these are left out, as of data that no constraint is active for;
    so are rows whose weights together give a multiple of the identity, which is added.
    """
    (a, b, c, *scale), o, complete = step.args, step.out, bool(step.params)

    def run(v: Slots) -> None:
        x, d, rows, out = v[a], v[b], v[c], v[o]
        if np.isnan(d).any():
            np.multiply(x, d[:, None], rows)
            multiply(x.T, rows, out)
            return
        number, rest = _apart(d, *[v[k] for k in scale]) if complete else (0.0, d)
        _weighted_square(multiply, x, rest, rows, out)
        if number:
            whole = abs(number) * len(out)
            if abs(out.trace() + number * len(out)) < CANCELLED * whole:
                _weighted_square(multiply, x, d, rows, out)
            else:
                out.reshape(-1)[:: len(out) + 1] += number

    return run


def _apart(d: Array, scale: Array | None = None) -> tuple[float, Array]:
    """A number and weights that with it times the squares of a scale give these weights.

    The number is 0, or what most weights are made of if that leaves more rows without one.
    """
    unit = np.ones_like(d) if scale is None else np.square(scale)
    ratios = d[unit > 0] / unit[unit > 0]
    number = np.partition(ratios, len(ratios) // 2)[len(ratios) // 2] if len(ratios) else 0.0
    if not number or not np.isfinite(number):
        return 0.0, d
    rest = d - number * unit
    rest[np.abs(rest) <= 4 * np.finfo(d.dtype).eps * abs(number) * unit] = 0
    if np.count_nonzero(rest) > WEIGHTED * np.count_nonzero(d):
        return 0.0, d
    return float(number), rest


def _weighted_square(multiply: Product, x: Array, d: Array, rows: Array, out: Array) -> None:
    """Xᵀ diag(d) X, by way of memory for rows."""
    order, above = _by_weight(x, d)
    roots = np.sqrt(np.abs(d if order is None else d[order]))
    # The transpose of what is multiplied, which lies as X does.
    if x.T.flags.c_contiguous and rows.flags.c_contiguous:
        left = rows.reshape(-1)[: x.shape[1] * len(roots)].reshape(x.shape[1], len(roots))
        _scaled(x.T, order, 1, roots, left)
    else:
        _scaled(x, order, 0, roots[:, None], rows[: len(roots)])
        left = rows[: len(roots)].T
    one, two = left[:, :above], left[:, above:]
    if above or not two.size:
        multiply(one, one.T, out)
        if two.size:
            np.subtract(out, np.dot(two, two.T), out)
    else:
        multiply(two, two.T, out)
        np.negative(out, out)


def _by_weight(x: Array, d: Array) -> tuple[Array | None, int]:
    """Rows by their weights' sign, None where all come as they lie; and how many come first.

    Those of weight 0 are left out, or come first. They stay where 0 times one of them is no 0.
    """
    above, below = int(np.count_nonzero(d > 0)), int(np.count_nonzero(d < 0))
    if above + below <= WEIGHTED * d.size and _finite(x, d == 0):
        return np.concatenate([np.flatnonzero(d > 0), np.flatnonzero(d < 0)]), above
    if below == d.size or not below:
        return None, d.size - below
    return np.argsort(d < 0, kind="stable"), d.size - below


def _finite(x: Array, chosen: Array) -> bool:
    """Are the numbers in chosen rows finite, and others no infinity?"""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(chosen.astype(x.dtype) @ x).all())


def _scaled(x: Array, order: Array | None, axis: int, scale: Array, out: Array) -> None:
    """Items along an axis of x, all or in an order, times their scale."""
    if order is not None:
        x = np.take(x, order, axis, out, mode="clip")
    np.multiply(x, scale, out)
