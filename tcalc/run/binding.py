"""Binding of users' data: conversion to arrays, extents of dimensions, checks of properties."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from ..graph.bound_variables import PREFIX, shown
from ..graph.captures import is_captured
from ..graph.declarations import declared
from ..graph.extents import Shape, extent_names, extent_of, show_shape, solved_for
from ..graph.nodes import Expr, Var
from ..graph.properties import Property, checked_properties, holds, is_symmetric_data
from ..graph.variables import canonical_name, check_shape, checked_extent, is_masked
from ..support.arrays import AnyArray, Array
from ..support.errors import DeclarationError, ShapeError
from ..support.given import array_of, as_numbers
from ..support.lazy_arrays import in_blocks, is_lazy
from ..support.namespaces import is_sparse, on_device
from ..support.records import NamedTuple
from .dtypes import is_of_no_dtype, is_weak


class Declared(NamedTuple):
    """A variable's declaration: name, shape, properties to check, whether it is of integers, and
    whether it is the extent of the dimension of its name.
    """

    name: str
    shape: Shape
    checked: tuple[Property, ...]
    integer: bool
    extent: bool = False

    @staticmethod
    def of(variable: Var, dimensions: Collection[str] = ()) -> Declared:
        known = is_captured(variable)  # its properties are those that its array was seen to have
        rows = () if known else tuple(checked_properties(variable.properties))
        counts = variable.integral and not variable.ndim and variable.name in dimensions
        return Declared(variable.name, variable.shape, rows, variable.integral, counts)


# --- names ----------------------------------------------------------------------------------------


def name_of(key: object, what: str) -> str:
    """The canonical name of a user's key, a str or a variable; `what` names it in errors."""
    if isinstance(key, Var):
        return key.name
    if not isinstance(key, str):
        raise TypeError(f"{what} are names or variables, not {key!r}")
    return canonical_name(key)


def by_name(values: Mapping[Any, Any], what: str = "keys of a mapping of data") -> dict[str, Any]:
    """A user's mapping with names in place of variables as keys."""
    try:
        plain = type(values) is dict and all(map(str.isascii, values))
    except TypeError:  # a key that is not a str
        plain = False
    if plain:
        return dict(values)
    if not isinstance(values, Mapping):
        raise TypeError(f"{what}: a mapping from names to arrays is wanted, not {values!r}")
    found: dict[str, Any] = {}
    for key in values:
        name = name_of(key, what)
        if name in found:
            raise TypeError(f"{what}: {name} stands twice")
        found[name] = values[key]
    return found


def absent(declared: Declared, unused: Sequence[str]) -> str:
    """The message for a variable without data; it lists unused names, which may be misspelt."""
    if declared.name.startswith(PREFIX):
        return f"{shown(declared.name)} is used outside of the body that it belongs to"
    hint = f" (not used: {', '.join(unused)})" if unused else ""
    return f"{declared.name} is missing: an array of shape {show_shape(declared.shape)}{hint}"


def argument_names(args: Sequence[str | Var] | None) -> tuple[str, ...]:
    """The names of positional arguments."""
    if args is None:
        return ()
    if isinstance(args, str | Expr) or not isinstance(args, Iterable):
        raise TypeError(f"args= is a sequence of names or variables, not {args!r}")
    names = tuple([name_of(arg, "elements of args=") for arg in args])
    for k, name in enumerate(names):
        if name in names[:k]:
            raise TypeError(f"args= has {name} twice")
    return names


# --- arrays ---------------------------------------------------------------------------------------


