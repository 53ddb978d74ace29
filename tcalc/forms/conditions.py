"""Laws of conditions, choices between branches, and functions that are choices."""

from __future__ import annotations

from collections.abc import Iterable

from ..graph.applications import apply, rewritten
from ..graph.extents import ONE, Coef
from ..graph.nodes import Add, Apply, Einsum, Expr, Var
from ..graph.normal import add, einsum, scale, view
from ..graph.operators import TABLE
from ..graph.products import filled, is_number, is_zero, numeric_value, split_coef
from ..graph.sums import absent_axes, outer_factors
from ..ops.choices import choice, choose, is_truth
from ..ops.elementwise import reciprocal
from ..ops.reductions import prod
from .laws import law

#: Functions that are 0 at single points alone.
SMOOTH = [
    TABLE[name]
    for name in ("exp", "log", "sin", "cos", "tanh", "sinh", "cosh", "sqrt", "sigmoid", "power")
]
COMPARISONS = ("less", "less_equal")


@law("compared-difference", "less(0, x - y) = less(y, x)", *COMPARISONS, directed=True)
def _compared_difference(e: Expr) -> Iterable[Expr | None]:
    """A difference compared with zero is a comparison of two sides."""
    assert isinstance(e, Apply)
    for k, side in enumerate(e.args):
        other = e.args[1 - k]
        if not is_zero(other) or not isinstance(side, Add) or len(side.args) != 2:
            continue
        minus = [t for t in side.args if split_coef(t)[0].value < 0]
        plus = [t for t in side.args if split_coef(t)[0].value > 0]
        if len(minus) == len(plus) == 1:
            sides = [scale(minus[0], Coef(-1)), plus[0]]
            yield apply(e.op, *(sides if k else sides[::-1]))
            return


@law("compared-negative", "less(0, -x) = less(x, 0)", *COMPARISONS, directed=True)
def _compared_negative(e: Expr) -> Iterable[Expr | None]:
    """What has a minus sign, compared with zero, is compared the other way round."""
    assert isinstance(e, Apply)
    for side, other in (e.args, e.args[::-1]):
        if is_zero(other) and split_coef(side)[0].value < 0:
            turned = scale(side, Coef(-1))
            yield apply(e.op, *((other, turned) if side is e.args[0] else (turned, other)))
            return


def _negated(e: Expr) -> Expr | None:
    """c of 1 where c does not hold."""
    return e.args[0] if isinstance(e, Apply) and e.op is TABLE["logical_not"] else None


@law(
    "choice-of-terms", "x .* less(x, y) + y .* logical_not(less(x, y)) = where(x < y, x, y)",
    "Add", directed=True, given="the branches are finite where they are not taken",
)  # fmt: skip
def _choice_of_terms(e: Expr) -> Iterable[Expr | None]:
    """Terms where a condition holds, and where it does not, as one choice."""
    for term in e.args:
        for factor in outer_factors(term):
            condition = _negated(factor)
            if condition is None:
                continue
            no = [_without(t, factor) for t in e.args]
            yes = [_without(t, condition) for t in e.args]
            others = [t for t, a, b in zip(e.args, yes, no, strict=True) if a is b is None]
            taken, left = ([t for t in found if t is not None] for found in (yes, no))
            if taken and left:
                one, two = add(taken), add(left)
                axes = range(e.ndim)
                extents = dict(enumerate(e.shape))
                whole = einsum([condition], [axes[: condition.ndim]], axes, ONE, extents)
                yield add([*others, choose(whole, one, two)])
                return


def _without(e: Expr, factor: Expr) -> Expr | None:
    """The term without a factor that stands at all its axes; None where there is none."""
    if e is factor:
        return einsum([], [], range(e.ndim), ONE, dict(enumerate(e.shape)))
    if not isinstance(e, Einsum) or e.summed or len(set(e.out)) < len(e.out):
        return None
    places = [
        k for k, (op, word) in enumerate(zip(e.args, e.labels, strict=True))
        if op is factor and word in (e.out, ())
    ]  # fmt: skip
    if len(places) != 1 or factor.ndim != e.ndim:
        return None
    kept = [k for k in range(len(e.args)) if k != places[0]]
    ops, words = [e.args[k] for k in kept], [e.labels[k] for k in kept]
    return einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))


