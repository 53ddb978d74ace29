"""Entries are taken of operands, before what is computed of them row by row, where they are few.

f(A)[idx] is f(A[idx]) for everything that makes row i of row i alone: entrywise functions, sums,
products that keep the label. It saves work where fewer rows are taken than there are and nobody
else reads the others. For plans only, as how many there are is known with the sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...graph.applications import apply, rewritten
from ...graph.extents import ONE, extent_of
from ...graph.factors import indicates, selects
from ...graph.nodes import Add, Apply, Einsum, Expr, Labels, postorder
from ...graph.normal import add, einsum

#: How many nodes, one below the other, rows are taken through.
DEPTH = 32

#: A node and what was found for it, an axis of it and a selection tensor.
_Known = dict[tuple[int, int, int], tuple[Expr, Expr]]


def gathered(roots: Sequence[Expr], sizes: Mapping[str, int]) -> list[Expr]:
    """The roots with rows that a selection tensor takes taken as early as possible."""
    few = {id(node) for node in postorder(roots) if selects(node) and _takes_few(node, sizes)}
    known: _Known = {}
    return rewritten(roots, lambda new, old: _early(new, few, known)) if few else list(roots)


def _takes_few(e: Apply, sizes: Mapping[str, int]) -> bool:
    """Does it take, along one axis, fewer entries than there are?"""
    return e.ndim == 2 and extent_of(e.shape[0], sizes) < extent_of(e.shape[1], sizes)


def _early(e: Expr, few: set[int], known: _Known) -> Expr:
    """A product with a selection tensor by which computed operands are read, without it."""
    if not isinstance(e, Einsum):
        return e
    for k, (arg, word) in enumerate(zip(e.args, e.labels, strict=True)):
        row, label = word if id(arg) in few else (0, 0)
        if row == label or label in e.out:
            continue
        rest = [o for n, o in enumerate(zip(e.args, e.labels, strict=True)) if n != k]
        read = [(op, own) for op, own in rest if label in own]
        if all(_by_rows(op, own, label) and row not in own for op, own in read) and any(
            isinstance(op, Add | Einsum) or _entrywise(op) for op, _ in read
        ):
            operands = [
                _rows(op, own.index(label), arg, DEPTH, known) if label in own else op
                for op, own in rest
            ]
            words = [tuple([row if n == label else n for n in own]) for _, own in rest]
            return einsum(operands, words, e.out, e.coef, dict(enumerate(e.extents)))
    return e


def _by_rows(op: Expr, own: Labels, label: int) -> bool:
    """Can an operand be read at one place of this label?"""
    return own.count(label) == 1 and not (selects(op) or indicates(op))


def _entrywise(e: Expr) -> bool:
    return isinstance(e, Apply) and e.op.elementwise and bool(e.args)


def _rows(e: Expr, axis: int, selection: Expr, depth: int, known: _Known) -> Expr:
    """The rows along an axis that a selection tensor takes, of operands where that is the same."""
    key = id(e), axis, id(selection)
    if key not in known:
        found = _inside(e, axis, selection, depth, known) if depth else None
        known[key] = e, _taken(e, axis, selection) if found is None else found
    return known[key][1]


def _inside(e: Expr, axis: int, selection: Expr, depth: int, known: _Known) -> Expr | None:
    """The rows by rows of operands, None where these do not tell."""

    def rows(arg: Expr, at: int) -> Expr:
        return _rows(arg, at, selection, depth - 1, known)

    if isinstance(e, Add):
        return add([rows(term, axis) for term in e.args])
    if isinstance(e, Apply) and _entrywise(e):
        return apply(e.op, *[rows(arg, axis) for arg in e.args], params=e.params)
    if not isinstance(e, Einsum):
        return None
    label = e.out[axis]
    operands = list(zip(e.args, e.labels, strict=True))
    if e.out.count(label) > 1 or not all(
        _by_rows(arg, word, label) for arg, word in operands if label in word
    ):
        return None
    found = [rows(arg, word.index(label)) if label in word else arg for arg, word in operands]
    extents = {**dict(enumerate(e.extents)), label: selection.shape[0]}
    return einsum(found, e.labels, e.out, e.coef, extents)


def _taken(e: Expr, axis: int, selection: Expr) -> Expr:
    word, new = tuple(range(e.ndim)), e.ndim
    out = [new if k == axis else k for k in word]
    extents = {**dict(enumerate(e.shape)), new: selection.shape[0]}
    return einsum([e, selection], [word, (new, axis)], out, ONE, extents)