def to_array(value: Any, declared: Declared) -> Array:
    """The value as a native float64 or float32 array, or as integers for an integer variable."""
    name = declared.name
    if isinstance(value, Expr):
        raise TypeError(f"{name} is an expression; data are arrays and numbers")
    if is_sparse(value):
        matrix: Array = _sparse(value, declared)
        return matrix
    if on_device(value):
        found: Array = _device_array(value, declared)
        return found
    if is_masked(value):
        raise TypeError(f"{name} is a masked array; fill it first")
    try:
        array = array_of(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} is not an array of numbers: {error}") from None
    kind = array.dtype.kind
    if declared.integer:
        return _to_integers(array, name)
    if kind in "biu":
        return array.astype(np.float64)
    if kind != "f":
        what = "complex" if kind == "c" else f"of dtype {array.dtype}"
        raise TypeError(f"{name} is {what}; tcalc computes with real numbers{as_numbers(array)}")
    dtype = np.float32 if array.dtype.itemsize <= 4 else np.float64
    array = np.asarray(array, dtype)
    return array if array.flags.forc else np.ascontiguousarray(array)


def _device_array(value: Any, declared: Declared) -> AnyArray:
    """An array of a device in a dtype that plans know."""
    kind, name = value.dtype.kind, declared.name
    if kind not in "biuf":
        raise TypeError(f"{name} is of dtype {value.dtype}; tcalc computes with real numbers")
    if declared.integer:
        if kind == "f":
            raise TypeError(
                f"{name} is an integer variable, its data on the device are of dtype {value.dtype}"
            )
        return value.astype(np.int64, copy=False)
    single = kind == "f" and value.dtype.itemsize <= 4
    return value.astype(np.float32 if single else np.float64, copy=False)


def _sparse(value: Any, declared: Declared) -> Any:
    """A sparse matrix in compressed rows, each entry once."""
    name = declared.name
    others = [row for row in declared.checked if row.name != "symmetric"]
    if declared.integer or others or len(declared.shape) != 2:
        what = "of integers" if declared.integer else f"of shape {show_shape(declared.shape)}"
        what = others[0].name.replace("_", " ") if others else what
        raise TypeError(
            f"{name} is declared {what}; sparse data are for matrices without properties, or "
            "symmetric: pass .toarray()"
        )
    if value.dtype.kind not in "biuf":
        raise TypeError(f"{name} is of dtype {value.dtype}; tcalc computes with real numbers")
    single = value.dtype.kind == "f" and value.dtype.itemsize <= 4
    found = value.tocsr().astype(np.float32 if single else np.float64, copy=False)
    if not found.has_canonical_format:
        found = found.copy()
        found.sum_duplicates()
    return found


def held_entries(matrix: Any) -> int:
    """About how many entries a sparse matrix holds: rounded up, so that plans serve for many."""
    return 1 << int(matrix.nnz).bit_length()


def _to_integers(array: Array, name: str) -> Array:
    kind = array.dtype.kind
    if kind not in "biuf":
        raise TypeError(f"{name} is an integer variable, its data are of dtype {array.dtype}")
    if np.can_cast(array.dtype, np.intp):
        return np.ascontiguousarray(array, np.intp) if array.ndim else array.astype(np.intp)
    end = 2 ** (np.iinfo(np.intp).bits - 1)
    if kind == "f":
        array = array.astype(np.float64)
        wrong = ~((array >= -end) & (array < end) & (array == np.floor(array)))
    else:
        wrong = array >= end
    if wrong.any():
        entry = array[wrong].flat[0]
        beyond = ", beyond 64 bits" if np.isfinite(entry) and abs(entry) >= end else ""
        raise TypeError(f"{name} is an integer variable, its data hold {entry}{beyond}")
    return array.astype(np.intp)


def array_entry(value: Any, declared: Declared, exact: bool = False) -> tuple[Array, Any]:
    """An argument as an array, and what programs are told apart by: of sparse ones about how many
    entries they have, or exactly.
    """
    array: Any = to_array(value, declared)
    if is_sparse(array):
        count = (array.nnz,) if exact else ()
        return array, (array.shape, array.dtype.char, held_entries(array), *count)
    if on_device(array):
        return array, (array.shape, "device", array.dtype.char)
    if declared.extent and not array.ndim:
        return array, (array.shape, "weak", checked_extent(declared.name, int(array)))
    return array, (array.shape, "weak" if is_of_no_dtype(value) else array.dtype.char)


