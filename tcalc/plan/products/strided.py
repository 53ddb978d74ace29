"""Products with indicators as steps: operands are read at affine places, results placed into zeros.

Where these are is what `integers.boxes` finds; conditions that it leaves over are zeros and ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import prod

from ...integers.affine import Affine, Constraint, Guard
from ...integers.boxes import Box, Places, index, number
from ...ops.indicator import INDICATOR
from ...support.arrays import Sizes
from ...support.records import record
from ..builder import Builder
from ..slot_facts import Placement
from ..steps import SlotWord, Word
from .gathers import SelectionFactor, selection_of, written

IndexRange = tuple[int, int]
#: Products whose conditions are remembered solved.
MAX_PLACES = 4096


@record()
class Opened:
    """A product without indicators, and where its entries stand.

    Attributes
    ----------
    factors : list of SlotWord
    extents : mapping
        Of all labels.
    core : tuple of int
        The labels of the result.
    where : Placement or None
        Where entries stand in the whole result; None: everywhere, in order.
    """

    factors: list[SlotWord]
    extents: dict[int, int]
    core: Word
    where: Placement | None


def opened(
    b: Builder,
    factors: Sequence[SlotWord],
    guards: Iterable[Guard],
    out: Word,
    extents: Mapping[int, int],
) -> Opened | None:
    """The product under conditions on its labels; None where it is zero everywhere.

    Parameters
    ----------
    factors : sequence of SlotWord
    guards : iterable of Guard
        In `index(label)`, without dimensions.
    out : tuple of int
        Distinct labels.
    extents : mapping
        Of all labels.
    """
    chosen = frozenset([word[-1] for slot, word in factors if slot in b.selections])
    words = tuple([word for _, word in factors])
    found = _places(out, tuple(extents.items()), tuple(guards), chosen, words)
    if found is None:
        return None
    read = [
        _window(b, slot, forms, found.extents)
        for (slot, _), forms in zip(factors, found.words, strict=True)
    ]
    read += _masks(b, found.masks, found.extents)
    if found.out is None:
        return Opened(read, dict(found.extents), found.core, None)
    spelled = [
        (form.constant, tuple([form.coefficient(f"#{label}") for label in found.core]))
        for form in found.out
    ]
    where = Placement(tuple([found.extents[label] for label in found.core]), tuple(spelled))
    return Opened(read, dict(found.extents), found.core, where)


@lru_cache(MAX_PLACES)
def _places(
    out: Word,
    extents: tuple[tuple[int, int], ...],
    guards: tuple[Guard, ...],
    chosen: frozenset[int],
    words: tuple[Word, ...],
) -> Places | None:
    """The product of operands under these labels, its conditions solved; None where it is zero.

    Found once for products alike: spellings of one expression, and its derivatives, repeat them.
    """
    sizes = dict(extents)
    if 0 in sizes.values():
        return None
    tied = sorted({number(name) for guard in guards for name in guard.form.names})
    of = {label: k for k, label in enumerate(tied)}
    read = sorted({label for word in words for label in word if label in of})
    written = [label for label in out if label in of]
    solved = _solved(
        tuple([of[label] for label in written]),
        tuple([sizes[label] for label in tied]),
        tuple([g.substitute({f"#{label}": index(k) for label, k in of.items()}) for g in guards]),
        frozenset([of[label] for label in chosen if label in of]),
        tuple([of[label] for label in read]),
    )
    if solved is None:
        return None
    last = max(sizes, default=-1)
    labels = [*tied, *range(last + 1, last + 2 + max(solved.extents, default=0))]
    names = {f"#{k}": index(label) for k, label in enumerate(labels)}
    ends = tuple(map(index, solved.core)) if solved.out is None else solved.out
    forms = {label: index(label) for label in sizes if label not in of}
    for label, form in zip([*read, *written], [*solved.words[0], *ends], strict=True):
        forms[label] = form.substitute(names)
    found = {label: n for label, n in extents if label not in of}
    found |= {labels[k]: n for k, n in solved.extents.items()}
    at = tuple([forms[label] for label in out])
    return Places(
        dict(sorted(found.items())),
        tuple([tuple([forms[label] for label in word]) for word in words]),
        tuple([mask.substitute(names) for mask in solved.masks]),
        tuple(dict.fromkeys([number(name) for form in at for name in form.names])),
        None if solved.out is None else at,
    )


@lru_cache(MAX_PLACES)
def _solved(
    out: Word, extents: Word, guards: tuple[Guard, ...], chosen: frozenset[int], read: Word
) -> Places | None:
    """That of labels 0, 1, ... which conditions tie, where one operand reads some of them."""
    box = Box(out, dict(enumerate(extents)))
    if not box.solved(guards, chosen):
        return None
    while box.banded():
        if not box.tightened():
            return None
    return box.places([read])


def _window(b: Builder, slot: int, forms: Sequence[Affine], extents: Mapping[int, int]) -> SlotWord:
    """An operand read at affine places of its axes."""
    shape = b.shapes[slot]
    names = [form.names[0] if form.names else "" for form in forms]
    whole = all(
        name and form == Affine.of(name) and extents[number(name)] == n
        for name, form, n in zip(names, forms, shape, strict=True)
    )
    if whole:
        return slot, tuple([number(name) for name in names])
    if slot in b.selections:
        found = _selection_window(b, slot, forms, extents)
        if found is not None:
            return found
        slot = written(b, slot)
    margins = _margins(shape, forms, extents)
    if any(margin != (0, 0) for margin in margins):
        slot = padded(b, slot, margins)
        forms = [form + before for form, (before, _) in zip(forms, margins, strict=True)]
    word = tuple(dict.fromkeys([number(n) for form in forms for n in form.names]))
    sizes = tuple([extents[label] for label in word])
    params = tuple([
        (form.constant, tuple([form.coefficient(f"#{label}") for label in word])) for form in forms
    ])  # fmt: skip
    axes = tuple([-1 - k for k in range(len(forms))])
    view = b.emit("window", (slot,), sizes, (axes, word), params)
    b.windows[view] = slot
    return view, word


def _selection_window(
    b: Builder, slot: int, forms: Sequence[Affine], extents: Mapping[int, int]
) -> SlotWord | None:
    """A selection tensor by windows of its integers, where they are all there are.

    So entries are taken that are wanted, and none multiplied by zero.
    """
    stored, shape = b.selections[slot], b.shapes[slot]
    first = len(shape) - len(stored)
    if any(margin != (0, 0) for margin in _margins(shape[:first], forms[:first], extents)):
        return None
    values = []
    for form, n in zip(forms[first:], shape[first:], strict=True):
        label = number(form.names[0]) if form.names else -1
        if form != Affine.of(f"#{label}") or extents[label] != n:
            return None
        values.append(label)
    parts = [
        (*_window(b, integers, [forms[k] for k in axes], extents), label)
        for (integers, axes), label in zip(stored, values, strict=True)
    ]
    return selection_of(b, [SelectionFactor(*part) for part in parts], extents)


def _margins(
    shape: Sizes, forms: Sequence[Affine], extents: Mapping[int, int]
) -> tuple[IndexRange, ...]:
    """How far the places read go beyond an array, along each axis."""
    ends = [_ends(form, extents) for form in forms]
    return tuple([
        (max(0, -low), max(0, high - n + 1)) for (low, high), n in zip(ends, shape, strict=True)
    ])  # fmt: skip


def _ends(form: Affine, extents: Mapping[int, int]) -> IndexRange:
    low = high = form.constant
    for name, c in form.terms:
        reach = c * (extents[number(name)] - 1)
        low, high = low + min(0, reach), high + max(0, reach)
    return low, high


def padded(b: Builder, slot: int, margins: tuple[IndexRange, ...]) -> int:
    """An array within zeros."""
    shape = tuple([
        n + before + after for n, (before, after) in zip(b.shapes[slot], margins, strict=True)
    ])  # fmt: skip
    word = tuple(range(len(shape)))
    return b.emit("pad", (b.floating(slot),), shape, (word, word), margins)


def _masks(
    b: Builder, conditions: Sequence[Constraint], extents: Mapping[int, int]
) -> list[SlotWord]:
    """Arrays of zeros and ones for conditions, those on the same labels as one."""
    groups: dict[Word, list[Constraint]] = {}
    for c in sorted(conditions):
        word = tuple(sorted([number(n) for n in c.form.names]))
        groups.setdefault(word, []).append(c)
    found = []
    for word, members in groups.items():
        names = {f"#{label}": f"#{axis}" for axis, label in enumerate(word)}
        shape = tuple([extents[label] for label in word])
        params = (INDICATOR, shape, tuple([c.substitute(names) for c in members]), ())
        axes = tuple(range(len(word)))
        flops = prod(shape) * len(members)
        key = (INDICATOR.name, repr(params[1:]))
        slot = b.emit("kernel", (), shape, (axes,), params, key, flops)
        found.append((slot, word))
    return found


def placed(b: Builder, x: SlotWord, where: Placement, shape: Word, onto: int = -1) -> int:
    """The entries of an array at their places in zeros, or added to those of another array."""
    slot, word = x if x[0] >= 0 else (b.number(1.0), ())
    slot = b.aligned(b.floating(written(b, slot)), word, tuple(range(len(where.counts))))
    kind, args = ("place", (slot,)) if onto < 0 else ("place_add", (onto, slot))
    words = [tuple(range(len(b.shapes[a]))) for a in args[:-1]]
    own = tuple([-1 - k for k in range(len(b.shapes[slot]))])
    found = b.emit(kind, args, shape, (*words, own, tuple(range(len(shape)))), where)
    if onto < 0:
        b.placements[found] = x, where
    return found
