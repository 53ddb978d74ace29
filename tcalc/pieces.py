"""Products as they are read from a derivative, and the grouping of their factors to cores.

Factors that share labels are one core. Selection tensors become tables, and a contraction may stay
apart as factors where it has fewer products than rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import NamedTuple

from . import normal
from .expr import Add, Einsum, Expr, Labels, Permutation
from .extents import ONE, Coef, Extent, Shape, extent_of
from .normal import einsum, low_order, structured
from .products import Operand, components, filled, opened, selects

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

    operands: tuple[Operand, ...]
    out: tuple[int | Table, ...]
    extents: Shape
    coef: Coef
    hidden: frozenset[int] = frozenset()

    @property
    def labels(self) -> set[int]:
        """Labels that count entries: those of the output and of its tables."""
        found: set[int] = set()
        for item in self.out:
            found.update(item.labels if isinstance(item, Table) else (item,))
        return found


# --- reading --------------------------------------------------------------------------------------


def parts_of(value: Expr) -> list[Expr]:
    """Terms of a sum, also of sums inside products where they are all of lower order.

    Such a sum would be a larger core than its terms are apart: x_l (A_ik B_j + A_jk B_i).
    """
    found: list[Expr] = []
    stack = [value]
    while stack:
        e = stack.pop()
        parts = _distributed(e) if len(found) + len(stack) < MAX_TERMS else None
        if parts is None:
            found.append(e)
        else:
            stack.extend(reversed(parts))
    return found


def _distributed(e: Expr) -> list[Expr] | None:
    """The product e distributed over one of its sums, or None."""
    if isinstance(e, Add):
        return list(e.args)
    if not isinstance(e, Einsum) or e.summed:
        return None
    extents = dict(enumerate(e.extents))
    for k, arg in enumerate(e.args):
        if isinstance(arg, Add) and (structured(arg) or all(low_order(t) for t in arg.args)):
            return [
                einsum([*e.args[:k], t, *e.args[k + 1 :]], e.labels, e.out, e.coef, extents)
                for t in arg.args
            ]
    return None


def piece_of(e: Expr) -> Piece | None:
    """One product with its selection tensors read as tables; None for zero."""
    axes = tuple(range(e.ndim))
    if not isinstance(e, Einsum):
        return _tables([(e, axes)], axes, dict(enumerate(e.shape)), ONE)
    if e.coef.zero:
        return None
    if e.summed:
        return _tables([(e, axes)], axes, dict(enumerate(e.shape)), ONE)
    operands = list(zip(e.args, e.labels, strict=True))
    return _tables(operands, e.out, dict(enumerate(e.extents)), e.coef)


def _tables(operands: list[Operand], out: Labels, extents: dict[int, Extent], coef: Coef) -> Piece:
    k = 0
    while k < len(operands):
        op, word = operands[k]
        if isinstance(op, Einsum) and op.summed and any(selects(a) for a in op.args):
            operands[k : k + 1] = opened(op, word, extents)
        else:
            k += 1
    items: list[int | Table] = list(out)
    kept: list[Operand] = []
    for k, (op, word) in enumerate(operands):
        others = {i for j, (_, w) in enumerate(operands) if j != k for i in w}
        place = word[-1] if word else None
        alone = place not in others and place not in word[:-1] and place in out
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
        if not isinstance(op, Einsum) or not op.summed:
            continue
        extents = dict(enumerate(piece.extents))
        inside = opened(op, word, extents)
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
        total = normal.add(dense)
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
    groups: dict[frozenset[int], list[Operand]] = {}
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
        coef, rest = normal.split_coef(core)
        return _Use(rest, word, coef)
    return _Use(core, word, ONE)
