"""Random programs of the index language, and an interpreter of them that is loops over numbers.

A program is a tree of this module's own, which is written out as text for tcalc and run here entry
by entry, every number with its first and second derivatives. Nothing of tcalc is used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Form = dict[str, int]  #: an affine form: a factor for every name, the constant behind ""
Array = np.ndarray[Any, Any]


class OutsideError(Exception):
    """An entry outside of an array was read."""


class Num:
    """A number with its gradient and its Hessian by all inputs."""

    def __init__(self, v: float, g: Any = 0.0, h: Any = 0.0) -> None:
        self.v, self.g, self.h = np.float64(v), g, h

    def chain(self, value: float, slope: float, bend: float) -> Num:
        outer = np.multiply.outer(self.g, self.g)
        return Num(value, slope * self.g, slope * self.h + bend * outer)

    def __add__(self, other: Num) -> Num:
        return Num(self.v + other.v, self.g + other.g, self.h + other.h)

    def __neg__(self) -> Num:
        return Num(-self.v, -self.g, -self.h)

    def __mul__(self, other: Num) -> Num:
        cross = np.multiply.outer(self.g, other.g)
        cross = cross + cross.T if np.ndim(cross) == 2 else 0.0
        h = self.h * other.v + self.v * other.h + cross
        return Num(self.v * other.v, self.g * other.v + self.v * other.g, h)


FUNCTIONS: dict[str, Callable[[Num], Num]] = {
    "exp": lambda x: x.chain(np.exp(x.v), np.exp(x.v), np.exp(x.v)),
    "sin": lambda x: x.chain(np.sin(x.v), np.cos(x.v), -np.sin(x.v)),
    "tanh": lambda x: x.chain(
        np.tanh(x.v), 1 - np.tanh(x.v) ** 2, -2 * np.tanh(x.v) * (1 - np.tanh(x.v) ** 2)
    ),
    "log": lambda x: x.chain(np.log(x.v), 1 / x.v, -1 / x.v**2),
    "sqrt": lambda x: x.chain(x.v**0.5, 0.5 * x.v**-0.5, -0.25 * x.v**-1.5),
    "square": lambda x: x * x,
}


# --- trees ----------------------------------------------------------------------------------------


def at(form: Form, env: Mapping[str, int]) -> int:
    return sum(c * (env[name] if name else 1) for name, c in form.items())


def shown(form: Form) -> str:
    terms = [(name, c) for name, c in form.items() if c]
    text = ""
    for name, c in terms:
        size = name if abs(c) == 1 and name else f"{abs(c)}*{name}" if name else str(abs(c))
        text += ("-" if c < 0 else "+" if text else "") + size
    return text or "0"


@dataclass
class Bound:
    """A bound: a form, or max, min, floor(form/by), ceil(form/by) of some."""

    kind: str
    forms: list[Form]
    by: int = 1

    def at(self, env: Mapping[str, int]) -> int:
        values = [at(form, env) for form in self.forms]
        if self.kind == "floor":
            return values[0] // self.by
        if self.kind == "ceil":
            return -(-values[0] // self.by)
        return max(values) if self.kind == "max" else min(values)

    def __str__(self) -> str:
        texts = [shown(form) for form in self.forms]
        if self.kind in ("floor", "ceil"):
            return f"{self.kind}(({texts[0]})/{self.by})"
        return texts[0] if len(texts) == 1 else f"{self.kind}({', '.join(texts)})"


@dataclass
class Range:
    """An index; `shown` is False where its range follows from use."""

    name: str
    low: Bound
    high: Bound
    shown: bool = True

    def values(self, env: Mapping[str, int]) -> range:
        return range(self.low.at(env), self.high.at(env) + 1)

    def __str__(self) -> str:
        return f"{self.name}={self.low}..{self.high}" if self.shown else self.name


@dataclass
class Read:
    array: str
    subs: list[tuple[Form, Form | None]]

    def __str__(self) -> str:
        texts = [shown(f) if m is None else f"mod({shown(f)}, {shown(m)})" for f, m in self.subs]
        return f"{self.array}[{', '.join(texts)}]" if texts else self.array


@dataclass
class Op:
    """A node: num, idx, read, add, sub, mul, div, pow, call, bind, guard, where."""

    kind: str
    args: list[Any] = field(default_factory=list)
    name: str = ""
    ranges: list[Range] = field(default_factory=list)

    def __str__(self) -> str:
        a = [str(arg) for arg in self.args]
        infix = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "^"}
        if self.kind in infix:
            return f"({a[0]}) {infix[self.kind]} ({a[1]})"
        if self.kind == "call":
            return f"{self.name}({', '.join(a)})"
        if self.kind == "bind":
            return f"{self.name}[{', '.join(map(str, self.ranges))}]({a[0]})"
        if self.kind == "guard":
            return "[" + self.name.join(f"{shown(f)} {o} {shown(g)}" for f, o, g in self.args) + "]"
        if self.kind == "where":
            (f, o, g), *_ = self.args
            return f"where({shown(f)} {o} {shown(g)}, {a[1]}, {a[2]})"
        return a[0] if self.kind in ("num", "read") else self.name


@dataclass
class Program:
    """Statements (name, indices, value), the last one the result; declared shapes; sizes."""

    statements: list[tuple[str, list[Range], Op]]
    declared: dict[str, tuple[Form, ...]]
    sizes: dict[str, int]

    @property
    def text(self) -> str:
        lines = []
        for name, ranges, value in self.statements:
            indices = f"[{', '.join(map(str, ranges))}]" if ranges else ""
            lines.append(f"{name}{indices} = {value}")
        return "\n".join(lines)

    def shapes(self) -> dict[str, tuple[int | str, ...]]:
        found = {}
        for name, shape in self.declared.items():
            found[name] = tuple(
                at(f, {}) if not any(f.get(d) for d in self.sizes) else shown(f) for f in shape
            )
        return found

    @property
    def sound(self) -> bool:
        """Is no extent negative?"""
        return all(at(f, self.sizes) >= 0 for shape in self.declared.values() for f in shape)

    def values(self, rng: np.random.Generator) -> dict[str, Array]:
        return {
            name: rng.uniform(0.5, 1.5, [at(f, self.sizes) for f in shape])
            for name, shape in self.declared.items()
        }


# --- the interpreter ------------------------------------------------------------------------------


class Loops:
    """Runs a program entry by entry."""

    def __init__(self, program: Program, values: Mapping[str, Array]) -> None:
        self.program = program
        self.arrays: dict[str, dict[tuple[int, ...], Num]] = {}
        total = sum(a.size for a in values.values())
        count = 0
        for name, a in values.items():
            self.arrays[name] = {}
            for place in np.ndindex(*a.shape):
                g = np.zeros(total)
                g[count] = 1
                count += 1
                self.arrays[name][place] = Num(float(a[place]), g, np.zeros((total, total)))

    def run(self) -> tuple[list[int], list[Num]]:
        """The shape of the result, and its entries."""
        for name, ranges, value in self.program.statements:
            spans = [r.values(self.program.sizes) for r in ranges]
            self.arrays[name] = {}
            for place in itertools.product(*spans):
                env = {
                    **self.program.sizes,
                    **dict(zip([r.name for r in ranges], place, strict=True)),
                }
                self.arrays[name][place] = self.value(value, env)
        return [len(span) for span in spans], list(self.arrays[name].values())

    def value(self, e: Op, env: dict[str, int]) -> Num:
        if e.kind == "num":
            return Num(float(e.args[0]))
        if e.kind == "idx":
            return Num(float(env[e.name]))
        if e.kind == "read":
            return self.read(e.args[0], env)
        if e.kind == "bind":
            return self.bind(e, env)
        if e.kind == "guard":
            return Num(float(all(holds(c, env) for c in e.args)))
        if e.kind == "where":
            return self.value(e.args[1 if holds(e.args[0], env) else 2], env)
        if e.kind == "mul":  # nothing else is read where a guard is 0
            guards = [f for f in factors(e) if f.kind == "guard"]
            if not all(self.value(g, env).v for g in guards):
                return Num(0.0)
        a = [self.value(arg, env) for arg in e.args]
        if e.kind == "call" and e.name in ("max", "min"):
            return (max if e.name == "max" else min)(a, key=lambda x: x.v)
        return a[0].chain(*power(a[0].v, int(a[1].v))) if e.kind == "pow" else arithmetic(e, a)

    def read(self, r: Read, env: dict[str, int]) -> Num:
        place = tuple(at(f, env) if m is None else at(f, env) % at(m, env) for f, m in r.subs)
        if place not in self.arrays[r.array]:
            raise OutsideError(f"{r} at {place}")
        return self.arrays[r.array][place]

    def bind(self, e: Op, env: dict[str, int]) -> Num:
        entries = [self.value(e.args[0], inner) for inner in nested(e.ranges, env)]
        if e.name in ("max", "min"):
            if not entries:
                return Num(-np.inf if e.name == "max" else np.inf)
            return (max if e.name == "max" else min)(entries, key=lambda x: x.v)
        total = Num(0.0 if e.name == "sum" else 1.0)
        for x in entries:
            total = total + x if e.name == "sum" else total * x
        return total


def factors(e: Op) -> list[Op]:
    """The factors of a product, those of products in it too."""
    return [f for arg in e.args for f in factors(arg)] if e.kind == "mul" else [e]


def nested(ranges: list[Range], env: dict[str, int]) -> Iterator[dict[str, int]]:
    if not ranges:
        yield env
        return
    for k in ranges[0].values(env):
        yield from nested(ranges[1:], {**env, ranges[0].name: k})


def holds(condition: tuple[Form, str, Form], env: Mapping[str, int]) -> bool:
    a, b = at(condition[0], env), at(condition[2], env)
    return {"==": a == b, "!=": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}[
        condition[1]
    ]


def power(v: float, n: int) -> tuple[float, float, float]:
    return v**n, n * v ** (n - 1) if n else 0.0, n * (n - 1) * v ** (n - 2) if n > 1 else 0.0


def arithmetic(e: Op, a: list[Num]) -> Num:
    if e.kind == "call":
        return FUNCTIONS[e.name](a[0])
    if e.kind == "add":
        return a[0] + a[1]
    if e.kind == "sub":
        return a[0] + -a[1]
    if e.kind == "div":
        inverse = a[1].chain(1 / a[1].v, -1 / a[1].v ** 2, 2 / a[1].v ** 3)
        return a[0] * inverse
    return a[0] * a[1]
