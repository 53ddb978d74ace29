"""Choices of a plan, and equal expressions that may cost less: which do is known with the sizes.

The normal form keeps a sum inside a product shut. Where a term of the sum is an outer product of
smaller operands, or a contraction itself, multiplying out lets its operands be contracted in a
better order: S (x y' + M) S is (S x) (y' S) + S M S, and tr(T (S T S + M)) is made of S T once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from ...graph.applications import rewritten
from ...graph.extents import extent_of
from ...graph.factors import indicates, selects
from ...graph.nodes import Add, Apply, Einsum, Expr, Part, postorder
from ...graph.normal import add, distribute
from ...graph.operators import Loop
from ...graph.sums import low_order
from ...ops.entries import array_read
from ...rules.distances import by_differences
from ...support.machine import Machine
from ...support.records import NamedTuple

MAX_TERMS = 8


class LoweringChoice(NamedTuple):
    """Choices that hold for a whole plan.

    `open_shared`: are products opened in their consumers though several read them?
    `dense_inverses`: are inverses that somebody needs in full multiplied with, or solved with?
    """

    open_shared: bool = False
    dense_inverses: bool = False


def multiplied_out(roots: Sequence[Expr]) -> list[Expr]:
    """The roots with contractions distributed over sums that have a computed term.

    A computed term holds a contraction or a matrix function, whose rounding errors are there
    already. A difference of what is given, as x_i - x_j, is never torn apart, nor one of parts of
    one array that is given.
    """

    def change(new: Expr, old: Expr) -> Expr:
        return _distributed(new, MAX_TERMS)

    return rewritten(roots, change)


def differences_of_rows(
    roots: Sequence[Expr], sizes: Mapping[str, int], longest: int
) -> list[Expr]:
    """The roots with squared distances of rows up to a length by differences, and no product."""

    def short(e: Einsum) -> bool:
        summed = [extent for label, extent in enumerate(e.extents) if label not in e.out]
        return prod([extent_of(extent, sizes) for extent in summed]) <= longest

    return by_differences(roots, short) if longest else list(roots)


def summed_inside(
    roots: Sequence[Expr], sizes: Mapping[str, int], machine: Machine
) -> Sequence[Expr]:
    """The roots with sums over the steps of loops made in them, where that saves histories."""
    return _at_loops(roots, lambda op, node, roots: op.summed(node, roots, sizes, machine.call))


def rows_inside(
    roots: Sequence[Expr], sizes: Mapping[str, int], machine: Machine
) -> Sequence[Expr]:
    """The roots with rows of large arrays made in the steps of the loops that read or hold them."""
    return _at_loops(roots, lambda op, node, roots: op.rows(node, roots, sizes, machine))


def _at_loops(
    roots: Sequence[Expr],
    change: Callable[[Loop, Apply, Sequence[Expr]], Sequence[Expr] | None],
) -> Sequence[Expr]:
    """The roots after a change for every loop that is below them still when its turn comes."""
    below = _loops(roots)
    left = set(map(id, below))
    for node in below:
        assert isinstance(node.op, Loop)
        found = change(node.op, node, roots) if id(node) in left else None
        if found:
            roots, left = found, set(map(id, _loops(found)))
    return roots


def _loops(roots: Sequence[Expr]) -> list[Apply]:
    """The loops below the roots, those that read others first."""
    nodes = postorder(roots)
    return [n for n in nodes if isinstance(n, Apply) and isinstance(n.op, Loop)][::-1]


def ahead(roots: Sequence[Expr], sizes: Mapping[str, int], machine: Machine) -> list[Expr]:
    """The roots with as much of their loops as fits computed for all steps at once."""
    several: dict[int, tuple[Expr, ...]] = {}

    def change(new: Expr, old: Expr) -> Expr:
        if isinstance(new, Part) and id(new.args[0]) in several:
            return several[id(new.args[0])][new.index]
        if isinstance(new, Apply) and isinstance(new.op, Loop):
            found = new.op.hoisted(new, sizes, machine)
            if found is not None:
                several[id(new)] = found
        return new

    return rewritten(roots, change)


def is_computed(e: Expr) -> bool:
    """Is e a contraction or an outer product of smaller operands, one of them computed?"""
    if not isinstance(e, Einsum):
        return False
    held = any(_adds(a) or (isinstance(a, Apply) and _rounded(a)) for a in e.args)
    contracts = any(_adds(a) and a.ndim == e.ndim for a in e.args)
    return _adds(e) or contracts or (held and low_order(e))


def _adds(e: Expr) -> bool:
    """Is e a contraction, or entries that are read of what is computed?"""
    if not isinstance(e, Einsum) or not e.summed:
        return False
    array = array_read(e)
    return array is None or _rounded(array)


def _rounded(e: Expr) -> bool:
    """Has a contraction or a matrix function rounded the entries of e?"""
    if isinstance(e, Apply):
        if indicates(e) or selects(e) or e.op.elementwise:
            return False
        return not e.op.meaning.regroups or _rounded(e.args[0])
    if isinstance(e, Einsum) and e.summed:
        return _adds(e)
    return isinstance(e, Part) or (isinstance(e, Add | Einsum) and any(map(_rounded, e.args)))


def _distributed(e: Expr, most: int) -> Expr:
    """The computed terms of sums each under the product, and what is left of the sums."""
    if not isinstance(e, Einsum) or not e.summed:
        return e
    for k, arg in enumerate(e.args):
        terms = _terms(arg)
        apart = [t for t in terms if is_computed(t)]
        if len(terms) < 2 or not apart or len(terms) > most:
            continue
        rest = [t for t in terms if not is_computed(t)]
        parts = [*apart, add(rest)] if rest else apart
        return add([_distributed(p, most // len(parts)) for p in distribute(e, {k: parts})])
    return e


def _terms(e: Expr) -> list[Expr]:
    """The terms of a sum, those of scaled sums of computed terms inside it included."""
    if not isinstance(e, Add):
        return [e]
    found: list[Expr] = []
    for term in e.args:
        found += _opened(term) or [term]
    return found


def _opened(term: Expr) -> list[Expr] | None:
    """A product with one sum that has a computed term, as a sum of products."""
    places = [
        k for k, a in enumerate(term.args) if isinstance(a, Add) and any(map(is_computed, a.args))
    ]
    if not isinstance(term, Einsum) or term.summed or len(places) != 1:
        return None
    return distribute(term, {places[0]: term.args[places[0]].args})
