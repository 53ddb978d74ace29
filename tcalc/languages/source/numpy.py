"""NumPy source: how it spells array operations and operators."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...graph.extents import Extent, Shape, extent_from, form_of
from ...integers.affine import Affine, Congruence, Constraint, factors_of
from ..writing.gathers import slice_ends
from . import infix
from .infix import letters, operand, subscripts
from .language import ATOM, NUMBERS, PRODUCT, Check, Code, FunctionText, Operator, Sample, named
from .numpy_helpers import DIFFERENCES, FLOATS, HELPERS, SHAPES
from .numpy_operators import TEMPLATES
from .places import View
from .scope import FunctionScope


class NumPy:
    """NumPy source."""

    name = "NumPy"
    reserved = frozenset(
        {"np", "special", "linalg", "dtype", "floats", "_check", *HELPERS, *dir(builtins)}
        | {*keyword.kwlist}
    )
    start = ""
    width = 68

    def __init__(self, scope: FunctionScope, integers: bool = False) -> None:
        self.scope = scope
        self.dtype = "np.int64" if integers else "dtype"

    # --- values ---

    def variable(self, name: str, shape: Shape) -> Code:
        return Code(name, name=True, view=True)

    def number(self, value: float) -> Code:
        text = repr(value)
        if text.strip("-") in ("inf", "nan"):
            text = text.replace("inf", "np.inf").replace("nan", "np.nan")
        return Code(text, PRODUCT if value < 0 else ATOM, weak=True)

    def array(self, value: np.ndarray) -> Code:
        dtype = f"np.{value.dtype.name}"
        if not value.size:
            return Code(f"np.zeros({value.shape}, {dtype})")
        entries = re.sub(r"\b(nan|inf)\b", r"np.\1", repr(value.tolist()))
        return Code(f"np.array({entries}, {dtype})")

    def size(self, extent: Extent) -> Code:
        text = self.scope.extent(extent)
        plain = isinstance(extent, int) or extent.isidentifier()
        return Code(text if plain else f"({text})", name=text.isidentifier(), weak=True)

    def shape(self, shape: Shape) -> str:
        return _tuple([self.size(extent).text for extent in shape])

    def literal(self, value: Any) -> str:
        return repr(value)

    def functions(self, names: Sequence[str]) -> str:
        return _tuple(names)

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
        return Code(f"{text}.transpose({', '.join(map(str, perm))})", view=True)

    def expand(self, c: Code, present: Sequence[bool]) -> Code:
        start = present.index(True) if True in present else len(present)
        if all(present[start:]):
            return c
        index = ", ".join([":" if p else "None" for p in present[start:]])
        return Code(f"{operand(c)}[{index}]", view=True)

    def diagonal(self, c: Code, word: Sequence[int], out: Sequence[int]) -> Code:
        if len(word) == 2:
            return Code(f"np.diagonal({c.text})", view=True)
        return Code(f"np.einsum('{subscripts([word], out)}', {c.text})", view=True)

    def broadcast(self, c: Code, shape: Shape) -> Code:
        return Code(f"np.broadcast_to({c.text}, {self.shape(shape)})", view=True)

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
        return Code(f"np.full({self.shape(shape)}, {c.text}, {self.dtype})")

    def embed(self, c: Code, out: Sequence[int], shape: Shape) -> Code:
        if tuple(out) == (0, 0):
            return Code(f"np.diag({c.text})")
        core, name = named(self, c).text, self.scope.fresh()
        names: dict[int, str] = {}
        places, kept = letters(out, names), letters(list(dict.fromkeys(out)), names)
        self.scope.lines += [
            f"{name} = np.zeros({self.shape(shape)}, {core}.dtype)",
            f"np.einsum('{places}->{kept}', {name})[...] = {core}",
        ]
        return Code(name, name=True)

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
        ends = [[self.size(n).text for n in pair] for pair in margins]
        shown = [_tuple([n if n.isdecimal() else f"max(0, {n})" for n in pair]) for pair in ends]
        return Code(f"np.pad({c.text}, {_tuple(shown)})")

    def place(self, c: Code, whole: Shape, view: View, onto: Code | None = None) -> Code:
        keys, axes = self._slices(whole, view)
        if onto is None:
            c, onto = named(self, c), Code(self.scope.fresh(), name=True)
            zeros = f"np.zeros({self.shape(whole)}, {c.text}.dtype)"
            self.scope.lines.append(f"{onto.text} = {zeros}")
        if axes is None:
            starts = self.shape(view.starts)
            self.scope.lines.append(f"_place({onto.text}, {c.text}, {starts}, {view.steps})")
        else:
            place = f"{onto.text}[{', '.join(keys)}]"
            self.scope.lines.append(f"{place} += {self.transpose(c, axes).text}")
        return onto

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
            names[f"#{axis}"] = f"np.arange({self.size(n).text})" + (f"[:{nones}]" if nones else "")
        tests = [self._test(g, names) for g in guards]
        return Code(f"({' & '.join(tests) or 'np.ones(1)'}).astype({self.dtype})")

    def _test(self, g: Constraint | Congruence, names: dict[str, str]) -> str:
        """A condition, under names of indices."""
        sides: tuple[list[str], list[str]] = ([], [])
        for name, c in g.form.terms:
            shown = " * ".join([
                names.get(part) or self.size(extent_from(Affine.of(part))).text
                for part in factors_of(name)
            ])  # fmt: skip
            sides[c < 0].append(shown if abs(c) == 1 else f"{abs(c)} * {shown}")
        if g.form.constant:
            sides[g.form.constant < 0].append(str(abs(g.form.constant)))
        left, right = (" + ".join(side) or "0" for side in sides)
        if isinstance(g, Congruence):
            return f"(({left}) % {g.modulus} == 0)"
        return f"({left} {'==' if g.equality else '>='} {right})"

    # --- contractions ---

    def sum(self, c: Code, axes: Sequence[int], ndim: int) -> Code:
        if len(axes) == ndim:
            return Code(f"{operand(c)}.sum()")
        shown = axes[0] if len(axes) == 1 else tuple(axes)
        return Code(f"{operand(c)}.sum(axis={shown})")

    def trace(self, c: Code) -> Code:
        return Code(f"np.trace({c.text})")

    def matmul(self, a: Code, b: Code) -> Code:
        return Code(f"{operand(a, PRODUCT)} @ {operand(b)}", PRODUCT)

    def inner(self, a: Code, b: Code) -> Code:
        return Code(f"np.vdot({a.text}, {b.text})")

    def tensordot(self, a: Code, b: Code, axes: tuple[list[int], list[int]]) -> Code:
        return Code(f"np.tensordot({a.text}, {b.text}, {axes})")

    def einsum(
        self, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
    ) -> Code:
        operands = ", ".join([c.text for c in factors])
        return Code(f"np.einsum('{subscripts(words, out)}', {operands})")

    # --- operators ---

    def call(self, op: Operator, args: Sequence[Code]) -> Code | None:
        own = f"np.{op.name}({{operands}})" if hasattr(np, op.name) and not op.core else ""
        template = TEMPLATES.get(op.name) or own
        if callable(template):
            template = template(*op.params)
        if not template:
            return None
        axes = tuple(range(-op.core, 0))
        values = {f"p[{k}]": text for k, text in enumerate(op.params)}
        values["dtype"] = self.dtype
        values["axes"] = str(axes[0] if op.core == 1 else axes)
        return infix.filled(template, values, args, lambda c: named(self, c))

    def own(self, template: str, args: Sequence[Code]) -> Code:
        return infix.filled(template, {}, args, lambda c: named(self, c))

    def constant(self, c: Code) -> Code:
        return Code(f"{operand(c)}.astype({self.dtype})")

    def scalar(self, c: Code) -> Code:
        return Code(f"{'float' if self.dtype == 'dtype' else 'int'}({c.text})", weak=True)

    def truth(self, c: Code) -> Code:
        bare = c.text[1:-1] if c.text[0] == "(" and c.level == ATOM else c.text
        return Code(f"({bare}).astype({self.dtype})", condition=bare)

    def fold(
        self, step: str, operands: tuple[Sequence[Code], ...], times: Extent, backward: bool
    ) -> Code:
        groups = [_tuple([c.text for c in group]) for group in operands]
        args = [step, *groups, self.size(times).text, str(backward), "dtype"]
        return Code(f"_fold({', '.join(args)})", view=True)

    # --- the module ---

    def result(self, c: Code, shape: Shape) -> Code:
        scalar = "" if shape else "[()]"
        if c.weak:
            return Code(f"{self.full(c, ()).text}{scalar}")
        return Code(f"np.array({c.text}){scalar}") if c.view else c

    def sequence(self, items: Sequence[Code]) -> Code:
        return Code(_tuple([c.text for c in items]))

    def mapping(self, items: Sequence[tuple[Any, Code]]) -> Code:
        shown = [self.number(k).text if isinstance(k, float) else repr(k) for k, _ in items]
        pairs = [f"{key}: {c.text}" for key, (_, c) in zip(shown, items, strict=True)]
        return Code("{" + ", ".join(pairs) + "}")

    def function(self, f: FunctionText) -> list[str]:
        integers = [p for p, v in f.parameters.items() if v.integral]
        arrays = [p for p in f.parameters if p not in integers]
        body = _body(f)
        lines = [f'"""{f.doc}"""']
        lines += [f"{', '.join(arrays)} = floats({', '.join(arrays)})"] if arrays else []
        lines += [f"{p} = np.asarray({p})" for p in integers]
        if any(re.search(r"(?<!\.)\bdtype\b", line) for line in body):
            lines.append(f"dtype = {f'{arrays[0]}.dtype' if arrays else 'np.float64'}")
        return _defined(f, [*lines, *body])

    def nested(self, f: FunctionText) -> list[str]:
        return _defined(f._replace(free=()), _body(f))

    def module(self, functions: Sequence[list[str]]) -> str:
        texts = ["\n".join(lines) for lines in functions]
        helpers = _called(texts)
        text = "\n\n\n".join([*helpers, *texts])
        uses = [m for m in ("linalg", "special") if re.search(rf"(?<![\w.]){m}\.", text)]
        imports = ["import numpy as np"]
        imports += [f"from scipy import {', '.join(uses)}"] if uses else []
        return "\n".join(imports) + f"\n\n\n{FLOATS}\n\n{text}\n"

    def check(self, check: Check) -> str:
        lines = ["", "", "def _check(computed, before):"]
        lines += ["    rng = np.random.default_rng(0)", "    values = {}"]
        for sample in check.samples:
            shape = _tuple([str(n) for n in sample.shape])
            lines.append(f"    {NUMBERS} = rng.uniform(0.5, 1.5, {shape})")
            lines.append(f'    values["{sample.name}"] = {_each(sample)}')
        found, difference = f"computed(**values{_given(check.sizes)})", check.difference
        names = f"{check.function}, {difference.before if difference else None}"
        end = f'\n\nif __name__ == "__main__":\n    _check({names})\n'
        if difference is None:
            shapes = ", ".join([_tuple([str(n) for n in shape]) for shape in check.shapes])
            lines += [f"    found = {found}", f"    shapes = [{shapes}]"]
            return "\n".join(lines) + SHAPES + end
        lines.append(f"    found = np.asarray({found})")
        text = DIFFERENCES.format(
            x=difference.direction.name,
            direction=_each(difference.direction),
            extra=_given(difference.sizes),
        )
        return "\n".join(lines) + text + end


def _called(texts: Sequence[str]) -> list[str]:
    """The helpers that texts call, and those that these call."""
    words = set(re.findall(r"\b(\w+)\(", "\n".join(texts)))
    found = [text for name, text in HELPERS.items() if name in words]
    return found if set(found) <= set(texts) else _called([*texts, *found])


def _tuple(items: Sequence[str]) -> str:
    return f"({', '.join(items)}{',' if len(items) == 1 else ''})"


def _body(f: FunctionText) -> list[str]:
    sizes = [f"{name} = {array}.shape[{axis}]" for name, (array, axis) in f.bound.items()]
    return [*sizes, *f.body, f"return {f.result.text}"]


def _defined(f: FunctionText, lines: Sequence[str]) -> list[str]:
    head = f"def {f.name}({', '.join([*f.parameters, *f.free])}):"
    return [head, *[f"    {line}" for line in lines]]


def _each(sample: Sample) -> str:
    """The data of a sample: one matrix, or a stack of them."""
    text = sample.value.text
    if sample.integral:
        text = f"np.floor({text}).astype(int)"
    for _ in range(sample.stack):
        text = f"np.stack([{text} for {NUMBERS} in {NUMBERS}])"
    return text


def _given(sizes: Mapping[str, int]) -> str:
    """Further arguments, behind others."""
    return "".join([f", {name}={size}" for name, size in sizes.items()])
