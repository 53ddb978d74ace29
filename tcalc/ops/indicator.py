"""Indicators of affine conditions on indices: 1 where all of them hold, and 0 elsewhere.

An access at an affine index is a product with an indicator: x[i+2k-1] is the sum over j of
[j == i+2k-1] x_j. So are a slice, a shift, a guard and a bounded sum. The product rule is all that
their derivatives need. Plans read entries at shifted places; the array of zeros and ones is only
made where somebody asks for all of its entries.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np

from ..graph.applications import apply
from ..graph.extent_forms import times, value_of
from ..graph.extents import ONE, Extent, extent_names, extent_of, form_of
from ..graph.factors import LabelledExpr
from ..graph.nodes import Labels
from ..graph.normal import einsum
from ..graph.operators import Indicator, Kernels, Meaning
from ..graph.products import numeral
from ..graph.spelling import Spelling
from ..integers.affine import Affine, Congruence, Constraint, Guard, factors_of
from ..integers.boxes import index
from ..integers.polyhedra import System, implied, integer_range
from ..support.errors import RangeError
from ..support.records import NamedTuple

#: Axes up to which all orders are tried for the canonical one.
MAX_AXES = 4


class CheckedAccess(NamedTuple):
    """A form that must stay inside an extent, wherever the conditions on its indices hold."""

    form: Affine
    extent: Extent
    what: str


#: A row's parameters, and the labels at which it stands.
LabelledParams = tuple["IndicatorParams", Labels]
IndicatorParams = tuple[tuple[Extent, ...], tuple[Guard, ...], tuple[CheckedAccess, ...]]


def indicator(
    extents: Mapping[int, Extent], guards: Iterable[Guard], accesses: Iterable[CheckedAccess] = ()
) -> list[LabelledExpr]:
    """Operands of a product that are 1 where conditions on its labels hold, and 0 elsewhere.

    Parameters
    ----------
    extents : mapping
        The extent of every label.
    guards : iterable of Guard
        Forms in `index(label)` and dimensions.
    accesses : iterable of Access
        What is checked: here where all extents are numbers, else when they are known.

    Raises
    ------
    RangeError
        Where an access leaves its extent.
    """
    single: dict[str, Affine | int | str] = {f"#{k}": 0 for k, n in extents.items() if n == 1}
    held = [g.substitute(single) for g in guards]
    kept = sorted({g for g in held if not g.trivial}, key=_rank)
    accesses = tuple(sorted({a._replace(form=a.form.substitute(single)) for a in accesses}))
    if any(g.impossible for g in kept):
        return [(numeral(0), ())]
    operands: list[LabelledExpr] = []
    for g in [g for g in kept if isinstance(g, Constraint) and g.equality]:
        pair = [label_of(name) for name in g.form.names]
        if None not in pair and g.form == index(pair[0] or 0) - index(pair[-1] or 0):
            one, two = pair[0] or 0, pair[-1] or 0
            if extents[one] == extents[two]:
                operands.append((einsum([], [], (0, 0), ONE, {0: extents[one]}), (one, two)))
                kept.remove(g)
    names = {name for g in kept for name in g.form.names}
    names |= {name for a in accesses for name in a.form.names}
    labels = sorted(labels_among(names))
    if not labels and not kept and not accesses:
        return operands
    lengths = tuple([(label, extents[label]) for label in labels])
    word, params = _canonical(lengths, tuple(kept), accesses)
    if not _dimensions(params):
        check(bound(params, {}))
    return [*operands, (apply(INDICATOR, params=params), word)]


def _rank(g: Guard) -> Any:
    return isinstance(g, Congruence), g


def label_of(name: str) -> int | None:
    """The label of an index, None for a dimension and for products, also of an index."""
    return int(name[1:]) if name.startswith("#") and "*" not in name else None


def labels_among(names: Iterable[str]) -> set[int]:
    """The labels of indices among names, and among the factors of names."""
    parts = [part for name in names for part in factors_of(name)]
    return {label for part in parts if (label := label_of(part)) is not None}


@lru_cache(1 << 12)
def _canonical(
    lengths: tuple[tuple[int, Extent], ...],
    guards: tuple[Guard, ...],
    accesses: tuple[CheckedAccess, ...],
) -> tuple[Labels, IndicatorParams]:
    """The order of axes, given with their extents, in which the parameters are least; and these."""
    found: list[tuple[Any, Labels, IndicatorParams]] = []
    extents = dict(lengths)
    orders = permutations(extents) if len(extents) <= MAX_AXES else [tuple(extents)]
    for word in orders:
        params = _ordered(word, extents, guards, accesses)
        found.append((repr(params), word, params))
    _, word, params = min(found, key=lambda item: item[0])
    return word, params


def _ordered(
    word: Labels,
    extents: Mapping[int, Extent] | Sequence[Extent],
    guards: Iterable[Guard],
    accesses: Iterable[CheckedAccess],
) -> IndicatorParams:
    """The parameters of a row whose axes are those of these labels, in this order."""
    names = {f"#{label}": f"#{axis}" for axis, label in enumerate(word)}
    return (
        tuple([extents[label] for label in word]),
        tuple(sorted([g.substitute(names) for g in guards], key=_rank)),
        tuple(sorted([a._replace(form=a.form.substitute(names)) for a in accesses])),
    )


# --- one after the other --------------------------------------------------------------------------


@lru_cache(1 << 12)
def chained(rows: tuple[LabelledParams, ...], label: int) -> list[LabelledExpr] | None:
    """The sum over a label of one row, or of the product of two, without that label.

    An entry of a slice of a slice is one of the array, and a slice of what stands between zeros may
    be the array. None where the label has no place for some of the others: then both rows say how
    far these reach. None for single places: a state put together of entries, of which a loop reads
    entries, stays one state; nor where more labels would be tied, of which no array has a view.
    """
    extents = {k: n for params, word in rows for k, n in zip(word, params[0], strict=True)}
    whole = extents.pop(label)
    name, ties = f"#{label}", [g for row in rows for g in conditions(*row)]
    sizes = [len(word) for _, word in rows]
    if min(sizes) < 2 or len(extents) > max(sizes) or len(ties) != len(rows):
        return None
    if any(not isinstance(g, Constraint) or not g.equality or _hidden(g.form, label) for g in ties):
        return None
    checks = [a for row in rows for a in accesses(*row)]
    for k, g in enumerate(ties):
        factor = g.form.coefficient(name)
        place = {name: g.form.without([name]) * -factor}
        if abs(factor) == 1 and _stays(place[name], whole, extents, checks):
            others = [other.substitute(place) for other in ties[:k] + ties[k + 1 :]]
            moved = [a._replace(form=a.form.substitute(place)) for a in checks]
            return indicator(extents, others, moved)
    return None


def _hidden(form: Affine, label: int) -> bool:
    """Is the label in a product of the form?"""
    return label in labels_among([n for n in form.names if label_of(n) is None])


def _stays(
    place: Affine, whole: Extent, extents: Mapping[int, Extent], checks: Iterable[CheckedAccess]
) -> bool:
    """Is a place inside an axis where the labels are inside theirs, and what is checked holds?"""
    known = [(index(k), extents[k]) for k in sorted(labels_among(place.names))]
    known += [(a.form, a.extent) for a in checks]
    system = System(tuple([c for each in known for c in _inside(*each)]))
    return all(implied(c, system) for c in _inside(place, whole))


def _inside(form: Affine, extent: Extent) -> list[Constraint]:
    return [Constraint(form), Constraint(form_of(extent) - 1 - form)]


# --- extents --------------------------------------------------------------------------------------


def _dimensions(params: tuple[Any, ...]) -> set[str]:
    """The names of dimensions in the parameters."""
    extents, guards, accesses = params
    forms = [g.form for g in guards] + [a.form for a in accesses]
    parts = {part for form in forms for n in form.names for part in factors_of(n)}
    names = {n for n in parts if label_of(n) is None}
    return extent_names([*extents, *names, *[a.extent for a in accesses]])


def at_sizes(form: Affine, sizes: Mapping[str, int]) -> Affine:
    """The form with numbers in place of dimensions."""
    parts = {part for name in form.names for part in factors_of(name)}
    return form.substitute({n: value_of(Affine.of(n), sizes) for n in parts if label_of(n) is None})


def merging(places: Sequence[Affine], extents: Sequence[Extent]) -> Affine:
    """The place in a merged axis of what stands at places in axes of these extents."""
    found = Affine()
    for place, extent in zip(places, extents, strict=True):
        found = times(found, form_of(extent)) + place
    return found


def bound(params: tuple[Any, ...], sizes: Mapping[str, int]) -> IndicatorParams:
    """The parameters with numbers in place of dimensions."""
    extents, guards, accesses = params
    return (
        tuple([extent_of(e, sizes) for e in extents]),
        tuple([_guard(g, at_sizes(g.form, sizes)) for g in guards]),
        tuple([
            CheckedAccess(at_sizes(a.form, sizes), extent_of(a.extent, sizes), a.what)
            for a in accesses
        ]),
    )  # fmt: skip


def _guard(g: Guard, form: Affine) -> Guard:
    if isinstance(g, Constraint):
        return Constraint(form, g.equality)
    return Congruence(form, g.modulus)


def renamed(form: Affine, word: Labels) -> Affine:
    """The form of a row's axes as one of the labels under which it stands."""
    return form.substitute({f"#{axis}": f"#{label}" for axis, label in enumerate(word)})


