"""Cotangents of one loop for several outputs: their rows behind each other, in a single loop.

Every block of rows of a Hessian would have loops of its own, each of which computes once more what
it needs of the primal steps. Together they have one more axis in place of theirs, as many entries
long as all of them. Only blocks in which unit tensors last from step to step stay apart, as of them
the diagonals are carried; and two, which are no quicker together.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.applications import parts
from ..graph.extents import ONE, Extent, Shape, extent_from, extent_product, form_of
from ..graph.nodes import Add, Apply, Einsum, Expr, Part, Var, postorder
from ..graph.normal import add, einsum
from ..graph.operators import Differentials, Loop, batch_axes
from ..graph.products import zeros_node
from ..integers.affine import Affine
from ..ops.joining import shifted
from ..ops.reshape import regrouped
from ..support.records import NamedTuple
from .body import Body
from .derivatives import loop_pullback
from .diagonal_states import diagonal_pattern

__all__: list[str] = []

#: The fewest rows that are put behind each other; two loops are made as fast as that.
FEWEST = 3


class _Row(NamedTuple):
    """The cotangents of a loop's outputs for one of those that ask.

    Attributes
    ----------
    given : sequence of Expr or None
        Of shape outer + output each; None is zero.
    outer : tuple of int or str
        The shape of what asks.
    wanted : sequence of bool
        Of which operands cotangents are asked for.
    """

    given: Differentials
    outer: Shape
    wanted: Sequence[bool]

    @property
    def length(self) -> Extent:
        return extent_product(self.outer)


def loop_pullbacks(
    node: Apply, given: Sequence[Differentials], wanted: Sequence[Sequence[bool]]
) -> list[Differentials]:
    """Cotangents of operands for every row of those of the outputs, found together or apart."""
    found: list[Differentials] = [[None] * len(node.args)] * len(given)
    rows: dict[int, _Row] = {}
    body: Body = node.params[0]
    for k, (bars, want) in enumerate(zip(given, wanted, strict=True)):
        for bar, part in zip(bars[: 3 * body.results], parts(node), strict=False):
            if bar is not None:
                rows[k] = _Row(bars, bar.shape[: bar.ndim - part.ndim], want)
    if len(rows) >= FEWEST and not _diagonals_last(body, list(rows.values())):
        several = _together(node, list(rows.values()))
        for k, own in zip(rows, several, strict=True):
            found[k] = own
    else:
        for k, row in rows.items():
            found[k] = loop_pullback(node, row.given, row.wanted)
    return found


def _together(node: Apply, rows: Sequence[_Row]) -> list[Differentials]:
    """Those of all rows by one loop."""
    starts = [Affine()]
    for row in rows:
        starts.append(starts[-1] + form_of(row.length))
    whole = extent_from(starts[-1])
    joined: list[Expr | None] = []
    for part, bars in zip(parts(node), zip(*[row.given for row in rows], strict=True), strict=True):
        terms = [
            shifted(_in_line(bar, row), 0, start, whole)
            for bar, row, start in zip(bars, rows, starts, strict=False)
            if bar is not None
        ]
        joined.append(add([zeros_node((whole, *part.shape)), *terms]) if terms else None)
    wanted = [any(asked) for asked in zip(*[row.wanted for row in rows], strict=True)]
    found = loop_pullback(node, joined, wanted)
    return [
        [
            _by_axes(shifted(e, 0, Affine() - start, row.length), row)
            if e is not None and want
            else None
            for e, want in zip(found, row.wanted, strict=True)
        ]
        for row, start in zip(rows, starts, strict=False)
    ]


def _in_line(bar: Expr, row: _Row) -> Expr:
    """A cotangent with one axis in place of those of what asks."""
    if row.outer:
        return regrouped(bar, 0, row.outer, (row.length,))
    return einsum([bar], [range(bar.ndim)], (bar.ndim, *range(bar.ndim)), ONE, {bar.ndim: 1})


def _by_axes(e: Expr, row: _Row) -> Expr:
    """A cotangent with the axes of what asks in place of one."""
    if row.outer:
        return regrouped(e, 0, (row.length,), row.outer)
    return einsum([e], [range(e.ndim)], range(1, e.ndim))


def _diagonals_last(body: Body, rows: Sequence[_Row]) -> bool:
    """May cotangents of states keep unit tensors between their axes and those of what asks?

    They do along axes that steps keep apart, as those of the items of a batch, where a unit tensor
    with an axis of that extent is given.
    """
    kept = _extents_apart(body)
    return bool(kept) and any(
        not kept.isdisjoint(_extents_of_unit_tensors(bar, len(row.outer)))
        for row in rows
        for bar in row.given
        if bar is not None
    )


def _extents_of_unit_tensors(bar: Expr, outer: int) -> set[Extent]:
    """Of those that join an axis in front, one of `outer`, to one behind."""
    word = diagonal_pattern(bar)
    shared = set(word[:outer]).intersection(word[outer:])
    return {extent for label, extent in zip(word, bar.shape, strict=True) if label in shared}


def _extents_apart(body: Body) -> set[Extent]:
    """Extents of axes of states along which all that a step makes of them is made entry by entry.

    States to which steps only add are none of these: their cotangents stay as they are given.
    """
    found: set[Extent] = set()
    for v, e in zip(body.states, body.outputs, strict=True):
        if _is_total(v, e):
            continue
        for axis, extent in enumerate(v.shape):
            places = _places(v, axis, body.outputs)
            if all(id(root) not in places or places[id(root)] is not None for root in body.outputs):
                found.add(extent)
    return found


def _is_total(v: Var, e: Expr) -> bool:
    """Is the next value of a state itself and something that does not depend on it?"""
    others = [term for term in e.args if term is not v] if isinstance(e, Add) else [e]
    return len(others) < len(e.args) and all(node is not v for node in postorder(others))


def _places(v: Var, axis: int, roots: Sequence[Expr]) -> dict[int, int | None]:
    """Of the nodes that depend on a variable, by id: the axis that goes along with one of its axes.

    None where entries along it meet.
    """
    places: dict[int, int | None] = {id(v): axis}
    for node in postorder(roots):
        found = {
            _place_in(node, k, places[id(a)]) for k, a in enumerate(node.args) if id(a) in places
        }
        if found:
            places[id(node)] = found.pop() if len(found) == 1 else None
    return places


def _place_in(node: Expr, k: int, place: int | None) -> int | None:
    """The axis of a node that goes along with an axis of its operand k."""
    if place is None or isinstance(node, Add | Part):
        return place
    if isinstance(node, Einsum):
        label = node.labels[k][place]
        return node.out.index(label) if label in node.out else None
    assert isinstance(node, Apply)
    return place if not isinstance(node.op, Loop) and place < batch_axes(node) else None
