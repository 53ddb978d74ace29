"""Shapes of undeclared names of the einsum language, from their use.

The order of a name is the number of its letters in an einsum form, or that of what it is combined
with entry by entry, else 2. Its dimensions become equal to others by use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ...graph.extents import Shape, extent_names
from ...graph.nodes import Var
from ...support.limits import spend
from ..reading.calls import ArrayTree
from ..reading.tree import Node
from ..reading.unification import DimensionUnifier
from .syntax import LEVELS

#: Operators and functions that act entry by entry, of which operands have one shape or are scalars.
ENTRYWISE = LEVELS.keys() - {"@", "@@", "//"}
#: What axes of a variable are called, by its order.
AXES = {1: ("entries",), 2: ("rows", "columns")}

#: Dimensions of a value; None where these are not known.
Dims = tuple[int, ...] | None


def undeclared_shapes(
    tree: ArrayTree,
    declared: Mapping[str, Var],
    names: Collection[str],
    entrywise: Collection[str],
    reserved: Collection[str],
) -> dict[str, Shape]:
    """The shapes of undeclared names.

    Parameters
    ----------
    tree : ArrayTree
    declared : mapping
        Variables by name.
    names : collection of str
        The undeclared names, in order of their first use.
    entrywise : collection of str
        Functions that act entry by entry.
    reserved : collection of str
        Names that no dimension may get.
    """
    finder = _Finder(tree, declared, frozenset(entrywise))
    orders = finder.orders(names)
    dimensions = finder.dimensions
    dimensions.reserved.update(reserved)
    found = {}
    for name in names:
        axes = AXES.get(orders[name], ("entries",) * orders[name])
        found[name] = tuple([dimensions.new(axis) for axis in axes])
    finder.unify(found)
    dimensions.settle()
    return {name: tuple([dimensions.shown(dim) for dim in dims]) for name, dims in found.items()}


class _Finder:
    """The passes over the nodes: orders from operands to results and back, then dimensions."""

    def __init__(
        self, tree: ArrayTree, declared: Mapping[str, Var], entrywise: frozenset[str]
    ) -> None:
        self.tree = tree
        self.declared = declared
        self.functions = entrywise
        self.dimensions = DimensionUnifier(
            extent_names([e for v in declared.values() for e in v.shape])
        )

    def entrywise(self, node: Node) -> bool:
        if node.kind in ("infix", "call"):
            return node.name in (ENTRYWISE if node.kind == "infix" else self.functions)
        return node.kind in ("prefix", "use")

    # --- orders -----------------------------------------------------------------------------------

    def orders(self, names: Collection[str]) -> dict[str, int]:
        known = self.known_orders()
        wanted: list[int | None] = [None] * len(known)
        found: dict[str, int] = {}
        for place in reversed(range(len(known))):
            node = self.tree.nodes[place]
            if node.kind == "name" and wanted[place] is not None:
                found.setdefault(node.name, wanted[place] or 0)
            for k, arg in enumerate(node.args):
                if node.kind == "einsum":
                    wanted[arg] = len(self.tree.forms[place].words[k])
                elif self.entrywise(node):
                    others = [known[other] or 0 for other in node.args if other != arg]
                    asked = wanted[place] if wanted[place] is not None else known[place]
                    wanted[arg] = wanted[arg] or asked or max(others, default=0) or asked
        return {name: found.get(name, 2) for name in names}

    def known_orders(self) -> list[int | None]:
        """The orders that follow from operands."""
        found: list[int | None] = []
        for place, node in enumerate(self.tree.nodes):
            args = [found[arg] for arg in node.args]
            if node.kind == "name":
                found.append(self.declared[node.name].ndim if node.name in self.declared else None)
            elif node.kind == "number":
                found.append(0)
            elif node.kind == "einsum":
                found.append(len(self.tree.forms[place].out))
            elif self.entrywise(node):
                most = max([n for n in args if n is not None], default=None)
                found.append(most if most or None not in args else None)
            else:
                found.append(None)
        return found

    # --- dimensions -------------------------------------------------------------------------------

    def unify(self, names: Mapping[str, tuple[int, ...]]) -> None:
        """Make dimensions equal by use; where they disagree, building says so."""
        values: list[Dims] = []
        for place, node in enumerate(self.tree.nodes):
            args = [values[arg] for arg in node.args]
            values.append(self.value(place, node, args, names))
            spend("steps", len(values[-1] or ()))

    def value(
        self, place: int, node: Node, args: list[Dims], names: Mapping[str, tuple[int, ...]]
    ) -> Dims:
        dimensions = self.dimensions
        if node.kind == "name" and node.name in names:
            return names[node.name]
        if node.kind == "name" and node.name in self.declared:
            return tuple([dimensions.rigid(e) for e in self.declared[node.name].shape])
        if node.kind == "einsum":
            return self.form(place, args)
        if node.kind == "infix" and node.name in ("@", "@@"):
            left, right = args
            if left is None or right is None:
                return None
            if node.name == "@" and left and right:
                dimensions.unify(left[-1], right[0])
                return left[:-1] + right[1:]
            return left + right
        if node.kind == "call" and node.name in SQUARE and args[:1] != [None] and args:
            first = args[0] or ()
            if len(first) >= 2:
                dimensions.unify(first[-2], first[-1])
            return first if SQUARE[node.name] else first[:-2]
        if not self.entrywise(node):
            return () if node.kind in ("name", "number") else None
        arrays = [dims for dims in args if dims]
        for dims in arrays[1:]:
            for a, b in zip(arrays[0], dims, strict=False):
                dimensions.unify(a, b)
        return arrays[0] if arrays else None if None in args else ()

    def form(self, place: int, args: list[Dims]) -> Dims:
        form = self.tree.forms[place]
        letters = {letter: self.dimensions.rigid(extent) for letter, extent in form.sizes.items()}
        for word, dims in zip(form.words, args, strict=True):
            for letter, dim in zip(word, dims or (), strict=False):
                self.dimensions.unify(letters.setdefault(letter, dim), dim)
        known = [letters.get(letter) for letter in form.out]
        return None if None in known else tuple([k for k in known if k is not None])


#: Functions of square matrices: is the result such a matrix too?
SQUARE = {
    **dict.fromkeys(("inv", "adj", "cholesky", "chol", "expm", "logm", "sqrtm"), True),
    **dict.fromkeys(("det", "logdet", "trace", "tr"), False),
}
