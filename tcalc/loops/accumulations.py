"""States of loops that are only accumulated: reductions over the range of the index, not loops.

A step that combines the state with something that does not depend on it, by an operation that may
be done in any order, needs no loop. One row says which operation, and how all steps are one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from ..graph.extents import ONE
from ..graph.nodes import Apply, Einsum, Expr, Var, postorder
from ..graph.normal import add, einsum, terms_of
from ..graph.operators import TABLE
from ..graph.products import filled, is_number, numeral, zeros_node
from ..ops import arithmetic
from ..ops.choices import choice
from ..ops.cumulative import cumsum
from ..ops.elementwise import equal, logaddexp, maximum, minimum, where
from ..ops.joining import concatenate
from ..ops.reductions import arange, logsumexp, max, min, prod
from ..support.records import NamedTuple

__all__: list[str] = []


class Accumulation(NamedTuple):
    """An operation whose order does not matter.

    Attributes
    ----------
    identity : float
        Combined with a state it changes nothing.
    operands : callable
        ``operands(e)`` are expressions of e's shape that e combines; e alone if it combines none.
    combined : callable
        ``combined(operands)`` combines them.
    end : callable
        ``end(init, items)`` combines the first state and all items, along their leading axis.
    history : callable or None
        The states after every item, where one reduction gives them.
    """

    identity: float
    operands: Callable[[Expr], Sequence[Expr]]
    combined: Callable[[Sequence[Expr]], Expr]
    end: Callable[[Expr, Expr], Expr]
    history: Callable[[Expr, Expr], Expr] | None = None


class Accumulated(NamedTuple):
    """What a step combines a state with."""

    row: Accumulation
    item: Expr


def _factors(e: Expr) -> Sequence[Expr]:
    """The factors of an entrywise product, each of its shape."""
    if not isinstance(e, Einsum) or e.summed or len(set(e.out)) < len(e.out) or not e.args:
        return [e]
    extents = dict(enumerate(e.extents))
    found = [
        einsum([arg], [word], e.out, ONE, extents)
        for arg, word in zip(e.args, e.labels, strict=True)
    ]
    return found if e.coef == ONE else [*found, filled(e.coef, e.shape)]


def _multiplied(factors: Sequence[Expr]) -> Expr:
    axes = range(factors[0].ndim)
    return einsum(factors, [axes] * len(factors), axes)


def _of(name: str) -> Callable[[Expr], Sequence[Expr]]:
    """The operands of a row, and those of its operands that are the same row."""

    def operands(e: Expr) -> Sequence[Expr]:
        return e.args if isinstance(e, Apply) and e.op is TABLE[name] else [e]

    return operands


def _pairwise(function: Callable[[Expr, Expr], Expr]) -> Callable[[Sequence[Expr]], Expr]:
    def combined(operands: Sequence[Expr]) -> Expr:
        found, *rest = operands
        for other in rest:
            found = function(found, other)
        return found

    return combined


def with_first(init: Expr, items: Expr) -> Expr:
    """The first state in front of the items; nothing is multiplied with it, it may be infinite."""
    padded = concatenate([zeros_node((1, *init.shape)), items], 0)
    first = equal(arange(padded.shape[0]), 0)[(slice(None), *[None] * init.ndim)]
    return where(first, init, padded)


def _reduced(identity: float, reduction: Callable[..., Expr]) -> Callable[[Expr, Expr], Expr]:
    """The reduction of the first state and all items: of no items it is the state, and ties share
    a derivative evenly.
    """

    def end(init: Expr, items: Expr) -> Expr:
        some = isinstance(items.shape[0], int) and items.shape[0] > 0
        alone = some and is_number(init, identity)
        return reduction(items if alone else with_first(init, items), 0)

    return end


#: Rows in the order in which they are tried.
ACCUMULATIONS = (
    Accumulation(
        0.0, terms_of, add, lambda init, items: add([init, arithmetic.sum(items, 0)]),
        lambda init, items: add([init, cumsum(items, 0)]),
    ),
    Accumulation(
        1.0, _factors, _multiplied, lambda init, items: _multiplied([init, prod(items, 0)])
    ),
    Accumulation(-inf, _of("maximum"), _pairwise(maximum), _reduced(-inf, max)),
    Accumulation(inf, _of("minimum"), _pairwise(minimum), _reduced(inf, min)),
    Accumulation(-inf, _of("logaddexp"), _pairwise(logaddexp), _reduced(-inf, logsumexp)),
)  # fmt: skip


def accumulated(out: Expr, state: Var, states: Sequence[Var], history: bool) -> Accumulated | None:
    """How a state is accumulated, if what is combined with it depends on no state."""
    for row in ACCUMULATIONS:
        item = _item(row, out, state, states) if row.history or not history else None
        if item is not None:
            return Accumulated(row, item)
    return None


def dependents(roots: Sequence[Expr], variables: Sequence[Expr]) -> set[int]:
    """The nodes that depend on variables."""
    found = {id(v) for v in variables}
    for node in postorder(roots):
        if any(id(arg) in found for arg in node.args):
            found.add(id(node))
    return found


def _item(row: Accumulation, out: Expr, state: Var, states: Sequence[Var]) -> Expr | None:
    """What a step combines a state with, also in branches of `where`."""
    known = {id(node) for node in postorder([out])}
    moving = dependents([out], states)

    def moves(e: Expr) -> bool:
        return id(e) in moving if id(e) in known else bool(dependents([e], states) & {id(e)})

    rest: list[Expr] = []
    while out is not state:
        operands = row.operands(out)
        if len(operands) == 1:
            part = _chosen_item(row, out, state, states)
            return None if part is None else row.combined([*rest, part])
        inside = [e for e in operands if moves(e)]
        if len(inside) != 1:
            return None
        rest += [e for e in operands if e is not inside[0]]
        (out,) = inside
    return row.combined(rest or [numeral(row.identity, state.shape)])


def _chosen_item(row: Accumulation, out: Expr, state: Var, states: Sequence[Var]) -> Expr | None:
    """The item of a `where`, perhaps transposed, that accumulates a state in both branches."""
    parts = choice(out)
    if isinstance(out, Einsum) and len(out.args) == 1 and out.coef == ONE and not out.summed:
        inner, extents = choice(out.args[0]), dict(enumerate(out.extents))
        if inner is not None and len(set(out.out)) == len(out.out):
            c, one, other = (einsum([p], out.labels, out.out, ONE, extents) for p in inner)
            parts = c, one, other
    if parts is None or dependents([parts[0]], states) & {id(parts[0])}:
        return None
    first, second = (_item(row, branch, state, states) for branch in parts[1:])
    return None if first is None or second is None else where(parts[0], first, second)
