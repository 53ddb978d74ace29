"""Kronecker products: A ⊗ B is solved with A and with B."""

from __future__ import annotations

from math import prod

import numpy as np

from ...support.arrays import Array
from ...support.namespaces import on_host
from ..terms.numeric_terms import Terms
from ..terms.tensor_layout import CoreProduct, TensorLayout
from .base import SolveMethod, Unsuitable
from .dense import is_symmetric
from .factors import factorise
from .kronecker_factors import factor_matrix, kronecker_factors, multiple_of, signs_of_multiples
from .kronecker_sums import EigenbasisSolver, kronecker_sum


class Kronecker:
    """One product, each factor solved alone; row and column axes of a factor may differ."""

    def __init__(self, terms: Terms) -> None:
        layout = terms.layout
        self._layout, self._shape = layout, layout.column_shape
        axes = tuple([k for k in range(layout.columns) if k not in layout.tied])
        found = kronecker_factors(layout.terms[0], axes)
        assert found is not None
        self._parts, self._coef = found, terms.coefs[0]
        self.factors, self._carried, self.matrices = [], [], []
        half, out = layout.columns, layout.terms[0].out
        self._n = [prod([self._shape[j] for j in part.rows]) for part in found]
        for number, part in enumerate(found):
            used = {label for _, word in part.factors for label in word}
            carried = tuple([j for j in layout.tied if out[j] in used])
            held = factor_matrix(terms, 0, part, carried)
            if number == 0:
                held = held * terms.dtype.type(self._coef)
            self.matrices.append(held)
            n = held.shape[-1]
            what = f"the {n} x {n} factor of axis {', '.join(map(str, part.rows))}"
            if carried:
                held = held.reshape((-1, n, n))
            self.factors.append(factorise(held, what, what + ", item"))
            self._carried.append(carried)
        self._half = half

    def solve(self, b: Array) -> Array:
        rank = self._layout.columns
        names = list(range(rank + 1))  # rows, and the right-hand sides last
        x = b
        for part, factor, carried in zip(self._parts, self.factors, self._carried, strict=True):
            rest = [k for k in names if k not in carried and k not in part.rows]
            order = [*carried, *part.rows, *rest]
            sizes = dict(zip(names, x.shape, strict=True))
            x = x.transpose([names.index(k) for k in order])
            lead = [sizes[k] for k in carried]
            n = prod([sizes[k] for k in part.rows])
            more = [sizes[k] for k in rest]
            x = factor.solve(x.reshape(([prod(lead)] if carried else []) + [n, prod(more)]))
            x = x.reshape((*lead, *(self._shape[k] for k in part.columns), *more))
            names = [*carried, *(rank + 1 + k for k in part.columns), *rest]
        goal = [k if k in self._layout.tied else rank + 1 + k for k in range(rank)]
        return x.transpose([names.index(k) for k in (*goal, rank)])

    @property
    def negatives(self) -> float:
        """From the signature, the positive eigenvalues less the negative ones: it multiplies.

        Crossed factors A and c A' are congruent to the exchange of two axes for c > 0, so that
        their signature is the number of rows.
        """
        parts, tied = [(p.rows, p.columns) for p in self._parts], self._layout.tied
        signature = np.ones([self._shape[j] for j in tied])
        for k, (rows, columns) in enumerate(parts):
            twin = parts.index((columns, rows)) if (columns, rows) in parts else None
            if twin is None or self._carried[twin] != self._carried[k]:
                return float("nan")
            if twin == k:
                found = self._n[k] - 2 * np.asarray(self.factors[k].negatives, np.float64)
            elif twin > k:
                pair = [on_host(self.matrices[j]) for j in (twin, k)]
                found = self._n[k] * signs_of_multiples(pair[0].mT, pair[1])
            else:
                continue
            carried = self._carried[k]
            signature *= found.reshape([self._shape[j] if j in carried else 1 for j in tied])
        return (self._layout.size - float(signature.sum())) / 2

    def slogdet(self) -> tuple[float, float]:
        size, sign, log = self._layout.size, 1.0, 0.0
        for n, factor, carried in zip(self._n, self.factors, self._carried, strict=True):
            times = size // max(1, n * prod([self._shape[k] for k in carried]))
            signs, logs = factor.slogdet()
            sign *= float(np.prod(signs)) ** times
            log += times * float(np.sum(logs))
        rows = [k for part in self._parts for k in part.rows]
        columns = [k for part in self._parts for k in part.columns]
        for order in (rows, columns):
            axes = [k for k in range(self._layout.columns) if k not in self._layout.tied]
            tied = prod([self._shape[k] for k in self._layout.tied])
            sign *= _sign(order, [self._shape[k] for k in axes], axes) ** tied
        return sign, log

    def slogdets(self) -> list[tuple[float, float]]:
        """Sign and logarithm of the determinant of every factor."""
        found = [factor.slogdet() for factor in self.factors]
        return [(float(np.prod(s)), float(np.sum(v))) for s, v in found]

    def scale_of_square(self) -> float:
        """The c of a product c A ⊗ A with symmetric A.

        Raises
        ------
        Unsuitable
            If the product has another form.
        """
        if len(self._parts) != 2:
            raise Unsuitable("not two parts")
        first, second = self.matrices
        if first.shape != second.shape or not is_symmetric(second):
            raise Unsuitable("two different parts")
        return multiple_of(first, second)

    def inverse(self) -> Terms:
        rank, shape, tied = self._layout.columns, self._shape, self._layout.tied
        second = {k: k if k in tied else rank + k for k in range(rank)}
        factors, cores = [], []
        for k, (part, factor, carried) in enumerate(
            zip(self._parts, self.factors, self._carried, strict=True)
        ):
            sizes = [shape[j] for j in (*carried, *part.columns, *part.rows)]
            cores.append(factor.inverse().reshape(sizes))
            factors.append((k, (*carried, *part.columns, *(second[j] for j in part.rows))))
        out = (*range(rank), *second.values())
        product = CoreProduct(tuple(factors), out, (*shape, *shape))
        return Terms(TensorLayout(self._layout.shape, rank, [product]), cores, (1.0,))


