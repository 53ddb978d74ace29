"""Solving with compressed tensors as expressions, which are planned with what the cores are.

One formula a structure, those of `structured.solvers`: division, blocks by LU factors, low rank on
top of either by Woodbury, refined once. A formula also says how doubtful it is: a number above 1
where a method that looks at its numbers should decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from ..graph.extents import ONE, Coef, Extent, Shape, extent_from, extent_product, form_of
from ..graph.nodes import Expr, Labels
from ..graph.normal import add, einsum, scale, view
from ..integers.affine import Affine
from ..ops import arithmetic, reductions
from ..ops.elementwise import abs as absolute
from ..ops.elementwise import log, maximum, sqrt
from ..ops.joining import concatenate, widened
from ..ops.matrix.definite import inverse_definite, logdet_definite
from ..ops.matrix.inverse import inv, logdet
from ..ops.reshape import reshape
from ..structured.solvers.blocks import Blocks, Diagonal, arrangement, block_items
from ..structured.solvers.choose import solve_methods
from ..structured.solvers.lowrank import LowRank
from ..structured.solvers.lowrank_factors import VectorsAndCouplings, vectors_and_couplings
from ..structured.terms.tensor_layout import TensorLayout, without_tables
from ..support.errors import UnsupportedError
from ..support.records import NamedTuple

#: What is doubtful: a larger or smaller entry of a diagonal, a worse condition of a small matrix, a
#: low-rank update that grows more.
LARGEST, CONDITION, GROWTH = 1e150, 1e12, 1e6


class SymbolicTerms(NamedTuple):
    """A compressed tensor of expressions.

    Attributes
    ----------
    layout : TensorLayout
        At some sizes, which decide between formulas.
    cores : tuple of Expr
    coefs : tuple of Coef
        One a term.
    extents : tuple of shapes
        The extents of each term's labels.
    shape : tuple
        Of a row.
    """

    layout: TensorLayout
    cores: tuple[Expr, ...]
    coefs: tuple[Coef, ...]
    extents: tuple[Shape, ...]
    shape: Shape

    def only(self, keep: Sequence[int]) -> SymbolicTerms:
        """The sum of some of the terms."""
        coefs, extents = tuple(self.coefs[k] for k in keep), tuple(self.extents[k] for k in keep)
        return self._replace(layout=self.layout.only(keep), coefs=coefs, extents=extents)

    def product(
        self, k: int, factors: Sequence[tuple[int, Labels]], out: Labels, coef: Coef = ONE
    ) -> Expr:
        """Some factors of term k along labels, which may repeat, summed over all others."""
        arrays, words = [self.cores[c] for c, _ in factors], [word for _, word in factors]
        return einsum(arrays, words, out, coef, dict(enumerate(self.extents[k])))

    def times(self, x: Expr) -> Expr:
        """The product with an array of the shape of a row, and any further axes."""
        rows, found = self.layout.rows, []
        for k, term in enumerate(self.layout.terms):
            items, count = without_tables(term.out), len(self.extents[k])
            further = tuple(range(count, count + x.ndim - rows))
            arrays = [*[self.cores[c] for c, _ in term.factors], x]
            words = [*[word for _, word in term.factors], (*items[rows:], *further)]
            out, extents = (*items[:rows], *further), dict(enumerate(self.extents[k]))
            found.append(einsum(arrays, words, out, self.coefs[k], extents))
        return add(found)


class Formula(NamedTuple):
    """A solution as expressions.

    Attributes
    ----------
    solve : callable
        x with H x = b, for b of the shape of a row, and any further axes.
    logdet : callable
        The logarithm of the absolute value of the determinant.
    doubt : callable
        What is above 1, or nan, for numbers that the formula may not suit.
    """

    solve: Callable[[Expr], Expr]
    logdet: Callable[[], Expr]
    doubt: Callable[[], Expr]


def formula(terms: SymbolicTerms) -> Formula:
    """The formula of the cheapest method that has one.

    Raises
    ------
    UnsupportedError
        For a tensor with tables of indices.
    """
    layout = terms.layout
    if not any(term.has_tables for term in layout.terms):
        for method in solve_methods(layout, 8):
            made = FORMULAS.get(getattr(method.build, "func", method.build))
            if made is not None:
                return made(terms, **getattr(method.build, "keywords", {}))
    raise UnsupportedError(
        "no formula solves with tables of indices, as bands have: solve with numbers, those of "
        "compile(H, structured=True)"
    )


# --- division and blocks --------------------------------------------------------------------------


def _diagonal(terms: SymbolicTerms) -> Formula:
    carried, held = arrangement(terms.layout).carried, _assembled(terms)
    inverse = arithmetic.as_expr(1) / held

    def solve(b: Expr) -> Expr:
        return einsum([b, inverse], [range(b.ndim), carried], range(b.ndim))

    def doubt() -> Expr:
        return _over(maximum(_largest(held), _largest(inverse)), LARGEST)

    return Formula(solve, lambda: _whole_sum(terms, log(absolute(held)), carried), doubt)


def _blocks(terms: SymbolicTerms) -> Formula:
    found, columns = arrangement(terms.layout), terms.layout.columns
    first, n = len(found.carried), len(found.inner)
    matrix = _merged(_merged(_assembled(terms), first + n, n), first, n)
    tied, inner = tuple(range(first)), tuple([terms.shape[k] for k in found.inner])

    def solve(b: Expr) -> Expr:
        order = (*found.order(), *range(columns, b.ndim))
        held = _merged(view(b, order), first, n)
        rest = tuple(range(first + 2, held.ndim + 1))
        words = [(*tied, first, first + 1), (*tied, first + 1, *rest)]
        x = einsum([inv(matrix), held], words, (*tied, first, *rest))
        x = reshape(x, (*x.shape[:first], *inner, *x.shape[first + 1 :]))
        return view(x, sorted(range(b.ndim), key=order.__getitem__))

    return Formula(
        solve,
        lambda: _whole_sum(terms, logdet(matrix), found.carried),
        lambda: _condition(matrix),
    )


def _assembled(terms: SymbolicTerms) -> Expr:
    """The blocks, of shape carried + inner + inner."""
    found = arrangement(terms.layout)
    return add([
        terms.product(k, term.factors, without_tables(block_items(term, found)), terms.coefs[k])
        for k, term in enumerate(terms.layout.terms)
    ])  # fmt: skip


# --- low rank -------------------------------------------------------------------------------------


def _low_rank(terms: SymbolicTerms, low: tuple[int, ...], build: Any) -> Formula:
    """x = y - Z S⁻¹ C W'y of y = D⁻¹b, Z = D⁻¹W and S = I + C W'Z, and the same of what is left."""
    layout, columns, batch = terms.layout, terms.layout.columns, terms.layout.tied
    base = formula(terms.only([k for k in range(len(layout.terms)) if k not in low]))
    known = vectors_and_couplings(layout, low)
    axes, p, q, r = tuple(range(columns)), columns, columns + 1, columns + 2
    vectors = _vectors(terms, known)
    w = concatenate(vectors, axis=-1)
    c = _couplings(terms, known, [v.shape[-1] for v in vectors])
    z = base.solve(w)
    m = einsum([w, z], [(*axes, p), (*axes, q)], (*batch, p, q))
    cm = einsum([c, m], [(*batch, p, r), (*batch, r, q)], (*batch, p, q))
    small = add([cm, einsum([], [], (*batch, p, p), ONE, dict(enumerate(w.shape)))])

    def once(b: Expr) -> Expr:
        y, rest = base.solve(b), tuple(range(r, r + b.ndim - columns))
        t = einsum([w, y], [(*axes, p), (*axes, *rest)], (*batch, p, *rest))
        for matrix in (c, inv(small)):
            t = einsum([matrix, t], [(*batch, q, p), (*batch, p, *rest)], (*batch, q, *rest))
        return y - einsum([z, t], [(*axes, q), (*batch, q, *rest)], (*axes, *rest))

    def solve(b: Expr) -> Expr:
        x = once(b)
        return x + once(b - terms.times(x))

    def doubt() -> Expr:
        return maximum(base.doubt(), maximum(_over(_largest(small), GROWTH), _condition(small)))

    return Formula(solve, lambda: base.logdet() + _whole_sum(terms, logdet(small), batch), doubt)


def positive_formula(terms: SymbolicTerms, low: tuple[int, ...]) -> Formula | None:
    """The same of positive diagonals D and C by U = D^(-1/2) W C^(1/2) and S = I + U'U.

    S has a Cholesky factor, and no eigenvalue below 1. With one number for D it has the condition
    of the whole, so that nothing is refined, and it may grow. Numbers that are not positive are
    doubtful: their roots are nan. None where D or C is no diagonal.
    """
    layout, columns, batch = terms.layout, terms.layout.columns, terms.layout.tied
    rest = terms.only([k for k in range(len(layout.terms)) if k not in low])
    known = vectors_and_couplings(layout, low)
    (method, *_) = solve_methods(rest.layout, 8)
    if method.build is not Diagonal or not all(m.diagonal for m in known.couplings):
        return None
    carried, held = arrangement(rest.layout).carried, _assembled(rest)
    axes, p, q = tuple(range(columns)), columns, columns + 1
    vectors, scales = _vectors(terms, known), sqrt(arithmetic.as_expr(1) / held)
    roots = sqrt(_diagonal_couplings(terms, known))
    w = concatenate(vectors, axis=-1)
    u = einsum([w, scales, roots], [(*axes, p), carried, (*batch, p)], (*axes, p))
    square = einsum([u, u], [(*axes, p), (*axes, q)], (*batch, p, q))
    small = add([square, einsum([], [], (*batch, p, p), ONE, dict(enumerate(w.shape)))])

    def once(b: Expr) -> Expr:
        further = tuple(range(q + 1, q + 1 + b.ndim - columns))
        y = einsum([b, scales], [(*axes, *further), carried], (*axes, *further))
        t = einsum([u, y], [(*axes, p), (*axes, *further)], (*batch, p, *further))
        words = [(*batch, q, p), (*batch, p, *further)]
        t = einsum([inverse_definite(small), t], words, (*batch, q, *further))
        x = y - einsum([u, t], [(*axes, q), (*batch, q, *further)], (*axes, *further))
        return einsum([x, scales], [(*axes, *further), carried], (*axes, *further))

    def solve(b: Expr) -> Expr:
        x = once(b)
        return x + once(b - terms.times(x)) if carried else x

    def doubt() -> Expr:
        base = _over(maximum(_largest(held), _largest(arithmetic.as_expr(1) / held)), LARGEST)
        found = maximum(base, _over(_row_sums(small), CONDITION))
        return maximum(found, _over(_largest(small), GROWTH)) if carried else found

    def logs() -> Expr:
        base = _whole_sum(rest, log(absolute(held)), carried)
        return base + _whole_sum(terms, logdet_definite(small), batch)

    return Formula(solve, logs, doubt)


def _diagonal_couplings(terms: SymbolicTerms, known: VectorsAndCouplings) -> Expr:
    """The diagonal of C, one for every item of a batch."""
    batch, found = len(terms.layout.tied), []
    for v in known.vectors:
        blocks = [
            _merged(terms.product(m.term, middle.factors, m.items, terms.coefs[m.term]), batch,
                    len(m.items) - batch)
            for m in known.couplings if m.left is v for middle in m.layout.terms
        ]  # fmt: skip
        found.append(add(blocks))
    return concatenate(found, axis=-1)


def _vectors(terms: SymbolicTerms, known: VectorsAndCouplings) -> list[Expr]:
    """The vectors of every group, of the shape of a row and with a column for each."""
    columns, batch = terms.layout.columns, terms.layout.tied
    order = [*batch, *[k for k in range(columns) if k not in batch]]
    found = []
    for v in known.vectors:
        first = next(m.term for m in known.couplings if v in (m.left, m.right))
        out = (*[v.out[order.index(k)] for k in range(columns)], *v.out[columns:])
        whole = terms.product(first, v.factors, out)
        found.append(_merged(whole, columns, len(v.out) - columns))
    return found


def _couplings(terms: SymbolicTerms, known: VectorsAndCouplings, counts: Sequence[Extent]) -> Expr:
    """C, one for every item of a batch; `counts` are the numbers of vectors of every group."""
    ends = list(accumulate(map(form_of, counts), initial=Affine()))
    margins = [(extent_from(start), extent_from(ends[-1] - stop)) for start, stop in pairwise(ends)]
    batch, found = len(terms.layout.tied), []
    for m in known.couplings:
        (middle,) = m.layout.terms
        out = (*m.items, *m.items[batch:]) if m.diagonal else m.items
        block = terms.product(m.term, middle.factors, out, terms.coefs[m.term])
        count = len(m.left.out) - terms.layout.columns
        block = _merged(block, batch + count, block.ndim - batch - count)
        places = [margins[known.vectors.index(v)] for v in (m.left, m.right)]
        found.append(widened(_merged(block, batch, count), [(0, 0)] * batch + places))
    return add(found)


# --- parts ----------------------------------------------------------------------------------------


def _merged(e: Expr, first: int, count: int) -> Expr:
    """So many axes as one."""
    last = first + count
    return reshape(e, (*e.shape[:first], extent_product(e.shape[first:last]), *e.shape[last:]))


def _whole_sum(terms: SymbolicTerms, e: Expr, axes: Labels) -> Expr:
    """The sum over all blocks of what has some of the tied axes."""
    extents = dict(enumerate(terms.shape))
    return arithmetic.sum(einsum([e], [axes], terms.layout.tied, ONE, extents))


def _over(e: Expr, limit: float) -> Expr:
    return scale(e, Coef(1 / limit))


def _largest(e: Expr) -> Expr:
    return reductions.max(absolute(e))


def _condition(matrix: Expr) -> Expr:
    """The worst condition of some matrices, in the norm of row sums."""
    return _over(_row_sums(matrix) * _row_sums(inv(matrix)), CONDITION)


def _row_sums(matrix: Expr) -> Expr:
    """The largest norm of some matrices, that of row sums."""
    return reductions.max(arithmetic.sum(absolute(matrix), axis=-1))


#: The formula of a method, given what it is built with besides the terms.
FORMULAS: dict[Any, Callable[..., Formula]] = {
    Diagonal: _diagonal,
    Blocks: _blocks,
    LowRank: _low_rank,
}
