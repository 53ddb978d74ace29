"""Operands of einsum forms: their order, and those under the same letters as one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ...graph.extents import ONE
from ...graph.nodes import Einsum, Expr
from ...support.limits import spend
from .factors import Factors
from .matrix_form import NodeForm
from .notation import INDEX_LETTERS, Fragment
from .style import Style

#: An operand under its letters.
Placed = tuple[str, Fragment]
#: A power of an operand under its letters.
Power = tuple[Expr, str, int]
OPENED = 5  #: steps that an operand of an einsum form takes


def named(labels: Sequence[int], fresh: Iterator[str]) -> dict[int, str]:
    """A letter for each label, in their order."""
    return {label: next(fresh) for label in dict.fromkeys(labels)}


def lettered(product: Factors, letters: str, fresh: Iterator[str]) -> list[Power]:
    """The powers of a contraction under letters; those of its output are given."""
    local = dict(zip(product.out, letters, strict=True))
    for label in range(len(product.extents)):
        if label not in local:
            local[label] = next(fresh)
    return [
        (op, "".join([local[label] for label in word]), power) for op, word, power in product.powers
    ]


def opened(
    forms: Mapping[int, NodeForm],
    node: Einsum,
    operand: Power,
    fresh: Iterator[str],
    factors: Callable[[Expr], Factors],
) -> list[Power]:
    """An operand, or in its place the powers of a contraction in einsum form, each time anew."""
    arg, letters, power = operand
    if power < 0 or not letters:
        return [operand]
    spend("steps", (OPENED + len(node.args) // 8) * power)
    repeated = sum([other is arg for other in node.args]) > 1
    closed = repeated or node.summed or forms[id(arg)].matrix
    if not closed and isinstance(arg, Einsum) and not scaled_or_diagonal(arg):  # bases of powers
        product = factors(arg)
        if product.coef == ONE:
            return [one for _ in range(power) for one in lettered(product, letters, fresh)]
    return [operand]


def scaled_or_diagonal(node: Einsum) -> bool:
    """Has a product a coefficient or a unit tensor, which its operands alone do not have?"""
    return node.coef is not ONE or len(set(node.out)) < len(node.out)


def ordered(placed: Sequence[Placed]) -> list[Placed]:
    """The operands, equal ones ordered by their letters."""
    words: dict[int, list[str]] = {}
    for word, fragment in placed:
        words.setdefault(id(fragment), []).append(word)
    given = {
        key: iter(sorted(found, key=lambda word: [INDEX_LETTERS.find(letter) for letter in word]))
        for key, found in words.items()
    }
    return [(next(given[id(fragment)]), fragment) for _, fragment in placed]


def merged(style: Style, above: Sequence[Placed], below: Sequence[Placed]) -> list[Placed]:
    """Operands under the same letters as one, multiplied and divided entry by entry."""
    groups: dict[str, dict[tuple[int, int], tuple[Fragment, int]]] = {}
    for side, sign in ((above, 1), (below, -1)):
        for word, fragment in side:
            counts = groups.setdefault(word, {})
            _, power = counts.get((id(fragment), sign), (fragment, 0))
            counts[id(fragment), sign] = (fragment, power + sign)
    return [
        (word, style.pointwise(list(counts.values()), False)) for word, counts in groups.items()
    ]
