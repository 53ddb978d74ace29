"""Products as they are read from a derivative, and the grouping of their factors to cores.

Factors that share labels are one core. Selection tensors become tables, and a contraction may stay
apart as factors where it has fewer products than rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import NamedTuple

from ..graph.extents import ONE, Coef, Extent, Shape, extent_of
from ..graph.nodes import Add, Einsum, Expr, Labels, Permutation
from ..graph.normal import add, distribute, einsum
from ..graph.products import (
    LabelledExpr,
    components,
    enlarging,
    filled,
    indicates,
    inlined,
    selects,
    split_coef,
)
from ..graph.sums import flattened, low_order, structured
from .bands import banded

MAX_TERMS = 64


class Table(NamedTuple):
    """An output axis that stands at core[labels], an integer array."""

    core: Expr
    labels: Labels


class Term(NamedTuple):
    """coef times the product of cores read at labels, embedded by an output.

    A label twice in the output is a unit tensor; a label of the cores that is not in it is summed.
    """

    coef: Coef
    cores: tuple[Expr, ...]
    labels: tuple[Labels, ...]
    out: tuple[int | Table, ...]
    extents: Shape


class Piece(NamedTuple):
    """A term as it is read: a product of operands whose factors are not grouped yet.

    Summed labels in `hidden` stay apart; all others are summed inside cores.
    """

    operands: tuple[LabelledExpr, ...]
    out: tuple[int | Table, ...]
    extents: Shape
    coef: Coef
    hidden: frozenset[int] = frozenset()

    def key(self) -> tuple[object, ...]:
        """What pieces of one expression are told apart by."""
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


def parts_of(value: Expr) -> list[Expr]:
    """Terms of a sum, also of sums inside products that are no core of their own.

    These are sums of lower order, a larger core than their terms are apart: x_l (A_ik B_j + A_jk
    B_i); and sums of what stands in other products anyway: x_i y_j + (x_j + y_j) y_i has rank two.
    """
    found = flattened(value, _opened, MAX_TERMS)
    standing = {_base_id(arg) for e in found for arg in _factors(e)}
    return [
        part
        for e in found
        for part in _distributed(e, lambda arg: standing.issuperset(map(_base_id, arg.args))) or [e]
    ]


def _factors(e: Expr) -> tuple[Expr, ...]:
    """The factors of an outer product."""
    return e.args if isinstance(e, Einsum) and not e.summed and len(e.args) > 1 else ()


def _base(e: Expr) -> Expr:
    """What e is a multiple of."""
    rest = split_coef(e)[1]
    axes = tuple(range(e.ndim))
    whole = isinstance(rest, Einsum) and len(rest.args) == 1 and rest.labels[0] == rest.out == axes
    return rest.args[0] if whole else rest


def _base_id(e: Expr) -> int:
    return id(_base(e))


def _opened(e: Expr) -> Sequence[Expr] | None:
    """Terms of a sum, or of one in a product that sets unit tensors or small factors free."""
    return e.args if isinstance(e, Add) else _distributed(e, _is_larger)


def _is_larger(e: Add) -> bool:
    return structured(e) or all(low_order(t) for t in e.args)


def _distributed(e: Expr, opens: Callable[[Add], bool]) -> list[Expr] | None:
    """The product e distributed over the first of its sums that opens, or None."""
    if not isinstance(e, Einsum) or e.summed:
        return None
    for k, arg in enumerate(e.args):
        if isinstance(arg, Add) and opens(arg):
            return distribute(e, {k: arg.args})
    return None


def piece_of(e: Expr) -> Piece | None:
    """One product as it stands; None for zero."""
    axes = tuple(range(e.ndim))
    if not isinstance(e, Einsum) or e.summed:
        return Piece(((e, axes),), axes, e.shape, ONE)
    if e.coef.zero:
        return None
    return Piece(tuple(zip(e.args, e.labels, strict=True)), e.out, e.extents, e.coef)


class _Segments(NamedTuple):
    """A contraction with selection tensors that may be tables: their labels, and those of items.

    `kept` are the labels that a core of all items has besides.
    """

    tables: frozenset[int]
    items: Labels
    kept: Labels

    def contracted(self, op: Einsum) -> bool:
        """Whether the contraction sums items to one axis alone, by segments."""
        return len(self.tables) == 1 and not set(self.items) & set(op.out)

    def saved(self, op: Einsum, sizes: Mapping[str, int]) -> int:
        """Entries that a core of all items and its tables have less than the contraction."""

        def count(labels: Labels) -> int:
            return prod([extent_of(op.extents[i], sizes) for i in labels])

        return count(op.out) - count(self.kept) - len(self.tables) * count(self.items)


def _segments(op: Expr) -> _Segments | None:
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
    return _Segments(tables, items, kept)


def tabled(piece: Piece, sizes: Mapping[str, int] | None = None) -> Piece:
    """The piece with selection tensors read as tables, where that keeps fewer entries.

    A contraction that sums items by segments is then opened: a core of all items stands at tables.
    Without sizes that is where it has more than one axis by segments; entries over two such axes
    are mostly zero. One contraction is opened at most, or pairs of items would count.
    """
    best: tuple[int, int] | None = None
    for k, (op, _) in enumerate(piece.operands):
        if (found := _segments(op)) is None or not isinstance(op, Einsum):
            continue
        saved = found.saved(op, sizes) if sizes is not None else 1 - found.contracted(op)
        if saved > 0 and (best is None or saved > best[0]):
            best = saved, k
    operands, extents = list(piece.operands), dict(enumerate(piece.extents))
    if best is not None:
        op, word = operands[best[1]]
        assert isinstance(op, Einsum)
        operands[best[1] : best[1] + 1] = inlined(op, word, extents)
    return _read(operands, piece.out, extents, piece.coef)


def _read(
    operands: list[LabelledExpr], out: Sequence[int | Table], extents: dict[int, Extent], coef: Coef
) -> Piece:
    """Selection tensors whose last label stands only in the output are tables of that axis.

    So are indicators that say where an axis stands, those of contractions that they enlarge too.
    """
    k = 0
    while k < len(operands):
        op, word = operands[k]
        if isinstance(op, Einsum) and op.summed and any(map(indicates, op.args)) and enlarging(op):
            operands[k : k + 1] = inlined(op, word, extents)
        else:
            k += 1
    operands, places = banded(operands, out, extents)
    items: list[int | Table] = [Table(*places[i]) if i in places else i for i in out]
    kept: list[LabelledExpr] = []
    for k, (op, word) in enumerate(operands):
        others = {i for j, (_, w) in enumerate(operands) if j != k for i in w}
        place = word[-1] if word else None
        alone = place not in others and place not in word[:-1] and place in items
        if selects(op) and alone and len(set(word)) == len(word):
            items = [Table(op.args[0], word[:-1]) if i == place else i for i in items]
        else:
            kept.append((op, word))
    full = tuple([extents.get(label, 1) for label in range(max(extents, default=-1) + 1)])
    return Piece(tuple(kept), tuple(items), full, coef)


def low_rank(piece: Piece, columns: int, sizes: Mapping[str, int]) -> Piece | None:
    """The piece with one contraction opened, if that has fewer products than rows and columns."""
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
            return Piece(tuple(operands), piece.out, full, piece.coef, hidden)
    return None


# --- grouping -------------------------------------------------------------------------------------


def merged(pieces: Sequence[Piece], shape: Shape) -> list[Piece]:
    """Pieces with every axis in one core are one core, their sum."""
    axes = tuple(range(len(shape)))
    dense: list[Expr] = []
    kept: list[Piece] = []
    for piece in pieces:
        groups = components(list(piece.operands), set(piece.hidden))
        covered = [{i for _, w in group for i in w} for group in groups]
        plain = not piece.hidden and len(set(piece.out)) == len(piece.out)
        out = [i for i in piece.out if not isinstance(i, Table)]
        if plain and len(out) == len(axes) and len(groups) == 1 and covered[0] == {*out}:
            ops, words = zip(*piece.operands, strict=True)
            extents = dict(enumerate(piece.extents))
            dense.append(einsum(ops, words, out, piece.coef, extents))
        else:
            kept.append(piece)
    if dense:
        total = add(dense)
        kept.insert(0, Piece(((total, axes),), axes, shape, ONE))
    return kept


class _Use(NamedTuple):
    """One occurrence of an atom: its labels in the atom's order, and its coefficient."""

    atom: Expr
    word: Labels
    coef: Coef


