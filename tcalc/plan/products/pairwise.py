"""Products of two operands, each on the best kernel.

Operands are slots with one label per axis. Transposes are never carried out for their own sake: a
result keeps the axis order its kernel gives, and is read by its labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..builder import Builder
from ..steps import VIEW, ProductKey, SlotWord, Word, letters
from .axis_order import along, entrywise, sized, spread, unrolled
from .correlations import correlated
from .outer_sums import weighted
from .solves import solvable, solved


def contract(b: Builder, x: SlotWord, y: SlotWord, keep: set[int], want: Word) -> SlotWord:
    """The product of two operands, summed over shared labels outside `keep`.

    `want` is the order of axes that is hoped for in the result.
    """
    slot, word = _contracted(b, x, y, keep, want)
    key, labels = _product_key(x[1], y[1], keep)
    made = b.products.setdefault((x[0], y[0]), {})
    made.setdefault(key, (slot, tuple([labels.index(label) for label in word])))
    return slot, word


def _product_key(one: Word, two: Word, keep: set[int]) -> tuple[ProductKey, list[int]]:
    """What tells a product from others, whatever its labels are; and the labels in order."""
    labels = list(dict.fromkeys(one + two))
    number = {label: k for k, label in enumerate(labels)}
    words = tuple([number[i] for i in one]), tuple([number[i] for i in two])
    return (words, tuple([number[label] for label in labels if label in keep])), labels


def known_product(b: Builder, x: SlotWord, y: SlotWord, keep: set[int]) -> SlotWord | None:
    """The product of two operands, where some product made before is the same one."""
    for one, two in ((x, y), (y, x)):
        made = b.products.get((one[0], two[0]))
        if made is None:
            continue
        for first in _spellings(b, one):
            for second in _spellings(b, two):
                key, labels = _product_key(first, second, keep)
                if key in made:
                    slot, word = made[key]
                    return slot, tuple([labels[k] for k in word])
    return None


def _spellings(b: Builder, x: SlotWord) -> list[Word]:
    slot, word = x
    return [word, *[tuple([word[p] for p in perm]) for perm in b.symmetries.get(slot, ())]]


def _contracted(b: Builder, x: SlotWord, y: SlotWord, keep: set[int], want: Word) -> SlotWord:
    x, y = (b.floating(x[0]), x[1]), (b.floating(y[0]), y[1])
    summed = tuple([label for label in x[1] if label in y[1] and label not in keep])
    if not summed:
        return times(b, x, y, _broadcast_order(b, x, y, want))
    for one, other in ((x, y), (y, x)):
        if solvable(b, one, other, summed):
            return solved(b, one, other, summed[0])
        found = correlated(b, one, other, keep) or weighted(b, one, other, keep)
        if found is not None:
            return found
    right = tuple([label for label in y[1] if label not in x[1]])
    left = tuple([label for label in x[1] if label not in y[1]])
    if right and (
        _upright(b, y, x, right) or (want and want[-1] in left and not _upright(b, x, y, left))
    ):
        x, y, left, right = y, x, right, left
    batch = tuple([label for label in want or x[1] if label in x[1] and label in y[1]])
    batch = tuple([label for label in batch if label in keep])
    if prod(b.shapes[x[0]]) < prod(b.shapes[y[0]]):
        summed = tuple([label for label in y[1] if label in summed])
    if _crosses(b, x, y, (left, summed, right)):
        return _crossed(b, x, y, left, right)
    outside = _leading(b, x, y, summed)
    if outside is not None:
        found = contract(b, x, y, keep | {outside}, ())
        return reduce(b, *found, {outside})
    order = unrolled(b, x, y, batch)
    if order is not None:
        target = (*left, *right, *order)
        return _looped(b, along(b, x, order), along(b, y, order), target)
    if batch and not left and not right:
        return _inner(b, x, y, batch, summed)
    if batch and _tiny(b, x, y, (left, summed, right)):
        return _looped(b, x, y, batch + left + right)
    return _matrix_product(b, x, y, (batch, left, summed, right))


def _upright(b: Builder, x: SlotWord, y: SlotWord, own: Word) -> bool:
    """Is x large, its own labels in front, and y small?

    The product with such rows on the left is one of rows too, and stays in loops over them.
    """
    sizes = prod(b.shapes[x[0]]), prod(b.shapes[y[0]])
    return (
        x[1][: len(own)] == own
        and bool(own)
        and sizes[0] >= b.machine.many
        and b.machine.smaller * sizes[1] <= sizes[0]
    )


def _leading(b: Builder, x: SlotWord, y: SlotWord, summed: Word) -> int | None:
    """A summed label in front of the larger operand that is better summed last.

    Where other labels stand between the summed ones, merging them would copy that operand.
    """
    word = max(x, y, key=lambda operand: prod(b.shapes[operand[0]]))[1]
    if len(summed) < 2 or word[0] not in summed:
        return None
    return None if _adjacent(word, tuple([i for i in word if i in summed])) else word[0]


def _crosses(b: Builder, x: SlotWord, y: SlotWord, groups: tuple[Word, Word, Word]) -> bool:
    """Do large operands hold two summed labels in opposite orders, and few others?

    Then one of them would be turned to be multiplied with, which takes longer than to multiply.
    """
    left, summed, right = groups
    (one, two), sizes = (x[1], y[1]), sized(b, x, y)
    few = [prod([sizes[label] for label in group]) for group in (left, right)]
    return (
        len(summed) == 2
        and len(one) == len(left) + 2 > 2 < len(two) == len(right) + 2
        and {one[-1], two[-1]} == set(summed)
        and max(few) <= b.machine.tiny
        and min([prod(b.shapes[slot]) for slot, _ in (x, y)]) >= b.machine.large
    )


def _crossed(b: Builder, x: SlotWord, y: SlotWord, left: Word, right: Word) -> SlotWord:
    """Each operand as one summed axis, its own labels, and the other summed axis."""
    sizes, (j, i) = sized(b, x, y), (x[1][-1], y[1][-1])
    args = []
    for (slot, word), first, own, last in ((x, i, left, j), (y, j, right, i)):
        slot, word = merged(b, slot, word, [own], (first, *own, last))
        args.append(b.transpose(slot, tuple([word.index(k) for k in (first, own[0], last)])))
    words = ((0, 1, 2), (2, 3, 0), (1, 3))
    shape = tuple([prod([sizes[label] for label in group]) for group in (left, right)])
    slot = b.emit("crossed", tuple(args), shape, words)
    return b.reshape(slot, tuple([sizes[label] for label in left + right])), left + right


def _broadcast_order(b: Builder, x: SlotWord, y: SlotWord, want: Word) -> Word:
    """Axes of an entrywise product: as the larger operand has them, or as wanted if it is new."""
    if prod(b.shapes[x[0]]) < prod(b.shapes[y[0]]):
        x, y = y, x
    extra = tuple([label for label in y[1] if label not in x[1]])
    if not extra:
        return entrywise(b, (x, y), x[1])
    if len(want) == len(x[1]) + len(extra):
        return spread(b, want, sized(b, x, y))
    shared = [label for label in x[1] if label in y[1]]
    own = [label for label in x[1] if label not in y[1]]
    return spread(b, (*shared, *own, *extra), sized(b, x, y))


def _inner(b: Builder, x: SlotWord, y: SlotWord, batch: Word, summed: Word) -> SlotWord:
    """One inner product per entry of the batch."""
    if x[1][-1] in batch and y[1][-1] in batch:
        return _looped(b, x, y, batch)
    target = batch + summed
    args, words = [], []
    for slot, word in (x, y):
        slot, word = merged(b, slot, word, [summed], target)
        order = batch + summed[:1]
        args.append(b.aligned(slot, word, order))
        words.append(order)
    shape = b.shapes[args[0]]
    slot = b.emit("vecdot", tuple(args), shape[:-1], (*words, batch))
    return slot, batch


def _tiny(b: Builder, x: SlotWord, y: SlotWord, groups: tuple[Word, Word, Word]) -> bool:
    """Is calling a matrix kernel for every entry of the batch dearer than what it does there?"""
    sizes = sized(b, x, y)
    left, summed, right = [prod([sizes[label] for label in group]) for group in groups]
    return min(left, right) == 1 and left * summed * right <= b.machine.tiny


def _looped(b: Builder, x: SlotWord, y: SlotWord, out: Word) -> SlotWord:
    """A sum of products by NumPy's general loop, which reads both operands as they lie."""
    sizes = sized(b, x, y)
    number: dict[int, int] = {}
    words = tuple(
        [tuple([number.setdefault(i, len(number)) for i in word]) for word in (x[1], y[1], out)]
    )
    spec = f"{letters(words[0])},{letters(words[1])}->{letters(words[2])}"
    shape = tuple([sizes[label] for label in out])
    return b.emit("einsum", (x[0], y[0]), shape, words, (spec,)), out


