"""The arrays that a text of the index language reads, by name, and functions of whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...graph.extents import extent_from, show_shape
from ...graph.nodes import Expr, Var
from ...integers.affine import Affine
from ...ops.indicator import label_of
from ...support.declaring import declaration
from ...support.errors import ParseError, ShapeError, UnsupportedError
from ...support.misspelt import closest_name
from ...support.records import NamedTuple
from ..reading.lexer import WORDS
from ..reading.tree import Node
from .grammar import IndexTree
from .integers import Integers
from .values import array_call, array_operands


class OffsetArray(NamedTuple):
    """An array whose axis k starts at ``lows[k]``; the axes of a declared one start at 0."""

    expr: Expr
    lows: tuple[Affine, ...]


class Arrays:
    """The arrays that a text may read: declared ones, earlier statements', results of functions.

    Parameters
    ----------
    tree : IndexTree
    declared : mapping
        Variables by name.
    integers : Integers
        Reads extents that are parameters.
    formula : callable
        Reads functions of one number x that are parameters.
    """

    def __init__(
        self,
        tree: IndexTree,
        declared: Mapping[str, Var],
        integers: Integers,
        formula: Callable[[str], Expr],
    ) -> None:
        self.tree = tree
        self.integers = integers
        self.formula = formula
        self.named = {name: OffsetArray(v, (Affine(),) * v.ndim) for name, v in declared.items()}

    def unknown(self, node: Node) -> ParseError:
        """The error for a name that stands for nothing."""
        elsewhere = any(found.name == node.name for found in self.tree.indices)
        message = f"`{node.name}` is neither declared nor an index here"
        first = self.tree.nodes[self.tree.statements[-1].root]
        if elsewhere or self.tree.in_subscript(node):
            return self.tree.error(f"{message}; sums are written out: sum[{node.name}](…)", node.at)
        if first.name == "==" and first.start == node.start:
            message = f"a statement has one =: {self.tree.text[node.start : node.end]} = …"
            return self.tree.error(message, first.at)
        if node.kind == "access":
            message = f"`{node.name}` is no array: it is neither declared nor a name given before"
        close = closest_name(node.name, self.named)
        hint = f"did you mean `{close}`? Otherwise " if close else ""
        shape = "mnkpqrst"[: len(node.args)] if len(node.args) > 1 else "n" * len(node.args)
        message += f"; {hint}declare {declaration(node.name, *shape)}"
        return self.tree.error(message, node.at)

    def array(self, node: Node) -> OffsetArray:
        """The array that an access reads. ParseError where there is none."""
        if node.indices:
            return self.computed(node.indices[0])
        if node.name not in self.named:
            raise self.unknown(node)
        return self.named[node.name]

    def check_arity(self, node: Node, array: OffsetArray) -> None:
        """ShapeError where a node has not one subscript for each axis."""
        if len(node.args) == array.expr.ndim:
            return
        shape = show_shape(array.expr.shape)
        count = array.expr.ndim
        wanted = {0: "no subscripts", 1: "one subscript"}.get(count, f"{count} subscripts")
        message = f"{node.name} has shape {shape}: it takes {wanted}, not {len(node.args)}"
        raise self.tree.shape_error(message, node.at)

    def computed(self, place: int) -> OffsetArray:
        """The result of a function of whole arrays."""
        node = self.tree.nodes[place]
        count = array_operands(node.name)
        if count is None or len(node.args) < count:
            message = f"there is no function `{node.name}` of {len(node.args)} whole arrays"
            raise self.tree.error(message, node.at)
        operands: list[Expr] = []
        for arg in map(self.tree.nodes.__getitem__, node.args[:count]):
            if arg.kind != "name" or arg.name not in self.named:
                message = f"{node.name} takes arrays by their names alone"
                raise self.tree.error(message, arg.start)
            operands.append(self.named[arg.name].expr)
        try:
            found = array_call(node.name, operands, [self.parameter(k) for k in node.args[count:]])
        except ShapeError as error:
            raise self.tree.placed(error, node.at) from error
        except (UnsupportedError, TypeError, ValueError, IndexError) as error:
            raise self.tree.error(f"{node.name}: {error}", node.at) from error
        return OffsetArray(found, (Affine(),) * found.ndim)

    def parameter(self, place: int) -> Any:
        """The value of an argument: a word, a number, an extent, several, or a function of x."""
        node = self.tree.nodes[place]
        if node.kind == "guard":  # brackets around several
            return tuple(map(self.parameter, node.args))
        if node.kind == "name":
            return WORDS.get(node.name, node.name)
        form = self.integers.affine(place)
        if form is not None and all(label_of(name) is None for name in form.names):
            return extent_from(form)
        if node.kind == "number":
            return float(node.name)
        return self.formula(self.tree.text[node.start : node.end])
