"""Normal form: which of several equal products, sums and applications is built.

`einsum`, `add` and `apply` are the constructors that everything above uses. A unit tensor is a
repeated output label and never an operand. What opens and what stays shut:

* an operand that is a product without a summed label dissolves into its consumer (a long one keeps
  its pointwise factors together, as one operand);
* a contraction stays a node, unless it is read on a diagonal, or is larger than each of its
  operands and one of its labels is summed by the consumer;
* a product is distributed over a sum only where that lets unit tensors out;
* a contraction has coefficient 1, distinct outputs and canonical labels; the product around it
  carries coefficient, orientation, unit tensors and broadcasts.

Each call does bounded work, so whole graphs take linear time, and shared parts stay shared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations
from typing import Any

from ..support.errors import ShapeError
from .canonical import axis_symmetries, closure
from .extents import ONE, Coef, Extent, canonical_number, extent_coef, number, show_shape
from .nodes import Add, Derivative, Einsum, Expr, Labels, Permutation, intern
from .products import (
    Operand,
    aligned,
    components,
    contraction,
    enlarging,
    indicates,
    is_zero,
    opened,
    outer_product,
    same_selections,
    selections_of,
    selects,
    shut,
    symmetries,
    without_ones,
    zeros_node,
)

MINUS = number(-1)
MAX_OPERANDS = 12
MAX_TERMS = 16
MAX_ORIENTATIONS = 24


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
    """coef * sum of the product of ops[k] indexed by labels[k], for every value of `out`.

    Labels are any ints, local to the call. `extents` gives those of output labels that no operand
    has.
    """
    operands = [(bare(op), tuple(word)) for op, word in zip(ops, labels, strict=True)]
    placed = {label for _, word in operands for label in word}.union(out)
    known = {label: e for label, e in (extents or {}).items() if label in placed}
    return _Builder(known, tuple(out), coef).build(operands)


class _Builder:
    """One call of `einsum`: labels are merged (union-find) while operands dissolve."""

    def __init__(self, extents: dict[int, Extent], out: Labels, coef: Coef) -> None:
        self.extents = extents
        self.out = out
        self.coef = coef
        self.parent: dict[int, int] = {}

    def find(self, label: int) -> int:
        parent = self.parent
        while label in parent:
            label = parent[label]
        return label

    def union(self, a: int, b: int) -> None:
        a, b = self.find(a), self.find(b)
        if a != b:
            a, b = min(a, b), max(a, b)
            self.parent[b] = a
            if a in self.extents and b in self.extents:
                self.check(a, self.extents[b])
            elif b in self.extents:
                self.extents[a] = self.extents[b]

    def check(self, label: int, extent: Extent) -> None:
        known = self.extents.setdefault(label, extent)
        if known != extent:
            raise ShapeError(f"an index has extent {known} in one place and {extent} in another")

    def word(self, labels: Labels) -> Labels:
        if not self.parent:
            return labels
        return tuple([self.find(label) for label in labels])

    def build(self, operands: list[Operand]) -> Expr:
        for op, word in operands:
            for label, extent in zip(word, op.shape, strict=True):
                self.check(self.find(label), extent)
        operands = self.selected(self.dissolve(operands))
        while (opened := self.open_contraction(operands)) is not None:
            operands = self.selected(self.dissolve(opened))
        if self.coef.zero:
            return zeros_node(tuple([self.extents[self.find(label)] for label in self.out]))
        operands = [(op, self.word(word)) for op, word in operands]
        self.out = self.word(self.out)
        for label in self.labels_without_place(operands):
            self.coef = self.coef.by(extent_coef(self.extents[label]))
        found = self.distribute(operands)
        return found if found is not None else self.assemble(operands)

    def dissolve(self, operands: Iterable[Operand]) -> list[Operand]:
        """Rule 1: operands that are products without a summed label vanish into this one."""
        kept: list[Operand] = []
        waiting = list(operands)
        for k, (op, word) in enumerate(waiting):
            if isinstance(op, Einsum) and not op.summed:
                local: dict[int, int] = {}
                for mine, theirs in zip(word, op.out, strict=True):
                    if theirs in local:
                        self.union(local[theirs], mine)
                    else:
                        local[theirs] = mine
                self.coef = self.coef.by(op.coef)
                inside = list(zip(op.args, op.labels, strict=True))
                if len(kept) + len(inside) + len(waiting) - k - 1 > MAX_OPERANDS:
                    inside = shut(inside, op.extents)
                for arg, labels in inside:
                    kept.append((arg, tuple([local[label] for label in labels])))
            else:
                kept.append((op, word))
        return kept

    def selected(self, operands: list[Operand]) -> list[Operand]:
        """One selection tensor twice, S_ij S_ik, is S_ij with a unit tensor of j and k."""
        if not any(selects(op) for op, _ in operands):
            return operands
        while True:
            operands = [(op, self.word(word)) for op, word in operands]
            pairs = same_selections(operands)
            if not pairs:
                outer = {self.find(label) for label in self.out}
                operands, gone = without_ones(operands, outer)
                if not gone:
                    return operands
                kept = {k: e for k, e in self.extents.items() if self.find(k) not in gone}
                self.extents = kept
            for a, b in pairs:
                self.union(a, b)

    def open_contraction(self, operands: list[Operand]) -> list[Operand] | None:
        """Rule 2: the operands with one contraction opened, or None where all stay shut."""
        outer = {self.find(label) for label in self.out}
        for k, (op, labels) in enumerate(operands):
            if not isinstance(op, Einsum):
                continue
            word = self.word(labels)
            diagonal = len(set(word)) < len(word)
            if not diagonal:
                larger = enlarging(op)
                few = len(operands) + len(op.args) - 1 <= MAX_OPERANDS
                if not (larger and few and any(label not in outer for label in word)):
                    continue
            return operands[:k] + opened(op, word, self.extents) + operands[k + 1 :]
        return None

    def distribute(self, operands: list[Operand]) -> Expr | None:
        """Rule 3: multiply out a sum whose unit tensors that sets free."""
        for k, (op, word) in enumerate(operands):
            if not isinstance(op, Add) or len(op.args) > MAX_TERMS or not structured(op):
                continue
            mine = set(word)
            rest = operands[:k] + operands[k + 1 :]
            others = [set(other) for _, other in rest]
            summed = any(label not in self.out for label in word)
            inside = any(o and o < mine for o in others) and not any(o >= mine for o in others)
            if summed or inside or len(mine) < len(word):
                ops = [other for other, _ in rest]
                words = [other for _, other in rest]
                return add(
                    [
                        einsum([*ops, term], [*words, word], self.out, self.coef, self.extents)
                        for term in op.args
                    ]
                )
        return None

    def assemble(self, operands: list[Operand]) -> Expr:
        """Rules 4 and 5: split by summed labels; contractions become atoms of one outer product."""
        outer = set(self.out)
        operands, sign = aligned(operands)
        self.coef = self.coef.by(sign)
        atoms: list[Operand] = []
        for group in components(operands, outer):
            if len(group) == 1 and outer.issuperset(group[0][1]):
                atoms.append(group[0])
            else:
                atoms.append(contraction(group, outer, self.extents))
        return outer_product(atoms, self.out, self.extents, self.coef)

    def labels_without_place(self, operands: list[Operand]) -> list[int]:
        """Label classes that are summed but stand in no operand (any more)."""
        placed = {label for _, word in operands for label in word}.union(self.out)
        return sorted({self.find(label) for label in self.extents} - placed)


def view(e: Expr, perm: Sequence[int]) -> Expr:
    """Axes permuted: axis k of the result is axis perm[k] of e."""
    e = bare(e)
    operands, out, extents, coef = _factors(e)
    return outer_product(operands, tuple([out[axis] for axis in perm]), extents, coef)


def _factors(e: Expr) -> tuple[list[Operand], Labels, Mapping[int, Extent], Coef]:
    """The atoms of which e is an outer product: their labels, e's, extents, and the coefficient."""
    if isinstance(e, Einsum) and not e.summed:
        operands = list(zip(e.args, e.labels, strict=True))
        return operands, e.out, dict(enumerate(e.extents)), e.coef
    axes = tuple(range(e.ndim))
    return [(e, axes)], axes, dict(enumerate(e.shape)), ONE


