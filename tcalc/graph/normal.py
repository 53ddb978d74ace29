"""Normal form: which of several equal products, sums and applications is built.

`einsum`, `add` and `apply` are the constructors that everything above uses. A unit tensor is a
repeated output label and never an operand. What is inlined and what stays an operand:

* an operand that is an outer product is inlined into its consumer (a long one keeps its pointwise
  factors together, as one operand);
* a contraction stays an operand, unless its diagonal is read, or it has more axes than each of its
  own operands and one of its labels is summed by the consumer, or is entries of one array of which
  the consumer takes some (slices of slices are slices: indicators are chained);
* a product is distributed over a sum only where that sets unit tensors of the sum free;
* a contraction has coefficient 1, distinct outputs and canonical labels; the product around it
  carries coefficient, orientation, unit tensors and broadcasts.

Each call does bounded work, so whole graphs take linear time, and shared parts stay shared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from ..support.errors import ShapeError
from ..support.limits import spend
from .extents import ONE, Coef, Extent, canonical_number, number, show_shape, size_of
from .factors import Factors, factors_of, selects
from .inlining import Inlining
from .nodes import Add, Derivative, Einsum, Expr, Labels, intern
from .orientation import canonical_axes, inverse_permutation, signs_below, sum_symmetries
from .products import canonical_product, is_zero, multiple, permuted, split_coef, zeros_node
from .sums import (
    MAX_OPEN_TERMS,
    Shared,
    absent_axes,
    collected,
    distributed,
    embeds,
    joins,
    lone_factors,
    low_order,
    most_shared,
    outer_factors,
    selections_of,
    shifts,
    structured,
    without,
)

#: Axes beyond which orders of axes take more work than the rest.
MANY_AXES = 64
#: Steps that it takes to compare a factor with those of other terms.
COMPARED = 20


def bare(e: Expr) -> Expr:
    """The value of an expression that may be a derivative's root, projected onto properties."""
    return e.projected if isinstance(e, Derivative) else e


# --- products -------------------------------------------------------------------------------------


def einsum(
    ops: Sequence[Expr],
    labels: Sequence[Sequence[int]],
    out: Sequence[int],
    coef: Coef = ONE,
    extents: Mapping[int, Extent] | None = None,
) -> Expr:
    """coef * the sum of the product of operands at their labels, in normal form.

    Parameters
    ----------
    ops : sequence of Expr
    labels : sequence of sequences of int
        A label for every axis of each operand: any ints, local to the call.
    out : sequence of int
        Labels of the result's axes; all others are summed. A label that stands twice is a unit
        tensor, one that no operand has a broadcast.
    coef : Coef
    extents : mapping from label to extent
        Of labels that no operand has.

    Raises
    ------
    ShapeError
        Where a label has two extents.
    """
    if len(out) > MANY_AXES:
        spend("steps", len(out) ** 2)
    operands = [(bare(op), tuple(word)) for op, word in zip(ops, labels, strict=True)]
    known: dict[int, Extent] = {}
    if extents:
        placed = {label for _, word in operands for label in word}.union(out)
        known = {label: e for label, e in extents.items() if label in placed}
    product = Inlining(known, tuple(out), coef).of(operands)
    if product.coef.zero and (product.operands or not _is_negative_zero(product)):
        return zeros_node(tuple([product.extents[label] for label in product.out]))
    found = _distributed(product)
    return canonical_product(product) if found is None else found


def _is_negative_zero(product: Factors) -> bool:
    """Is a product without operands the number -0.0?"""
    whole = len(set(product.out)) == len(product.out)
    return whole and product.coef.key() == Coef(-0.0).key()


def built(product: Factors) -> Expr:
    """The product of these factors in normal form."""
    ops, words = zip(*product.operands, strict=True) if product.operands else ((), ())
    return einsum(ops, words, product.out, product.coef, product.extents)


def _distributed(product: Factors) -> Expr | None:
    """A product with a sum in it multiplied out, if unit tensors of the sum are set free."""
    words: list[set[int]] = []
    for k, (op, word) in enumerate(product.operands):
        if not isinstance(op, Add) or len(op.args) > MAX_OPEN_TERMS or not structured(op):
            continue
        words = words or [set(word) for _, word in product.operands]
        mine, others = words[k], words[:k] + words[k + 1 :]
        summed = not mine.issubset(product.out)
        inside = any(o and o < mine for o in others) and not any(o >= mine for o in others)
        if _taken_whole(product, k):
            continue
        if summed or inside or len(mine) < len(word):
            # with the sum last, as the order of operands breaks ties between equal labels
            rest = product.operands[:k] + product.operands[k + 1 :]
            last = product._replace(operands=[*rest, (op, word)])
            return add(map(built, distributed(last, {len(rest): op.args})))
    return None


