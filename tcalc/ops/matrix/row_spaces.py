"""What depends on the space that the rows of a matrix span, and on no factor of it.

Of A with linearly independent rows, in terms of any A = L Q, L triangular with X = inv(L) and the
rows of Q orthonormal:

    log-volume v = log|A A'| / 2 = sum(log(diag(L)))      dv = tr(W' dA)
    dual basis W = pinv(A)' = X' Q                        dW = G dA (I - P) - W dA' W
    projector  P = A' W = Q' Q                            dP = W' dA (I - P) + (I - P) dA' W
    inverse    G = inv(A A') = X' X                       dG = -G dA W' - W dA' G

The four are closed under differentiation (Golub and Pereyra 1973), and no triangle is in them: an
orthogonal matrix between the factors of A changes none. They stand in derivatives while these are
accumulated; what is computed afterwards is made of the factors, so that A A' is never formed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard

from ...graph.applications import apply, apply_all
from ...graph.extents import ONE, Coef
from ...graph.nodes import Apply, Expr
from ...graph.normal import add, einsum
from ...graph.operators import Kernels, Meaning, Op, Partial
from ...graph.spelling import Spelling
from ...support.records import NamedTuple
from ..arithmetic import sum
from ..diagonals import diagonal
from ..elementwise import log
from ..matrix_cores import labels
from .directional_rows import member
from .lq import LQ
from .triangular import tri_inverse

#: The rows of the table.
VOLUME, DUAL, PROJECTOR, INVERSE = "log_volume", "dual_basis", "row_projector", "inverse_gram"
MINUS = Coef(-1)


def _of_same(name: str, e: Expr) -> Expr:
    """Another one of the four, of the same matrix."""
    assert isinstance(e, Apply)
    return row_space(name, e.args[0], e.params)


def _volume_partial(a: Expr, v: Expr) -> Expr:
    return _of_same(DUAL, v)


def _dual_partial(a: Expr, w: Expr) -> Expr:
    """G_ik d_jm - G_ik P_mj - W_im W_kj at i, j of W and k, m of A."""
    b, i, j, k, m, _ = labels(a)
    out, g, p = (*b, i, j, k, m), _of_same(INVERSE, w), _of_same(PROJECTOR, w)
    return add([
        einsum([g], [(*b, i, k)], (*b, i, j, k, j), ONE, {j: a.shape[-1]}),
        einsum([g, p], [(*b, i, k), (*b, m, j)], out, MINUS),
        einsum([w, w], [(*b, i, m), (*b, k, j)], out, MINUS),
    ])  # fmt: skip


def _projector_partial(a: Expr, p: Expr) -> Expr:
    """W_ki (d_mj - P_mj), and i and j in each other's place."""
    b, i, j, k, m, _ = labels(a)
    out, w, sides = (*b, i, j, k, m), _of_same(DUAL, p), ((i, j), (j, i))
    units = [einsum([w], [(*b, k, x)], tuple([y if n == m else n for n in out]), ONE,
                    {y: a.shape[-1]}) for x, y in sides]  # fmt: skip
    others = [einsum([w, p], [(*b, k, x), (*b, m, y)], out, MINUS) for x, y in sides]
    return add([*units, *others])


def _inverse_partial(a: Expr, g: Expr) -> Expr:
    """-G_ik W_jm - G_jk W_im."""
    b, i, j, k, m, _ = labels(a)
    w = _of_same(DUAL, g)
    return add([
        einsum([g, w], [(*b, x, k), (*b, y, m)], (*b, i, j, k, m), MINUS)
        for x, y in ((i, j), (j, i))
    ])  # fmt: skip


def _both(x: Expr, y: Expr) -> Expr:
    """X' Y of matrices."""
    b, i, j, k, *_ = labels(x)
    return einsum([x, y], [(*b, k, i), (*b, k, j)], (*b, i, j))


class _Quantity(NamedTuple):
    """One of the four: its axes (rows and columns of A), its derivative, and it from L and Q."""

    axes: tuple[int, ...]
    partial: Partial
    numbers: Callable[[Any, Any, Any], Any]
    formula: Callable[[Expr, Expr], Expr]
    latex: str


QUANTITIES = {
    VOLUME: _Quantity(
        (), _volume_partial,
        lambda xp, factor, q: xp.log(xp.diagonal(factor, 0, -2, -1)).sum(axis=-1),
        lambda factor, q: sum(log(diagonal(factor, 0, -2, -1)), axis=-1),
        r"\tfrac{{1}}{{2}} \log\det({0} {0}^{{\top}})",
    ),
    DUAL: _Quantity(
        (-2, -1), _dual_partial,
        lambda xp, factor, q: xp.linalg.solve(xp.swapaxes(factor, -1, -2), q),
        lambda factor, q: _both(tri_inverse(factor), q), r"({0}^{{+}})^{{\top}}",
    ),
    PROJECTOR: _Quantity(
        (-1, -1), _projector_partial,
        lambda xp, factor, q: xp.swapaxes(q, -1, -2) @ q,
        lambda factor, q: _both(q, q), r"{0}^{{+}} {0}",
    ),
    INVERSE: _Quantity(
        (-2, -2), _inverse_partial,
        lambda xp, factor, q: _squared(xp, xp.linalg.inv(factor)),
        lambda factor, q: _both(tri_inverse(factor), tri_inverse(factor)),
        r"({0} {0}^{{\top}})^{{-1}}",
    ),
}  # fmt: skip


def _squared(xp: Any, x: Any) -> Any:
    return xp.swapaxes(x, -1, -2) @ x


def _kernel(name: str, xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    return QUANTITIES[name].numbers(xp, *LQ.kernels.compute(xp, params, a))


def row_space_row(name: str) -> Op:
    """The row of one of the four."""
    axes, derivative, _, _, latex = QUANTITIES[name]
    symmetric = len(set(axes)) < len(axes)
    return member(name, lambda: Op(
        name, (2,),
        Meaning(
            (derivative,), shape=lambda params, s: (*s[:-2], *[s[k] for k in axes]),
            self_adjoint=symmetric,
        ),
        Kernels(partial(_kernel, name), host=True, flops=LQ.kernels.flops),
        Spelling(latex, parameters=False), params=LQ.params, family=(row_space_row, name),
    ))  # fmt: skip


def row_space(name: str, a: Expr, params: tuple[Any, ...]) -> Expr:
    """One of the four of a matrix; the parameters are those of the factorisation."""
    return apply(row_space_row(name), a, params=params)


def from_factors(e: Apply) -> Expr:
    """One of the four as a formula of the factors."""
    factor, q = apply_all(LQ, e.args[0], params=e.params)
    return QUANTITIES[e.op.name].formula(factor, q)


def is_row_space(e: Expr, *names: str) -> TypeGuard[Apply]:
    """Is it one of these, or of all four?"""
    return isinstance(e, Apply) and e.op.name in (names or QUANTITIES)
