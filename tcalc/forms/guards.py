"""Laws of conventions at single points, which formulas on paper do not have.

Rows of derivatives keep factors finite where another one is zero: that of x^y by x has the factor
y and the power of x by y - 1, but for x = y = 0. On paper there is no value at such a point.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from ..graph.applications import rewritten
from ..graph.extents import ONE, Coef
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels, Var, postorder
from ..graph.normal import add, einsum, scale, terms_of
from ..graph.operators import TABLE
from ..graph.products import filled, is_zero, numeral, numeric_value, split_coef
from ..graph.sums import embeds
from ..ops.choices import Place, choice, choose, operands_by_entry
from ..ops.elementwise import power
from .laws import law
from .powers import RECIPROCAL, degree_of

AND, NOT, EQUAL, LOG = (TABLE[name] for name in ("logical_and", "logical_not", "equal", "log"))


def _core(e: Expr, word: Labels) -> Place:
    """What e is a multiple of, repeated along axes or not, at the labels of its own axes."""
    rest = split_coef(e)[1]
    if isinstance(rest, Einsum) and len(rest.args) == 1 and not rest.summed and not embeds(rest):
        at = dict(zip(rest.out, word, strict=True))
        return rest.args[0], tuple([at[label] for label in rest.labels[0]])
    return rest, word


def _zeros(condition: Expr, word: Labels) -> list[Place]:
    """What is zero where a condition holds that asks for nothing else; empty for others."""
    condition, word = _core(condition, word)
    if not isinstance(condition, Apply):
        return []
    if condition.op is AND:
        found = [_zeros(arg, word) for arg in condition.args]
        return [place for part in found for place in part] if all(found) else []
    zero = condition.op is EQUAL and is_zero(condition.args[1])
    return [_core(condition.args[0], word)] if zero else []


def _negated(e: Expr, word: Labels) -> list[Place]:
    """What is zero where e, a condition, does not hold."""
    e, word = _core(e, word)
    return _zeros(e.args[0], word) if isinstance(e, Apply) and e.op is NOT else []


def _guard_of(e: Expr) -> tuple[Expr, Expr] | None:
    """The condition under which a choice guards, and the branch that is taken elsewhere."""
    found = choice(e)
    if found is None:
        return None
    condition, yes, no = found
    if isinstance(condition, Apply) and condition.op is NOT:
        (condition,), yes, no = condition.args, no, yes
    return condition, no


def _met(e: Expr, word: Labels) -> dict[int, set[Labels]]:
    """Nodes that e meets entry by entry, by the labels that their axes have."""
    met: dict[int, set[Labels]] = {}
    below: list[Expr] = []
    waiting = [(e, word)]
    while waiting:
        node, at = waiting.pop()
        if at not in met.setdefault(id(node), set()):
            met[id(node)].add(at)
            places = operands_by_entry(node, at)
            waiting += places
            below += [] if places else node.args
    for node in postorder(below):
        met.pop(id(node), None)  # a reduction of it does not meet it so
    return met


def _without_guards(e: Expr, word: Labels, zeros: Sequence[Place]) -> Expr:
    """The expression without choices that guard against one of some factors being 0.

    A choice guards where it meets the factor entry by entry, as a reduction of it does not.
    """
    met, known = _met(e, word), set(zeros)

    def change(new: Expr, old: Expr) -> Expr:
        words, found = met.get(id(old), ()), choice(new)
        settled = found and numeric_value(found[0])  # a condition that was one of these
        if found is not None and settled is not None:
            return found[1 if settled else 2]
        guard, kept = _guard_of(old), _guard_of(new)
        if guard is not None and kept is not None:
            dropped = words and all(not known.isdisjoint(_zeros(guard[0], at)) for at in words)
            return kept[1] if dropped else new
        absent = words and all(not known.isdisjoint(_negated(old, at)) for at in words)
        return numeral(1, new.shape) if absent else new

    return rewritten([e], change)[0]


def _chooses(e: Expr) -> bool:
    """Is there a choice in an expression, or what holds but for where something is zero?"""
    return any(
        choice(node) is not None or _negated(node, tuple(range(node.ndim)))
        for node in postorder([e])
    )


@law(
    "guard", "x .* log(where(x == 0, 1, y)) = x .* log(y)", "Einsum", directed=True,
    given="what is guarded is finite where the guard stands",
)  # fmt: skip
def _guard(e: Expr) -> Iterable[Expr | None]:
    """Beside a factor that is zero there, a choice that keeps the other factors finite."""
    assert isinstance(e, Einsum)
    places = [k for k, op in enumerate(e.args) if not isinstance(op, Var) and _chooses(op)]
    if not places:
        return
    factors = list(zip(e.args, e.labels, strict=True))
    for k in places:
        beside: list[Place] = []
        for op, word in factors[:k] + factors[k + 1 :]:
            absent = _negated(op, word)
            beside += [(op, word), (degree_of(op)[0], word), *(absent if len(absent) == 1 else ())]
        found = _without_guards(*factors[k], beside)
        if found is not factors[k][0]:
            yield _with(e, k, found)
            return


def _with(e: Einsum, k: int, op: Expr) -> Expr:
    ops = [*e.args[:k], op, *e.args[k + 1 :]]
    return einsum(ops, e.labels, e.out, e.coef, dict(enumerate(e.extents)))


@law(
    "guarded-exponent", "x.^(where(logical_and(x == 0, y == 0), 1, y) - 1) = x.^(y - 1)", "power",
    directed=True, given="x is not 0 where y is",
)  # fmt: skip
def _guarded_exponent(e: Expr) -> Iterable[Expr | None]:
    """Where the base is zero, and the exponent negative, there is no value on paper."""
    base, exponent = e.args
    axes = tuple(range(e.ndim))
    zero = _core(base, axes)
    found = _without_guards(exponent, axes, [zero])
    if found is exponent:
        return
    met = _met(exponent, axes)

    def at_zero(new: Expr, old: Expr) -> Expr:
        guard, words = _guard_of(old), met.get(id(old), set())
        if guard is None or len(words) != 1:
            return new
        (at,) = words
        guards = {zero, _core(guard[1], at)} <= set(_zeros(guard[0], at))
        return numeral(0, new.shape) if guards else new

    degree = numeric_value(rewritten([exponent], at_zero)[0])
    if degree is not None and degree < 0:
        yield power(base, found)


@law(
    "not-at-a-pole", "logical_not(x == 0) .* log(x) = log(x)", "Einsum", directed=True,
    given="logarithms and quotients exist",
)  # fmt: skip
def _not_at_a_pole(e: Expr) -> Iterable[Expr | None]:
    """A condition that excludes points at which another factor has no value anyway."""
    assert isinstance(e, Einsum)
    factors = list(zip(e.args, e.labels, strict=True))
    for k, (condition, word) in enumerate(factors):
        zeros = _negated(condition, word)
        others = factors[:k] + factors[k + 1 :] if zeros else []
        if any(not set(zeros).isdisjoint(_poles(*other)) for other in others):
            yield _with(e, k, numeral(1, condition.shape))
            return


def _poles(e: Expr, word: Labels) -> Iterator[Place]:
    """What e takes the logarithm of, or divides by."""
    met = _met(e, word)
    for node in postorder([e]):
        if isinstance(node, Apply) and node.op in (LOG, RECIPROCAL):
            yield from [_core(node.args[0], at) for at in met.get(id(node), ())]


@law(
    "tie", "less(x, y) + equal(x, y)/2 = less(x, y)", "Add", directed=True,
    given="no arguments of a maximum or minimum tie",
)  # fmt: skip
def _tie(e: Expr) -> Iterable[Expr | None]:
    """Half of a condition that only holds on the border of another one, with what it scales."""
    halves = [(k, found) for k, t in enumerate(e.args) for found in _scaled(t, "equal")]
    wholes = [found for t in e.args for found in _scaled(t, "less")] if halves else []
    for k, (coef, half, *rest) in halves:
        for other, whole, *scaled in wholes:
            alike = scaled[0] == rest[0] and scaled[1] is rest[1]
            border = alike and other == coef.by(Coef(2)) and _at_border(whole, half)
            if border and not _tie_on_a_diagonal(half):
                yield add([t for j, t in enumerate(e.args) if j != k])
                return


def _scaled(term: Expr, name: str) -> Iterator[tuple[Coef, Apply, Labels, Expr]]:
    """Conditions in a term: its coefficient, the condition, its axes, and the other factors."""
    coef, e = split_coef(term)
    if isinstance(e, Apply) and e.op is TABLE[name]:
        yield coef, e, tuple(range(e.ndim)), filled(ONE, e.shape)
    if not isinstance(e, Einsum) or e.summed or len(set(e.out)) < e.ndim:
        return
    for k, (op, word) in enumerate(zip(e.args, e.labels, strict=True)):
        if isinstance(op, Apply) and op.op is TABLE[name]:
            ops, words = [*e.args[:k], *e.args[k + 1 :]], [*e.labels[:k], *e.labels[k + 1 :]]
            rest = einsum(ops, words, e.out, ONE, dict(enumerate(e.extents)))
            yield coef, op, word, rest


def _tie_on_a_diagonal(equal: Apply) -> bool:
    """Do both sides tie wherever two indices are one, as the lesser of s_i and s_j for i = j?"""
    difference = add([equal.args[0], scale(equal.args[1], Coef(-1))])
    for one, two in combinations(range(equal.ndim), 2):
        if equal.shape[one] == equal.shape[two]:
            word = [one if axis == two else axis for axis in range(equal.ndim)]
            terms = [einsum([t], [word], sorted({*word})) for t in terms_of(difference)]
            if is_zero(add(terms)):
                return True
    return False


def _at_border(less: Expr, equal: Expr) -> bool:
    """Are the same two things compared, be it by their difference and zero?"""
    if {*map(id, less.args)} == {*map(id, equal.args)}:
        return True
    one, two = (add([a, scale(b, Coef(-1))]) for a, b in (less.args, equal.args))
    return one is two or one is scale(two, Coef(-1))


# --- supports -------------------------------------------------------------------------------------


def on_support(e: Expr) -> Expr:
    """The expression where it is finite: of a choice in a sum that is infinite elsewhere, the rest.

    So the logarithm of a density is written, as it is on paper, without the condition that a number
    is one that it may be, and without what guards against others.
    """
    summed, waiting = set(), [e]
    while waiting:
        node = waiting.pop()
        if id(node) not in summed:
            summed.add(id(node))
            waiting += node.args if isinstance(node, Add | Einsum) else ()

    def change(new: Expr, old: Expr) -> Expr:
        found = choice(new) if id(old) in summed else None
        other = None if found is None else numeric_value(found[2])
        if found is None or other is None or not math.isinf(other):
            return new
        return _where_it_holds(found[1], found[0])

    return rewritten([e], change)[0]


def _where_it_holds(e: Expr, condition: Expr) -> Expr:
    def change(new: Expr, old: Expr) -> Expr:
        before, after = choice(old), choice(new)
        if before is not None and after is not None and before[0] is condition:
            return after[1]
        return numeral(1, new.shape) if new is condition else new

    return rewritten([e], change)[0]


# --- choices in branches --------------------------------------------------------------------------


def choices_made(e: Expr) -> Expr:
    """The expression without choices in branches of others by the same condition.

    So a derivative is written, as it is on paper: in the branch that is taken the condition holds,
    in the other it does not, and what guards the one where the other is taken says nothing. What
    somebody wrote himself keeps them, as it is read as what was printed.
    """

    def change(new: Expr, _: Expr) -> Expr:
        found = choice(new)
        if found is None:
            return new
        condition, *branches = found
        axes = tuple(range(new.ndim))
        settled = [
            _settled(branch, axes, _decided(condition, axes, holds))
            for branch, holds in zip(branches, (True, False), strict=True)
        ]
        same = all(one is other for one, other in zip(settled, branches, strict=True))
        return new if same else choose(condition, *settled)

    return rewritten([e], change)[0]


def _decided(condition: Expr, word: Labels, holds: bool) -> tuple[Place, bool]:
    """A condition without negations at labels, and whether it holds."""
    while isinstance(condition, Apply) and condition.op is NOT:
        (condition,), holds = condition.args, not holds
    return _core(condition, word), holds


def _settled(e: Expr, word: Labels, known: tuple[Place, bool]) -> Expr:
    """The expression where a condition is known to hold or not, entry by entry."""
    met, (place, holds) = _met(e, word), known

    def change(new: Expr, old: Expr) -> Expr:
        asked, found = choice(old), choice(new)
        if asked is None or found is None:
            return new
        told = [_decided(asked[0], at, holds) for at in met.get(id(old), ())]
        if not told or any(one is not place[0] or at != place[1] for (one, at), _ in told):
            return new
        return found[1 if told[0][1] else 2]

    return rewritten([e], change)[0]
