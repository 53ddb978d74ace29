"""Laws of signs and numbers in arguments: functions that are odd, even or linear."""

from __future__ import annotations

from collections.abc import Iterable

from ..graph.applications import apply
from ..graph.extents import ONE, Coef
from ..graph.nodes import Apply, Expr
from ..graph.normal import scale
from ..graph.products import split_coef
from .laws import law

ODD = (
    "arcsin", "arcsinh", "arctan", "arctanh", "cbrt", "erf", "sign", "sin", "sinh", "tan", "tanh",
)  # fmt: skip
LINEAR = ("cumsum", "revcumsum")
EVEN = ("abs", "cos", "cosh", "logcosh")


@law("odd-function", "sin(-x) = -sin(x)", *ODD, directed=True)
def _odd_function(e: Expr) -> Iterable[Expr | None]:
    """The sign of the argument is that of the value."""
    found = _without_sign(e)
    yield None if found is None else scale(found, Coef(-1))


@law("even-function", "cos(-x) = cos(x)", *EVEN, directed=True)
def _even_function(e: Expr) -> Iterable[Expr | None]:
    """The sign of the argument does not matter."""
    yield _without_sign(e)


@law("linear-function", "cumsum(2*x) = 2*cumsum(x)", *LINEAR, directed=True)
def _linear_function(e: Expr) -> Iterable[Expr | None]:
    """A number stands in front."""
    assert isinstance(e, Apply)
    coef, rest = split_coef(e.args[0])
    yield None if coef == ONE else scale(apply(e.op, rest, params=e.params), coef)


def _without_sign(e: Expr) -> Expr | None:
    """The function of the argument without its minus sign; None where it has none."""
    assert isinstance(e, Apply)
    (x,) = e.args
    return apply(e.op, scale(x, Coef(-1))) if split_coef(x)[0].value < 0 else None
