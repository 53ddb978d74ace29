"""Products to kernels: a contraction path, each pair on the best matrix kernel.

Operands are slots with one label per axis. Transposes are never carried out for their own sake: a
result keeps the axis order its kernel gives, and is read by its labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

from ...contraction.common_subproducts import ContractionOperands
from ...contraction.known_products import KnownProduct, known_products
from ...contraction.paths import EXACT_OPERANDS, Path, contraction_path
from ...support.limits import spend
from ..builder import Builder
from ..steps import SlotWord, Word
from . import sparse
from .axis_order import sized
from .gathers import (
    SelectionFactor,
    selected,
    selection_factors,
    selection_of,
    summed_alone,
    written,
)
from .pairwise import contract, core, known_product, reduce, times

Extents = Mapping[int, int]

#: Steps of two factors that were multiplied before, and of two that are the same array.
MET, PAIRED = 5, 2


def product(b: Builder, operands: Sequence[SlotWord], out: Word, extents: Extents) -> SlotWord:
    """The sum over all labels not in `out` of the product of operands.

    Every label of `out` is distinct and stands in some operand. The result's axes are in any order.
    """
    keep = set(out)
    if all(keep.issuperset(word) for _, word in operands):
        factors = [diagonal(b, slot, word) for slot, word in operands]
    else:
        held = any(slot in b.sparse for slot, _ in operands)
        found = None if held else gram(b, operands, out, extents)
        if found is not None:
            return found
        factors = _summed_alone(b, operands, keep)
    tables = [f for f in factors if f[0] in b.selections or f[0] in b.sparse]
    factors = [f for f in factors if f[0] not in b.selections and f[0] not in b.sparse]
    if len(factors) > 1:
        factors = _grouped(b, factors, keep.union(*[word for _, word in tables]))
    factors += tables
    if len(factors) == 2:
        one, two = factors
        factors = [_summed_before(b, one, two, keep) or _multiplied(b, one, two, keep, out)]
    elif len(factors) > 2:
        factors = [_along_path(b, factors, out, extents)]
    slot, word = factors[0]
    if slot in b.selections:
        return summed_alone(b, factors[0], keep)
    if slot in b.sparse:
        return sparse.summed_alone(b, factors[0], set(word) - keep)
    return reduce(b, slot, word, set(word) - keep)


def _multiplied(b: Builder, x: SlotWord, y: SlotWord, keep: set[int], want: Word) -> SlotWord:
    if x[0] in b.sparse or y[0] in b.sparse:
        return sparse.multiplied(b, x, y, keep)
    if x[0] in b.selections or y[0] in b.selections:
        return selected(b, x, y, keep)
    return contract(b, x, y, keep, want)


def _summed_alone(b: Builder, operands: Sequence[SlotWord], keep: set[int]) -> list[SlotWord]:
    """Operands without the labels that stand nowhere else."""
    counts = Counter([label for _, word in operands for label in set(word)])
    factors = []
    for slot, word in operands:
        slot, word = diagonal(b, slot, word)
        once = {label for label in word if counts[label] == 1 and label not in keep}
        if slot in b.sparse:
            factors.append(sparse.summed_alone(b, (slot, word), once))
            continue
        factors.append((slot, word) if slot in b.selections else reduce(b, slot, word, once))
    return factors


def diagonal(b: Builder, slot: int, word: Word) -> SlotWord:
    """Repeated labels of one operand read as a diagonal view."""
    if slot in b.selections and len(set(word)) < len(word):
        parts = [
            SelectionFactor(*diagonal(b, p.integers, p.labels), p.value)
            for p in selection_factors(b, (slot, word))
        ]
        found = selection_of(b, parts, sized(b, (slot, word)))
        if found is not None:
            return found
        slot = written(b, slot)
    while len(set(word)) < len(word):
        label = next(label for k, label in enumerate(word) if label in word[:k])
        i, j = [k for k, other in enumerate(word) if other == label][:2]
        shape = b.shapes[slot]
        rest = [k for k in range(len(word)) if k not in (i, j)]
        after = (*[word[k] for k in rest], label)
        sizes = tuple([shape[k] for k in [*rest, i]])
        slot = b.emit("diagonal", (slot,), sizes, (word, after), (i, j))
        word = after
    return slot, word


def _grouped(b: Builder, factors: Sequence[SlotWord], keep: set[int]) -> list[SlotWord]:
    """Operands with the same labels multiplied entry by entry.

    Where they are all and summed, they stay two halves; labels that only they have are summed.
    """
    groups: dict[frozenset[int], list[SlotWord]] = {}
    for slot, word in factors:
        groups.setdefault(frozenset(word), []).append((slot, word))
    uses = Counter([label for labels in groups for label in labels])
    found = []
    for labels, members in groups.items():
        kept = {label for label in labels if label in keep or uses[label] > 1}
        if len(members) == 1 or labels <= kept:
            found.append(pointwise(b, members))
        elif len(groups) == 1:
            found += _two_halves(b, members)
        else:
            one, other = _two_halves(b, members)
            found.append(contract(b, one, other, kept, ()))
    return found


def by_labels(b: Builder, operands: Sequence[SlotWord]) -> list[SlotWord]:
    """Operands with the same labels multiplied entry by entry, selection tensors as they are."""
    groups: dict[frozenset[int], list[SlotWord]] = {}
    others = []
    for slot, word in operands:
        if slot in b.selections:
            others.append((slot, word))
        else:
            slot, word = diagonal(b, slot, word)
            groups.setdefault(frozenset(word), []).append((slot, word))
    return [pointwise(b, members) for members in groups.values()] + others


def _two_halves(b: Builder, members: list[SlotWord]) -> list[SlotWord]:
    """x⁴ summed is an inner product of x² with itself."""
    counts = Counter(members)
    if all(count % 2 == 0 for count in counts.values()):
        half = pointwise(b, [m for m, count in counts.items() for _ in range(count // 2)])
        return [half, half]
    members = sorted(members, key=lambda m: -counts[m])
    return [pointwise(b, members[:-1]), members[-1]]


def pointwise(b: Builder, members: Sequence[SlotWord]) -> SlotWord:
    """The entrywise product of operands with the same labels."""
    if len(members) == 1:
        return members[0]
    counts = Counter(members)
    if len(members) == 2:
        found = times(b, members[0], members[1], members[0][1])
    else:
        found = _powers(b, counts, members[0][1])
    if (b.symmetries or b.antisymmetries) and len({word for _, word in members}) == 1:
        _note_symmetries(b, found[0], counts)
    return found


def _powers(b: Builder, counts: Mapping[SlotWord, int], target: Word) -> SlotWord:
    """The product of powers, each by squaring."""
    total: SlotWord | None = None
    for base, count in counts.items():
        square = base
        while count:
            if count & 1:
                total = square if total is None else times(b, total, square, target)
            count >>= 1
            if count:
                square = times(b, square, square, square[1])
    assert total is not None
    return total


def _note_symmetries(b: Builder, found: int, counts: Mapping[SlotWord, int]) -> None:
    """An even power has the symmetries of its base, and those that change the base's sign."""
    common: set[Word] | None = None
    for (slot, _), count in counts.items():
        perms = set(b.symmetries.get(slot, ()))
        if count % 2 == 0:
            perms.update(b.antisymmetries.get(slot, ()))
        common = perms if common is None else common & perms
    if common:
        b.symmetries.setdefault(found, tuple(sorted(common)))


