"""Compression: a tensor as cores and the unit tensors around them.

A derivative is a sum of products whose repeated output labels are unit tensors. Factors that share
labels are one core, the output labels say how cores are embedded. Cores that share no label stay
separate, as in an outer or Kronecker product (Laue et al. 2020, section 3). A selection tensor
becomes an output index that is read from a table of integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from functools import cached_property
from typing import Any

import numpy as np

from ..graph import trees
from ..graph.extents import (
    NOMINAL,
    ONE,
    Coef,
    Extent,
    Shape,
    extent_names,
    extent_of,
    number,
    show_shape,
)
from ..graph.factors import indicates
from ..graph.nodes import Derivative, Einsum, Expr, Labels, Var, dimensions
from ..graph.products import filled
from ..ops.arithmetic import as_expr
from ..structured.terms.tensor_layout import CoreProduct, TableIndex, TensorLayout
from ..support.errors import ShapeError, UnsupportedError
from ..support.given import no_expression
from ..support.records import record
from .bands import Table
from .core_terms import (
    Term,
    UngroupedTerm,
    as_low_rank,
    grouped_terms,
    merge_dense,
    ungrouped_term,
    with_tables,
)
from .open_contractions import all_as_factors, opened
from .solutions import Formula, SymbolicTerms, formula
from .summands import summands

_AXIS_LETTERS = "ijklmnpqrstuvwxyzabcdefgh"


@record(frozen=True)
class Compressed:
    """What `compress` returns: the symbolic cores and unit tensors of an expression.

    Attributes
    ----------
    shape : tuple
        Shape of the whole tensor.
    terms : tuple of Term
        Their sum is the tensor (before projection onto properties of variables).
    cores : tuple of Expr
        The distinct cores of all terms, tables included.
    columns : int
        Number of trailing axes that a product with a vector sums over.
    slots : tuple of (int, Var)
        First axis and variable of every differentiated slot.
    pieces : tuple of UngroupedTerm
        The terms before their factors are grouped.
    form : tuple of UngroupedTerm, optional
        The terms in the form for known sizes; see `at`.
    data : frozenset of str, optional
        The variables whose data are sparse: they are cores as they are.
    """

    shape: Shape
    pieces: tuple[UngroupedTerm, ...] = field(repr=False)
    columns: int
    slots: tuple[tuple[int, Var], ...]
    form: tuple[UngroupedTerm, ...] | None = field(default=None, repr=False)
    data: frozenset[str] = field(default=frozenset(), repr=False)

    @cached_property
    def chosen(self) -> tuple[UngroupedTerm, ...]:
        """The ungrouped terms, in the form for known sizes where there is one."""
        return tuple(map(with_tables, self.pieces)) if self.form is None else self.form

    @cached_property
    def terms(self) -> tuple[Term, ...]:
        pieces = merge_dense(self.chosen, self.shape, self.data)
        return tuple(grouped_terms(pieces, self.data))

    @cached_property
    def cores(self) -> tuple[Expr, ...]:
        return (*self.arrays, *{id(t): t for t, _ in self.tables}.values())

    @cached_property
    def tables(self) -> tuple[tuple[Expr, Extent], ...]:
        """Tables and the extents of the axes that they read, distinct."""
        found = {}
        for term in self.terms:
            for item, extent in zip(term.out, self.shape, strict=True):
                if isinstance(item, Table):
                    found[id(item.core), extent] = item.core, extent
        return tuple(found.values())

    @cached_property
    def arrays(self) -> tuple[Expr, ...]:
        """Cores that are factors."""
        return tuple({id(core): core for term in self.terms for core in term.cores}.values())

    def __add__(self, other: object) -> Compressed:
        if not isinstance(other, Compressed):
            return NotImplemented
        if (self.shape, self.columns) != (other.shape, other.columns):
            raise ShapeError(
                f"compressed tensors of shapes {show_shape(self.shape)} and "
                f"{show_shape(other.shape)} do not add"
            )
        if _projections(self.slots) != _projections(other.slots):
            raise ValueError("compressed tensors over variables of other properties do not add")
        return Compressed(self.shape, self.pieces + other.pieces, self.columns, self.slots)

    def __mul__(self, by: object) -> Compressed:
        if isinstance(by, bool) or not isinstance(by, int | float | np.integer | np.floating):
            return NotImplemented
        coef = number(by.item() if isinstance(by, np.generic) else by)
        pieces = tuple([p._replace(coef=p.coef.by(coef)) for p in self.pieces])
        return Compressed(self.shape, pieces, self.columns, self.slots)

    __rmul__ = __mul__

    def __neg__(self) -> Compressed:
        return self * -1

    def __sub__(self, other: object) -> Compressed:
        return self + -other if isinstance(other, Compressed) else NotImplemented

    def at(self, sizes: Mapping[str, int], sparse: Mapping[str, int] | None = None) -> Compressed:
        """The form of fewest entries for known sizes, and numbers of entries of sparse data.

        Contractions of low rank, or larger than their factors, stay products of these, and sums
        of few items by segments are cores of all items with tables. So do those of sparse data
        that have few entries. A tensor without entries has no terms, as there is no place that a
        table could name.
        """
        if not all(extent_of(e, sizes) for e in self.shape):
            return Compressed(self.shape, (), self.columns, self.slots)
        square = 2 * self.columns == len(self.shape)
        tabled = [with_tables(piece, sizes) for piece in self.pieces]
        low = [(square and as_low_rank(new, self.columns, sizes)) or new for new in tabled]
        sparse = sparse or {}
        found = all_as_factors(low, self.columns if square else None, sizes, sparse)
        if not sparse and [new.key() for new in found] == [held.key() for held in self.chosen]:
            return self
        return Compressed(
            self.shape, self.pieces, self.columns, self.slots, tuple(found), frozenset(sparse)
        )

    def layout(self, sizes: Mapping[str, int]) -> tuple[TensorLayout, tuple[float, ...]]:
        """The numeric layout over `arrays` and then `tables`, and the terms' coefficients."""
        place = {id(core): k for k, core in enumerate(self.arrays)}
        table = {(id(t), e): k + len(place) for k, (t, e) in enumerate(self.tables)}
        products, coefs = [], []
        for term in self.terms:
            out = tuple([
                TableIndex(table[id(i.core), e], i.labels) if isinstance(i, Table) else i
                for i, e in zip(term.out, self.shape, strict=True)
            ])  # fmt: skip
            factors = [(place[id(c)], w) for c, w in zip(term.cores, term.labels, strict=True)]
            extents = tuple([extent_of(e, sizes) for e in term.extents])
            products.append(CoreProduct(tuple(factors), out, extents))
            coefs.append(float(term.coef.evaluate(sizes)))
        shape = [extent_of(e, sizes) for e in self.shape]
        return TensorLayout(shape, self.columns, products), tuple(coefs)

    def solve(self, g: object, sizes: Mapping[str, int] | None = None) -> Expr:
        """x with H x = g as an expression, by the structure: what `Structured.solve` computes.

        Compiled with others it is part of one function. Where the structure has a diagonal below a
        matrix of low rank, that diagonal has no zeros; a matrix without inverse is a LinAlgError or
        gives numbers that are not finite.

        Parameters
        ----------
        g : expression or array
            Of the shape of a row; further axes are more right-hand sides.
        sizes : mapping, optional
            Extents of dimensions, of which the formula should be the cheapest; 100 for others.

        Returns
        -------
        Expr
            Of g's shape.

        Raises
        ------
        ShapeError
            For a tensor that is not square, or a right-hand side of another shape.
        UnsupportedError
            For selections by arrays of indices, and over variables with properties.

        Examples
        --------
        >>> import tcalc as tc
        >>> f = tc.parse("norm2(T - U*V')^2", T=("n", "m"), U=("n", "k"), V=("m", "k"))
        >>> step = tc.compress(tc.hessian(f, "U")).solve(tc.grad(f, "U"))
        >>> step.shape
        ('n', 'k')
        """
        e, row = as_expr(g), self._square_row()
        if e.shape[: len(row)] != row:
            raise ShapeError(
                f"solve with a tensor of shape {show_shape(self.shape)}: the right-hand side has "
                f"shape {show_shape(e.shape)}, expected {show_shape(row)}, and any further axes"
            )
        return self._formula(sizes).solve(e)

    def logdet(self, sizes: Mapping[str, int] | None = None) -> Expr:
        """The logarithm of the absolute value of the determinant, as `solve` has the solution."""
        return self._formula(sizes).logdet()

    def _square_row(self) -> Shape:
        """The shape of a row of a square tensor. ShapeError of any other."""
        row = self.shape[: len(self.shape) - self.columns]
        if self.shape != row * 2:
            raise ShapeError(f"tensors of shape {show_shape(self.shape)} are not square")
        return row

    def _formula(self, sizes: Mapping[str, int] | None) -> Formula:
        row = self._square_row()
        if any(v.properties for _, v in self.slots):
            raise UnsupportedError("no formula solves inside properties of variables")
        everything = {**dict.fromkeys(named_extents(self), NOMINAL), **(sizes or {})}
        form = self.at(everything)
        layout, _ = form.layout(everything)
        coefs = tuple([term.coef for term in form.terms])
        extents = tuple([term.extents for term in form.terms])
        return formula(SymbolicTerms(layout, form.arrays, coefs, extents, row))

    def __str__(self) -> str:
        return _shown(self)

    __repr__ = __str__


