"""A language of source code for the tests: nested lists of Python, without NumPy.

It shares no text with the languages of tcalc. Everything that it takes is in this file.
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import tcalc as tc
from tcalc.graph.extents import Extent, Shape
from tcalc.integers.affine import Congruence, Constraint
from tcalc.languages.source.language import NUMBERS, Check, Code, FunctionText, Operator, Sample
from tcalc.languages.source.places import View
from tcalc.languages.source.scope import FunctionScope
from tcalc.languages.source.turns import Turns
from tcalc.support.records import record

LIBRARY = """
import collections, itertools, math, operator


def depth(a):
    return 1 + depth(a[0]) if isinstance(a, list) else 0


def table(extents, entry, *place):
    if len(place) == len(extents):
        return entry(*place)
    return [table(extents, entry, *place, k) for k in range(extents[len(place)])]


def at(a, place):
    for k in place:
        a = a[k]
    return a


def each(f, *arrays):
    most = max(map(depth, arrays))
    if not most:
        return f(*arrays)
    lists = [depth(a) == most for a in arrays]
    n = max(len(a) for a, deep in zip(arrays, lists) if deep)
    rows = [[a[k % len(a)] if deep else a for a, deep in zip(arrays, lists)] for k in range(n)]
    return [each(f, *row) for row in rows]


def einsum(words, out, *arrays):
    extents = {}
    for word, a in zip(words, arrays):
        for label in word:
            extents[label], a = len(a), a[0]
    total = collections.defaultdict(float)
    for place in itertools.product(*[range(n) for n in extents.values()]):
        here = dict(zip(extents, place))
        entries = [at(a, [here[k] for k in word]) for word, a in zip(words, arrays)]
        total[tuple(here[k] for k in out)] += math.prod(entries)
    return table([extents[k] for k in out], lambda *place: total[place])


def expand(a, present):
    if not present:
        return a
    if present[0]:
        return [expand(row, present[1:]) for row in a]
    return [expand(a, present[1:])]


def take(a, keys):
    if keys and keys[0] is None:
        return [take(row, keys[1:]) for row in a]
    return each(lambda *places: at(a, places), *keys) if keys else a


def places(extents, starts, steps):
    for k in itertools.product(*map(range, extents)):
        yield k, [s + sum(map(operator.mul, step, k)) for s, step in zip(starts, steps)]


def window(a, starts, steps, extents):
    entries = {k: at(a, place) for k, place in places(extents, starts, steps)}
    return table(extents, lambda *k: entries[k])


def embedded(a, extents, starts, steps, given):
    entries = {tuple(place): at(a, k) for k, place in places(given, starts, steps)}
    return table(extents, lambda *place: entries.get(place, 0.0))


def pad(a, margins, extents):
    whole = [sum(m) + n for m, n in zip(margins, extents)]
    steps = [[k == axis for axis in range(len(whole))] for k in range(len(whole))]
    return embedded(a, whole, [m[0] for m in margins], steps, extents)


def segment_sum(a, index, n):
    zero = each(lambda entry: 0.0, a[0])
    total = [zero] * n
    for k, row in zip(index, a):
        total[k] = each(operator.add, total[k], row)
    return total


def fold(step, states, slices, fixed, times, backward):
    found = [list(states)]
    for t in sorted(range(times), reverse=backward):
        found.append(list(step(*found[-1], *[x[t] for x in slices], *fixed)))
    last, after, before = found[-1], found[1:], found[:-1]
    if backward:
        after, before = after[::-1], before[::-1]
    return [*last, *map(list, zip(*after)), *map(list, zip(*before))]
"""

CHECK = """
    def near(a, b):
        return abs(a - b) < 1e-5 * max(1, abs(b))

    for place in itertools.product(*map(range, {shape})):
        a = table({shape}, lambda *k: float(k == place))
        v, step = {direction}, 1e-6
        shifted = [each(lambda x, d: x + s * d, values["{x}"], v) for s in (step, -step)]
        above, below = [{before}(**{{**values, "{x}": moved}}{extra}) for moved in shifted]
        slope = each(lambda a, b: (a - b) / (2 * step), above, below)
        error = [a for a in [each(near, take(found, [None] * depth(slope) + list(place)), slope)]]
        if "False" in str(error):
            raise SystemExit(1)
