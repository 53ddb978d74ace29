"""A distribution under SciPy's name: its methods on expressions, and SciPy's own on arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import scipy.stats

from ...graph.nodes import Expr
from ...ops.arithmetic import as_expr
from ...support.errors import UnsupportedError
from ..namespace import refusal, stacked, traced

#: A function of operands that have one shape, or stand for numbers.
Formula = Callable[..., Expr]


class Distribution:
    """The methods of one distribution.

    Parameters
    ----------
    name : str
        In `scipy.stats`.
    shapes : sequence of str
        The shape parameters, in SciPy's order.
    formulas : mapping
        By the name of a method, what it is of the variable and these parameters.
    options : mapping
        Further parameters with their defaults, which formulas take by name.
    """

    def __init__(
        self,
        name: str,
        shapes: Sequence[str],
        formulas: Mapping[str, Formula],
        options: Mapping[str, Any],
    ) -> None:
        self._theirs = getattr(scipy.stats, name)
        self._name, self._shapes, self._options = f"scipy.stats.{name}", tuple(shapes), options
        self._formulas = formulas

    def __getattr__(self, method: str) -> Any:
        theirs = getattr(self._theirs, method)
        if not callable(theirs) or method.startswith("_"):
            return theirs

        def call(*args: Any, **options: Any) -> Any:
            if not traced(args, options):
                return theirs(*args, **options)
            if method not in self._formulas:
                raise refusal(f"{self._name}.{method}", ", ".join(self._formulas))
            return self._formulas[method](*self._bound(method, args, options))

        call.__name__, call.__doc__ = method, theirs.__doc__
        return call

    def __call__(self, *args: Any, **options: Any) -> Any:
        if traced(args, options):
            raise UnsupportedError(
                f"{self._name}(...) of expressions: give the parameters to the method, as in "
                f"{self._name}.{next(iter(self._formulas))}(x, ...)"
            )
        return self._theirs(*args, **options)

    def _bound(self, method: str, args: Any, given: dict[str, Any]) -> list[Any]:
        """The variable and all parameters, in order."""
        names = (*self._shapes, *self._options)
        if method != "entropy":
            names = ("x", *names)
        values = {**self._options, **dict(zip(names, args, strict=False))}
        given = {"x" if key in ("k", "q") else key: value for key, value in given.items()}
        unknown = given.keys() - set(names)
        missing = [name for name in names if name not in values and name not in given]
        if unknown or missing or len(args) > len(names):
            what = f"no parameter {min(unknown)}" if unknown else f"missing {', '.join(missing)}"
            raise TypeError(f"{self._name}.{method}: {what}; it takes {', '.join(names)}")
        return [(values | given)[name] for name in names]


def expressions(values: Sequence[Any]) -> list[Expr]:
    """Values as expressions, lists of expressions too."""
    return [as_expr(stacked(value)) for value in values]
