"""Linear maps that move entries: packed triangles and diagonals.

Every row is linear and knows its transpose, so derivatives move entries too, of whatever further
axes stand beside them; no selection tensor is formed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..graph.applications import apply
from ..graph.extent_equations import triangle_entries, triangle_rows
from ..graph.extents import ONE, Shape, extent_from, form_of, show_shape
from ..graph.nodes import Apply, Expr
from ..graph.normal import einsum
from ..graph.operators import TABLE, Kernels, Meaning, Op, batch_axes
from ..graph.spelling import Spelling
from ..integers.affine import Affine
from ..support.errors import ShapeError
from .arithmetic import as_expr, public
from .matrix_cores import square

__all__ = ["extractdiag", "extracttrian", "makediag", "maketrian"]


# --- rows that are linear -------------------------------------------------------------------------


def _push(k: int, tangent: Expr, node: Apply) -> Expr:
    """The map of a tangent: further axes, behind those of the node, go in front of the core."""
    (arg,) = node.args
    batch, core = batch_axes(node), arg.ndim
    more = tangent.ndim - core
    axes = list(range(tangent.ndim))
    order = [*axes[:batch], *axes[core:], *axes[batch:core]]
    found = apply(node.op, einsum([tangent], [axes], order), params=node.params)
    axes = list(range(found.ndim))
    back = [*axes[:batch], *axes[batch + more :], *axes[batch : batch + more]]
    return einsum([found], [axes], back)


def _transposed_row(adjoint: str) -> Callable[..., Expr]:
    def pull(k: int, cotangent: Expr, node: Apply) -> Expr:
        return apply(TABLE[adjoint], cotangent, params=node.params)

    return pull


def _partial(x: Expr, y: Expr) -> Expr:
    """The map of the unit tensor."""
    assert isinstance(y, Apply)
    batch = batch_axes(y)
    core = tuple(range(batch, x.ndim))
    extents = dict(enumerate(x.shape))
    return _push(0, einsum([], [], (*range(batch), *core, *core), ONE, extents), y)


def linear(
    name: str, core: int, kernel: Any, shape: Any, pullback: Any, printed: str = "",
    params: tuple[tuple[Any, ...], ...] = (), regroups: bool = False,
    dimensions: Callable[[tuple[Any, ...]], set[str]] | None = None,
) -> Op:  # fmt: skip
    """A row that is linear in its one operand; `pullback` is the transposed map."""
    return Op(
        name, (core,),
        Meaning(
            (_partial,), shape=shape, domain=((-2.0, 2.0),), pushforward=_push, pullback=pullback,
            regroups=regroups, dimensions=dimensions,
        ),
        Kernels(kernel, shares=True, flops=0),
        Spelling(rf"\operatorname{{{{{printed or name}}}}}({{0}})", printed=printed),
        params=params,
    )  # fmt: skip


# --- triangles and diagonals ----------------------------------------------------------------------


def _triangle(xp: Any, n: int, params: tuple[Any, ...]) -> Any:
    offset, lower = params
    return (xp.tril if lower else xp.triu)(xp.ones((n, n), bool), offset)


def _diagonal(xp: Any, n: int, params: tuple[Any, ...]) -> Any:
    (offset,) = params
    return xp.eye(n, k=offset, dtype=bool)


def _by_rows(xp: Any, v: Any, chosen: Any, params: tuple[Any, ...]) -> Any:
    """Every row of a triangle is a run of the vector: of one that ends, or starts, at a column."""
    count = chosen.sum(axis=-1)
    start = xp.cumsum(count) - count
    n = len(chosen)
    if not params[1]:
        start = start + count - n
    some = xp.concatenate([v, xp.zeros((*v.shape[:-1], 1), v.dtype)], axis=-1)
    places = xp.clip(start[:, None] + xp.arange(n), 0, some.shape[-1] - 1)
    return xp.take(some, places, axis=-1)


def _as_column(xp: Any, v: Any, chosen: Any, params: tuple[Any, ...]) -> Any:
    (offset,) = params
    before, after = (xp.zeros((*v.shape[:-1], max(0, k)), v.dtype) for k in (-offset, offset))
    return xp.concatenate([before, v, after], axis=-1)[..., None]


def _triangle_rows(entries: Affine) -> Affine:
    rows = triangle_rows(entries)
    assert rows is not None
    return rows


def _identity(entries: Affine) -> Affine:
    return entries


def _pair(
    names: tuple[str, str], where: Any, spread: Any, extent: Any, rows: Any,
    params: tuple[tuple[Any, ...], ...],
) -> list[Op]:  # fmt: skip
    """Rows that take entries out of square matrices, and put them back among zeros.

    `where` says which entries of a matrix they are, in C order; `spread` are matrices, or columns
    that are repeated, with a vector's entries there and anything elsewhere.
    """

    def extract(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
        n = a.shape[-1]
        (places,) = xp.nonzero(where(xp, n, params).reshape(n * n))
        return xp.take(a.reshape((*a.shape[:-2], n * n)), places, axis=-1)

    def extracted(params: tuple[Any, ...], shape: Shape) -> Shape:
        return (*shape[:-2], extent_from(extent(form_of(shape[-1]) - abs(params[0]))))

    def make(xp: Any, params: tuple[Any, ...], v: Any) -> Any:
        chosen = where(xp, made(params, v.shape)[-1], params)
        return xp.where(chosen, spread(xp, v, chosen, params), 0)

    def made(params: tuple[Any, ...], shape: Shape) -> Shape:
        n = extent_from(rows(form_of(shape[-1])) + abs(params[0]))
        return (*shape[:-1], n, n)

    first, second = names
    return [
        linear(first, 2, extract, extracted, _transposed_row(second), params=params),
        linear(second, 1, make, made, _transposed_row(first), params=params),
    ]


EXTRACTTRIAN, MAKETRIAN = _pair(
    ("extracttrian", "maketrian"), _triangle, _by_rows, triangle_entries, _triangle_rows,
    ((0, True), (0, False), (-1, True), (1, False)),
)  # fmt: skip
EXTRACTDIAG, MAKEDIAG = _pair(
    ("extractdiag", "makediag"), _diagonal, _as_column, _identity, _identity,
    ((0,), (1,), (-2,)),
)  # fmt: skip


def _offset(name: str, offset: object) -> int:
    if not isinstance(offset, int) or isinstance(offset, bool):
        raise TypeError(f"{name}: offset={offset!r} is not a whole number")
    return offset


def _vector(name: str, v: object) -> Expr:
    e = as_expr(v)
    if not e.ndim:
        raise ShapeError(f"{name} needs a vector, not shape {show_shape(e.shape)}")
    return e


def _whole(name: str, e: Expr, offset: int) -> None:
    """Checks that square matrices have a diagonal at this offset; named ones at evaluation."""
    extent = e.shape[-1]
    if isinstance(extent, int) and abs(offset) > extent:
        raise ShapeError(f"{name}: offset {offset} is outside of shape {show_shape(e.shape)}")


@public
def extracttrian(a: object, offset: int = 0, lower: bool = True) -> Expr:
    """Entries of a triangle of square matrices, row after row, as a vector.

    Parameters
    ----------
    a : expression of shape (..., n, n)
    offset : int
        Diagonal where the triangle ends: 0 is the main one, with which the lower or the upper
        triangle is taken; below it (negative) the lower triangle, above it the upper one.
    lower : bool
        Which triangle; read only at ``offset=0``.

    Returns
    -------
    Expr
        Of shape (..., k (k + 1) / 2) with k = n - abs(offset). `maketrian` is the way back.
    """
    e, offset = square("extracttrian", as_expr(a)), _offset("extracttrian", offset)
    _whole("extracttrian", e, offset)
    return apply(EXTRACTTRIAN, e, params=(offset, offset < 0 or (bool(lower) and not offset)))


@public
def maketrian(v: object, offset: int = 0, lower: bool = True) -> Expr:
    """Square matrices with a vector's entries in one triangle, row after row, and zeros elsewhere.

    `offset` and `lower` are those of `extracttrian`; the last extent of `v` is k (k + 1) / 2, a
    number or as in ``var("v", "n*(n-1)/2")``, and the matrices have k + abs(offset) rows.
    """
    e, offset = _vector("maketrian", v), _offset("maketrian", offset)
    length = e.shape[-1]
    if triangle_rows(form_of(length)) is None:
        raise ShapeError(
            f"maketrian: a triangle has 1, 3, 6, 10, … or n*(n+1)/2 entries, not {length}"
        )
    return apply(MAKETRIAN, e, params=(offset, offset < 0 or (bool(lower) and not offset)))


@public
def extractdiag(a: object, offset: int = 0) -> Expr:
    """A diagonal of square matrices: the main one, or above (positive) or below it."""
    e, offset = square("extractdiag", as_expr(a)), _offset("extractdiag", offset)
    if offset:
        _whole("extractdiag", e, offset)
        return apply(EXTRACTDIAG, e, params=(offset,))
    batch = tuple(range(e.ndim - 2))
    return einsum([e], [(*batch, e.ndim, e.ndim)], (*batch, e.ndim))


@public
def makediag(v: object, offset: int = 0) -> Expr:
    """Square matrices with the last axis on a diagonal: the main one, or above or below it."""
    e, offset = _vector("makediag", v), _offset("makediag", offset)
    if offset:
        return apply(MAKEDIAG, e, params=(offset,))
    axes = tuple(range(e.ndim))
    return einsum([e], [axes], (*axes, axes[-1]))