"""

#: Functions of entries by operator.
ENTRIES = {
    **{
        name: f"math.{name}"
        for name in ("exp", "log", "cosh", "sinh", "sin", "cos", "tanh", "sqrt", "log1p")
    },
    "power": "operator.pow",
    "reciprocal": "lambda x: 1 / x",
    "abs": "abs",
    "maximum": "max",
    "less": "operator.lt",
    "greater": "operator.gt",
    "where": "lambda c, a, b: a if c else b",
}


@record(frozen=True)
class Value(Code):
    """Source text of a value, and the number of its axes, or of the axes of each of its parts."""

    ndim: int = 0
    parts: tuple[int, ...] = ()


def call(ndim: int, function: str, *args: Any) -> Value:
    return Value(f"{function}({', '.join([str(getattr(a, 'text', a)) for a in args])})", ndim=ndim)


def ndim(*values: Code) -> int:
    """How many axes values have that are combined entry by entry."""
    return max([v.ndim for v in values if isinstance(v, Value)], default=0)


def each(function: str, *args: Code) -> Value:
    return call(ndim(*args), "each", function, *args)


def listed(texts: Sequence[str]) -> str:
    return f"[{', '.join(texts)}]"


class Lists:
    """Nested lists of Python."""

    name = "lists"
    reserved = frozenset(
        [*keyword.kwlist, *dir(builtins), "collections", "itertools", "math", "operator"]
        + [line.split("(")[0][4:] for line in LIBRARY.splitlines() if line.startswith("def ")]
    )
    start = ""
    width = 70
    own_words = frozenset[str]()

    def __init__(self, scope: FunctionScope, integers: bool = False) -> None:
        self.scope = scope

    def variable(self, name: str, shape: Shape) -> Code:
        return Value(name, name=True, ndim=len(shape))

    def number(self, value: float) -> Code:
        return Value(f"({value!r})", weak=True)

    def array(self, value: np.ndarray) -> Code:
        return Value(repr(value.tolist()), ndim=value.ndim)

    def size(self, extent: Extent) -> Code:
        return Value(f"({self.scope.extent(extent)})", weak=True)

    def shape(self, shape: Shape) -> str:
        return listed([self.size(extent).text for extent in shape])

    def literal(self, value: Any) -> str:
        return repr(value)

    def functions(self, names: Sequence[str]) -> str:
        return listed(names)

    def assign(self, name: str, c: Code) -> Code:
        self.scope.lines.append(f"{name} = {c.text}")
        return replace(c, text=name, name=True, condition="")

    def part(self, c: Code, index: int) -> Code:
        assert isinstance(c, Value)
        return Value(f"{c.text}[{index}]", ndim=c.parts[index])

    def transpose(self, c: Code, perm: Sequence[int]) -> Code:
        same = list(perm) == list(range(len(perm)))
        return c if same else self.einsum([c], [range(len(perm))], perm)

    def expand(self, c: Code, present: Sequence[bool]) -> Code:
        return c if all(present) else call(len(present), "expand", c, list(present))

    def diagonal(self, c: Code, word: Sequence[int], out: Sequence[int]) -> Code:
        return self.einsum([c], [word], out)

    def broadcast(self, c: Code, shape: Shape) -> Code:
        return each("lambda zero, x: x", self.full(Code("0.0"), shape), c)

    def multiply(self, factors: Sequence[Code]) -> Code:
        return factors[0] if len(factors) == 1 else each("lambda *a: math.prod(a)", *factors)

    def divide(self, c: Code, divisors: Sequence[Code]) -> Code:
        return each("operator.truediv", c, self.multiply(divisors))

    def negate(self, c: Code) -> Code:
        return each("operator.neg", c)

    def add(self, terms: Sequence[Code]) -> Code:
        return each("lambda *a: sum(a)", *terms)

    def full(self, c: Code, shape: Shape) -> Code:
        return call(len(shape), "table", self.shape(shape), f"lambda *place: {c.text}")

    def embed(self, c: Code, out: Sequence[int], shape: Shape) -> Code:
        extents = dict(zip(out, shape, strict=True))
        return self.einsum([self.broadcast(c, tuple(extents.values()))], [list(extents)], out)

    def window(self, c: Code, whole: Shape, view: View) -> Code:
        given = self.shape(view.starts), view.steps, self.shape(view.shape)
        return call(len(view.shape), "window", c, *given)

    def pad(self, c: Code, shape: Shape, margins: Sequence[tuple[Extent, Extent]]) -> Code:
        pairs = listed([self.shape(pair) for pair in margins])
        return call(len(margins), "pad", c, pairs, self.shape(shape))

    def place(self, c: Code, whole: Shape, view: View, onto: Code | None = None) -> Code:
        given = self.shape(whole), self.shape(view.starts), view.steps, self.shape(view.shape)
        found = call(len(whole), "embedded", c, *given)
        return found if onto is None else self.add([onto, found])

    def take(self, c: Code, keys: Sequence[Code | None]) -> Code:
        given = [key for key in keys if key is not None]
        shown = listed([key.text if key else "None" for key in keys])
        return call(ndim(c) - len(given) + ndim(*given), "take", c, shown)

    def segment_sum(self, c: Code, index: Code, extent: Extent) -> Code:
        return call(ndim(c) - ndim(index) + 1, "segment_sum", c, index, self.size(extent))

    def indicator(self, shape: Shape, guards: Sequence[Constraint | Congruence]) -> Code:
        places = [f"i{axis}" for axis in range(len(shape))]
        entry = f"lambda {', '.join(places)}: float({self.tests(guards)})"
        return call(len(shape), "table", self.shape(shape), entry)

    def refuse(self, conditions: Sequence[Constraint], message: str) -> list[str]:
        return [f"if {self.tests(conditions)}:", f"    raise IndexError({message!r})"]

    def tests(self, guards: Sequence[Constraint | Congruence]) -> str:
        tests = []
        for g in guards:
            terms = [
                f"{c} * {n.replace('#', 'i') if n[0] == '#' else self.size(n).text}"
                for n, c in g.form.terms
            ]
            sign = (
                f"% {g.modulus} ==" if isinstance(g, Congruence) else "==" if g.equality else ">="
            )
            tests.append(f"({' + '.join([*terms, str(g.form.constant)])}) {sign} 0")
        return " and ".join(tests) or "True"

    def sum(self, c: Code, axes: Sequence[int], ndim: int) -> Code:
        return self.einsum([c], [range(ndim)], [k for k in range(ndim) if k not in axes])

    def trace(self, c: Code) -> Code:
        return self.einsum([c], [(0, 0)], ())

    def matmul(self, a: Code, b: Code) -> Code:
        p, q = ndim(a), ndim(b)
        stack, row, column = range(3, 1 + max(p, q, 2)), [0][: p - 1], [2][: q - 1]
        words = [*stack[: max(p - 2, 0)], *row, 1], [*stack[: max(q - 2, 0)], 1, *column]
        return self.einsum([a, b], words, [*stack, *row, *column])

    def inner(self, a: Code, b: Code) -> Code:
        return self.einsum([a, b], [range(ndim(a))] * 2, ())

    def tensordot(self, a: Code, b: Code, axes: tuple[list[int], list[int]]) -> Code:
        names = {k: ndim(a) + k for k in range(ndim(b))} | dict(zip(*axes[::-1], strict=True))
        words = [range(ndim(a)), list(names.values())]
        return self.einsum([a, b], words, [k for w in words for k in w if k not in axes[0]])

    def einsum(
        self, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
    ) -> Code:
        return call(len(out), "einsum", [list(word) for word in words], list(out), *factors)

    def call(self, op: Operator, args: Sequence[Code]) -> Code | None:
        if op.name == "selection":
            row = f"lambda k: [float(k == n) for n in range({op.params[0]})]"
            return call(len(op.shapes[0]), "each", row, *args)
        if op.name == "matrix_transpose":
            return self.transpose(args[0], (1, 0))
        return each(ENTRIES[op.name], *args) if op.name in ENTRIES else None

    def own(self, template: str, args: Sequence[Code]) -> Code:
        raise NotImplementedError

    def constant(self, c: Code) -> Code:
        return c

    def scalar(self, c: Code) -> Code:
        return replace(c, weak=True)

    def truth(self, c: Code) -> Code:
        return replace(each("float", c), condition=c.text)

    def fold(self, step: str, operands: tuple[Sequence[Code], ...], turns: Turns) -> Code:
        if turns.bounded:
            raise tc.UnsupportedError("no lists source for loops that end at a condition")
        groups = [listed([c.text for c in group]) for group in operands]
        last = [ndim(c) for c in operands[0]]
        parts = (*last, *[n + 1 for n in last] * 2)
        found = call(0, "fold", step, *groups, self.size(turns.times), turns.backward)
        return replace(found, parts=parts)

    def result(self, c: Code, shape: Shape) -> Code:
        return each("float", c)

    def sequence(self, items: Sequence[Code]) -> Code:
        return Code(f"({''.join([f'{c.text}, ' for c in items])})")

    def mapping(self, items: Sequence[tuple[Any, Code]]) -> Code:
        return Code("{" + "".join([f"{key!r}: {c.text}, " for key, c in items]) + "}")

    def function(self, f: FunctionText) -> list[str]:
        sizes = [f"{n} = len({p.array}{'[0]' * p.axis})" for n, p in f.bound.items()]
        refused = self.scope.refused if f.name == self.scope.name else []
        lines = [f'"""{f.doc}"""', *sizes, *refused, *f.body, f"return {f.result.text}"]
        given = ", ".join([*f.parameters, *f.free])
        return [f"def {f.name}({given}):", *[f"    {line}" for line in lines]]

    def nested(self, f: FunctionText) -> list[str]:
        return self.function(f._replace(free=()))

    def module(self, functions: Sequence[list[str]]) -> str:
        return "\n\n\n".join([LIBRARY, *["\n".join(lines) for lines in functions]]) + "\n"

    def check(self, check: Check) -> str:
        lines = ['\nif __name__ == "__main__":', "    import random", "    values = {}"]
        for s in check.samples:
            random = f"table({list(s.shape)}, lambda *k: random.uniform(0.5, 1.5))"
            lines += [f"    {NUMBERS} = {random}", f'    values["{s.name}"] = {self.moved(s)}']
        lines.append(f"    found = {check.function}(**values{self.given(check.sizes)})")
        text = "\n".join(lines)
        if (d := check.difference) is None:
            return text
        return text + CHECK.format(
            x=d.direction.name, shape=list(d.direction.shape), direction=self.moved(d.direction),
            before=d.before, extra=self.given(d.sizes),
        )  # fmt: skip

    def moved(self, s: Sample) -> str:
        if not s.stack:
            return s.value.text
        return f"[{self.moved(s._replace(stack=s.stack - 1))} for {NUMBERS} in {NUMBERS}]"

    def given(self, sizes: Mapping[str, int]) -> str:
        return "".join([f", {name}={size}" for name, size in sizes.items()])