def _along_path(b: Builder, factors: list[SlotWord], out: Word, extents: Extents) -> SlotWord:
    """Pairwise products in the order of the contraction path, using those that are there."""
    known = _known(b, factors, out)
    if len(factors) > EXACT_OPERANDS:
        options = [(f, _path(b, f, out, extents, {})) for f in (factors, _joined(factors, known))]
        factors, (pairs, words, _) = min(options, key=lambda option: option[1].time)
    else:
        pairs, words, _ = _path(b, factors, out, extents, known)
    labels = list(_numbered(factors))
    held: list[SlotWord] = [
        (slot, tuple([labels[k] for k in word]))
        for (slot, _), word in zip(factors, words, strict=True)
    ]
    uses = Counter([*out, *[label for _, word in held for label in word]])
    for step, (i, j) in enumerate(pairs):
        uses.subtract(held[i][1])
        uses.subtract(held[j][1])
        keep = {label for label in held[i][1] + held[j][1] if uses[label]}
        want = out if step == len(pairs) - 1 else ()
        found = _there(b, held[i], held[j], keep) if known else None
        held.append(found or _multiplied(b, held[i], held[j], keep, want))
        uses.update(held[-1][1])
    return held[-1]


def _numbered(factors: Sequence[SlotWord]) -> dict[int, int]:
    """Labels by first appearance, in the operands of most axes first."""
    number: dict[int, int] = {}
    for _, word in sorted(factors, key=lambda factor: -len(factor[1])):
        for label in word:
            number.setdefault(label, len(number))
    return number