class OwnData(dict[str, Any]):
    """Values by name that nobody else can change: copied once, arrays read-only."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        super().__init__({name: _own(value, name) for name, value in values.items()})

    @staticmethod
    def of(values: Mapping[Any, Any] | None) -> OwnData:
        """The values, copied if they are not one's own already."""
        if isinstance(values, OwnData):
            return values
        return OwnData({} if values is None else by_name(values, "keys of data="))

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnData, (dict(self),)


def _own(value: Any, name: str) -> Any:
    if is_lazy(value):  # nobody can change it; what is unknown of it is counted once
        return in_blocks(value, name)
    if is_weak(value) or isinstance(value, Expr):
        return value
    copied = deepcopy(value)
    if isinstance(copied, np.ndarray):
        copied.flags.writeable = False
    return copied


# --- dimensions -----------------------------------------------------------------------------------


def wrong_axes(name: str, shape: tuple[int, ...], wanted: Shape) -> ShapeError:
    """The error for an array with more or fewer axes than its variable, and what has as many."""
    message = f"{name} has shape {show_shape(shape)}, expected {show_shape(wanted)}"
    long = tuple([extent for extent in shape if extent != 1])
    if len(long) == len(wanted):
        message += f"; np.squeeze({name}) has shape {show_shape(long)}"
    elif len(shape) == 1 and len(wanted) == 2:
        column, row = (f"np.reshape({name}, {new})" for new in ((*shape, 1), (1, *shape)))
        message += f"; one column is {column}, one row {row}"
    return ShapeError(message)


class ExtentBinding:
    """Extents of named dimensions, and for errors the argument that bound each."""

    def __init__(self) -> None:
        self.sizes: dict[str, int] = {}
        self._by: dict[str, str] = {}
        self._derived: list[tuple[str, int, str]] = []

    def bind_extent(self, name: str, extent: int) -> None:
        """An extent given by name."""
        self._bind(name, extent, f"{name}={extent}")

    def bind_array(self, declared: Declared, array: Array) -> None:
        """The extents that an array gives by its shape, or an integer by its value."""
        self.bind_shape(declared, array.shape)
        if declared.extent:
            self.bind_extent(declared.name, checked_extent(declared.name, int(array)))

    def bind_shape(self, declared: Declared, shape: Sequence[int]) -> None:
        """The extents that an array of this shape gives to its variable's dimensions."""
        name, wanted = declared.name, declared.shape
        if len(shape) != len(wanted):
            raise wrong_axes(name, tuple(shape), wanted)
        for axis, (extent, found) in enumerate(zip(wanted, shape, strict=True)):
            if isinstance(extent, str) and extent.isidentifier():
                self._bind(extent, int(found), name, axis, shape)
            elif isinstance(extent, str):
                self._derived.append((extent, int(found), f"{name} has extent {found} at {axis}"))
            elif extent != found:
                raise ShapeError(
                    f"{name} has extent {found} at index {axis}, expected {extent} "
                    f"(shape {show_shape(tuple(shape))} for {show_shape(wanted)})"
                )

    def bind_given(
        self, given: Mapping[str, Any], variables: Mapping[str, Declared], dimensions: Sequence[str]
    ) -> None:
        """Shapes of variables and extents of dimensions that a user gives in place of data."""
        for name, value in given.items():
            if name in variables:
                what = f"the shape of {name}"
                shape = check_shape(value, what)
                if any(isinstance(extent, str) for extent in shape):
                    raise TypeError(f"{what}: {value!r} is not made of whole numbers")
                self.bind_shape(variables[name], [int(extent) for extent in shape])
            elif name in dimensions:
                self.bind_extent(name, checked_extent(name, value))
            else:
                known = ", ".join([*variables, *dimensions]) or "it has none"
                raise TypeError(f"{name} is no variable or dimension of the expression ({known})")

    def _bind(
        self, name: str, extent: int, by: str, axis: int = 0, shape: Sequence[int] = ()
    ) -> None:
        known = self.sizes.setdefault(name, extent)
        other = self._by.setdefault(name, by)
        if known == extent:
            return
        where = f" at index {axis} of shape {show_shape(tuple(shape))}" if shape else ""
        raise ShapeError(
            f"dimension {name}: {by} has extent {extent}{where}, but {other} has extent {known}"
        )

    def solve(self) -> None:
        """Bind dimensions that are the only unknown ones of an extent: n by a shape ("2*n",)."""
        known = -1
        while known < len(self.sizes):
            known = len(self.sizes)
            for extent, found, what in self._derived:
                try:
                    solved = solved_for(extent, found, self.sizes)
                except ShapeError as error:
                    raise ShapeError(f"{what}; {error}") from None
                for name, value in solved.items():
                    self._bind(name, value, f"{what}, which is {extent}; so {name}")

    def require(
        self, names: Iterable[str], variables: Mapping[str, Declared], unused: Sequence[str] = ()
    ) -> None:
        """Raise TypeError where extents are missing; `unused` names data that nothing reads."""
        names = list(names)
        missing = [name for name in names if name not in self.sizes]
        if missing and self._derived:
            self.solve()
            missing = [name for name in names if name not in self.sizes]
        if not missing:
            for extent, found, what in self._derived:
                wanted = extent_of(extent, self.sizes)
                if wanted != found:
                    raise ShapeError(f"{what}, expected {extent} = {wanted}")
            return
        hints = []
        for name in missing:
            having = [d.name for d in variables.values() if name in extent_names(d.shape)]
            hints.append(" or ".join([*having, f"{name}="]))
        why = f" ({', '.join(unused)} cancelled or never stood in the expression)" if unused else ""
        what = "extent of dimension" if len(missing) == 1 else "extents of dimensions"
        verb = "is" if len(missing) == 1 else "are"
        raise TypeError(
            f"the {what} {', '.join(missing)} {verb} not known: pass {' and '.join(hints)}{why}"
        )


