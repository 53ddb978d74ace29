"""How many steps a loop makes: an extent, or an integer that is computed, of a known range."""

from __future__ import annotations

from ..graph.bound_variables import is_bound, ranges, readable
from ..graph.extent_forms import least
from ..graph.extents import Extent, extent_from, form_of
from ..graph.nodes import Expr, Var
from ..graph.products import numeric_value
from ..integers.affine import Affine
from ..ops.affine_entries import integral, place_form

__all__: list[str] = []


def trip_count(n: object) -> object:
    """The extent that a number of steps is: an integer variable of shape () is the dimension of
    its name. Any other integer expression as it is.

    Raises
    ------
    TypeError
        For an expression that is no integer, or of several.
    """
    if not isinstance(n, Expr):
        return n
    if isinstance(n, Var) and n.integral and not n.ndim and not is_bound(n):
        return n.name
    value = numeric_value(n)
    if n.ndim or not integral(n) or (value is not None and value != int(value)):
        raise TypeError(f"fold: the number of steps is one integer, not {readable(str(n)):.60}")
    return n if value is None else int(value)


def most_steps(n: Expr) -> Extent:
    """The largest value of an affine form in indices of bodies around it.

    Raises
    ------
    TypeError
        Where it is no such form.
    """
    around = ranges(n)
    form = place_form(n, {id(v): Affine.of(v.name) for v in around})
    if form is None or not around:
        raise TypeError(
            f"fold: {readable(str(n)):.60} steps: say limit=, how many are made at most"
        )
    ends = {v.name: form_of(extent) - 1 for v, extent in around.items()}
    low = {name: Affine() for name in ends if form.coefficient(name) < 0}
    most = form.substitute({**ends, **low})
    # None where a body around has no steps: max(0, n - 1) as n - min(1, n).
    apart = Affine((), -most.constant)
    return extent_from(most + apart - least([most + apart, apart]))
