"""Functions that are compiled: traced once for every structure and shapes of their arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph.bound_variables import Scope
from ..graph.captures import Captures
from .trace_inputs import TraceInputs
from .tracing import MAX_TRACES, TransformedFunction


class _Untransformed(TransformedFunction):
    """The function itself, traced in all its positional arguments."""

    def opened(self, inputs: TraceInputs, args: Sequence[Any]) -> Sequence[Any]:
        names = self.parameters + [f"argument {k}" for k in range(len(args))]
        return [inputs.nested(name, arg, True) for name, arg in zip(names, args, strict=False)]

    def transformed(self, inputs: TraceInputs, result: Any) -> Any:
        return result


class CompiledFunction:
    """A function that is traced once for every structure and shapes of its arguments.

    Of arguments that a transform passes on, a trace holds for one value of all but arrays, floats.
    """

    def __init__(
        self,
        fun: Callable[..., Any],
        compiled: Callable[..., Any],
        args: Any,
        backend: str | None,
        data: Any,
        *options: Any,
    ) -> None:
        if args is not None or data is not None:
            raise TypeError("a compiled function takes its own arguments: neither args= nor data=")
        self.function = (
            fun if isinstance(fun, TransformedFunction) else _Untransformed(fun, "compile")
        )
        self._compiled, self._backend, self._options = compiled, backend, options
        self._fun = fun
        self._kept: dict[Any, tuple[Any, Callable[..., Any]]] = {}
        #: Of arrays and floats alone, by shapes and dtypes: their names, and what is called.
        self._plain: dict[Any, tuple[Sequence[str], Callable[..., Any]]] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        """The function is traced anew, as it is then."""
        return type(self), (
            self._fun, self._compiled, None, self._backend, None, *self._options,
        )  # fmt: skip

    def __call__(self, /, *args: Any) -> Any:
        arrays = [np.asarray(a) if type(a) is float else a for a in args]
        if any(type(a) is not np.ndarray for a in arrays):
            return self._traced(args)[1]()
        args = tuple(arrays)
        key = tuple([(a.shape, a.dtype) for a in args])
        if key in self._plain:
            names, compiled = self._plain[key]
            return compiled(**dict(zip(names, args, strict=True)))
        inputs, call = self._traced(args)
        place = {id(a): k for k, a in enumerate(args)}
        given = {place.get(id(a)): v.name for v, a in inputs.values.items()}
        if given.keys() == {*range(len(args))} and len(self._plain) < MAX_TRACES:
            self._plain[key] = [given[k] for k in range(len(args))], call.func
        return call()

    def _traced(self, args: tuple[Any, ...]) -> tuple[TraceInputs, functools.partial[Any]]:
        """The inputs of a trace of these arguments, and the call of its plan with them."""
        with Scope() as scope:
            inputs = TraceInputs(scope, self.function.name, whole=True)
            self.function.opened(inputs, args)
        _, compiled = self._kept.get(inputs.key, (None, None))
        if compiled is None:
            with Captures() as captures:
                inputs, traced = self.function.traced(args, {}, whole=True)
                data = {v.name: np.array(a) for v, a in captures.arrays.items()}
            compiled = self._compiled(traced.outputs, None, self._backend, data, *self._options)
            if len(self._kept) >= MAX_TRACES:
                self._kept.pop(next(iter(self._kept)), None)
            alive = [*inputs.values, *inputs.fixed]  # found by their identity
            self._kept[inputs.key] = alive, compiled
        return inputs, functools.partial(compiled, **{v.name: a for v, a in inputs.values.items()})
