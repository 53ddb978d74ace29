"""Products to kernels: a contraction path, each pair on the best matrix kernel.

Operands are slots with one label per axis. Transposes are never carried out for their own sake: a
result keeps the axis order its kernel gives, and is read by its labels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from math import prod

from .inverses import solvable, solved
from .paths import contraction_path
from .steps import VIEW, Builder, Word, letters
from .twins import Operands

Operand = tuple[int, Word]
Extents = Mapping[int, int]

#: Rows of a Gram matrix from which half a matrix product saves more than scaling rows costs.
GRAM_ROWS = 64
#: Multiply-adds per entry of a batch up to which a matrix kernel's call costs more than its work.
TINY = 32


def product(b: Builder, operands: Sequence[Operand], out: Word, extents: Extents) -> Operand:
    """The sum over all labels not in `out` of the product of operands.

    Every label of `out` is distinct and stands in some operand. The result's axes are in any order.
    """
    keep = set(out)
    if all(keep.issuperset(word) for _, word in operands):
        factors = [diagonal(b, slot, word) for slot, word in operands]
    else:
        found = gram(b, operands, out, extents)
        if found is not None:
            return found
        factors = _summed_alone(b, operands, keep)
    if len(factors) > 1:
        factors = _grouped(b, factors, keep)
    if len(factors) == 2:
        factors = [contract(b, factors[0], factors[1], keep, out)]
    elif len(factors) > 2:
        factors = [_along_path(b, factors, out, extents)]
    slot, word = factors[0]
    return reduce(b, slot, word, set(word) - keep)


def _summed_alone(b: Builder, operands: Sequence[Operand], keep: set[int]) -> list[Operand]:
    """Operands without the labels that stand nowhere else."""
    counts = Counter([label for _, word in operands for label in set(word)])
    factors = []
    for slot, word in operands:
        slot, word = diagonal(b, slot, word)
        once = {label for label in word if counts[label] == 1 and label not in keep}
        factors.append(reduce(b, slot, word, once))
    return factors


def diagonal(b: Builder, slot: int, word: Word) -> Operand:
    """Repeated labels of one operand read as a diagonal view."""
    while len(set(word)) < len(word):
        label = next(label for k, label in enumerate(word) if label in word[:k])
        i, j = [k for k, other in enumerate(word) if other == label][:2]
        shape = b.shapes[slot]
        rest = [k for k in range(len(word)) if k not in (i, j)]
        after = (*[word[k] for k in rest], label)
        sizes = tuple([shape[k] for k in [*rest, i]])
        slot = b.emit("diagonal", (slot,), sizes, (word, after), 0, (i, j), origin=VIEW)
        word = after
    return slot, word


def reduce(b: Builder, slot: int, word: Word, labels: set[int]) -> Operand:
    """The sum over labels of one operand."""
    if not labels:
        return slot, word
    shape = b.shapes[slot]
    axes = tuple([k for k, label in enumerate(word) if label in labels])
    rest = tuple([label for label in word if label not in labels])
    sizes = tuple([n for n, label in zip(shape, word, strict=True) if label not in labels])
    slot = b.floating(slot)
    return b.emit("sum", (slot,), sizes, (word, rest), prod(shape), axes), rest


def _grouped(b: Builder, factors: Sequence[Operand], keep: set[int]) -> list[Operand]:
    """Operands with the same labels multiplied entry by entry, unless they are all and summed."""
    groups: dict[frozenset[int], list[Operand]] = {}
    for slot, word in factors:
        groups.setdefault(frozenset(word), []).append((slot, word))
    if len(groups) == 1:
        labels, members = next(iter(groups.items()))
        if labels - keep and len(members) > 1:
            return _two_halves(b, members)
    return [_pointwise(b, members) for members in groups.values()]


def _two_halves(b: Builder, members: list[Operand]) -> list[Operand]:
    """x⁴ summed is an inner product of x² with itself."""
    counts = Counter(members)
    if all(count % 2 == 0 for count in counts.values()):
        half = _pointwise(b, [m for m, count in counts.items() for _ in range(count // 2)])
        return [half, half]
    members = sorted(members, key=lambda m: -counts[m])
    return [_pointwise(b, members[:-1]), members[-1]]


def _pointwise(b: Builder, members: Sequence[Operand]) -> Operand:
    """The entrywise product of operands with the same labels."""
    if len(members) == 1:
        return members[0]
    counts = Counter(members)
    if len(members) == 2:
        found = _times(b, members[0], members[1], members[0][1])
    else:
        found = _powers(b, counts, members[0][1])
    if len({word for _, word in members}) == 1:
        _note_symmetries(b, found[0], counts)
    return found


def _powers(b: Builder, counts: Mapping[Operand, int], target: Word) -> Operand:
    """The product of powers, each by squaring."""
    total: Operand | None = None
    for base, count in counts.items():
        square = base
        while count:
            if count & 1:
                total = square if total is None else _times(b, total, square, target)
            count >>= 1
            if count:
                square = _times(b, square, square, square[1])
    assert total is not None
    return total


def _note_symmetries(b: Builder, found: int, counts: Mapping[Operand, int]) -> None:
    """An even power has the symmetries of its base, and those that change the base's sign."""
    common: set[Word] | None = None
    for (slot, _), count in counts.items():
        perms = set(b.symmetries.get(slot, ()))
        if count % 2 == 0:
            perms.update(b.antisymmetries.get(slot, ()))
        common = perms if common is None else common & perms
    if common:
        b.symmetries.setdefault(found, tuple(sorted(common)))


