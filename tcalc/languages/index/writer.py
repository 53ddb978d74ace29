"""Texts of the index language: which nodes are statements, and an entry of each."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain, count
from typing import Any

from ...graph.applications import application
from ...graph.extent_forms import atoms_in
from ...graph.extents import Coef, extent_names, extent_product, form_of
from ...graph.factors import indicates, selects
from ...graph.nodes import Add, Apply, Const, Einsum, Expr, Part, Var, dimensions, postorder
from ...graph.normal import bare
from ...graph.products import split_coef
from ...graph.variables import const_node
from ...integers.affine import Affine
from ...ops.indicator import merging
from ...ops.reductions import arange
from ...ops.reshape import merged, unmerged
from ...ops.selection import wraps
from ...support.errors import UnsupportedError
from ...support.trampoline import Steps, run
from ..writing.factors import factors, is_quotient
from ..writing.loops import Names, loop_of
from ..writing.notation import (
    ATOM,
    INDEX_LETTERS,
    MAX_SIZE,
    POWER,
    PRODUCT,
    SUM,
    Fragment,
    join_ropes,
    rope_text,
)
from .fragments import (
    access,
    affine_fragment,
    constant_fragment,
    counting_fragments,
    divided,
    form_text,
    guard_fragments,
    guarded,
    over,
    power_fragment,
    range_text,
    scaled_fragment,
    signed,
    sum_fragment,
    truth_fragment,
    within,
)
from .grammar import BINDERS
from .print_accesses import BoundedSum
from .print_conditions import IndexScope, as_indicators, conditions_at, undecided
from .print_sums import whole_range, written_out
from .whole_arrays import equated_sums, has_parts, loop_text, of_arrays, written_parameters

MAX_TOKENS, MIN_SHARED = 2_000, 12
#: How tightly the operands of an operator must bind, and how tightly it binds.
QUOTIENT, EXPONENT = (PRODUCT, POWER, PRODUCT), (ATOM, ATOM, POWER)
#: Depth of one formula; what lies deeper is a statement of its own.
MAX_NESTED = 500

#: A factor, its places, and its exponent.
Placed = tuple[Expr, tuple[Affine, ...], int]


class IndexWriter:
    """One text: chooses which nodes are statements, and writes an entry of each.

    A step of a loop is a text in a text, which has a value for each state.
    """

    def __init__(
        self,
        roots: Sequence[Expr],
        around: Collection[str] = (),
        depth: int = 0,
        quotients: bool = False,
    ) -> None:
        self.roots, self.depth, self.quotients = roots, depth, quotients
        self.nodes = postorder(roots)
        names = {node.name for node in self.nodes if isinstance(node, Var)}
        self.taken = names | set(dimensions(roots)) | {*around}
        shapes = [v.shape for v in self.nodes if isinstance(v, Var)]
        self.known = extent_names(
            [extent for shape in (*shapes, *[e.shape for e in roots]) for extent in shape]
        )
        clash = sorted(names & {*BINDERS})
        if clash:
            raise UnsupportedError(f"{clash[0]} binds indices; a variable needs another name")
        every = chain(["f"], (f"f{k}" for k in count(1)))
        self.names = [self.free("f", every) for _ in roots]
        self.statements: dict[int, str] = {}
        self.made: list[Expr] = []  #: held, as nodes are known by their ids
        self.integers: list[str] = []  #: texts of integers, for which numbered names stand in forms
        used = (f"integer{'_' * k}" for k in count(1))
        self.integer = next(n for n in used if not any(name.startswith(n) for name in self.taken))
        self.placeholder = re.compile(rf"\b{self.integer}(\d+)\b")
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
        lines, values = self.lines()
        return "\n".join([*lines, *values])

    def lines(self) -> tuple[list[str], list[str]]:
        """Statements of shared parts, and those of the values."""
        shared = self.shared() - set(map(id, self.roots))
        lines: list[str] = []
        fresh = (f"t{k}" for k in count(1))
        for node in self.nodes:
            if id(node) in shared:
                lines.append(self.statement(node, name := self.free("t", fresh)))
                self.statements[id(node)] = name
        values = [self.statement(e, name) for e, name in zip(self.roots, self.names, strict=True)]
        return lines, values

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
            if isinstance(node, Apply) and of_arrays(node):
                arrays.update([id(a) for a in node.args if not isinstance(a, Var)])
        arrays |= equated_sums(self.nodes)
        if sum([size[id(e)] for e in self.roots]) > MAX_TOKENS:
            arrays.update([
                id(node) for node in self.nodes
                if uses[id(node)] > 1 and size[id(node)] > MIN_SHARED and not has_parts(node)
            ])  # fmt: skip
        return arrays

    def statement(self, node: Expr, name: str) -> str:
        letters = self.letters(node.ndim, ())
        ranges = [whole_range(k, extent) for k, extent in zip(letters, node.shape, strict=True)]
        subs = [Affine.of(k) for k in letters]
        fragment: Fragment = run(self.entry(node, subs, IndexScope().inside(ranges)))
        left = f"{name}[{', '.join(map(range_text, ranges))}]" if ranges else name
        text = rope_text(signed(fragment))
        while self.integers and self.integer in text:
            text = self.placeholder.sub(lambda found: self.integers[int(found[1])], text)
        return f"{left} = {text}"

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
        if (other := as_indicators(node)) is not node:
            self.made.append(other)
            return (yield self.entry(other, subs, scope))
        found = written_out(node, subs, scope.context, lambda n: self.letters(n, scope.names))
        if any(g.impossible for g in found.guards):
            return Fragment("0")
        inner = scope.inside([], [*found.guards, *found.checked]).inside(found.ranges)
        gathers = yield self.gathers(node, found, inner)
        before = found.places
        found = found._replace(
            places={k: form.substitute(gathers) for k, form in found.places.items()},
            ranges=[r for r in found.ranges if r.name not in gathers],
        )
        whole, direct = factors(node, self.opens), set(zip(node.args, node.labels, strict=True))
        placed: list[Placed] = []
        for arg, word, power in whole.powers:
            read = selects(arg) and not gathers.keys().isdisjoint(before[word[-1]].names)
            if not read and not (indicates(arg) and (arg, word) in direct):
                placed.append((arg, tuple([found.places[label] for label in word]), power))
        above, below = yield self.powers(placed, inner)
        (letter,), told = self.letters(1, inner.names), {*self.known, *inner.names}
        if not found.ranges:
            guards = counting_fragments(found.guards, told, letter)
            coef, number = self.divided(whole.coef)
            factored, below = guarded(guards, above, below)
            return over(self.scaled(coef, factored, scope), [*number, *below])
        own = {r.name for r in found.ranges}
        outside = [g for g in found.guards if own.isdisjoint(atoms_in(g.form))]
        within_sum = guard_fragments([g for g in found.guards if g not in outside])
        factored, below = guarded(within_sum, above, below)
        body = over(scaled_fragment(Coef(), factored), below)
        ranges = f"[{', '.join(map(range_text, found.ranges))}]"
        total = Fragment((f"{BINDERS[0]}{ranges}(", signed(body), ")"))
        guards = counting_fragments(outside, told, letter)
        coef, number = self.divided(whole.coef)
        return over(self.scaled(coef, [*guards, total], scope), number)

    def opens(self, e: Expr) -> bool:
        """Is a factor written as what stands above and below a line?"""
        return self.quotients and is_quotient(e) and id(e) not in self.statements

    def divided(self, coef: Coef) -> tuple[Coef, list[Fragment]]:
        return divided(coef) if self.quotients else (coef, [])

    def powers(self, placed: Sequence[Placed], scope: IndexScope) -> Steps:
        """Powers of entries, those with positive exponents and those below the line."""
        sides: tuple[list[Fragment], list[Fragment]] = [], []
        counts: dict[tuple[str, bool], list[Any]] = {}
        for arg, subs, power in placed:
            p: Fragment = yield self.entry(arg, subs, scope)
            counts.setdefault((rope_text(signed(p)), power < 0), [p, 0])[1] += abs(power)
        for (_, divides), (p, power) in counts.items():
            sides[divides].append(power_fragment(p, power))
        return sides

    def scaled(self, coef: Coef, factors: Sequence[Fragment], scope: IndexScope) -> Fragment:
        """A coefficient times factors; dimensions of which no variable tells are sums of ones."""
        ones = [[e for e in names if not extent_names([e]) <= self.known] for names in coef[1:]]
        if not any(ones):
            return scaled_fragment(coef, factors)
        rest = [tuple([e for e in names if extent_names([e]) <= self.known]) for names in coef[1:]]
        (letter,) = self.letters(1, scope.names)
        above, below = (
            [Fragment(f"{BINDERS[0]}[{range_text(whole_range(letter, e))}](1)") for e in names]
            for names in ones
        )
        found = scaled_fragment(Coef(coef.value, *rest), [*factors, *above])
        quotient = tuple([("/", p.text) for p in below])
        return found._replace(text=(within(found._replace(negative=False), PRODUCT), quotient))

    def gathers(self, node: Einsum, found: BoundedSum, scope: IndexScope) -> Steps:
        """What stands for integers at which arrays are read, by the names that these replace.

        A summed index that a selection tensor equates with an integer, and that is otherwise only a
        place in arrays by name, is that integer.
        """
        ranges = {r.name: r for r in found.ranges}
        pairs = list(zip(node.args, node.labels, strict=True))
        elsewhere = {n for g in found.guards for n in g.form.names}
        for r in found.ranges:
            elsewhere |= {n for q in (*r.lower, *r.upper) for n in q.form.names}
        chosen: dict[str, tuple[Apply, Sequence[Affine]]] = {}
        for arg, word in pairs:
            subs = [found.places[label] for label in word]
            if selects(arg):
                name = subs[-1].names[0] if len(subs[-1].terms) == 1 else ""
                whole = name in ranges and ranges[name] == whole_range(name, arg.params[0])
                if whole and subs[-1] == Affine.of(name) and name not in chosen:
                    chosen[name] = arg, subs[:-1]
                else:
                    elsewhere |= {n for form in subs for n in form.names}
                elsewhere |= {n for form in subs[:-1] for n in form.names}
            elif not isinstance(arg, Var) and id(arg) not in self.statements:
                elsewhere |= {n for form in subs for n in form.names}
        labels = [k for arg, word in pairs if not selects(arg) for k in word]
        read = {n for k in labels for n in found.places[k].names}
        texts: dict[str, str] = {}
        for name, (selector, places) in chosen.items():
            if name in read - elsewhere:
                index: Fragment = yield self.entry(selector.args[0], places, scope)
                texts[name] = f"{self.integer}{len(self.integers)}"
                self.integers.append(rope_text(within(index, ATOM)))
        return texts

    def apply(self, node: Apply, subs: Sequence[Affine], scope: IndexScope) -> Steps:
        if (held := conditions_at(node, subs)) is not None:
            return truth_fragment(undecided(held, scope.context))
        if node.op.name == "where":
            return (yield self.choice(node, subs, scope))
        if node.ndim == 1 and node is arange(node.shape[0]):
            return affine_fragment(subs[0])
        if selects(node):
            return (yield self.selection(node, subs, scope))
        if node.op.core == (-1,) and node.op.name in BINDERS:
            return (yield self.reduction(node, subs, scope))
        if node.op.meaning.regroups:
            return (yield self.regrouped(node, subs, scope))
        if of_arrays(node):
            return (yield self.whole(node, subs, scope))
        if self.opens(node):
            whole = factors(node, self.opens)
            placed = [(arg, tuple([subs[k] for k in word]), n) for arg, word, n in whole.powers]
            above, below = yield self.powers(placed, scope)
            coef, number = self.divided(whole.coef)
            return over(scaled_fragment(coef, above), [*number, *below])
        args: list[Fragment] = []
        for arg in node.args:
            args.append((yield self.entry(arg, subs, scope)))
        sign = node.op.spelling.infix.strip(".")
        if sign in ("/", "^") and len(args) == 2:
            low, right, level = QUOTIENT if sign == "/" else EXPONENT
            return Fragment((within(args[0], low), sign, within(args[1], right)), level)
        if sign and len(args) == 2:
            return Fragment(("[", within(args[0], SUM), f" {sign} ", within(args[1], SUM), "]"))
        name = node.op.spelling.printed or node.op.name
        return Fragment((name, "(", join_ropes(", ", [signed(a) for a in args]), ")"))

    def choice(self, node: Apply, subs: Sequence[Affine], scope: IndexScope) -> Steps:
        """One of two entries, or the one that the bounds around it choose."""
        condition, *branches = node.args
        held = conditions_at(condition, subs)
        kept = None if held is None else undecided(held, scope.context)
        if held is not None and not kept:
            return (yield self.entry(branches[kept is None], subs, scope))
        first = (yield self.entry(condition, subs, scope)) if kept is None else truth_fragment(kept)
        texts = [signed(first)]
        for arg, inner in zip(branches, (scope.inside([], held or ()), scope), strict=True):
            texts.append(signed((yield self.entry(arg, subs, inner))))
        return Fragment((node.op.name, "(", join_ropes(", ", texts), ")"))

    def selection(self, node: Apply, subs: Sequence[Affine], scope: IndexScope) -> Steps:
        """A guard that equates an integer and an index; negative integers count from the end."""
        (array,), extent = node.args, node.params[0]
        known = wraps(node) or (isinstance(array, Const) and bool((array.value >= 0).all()))
        if isinstance(array, Const) and isinstance(extent, int):
            array, known = const_node(array.value % max(1, extent)), True
        index: Fragment = yield self.entry(array, subs[:-1], scope)
        text = (
            signed(index) if known else ("mod(", signed(index), f", {form_text(form_of(extent))})")
        )
        return Fragment(("[", text, f" == {form_text(subs[-1])}]"))

    def regrouped(self, node: Apply, subs: Sequence[Affine], scope: IndexScope) -> Steps:
        """Axes split are read at one place; of those merged, the one whose place that is."""
        (arg,), (count, target) = node.args, node.params
        batch = node.ndim - len(target)
        place = merging(subs[batch:], target)
        if count > 1:
            arg = unmerged(merged(arg, count, (extent_product(target),)), arg)
        return (yield self.entry(arg, [*subs[:batch], place], scope))

    def reduction(self, node: Apply, subs: Sequence[Affine], scope: IndexScope) -> Steps:
        """An operator over the last axes: it binds indices as a sum does."""
        (arg,) = node.args
        letters = self.letters(node.params[0], scope.names)
        shape = arg.shape[arg.ndim - len(letters) :]
        ranges = [whole_range(k, extent) for k, extent in zip(letters, shape, strict=True)]
        inner = [*subs, *[Affine.of(k) for k in letters]]
        body: Fragment = yield self.entry(arg, inner, scope.inside(ranges))
        shown = ", ".join(map(range_text, ranges))
        return Fragment((f"{node.op.name}[{shown}](", signed(body), ")"))

    def whole(self, node: Expr, subs: Sequence[Affine], scope: IndexScope) -> Steps:
        """An operator of whole arrays, which are variables or statements: a call, and an entry."""
        yield from ()
        whole = application(node)
        args = [a.name if isinstance(a, Var) else self.statements[id(a)] for a in whole.args]
        if isinstance(node, Part) and (loop := loop_of(node)) is not None:
            names = Names(self.taken, self.depth)
            return Fragment(access(loop_text(node, loop, names, args, self.step), subs))
        name = whole.op.parts[node.index] if isinstance(node, Part) else whole.op.name
        shown = ", ".join([*args, *[_parameter(name, p) for p in written_parameters(whole)]])
        return Fragment(access(f"{name.partition('#')[0]}({shown})", subs))

    def step(self, outputs: Sequence[Expr], taken: set[str]) -> tuple[list[str], list[str]]:
        return IndexWriter(outputs, taken, self.depth + 1, self.quotients).lines()


def _parameter(name: str, value: object) -> str:
    if isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return str(value)
    if isinstance(value, str):
        return form_text(form_of(value))
    if isinstance(value, tuple):
        return f"[{', '.join([_parameter(name, item) for item in value])}]"
    if isinstance(formula := getattr(value, "expr", None), Expr):
        return IndexWriter([bare(formula)]).text().partition(" = ")[2]
    raise UnsupportedError(f"the index language has no word for {name} with {value!r}")
