"""The terms of a derivative, and the grouping of their factors into cores.

Factors that share labels are one core. Selection tensors become tables, and a contraction stays a
product of factors where its rank is less than its number of rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence
from math import prod
from typing import Any

from ..graph.extents import ONE, Coef, Extent, Shape, extent_of, sum_of
from ..graph.factors import LabelledExpr, components, enlarging, indicates, inlined, selects
from ..graph.nodes import Einsum, Expr, Labels, Permutation, Var
from ..graph.normal import add, einsum
from ..graph.products import filled, split_coef
from ..ops.reshape import merged_places, merges, unmerged
from ..support.records import NamedTuple
from .bands import Table, banded


class Term(NamedTuple):
    """coef times the product of cores, embedded in an output.

    A label twice in `out` is a unit tensor, a label of the cores that is not in `out` is summed.

    Attributes
    ----------
    coef : Coef
    cores : tuple of Expr
    labels : tuple of labels
        One an axis of each core.
    out : tuple of int or Table
        One an output axis.
    extents : tuple
        By label.
    """

    coef: Coef
    cores: tuple[Expr, ...]
    labels: tuple[Labels, ...]
    out: tuple[int | Table, ...]
    extents: Shape

    def place(self) -> tuple[object, ...]:
        """Equal for terms that differ in a number and in the names of labels."""
        names: dict[int, int] = {}

        def named(word: Labels) -> Labels:
            return tuple([names.setdefault(i, len(names)) for i in word])

        words = tuple(map(named, self.labels))
        out = [
            (id(item.core), named(item.labels)) if isinstance(item, Table) else named((item,))
            for item in self.out
        ]
        extents = tuple([self.extents[i] for i in names])
        return (
            tuple(map(id, self.cores)),
            words,
            tuple(out),
            extents,
            self.coef.times,
            self.coef.over,
        )


class UngroupedTerm(NamedTuple):
    """A term before its factors are grouped into cores.

    Attributes
    ----------
    operands : tuple of (Expr, labels)
    out, extents, coef
        As in `Term`.
    hidden : frozenset of int
        Summed labels between cores; all others are summed inside a core.
    """

    operands: tuple[LabelledExpr, ...]
    out: tuple[int | Table, ...]
    extents: Shape
    coef: Coef
    hidden: frozenset[int] = frozenset()

    def key(self) -> tuple[object, ...]:
        """Equal for equal terms of one expression."""
        items = [(id(i.core), i.labels) if isinstance(i, Table) else i for i in self.out]
        return tuple([(id(op), word) for op, word in self.operands]), tuple(items), self.hidden

    @property
    def labels(self) -> set[int]:
        """Labels that count entries: those of the output and of its tables."""
        found: set[int] = set()
        for item in self.out:
            found.update(item.labels if isinstance(item, Table) else (item,))
        return found


# --- reading --------------------------------------------------------------------------------------


def ungrouped_term(e: Expr) -> UngroupedTerm | None:
    """One product as a term; None for zero."""
    e = opened_merges(e)
    axes = tuple(range(e.ndim))
    if not isinstance(e, Einsum) or e.summed:
        return UngroupedTerm(((e, axes),), axes, e.shape, ONE)
    if e.coef.zero:
        return None
    return UngroupedTerm(tuple(zip(e.args, e.labels, strict=True)), e.out, e.extents, e.coef)


def opened_merges(e: Expr) -> Expr:
    """A tensor some of whose axes are merged as a product with indicators of where entries stand.

    Only what is merged at the root, in any order of axes: what is inside of a core is no structure.
    """
    if isinstance(e, Einsum) and not e.summed and any(map(_is_merge, e.args)):
        ops = [opened_merges(op) if _is_merge(op) else op for op in e.args]
        return einsum(ops, e.labels, e.out, e.coef, dict(enumerate(e.extents)))
    if not _is_merge(e):
        return e
    (arg,) = e.args
    return unmerged(e, opened_merges(arg))


def _is_merge(e: Expr) -> bool:
    return merges(e) and len(e.params[1]) == 1


class _TabledContraction(NamedTuple):
    """A contraction with selection tensors: a sum of items by segments, that tables may replace.

    Attributes
    ----------
    tables : frozenset of int
        Labels that are selected, one a table.
    items : labels
        Summed labels of the items.
    kept : labels
        Labels of the core of all items.
    """

    tables: frozenset[int]
    items: Labels
    kept: Labels

    def contracted(self, op: Einsum) -> bool:
        """Whether all items are summed, by segments along one axis."""
        return len(self.tables) == 1 and not set(self.items) & set(op.out)

    def saved(self, op: Einsum, sizes: Mapping[str, int]) -> int:
        """How many entries fewer a core of all items and its tables have than the contraction."""

        def count(labels: Labels) -> int:
            return prod([extent_of(op.extents[i], sizes) for i in labels])

        return count(op.out) - count(self.kept) - len(self.tables) * count(self.items)


def _tabled_contraction(op: Expr) -> _TabledContraction | None:
    if not isinstance(op, Einsum) or not op.summed:
        return None
    counts = Counter([i for word in op.labels for i in word])
    words = [
        word
        for arg, word in zip(op.args, op.labels, strict=True)
        if selects(arg) and counts[word[-1]] == 1 and word[-1] in op.out
    ]
    if not words:
        return None
    tables = frozenset([word[-1] for word in words])
    items = tuple(dict.fromkeys([i for word in words for i in word[:-1]]))
    kept = tuple(dict.fromkeys([i for i in (*op.out, *items) if i not in tables]))
    return _TabledContraction(tables, items, kept)


def is_spread(e: Expr) -> bool:
    """Is e a product with a sum of items by segments along several axes: are most entries zero?"""
    found = map(_tabled_contraction, [e] if isinstance(e, Einsum) and e.summed else e.args)
    return any(tabled is not None and len(tabled.tables) > 1 for tabled in found)


def with_tables(piece: UngroupedTerm, sizes: Mapping[str, int] | None = None) -> UngroupedTerm:
    """The term with selection tensors as tables, where fewer entries are then held.

    A sum of items by segments is replaced by a core of all items whose output index is a table.
    Without sizes this is done where it has several axes of segments: its entries are mostly zero.
    It is done for one contraction at most, since pairs of items would be as many as entries.
    """
    best: tuple[int, int] | None = None
    for k, (op, _) in enumerate(piece.operands):
        if (found := _tabled_contraction(op)) is None or not isinstance(op, Einsum):
            continue
        saved = found.saved(op, sizes) if sizes is not None else 1 - found.contracted(op)
        if saved > 0 and (best is None or saved > best[0]):
            best = saved, k
    operands, extents = list(piece.operands), dict(enumerate(piece.extents))
    if best is not None:
        op, word = operands[best[1]]
        assert isinstance(op, Einsum)
        operands[best[1] : best[1] + 1] = inlined(op, word, extents)
    return _read_tables(operands, piece.out, extents, piece.coef)


def _read_tables(
    operands: list[LabelledExpr], out: Sequence[int | Table], extents: dict[int, Extent], coef: Coef
) -> UngroupedTerm:
    """The term with tables for output axes whose label is selected, or fixed by an indicator.

    Contractions that an indicator makes larger than their operands are opened for that.
    """
    k = 0
    while k < len(operands):
        op, word = operands[k]
        if isinstance(op, Einsum) and op.summed and _opens(op):
            operands[k : k + 1] = inlined(op, word, extents)
        else:
            k += 1
    operands, places = banded(operands, out, extents)
    items: list[int | Table] = [Table(*places[i]) if i in places else i for i in out]
    kept: list[LabelledExpr] = []
    for k, (op, word) in enumerate(operands):
        others = {i for j, (_, w) in enumerate(operands) if j != k for i in w}
        others.update([i for item in items if isinstance(item, Table) for i in item.labels])
        place = word[-1] if word else None
        alone = place not in others and place not in word[:-1] and place in items
        if selects(op) and alone and len(set(word)) == len(word):
            items = [Table(op.args[0], word[:-1]) if i == place else i for i in items]
        else:
            kept.append((op, word))
    full = tuple([extents.get(label, 1) for label in range(max(extents, default=-1) + 1)])
    return UngroupedTerm(tuple(kept), tuple(items), full, coef)


def _opens(op: Einsum) -> bool:
    """Does an indicator make a contraction larger, or tell where merged axes stand?"""
    larger = any(map(indicates, op.args)) and enlarging(op)
    return larger or any(map(merged_places, op.args))


def as_low_rank(
    piece: UngroupedTerm, columns: int, sizes: Mapping[str, int]
) -> UngroupedTerm | None:
    """The term with one contraction left as factors, if its rank is below its number of rows."""
    rows, last = set(piece.out[:columns]), set(piece.out[columns:])
    shared = rows & last
    if piece.hidden or any(isinstance(i, Table) for i in piece.out):
        return None
    for k, (op, word) in enumerate(piece.operands):
        if not isinstance(op, Einsum) or not op.summed or any(map(selects, op.args)):
            continue
        extents = dict(enumerate(piece.extents))
        inside = inlined(op, word, extents)
        hidden = frozenset(extents) - frozenset(range(len(piece.extents)))
        operands = [*piece.operands[:k], *inside, *piece.operands[k + 1 :]]
        groups = components(operands, set(hidden))
        words = [{i for _, w in group for i in w} for group in groups]
        if any(w & (rows - shared) and w & (last - shared) for w in words):
            continue
        full = tuple([extents[label] for label in range(len(extents))])
        n = [extent_of(full[i], sizes) for i in rows - shared if isinstance(i, int)]
        sides = [
            {i for w in words if w & side for i in w & hidden}
            for side in (rows - shared, last - shared)
        ]
        rank = max(prod([extent_of(full[i], sizes) for i in side]) for side in sides)
        if all(sides) and rank < prod(n):
            return UngroupedTerm(tuple(operands), piece.out, full, piece.coef, hidden)
    return None


# --- grouping -------------------------------------------------------------------------------------


def is_data(piece: UngroupedTerm, data: Container[str]) -> bool:
    """Is it a multiple of one matrix of data, a variable of these names?"""
    matrices = [op for op, _ in piece.operands if op.ndim]
    return len(matrices) == 1 and isinstance(matrices[0], Var) and matrices[0].name in data


def merge_dense(
    pieces: Sequence[UngroupedTerm], shape: Shape, data: Container[str] = ()
) -> list[UngroupedTerm]:
    """Terms of one core that has all output axes, without unit tensors, summed to one core.

    Matrices of sparse data, the variables of these names, stay apart.
    """
    axes = tuple(range(len(shape)))
    dense: list[Expr] = []
    kept: list[UngroupedTerm] = []
    for piece in pieces:
        groups = components(list(piece.operands), set(piece.hidden))
        covered = [{i for _, w in group for i in w} for group in groups]
        plain = not piece.hidden and len(set(piece.out)) == len(piece.out)
        out = [i for i in piece.out if not isinstance(i, Table)]
        plain = plain and not is_data(piece, data)
        if plain and len(out) == len(axes) and len(groups) == 1 and covered[0] == {*out}:
            ops, words = zip(*piece.operands, strict=True)
            extents = dict(enumerate(piece.extents))
            dense.append(einsum(ops, words, out, piece.coef, extents))
        else:
            kept.append(piece)
    if dense:
        total = add(dense)
        kept.insert(0, UngroupedTerm(((total, axes),), axes, shape, ONE))
    return kept


class _AtomUse(NamedTuple):
    """An occurrence of a core: an expression, the labels of its axes, and a coefficient."""

    atom: Expr
    word: Labels
    coef: Coef


def grouped_terms(pieces: Sequence[UngroupedTerm], data: Container[str] = ()) -> list[Term]:
    """Terms with factors grouped; transposed and scaled occurrences share one core.

    Terms that differ in a number alone are one. Sparse data, the variables of these names, are
    cores as they are.
    """

    def kept(e: Expr) -> bool:
        return isinstance(e, Var) and e.name in data

    uses = [_atom_uses(piece) for piece in pieces]
    first: dict[int, tuple[Permutation, list[Coef]]] = {}
    for use in [use for row in uses for use in row]:
        order = tuple(range(len(use.word)))
        if not kept(use.atom):
            order = tuple(sorted(order, key=lambda axis: use.word[axis]))
        first.setdefault(id(use.atom), (order, []))[1].append(use.coef)
    terms: dict[Any, Term] = {}
    for piece, row in zip(pieces, uses, strict=True):
        coef = ONE
        cores, labels = [], []
        for use in row:
            order, coefs = first[id(use.atom)]
            same = not kept(use.atom) and all(c.key() == coefs[0].key() for c in coefs)
            axes = range(len(order))
            cores.append(einsum([use.atom], [axes], order, use.coef if same else ONE))
            labels.append(tuple([use.word[axis] for axis in order]))
            coef = coef if same else coef.by(use.coef)
        term = Term(coef, tuple(cores), tuple(labels), piece.out, piece.extents)
        key = term.place()
        if key in terms:
            value = sum_of(terms[key].coef.value, coef.value)
            term = term._replace(coef=coef._replace(value=value))
        terms[key] = term
    return [term for term in terms.values() if not term.coef.zero]


def _atom_uses(piece: UngroupedTerm) -> list[_AtomUse]:
    """Factors that share labels as one core each; the first has the coefficient."""
    extents = dict(enumerate(piece.extents))
    kept = piece.labels | piece.hidden
    groups: dict[frozenset[int], list[LabelledExpr]] = {}
    for k, group in enumerate(components(list(piece.operands), set(piece.hidden))):
        labels = {i for _, w in group for i in w}
        # Weights along summed labels alone are one factor.
        key = frozenset(labels) if labels and labels <= piece.hidden else frozenset([-1 - k])
        groups.setdefault(key, []).extend(group)
    found: list[_AtomUse] = []
    coef = piece.coef
    for group in groups.values():
        word = tuple(sorted({label for _, w in group for label in w} & kept))
        local = {i: extents[i] for _, w in group for i in w}
        core = einsum([op for op, _ in group], [w for _, w in group], word, ONE, local)
        use = _atom_of(core, word)
        found.append(use._replace(coef=use.coef.by(coef)))
        coef = ONE
    return found or [_AtomUse(filled(coef, ()), (), ONE)]


def _atom_of(core: Expr, word: Labels) -> _AtomUse:
    """A core without the permutation and the coefficient around it."""
    if isinstance(core, Einsum) and not core.summed and len(core.args) == 1:
        inside = core.labels[0]
        if len(inside) == len(set(inside)) and sorted(inside) == sorted(core.out):
            place = {label: axis for axis, label in enumerate(core.out)}
            return _AtomUse(core.args[0], tuple([word[place[i]] for i in inside]), core.coef)
    if isinstance(core, Einsum) and not core.summed and core.coef is not ONE and core.args:
        coef, rest = split_coef(core)
        return _AtomUse(rest, word, coef)
    return _AtomUse(core, word, ONE)
