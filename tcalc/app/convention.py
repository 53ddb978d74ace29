"""How the axes of a derivative are ordered, in words."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.nodes import Expr

_GRADIENT = "a gradient has the shape of {wrt}"
_THOSE = "those of {wrt}"
_FIRST = "{the} of the expression, then "
#: Of any derivative.
CONVENTION = (
    f"{_GRADIENT.format(wrt='what it is taken by')}; other derivatives have"
    f" {_FIRST.format(the='the axes')}{_THOSE.format(wrt='each variable')},"
    " so that a row of a Jacobian belongs to one entry of the expression"
)


def layout(of: Expr, wrt: Sequence[str], order: int) -> str:
    """The order of the axes of one derivative.

    Parameters
    ----------
    of : Expr
        What is differentiated.
    wrt : sequence of str
        Names of variables.
    order : int
        0 for the expression itself.

    Returns
    -------
    str

    Examples
    --------
    >>> import tcalc as tc
    >>> layout(tc.parse("x'*A*x"), ["x"], 2)
    'its axes are those of x, twice'
    """
    if not order:
        return "the value of the expression"
    names = " and ".join(dict.fromkeys(wrt))
    if order == 1 and not of.shape:
        return _GRADIENT.format(wrt=names)
    first = _FIRST.format(the="those") if of.shape else ""
    times = {1: "", 2: ", twice"}.get(order, f", {order} times")
    return f"its axes are {first}{_THOSE.format(wrt=names)}{times}"
