"""Compiled expressions: data are bound, plans are made once per extents and dtype."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..backends.interface import BackEnd
from ..graph import trees
from ..graph.arraylike import surface
from ..graph.extents import NOMINAL, show_shape
from ..graph.nodes import Const, Derivative, Expr, Var, dimensions, postorder, variables
from ..graph.subspaces import projected
from ..ops.arithmetic import as_expr
from ..plan.failures import StepError, explained
from ..plan.lowering.make import chosen, make_plan
from ..plan.schedule.memory import check_fits
from ..plan.steps import Plan
from ..rules.strategy import simplify
from ..support.arrays import Array
from ..support.byte_counts import read_bytes
from ..support.errors import LinAlgError
from .backends import backend_named
from .binding import (
    Bound,
    Declared,
    ExtentBinding,
    OwnData,
    absent,
    argument_names,
    array_entry,
    by_name,
    cancelled,
    check_properties,
    checked_extent,
    held_entries,
    in_dtype,
    is_sparse,
    is_weak,
    to_array,
)
from .signatures import signature_table

_MAX_PROGRAMS, _DOUBLE, _SINGLE = 64, np.dtype(np.float64), np.dtype(np.float32)

Roots = Sequence[Expr]
Values = Mapping[str, Any]


class Compiled:
    """What `compile` returns; calling it with arrays computes the outputs.

    Attributes
    ----------
    plan : Plan
        The plan at the extents that bound data and literal extents give, 100 for other dimensions.
    """

    def __init__(
        self,
        outputs: Any,
        args: Sequence[str | Var] | None,
        backend: str | None,
        data: Values | None,
        memory_limit: int | str | None,
        check: bool,
        threads: int | None = None,
        lent: bool = False,
    ) -> None:
        own = OwnData.of(data)
        options = args, backend, own, memory_limit, check, threads, lent
        self._options, self._outputs = options, outputs
        self._roots = _leaves(outputs)
        self._engine = _Engine(
            self._roots, backend_named(backend, threads), read_bytes(memory_limit), check, lent
        )
        self._args = argument_names(args)
        self._data = self._engine.bound(own)

    def __call__(self, /, *arguments: Any, **values: Any) -> Any:
        """The outputs, given arrays by keyword, in one mapping, or by position in `args`' order."""
        if arguments:
            values = self._named(arguments, values)
        if self._data:
            if not self._data.keys().isdisjoint(values):
                twice = ", ".join(sorted(self._data.keys() & values.keys()))
                raise TypeError(f"{twice} is bound by data= already")
            values.update(self._engine.unread)
        found, outputs = self._engine.run(self._roots, values), self._outputs
        return found[0] if isinstance(outputs, Expr) else trees.unflatten(outputs, iter(found))

    def _named(self, arguments: tuple[Any, ...], values: dict[str, Any]) -> dict[str, Any]:
        if len(arguments) == 1 and isinstance(arguments[0], Mapping):
            return by_name(arguments[0]) | values
        if len(arguments) > len(self._args):
            raise TypeError(
                f"{len(arguments)} positional arguments for args={self._args}; "
                "others are passed by keyword"
            )
        for name, value in zip(self._args, arguments, strict=False):
            if name in values:
                raise TypeError(f"{name} is passed by position and by keyword")
            values[name] = value
        return values

    @property
    def plan(self) -> Plan:
        return self.plan_for()

    def plan_for(self, /, **shapes: Any) -> Plan:
        """The plan at given shapes of variables and extents of dimensions, nothing allocated."""
        return self._engine.plan_for(self._roots, self._data, by_name(shapes))

    def __reduce__(self) -> tuple[Any, ...]:
        return Compiled, (self._outputs, *self._options)

    def __repr__(self) -> str:
        """What it takes, first `args` and then by name, and the shapes of its outputs."""
        known = self._engine.variables
        names = [n for n in dict.fromkeys([*self._args, *known]) if n in known.keys() - self._data]
        taken = ", ".join([f"{n} {show_shape(known[n].shape)}" for n in names])
        bound = f", bound: {', '.join(self._data)}" if self._data else ""
        return f"<Compiled {trees.shown_shapes(self._outputs)} of {taken or 'no variables'}{bound}>"

    def _repr_html_(self) -> str:
        """For notebooks: what it takes and gives."""
        shapes = {name: v.shape for name, v in self._engine.variables.items()}
        title = f"function for {self._options[1]}"
        return signature_table(title, shapes, self._data, self._outputs, self._roots)