def _times(b: Builder, x: Operand, y: Operand, target: Word) -> Operand:
    x, y = (b.floating(x[0]), x[1]), (b.floating(y[0]), y[1])
    return b.binary("multiply", x, y, target), target


def _along_path(b: Builder, factors: list[Operand], out: Word, extents: Extents) -> Operand:
    """Pairwise products in the order of the contraction path."""
    number: dict[int, int] = {}
    words = tuple([tuple([number.setdefault(i, len(number)) for i in word]) for _, word in factors])
    sizes = tuple([extents[label] for label in number])
    kept = tuple(sorted([number[label] for label in out]))
    arrays: dict[int, int] = {}
    given = Operands(
        words,
        tuple([arrays.setdefault(slot, len(arrays)) for slot, _ in factors]),
        tuple([b.symmetries.get(slot, ()) for slot, _ in factors]),
    )
    pairs, words = contraction_path(given, kept, sizes)
    labels = list(number)
    held: list[Operand] = [
        (slot, tuple([labels[k] for k in word]))
        for (slot, _), word in zip(factors, words, strict=True)
    ]
    uses = Counter([*out, *[label for _, word in held for label in word]])
    for step, (i, j) in enumerate(pairs):
        uses.subtract(held[i][1])
        uses.subtract(held[j][1])
        keep = {label for label in held[i][1] + held[j][1] if uses[label]}
        held.append(contract(b, held[i], held[j], keep, out if step == len(pairs) - 1 else ()))
        uses.update(held[-1][1])
    return held[-1]


# --- one pair -------------------------------------------------------------------------------------


