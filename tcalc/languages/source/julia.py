"""Julia source: the standard library, and SpecialFunctions where special functions are called.

Numbers are `Float`, the type of the arguments; whole ones stay integers, which take on the type of
what they meet. Functions of entries have dots where they act on arrays. Outside of a function's
domain Julia raises a `DomainError`, where NumPy has `nan`. Dicts are named tuples where all keys
are identifiers, else a `Dict`. Integers that index count from 0, as in the expression.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...graph.extents import Extent, Shape
from ...integers.affine import Congruence, Constraint
from . import infix
from .infix import operand
from .julia_helpers import HELPERS
from .julia_operators import (
    LINEAR,
    MATRICES,
    PLACES,
    REDUCTIONS,
    SPECIAL,
    TEMPLATES,
    TRUTHS,
)
from .julia_program import BASE, KEYWORDS, JuliaProgram, is_field, number, quoted
from .language import ATOM, PRODUCT, Code, Operator
from .one_based import Value, bare, combined, lacking, ndim, thin, valued
from .places import View
from .scope import unlike


class Julia(JuliaProgram):
    """Julia source."""

    name = "Julia"
    start = "x"
    reserved = frozenset({*KEYWORDS, *BASE, *LINEAR, *SPECIAL, *HELPERS, "Float", "exponent_of"})
    width = 68
    own_words: frozenset[str] = frozenset()
    brackets = "[]"
    floor = ("fld", True)
    dots = True
    absent, floats = "nothing", "Float"
    templates, matrices, reductions = TEMPLATES, MATRICES, REDUCTIONS
    places, truths = PLACES, TRUTHS

    @property
    def kind(self) -> str:
        return "Int" if self.integers else "Float"

    # --- values ---

    def number(self, value: float) -> Code:
        text = number(value)
        if not re.fullmatch(r"-?\d+", text) and not self.integers:
            text = f"-Float({text[1:]})" if text[0] == "-" else f"Float({text})"
        return Value(text, PRODUCT if text[0] == "-" else ATOM, weak=True)

    def array(self, value: np.ndarray) -> Code:
        if not value.size:
            return Value(f"zeros({self.dims(value.shape)})", ndim=value.ndim)
        if value.ndim == 2 and value.shape[1] > 1:
            rows = [" ".join(map(number, row)) for row in value.tolist()]
            return Value(f"[{'; '.join(rows)}]", ndim=2)
        text = f"[{', '.join(map(number, value.ravel(order='F').tolist()))}]"
        shaped = text if value.ndim == 1 else f"reshape({text}, {self.dims(value.shape)})"
        return Value(shaped, ndim=value.ndim)

    def dims(self, shape: Shape) -> str:
        return ", ".join(self.sizes(shape))

    def row(self, items: Sequence[str]) -> str:
        return f"({', '.join(items)}{',' if len(items) == 1 else ''})"

    def matrix(self, rows: Sequence[Sequence[int]]) -> str:
        return self.row([self.row(list(map(str, row))) for row in rows])

    def literal(self, value: Any) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        if isinstance(value, str):
            return quoted(value)
        if isinstance(value, tuple):
            return self.row(list(map(self.literal, value)))
        return number(value)

    def functions(self, names: Sequence[str]) -> str:
        return self.row(names)

    def assign(self, name: str, c: Code) -> Code:
        self.scope.lines.append(f"{name} = {c.text}")
        found = replace(c, text=name, level=ATOM, name=True, condition="")
        return replace(found, matrix=False) if isinstance(found, Value) else found

    def part(self, c: Code, index: int) -> Code:
        assert isinstance(c, Value)
        return Value(f"{c.text}[{index + 1}]", ndim=c.parts[index], view=True)

    # --- views ---

    def transpose(self, c: Code, perm: Sequence[int]) -> Code:
        if list(perm) == list(range(len(perm))):
            return c
        if len(perm) == 2:
            return self.transposed(c)
        return self.invoke(len(perm), "permutedims", c, self.row([str(k + 1) for k in perm]))

    def expand(self, c: Code, present: Sequence[bool]) -> Code:
        while len(present) and not present[-1]:
            present = present[:-1]
        if all(present):
            return c
        if list(present) == [False, True]:
            return self.transposed(c)
        text = self.index(operand(c), [":" if p else "newaxis" for p in present])
        lacks = frozenset([k for k, p in enumerate(present) if not p])
        return Value(text, view=True, ndim=len(present), weak=c.weak, lacks=lacks)

    def diagonal(self, c: Code, word: Sequence[int], out: Sequence[int]) -> Code:
        if len(word) == 2:
            return self.invoke(1, "diag", c)
        c = self.named(c)
        steps = self.matrix([[int(label == k) for k in out] for label in word])
        shape = self.row([f"size({c.text}, {word.index(k) + 1})" for k in out])
        return self.invoke(len(out), "window", c, self.row(["0"] * len(word)), steps, shape)

    def broadcast(self, c: Code, shape: Shape) -> Code:
        ones = Value(f"ones({self.kind}, {self.dims(shape)})", ndim=len(shape))
        return replace(valued(self.multiply([c, ones])), lacks=frozenset())

    # --- arithmetic ---

    def numerator(self, c: Code, divisor: Code) -> Code:
        return self.typed(c) if c.weak and divisor.weak and not self.integers else c

    def typed(self, c: Code) -> Code:
        """A number of the program's type."""
        if not c.weak or c.text.startswith(("Float(", "-Float(")):
            return c
        return Value(f"{self.kind}({bare(c.text)})", weak=True)

    def full(self, c: Code, shape: Shape) -> Code:
        if not shape:
            return c
        word = {"0": "zeros", "1": "ones"}.get(c.text)
        dims = self.dims(shape)
        text = f"{word}({self.kind}, {dims})" if word else f"fill({self.typed(c).text}, {dims})"
        return Value(text, ndim=len(shape), filled=c)

    def embed(self, c: Code, out: Sequence[int], shape: Shape) -> Code:
        assert isinstance(c, Value)
        if tuple(out) == (0, 0) and c.filled is not None:
            n = self.sizes(shape)[0]
            eye = Value(f"Matrix{{{self.kind}}}(I, {n}, {n})", ndim=2)
            return eye if c.filled.text == "1" else self.multiply([c.filled, eye])
        if tuple(out) == (0, 0):
            return self.invoke(2, "diagm", c)
        view = self.embedding(out, shape)
        return self.place(self.spread(c, view.shape), shape, view)

    # --- places that are affine in indices ---

    def window(self, c: Code, whole: Shape, view: View) -> Code:
        keys, axes = self.slices(whole, view)
        if axes is None:
            return self.invoke(len(view.shape), "window", c, *self.affine(view))
        if set(keys) - {":"}:
            c = Value(self.index(operand(c), keys), ndim=len(axes), view=bool(axes), weak=c.weak)
        if any(step < 0 for steps in view.steps for step in steps):
            # Before 1.7, products with views that run backwards were wrong.
            c = self.invoke(len(axes), "collect", c)
        return self.transpose(c, [axes.index(axis) for axis in range(len(axes))])

    def pad(self, c: Code, shape: Shape, margins: Sequence[tuple[Extent, Extent]]) -> Code:
        before, after = (self.row(self.sizes(side)) for side in zip(*margins, strict=True))
        return self.invoke(len(shape), "pad", c, before, after)

    def place(self, c: Code, whole: Shape, view: View, onto: Code | None = None) -> Code:
        keys, axes = self.slices(whole, view)
        sign = ".=" if onto is None else ".+="
        if onto is None:
            c, onto = self.named(c), Value(self.scope.fresh(), name=True, ndim=len(whole))
            self.scope.lines.append(f"{onto.text} = zeros({self.kind}, {self.dims(whole)})")
        if axes is None:
            self.scope.lines.append(self.invoke(0, "place!", onto, c, *self.affine(view)).text)
        else:
            added = self.transpose(c, axes) if len(axes) > 1 else c
            sign = sign if axes else sign.strip(".")
            self.scope.lines.append(f"{self.index(onto.text, keys)} {sign} {added.text}")
        return onto

    # --- integers as indices ---

    def take(self, c: Code, keys: Sequence[Code | None]) -> Code:
        keys, c = [*keys, *[None] * (ndim(c) - len(keys))], self.named(c)
        given = {k: key for k, key in enumerate(keys) if key is not None}
        at = list(given)
        axes = len(keys) - len(at) + max(map(ndim, given.values()))
        text, order = c.text, list(range(len(keys)))
        places = [f"places({key.text}, size({text}, {k + 1}))" for k, key in given.items()]
        if at != list(range(at[0], at[-1] + 1)):
            order = [*at, *[k for k in order if k not in at]]
            text = self.transpose(c, order).text
        key = places[0] if len(at) == 1 else f"CartesianIndex.({', '.join(places)})"
        shown = [key if k == at[0] else ":" for k in order if k == at[0] or k not in at]
        return Value(self.index(text, shown), ndim=axes, view=axes > 0, weak=c.weak)

    def segment_sum(self, c: Code, index: Code, extent: Extent) -> Code:
        axes = ndim(c) - ndim(index) + 1
        return self.invoke(axes, "segment_sum", c, index, self.size(extent))

    def indicator(self, shape: Shape, guards: Sequence[Constraint | Congruence]) -> Code:
        stem = unlike("i", {*self.scope.taken, *self.scope.sizes.values()}, "_")
        names = {f"#{axis}": f"{stem}{axis + 1}" for axis in range(len(shape))}
        tests = " && ".join(self.tests(guards, names)) or "true"
        spans = zip(names.values(), self.sizes(shape), strict=True)
        ranges = ", ".join([f"{name} in 0:{n} - 1" for name, n in spans])
        text = f"{self.kind}[{tests} for {ranges}]" if shape else f"{self.kind}({tests})"
        return Value(text, ndim=len(shape))

    def refuse(self, conditions: Sequence[Constraint], message: str) -> list[str]:
        tests = " && ".join(self.tests(conditions, {})) or "true"
        return [f"if {tests}", f"    error({quoted(message)})", "end"]

    def counted(self, extent: Extent, axis: int) -> str:
        text = f"0:{self.sizes((extent,))[0]} - 1"
        if axis < 2:
            return f"({text})'" if axis else f"({text})"
        return f"reshape({text}, {', '.join(['1'] * axis)}, :)"

    # --- contractions ---

    def sum(self, c: Code, axes: Sequence[int], ndim: int) -> Code:
        return self.along("sum", c, axes, ndim)

    def along(self, function: str, c: Code, axes: Sequence[int], axes_of: int) -> Code:
        """A reduction over some of all axes."""
        rest = axes_of - len(axes)
        if not rest:
            return self.invoke(0, function, c)
        over = str(axes[0] + 1) if len(axes) == 1 else self.row([str(k + 1) for k in axes])
        text = f"{function}({c.text}, dims={over})"
        packed = f"vec({text})" if axes_of == 2 else f"dropdims({text}, dims={over})"
        return Value(packed, ndim=rest, weak=c.weak)

    def trace(self, c: Code) -> Code:
        return self.invoke(0, "tr", c)

    def inner(self, a: Code, b: Code) -> Code:
        return self.matmul(a, b) if ndim(a) == 1 else self.invoke(0, "dot", a, b)

    # --- operators ---

    def call(self, op: Operator, args: Sequence[Code]) -> Code | None:
        if op.name == "where":
            args = [args[0], *map(self.typed, args[1:])]
        if op.name in ("where", "logical_and", "logical_or", "logical_not"):
            conditions = args[:1] if op.name == "where" else args
            args = [*map(self.asked, conditions), *args[len(conditions) :]]
        if op.name == "diag" and ndim(args[0]) == 1:
            return self.invoke(2, "diagm", args[0])
        found = super().call(op, args)
        return self.constant(found) if found is not None and op.name in PLACES else found

    def asked(self, c: Code) -> Code:
        """A value as the truth value that it is not 0."""
        if isinstance(c, Value) and c.text == c.truth:
            return c
        dot = "." if ndim(c) else ""
        return combined(Code(f"{operand(c)} {dot}!= 0", 0), [c])

    def fields(self, op: Operator, before: int, args: Sequence[Code]) -> dict[str, str]:
        last = [str(axis) for axis in range(before + 1, before + op.core + 1)]
        values = super().fields(op, before, args)
        values |= {f"p[{k}]": text for k, text in enumerate(op.params)}
        return values | {"axes": self.row(last), "d": "." if ndim(*args) else ""}

    def reduced(self, template: str, core: int, c: Code) -> Code:
        return self.along(template, c, list(range(ndim(c) - core, ndim(c))), ndim(c))

    def stacked(self, template: str, op: Operator, before: int, args: Sequence[Code]) -> Code:
        names = [Value(f"a{k + 1}", name=True) for k in range(len(args))]
        inner = infix.filled(template, self.fields(op, 0, args), names, lambda c: c)
        function = f"({', '.join([c.text for c in names])}) -> {inner.text}"
        return self.invoke(0, "stacked", function, str(before), *args)

    def constant(self, c: Code) -> Code:
        if self.integers:
            return replace(c, weak=False)
        dot = "." if ndim(c) else ""
        return Value(f"{self.kind}{dot}({bare(c.text)})", ndim=ndim(c))

    def whole_numbers(self, c: Code) -> Code:
        return Value(f"Int{'.' if ndim(c) else ''}({bare(c.text)})", ndim=ndim(c))

    def scalar(self, c: Code) -> Code:
        return Value(f"{self.kind}({bare(c.text)})", weak=True)

    def truth(self, c: Code) -> Code:
        text, dot = bare(c.text), "." if ndim(c) else ""
        found = Value(f"{self.kind}{dot}({text})", ndim=ndim(c), lacks=lacking([c]))
        return replace(found, condition=text, truth=text)

    # --- the module ---

    def result(self, c: Code, shape: Shape) -> Code:
        if c.weak and (not shape or not ndim(c)):
            return self.full(self.typed(c), shape)
        if ndim(c) < len(shape) or thin(c):
            return self.broadcast(c, shape) if ndim(c) else self.full(c, shape)
        return self.invoke(len(shape), "collect", c) if c.view and shape else c

    def sequence(self, items: Sequence[Code]) -> Code:
        return Code(self.row([c.text for c in items]))

    def mapping(self, items: Sequence[tuple[Any, Code]]) -> Code:
        if all(isinstance(key, str) and is_field(key) for key, _ in items):
            pairs = [f"{key} = {c.text}" for key, c in items]
            return Code(self.row(pairs) if pairs else "NamedTuple()")
        pairs = [f"{self.literal(key)} => {c.text}" for key, c in items]
        return Code(f"Dict{{Any, Any}}({', '.join(pairs)})")
