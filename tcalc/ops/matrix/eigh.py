"""Symmetric eigen decompositions: the family {w, V, F} is closed under differentiation.

F_ij = 1 / (w_j - w_i) off the diagonal (Seeger et al. 2018, section 3 and appendix). The
decomposition is of (A + A') / 2, so that derivatives agree with plain finite differences.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...graph.applications import application, apply, apply_all
from ...graph.extents import Coef, Shape
from ...graph.nodes import Expr
from ...graph.normal import add, einsum
from ...graph.operators import Kernels, Meaning, Op, for_each_row
from ...graph.spelling import Spelling
from ...support import lapack
from ...support.conditions import known
from ..arithmetic import as_expr, public
from ..matrix_cores import (
    attempt,
    both,
    labels,
    largest,
    of_square,
    refuse,
    square,
    symmetric,
)
from .results import EighResult

__all__ = ["eigh", "eigvalsh", "syevd"]

DEGENERATE = ("raise", "nan", "epsilon")
#: The least gap that "epsilon" stands for; a number in its place is another one.
EPSILON = 1e-10
#: Equal eigenvalues come out this many roundings apart, or as many as there are rows.
FEW = 16


NO_CONVERGENCE = "eigh: no convergence, as with entries that are not finite"


def _eigh(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    a = symmetric(xp, a)
    if a.ndim > 2 or len(a) < lapack.LARGE or not xp.isfinite(a).all():
        return _decomposed(xp, a)
    # Row-major memory of a symmetric matrix is itself in column-major order.
    w, v, failed = lapack.syevd(np.ascontiguousarray(a))
    refuse(NO_CONVERGENCE, failed != 0)
    return w, v


def _portable(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    return _decomposed(xp, symmetric(xp, a))


def _decomposed(xp: Any, a: Any) -> Any:
    # LAPACK may make numbers of some of what is none.
    refuse(NO_CONVERGENCE, ~xp.isfinite(a).all(axis=(-2, -1)))
    return tuple(attempt(NO_CONVERGENCE, xp.linalg.eigh, a))


def _eigh_shapes(params: tuple[Any, ...], shape: Shape) -> tuple[Shape, Shape]:
    return _eigenvalue_shape(params, shape), shape


_eigenvalue_shape = of_square("eigh", 1)


def _eigenvalue_partial(a: Expr, w: Expr, v: Expr) -> Expr:
    """dw = diag(V' dA V)."""
    b, i, _, k, m, _ = labels(a)
    return einsum([v, v], [(*b, k, i), (*b, m, i)], (*b, i, k, m))


def continuation(degenerate: Any) -> str | float:
    """What is asked for at equal eigenvalues or singular values, checked."""
    number = isinstance(degenerate, int | float | np.integer | np.floating)
    if number and not isinstance(degenerate, bool) and 0 < degenerate < math.inf:
        return float(degenerate)
    if degenerate not in DEGENERATE:
        raise ValueError(
            f"degenerate={degenerate!r}: one of {', '.join(map(repr, DEGENERATE))}, or the least "
            "gap as a positive number"
        )
    found: str = degenerate
    return found


def least_gap(kind: str | float) -> float:
    """The gap to which smaller ones are raised; 0 where none is."""
    return kind if isinstance(kind, float) else EPSILON if kind == "epsilon" else 0.0


def _gaps(xp: Any, params: tuple[Any, ...], w: Any) -> Any:
    """1 / (w_j - w_i), 0 on the diagonal, equal eigenvalues as the caller asked."""
    n = w.shape[-1]
    difference = w[..., None, :] - w[..., :, None]
    rounding, least = rounding_of(xp, w), least_gap(params[0])
    if not least and known(w[..., 1:] - w[..., :-1] > rounding):
        return 1 / xp.where(difference == 0, xp.inf, difference)
    off = ~xp.eye(n, dtype=bool)
    tied = off & (xp.abs(difference) <= rounding[..., None])
    if least:
        sign = xp.asarray(xp.where(difference < 0, -1, 1), w.dtype)
        difference = xp.maximum(xp.abs(difference), least) * sign
    elif not known(~tied):
        if params[0] == "raise":
            problem = (
                "eigh: equal eigenvalues, whose eigenvectors have no derivative; "
                'degenerate="nan" or "epsilon" goes on'
            )
            refuse(problem, tied.any(axis=(-2, -1)))
        difference = xp.where(tied, xp.nan, difference)
    return xp.asarray(xp.where(off, 1 / xp.where(off, difference, 1), 0), w.dtype)


def rounding_of(xp: Any, w: Any) -> Any:
    """Up to which eigenvalues or singular values that are computed differ where they are equal."""
    return max(w.shape[-1], FEW) * xp.finfo(w.dtype).eps * largest(xp, w)


def _gaps_into(xp: Any, params: tuple[Any, ...], out: Any, w: Any) -> None:
    """The same in memory that is there, and in no other where no eigenvalues are equal."""
    apart = known(w[..., 1:] - w[..., :-1] > rounding_of(xp, w))
    if not apart or least_gap(params[0]):
        out[...] = _gaps(xp, params, w)
        return
    np.subtract(w[..., None, :], w[..., :, None], out)
    np.einsum("...ii->...i", out)[...] = np.inf
    np.divide(1, out, out)


def _gaps_partial(w: Expr, f: Expr) -> Expr:
    """dF_ij = -F_ij^2 (dw_j - dw_i)."""
    n = w.ndim - 1
    word = (*range(n), n, n + 1)
    plus = einsum([f, f], [word, word], (*word, n))
    minus = einsum([f, f], [word, word], (*word, n + 1), Coef(-1))
    return add([plus, minus])


GAPS = Op(
    "gaps", (1,),
    Meaning((_gaps_partial,), shape=lambda params, s: (*s, s[-1])),
    Kernels(_gaps, into=_gaps_into, flops=for_each_row(2)),
    Spelling(r"\operatorname{{gaps}}({0})"),
    params=tuple([(kind,) for kind in (*DEGENERATE, 1e-8)]),
)  # fmt: skip


def _eigenvector_partial(degenerate: str) -> Any:
    def partial(a: Expr, w: Expr, v: Expr) -> Expr:
        """dV = V (F ∘ (V' dA V))."""
        b, i, j, k, m, p = labels(a)
        f = apply(GAPS, w, params=application(w).params or (degenerate,))
        # -F' is F but for ties that are held apart; products with V come out in its order.
        turned, sign = ((p, j), 1) if degenerate == "epsilon" else ((j, p), -1)
        words = [(*b, i, p), (*b, *turned), (*b, k, p), (*b, m, j)]
        return both(einsum([v, f, v, v], words, (*b, i, j, k, m), Coef(sign)))

    return partial


EIGH = {
    kind: Op(
        "eigh" if kind == "raise" else f"eigh_{kind}", (2,),
        Meaning(((_eigenvalue_partial, _eigenvector_partial(kind)),), shape=_eigh_shapes),
        Kernels(_eigh, host=True, portable=_portable, flops=for_each_row(9)),
        Spelling(
            r"\operatorname{{eigh}}({0})", symbols=(r"\lambda", r"V_{\mathrm{eig}}"),
            written=lambda node: ("eigh", node.args[0]),
        ),
        parts=("eigvals", "eigvecs"),
        params=((), (1e-8,)) if kind == "epsilon" else (),
    )
    for kind in DEGENERATE
}  # fmt: skip


@public
def eigh(a: object, degenerate: str | float = "raise") -> EighResult:
    """(w, V): eigenvalues ascending and eigenvectors as columns, of (a + a') / 2.

    Parameters
    ----------
    a : expression of shape (..., n, n)
    degenerate : {"raise", "nan", "epsilon"} or float
        What derivatives of eigenvectors do at equal eigenvalues, where they are undefined: a
        LinAlgError, nan, or a gap of at least 1e-10; a positive number is the least gap in its
        place, such as ``degenerate=1e-8``. Eigenvalues are not affected.
    """
    kind, e = continuation(degenerate), square("eigh", as_expr(a))
    if isinstance(kind, str):
        return EighResult(*apply_all(EIGH[kind], e))
    return EighResult(*apply_all(EIGH["epsilon"], e, params=(kind,)))


@public
def eigvalsh(a: object) -> Expr:
    """The eigenvalues of (a + a') / 2, ascending; derivatives of one need it to be simple."""
    return eigh(a)[0]


def _signs(xp: Any, params: tuple[Any, ...], v: Any) -> Any:
    """The sign of the largest entry of every column, the first of equal ones."""
    if not v.size:
        return xp.ones(v.shape[:-1], v.dtype)
    above, below = v.max(axis=-2), -v.min(axis=-2)
    if known(above != below):
        return xp.asarray(xp.where(above < below, -1, 1), v.dtype)
    top = xp.abs(v).argmax(axis=-2)[..., None, :]
    largest = xp.take_along_axis(v, top, axis=-2)[..., 0, :]
    return xp.asarray(xp.where(largest < 0, -1, 1), v.dtype)


SIGNS = Op(
    "column_signs", (2,),
    Meaning((None,), shape=lambda params, s: s[:-1]),
    Kernels(_signs),
    Spelling(r"\operatorname{{signs}}({0})"),
)  # fmt: skip


@public
def syevd(a: object, degenerate: str | float = "raise") -> tuple[Expr, Expr]:
    """(U, w) with the eigenvectors as rows of U: U a = diag(w) U.

    The entry of largest magnitude in every row of U is positive; the first of equal ones counts.
    `degenerate` is as for `eigh`.
    """
    w, v = eigh(a, degenerate)
    b, i, j, _, _, _ = labels(v)
    return einsum([v, apply(SIGNS, v)], [(*b, i, j), (*b, j)], (*b, j, i)), w
