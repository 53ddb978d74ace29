"""Sums of values as steps, and how values are read while steps are made.

A value is held lazily as `coef` times an array of which some axes are permuted, repeated (a unit
tensor) or broadcast; it is written out only where somebody needs all of its entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from ...support.arrays import Sizes
from ...support.records import NamedTuple
from ..builder import Builder
from ..products.axis_order import along, entrywise, spread
from ..products.gathers import added_at, written
from ..products.outer_sums import note
from ..products.strided import placed
from ..slot_facts import Placement
from ..steps import SlotWord, Word


class Value(NamedTuple):
    """coef times a slot's array, read with labels.

    Label k < ndim of the slot is its axis k, other labels are broadcast; a label twice in `axes` is
    a unit tensor. Slot -1 is the number 1.
    """

    slot: int
    axes: Word
    coef: float

    @staticmethod
    def of(operand: SlotWord, labels: Iterable[int], coef: float) -> Value:
        """A slot's array, broadcast along the labels that it does not have."""
        slot, word = operand
        axis = {label: k for k, label in enumerate(word)}
        return Value(slot, tuple([axis.setdefault(k, len(axis)) for k in labels]), coef)


class Sums:
    """Steps that add values, in one builder, and that write values out."""

    def __init__(self, b: Builder) -> None:
        self.b = b

    def slot(self, value: Value) -> int:
        """The slot of a value as an array of numbers, selection tensors written out."""
        return self.slot_of(value.slot)

    def slot_of(self, slot: int) -> int:
        return self.b.floating(written(self.b, slot))

    def sum(self, terms: Iterable[Value], shape: Sizes) -> Value:
        """The sum of values that all have this shape."""
        ndim = len(shape)
        groups: dict[frozenset[int], list[tuple[float, SlotWord]]] = {}
        units: list[Value] = []
        chosen: list[Value] = []
        stored: dict[Placement, list[tuple[float, SlotWord]]] = {}
        number = 0.0
        for value in terms:
            if len(set(value.axes)) < len(value.axes):
                units.append(value)
            elif value.slot < 0:
                number += value.coef
            elif value.slot in self.b.placements and len(self.b.shapes[value.slot]) == ndim:
                operand, where = self.b.placements[value.slot]
                forms = tuple([where.forms[axis] for axis in value.axes])
                stored.setdefault(where._replace(forms=forms), []).append((value.coef, operand))
            elif value.slot in self.b.selections and len(self.b.shapes[value.slot]) == ndim:
                chosen.append(value)
            else:
                slot, word = self.read(value)
                groups.setdefault(frozenset(word), []).append((value.coef, (slot, word)))
        if not any(len(labels) == ndim for labels in groups):
            every = frozenset(range(ndim))
            for value in chosen:
                groups.setdefault(every, []).append((value.coef, self.read(value)))
            chosen = []
        parts = [self._combination(terms) for terms in groups.values()]
        parts.sort(key=lambda part: prod(self.b.shapes[part[1][0]]))
        total = parts[0] if parts else None
        if total is not None and number:
            sign, (slot, word) = total
            total = 1, (self.b.shift(slot, number, sign), word)
        for part in parts[1:]:
            assert total is not None
            total = self._joined(total, part)
        for value in chosen:
            assert total is not None
            sign, (slot, word) = total
            slot = added_at(self.b, (slot, word), value.slot, value.axes, value.coef * sign)
            total = sign, (slot, word)
        if stored:
            total = self._stored(shape, total, number, stored)
            number = 0.0
        if units:
            return self._with_units(shape, total, number, units)
        if total is None:
            return Value(-1, tuple(range(ndim)), number)
        return Value.of(total[1], range(ndim), total[0])

    def read(self, value: Value) -> SlotWord:
        """A slot, and the node's axis that each of its axes is."""
        place = {axis: k for k, axis in enumerate(value.axes)}
        slot = self.slot(value)
        return slot, tuple([place[axis] for axis in range(len(self.b.shapes[slot]))])

    def _combination(self, terms: list[tuple[float, SlotWord]]) -> tuple[int, SlotWord]:
        """A linear combination of operands with the same labels, and its sign."""
        terms = sorted(terms, key=lambda term: term[0] <= 0)
        total: tuple[int, SlotWord] | None = None
        for coef, (slot, word) in terms:
            sign = -1 if coef < 0 else 1
            part = sign, (self.b.scale(slot, abs(coef)), word)
            total = part if total is None else self._joined(total, part)
        assert total is not None
        return total

    def _joined(self, x: tuple[int, SlotWord], y: tuple[int, SlotWord]) -> tuple[int, SlotWord]:
        """The sum of two signed operands, broadcast; y has at least as many entries."""
        (sign, one), (other, two) = x, y
        extra = tuple([label for label in one[1] if label not in two[1]])
        target = entrywise(self.b, (one, two), two[1])
        if extra:
            sizes = dict(zip(one[1], self.b.shapes[one[0]], strict=True))
            sizes.update(zip(two[1], self.b.shapes[two[0]], strict=True))
            target = spread(self.b, tuple(sorted(two[1] + extra)), sizes)
        signed = (sign, one), (other, two)
        one, two = along(self.b, one, target), along(self.b, two, target)
        if sign != other and sign < 0:
            one, two = two, one
        kind = "add" if sign == other else "subtract"
        slot, total = self.b.binary(kind, one, two, target), sign if sign == other else 1
        note(self.b, slot, target, tuple([(own * total, x) for own, x in signed]))
        return total, (slot, target)

    def _stored(
        self,
        shape: Sizes,
        total: tuple[int, SlotWord] | None,
        number: float,
        stored: Mapping[Placement, list[tuple[float, SlotWord]]],
    ) -> tuple[int, SlotWord]:
        """Arrays that stand in zeros, those at the same places as one, onto the other terms."""
        axes = tuple(range(len(shape)))
        sign, target, held = 1, spread(self.b, axes, dict(enumerate(shape))), -1
        if total is not None:
            sign, (slot, word) = total
            target = word if len(word) == len(shape) else target
            held = self.b.aligned(slot, word, target)
        elif number:
            held = self.b.number(number)
        sizes = tuple([shape[k] for k in target])
        for where, terms in stored.items():
            at = where._replace(forms=tuple([where.forms[k] for k in target]))
            core = [
                (coef * sign, (self.b.number(1.0), ()) if x[0] < 0 else (self.slot_of(x[0]), x[1]))
                for coef, x in terms
            ]
            other, (slot, word) = self._combination(sorted(core, key=lambda t: len(t[1][1])))
            held = placed(self.b, (self.b.scale(slot, other), word), at, sizes, held)
        return sign, (held, target)

    def _with_units(
        self, shape: Sizes, total: tuple[int, SlotWord] | None, number: float, units: list[Value]
    ) -> Value:
        """Unit tensors are added onto diagonals of the sum of the other terms."""
        axes = tuple(range(len(shape)))
        sign = 1
        target, held = axes, -1
        if total is not None:
            sign, (slot, word) = total
            target = word if len(word) == len(shape) else axes
            held = self.b.aligned(slot, word, target)
        elif number:
            held = self.b.number(number)
        for unit in units:
            held = self._embedded(unit, shape, target, sign, held)
        return Value.of((held, target), axes, sign)

    def _embedded(
        self, value: Value, shape: Sizes, target: Word, sign: int = 1, onto: int = -1
    ) -> int:
        """A value with unit tensors written out, axes in the order of `target`, onto a sum."""
        pattern = tuple([value.axes[k] for k in target])
        order = tuple(dict.fromkeys(pattern))
        if value.slot < 0:
            core = self.b.number(value.coef * sign)
        else:
            slot = self.b.scale(self.slot(value), value.coef * sign)
            own = tuple(range(len(self.b.shapes[slot])))
            core = self.b.aligned(slot, own, order)
        number = {label: k for k, label in enumerate(order)}
        pattern = tuple([number[label] for label in pattern])
        sizes = tuple([shape[k] for k in target])
        args = (core,) if onto < 0 else (onto, core)
        words = (*[tuple(range(len(self.b.shapes[a]))) for a in args[:-1]], (), pattern)
        kind = "embed" if onto < 0 else "embed_add"
        return self.b.emit(kind, args, sizes, words, (pattern,))

    def written(self, value: Value, shape: Sizes) -> Value:
        """The value with its unit tensors written out."""
        axes = tuple(range(len(shape)))
        return Value(self._embedded(value, shape, axes), axes, 1)
