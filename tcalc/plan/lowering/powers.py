"""Powers of one base by exponents in equal steps: each is a product of lower ones."""

from __future__ import annotations

import numpy as np

from ...graph.nodes import Apply
from ...ops.powers import is_power
from ..builder import Builder
from ..steps import SlotWord

#: Highest exponent of such powers, to which rounding errors of the products are in proportion, and
#: exponents from which they are worth it.
HIGHEST, SEVERAL = 1024, 3


def powers(b: Builder, e: Apply, operands: list[SlotWord]) -> SlotWord | None:
    """The powers with their axis as the last one, where that is what the application computes."""
    if not is_power(e):
        return None
    (base, word), (exponents, along) = operands
    array = b.consts.get(exponents)
    if array is None or array.ndim != 1 or set(along) & set(word) or len(array) < SEVERAL:
        return None
    apart = np.diff(array)
    equal = apart[0] and np.all(apart == apart[0]) and not np.any(array % 1)
    if not equal or array.min() < 0 or array.max() > HIGHEST:
        return None
    shape, params = (*b.shapes[base], len(array)), (int(array[0]), int(apart[0]))
    target = (*word, *along)
    return b.emit("powers", (b.floating(base),), shape, (word, target), params), target
