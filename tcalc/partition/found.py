"""What a node is over the rows of the data: known, by rows, or to be reduced over them."""

from __future__ import annotations

from ..graph.nodes import Expr
from ..graph.operators import Op
from ..support.records import NamedTuple


class Known(NamedTuple):
    """A value that is known after so many passes over the data.

    Attributes
    ----------
    expr : Expr
        Of variables that are not by rows, and of results of passes.
    passes : int
    """

    expr: Expr
    passes: int = 0


class ByRows(NamedTuple):
    """A value one axis of which runs over the rows: each part of the rows gives its part.

    Attributes
    ----------
    expr : Expr
        Of the rows of one part, and of what is sent to it.
    passes : int
        That come before.
    axis : int
    """

    expr: Expr
    passes: int
    axis: int


class Reduced(NamedTuple):
    """A value that is combined of what each part of the rows gives.

    Attributes
    ----------
    op : Op or None
        The row of `COMBINATIONS`; None for sums.
    parts : tuple of Expr
    passes : int
        That come before the one which computes it.
    """

    op: Op | None
    parts: tuple[Expr, ...]
    passes: int


Found = Known | ByRows | Reduced


class Local(NamedTuple):
    """An expression of one part of the rows, and the passes that come before."""

    expr: Expr
    passes: int
