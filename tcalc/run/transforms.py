"""The transforms as users call them: of expressions, or of Python functions on arrays."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..calculus import batch_axes, directional, transforms
from ..graph import trees
from ..graph.extents import Extent
from ..graph.nodes import Expr
from ..support.errors import TraceError
from .tracing import BatchedFunction, DerivativeFunction, TransformedFunction

__all__ = [
    "derivative",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "value_and_grad",
    "vjp",
    "vmap",
]


def _transform(
    on_expressions: Callable[..., Any],
    directions: str = "",
    several: bool = False,
    transposed: bool = False,
) -> Callable[..., Any]:
    """The transform of expressions, which takes Python functions too."""
    name = on_expressions.__name__

    @functools.wraps(on_expressions)
    def transform(f: Any, /, *args: Any, **options: Any) -> Any:
        if not trees.is_function(f):
            return on_expressions(f, *args, **options)
        return of_function(f, *args, **options)

    def of_function(
        fun: Callable[..., Any], argnums: int | Sequence[int] = 0, /, *args: Any, **options: Any
    ) -> TransformedFunction:
        argnums = options.pop("argnums", argnums)

        def derived(result: Any, wrt: Any, *more: Any) -> Any:
            def apply(e: Expr) -> Any:
                return on_expressions(e, wrt, *more, *args, **options)

            if transposed:
                return _cotangents(on_expressions, result, wrt, more[0], *args, **options)
            if several:
                return trees.mapped(apply, result)
            if not isinstance(result, Expr):
                raise TraceError(f"{name} is of a function that gives one array, not a nest")
            return apply(result)

        given = (*args, *sorted(options.items()))
        made = DerivativeFunction(fun, name, argnums, derived, bool(directions), given)
        made.again = _anew, (name, (fun, argnums, *args), options)
        return made

    more = f", and at last {directions}" if directions else ""
    transform.__doc__ = f"""{on_expressions.__doc__}

    Notes
    -----
    Of a Python function of arrays, ``{name}(fun, argnums=0)`` is a function of the same
    arguments{more}. `argnums` are the positions of those that derivatives are by: arrays, or nests
    of them. Python runs at every call; plans are kept by what it computes.
    """
    return transform


def _anew(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """The transform of a function, when it is unpickled."""
    return globals()[name](*args, **options)


def _cotangents(
    pullback: Callable[..., Any], result: Any, wrt: Any, cotangent: Any, *args: Any, **options: Any
) -> Any:
    """The cotangents of variables: the sum of those from all parts of a nested result."""
    parts, given = trees.leaves(result), trees.leaves(cotangent)
    if len(parts) != len(given):
        raise TraceError(f"vjp: {len(given)} cotangents for {len(parts)} results")
    found = [pullback(e, wrt, u, *args, **options) for e, u in zip(parts, given, strict=True)]
    if len(found) == 1:
        return found[0]
    sums = [sum(each[1:], each[0]) for each in zip(*map(trees.leaves, found), strict=True)]
    return trees.rebuild(found[0], sums)


derivative = _transform(transforms.derivative, several=True)
grad = _transform(transforms.grad)
value_and_grad = _transform(transforms.value_and_grad)
jacobian = _transform(transforms.jacobian, several=True)
hessian = _transform(transforms.hessian)
hvp = _transform(directional.hvp, "the direction")
jvp = _transform(directional.jvp, "the direction", several=True)
vjp = _transform(directional.vjp, "the cotangent of the result", transposed=True)


@functools.wraps(batch_axes.vmap)
def vmap(e: Any, /, in_axes: Any = 0, size: Extent | None = None, out_axes: Any = 0) -> Any:
    if not trees.is_function(e):
        return batch_axes.vmap(e, in_axes, size, out_axes)
    if size is not None:
        raise TypeError("vmap of a function: the arrays have the size of the batch, not size=")
    return BatchedFunction(e, in_axes, out_axes)
