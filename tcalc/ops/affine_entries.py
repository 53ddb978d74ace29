"""Integers along axes as affine forms: what `i + 2*k - 1` is once indices run over their ranges.

Where an index is affine in numbers 0, 1, 2, … along axes, the entry that it picks and the
comparison that it stands in are products with an indicator, which plans read as shifted views and
compression as bands.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..graph.applications import application
from ..graph.bound_variables import stands_for_integers
from ..graph.extent_forms import is_nonnegative
from ..graph.extents import ONE, Coef, Extent, extent_product, form_of
from ..graph.factors import indicates
from ..graph.nodes import Add, Apply, Const, Einsum, Expr, Part, Var, postorder
from ..graph.normal import einsum
from ..graph.operators import Loop, Op
from ..graph.products import is_number, is_zero, numeral
from ..integers.affine import Affine, Constraint
from ..integers.boxes import index
from .arithmetic import add, multiply, subtract
from .choices import chooses
from .indicator import CheckedAccess, indicator, label_of
from .outside import deferred
from .reductions import arange

#: Sums and products inside each other, up to which an integer is read as an affine form.
DEPTH = 24
LETTERS = "ijklmnopqrstuvwxyz"


def integral(e: Expr, assumed: Mapping[int, bool] | None = None) -> bool:
    """Are all entries of e integers, by what it is made of? `assumed` says so of nodes by id."""
    known = dict(assumed or {})
    for node in postorder([e]):
        if id(node) in known:
            continue
        if isinstance(node, Part):
            known[id(node)] = _integral_state(node, known)
        else:
            whole = isinstance(node, Apply) and (node.op.meaning.places or node.op.meaning.truth)
            known[id(node)] = whole or (_integral(node) and all(known[id(a)] for a in node.args))
    return known[id(e)]


def held_as_integers(e: Expr) -> bool:
    """Are arrays of e integers too? States of loops and their histories are held as floats."""
    return integral(e) and not any(isinstance(node, Part) for node in postorder([e]))


def _integral_state(node: Part, known: Mapping[int, bool]) -> bool:
    """Is a node a state of a loop that begins with integers, which each step keeps?

    `known` says of the loop's operands, by id, whether they are integers.
    """
    whole = application(node)
    if not isinstance(whole.op, Loop):
        return False
    step = whole.op.iteration(whole.params, (node.index,))
    if node.index == 3 * step.results:
        return True  # the number of steps
    held = {id(v): known[id(e)] for v, e in zip(step.variables, whole.args, strict=True)}
    following = [(id(step.states[k]), e) for k, e in step.following.items()]
    while lost := [state for state, e in following if held[state] and not integral(e, held)]:
        held.update(dict.fromkeys(lost, False))
    return held[id(step.states[node.index % step.results])]


def _integral(node: Expr) -> bool:
    """Is a node an integer where its operands are?"""
    if isinstance(node, Einsum):
        return isinstance(node.coef.value, int) and not node.coef.over
    if isinstance(node, Var):
        return stands_for_integers(node)
    if isinstance(node, Const):
        return node.value.dtype.kind == "i"
    if isinstance(node, Apply):
        op = node.op
        counts = not node.args and node.ndim == 1 and node is arange(node.shape[0])
        boolean = op.meaning.range == (0.0, 1.0) and not any(op.meaning.partials)
        return op.meaning.integral or boolean or counts
    return isinstance(node, Add)


def place_form(e: Expr, known: Mapping[int, Affine] | None = None) -> Affine | None:
    """The affine form in `index(axis)` and dimensions that the entries of e are, if they are one.

    `known` gives forms of nodes by id.
    """
    return _form(e, dict(known or {}), DEPTH)


def _form(e: Expr, known: dict[int, Affine], depth: int) -> Affine | None:
    if id(e) not in known:
        found = _form_inside(e, known, depth) if depth else None
        if found is None:
            return None
        known[id(e)] = found
    return known[id(e)]


def _form_inside(e: Expr, known: dict[int, Affine], depth: int) -> Affine | None:
    if isinstance(e, Apply):
        counts = not e.args and e.ndim == 1 and e is arange(e.shape[0])
        return index(0) if counts else None
    if isinstance(e, Add):
        total = Affine()
        for term in e.args:
            part = _form(term, known, depth - 1)
            if part is None:
                return None
            total += part
        return total
    if not isinstance(e, Einsum) or e.summed or len(e.args) > 1 or len(set(e.out)) < len(e.out):
        return None
    if not e.args:
        return _multiple(e.coef)
    inner, factor = _form(e.args[0], known, depth - 1), _multiple(e.coef)
    if inner is None or factor is None or factor.terms:
        return None
    axes = {label: axis for axis, label in enumerate(e.out)}
    places = {f"#{k}": f"#{axes[label]}" for k, label in enumerate(e.labels[0])}
    return inner.substitute(places) * factor.constant


def _multiple(coef: Coef) -> Affine | None:
    """A coefficient as a form: an integer, or one of an extent."""
    if not isinstance(coef.value, int) or coef.over:
        return None
    return form_of(extent_product(coef.times)) * coef.value


def inside(form: Affine, extents: Mapping[str, Extent], extent: Extent) -> bool:
    """Is a form known to be a place of an axis, for indices (by name) below their extents?"""
    low = high = Affine((), form.constant)
    for name, c in form.terms:
        if name in extents:
            reach = (form_of(extents[name]) - 1) * c
            low, high = (low, high + reach) if c > 0 else (low + reach, high)
        else:
            low, high = low + Affine.of(name) * c, high + Affine.of(name) * c
    return is_nonnegative(low) and is_nonnegative(form_of(extent) - 1 - high)


def picked(e: Expr, extent: Extent) -> Expr | None:
    """The tensor that picks entries of an axis by affine integers; None where they are others.

    Raises
    ------
    RangeError
        Where all extents are numbers, and an integer lies outside, or one does for all extents.
    """
    form = place_form(e)
    if form is None:
        return None
    n = e.ndim
    extents: dict[int, Extent] = dict(enumerate((*e.shape, extent)))
    accesses = []
    if not inside(form, {f"#{axis}": size for axis, size in enumerate(e.shape)}, extent):
        access = CheckedAccess(form, extent, f"an index [{spelled(form)}]")
        accesses = [deferred(access, extents)]
    operands = indicator(extents, [Constraint(index(n) - form, True)], accesses)
    ops, words = [op for op, _ in operands], [word for _, word in operands]
    return einsum(ops, words, range(n + 1), ONE, extents)


def spelled(form: Affine) -> str:
    """The form, axes named by letters that no dimension has."""
    letters = [c for c in LETTERS if c not in form.names]
    axes = sorted({label for name in form.names if (label := label_of(name)) is not None})
    return str(form.substitute({f"#{axis}": letters[k] for k, axis in enumerate(axes)}))


# --- comparisons and choices ----------------------------------------------------------------------

_COMPARED = {"<": (1, False), "<=": (0, False), "==": (0, True)}


def comparison(
    op: Op, args: Sequence[Expr], known: Mapping[int, Affine] | None = None
) -> Constraint | None:
    """The condition that a comparison of affine integers is; None for anything else."""
    if op.spelling.infix not in _COMPARED:
        return None
    left, right = (place_form(a, known) for a in args)
    if left is None or right is None:
        return None
    strict, equality = _COMPARED[op.spelling.infix]
    return Constraint(right - left - strict, equality)


def conjunction(e: Expr, known: Mapping[int, Affine]) -> list[Constraint] | None:
    """The conditions that e joins, where all are comparisons of affine integers."""
    if not isinstance(e, Apply):
        return None
    if e.op.name == "logical_and":
        parts = [conjunction(a, known) for a in e.args]
        return None if None in parts else [c for part in parts for c in part or ()]
    found = comparison(e.op, e.args, known)
    return None if found is None else [found]


def settled(op: Op, args: Sequence[Expr]) -> Expr | None:
    """A comparison of affine integers as an indicator; what is chosen by one, or joined, likewise.

    Products with indicators stand for a choice only where nothing of the other branch is read, or
    the branches are numbers. None where the application stays.
    """
    if (found := comparison(op, args)) is not None:
        if not any(label_of(name) is not None for name in found.form.names):
            return None
        shape = args[0].shape
        operands = indicator(dict(enumerate(shape)), [found])
        ops, words = [op for op, _ in operands], [word for _, word in operands]
        return einsum(ops, words, range(len(shape)), ONE, dict(enumerate(shape)))
    if op.name in _LOGIC and all(_condition(a) or is_number(a) for a in args):
        return _LOGIC[op.name](*args)
    if chooses(op) and _condition(args[0]):
        condition, one, other = args
        if is_number(one) and is_number(other):
            return add(other, multiply(subtract(one, other), condition))
        if is_zero(other) and _equal_places(condition):
            return multiply(condition, one)
    return None


#: Joined conditions are numbers, and products of them.
_LOGIC: dict[str, Callable[..., Expr]] = {
    "logical_and": multiply,
    "logical_not": lambda a: subtract(numeral(1, a.shape), a),
}


def _condition(e: Expr) -> bool:
    """Is e a product of unit tensors and indicators?"""
    if isinstance(e, Einsum):
        return e.coef == ONE and not e.summed and all(indicates(a) for a in e.args)
    return indicates(e)


def _equal_places(e: Expr) -> bool:
    """Is a condition one that reads its other factors at these places only?"""
    factors = e.args if isinstance(e, Einsum) else (e,)
    guards = [g for f in factors if isinstance(f, Apply) for g in f.params[1]]
    return all(isinstance(g, Constraint) and g.equality for g in guards)
