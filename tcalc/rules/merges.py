"""Merged axes taken outside: products, sums and unit tensors are of the axes that were merged.

A product over a merged axis is one over the axes it was made of: kron(A, B) vec(X) needs no
Kronecker product, and the derivative of a reshape is a unit tensor. What is split meets what was
merged, and both are gone.
"""

from __future__ import annotations

from ..graph.applications import apply
from ..graph.extents import ONE, Extent, Shape
from ..graph.factors import LabelledExpr, indicates, selects
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels
from ..graph.normal import add, einsum, view
from ..graph.operators import Op
from ..ops.arithmetic import sum
from ..ops.elementwise import exp, sin
from ..ops.indexing import getitem
from ..ops.indicator import INDICATOR
from ..ops.reductions import LOGSUMEXP, MAX, MIN, NORM2, PROD, arange
from ..ops.reshape import MERGE, merged, merged_places, merges, regrouped, reshape
from .strategy import rule

MERGES = "merged axes"


def _to_one(e: Expr) -> Shape:
    """The extents of the axes that e merges into its last one; none where it does not."""
    if merges(e) and len(e.params[1]) == 1 and e.params[0] > 1:
        (arg,) = e.args
        return arg.shape[arg.ndim - e.params[0] :]
    return ()


def _split(op: Expr, word: Labels, label: int, shape: Shape, labels: Labels) -> LabelledExpr:
    """An operand of a product with axes of these labels in place of those of one."""
    while label in word:
        axis = word.index(label)
        rest = [k for k in range(op.ndim) if k != axis]
        op = merged(view(op, [*rest, axis]), 1, shape)
        word = (*[word[k] for k in rest], *labels)
    return op, word


def _opened(e: Einsum, label: int, shape: Shape) -> tuple[Expr, Labels, Labels] | None:
    """The product over the axes that a label was made of; None where an index is read by it.

    Its labels in the result, and those that stand for the one label.
    """
    pairs = list(zip(e.args, e.labels, strict=True))
    if any(label in word and (indicates(op) or selects(op)) for op, word in pairs):
        return None
    count = len(e.extents)
    labels = tuple(range(count, count + len(shape)))
    extents: dict[int, Extent] = dict(enumerate((*e.extents, *shape)))
    split = [_split(op, word, label, shape, labels) for op, word in pairs]
    out: list[int] = []
    for k in e.out:
        out += labels if k == label else [k]
    ops, words = [op for op, _ in split], [word for _, word in split]
    return einsum(ops, words, out, e.coef, extents), tuple(out), labels


def _merge_by_places(op: Expr, word: Labels) -> LabelledExpr | None:
    """An indicator of where merged axes stand, [k == n*i+j], as a unit tensor with axes merged."""
    axes = merged_places(op)
    if not axes:
        return None
    *rest, axis = axes
    places = range(len(rest))
    extents: dict[int, Extent] = {k: op.shape[axis] for k, axis in enumerate(rest)}
    unit = einsum([], [], (*places, *places), ONE, extents)
    return merged(unit, len(rest), (op.shape[axis],)), tuple([word[k] for k in axes])


def _by_places(e: Expr) -> Expr | None:
    """A product with indicators of where merged axes stand, over the axes that are merged."""
    assert isinstance(e, Einsum)
    pairs: list[LabelledExpr] = list(zip(e.args, e.labels, strict=True))
    made = [_merge_by_places(op, word) for op, word in pairs]
    if made == [None] * len(pairs):
        return None
    found = [new or old for new, old in zip(made, pairs, strict=True)]
    ops, words = [op for op, _ in found], [word for _, word in found]
    whole = einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))
    return whole if not isinstance(whole, Einsum) or _plain(whole) else _outside(whole)


def _plain(e: Einsum) -> bool:
    """Is a product the permutation of one operand, perhaps repeated along further axes?"""
    return len(e.args) == 1 and e.coef == ONE and not e.summed and len(set(e.out)) == len(e.out)


def _outside(e: Expr) -> Expr | None:
    """A product over a merged axis as one over the axes that it was made of."""
    assert isinstance(e, Einsum)
    if _plain(e):
        return None
    for op, word in zip(e.args, e.labels, strict=True):
        shape = _to_one(op)
        found = _opened(e, word[-1], shape) if shape else None
        if found is not None:
            whole = found[0]
            for axis, k in enumerate(e.out):
                if k == word[-1]:
                    whole = regrouped(whole, axis, shape, (e.extents[k],))
            return whole
    return None