def cancelled(
    values: Mapping[str, Any], known: Collection[str], unbound: set[str]
) -> list[Declared]:
    """Variables that only their declarations know, with dimensions that no other one has.

    They cancelled while the expression was built: x - x is a vector of zeros, whose extent is that
    of x still. Declarations that would bind these dimensions differently say nothing, of one name
    or of a name that has others too.
    """
    found: list[tuple[bool, dict[str, int], Declared]] = []
    for name in sorted(values.keys() - set(known)) if unbound else ():
        shape, options = np.shape(values[name]), {}
        for v in declared(name):
            pairs = list(zip(v.shape, shape, strict=False))
            fits = v.ndim == len(shape) and all(n == k for n, k in pairs if isinstance(n, int))
            if fits and not v.integral:
                bound = {n: k for n, k in pairs if n in unbound}
                options[tuple(sorted(bound.items()))] = bound, Declared.of(v)
        one = [(len(options) > 1, *option) for option in options.values() if option[0]]
        found += one if len(one) == 1 else []
    sizes: dict[str, int] = {}
    for _, bound, _ in sorted(found, key=lambda each: each[0]):
        sizes = {**bound, **sizes}
    return [d for doubtful, bound, d in found if not doubtful or sizes.items() >= bound.items()]


# --- properties -----------------------------------------------------------------------------------


def check_properties(array: AnyArray, declared: Declared) -> None:
    """Raise DeclarationError for data without a property that their variable declares.

    The host looks at them, wherever they are.
    """
    if on_device(array):
        array = array.get()
    for row in declared.checked:
        if not (is_symmetric_data(array) if is_sparse(array) else holds(row, array)):
            raise DeclarationError(
                f"{declared.name} is declared {row.name.replace('_', ' ')}, but its data are not; "
                "compile(check=False) skips this"
            )
