"""Calls of programs that are functions of C alone: Python enters C once, and makes no step itself.

An entry is for arguments that are and lie as those of one call did. It looks at them, allocates the
results and calls the functions on a workspace of its own; what differs, also a step that C leaves
to Python and a second call at the same time, takes the other way.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Collection, Sequence
from math import prod
from typing import Any

import numpy as np

from ...plan.steps import BUFFER, RESULT, Word
from ...support.arrays import Array
from ..host.slots import Slots
from ..host.workspaces import Workspaces
from ..interface import Entry, Given
from .functions import Addresses, CFunction
from .objects import INTEGER, NUMBERS, ArrayObject, calls
from .together import unmade

#: Bytes of a workspace up to which an entry has one of its own.
KEPT_BYTES = 1 << 24
#: Calls that may be left to Python, one after the other, before an entry is not tried any more.
TRUST = 8
NOTHING = ()

_P, _L, _I = ctypes.c_void_p, ctypes.c_long, ctypes.c_int


class _Argument(ctypes.Structure):
    _fields_ = (
        ("name", _P), ("type", _P), ("dtype", _P), ("axes", _L), ("lies", _P), ("number", _P),
    )  # fmt: skip


class _Result(ctypes.Structure):
    _fields_ = (("function", _P), ("given", _P), ("stays", _P), ("argument", _L))


class _Part(ctypes.Structure):
    _fields_ = (("run", _P), ("table", _P), ("count", _L), ("taken", _P), ("given", _P))


class _Entry(ctypes.Structure):
    _fields_ = (
        ("none", _P), ("nothing", _P), ("arguments", _L), ("results", _L), ("parts", _L),
        ("argument", _P), ("result", _P), ("part", _P), ("objects", _P), ("busy", _I),
        ("trust", _I),
    )  # fmt: skip


class Entries:
    """The entries of one program.

    Parameters
    ----------
    parts : sequence of CFunction
        All that a call does, in order.
    zeros : collection of int
        Outputs that are zero from the start.
    """

    def __init__(
        self, workspaces: Workspaces, parts: Sequence[CFunction], zeros: Collection[int]
    ) -> None:
        self._workspaces, self._parts, self._zeros = workspaces, parts, zeros
        plan = self._plan = workspaces.plan
        self._results = [slot for slot, _ in plan.outputs]
        inputs = self._inputs = range(len(plan.inputs))
        made = {step.out for part in parts for step in part.steps}
        come = {slot for part in parts for slot in part.used.come}
        straight = {slot for slot in made if self._apart(slot)}.union(inputs)
        # Of an input that lies straight, or of a result, which has the same address.
        self._reshaped = {
            s.out: s.args[0]
            for s in plan.steps
            if s.kind == "reshape" and s.out in come and s.args[0] in straight
        }
        others = come.difference(inputs, self._results, self._reshaped)
        self._own = sorted([slot for slot in others if slot in made and self._apart(slot)])
        kept = sum([prod(plan.shapes[slot]) * plan.itemsize for slot in self._own])
        kept += sum([part.bytes for part in parts])
        self.possible = (
            len(self._own) == len(others)
            and len(set(self._results)) == len(self._results)
            and all(
                slot in inputs or self._fresh(k, slot, made) for k, slot in enumerate(self._results)
            )
            and not any(slot in zeros for slot, perm in plan.outputs if perm)
            and kept + sum(plan.blocks) <= KEPT_BYTES
        )

    def _kind(self, slot: int) -> np.dtype[Any]:
        return self._parts[0].kind(slot) if self._parts else self._workspaces.dtype

    def _apart(self, slot: int) -> bool:
        return self._plan.origin[slot] is RESULT

    def _fresh(self, number: int, slot: int, made: Collection[int]) -> bool:
        """Is an output memory of its own, which the functions write, or a copy of what stays?"""
        plan = self._plan
        if plan.origin[slot] is BUFFER:
            return plan.home[slot] == -1 - number
        return self._copied(slot) or (self._apart(slot) and slot in made)

    def _copied(self, slot: int) -> bool:
        """Is an output a copy of what a loop leaves in the workspace?"""
        return self._plan.owner[slot] in self._workspaces.lives.held

    def __call__(self, given: Sequence[Given], unread: Sequence[Given]) -> Entry | None:
        """The entry for calls with such arguments; None where there is none, or not yet."""
        inputs = [self._array(k, one) for k, one in enumerate(given)]
        arrays = [a for a in inputs if a is not None]
        straight = len(arrays) == len(inputs) and all(
            arrays[source].flags.c_contiguous
            for source in self._reshaped.values()
            if source in self._inputs
        )
        lent = all(
            given[slot].name and type(given[slot].value) is np.ndarray
            for slot in self._inputs
            if slot in self._results
        )
        if not (straight and lent and all(map(_readable, unread))):
            return None
        base = self._workspaces.take(arrays)
        slots = self._laid(base, arrays)
        functions = [part.made(slots) for part in self._parts]
        # It is compiled with the first functions, beside the program where they are.
        make = None if None in functions else calls()
        if make is None:
            self._workspaces.give_back(base)
            return None
        entry: Entry = make(self._entry(given, unread, slots, functions))
        return entry

    def _array(self, slot: int, one: Given) -> Array | None:
        """An input as an array, where it needs no conversion."""
        dtype = INTEGER if slot in self._plan.integers else self._workspaces.dtype
        if not _readable(one):
            return None
        array = np.asarray(one.value)
        return array if array.dtype == dtype and array.flags.aligned else None

    def _laid(self, base: Slots, arrays: Sequence[Array]) -> Slots:
        """Slots as a call has them."""
        plan, slots = self._plan, base.copy()
        slots[: len(arrays)] = arrays
        for slot in self._results:
            if slot not in self._inputs and not self._copied(slot):
                slots[slot] = unmade(plan.shapes[slot], self._kind(slot))
        for slot in self._own:
            slots[slot] = np.empty(plan.shapes[slot], self._kind(slot))
        for slot, source in self._reshaped.items():
            slots[slot] = slots[source].reshape(plan.shapes[slot])
        return slots

    def _entry(
        self,
        given: Sequence[Given],
        unread: Sequence[Given],
        slots: Slots,
        functions: Sequence[Any],
    ) -> Any:
        """The entry's address, and all that it points to."""
        come = [k for k, one in enumerate(given) if one.name]
        stay = [k for k, one in enumerate(given) if not one.name] + self._own
        named = [given[k] for k in come] + list(unread)
        place = {slot: k for k, slot in enumerate(come)}
        place |= {slot: k for k, slot in enumerate([*self._results, *stay], len(named))}
        place |= {slot: place[source] for slot, source in self._reshaped.items()}
        kept: list[Any] = [functions, [slots[k] for k in stay]]

        def at(kind: Any, items: Sequence[Any]) -> int:
            kept.append((kind * len(items))(*items))
            return ctypes.addressof(kept[-1])

        def argument(one: Given) -> _Argument:
            name, value, array = sys.intern(one.name), one.value, np.asarray(one.value)
            kept.append((name, array.dtype))
            number = at(ArrayObject, [ArrayObject()]) if type(value) in NUMBERS else None
            lies = at(_L, [*array.shape, *array.strides])
            return _Argument(id(name), id(type(value)), id(array.dtype), array.ndim, lies, number)

        def result(slot: int, perm: Word | None) -> _Result:
            if slot in self._inputs:  # lent
                kept.append(perm)
                function: Any = None if perm is None else id(np.ndarray.transpose)
                return _Result(function, id(perm), None, come.index(slot))
            array = slots[slot] if perm is None else slots[slot].transpose(perm)
            if not array.ndim:
                kept.append(array)
                return _Result(None, None, id(array), -1)
            if self._copied(slot):
                kept.append((array,))
                return _Result(id(np.array), id(kept[-1]), id(array), -1)
            function = np.zeros if slot in self._zeros else np.empty
            kept.append((array.shape, array.dtype))
            if perm is not None:
                function = np.ndarray
                kept.append((array.shape, array.dtype, None, 0, array.strides))
            return _Result(id(function), id(kept[-1]), None, -1)

        def part(one: CFunction, function: Any) -> _Part:
            addresses: Addresses = slots[one.place]
            kept.append(addresses)
            taken = [place[slot] for slot in one.used.come]
            run = ctypes.cast(function, _P)
            return _Part(run, addresses.table, len(taken), at(_L, taken), addresses.objects)

        arguments = list(map(argument, named))
        results = [result(*output) for output in self._plan.outputs]
        parts = list(map(part, self._parts, functions))
        objects = [0] * (len(named) + len(results)) + [id(slots[k]) for k in stay]
        entry = _Entry(
            id(None), id(NOTHING), len(arguments), len(results), len(parts),
            at(_Argument, arguments), at(_Result, results), at(_Part, parts), at(_P, objects),
            0, TRUST,
        )  # fmt: skip
        return at(_Entry, [entry]), kept


def _readable(one: Given) -> bool:
    """Can C read it? Numbers only where they come with each call."""
    return type(one.value) is np.ndarray or (one.name != "" and type(one.value) in NUMBERS)