def merged(b: Builder, slot: int, word: Word, groups: Sequence[Word], target: Word) -> SlotWord:
    """Every group of labels as one axis, named by its first label; copied where it must be."""
    several = [group for group in groups if len(group) > 1]
    if not several:
        return slot, word
    if any(not _adjacent(word, group) for group in several):
        slot, word = b.ordered(slot, word, target), target
    sizes = sized(b, (slot, word))
    gone = {label for group in several for label in group[1:]}
    for group in several:
        sizes[group[0]] = prod([sizes[label] for label in group])
    rest = tuple([label for label in word if label not in gone])
    return b.reshape(slot, tuple([sizes[label] for label in rest])), rest


def _adjacent(word: Word, group: Word) -> bool:
    start = word.index(group[0])
    return word[start : start + len(group)] == group


def _matrix_product(
    b: Builder, x: SlotWord, y: SlotWord, labels: tuple[Word, Word, Word, Word]
) -> SlotWord:
    """batch × left × summed times batch × summed × right, as dot or batched matmul."""
    batch, left, summed, right = labels
    if not batch:
        for wide, narrow, own in ((x, y, right), (y, x, left)):
            found = _around(b, wide, narrow, summed, own)
            if found is not None:
                return found
    sizes = sized(b, x, y)
    first = core(b, x, batch, left, summed)
    second = core(b, y, batch, summed, right)
    full = batch + left + right
    rows, columns = (prod([sizes[label] for label in group]) for group in (left, right))
    lead = tuple([sizes[label] for label in batch])
    one, two = left[:1], right[:1]
    words = (batch + one + summed[:1], batch + summed[:1] + two, batch + one + two)
    if batch:
        shape = (*lead, rows, columns)
        args = (_with_axis(b, first, left, -2), _with_axis(b, second, right, -1))
        slot = b.emit("matmul", args, shape, words)
    else:
        shape = (rows,) * len(one) + (columns,) * len(two)
        slot = b.emit("dot", (first, second), shape, words)
    return b.reshape(slot, tuple([sizes[label] for label in full])), full


