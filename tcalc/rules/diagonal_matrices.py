"""Functions of matrices that are diagonal as they are written: those of the diagonal's entries.

Covariances of independent errors are often spelled inv(diag(exp(v))) and logdet(diag(exp(v))).
Where an entry is 0 the reciprocal is infinite, and no error of a singular matrix.
"""

from __future__ import annotations

from collections.abc import Callable

from ..graph.nodes import Einsum, Expr
from ..graph.normal import einsum
from ..ops.arithmetic import sum
from ..ops.diagonals import diag, diagonal
from ..ops.elementwise import abs, log, reciprocal, sign, sqrt
from ..ops.matrix.cholesky import cholesky
from ..ops.matrix.definite import inverse_definite, logdet_definite
from ..ops.matrix.inverse import DET_SIGN, det, inv, logdet, slogdet
from ..ops.matrix.triangular import tri_inverse
from ..ops.packed import makediag
from ..ops.reductions import prod
from .factors import SAMPLE_SHAPE
from .facts import is_positive
from .strategy import rule

DIAGONAL = "diagonal matrices"


def diagonal_of(e: Expr) -> Expr | None:
    """The diagonals of matrices that have nothing else, along a last axis; None of others."""
    if not isinstance(e, Einsum) or e.ndim < 2 or e.out[-1] != e.out[-2]:
        return None
    return einsum(e.args, e.labels, e.out[:-1], e.coef, dict(enumerate(e.extents)))


def _by_entries(function: Callable[[Expr], Expr]) -> Callable[[Expr], Expr | None]:
    def match(e: Expr) -> Expr | None:
        entries = diagonal_of(e.args[0])
        return None if entries is None else function(entries)

    return match


def _factor(e: Expr) -> Expr | None:
    """That of a Cholesky factorisation, of which entries that are not positive are an error."""
    entries = diagonal_of(e.args[0])
    if entries is None or not is_positive(entries):
        return None
    return makediag(sqrt(entries))


def _reciprocals(entries: Expr) -> Expr:
    return makediag(reciprocal(entries))


def _volume(entries: Expr) -> Expr:
    return sum(log(abs(entries)), axis=-1)


def _whole(a: Expr) -> Expr:
    """A diagonal matrix of entries of a random one."""
    return diag(diagonal(a))


def _positive(a: Expr) -> Expr:
    return diag(1 + diagonal(a) ** 2)


rule(
    "inv-of-diagonal", DIAGONAL, lambda a: inv(_whole(a)), lambda a: diag(1 / diagonal(a)), "inv",
    _by_entries(_reciprocals), shape=SAMPLE_SHAPE,
)  # fmt: skip
rule(
    "inverse-of-definite-diagonal", DIAGONAL, lambda a: inverse_definite(_positive(a)),
    lambda a: diag(1 / (1 + diagonal(a) ** 2)), "inverse_definite", _by_entries(_reciprocals),
    shape=SAMPLE_SHAPE,
)  # fmt: skip
rule(
    "inverse-of-triangular-diagonal", DIAGONAL, lambda a: tri_inverse(_whole(a)),
    lambda a: diag(1 / diagonal(a)), "tri_inverse", _by_entries(_reciprocals), shape=SAMPLE_SHAPE,
)  # fmt: skip
rule(
    "det-of-diagonal", DIAGONAL, lambda a: det(_whole(a)), lambda a: prod(diagonal(a)), "det",
    _by_entries(lambda entries: prod(entries, axis=-1)), shape=SAMPLE_SHAPE,
)  # fmt: skip
rule(
    "sign-of-diagonal", DIAGONAL, lambda a: slogdet(_whole(a))[0],
    lambda a: prod(sign(diagonal(a))), DET_SIGN.name,
    _by_entries(lambda entries: prod(sign(entries), axis=-1)), shape=SAMPLE_SHAPE,
)  # fmt: skip
rule(
    "logdet-of-diagonal", DIAGONAL, lambda a: logdet(_whole(a)), lambda a: _volume(diagonal(a)),
    "logdet", _by_entries(_volume), shape=SAMPLE_SHAPE,
)  # fmt: skip
rule(
    "logdet-of-definite-diagonal", DIAGONAL, lambda a: logdet_definite(_positive(a)),
    lambda a: _volume(1 + diagonal(a) ** 2), "logdet_definite", _by_entries(_volume),
    shape=SAMPLE_SHAPE,
)  # fmt: skip
rule(
    "cholesky-of-diagonal", DIAGONAL, lambda a: cholesky(_positive(a)),
    lambda a: diag(sqrt(1 + diagonal(a) ** 2)), "cholesky", _factor, shape=SAMPLE_SHAPE,
)  # fmt: skip