# --- sums -----------------------------------------------------------------------------------------


def structured(e: Add) -> bool:
    """Does some term carry a unit or selection tensor, and no other an operand with all labels?"""
    carries = False
    for term in e.args:
        if selections_of(term) or _shifts(term):
            carries = True
            continue
        if not isinstance(term, Einsum) or term.summed:
            return False
        unit = len(set(term.out)) < len(term.out)
        if not unit and not low_order(term):
            return False
        carries = carries or unit
    return carries


def _shifts(e: Expr) -> bool:
    """Is an indicator a factor of e, or a part of one with more axes than its other parts?"""
    if not isinstance(e, Einsum) or e.summed:
        factors: Sequence[Expr] = (e,)
    else:
        factors = e.args
    return any(
        indicates(f)
        or (isinstance(f, Einsum) and any(indicates(a) for a in f.args) and enlarging(f))
        for f in factors
    )


def split_coef(e: Expr) -> tuple[Coef, Expr]:
    """e as a coefficient and the rest."""
    if not isinstance(e, Einsum) or e.coef == ONE:
        return ONE, e
    return e.coef, _with_coef(e, ONE)


def scale(e: Expr, coef: Coef) -> Expr:
    if coef == ONE:
        return e
    e = bare(e)
    return _with_coef(e, coef.by(e.coef) if isinstance(e, Einsum) else coef)


