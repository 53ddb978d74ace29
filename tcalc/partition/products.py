"""Products over rows: which labels run over them, and what is summed of each part."""

from __future__ import annotations

from collections.abc import Sequence

from ..graph.nodes import Einsum, Labels
from ..graph.normal import einsum
from .found import ByRows, Found, Known, Reduced
from .walk import PAIRS, UNIT, Factor, Walk


def split_product(walk: Walk, node: Einsum) -> Found:
    """What a product is over the rows.

    Labels that run over rows and are summed are reduced one after the other, each over the operands
    that carry it, or where it is the only one over all that are summed with these.
    """
    rows = _row_labels(walk, node)
    if not rows:
        return _rescaled(walk, node) or walk.from_known(node)
    kept = [label for label in rows if label in node.out]
    if len(kept) > 1 or any(sum([k in w for k in rows]) > 1 for w in node.labels):
        raise walk.refused(node, PAIRS)
    if kept and node.out.count(kept[0]) > 1:
        raise walk.refused(node, UNIT)
    factors = [Factor(a, w) for a, w in zip(node.args, node.labels, strict=True)]
    for label in [label for label in rows if label not in kept]:
        group = _summed_with(label, factors, node.out, alone=len(rows) == 1)
        others = [f for f in factors if not any(f is one for one in group)]
        wanted = {i for f in others for i in f.word}.union(node.out)
        word = tuple(dict.fromkeys([i for f in group for i in f.word if i in wanted]))
        if not others and sorted(node.out) == sorted(word):
            whole = walk.product(node, group, label, node.out, node.coef)
            return Reduced(None, (whole.expr,), whole.passes)
        part = walk.product(node, group, label, word)
        value = walk.finished(Reduced(None, (part.expr,), part.passes))
        factors = [*others, Factor(value, word)]
    if kept:
        whole = walk.product(node, factors, kept[0], node.out, node.coef)
        return ByRows(*whole, node.out.index(kept[0]))
    return _between_passes(walk, node, factors)


def _row_labels(walk: Walk, node: Einsum) -> list[int]:
    """The labels under which operands are by rows, each once."""
    found: dict[int, None] = {}
    for arg, word in zip(node.args, node.labels, strict=True):
        value = walk.of(arg)
        if isinstance(value, ByRows):
            label = word[value.axis]
            if word.count(label) > 1:
                raise walk.refused(node, PAIRS)
            found[label] = None
    return list(found)


def _summed_with(label: int, factors: Sequence[Factor], out: Labels, alone: bool) -> list[Factor]:
    """The factors that carry a label; and, where it is alone, those summed together with these."""
    group = [f for f in factors if label in f.word]
    while alone:
        inner = {i for f in group for i in f.word}.difference(out)
        more = [f for f in factors if label in f.word or inner.intersection(f.word)]
        if len(more) == len(group):
            break
        group = more
    return group


def _between_passes(walk: Walk, node: Einsum, factors: Sequence[Factor]) -> Known:
    """The product of what was reduced and what is known."""
    values = [f.operand if isinstance(f.operand, Known) else walk.known(f.operand) for f in factors]
    args, words = [value.expr for value in values], [f.word for f in factors]
    expr = einsum(args, words, node.out, node.coef, dict(enumerate(node.extents)))
    return Known(expr, max([value.passes for value in values]))


def _rescaled(walk: Walk, node: Einsum) -> Reduced | None:
    """A sum over rows that is scaled, or summed over further axes, still is one."""
    if len(node.args) != 1 or len(set(node.out)) < len(node.out):
        return None
    found = walk.of(node.args[0])
    if not isinstance(found, Reduced) or found.op or not set(node.out) <= set(node.labels[0]):
        return None
    part = einsum(found.parts, node.labels, node.out, node.coef, dict(enumerate(node.extents)))
    return found._replace(parts=(part,))
