"""The state of a walk: what is found, sent to parts of the rows, and built for one of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import TypeGuard

from ..graph.applications import application, apply, apply_all, with_args
from ..graph.extents import ONE, Coef, Extent
from ..graph.nodes import (
    Add,
    Apply,
    Const,
    Einsum,
    Expr,
    Labels,
    Var,
    dimensions,
    intern,
    postorder,
    variables,
)
from ..graph.normal import add, einsum
from ..graph.operators import Indicator, Selection, batch_axes
from ..graph.products import is_number
from ..graph.properties import INTEGERS
from ..ops.selection import selection
from ..support.errors import PartitionError
from ..support.records import NamedTuple
from .combinations import COMBINATIONS
from .found import ByRows, Found, Known, Local, Reduced
from .passes import Passes, Reduction, Sliced

#: Characters of a formula that messages show.
SHOWN = 60
#: Operators that say at which places another operand is read.
PLACES = (Indicator, Selection)

PAIRS = "it pairs rows with rows, so that no part of them suffices"
SHIFTED = "it takes rows from other places, by an index or shifted"
UNIT = (
    "it is a matrix of all rows by all rows, zero off its diagonal; "
    "compile(structured=True) keeps the diagonal alone"
)
WHOLE = "it is of all rows at once"
LOOP = "a loop takes one row after the other"


class Factor(NamedTuple):
    """An operand of a product under its labels: a node, or a value that is known of several."""

    operand: Expr | Known
    word: Labels


def _says_places(e: Expr) -> TypeGuard[Apply]:
    return isinstance(e, Apply) and isinstance(e.op, PLACES)


def _shares(node: Apply, axis: int) -> bool:
    """Has each place along an axis its own entries of the operands, and little to do with them?"""
    return node.op.elementwise or (_says_places(node) and axis < batch_axes(node))


class Walk:
    """The state of one walk.

    Attributes
    ----------
    rows : mapping from Var to int
        The variables that are by rows, and which axis runs over them.
    extent : str
        The dimension of the rows of one part.
    words : str
        The rows in messages.
    """

    def __init__(self, roots: Sequence[Expr], rows: Mapping[Var, int]) -> None:
        self.rows = rows
        first, axis = next(iter(rows.items()))
        self.words = f"the rows ({first.shape[axis]}) of {', '.join([v.name for v in rows])}"
        self._taken = {*variables(roots), *dimensions(roots)}
        self.extent = self._fresh("rows")
        self.found: dict[int, Found] = {}
        self.sent: dict[Var, Known] = {}
        self.sliced: dict[Var, Sliced] = {}
        self.made: dict[Var, ByRows] = {}
        self.reductions: list[Reduction] = []
        self._sent: dict[int, Local] = {}
        self._along: dict[tuple[int, int], Local] = {}
        self._selected: dict[int, Local] = {}
        self._results: dict[tuple[object, ...], tuple[Var, ...]] = {}
        self.nodes = postorder(roots)  # held while ids are keys

    def _fresh(self, stem: str) -> str:
        """A name that nothing has."""
        tried = (f"{stem}{k or ''}" for k in count())
        name = next(name for name in tried if name not in self._taken)
        self._taken.add(name)
        return name

    def refused(self, node: Expr, why: str) -> PartitionError:
        text = str(node)
        shown = text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
        return PartitionError(f"{shown} cannot be computed from parts of {self.words}: {why}")

    # --- operands ---------------------------------------------------------------------------------

    def of(self, node: Expr) -> Found:
        return self.found[id(node)]

    def is_by_rows(self, node: Expr) -> bool:
        return isinstance(self.of(node), ByRows)

    def known(self, node: Expr) -> Known:
        """The value of an operand that is not by rows, known after its pass."""
        found = self.of(node)
        assert not isinstance(found, ByRows)
        return self.finished(found) if isinstance(found, Reduced) else found

    def finished(self, found: Reduced) -> Known:
        """What is known when the pass that reduces is over."""
        return Known(COMBINATIONS[found.op].finish(self.results(found)), found.passes + 1)

    def results(self, found: Reduced) -> tuple[Var, ...]:
        """What the parts become when the pass that reduces is over."""
        key = (found.op, *map(id, found.parts))
        if key not in self._results:
            self._results[key] = tuple([self._variable("result", part) for part in found.parts])
            result = Reduction(found.op, found.parts, self._results[key], found.passes)
            self.reductions.append(result)
        return self._results[key]

    def sending(self, value: Known) -> Local:
        """A known value as it stands in expressions of a part.

        Numbers and variables are sent as they are. What says at which places another operand is
        read keeps saying it: zeros and ones in its stead would be multiplied, and make nan of
        entries that are not read.
        """
        e = value.expr
        if is_number(e) or isinstance(e, Var | Const) or (_says_places(e) and not variables([e])):
            return Local(e, value.passes)
        if _says_places(e):
            return self.applied(e, [self.sending(Known(arg, value.passes)) for arg in e.args])
        if id(e) not in self._sent:
            v = self._variable("sent", e)
            self.sent[v] = value
            self._sent[id(e)] = Local(v, value.passes)
        return self._sent[id(e)]

    def along(self, node: Expr, axis: int, reader: Expr | None = None) -> Local:
        """A value of which each part of the rows has its own: one axis runs over them."""
        found = self.of(node)
        if isinstance(found, ByRows):
            if found.axis != axis:
                raise self.refused(node, PAIRS)
            return Local(found.expr, found.passes)
        key = (id(node), axis)
        if key not in self._along:
            if node.ndim > 1 and _says_places(node) and axis >= batch_axes(node):
                raise self.refused(node if reader is None else reader, SHIFTED)
            self._along[key] = self._spread(node, axis)
        return self._along[key]

    def _spread(self, node: Expr, axis: int) -> Local:
        """A known value along the rows: repeated for each where it is the same, else sliced."""
        fixed = not any(map(self.is_by_rows, node.args))
        if isinstance(node, Einsum) and fixed and node.out.count(node.out[axis]) == 1:
            factors = [Factor(a, w) for a, w in zip(node.args, node.labels, strict=True)]
            return self.product(node, factors, node.out[axis], node.out, node.coef)
        if isinstance(node, Add) and fixed:
            return self.joined(add, [self.along(arg, axis) for arg in node.args])
        if isinstance(node, Apply) and fixed and _shares(node, axis):
            return self.applied(node, [self.along(arg, axis) for arg in node.args])
        if _says_places(node):
            chosen = self._chosen(node)
            return chosen._replace(expr=einsum([chosen.expr], [(0, 1)], (1,)))
        value = self.known(node)
        shape = (*node.shape[:axis], self.extent, *node.shape[axis + 1 :])
        v: Var = intern(Var, (self._fresh("slice"), shape, ()))
        self.sliced[v] = Sliced(value, axis)
        return Local(v, value.passes)

    def _chosen(self, node: Expr) -> Local:
        """Zeros and ones along the rows: what selects, for a part, those of its rows with ones."""
        if id(node) not in self._selected:
            value = self.known(node)
            v: Var = intern(Var, (self._fresh("places"), (self._fresh("chosen"),), INTEGERS))
            self.sliced[v] = Sliced(value, 0, True)
            self._selected[id(node)] = Local(selection(v, self.extent), value.passes)
        return self._selected[id(node)]

    def _variable(self, stem: str, e: Expr) -> Var:
        found: Var = intern(Var, (self._fresh(stem), e.shape, ()))
        return found

    # --- results ----------------------------------------------------------------------------------

    def joined(self, made: Callable[[list[Expr]], Expr], items: Sequence[Local]) -> Local:
        passes = max([0, *[item.passes for item in items]])
        return Local(made([item.expr for item in items]), passes)

    def product(
        self,
        node: Einsum,
        factors: Sequence[Factor],
        label: int,
        out: Labels,
        coef: Coef = ONE,
    ) -> Local:
        """Factors of a product multiplied for one part of the rows, which a label runs over."""
        extents: dict[int, Extent] = {**dict(enumerate(node.extents)), label: self.extent}

        words = [f.word for f in factors]

        def local(k: int, operand: Expr | Known, word: Labels) -> Local:
            if isinstance(operand, Known):
                return self.sending(operand)
            if word.count(label) > 1:
                raise self.refused(node, PAIRS)
            if word == (label,) and _says_places(operand) and not self.is_by_rows(operand):
                # A label of the rows that are read, over which the product is summed.
                found, chosen = self._chosen(operand), max(extents) + 1
                words[k], extents[chosen] = (chosen, label), found.expr.shape[0]
                return found
            if label in word:
                return self.along(operand, word.index(label), node)
            return self.sending(self.known(operand))

        items = [local(k, *f) for k, f in enumerate(factors)]
        return self.joined(lambda args: einsum(args, words, out, coef, extents), items)

    def applied(self, node: Apply, items: Sequence[Local]) -> Local:
        """An application to operands of one part of the rows."""

        def made(args: list[Expr]) -> Expr:
            if isinstance(node.op, Selection):
                return selection(args[0], *node.params)
            if node.op.outputs > 1:
                return application(apply_all(node.op, *args, params=node.params)[0])
            return apply(node.op, *args, params=node.params)

        return self.joined(made, items)

    def made_once(self, item: Local, axis: int) -> Local:
        """A value by rows that has a plan of its own: passes that read it read the same digits."""
        v = self._variable("rows", item.expr)
        self.made[v] = ByRows(item.expr, item.passes, axis)
        return Local(v, item.passes)

    def from_known(self, node: Expr) -> Known:
        """A node none of whose operands is by rows."""
        values = [self.known(arg) for arg in node.args]
        passes = max([0, *[value.passes for value in values]])
        return Known(with_args(node, [value.expr for value in values]) if passes else node, passes)

    def passes(self, roots: Iterable[Expr]) -> Passes:
        outputs = [self.of(root) for root in roots]
        known = [self.finished(one) if isinstance(one, Reduced) else one for one in outputs]
        return Passes(
            self.rows, self.extent, known, self.reductions, self.sent, self.sliced, self.made
        )