def _path(
    b: Builder,
    factors: Sequence[SlotWord],
    out: Word,
    extents: Extents,
    known: Mapping[int, KnownProduct[SlotWord]],
) -> Path:
    number = _numbered(factors)
    arrays: dict[int, int] = {}
    given = ContractionOperands(
        tuple([tuple([number[i] for i in word]) for _, word in factors]),
        tuple([arrays.setdefault(slot, len(arrays)) for slot, _ in factors]),
        tuple([b.symmetries.get(slot, ()) for slot, _ in factors]),
        tuple([len(b.selections.get(slot, ())) for slot, _ in factors]),
        sum([1 << k for k, (slot, _) in enumerate(factors) if slot in b.fixed]),
    )
    kept = tuple(sorted([number[label] for label in out]))
    there = tuple([(places, found.half) for places, found in known.items()])
    lengths = tuple([extents[label] for label in number])
    return contraction_path(given, kept, lengths, there, b.machine)


def _known(b: Builder, factors: Sequence[SlotWord], out: Word) -> dict[int, KnownProduct[SlotWord]]:
    """Sets of factors, as bits, of which the product exists already."""

    def met(x: SlotWord, y: SlotWord) -> bool:
        return (x[0], y[0]) in b.products or (y[0], x[0]) in b.products

    def product(x: SlotWord, y: SlotWord, keep: set[int]) -> SlotWord | None:
        spend("steps", MET + len(factors) // 4)
        return _there(b, x, y, keep)

    words = [word for _, word in factors]
    return known_products(factors, words, out, met, product) if b.products else {}


def _there(b: Builder, x: SlotWord, y: SlotWord, keep: set[int]) -> SlotWord | None:
    """The product of two operands if it exists and has no other labels than are kept."""
    found = known_product(b, x, y, keep)
    return found if found and set(found[1]) == keep.intersection(x[1] + y[1]) else None


def _summed_before(b: Builder, x: SlotWord, y: SlotWord, keep: set[int]) -> SlotWord | None:
    """A product with sums that exists already, its axes in whatever order."""
    return None if keep.issuperset(x[1] + y[1]) else _there(b, x, y, keep)


def _joined(
    factors: Sequence[SlotWord], known: Mapping[int, KnownProduct[SlotWord]]
) -> list[SlotWord]:
    """The factors with products that exist, large ones first, in the place of theirs."""
    rest, joined = (1 << len(factors)) - 1, []
    for places in sorted(known, key=lambda places: (-places.bit_count(), places)):
        if places & rest == places:
            rest ^= places
            joined.append(known[places].operand)
    return [factor for k, factor in enumerate(factors) if rest >> k & 1] + joined


# --- symmetric products ---------------------------------------------------------------------------


def gram(b: Builder, operands: Sequence[SlotWord], out: Word, extents: Extents) -> SlotWord | None:
    """Xᵀ diag(d) X as half a matrix product of √d X with itself, where d has one sign.

    X may have several axes on either side; d is the product of all operands but two.
    """
    if len(operands) < 3 or any(slot in b.selections for slot, _ in operands):
        return None
    if "gram" not in b.machine.forms:
        return None
    places: dict[int, list[int]] = {}
    for k, (slot, _) in enumerate(operands):
        places.setdefault(slot, []).append(k)
    for i, j in (pair for ks in places.values() for pair in combinations(ks, 2)):
        spend("steps", PAIRED)
        (slot, one), (_, two) = operands[i], operands[j]
        rows = tuple([label for label, mate in zip(one, two, strict=True) if label == mate])
        left = tuple([label for label in one if label not in rows])
        right = tuple([label for label in two if label not in rows])
        if len(left + right) != len(out) or set(left + right) != set(out):
            continue
        rest = [operand for k, operand in enumerate(operands) if k not in (i, j)]
        inside = {label for _, word in rest for label in word}
        if (
            inside == set(rows)
            and not inside & set(out)
            and len(set(one)) == len(one)
            and prod([extents[label] for label in left]) >= b.machine.gram_rows
        ):
            return _gram(b, operands[i], rest, (rows, left, right), extents)
    return None


def _gram(
    b: Builder,
    x: SlotWord,
    rest: Sequence[SlotWord],
    labels: tuple[Word, Word, Word],
    extents: Extents,
) -> SlotWord:
    rows, left, right = labels
    weight, rows = product(b, rest, rows, extents)
    weight = b.floating(b.reshape(weight, (prod([extents[label] for label in rows]),)))
    matrix = core(b, (b.floating(x[0]), x[1]), (), rows, left)
    m, n = b.shapes[matrix]
    scratch = b.emit("scratch", (), (m, n), key=("gram", matrix, weight))
    if b.fixed.issuperset((matrix, weight)):
        b.fixed.add(scratch)
    words = ((0, 1), (0,), (0, 1), (1, 2))
    slot = b.emit("gram", (matrix, weight, scratch), (n, n), words)
    full = left + right
    return b.reshape(slot, tuple([extents[label] for label in full])), full