def conditions(params: IndicatorParams, word: Labels) -> list[Guard]:
    """The conditions of a row, on the labels under which it stands."""
    return [_guard(g, renamed(g.form, word)) for g in params[1]]


def accesses(params: IndicatorParams, word: Labels) -> list[CheckedAccess]:
    """What a row checks, on the labels under which it stands."""
    return [a._replace(form=renamed(a.form, word)) for a in params[2]]


def box(extents: Mapping[int, int]) -> list[Constraint]:
    """The conditions that labels are inside their extents."""
    return [
        c
        for label, n in extents.items()
        for c in (Constraint(index(label)), Constraint(n - 1 - index(label)))
    ]


def corners(form: Affine, extents: Mapping[int, int]) -> tuple[int, int]:
    """The least and the greatest value of a form in a box that is not empty."""
    low = high = form.constant
    for name, c in form.terms:
        reach = c * (extents[label_of(name) or 0] - 1)
        low, high = low + min(0, reach), high + max(0, reach)
    return low, high


def check(params: IndicatorParams) -> None:
    """Refuse accesses that leave their extents.

    Raises
    ------
    RangeError
        A ShapeError and an IndexError that names the access, the index and the extent.
    """
    shape, guards, accesses = params
    extents = {axis: int(n) for axis, n in enumerate(shape)}
    for form, extent, what in accesses:
        if 0 in extents.values():
            return
        low, high = corners(form, extents)
        if low >= 0 and high < int(extent):
            continue
        context = [g for g in guards if isinstance(g, Constraint) and not g.equality]
        found = integer_range(System((*box(extents), *context)), form)
        if found is None:
            continue
        low, high = found[0] or 0, found[1] or 0
        wrong = low if low < 0 else high
        if not 0 <= wrong < int(extent):
            raise RangeError(
                f"{what}: index {wrong} is out of range for an axis of extent {extent}"
            )


