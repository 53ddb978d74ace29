"""What products of a program read of it, and forms in which their values are handed on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from ...graph.extents import ONE, Coef, Extent, Shape
from ...graph.factors import Factors, indicates
from ...graph.nodes import Einsum, Expr, Labels, Var
from ...support.records import NamedTuple
from .language import Code
from .places import View

#: A value and the labels of its axes.
Operand = tuple[Code, Labels]


class NodeCodes(Protocol):
    """What products read of the program that they are part of."""

    #: Extents of arrays in the program that are forms in dimensions.
    forms: Collection[Extent]
    #: Is it a function that is called for every step of a loop?
    often: bool
    #: In which order axes of nodes are hoped for, where they have one in memory.
    orders: Mapping[int, Labels]

    def code(self, e: Expr) -> Code:
        """An operand, which is written already."""

    def inner(self, e: Expr) -> Code:
        """An expression that need not stand in the whole, written now."""

    def kept(self, e: Expr) -> Code:
        """An expression under a name, written now where it is not yet."""

    def columns(self, e: Expr) -> Code:
        """The transpose of a matrix, in a language where its rows can lie together in memory."""

    def unwritten(self, e: Expr) -> bool:
        """Is it an inverse that is not written, of which products are solutions?"""

    def inside(self, stem: str, tree: Any, names: Mapping[str, Var]) -> str:
        """The name of a function inside this one, of variables under these names."""

    def integer(self, e: Expr) -> Code:
        """An array of integers that indexes, written now."""

    def extent(self, extent: Extent) -> int:
        """An extent as a number, by which orders of multiplication are chosen."""

    def factors(self, node: Einsum) -> Factors:
        """The product, with contractions that are part of it."""

    def turned(self, e: Expr) -> bool:
        """Is it a contraction to be written with the axes that its one reader wants?"""

    def owned(self, arg: Expr, node: Expr) -> bool:
        """Is the operand an array of the node's shape, made for it alone?"""

    def read_twice(self, e: Expr) -> bool:
        """Is it an array to be overwritten that is read twice?"""

    def shared(self, e: Expr) -> bool:
        """Is it read more than once?"""


class Narrow(NamedTuple):
    """What an array repeats: a value without the axes along which it is constant.

    Attributes
    ----------
    code : Code
    axes : set of int
        The axes of the whole array that it has.
    """

    code: Code
    axes: set[int]


def places(e: Expr) -> bool:
    """Is it an indicator, or a product with indicators that repeats no axis?"""
    if not isinstance(e, Einsum):
        return indicates(e)
    return len(set(e.out)) == e.ndim and any(map(indicates, e.args))


def unscaled(e: Expr) -> tuple[Coef, Expr]:
    """A coefficient and what it multiplies."""
    if isinstance(e, Einsum) and len(e.args) == 1 and e.labels[0] == e.out and not places(e):
        return e.coef, e.args[0]
    return ONE, e


def moved_axes(first: Labels, second: Labels, summed: Sequence[int]) -> int:
    """The axes of operands that are copied for a product of matrices, as summed ones lie apart."""
    n = len(summed)
    return (first[-n:] != tuple(summed)) * len(first) + (second[:n] != tuple(summed)) * len(second)


class Placed(NamedTuple):
    """Entries of a product, and where they stand among zeros of a shape; None: everywhere."""

    code: Code
    whole: Shape
    where: View | None


@runtime_checkable
class Embedding(Protocol):
    """A language whose arrays take further terms on a diagonal.

    Attributes
    ----------
    embedding_axes : int
        Sums of fewer axes are written as sums.
    """

    embedding_axes: int

    def overwritable(self, total: Code, shape: Shape, several: bool) -> Code | None:
        """An array of these entries under a name, to be overwritten, perhaps the array itself.

        None where a name for it would not be a new array. `several` says that it is a sum.
        """

    def embed_onto(self, onto: Code, c: Code, out: Sequence[int]) -> None:
        """The statement that adds c to the diagonal that repeated labels of `out` are."""


@runtime_checkable
class AnyOrder(Protocol):
    """A language whose arrays lie in memory with their axes in any order."""

    def turned_array(self, c: Code, perm: Sequence[int]) -> Code:
        """A new array with its axes in another order, under its name."""
