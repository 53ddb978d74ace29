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

from tcalc.graph.extents import Extent, Shape
from tcalc.graph.nodes import Var
from tcalc.integers.affine import Congruence, Constraint
from tcalc.languages.source.language import NUMBERS, Check, Code, Function, Sample
from tcalc.languages.source.scope import Scope

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


def matmul(a, b):
    p, q = depth(a), depth(b)
    stack = list(range(3, max(p, q) + 1))
    rows, columns = [0][:p - 1], [2][:q - 1]
    words = [*stack[:max(p - 2, 0)], *rows, 1], [*stack[:max(q - 2, 0)], 1, *columns]
    return einsum(words, [*stack, *rows, *columns], a, b)


def tensordot(a, b, left, right):
    word = [k for k in range(depth(a))]
    other = [left[right.index(k)] if k in right else 100 + k for k in range(depth(b))]
    out = [k for k in word + other if not (k in left)]
    return einsum([word, other], out, a, b)


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
    **{name: f"math.{name}" for name in ("exp", "log", "sin", "cos", "tanh", "sqrt", "log1p")},
    "power": "operator.pow",
    "reciprocal": "lambda x: 1 / x",
    "abs": "abs",
    "maximum": "max",
    "less": "operator.lt",
    "greater": "operator.gt",
    "where": "lambda c, a, b: a if c else b",
}


def call(function: str, *args: Any) -> Code:
    return Code(f"{function}({', '.join([str(getattr(a, 'text', a)) for a in args])})")


def listed(texts: Sequence[str]) -> str:
    return f"[{', '.join(texts)}]"


class Lists:
    """Nested lists of Python."""

    name = "lists"
    reserved = frozenset(
        [*keyword.kwlist, *dir(builtins), "collections", "itertools", "math", "operator"]
        + [line.split("(")[0][4:] for line in LIBRARY.splitlines() if line.startswith("def ")]
    )
    width = 70

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def variable(self, name: str, v: Var) -> Code:
        return Code(name, name=True)

    def number(self, value: float) -> Code:
        return Code(f"({value!r})", weak=True)

    def array(self, value: np.ndarray) -> Code:
        return Code(repr(value.tolist()))

    def size(self, extent: Extent) -> Code:
        return Code(f"({self.scope.extent(extent)})")

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
        return Code(f"{c.text}[{index}]")

    def transpose(self, c: Code, perm: Sequence[int]) -> Code:
        same = list(perm) == list(range(len(perm)))
        return c if same else self.einsum([c], [range(len(perm))], perm)

    def expand(self, c: Code, present: Sequence[bool]) -> Code:
        return c if all(present) else call("expand", c, list(present))

    def diagonal(self, c: Code, word: Sequence[int], out: Sequence[int]) -> Code:
        return self.einsum([c], [word], out)

    def broadcast(self, c: Code, shape: Shape) -> Code:
        return call("each", "lambda zero, x: x", self.full(Code("0.0"), shape), c)

    def multiply(self, factors: Sequence[Code]) -> Code:
        return (
            factors[0] if len(factors) == 1 else call("each", "lambda *a: math.prod(a)", *factors)
        )

    def divide(self, c: Code, divisors: Sequence[Code]) -> Code:
        return call("each", "operator.truediv", c, self.multiply(divisors))

    def negate(self, c: Code) -> Code:
        return call("each", "operator.neg", c)

    def add(self, terms: Sequence[Code]) -> Code:
        return call("each", "lambda *a: sum(a)", *terms)

    def full(self, c: Code, shape: Shape) -> Code:
        return call("table", self.shape(shape), f"lambda *place: {c.text}")

    def embed(self, c: Code, out: Sequence[int], shape: Shape) -> Code:
        extents = dict(zip(out, shape, strict=True))
        return self.einsum([self.broadcast(c, tuple(extents.values()))], [list(extents)], out)

    def take(self, c: Code, keys: Sequence[Code | None]) -> Code:
        return call("take", c, listed([key.text if key else "None" for key in keys]))

    def segment_sum(self, c: Code, index: Code, extent: Extent) -> Code:
        return call("segment_sum", c, index, self.size(extent))

    def indicator(self, shape: Shape, guards: Sequence[Constraint | Congruence]) -> Code:
        places = [f"i{axis}" for axis in range(len(shape))]
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
        entry = f"lambda {', '.join(places)}: float({' and '.join(tests) or 'True'})"
        return call("table", self.shape(shape), entry)

    def sum(self, c: Code, axes: Sequence[int], ndim: int) -> Code:
        return self.einsum([c], [range(ndim)], [k for k in range(ndim) if k not in axes])

    def trace(self, c: Code) -> Code:
        return self.einsum([c], [(0, 0)], ())

    def matmul(self, a: Code, b: Code) -> Code:
        return call("matmul", a, b)

    def inner(self, a: Code, b: Code) -> Code:
        every = f"list(range(depth({a.text})))"
        return call("einsum", f"[{every}, {every}]", [], a, b)

    def tensordot(self, a: Code, b: Code, axes: tuple[list[int], list[int]]) -> Code:
        return call("tensordot", a, b, *axes)

    def einsum(
        self, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
    ) -> Code:
        return call("einsum", [list(word) for word in words], list(out), *factors)

    def call(
        self, name: str, args: Sequence[Code], params: Sequence[str], core: int
    ) -> Code | None:
        if name == "selection":
            return call("each", "lambda k, row: float(k == row)", args[0], params[0])
        if name == "matrix_transpose":
            return self.transpose(args[0], (1, 0))
        return call("each", ENTRIES[name], *args) if name in ENTRIES else None

    def constant(self, c: Code) -> Code:
        return c

    def scalar(self, c: Code) -> Code:
        return replace(c, weak=True)

    def truth(self, c: Code) -> Code:
        return replace(call("each", "float", c), condition=c.text)

    def fold(
        self, step: str, operands: tuple[Sequence[Code], ...], times: Extent, backward: bool
    ) -> Code:
        groups = [listed([c.text for c in group]) for group in operands]
        return call("fold", step, *groups, self.size(times), backward)

    def result(self, c: Code, shape: Shape) -> Code:
        return call("each", "float", c)

    def sequence(self, items: Sequence[Code]) -> Code:
        return Code(f"({''.join([f'{c.text}, ' for c in items])})")

    def mapping(self, items: Sequence[tuple[Any, Code]]) -> Code:
        return Code("{" + "".join([f"{key!r}: {c.text}, " for key, c in items]) + "}")

    def function(self, f: Function) -> list[str]:
        sizes = [f"{n} = len({p.array}{'[0]' * p.axis})" for n, p in f.bound.items()]
        lines = [f'"""{f.doc}"""', *sizes, *f.body, f"return {f.result.text}"]
        given = ", ".join([*f.parameters, *f.free])
        return [f"def {f.name}({given}):", *[f"    {line}" for line in lines]]

    nested = function

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
