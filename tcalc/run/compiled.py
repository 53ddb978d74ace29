"""Compiled expressions: data are bound, plans are made once per extents and dtype."""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from ..calculus.deep_expressions import shortened
from ..graph import trees
from ..graph.arraylike import surface
from ..graph.extents import show_shape
from ..graph.nodes import Expr, Var
from ..ops.arithmetic import as_expr
from ..plan.steps import Plan
from ..support.byte_counts import read_bytes
from ..support.collector import resting_collector
from .backends import backend_named
from .binding import (
    OwnData,
    argument_names,
    by_name,
)
from .engine import Engine, Roots, Values
from .signatures import signature_table


class Compiled:
    """What `compile` returns; calling it with arrays computes the outputs.

    Attributes
    ----------
    plan : Plan
        The plan at the extents that bound data and literal extents give, 100 for other dimensions.
    """

    @resting_collector()
    def __init__(
        self,
        outputs: Any,
        args: Sequence[str | Var] | None,
        backend: str | None,
        data: Values | None,
        memory_limit: int | str | None,
        check: bool,
        threads: int | None = None,
        compute: bool = True,
        lent: bool = False,
        ordered: bool = False,
    ) -> None:
        own = OwnData.of(data)
        options = args, backend, own, memory_limit, check, threads, compute, lent, ordered
        self._options, self._outputs = options, outputs
        row = backend_named(backend, threads, compute)
        roots = _leaves(outputs)
        self._roots = roots if row.engine else shortened(roots)
        self._engine: Engine = (row.engine or Engine)(
            self._roots, row._replace(engine=None), read_bytes(memory_limit), check, lent, ordered
        )
        self._args = argument_names(args)
        self._data = self._engine.bound(own)
        self._nested = trees.builder(outputs)

    def __call__(self, /, *arguments: Any, **values: Any) -> Any:
        """The outputs, given arrays by keyword, in one mapping, or by position in `args`' order."""
        if arguments:
            values = self.named(arguments, values)
        for enter in self._engine.entries:
            results = enter(values)
            if results is not None:
                return self._nested(results)
        if self._data:
            if not self._data.keys().isdisjoint(values):
                twice = ", ".join(sorted(self._data.keys() & values.keys()))
                raise TypeError(f"{twice} is bound by data= already")
            values.update(self._engine.unread)
        return self._nested(self._engine.run(self._roots, values))

    def named(self, arguments: tuple[Any, ...], values: dict[str, Any]) -> dict[str, Any]:
        """All arguments by name."""
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
        return type(self), (self._outputs, *self._options)

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
    engine, planned = _engine_of(roots)
    results = engine.run(planned, by_name(mapping[0]) | values if mapping else values)
    return results[0] if isinstance(e, Expr) else trees.unflatten(e, iter(results))


surface["evaluate"] = evaluate


#: By the ids of roots: what sees them go, their engine, and what is planned in place of those that
#: are very deep.
_engines: dict[tuple[int, ...], tuple[Any, Engine, list[Expr | None]]] = {}


def _engine_of(roots: Roots) -> tuple[Engine, Roots]:
    """The engine of these roots, which goes when one of them goes; and the roots that it plans."""
    key = tuple(map(id, roots))
    found = _engines.get(key)
    if found is None:
        planned = shortened(roots)
        engine = Engine(planned, backend_named("numpy"), None, True)
        forget = _engines.pop  # bound now: at interpreter exit the module's names are gone
        watch = [weakref.ref(root, lambda _: forget(key, None)) for root in roots]
        others = [None if e is root else e for root, e in zip(roots, planned, strict=True)]
        _engines[key] = found = (watch, engine, others)
    _, engine, others = found
    return engine, [root if e is None else e for root, e in zip(roots, others, strict=True)]


def _leaves(outputs: Any) -> list[Expr]:
    return [leaf if isinstance(leaf, Expr) else _number(leaf) for leaf in trees.leaves(outputs)]


def _number(leaf: Any) -> Expr:
    try:
        return as_expr(leaf)
    except TypeError as error:
        from ..compression.compress import Compressed  # numbers need none of it

        if not isinstance(leaf, Compressed):
            raise
        raise TypeError(
            "compile takes expressions: a compressed derivative is computed by "
            "tcalc.compile(e, structured=True), with the derivative that was compressed for e"
        ) from error
