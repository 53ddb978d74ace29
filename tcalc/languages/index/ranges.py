"""Ranges of indices in the index language: stated, or inferred from axes they alone subscript."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...graph.extents import Extent, extent_from, form_of, show_shape
from ...graph.nodes import Var
from ...integers.affine import Affine
from ...ops.indicator import label_of
from ...support.errors import ShapeError
from .arrays import Arrays
from .grammar import Index, IndexTree
from .integers import Integers, range_pieces
from .iteration_space import Context, IterationSpace, Placed


class Ranges:
    """Gives every index of a text its labels.

    Parameters
    ----------
    tree : IndexTree
    declared : mapping
        Variables by name.
    arrays : Arrays
        Whose axes say where an index ranges that has no bounds.
    space : IterationSpace
        Where the labels are made.
    integers : Integers
        Reads bounds.
    """

    def __init__(
        self,
        tree: IndexTree,
        declared: Mapping[str, Var],
        arrays: Arrays,
        space: IterationSpace,
        integers: Integers,
    ) -> None:
        self.tree = tree
        self.declared = declared
        self.arrays = arrays
        self.space = space
        self.integers = integers
        self.read = {node.name for node in tree.nodes if node.kind in ("name", "access")}

    def named(self, place: int) -> Index:
        """An index, whose name is that of no array in the text; it may hide a dimension."""
        found = self.tree.indices[place]
        used = found.name in self.read or found.name not in self.declared
        if found.name in self.arrays.named and used:
            message = f"`{found.name}` is the name of an array; choose another name for the index"
            raise self.tree.error(message, found.at)
        return found

    def output(self, place: int) -> Placed:
        """The label of an index on the left: its range is a box."""
        found = self.named(place)
        if found.low < 0:
            return self.implicit(place)
        low, high = self.fixed(found, found.low), self.fixed(found, found.high)
        length = high - low + 1
        if not length.terms:
            length = Affine((), max(0, length.constant))
        return self.space.whole(low, extent_from(length))

    def fixed(self, found: Index, place: int) -> Affine:
        """A bound of an index on the left: the same for all other indices."""
        end = self.integers.bound(place).in_dimensions
        if end is None or any(label_of(name) is not None for name in end.names):
            message = f"the range of `{found.name}`, an axis of an array, is affine in dimensions"
            raise self.tree.error(message, self.tree.nodes[place].start)
        return end

    def implicit(self, place: int) -> Placed:
        """The label of an index whose range is that of the axes where it stands alone."""
        found = self.tree.indices[place]
        known: list[tuple[Affine, Extent, int, int]] = []
        for use, axis in found.uses:
            node = self.tree.nodes[use]
            array = self.arrays.array(node)
            self.arrays.check_arity(node, array)
            known.append((array.lows[axis], array.expr.shape[axis], use, axis))
        if not known:
            message = f"the range of `{found.name}` follows from no use a[{found.name}]"
            if shown := self.integers.not_affine(place):
                message += f", as `{shown}` is not affine"
            raise self.tree.error(f"{message}; write {found.name}=low..high", found.at)
        low, extent, _, _ = known[0]
        for other in known[1:]:
            if other[:2] != (low, extent):
                raise self.disagree(found, known[0], other)
        return self.space.whole(low, extent)

    def disagree(self, found: Index, one: Any, two: Any) -> ShapeError:
        """The error for two uses of an index whose axes differ."""
        texts = []
        for low, extent, use, axis in (one, two):
            node = self.tree.nodes[use]
            shape = show_shape(self.arrays.array(node).expr.shape)
            ends = f"{low}..{low + form_of(extent) - 1}"
            texts.append(f"{ends} in {self.tree.source(use)} (axis {axis} of shape {shape})")
        message = f"the range of `{found.name}` is {' and '.join(texts)}"
        where = self.tree.nodes[two[2]].start
        return self.tree.shape_error(f"{message}; write {found.name}=low..high", where)

    def pieces(self, place: int, context: Context) -> Iterable[Placed]:
        """The labels of an index that is bound inside: one for each piece of its range."""
        found = self.named(place)
        if found.low < 0:
            return [self.implicit(place)]
        low, high = self.integers.bound(found.low).joined, self.integers.bound(found.high).joined
        forms = [f.form for least in (*low.forms, *high.forms) for f in least]
        known = self.space.known(forms, context)
        return [self.space.place(piece, context) for piece in range_pieces(low, high, known)]
