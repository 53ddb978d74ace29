"""The builder of plans: slots and steps in the making; a step that exists is not made again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from math import inf, prod
from typing import Any

import numpy as np

from ..support.arrays import Sizes
from ..support.limits import spend
from ..support.machine import NOMINAL_MACHINE, Machine
from ..support.whole_numbers import as_float
from .kinds.sparse import TAKING_SPARSE
from .kinds.table import KINDS
from .slot_facts import Inverse, OuterSum, Placement
from .steps import BUFFER, CONST, RESULT, VIEW, ProductKey, Step, Word, speed_name

PLANNED = 50  #: What a step of a plan counts among the steps of a budget.


class TooSlow(Exception):
    """The steps so far take longer than they may."""


class Builder:
    """Slots and steps in the making; a step that exists is not made again."""

    def __init__(self, sizes: Mapping[str, int], machine: Machine = NOMINAL_MACHINE) -> None:
        self.sizes, self.machine = sizes, machine
        #: Predicted time of the steps that were made, and the longest that they may take.
        self.time, self.longest = 0.0, inf
        self.fixed: set[int] = set()
        self.shapes: list[Sizes] = []
        self.origin: list[str] = []
        self.owner: list[int] = []
        self.names: list[str] = []
        self.steps: list[Step] = []
        self.consts: dict[int, np.ndarray] = {}
        self.integers: set[int] = set()
        self.inverses: dict[int, Inverse] = {}
        self.dense_inverses = False
        #: Axis permutations that leave a slot as it is, and those that change its sign.
        self.symmetries: dict[int, tuple[Word, ...]] = {}
        self.antisymmetries: dict[int, tuple[Word, ...]] = {}
        #: Products that are there, by their two slots: slot and axes as places in the key's words.
        self.products: dict[tuple[int, int], dict[ProductKey, tuple[int, Word]]] = {}
        #: Products of selection tensors, which no step makes: slots of integers, and the leading
        #: axes that each of them has; one last axis for each.
        self.selections: dict[int, tuple[tuple[int, Word], ...]] = {}
        #: Sparse inputs, and these with weights, which no step makes (see `products.sparse`).
        self.sparse: dict[int, Any] = {}
        #: Arrays whose entries stand in zeros: slot and axes in the placement, and the placement.
        self.placements: dict[int, tuple[tuple[int, Word], Placement]] = {}
        #: Sums of two arrays each of which lacks an axis that the other one has.
        self.outer_sums: dict[int, OuterSum] = {}
        #: Views at affine places of an array: the array.
        self.windows: dict[int, int] = {}
        #: Results of a kernel that has several, each an array of its own.
        self.parts: set[int] = set()
        #: Transposed views of matrices.
        self.turned: set[int] = set()
        self._known: dict[Any, int] = {}

    def slot(self, shape: Sizes, origin: str, owner: int | None = None, name: str = "") -> int:
        number = len(self.shapes)
        self.shapes.append(shape)
        self.origin.append(origin)
        self.owner.append(number if owner is None else self.owner[owner])
        self.names.append(name or f"t{number}")
        return number

    def emit(
        self,
        kind: str,
        args: tuple[int, ...],
        shape: Sizes,
        words: tuple[Word, ...] = (),
        params: tuple[Any, ...] = (),
        key: Any = None,
        flops: float | None = None,
    ) -> int:
        """The slot with the result of a step, made here or before.

        `key` stands for the parameters where steps are compared; operations are counted by the kind
        unless they are told.
        """
        known = (kind, args, shape, params if key is None else key)
        found = self._known.get(known)
        if found is None:
            row = KINDS[kind]
            if self.sparse and kind not in TAKING_SPARSE:
                self._refuse_sparse(args, params[0] if row.operator else kind)
            origin = VIEW if row.view else RESULT if row.allocates else BUFFER
            found = self.slot(shape, origin, args[0] if row.view else None)
            self._known[known] = found
            if row.flops is not None and flops is None:
                flops = row.flops(shape, params, *[self.shapes[a] for a in args])
            assert flops is not None
            spend("steps", PLANNED)
            made = Step(kind, found, args, words, shape, as_float(flops), params, self.names)
            self.steps.append(made)
            if kind == "part":
                self.parts.add(found)
            if not row.cheap and self.fixed.issuperset(args):
                self.fixed.add(found)
            elif made.flops:
                self.time += made.flops / self.machine.speed(speed_name(made))
                if self.time > self.longest:
                    raise TooSlow
        return found

    def apart(self) -> Builder:
        """The same slots and steps, to which others are added and of which these know nothing."""
        other = copy(self)
        for name, held in vars(self).items():
            if isinstance(held, list | dict | set):
                setattr(other, name, held.copy())
        other.steps = [step._replace(names=other.names) for step in self.steps]
        return other

    def drop_unused(self, results: Sequence[int]) -> None:
        """Steps that nobody reads go: an inverse of which only products are wanted."""
        read = {self.owner[slot] for slot in results}
        kept = []
        for step in reversed(self.steps):
            if self.owner[step.out] in read:
                kept.append(step)
                read.update([self.owner[slot] for slot in step.args])
        self.steps = kept[::-1]

    def const(self, array: np.ndarray, key: Any) -> int:
        found = self._known.get(("const", key))
        if found is None:
            found = self.slot(array.shape, CONST, name="" if array.ndim else str(array))
            self._known["const", key] = found
            self.fixed.add(found)
            self.consts[found] = array
            if array.dtype.kind in "iub":
                self.integers.add(found)
        return found

    def number(self, value: float) -> int:
        """A scalar as an array without axes."""
        return self.const(np.array(float(value)), float(value).hex())

    def selection(self, parts: tuple[tuple[int, Word], ...], shape: Sizes) -> int:
        """The slot of a product of selection tensors."""
        found = self._known.get(("chosen", parts, shape))
        if found is None:
            found = self._known["chosen", parts, shape] = self.slot(shape, VIEW, parts[0][0])
            self.selections[found] = parts
        return found

    def unmade(self, key: Any, matrix: Any) -> int:
        """The slot of a sparse matrix with weights."""
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self.slot(self.shapes[matrix.slot], VIEW, matrix.slot)
            self.sparse[found] = matrix
        return found

    def _refuse_sparse(self, args: tuple[int, ...], what: object) -> None:
        for slot in args:
            if slot in self.sparse:
                raise self.dense(self.sparse[slot].slot, str(what))

    def dense(self, slot: int, what: str) -> TypeError:
        """The error where a sparse input would have to be written out."""
        return TypeError(
            f"{self.names[slot]} is sparse, and {what} would need all of its entries: sparse data "
            "enter products only; pass .toarray() where it fits"
        )

    # --- views ------------------------------------------------------------------------------------

    def transpose(self, slot: int, perm: Word) -> int:
        if perm == tuple(range(len(perm))):
            return slot
        shape = self.shapes[slot]
        words = (tuple(range(len(perm))), perm)
        target = tuple([shape[p] for p in perm])
        view = self.emit("transpose", (slot,), target, words, perm)
        if perm == (1, 0):
            self.turned.add(view)
        return view

    def reshape(self, slot: int, shape: Sizes) -> int:
        """Merged or split axes; of a buffer the same memory under another shape."""
        if self.shapes[slot] == shape:
            return slot
        if self.origin[slot] is VIEW and slot not in self.parts:
            word = tuple(range(len(self.shapes[slot])))
            slot = self.emit("copy", (slot,), self.shapes[slot], (word, word))
        if self.origin[slot] is not BUFFER:
            words = (tuple(range(len(self.shapes[slot]))), tuple(range(len(shape))))
            return self.emit("reshape", (slot,), shape, words, shape)
        known = ("alias", slot, shape)
        found = self._known.get(known)
        if found is None:
            found = self.slot(shape, BUFFER, owner=slot, name=self.names[slot])
            self._known[known] = found
            if slot in self.fixed:
                self.fixed.add(found)
        return found

    def aligned(self, slot: int, word: Word, target: Word) -> int:
        """The array with axes in the order of `target`, so that NumPy broadcasts it."""
        if word == target[len(target) - len(word) :]:
            return slot
        order = [label for label in target if label in word]
        slot = self.transpose(slot, tuple([word.index(label) for label in order]))
        tail = target[target.index(order[0]) :]
        if len(tail) == len(order):
            return slot
        sizes = dict(zip(order, self.shapes[slot], strict=True))
        axes = tuple([label in sizes for label in tail])
        shape = tuple([sizes.get(label, 1) for label in tail])
        words = (tuple(order), tail)
        return self.emit("insert", (slot,), shape, words, axes)

    def _broadcastable(self, operand: tuple[int, Word], target: Word, entries: int) -> int:
        """An operand aligned; a small one that is read across its rows many times is copied."""
        slot, word = operand
        if word == target:
            return slot
        order = tuple([label for label in target if label in word])
        many, smaller = self.machine.many, self.machine.smaller
        if order != word and smaller * prod(self.shapes[slot]) <= entries and entries >= many:
            slot, word = self.ordered(slot, word, order), order
        return self.aligned(slot, word, target)

    def ordered(self, slot: int, word: Word, target: Word) -> int:
        """A buffer with axes in the order of `target`, copied where they are not."""
        if word == target:
            return slot
        view = self.aligned(slot, word, target)
        return self.emit("copy", (view,), self.shapes[view], (target, target))

    # --- elementwise ------------------------------------------------------------------------------

    def floating(self, slot: int) -> int:
        if slot not in self.integers:
            return slot
        word = tuple(range(len(self.shapes[slot])))
        return self.emit("copy", (slot,), self.shapes[slot], (word, word))

    def scale(self, slot: int, coef: float) -> int:
        if coef == 1:
            return slot
        shape = self.shapes[slot]
        word = tuple(range(len(shape)))
        coef = float(coef)
        return self.emit("scale", (slot,), shape, (word, word), (coef,), (coef.hex(),))

    def shift(self, slot: int, number: float, sign: int = 1) -> int:
        """number + x, or number - x for sign -1."""
        shape = self.shapes[slot]
        word = tuple(range(len(shape)))
        number = float(number)
        kind = "shift" if sign > 0 else "minus_from"
        return self.emit(kind, (slot,), shape, (word, word), (number,), (number.hex(),))

    def binary(self, kind: str, x: tuple[int, Word], y: tuple[int, Word], target: Word) -> int:
        """x and y combined entry by entry, broadcast over the labels of `target`."""
        sizes = dict(zip(x[1], self.shapes[x[0]], strict=True))
        sizes.update(zip(y[1], self.shapes[y[0]], strict=True))
        shape = tuple([sizes[label] for label in target])
        args = tuple([self._broadcastable(operand, target, prod(shape)) for operand in (x, y)])
        if kind != "subtract" and args[0] > args[1] and x[1] == y[1]:
            args = args[::-1]
        words = tuple([target[len(target) - len(self.shapes[a]) :] for a in args])
        return self.emit(kind, args, shape, (*words, target))