def _with_coef(e: Expr, coef: Coef) -> Expr:
    """The outer product that e is with another coefficient; a contraction is one atom of it."""
    if coef.zero:
        return zeros_node(e.shape)
    operands, out, extents, _ = _factors(e)
    return outer_product(operands, out, extents, coef)


def add(terms: Iterable[Expr]) -> Expr:
    """The sum of expressions of one shape."""
    items = [bare(t) for t in terms]
    shape = items[0].shape
    for t in items:
        if t.shape != shape:
            raise ShapeError(
                f"a sum of shapes {show_shape(shape)} and {show_shape(t.shape)}: they must be equal"
            )
    collected = _collect(_open_sums(items))
    if not collected:
        return zeros_node(shape)
    if len(collected) == 1:
        return collected[0]
    steps = (
        _pull_absent, _merge_patterns, _group_selected, _group_factors, _pull_coef, _oriented
    )  # fmt: skip
    for step in steps:
        found = step(collected)
        if isinstance(found, Expr):
            return found
        collected = found
    return _intern_add(collected)


def _intern_add(terms: list[Expr]) -> Expr:
    if len(terms) == 1:
        return terms[0]
    node: Add = intern(Add, (), tuple(sorted(terms, key=lambda t: t.order)))
    if node._symmetries is None and node.ndim >= 2:
        node._symmetries, node._antisymmetries = _sum_symmetries(node)
    return node


def _sum_symmetries(e: Add) -> tuple[tuple[Permutation, ...], tuple[Permutation, ...]]:
    """Permutations of axes that permute the terms, and those that turn each into minus one.

    They keep the places at which an axis stands in the operands, which few permutations do.
    """
    places = [sorted([p for t in e.args for p in _stands(t, axis)]) for axis in range(e.ndim)]
    candidates = [
        perm for perm in axis_symmetries(e.shape) if [places[axis] for axis in perm] == places
    ]
    if not candidates:
        return (), ()
    # all are held while their ids are compared: a node that nobody holds leaves its id to another
    turned = {perm: [view(t, perm) for t in e.args] for perm in candidates}
    negative = [scale(t, MINUS) for t in e.args]
    same = [perm for perm, terms in turned.items() if _equal_terms(terms, e.args)]
    antisymmetries = [perm for perm, terms in turned.items() if _equal_terms(terms, negative)]
    return closure(same), tuple(antisymmetries)


def _equal_terms(some: Sequence[Expr], others: Sequence[Expr]) -> bool:
    return set(map(id, some)) == set(map(id, others))