def _taken_whole(product: Factors, k: int) -> bool:
    """Are entries taken, by integers, of a sum of arrays beside each other?

    Which of them has an entry is not known; multiplied out, all the others would be read and
    multiplied by zero.
    """
    op, word = product.operands[k]
    chosen = {own[-1] for other, own in product.operands if selects(other)}
    lost = set(word).difference(product.out)
    return bool(lost) and lost <= chosen and joins(op)


def distribute(e: Einsum, sums: Mapping[int, Sequence[Expr]]) -> list[Expr]:
    """The products of which a product is the sum, its operand k being the sum of ``sums[k]``."""
    return list(map(built, distributed(factors_of(e), sums)))


def view(e: Expr, perm: Sequence[int]) -> Expr:
    """Axes permuted: axis k of the result is axis perm[k] of e."""
    return permuted(bare(e), perm)


def scale(e: Expr, coef: Coef) -> Expr:
    return multiple(bare(e), coef)


def scaled(e: Expr, coef: Coef) -> Expr:
    """A number's multiple, of a derivative the derivative of the multiple, which is its root."""
    if not isinstance(e, Derivative) or not e.wrt or not math.isfinite(coef.value):
        return scale(e, coef)
    ways = None if e.ways is None else partial(_scaled_ways, e.ways, coef)
    args = (scale(e.first, coef), scaled(e.of, coef), *e.wrt, *e.kept)
    made: Expr = intern(Derivative, (len(e.wrt), e.project, ways), args)
    return made


def _scaled_ways(ways: Callable[[bool], Sequence[Expr]], coef: Coef, ranked: bool) -> list[Expr]:
    return [scale(value, coef) for value in ways(ranked)]


# --- sums -----------------------------------------------------------------------------------------


def add(terms: Iterable[Expr]) -> Expr:
    """The sum of expressions of one shape, in normal form; ShapeError where shapes differ."""
    items = [bare(t) for t in terms]
    shape = items[0].shape
    for t in items:
        if t.shape != shape:
            raise ShapeError(
                f"a sum of shapes {show_shape(shape)} and {show_shape(t.shape)}: they must be equal"
            )
    found = collected(_flatten_sums(items))
    for step in SUM_STEPS if shape else SUM_STEPS_OF_NUMBERS:
        if len(found) < 2:
            return found[0] if found else zeros_node(shape)
        found = step(found)
    return sum_as_given(found)


def sum_as_given(terms: Sequence[Expr]) -> Expr:
    """A sum with the axes of its terms, which nothing is taken out of."""
    if len(terms) == 1:
        return terms[0]
    node: Add = intern(Add, (), tuple(sorted(terms, key=lambda t: t.order)))
    if node._symmetries is None and node.ndim >= 2:
        node._symmetries, node._antisymmetries = sum_symmetries(node)
        node._signs = max(map(signs_below, node.args)) if node._antisymmetries else 0
    return node


def _flatten_sums(items: list[Expr]) -> list[Expr]:
    """Flatten terms that are sums, where they carry unit tensors, are broadcast or share terms."""
    parts = [split_coef(t)[1] for t in items]  # held while their ids are compared
    present, looks = set(map(id, parts)), set(map(_atoms_inside, parts))
    units = any(map(embeds, items))
    flat: list[Expr] = []
    room = MAX_OPEN_TERMS - len(items)
    for t in items:
        total = _sum_inside(t)
        inner: Sequence[Expr] = () if total is None else total.args
        if (
            len(inner) > 1
            and len(inner) - 1 <= room
            and (
                any(map(embeds, inner))
                or all(map(shifts, inner))
                or absent_axes(t)
                or (units and all(map(low_order, inner)))
                or (
                    not looks.isdisjoint(map(_atoms_inside, inner))
                    and any(id(split_coef(i)[1]) in present for i in terms_of(t))
                )
            )
        ):
            room -= len(inner) - 1
            flat.extend(terms_of(t))
        else:
            flat.append(t)
    return flat


def _atoms_inside(e: Expr) -> frozenset[int]:
    """Ids of the atoms of an outer product, which are those of its multiples and views too."""
    return frozenset(map(id, outer_factors(e)))


def _sum_inside(e: Expr) -> Add | None:
    """The sum that e is, or of which it is a multiple, a permutation or a broadcast."""
    if isinstance(e, Add):
        return e
    inner = e.args[0] if isinstance(e, Einsum) and len(e.args) == 1 else None
    if not isinstance(e, Einsum) or not isinstance(inner, Add):
        return None
    return None if e.summed or len(set(e.labels[0])) < inner.ndim or embeds(e) else inner


def terms_of(e: Expr) -> list[Expr]:
    """The terms of a sum, also of a scaled, permuted or broadcast one."""
    inner = _sum_inside(e)
    if inner is None:
        return [e]
    if inner is e:
        return list(inner.args)
    assert isinstance(e, Einsum)
    return distribute(e, {0: inner.args})


