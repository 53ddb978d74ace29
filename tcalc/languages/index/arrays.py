"""Arrays of the index language: where their indices range, and their entries as products."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from ...graph.extents import Extent, extent_from, extent_names, form_of, show_shape
from ...graph.nodes import Expr, Var
from ...graph.products import Operand
from ...integers.affine import Affine, Constraint
from ...ops.indicator import Access, index, indicator, label_of
from ...ops.selection import selection
from ...support.errors import ParseError, RangeError, ShapeError, UnsupportedError
from ..reading.lexer import shape_error
from ..reading.precedence import Node
from .integers import Integers, pieces
from .ranges import Context, Labels, Placed
from .values import PARAMETERS, Val, added, called, integers, multiplied_out, of_arrays, operands_of
from .words import Index, Tree


class Array(NamedTuple):
    """A declared array or an earlier statement's, and at which number each axis starts."""

    expr: Expr
    lows: tuple[Affine, ...]


class Arrays:
    """The arrays that a text may read, and the labels of its indices."""

    def __init__(self, tree: Tree, declared: dict[str, Var]) -> None:
        self.tree = tree
        self.declared = declared
        self.arrays = {name: Array(v, (Affine(),) * v.ndim) for name, v in declared.items()}
        self.dimensions = extent_names([e for v in declared.values() for e in v.shape])
        self.read = {node.name for node in tree.nodes if node.kind in ("name", "access")}
        self.labels = Labels()
        self.integers = Integers(tree, self.dimensions)

    def fail(self, message: str, at: int) -> ParseError:
        return ParseError(message, self.tree.text, at)

    def unknown(self, node: Node) -> ParseError:
        elsewhere = any(found.name == node.name for found in self.tree.indices)
        message = f"`{node.name}` is neither declared nor an index here"
        if elsewhere:
            message += f"; sums are written out: sum[{node.name}](…)"
        elif node.kind == "access":
            message = f"`{node.name}` is no array: it is neither declared nor a name given before"
        return self.fail(message, node.at)

    def array(self, node: Node) -> Array:
        if node.indices:
            return self.computed(node.indices[0])
        if node.name not in self.arrays:
            raise self.unknown(node)
        return self.arrays[node.name]

    def check_arity(self, node: Node, array: Array) -> None:
        if len(node.args) == array.expr.ndim:
            return
        shape = show_shape(array.expr.shape)
        count = array.expr.ndim
        wanted = {0: "no subscripts", 1: "one subscript"}.get(count, f"{count} subscripts")
        message = f"{node.name} has shape {shape}: it takes {wanted}, not {len(node.args)}"
        raise shape_error(message, self.tree.text, node.at)

    def computed(self, place: int) -> Array:
        """What a function of whole arrays gives."""
        node = self.tree.nodes[place]
        count = operands_of(node.name)
        if count is None or len(node.args) < count:
            message = f"there is no function `{node.name}` of {len(node.args)} whole arrays"
            raise self.fail(message, node.at)
        operands: list[Expr] = []
        for arg in map(self.tree.nodes.__getitem__, node.args[:count]):
            if arg.kind != "name" or arg.name not in self.arrays:
                message = f"{node.name} takes arrays by their names alone"
                raise self.fail(message, arg.start)
            operands.append(self.arrays[arg.name].expr)
        try:
            found = of_arrays(node.name, operands, [self.parameter(k) for k in node.args[count:]])
        except ShapeError as error:
            raise shape_error(str(error), self.tree.text, node.at) from error
        except (UnsupportedError, TypeError, ValueError, IndexError) as error:
            raise self.fail(f"{node.name}: {error}", node.at) from error
        return Array(found, (Affine(),) * found.ndim)

    def parameter(self, place: int) -> Any:
        """A word, a number or an extent."""
        node = self.tree.nodes[place]
        if node.kind == "name" and node.name in PARAMETERS:
            return PARAMETERS[node.name]
        form = self.integers.affine(place)
        if form is not None and all(label_of(name) is None for name in form.names):
            return extent_from(form)
        if node.kind == "number":
            return float(node.name)
        raise self.fail("expected a number, an extent, True or False", node.start)

    # --- ranges -----------------------------------------------------------------------------------

    def named(self, place: int) -> Index:
        """An index, whose name is that of no array in the text; it may hide a dimension."""
        found = self.tree.indices[place]
        used = found.name in self.read or found.name not in self.declared
        if found.name in self.arrays and used:
            message = f"`{found.name}` is the name of an array; choose another name for the index"
            raise self.fail(message, found.at)
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
        return self.labels.whole(low, extent_from(length))

    def fixed(self, found: Index, place: int) -> Affine:
        """A bound of an index on the left: the same for all other indices."""
        end = self.integers.bound(place).affine
        if end is None or any(label_of(name) is not None for name in end.names):
            message = f"the range of `{found.name}`, an axis of an array, is affine in dimensions"
            raise self.fail(message, self.tree.nodes[place].start)
        return end

    def implicit(self, place: int) -> Placed:
        """The label of an index whose range is that of the axes where it stands alone."""
        found = self.tree.indices[place]
        known: list[tuple[Affine, Extent, int, int]] = []
        for use, axis in found.uses:
            node = self.tree.nodes[use]
            array = self.array(node)
            self.check_arity(node, array)
            known.append((array.lows[axis], array.expr.shape[axis], use, axis))
        if not known:
            message = f"the range of `{found.name}` follows from no use a[{found.name}]"
            raise self.fail(f"{message}; write {found.name}=low..high", found.at)
        low, extent, _, _ = known[0]
        for other in known[1:]:
            if other[:2] != (low, extent):
                raise self.disagree(found, known[0], other)
        return self.labels.whole(low, extent)

    def disagree(self, found: Index, one: Any, two: Any) -> ShapeError:
        texts = []
        for low, extent, use, axis in (one, two):
            node = self.tree.nodes[use]
            shape = show_shape(self.array(node).expr.shape)
            ends = f"{low}..{low + form_of(extent) - 1}"
            texts.append(f"{ends} in {self.tree.source(use)} (axis {axis} of shape {shape})")
        message = f"the range of `{found.name}` is {' and '.join(texts)}"
        where = self.tree.nodes[two[2]].start
        return shape_error(f"{message}; write {found.name}=low..high", self.tree.text, where)

    def ranges(self, place: int, context: Context) -> Iterable[Placed]:
        found = self.named(place)
        if found.low < 0:
            return [self.implicit(place)]
        low, high = self.integers.bound(found.low), self.integers.bound(found.high)
        forms = [f.form for least in (*low.forms, *high.forms) for f in least]
        known = self.labels.known(forms, context)
        return [self.labels.place(piece, context) for piece in pieces(low, high, known)]

    # --- entries of arrays ------------------------------------------------------------------------

    def entry(self, place: int, context: Context) -> Val:
        """An entry of an array: its product with what says where it is read."""
        node = self.tree.nodes[place]
        array = self.array(node)
        self.check_arity(node, array)
        word: list[int] = []
        others: list[Operand] = []
        for axis, (arg, extent) in enumerate(zip(node.args, array.expr.shape, strict=True)):
            sub, own = self.tree.nodes[arg], -1 - axis  # labels of the text are not negative
            if sub.kind == "call" and sub.name == "mod":
                word.append(own)
                others += self.wrapped(place, axis, own)
                continue
            form = self.subscript(arg) - array.lows[axis]
            label = label_of(form.names[0]) if len(form.terms) == 1 else None
            if label is not None and form == index(label) and self.labels.extents[label] == extent:
                word.append(label)
                continue
            word.append(own)
            extents = self.labels.extents | {own: extent}
            others += indicator(extents, [Constraint(index(own) - form, True)])
            accesses, near = self.inside(place, axis, form, context)
            if accesses:  # apart from the axis, which may be empty
                others += indicator(extents, near, accesses)
        operands: list[Operand] = [(array.expr, tuple(word)), *others]
        out = tuple(sorted({k for _, w in operands for k in w if k >= 0}))
        return multiplied_out(operands, out, self.labels.extents)

    def subscript(self, place: int) -> Affine:
        found = self.integers.bound(place).affine
        if found is None:
            message = f"`{self.tree.source(place)}` is not affine; a subscript is, or mod(e, n)"
            raise self.fail(message, self.tree.nodes[place].start)
        return found

    def inside(
        self, place: int, axis: int, form: Affine, context: Context
    ) -> tuple[list[Access], Context]:
        """Check that a place is inside an axis; what must be checked when extents are known."""
        node = self.tree.nodes[place]
        extent = self.array(node).expr.shape[axis]
        ends = Constraint(form), Constraint(form_of(extent) - 1 - form)
        if all(self.labels.holds(c, context) for c in ends) or not self.labels.possible(context):
            return [], ()
        text = self.tree.source(place)
        line = self.tree.text.count("\n", 0, node.start) + 1
        column = node.start - self.tree.text.rfind("\n", 0, node.start)
        near = self.labels.related([form], context)
        system = self.labels.known([form, form_of(extent)], context)
        if any(label_of(name) is None for name in system.names) or not isinstance(extent, int):
            return [Access(form, extent, f"{line}:{column}: {text}")], near
        span = self.labels.span(form, context)
        if span is None or (span[0] >= 0 and span[1] < extent):
            return [], ()
        low = self.array(node).lows[axis].constant
        wrong = (span[0] if span[0] < 0 else span[1]) + low
        shown = self.tree.source(node.args[axis])
        shape = show_shape(self.array(node).expr.shape)
        message = (
            f"{text} reads outside of {node.name}, of shape {shape}: index {shown} of axis {axis} "
            f"is {wrong}, and goes from {low} to {low + extent - 1}"
        )
        error = ParseError(message, self.tree.text, self.tree.nodes[node.args[axis]].start)
        raise RangeError(str(error))

    def wrapped(self, place: int, axis: int, label: int) -> list[Operand]:
        """The entry at mod(e, n): a selection by computed integers."""
        node = self.tree.nodes[place]
        low = self.array(node).lows[axis]
        call = self.tree.nodes[node.args[axis]]
        if len(call.args) != 2:
            raise self.fail("mod takes two arguments", call.at)
        form, modulus = self.subscript(call.args[0]), self.subscript(call.args[1])
        free = any(label_of(name) is not None for name in modulus.names)
        if free or (not modulus.terms and modulus.constant < 1):
            at = self.tree.nodes[call.args[1]].start
            raise self.fail("the second argument of mod is a positive number or dimension", at)
        accesses, _ = self.inside(place, axis, modulus - 1 - low, ())
        lowest, _ = self.inside(place, axis, -low, ())
        extents = self.labels.extents
        places = called("mod", [integers(form, extents), integers(modulus, extents)], extents)
        if low != Affine():
            places = added([places, integers(-low, extents)], extents)
        extent = self.array(node).expr.shape[axis]
        found: list[Operand] = [(selection(places.expr, extent), (*places.word, label))]
        return found + indicator({}, [], [*accesses, *lowest])