def _around(b: Builder, x: SlotWord, y: SlotWord, summed: Word, own: Word) -> SlotWord | None:
    """The product where x has labels on both sides of the summed ones, and y few of its own.

    Those in front are a batch, so that x is read as it lies.
    """
    word, sizes = x[1], sized(b, x, y)
    if not _adjacent(word, summed) or prod([sizes[label] for label in own]) > b.machine.tiny:
        return None
    at = word.index(summed[0])
    before, after = word[:at], word[at + len(summed) :]
    if not before or not after:
        return None
    counts = [prod([sizes[label] for label in group]) for group in (before, summed, own, after)]
    rows, inner, columns, behind = counts
    cube = b.reshape(b.ordered(*x, word), (rows, inner, behind))
    small = b.reshape(b.ordered(*y, own + summed), (columns, inner))
    spelled: tuple[Word, ...] = ((0, 1), (2, 1, 3), (2, 0, 3))
    slot = b.emit("matmul", (small, cube), (rows, columns, behind), spelled)
    full = before + own + after
    return b.reshape(slot, tuple([sizes[label] for label in full])), full


def core(b: Builder, x: SlotWord, batch: Word, rows: Word, columns: Word) -> int:
    """An operand as batch axes, one axis of rows and one of columns (or none)."""
    slot, word = x
    target = batch + rows + columns
    if batch and word[-1] in batch and b.shapes[slot][-1] > 1:
        slot, word = b.ordered(slot, word, target), target
    slot, word = merged(b, slot, word, [rows, columns], target)
    order = batch + rows[:1] + columns[:1]
    return b.transpose(slot, tuple([word.index(label) for label in order]))


def _with_axis(b: Builder, slot: int, labels: Word, place: int) -> int:
    """A vector as a matrix of one row (place -2) or one column (place -1)."""
    if labels:
        return slot
    shape = b.shapes[slot]
    at = len(shape) + 1 + place
    axes = tuple([k != at for k in range(len(shape) + 1)])
    word = tuple(range(len(axes)))
    new = (*shape[:at], 1, *shape[at:])
    return b.emit("insert", (slot,), new, (word[:-1], word), axes)


def reduce(b: Builder, slot: int, word: Word, labels: set[int]) -> SlotWord:
    """The sum over labels of one operand."""
    if not labels:
        return slot, word
    shape = b.shapes[slot]
    single = {label for label, n in zip(word, shape, strict=True) if n == 1} & labels
    if single and len(word) > 1:
        slot, word = _without(b, slot, word, single)
        return reduce(b, slot, word, labels - single)
    axes = tuple([k for k, label in enumerate(word) if label in labels])
    rest = tuple([label for label in word if label not in labels])
    sizes = tuple([n for n, label in zip(shape, word, strict=True) if label not in labels])
    slot = b.floating(slot)
    return b.emit("sum", (slot,), sizes, (word, rest), axes), rest


def _without(b: Builder, slot: int, word: Word, labels: set[int]) -> SlotWord:
    """A view without axes of one entry."""
    rest = tuple([label for label in word if label not in labels])
    sizes = sized(b, (slot, word))
    shape = tuple([sizes[label] for label in rest])
    if b.origin[slot] is not VIEW:
        return b.reshape(slot, shape), rest
    forms = tuple([(0, tuple([int(label == k) for k in rest])) for label in word])
    return b.emit("window", (slot,), shape, (word, rest), forms), rest


def times(b: Builder, x: SlotWord, y: SlotWord, target: Word) -> SlotWord:
    x, y = (b.floating(x[0]), x[1]), (b.floating(y[0]), y[1])
    return b.binary("multiply", along(b, x, target), along(b, y, target), target), target
