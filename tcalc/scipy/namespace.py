"""Names of SciPy's modules: ours where an expression is among the arguments, SciPy's elsewhere."""

from __future__ import annotations

import functools
import inspect
import types
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, cast

import numpy as np

from ..graph.nodes import Expr
from ..ops.joining import array, holds_expressions
from ..support.errors import TraceError
from ..support.misspelt import closest_name

F = TypeVar("F", bound=Callable[..., Any])

#: Options that say how SciPy computes, not what.
HARMLESS = {
    "blocksize", "check_finite", "disp", "driver", "hermitian", "lapack_driver", "lwork",
    "overwrite_a", "overwrite_ab", "overwrite_b",
}  # fmt: skip


def traced(args: tuple[Any, ...], options: Mapping[str, Any]) -> bool:
    """Is an expression among the arguments of a call, or in a list among them?"""
    return any(isinstance(v, Expr) or holds_expressions(v) for v in (*args, *options.values()))


def stands_in(module: types.ModuleType) -> Callable[[F], F]:
    """A decorator: SciPy's function of that name where no expression is among the arguments.

    Options that change nothing need no parameter of ours; others are refused by name. With an
    option that SciPy does not have, ours is called with arrays too.
    """

    def decorate(ours: F) -> F:
        name = ours.__name__
        theirs = getattr(module, name)
        known = inspect.signature(ours).parameters
        only_ours = known.keys() - inspect.signature(theirs).parameters.keys()

        @functools.wraps(ours)
        def function(*args: Any, **options: Any) -> Any:
            if not traced(args, options) and not only_ours & options.keys():
                return theirs(*args, **options)
            for option in options.keys() - known.keys():
                if option not in HARMLESS:
                    raise refusal(f"{module.__name__}.{name} with {option}=")
            given = {key: options[key] for key in options if key in known}
            return ours(*map(stacked, args), **given)

        return cast(F, function)

    return decorate


def stacked(value: Any) -> Any:
    """A list of expressions as an expression; tuples may be pairs of arguments."""
    return array(value) if isinstance(value, list) and holds_expressions(value) else value


def member(module: types.ModuleType, ours: Mapping[str, Any], name: str) -> Any:
    """What a name of a module of SciPy's is where we have no function of that name.

    Ufuncs, which have NumPy's protocol for expressions, and all that is no function are SciPy's;
    other functions refuse expressions, and say what is most like them.

    Raises
    ------
    AttributeError
        As SciPy.
    """
    theirs = getattr(module, name)
    if isinstance(theirs, np.ufunc) or not isinstance(theirs, types.FunctionType):
        return theirs

    @functools.wraps(theirs)
    def function(*args: Any, **options: Any) -> Any:
        if traced(args, options):
            raise refusal(f"{module.__name__}.{name}", closest_name(name, _own(ours)))
        return theirs(*args, **options)

    return function


def _own(members: Mapping[str, Any]) -> list[str]:
    """Names of functions that take expressions; what stands for SciPy's has its module's name."""
    functions = {k: v for k, v in members.items() if isinstance(v, types.FunctionType)}
    whole = __package__.partition(".")[0]
    return [name for name, value in functions.items() if value.__module__.startswith(whole)]


def refusal(name: str, instead: str = "") -> TraceError:
    """The error for a function that expressions do not have."""
    hint = f"; there is {instead}" if instead else ""
    return TraceError(f"{name} does not take expressions{hint}")
