"""The interface of solvers, and the conversions of arguments that they share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ...support.arrays import Array
from ...support.namespaces import ArrayNamespace, on_device, on_host
from ...support.records import NamedTuple
from ..terms.numeric_terms import Terms

#: The blocks of a matrix over several variables, row by row.
BlockRows = Sequence[Sequence[Terms]]


class Unsuitable(Exception):
    """The numbers lack a property that a method needs; the next method is tried."""


class Solver(Protocol):
    """A factored square tensor."""

    def solve(self, b: Array) -> Array:
        """The solution, (*column shape, k), of right-hand sides b, (*row shape, k)."""
        ...

    @property
    def negatives(self) -> float:
        """How many eigenvalues are negative; nan of a matrix that is not symmetric in five digits,
        or where that is not known."""
        ...

    def slogdet(self) -> tuple[float, float]:
        """Sign and logarithm of the absolute value of the determinant."""
        ...

    def inverse(self) -> Terms:
        """The inverse as terms."""
        ...


@runtime_checkable
class Scaling(Protocol):
    """What a factored diagonal tensor can do besides: scale vectors on both of its sides."""

    def root(self) -> Array | None:
        """D^(-1/2), of the column shape or with extents 1, where D is positive."""
        ...


class SolveMethod(NamedTuple):
    """A method of solving: its description, predicted cost, and the constructor of its `Solver`.

    `describe` gives the description of a solver where it depends on the numbers. Some are for
    arrays of the `host` only.
    """

    text: str
    flops: float
    bytes: float
    build: Callable[[Terms], Any]
    describe: Callable[[Any], str] | None = None
    host: bool = False


class ByHost:
    """A solver with arrays of the host, for right-hand sides of a device."""

    def __init__(self, solver: Solver, xp: ArrayNamespace) -> None:
        self._solver, self._xp = solver, xp

    def solve(self, b: Array) -> Array:
        found: Array = self._xp.asarray(self._solver.solve(on_host(b)))
        return found

    @property
    def negatives(self) -> float:
        return self._solver.negatives

    def slogdet(self) -> tuple[float, float]:
        return self._solver.slogdet()

    def inverse(self) -> Terms:
        return self._solver.inverse().moved(self._xp)


class Factored:
    """Properties that follow from the factors of a matrix, for users."""

    solver: Any

    @property
    def definite(self) -> bool:
        """Is the matrix symmetric, in five digits at least, and positive definite?"""
        return bool(self.solver.negatives == 0)

    def slogdet(self) -> tuple[float, float]:
        """Sign and logarithm of the absolute value of the determinant."""
        found: tuple[float, float] = self.solver.slogdet()
        return found

    def logdet(self) -> float:
        """The logarithm of the absolute value of the determinant."""
        return self.slogdet()[1]


def dense_slogdet(matrix: Array) -> tuple[float, float]:
    """Sign and logarithm of the determinant of a matrix that may be singular, by the host."""
    with np.errstate(invalid="ignore"):
        sign, log = np.linalg.slogdet(on_host(matrix))
    return float(sign), float(log)


def real_array(value: Any, what: str) -> Array:
    """A value as an array of float32 or float64; `what` names it in errors."""
    try:
        found = value if on_device(value) else np.asarray(value)
    except ValueError:
        raise TypeError(f"{what}: an array of numbers was expected") from None
    if found.dtype.kind not in "fiub":
        raise TypeError(f"{what}: real numbers were expected, not {found.dtype}")
    if found.dtype.char in "fd":
        return found
    return found.astype(np.float64)


def damping_of(value: Any) -> float:
    """The multiple of the identity to add, checked to be a finite number."""
    try:
        found = float(value) if not isinstance(value, str | bytes) else None
    except (TypeError, ValueError):
        found = None
    if found is None:
        raise TypeError(f"damping= is a number, not {value!r:.60}")
    if not np.isfinite(found):
        raise ValueError(f"damping={found} is not finite")
    return found


def not_an_array(held: Any, *_: Any, **__: Any) -> Any:
    """Refuse implicit conversion to an array: NumPy would wrap the object itself."""
    raise TypeError(
        f"{type(held).__name__} is no array: products are H @ v, sums H + H2 and "
        "H + d * tc.identity_like(H); H.todense() is an array"
    )


def read_only(array: Array) -> Array:
    """A view that cannot be written to; of a device, which has none, the array."""
    if on_device(array):
        return array
    found: Array = np.asarray(array).view()
    found.flags.writeable = False
    return found
