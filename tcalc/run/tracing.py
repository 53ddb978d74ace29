"""Transforms of Python functions on arrays: traced with variables, then transformed as expressions.

The function is traced at every call, so it may depend on outside state; operations that were asked
for before are found instead of built, and plans are cached by the expressions that a trace gives.
Arrays that the function captures are inputs of the plan. A function that is called with expressions
returns expressions, so transforms nest.
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import nullcontext
from typing import Any
from weakref import WeakKeyDictionary

from ..calculus.batch_axes import with_axes_at
from ..calculus.batching import with_batch_axis
from ..graph import trees
from ..graph.bound_variables import Scope, refuse_strays
from ..graph.captures import Captures, current, without_captures
from ..graph.nodes import Expr, Var, variables
from ..graph.normal import bare, view
from ..graph.retracing import Retrace
from ..loops.build import body_results
from ..loops.rolling import rolled
from ..ops.arithmetic import as_expr, check_axis
from ..ops.indexing import index_expr
from ..rules.strategy import substitute
from ..support.errors import ShapeError, TraceError
from ..support.records import NamedTuple
from .compiled import Compiled
from .trace_inputs import TraceInputs

#: Traces whose plans a function caches.
MAX_TRACES = 64


class Traced(NamedTuple):
    """What is kept of a trace.

    Attributes
    ----------
    nodes : list of Expr
        Kept alive, as it is found by their identity.
    outputs : Expr or a nest of Expr
    names : set-like of str
        The variables of the outputs.
    compiled : Compiled
    stacks : list of sequences of Var
        Captured arrays that it reads as one.
    """

    nodes: list[Expr]
    outputs: Any
    names: Set[str]
    compiled: Compiled
    stacks: list[Sequence[Var]]


#: By function, and by what is made of it: traces, and operations that are found again.
_known: WeakKeyDictionary[Any, dict[Any, tuple[dict[Any, Traced], Retrace]]] = WeakKeyDictionary()


class TransformedFunction(ABC):
    """A transformed function: computes with arrays, maps expressions to expressions.

    What traces gave is kept with the function that is traced, so that a transform which is made
    anew for every call, ``tc.grad(loss)(w)``, finds it again.

    Attributes
    ----------
    fun : callable
        What is traced.
    options : tuple
        What tells this transform of the function from others.
    """

    def __init__(self, fun: Callable[..., Any], name: str, *options: Any) -> None:
        self.fun, self.name, self.options = fun, name, (type(self), name, *options)
        self.__name__ = f"{name} of {getattr(fun, '__name__', 'a function')}"
        self.__doc__ = fun.__doc__
        self._kept, self._retrace = _known_of(self)

    @functools.cached_property
    def parameters(self) -> list[str]:
        """The names of positional parameters, for error messages."""
        try:
            found = inspect.signature(self.fun).parameters.values()
        except (TypeError, ValueError):
            return []
        return [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]

    @abstractmethod
    def opened(self, inputs: TraceInputs, args: Sequence[Any]) -> Sequence[Any]:
        """The arguments for the call of `fun`, with variables in place of what is traced."""

    @abstractmethod
    def transformed(self, inputs: TraceInputs, result: Any) -> Any:
        """The transform of what `fun` returned, a pytree of expressions."""

    def __call__(self, /, *args: Any, **options: Any) -> Any:
        own = Captures()
        with own as captures:
            inputs, found = self.traced(args, options)
            values = {**inputs.values, **captures.arrays}
            given = {v.name: value for v, value in values.items()}
            numeric = not any(isinstance(value, Expr) for value in values.values())
            numeric = numeric and found.names <= given.keys()
            if captures is not own and not numeric:
                return _substituted(found.outputs, inputs.values)
        if numeric:
            return found.compiled(**given)
        return _substituted(found.outputs, values)

    def traced(
        self, args: Sequence[Any], options: Mapping[str, Any], whole: bool = False
    ) -> tuple[TraceInputs, Traced]:
        """The inputs of a trace, and what is kept of it."""
        with Scope() as scope:
            inputs = TraceInputs(scope, self.name, whole)
            try:
                opened = self.opened(inputs, args)
                # Inside of a body what the function reads may be new each time.
                with nullcontext() if scope.depth else self._retrace:
                    result = self.fun(*opened, **options)
            except TypeError as error:
                listed = [n for n, a in zip(self.parameters, args, strict=False) if _is_listed(a)]
                if not listed or isinstance(error, TraceError):
                    raise
                raise TypeError(
                    f"{error}; `{listed[0]}` is a list of numbers, a nest of which each is a "
                    f"variable: give an array, np.array({listed[0]})"
                ) from error
            except ValueError as error:  # NumPy's, where an entry of an array is set
                if isinstance(error.__cause__, TraceError):
                    raise error.__cause__ from None
                raise
            exprs = body_results(result, self.name)
            shape = trees.mapped(lambda _: 0, result)
            key = (repr(shape), inputs.key, tuple(map(id, exprs)))
            found = self._kept.get(key)
            if found is None:
                refuse_strays(exprs)
                stacks = _Stacks()
                with without_captures():
                    steps = exprs if scope.depth else rolled(exprs, stacks)
                    outputs = self.transformed(inputs, trees.rebuild(shape, steps))
                if len(self._kept) >= MAX_TRACES:
                    self._kept.pop(next(iter(self._kept)), None)
                nodes = [*exprs, *inputs.values]
                names = variables(trees.leaves(outputs)).keys()
                compiled = Compiled(outputs, None, None, None, None, True)
                found = self._kept[key] = Traced(nodes, outputs, names, compiled, stacks.made)
            _Stacks().make(found.stacks)
            return inputs, found


def _known_of(transform: TransformedFunction) -> tuple[dict[Any, Traced], Retrace]:
    """What is known of a transform of a function: of equal ones of one function the same."""
    fun: Any = transform
    path: list[Any] = []
    while isinstance(fun, TransformedFunction):
        path += fun.options
        fun = fun.fun
    if inspect.ismethod(fun):  # one more object at every call, of an object that lasts
        path.append(fun.__func__)
        fun = fun.__self__
    try:
        return _known.setdefault(fun, {}).setdefault(tuple(path), ({}, Retrace()))
    except TypeError:  # a function that nothing can be kept with, or options that are no keys
        return {}, Retrace()


def _is_listed(argument: Any) -> bool:
    return isinstance(argument, list) and all(isinstance(a, int | float) for a in argument)


class _Stacks:
    """Arrays that are captured in the steps of a loop, as one."""

    def __init__(self) -> None:
        self._captures = current()
        self.made: list[Sequence[Var]] = []

    def __call__(self, rows: Sequence[Var]) -> Var | None:
        self.made.append(rows)
        return None if self._captures is None else self._captures.stacked(rows)

    def make(self, stacks: Iterable[Sequence[Var]]) -> None:
        for rows in stacks:
            self(rows)


def _substituted(outputs: Any, values: Mapping[Var, Any]) -> Any:
    """A pytree of expressions with values substituted for variables."""
    given: dict[Var, Expr] = {}
    for v, value in values.items():
        given[v] = index_expr(value) if v.integral else as_expr(value)
    return trees.mapped(lambda e: substitute(bare(e), given), outputs)


# --- derivatives ----------------------------------------------------------------------------------


class DerivativeFunction(TransformedFunction):
    """Derivatives by arguments; with `directions`, the last argument is the direction.

    `again` is how it is made anew from a pickle.
    """

    again: tuple[Any, ...]

    def __init__(
        self,
        fun: Callable[..., Any],
        name: str,
        argnums: int | Sequence[int],
        transform: Callable[..., Any],
        directions: bool = False,
        options: tuple[Any, ...] = (),
    ) -> None:
        chosen = [argnums] if isinstance(argnums, int) else list(argnums)
        super().__init__(fun, name, isinstance(argnums, int), *chosen, *options)
        self.argnums, self.transform, self.directions = argnums, transform, directions
        if not all(isinstance(k, int) and not isinstance(k, bool) for k in chosen):
            call = f"; of a function say {name}(fun)(w, direction)" if directions else ""
            raise TypeError(
                f"{name}: argnums is an int or a tuple of them, not {argnums!r:.60}{call}"
            )
        self._chosen: list[int] = chosen

    def __reduce__(self) -> tuple[Any, ...]:
        return self.again

    def opened(self, inputs: TraceInputs, args: Sequence[Any]) -> Sequence[Any]:
        if self.directions:
            if not args:
                raise TypeError(f"{self.name}: the last argument is the direction")
            *args, direction = args
        for k in self._chosen:
            if not -len(args) <= k < len(args):
                told = " before the direction, which is the last" if self.directions else ""
                raise TypeError(f"{self.name}: argument {k} is missing: {len(args)} given{told}")
        chosen, opened = [k % len(args) for k in self._chosen], list(args)
        names = self.parameters + [f"argument {k}" for k in range(len(self.parameters), len(args))]
        for k in chosen:
            opened[k] = inputs.nested(names[k], args[k])
        for k in {*range(len(args))} - {*chosen}:
            opened[k] = inputs.untransformed(names[k], args[k])
        wrt = [opened[k] for k in chosen]
        inputs.wrt = wrt[0] if isinstance(self.argnums, int) else tuple(wrt)
        if self.directions:
            inputs.direction = inputs.nested("direction", direction)
        return opened

    def transformed(self, inputs: TraceInputs, result: Any) -> Any:
        more = [inputs.direction] if self.directions else []
        return self.transform(result, inputs.wrt, *more)


# --- batches --------------------------------------------------------------------------------------


class BatchedFunction(TransformedFunction):
    """A function of one item, for all items of a batch."""

    def __init__(self, fun: Callable[..., Any], in_axes: Any, out_axes: Any) -> None:
        super().__init__(fun, "vmap", repr((in_axes, out_axes)))
        self.in_axes, self.out_axes = in_axes, out_axes

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.fun, self.in_axes, self.out_axes)

    def opened(self, inputs: TraceInputs, args: Sequence[Any]) -> Sequence[Any]:
        axes = self.in_axes
        if not isinstance(axes, tuple | list):
            axes = [axes] * len(args)
        if len(axes) != len(args):
            raise TypeError(f"vmap: in_axes={self.in_axes!r} for {len(args)} arguments")
        names = self.parameters + [""] * len(args)
        opened = [
            self._items(inputs, names[k] or f"argument {k}", arg, axis)
            for k, (arg, axis) in enumerate(zip(args, axes, strict=True))
        ]
        if len(set(inputs.sizes.values())) != 1:
            shown = ", ".join(f"{size} ({name})" for name, size in inputs.sizes.items())
            raise ShapeError(
                f"vmap: the batches have different extents: {shown}" if shown
                else f"vmap: no argument has a batch axis (in_axes={self.in_axes!r})"
            )  # fmt: skip
        return opened

    def _items(self, inputs: TraceInputs, shown: str, given: Any, axis: Any) -> Any:
        """An argument, or a nest of them, of one item."""
        if axis is None:
            return inputs.untransformed(shown, given)
        if isinstance(given, dict):
            each = axis if isinstance(axis, dict) else dict.fromkeys(given, axis)
            return {k: self._items(inputs, shown, v, each[k]) for k, v in given.items()}
        if isinstance(given, tuple | list):
            several = axis if isinstance(axis, tuple | list) else [axis] * len(given)
            parts = zip(given, several, strict=True)
            return trees.unflatten(
                given, iter([self._items(inputs, shown, g, a) for g, a in parts])
            )
        v = inputs.variable(shown, given, integers=True)
        place = check_axis(axis, v.ndim, f"vmap: {shown}")
        inputs.sizes[shown] = v.shape[place]
        rest = [k for k in range(v.ndim) if k != place]
        item = inputs.scope.argument(
            f"{shown}_item", len(inputs.items), tuple([v.shape[k] for k in rest]),
            v.integral,
        )  # fmt: skip
        inputs.items[item] = view(v, [place, *rest])
        return item

    def transformed(self, inputs: TraceInputs, result: Any) -> Any:
        (size,) = set(inputs.sizes.values())
        found = with_batch_axis(trees.leaves(result), inputs.items, size)
        return with_axes_at(result, found, self.out_axes)


# --- compiled functions ---------------------------------------------------------------------------