def grouped(pieces: Sequence[Piece]) -> list[Term]:
    """Grouped factors as terms; one core for all occurrences of an atom, permuted or scaled."""
    uses = [_uses(piece) for piece in pieces]
    first: dict[int, tuple[Permutation, list[Coef]]] = {}
    for use in [use for row in uses for use in row]:
        order = tuple(sorted(range(len(use.word)), key=lambda axis: use.word[axis]))
        first.setdefault(id(use.atom), (order, []))[1].append(use.coef)
    terms = []
    for piece, row in zip(pieces, uses, strict=True):
        coef = ONE
        cores, labels = [], []
        for use in row:
            order, coefs = first[id(use.atom)]
            same = all(c.key() == coefs[0].key() for c in coefs)
            axes = range(len(order))
            cores.append(einsum([use.atom], [axes], order, use.coef if same else ONE))
            labels.append(tuple([use.word[axis] for axis in order]))
            coef = coef if same else coef.by(use.coef)
        terms.append(Term(coef, tuple(cores), tuple(labels), piece.out, piece.extents))
    return terms


def _uses(piece: Piece) -> list[_Use]:
    """Factors that share labels as one atom each; the first carries the coefficient."""
    extents = dict(enumerate(piece.extents))
    kept = piece.labels | piece.hidden
    groups: dict[frozenset[int], list[LabelledExpr]] = {}
    for k, group in enumerate(components(list(piece.operands), set(piece.hidden))):
        labels = {i for _, w in group for i in w}
        # Weights along summed labels alone are one factor.
        key = frozenset(labels) if labels and labels <= piece.hidden else frozenset([-1 - k])
        groups.setdefault(key, []).extend(group)
    found: list[_Use] = []
    coef = piece.coef
    for group in groups.values():
        word = tuple(sorted({label for _, w in group for label in w} & kept))
        local = {i: extents[i] for _, w in group for i in w}
        core = einsum([op for op, _ in group], [w for _, w in group], word, ONE, local)
        use = _bare(core, word)
        found.append(use._replace(coef=use.coef.by(coef)))
        coef = ONE
    return found or [_Use(filled(coef, ()), (), ONE)]


def _bare(core: Expr, word: Labels) -> _Use:
    """A core without the permutation and the coefficient around it."""
    if isinstance(core, Einsum) and not core.summed and len(core.args) == 1:
        inside = core.labels[0]
        if len(inside) == len(set(inside)) and sorted(inside) == sorted(core.out):
            place = {label: axis for axis, label in enumerate(core.out)}
            return _Use(core.args[0], tuple([word[place[i]] for i in inside]), core.coef)
    if isinstance(core, Einsum) and not core.summed and core.coef is not ONE and core.args:
        coef, rest = split_coef(core)
        return _Use(rest, word, coef)
    return _Use(core, word, ONE)
