"""Inverses and determinants of s I + t U U', where U has few columns, by matrices of that size.

With G = U' U and S = inv(I + (t/s) G), the inverse is I/s - (t/s^2) U S U' (Woodbury 1950), and the
logarithm of the determinant n log|s| + logdet(I + (t/s) G) (Sylvester). Where s is small beside
t G the difference loses as many digits as the condition of the matrix has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.applications import rewritten
from ..graph.extents import ONE, Coef, Extent, extent_of
from ..graph.factors import LabelledExpr
from ..graph.nodes import Add, Apply, Einsum, Expr
from ..graph.normal import add, distribute, einsum
from ..graph.products import split_coef
from ..ops.arithmetic import matmul
from ..ops.diagonals import eye
from ..ops.elementwise import abs, log, reciprocal
from ..ops.matrix import definite, inverse
from ..support.records import NamedTuple

#: The size of a matrix by the number of columns, from which it is worth while; and the least size.
LARGER, LEAST = 3, 32
INVERSES = inverse.INV, definite.INVERSE
LOGDETS = inverse.LOGDET, definite.LOGDET


class _LowRank(NamedTuple):
    """s I + t U U', of the size that an extent says."""

    s: Expr
    t: Expr
    U: Expr
    size: Extent

    @property
    def ratio(self) -> Expr:
        return self.t * reciprocal(self.s)

    @property
    def small(self) -> Expr:
        """I + (t/s) U' U"""
        return eye(self.U.shape[1]) + self.ratio * matmul(self.U.T, self.U)

    @property
    def inverse(self) -> list[Expr]:
        """Its terms."""
        first = einsum([reciprocal(self.s)], [()], (0, 0), ONE, {0: self.size})
        V, shrunk = matmul(self.U, inverse.inv(self.small)), self.ratio * reciprocal(self.s)
        words = [(), (0, 2), (1, 2)]
        return [first, einsum([shrunk, V, self.U], words, (0, 1), Coef(-1))]

    @property
    def logdet(self) -> Expr:
        row = einsum([log(abs(self.s))], [()], (0,), ONE, {0: self.size})
        return einsum([row], [(0,)], ()) + inverse.logdet(self.small)


def by_low_rank(roots: Sequence[Expr], sizes: Mapping[str, int]) -> list[Expr]:
    """The roots with such matrices by small ones, at extents where these are much smaller."""
    terms: dict[int, list[Expr]] = {}

    def change(new: Expr, old: Expr) -> Expr:
        if isinstance(new, Einsum) and any(id(arg) in terms for arg in new.args):
            places = {k: terms[id(arg)] for k, arg in enumerate(new.args) if id(arg) in terms}
            return add(distribute(new, places))
        found = _low_rank(new.args[0], sizes) if isinstance(new, Apply) and new.args else None
        if found is None or not isinstance(new, Apply):
            return new
        if new.op in INVERSES:
            whole = add(found.inverse)
            terms[id(whole)] = found.inverse
            return whole
        return found.logdet if new.op in LOGDETS else new

    return rewritten(roots, change)


def _low_rank(e: Expr, sizes: Mapping[str, int]) -> _LowRank | None:
    if not isinstance(e, Add) or e.ndim != 2 or extent_of(e.shape[0], sizes) < LEAST:
        return None
    multiples = [part for part in map(_multiple_of_identity, e.args) if part is not None]
    squares = [part for part in map(_multiple_of_square, e.args) if part is not None]
    if len(squares) != 1 or len(multiples) + 1 != len(e.args) or not multiples:
        return None
    t, U = squares[0]
    size, columns = [extent_of(extent, sizes) for extent in U.shape]
    return _LowRank(add(multiples), t, U, e.shape[0]) if size >= LARGER * columns else None


def _multiple_of_identity(e: Expr) -> Expr | None:
    if not isinstance(e, Einsum) or e.out != (0, 0) or any(op.ndim for op in e.args):
        return None
    return einsum(e.args, e.labels, (), e.coef)


def _multiple_of_square(e: Expr) -> tuple[Expr, Expr] | None:
    """t and U of t U U'."""
    coef, rest = split_coef(e)
    if not isinstance(rest, Einsum) or rest.ndim != 2 or len(set(rest.out)) < 2:
        return None
    factors = list(zip(rest.args, rest.labels, strict=True))
    scalars = [op for op, _ in factors if not op.ndim]
    sides = [(op, word) for op, word in factors if op.ndim]
    inner = sides[0][0] if len(sides) == 1 else None
    if isinstance(inner, Einsum) and inner.summed and set(sides[0][1]) == set(rest.out):
        sides = list(zip(inner.args, inner.labels, strict=True))
        coef, out = coef.by(inner.coef), set(inner.out)
    else:
        out = set(rest.out)
    t = einsum(scalars, [()] * len(scalars), (), coef)
    if not sides or (len(sides) == 2 and all(op.ndim == 1 for op, _ in sides)):
        return None if sides and sides[0][0] is not sides[1][0] else (t, _column(e, sides))
    if len(sides) != 2 or sides[0][0] is not sides[1][0] or sides[0][0].ndim != 2:
        return None
    (U, one), (_, two) = sides
    for axis in (0, 1):
        same = one[1 - axis] == two[1 - axis]
        if same and {one[axis], two[axis]} == out and one[1 - axis] not in out:
            return t, U if axis == 0 else U.T
    return None


def _column(e: Expr, sides: Sequence[LabelledExpr]) -> Expr:
    """The vector of which a matrix is the square, or that of ones, as a matrix of one column."""
    ops = [op for op, _ in sides[:1]]
    return einsum(ops, [(0,)] * len(ops), (0, 1), ONE, {0: e.shape[0], 1: 1})
