"""Sums over windows that overlap: added up shift by shift, as no matrix kernel reads such views."""

from __future__ import annotations

from math import prod

from .steps import Builder, Word

#: Shifts that are added up one by one.
MAX_SHIFTS = 256
#: How many times the entries of an array a view must have for its windows to overlap.
OVERLAP = 1.5


def shifted(b: Builder, x: tuple[int, Word], y: tuple[int, Word]) -> tuple[int, Word] | None:
    """The sum over all labels of y of its product with windows x, where these overlap."""
    slot, word = x
    base = b.windows.get(slot)
    if base is None or not set(y[1]) < set(word):
        return None
    sizes = dict(zip(word, b.shapes[slot], strict=True))
    if prod(b.shapes[slot]) <= OVERLAP * prod(b.shapes[base]):
        return None
    kept = tuple([label for label in word if label not in y[1]])
    shape = tuple([sizes[label] for label in kept])
    shifts, entries = prod(b.shapes[y[0]]), prod(shape)
    if min(shifts, entries) > MAX_SHIFTS:
        return None
    full = kept + y[1]
    view = b.transpose(slot, tuple([word.index(label) for label in full]))
    kind = "shifted" if shifts <= entries else "lagged"
    flops = 2 * shifts * entries
    return b.emit(kind, (view, y[0]), shape, (full, y[1], kept), flops), kept
