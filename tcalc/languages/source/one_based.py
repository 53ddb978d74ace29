"""What languages share whose arrays count from 1 and align their first axes, as Julia's.

Axes keep the order in which they are declared, whatever that in memory is. Operands are lined up by
their first axes: only new axes in front are written. Places count from 1, ranges have their ends.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...graph.extents import Extent, Shape, extent_from, form_of
from ...integers.affine import Affine, Congruence, Constraint
from ...support.records import record
from . import infix
from .infix import operand, subscripts
from .language import ATOM, PRODUCT, Code, Operator
from .places import View
from .scope import FunctionScope
from .turns import Turns

#: Templates of operators by name, or what gives them from parameters.
Templates = Mapping[str, str | Callable[..., str]]


@record(frozen=True)
class Value(Code):
    """Source text of a value, and what decides how it is combined with others.

    Attributes
    ----------
    ndim : int
        The number of its axes; those at the end that have extent 1 may be left out.
    parts : tuple of int
        That of each of several results.
    lacks : set of int
        Axes that have extent 1 where others may have more.
    matrix : bool
        Is it written as a product of matrices?
    truth : str
        The text of its condition, also where it is written as that.
    filled : Code or None
        The number that is in every entry.
    diagonal : bool
        Is it a diagonal matrix, for which Octave has a type of its own?
    """

    ndim: int = 0
    parts: tuple[int, ...] = ()
    lacks: frozenset[int] = frozenset()
    matrix: bool = False
    truth: str = ""
    filled: Code | None = None
    diagonal: bool = False


def valued(c: Code) -> Value:
    """The same, which knows its axes."""
    assert isinstance(c, Value)
    return c


def ndim(*values: Code) -> int:
    """How many axes values have that are combined entry by entry."""
    return max([v.ndim for v in values if isinstance(v, Value)], default=0)


def values(found: Sequence[Code]) -> list[Value]:
    """Those that are no numbers."""
    return [v for v in found if isinstance(v, Value) and v.ndim]


def lacking(found: Sequence[Code]) -> frozenset[int]:
    """The axes along which values that are combined entry by entry all have extent 1."""
    every = range(ndim(*found))
    return frozenset([k for k in every if all(k >= v.ndim or k in v.lacks for v in values(found))])


def thin(*found: Code) -> bool:
    """Are some of them repeated along axes that others have?"""
    given = values(found)
    return any(v.lacks or v.ndim < ndim(*given) for v in given)


def combined(c: Code, found: Sequence[Code]) -> Value:
    """A text made of values entry by entry."""
    diagonal = any(v.diagonal for v in values(found))
    axes = ndim(*found)
    return Value(c.text, c.level, weak=c.weak, ndim=axes, lacks=lacking(found), diagonal=diagonal)


def bare(text: str) -> str:
    """The text without parentheses around all of it."""
    return text[1:-1] if text[:1] == "(" and infix.level(text) == ATOM else text


def is_product(c: Code) -> bool:
    """Is it a product of matrices, which reads better in parentheses between dots?"""
    return isinstance(c, Value) and c.matrix


class _Floors(ast.NodeTransformer):
    """Quotients that are rounded down, by a function of this name or of a quotient."""

    def __init__(self, name: str, two: bool) -> None:
        self.name, self.two = name, two

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.FloorDiv):
            return node
        quotient = ast.BinOp(node.left, ast.Div(), node.right)
        args: list[ast.expr] = [node.left, node.right] if self.two else [quotient]
        return ast.Call(ast.Name(self.name), args, [])


class OneBased(ABC):
    """The part of a language that its brackets and words are put into.

    Attributes
    ----------
    brackets : str
        What encloses an index.
    floor : (str, bool)
        The function that divides and rounds down; does it take two numbers?
    dots : bool
        Are sums and functions of entries marked by dots?
    templates, matrices, reductions : mapping
        How operators are called, as `infix.filled` reads it: on entries and along axes, on one
        matrix, and along one axis after the other.
    strict, places, truths : collection of str
        Operators whose operands must have one shape; those that make numbers of the language; and
        those that make truth values.
    absent, floats : str
        The words for what is not given, and for the type of floats.
    """

    brackets = "()"
    floor = ("floor", False)
    dots = False
    templates: Templates
    matrices: Templates
    reductions: Mapping[str, str]
    strict: Collection[str] = ()
    places: Collection[str] = ()
    truths: Collection[str]
    absent: str
    floats: str

    def __init__(self, scope: FunctionScope, integers: bool = False) -> None:
        self.scope = scope
        self.integers = integers

    # --- what languages write themselves ---

    @abstractmethod
    def assign(self, name: str, c: Code) -> Code:
        """As `Language.assign`."""

    @abstractmethod
    def transpose(self, c: Code, perm: Sequence[int]) -> Code:
        """As `Language.transpose`."""

    @abstractmethod
    def broadcast(self, c: Code, shape: Shape) -> Code:
        """As `Language.broadcast`."""

    @abstractmethod
    def literal(self, value: Any) -> str:
        """As `Language.literal`."""

    @abstractmethod
    def row(self, items: Sequence[str]) -> str:
        """Numbers in a row."""

    @abstractmethod
    def sequence(self, items: Sequence[Code]) -> Code:
        """As `Language.sequence`."""

    @abstractmethod
    def counted(self, extent: Extent, axis: int) -> str:
        """0, 1, ... along an axis."""

    @abstractmethod
    def reduced(self, template: str, core: int, c: Code) -> Code:
        """A reduction over the last axes."""

    @abstractmethod
    def stacked(self, template: str, op: Operator, before: int, args: Sequence[Code]) -> Code:
        """A function of matrices for each of a stack of them."""

    # --- values ---

    def named(self, c: Code) -> Code:
        """The value under a name, given now where it has none."""
        return c if c.name else self.assign(self.scope.fresh(), c)

    def variable(self, name: str, shape: Shape) -> Code:
        return Value(name, name=True, view=True, ndim=len(shape))

    def size(self, extent: Extent) -> Code:
        tree = ast.parse(self.scope.extent(extent), mode="eval")
        text = ast.unparse(_Floors(*self.floor).visit(tree))
        plain = text.isidentifier() or text.isdecimal()
        return Value(text if plain else f"({text})", name=text.isidentifier(), weak=True)

    def sizes(self, shape: Shape) -> list[str]:
        return [bare(self.size(extent).text) for extent in shape]

    def index(self, text: str, keys: Sequence[str]) -> str:
        return f"{text}{self.brackets[0]}{', '.join(keys)}{self.brackets[1]}" if keys else text

    def invoke(self, axes: int, function: str, *args: Code | str) -> Value:
        """A call whose result has so many axes."""
        given = ", ".join([arg if isinstance(arg, str) else arg.text for arg in args])
        codes = [arg for arg in args if isinstance(arg, Code)]
        weak = bool(codes) and all(c.weak for c in codes)
        return Value(f"{function}({given})", ndim=axes, weak=weak)

    # --- arithmetic ---

    def multiply(self, factors: Sequence[Code]) -> Code:
        found = factors[0]
        for c in factors[1:]:
            sign = " .* " if ndim(found) and ndim(c) else " * "
            first = f"({found.text})" if sign == " .* " and is_product(found) else found.text
            text = f"{first if found.level >= PRODUCT else operand(found)}{sign}{operand(c)}"
            found = combined(Code(text, PRODUCT, weak=found.weak and c.weak), [found, c])
        return found

    def divide(self, c: Code, divisors: Sequence[Code]) -> Code:
        for d in divisors:
            sign = " ./ " if ndim(d) else " / "
            top = self.numerator(c, d)
            first = operand(top, ATOM if ndim(d) and is_product(top) else PRODUCT)
            code = Code(f"{first}{sign}{operand(d)}", PRODUCT, weak=top.weak and d.weak)
            c = combined(code, [c, d])
        return c

    def numerator(self, c: Code, divisor: Code) -> Code:
        """A value that is divided."""
        return c

    def negate(self, c: Code) -> Code:
        return combined(infix.negative(c), [c])

    def add(self, terms: Sequence[Code]) -> Code:
        mixed = self.dots and (thin(*terms) or len({ndim(c) for c in terms}) > 1)
        signs = (" .+ ", " .- ") if mixed else (" + ", " - ")
        return combined(infix.total(terms, *signs), terms)

    def transposed(self, c: Code) -> Value:
        """A matrix with its axes exchanged, or a vector as a row."""
        text = operand(c)
        plain = text[:-1] if text.endswith("'") and ndim(c) == 2 else f"{text}'"
        lacks = frozenset([1 - k for k in c.lacks]) if isinstance(c, Value) else frozenset()
        row = frozenset([0] if ndim(c) == 1 else [])
        return Value(plain, weak=c.weak, view=True, ndim=2, lacks=lacks | row)

    # --- places that are affine in indices ---

    def end(self, place: Affine, extent: Affine) -> str:
        """A place that counts from 1, from the end where the extent is in it."""
        behind = extent - place
        if place.terms and not behind.terms and behind.constant >= 0:
            return f"end - {behind.constant}" if behind.constant else "end"
        return bare(self.size(extent_from(place)).text)

    def slices(self, whole: Shape, view: View) -> tuple[list[str], list[int] | None]:
        """Integers and slices of all axes, and which axes of the view they leave; or None."""
        keys, found = [], []
        for extent, first, steps in zip(whole, view.starts, view.steps, strict=True):
            start, n = form_of(first) + 1, form_of(extent)
            moving = [k for k, step in enumerate(steps) if step]
            if not moving:
                keys.append(self.end(start, n))
                continue
            (axis, *others), step = moving, steps[moving[0]]
            if others or axis in found:
                return [], None
            found.append(axis)
            last = start + step * (form_of(view.shape[axis]) - 1)
            ends = [self.end(start, n), self.end(last, n)]
            every = step == 1 and start == Affine.of(1) and last == n
            keys.append(":" if every else f":{step}:".join(ends) if step != 1 else ":".join(ends))
        return keys, found

    def affine(self, view: View) -> list[str]:
        """What the functions of places are told of them."""
        return [
            self.row(self.sizes(view.starts)),
            self.matrix(view.steps),
            self.row(self.sizes(view.shape)),
        ]

    def matrix(self, rows: Sequence[Sequence[int]]) -> str:
        shown = [" ".join(map(str, row)) for row in rows]
        return f"[{'; '.join(shown)}]"

    def embedding(self, out: Sequence[int], shape: Shape) -> View:
        """Where the entries stand whose axes are the distinct labels of `out`."""
        distinct = list(dict.fromkeys(out))
        steps = tuple([tuple([int(label == k) for k in distinct]) for label in out])
        extents = dict(zip(out, shape, strict=True))
        return View((0,) * len(out), steps, tuple([extents[k] for k in distinct]))

    # --- conditions ---

    def tests(self, guards: Sequence[Constraint | Congruence], names: dict[str, str]) -> list[str]:
        """Conditions, under names of indices that count from 0."""
        return [self.test(g, names) for g in guards]

    def test(self, g: Constraint | Congruence, names: dict[str, str]) -> str:
        times = " * " if self.dots else " .* "
        return infix.condition(g, names, self.size, times, "mod({}, {}) == 0")

    # --- contractions ---

    def matmul(self, a: Code, b: Code) -> Code:
        if max(ndim(a), ndim(b)) > 2:
            stack = list(range(3, 1 + max(ndim(a), ndim(b))))
            return self.einsum([a, b], [[*stack, 0, 1], [*stack, 1, 2]], [*stack, 0, 2])
        axes = ndim(a) + ndim(b) - 2
        if ndim(a) == 1:
            a, b = (self.transposed(a), b) if ndim(b) == 1 else (self.transposed(b), a)
        left = operand(a, PRODUCT if isinstance(a, Value) and a.matrix else ATOM)
        weak = a.weak and b.weak
        return Value(f"{left} * {operand(b)}", PRODUCT, ndim=axes, matrix=True, weak=weak)

    def tensordot(self, a: Code, b: Code, axes: tuple[list[int], list[int]]) -> Code:
        first = list(range(ndim(a)))
        other = {k: len(first) + k for k in range(ndim(b))} | dict(zip(*axes[::-1], strict=True))
        words = first, [other[k] for k in range(ndim(b))]
        return self.einsum([a, b], words, [k for w in words for k in w if k not in axes[0]])

    def einsum(
        self, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
    ) -> Code:
        return self.invoke(len(out), "contract", self.literal(subscripts(words, out)), *factors)

    # --- operators ---

    def own(self, template: str, args: Sequence[Code]) -> Code:
        return combined(infix.filled(template, {}, args, self.named), args)

    def call(self, op: Operator, args: Sequence[Code]) -> Code | None:
        table: Mapping[str, str | Callable[..., str]] = (
            self.matrices if op.name in self.matrices else self.templates
        )
        if op.name in self.reductions:
            return self.reduced(self.reductions[op.name], op.core, args[0])
        template = table.get(op.name)
        if template is None:
            return None
        if callable(template):
            template = template(*op.params)
        axes = [len(shape) for shape in op.shapes] or [self.of_formula(op.name, args)]
        before = ndim(args[0]) - op.core if args and op.core else 0
        if table is self.matrices and before:
            code: Code = self.stacked(template, op, before, args)
        else:
            if op.name in self.strict and op.shapes:
                args = [self.spread(c, op.shapes[0]) if ndim(c) else c for c in args]
            code = infix.filled(template, self.fields(op, before, args), args, self.named)
        parts = tuple(axes) if len(axes) > 1 else ()
        weak = all(c.weak for c in args) or op.name in self.places
        found = Value(code.text, code.level, ndim=axes[0], parts=parts, weak=weak)
        if not op.core:
            found = replace(found, lacks=lacking(args))
        return replace(found, truth="?") if op.name in self.truths else found

    def fold(self, step: str, operands: tuple[Sequence[Code], ...], turns: Turns) -> Code:
        groups = [self.sequence(group).text for group in operands]
        last = [ndim(c) for c in operands[0][: len(operands[0]) - turns.until]]
        args = [step, *groups, self.size(turns.times).text, str(turns.backward).lower()]
        if turns.bounded:
            args.append(self.absent if turns.made is None else operands[2][turns.made].text)
        found = self.invoke(0, "fold_bounded" if turns.bounded else "fold", *args, self.floats)
        parts = (*last, *[n + 1 for n in last] * 2, *[0] * turns.until)
        return replace(found, weak=False, parts=parts)

    def fields(self, op: Operator, before: int, args: Sequence[Code]) -> dict[str, str]:
        """What templates may ask for."""
        last = list(range(before + 1, before + op.core + 1))
        axes = str(last[0]) if len(last) == 1 else str(last)
        values = {"axes": axes, "axis": str(before + 1), "before": str(before)}
        if op.name == "selection":
            values["new"] = self.counted(bare(op.params[0]), ndim(args[0]))
        return values | {f"p[{k}]": bare(text) for k, text in enumerate(op.params)}

    def of_formula(self, name: str, args: Sequence[Code]) -> int:
        """The axes of what a function in a formula makes."""
        return 3 - ndim(args[0]) if name == "diag" else 2 if name == "eye" else ndim(*args)

    def spread(self, c: Code, shape: Shape) -> Code:
        """The array with all its axes as long as they are."""
        return self.broadcast(c, shape) if thin(c) or ndim(c) < len(shape) else c