def contract(b: Builder, x: Operand, y: Operand, keep: set[int], want: Word) -> Operand:
    """The product of two operands, summed over shared labels outside `keep`.

    `want` is the order of axes that is hoped for in the result.
    """
    x, y = (b.floating(x[0]), x[1]), (b.floating(y[0]), y[1])
    summed = tuple([label for label in x[1] if label in y[1] and label not in keep])
    if not summed:
        return _times(b, x, y, _broadcast_order(b, x, y, want))
    for inverse, other in ((x, y), (y, x)):
        if solvable(b, inverse, other, summed):
            return solved(b, inverse, other, summed[0])
    right = tuple([label for label in y[1] if label not in x[1]])
    left = tuple([label for label in x[1] if label not in y[1]])
    if want and right and want[-1] in left:
        x, y, left, right = y, x, right, left
    batch = tuple([label for label in want or x[1] if label in x[1] and label in y[1]])
    batch = tuple([label for label in batch if label in keep])
    if prod(b.shapes[x[0]]) < prod(b.shapes[y[0]]):
        summed = tuple([label for label in y[1] if label in summed])
    if batch and not left and not right:
        return _inner(b, x, y, batch, summed)
    if batch and _tiny(b, x, y, (left, summed, right)):
        return _looped(b, x, y, batch + left + right)
    return _matrix_product(b, x, y, (batch, left, summed, right))


def _broadcast_order(b: Builder, x: Operand, y: Operand, want: Word) -> Word:
    """Axes of an entrywise product: as the larger operand has them, or as wanted if it is new."""
    if prod(b.shapes[x[0]]) < prod(b.shapes[y[0]]):
        x, y = y, x
    extra = tuple([label for label in y[1] if label not in x[1]])
    if not extra:
        return x[1]
    if len(want) == len(x[1]) + len(extra):
        return want
    shared = [label for label in x[1] if label in y[1]]
    own = [label for label in x[1] if label not in y[1]]
    return (*shared, *own, *extra)


def _inner(b: Builder, x: Operand, y: Operand, batch: Word, summed: Word) -> Operand:
    """One inner product per entry of the batch."""
    if x[1][-1] in batch and y[1][-1] in batch:
        return _looped(b, x, y, batch)
    target = batch + summed
    args, words = [], []
    for slot, word in (x, y):
        slot, word = _merged(b, slot, word, [summed], target)
        order = batch + summed[:1]
        args.append(b.aligned(slot, word, order))
        words.append(order)
    shape = b.shapes[args[0]]
    slot = b.emit("vecdot", tuple(args), shape[:-1], (*words, batch), 2 * prod(shape))
    return slot, batch


def _tiny(b: Builder, x: Operand, y: Operand, groups: tuple[Word, Word, Word]) -> bool:
    """Is calling a matrix kernel for every entry of the batch dearer than what it does there?"""
    sizes = {**_sized(b, x), **_sized(b, y)}
    left, summed, right = [prod([sizes[label] for label in group]) for group in groups]
    return min(left, right) == 1 and left * summed * right <= TINY


def _sized(b: Builder, x: Operand) -> dict[int, int]:
    return dict(zip(x[1], b.shapes[x[0]], strict=True))


def _looped(b: Builder, x: Operand, y: Operand, out: Word) -> Operand:
    """A sum of products by NumPy's general loop, which reads both operands as they lie."""
    sizes = {**_sized(b, x), **_sized(b, y)}
    number: dict[int, int] = {}
    words = tuple(
        [tuple([number.setdefault(i, len(number)) for i in word]) for word in (x[1], y[1], out)]
    )
    spec = f"{letters(words[0])},{letters(words[1])}->{letters(words[2])}"
    flops = 2 * prod(list(sizes.values()))
    shape = tuple([sizes[label] for label in out])
    return b.emit("einsum", (x[0], y[0]), shape, words, flops, (spec,)), out


def _merged(b: Builder, slot: int, word: Word, groups: Sequence[Word], target: Word) -> Operand:
    """Every group of labels as one axis, named by its first label; copied where it must be."""
    several = [group for group in groups if len(group) > 1]
    if not several:
        return slot, word
    if any(not _adjacent(word, group) for group in several):
        slot, word = b.ordered(slot, word, target), target
    sizes = _sized(b, (slot, word))
    gone = {label for group in several for label in group[1:]}
    for group in several:
        sizes[group[0]] = prod([sizes[label] for label in group])
    rest = tuple([label for label in word if label not in gone])
    return b.reshape(slot, tuple([sizes[label] for label in rest])), rest


