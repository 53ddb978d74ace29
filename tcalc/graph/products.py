"""Products of atoms: contractions with canonical labels, and the outer products around them.

The second half of the normal form: one product whose operands are atoms already, that is, neither
outer products nor sums to distribute over (`tcalc.graph.normal` sees to that).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from .canonical import axis_symmetries, canonical_labelling, closure, leaf_symmetries, least
from .extents import ONE, Coef, Extent, Shape, number
from .factors import Factors, LabelledExpr, components, factors_of, inlined, selects
from .nodes import Apply, Const, Einsum, Expr, Labels, Part, Permutation, Var, intern
from .operators import Loop

#: How many operands products in a product are opened to, to see how it is symmetric.
MAX_OPENED = 8


def atoms_of(e: Expr) -> Factors:
    """The atoms of which e is an outer product; a contraction is one."""
    if isinstance(e, Einsum) and not e.summed:
        return factors_of(e)
    axes = tuple(range(e.ndim))
    return Factors([(e, axes)], axes, dict(enumerate(e.shape)))


def numeral(value: int | float, shape: Shape = ()) -> Expr:
    """A number, broadcast to `shape`."""
    return filled(number(value), shape)


def filled(coef: Coef, shape: Shape) -> Expr:
    return _intern_einsum((), (), tuple(range(len(shape))), shape, coef)


def zeros_node(shape: Shape) -> Expr:
    return filled(Coef(0), shape)


def is_number(e: Expr, value: int | float | None = None) -> bool:
    """Is e one number in every entry (and this one)?"""
    if not isinstance(e, Einsum) or e.args or len(set(e.out)) != len(e.out):
        return False
    return value is None or e.coef.key() == number(value).key()


def is_zero(e: Expr) -> bool:
    return isinstance(e, Einsum) and e.coef.zero


def numeric_value(e: Expr) -> int | float | None:
    """The number that every entry of e is, if e is one and no dimension is in it."""
    if isinstance(e, Einsum) and is_number(e) and not (e.coef.times or e.coef.over):
        return e.coef.evaluate({})
    return None


def grouped_factors(operands: list[LabelledExpr], extents: Shape) -> list[LabelledExpr]:
    """Factors of an outer product grouped under those that have all their labels, one operand each.

    So long pointwise products nest, or building a chain of n factors would take quadratic time.
    """
    groups: dict[Labels, list[LabelledExpr]] = {}
    for op, word in sorted(operands, key=lambda item: -len(set(item[1]))):
        cover = next((w for w in groups if set(word) <= set(w)), word)
        groups.setdefault(cover, []).append((op, word))
    closed: list[LabelledExpr] = []
    for group in groups.values():
        axes = tuple(sorted({label for _, word in group for label in word}))
        closed.append(
            (outer_product(group, axes, dict(enumerate(extents)), ONE), axes)
            if len(group) > 1
            else group[0]
        )
    return closed


def without_ones(
    operands: list[LabelledExpr], outer: set[int]
) -> tuple[list[LabelledExpr], set[int]]:
    """Operands without selection tensors that change nothing, and labels that went with them.

    They stand twice, or select from ones: S_ij S_ij is S_ij, and S_ij summed over j is 1.
    """
    kept: dict[tuple[int, Labels, int], LabelledExpr] = {}
    for k, (op, word) in enumerate(operands):
        kept.setdefault((id(op), word, -1 if selects(op) else k), (op, word))
    counts = Counter([label for _, word in kept.values() for label in word])
    gone = {
        word[-1]
        for op, word in kept.values()
        if selects(op) and counts[word[-1]] == 1 and word[-1] not in outer
    }
    return [(op, word) for op, word in kept.values() if not (word and word[-1] in gone)], gone


def contraction(
    group: list[LabelledExpr], outer: set[int], extents: Mapping[int, Extent]
) -> LabelledExpr:
    """The canonical contraction of connected operands, and the labels of its axes outside."""
    local: dict[int, int] = {}
    for _, word in group:
        for label in word:
            local.setdefault(label, len(local))
    names = list(local)
    words = [tuple([local[label] for label in word]) for _, word in group]
    ops = [op for op, _ in group]
    is_free = [label in outer for label in names]
    sizes = tuple([extents[label] for label in names])
    symmetric = operand_symmetries(ops, words)
    position, others = canonical_labelling(ops, words, is_free, sizes, symmetric)
    free = sorted([k for k, o in enumerate(is_free) if o], key=lambda k: position[k])
    summed = sorted([k for k, o in enumerate(is_free) if not o], key=lambda k: position[k])
    final = {k: place for place, k in enumerate(free + summed)}
    rows = sorted(
        [
            (op.order, least(tuple([final[k] for k in word]), sym), i)
            for i, (op, word, sym) in enumerate(zip(ops, words, symmetric, strict=True))
        ]
    )
    node = _intern_einsum(
        tuple([ops[i] for *_, i in rows]),
        tuple([word for _, word, _ in rows]),
        tuple(range(len(free))),
        tuple([sizes[k] for k in free + summed]),
        ONE,
    )
    outside = tuple([names[k] for k in free])
    if node._symmetries is None:
        found = _automorphisms(free, position, others)
        node._symmetries = found or _opened_automorphisms(group, outside, extents)
    return node, outside


def _opened_automorphisms(
    group: list[LabelledExpr], outside: Labels, extents: Mapping[int, Extent]
) -> tuple[Permutation, ...]:
    """Permutations of the free labels that are seen where contractions inside are opened.

    A (S A') is symmetric where S is, of which its factors A and S A' say nothing.
    """
    if len(outside) < 2 or not any(_opens(op) for op, _ in group):
        return ()
    sizes, waiting = dict(extents), list(group)
    operands: list[LabelledExpr] = []
    while waiting and len(operands) + len(waiting) <= MAX_OPENED:
        op, word = waiting.pop()
        if isinstance(op, Einsum) and _opens(op):
            waiting += inlined(op, word, sizes)
        else:
            operands.append((op, word))
    if waiting or not _alike(operands, outside, sizes):
        return ()
    node, order = contraction(operands, set(outside), sizes)
    axis = {label: k for k, label in enumerate(outside)}
    turned = [dict(zip(order, [order[k] for k in perm], strict=True)) for perm in symmetries(node)]
    return tuple(sorted([tuple([axis[turn[label]] for label in outside]) for turn in turned]))


def _opens(e: Expr) -> bool:
    """Is an operand a contraction, or a multiple or a view of one?"""
    if not isinstance(e, Einsum) or len(set(e.out)) < e.ndim:
        return False
    return e.summed or (len(e.args) == 1 and _opens(e.args[0]))


def _alike(
    operands: Sequence[LabelledExpr], outside: Labels, extents: Mapping[int, Extent]
) -> bool:
    """May two free labels be exchanged: do equal operands have them, at as many axes?"""
    stands = [
        (extents[label], sorted([op.order for op, word in operands for k in word if k == label]))
        for label in outside
    ]
    return any(one == other for k, one in enumerate(stands) for other in stands[:k])


def _automorphisms(
    free: list[int], position: list[int], others: list[list[int]]
) -> tuple[Permutation, ...]:
    """Permutations of the free labels among labellings with one certificate."""
    generators = set()
    for other in others:
        where = {other[k]: place for place, k in enumerate(free)}
        if all(position[k] in where for k in free):
            generators.add(tuple([where[position[k]] for k in free]))
    return closure(sorted(generators - {tuple(range(len(free)))}))


def outer_product(
    atoms: list[LabelledExpr], out: Labels, extents: Mapping[int, Extent], coef: Coef
) -> Expr:
    """The product without summed labels; a single operand read as it is, is that operand."""
    if len(atoms) == 1 and coef == ONE and len(set(out)) == len(out) == len(atoms[0][1]):
        same = symmetries(atoms[0][0])
        if least(atoms[0][1], same) == least(out, same):
            return atoms[0][0]
    final: dict[int, int] = {}
    for label in out:
        final.setdefault(label, len(final))
    free = operand_symmetries([op for op, _ in atoms], [word for _, word in atoms])
    rows = sorted(
        [
            (op.order, least(tuple([final[i] for i in word]), free[k]) if word else (), k)
            for k, (op, word) in enumerate(atoms)
        ]
    )
    return _intern_einsum(
        tuple([atoms[k][0] for *_, k in rows]),
        tuple([word for _, word, _ in rows]),
        tuple([final[label] for label in out]),
        tuple([extents[label] for label in final]),
        coef,
    )


def canonical_product(product: Factors) -> Expr:
    """Contractions of what summed labels connect, as atoms of one outer product around them."""
    outer = set(product.out)
    operands, sign = sign_aligned(product.operands, product.out)
    if outer.issuperset([label for _, word in operands for label in word]):
        return outer_product(operands, product.out, product.extents, product.coef.by(sign))
    atoms: list[LabelledExpr] = []
    for group in components(operands, outer):
        if len(group) == 1 and outer.issuperset(group[0][1]):
            atoms.append(group[0])
        else:
            atoms.append(contraction(group, outer, product.extents))
    return outer_product(atoms, product.out, product.extents, product.coef.by(sign))


def permuted(e: Expr, perm: Sequence[int]) -> Expr:
    """Axis k of the result is axis perm[k] of e."""
    atoms, out, extents, coef = atoms_of(e)
    out = tuple([out[axis] for axis in perm])
    atoms, sign = sign_aligned(atoms, out)
    return outer_product(atoms, out, extents, coef.by(sign))


def with_coef(e: Expr, coef: Coef) -> Expr:
    """The outer product that e is, with another coefficient."""
    if coef.zero:
        return zeros_node(e.shape)
    if isinstance(e, Einsum) and not e.summed and (len(e.args) != 1 or coef != ONE):
        return _intern_einsum(
            e.args, e.labels, e.out, e.extents, coef
        )  # its order has no part in it
    atoms, out, extents, _ = atoms_of(e)
    return outer_product(atoms, out, extents, coef)


def multiple(e: Expr, coef: Coef) -> Expr:
    if coef == ONE:
        return e
    return with_coef(e, coef.by(e.coef) if isinstance(e, Einsum) else coef)


def split_coef(e: Expr) -> tuple[Coef, Expr]:
    """e as a coefficient and the rest."""
    if not isinstance(e, Einsum) or e.coef == ONE:
        return ONE, e
    plain = e._plain
    if plain is None:
        plain = e._plain = with_coef(e, ONE)
    return e.coef, plain


def _intern_einsum(
    args: tuple[Expr, ...], labels: tuple[Labels, ...], out: Labels, extents: Shape, coef: Coef
) -> Expr:
    node: Expr = intern(Einsum, (labels, out, extents, coef), args)
    return node


# --- symmetries -----------------------------------------------------------------------------------


def sign_aligned(operands: list[LabelledExpr], out: Labels) -> tuple[list[LabelledExpr], Coef]:
    """Operands with antisymmetries at one choice of labels each, and the sign that this takes.

    Functions have the labels of the result in its order: sin(b - a) is -sin(a - b).
    """
    if not any(op._antisymmetries for op, _ in operands):
        return operands, ONE
    sign = 1
    seen: dict[int, set[Labels]] = {}
    found = []
    places = {label: k for k, label in enumerate(out)}

    def place(word: Labels) -> list[int]:
        return [places.get(label, len(places)) for label in word]

    for op, word in operands:
        if op._antisymmetries:
            spelled = seen.setdefault(id(op), set())
            turned = [tuple([word[p] for p in perm]) for perm in op._antisymmetries]
            if isinstance(op, Apply):
                first = min(turned, key=place)
                if place(first) < place(word):
                    turned, word, sign = [word], first, -sign
            if word not in spelled and (known := spelled.intersection(turned)):
                word, sign = min(known), -sign
            spelled.add(word)
        found.append((op, word))
    return found, number(sign)


def operand_symmetries(
    ops: Sequence[Expr], words: Sequence[Labels]
) -> list[tuple[Permutation, ...]]:
    """Axis permutations of each operand that leave the product as it is.

    An operand's own, and where it stands an even number of times under the same labels also those
    that change its sign: (x_i - x_j)**2 is symmetric.
    """
    if not any(op._antisymmetries for op in ops):
        return [symmetries(op) for op in ops]
    counts = Counter([(id(op), word) for op, word in zip(ops, words, strict=True)])
    return [
        closure([*symmetries(op), *op._antisymmetries])
        if op._antisymmetries and counts[id(op), word] % 2 == 0
        else symmetries(op)
        for op, word in zip(ops, words, strict=True)
    ]


def symmetries(e: Expr) -> tuple[Permutation, ...]:
    """Axis permutations that leave e as it is.

    Those of sums and applications are found when these are built: nothing here is recursive.
    """
    found = e._symmetries
    if found is None:
        found = _symmetries(e)
        e._symmetries = found
    return found


def antisymmetries(e: Expr) -> tuple[Permutation, ...]:
    """Axis permutations that change the sign of e and nothing else, for products of such too."""
    if not isinstance(e, Einsum) or e.summed:
        return e._antisymmetries
    if len(set(e.out)) < len(e.out) or not any(op._antisymmetries for op in e.args):
        return ()
    same, sign = _aligned(e, range(e.ndim))
    turned = [(perm, _aligned(e, perm)) for perm in axis_symmetries(e.shape)]
    return tuple([perm for perm, found in turned if found == (same, -sign)])


def _aligned(e: Einsum, perm: Sequence[int]) -> tuple[list[tuple[int, Labels]], int]:
    """The operands of a product whose axes are permuted, each turned one way; and the sign."""
    labels = {e.out[p]: e.out[k] for k, p in enumerate(perm)}
    found, sign = [], 1
    for op, word in zip(e.args, e.labels, strict=True):
        word, same = tuple([labels[label] for label in word]), symmetries(op)
        first = least(word, same)
        for turn in op._antisymmetries:
            other = least(tuple([word[p] for p in turn]), same)
            if other < first:
                first, sign = other, -sign
        found.append((id(op), first))
    return sorted(found), sign


def _state_symmetries(e: Part) -> tuple[Permutation, ...]:
    """Those of a state of a loop, as its variable declares them: behind the steps of a history."""
    (whole,) = e.args
    if not isinstance(whole, Apply) or not isinstance(whole.op, Loop):
        return ()
    step = whole.op.iteration(whole.params, ())
    lead = e.ndim - (state := step.states[e.index % step.results]).ndim
    turned = leaf_symmetries(state)
    return tuple([(*range(lead), *[lead + axis for axis in perm]) for perm in turned])


def _symmetries(e: Expr) -> tuple[Permutation, ...]:
    if e.ndim < 2:
        return ()
    if isinstance(e, Var | Const):
        return leaf_symmetries(e)
    if isinstance(e, Part):
        return _state_symmetries(e)
    if not isinstance(e, Einsum):
        return ()
    operands, extents = list(zip(e.args, e.labels, strict=True)), dict(enumerate(e.extents))
    if e.summed:
        contraction(operands, set(e.out), extents)
        return e._symmetries or ()
    found = []
    for perm in axis_symmetries(e.shape):
        out = tuple([e.out[k] for k in perm])
        if outer_product(operands, out, extents, e.coef) is e:
            found.append(perm)
    return closure(found)
