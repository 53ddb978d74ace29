"""Inverses that stay factors: what products with them and their diagonals need is never dense."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, Protocol

import numpy as np

from ...support.arrays import Array
from ...support.namespaces import NUMPY, ArrayNamespace, on_host
from ..terms.numeric_terms import Terms
from ..terms.tensor_layout import CoreProduct, TensorLayout

#: Entries of columns of an inverse that are solved for at once.
CHUNK = 1 << 20


class FactoredMatrix(Protocol):
    """A square matrix on the host, by factors that take less memory than its inverse."""

    terms: Terms
    dtype: np.dtype[Any]
    text: str

    @property
    def nbytes(self) -> int:
        """Bytes of the factors."""
        ...

    def solve(self, b: Array, turned: bool = False) -> Array:
        """The solution for flat columns b, with the transpose where `turned`."""
        ...

    def diagonal(self) -> Array:
        """The diagonal of the inverse, flat."""
        ...


def inverse_columns(of: FactoredMatrix, turned: bool = False) -> Iterator[tuple[int, Array]]:
    """The columns of an inverse, some at a time, each time with the number of the first."""
    n = of.terms.layout.size
    step = max(1, CHUNK // max(1, n))
    for low in range(0, n, step):
        count = min(step, n - low)
        unit = np.zeros((n, count), of.dtype)
        unit[np.arange(low, low + count), np.arange(count)] = 1
        yield low, of.solve(unit, turned)


class InverseSolver:
    """The solver of an inverse: products with what it is the inverse of.

    That is one tensor, or blocks; `times` multiplies, and `solver` has the factors.
    """

    text = "products with what it is the inverse of"

    def __init__(self, of: Any, times: Callable[[Array], Array], solver: Any) -> None:
        self._of, self._times, self._solver = of, times, solver

    def solve(self, b: Array) -> Array:
        return self._times(b)

    @property
    def negatives(self) -> float:
        return float(self._solver.negatives)

    def slogdet(self) -> tuple[float, float]:
        sign, log = self._solver.slogdet()
        return sign, -log

    def inverse(self) -> Any:
        return self._of


class InverseTerms(Terms):
    """A multiple of an inverse by its factors, plus other terms.

    Its layout is that of a dense core. What reads that core has it made, at once and for good:
    whether it fits is to be asked before. `back` solves with it, where it is an inverse.
    """

    __slots__ = ("_coef", "_dense", "_more", "_turned", "_xp", "back", "of")

    is_factored = True

    def __init__(
        self,
        of: FactoredMatrix,
        back: InverseSolver | None = None,
        coef: float = 1.0,
        turned: bool = False,
        more: Terms | None = None,
        xp: ArrayNamespace = NUMPY,
    ) -> None:
        shape, columns = of.terms.layout.shape, of.terms.layout.columns
        axes = tuple(range(len(shape)))
        self.layout = TensorLayout(shape, columns, [CoreProduct(((0, axes),), axes, shape)])
        self.of, self._coef, self._turned, self._more, self._xp = of, coef, turned, more, xp
        kinds = {part.dtype for part in self.held() if part.dtype.kind == "f"}
        self.dtype = np.result_type(*kinds)
        self.coefs = (1.0,)
        self.back = back
        self._dense: Array | None = None

    def _with(self, back: InverseSolver | None = None, **changes: Any) -> InverseTerms:
        known = {"coef": self._coef, "turned": self._turned, "more": self._more, "xp": self._xp}
        return InverseTerms(self.of, back, **(known | changes))

    def __reduce__(self) -> tuple[Any, ...]:
        more = self._more and self._more.on_host()
        return InverseTerms, (self.of, self.back, self._coef, self._turned, more)

    @property
    def cores(self) -> tuple[Array, ...]:  # type: ignore[override]
        if self._dense is None:
            self._dense = self.dense()
        return (self._dense,)

    @property
    def arrays(self) -> tuple[Array, ...]:
        return self._more.arrays if self._more else ()

    def held(self) -> tuple[Any, ...]:
        return (self.of, *(self._more.held() if self._more else ()))

    @property
    def xp(self) -> ArrayNamespace:
        return self._xp

    def moved(self, xp: ArrayNamespace) -> Terms:
        return self._with(self.back, xp=xp, more=self._more and self._more.moved(xp))

    def __repr__(self) -> str:
        return f"<InverseTerms {self.layout.shape}, {self._coef} times, plus {self._more}>"

    def plus(self, other: Terms) -> Terms:
        if not other.layout.terms:
            return self
        return self._with(more=self._more.plus(other) if self._more else other)

    def shared(self) -> Terms:
        return self

    def changed(self, change: Callable[[Any], Any]) -> Terms:
        return self._with(coef=change(self._coef), more=self._more and self._more.changed(change))

    def transposed(self) -> Terms:
        return self._with(turned=not self._turned, more=self._more and self._more.transposed())

    def times(self, v: Array) -> Array:
        layout = self.layout
        further = v.shape[layout.columns :]
        flat = on_host(v).reshape(layout.size, prod(further))
        found = self._coef * self.of.solve(flat, self._turned)
        dtype = np.result_type(self.dtype, v.dtype)
        shape = (*layout.row_shape, *further)
        total: Array = self._xp.asarray(found.reshape(shape).astype(dtype, copy=False))
        if self._more:
            total += self._more.times(v)
        return total

    def diagonal(self) -> Array:
        found = (self._coef * self.of.diagonal()).reshape(self.layout.column_shape)
        total: Array = self._xp.asarray(found.astype(self.dtype, copy=False))
        if self._more:
            total += self._more.diagonal()
        return total

    def dense(self) -> Array:
        n = self.layout.size
        flat = np.empty((n, n), self.dtype)
        for low, found in inverse_columns(self.of, self._turned):
            flat[:, low : low + found.shape[1]] = self._coef * found
        whole: Array = self._xp.asarray(flat.reshape(self.layout.shape))
        if self._more:
            for k, term in enumerate(self._more.layout.terms):
                self._more.accumulate(whole, k, term.out)
        return whole

    def described(self) -> tuple[str, Terms | None]:
        """Its own part in words, and the other terms."""
        return f"the inverse of a sparse matrix by its factors: {self.of.text}", self._more