def compress(e: Any) -> Any:
    """The cores of a tensor and the unit tensors around them, symbolically.

    Compressed tensors of one shape add, and numbers multiply them.

    Parameters
    ----------
    e : Expr, or a nested tuple, list or dict of Expr
        A derivative knows which of its axes are rows; the axes of others split in halves.

    Returns
    -------
    Compressed, or a nest of them

    Examples
    --------
    >>> import tcalc as tc
    >>> f = tc.parse("norm2(T - U*V')^2", T=("n", "m"), U=("n", "k"), V=("m", "k"))
    >>> print(tc.compress(tc.hessian(f, "U")))
    H[i,j,k,l] = C1[j,l] * delta[i,k]   shape (n, k, n, k)
      C1 = 2*V'*V  (k, k)
    """
    if isinstance(e, tuple | list | dict):
        return trees.unflatten(e, map(compress, trees.leaves(e)))
    if not isinstance(e, Expr):
        raise TypeError(f"expressions are compressed, not {no_expression(e)}")
    slots: list[tuple[int, Var]] = []
    value, columns = e, e.ndim - e.ndim // 2
    if isinstance(e, Derivative):
        value, start = e.inner, e.of.ndim
        for v in e.wrt:
            slots.append((start, v))
            start += v.ndim
        columns = e.wrt[-1].ndim if e.wrt else columns
    pieces = [piece for part in summands(value) if (piece := ungrouped_term(part)) is not None]
    return Compressed(e.shape, tuple(pieces), columns, tuple(slots))


