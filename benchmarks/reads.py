"""Products whose operands are read at sums of indices, for the problems that are convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def product(
    operands: Sequence[tuple[Any, str]],
    sums: Mapping[str, tuple[str, str]],
    out: str,
    **extents: Any,
) -> Any:
    """The sum, over all indices that are not in `out`, of a product of operands.

    Parameters
    ----------
    operands : sequence of (expression, str)
        Every operand with one letter for each of its axes.
    sums : mapping
        A letter that stands for the sum of two others: ``{"j": ("i", "k")}`` reads at i + k.
    out : str
        The indices of the result.
    **extents
        Of letters that no operand has.
    """
    from tcalc import normal
    from tcalc.affine import Constraint
    from tcalc.extents import ONE
    from tcalc.ops.indicator import index, indicator

    sizes = {ord(letter): extent for letter, extent in extents.items()}
    for e, word in operands:
        sizes.update(zip(map(ord, word), e.shape, strict=True))
    ops = [e for e, _ in operands]
    words = [tuple(map(ord, word)) for _, word in operands]
    for whole, (one, other) in sums.items():
        form = index(ord(whole)) - index(ord(one)) - index(ord(other))
        for held, places in indicator(sizes, [Constraint(form, True)]):
            ops.append(held)
            words.append(places)
    return normal.einsum(ops, words, tuple(map(ord, out)), ONE, sizes)
