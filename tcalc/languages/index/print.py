"""The index language: every entry of an expression as a formula in its indices."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, count
from typing import Any, NamedTuple

import numpy as np

from ...graph.applications import application
from ...graph.extent_forms import Least, atom_of, atoms_in
from ...graph.extents import Coef, doubles_of, form_of, number, show_shape, size_of
from ...graph.nodes import Add, Apply, Const, Einsum, Expr, Part, Var, dimensions, postorder
from ...graph.normal import bare
from ...graph.products import indicates, selects, split_coef
from ...integers.affine import Affine, Congruence, Constraint, Guard, Quotient
from ...integers.elimination import Range
from ...ops.indicator import conditions
from ...ops.reductions import arange
from ...support.errors import UnsupportedError
from ...support.trampoline import Steps, run
from ..writing.notation import (
    ATOM,
    INDEX_LETTERS,
    MAX_SHOWN,
    MAX_SIZE,
    POWER,
    PRODUCT,
    SUM,
    Fragment,
    Rope,
    join_ropes,
    rope_text,
)
from .grammar import BINDERS
from .iteration_space import Context
from .print_sums import substituted, whole_range, written_out

MAX_TOKENS, MIN_SHARED = 2_000, 12
#: Depth of one formula; what lies deeper is a statement of its own.
MAX_NESTED = 500


class IndexScope(NamedTuple):
    """The indices that are bound where an entry is written, and the constraints on them."""

    names: tuple[str, ...] = ()
    context: Context = ()

    def inside(self, ranges: Sequence[Range], guards: Sequence[Guard] = ()) -> IndexScope:
        known = [c for r in ranges for c in r.constraints()]
        known += [g for g in guards if isinstance(g, Constraint)]
        return IndexScope((*self.names, *[r.name for r in ranges]), (*self.context, *known))


def to_index(e: Expr) -> str:
    """The expression in the index language; `parse_index` reads it.

    Sums have bounds, accesses are affine, and what is zero elsewhere has a guard, as in Urban and
    van der Smagt (2017). Parts that are long and used more than once are statements of their own.

    Parameters
    ----------
    e : Expr

    Returns
    -------
    str

    Raises
    ------
    UnsupportedError
        Where the language has no words: for constants of many entries, and for operators of whole
        arrays whose parameters are no numbers.

    Examples
    --------
    >>> import tcalc as tc
    >>> y = tc.parse_index("y[i=0..2] = sum[k](w[k]*x[i+k])", x=5, w=3)
    >>> print(tc.to_index(tc.vjp(y, "x", tc.var("dy", 3))))
    f[i=0..4] = sum[j=max(0,i-2)..min(2,i)](dy[i-j]*w[j])
    """
    if not isinstance(e, Expr):
        raise TypeError(f"formulas are written for one expression, not for {type(e).__name__}")
    return _Writer(bare(e)).text()


class _Writer:
    """One text: chooses which nodes are statements, and writes an entry of each."""

    def __init__(self, e: Expr) -> None:
        self.root = e
        self.nodes = postorder((e,))
        names = {node.name for node in self.nodes if isinstance(node, Var)}
        self.taken = names | set(dimensions((e,)))
        clash = sorted(names & {*BINDERS})
        if clash:
            raise UnsupportedError(f"{clash[0]} binds indices; a variable needs another name")
        self.name = self.free("f", chain(["f"], (f"f{k}" for k in count(1))))
        self.statements: dict[int, str] = {}
        self.rules: dict[type[Expr], Callable[[Any, Sequence[Affine], IndexScope], Steps]] = {
            Add: self.sum,
            Einsum: self.product,
            Apply: self.apply,
            Part: self.whole,
        }

    def free(self, first: str, names: Iterator[str]) -> str:
        found = next(name for name in names if name not in self.taken)
        self.taken.add(found)
        return found

    def text(self) -> str:
        shared = self.shared()
        lines: list[str] = []
        fresh = (f"t{k}" for k in count(1))
        for node in self.nodes:
            if id(node) in shared and node is not self.root:
                name = self.free("t", fresh)
                lines.append(self.statement(node, name))
                self.statements[id(node)] = name
        return "\n".join([*lines, self.statement(self.root, self.name)])

    def shared(self) -> set[int]:
        """Nodes that are statements: operands of whole arrays, and what is long and used twice."""
        uses = Counter([id(arg) for node in self.nodes for arg in node.args])
        size: dict[int, int] = {}
        depth: dict[int, int] = {}
        arrays: set[int] = set()
        for node in self.nodes:
            size[id(node)] = min(MAX_SIZE, 1 + node.ndim + sum([size[id(a)] for a in node.args]))
            depth[id(node)] = 1 + max([depth[id(a)] for a in node.args], default=0)
            if depth[id(node)] > MAX_NESTED:
                arrays.add(id(node))
                depth[id(node)] = 1
            if isinstance(node, Apply) and _of_arrays(node):
                arrays.update([id(a) for a in node.args if not isinstance(a, Var)])
        if size[id(self.root)] > MAX_TOKENS:
            arrays.update([
                id(node) for node in self.nodes
                if uses[id(node)] > 1 and size[id(node)] > MIN_SHARED and not _several(node)
            ])  # fmt: skip
        return arrays

    def statement(self, node: Expr, name: str) -> str:
        letters = self.letters(node.ndim, ())
        ranges = [whole_range(k, extent) for k, extent in zip(letters, node.shape, strict=True)]
        subs = [Affine.of(k) for k in letters]
        fragment: Fragment = run(self.entry(node, subs, IndexScope().inside(ranges)))
        left = f"{name}[{', '.join(map(_shown_range, ranges))}]" if ranges else name
        return f"{left} = {rope_text(signed(fragment))}"

    def letters(self, n: int, names: Sequence[str]) -> list[str]:
        """Names for further indices."""
        used = {*names, *self.taken}
        every = chain(INDEX_LETTERS, (f"{c}{k}" for k in count(1) for c in "ijkl"))
        free = (c for c in every if c not in used)
        return [next(free) for _ in range(n)]

    # --- entries ----------------------------------------------------------------------------------

    def entry(self, node: Expr, subs: Sequence[Affine], scope: IndexScope) -> Steps:
        """The text of one entry of a node."""
        name = node.name if isinstance(node, Var) else self.statements.get(id(node))
        if name is not None:
            return Fragment(access(name, subs))
        if isinstance(node, Const):
            return constant_fragment(node, subs)
        return (yield self.rules[type(node)](node, subs, scope))

    def sum(self, node: Add, subs: Sequence[Affine], scope: IndexScope) -> Steps:
        terms: list[Fragment] = []
        for arg in sorted(node.args, key=lambda t: split_coef(t)[0].value < 0):
            terms.append((yield self.entry(arg, subs, scope)))
        return sum_fragment(terms)

    def product(self, node: Einsum, subs: Sequence[Affine], scope: IndexScope) -> Steps:
        found = written_out(node, subs, scope.context, lambda n: self.letters(n, scope.names))
        if any(g.impossible for g in found.guards):
            return Fragment("0")
        inner = scope.inside([], found.guards).inside(found.ranges)
        counts: dict[tuple[int, tuple[Affine, ...]], int] = {}
        factors: dict[tuple[int, tuple[Affine, ...]], Expr] = {}
        for arg, word in zip(node.args, node.labels, strict=True):
            if not indicates(arg):
                key = id(arg), tuple([found.places[label] for label in word])
                counts[key] = counts.get(key, 0) + 1
                factors[key] = arg
        fragments: list[Fragment] = []
        for key, power in counts.items():
            fragment: Fragment = yield self.entry(factors[key], key[1], inner)
            fragments.append(power_fragment(fragment, power))
        guards = (
            [Fragment(f"[{' & '.join(map(_shown_guard, found.guards))}]")] if found.guards else []
        )
        if not found.ranges:
            return scaled_fragment(node.coef, [*guards, *fragments])
        body = scaled_fragment(Coef(), fragments)
        ranges = ", ".join(map(_shown_range, found.ranges))
        total = Fragment((f"{BINDERS[0]}[{ranges}](", signed(body), ")"))
        return scaled_fragment(node.coef, [*guards, total])

    def apply(self, node: Apply, subs: Sequence[Affine], scope: IndexScope) -> Steps:
        if indicates(node):
            names = {f"#{axis}": sub for axis, sub in enumerate(subs)}
            guards = [
                substituted(g, names) for g in conditions(node.params, tuple(range(node.ndim)))
            ]
            return Fragment(f"[{' & '.join(map(_shown_guard, guards))}]" if guards else "1")
        if node.ndim == 1 and node is arange(node.shape[0]):
            return affine_fragment(subs[0])
        if selects(node):
            index: Fragment = yield self.entry(node.args[0], subs[:-1], scope)
            return Fragment(("[", signed(index), f" == {_shown(subs[-1])}]"))
        if node.op.core == (-1,) and node.op.name in BINDERS:
            return (yield self.reduction(node, subs, scope))
        if _of_arrays(node):
            return (yield self.whole(node, subs, scope))
        args: list[Fragment] = []
        for arg in node.args:
            args.append((yield self.entry(arg, subs, scope)))
        sign = node.op.spelling.infix.strip(".")
        if sign in ("/", "^") and len(args) == 2:
            low, level = (PRODUCT, PRODUCT) if sign == "/" else (ATOM, POWER)
            return Fragment(
                (within(args[0], low), sign, within(args[1], level + (sign == "/"))), level
            )
        if sign and len(args) == 2:
            return Fragment(("[", within(args[0], SUM), f" {sign} ", within(args[1], SUM), "]"))
        name = node.op.spelling.printed or node.op.name
        return Fragment((name, "(", join_ropes(", ", [signed(a) for a in args]), ")"))

    def reduction(self, node: Apply, subs: Sequence[Affine], scope: IndexScope) -> Steps:
        """An operator over the last axes: it binds indices as a sum does."""
        (arg,) = node.args
        letters = self.letters(node.params[0], scope.names)
        shape = arg.shape[arg.ndim - len(letters) :]
        ranges = [whole_range(k, extent) for k, extent in zip(letters, shape, strict=True)]
        inner = [*subs, *[Affine.of(k) for k in letters]]
        body: Fragment = yield self.entry(arg, inner, scope.inside(ranges))
        shown = ", ".join(map(_shown_range, ranges))
        return Fragment((f"{node.op.name}[{shown}](", signed(body), ")"))

    def whole(self, node: Expr, subs: Sequence[Affine], scope: IndexScope) -> Steps:
        """An operator of whole arrays, which are variables or statements: a call, and an entry."""
        yield from ()
        whole = application(node)
        name = whole.op.parts[node.index] if isinstance(node, Part) else whole.op.name
        args = [
            arg.name if isinstance(arg, Var) else self.statements[id(arg)] for arg in whole.args
        ]
        shown = ", ".join([*args, *[_parameter(name, p) for p in whole.params]])
        return Fragment(access(f"{name}({shown})", subs))


def _several(node: Expr) -> bool:
    return isinstance(node, Apply) and node.op.outputs > 1


def _of_arrays(node: Apply) -> bool:
    """Does an operator act on whole arrays?"""
    plain = node.op.elementwise and bool(node.args)
    known = selects(node) or indicates(node) or (not node.args and node.ndim == 1)
    return not plain and not known and not (node.op.core == (-1,) and node.op.name in BINDERS)


def _parameter(name: str, value: object) -> str:
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return str(value)
    if isinstance(value, str):
        return _shown(form_of(value))
    raise UnsupportedError(f"the index language has no word for {name} with {value!r}")


# --- fragments ------------------------------------------------------------------------------------


def signed(p: Fragment) -> Rope:
    if not p.negative:
        return p.text
    return ("-(", p.text, ")") if p.level == SUM else ("-", p.text)


def within(p: Fragment, level: int) -> Rope:
    """A fragment where an operator binds at least as tightly as `level`."""
    negative = p.negative and level > SUM
    return ("(", signed(p), ")") if p.level < level or negative else signed(p)


def sum_fragment(terms: Sequence[Fragment]) -> Fragment:
    text: list[Rope] = [signed(terms[0])]
    for p in terms[1:]:
        inner = ("(", p.text, ")") if p.level == SUM else p.text
        text += [" - " if p.negative else " + ", inner]
    return Fragment(tuple(text), SUM)


def power_fragment(p: Fragment, power: int) -> Fragment:
    return p if power == 1 else Fragment((within(p, ATOM), f"^{power}"), POWER)


def scaled_fragment(coef: Coef, factors: Sequence[Fragment]) -> Fragment:
    """A coefficient times factors."""
    negative = math.copysign(1, coef.value) < 0
    size = size_of(coef.value)
    above = [] if size == 1 else [Fragment(repr(n)) for n in doubles_of(size)]
    above += [Fragment(f"({_shown(form_of(n))})" if _long(n) else n) for n in coef.times]
    for p in factors:
        negative ^= p.negative
        above.append(p._replace(negative=False))
    if not above:
        above = [Fragment("1")]
    below = [f"/({_shown(form_of(n))})" if _long(n) else f"/{n}" for n in coef.over]
    if len(above) == 1 and not below:
        return above[0]._replace(negative=negative)
    return Fragment(
        (join_ropes("*", [within(p, PRODUCT) for p in above]), *below), PRODUCT, negative=negative
    )


def _long(extent: str) -> bool:
    return not extent.isidentifier()


def affine_fragment(form: Affine) -> Fragment:
    """An affine form, read as a number."""
    single = form.constant >= 0 if not form.terms else form == Affine.of(form.names[0])
    return Fragment(_shown(form), ATOM if single else SUM)


def access(name: str, subs: Sequence[Affine]) -> str:
    return f"{name}[{', '.join(map(_shown, subs))}]" if subs else name


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
        shown = " & ".join([_shown_guard(t) for t in tests if not t.trivial])
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


def _spelled(form: Affine) -> Affine:
    """The form with quotients and minima of dimensions as the language writes them."""
    atoms = {name: atom_of(name) for name in atoms_in(form) if not name.isidentifier()}
    names: dict[str, Affine | int | str] = {}
    for name, atom in atoms.items():
        if isinstance(atom, Least):
            names[name] = f"min({', '.join(map(_shown, atom.forms))})"
        elif atom is not None:
            inner = _shown(atom.form)
            inner = inner if inner.isidentifier() else f"({inner})"
            names[name] = f"floor({inner}/{atom.divisor})"
    return form.substitute(names) if names else form


def _shown(form: Affine) -> str:
    return str(_spelled(form))


def _shown_range(r: Range) -> str:
    lower = tuple([Quotient(_spelled(q.form), q.divisor) for q in r.lower])
    upper = tuple([Quotient(_spelled(q.form), q.divisor) for q in r.upper])
    return str(Range(r.name, lower, upper))


def _shown_guard(g: Guard) -> str:
    if isinstance(g, Congruence):
        return f"mod({_shown(g.form)}, {g.modulus}) == 0"
    return str(Constraint(_spelled(g.form), g.equality))
