"""Bounds checks of what bodies of `build` and `fold` read at their indices.

An access is the product with a selection tensor of an integer. In a branch of a condition, as in
``where(i > 0, x[i - 1], 0)``, it need only be in range where the condition holds; elsewhere a guard
makes it read entry 0. In branches of branches all their conditions hold: what those inside do not
answer for is left to those around them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from ..graph.applications import apply, rewritten
from ..graph.bound_variables import ranges, shown
from ..graph.extents import Extent, Shape, form_of
from ..graph.factors import LabelledExpr, selects
from ..graph.nodes import Apply, Einsum, Expr, Var, postorder
from ..graph.normal import drop_axes
from ..graph.products import numeral
from ..graph.sums import absent_axes
from ..integers.affine import Affine, Constraint
from ..integers.polyhedra import System, implied, integer_range
from ..ops.affine_entries import conjunction, inside, place_form
from ..ops.arithmetic import expand
from ..ops.choices import choice, choose
from ..ops.elementwise import logical_not
from ..ops.indicator import CheckedAccess, indicator, label_of
from ..ops.outside import deferred
from ..support.errors import RangeError
from ..support.records import NamedTuple, record


class _Guarded(NamedTuple):
    """An access below conditions that are not known to keep it in range.

    `constraints` are those of the conditions that are affine, all of them where `affine`.
    """

    access: Expr
    bare: Expr
    form: Affine
    constraints: tuple[Constraint, ...]
    affine: bool


@record()
class _OpenIndices:
    """Indices of bodies around an expression: their forms by node, their extents by name.

    `guarded` are accesses that conditions further out may keep in range, by node.
    """

    forms: dict[int, Affine]
    extents: dict[str, Extent]
    guarded: dict[int, _Guarded] = field(default_factory=dict)

    def form(self, e: Expr) -> Affine | None:
        """An integer as an affine form in open indices and in indices of its own axes, or None."""
        return place_form(e, self.forms)

    def with_axes(self, shape: Shape) -> dict[str, Extent]:
        return {**self.extents, **{f"#{axis}": extent for axis, extent in enumerate(shape)}}

    def leaves(self, e: Expr) -> Affine | None:
        """The index of a selection that is not known to be in range; None where it is."""
        form = self.form(e.args[0]) if selects(e) and isinstance(e, Apply) else None
        if form is None or not any(name in self.extents for name in form.names):
            return None
        known = inside(form, self.with_axes(e.args[0].shape), e.shape[-1])
        return None if known else form


def checked_accesses(roots: Sequence[Expr]) -> list[Expr]:
    """Expressions of open indices with guards at accesses in branches of conditions.

    Raises
    ------
    RangeError
        A ShapeError and an IndexError, where all extents are numbers and an access is outside.
    """
    found: dict[Var, Extent] = {}
    for root in roots:
        found.update(ranges(root))
    indices = _OpenIndices(
        {id(v): Affine.of(v.name) for v in found}, {v.name: n for v, n in found.items()}
    )
    if not any(indices.leaves(node) is not None for node in postorder(roots)):
        return list(roots)
    kept = rewritten(roots, lambda new, old: _guarded_choice(new, indices))
    for node in postorder(kept):
        if isinstance(node, Einsum):
            _refuse_outside(node, indices)
        if id(node) in indices.guarded:
            _refuse_guarded(indices.guarded[id(node)], indices)
    return kept


# --- conditions -----------------------------------------------------------------------------------


def _guarded_choice(e: Expr, indices: _OpenIndices) -> Expr:
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
    first = _BranchCondition(condition, holds, indices).on(one)
    second = _BranchCondition(logical_not(condition), fails, indices).on(other)
    return e if first is one and second is other else choose(parts[0], first, second)


@record()
class _BranchCondition:
    """The condition of a branch, also as affine constraints where it can be written so."""

    condition: Expr
    constraints: list[Constraint] | None
    indices: _OpenIndices

    def on(self, branch: Expr) -> Expr:
        """The branch, with accesses that read entry 0 where the condition does not hold."""
        known = self.indices.guarded
        if all(self.indices.leaves(n) is None and id(n) not in known for n in postorder([branch])):
            return branch
        return rewritten([branch], lambda new, old: self.kept(new))[0]

    def kept(self, e: Expr) -> Expr:
        inner = self.indices.guarded.get(id(e))
        form = self.indices.leaves(e) if inner is None else inner.form
        if form is None:
            return e
        bare = e if inner is None else inner.bare
        own = tuple(self.constraints or ())
        if _kept_inside(bare, form, own, self.indices):
            return self._choosing(bare)
        found, all_own = self._choosing(e), self.constraints is not None
        before, affine = ((), True) if inner is None else (inner.constraints, inner.affine)
        guarded = _Guarded(found, bare, form, (*before, *own), affine and all_own)
        if inner is None or not _kept_inside(bare, form, guarded.constraints, self.indices):
            self.indices.guarded[id(found)] = guarded
        return found

    def _choosing(self, access: Expr) -> Expr:
        """The access that reads entry 0 where the condition does not hold."""
        assert isinstance(access, Apply)
        (integer,) = access.args
        condition = expand(self.condition, integer.shape)
        entry = choose(condition, integer, numeral(0, integer.shape))
        return apply(access.op, entry, params=access.params)


def _kept_inside(
    access: Expr, form: Affine, constraints: Sequence[Constraint], indices: _OpenIndices
) -> bool:
    """Is a form in range, whatever the extents, where these hold?"""
    if not constraints:
        return False
    extents = indices.with_axes(access.args[0].shape)
    used = {name for f in (form, *[c.form for c in constraints]) for name in f.names}
    box = [Constraint(Affine.of(name)) for name in used]
    box += [Constraint(form_of(extents[k]) - 1 - Affine.of(k)) for k in used & extents.keys()]
    system = System((*box, *constraints))
    ends = Constraint(form), Constraint(form_of(access.shape[-1]) - 1 - form)
    return all(implied(end, system) for end in ends)


def _refuse_guarded(guarded: _Guarded, indices: _OpenIndices) -> None:
    """Refuse an access that is out of range where all conditions around it hold."""
    form, extent = guarded.form, guarded.bare.shape[-1]
    names = indices.with_axes(guarded.bare.args[0].shape)
    if not guarded.affine:
        return
    wrong = _out_of_range(form, names, extent, guarded.constraints)
    if wrong is not None:
        spelled = [str(c.substitute(_index_names(c.form))) for c in guarded.constraints]
        where = f" where {' and '.join(spelled)}"
        raise RangeError(_message(_index_text(form), wrong, extent) + where)


# --- out of range ---------------------------------------------------------------------------------


def _out_of_range(
    form: Affine, extents: Mapping[str, Extent], extent: Extent, context: Sequence[Constraint] = ()
) -> int | None:
    """A value of a form that is out of range for its axis; None where none is known."""
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


def _refuse_outside(node: Einsum, indices: _OpenIndices) -> None:
    forms: dict[int, Affine] = {}
    outside: tuple[dict[int, Affine], int, Extent] | None = None
    for arg, word in zip(node.args, node.labels, strict=True):
        form = indices.form(arg.args[0]) if selects(arg) else None
        if form is None:
            continue
        forms[word[-1]] = form
        if indices.leaves(arg) is not None:
            wrong = _out_of_range(form, indices.with_axes(arg.args[0].shape), arg.shape[-1])
            outside = outside if wrong is None else ({word[-1]: form}, wrong, arg.shape[-1])
    if outside is not None:
        read, wrong, extent = outside  # another selection may be at the same label
        (label,) = read
        raise RangeError(_message(_access_text(node, label, forms | read), wrong, extent))


def _message(access: str, wrong: int, extent: Extent) -> str:
    return f"{access}: index {wrong} is out of range for an axis of extent {extent}"


def _access_text(node: Einsum, label: int, forms: Mapping[int, Affine]) -> str:
    """The access as users write it."""
    for arg, word in zip(node.args, node.labels, strict=True):
        if label in word and not selects(arg):
            keys = [_index_text(forms[k], "") if k in forms else ":" for k in word]
            name = shown(arg.name) if isinstance(arg, Var) else "an array"
            return f"{name}[{', '.join(keys)}]"
    return _index_text(forms[label])


def _index_text(form: Affine, around: str = "an index ") -> str:
    text = str(form.substitute(_index_names(form)))
    return f"{around}[{text}]" if around else text


def _index_names(*forms: Affine) -> dict[str, str]:
    """Names of indices as users spell them; indices of axes as k0, k1, ...."""
    names = [name for form in forms for name in form.names]
    return {name: shown(name) if name[0] != "#" else f"k{name[1:]}" for name in names}


def runtime_checks(roots: Sequence[Expr], v: Var, extent: Extent) -> list[LabelledExpr]:
    """Indicators over label 0, the index of a loop, that check accesses at evaluation.

    They are for accesses that are not known to be in range before extents are.
    """
    indices = _OpenIndices({id(v): Affine.of(v.name)}, {v.name: extent})
    accesses = set()
    for node in postorder(roots):
        form = indices.leaves(node)
        if form is not None and all(label_of(name) is None for name in form.names):
            what = _index_text(form)
            access = CheckedAccess(form.substitute({v.name: "#0"}), node.shape[-1], what)
            accesses.add(deferred(access, {0: extent}))
    return indicator({0: extent}, [], sorted(accesses)) if accesses else []
