"""Slices and single integers along an axis: which places they read, as affine forms."""

from __future__ import annotations

import numpy as np

from ..graph.bound_variables import is_bound, readable
from ..graph.extent_forms import floor_divided
from ..graph.extents import Extent, extent_from, form_of
from ..graph.factors import LabelledExpr
from ..graph.nodes import Expr, Var
from ..integers.affine import Affine, Constraint
from ..integers.boxes import index
from ..support.errors import TraceError
from ..support.records import NamedTuple
from ..support.whole_numbers import whole_number
from .indicator import CheckedAccess, indicator
from .outside import deferred
from .selection import checked


class Cut(NamedTuple):
    """Places start + step * i for i below an extent; `safe` where they are known to be inside."""

    start: Affine
    step: int
    extent: Extent
    safe: bool


def is_integer(key: object) -> bool:
    """Is this one integer, and no array of them?"""
    return isinstance(key, int | np.integer) and not isinstance(key, bool | np.bool_)


def cut(key: slice, extent: Extent) -> Cut | None:
    """The places of a slice; None where it is the whole axis.

    Slices of axes of a literal extent are clipped, as NumPy's are; others must fit.
    """
    for end in (key.start, key.stop, key.step):
        if isinstance(end, Expr):
            raise TraceError(
                f"the ends of a slice are numbers, not {readable(str(end)):.60}; "
                "in the body of build, pick x[i + k] and build over k"
            )
    step = 1 if key.step is None else whole_number(key.step)
    if step == 0:
        raise ValueError("a slice's step cannot be zero")
    if isinstance(extent, int):
        places = range(*key.indices(extent))
        found = Cut(Affine((), places.start), step, len(places), True)
    else:
        found = _named(key, step, form_of(extent))
    unchanged = found.start == Affine() and step == 1 and found.extent == extent
    return None if unchanged else found


def _named(key: slice, step: int, n: Affine) -> Cut:
    default = (Affine(), n) if step > 0 else (n - 1, Affine((), -1))
    ends = [
        given if end is None else _end(end, n)
        for end, given in zip((key.start, key.stop), default, strict=True)
    ]
    start, stop = ends
    span = stop - start if step > 0 else start - stop
    length = floor_divided(span + abs(step) - 1, abs(step))
    if not length.terms:
        length = Affine((), max(0, length.constant))
    low, high = (start, stop - 1) if step > 0 else (stop + 1, start)
    inside = n - 1 - high
    safe = not low.terms and low.constant >= 0 and not inside.terms and inside.constant >= 0
    return Cut(start, step, extent_from(length), safe or extent_from(length) == 0)


def _end(value: object, n: Affine) -> Affine:
    """An end of a slice; negative ones count from the end."""
    number = whole_number(value)  # type: ignore[arg-type]
    return Affine((), number) if number >= 0 else n + number


def cut_operands(e: Expr, axis: int, key: slice, found: Cut, label: int) -> list[LabelledExpr]:
    """The condition that `axis` of an operand e is where `label` of the slice says."""
    extent = e.shape[axis]
    extents = {axis: extent, label: found.extent}
    form = index(label) * found.step + found.start
    accesses: list[CheckedAccess] = []
    if not found.safe:
        access = CheckedAccess(form, extent, _shown(e, _spelled(key)))
        accesses.append(deferred(access, extents))
    return indicator(extents, [Constraint(index(axis) - form, True)], accesses)


def integer_operands(e: Expr, axis: int, key: int) -> list[LabelledExpr]:
    """The condition that `axis` of an operand e is one integer.

    Raises
    ------
    RangeError
        Where the extent is a number, and the integer is out of range, or this is out of range for
        all extents.
    """
    extent, number = e.shape[axis], whole_number(key)
    if isinstance(extent, int):
        place = Affine((), int(checked(number, extent, str(number))))
        return indicator({axis: extent}, [Constraint(index(axis) - place, True)])
    form = _end(number, form_of(extent))
    access = deferred(CheckedAccess(form, extent, _shown(e, str(number))), {})
    return indicator({axis: extent}, [Constraint(index(axis) - form, True)], [access])


def _spelled(key: slice) -> str:
    ends = ["" if end is None else str(end) for end in (key.start, key.stop)]
    return ":".join([*ends, *([] if key.step is None else [str(key.step)])])


def _shown(e: Expr, key: str) -> str:
    """The access as users write it; names of bound variables are no part of an expression."""
    return f"{e.name}[{key}]" if isinstance(e, Var) and not is_bound(e) else f"an index [{key}]"
