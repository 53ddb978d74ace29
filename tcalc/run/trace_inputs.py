"""What a trace gives to a function: variables in place of arrays and expressions."""

from __future__ import annotations

from itertools import repeat
from typing import Any

import numpy as np

from ..graph import trees
from ..graph.bound_variables import Scope
from ..graph.extents import Extent
from ..graph.nodes import Expr, Var
from ..graph.normal import bare
from ..graph.variables import is_masked
from ..ops.affine_entries import integral
from ..support.excerpts import shortened
from ..support.given import array_of, as_numbers
from ..support.namespaces import is_sparse


class TraceInputs:
    """The variables of one trace, and the arrays or expressions that they are bound to.

    With `whole`, arrays and floats of arguments that are not transformed are inputs too; all else
    is `fixed`, as lists of numbers: a trace holds for this only.
    """

    def __init__(self, scope: Scope, what: str, whole: bool = False) -> None:
        self.scope, self.what, self.whole = scope, what, whole
        self.values: dict[Var, Any] = {}
        self.fixed: list[Any] = []
        self.structure: list[str] = []
        self.wrt: Any = ()
        self.direction: Any = ()
        self.items: dict[Var, Expr] = {}
        self.sizes: dict[str, Extent] = {}

    def nested(self, shown: str, given: Any, integers: bool = False) -> Any:
        """An argument with variables in place of its leaves."""
        self.structure.append(_structure(given))
        parts = zip(trees.leaves(given), trees.spelled_places(given), strict=True)
        found = [self.variable(shown, v, integers, place) for v, place in parts]
        return trees.unflatten(given, iter(found))

    def untransformed(self, shown: str, given: Any) -> Any:
        """An argument as `fun` gets it that is not transformed; sparse matrices are inputs."""
        if not self.whole and not is_sparse(given):
            return given
        self.structure.append(_structure(given))
        return self._read(shown, given)

    def _read(self, shown: str, given: Any) -> Any:
        if isinstance(given, dict):
            return {key: self._read(shown, value) for key, value in given.items()}
        if isinstance(given, tuple | list) and not all(isinstance(v, int | float) for v in given):
            read = [self._read(shown, value) for value in given]
            return type(given)(*read) if hasattr(given, "_fields") else type(given)(read)
        array = hasattr(given, "__array__") and not isinstance(given, np.integer | np.bool_)
        if array or isinstance(given, Expr | float) or is_sparse(given):
            return self.variable(shown, given, integers=True)
        self.fixed.append(repr(given) if isinstance(given, tuple | list) else given)
        return given

    def variable(self, shown: str, value: Any, integers: bool = False, place: str = "") -> Var:
        """The variable for one array or expression, at a place of the argument `shown`.

        With `integers`, what has integer entries is an integer variable: nothing is derived by it,
        and it may be sparse.
        """
        if isinstance(value, Expr):
            counts = integers and integral(bare(value))
        elif is_sparse(value) and integers:
            counts = False
        else:
            value = _array(value, shown + place, self.what)
            counts = integers and value.dtype.kind in "iu"
        v = self.scope.argument(shown, len(self.values), value.shape, counts)
        self.values[v] = value
        return v

    @property
    def key(self) -> tuple[Any, ...]:
        fixed = tuple([_by_value(value) for value in self.fixed])
        return tuple(self.structure), tuple(map(id, self.values)), fixed


def _structure(given: Any) -> str:
    """The text of a nest without its leaves: lists and tuples are apart."""
    return repr(trees.unflatten(given, repeat(0)))


def _by_value(value: Any) -> Any:
    """What equal values of one type share: 2, 2.0 and True are apart; objects are themselves."""
    try:
        return type(value), hash(value), value
    except TypeError:
        return id(value)


def _array(value: Any, shown: str, what: str) -> np.ndarray:
    if is_masked(value):
        raise TypeError(f"{what}: {shown} is a masked array; fill it first")
    wrong = f"{what}: {shown} is not an array of real numbers: "
    try:
        array = array_of(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{wrong}{error}") from None
    if array.dtype.kind not in "biuf":
        raise TypeError(
            f"{wrong}{shortened(repr(value), 60)}{as_numbers(array)}; arguments are numbers, "
            "arrays, and tuples, lists, dicts and namedtuples of these"
        )
    return array
