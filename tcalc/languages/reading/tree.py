"""The syntax tree of a text: a flat list of nodes, operands before the nodes that use them.

Later phases are loops over the list, so that depth costs nothing.
"""

from __future__ import annotations

import re

from ...support.errors import ParseError, ShapeError
from ...support.records import NamedTuple, record
from .lexer import excerpt

#: What an error begins with that shows its place.
_PLACE = re.compile(r"\d+:\d+: ")

#: Positions in a list, of nodes or of indices.
Positions = tuple[int, ...]


class Node(NamedTuple):
    """A node of the tree; each language says which kinds it has.

    Attributes
    ----------
    kind : str
    name : str
        The word or operator.
    args : tuple of int
        Positions of the operands in the list of nodes.
    at : int
        Offset of the word or operator.
    start, end : int
        Offsets of its whole text, parentheses around it included.
    indices : tuple of int
        Of the index language: the indices that it binds or reads, or the call whose entry it is.
    """

    kind: str
    name: str
    args: Positions
    at: int
    start: int
    end: int
    indices: Positions = ()


class SyntaxStatement(NamedTuple):
    """`name = …` or, last, an expression without a name.

    `root` is the position of the value's node, `at` the offset of the statement, `indices` those on
    its left.
    """

    name: str
    root: int
    at: int
    indices: Positions = ()


@record(frozen=True)
class SyntaxTree:
    """A text, its nodes and its statements."""

    text: str
    nodes: list[Node]
    statements: list[SyntaxStatement]

    def source(self, place: int) -> str:
        """A node as the user wrote it."""
        node = self.nodes[place]
        return excerpt(self.text, node.start, node.end)

    def error(self, message: str, at: int) -> ParseError:
        """The error that points at an offset of the text."""
        return ParseError(message, self.text, at)

    def shape_error(self, message: str, at: int, kind: type[ShapeError] = ShapeError) -> ShapeError:
        """A ShapeError, perhaps one of a kind, that shows its place as a ParseError does."""
        return kind(str(self.error(message, at)))

    def placed(self, error: ShapeError, at: int) -> ShapeError:
        """The error, which shows this place unless it shows one of its own."""
        if _PLACE.match(str(error)):
            return error
        return self.shape_error(str(error), at, type(error))