def _adjacent(word: Word, group: Word) -> bool:
    start = word.index(group[0])
    return word[start : start + len(group)] == group


def _matrix_product(
    b: Builder, x: Operand, y: Operand, labels: tuple[Word, Word, Word, Word]
) -> Operand:
    """batch × left × summed times batch × summed × right, as dot or batched matmul."""
    batch, left, summed, right = labels
    sizes = {**_sized(b, x), **_sized(b, y)}
    first = _core(b, x, batch, left, summed)
    second = _core(b, y, batch, summed, right)
    full = batch + left + right
    rows, columns = (prod([sizes[label] for label in group]) for group in (left, right))
    flops = 2 * prod([sizes[label] for label in full + summed])
    lead = tuple([sizes[label] for label in batch])
    one, two = left[:1], right[:1]
    words = (batch + one + summed[:1], batch + summed[:1] + two, batch + one + two)
    if batch:
        shape = (*lead, rows, columns)
        args = (_with_axis(b, first, left, -2), _with_axis(b, second, right, -1))
        slot = b.emit("matmul", args, shape, words, flops)
    else:
        shape = (rows,) * len(one) + (columns,) * len(two)
        slot = b.emit("dot", (first, second), shape, words, flops)
    return b.reshape(slot, tuple([sizes[label] for label in full])), full


def _core(b: Builder, x: Operand, batch: Word, rows: Word, columns: Word) -> int:
    """An operand as batch axes, one axis of rows and one of columns (or none)."""
    slot, word = x
    target = batch + rows + columns
    if batch and word[-1] in batch and b.shapes[slot][-1] > 1:
        slot, word = b.ordered(slot, word, target), target
    slot, word = _merged(b, slot, word, [rows, columns], target)
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
    return b.emit("insert", (slot,), new, (word[:-1], word), 0, axes, origin=VIEW)


# --- symmetric products ---------------------------------------------------------------------------


def gram(b: Builder, operands: Sequence[Operand], out: Word, extents: Extents) -> Operand | None:
    """Xᵀ diag(d) X as half a matrix product of √d X with itself, where d has one sign.

    X may have several axes on either side; d is the product of all operands but two.
    """
    if len(operands) < 3:
        return None
    for i, j in combinations(range(len(operands)), 2):
        (slot, one), (other, two) = operands[i], operands[j]
        if slot != other:
            continue
        rows = tuple([label for label, mate in zip(one, two, strict=True) if label == mate])
        left = tuple([label for label in one if label not in rows])
        right = tuple([label for label in two if label not in rows])
        rest = [operand for k, operand in enumerate(operands) if k not in (i, j)]
        inside = {label for _, word in rest for label in word}
        if (
            inside == set(rows)
            and not inside & set(out)
            and set(left + right) == set(out)
            and len(left + right) == len(out)
            and len(set(one)) == len(one)
            and prod([extents[label] for label in left]) >= GRAM_ROWS
        ):
            return _gram(b, operands[i], rest, (rows, left, right), extents)
    return None


def _gram(
    b: Builder,
    x: Operand,
    rest: Sequence[Operand],
    labels: tuple[Word, Word, Word],
    extents: Extents,
) -> Operand:
    rows, left, right = labels
    weight, rows = product(b, rest, rows, extents)
    weight = b.floating(b.reshape(weight, (prod([extents[label] for label in rows]),)))
    matrix = _core(b, (b.floating(x[0]), x[1]), (), rows, left)
    m, n = b.shapes[matrix]
    scratch = b.emit("scratch", (), (m, n), key=("gram", matrix, weight))
    if b.fixed.issuperset((matrix, weight)):
        b.fixed.add(scratch)
    words = ((0, 1), (0,), (0, 1), (1, 2))
    slot = b.emit("gram", (matrix, weight, scratch), (n, n), words, m * n * (n + 2))
    full = left + right
    return b.reshape(slot, tuple([extents[label] for label in full])), full
