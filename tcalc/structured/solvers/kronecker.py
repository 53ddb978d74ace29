"""Kronecker products, and sums of them that share eigenvectors.

One product A ⊗ B is solved with A and with B. Where every term is, along each group of axes, the
identity or a multiple of one symmetric matrix (A ⊗ I + I ⊗ B, A ⊗ B + c I), the sum is diagonal in
the eigenvectors of these matrices.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from ...graph.nodes import Labels
from ...support.arrays import Array
from ...support.namespaces import namespace_of, on_host
from ...support.records import NamedTuple
from ..terms.numeric_terms import Terms
from ..terms.tensor_layout import CoreProduct, OutputIndex, TableIndex, TensorLayout
from .base import SolveMethod, Unsuitable
from .dense import greatest, is_symmetric, singular_matrix_error
from .factors import factorise


class KroneckerFactor(NamedTuple):
    """A matrix of a Kronecker product: the arrays it is made of, its row and its column axes."""

    rows: Labels
    columns: Labels
    factors: tuple[tuple[int, Labels], ...]


@lru_cache(1024)
def kronecker_factors(term: CoreProduct, axes: Labels) -> tuple[KroneckerFactor, ...] | None:
    """The term as a Kronecker product over some axes, None if it is none.

    Arrays that share a label, other than labels of tied axes, belong to one factor; scalars belong
    to the first.
    """
    half = len(term.out) // 2
    rows, columns = ([term.out[o + k] for k in axes] for o in (0, half))
    batch = {term.out[k] for k in range(half) if k not in axes}
    if term.has_tables or len({*rows}) < len(axes) or len({*columns}) < len(axes):
        return None
    groups: list[tuple[set[OutputIndex], list[tuple[int, Labels]]]] = [
        ({i}, []) for i in rows + columns
    ]
    for core, word in term.factors:
        labels: set[OutputIndex] = {i for i in word if i not in batch}
        joined = [g for g in groups if g[0] & labels]
        groups = [g for g in groups if not g[0] & labels]
        together = [f for _, factors in joined for f in factors]
        groups.append((labels.union(*(g[0] for g in joined)), [*together, (core, word)]))
    merged: list[tuple[set[OutputIndex], list[tuple[int, Labels]]]] = []
    for labels, factors in groups:
        same = next((g for g in merged if g[0] & labels), None)
        if same is None:
            merged.append((set(labels), factors))
    found, loose = [], []
    for labels, factors in merged:
        left = tuple([k for k, item in zip(axes, rows, strict=True) if item in labels])
        right = tuple([k for k, item in zip(axes, columns, strict=True) if item in labels])
        if not left and not right:
            loose += factors
        elif not (left and right) or _extent(term, left, 0) != _extent(term, right, half):
            return None
        else:
            found.append(KroneckerFactor(left, right, tuple(factors)))
    found.sort()
    if found:
        found[0] = found[0]._replace(factors=(*found[0].factors, *loose))
    return tuple(found)


def _extent(term: CoreProduct, axes: Labels, offset: int) -> int:
    """Number of entries along row axes (offset 0) or column axes of a term without tables."""
    items = [term.out[offset + k] for k in axes]
    return prod([term.extents[i] for i in items if not isinstance(i, TableIndex)])


def factor_matrix(terms: Terms, k: int, part: KroneckerFactor, carried: Labels) -> Array:
    """One factor as an array (*extents of the axes `carried`, n, n), without the coefficient."""
    term = terms.layout.terms[k]
    half = len(term.out) // 2
    items = tuple([term.out[j] for j in (*carried, *part.rows)]) + tuple(
        [term.out[half + j] for j in part.columns]
    )
    sizes = [terms.layout.column_shape[j] for j in (*carried, *part.rows, *part.columns)]
    whole: Array = terms.xp.zeros(tuple(sizes), terms.dtype)
    held = CoreProduct(part.factors, items, term.extents)
    Terms(TensorLayout(sizes, 0, [held]), terms.cores, (1.0,)).accumulate(whole, 0, items)
    n = prod(sizes[len(carried) : len(carried) + len(part.rows)])
    return whole.reshape((*sizes[: len(carried)], n, n))


class Kronecker:
    """One product, each factor solved alone; row and column axes of a factor may differ."""

    def __init__(self, terms: Terms) -> None:
        layout = terms.layout
        self._layout, self._shape = layout, layout.column_shape
        axes = tuple([k for k in range(layout.columns) if k not in layout.tied])
        found = kronecker_factors(layout.terms[0], axes)
        assert found is not None
        self._parts, self._coef = found, terms.coefs[0]
        self._factors, self._carried, self.matrices = [], [], []
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
            self._factors.append(factorise(held, what, what + ", item"))
            self._carried.append(carried)
        self._half = half

    def solve(self, b: Array) -> Array:
        rank = self._layout.columns
        names = list(range(rank + 1))  # rows, and the right-hand sides last
        x = b
        for part, factor, carried in zip(self._parts, self._factors, self._carried, strict=True):
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
    def definite(self) -> bool:
        straight = all(part.rows == part.columns for part in self._parts)
        return straight and all(factor.definite for factor in self._factors)

    def slogdet(self) -> tuple[float, float]:
        size, sign, log = self._layout.size, 1.0, 0.0
        for n, factor, carried in zip(self._n, self._factors, self._carried, strict=True):
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
        found = [factor.slogdet() for factor in self._factors]
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
        return _multiple_of(first, second)

    def inverse(self) -> Terms:
        rank, shape, tied = self._layout.columns, self._shape, self._layout.tied
        second = {k: k if k in tied else rank + k for k in range(rank)}
        factors, cores = [], []
        for k, (part, factor, carried) in enumerate(
            zip(self._parts, self._factors, self._carried, strict=True)
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


# --- sums with common eigenvectors ----------------------------------------------------------------


class KroneckerSum(NamedTuple):
    """Groups of axes; table[term][group] is the factor there, or None for the identity."""

    groups: tuple[Labels, ...]
    table: tuple[tuple[KroneckerFactor | None, ...], ...]


@lru_cache(1024)
def kronecker_sum(layout: TensorLayout) -> KroneckerSum | None:
    """The finest groups of axes over which every term is a Kronecker product, if two or more."""
    axes = tuple([k for k in range(layout.columns) if k not in layout.tied])
    found = []
    groups: list[set[int]] = [{k} for k in axes]
    for term in layout.terms:
        split = kronecker_factors(term, axes)
        batch = {term.out[k] for k in layout.tied}
        if not split or any(p.rows != p.columns for p in split):
            return None
        if any(batch.intersection(word) for _, word in term.factors):
            return None
        found.append(split)
        for part in split:
            joined = set(part.rows).union(*(g for g in groups if g & {*part.rows}))
            groups = [g for g in groups if not g & joined] + [joined]
    if len(groups) < 2:
        return None
    order = tuple(sorted([tuple(sorted(g)) for g in groups]))
    table = []
    for split in found:
        row: list[KroneckerFactor | None] = []
        for group in order:
            inside = [p for p in split if p.rows[0] in group]
            factors = tuple([f for p in inside for f in p.factors])
            row.append(KroneckerFactor(group, group, factors) if factors else None)
        table.append(tuple(row))
    return KroneckerSum(order, tuple(table))


class EigenbasisSolver:
    """A sum of Kronecker products in the eigenvectors that its terms have in common."""

    def __init__(self, terms: Terms) -> None:
        layout = terms.layout
        found = kronecker_sum(layout)
        assert found is not None
        self._layout, self.groups = layout, found.groups
        self.vectors: list[Array] = []
        values = []
        scales = np.ones((len(layout.terms), len(found.groups)))
        # Where a term is a matrix, not a number times the identity.
        full = np.zeros(scales.shape, bool)
        for g in range(len(found.groups)):
            first: Array | None = None
            for k, row in enumerate(found.table):
                if (part := row[g]) is None:
                    continue
                held = factor_matrix(terms, k, part, ())
                number = _multiple_of_identity(held)
                full[k, g] = number is None
                if number is not None:
                    scales[k, g] = number
                elif first is None:
                    first = held
                else:
                    scales[k, g] = _multiple_of(held, first)
            if first is None:
                n = prod([layout.column_shape[axis] for axis in found.groups[g]])
                first = terms.xp.eye(n, dtype=terms.dtype)
            if not is_symmetric(first) or not terms.xp.isfinite(first).all():
                raise Unsuitable("no common eigenvectors")
            w, q = terms.xp.linalg.eigh(first)
            values.append(on_host(w))
            self.vectors.append(q)
        self.values = _spectrum(values, scales, full, terms.coefs)
        self._divisors = terms.xp.asarray(self.values)
        size = np.abs(self.values)
        if size.size and not size.min() > np.finfo(terms.dtype).eps * size.max():
            n = layout.size
            raise singular_matrix_error(f"the {n} x {n} matrix", float(size.min() / size.max()))

    def solve(self, b: Array) -> Array:
        order = (*(k for group in self.groups for k in group), *self._layout.tied, b.ndim - 1)
        sizes = [b.shape[k] for k in order]
        spread = (*self.values.shape, -1)
        x = self._rotated(b.transpose(order).reshape(spread), forward=True)
        x = self._rotated(x / self._divisors[..., None], forward=False)
        return x.reshape(sizes).transpose(np.argsort(order).tolist())

    def _rotated(self, x: Array, forward: bool) -> Array:
        for axis, q in enumerate(self.vectors):
            xp = namespace_of(x)
            moved = xp.tensordot(q, x, ([0 if forward else 1], [axis]))
            x = xp.moveaxis(moved, 0, axis)
        return x

    @property
    def definite(self) -> bool:
        return bool((self.values > 0).all())

    def slogdet(self) -> tuple[float, float]:
        times = prod([self._layout.column_shape[k] for k in self._layout.tied])
        sign = float(np.prod(np.sign(self.values))) ** times
        return sign, times * float(np.log(np.abs(self.values)).sum())

    def inverse(self) -> Terms:
        rank, shape = self._layout.columns, self._layout.column_shape
        second = {k: k if k in self._layout.tied else rank + k for k in range(rank)}
        factors, cores = [], []
        eigen = tuple(range(2 * rank, 2 * rank + len(self.groups)))
        for g, group in enumerate(self.groups):
            cores.append(self.vectors[g].reshape([*(shape[k] for k in group), -1]))
            factors.append((g, (*group, eigen[g])))
            factors.append((g, (*(second[k] for k in group), eigen[g])))
        cores.append(1 / self._divisors)
        factors.append((len(self.groups), eigen))
        extents = (*shape, *shape, *self.values.shape)
        product = CoreProduct(tuple(factors), (*range(rank), *second.values()), extents)
        return Terms(TensorLayout(self._layout.shape, rank, [product]), cores, (1.0,))


def _spectrum(values: list[Array], scales: Array, full: Array, coefs: tuple[float, ...]) -> Array:
    """Eigenvalues of the sum, one axis a group."""
    total = np.zeros([len(w) for w in values], values[0].dtype)
    for k, coef in enumerate(coefs):
        term = np.asarray(coef * scales[k].prod(), total.dtype)
        for g, w in enumerate(values):
            if full[k, g]:
                spread = [1] * len(values)
                spread[g] = -1
                term = term * w.reshape(spread)
        total += term
    return total


def _multiple_of_identity(a: Array) -> float | None:
    """The number c with a = c * identity, if there is one."""
    xp = namespace_of(a)
    diagonal = xp.diagonal(a)
    if xp.count_nonzero(a) > len(a) or (diagonal != diagonal[0]).any():
        return None
    return float(diagonal[0])


def _multiple_of(a: Array, of: Array) -> float:
    """The number c with a = c * of."""
    place = int(namespace_of(of).abs(of).argmax()) if of.size else 0
    found, wanted = (float(m.ravel()[place]) if of.size else 0.0 for m in (a, of))
    if wanted == 0:
        raise Unsuitable("a zero matrix")
    scale = float(a.dtype.type(found) / of.dtype.type(wanted))
    bound = 8 * np.finfo(of.dtype).eps * abs(found)
    if not greatest(a - scale * of) <= bound:
        raise Unsuitable("two matrices that are no multiples of each other")
    return scale


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