# --- the row --------------------------------------------------------------------------------------


def _kernel(xp: Any, params: tuple[Any, ...]) -> Any:
    """There is no operand: affine forms are evaluated at NumPy's integers, exact at any size."""
    shape, guards, _ = params
    places: dict[str, Any] = {
        f"#{axis}": np.arange(n).reshape((n,) + (1,) * (len(shape) - axis - 1))
        for axis, n in enumerate(shape)
    }
    whole: Any = np.ones(shape, bool)
    for g in guards:
        whole = whole & g.holds(places)
    return xp.asarray(whole, xp.float64)


def described(params: tuple[Any, ...]) -> list[str]:
    """The extents and the conditions, axes named by letters that no dimension has."""
    shape, guards, accesses = params
    taken = _dimensions(params)
    letters = [c for c in "ijklmnopqrstuvwxyzabcdefgh" if c not in taken]
    names = {f"#{axis}": letters[axis % len(letters)] for axis in range(len(shape))}
    texts = [f"{names[f'#{axis}']}={n}" for axis, n in enumerate(shape)]
    texts += [str(g.substitute(names)).replace("%", "mod") for g in guards]
    return texts + [f"0 <= {a.form.substitute(names)} < {a.extent}" for a in accesses]


INDICATOR = Indicator(
    "indicator", (),
    Meaning(
        (), shape=lambda params: params[0], range=(0.0, 1.0), truth=True, dimensions=_dimensions
    ),
    Kernels(_kernel),
    Spelling(r"\operatorname{{indicator}}"),
    permuted=lambda params, perm: _ordered(perm, *params),
    chained=chained,
)  # fmt: skip
