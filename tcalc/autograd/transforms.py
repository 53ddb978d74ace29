"""Autograd's transforms of functions of arrays, by ours.

`argnum` is the position of the argument that derivatives are by, or a tuple of positions;
arguments may be nested lists, tuples and dicts of arrays.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph import trees
from ..graph.nodes import Expr
from ..numpy import adapters
from ..ops.arithmetic import as_expr, square, tensordot
from ..ops.constructors import ones_like
from ..ops.reshape import reshape
from ..run import transforms
from ..run.compile import compile

Function = Callable[..., Any]
Argnum = int | Sequence[int]


def grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The gradient of a scalar function, in the structure of the argument."""
    derived: Function = transforms.grad(_scalar(fun), argnums=argnum)
    return derived


def value_and_grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The value of a scalar function and its gradient."""
    derived: Function = transforms.value_and_grad(_scalar(fun), argnums=argnum)
    return derived


def jacobian(fun: Function, argnum: Argnum = 0) -> Function:
    """The Jacobian, of the output's shape and then the argument's."""
    derived: Function = transforms.jacobian(fun, argnums=argnum)
    return derived


def hessian(fun: Function, argnum: Argnum = 0) -> Function:
    """The second derivatives, of the output's shape and then twice the argument's."""
    return jacobian(jacobian(fun, argnum), argnum)


#: Numbers are real.
holomorphic_grad = grad


def isbox(value: Any) -> bool:
    """Is this a traced value?"""
    return isinstance(value, Expr)


def _scalar(fun: Function) -> Function:
    """The function with a scalar in place of an array of one entry, which autograd takes as one."""

    @functools.wraps(fun)
    def scalar(*args: Any, **options: Any) -> Any:
        found = fun(*args, **options)
        one = isinstance(found, Expr) and found.ndim and set(found.shape) == {1}
        return reshape(found, ()) if one else found

    return scalar


def _summed(fun: Function) -> Function:
    @functools.wraps(fun)
    def total(*args: Any, **options: Any) -> Any:
        return adapters.sum(fun(*args, **options))

    return total


def elementwise_grad(fun: Function, argnum: Argnum = 0) -> Function:
    """The gradient of the sum of the outputs: the diagonal of a diagonal Jacobian."""
    return grad(_summed(fun), argnum)


def deriv(fun: Function, argnum: int = 0) -> Function:
    """The derivative along ones, in forward mode."""

    def derivative(*args: Any, **options: Any) -> Any:
        ones = trees.unflatten(args[argnum], iter(_ones(args[argnum])))
        return transforms.jvp(fun, argnums=argnum)(*args, ones, **options)

    return derivative


def _ones(tree: Any) -> list[Any]:
    return [ones_like(x) if isinstance(x, Expr) else np.ones_like(x) for x in trees.leaves(tree)]


def grad_named(fun: Function, argname: str) -> Function:
    """The gradient by the argument of this name."""
    return grad(fun, list(inspect.signature(fun).parameters).index(argname))


def make_vjp(fun: Function, argnum: Argnum = 0) -> Function:
    """Of the arguments, the function from cotangents of the output to the argument's; the value."""
    pullback = transforms.vjp(fun, argnums=argnum)

    def at(*args: Any, **options: Any) -> tuple[Function, Any]:
        return lambda u: pullback(*args, u, **options), fun(*args, **options)

    return at


def make_jvp(fun: Function, argnum: Argnum = 0) -> Function:
    """Of the arguments, the function from a tangent to the value and the output's tangent."""
    pushforward = transforms.jvp(fun, argnums=argnum)

    def at(*args: Any, **options: Any) -> Function:
        return lambda v: (fun(*args, **options), pushforward(*args, v, **options))

    return at


def make_hvp(fun: Function, argnum: Argnum = 0) -> Function:
    """`make_vjp` of the gradient: products with the Hessian."""
    return make_vjp(grad(fun, argnum), argnum)


def hessian_tensor_product(fun: Function, argnum: int = 0) -> Function:
    """The product of the Hessian with a last argument of the shape of the argument."""
    derived: Function = transforms.hvp(_scalar(fun), argnums=argnum)
    return derived


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Function, argnum: int = 0) -> Function:
    """The product of a last argument with the Jacobian, summed over the leading axes of outputs."""

    def contracted(*args: Any, **options: Any) -> Any:
        *given, tensor = args
        return tensordot(tensor, fun(*given, **options), as_expr(tensor).ndim)

    return jacobian(contracted, argnum)


vector_jacobian_product = tensor_jacobian_product


def _half_squares(y: Any) -> Any:
    return adapters.sum(square(y), -1) * 0.5


def make_ggnvp(fun: Function, g: Function = _half_squares, f_argnum: int = 0) -> Function:
    """Products J' H J v with the Jacobian of the function and the Hessian of g at its value."""

    def at(*args: Any, **options: Any) -> Function:
        def product(v: Any) -> Any:
            y = fun(*args, **options)
            forward = transforms.jvp(fun, argnums=f_argnum)(*args, v, **options)
            return transforms.vjp(fun, argnums=f_argnum)(
                *args, transforms.hvp(g)(y, forward), **options
            )

        return product

    return at


def grad_and_aux(fun: Function, argnum: Argnum = 0) -> Function:
    """The gradient of the first output, and the second output."""

    def first(*args: Any, **options: Any) -> Any:
        return fun(*args, **options)[0]

    def both(*args: Any, **options: Any) -> tuple[Any, Any]:
        return grad(first, argnum)(*args, **options), fun(*args, **options)[1]

    return both


def multigrad_dict(fun: Function) -> Function:
    """The gradients by all arguments, by their names."""
    signature = inspect.signature(fun)

    def gradients(*args: Any, **options: Any) -> dict[str, Any]:
        bound = signature.bind(*args, **options)
        bound.apply_defaults()

        def of_names(arguments: dict[str, Any]) -> Any:
            given = inspect.BoundArguments(signature, arguments)
            return fun(*given.args, **given.kwargs)

        return dict(transforms.grad(of_names)(dict(bound.arguments)))

    return gradients


def const_graph(fun: Function, *args: Any, **options: Any) -> Function:
    """The function of its remaining positional arguments, traced once for all calls."""
    derived: Function = compile(functools.partial(fun, *args, **options))
    return derived


def checkpoint(fun: Function) -> Function:
    """The function itself: plans decide what is held, and what is computed again."""
    return fun