def _stands(e: Expr, axis: int) -> list[Any]:
    """Where an axis stands in the operands, up to their symmetries and antisymmetries."""
    if not isinstance(e, Einsum) or e.summed:
        return [(e.order, _orbit(e, axis, e._antisymmetries))]
    label = e.out[axis]
    return [
        (arg.order, _orbit(arg, k, arg._antisymmetries))
        for arg, word in zip(e.args, e.labels, strict=True)
        for k, other in enumerate(word)
        if other == label
    ]


def _open_sums(items: list[Expr]) -> list[Expr]:
    """Nested sums open where they carry unit tensors, are broadcast, or share a term; bounded."""
    parts = [split_coef(t)[1] for t in items]  # held, as long as their ids count
    present = set(map(id, parts))
    units = _carries_unit(items)
    flat: list[Expr] = []
    room = MAX_TERMS - len(items)
    for t in items:
        inner = terms_of(t)
        if (
            len(inner) > 1
            and len(inner) - 1 <= room
            and (
                _carries_unit(inner)
                or all(_shifts(i) for i in inner)
                or absent_axes(t)
                or (units and all(low_order(i) for i in inner))
                or any(id(split_coef(i)[1]) in present for i in inner)
            )
        ):
            room -= len(inner) - 1
            flat.extend(inner)
        else:
            flat.append(t)
    return flat


def terms_of(e: Expr) -> list[Expr]:
    """The terms of a sum, also of a scaled, permuted or broadcast one."""
    if isinstance(e, Add):
        return list(e.args)
    inner = e.args[0] if isinstance(e, Einsum) and len(e.args) == 1 else None
    if not isinstance(e, Einsum) or not isinstance(inner, Add):
        return [e]
    if e.summed or len(set(e.labels[0])) < inner.ndim or len(set(e.out)) < len(e.out):
        return [e]
    extents = dict(enumerate(e.extents))
    return [einsum([t], e.labels, e.out, e.coef, extents) for t in inner.args]


def low_order(e: Expr) -> bool:
    """Is e an outer product none of whose operands has all labels?"""
    if not isinstance(e, Einsum) or e.summed:
        return False
    return all(len(set(word)) < len(e.extents) for word in e.labels)


def _carries_unit(terms: list[Expr]) -> bool:
    return any(isinstance(t, Einsum) and len(set(t.out)) < len(t.out) for t in terms)


def _collect(items: list[Expr]) -> list[Expr]:
    """A + A becomes 2 A; what cancels goes."""
    totals: dict[tuple[Any, ...], tuple[Coef, Expr]] = {}
    for t in items:
        coef, rest = split_coef(t)
        key = (id(rest), coef.times, coef.over)
        if key in totals:
            before = totals[key][0]
            coef = before._replace(value=canonical_number(before.value + coef.value))
        totals[key] = (coef, rest)
    return [scale(rest, coef) for coef, rest in totals.values() if not coef.zero]


def _pull_absent(terms: list[Expr]) -> list[Expr] | Expr:
    """Labels that no term depends on stand outside: broadcast(a) + broadcast(b)."""
    ndim = terms[0].ndim
    absent = set(range(ndim))
    for t in terms:
        absent &= absent_axes(t)
        if not absent:
            return terms
    kept = [axis for axis in range(ndim) if axis not in absent]
    inner = add([drop_axes(t, absent) for t in terms])
    return einsum([inner], [kept], range(ndim), ONE, dict(enumerate(terms[0].shape)))


def absent_axes(e: Expr) -> set[int]:
    """Axes that e is broadcast along."""
    if not isinstance(e, Einsum) or e.summed:
        return set()
    standing = {label for word in e.labels for label in word}
    return {
        axis
        for axis, label in enumerate(e.out)
        if label not in standing and e.out.count(label) == 1
    }


def drop_axes(e: Expr, axes: set[int]) -> Expr:
    """e without axes that it is broadcast along."""
    assert isinstance(e, Einsum)
    out = [label for axis, label in enumerate(e.out) if axis not in axes]
    extents = {label: extent for label, extent in enumerate(e.extents) if label in out}
    return einsum(e.args, e.labels, out, e.coef, extents)


