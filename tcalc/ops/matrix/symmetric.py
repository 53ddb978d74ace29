"""The symmetric part of arrays, pair of axes by pair of axes.

As a function it is the sum (A + A')/2, so that what is computed and differentiated with it are the
terms. The row only stands in formulas that are written, where one operand says what the sum of
several terms is.
"""

from __future__ import annotations

from typing import Any

from ...graph.applications import apply
from ...graph.extents import Coef, Shape, show_shape
from ...graph.nodes import Apply, Expr
from ...graph.normal import add, scale, view
from ...graph.operators import Kernels, Meaning, Op
from ...graph.spelling import Spelling
from ...support.errors import ShapeError
from ...support.whole_numbers import whole_number
from ..arithmetic import as_expr, public
from .directional_rows import member

__all__ = ["sym"]


def mirrored(e: Expr, axis: int) -> Expr:
    """The array with an axis and the one behind it in each other's place."""
    order = list(range(e.ndim))
    order[axis], order[axis + 1] = axis + 1, axis
    return view(e, order)


def symmetrised(e: Expr, start: int, pairs: int) -> Expr:
    """The part that is symmetric in pairs of axes, the first of them at `start`."""
    for axis in range(start, start + 2 * pairs, 2):
        e = scale(add([e, mirrored(e, axis)]), Coef(0.5))
    return e


@public
def sym(a: object, pairs: int = 1) -> Expr:
    """The symmetric part (A + A')/2 of matrices, the last two axes.

    Parameters
    ----------
    a : array_like or Expr
        Of shape (..., n, n).
    pairs : int
        In how many pairs of axes, from the last, it is to be symmetric: 2 for the second derivative
        by a symmetric matrix.

    Returns
    -------
    Expr
        Of a's shape.

    Raises
    ------
    ShapeError
        Where the axes of a pair differ in extent.
    """
    e, pairs = as_expr(a), whole_number(pairs)
    _shape((2 * pairs,), e.shape)
    return symmetrised(e, e.ndim - 2 * pairs, pairs)


def _shape(params: tuple[Any, ...], shape: Shape) -> Shape:
    """That of the operand, whose last axes are pairs."""
    start = len(shape) - params[0]
    paired = params[0] % 2 == 0 and start >= 0
    if not paired or any(shape[k] != shape[k + 1] for k in range(start, len(shape), 2)):
        raise ShapeError(f"sym needs pairs of axes of one extent, not shape {show_shape(shape)}")
    return shape


def _kernel(xp: Any, params: tuple[Any, ...], a: Any) -> Any:
    for axis in range(-params[0], 0, 2):
        a = (a + xp.swapaxes(a, axis, axis + 1)) / 2
    return a


def _pairs(node: Apply) -> int:
    return int(node.params[0]) // 2


def symmetric_row() -> Op:
    """The row of the symmetric part."""
    name = "symmetric_part"
    return member(name, lambda: Op(
        name, (-1,),
        Meaning(
            (None,), shape=_shape, self_adjoint=True,
            pushforward=lambda k, t, node: symmetrised(
                t, node.ndim - 2 * _pairs(node), _pairs(node)
            ),
            pullback=lambda k, t, node: symmetrised(t, t.ndim - 2 * _pairs(node), _pairs(node)),
        ),
        Kernels(_kernel), Spelling(r"\operatorname{{sym}}({0})", printed="sym"),
        params=((2,), (4, 2)), family=(symmetric_row,),
    ))  # fmt: skip


def symmetric_part(e: Expr, pairs: int) -> Expr:
    """The symmetric part as one application, for formulas."""
    return apply(symmetric_row(), e, params=(2,) if pairs == 1 else (2 * pairs, pairs))
