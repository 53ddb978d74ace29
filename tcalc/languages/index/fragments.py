"""Pieces of text in the index language: with signs and parentheses, of integers and guards."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Sequence
from fractions import Fraction

import numpy as np

from ...graph.extent_forms import Least, atom_of, atoms_in
from ...graph.extents import Coef, doubles_of, form_of, number, show_shape, size_of
from ...graph.nodes import Const
from ...integers.affine import Affine, Congruence, Constraint, Guard, Quotient
from ...integers.elimination import Range
from ...support.errors import UnsupportedError
from ..writing.constants import of_constants
from ..writing.notation import (
    ATOM,
    MAX_SHOWN,
    POWER,
    PRODUCT,
    SUM,
    Fragment,
    Rope,
    join_ropes,
)

MAX_DENOMINATOR = 99


def signed(p: Fragment) -> Rope:
    if not p.negative:
        return p.text
    return ("-(", p.text, ")") if p.level == SUM else ("-", p.text)


def within(p: Fragment, level: int) -> Rope:
    """A fragment where an operator binds at least as tightly as `level`."""
    negative = p.negative and level > SUM
    return ("(", signed(p), ")") if p.level < level or negative else signed(p)


def sum_fragment(terms: Sequence[Fragment]) -> Fragment:
    text: list[Rope] = []
    for p in terms:
        sign = (" - " if text else "-") if p.negative else " + " if text else ""
        text += [sign, ("(", p.text, ")") if p.level == SUM and len(terms) > 1 else p.text]
    return Fragment(tuple(text), SUM)


def power_fragment(p: Fragment, power: int) -> Fragment:
    return p if power == 1 else Fragment((within(p, ATOM), f"^{power}"), POWER)


def divided(coef: Coef) -> tuple[Coef, list[Fragment]]:
    """A coefficient without its denominator, and that: 3/2 is not written as 1.5.

    Nor is what constants make: 1/sqrt(2*pi) is not 0.3989422804014327.
    """
    if not math.isfinite(coef.value):
        return coef, []
    found = Fraction(coef.value).limit_denominator(MAX_DENOMINATOR)
    if found and found.denominator > 1 and float(found) == coef.value:
        return coef._replace(value=found.numerator), [Fragment(str(found.denominator))]
    if (made := of_constants(size_of(coef.value))) is None:
        return coef, []
    top, _, below = made
    return coef._replace(value=top if coef.value > 0 else -top), list(map(Fragment, below))


def guarded(
    guards: Sequence[Fragment], above: Sequence[Fragment], below: Sequence[Fragment]
) -> tuple[list[Fragment], list[Fragment]]:
    """The factors above and below the line; what guards protect stands in one factor with them."""
    if guards and below:
        return [*guards, over(scaled_fragment(Coef(), above), below)], []
    return [*guards, *above], [*below]


def over(above: Fragment, below: Sequence[Fragment]) -> Fragment:
    """A quotient."""
    if not below:
        return above
    under = scaled_fragment(Coef(), below)
    above_line, below_line = (p._replace(negative=False) for p in (above, under))
    text = within(above_line, PRODUCT), "/", within(below_line, POWER)
    return Fragment(text, PRODUCT, negative=above.negative ^ under.negative)


def scaled_fragment(coef: Coef, factors: Sequence[Fragment]) -> Fragment:
    """A coefficient times factors."""
    negative = math.copysign(1, coef.value) < 0
    size = size_of(coef.value)
    made = of_constants(size)
    texts = map(repr, doubles_of(size)) if made is None or made[2] else made[1]
    above = [] if size == 1 else list(map(Fragment, texts))
    above += [Fragment(f"({form_text(form_of(n))})" if _long(n) else n) for n in coef.times]
    for p in factors:
        negative ^= p.negative
        above.append(p._replace(negative=False))
    if not above:
        above = [Fragment("1")]
    below = [f"/({form_text(form_of(n))})" if _long(n) else f"/{n}" for n in coef.over]
    if len(above) == 1 and not below:
        return above[0]._replace(negative=negative)
    return Fragment(
        (
            join_ropes("*", [within(p, POWER if k else PRODUCT) for k, p in enumerate(above)]),
            *below,
        ),
        PRODUCT,
        negative=negative,
    )


def _long(extent: str) -> bool:
    return not extent.isidentifier()


def affine_fragment(form: Affine) -> Fragment:
    """An affine form, read as a number."""
    single = form.constant >= 0 if not form.terms else form == Affine.of(form.names[0])
    return Fragment(form_text(form), ATOM if single else SUM)


def guard_fragments(guards: Sequence[Guard]) -> list[Fragment]:
    """One factor for all guards; none for none."""
    return [Fragment(f"[{' & '.join(map(guard_text, guards))}]")] if guards else []


def truth_fragment(guards: Sequence[Guard] | None) -> Fragment:
    """The number that conditions are; None: they never hold."""
    return next(iter(guard_fragments(guards or [])), Fragment("0" if guards is None else "1"))


def counting_fragments(
    guards: Sequence[Guard], told: Collection[str], letter: str
) -> list[Fragment]:
    """The same for guards of which some have dimensions alone that no array tells, not in `told`.

    A dimension is known as one from the bounds of an index: these are sums of ones.
    """
    found = []
    for g in guards:
        text = guard_text(g)
        if not set(told) & set(g.form.names):
            for name in filter(str.isidentifier, g.form.names):
                text = re.sub(rf"\b{name}\b", f"sum[{letter}=0..{name}-1](1)", text)
        found.append(text)
    return [Fragment(f"[{' & '.join(found)}]")] if found else []


def access(name: str, subs: Sequence[Affine]) -> str:
    return f"{name}[{', '.join(map(form_text, subs))}]" if subs else name


def constant_fragment(node: Const, subs: Sequence[Affine]) -> Fragment:
    """An entry of an array of few numbers, chosen by guards."""
    value = node.value
    if value.size > MAX_SHOWN:
        shape = show_shape(node.shape)
        raise UnsupportedError(f"the index language writes no constant array of shape {shape}")
    if not value.size:
        return Fragment("0")
    found: list[tuple[str, float]] = []
    for place in np.ndindex(*value.shape):
        tests = [Constraint(s - k, True) for s, k in zip(subs, place, strict=True)]
        if any(t.impossible for t in tests) or (value[place] == 0 and np.isfinite(value).all()):
            continue
        shown = " & ".join([guard_text(t) for t in tests if not t.trivial])
        found.append((shown, float(value[place])))
    if not found:
        return Fragment("0")
    if np.isfinite(value).all():
        return sum_fragment(
            [scaled_fragment(number(v), [Fragment(f"[{t}]")] if t else []) for t, v in found]
        )
    text = "0"
    for test, v in found[::-1]:
        text = f"where({test}, {v!r}, {text})" if test else repr(v)
    return Fragment(text)


# --- integers -------------------------------------------------------------------------------------


def spelled(form: Affine) -> Affine:
    """The form with quotients and minima of dimensions as the language writes them."""
    atoms = {name: atom_of(name) for name in atoms_in(form) if not name.isidentifier()}
    names: dict[str, Affine | int | str] = {}
    for name, atom in atoms.items():
        if isinstance(atom, Least):
            names[name] = f"min({', '.join(map(form_text, atom.forms))})"
        elif atom is not None:
            inner = form_text(atom.form)
            inner = inner if inner.isidentifier() else f"({inner})"
            names[name] = f"floor({inner}/{atom.divisor})"
    return form.substitute(names) if names else form


def form_text(form: Affine) -> str:
    return str(spelled(form))


def range_text(r: Range) -> str:
    lower = tuple([Quotient(spelled(q.form), q.divisor) for q in r.lower])
    upper = tuple([Quotient(spelled(q.form), q.divisor) for q in r.upper])
    return str(Range(r.name, lower, upper))


def guard_text(g: Guard) -> str:
    if isinstance(g, Congruence):
        return f"mod({form_text(g.form)}, {g.modulus}) == 0"
    return str(Constraint(spelled(g.form), g.equality))