@law("positive-part", "relu(x) .* less(0, x) = relu(x)", "Einsum", directed=True)
def _positive_part(e: Expr) -> Iterable[Expr | None]:
    """Where x is above zero, its positive part is."""
    assert isinstance(e, Einsum)
    parts = {(id(_part_of(op)), word) for op, word in zip(e.args, e.labels, strict=True)}
    for k, (op, word) in enumerate(zip(e.args, e.labels, strict=True)):
        above = _positive(op)
        if above is not None and (id(above), word) in parts:
            ops, words = [*e.args[:k], *e.args[k + 1 :]], [*e.labels[:k], *e.labels[k + 1 :]]
            yield einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))
            return


def _part_of(e: Expr) -> Expr | None:
    """x of its positive part, which may be written as a maximum with zero."""
    if not isinstance(e, Apply) or e.op not in (TABLE["relu"], TABLE["maximum"]):
        return None
    others = [arg for arg in e.args if not is_zero(arg)]
    return others[0] if len(others) == 1 else None


def _positive(e: Expr) -> Expr | None:
    """x of the condition that x is above zero, which may be written as b < a."""
    if not isinstance(e, Apply) or e.op is not TABLE["less"]:
        return None
    low, high = e.args
    return high if is_zero(low) else add([high, scale(low, Coef(-1))])


@law(
    "product-of-others", "prod(where(eye(n), 1, vector(1, n)*x'), axis=-1) = prod(x)./x", "prod",
    directed=True, given="no entry is 0",
)  # fmt: skip
def _product_of_others(e: Expr) -> Iterable[Expr | None]:
    """For every entry the product of the others."""
    assert isinstance(e, Apply)
    (whole,) = e.args
    if e.params != (1,) or e.ndim != 1:
        return
    order = (0, 1)
    if isinstance(whole, Einsum) and len(whole.args) == 1 and whole.labels[0] == (1, 0):
        order, (whole,) = (1, 0), whole.args
    found = choice(whole)
    if found is None:
        return
    same, one, others = found
    unit = isinstance(same, Einsum) and not same.args and same.out == (0, 0) and same.coef == ONE
    others = view(_where_not(same, others), order) if unit else others
    if unit and is_number(one, 1) and isinstance(others, Einsum) and absent_axes(others) == {0}:
        x = einsum(others.args, others.labels, others.out[1:], others.coef)
        axes = (0,)
        if _mostly_nonzero(x):
            yield einsum([prod(x), reciprocal(x)], [(), axes], axes)


def _where_not(condition: Expr, e: Expr) -> Expr:
    """What e is where a condition does not hold, with no choice that asks whether it does not."""
    other = add([filled(ONE, condition.shape), scale(condition, Coef(-1))])

    def change(new: Expr, old: Expr) -> Expr:
        found = choice(new)
        return found[1] if found is not None and found[0] is other else new

    return rewritten([e], change)[0]


def _mostly_nonzero(e: Expr) -> bool:
    """Is it 0 by chance alone? A relu is 0 for half of all numbers, which no reader expects."""
    unit = isinstance(e, Einsum) and len(set(e.out)) < len(e.out)
    smooth = isinstance(e, Var | Einsum | Add) or (isinstance(e, Apply) and e.op in SMOOTH)
    return smooth and not unit and all(map(_mostly_nonzero, e.args))


@law("truth-squared", "y .* (x > 0).^2 = y .* (x > 0)", "Einsum", "power", directed=True)
def _truth_squared(e: Expr) -> Iterable[Expr | None]:
    """What is 1 or 0 is its own power."""
    if not isinstance(e, Einsum):
        degree = numeric_value(e.args[1])
        yield e.args[0] if is_truth(e.args[0]) and degree is not None and degree > 0 else None
        return
    pairs = list(zip(e.args, e.labels, strict=True))
    kept = {(id(op), word, 0 if is_truth(op) else k): k for k, (op, word) in enumerate(pairs)}
    if len(kept) < len(pairs):
        ops, words = zip(*[pairs[k] for k in kept.values()], strict=True)
        yield einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))
