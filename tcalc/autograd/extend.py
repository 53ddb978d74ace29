"""Functions that derivatives do not look into, and their rules; what traced values are."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..calculus.black_boxes import PULLBACKS, PUSHFORWARDS, black_box
from ..support.errors import UnsupportedError
from .transforms import isbox
from .vector_spaces import vspace as vspace

Function = Callable[..., Any]

#: A function of arrays as an operator of its own: derivatives take what `defvjp` and `defjvp` say.
primitive = black_box
#: The rules of reverse mode, by the functions.
primitive_vjps = PULLBACKS


def isinstance(value: Any, kinds: Any) -> bool:
    """Python's `isinstance`, for which a traced value is the array or number that it stands for."""
    if isbox(value):
        value = np.empty(0) if value.ndim else np.float64(0)
    return builtins.isinstance(value, kinds)


def defvjp(
    fun: Function, *vjpmakers: Function | None, argnums: Sequence[int] | None = None
) -> None:
    """State pullbacks, one an argument: of the value and the arguments, a function of cotangents.

    Parameters
    ----------
    fun : callable
        What `primitive` gave.
    *vjpmakers : callable or None
        ``maker(ans, *args, **options)`` is a function from a cotangent of the value to that of the
        argument, by functions that have derivatives themselves. None: zero.
    argnums : sequence of int, optional
        The arguments, by default the first ones in turn.
    """
    makers = dict(zip(argnums or range(len(vjpmakers)), vjpmakers, strict=True))

    def rule(argnum: int, ans: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        maker = _of_argument(fun, makers, argnum)
        return maker and maker(ans, *args, **options)

    PULLBACKS[fun] = rule


def defvjp_argnum(fun: Function, vjpmaker: Function) -> None:
    """State pullbacks by one function: of the argument's number, the value and all arguments."""
    PULLBACKS[fun] = vjpmaker


def defvjp_argnums(fun: Function, vjpmaker: Function) -> None:
    """State pullbacks by one function of the numbers of several arguments, which gives as many."""

    def rule(argnum: int, ans: Any, args: Sequence[Any], options: dict[str, Any]) -> Function:
        pulled = vjpmaker((argnum,), ans, args, options)
        return lambda u: next(iter(pulled(u)))

    PULLBACKS[fun] = rule


def defjvp(
    fun: Function, *jvps: Function | str | None, argnums: Sequence[int] | None = None
) -> None:
    """State pushforwards, one an argument: ``jvp(tangent, ans, *args, **options)``.

    Without any, forward mode takes the Jacobian that pullbacks give. "same" is a function that is
    linear in the argument; None: zero.
    """
    given = dict(zip(argnums or range(len(jvps)), jvps, strict=True))

    def rule(argnum: int, ans: Any, args: Sequence[Any], options: dict[str, Any]) -> Any:
        jvp = _of_argument(fun, given, argnum)
        if jvp == "same":
            return lambda v: fun(*args[:argnum], v, *args[argnum + 1 :], **options)
        return jvp and (lambda v: jvp(v, ans, *args, **options))

    PUSHFORWARDS[fun] = rule


def defjvp_argnum(fun: Function, jvpmaker: Function) -> None:
    """State pushforwards by one function: of the argument's number, the tangent, and the rest."""
    PUSHFORWARDS[fun] = lambda argnum, ans, args, options: (
        lambda v: jvpmaker(argnum, v, ans, args, options)
    )


def def_linear(fun: Function) -> None:
    """State that a function is linear in every argument."""
    defjvp_argnum(
        fun,
        lambda k, v, ans, args, options: fun(*args[:k], v, *args[k + 1 :], **options),
    )  # fmt: skip


def _of_argument(fun: Function, rules: dict[int, Any], argnum: int) -> Any:
    if argnum not in rules:
        name = getattr(fun, "__name__", "the function")
        raise UnsupportedError(f"{name} has no derivative by argument {argnum}: none is stated")
    return rules[argnum]
