"""C99 source: arrays of the caller, one workspace, loops; matrix products by CBLAS on request."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...graph.extents import Extent, Shape, extent_names
from ...integers.affine import Congruence, Constraint, factors_of
from . import infix
from .c_check import check_text
from .c_module import RESERVED, function_lines, module_text
from .c_folds import folded
from .c_nests import Array, Call, Line, Node, Statement, atom, nest
from .c_operators import entry, real
from .c_routines import routine_call
from .c_values import (
    Strided,
    Value,
    added,
    affine,
    common_shape,
    entry_of,
    in_memory,
    lifted,
    pulled,
    scalar,
    value,
    viewed,
)
from .infix import operand
from .language import ATOM, PRODUCT, SUM, Check, Code, FunctionText, Operator, named
from .places import View
from .scope import FunctionScope, unlike

#: Names of indices, in the order in which loops take them.
INDICES = ("i", "j", "k", "l", "p", "q", "r", "s", "u", "v")


class C:
    """C99 source, arrays row by row."""

    name = "C"
    reserved = RESERVED
    start = "v"
    width = 68

    def __init__(self, scope: FunctionScope, integers: bool = False) -> None:
        self.scope = scope
        self.integers = integers
        self.kind = "ptrdiff_t" if integers else "real"
        dims = extent_names([n for v in scope.variables.values() for n in v.shape])
        self.indices = [i for i in INDICES if i not in dims and i not in scope.variables]
        scope.taken.update(self.indices)
        self.claimed: list[str] = []
        self.steps: dict[str, FunctionText] = {}
        self.text = ""

    # --- statements ---

    def emit(self, *nodes: Node, made: Sequence[Array] = ()) -> None:
        self.scope.lines.append(Statement(list(nodes), list(made)))

    def index(self, count: int) -> list[str]:
        """Names of that many indices."""
        while len(self.indices) < count:
            self.indices.append(unlike(f"i{len(self.indices)}_", self.scope.taken, "_"))
        return self.indices[:count]

    def storage(
        self, shape: Sequence[str], name: str = "", kind: str = ""
    ) -> tuple[Array, Value]:
        """An array to be filled."""
        array = Array(name or self.scope.fresh(), tuple(shape), kind or self.kind)
        return array, in_memory(array.name, shape, whole=True)

    def filled(self, shape: Sequence[str], c: Value, name: str = "", kind: str = "") -> Value:
        """The entries of a value in an array, or a number, under a name."""
        if not shape:
            local = name or self.scope.fresh()
            self.emit(Line(local, "=", entry_of(c, ()).text, f"const {kind or self.kind}"))
            return replace(in_memory(local, ()), weak=c.weak, whole=True)
        array, found = self.storage(shape, name, kind)
        index = self.index(len(shape))
        line = Line(found.entry(index).text, "=", entry_of(c, index).text)
        self.emit(*nest(index, shape, [line]), made=[array])
        return found

    def zeros(self, shape: Sequence[str]) -> Value:
        return self.filled(shape, scalar("0")) if shape else self.zero()

    def zero(self) -> Value:
        name = self.scope.fresh()
        self.emit(Line(name, "=", "0", self.kind))
        return replace(in_memory(name, ()), whole=True)

    # --- values ---

    def variable(self, name: str, shape: Shape) -> Code:
        found = replace(in_memory(name, self.shape(shape)), view=True)
        declared = self.scope.variables.get(name)
        if (declared is not None and declared.integral) == self.integers:
            return found
        kind = self.kind
        return pulled(found.shape, lambda index: Code(f"({kind}){found.entry(index).text}"))

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

    def extent(self, extent: Extent) -> str:
        """An extent as an integer of C."""
        return _integer(ast.parse(self.scope.extent(extent), mode="eval").body).text

    def shape(self, shape: Shape) -> tuple[str, ...]:
        return tuple([self.extent(n) for n in shape])

    def literal(self, value: Any) -> str:
        return repr(value)

    def functions(self, names: Sequence[str]) -> str:
        return ", ".join(names)

    def assign(self, name: str, c: Code) -> Code:
        given = value(c)
        if given.extent:
            if name != given.extent:
                self.emit(Line(name, "=", given.extent, "const ptrdiff_t"))
            return given
        return self.filled(given.shape, given, name)

    def part(self, c: Code, index: int) -> Code:
        return value(c).parts[index]

    def plain(self, c: Code) -> Value:
        """A value that costs little to read again: one with a function in it gets a name."""
        given = value(c)
        costly = given.memory is None and any(sign in given.text for sign in ("(", " / "))
        return value(named(self, given)) if costly and given.shape else given

    # --- views ---

    def transpose(self, c: Code, perm: Sequence[int]) -> Code:
        v = value(c)
        if list(perm) == list(range(len(perm))):
            return c
        found = viewed(
            v, [v.shape[k] for k in perm], lambda index: [index[perm.index(k)] for k in range(len(perm))]
        )  # fmt: skip
        if v.memory is None:
            return found
        strides = tuple([v.memory.strides[k] for k in perm])
        return replace(found, memory=replace(v.memory, strides=strides))

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
        v = self.plain(c)
        return pulled(self.shape(shape), lambda index: entry_of(v, index))

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
        v, extents = value(c), self.shape(shape)
        found = self.zeros(extents)
        labels = list(dict.fromkeys(out))
        index = self.index(len(labels))
        target = found.entry([index[labels.index(label)] for label in out]).text
        over = [extents[out.index(label)] for label in labels]
        self.emit(*nest(index, over, [Line(target, "=", entry_of(v, index).text)]))
        return found

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
        overlaps = sum([any(steps) for steps in view.steps]) < len(view.shape)
        return replace(found, overlaps=overlaps or any(len([s for s in steps if s]) > 1 for steps in view.steps))

    def pad(self, c: Code, shape: Shape, margins: Sequence[tuple[Extent, Extent]]) -> Code:
        v, ends = value(c), [self.shape(pair) for pair in margins]
        inner = self.shape(shape)
        whole = [added(*[atom(n) for n in (a, n, b) if n != "0"]) for n, (a, b) in zip(inner, ends, strict=True)]
        found = self.zeros(whole)
        index = self.index(len(inner))
        target = found.entry([added(i, a) for i, (a, _) in zip(index, ends, strict=True)]).text
        self.emit(*nest(index, inner, [Line(target, "=", entry_of(v, index).text)]))
        return found

    def place(self, c: Code, whole: Shape, view: View, onto: Code | None = None) -> Code:
        v, found = value(c), value(onto) if onto is not None else self.zeros(self.shape(whole))
        index, starts = self.index(len(view.shape)), self.shape(view.starts)
        places = [affine(a, steps, index) for a, steps in zip(starts, view.steps, strict=True)]
        line = Line(found.entry(places).text, "+=", entry_of(v, index).text)
        self.emit(*nest(index, self.shape(view.shape), [line]))
        return found

    # --- integers as indices ---

    def take(self, c: Code, keys: Sequence[Code | None]) -> Code:
        v = value(c)
        given = [value(key) for key in keys if key is not None]
        shared = common_shape(given)
        places = [k for k, key in enumerate(keys) if key is not None]
        rest = [k for k in range(len(v.shape)) if k not in places]
        apart = places[-1] - places[0] + 1 > len(places)
        at = 0 if apart else places[0]
        order: list[int | None] = [*rest[:at], *[None] * len(shared), *rest[at:]]
        extents = iter(shared)
        shape = [next(extents) if k is None else v.shape[k] for k in order]

        def entries(index: Sequence[str]) -> list[str]:
            common = list(index[at : at + len(shared)])
            kept = dict(zip(rest, [*index[:at], *index[at + len(shared) :]], strict=True))
            return [
                kept[k] if k in kept else entry_of(value(keys[k]), common).text  # type: ignore[arg-type]
                for k in range(len(v.shape))
            ]

        return viewed(v, shape, entries)

    def segment_sum(self, c: Code, index: Code, extent: Extent) -> Code:
        v, key = value(c), value(index)
        rest = v.shape[len(key.shape) :]
        found = self.zeros((self.extent(extent), *rest))
        names = self.index(len(v.shape))
        place_ = entry_of(key, names[: len(key.shape)]).text
        target = found.entry([place_, *names[len(key.shape) :]]).text
        self.emit(*nest(names, v.shape, [Line(target, "+=", entry_of(v, names).text)]))
        return found

    def indicator(self, shape: Shape, guards: Sequence[Constraint | Congruence]) -> Code:
        def entry(index: Sequence[str]) -> Code:
            tests = [self._test(g, index) for g in guards]
            return Code(f"({' && '.join(tests) or '1'})", condition=" && ".join(tests) or "1")

        return pulled(self.shape(shape), entry)

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
            return self.product(value(a), value(b))
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

    def product(self, a: Value, b: Value) -> Value:
        """A product of matrices."""
        (left, ai, ak), (right, bk, bj) = self.matrix(a), self.matrix(b)
        array, found = self.storage((a.shape[0], b.shape[1]))
        sizes = f"{a.shape[0]}, {b.shape[1]}, {a.shape[1]}"
        call = f"product({sizes}, {left}, {ai}, {ak}, {right}, {bk}, {bj}, {array.name})"
        self.emit(Call(call, (array.name,)), made=[array])
        return found

    def matrix(self, v: Value) -> tuple[str, str, str]:
        """A matrix in memory: a pointer, and how far rows and columns are apart."""
        if v.memory is None or "1" not in v.memory.strides or self.integers:
            v = self.filled(v.shape, v)
        assert v.memory is not None
        return (v.memory.pointer, *v.memory.strides)  # type: ignore[return-value]

    def einsum(
        self, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
    ) -> Code:
        every = list(dict.fromkeys([*out, *[k for word in words for k in word]]))
        values = [
            self.plain(c) if len(set(w)) < len(every) else value(c)
            for c, w in zip(factors, words, strict=True)
        ]
        extents: dict[int, str] = {}
        for v, word in zip(values, words, strict=True):
            for label, n in zip(word, v.shape, strict=True):
                if extents.get(label, "1") == "1":
                    extents[label] = n
        names = dict(zip(every, self.index(len(every)), strict=True))
        entries = [entry_of(v, [names[k] for k in w]) for v, w in zip(values, words, strict=True)]
        body = infix.product([e for e in entries if e.text != "1"] or entries).text
        shape = tuple([extents[label] for label in out])
        order = _order(body, [names[k] for k in out], [names[k] for k in every if k not in out])
        over = {names[k]: extents[k] for k in every}
        if not out:
            found = self.zero()
            self.emit(*nest(order, [over[i] for i in order], [Line(found.text, "+=", body)]))
            return found
        array, found = self.storage(shape)
        target = found.entry([names[k] for k in out]).text
        add: Node = Line(target, "+=", body)
        inner = order[len(out) - 1 :] if order[-1] in [names[k] for k in out] else order[len(out) :]
        outer = order[: len(order) - len(inner)]
        own = [i for i in inner if i in [names[k] for k in out]]
        start = nest(own, [over[i] for i in own], [Line(target, "=", "0")])
        adding = nest(inner, [over[i] for i in inner], [add])
        self.emit(*nest(outer, [over[i] for i in outer], [*start, *adding]), made=[array])
        return found

    # --- operators ---

    def call(self, op: Operator, args: Sequence[Code]) -> Code | None:
        written = entry(op.name, self.integers)
        if written is None:
            return routine_call(self, op, [value(a) for a in args])
        return lifted(written, self.mixed(args))

    def constant(self, c: Code) -> Code:
        return c

    def scalar(self, c: Code) -> Code:
        return replace(value(c), weak=True)

    def truth(self, c: Code) -> Code:
        return c

    def fold(
        self, step: str, operands: tuple[Sequence[Code], ...], times: Extent, backward: bool
    ) -> Code:
        return folded(self, self.steps[step], operands, self.extent(times), backward)

    # --- the module ---

    def result(self, c: Code, shape: Shape) -> Code:
        v, extents = value(c), self.shape(shape)
        if v.whole and v.name and v.shape == extents and not self.integers and v.text not in self.claimed:
            self.claimed.append(v.text)
            return v
        found = self.filled(extents, v)
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
        self.steps[f.name] = f
        return []

    def module(self, functions: Sequence[list[str]]) -> str:
        self.text = module_text(functions)
        return self.text

    def check(self, check: Check) -> str:
        return check_text(self, check, self.text)


def _label(key: Any, place: int) -> str:
    """A key as part of a name."""
    text = str(key)
    return text if re.fullmatch(r"[A-Za-z]\w{0,30}", text, re.ASCII) else str(place)


def _order(body: str, out: list[str], summed: list[str]) -> list[str]:
    """The loops, outermost first: innermost runs along memory, where one can."""
    accesses = re.findall(r"\[([^\[\]]*)\]", body)

    def along(i: str) -> tuple[int, int]:
        rows = sum([a == i or a.endswith(f" + {i}") for a in accesses])
        return rows, sum([bool(re.search(rf"\b{i}\b", a)) for a in accesses]) - rows

    if not out or not summed:
        return [*out, *summed]
    apart = {i: along(i)[1] for i in (*out, *summed)}
    fast = [i for i in out if not apart[i] and along(i)[0]]
    if fast:
        last = fast[-1]
        return [*[i for i in out if i != last], *summed, last]
    last = max(summed, key=lambda i: (along(i)[0] - apart[i], summed.index(i)))
    return [*out, *[i for i in summed if i != last], last]


def _integer(tree: ast.expr) -> Code:
    """An extent in C."""
    match tree:
        case ast.Constant():
            return Code(str(tree.value))
        case ast.Name():
            return Code(tree.id)
        case ast.Call(func=ast.Name(id=name)):
            args = [_integer(arg) for arg in tree.args]
            found = args[0]
            for other in args[1:]:
                found = Code(f"index_{name}({found.text}, {other.text})")
            return found
        case ast.UnaryOp(op=ast.USub()):
            return infix.negative(_integer(tree.operand))
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _integer(left), _integer(right)
            if isinstance(op, ast.Add):
                return infix.total([a, b]) if not b.text.startswith("-") else Code(f"{a.text} + ({b.text})", SUM)
            if isinstance(op, ast.Sub):
                return Code(f"{a.text} - {operand(b, PRODUCT)}", SUM)
            if isinstance(op, ast.Mult):
                return infix.product([a, b])
            if isinstance(op, ast.FloorDiv):
                return Code(f"{operand(a)} / {operand(b)}", PRODUCT)
            if isinstance(op, ast.Pow):
                return infix.product([a] * int(b.text))
    raise ValueError(f"the extent {ast.unparse(tree)} has no source")
