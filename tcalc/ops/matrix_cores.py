"""What rows of matrix functions share: shapes, labels, symmetry, errors that name a batch item."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..graph.applications import core_swap, is_symmetric
from ..graph.extents import Coef, Shape, show_shape
from ..graph.nodes import Expr
from ..graph.normal import add, einsum, scale, view
from ..support.conditions import looked_at_later
from ..support.errors import LinAlgError, ShapeError
from .operands import shown_operands


def square(name: str, e: Expr) -> Expr:
    if e.ndim < 2 or e.shape[-1] != e.shape[-2]:
        raise ShapeError(f"{name} needs a square matrix, not shape {show_shape(e.shape)}")
    return e


def right_side(name: str, matrix: Expr, b: Expr) -> Expr:
    """b, which is solved for with a square matrix."""
    if not b.ndim or b.shape[max(-2, -b.ndim)] != matrix.shape[-1]:
        raise ShapeError(
            f"{name} of {shown_operands(matrix, b)}: "
            "a right-hand side has an entry, or a row, for every row of the matrix"
        )
    return b


def refuse(problem: str, bad: Any) -> None:
    """A LinAlgError that names the first bad item of a batch, if there is one."""
    if not looked_at_later(bad, partial(_refuse, problem)):
        _refuse(problem, np.asarray(bad))


def _refuse(problem: str, bad: Any) -> None:
    if bad.any():
        index = np.unravel_index(int(bad.argmax()), bad.shape)
        item = ", ".join(map(str, index))
        where = f" (item {item} of the batch)" if index else ""
        raise LinAlgError(problem + where)


def attempt(problem: str, compute: Callable[[Any], Any], a: Any) -> Any:
    """What `compute` makes of matrices; a LinAlgError says which matrix it is about."""

    def fails(matrix: Any) -> bool:
        try:
            compute(matrix)
        except np.linalg.LinAlgError:
            return True
        return False

    try:
        return compute(a)
    except np.linalg.LinAlgError:
        batch = a.shape[:-2]
        bad = [fails(a[at]) for at in np.ndindex(batch)]
        refuse(problem, np.array(bad).reshape(batch))
        raise


def same(params: tuple[Any, ...], shape: Shape) -> Shape:
    return shape


def of_square(name: str, axes: int = 2) -> Callable[..., Shape]:
    """The shape function of a row of square matrices of one shape, and of what is made of them.

    The result has the batch axes of the first operand, and so many of its core axes.
    """

    def shape(params: tuple[Any, ...], first: Shape, *others: Shape) -> Shape:
        if first[-1] != first[-2]:
            raise ShapeError(f"{name} needs a square matrix, not shape {show_shape(first)}")
        for other in others:
            if other != first[: len(other)]:
                shapes = f"{show_shape(first)} and {show_shape(other)}"
                raise ShapeError(f"{name} needs operands of one shape, not {shapes}")
        return first[: len(first) - 2 + axes]

    return shape


def labels(e: Expr) -> tuple[tuple[int, ...], int, int, int, int, int]:
    """Batch labels of a matrix, and five more."""
    n = e.ndim - 2
    return tuple(range(n)), n, n + 1, n + 2, n + 3, n + 4


def both(first: Expr) -> Expr:
    """Half a Jacobian and its transpose in the last two axes, those of a symmetric operand."""
    axes = list(range(first.ndim))
    swapped = einsum([first], [axes], [*axes[:-2], axes[-1], axes[-2]])
    return scale(add([first, swapped]), Coef(0.5))


def largest(xp: Any, a: Any) -> Any:
    """The largest magnitude of each row, 0 of one without entries; rows have one entry then."""
    if not a.shape[-1]:
        return xp.zeros((*a.shape[:-1], 1), a.dtype)
    return xp.abs(a).max(axis=-1, keepdims=True)


def symmetric(xp: Any, a: Any) -> Any:
    return (a + xp.swapaxes(a, -1, -2)) / 2


def symmetric_part(e: Expr) -> Expr:
    """(A + A') / 2; A itself where it is known to be symmetric."""
    return e if is_symmetric(e) else scale(add([e, view(e, core_swap(e.ndim))]), Coef(0.5))
