"""Plans of expressions, made once per extents and dtype: data are bound, programs run."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import numpy as np

from ..backends.interface import BackEnd, Entry, Given
from ..calculus.respelling import respelled
from ..graph.extents import NOMINAL
from ..graph.nodes import Const, Derivative, Expr, dimensions, postorder, variables
from ..graph.subspaces import projected
from ..graph.variables import checked_extent
from ..plan.failures import StepError, explained
from ..plan.lowering.candidates import chosen, plan_as_spelled
from ..plan.lowering.make import make_plan
from ..plan.lowering.memo import Known
from ..plan.schedule.memory import allowed, check_fits
from ..plan.steps import Plan
from ..support.arrays import Array
from ..support.collector import resting_collector
from ..support.errors import LinAlgError
from ..support.namespaces import is_sparse, on_device
from .binding import (
    Declared,
    ExtentBinding,
    absent,
    array_entry,
    by_name,
    cancelled,
    check_properties,
    held_entries,
    is_weak,
    to_array,
)
from .bound import Bound, in_dtype
from .limits import within
from .roots import first_of, value_of, values_of

_MAX_PROGRAMS, _MAX_ENTRIES, _DOUBLE, _SINGLE = 64, 4, np.dtype(np.float64), np.dtype(np.float32)

Roots = Sequence[Expr]
Values = Mapping[str, Any]


class Engine:
    """Programs by extents and dtype, and what binding needs to know.

    Of expressions only what a plan for one call and the next one have in common is held between.
    """

    def __init__(
        self,
        roots: Roots,
        backend: BackEnd,
        limit: int | None,
        check: bool,
        lent: bool = False,
        ordered: bool = False,
    ) -> None:
        self.backend, self.limit, self.lent, self.ordered = backend, limit, lent, ordered
        named = dimensions(roots)
        self.variables = {name: Declared.of(v, named) for name, v in variables(roots).items()}
        values = list(map(first_of, roots))
        read = variables(values)
        self.needed = [self.variables[name] for name in read]
        self.optional = [d for name, d in self.variables.items() if name not in read]
        self.dimensions = [d for d in named if d not in self.variables]
        self.unbound = set(self.dimensions).difference(*[d.shape for d in self.variables.values()])
        self.constants = {
            n.value.dtype for n in postorder(values) if isinstance(n, Const) and "f" in n._dtype
        }
        self.checked = [(k, d) for k, d in enumerate(self.needed) if check and d.checked]
        self.projections = [
            (k, slot)
            for k, root in enumerate(roots)
            if isinstance(root, Derivative)
            for slot in root.slots
        ]
        #: Data bound once, by name: those that are read, as arrays and as entries of keys, and
        #: those that only say extents.
        self.data: dict[str, Any] = {}
        self.held: list[Array] = []
        self.held_key: list[Any] = []
        self.unread: dict[str, Any] = {}
        self.given = self.needed
        self.programs: dict[Any, Bound] = {}
        #: Of calls that need nothing of Python, the last ones that were made first.
        self.entries: list[Entry] = []
        self.lock = threading.Lock()

    def bound(self, data: Values) -> dict[str, Any]:
        """Data converted and checked once."""
        self.data = {k: v for k, v in data.items() if k in self.variables or k in self.dimensions}
        checked = {d.name for _, d in self.checked}
        read = {d.name: d for d in self.needed}
        dims = ExtentBinding()
        for name, value in self.data.items():
            declared = self.variables.get(name)
            if declared is None:
                dims.bind_extent(name, checked_extent(name, value))
                continue
            array, entry = array_entry(value, declared)
            if isinstance(array, np.ndarray):
                array.flags.writeable = False
            dims.bind_array(declared, array)
            if name in checked:
                check_properties(array, declared)
            if name in read:
                self.held.append(array)
                self.held_key.append(entry)
            if not is_weak(value):
                self.data[name] = array
        self.given = [d for d in self.needed if d.name not in self.data]
        self.needed = [*self.given, *[read[name] for name in self.data if name in read]]
        self.checked = [(k, d) for k, d in enumerate(self.given) if d.name in checked]
        self.unread = {name: value for name, value in self.data.items() if name not in read}
        return self.data

    def run(self, roots: Roots, values: Values) -> list[Any]:
        key: list[Any] = []
        arrays: list[Any] = []
        for declared in self.given:
            value = values.get(declared.name)
            if (
                type(value) is np.ndarray
                and value.dtype is _DOUBLE
                and value.flags.forc
                and not declared.integer
            ):
                key.append(value.shape)
            elif value is None:
                return self.run(roots, self._renamed(values, declared))
            else:
                value, entry = array_entry(value, declared)
                key.append(entry)
            arrays.append(value)
        if self.held:
            key += self.held_key
        if len(values) > len(arrays):
            key += self._further(values)
        bound = self.programs.get(tuple(key))
        if bound is None or bound.once:
            bound = self._bind(roots, key, arrays + self.held, self._unused(values))
        for k, declared in self.checked:
            check_properties(arrays[k], declared)
        try:
            results = bound.run(arrays)
        except StepError as error:
            raise self._explained(error, roots, {**self.data, **values}) from error.__cause__
        for k, slot in self.projections:
            results[k] = projected(results[k], slot, owned=True)
        if bound.program.entries is not None and not bound.once:
            self._enter(bound, values)
        return results

    def _enter(self, bound: Bound, values: Values) -> None:
        """Have further calls like this one made by an entry, if all that they do is the program."""
        if self.checked or self.projections or any(d.extent for d in self.variables.values()):
            return
        given = [Given(d.name, values[d.name]) for d in self.given]
        known = {one.name for one in given} | self.unread.keys()
        more = [Given(name, values[name]) for name in values if name not in known]
        entry = bound.entry(given, more)
        if entry is not None:
            self.entries = [entry, *self.entries[: _MAX_ENTRIES - 1]]

    def _renamed(self, values: Values, missing: Declared) -> dict[str, Any]:
        """Values under the names that Python would give to these keywords, if that helps."""
        found = by_name(values)
        if missing.name in values or found.get(missing.name) is None:
            raise TypeError(absent(missing, self._unused(found)))
        return found

    def _unused(self, values: Values) -> list[str]:
        known = self.variables.keys() | self.dimensions
        return [name for name in values if name not in known]

    def _further(self, values: Values) -> list[Any]:
        """Extents given by name, and shapes of variables that cancelled."""
        values = values if all(map(str.isascii, values)) else by_name(values)
        found: list[Any] = [
            (name, checked_extent(name, values[name])) for name in self.dimensions if name in values
        ]
        gone = cancelled(values, self.variables, self.unbound - values.keys())
        for declared in [*self.optional, *gone]:
            value = values.get(declared.name)
            if value is not None and declared.extent:
                found.append((declared.name, checked_extent(declared.name, value)))
            elif value is not None:
                array = to_array(value, declared)
                found.append((declared, array.shape, "weak" if is_weak(value) else array.dtype))
        return found

    @resting_collector()
    def _bind(self, roots: Roots, key: list[Any], arrays: list[Array], unused: list[str]) -> Bound:
        """The program for these extents and dtypes, made now and kept."""
        dims = ExtentBinding()
        for declared, array in zip(self.needed, arrays, strict=True):
            dims.bind_array(declared, array)
        for what, extent, *_ in key[len(arrays) :]:
            if isinstance(what, Declared):
                dims.bind_shape(what, extent)
            else:
                dims.bind_extent(what, extent)
        dtype = self._dtype(key, arrays)
        if not self.backend.device:
            _refuse_device(self.needed, arrays)
        with self.lock:
            found = self.programs.get(tuple(key))
            if found is not None and not found.once:
                return found
            sparse = {
                d.name: held_entries(a)
                for d, a in zip(self.needed, arrays, strict=True)
                if is_sparse(a)
            }
            bind = (self.backend.bind_lent if self.lent else None) or self.backend.bind
            plan = None
            known: Known = {} if found is None else found.known
            if found is None and self.backend.once is not None and not sparse:
                dims.require(dimensions(list(map(first_of, roots))), self.variables, unused)
                plan = self._plan_of_one_call(roots, dims, known, dtype.itemsize)
                bind = bind if plan is None else self.backend.once
            once = plan is not None
            if plan is None:
                values = list(map(value_of, roots)) if sparse else self._chosen(roots, dims, known)
                dims.require(dimensions(values), self.variables, unused)
                plan = self._plan(roots, values, dims, known, dtype.itemsize, sparse=sparse)
                check_fits(plan, self.limit, self._memory())
            program = bind(plan, dtype)
            place = {d.name: k for k, d in enumerate(self.needed)}
            take: list[int] | None = [place[name] for name in plan.inputs]
            kinds = {a.dtype for d, a in zip(self.needed, arrays, strict=True) if not d.integer}
            if kinds <= {dtype} and take == list(range(len(arrays))):
                take = None
            if found is None and len(self.programs) >= _MAX_PROGRAMS:
                self.programs.pop(next(iter(self.programs)))
            held = [in_dtype(a, dtype) for a in self.held]
            found = Bound(program, take, dtype, held, once, known if once else {})
            self.programs[tuple(key)] = found
        return found

    def _plan_of_one_call(
        self, roots: Roots, dims: ExtentBinding, known: Known, itemsize: int
    ) -> Plan | None:
        """A plan of values as they were found first; None where finding the best is worth it."""
        derivatives = [root for root in roots if isinstance(root, Derivative)]
        if not derivatives:
            return None
        several = any(root.ways for root in derivatives)
        given = dims.sizes, itemsize, self.data, self.lent, self.ordered, self.backend.machine
        plan = plan_as_spelled(list(map(first_of, roots)), *given, known, several)
        most = allowed(self.limit, self._memory())
        return None if most is not None and plan is not None and plan.peak_bytes > most else plan

    def _explained(self, error: StepError, roots: Roots, values: Values) -> LinAlgError:
        """The error with the expression that it is about."""
        given = {**self.sizes(values), **values}
        computed = [c for root in roots for c in (*values_of(root), first_of(root))]
        options = self.backend, self.limit, False
        return explained(error, computed, roots, lambda e: Engine([e], *options).run([e], given))

    def sizes(self, values: Values) -> dict[str, int]:
        """Extents by dimension that these arguments say."""
        known = {k: v for k, v in values.items() if k in self.variables or k in self.dimensions}
        return self.extents(known).sizes

    def _dtype(self, key: list[Any], arrays: list[Array]) -> np.dtype[Any]:
        """The working dtype: float32 if all arrays and constants are; numbers have no say.

        Where nothing is read at all, variables that cancelled decide.
        """
        kinds = set(self.constants)
        for declared, entry, array in zip(self.needed, key, arrays, strict=False):
            if not declared.integer and "weak" not in entry:
                kinds.add(array.dtype)
        if not kinds:
            others = {entry[-1] for entry in key[len(arrays) :]}
            kinds = {kind for kind in others if isinstance(kind, np.dtype) and kind.kind == "f"}
        return _SINGLE if kinds == {_SINGLE} else _DOUBLE

    def _chosen(self, roots: Roots, dims: ExtentBinding, known: Known | None = None) -> list[Expr]:
        """The values of the roots; of a derivative's candidates the cheapest at these sizes."""
        names, sized = {d.name for d in self.needed}, dims.sizes.keys()

        def usable(*values: Expr) -> bool:
            return names >= variables(values).keys() and sized >= set(dimensions(values))

        options = list(map(values_of, roots))
        if not usable(*chain.from_iterable(options)):
            pairs = zip(options, roots, strict=True)
            options = [list(filter(usable, values)) or [first_of(r)] for values, r in pairs]
        first = [values[0] for values in options]
        complete = sized >= set(dimensions(first))  # else others say what is missing
        return chosen(options, dims.sizes, self.backend.machine, known) if complete else first

    def _respelled(
        self, roots: Roots, dims: ExtentBinding, known: Known, checkpoints: bool = False
    ) -> list[Expr] | None:
        """The values of the roots by derivatives of functions that are spelled otherwise."""
        choose = partial(chosen, sizes=dims.sizes, machine=self.backend.machine, known=known)
        found = respelled(roots, dims.sizes, choose, checkpoints)
        read = variables(found or []).keys()
        return found if {d.name for d in self.needed} >= read else None

    def read(self, roots: Roots) -> list[str]:
        """The dimensions whose extents are needed to compute the roots."""
        return dimensions(list(map(value_of, roots)))

    def options(self, roots: Roots, dims: ExtentBinding) -> list[list[Expr]]:
        """What may be computed for the roots: the cheapest at these sizes, then other ways."""
        values = list(map(values_of, roots))
        most = max([len(ways) for ways in values], default=0)
        others = [[ways[min(k, len(ways) - 1)] for ways in values] for k in range(most)]
        return [self._chosen(roots, dims), *others]

    def extents(self, data: Values) -> ExtentBinding:
        """The extents of data that are known to be of variables and dimensions."""
        dims = ExtentBinding()
        bound = {k: np.shape(v) if k in self.variables else v for k, v in data.items()}
        dims.bind_given(bound, self.variables, self.dimensions)
        return dims

    @resting_collector()
    def plan_for(self, roots: Roots, data: Values, shapes: Mapping[str, Any]) -> Plan:
        dims = self.extents(data)
        dims.bind_given(shapes, self.variables, self.dimensions)
        dims.solve()
        counts = [d.name for d in self.variables.values() if d.extent]
        free = [d for d in (*self.dimensions, *counts) if d.isidentifier() and d not in dims.sizes]
        dims.sizes.update(dict.fromkeys(free, NOMINAL))
        note = f"assuming {', '.join(f'{name} = {NOMINAL}' for name in free)}" if free else ""
        known: Known = {}
        plan = self._plan(roots, self._chosen(roots, dims, known), dims, known, note=note)
        remark = self.backend.remark(plan)
        notes = [text for text in (plan.note, remark) if text]
        return replace(plan, note="; ".join(notes)) if remark else plan

    def _plan(
        self,
        roots: Roots,
        values: Roots,
        dims: ExtentBinding,
        known: Known,
        itemsize: int = 8,
        note: str = "",
        sparse: Mapping[str, int] | None = None,
    ) -> Plan:
        others = partial(self._respelled, roots, dims, known)
        given = self.data, True, self.lent, self.backend.machine, sparse
        planned = partial(make_plan, ordered=self.ordered)
        plan = planned(values, dims.sizes, itemsize, note, *given, others, known=known)
        return within(
            plan,
            allowed(self.limit, self._memory()),
            partial(self._respelled, roots, dims, known, checkpoints=True),
            lambda saving: planned(saving, dims.sizes, itemsize, note, *given),
        )

    def _memory(self) -> int | None:
        """Bytes that there are where it runs; None for what this process may have."""
        return self.backend.machine.memory or self.backend.memory()


def _refuse_device(variables: Sequence[Declared], arrays: Sequence[Array]) -> None:
    for declared, array in zip(variables, arrays, strict=True):
        if on_device(array):
            raise TypeError(
                f'{declared.name} is an array on a device; compile(backend="cupy") computes there, '
                "array.get() copies it to the host"
            )
