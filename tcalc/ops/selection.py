"""Selection tensors: S_ij is 1 where the integer idx_i is j, and 0 elsewhere.

A gather is a product with a selection tensor: x[idx] is S_ij x_j, a sum over segments S_ij x_i. The
product rule is all that their derivatives need. Plans take entries and sum them by segments; the
array of zeros and ones is only made where somebody asks for all of its entries.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..graph.applications import apply
from ..graph.extents import Extent, Shape, form_of
from ..graph.factors import selects
from ..graph.nodes import Apply, Const, Expr
from ..graph.operators import TABLE, Kernels, Meaning, Selection
from ..graph.spelling import Spelling
from ..integers.affine import Affine
from ..support.errors import RangeError
from .affine_entries import picked, place_form
from .reductions import arange


def checked(index: Any, extent: int, what: object) -> np.ndarray[Any, Any]:
    """Integers from 0 to extent - 1; negative ones count from the end.

    Of any library's array: whether entries are in range is found out on the host. `what` is the
    index as errors name it, which is written only then.

    Raises
    ------
    RangeError
        An IndexError and a ShapeError, where one of them lies outside; TypeError for numbers that
        are not whole.
    """
    array = np.asarray(index)
    if array.dtype.kind == "f":
        wrong = ~(array == np.floor(array)) | ~(np.abs(array) < 2**53)
        if wrong.any():
            raise TypeError(f"the index {what} holds {array[wrong].flat[0]}, which is no integer")
    array = array.astype(np.intp, copy=False)
    if not array.size:
        return array
    if array.view(np.uintp).max() < extent:  # read so, those below zero are above all extents
        return array
    low, high = array.min(), array.max()
    if low < -extent or high >= extent:
        place = np.unravel_index(int(((array < -extent) | (array >= extent)).argmax()), array.shape)
        held = f" holds {array[place]}" if str(what) != str(array[place]) else ""
        held += f" at {', '.join(map(str, place))}" if place else ""
        held += "," if held else " is"
        raise RangeError(f"the index {what}{held} out of range for an axis of extent {extent}")
    return np.where(array < 0, array + extent, array)


def in_range(index: Any, extent: int) -> Any:
    """Where an array of any library holds integers that `checked` takes."""
    return (index >= -extent) & (index < extent) & (index % 1 == 0)


def _shape(params: tuple[Any, ...], shape: Shape) -> Shape:
    return (*shape, params[0])


def _kernel(xp: Any, params: tuple[Any, ...], index: Any) -> Any:
    extent = params[0]
    places = xp.asarray(checked(index, extent, ""))
    return xp.asarray(places[..., None] == xp.arange(extent), xp.float64)


SELECTION = Selection(
    "selection", (0,),
    Meaning((None,), shape=_shape, domain=((1.0, 1.0),), range=(0.0, 1.0), truth=True),
    Kernels(_kernel),
    Spelling(r"\operatorname{{selection}}({0})"),
    params=((3,), ("n",)),
)  # fmt: skip


def selection(index: Expr, extent: Extent) -> Expr:
    """The tensor that selects entries of an axis of this extent by integers.

    Constant integers are checked here where the extent is a number. All entries in their order are
    a unit tensor, those that are affine in places along axes an indicator.
    """
    if isinstance(index, Const) and isinstance(extent, int):
        places = checked(index.value, extent, index)
        if places.shape == (extent,) and (places == np.arange(extent)).all():
            index = arange(extent)
    found = picked(index, extent)
    return apply(SELECTION, index, params=(extent,)) if found is None else found


def wraps(e: Expr) -> bool:
    """Is it a selection tensor at integers modulo something?"""
    return selects(e) and isinstance(e.args[0], Apply) and e.args[0].op is TABLE["mod"]


def wrapped_place(e: Expr) -> Affine | None:
    """The affine form in `index(axis)` that a selection tensor takes modulo its extent."""
    if not wraps(e):
        return None
    assert isinstance(e, Apply)
    place, modulus = (place_form(side) for side in e.args[0].args)
    return place if modulus == form_of(e.params[0]) else None
