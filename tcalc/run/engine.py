"""Plans of expressions, made once per extents and dtype: data are bound, programs run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..backends.interface import BackEnd, Entry, Given
from ..graph.extents import NOMINAL
from ..graph.nodes import Const, Derivative, Expr, dimensions, postorder, variables
from ..graph.subspaces import projected
from ..graph.variables import checked_extent
from ..plan.failures import StepError, explained
from ..plan.lowering.by_entries import by_entries, part_of
from ..plan.lowering.memo import Known
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
    to_array,
)
from .bound import Bound, in_dtype
from .dtypes import is_exact, is_of_no_dtype, is_weak
from .plans import Plans
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
        self.backend, self.lent = backend, lent
        named = dimensions(roots)
        self.variables = {name: Declared.of(v, named) for name, v in variables(roots).items()}
        values = list(map(first_of, roots))
        read = variables(values)
        self.needed = [self.variables[name] for name in read]
        self.optional = [d for name, d in self.variables.items() if name not in read]
        self.dimensions = [d for d in named if d not in self.variables]
        self.unbound = set(self.dimensions).difference(*[d.shape for d in self.variables.values()])
        floats = [n.value for n in postorder(values) if isinstance(n, Const) and "f" in n._dtype]
        self.constants = {value.dtype for value in floats if not is_exact(value)}
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
        self.plans = Plans(backend, limit, lent, ordered, read)
        #: Are plans for sparse data of as many entries as those have, rather than about as many?
        self.counts_exactly = False
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
        self.plans.fixed = self.data
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
                value, entry = array_entry(value, declared, self.counts_exactly)
                key.append(entry)
            arrays.append(value)
        if self.held:
            key += self.held_key
        if len(values) > len(arrays):
            key += self._further(values)
        bound = self.programs.get(tuple(key))
        if bound is None or bound.due():
            bound = self._bind(roots, key, arrays + self.held, self._unused(values))
        for k, declared in self.checked:
            check_properties(arrays[k], declared)
        known: Bound | None = bound
        try:
            results = bound.run(arrays)
        except StepError as error:
            results, known = self._otherwise(bound, error, roots, key, arrays, values), None
        for k, slot in self.projections:
            results[k] = projected(results[k], slot, owned=True)
        if known is not None and known.program.entries is not None and known.patience is None:
            self._enter(known, values)
        return results

    def _otherwise(
        self,
        bound: Bound,
        error: StepError,
        roots: Roots,
        key: list[Any],
        arrays: list[Array],
        values: Values,
    ) -> list[Any]:
        """The results of a plan that presumes nothing, if `bound`'s did, whose error this is.

        It takes the place of that one where that one has never been right.
        """
        if bound.presumes:
            with self.lock:
                if bound.otherwise is None:
                    given = arrays + self.held
                    bound.otherwise = self._made(roots, key, given, [], presuming=False)
                if bound.wrong():
                    self.programs[tuple(key)] = bound.otherwise
            try:
                return bound.otherwise.run(arrays)
            except StepError as again:
                error = again
        raise self._explained(error, roots, {**self.data, **values}) from error.__cause__

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
                found.append(
                    (declared, array.shape, "weak" if is_of_no_dtype(value) else array.dtype)
                )
        return found

    @resting_collector()
    def _bind(self, roots: Roots, key: list[Any], arrays: list[Array], unused: list[str]) -> Bound:
        """The program for these extents and dtypes, made now and kept."""
        with self.lock:
            found = self.programs.get(tuple(key))
            if found is None or found.due():
                if found is None and len(self.programs) >= _MAX_PROGRAMS:
                    self.programs.pop(next(iter(self.programs)))
                found = self._made(roots, key, arrays, unused, found)
                self.programs[tuple(key)] = found
            return found

    def _made(
        self,
        roots: Roots,
        key: list[Any],
        arrays: list[Array],
        unused: list[str],
        before: Bound | None = None,
        presuming: bool = True,
    ) -> Bound:
        """A program for these extents and dtypes, which follows one for a single call."""
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
        sparse = {
            d.name: held_entries(a)
            for d, a in zip(self.needed, arrays, strict=True)
            if is_sparse(a)
        }
        bind = (self.backend.bind_lent if self.lent else None) or self.backend.bind
        plan, presumes = None, False
        known: Known = {} if before is None else before.known
        if before is None and self.backend.once is not None and not sparse and presuming:
            dims.require(dimensions(list(map(first_of, roots))), self.variables, unused)
            plan = self.plans.of_one_call(roots, dims.sizes, known, dtype.itemsize)
            bind = bind if plan is None else self.backend.once
        patience = None if plan is None else self.plans.patience(roots)
        if plan is None:
            found = self.plans.chosen(roots, dims.sizes, known) if not sparse else None
            values = list(map(value_of, roots)) if found is None else found
            dims.require(dimensions(values), self.variables, unused)
            planned = partial(
                self.plans.best, roots, sizes=dims.sizes, known=known, itemsize=dtype.itemsize,
                sparse=sparse, presuming=presuming,
            )  # fmt: skip
            if sparse:
                plan, presumes = self._by_entries(values, planned, key, arrays)
            else:
                plan, presumes = planned(values)
            self.plans.check_fits(plan)
        program = bind(plan, dtype)
        place = {d.name: k for k, d in enumerate(self.needed)}
        parts = [name for name in plan.inputs if name not in place]
        place |= {name: len(arrays) + k for k, name in enumerate(parts)}
        take: list[int] | None = [place[name] for name in plan.inputs]
        kinds = {a.dtype for d, a in zip(self.needed, arrays, strict=True) if not d.integer}
        if kinds <= {dtype} and take == list(range(len(arrays))):
            take = None
        held = [in_dtype(a, dtype) for a in self.held]
        known = {} if patience is None else known
        read = [(place[name], part) for name, part in map(part_of, parts)]
        return Bound(program, take, dtype, held, patience, known, presumes, read)

    def _by_entries(
        self,
        values: Roots,
        planned: Callable[[Roots], tuple[Plan, bool]],
        key: list[Any],
        arrays: list[Array],
    ) -> tuple[Plan, bool]:
        """The plan with entries of sparse data where products need these; the key says how many.

        Where some order of products does not go with a matrix, all of them go by entries.
        """
        sparse: dict[int, Any] = {k: a for k, a in enumerate(arrays) if is_sparse(a)}
        counts = {self.needed[k].name: a.nnz for k, a in sparse.items()}
        large = {d.shape for name, d in self.variables.items() if name not in counts}
        found = by_entries(values, counts, large)
        try:
            plan = planned(found)
        except TypeError as error:
            found = by_entries(values, counts, large, everywhere=True)
            try:
                plan = planned(found)
            except TypeError:
                raise error from None
        if any(a is not b for a, b in zip(values, found, strict=True)):
            self.counts_exactly = True
            for k in [k for k in sparse if k < len(self.given)]:
                _, key[k] = array_entry(sparse[k], self.given[k], exact=True)
        return plan

    def _explained(self, error: StepError, roots: Roots, values: Values) -> LinAlgError:
        """The error with the expression that it is about."""
        given = {**self.sizes(values), **values}
        computed = [c for root in roots for c in (*values_of(root), first_of(root))]
        options = self.backend, self.plans.limit, False
        return explained(error, computed, roots, lambda e: Engine([e], *options).run([e], given))

    def sizes(self, values: Values) -> dict[str, int]:
        """Extents by dimension that these arguments say."""
        known = {k: v for k, v in values.items() if k in self.variables or k in self.dimensions}
        return self.extents(known).sizes

    def _dtype(self, key: list[Any], arrays: list[Array]) -> np.dtype[Any]:
        """The working dtype: float32 if all arrays and constants are; numbers have no say.

        Variables that cancelled have one: derivatives of all orders are of one dtype.
        """
        kinds = set(self.constants)
        for declared, entry, array in zip(self.needed, key, arrays, strict=False):
            if not declared.integer and "weak" not in entry:
                kinds.add(array.dtype)
        others = {entry[-1] for entry in key[len(arrays) :]}
        kinds |= {kind for kind in others if isinstance(kind, np.dtype) and kind.kind == "f"}
        return _SINGLE if kinds == {_SINGLE} else _DOUBLE

    def read(self, roots: Roots) -> list[str]:
        """The dimensions whose extents are needed to compute the roots."""
        return dimensions(list(map(value_of, roots)))

    def options(self, roots: Roots, dims: ExtentBinding) -> list[list[Expr]]:
        """What may be computed for the roots: the cheapest at these sizes, then other ways."""
        return self.plans.options(roots, dims.sizes)

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
        values = self.plans.chosen(roots, dims.sizes, known)
        plan, _ = self.plans.best(roots, values, dims.sizes, known, note=note)
        remark = self.backend.remark(plan)
        notes = [text for text in (plan.note, remark) if text]
        return replace(plan, note="; ".join(notes)) if remark else plan


def _refuse_device(variables: Sequence[Declared], arrays: Sequence[Array]) -> None:
    for declared, array in zip(variables, arrays, strict=True):
        if on_device(array):
            raise TypeError(
                f'{declared.name} is an array on a device; compile(backend="cupy") computes there, '
                "array.get() copies it to the host"
            )
