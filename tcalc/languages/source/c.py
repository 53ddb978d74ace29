"""C99 source: arrays of the caller, one workspace, loops; matrix products by CBLAS on request."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ...graph.extents import Extent, Shape
from ...integers.affine import Congruence, Constraint, factors_of
from . import infix
from .c_check import check_text
from .c_contractions import by_lags, by_product, einsum, product
from .c_correlations import by_own_windows, by_windows, strided
from .c_folds import folded
from .c_function import function_lines
from .c_module import OUT_OF_RANGE, RESERVED, comment, module_text, number_function, routines
from .c_nests import Array, Line, Node, atom, nest
from .c_operators import QUICK, entry, real
from .c_orders import along_rows, cheap, ordered
from .c_places import embed, onto_diagonal, pad, place, segment_sum, take
from .c_routines import routine_call
from .c_stacks import by_stacks
from .c_values import (
    Value,
    affine,
    common_shape,
    entry_of,
    in_memory,
    lifted,
    pulled,
    repeated,
    scalar,
    transposed,
    value,
    viewed,
)
from .c_writer import Writer
from .language import ATOM, PRODUCT, SUM, Check, Code, FunctionText, Operator, named
from .places import View
from .scope import FunctionScope
from .solves import COMPILED
from .turns import Turns


class C(Writer):
    """C99 source, arrays row by row."""

    name = "C"
    reserved = RESERVED
    start = "v"
    width = 68
    own_words: frozenset[str] = COMPILED
    embedding_axes = 2
    #: Operators that have a function of the processor's vectors.
    quick: ClassVar[Mapping[str, str]] = {name: f"vector_{name}" for name in QUICK}
    forms: ClassVar[tuple[Callable[..., Value | None], ...]] = (
        by_lags, by_windows, by_own_windows, by_product, by_stacks,
    )  # fmt: skip

    def __init__(self, scope: FunctionScope, integers: bool = False) -> None:
        super().__init__(scope, integers)
        self.claimed: list[str] = []
        self.steps: dict[str, FunctionText] = {}
        self.scalars: dict[str, str] = {}
        self.sizes: dict[str, str] = {}
        self.text = ""

    # --- loops ---

    def ordered(
        self, body: str, target: str, out: Sequence[str], summed: Sequence[str],
        over: Mapping[str, str],
    ) -> list[str]:  # fmt: skip
        loops = {i: self.length(n) for i, n in over.items()}
        return ordered(body, target, out, summed, over, loops)

    def turned(
        self, body: str, inner: str, over: Mapping[str, str], made: Mapping[str, Value]
    ) -> str:
        return along_rows(self, body, inner, over, made)

    def scratch(
        self, stack: Sequence[str], size: str, kind: str, index: Sequence[str]
    ) -> tuple[Array, str]:
        array, _ = self.storage((size,), kind=kind)
        return array, array.name

    def listed(self, kind: str, items: Sequence[str]) -> str:
        before, star, behind = kind.partition("*")
        return f"({before}{star}const[]{behind}){{{', '.join(items)}}}"

    def stacked(
        self, index: Sequence[str], stack: Sequence[str], body: list[Node]
    ) -> Sequence[Node]:
        return nest(index, stack, body)

    # --- values ---

    def variable(self, name: str, shape: Shape) -> Code:
        found = replace(in_memory(name, self.shape(shape)), view=True)
        declared = self.scope.variables.get(name)
        same = (declared is not None and declared.integral) == self.integers
        return found if same else self._converted(found)

    def _converted(self, v: Value) -> Value:
        """Entries of an array of the other type, as this program's."""
        return pulled(v.shape, lambda index: Code(f"({self.kind}){atom(entry_of(v, index).text)}"))

    def number(self, value: float) -> Code:
        if self.integers and float(value).is_integer():
            text = str(int(value))
        elif math.isnan(value) or math.isinf(value):
            text = "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"
        else:
            text = repr(float(value)).replace("e+", "e")
        return scalar(text, PRODUCT if text.startswith("-") else ATOM, weak=True)

    def array(self, value: np.ndarray) -> Code:
        name = self.scope.fresh()
        kind = "ptrdiff_t" if value.dtype.kind in "iu" and self.integers else "real"
        entries = [self.number(n).text for n in value.ravel().tolist()] or ["0"]
        shape = [str(n) for n in value.shape]
        if not shape:
            return scalar(entries[0], weak=True)
        target = f"{name}[{max(1, value.size)}]"
        self.emit(Line(target, "=", f"{{{', '.join(entries)}}}", f"static const {kind}"))
        return in_memory(name, shape)

    def size(self, extent: Extent) -> Code:
        text = self.extent(extent)
        shown = text if self.integers or text.isdecimal() else f"(real){atom(text)}"
        shown += ".0" if text.isdecimal() and not self.integers else ""
        level = ATOM if shown == atom(shown) or not self.integers else SUM
        return replace(scalar(shown, level, weak=True), extent=text)

    def literal(self, value: Any) -> str:
        return repr(value)

    def functions(self, names: Sequence[str]) -> str:
        return self.listed("real (*)(real)", [self.scalars[name] for name in names])

    def assign(self, name: str, c: Code) -> Code:
        given = value(c)
        if given.extent:
            self.sizes[name] = given.extent  # what steps call an extent
            return given
        count = len(given.shape)
        made = count > 1 and given.memory is None and not self.integers
        if made and (given.overlaps or cheap(entry_of(given, self.index(count)).text, count)):
            return given
        return self.filled(given.shape, given, name)

    def part(self, c: Code, index: int) -> Code:
        found = value(c).parts[index]
        return self._converted(found) if self.integers else found

    # --- views ---

    def transpose(self, c: Code, perm: Sequence[int]) -> Code:
        return c if list(perm) == list(range(len(perm))) else transposed(value(c), perm)

    def turned_array(self, c: Code, perm: Sequence[int]) -> Code:
        found = transposed(value(c), perm)
        return (
            found if found.memory is None else replace(found, name=True, text=c.text, fresh=c.fresh)
        )

    def expand(self, c: Code, present: Sequence[bool]) -> Code:
        start = present.index(True) if True in present else len(present)
        kept = [k for k, p in enumerate(present[start:]) if p]
        if len(kept) == len(present) - start:
            return c
        v = self.plain(c)
        extents = iter(v.shape)
        shape = [next(extents) if p else "1" for p in present[start:]]
        return viewed(v, shape, lambda index: [index[k] for k in kept])

    def diagonal(self, c: Code, word: Sequence[int], out: Sequence[int]) -> Code:
        v = value(c)
        shape = [v.shape[word.index(label)] for label in out]
        return viewed(v, shape, lambda index: [index[out.index(label)] for label in word])

    def broadcast(self, c: Code, shape: Shape) -> Code:
        return repeated(self.plain(c), self.shape(shape))

    # --- arithmetic ---

    def multiply(self, factors: Sequence[Code]) -> Code:
        if len(factors) == 1:
            return factors[0]
        return lifted(lambda *entries: infix.product(entries), self.mixed(factors))

    def divide(self, c: Code, divisors: Sequence[Code]) -> Code:
        return lifted(
            lambda *entries: infix.quotient(entries[0], [real(e) for e in entries[1:]]),
            self.mixed([c, *divisors]),
        )

    def negate(self, c: Code) -> Code:
        return lifted(infix.negative, [value(c)])

    def add(self, terms: Sequence[Code]) -> Code:
        return lifted(lambda *entries: infix.total(entries), self.mixed(terms))

    def mixed(self, codes: Sequence[Code]) -> list[Value]:
        """Operands; those that others repeat get a name where they cost something."""
        values = [value(c) for c in codes]
        ndim = len(common_shape(values))
        return [self.plain(v) if len(v.shape) < ndim else v for v in values]

    def full(self, c: Code, shape: Shape) -> Code:
        v = value(c)
        return pulled(self.shape(shape), lambda index: entry_of(v, ()))

    def embed(self, c: Code, out: Sequence[int], shape: Shape) -> Code:
        return embed(self, c, out, shape)

    def overwritable(self, total: Code, shape: Shape, several: bool) -> Code | None:
        v = value(total)
        return v if v.fresh and v.memory is not None else self.filled(self.shape(shape), v)

    def embed_onto(self, onto: Code, c: Code, out: Sequence[int]) -> None:
        self.emit(*onto_diagonal(self, value(onto), value(c), out, "+="))

    # --- places that are affine in indices ---

    def window(self, c: Code, whole: Shape, view: View) -> Code:
        v, starts = value(c), self.shape(view.starts)
        found = viewed(
            v,
            self.shape(view.shape),
            lambda index: [
                affine(start, steps, index) for start, steps in zip(starts, view.steps, strict=True)
            ],
        )
        few = sum([any(steps) for steps in view.steps]) < len(view.shape)
        overlaps = few or any(len([s for s in steps if s]) > 1 for steps in view.steps)
        lying = strided(v, starts, view)
        if overlaps:
            return replace(found, overlaps=True, windows=lying)
        forward = all(step in (0, 1) for steps in view.steps for step in steps)
        return replace(found, memory=lying) if forward else found

    def pad(self, c: Code, shape: Shape, margins: Sequence[tuple[Extent, Extent]]) -> Code:
        return pad(self, c, shape, margins)

    def place(self, c: Code, whole: Shape, view: View, onto: Code | None = None) -> Code:
        return place(self, c, whole, view, onto)

    # --- integers as indices ---

    def take(self, c: Code, keys: Sequence[Code | None]) -> Code:
        return take(c, keys)

    def segment_sum(self, c: Code, index: Code, extent: Extent) -> Code:
        return segment_sum(self, c, index, extent)

    def indicator(self, shape: Shape, guards: Sequence[Constraint | Congruence]) -> Code:
        def entry(index: Sequence[str]) -> Code:
            tests = [self._test(g, index) for g in guards]
            return Code(f"({' && '.join(tests) or '1'})", condition=" && ".join(tests) or "1")

        return pulled(self.shape(shape), entry)

    def refuse(self, conditions: Sequence[Constraint], message: str) -> list[str]:
        tests = " && ".join([self._test(c, ()) for c in conditions]) or "1"
        return [f"if ({tests}) {{", *[f"    {line}" for line in comment([message])],
                f"    return {OUT_OF_RANGE};", "}"]  # fmt: skip

    def _test(self, g: Constraint | Congruence, index: Sequence[str]) -> str:
        """A condition on indices."""
        sides: tuple[list[str], list[str]] = ([], [])
        for name, c in g.form.terms:
            factors = [
                atom(index[int(part[1:])] if part.startswith("#") else self.extent(part))
                for part in factors_of(name)
            ]
            shown = " * ".join([*([str(abs(c))] if abs(c) != 1 else []), *factors])
            sides[c < 0].append(shown)
        if g.form.constant:
            sides[g.form.constant < 0].append(str(abs(g.form.constant)))
        left, right = (" + ".join(side) or "0" for side in sides)
        if isinstance(g, Congruence):
            return f"({left} - ({right})) % {g.modulus} == 0"
        return f"{left} {'==' if g.equality else '>='} {right}"

    # --- contractions ---

    def sum(self, c: Code, axes: Sequence[int], ndim: int) -> Code:
        return self.einsum([c], [range(ndim)], [k for k in range(ndim) if k not in axes])

    def trace(self, c: Code) -> Code:
        return self.einsum([c], [(0, 0)], ())

    def matmul(self, a: Code, b: Code) -> Code:
        p, q = len(value(a).shape), len(value(b).shape)
        if p == q == 2:
            return product(self, value(a), value(b))
        stack, row, column = range(3, 1 + max(p, q, 2)), [0][: p - 1], [2][: q - 1]
        words = [*stack[: max(p - 2, 0)], *row, 1], [*stack[: max(q - 2, 0)], 1, *column]
        return self.einsum([a, b], words, [*stack, *row, *column])

    def inner(self, a: Code, b: Code) -> Code:
        return self.einsum([a, b], [range(len(value(a).shape))] * 2, ())

    def tensordot(self, a: Code, b: Code, axes: tuple[list[int], list[int]]) -> Code:
        p, q = len(value(a).shape), len(value(b).shape)
        names = {k: p + k for k in range(q)} | dict(zip(*axes[::-1], strict=True))
        words = [list(range(p)), [names[k] for k in range(q)]]
        return self.einsum([a, b], words, [k for w in words for k in w if k not in axes[0]])

    def einsum(
        self, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
    ) -> Code:
        return einsum(self, factors, words, out)

    # --- operators ---

    def call(self, op: Operator, args: Sequence[Code]) -> Code | None:
        written = entry(self.quick.get(op.name, op.name), self.integers)
        if written is None:
            return routine_call(self, op, [value(a) for a in args])
        return lifted(written, self.mixed(args))

    def own(self, template: str, args: Sequence[Code]) -> Code:
        often = [template.count(f"{{{k}}}") > 1 for k in range(len(args))]
        given = [named(self, c) if twice else c for c, twice in zip(args, often, strict=True)]
        return lifted(
            lambda *entries: infix.filled(template, {}, entries, lambda c: c), self.mixed(given)
        )

    def constant(self, c: Code) -> Code:
        return c

    def whole_numbers(self, c: Code) -> Code:
        return self._converted(value(c))

    def scalar(self, c: Code) -> Code:
        return replace(value(c), weak=True)

    def truth(self, c: Code) -> Code:
        return c

    def fold(self, step: str, operands: tuple[Sequence[Code], ...], turns: Turns) -> Code:
        return folded(self, self.steps[step], self.sizes, operands, turns)

    # --- the module ---

    def result(self, c: Code, shape: Shape) -> Code:
        v, extents = value(c), self.shape(shape)
        own = v.whole and v.name and v.shape == extents and not self.integers
        found = v if own and v.text not in self.claimed else self.filled(extents, v, rows=True)
        self.claimed.append(found.text)
        return found

    def sequence(self, items: Sequence[Code]) -> Code:
        labels = tuple([str(k) for k in range(len(items))])
        return Value("", parts=tuple(map(value, items)), labels=labels)

    def mapping(self, items: Sequence[tuple[Any, Code]]) -> Code:
        labels = tuple([_label(key, k) for k, (key, _) in enumerate(items)])
        return Value("", parts=tuple([value(c) for _, c in items]), labels=labels)

    def function(self, f: FunctionText) -> list[str]:
        return function_lines(self, f)

    def nested(self, f: FunctionText) -> list[str]:
        if value(f.result).parts:
            self.steps[f.name] = f
        else:
            known = self.scope.functions
            self.scalars[f.name] = name = f"{self.scope.name}_{len(known) + 1}"
            known.append(number_function(f, name))
        return []

    def module(self, functions: Sequence[list[str]]) -> str:
        self.text = module_text(functions, self.scope.known.values())
        return self.text

    def check(self, check: Check) -> str:
        return check_text(self, check, self.text, routines())


def _label(key: Any, place: int) -> str:
    """A key as part of a name."""
    text = str(key)
    return text if re.fullmatch(r"[A-Za-z]\w{0,30}", text, re.ASCII) else str(place)
