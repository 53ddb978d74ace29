"""Sums over windows that overlap: no matrix kernel reads such views, so tiles of them are copied.

The labels of the windows fall into those that are summed and those that are kept. The group with
more entries is cut into tiles; of the other one few entries are left, and with a tile they are the
columns and rows of a matrix that stays in cache.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from ..builder import Builder
from ..steps import Word


def correlated(
    b: Builder, x: tuple[int, Word], y: tuple[int, Word], keep: Collection[int]
) -> tuple[int, Word] | None:
    """The product of windows x with y, summed over all shared labels, where windows overlap."""
    slot, word = x
    base = b.windows.get(slot)
    shared = tuple([label for label in word if label in y[1]])
    if "correlate" not in b.machine.forms or base is None or not shared:
        return None
    if any(label in keep for label in shared):
        return None
    if prod(b.shapes[slot]) <= b.machine.overlap * prod(b.shapes[base]):
        return None
    sizes = {**dict(zip(y[1], b.shapes[y[0]], strict=True))}
    sizes.update(zip(word, b.shapes[slot], strict=True))
    own = tuple([label for label in word if label not in shared])
    right = tuple([label for label in y[1] if label not in shared])
    counts = [prod([sizes[label] for label in group]) for group in (own, shared, right)]
    long, short = (own, shared) if counts[0] >= counts[1] else (shared, own)
    view = b.transpose(slot, tuple([word.index(label) for label in short + long]))
    other = b.transpose(y[0], tuple([y[1].index(label) for label in right + shared]))
    out = right + own
    shape = tuple([sizes[label] for label in out])
    params = (len(short), long is own)
    words = (short + long, right + shared, out)
    return b.emit("correlate", (view, other), shape, words, params), out
