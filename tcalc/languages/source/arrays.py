"""Python over an array module: what its programs share, in NumPy's words.

A language is a subclass with its own words: rewritings of these texts, and the operators, helpers
and methods that it has otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...graph.extents import Extent, Shape, form_of
from ...integers.affine import Congruence, Constraint
from ..writing.gathers import slice_ends
from . import infix
from .array_operators import TEMPLATES
from .array_programs import ArrayPrograms, tuple_of
from .infix import operand, subscripts
from .language import ATOM, PRODUCT, Code, Operator, named
from .places import View
from .turns import Turns


class ArrayLanguage(ArrayPrograms):
    """What programs over an array module write for values and operators."""

    # --- values ---

    def variable(self, name: str, shape: Shape) -> Code:
        return Code(name, name=True, view=True)

    def number(self, value: float) -> Code:
        text = repr(value)
        if text.strip("-") in ("inf", "nan"):
            text = re.sub("inf|nan", rf"{self.library}.\g<0>", text)
        return Code(text, PRODUCT if value < 0 else ATOM, weak=True)

    def array(self, value: np.ndarray) -> Code:
        kind = self.kind(f"{self.library}.{value.dtype.name}")
        if not value.size:
            return Code(f"{self.library}.zeros({value.shape}, {kind})")
        entries = re.sub(r"\b(nan|inf)\b", rf"{self.library}.\1", repr(value.tolist()))
        return Code(f"{self.library}.{self.array_of}({entries}, {kind})")

    def size(self, extent: Extent) -> Code:
        text = self.scope.extent(extent)
        plain = isinstance(extent, int) or extent.isidentifier()
        return Code(text if plain else f"({text})", name=text.isidentifier(), weak=True)

    def shape(self, shape: Shape) -> str:
        return tuple_of([self.size(extent).text for extent in shape])

    def zeros(self, shape: Shape, like: Code) -> str:
        """Zeros of the dtype of an array."""
        return f"{self.library}.zeros({self.shape(shape)}, {self.kind(f'{like.text}.dtype')})"

    def literal(self, value: Any) -> str:
        return repr(value)

    def functions(self, names: Sequence[str]) -> str:
        return tuple_of(names)

    def assign(self, name: str, c: Code) -> Code:
        self.scope.lines.append(f"{name} = {c.text}")
        return replace(c, text=name, level=ATOM, name=True, condition="")

    def part(self, c: Code, index: int) -> Code:
        return Code(f"{c.text}[{index}]", view=c.view)

    # --- views ---

    def transpose(self, c: Code, perm: Sequence[int]) -> Code:
        if list(perm) == list(range(len(perm))):
            return c
        text = operand(c)
        if len(perm) == 2 and text.endswith(".T"):
            return Code(text.removesuffix(".T"), view=True)
        if len(perm) == 2:
            return Code(f"{text}.T", view=True)
        return Code(f"{text}.{self.permute}({', '.join(map(str, perm))})", view=True)

    def expand(self, c: Code, present: Sequence[bool]) -> Code:
        start = present.index(True) if True in present else len(present)
        if all(present[start:]):
            return c
        index = ", ".join([":" if p else "None" for p in present[start:]])
        return Code(f"{operand(c)}[{index}]", view=True)

    def diagonal(self, c: Code, word: Sequence[int], out: Sequence[int]) -> Code:
        if len(word) == 2:
            return Code(f"{self.library}.diagonal({c.text})", view=True)
        return Code(f"{self.library}.einsum('{subscripts([word], out)}', {c.text})", view=True)

    def broadcast(self, c: Code, shape: Shape) -> Code:
        return Code(f"{self.library}.broadcast_to({c.text}, {self.shape(shape)})", view=True)

    # --- arithmetic ---

    def multiply(self, factors: Sequence[Code]) -> Code:
        return infix.product(factors)

    def divide(self, c: Code, divisors: Sequence[Code]) -> Code:
        return infix.quotient(c, divisors)

    def negate(self, c: Code) -> Code:
        return infix.negative(c)

    def add(self, terms: Sequence[Code]) -> Code:
        return infix.total(terms)

    def full(self, c: Code, shape: Shape) -> Code:
        return Code(f"{self.library}.full({self.shape(shape)}, {c.text}, {self.kind(self.dtype)})")

    def embed(self, c: Code, out: Sequence[int], shape: Shape) -> Code:
        if tuple(out) == (0, 0):
            return Code(f"{self.library}.diag({c.text})")
        core, whole = named(self, c), Code(self.scope.fresh(), name=True)
        self.scope.lines.append(f"{whole.text} = {self.zeros(shape, core)}")
        labels = {label: k for k, label in enumerate(dict.fromkeys(out))}
        where = self.on_diagonal(whole, [labels[label] for label in out])
        self.scope.lines.append(f"{where}[...] = {core.text}")
        return whole

    def on_diagonal(self, whole: Code, word: Sequence[int]) -> str:
        """The entries of an array where labels of axes are equal, to be written."""
        return f"_diagonal({whole.text}, {tuple(word)})"

    # --- places that are affine in indices ---

    def window(self, c: Code, whole: Shape, view: View) -> Code:
        keys, axes = self._slices(whole, view)
        if axes is None:
            arguments = f"{self.shape(view.starts)}, {view.steps}, {self.shape(view.shape)}"
            return Code(f"_window({c.text}, {arguments})", view=True, overlaps=True)
        cut = Code(f"{operand(c)}[{', '.join(keys)}]", view=True) if set(keys) - {":"} else c
        return self.transpose(cut, [axes.index(axis) for axis in range(len(axes))])

    def _slices(self, whole: Shape, view: View) -> tuple[list[str], list[int] | None]:
        """Integers and slices of all axes, and which axes of the view they leave; or None."""
        keys, found = [], []
        for extent, first, steps in zip(whole, view.starts, view.steps, strict=True):
            start, n = form_of(first), form_of(extent)
            moving = [k for k, step in enumerate(steps) if step]
            if not moving:
                keys.append(self.size(first).text)
                continue
            (axis, *others), step = moving, steps[moving[0]]
            ends = slice_ends(start, step, form_of(view.shape[axis]), n)
            if others or axis in found or (step < 0 and ends[1].startswith("-")):
                return [], None
            found.append(axis)
            keys.append(":".join([end and self.scope.extent(end) for end in ends]))
        while len(keys) > 1 and keys[-1] == ":":
            keys.pop()
        return keys, found

    def pad(self, c: Code, shape: Shape, margins: Sequence[tuple[Extent, Extent]]) -> Code:
        shown = tuple_of([tuple_of(self.ends(pair)) for pair in margins])
        return Code(f"{self.library}.pad({c.text}, {shown})")

    def ends(self, margins: tuple[Extent, Extent]) -> list[str]:
        """Margins along an axis, none where there are no entries in between."""
        shown = [self.size(n).text for n in margins]
        return [n if n.isdecimal() else f"max(0, {n})" for n in shown]

    def place(self, c: Code, whole: Shape, view: View, onto: Code | None = None) -> Code:
        keys, axes = self._slices(whole, view)
        if onto is None:
            c, onto = named(self, c), Code(self.scope.fresh(), name=True)
            self.scope.lines.append(f"{onto.text} = {self.zeros(whole, c)}")
        if axes is None:
            self.scope.lines.append(self.placed(onto, c, view))
        else:
            self.scope.lines.append(self.added(onto, ", ".join(keys), self.transpose(c, axes)))
        return onto

    def placed(self, onto: Code, c: Code, view: View) -> str:
        """The statement that adds entries at places that are no slices."""
        return f"_place({onto.text}, {c.text}, {self.shape(view.starts)}, {view.steps})"

    def added(self, onto: Code, key: str, c: Code) -> str:
        """The statement that adds entries to a slice."""
        return f"{onto.text}[{key}] += {c.text}"

    # --- integers as indices ---

    def take(self, c: Code, keys: Sequence[Code | None]) -> Code:
        shown = ", ".join([":" if key is None else key.text for key in keys])
        return Code(f"{operand(c)}[{shown}]")

    def segment_sum(self, c: Code, index: Code, extent: Extent) -> Code:
        return Code(f"_segment_sum({c.text}, {index.text}, {self.size(extent).text})")

    def indicator(self, shape: Shape, guards: Sequence[Constraint | Congruence]) -> Code:
        names = {}
        for axis, n in enumerate(shape):
            nones = ", None" * (len(shape) - axis - 1)
            places = f"{self.library}.arange({self.size(n).text}{self.places})"
            names[f"#{axis}"] = places + (f"[:{nones}]" if nones else "")
        tests = [self._test(g, names) for g in guards]
        shown = " & ".join(tests) or f"{self.library}.ones(1{self.places})"
        return Code(f"({shown}).{self.cast}({self.dtype})")

    def _test(self, g: Constraint | Congruence, names: dict[str, str]) -> str:
        """A condition, under names of indices."""
        return f"({infix.condition(g, names, self.size, ' * ', '({}) % {} == 0')})"

    def refuse(self, conditions: Sequence[Constraint], message: str) -> list[str]:
        tests = [infix.condition(c, {}, self.size, " * ", "") for c in conditions]
        return [f"if {' and '.join(tests) or 'True'}:", f"    raise IndexError({message!r})"]

    # --- contractions ---

    def sum(self, c: Code, axes: Sequence[int], ndim: int) -> Code:
        if len(axes) == ndim:
            return Code(f"{operand(c)}.sum()")
        shown = axes[0] if len(axes) == 1 else tuple(axes)
        return Code(f"{operand(c)}.sum({self.axis}={shown})")

    def trace(self, c: Code) -> Code:
        return Code(f"{self.library}.trace({c.text})")

    def matmul(self, a: Code, b: Code) -> Code:
        return Code(f"{operand(a, PRODUCT)} @ {operand(b)}", PRODUCT)

    def inner(self, a: Code, b: Code) -> Code:
        return Code(f"{self.library}.vdot({a.text}, {b.text})")

    def tensordot(self, a: Code, b: Code, axes: tuple[list[int], list[int]]) -> Code:
        return Code(f"{self.library}.tensordot({a.text}, {b.text}, {axes})")

    def einsum(
        self, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
    ) -> Code:
        operands = ", ".join([c.text for c in factors])
        return Code(f"{self.library}.einsum('{subscripts(words, out)}', {operands})")

    # --- operators ---

    def call(self, op: Operator, args: Sequence[Code]) -> Code | None:
        template = self.template(op)
        if template is None:
            return None
        axes = tuple(range(-op.core, 0))
        values = {f"p[{k}]": text for k, text in enumerate(op.params)}
        values["dtype"] = self.dtype
        values["first"] = str(-op.core)
        values["axes"] = str(axes[0] if op.core == 1 else axes)
        found = infix.filled(template, values, args, lambda c: named(self, c))
        numbers = op.name == "where" and all(c.weak for c in args[1:])  # an array of integers
        return self.constant(found) if numbers else found

    def template(self, op: Operator) -> str | None:
        """How the operator is called in this language's words."""
        known = hasattr(np, op.name) and not op.core
        own = f"np.{op.name}({{operands}})" if known else None
        found = self.own_operators.get(op.name) or TEMPLATES.get(op.name, own)
        if callable(found):
            found = found(*op.params)
        return None if found is None else self.spelled(found)

    def own(self, template: str, args: Sequence[Code]) -> Code:
        return infix.filled(template, {}, args, lambda c: named(self, c))

    def constant(self, c: Code) -> Code:
        return Code(f"{operand(c)}.{self.cast}({self.dtype})")

    def whole_numbers(self, c: Code) -> Code:
        return self.constant(c)

    def scalar(self, c: Code) -> Code:
        return Code(f"{'float' if self.dtype == 'dtype' else 'int'}({c.text})", weak=True)

    def truth(self, c: Code) -> Code:
        bare = c.text[1:-1] if c.text[0] == "(" and c.level == ATOM else c.text
        return Code(f"({bare}).{self.cast}({self.dtype})", condition=bare)

    def fold(self, step: str, operands: tuple[Sequence[Code], ...], turns: Turns) -> Code:
        groups = [tuple_of([c.text for c in group]) for group in operands]
        args = [step, *groups, self.size(turns.times).text, str(turns.backward)]
        if turns.bounded:
            args.append("None" if turns.made is None else operands[2][turns.made].text)
        name = "_fold_bounded" if turns.bounded else "_fold"
        return Code(f"{name}({', '.join([*args, *self.heads])})", view=True)