def _projections(slots: Iterable[tuple[int, Var]]) -> list[tuple[int, tuple[str, ...]]]:
    return [(start, v.properties) for start, v in slots if v.properties]


def named_extents(form: Compressed) -> list[str]:
    """Dimension names that the shapes of a compressed tensor mention, sorted."""
    everything: list[Extent] = list(form.shape)
    for piece in form.pieces:
        everything.extend([*piece.extents, *piece.coef.times, *piece.coef.over])
    for op in opened([op for piece in form.pieces for op, _ in piece.operands]):
        everything.extend(getattr(op, "extents", ()))
        everything.extend(dimensions([a for a in (op, *op.args) if indicates(a)]))
        if isinstance(op, Einsum):
            everything.extend([*op.coef.times, *op.coef.over])
    return sorted(extent_names(everything))


# --- printing -------------------------------------------------------------------------------------


def _shown(form: Compressed) -> str:
    letters = _AXIS_LETTERS if len(form.shape) <= len(_AXIS_LETTERS) else ""
    axes = [letters[k] if letters else f"i{k}" for k in range(len(form.shape))]
    items = [i for term in form.terms for i in term.out if isinstance(i, Table)]
    said = {id(i.core) for i in items if i.affine() is not None} - set(map(id, form.arrays))
    named = [core for core in form.cores if id(core) not in said]
    numbers = {id(core): f"C{k + 1}" for k, core in enumerate(named)}
    rows = [f"  {numbers[id(c)]} = {c}  {show_shape(c.shape)}" for c in named]
    parts = [_shown_term(term, axes, numbers) for term in form.terms]
    text = parts[0] if parts else "0"
    for part in parts[1:]:
        text += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
    head = f"H[{','.join(axes)}] = " if axes else "H = "
    projected = [v.name for _, v in form.slots if v.properties]
    note = [f"  projected onto the properties of {', '.join(projected)}"] if projected else []
    return "\n".join([f"{head}{text}   shape {show_shape(form.shape)}", *rows, *note])


def _shown_term(term: Term, axes: list[str], numbers: Mapping[int, str]) -> str:
    first = {item: axes[term.out.index(item)] for item in term.out if isinstance(item, int)}
    summed = sorted(
        {i for w in term.labels for i in w}.union(
            *(i.labels for i in term.out if isinstance(i, Table))
        )
        - first.keys()
    )
    free = (x for k in range(100) for x in [f"{'opqrstuvw'[k % 9]}{k // 9 or ''}"] if x not in axes)
    names: dict[int, str] = first | dict(zip(summed, free, strict=False))

    def indexed(core: Expr, word: Labels) -> str:
        index = ",".join(names[label] for label in word)
        return numbers[id(core)] + (f"[{index}]" if word else "")

    factors = [indexed(c, w) for c, w in zip(term.cores, term.labels, strict=True)]
    for axis, item in enumerate(term.out):
        if isinstance(item, Table):
            affine = item.affine()
            place = indexed(item.core, item.labels) if affine is None else _sum(affine, names)
            factors.append(f"delta[{place},{axes[axis]}]")
        elif first[item] != axes[axis]:
            factors.append(f"delta[{first[item]},{axes[axis]}]")
    value = str(filled(term.coef, ()))
    if term.coef == ONE or not factors:
        text = " * ".join(factors) or value
    elif term.coef.value == -1 and term.coef == Coef(-1):
        text = "-" + " * ".join(factors)
    else:
        text = " * ".join([value, *factors])
    return f"sum[{','.join(names[i] for i in summed)}]({text})" if summed else text


def _sum(affine: Iterable[tuple[Coef, int | None]], names: Mapping[int, str]) -> str:
    """An affine form of indices, such as ``2*i+1`` or ``n-i-1``."""
    text = ""
    for coef, label in sorted(affine, key=lambda term: (term[0].value < 0, term[1] is None)):
        factors = [*coef.times, *([] if label is None else [names[label]])]
        if abs(coef.value) != 1 or not factors:
            factors.insert(0, str(abs(coef.value)))
        sign = "-" if coef.value < 0 else "+" if text else ""
        text += sign + "*".join(factors)
    return text or "0"