def _pull_absent(terms: list[Expr]) -> list[Expr]:
    """The sum without axes that no term depends on, broadcast: broadcast(a + b)."""
    ndim = terms[0].ndim
    absent = set(range(ndim))
    for t in terms:
        absent &= absent_axes(t)
        if not absent:
            return terms
    kept = [axis for axis in range(ndim) if axis not in absent]
    inner = add([drop_axes(t, absent) for t in terms])
    return [einsum([inner], [kept], range(ndim), ONE, dict(enumerate(terms[0].shape)))]


def drop_axes(e: Expr, axes: set[int]) -> Expr:
    """e without axes that it is broadcast along."""
    assert isinstance(e, Einsum)
    out = [label for axis, label in enumerate(e.out) if axis not in axes]
    extents = {label: extent for label, extent in enumerate(e.extents) if label in out}
    return einsum(e.args, e.labels, out, e.coef, extents)


def _merge_patterns(terms: list[Expr]) -> list[Expr]:
    """Terms with equal unit tensors become one: diag(u) + diag(v) = diag(u + v)."""
    groups: dict[Labels, list[Expr]] = {}
    for t in terms:
        groups.setdefault(t.out if embeds(t) else (), []).append(t)
    merged = list(groups.pop((), []))
    for pattern, group in groups.items():
        if len(group) == 1:
            merged.append(group[0])
            continue
        inner = add([unembedded(t) for t in group])
        if is_zero(inner):
            continue
        axes = sorted(set(pattern))
        merged.append(
            einsum([inner], [axes], pattern, ONE, dict(zip(axes, inner.shape, strict=True)))
        )
    return merged or [zeros_node(terms[0].shape)]


def unembedded(e: Expr) -> Expr:
    """An outer product without its unit tensors: the core, one axis for each distinct label."""
    assert isinstance(e, Einsum)
    return einsum(e.args, e.labels, range(len(e.extents)), e.coef, dict(enumerate(e.extents)))


def _pull_factors(shared: Callable[[Expr], list[Shared]], terms: list[Expr]) -> list[Expr]:
    """Terms with a factor in common become one: x_i y_j + x_i z_j = x_i (y + z)_j."""
    while True:
        rows = list(map(shared, terms))
        if not any(rows):
            return terms
        spend("steps", COMPARED * sum(map(len, rows)))
        found = most_shared(rows, _rank)
        if found is None:
            return terms
        common, members = found
        inner = add([built(without(terms[k], common)) for k in members])
        extents = dict(zip(common.out, terms[0].shape, strict=True))
        words = [common.word, common.kept]
        joined = einsum([common.factor, inner], words, common.out, ONE, extents)
        terms = [t for k, t in enumerate(terms) if k not in members] + [joined]


def _rank(common: Shared) -> tuple[object, ...]:
    return common.factor.order, common.out, common.word


def _pull_coef(terms: list[Expr]) -> list[Expr]:
    """A coefficient that all terms share becomes that of the sum: 2 A + 2 B = 2 (A + B)."""
    coefs = [split_coef(t)[0] for t in terms]
    first = coefs[0]
    size = size_of(first.value)
    if any((size_of(c.value), *c[1:]) != (size, *first[1:]) for c in coefs):
        return terms
    sign = -1 if all(c.value < 0 for c in coefs) else 1
    common = first._replace(value=canonical_number(sign * size))
    if common == ONE or not math.isfinite(size):
        return terms
    inner = []
    for t, c in zip(terms, coefs, strict=True):
        inner.append(multiple(split_coef(t)[1], number(1 if c.value * sign > 0 else -1)))
    return [scale(add(inner), common)]


def _oriented(terms: list[Expr]) -> list[Expr]:
    """The sum with its axes in canonical order, permuted: A + B and (Aᵀ + Bᵀ)ᵀ share one node."""
    perm = canonical_axes(sorted(terms, key=_shape_free_key), ordered=False)
    if perm == tuple(range(len(perm))):
        return terms
    node = sum_as_given([permuted(t, perm) for t in terms])
    return [permuted(node, inverse_permutation(perm))]


def _shape_free_key(e: Expr) -> tuple[object, ...]:
    if isinstance(e, Einsum) and not e.summed:
        return (sorted([a.order for a in e.args]), e.coef.key())
    return ([e.order], ONE.key())


#: What terms have in common, taken out of a sum in this order; each maps terms to terms.
SUM_STEPS = (
    _pull_absent,
    _merge_patterns,
    partial(_pull_factors, selections_of),
    partial(_pull_factors, lone_factors),
    _pull_coef,
    _oriented,
)
#: Those of them that may find something where there are no axes.
SUM_STEPS_OF_NUMBERS = (_pull_coef,)
