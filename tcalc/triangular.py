"""Inverses of triangular matrices that are never formed: products with them are solves."""

from __future__ import annotations

from math import prod

from .steps import RESULT, Builder, Word

Operand = tuple[int, Word]


def solvable(b: Builder, inverse: Operand, other: Operand, summed: Word) -> bool:
    """Is this an inverse times columns? One label is summed, the other is the inverse's own."""
    mine = set(inverse[1])
    return len(mine) == 2 and len(summed) == 1 and not mine & set(other[1]) - {summed[0]}


def solved(b: Builder, inverse: Operand, other: Operand, label: int) -> Operand:
    """The product with the inverse of a triangular matrix as a triangular solve."""
    matrix = b.inverses[inverse[0]]
    trans = inverse[1].index(label) == 0
    (own,) = set(inverse[1]) - {label}
    columns = tuple([k for k in other[1] if k != label])
    target = (label, *columns)
    slot = b.ordered(*other, target)
    shape = b.shapes[slot]
    flat_shape = (shape[0], prod(shape[1:]))
    flops = shape[0] * prod(shape)
    words = (inverse[1], target, (own, *columns))
    args = (matrix, b.reshape(slot, flat_shape))
    found = b.emit("trisolve", args, flat_shape, words, flops, (trans,), RESULT)
    return b.reshape(found, shape), (own, *columns)