def _inside(e: Expr) -> Expr | None:
    """A split of a merged axis, or of a product, as one of its operands."""
    assert isinstance(e, Apply)
    (arg,), (count, target) = e.args, e.params
    found = merged(arg, count, target)
    if found is not e:
        return found
    if count == 1 and isinstance(arg, Add):
        return add([merged(term, count, target) for term in arg.args])
    if count > 1 or not isinstance(arg, Einsum) or _plain(arg):
        return None
    label = arg.out[-1]
    opened = _opened(arg, label, target)
    if opened is None:
        return None
    whole, extent = opened[0], arg.extents[label]
    for axis, k in enumerate(arg.out[:-1]):
        if k == label:
            whole = regrouped(whole, axis, target, (extent,))
    return whole


def _rejoined(e: Expr) -> Expr | None:
    """A sum over axes that operands split alike, and that nothing else has, as one over what was.

    In the result the axes stand together, or not at all.
    """
    assert isinstance(e, Einsum)
    for op, word in zip(e.args, e.labels, strict=True):
        if not merges(op) or op.params[0] != 1:
            continue
        last = op.ndim - len(op.params[1])
        own, extent = word[last:], op.args[0].shape[-1]
        alike = [
            a.args[0] if merges(a) and a.args[0].shape[-1] == extent
            and a.params[0] == 1 and w[-len(own) :] == own and not set(w[: -len(own)]) & set(own)
            else None
            for a, w in zip(e.args, e.labels, strict=True)
        ]  # fmt: skip
        apart = [set(own).isdisjoint(w) for w in e.labels]
        if any(a is None and not free for a, free in zip(alike, apart, strict=True)):
            continue
        if set(own) & set(e.out) or len(set(own)) < len(own):
            continue
        label = len(e.extents)
        ops = [a if old is None else old for a, old in zip(e.args, alike, strict=True)]
        words = [
            w if old is None else (*w[: -len(own)], label)
            for w, old in zip(e.labels, alike, strict=True)
        ]
        return einsum(ops, words, e.out, e.coef, dict(enumerate((*e.extents, extent))))
    return None


def _reduced(e: Expr) -> Expr | None:
    """A reduction over a merged axis, and axes before it, as one over what was merged."""
    assert isinstance(e, Apply)
    (arg,), (count, *rest) = e.args, e.params
    shape = _to_one(arg)
    if not shape:
        return None
    return apply(e.op, arg.args[0], params=(count - 1 + len(shape), *rest))


def _sum(e: Expr) -> Expr | None:
    """A sum of merged axes, all of one kind, as one of the sum."""
    assert isinstance(e, Add)
    params = {a.params if _to_one(a) and isinstance(a, Apply) else () for a in e.args}
    shapes = {a.args[0].shape for a in e.args if a.args}
    if params == {()} or len(params) > 1 or len(shapes) > 1:
        return None
    ((count, target),) = params
    return merged(add([a.args[0] for a in e.args]), count, target)


def _sample(a: Expr) -> Expr:
    return reshape(a, (2, 3))


rule(
    "product-of-merged", MERGES, lambda a: reshape(exp(_sample(a)), 6) * a,
    lambda a: reshape(exp(_sample(a)) * _sample(a), 6), "Einsum", _outside, shape=(6,),
    needs=[[MERGE.name]],
)  # fmt: skip
rule(
    "product-by-places", MERGES, lambda a: getitem(a, 3 * arange(2)[:, None] + arange(3)),
    lambda a: _sample(a), "Einsum", _by_places, shape=(6,), needs=[[INDICATOR.name]],
)  # fmt: skip
rule(
    "sum-of-split", MERGES, lambda a: sum(_sample(exp(a))), lambda a: sum(exp(a)),
    "Einsum", _rejoined, shape=(6,), needs=[[MERGE.name]],
)  # fmt: skip
rule(
    "sum-of-merged", MERGES, lambda a: reshape(exp(_sample(a)), 6) + reshape(sin(_sample(a)), 6),
    lambda a: reshape(exp(_sample(a)) + sin(_sample(a)), 6), "Add", _sum, shape=(6,),
    needs=[[MERGE.name]],
)  # fmt: skip
rule(
    "split-of-merged", MERGES, lambda a: _sample(reshape(exp(_sample(a)), 6) * a),
    lambda a: exp(_sample(a)) * _sample(a), MERGE.name, _inside, shape=(6,),
)  # fmt: skip


def _reduction(row: Op) -> None:
    """The rule of a reduction."""
    rule(
        f"{row.name}-of-merged", MERGES,
        lambda a: apply(row, reshape(exp(_sample(a)), 6), params=(1,)),
        lambda a: apply(row, exp(_sample(a)), params=(2,)), row.name, _reduced, shape=(6,),
    )  # fmt: skip


for _row in (MAX, MIN, PROD, LOGSUMEXP, NORM2):
    _reduction(_row)
