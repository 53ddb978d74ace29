"""MATLAB source, which Octave runs too.

Vectors are columns, numbers 1 x 1, and axes at the end that have extent 1 need not exist. Only
syntax and functions are used that both have, and no toolbox. Where MATLAB differs from IEEE 754 by
its own conventions, so does the program: `max` passes over NaN, logarithms and roots of negative
numbers are complex. Several results are several outputs, tuples inside them cells, dicts structures
where all keys are names of fields and `containers.Map` elsewhere, whose keys are strings unless all
are numbers (an empty one MATLAB takes, Octave does not). Integers that index count from 0, as in
the expression.
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
from .language import (
    ATOM,
    PRODUCT,
    Code,
    Operator,
)
from .matlab_helpers import HELPERS, OTHERS
from .matlab_operators import MATRICES, PLACES, REDUCTIONS, STRICT, TEMPLATES, TRUTHS
from .matlab_program import FUNCTIONS, KEYWORDS, MatlabProgram, Several, is_field, number, quoted
from .one_based import Value, bare, lacking, ndim, thin, valued, values
from .places import View


class Matlab(MatlabProgram):
    """MATLAB source."""

    name = "MATLAB"
    start = "x"
    reserved = frozenset(
        {*KEYWORDS, *FUNCTIONS, *HELPERS, *OTHERS}
        | {word for text in map(str, TEMPLATES.values()) for word in re.findall(r"[a-z]\w+", text)}
    )
    width = 68
    own_words: frozenset[str] = frozenset()
    absent, floats = "[]", "kind"
    templates, matrices, reductions = TEMPLATES, MATRICES, REDUCTIONS
    strict, places, truths = STRICT, PLACES, TRUTHS

    # --- values ---

    def number(self, value: float) -> Code:
        text = number(value)
        return Value(text, PRODUCT if text[0] == "-" else ATOM, weak=True)

    def array(self, value: np.ndarray) -> Code:
        if not value.size:
            return Value(f"zeros({self.dims(value.shape)})", ndim=value.ndim)
        rows = (
            value.reshape(len(value), -1, order="F") if value.ndim < 3 else value.T.reshape(1, -1)
        )
        shown = "; ".join([" ".join(map(number, row.tolist())) for row in rows])
        text = (
            f"[{shown}]"
            if value.ndim < 3
            else f"reshape([{shown}], {self.row(self.sizes(value.shape))})"
        )
        return Value(text, ndim=value.ndim)

    def literal(self, value: Any) -> str:
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, str):
            return quoted(value)
        return (
            self.row(list(map(self.literal, value))) if isinstance(value, tuple) else number(value)
        )

    def functions(self, names: Sequence[str]) -> str:
        return f"{{{', '.join(names)}}}"

    def assign(self, name: str, c: Code) -> Code:
        self.scope.lines.append(f"{name} = {c.text};")
        found = replace(c, text=name, level=ATOM, name=True, condition="")
        return replace(found, matrix=False) if isinstance(found, Value) else found

    def part(self, c: Code, index: int) -> Code:
        several = self.named(c)
        assert isinstance(several, Value)
        return Value(f"{several.text}{{{index + 1}}}", ndim=several.parts[index])

    # --- views ---

    def transpose(self, c: Code, perm: Sequence[int]) -> Code:
        if list(perm) == list(range(len(perm))):
            return c
        return self.transposed(c) if len(perm) == 2 else self.permuted(c, perm)

    def permuted(self, c: Code, perm: Sequence[int]) -> Value:
        return self.invoke(len(perm), "permute", c, f"[{' '.join([str(k + 1) for k in perm])}]")

    def expand(self, c: Code, present: Sequence[bool]) -> Code:
        while len(present) and not present[-1]:
            present = present[:-1]
        if all(present):
            return c
        if list(present) == [False, True]:
            return self.transposed(c)
        own, new = iter(range(sum(present))), iter(range(sum(present), len(present)))
        code = self.permuted(c, [next(own if p else new) for p in present])
        return replace(code, lacks=frozenset([k for k, p in enumerate(present) if not p]))

    def diagonal(self, c: Code, word: Sequence[int], out: Sequence[int]) -> Code:
        if len(word) == 2:
            return self.invoke(1, "reshape", self.invoke(1, "diag", c), "[]", "1")  # if 0 x 0
        c = self.named(c)
        steps = [[int(label == k) for k in out] for label in word]
        shape = self.row([f"size({c.text}, {word.index(k) + 1})" for k in out])
        return self.invoke(
            len(out), "window", c, f"zeros(1, {len(word)})", self.matrix(steps), shape
        )

    def broadcast(self, c: Code, shape: Shape) -> Code:
        found = self.multiply([c, Value(f"ones({self.dims(shape)})", ndim=len(shape), weak=True)])
        return replace(valued(found), lacks=frozenset(), weak=c.weak)

    # --- arithmetic ---

    def multiply(self, factors: Sequence[Code]) -> Code:
        return super().multiply(self.full_matrices(factors))

    def divide(self, c: Code, divisors: Sequence[Code]) -> Code:
        c, *divisors = self.full_matrices([c, *divisors])
        return super().divide(c, divisors)

    def add(self, terms: Sequence[Code]) -> Code:
        return super().add(self.full_matrices(terms))

    def call(self, op: Operator, args: Sequence[Code]) -> Code | None:
        if op.name == "power" and args[1].text.endswith("'"):
            # A transpose binds as a power does, and the one that stands first goes first.
            args = [args[0], replace(args[1], text=f"({args[1].text})")]
        return super().call(op, args)

    def full_matrices(self, found: Sequence[Code]) -> list[Code]:
        """Operands that can be repeated along axes, which diagonal matrices of Octave cannot."""
        if not thin(*found) or not any(v.diagonal for v in values(found)):
            return list(found)
        return [
            replace(self.invoke(v.ndim, "full", v), lacks=v.lacks)
            if isinstance(v, Value) and v.diagonal
            else v
            for v in found
        ]

    def full(self, c: Code, shape: Shape) -> Code:
        if not shape:
            return c
        word = {"0": "zeros", "1": "ones"}.get(c.text, "")
        ones = Value(
            f"{word or 'ones'}({self.dims(shape)})", ndim=len(shape), weak=c.weak, filled=c
        )
        return ones if word else replace(valued(self.multiply([c, ones])), filled=c)

    def embed(self, c: Code, out: Sequence[int], shape: Shape) -> Code:
        assert isinstance(c, Value)
        if tuple(out) == (0, 0) and c.filled is not None:
            eye = Value(f"eye({self.sizes(shape)[0]})", ndim=2, weak=c.filled.weak, diagonal=True)
            return eye if c.filled.text == "1" else self.multiply([c.filled, eye])
        if tuple(out) == (0, 0):
            return replace(self.invoke(2, "diag", c), diagonal=True)
        view = self.embedding(out, shape)
        return self.place(self.spread(c, view.shape), shape, view)

    # --- places that are affine in indices ---

    def window(self, c: Code, whole: Shape, view: View) -> Code:
        keys, axes = self.slices(whole, view)
        if axes is None:
            return self.invoke(len(view.shape), "window", c, *self.affine(view))
        if set(keys) == {":"}:
            return self.transpose(c, [axes.index(axis) for axis in range(len(axes))])
        cut = Value(self.index(self.named(c).text, keys), ndim=len(keys), weak=c.weak)
        return self.packed(cut, [self.axis_of(view, axis) for axis in range(len(axes))])

    @staticmethod
    def axis_of(view: View, axis: int) -> int:
        """Which axis of the array an axis of the view moves along."""
        return next(k for k, steps in enumerate(view.steps) if steps[axis])

    def packed(self, c: Value, kept: Sequence[int]) -> Code:
        """An array with these axes, where all others have extent 1."""
        perm = [*kept, *[k for k in range(c.ndim) if k not in kept]]
        turned = valued(self.transpose(c, perm))
        return replace(turned, ndim=len(kept), lacks=frozenset())

    def pad(self, c: Code, shape: Shape, margins: Sequence[tuple[Extent, Extent]]) -> Code:
        before, after = (self.row(self.sizes(side)) for side in zip(*margins, strict=True))
        return self.invoke(len(shape), "pad", c, before, after)

    def place(self, c: Code, whole: Shape, view: View, onto: Code | None = None) -> Code:
        keys, axes = self.slices(whole, view)
        new = onto is None
        if onto is None:
            c, name = self.named(c), self.scope.fresh()
            onto = Value(name, name=True, ndim=len(whole), weak=self.integers)
            self.scope.lines.append(f"{name} = zeros({self.dims(whole)}, kind);")
        if axes is None:
            call = self.invoke(0, "place", onto, c, *self.affine(view))
            self.scope.lines.append(f"{onto.text} = {call.text};")
            return onto
        moving, singles = iter(axes), iter(range(len(axes), len(whole)))
        perm = [next(moving if any(steps) else singles) for steps in view.steps]
        place, added = self.index(onto.text, keys), self.transpose(c, perm) if len(perm) > 1 else c
        text = added.text if new else f"{place} + {operand(added, PRODUCT)}"
        self.scope.lines.append(f"{place} = {text};")
        return onto

    # --- integers as indices ---

    def take(self, c: Code, keys: Sequence[Code | None]) -> Code:
        keys = [*keys, *[None] * (ndim(c) - len(keys))]
        given = {k: key for k, key in enumerate(keys) if key is not None}
        c, at = self.named(c), list(given)
        rank = max(map(ndim, given.values()))
        axes = len(keys) - len(at) + rank
        if len(at) == rank == 1:
            places = f"places({given[at[0]].text}, size({c.text}, {at[0] + 1}))"
            shown = [places if k == at[0] else ":" for k in range(len(keys))]
            return Value(self.index(c.text, shown), ndim=axes)
        first = at[0] if at == list(range(at[0], at[-1] + 1)) else 0
        shown = ["':'" if key is None else key.text for key in keys]
        return self.invoke(axes, "take", c, f"{{{', '.join(shown)}}}", str(first + 1), str(rank))

    def segment_sum(self, c: Code, index: Code, extent: Extent) -> Code:
        axes = ndim(c) - ndim(index) + 1
        return self.invoke(axes, "segment_sum", c, index, str(ndim(index)), self.size(extent))

    def indicator(self, shape: Shape, guards: Sequence[Constraint | Congruence]) -> Code:
        names = {f"#{axis}": self.counted(n, axis) for axis, n in enumerate(shape)}
        tests = [f"({test})" for test in self.tests(guards, names)]
        used = {name for g in guards for name in g.form.names}
        if not names.keys() <= used:
            tests.append(f"true({self.dims(shape)})")
        return Value(f"double({' & '.join(tests)})", ndim=len(shape), weak=True)

    def refuse(self, conditions: Sequence[Constraint], message: str) -> list[str]:
        tests = " && ".join(self.tests(conditions, {})) or "true"
        return [f"if {tests}", f"  error('%s', {quoted(message)});", "end"]

    def counted(self, extent: Extent, axis: int) -> str:
        """0, 1, ... along an axis."""
        text = f"0:{self.sizes((extent,))[0]} - 1"
        ones = ", ".join(["1"] * axis)
        return f"({text}){'' if axis else chr(39)}" if axis < 2 else f"reshape({text}, {ones}, [])"

    # --- contractions ---

    def sum(self, c: Code, axes: Sequence[int], ndim: int) -> Code:
        if len(axes) == ndim > 2:
            return self.invoke(0, "inner", c, self.invoke(ndim, "ones", self.invoke(2, "size", c)))
        if list(axes) == [0] and ndim == 2:  # to Octave sum(A, 1) of 0 x 0 is one number
            return self.sum(self.transposed(c), [1], 2)
        found = c.text
        for axis in axes if len(axes) < ndim else [None] * ndim:
            found = f"sum({found})" if axis is None else f"sum({found}, {axis + 1})"
        rest = [k for k in range(ndim) if k not in axes]
        whole = Value(found, ndim=ndim if rest else 0, weak=c.weak)
        return self.packed(whole, rest) if rest else whole

    def trace(self, c: Code) -> Code:
        return self.invoke(0, "sum", self.invoke(1, "diag", c))

    def inner(self, a: Code, b: Code) -> Code:
        if ndim(a) == 1:
            return self.matmul(a, b)
        product = self.multiply([a, b])
        return self.sum(product, [0, 1], 2) if ndim(a) == 2 else self.invoke(0, "inner", a, b)

    # --- operators ---

    def reduced(self, template: str, core: int, c: Code) -> Code:
        """A reduction over the last axes, one after the other."""
        rest = ndim(c) - core
        for axis in range(rest, ndim(c)):
            filled = infix.filled(template, {"axis": str(axis + 1)}, [c], lambda code: code)
            c = replace(filled, weak=c.weak)
        return Value(c.text, ndim=rest, weak=c.weak)

    def stacked(self, template: str, op: Operator, before: int, args: Sequence[Code]) -> Code:
        names = [Value(f"a{k + 1}", name=True) for k in range(len(args))]
        inner = infix.filled(template, self.fields(op, 0, args), names, lambda c: c)
        function = f"@({', '.join([c.text for c in names])}) {inner.text}"
        return self.invoke(0, "stacked", function, str(before), *args)

    def constant(self, c: Code) -> Code:
        return replace(c, weak=True)

    def whole_numbers(self, c: Code) -> Code:
        return self.constant(c)

    def scalar(self, c: Code) -> Code:
        return replace(self.truth(c) if isinstance(c, Value) and c.truth == "?" else c, weak=True)

    def truth(self, c: Code) -> Code:
        text = bare(c.text)
        return Value(
            f"double({text})",
            ndim=ndim(c),
            lacks=lacking([c]),
            weak=True,
            condition=text,
            truth=text,
        )

    # --- the module ---

    def result(self, c: Code, shape: Shape) -> Code:
        found = self.full(c, shape) if ndim(c) < len(shape) else c
        if not c.weak or all(v.integral for v in self.scope.variables.values()):
            return found
        made = re.fullmatch(r"((?:zeros|ones|eye)\([^()]*)\)", found.text)
        return Value(f"{made[1]}, kind)" if made else f"cast({found.text}, kind)", ndim=len(shape))

    def sequence(self, items: Sequence[Code]) -> Code:
        return Several(f"{{{', '.join([c.text for c in items])}}}", items=tuple(items))

    def mapping(self, items: Sequence[tuple[Any, Code]]) -> Code:
        name = self.scope.fresh()
        fields = all(isinstance(k, str) and is_field(k) for k, _ in items)
        numbers = all(not isinstance(k, str) and abs(k) < 2**53 for k, _ in items)
        kind = f"'KeyType', '{'double' if numbers else 'char'}', 'ValueType', 'any'"
        self.scope.lines.append(f"{name} = {'struct()' if fields else f'containers.Map({kind})'};")
        for key, c in items:
            shown = number(key) if numbers and not fields else quoted(str(key))
            place = f"{name}.{key}" if fields else f"{name}({shown})"
            self.scope.lines.append(f"{place} = {c.text};")
        return Value(name, name=True)