def evaluate(e: Any, /, *mapping: Values, **values: Any) -> Any:
    """The value of an expression, or of a nest of them, given arrays by keyword or in a mapping."""
    if len(mapping) > 1 or (mapping and not isinstance(mapping[0], Mapping)):
        raise TypeError("values are given by keyword or in one mapping; see compile(args=)")
    roots = _leaves(e)
    results = _engine_of(roots).run(roots, by_name(mapping[0]) | values if mapping else values)
    return results[0] if isinstance(e, Expr) else trees.unflatten(e, iter(results))


surface["evaluate"] = evaluate


_engines: dict[tuple[int, ...], tuple[Any, _Engine]] = {}


def _engine_of(roots: Roots) -> _Engine:
    """The engine of these roots; it goes when one of them goes."""
    key = tuple(map(id, roots))
    found = _engines.get(key)
    if found is None:
        engine = _Engine(roots, backend_named("numpy"), None, True)
        forget = _engines.pop  # bound now: at interpreter exit the module's names are gone
        watch = [weakref.ref(root, lambda _: forget(key, None)) for root in roots]
        _engines[key] = found = (watch, engine)
    return found[1]


# --- binding and running --------------------------------------------------------------------------


class _Engine:
    """Programs by extents and dtype, and what binding needs to know; holds no expression."""

    def __init__(
        self, roots: Roots, backend: BackEnd, limit: int | None, check: bool, lent: bool = False
    ) -> None:
        self.backend, self.limit, self.lent = backend, limit, lent
        named = dimensions(roots)
        self.variables = {name: Declared.of(v, named) for name, v in variables(roots).items()}
        values = [_value(root) for root in roots]
        self.needed = [self.variables[name] for name in variables(values)]
        self.optional = [d for d in self.variables.values() if d not in self.needed]
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
        self.lock = threading.Lock()

    def bound(self, data: Values) -> dict[str, Any]:
        """Data converted and checked once."""
        self.data = {k: v for k, v in data.items() if k in self.variables or k in self.dimensions}
        checked = {d.name for _, d in self.checked}
        dims = ExtentBinding()
        for name, value in self.data.items():
            declared = self.variables.get(name)
            if declared is None:
                dims.bind_extent(name, checked_extent(name, value))
                continue
            array, entry = array_entry(value, declared)
            if not is_sparse(array):
                array.flags.writeable = False
            dims.bind_array(declared, array)
            if name in checked:
                check_properties(array, declared)
            if declared in self.needed:
                self.held.append(array)
                self.held_key.append(entry)
            if not is_weak(value):
                self.data[name] = array
        self.given = [d for d in self.needed if d.name not in self.data]
        self.needed = [*self.given, *[d for n in self.data for d in self.needed if d.name == n]]
        self.checked = [(k, d) for k, d in enumerate(self.given) if d.name in checked]
        read = {d.name for d in self.needed}
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
        if bound is None:
            bound = self._bind(roots, key, arrays + self.held, self._unused(values))
        for k, declared in self.checked:
            check_properties(arrays[k], declared)
        try:
            results = bound.run(arrays)
        except StepError as error:
            raise self._explained(error, roots, {**self.data, **values}) from error.__cause__
        for k, slot in self.projections:
            results[k] = projected(results[k], slot, owned=True)
        return results

    def _renamed(self, values: Values, missing: Declared) -> dict[str, Any]:
        """Values under the names that Python would give to these keywords, if that helps."""
        found = by_name(values)
        if missing.name in values or found.get(missing.name) is None:
            raise TypeError(absent(missing, self._unused(found)))
        return found

    def _unused(self, values: Values) -> list[str]:
        return [name for name in values if name not in self.variables.keys() | self.dimensions]

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
        with self.lock:
            found = self.programs.get(tuple(key))
            if found is not None:
                return found
            sparse = {
                d.name: held_entries(a)
                for d, a in zip(self.needed, arrays, strict=True)
                if is_sparse(a)
            }
            values = list(map(_value, roots)) if sparse else self._chosen(roots, dims)
            dims.require(dimensions(values), self.variables, unused)
            plan = self._plan(values, dims, dtype.itemsize, sparse=sparse)
            check_fits(plan, self.limit, self.backend.machine.memory)
            program = self.backend.bind(plan, dtype)
            place = {d.name: k for k, d in enumerate(self.needed)}
            take: list[int] | None = [place[name] for name in plan.inputs]
            kinds = {a.dtype for d, a in zip(self.needed, arrays, strict=True) if not d.integer}
            if kinds <= {dtype} and take == list(range(len(arrays))):
                take = None
            if len(self.programs) >= _MAX_PROGRAMS:
                self.programs.pop(next(iter(self.programs)))
            held = [in_dtype(a, dtype) for a in self.held]
            self.programs[tuple(key)] = found = Bound(program, take, dtype, held)
        return found

    def _explained(self, error: StepError, roots: Roots, values: Values) -> LinAlgError:
        """The error with the expression that it is about."""
        known = {k: v for k, v in values.items() if k in self.variables or k in self.dimensions}
        given = {**self._bound_by(known).sizes, **values}
        computed = [c for root in roots for c in (_value(root), *_candidates(root))]
        options = self.backend, self.limit, False
        return explained(error, computed, roots, lambda e: _Engine([e], *options).run([e], given))

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

    def _chosen(self, roots: Roots, dims: ExtentBinding) -> list[Expr]:
        """The values of the roots; of a derivative's candidates the cheapest at these sizes."""
        names, known = {d.name for d in self.needed}, dims.sizes.keys()

        def usable(e: Expr) -> bool:
            return names >= variables([e]).keys() and known >= set(dimensions([e]))

        options = [list(filter(usable, _candidates(r))) or [_value(r)] for r in roots]
        first = [values[0] for values in options]
        complete = known >= set(dimensions(first))  # else others say what is missing
        return chosen(options, dims.sizes, self.backend.machine) if complete else first

    def _bound_by(self, data: Values) -> ExtentBinding:
        """The extents of data that are known to be of variables and dimensions."""
        dims = ExtentBinding()
        bound = {k: np.shape(v) if k in self.variables else v for k, v in data.items()}
        dims.bind_given(bound, self.variables, self.dimensions)
        return dims

    def plan_for(self, roots: Roots, data: Values, shapes: Mapping[str, Any]) -> Plan:
        dims = self._bound_by(data)
        dims.bind_given(shapes, self.variables, self.dimensions)
        dims.solve()
        counts = [d.name for d in self.variables.values() if d.extent]
        free = [d for d in (*self.dimensions, *counts) if d.isidentifier() and d not in dims.sizes]
        dims.sizes.update(dict.fromkeys(free, NOMINAL))
        note = f"assuming {', '.join(f'{name} = {NOMINAL}' for name in free)}" if free else ""
        values = self._chosen(roots, dims)
        return self._plan(values, dims, note=note)

    def _plan(
        self,
        values: Roots,
        dims: ExtentBinding,
        itemsize: int = 8,
        note: str = "",
        sparse: Mapping[str, int] | None = None,
    ) -> Plan:
        machine, sizes = self.backend.machine, dims.sizes
        return make_plan(values, sizes, itemsize, note, self.data, True, self.lent, machine, sparse)


def _value(root: Expr) -> Expr:
    """What is computed: a derivative without its projection, anything else in its stable form."""
    if isinstance(root, Derivative):
        return simplify(root.inner) if root.as_written else root.inner
    return simplify(root)


def _candidates(root: Expr) -> tuple[Expr, ...]:
    return root.candidates if isinstance(root, Derivative) else ()


def _leaves(outputs: Any) -> list[Expr]:
    return [leaf if isinstance(leaf, Expr) else as_expr(leaf) for leaf in trees.leaves(outputs)]
