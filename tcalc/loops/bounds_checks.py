"""What bodies of `build` and `fold` read at their indices: whether it is there, and if not, guards.

An access is the product with a selection tensor of an integer. Behind a condition on indices, as in
``where(i > 0, x[i - 1], 0)``, it need only be inside its axis where the condition holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..graph.applications import apply, rewritten
from ..graph.bound_variables import ranges, shown
from ..graph.extents import Extent, Shape
from ..graph.nodes import Apply, Einsum, Expr, Var, postorder
from ..graph.normal import drop_axes
from ..graph.products import LabelledExpr, numeral, selects
from ..graph.sums import absent_axes
from ..integers.affine import Affine, Constraint
from ..integers.polyhedra import System, integer_range
from ..ops.affine_entries import conjunction, inside, place_form
from ..ops.arithmetic import expand
from ..ops.elementwise import logical_not
from ..ops.guard import choice, choose
from ..ops.indicator import Access, indicator, label_of
from ..support.errors import RangeError


@dataclass
class _Indices:
    """The indices that are open: their forms by node, their extents by name."""

    forms: dict[int, Affine]
    extents: dict[str, Extent]

    def form(self, e: Expr) -> Affine | None:
        """The form of an integer in open indices and in places along its axes."""
        return place_form(e, self.forms)

    def with_axes(self, shape: Shape) -> dict[str, Extent]:
        return {**self.extents, **{f"#{axis}": extent for axis, extent in enumerate(shape)}}

    def leaves(self, e: Expr) -> Affine | None:
        """The integer of a selection that is not known to be inside; None where it is."""
        form = self.form(e.args[0]) if selects(e) and isinstance(e, Apply) else None
        if form is None or not any(name in self.extents for name in form.names):
            return None
        known = inside(form, self.with_axes(e.args[0].shape), e.shape[-1])
        return None if known else form


def checked_accesses(roots: Sequence[Expr]) -> list[Expr]:
    """Expressions of open indices with guards at accesses behind conditions.

    Raises
    ------
    RangeError
        A ShapeError and an IndexError, where all extents are numbers and an access is outside.
    """
    found: dict[Var, Extent] = {}
    for root in roots:
        found.update(ranges(root))
    indices = _Indices(
        {id(v): Affine.of(v.name) for v in found}, {v.name: n for v, n in found.items()}
    )
    if not any(indices.leaves(node) is not None for node in postorder(roots)):
        return list(roots)
    kept = rewritten(roots, lambda new, old: _behind_condition(new, indices))
    for node in postorder(kept):
        if isinstance(node, Einsum):
            _refuse_outside(node, indices)
    return kept


# --- conditions -----------------------------------------------------------------------------------


def _behind_condition(e: Expr, indices: _Indices) -> Expr:
    parts = choice(e)
    if parts is None:
        return e
    condition, one, other = parts
    if absent_axes(condition) == set(range(condition.ndim)) and condition.ndim:
        condition = drop_axes(condition, set(range(condition.ndim)))
    if condition.ndim:
        return e
    holds = conjunction(condition, indices.forms)
    fails = None
    if holds is not None and len(holds) == 1 and not holds[0].equality:
        fails = [Constraint(-holds[0].form - 1)]
    first = _Guard(condition, holds, indices).on(one)
    second = _Guard(logical_not(condition), fails, indices).on(other)
    return e if first is one and second is other else choose(parts[0], first, second)


@dataclass
class _Guard:
    """A condition on open indices, also as constraints where it is some."""

    condition: Expr
    constraints: list[Constraint] | None
    indices: _Indices

    def on(self, branch: Expr) -> Expr:
        """The branch, which reads the first entries where the condition does not hold."""
        if all(self.indices.leaves(node) is None for node in postorder([branch])):
            return branch
        return rewritten([branch], lambda new, old: self.kept(new))[0]

    def kept(self, e: Expr) -> Expr:
        form = self.indices.leaves(e)
        if form is None:
            return e
        assert isinstance(e, Apply)
        (integer,) = e.args
        if self.constraints is not None:
            names = self.indices.with_axes(integer.shape)
            wrong = _outside(form, names, e.shape[-1], self.constraints)
            if wrong is not None:
                spelled = [str(c.substitute(_letters(c.form))) for c in self.constraints]
                where = f" where {' and '.join(spelled)}"
                raise RangeError(_message(_text(form), wrong, e.shape[-1]) + where)
        condition = expand(self.condition, integer.shape)
        return apply(e.op, choose(condition, integer, numeral(0, integer.shape)), params=e.params)


# --- places outside -------------------------------------------------------------------------------


def _outside(
    form: Affine, extents: Mapping[str, Extent], extent: Extent, context: Sequence[Constraint] = ()
) -> int | None:
    """A place that a form takes and that its axis does not have; None where one is not known."""
    used = {name for f in (form, *[c.form for c in context]) for name in f.names}
    if not isinstance(extent, int) or not used <= extents.keys():
        return None
    box = []
    for name in sorted(used):
        size = extents[name]
        if not isinstance(size, int):
            return None
        box += [Constraint(Affine.of(name)), Constraint(size - 1 - Affine.of(name))]
    low, high = integer_range(System((*box, *context)), form) or (None, None)
    if low is None or high is None:
        return None
    return low if low < 0 else high if high >= extent else None


def _refuse_outside(node: Einsum, indices: _Indices) -> None:
    forms: dict[int, Affine] = {}
    outside: tuple[int, int, Extent] | None = None
    for arg, word in zip(node.args, node.labels, strict=True):
        form = indices.form(arg.args[0]) if selects(arg) else None
        if form is None:
            continue
        forms[word[-1]] = form
        if indices.leaves(arg) is not None:
            wrong = _outside(form, indices.with_axes(arg.args[0].shape), arg.shape[-1])
            outside = outside if wrong is None else (word[-1], wrong, arg.shape[-1])
    if outside is not None:
        label, wrong, extent = outside
        raise RangeError(_message(_spelled(node, label, forms), wrong, extent))


def _message(access: str, wrong: int, extent: Extent) -> str:
    return f"{access}: index {wrong} is out of range for an axis of extent {extent}"


def _spelled(node: Einsum, label: int, forms: Mapping[int, Affine]) -> str:
    """The access as users write it."""
    for arg, word in zip(node.args, node.labels, strict=True):
        if label in word and not selects(arg):
            keys = [_text(forms[k], "") if k in forms else ":" for k in word]
            name = shown(arg.name) if isinstance(arg, Var) else "an array"
            return f"{name}[{', '.join(keys)}]"
    return _text(forms[label])


def _text(form: Affine, around: str = "an index ") -> str:
    text = str(form.substitute(_letters(form)))
    return f"{around}[{text}]" if around else text


def _letters(*forms: Affine) -> dict[str, str]:
    """Names of indices as users spell them; places along axes by letters."""
    names = [name for form in forms for name in form.names]
    return {name: shown(name) if name[0] != "#" else f"k{name[1:]}" for name in names}


def unchecked_accesses(roots: Sequence[Expr], v: Var, extent: Extent) -> list[LabelledExpr]:
    """Checks, as operands of a product over label 0, of what is read at one index of a loop.

    They hold where integers stay inside their axes, for extents that are known later.
    """
    indices = _Indices({id(v): Affine.of(v.name)}, {v.name: extent})
    accesses = set()
    for node in postorder(roots):
        form = indices.leaves(node)
        if form is not None and all(label_of(name) is None for name in form.names):
            what = _text(form)
            accesses.add(Access(form.substitute({v.name: "#0"}), node.shape[-1], what))
    return indicator({0: extent}, [], sorted(accesses)) if accesses else []
