"""Random expressions over all node kinds: every mode and order against naive loops and jax.

Without settings the same expressions are drawn every time. `TCALC_RANDOM` is a number of fresh
ones; `TCALC_SEED` replays one: the message of a failure names it.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tests import jets
from tests.cases import Reference

FRESH = "TCALC_RANDOM" in os.environ
COUNT = int(os.environ.get("TCALC_RANDOM", "320"))
SEED = os.environ.get("TCALC_SEED")
BATCHES = 1 if SEED else 16
MODES = ("forward", "reverse", "cross-country", "auto")
LIMIT = 1e5

#: Seeds whose expressions were wrong once.
CORPUS = [2021, 3199, 4065, 5113, 6075, 225331026622]

#: Elementwise functions that are not one function of tcalc and jax.
COMPOSED = {
    "cube": lambda xp, a: a**3,
    "halved": lambda xp, a: a / 2,
    "log1psq": lambda xp, a: xp.log(1 + a * a),
    "rootsq": lambda xp, a: xp.sqrt(a * a + 1),
}
UNARY = sorted(set(jets.ELEMENTWISE) - {"exp", "log", "reciprocal"})
LETTERS = "ijklabxyzn"


@dataclass
class Program:
    """A straight-line program: data, which three interpreters run and a failure prints."""

    shapes: dict[str, tuple[int | str, ...]]
    extents: dict[str, int]
    steps: list[tuple[str, tuple[int, ...], dict[str, Any]]] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{name}: {shape}" for name, shape in self.shapes.items()]
        first = len(lines)
        lines += [
            f"{k + first}: {op} {places} {more}" for k, (op, places, more) in enumerate(self.steps)
        ]
        return f"extents {self.extents}\n" + "\n".join(lines)


# --- generation -----------------------------------------------------------------------------------


class Generator:
    """Grows a program step by step, knowing the shapes of all values so far."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        extent = lambda: int(self.rng.choice([0, 1, 2, 3], p=[0.05, 0.1, 0.5, 0.35]))  # noqa: E731
        self.extents = {"m": extent(), "n": extent()}
        self.kinds: list[int | str] = ["m", "n", 2, extent()]
        shapes: dict[str, tuple[int | str, ...]] = {}
        for name in "uvw"[: self.rng.integers(1, 4)]:
            ndim = int(self.rng.choice([0, 1, 2], p=[0.15, 0.45, 0.4]))
            shapes[name] = tuple([self.pick(self.kinds) for _ in range(ndim)])
        self.program = Program(shapes, self.extents)
        self.shapes = list(shapes.values())

    def pick(self, items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def size(self, extent: int | str) -> int:
        return extent if isinstance(extent, int) else self.extents[extent]

    def emit(self, op: str, places: Any, shape: Any, **more: Any) -> None:
        self.program.steps.append((op, tuple(places), more))
        self.shapes.append(tuple(shape))

    def value(self) -> int:
        """A value so far: a recent one more often, so that expressions become deep."""
        n = len(self.shapes)
        return n - 1 - min(n - 1, int(self.rng.geometric(0.35)) - 1)

    def run(self, steps: int) -> Program:
        moves = [self.einsum, self.unary, self.binary, self.outer_binary, self.reduction]
        moves += [self.einsum, self.unary, self.constant, self.view, self.branch, self.matrix]
        while len(self.program.steps) < steps:
            self.pick(moves)()
        return self.program

    def unary(self) -> None:
        k = self.value()
        self.emit(self.pick(UNARY), [k], self.shapes[k])

    def binary(self) -> None:
        a = self.value()
        same = [k for k, s in enumerate(self.shapes) if s in (self.shapes[a], ())]
        b = self.pick(same)
        places = [a, b] if self.chance(0.5) else [b, a]
        self.emit(self.pick(["add", "subtract", "multiply", "ratio"]), places, self.shapes[a])

    def outer_binary(self) -> None:
        a, b = self.value(), self.value()
        if len(self.shapes[a]) == 1 and len(self.shapes[b]) == 1:
            op = self.pick(["add", "subtract", "multiply", "ratio"])
            self.emit("outer " + op, [a, b], self.shapes[a] + self.shapes[b])

    def einsum(self) -> None:
        count = int(self.rng.choice([0, 1, 2, 3], p=[0.05, 0.3, 0.45, 0.2]))
        places = [self.value() for _ in range(count)]
        letters = list(self.rng.permutation(list(LETTERS)))
        extents: dict[str, int | str] = {}
        words = []
        for k in places:
            word = ""
            for extent in self.shapes[k]:
                fitting = [c for c, e in extents.items() if e == extent]
                fresh = not fitting or self.chance(0.35)
                letter = (
                    letters.pop() if fresh and letters else self.pick(fitting) if fitting else ""
                )
                if not letter:
                    return
                extents[letter] = extent
                word += letter
            words.append(word)
        sizes: dict[str, int | str] = {}
        out = [c for c in extents if self.chance(0.5)]
        if letters and self.chance(0.25):
            sizes[letters.pop()] = self.pick(self.kinds)
            out += list(sizes)
        if out and self.chance(0.2):
            out.append(self.pick(out))
        extents.update(sizes)
        out = [str(c) for c in self.rng.permutation(out)][:4]
        if len(extents) <= 5:
            sizes = {c: e for c, e in sizes.items() if c in out}
            spec = ",".join(words) + "->" + "".join(out)
            self.emit("einsum", places, [extents[c] for c in out], spec=spec, sizes=sizes)

    def reduction(self) -> None:
        k = self.value()
        shape = self.shapes[k]
        if not shape:
            return
        axis = int(self.rng.integers(len(shape)))
        names = ["sum", "cumsum"]
        if self.size(shape[axis]):
            names += ["sum", "mean", "logsumexp", "prod", "max", "min"]
        name = self.pick(names)
        rest = shape if name == "cumsum" else shape[:axis] + shape[axis + 1 :]
        self.emit("reduce " + name, [k], rest, axis=axis)

    def constant(self) -> None:
        shape = self.pick(self.shapes)
        kind = self.pick(["number", "ones", "const", "eye"])
        if kind == "const" and all(isinstance(e, int) for e in shape):
            self.emit(
                "const", [], shape, data=self.rng.normal(size=shape).round(2).tolist(), like=shape
            )
        elif kind == "ones":
            self.emit("ones", [], shape, like=shape)
        elif kind == "eye" and shape:
            self.emit("eye", [], (shape[0], shape[0]), extent=shape[0])
        else:
            self.emit("number", [], (), number=float(self.pick([-1, 0.5, 2, 3])))

    def view(self) -> None:
        k = self.value()
        shape = self.shapes[k]
        square = len(shape) == 2 and shape[0] == shape[1]
        if len(shape) == 1 and self.chance(0.3):
            self.emit("diag", [k], shape * 2)
        elif square and self.chance(0.4):
            self.emit("diagonal", [k], shape[:1])
        elif len(shape) > 1:
            axes = [int(a) for a in self.rng.permutation(len(shape))]
            self.emit("transpose", [k], [shape[a] for a in axes], axes=axes)

    def branch(self) -> None:
        a, c = self.value(), self.value()
        same = [k for k, s in enumerate(self.shapes) if s == self.shapes[a]]
        condition = c if self.shapes[c] in (self.shapes[a], ()) else self.pick(same)
        self.emit("branch", [condition, a, self.pick(same)], self.shapes[a])

    def matrix(self) -> None:
        matrices = [k for k, s in enumerate(self.shapes) if len(s) == 2]
        if matrices:
            k = self.pick(matrices)
            n = self.shapes[k][0]
            op = self.pick(["inv", "logdet"])
            self.emit(op, [k], (n, n) if op == "inv" else (), extent=n)


# --- interpreters ---------------------------------------------------------------------------------


def build(program: Program, xp: Any, values: list[Any], extent: Any) -> Any:
    """The program in tcalc or jax.numpy; `extent` gives what an extent is called there."""
    two = {"ratio": lambda a, b: a / (1 + b * b)}
    for op, places, more in program.steps:
        args = [values[k] for k in places]
        kind, _, name = op.partition(" ")
        if op == "einsum":
            sizes = {c: extent(e) for c, e in more["sizes"].items()}
            found = xp.einsum(more["spec"], *args, sizes=sizes)
        elif kind == "reduce":
            found = getattr(xp, name)(args[0], axis=more["axis"])
        elif kind == "outer":
            found = (two.get(name) or getattr(xp, name))(args[0][:, None], args[1][None, :])
        elif op in COMPOSED:
            found = COMPOSED[op](xp, args[0])
        elif op in two:
            found = two[op](*args)
        elif op == "number":
            found = xp.const(more["number"])
        elif op == "const":
            found = xp.const(np.array(more["data"], dtype=float).reshape(more["like"]))
        elif op == "ones":
            found = xp.ones(tuple([extent(e) for e in more["like"]]))
        elif op == "eye":
            found = xp.eye(extent(more["extent"]))
        elif op == "branch":
            found = xp.where(args[0] > 0.1, args[1], args[2])
        elif op in ("inv", "logdet"):
            matrix = args[0] @ args[0].T + xp.eye(extent(more["extent"]))
            found = getattr(xp, op)(matrix)
        elif op == "transpose":
            found = xp.transpose(args[0], more["axes"])
        else:
            found = getattr(xp, op)(*args)
        values.append(found)
    return values[-1]


def naive(program: Program, values: list[jets.Jet], total: int) -> tuple[jets.Jet, float]:
    """The program on jets, and the largest number on the way times the worst condition."""
    condition = 1.0
    size = lambda e: e if isinstance(e, int) else program.extents[e]  # noqa: E731
    two = {
        "add": jets.plus,
        "subtract": lambda a, b: jets.plus(a, b.map(np.negative)),
        "multiply": jets.times,
        "ratio": lambda a, b: jets.times(
            a,
            jets.ELEMENTWISE["reciprocal"](
                jets.plus(jets.constant(np.ones(b.v.shape), total), jets.times(b, b))
            ),
        ),
    }
    for op, places, more in program.steps:
        args = [values[k] for k in places]
        kind, _, name = op.partition(" ")
        if op == "einsum":
            sizes = {c: size(e) for c, e in more["sizes"].items()}
            found = jets.einsum(more["spec"], *args, sizes=sizes, total=total)
        elif kind == "reduce":
            found = jets.reduce(name, args[0], more["axis"])
        elif kind == "outer":
            lifted = [args[0].map(lambda a: a[:, None]), args[1].map(lambda a: a[None, :])]
            found = two[name](*jets.aligned(lifted))
        elif op in two:
            found = two[op](*jets.aligned(args))
        elif op in jets.ELEMENTWISE:
            found = jets.ELEMENTWISE[op](args[0])
        elif op == "number":
            found = jets.constant(more["number"], total)
        elif op == "const":
            found = jets.constant(np.array(more["data"], dtype=float).reshape(more["like"]), total)
        elif op == "ones":
            found = jets.constant(np.ones([size(e) for e in more["like"]]), total)
        elif op == "eye":
            found = jets.constant(np.eye(size(more["extent"])), total)
        elif op == "branch":
            c, a, b = jets.aligned(args)
            found = jets.choose(c.v > 0.1, a, b)
        elif op in ("inv", "logdet"):
            gram = jets.einsum("ij,kj->ik", args[0], args[0], sizes={}, total=total)
            matrix = jets.plus(gram, jets.constant(np.eye(size(more["extent"])), total))
            if matrix.v.size:
                condition = max(condition, float(np.linalg.cond(matrix.v)))
            found = jets.inverse(matrix) if op == "inv" else jets.logdet(matrix)
        elif op == "transpose":
            axes = more["axes"]
            found = args[0].map(lambda a: np.transpose(a, [*axes, *range(len(axes), a.ndim)]))  # noqa: B023
        elif op == "diag":
            found = jets.einsum("i->ii", args[0], sizes={}, total=total)
        else:
            assert op == "diagonal"
            found = jets.einsum("ii->i", args[0], sizes={}, total=total)
        values.append(found)
    return values[-1], condition * max(v.largest for v in values)


# --- the tests ------------------------------------------------------------------------------------


def check(seed: int, with_jax: bool = False) -> bool:
    """One expression in all modes; False where its numbers are too large to compare."""
    generator = Generator(seed)
    program = generator.run(int(generator.rng.integers(2, 9)))
    arrays = {
        name: generator.rng.normal(size=[generator.size(e) for e in shape])
        for name, shape in program.shapes.items()
    }
    with np.errstate(all="ignore"):
        inputs, places = jets.inputs(arrays)
        total = sum(a.size for a in arrays.values())
        wanted, largest = naive(program, list(inputs.values()), total)
    if not largest < LIMIT:
        return False
    variables = {name: tc.var(name, shape) for name, shape in program.shapes.items()}
    e = build(program, tc, list(variables.values()), lambda extent: extent)
    bind = {**arrays, **program.extents}
    compare = Comparison(bind, 1e-11 * max(1.0, largest))
    compare(e, wanted.v, "value")
    for name, x in variables.items():
        shape = wanted.v.shape + arrays[name].shape
        first = wanted.g[..., places[name]].reshape(shape)
        second = wanted.h[..., places[name], places[name]].reshape(shape + arrays[name].shape)
        for mode in MODES:
            compare(tc.derivative(e, x, 1, mode), first, f"d/d{name} {mode}")
            compare(tc.derivative(e, x, 2, mode), second, f"d2/d{name}2 {mode}")
    a, b = generator.pick(list(variables)), generator.pick(list(variables))
    inner, outer = generator.pick(MODES), generator.pick(MODES)
    mixed = wanted.h[..., places[a], places[b]].reshape(
        wanted.v.shape + arrays[a].shape + arrays[b].shape
    )
    nested = tc.jacobian(tc.jacobian(e, variables[a], mode=inner), variables[b], mode=outer)
    compare(nested, mixed, f"d/d{a} {inner}, then d/d{b} {outer}")
    if with_jax:
        compute = lambda data: build(program, Reference, [data[k] for k in arrays], generator.size)  # noqa: E731
        found = jax.jit(lambda data: (compute(data), jax.jacrev(compute)(data)))(arrays)
        np.testing.assert_allclose(wanted.v, found[0], rtol=0, atol=compare.tolerance)
        for name in arrays:
            shape = wanted.v.shape + arrays[name].shape
            first = wanted.g[..., places[name]].reshape(shape)
            np.testing.assert_allclose(
                first, jnp.reshape(found[1][name], shape), rtol=0, atol=compare.tolerance
            )
    return True


@dataclass
class Comparison:
    bind: dict[str, Any]
    tolerance: float

    def __call__(self, e: tc.Expr, wanted: np.ndarray, what: str) -> None:
        found = e(**self.bind)
        assert found.shape == wanted.shape, (what, found.shape, wanted.shape)
        assert found.dtype == np.float64, what
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=self.tolerance, err_msg=what)


def attempt(seed: int, with_jax: bool = False) -> bool:
    try:
        return check(seed, with_jax)
    except Exception as error:
        generator = Generator(seed)
        program = generator.run(int(generator.rng.integers(2, 9)))
        raise AssertionError(f"TCALC_SEED={seed} TCALC_RANDOM=1\n{program}") from error


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_expressions(batch: int) -> None:
    done = 0
    draw = random.SystemRandom() if FRESH else random.Random(batch)
    while done < max(1, COUNT // BATCHES):
        seed = int(SEED) + done if SEED else draw.randrange(2**40)
        compared = attempt(seed, with_jax=done % 20 == 0)
        done += 1 if compared or SEED else 0


@pytest.mark.parametrize("seed", CORPUS)
def test_seeds_that_failed_once(seed: int) -> None:
    assert attempt(seed)