def _merge_patterns(terms: list[Expr]) -> list[Expr] | Expr:
    """Terms under one unit tensor become one: diag(u) + diag(v) = diag(u + v)."""
    groups: dict[Labels, list[Expr]] = {}
    for t in terms:
        repeated = isinstance(t, Einsum) and len(set(t.out)) < len(t.out)
        groups.setdefault(t.out if repeated and isinstance(t, Einsum) else (), []).append(t)
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
    if not merged:
        return zeros_node(terms[0].shape)
    return merged[0] if len(merged) == 1 else merged


def unembedded(e: Expr) -> Expr:
    """The core under the unit tensors of an outer product: the same with distinct outputs."""
    assert isinstance(e, Einsum)
    return einsum(e.args, e.labels, range(len(e.extents)), e.coef, dict(enumerate(e.extents)))


def _group_selected(terms: list[Expr]) -> list[Expr] | Expr:
    """S_ij a_i + S_ij b_i = S_ij (a + b)_i for a selection tensor, which a unit tensor is too."""
    while True:
        groups: dict[tuple[Any, ...], list[int]] = {}
        for k, t in enumerate(terms):
            for key in selections_of(t):
                groups.setdefault(key, []).append(k)
        shared = [key for key, ks in groups.items() if len(ks) > 1]
        if not shared:
            return terms
        key = min(shared, key=lambda key: (-len(groups[key]), key[2].order, key[0], key[1]))
        out, word, factor = key
        members = groups[key]
        extents = dict(zip(out, terms[0].shape, strict=True))
        kept = [label for label in extents if label != word[-1]]
        inner = add([_without_selected(terms[k], key, kept) for k in members])
        joined = einsum([factor, inner], [word, kept], out, ONE, extents)
        terms = [t for k, t in enumerate(terms) if k not in members] + [joined]
        if len(terms) == 1:
            return terms[0]


def _without_selected(t: Expr, key: tuple[Any, ...], kept: Sequence[int]) -> Expr:
    """The product t without a selection tensor, its axes the labels that are kept."""
    out, word, factor = key
    ops, words, coef = (t.args, t.labels, t.coef) if isinstance(t, Einsum) else ((t,), (out,), ONE)
    k = next(
        i for i, (a, w) in enumerate(zip(ops, words, strict=True)) if a is factor and w == word
    )
    extents = dict(zip(out, t.shape, strict=True))
    return einsum(ops[:k] + ops[k + 1 :], words[:k] + words[k + 1 :], kept, coef, extents)


def _group_factors(terms: list[Expr]) -> list[Expr] | Expr:
    """x_i y_j + x_i z_j = x_i (y + z)_j: a shared factor that has its labels for itself."""
    while True:
        groups: dict[tuple[Any, ...], list[int]] = {}
        for k, t in enumerate(terms):
            if isinstance(t, Einsum) and not t.summed and len(t.args) > 1:
                for i in _lone_factors(t):
                    key = (t.out, id(t.args[i]), t.labels[i], t.args[i].order)
                    groups.setdefault(key, []).append(k)
        shared = [key for key, ks in groups.items() if len(ks) > 1]
        if not shared:
            return terms
        key = min(shared, key=lambda key: (-len(groups[key]), key[3], key[0], key[2]))
        members = groups[key]
        rest = [_without_factor(terms[k], key) for k in members]
        first = terms[members[0]]
        assert isinstance(first, Einsum)
        factor = next(a for a in first.args if id(a) == key[1])
        inner = add([r for r, _ in rest])
        kept = rest[0][1]
        extents = dict(enumerate(first.extents))
        joined = einsum([factor, inner], [key[2], kept], first.out, ONE, extents)
        terms = [t for k, t in enumerate(terms) if k not in members] + [joined]
        if len(terms) == 1:
            return terms[0]


def _lone_factors(t: Einsum) -> list[int]:
    """Operands that share no label with the others and leave labels to the others."""
    words = [set(word) for word in t.labels]
    lone = []
    for i, word in enumerate(words):
        rest = set().union(*words[:i], *words[i + 1 :])
        if word and rest and not word & rest and len(word) + len(rest) == len(t.extents):
            lone.append(i)
    return lone