def _sign(order: list[int], sizes: list[int], axes: list[int]) -> float:
    """Sign of the permutation of entries that brings axes into an order."""
    current, extents, odd = list(axes), dict(zip(axes, sizes, strict=True)), 0
    for target, axis in enumerate(order):
        for place in range(current.index(axis), target, -1):
            before = prod([extents[k] for k in current[: place - 1]])
            after = prod([extents[k] for k in current[place + 1 :]])
            m, n = extents[current[place - 1]], extents[axis]
            odd += (m * (m - 1) // 2) * (n * (n - 1) // 2) * before * after
            current[place - 1], current[place] = current[place], current[place - 1]
    return -1.0 if odd % 2 else 1.0


def solve_methods(layout: TensorLayout, itemsize: int) -> list[SolveMethod]:
    """A product by its factors, a sum by common eigenvectors."""
    axes = tuple([k for k in range(layout.columns) if k not in layout.tied])
    shape, size = layout.column_shape, layout.size
    found: list[SolveMethod] = []
    if len(layout.terms) == 1:
        split = kronecker_factors(layout.terms[0], axes)
        if split and len(split) > 1:
            n = [prod([shape[k] for k in p.rows]) for p in split]
            text = f"Kronecker: {' ⊗ '.join(f'{k} x {k}' for k in n)}, each factored"
            flops = sum([k**3 / 3 for k in n]) + 2.0 * size * sum(n)
            found.append(
                SolveMethod(text, flops, 2.0 * itemsize * sum([k * k for k in n]), Kronecker)
            )
    together = kronecker_sum(layout)
    if together is not None:
        n = [prod([shape[k] for k in group]) for group in together.groups]
        text = f"Kronecker sum: eigenvectors of {' and '.join(f'{k} x {k}' for k in n)}"
        flops = sum([9.0 * k**3 for k in n]) + 4.0 * size * sum(n)
        found.append(
            SolveMethod(
                text, flops, itemsize * (sum([3.0 * k * k for k in n]) + size), EigenbasisSolver
            )
        )
    return found
