"""Banded tensors: output indices that are affine forms of the labels of cores.

In the derivative of a shifted read, x[i + k], an output index is an affine form in others,
j = i + k. Then only the entries for i and k are held, and an integer table gives j.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

from ..graph.extent_forms import is_nonnegative
from ..graph.extents import ONE, Coef, Extent, form_of, number
from ..graph.factors import LabelledExpr, indicates
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels
from ..graph.normal import add, einsum
from ..graph.products import filled
from ..integers.affine import Affine, Constraint, Guard, factors_of
from ..integers.boxes import index
from ..ops.elementwise import maximum, minimum
from ..ops.indicator import (
    CheckedAccess,
    conditions,
    indicator,
    label_of,
    labels_among,
    renamed,
)
from ..ops.reductions import IOTA, arange
from ..support.records import NamedTuple


class Table(NamedTuple):
    """An output index that is core[labels], `core` an array of integers."""

    core: Expr
    labels: Labels

    def affine(self) -> list[tuple[Coef, int | None]] | None:
        """The terms of an affine form of its labels, None for a constant; None for other tables."""
        found = _affine_terms(self.core)
        if found is None or any(coef.over for coef, _ in found):
            return None
        return [(coef, None if k is None else self.labels[k]) for coef, k in found]


def _affine_terms(e: Expr) -> list[tuple[Coef, int | None]] | None:
    """Factors of the indices of an array that adds these up, by axis, and constants."""
    if isinstance(e, Apply):
        return [(ONE, 0)] if e.op is IOTA else None
    if isinstance(e, Einsum) and not e.args:
        return [(e.coef, None)]
    if not isinstance(e, Add) and not (isinstance(e, Einsum) and len(e.args) == 1):
        return None
    parts = [_affine_terms(arg) for arg in e.args]
    if None in parts:
        return None
    terms = [term for part in parts for term in part or []]
    if isinstance(e, Add):
        return terms
    (word,) = e.labels
    if e.summed or len(set(e.out)) < len(e.out):
        return None
    return [(e.coef.by(coef), None if k is None else e.out.index(word[k])) for coef, k in terms]


class _Solvable(NamedTuple):
    """An equality solved for a label of the output, or one that is summed; the least one is first.

    Attributes
    ----------
    summed : bool
    unsure : bool
        Whether the value may leave the extent of the label.
    occurs : bool
        Whether an operand has the label.
    label : int
    form : Affine
        The label's value.
    guard : Guard
        The equality.
    """

    summed: bool
    unsure: bool
    occurs: bool
    label: int
    form: Affine
    guard: Guard


def banded(
    operands: Iterable[LabelledExpr], out: Iterable[Any], extents: dict[int, Extent]
) -> tuple[list[LabelledExpr], dict[int, Table]]:
    """Operands without those output labels that equalities determine, and tables for these.

    Summed labels are what equalities say, too: a band inside of bands is one band.
    Adds new labels to `extents`.
    """
    others = [(op, word) for op, word in operands if not indicates(op)]
    guards: list[Guard] = []
    accesses: list[CheckedAccess] = []
    for op, word in operands:
        if indicates(op):
            guards += conditions(op.params, word)
            accesses += [a._replace(form=renamed(a.form, word)) for a in op.params[2]]
    forms: dict[int, Affine] = {}
    outer, held = set(out), set[int]()
    while (
        chosen := _next_solvable(guards, others, outer, forms.keys(), held, extents)
    ) is not None:
        label, form = chosen.label, chosen.form
        guards.remove(chosen.guard)
        if chosen.unsure:
            guards += _in_range(form, extents[label])
        if chosen.occurs:
            fresh = max(extents) + 1
            extents[fresh] = extents[label]
            held.add(fresh)
            others = [(op, tuple([fresh if k == label else k for k in w])) for op, w in others]
            guards.append(Constraint(index(fresh) - form, True))
        value = {f"#{label}": form}
        guards = [g.substitute(value) for g in guards]
        accesses = [a._replace(form=a.form.substitute(value)) for a in accesses]
        forms = {k: f.substitute(value) for k, f in forms.items()}
        forms |= {} if chosen.summed else {label: form}
    for g in guards:
        others += indicator(extents, [g])
    if accesses:
        others += indicator(extents, [], accesses)
    return others, {label: _table(form, extents[label], extents) for label, form in forms.items()}


def _next_solvable(
    guards: Iterable[Guard],
    others: Iterable[LabelledExpr],
    outer: Set[int],
    solved: Set[int],
    held: Set[int],
    extents: Mapping[int, Extent],
) -> _Solvable | None:
    """The first equality to solve; where one says what is `held`, the operands have it."""
    occurs = {label for _, word in others for label in word}
    found = []
    for g in guards:
        if not isinstance(g, Constraint) or not g.equality:
            continue
        for name, c in g.form.terms:
            label, summed = label_of(name), label_of(name) not in outer
            if label is None or label in solved or label in held or abs(c) != 1:
                continue
            form = (Affine.of(name) * c - g.form) * c
            others_of = labels_among(form.names)
            if summed and held & {*others_of}:
                continue
            ends = _in_range(form, extents[label])
            sure = all(_is_nonnegative(end.form, extents) for end in ends)
            # A form in several summed labels that leaves the array is no shorter than it.
            short = len([k for k in others_of if k not in outer or k in solved]) <= 1
            if sure or (short and not (summed and label in occurs)):
                found.append(_Solvable(summed, not sure, label in occurs, label, form, g))
    return min(found, key=lambda choice: choice[:4], default=None)


def _in_range(form: Affine, extent: Extent) -> list[Constraint]:
    return [Constraint(form), Constraint(form_of(extent) - 1 - form)]


def _is_nonnegative(form: Affine, extents: Mapping[int, Extent]) -> bool:
    """Is a form known to be nonnegative for all values of its labels?"""
    low = form
    for label in labels_among(form.names):
        signs = {c > 0 for name, c in form.terms if f"#{label}" in factors_of(name)}
        if len(signs) > 1:
            return False
        low = low.substitute(
            {f"#{label}": Affine() if True in signs else form_of(extents[label]) - 1}
        )
    return is_nonnegative(low)


def _table(form: Affine, extent: Extent, extents: Mapping[int, Extent]) -> Table:
    """The values of a form over its labels, clipped to the extent where they may leave it."""
    labels = tuple(sorted(labels_among(form.names)))
    shape = tuple([extents[label] for label in labels])
    sizes: dict[int, Extent] = dict(enumerate(shape))
    terms = [filled(number(form.constant), shape)] if form.constant else []
    for name, c in form.terms:
        own = [label for part in factors_of(name) if (label := label_of(part)) is not None]
        rest = tuple([part for part in factors_of(name) if label_of(part) is None])
        columns, words = [arange(extents[k]) for k in own], [(labels.index(k),) for k in own]
        terms.append(einsum(columns, words, range(len(shape)), Coef(c, rest), sizes))
    core = add(terms) if terms else filled(number(0), shape)
    if not all(_is_nonnegative(side.form, extents) for side in _in_range(form, extent)):
        last = filled(Coef(1, (extent,)) if isinstance(extent, str) else number(extent), ())
        core = minimum(maximum(core, 0), last - 1)
    return Table(core, labels)