def _without_factor(t: Expr, key: tuple[Any, ...]) -> tuple[Expr, Labels]:
    """The outer product t without one factor, and the labels that are left, in order."""
    assert isinstance(t, Einsum)
    k = next(
        i for i, (a, w) in enumerate(zip(t.args, t.labels, strict=True)) if (id(a), w) == key[1:3]
    )
    kept = tuple([label for label in range(len(t.extents)) if label not in t.labels[k]])
    args = t.args[:k] + t.args[k + 1 :]
    return einsum(args, t.labels[:k] + t.labels[k + 1 :], kept, t.coef), kept


def _pull_coef(terms: list[Expr]) -> list[Expr] | Expr:
    """A number that all terms share stands outside: 2 A + 2 B = 2 (A + B)."""
    coefs = [split_coef(t)[0] for t in terms]
    first = coefs[0]
    size = abs(first.value)
    if any(c.times != first.times or c.over != first.over or abs(c.value) != size for c in coefs):
        return terms
    sign = -1 if all(c.value < 0 for c in coefs) else 1
    common = first._replace(value=canonical_number(sign * size))
    if common == ONE or not math.isfinite(size):
        return terms
    inner = []
    for t, c in zip(terms, coefs, strict=True):
        inner.append(scale(split_coef(t)[1], number(1 if c.value * sign > 0 else -1)))
    return scale(add(inner), common)


def _oriented(terms: list[Expr]) -> list[Expr] | Expr:
    """Axes in canonical order, as a view outside: A + B and (Aᵀ + Bᵀ)ᵀ share one node."""
    perm = orientation(sorted(terms, key=lambda t: _shape_free_key(t)), ordered=False)
    if perm == tuple(range(len(perm))):
        return terms
    node = _intern_add([view(t, perm) for t in terms])
    return view(node, inverse(perm))


def inverse(perm: Sequence[int]) -> Permutation:
    back = [0] * len(perm)
    for k, p in enumerate(perm):
        back[p] = k
    return tuple(back)


def _shape_free_key(e: Expr) -> Any:
    if isinstance(e, Einsum) and not e.summed:
        return (sorted([a.order for a in e.args]), e.coef.key())
    return ([e.order], ONE.key())


def orientation(items: Sequence[Expr], ordered: bool) -> Permutation:
    """The axis order that all spellings of these operands lead to.

    An axis is known by the places at which it stands in the operands; ties are broken by the least
    operands that an order gives.
    """
    ndim = items[0].ndim
    identity = tuple(range(ndim))
    viewed = any(isinstance(e, Einsum) and not e.summed for e in items)
    if ndim < 2 or (not viewed and (ordered or len({id(e) for e in items}) == 1)):
        return identity
    profiles = [
        tuple(sorted(p for k, e in enumerate(items) for p in _places(e, axis, k if ordered else 0)))
        for axis in identity
    ]
    base = sorted(identity, key=lambda axis: (profiles[axis], axis))
    tied = [axis for axis in identity if profiles.count(profiles[axis]) > 1]
    if not tied:
        return tuple(base)
    best, best_key = tuple(base), None
    if ndim > 5:
        return tuple(base)
    options = [
        p for p in permutations(identity) if [profiles[a] for a in p] == [profiles[a] for a in base]
    ]
    for perm in options[:MAX_ORIENTATIONS]:
        orders = [view(e, perm).order for e in items]
        key = orders if ordered else sorted(orders)
        if best_key is None or key < best_key:
            best, best_key = perm, key
    return best


def _places(e: Expr, axis: int, tag: int) -> list[Any]:
    if isinstance(e, Einsum) and not e.summed:
        label = e.out[axis]
        repeats = e.out.count(label)
        found = [
            (arg.order, tag, _orbit(arg, k), repeats)
            for arg, word in zip(e.args, e.labels, strict=True)
            for k, other in enumerate(word)
            if other == label
        ]
        return found or [((99, "", b""), tag, -1, repeats)]
    return [(e.order, tag, _orbit(e, axis), 1)]


def _orbit(e: Expr, axis: int, further: tuple[Permutation, ...] = ()) -> int:
    return min([axis, *[perm[axis] for perm in symmetries(e)], *[perm[axis] for perm in further]])
