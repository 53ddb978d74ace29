"""Contractions that stay factors: a sum over few items of products with fewer entries than it has.

sum_b S_b (x) x_b x_b' over few items b holds S and x, not their product. Factors that all terms of
a sum have in common are pulled out of it first, so that nothing is distributed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from math import prod
from typing import TypeGuard

from ..graph.extents import ONE, Extent, extent_of
from ..graph.factors import LabelledExpr, components, indicates, inlined, selects
from ..graph.nodes import Add, Einsum, Expr, Labels, Var, postorder
from ..graph.normal import add, drop_axes, einsum
from ..graph.sums import absent_axes
from .bands import Table
from .core_terms import UngroupedTerm, is_data

#: A factor and which axes of the product its axes are.
Factor = tuple[int, Labels]

#: How many products inside each other are looked into.
DEPTH = 8
#: Into how many terms a sum is opened.
MOST = 256


def as_factors(
    piece: UngroupedTerm, sizes: Mapping[str, int], sparse: Mapping[str, int]
) -> UngroupedTerm | None:
    """The term with one contraction left as factors, where these have fewer entries together."""
    if piece.hidden or any(isinstance(item, Table) for item in piece.out):
        return None
    best: tuple[float, UngroupedTerm] | None = None
    before = entries(piece, sizes, sparse)
    for k, (op, word) in enumerate(piece.operands):
        if not isinstance(op, Einsum) or not op.summed:
            continue
        found = _opened(piece, k, op, word)
        count = entries(found, sizes, sparse)
        if count < before and (best is None or count < best[0]):
            best = count, found
    return None if best is None else best[1]


def entries(piece: UngroupedTerm, sizes: Mapping[str, int], sparse: Mapping[str, int]) -> float:
    """How many entries the different cores of a term have.

    Each of two matrices of sparse data, of so many entries by name, has no more than their product,
    which has as many as there are where they are spread evenly.
    """
    data = [
        (sparse[e.name], w) for e, w in piece.operands if isinstance(e, Var) and e.name in sparse
    ]
    shared = set.intersection(*[set(w) for _, w in data]) & piece.hidden if len(data) == 2 else ()
    counts: dict[object, float] = {}
    kept = piece.labels | piece.hidden
    for group in components(list(piece.operands), set(piece.hidden)):
        labels = {i for _, word in group for i in word} & kept
        key = tuple(sorted([id(op) for op, _ in group]))
        counts[key] = prod([extent_of(piece.extents[i], sizes) for i in labels])
        if shared and len(group) == 1 and group[0][1] in [word for _, word in data]:
            pairs = prod([count for count, _ in data])
            most = pairs / prod([extent_of(piece.extents[i], sizes) for i in shared])
            counts[key] = min(counts[key], most)
        elif len(data) == 1 and is_data(piece, sparse) and group[0][1] == data[0][1]:
            counts[key] = min(counts[key], data[0][0])
    return sum(counts.values())


def _opened(piece: UngroupedTerm, k: int, op: Einsum, word: Labels) -> UngroupedTerm:
    """The term with the factors of operand k, whose summed labels are hidden."""
    found = _inside(piece, k, op, word)
    hidden = frozenset(range(len(piece.extents), len(found.extents)))
    operands = [
        part
        for n, (arg, w) in enumerate(found.operands)
        for part in (_pulled_out(arg, w) if k <= n < k + len(op.args) else [(arg, w)])
    ]
    return found._replace(operands=tuple(operands), hidden=hidden)


def _inside(piece: UngroupedTerm, k: int, op: Einsum, word: Labels) -> UngroupedTerm:
    """The term with the operands of operand k in its place; a label that it has twice is one."""
    extents: dict[int, Extent] = dict(enumerate(piece.extents))
    same = {i: word[op.out.index(label)] for i, label in zip(word, op.out, strict=True)}
    whole = (*piece.operands[:k], *inlined(op, word, extents), *piece.operands[k + 1 :])
    operands = tuple([(arg, tuple([same.get(i, i) for i in w])) for arg, w in whole])
    out = tuple([same.get(i, i) if isinstance(i, int) else i for i in piece.out])
    full = tuple([extents[label] for label in range(len(extents))])
    return piece._replace(operands=operands, out=out, extents=full, coef=piece.coef.by(op.coef))


def _held_apart(piece: UngroupedTerm, columns: int, sizes: Mapping[str, int]) -> UngroupedTerm:
    """The term with unit tensors between its rows, or columns, and a factor that has both.

    Where that factor has few of them in all, solvers then see a term of low rank.
    """
    rows = {i for i in piece.out[:columns] if isinstance(i, int)}
    last = {i for i in piece.out[columns:] if isinstance(i, int)}
    groups = components(list(piece.operands), set(piece.hidden))
    words = [{i for _, w in group for i in w} for group in groups]
    both = [k for k, w in enumerate(words) if w & rows and w & last]
    if rows & last or len(both) != 1:
        return piece
    (middle,) = both

    def size(labels: Iterable[int]) -> int:
        return prod([extent_of(piece.extents[i], sizes) for i in labels])

    sides = [words[middle] & rows, words[middle] & last]
    if any(size(side | piece.hidden) >= size(rows) for side in sides):
        return piece
    extents = list(piece.extents)
    fresh: dict[int, int] = {}
    units: list[LabelledExpr] = []
    for label in sorted(sides[0] | sides[1]):
        fresh[label] = len(extents)
        extents.append(extents[label])
        unit = einsum([], [], (0, 0), ONE, {0: extents[label]})
        units.append((unit, (label, fresh[label])))
    moved = [(op, tuple([fresh.get(i, i) for i in w])) for op, w in groups[middle]]
    rest = [o for k, group in enumerate(groups) if k != middle for o in group]
    return piece._replace(
        operands=(*rest, *units, *moved), extents=tuple(extents),
        hidden=piece.hidden | frozenset(fresh.values()),
    )  # fmt: skip


# --- common factors -------------------------------------------------------------------------------


def _pulled_out(e: Expr, word: Labels) -> list[LabelledExpr]:
    """Factors of an operand, and what is left of it, without the axes that only they have."""
    factors = Counter({f: n for f, n in _factors(e, DEPTH).items() if len(f[1]) < e.ndim})
    known = {id(op): op for op in _leaves(e, DEPTH)}
    found: list[LabelledExpr] = []
    rest: Expr = e
    for factor, times in factors.items():
        for _ in range(times):
            divided = _divided(rest, factor, DEPTH)
            if divided is None:
                break
            rest = divided
            found.append((known[factor[0]], tuple([word[axis] for axis in factor[1]])))
    absent = absent_axes(rest)
    if not absent:
        return [(e, word)]
    kept = tuple([label for axis, label in enumerate(word) if axis not in absent])
    return [*found, (drop_axes(rest, absent), kept)]


def _is_product(e: Expr) -> bool:
    return isinstance(e, Einsum) and not any(selects(a) or indicates(a) for a in e.args)


def _leaves(e: Expr, depth: int) -> list[Expr]:
    found = [e]
    if depth and (isinstance(e, Add) or _is_product(e)):
        found += [leaf for arg in e.args for leaf in _leaves(arg, depth - 1)]
    return found


def _factors(e: Expr, depth: int) -> Counter[Factor]:
    """What divides e: factors of a product, and those that all terms of a sum have."""
    found: Counter[Factor] = Counter()
    if depth and isinstance(e, Add):
        common = [_factors(term, depth - 1) for term in e.args]
        found = common[0]
        for other in common[1:]:
            found = found & other
    elif depth and isinstance(e, Einsum) and _is_product(e):
        axis = {label: k for k, label in enumerate(e.out) if e.out.count(label) == 1}
        for arg, word in zip(e.args, e.labels, strict=True):
            for (leaf, axes), times in _factors(arg, depth - 1).items():
                labels = [word[k] for k in axes]
                if all(label in axis for label in labels):
                    found[leaf, tuple([axis[label] for label in labels])] += times
    if not isinstance(e, Add | Einsum):
        found[id(e), tuple(range(e.ndim))] += 1
    return found


def _divided(e: Expr, factor: Factor, depth: int) -> Expr | None:
    """e without one such factor, of the same shape; None if it does not divide e."""
    leaf, axes = factor
    if depth and isinstance(e, Add):
        terms = [_divided(term, factor, depth - 1) for term in e.args]
        return None if any(t is None for t in terms) else add([t for t in terms if t is not None])
    if not depth or not isinstance(e, Einsum) or not _is_product(e):
        return None
    extents = dict(enumerate(e.extents))
    wanted = tuple([e.out[k] for k in axes])
    for k, (arg, word) in enumerate(zip(e.args, e.labels, strict=True)):
        ops, words = list(e.args), list(e.labels)
        if id(arg) == leaf and word == wanted:
            del ops[k], words[k]
            return einsum(ops, words, e.out, e.coef, extents)
        if isinstance(arg, Add | Einsum) and set(wanted) <= set(word):
            inner = _divided(arg, (leaf, tuple([word.index(i) for i in wanted])), depth - 1)
            if inner is not None:
                ops[k] = inner
                return einsum(ops, words, e.out, e.coef, extents)
    return None


def all_as_factors(
    pieces: Sequence[UngroupedTerm],
    columns: int | None,
    sizes: Mapping[str, int],
    sparse: Mapping[str, int],
) -> list[UngroupedTerm]:
    """The terms with contractions left as factors; those that are dense, all of them or none.

    `columns` of a square tensor is its number of columns; `sparse` are numbers of entries of sparse
    data, by name.
    """
    dense = [piece for piece in pieces if _is_dense(piece)]
    others = [piece for piece in pieces if not _is_dense(piece)]
    terms = list(islice(chain.from_iterable(map(_summed_terms, dense)), MOST + 1))
    terms = dense if len(terms) > MOST else terms
    apart = [not _is_dense(t) or is_data(t, sparse) for t in terms]
    found = [
        as_factors(t, sizes, sparse) or (t if kept else None)
        for t, kept in zip(terms, apart, strict=True)
    ]
    parts = [new for new in found if new is not None]
    whole = max([entries(piece, sizes, sparse) for piece in dense], default=0)
    fewer = sum([entries(part, sizes, sparse) for part in parts]) < whole
    if len(parts) < len(terms) or not fewer:
        parts, kept = [], dense
    else:
        kept = []
    for piece in others:
        new = as_factors(piece, sizes, sparse)
        (kept if new is None else parts).append(piece if new is None else new)
    made: list[UngroupedTerm] = []
    for new in parts:
        for k, other in enumerate(made):
            both = _joined(other, new, sizes, sparse)
            if both is not None:
                made[k] = both
                break
        else:
            made.append(new)
    if columns is not None:
        made = [_held_apart(piece, columns, sizes) for piece in made]
    return [*kept, *made]


def _summed_terms(piece: UngroupedTerm) -> Iterator[UngroupedTerm]:
    """The terms of a term with sums among its operands, one after the other.

    Sums in products in sums have as many as their numbers of terms multiplied.
    """
    waiting = [piece]
    while waiting:
        piece = waiting.pop()
        for k, (op, word) in enumerate(piece.operands):
            if isinstance(op, Add):
                before, behind = piece.operands[:k], piece.operands[k + 1 :]
                for term in reversed(op.args):
                    waiting.append(piece._replace(operands=(*before, (term, word), *behind)))
                break
            if _opens(op):
                waiting.append(_inside(piece, k, op, word))
                break
        else:
            yield piece


def _opens(e: Expr) -> TypeGuard[Einsum]:
    return isinstance(e, Einsum) and not e.summed and not any(map(indicates, e.args))


def opened(operands: Iterable[Expr]) -> list[Expr]:
    """Sums and products of entries, and what they are made of, each once."""
    return postorder(operands, lambda e: not (isinstance(e, Add) or _opens(e)))


# --- terms with factors in common -----------------------------------------------------------------


def _joined(
    one: UngroupedTerm,
    two: UngroupedTerm,
    sizes: Mapping[str, int],
    sparse: Mapping[str, int],
) -> UngroupedTerm | None:
    """Two terms that differ in one factor as one, if that has not many more entries."""
    common, rest = _in_common(_cores(one), _cores(two))
    hidden = [[piece.extents[i] for i in sorted(piece.hidden)] for piece in (one, two)]
    if any(len(cores) != 1 for cores in rest) or not common or hidden[0] != hidden[1]:
        return None
    n = len(one.out)
    shape = [piece.extents[i] for piece in (one,) for i in piece.out if isinstance(i, int)]
    extents = (*shape, *hidden[0])
    middles = [(cores[0], piece) for cores, piece in zip(rest, (one, two), strict=True)]
    if not all(set(_ties(piece).values()) <= set(word) for (_, word), piece in middles):
        return None
    labels = sorted({i for (_, word), piece in middles for i in (*word, *_ties(piece))})
    terms = [
        einsum(
            [known], [word], [_ties(piece).get(i, i) for i in labels], piece.coef,
            dict(enumerate(extents)),
        )
        for ((known, word), piece) in middles
    ]  # fmt: skip
    operands = (*common, (add(terms), tuple(labels)))
    found = UngroupedTerm(
        operands, tuple(range(n)), extents, ONE, frozenset(range(n, len(extents)))
    )
    apart = entries(one, sizes, sparse) + entries(two, sizes, sparse)
    return found if entries(found, sizes, sparse) <= 2 * apart else None


def _in_common(
    first: Sequence[LabelledExpr], second: Sequence[LabelledExpr]
) -> tuple[list[LabelledExpr], tuple[list[LabelledExpr], list[LabelledExpr]]]:
    """Cores that both have, as often as both have them, and those that one has alone."""
    left = list(second)
    common, alone = [], []
    for e, word in first:
        place = next((k for k, (op, w) in enumerate(left) if op is e and w == word), None)
        if place is None:
            alone.append((e, word))
        else:
            common.append(left.pop(place))
    return common, (alone, left)


def _ties(piece: UngroupedTerm) -> dict[int, int]:
    """Axes of the output with the label of an axis before them."""
    first = {item: axis for axis, item in reversed(list(enumerate(piece.out)))}
    return {axis: first[item] for axis, item in enumerate(piece.out) if first[item] != axis}


def _cores(piece: UngroupedTerm) -> list[LabelledExpr]:
    """The cores of a term, labelled by the first axis of the output, and hidden labels by order."""
    name = {item: axis for axis, item in reversed(list(enumerate(piece.out)))}
    name |= {label: len(piece.out) + k for k, label in enumerate(sorted(piece.hidden))}
    extents = dict(enumerate(piece.extents))
    found = []
    for group in components(list(piece.operands), set(piece.hidden)):
        labels = {i for _, word in group for i in word if i in name}
        word = sorted(labels, key=lambda i: name[i])
        local = {i: extents[i] for _, w in group for i in w}
        core = einsum([op for op, _ in group], [w for _, w in group], word, ONE, local)
        found.append((core, tuple([name[i] for i in word])))
    return found


def _is_dense(piece: UngroupedTerm) -> bool:
    """Is it one core with all axes, which is added to others of these?"""
    groups = components(list(piece.operands), set(piece.hidden))
    distinct = len(set(piece.out)) == len(piece.out)
    plain = not piece.hidden and not any(isinstance(item, Table) for item in piece.out)
    return plain and distinct and len(groups) == 1
