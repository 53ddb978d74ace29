"""Arrays between margins of zeros, and ones beside a diagonal, as text says them."""

from __future__ import annotations

from ...graph.extents import Extent, extent_from, form_of
from ...graph.factors import indicates
from ...graph.nodes import Einsum, Expr, Labels
from ...graph.normal import einsum, view
from ...integers.affine import Affine, Constraint, Guard
from ...ops.indexing import getitem
from ...ops.indicator import conditions
from ...ops.joining import widened
from ...support.records import NamedTuple
from .gathers import alike, composed, under_permutation, unit

#: Zeros before and behind, of every axis.
Margins = tuple[tuple[Extent, Extent], ...]


class Padded(NamedTuple):
    """An array in margins of zeros, with its axes permuted; widths as in `joining.widened`."""

    array: Expr
    widths: Margins
    perm: Labels


def as_padded(node: Einsum) -> Padded | None:
    """The array with margins of zeros that a contraction is, if it is one."""
    if not node.summed:
        inner = under_permutation(node)
        found = None if inner is None else as_padded(inner)
        return None if found is None else found._replace(perm=composed(node, found.perm))
    pairs = list(zip(node.args, node.labels, strict=True))
    arrays = [(op, word) for op, word in pairs if not indicates(op)]
    if len(arrays) != 1 or len(pairs) == 1:
        return None
    array, word = arrays[0]
    widths: dict[int, tuple[Extent, Extent]] = {}
    order: dict[int, int] = {}
    for op, w in pairs:
        if not indicates(op):
            continue
        read = [label for label in w if label in word and label not in node.out]
        guards = conditions(op.params, w)
        if len(read) != 1 or len(w) != 2 or len(guards) != 1:
            return None
        (label,), (out,) = read, [k for k in w if k not in read]
        margin = _margin(guards[0], label, out, node)
        if margin is None or label in order:
            return None
        widths[label], order[label] = margin, out
    natural = [order.get(label, label) for label in word]
    if sorted(natural) != sorted(node.out) or len(set(natural)) < len(natural):
        return None
    margins = tuple([widths.get(label, (0, 0)) for label in word])
    perm = tuple([natural.index(label) for label in node.out])
    if any(isinstance(end, int) and end < 0 for pair in margins for end in pair):
        if any(op.params[2] for op, _ in pairs if indicates(op)):
            return None
        array, margins = _cut(array, margins)
        return Padded(array, margins, perm) if any(map(any, margins)) else None
    same = alike(view(widened(array, margins), perm), node)
    return Padded(array, margins, perm) if same else None


def _cut(array: Expr, margins: Margins) -> tuple[Expr, Margins]:
    """What of an array stands between margins of which some are less than nothing, and these."""
    keys = tuple([slice(_short(a), -_short(b) or None) for a, b in margins])
    kept = tuple([(_less(a), _less(b)) for a, b in margins])
    return getitem(array, keys), kept


def _short(margin: Extent) -> int:
    return max(0, -margin) if isinstance(margin, int) else 0


def _less(margin: Extent) -> Extent:
    return max(0, margin) if isinstance(margin, int) else margin


def as_units(node: Expr) -> Expr | None:
    """The product of slices of unit matrices that a matrix with ones beside a diagonal is."""
    if not indicates(node) or node.ndim != 2 or node.params[2]:
        return None
    guards = conditions(node.params, (0, 1))
    if len(guards) != 1 or not isinstance(guards[0], Constraint) or not guards[0].equality:
        return None
    form, (rows, columns) = guards[0].form, map(form_of, node.shape)
    start = Affine.of("#0") - Affine.of("#1") - form * form.coefficient("#0")
    rest = rows - columns - start  # rows behind the last column
    if start.terms or rest.terms:
        return None
    above, below = start.constant, rest.constant
    one = getitem(unit(node.shape[0]), slice(max(0, above), -max(0, below) or None))
    two = getitem(unit(node.shape[1]), slice(max(0, -above), -max(0, -below) or None))
    found = einsum([one, two], [(2, 0), (2, 1)], (0, 1))
    return found if isinstance(found, Einsum) else None  # one of them has all rows


def _margin(guard: Guard, label: int, out: int, node: Einsum) -> tuple[Extent, Extent] | None:
    """How far an axis is from both ends of the one that it stands in; None where it is not."""
    if not isinstance(guard, Constraint) or not guard.equality:
        return None
    form = guard.form * guard.form.coefficient(f"#{out}")
    start = Affine.of(f"#{out}") - Affine.of(f"#{label}") - form
    after = form_of(node.extents[out]) - form_of(node.extents[label]) - start
    for end in (start, after):
        if any(c < 0 for _, c in end.terms):
            return None
    return extent_from(start), extent_from(after)
