"""Random steps that sort entries along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.jets import Jet
from tests.random_operations import Context, Operation

if TYPE_CHECKING:
    from tests.random_programs import Generator


def _sort(g: Generator) -> None:
    k = g.value()
    if ndim := len(g.shapes[k]):
        g.emit("sort", [k], g.shapes[k], axis=g.below(ndim))


def _sorted(c: Context, args: Sequence[Any], axis: int) -> Any:
    return c.xp.sort(args[0], axis=axis)


def _sorted_jet(c: Context, args: Sequence[Jet], axis: int) -> Jet:
    order = np.argsort(args[0].v, axis=axis, kind="stable")

    def moved(a: np.ndarray) -> np.ndarray:
        where = order.reshape(*order.shape, *[1] * (a.ndim - order.ndim))
        return np.take_along_axis(a, where, axis)

    return args[0].map(moved)


def _draw_end(g: Generator) -> None:
    k = g.value()
    shape = g.shapes[k]
    if len(shape) in (1, 2) and all(map(g.size, shape)):
        axis = g.below(len(shape))
        rest = [e for place, e in enumerate(shape) if place != axis]
        g.emit("end", [k], rest, axis=axis, place=g.pick([0, -1]))


def _end(c: Context, args: Sequence[Any], axis: int, place: int) -> Any:
    return _sorted(c, args, axis)[(slice(None),) * axis + (place,)]


def _end_jet(c: Context, args: Sequence[Jet], axis: int, place: int) -> Jet:
    return _sorted_jet(c, args, axis)[(slice(None),) * axis + (place,)]


ORDERS = {
    "sort": Operation(_sort, _sorted, _sorted_jet, 4),
    "end": Operation(_draw_end, _end, _end_jet),
}
