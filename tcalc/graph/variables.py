"""Variables and constants as users declare them, checked."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ..support.errors import ShapeError
from ..support.limits import for_text
from ..support.misspelt import closest_name
from ..support.whole_numbers import clipped_repr, whole_number
from .bound_variables import readable
from .canonical import WHOLE
from .extents import ONE, Extent, Shape, affine_extent, show_shape
from .factors import LabelledExpr
from .nodes import Const, Expr, Var, dimensions, intern
from .products import outer_product
from .properties import PROPERTIES, with_implied


def var(name: str, shape: Extent | Iterable[Extent] = (), **properties: bool) -> Var:
    """A variable.

    Parameters
    ----------
    name : str
        An identifier.
    shape : tuple of int and str
        Extents; names are dimensions bound by the arrays at evaluation. `()` is a scalar. A form
        in names is an extent too: ``"n-1"``, ``"m*n"``, ``"n*(n-1)/2"`` (where a quotient is exact
        for all n; ``//`` rounds down), ``"min(m,n)"``. One with a single unknown name binds it.
    **properties : bool
        Of square matrices in the last two axes, onto which derivatives are projected: {square}.
        Of entries: {entries}.

    Returns
    -------
    Var
        The same object for the same name, shape and properties.

    Examples
    --------
    >>> import tcalc as tc
    >>> tc.var("X", ("m", "n")).shape
    ('m', 'n')
    """
    if not isinstance(name, str) or not str.isidentifier(name):
        raise ValueError(f"a variable needs an identifier as name, not {name!r}")
    name = canonical_name(name)
    extents = check_shape(shape, f"the shape of {name}")
    chosen = []
    for prop, value in properties.items():
        if prop not in PROPERTIES:
            raise TypeError(f"{name}: unknown property {prop!r}{_suggested(prop)}")
        if value:
            chosen.append(prop)
    square = [prop for prop in chosen if PROPERTIES[prop].square]
    if square and (len(extents) < 2 or extents[-1] != extents[-2]):
        raise ShapeError(f"{name} is {square[0]} and so must be square, not {show_shape(extents)}")
    found: Var = intern(Var, (name, extents, tuple(sorted(with_implied(chosen)))))
    return found


def _suggested(prop: str) -> str:
    """What may be meant by an unknown property, and which ones there are."""
    known = {word: name for name, row in PROPERTIES.items() for word in (name, *row.also)}
    close = closest_name(prop.replace("-", "_").replace(" ", "_").lower(), known)
    meant = f"; did you mean `{known[close]}`?" if close else "."
    return f"{meant} Properties are {', '.join(PROPERTIES)}"


def _listed(square: bool) -> str:
    return ", ".join([f"`{name}`" for name, row in PROPERTIES.items() if row.square is square])


if var.__doc__:  # Python may leave docstrings out
    var.__doc__ = var.__doc__.format(square=_listed(True), entries=_listed(False))


def check_shape(shape: Extent | Iterable[Extent], what: str) -> Shape:
    """A shape given by a user, checked."""
    if isinstance(shape, int | str | np.integer):
        shape = (shape,)
    elif not isinstance(shape, Iterable):
        raise TypeError(f"{what}: {shape!r} is neither an extent nor a tuple of extents")
    checked: list[Extent] = []
    for extent in shape:
        if isinstance(extent, str):
            checked.append(_named_extent(str.__str__(extent), what))
        elif isinstance(extent, int | np.integer) and not isinstance(extent, bool):
            extent = whole_number(extent)
            if extent < 0:
                raise ShapeError(f"{what}: extent {extent} is negative")
            checked.append(extent)
        else:
            raise TypeError(
                f"{what}: {readable(clipped_repr(extent))} is neither an int nor a dimension name"
            )
    return tuple(checked)


@for_text
def _named_extent(extent: str, what: str) -> Extent:
    """A dimension name, or a form in such names."""
    try:
        affine_extent(extent)  # before other letters are read as digits or operators
        found = affine_extent(canonical_name(extent))
    except ValueError:
        raise ShapeError(
            f"{what}: {clipped_repr(extent, 200)} is neither a dimension name nor a form in such"
            " names, as n-1, 2*n, m*n, n*(n-1)/2 or min(m,n)"
        ) from None
    if isinstance(found, int) and found < 0:
        raise ShapeError(f"{what}: extent {extent} is negative")
    return found


def canonical_name(name: str) -> str:
    """The name as Python reads keywords: the micro sign is a mu, a ligature its letters.

    What is not a plain str becomes one: a subclass may show itself as anything.
    """
    plain = str.__str__(name)
    return plain if plain.isascii() else unicodedata.normalize("NFKC", plain)


def check_extent(extent: object, what: str) -> Extent:
    """One extent given by a user, checked."""
    (checked,) = check_shape((extent,), what)  # type: ignore[arg-type]
    return checked


def const_node(value: np.ndarray) -> Const:
    """The node of an array; the bits are copied, but all kinds of nan are one."""
    data, nan = np.ascontiguousarray(value), np.isnan(value)
    if nan.any():
        data = np.where(nan, np.array(np.nan, data.dtype), data)
    found: Const = intern(Const, (data.dtype.str, value.shape, data.tobytes()))
    return found


def by_diagonal(array: np.ndarray, leaf: Callable[[np.ndarray], Expr]) -> Expr:
    """An array as this leaf; a matrix of a diagonal, as NumPy writes it, by that of the diagonal.

    A diagonal of ones leaves a unit tensor, which is never an operand. Matrices with few rows stay
    whole: beside those that are stacked from entries their unit tensors would set free nothing.
    """
    n = len(array)
    if array.ndim != 2 or array.shape[1] != n or n < WHOLE or array[0, 1] or not array[0, 0]:
        return leaf(array)
    entries = array.diagonal().copy()
    if np.count_nonzero(array) > n or not entries.all() or not np.isfinite(entries).all():
        return leaf(array)
    factors: list[LabelledExpr] = [] if np.all(entries == 1) else [(leaf(entries), (0,))]
    return outer_product(factors, (0, 0), {0: n}, ONE)


def is_masked(value: object) -> bool:
    """Is this a masked array? NumPy's module for them is not imported just to find out."""
    # While another thread imports that module it is there without its names.
    masked = getattr(sys.modules.get("numpy.ma"), "MaskedArray", None)
    return masked is not None and isinstance(value, masked)


def check_sizes(roots: Iterable[Expr], sizes: Iterable[str]) -> None:
    """Refuse extents of what is no dimension below the roots."""
    known = dimensions(roots)
    unknown = sorted(set(sizes).difference(known))
    if unknown:
        are = "are no dimensions" if unknown[1:] else "is no dimension"
        listed = ", ".join(known) or "it has none"
        raise TypeError(f"{', '.join(unknown)} {are} of the expression ({listed})")


def checked_extent(name: str, value: Any) -> int:
    """The extent that a user gives to a dimension, checked."""
    if isinstance(value, np.ndarray) and not value.ndim:
        value = value[()]
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        what = f"{name} is a dimension; its extent is a whole number"
        raise TypeError(f"{what}, not {clipped_repr(value)}")
    return whole_number(value)
