"""Random straight-line programs, and what they compute: in tcalc, in jax, and on jets.

Operations are rows of `random_operations`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tests import jets
from tests.jets import Jet
from tests.random_operations import OPERATIONS, Context, Extent, Shape


@dataclass
class Program:
    """A straight-line program: data, which interpreters run and a failure prints."""

    shapes: dict[str, Shape]
    extents: dict[str, int]
    steps: list[tuple[str, tuple[int, ...], dict[str, Any]]] = field(default_factory=list)

    def size(self, extent: Extent) -> int:
        """The number that an extent is: of a name, or of a name and a number less."""
        if isinstance(extent, int):
            return extent
        name, _, less = extent.partition("-")
        return self.extents[name] - int(less or 0)

    def __str__(self) -> str:
        lines = [f"{name}: {shape}" for name, shape in self.shapes.items()]
        first = len(lines)
        lines += [
            f"{k + first}: {op} {places} {more}" for k, (op, places, more) in enumerate(self.steps)
        ]
        return f"extents {self.extents}\n" + "\n".join(lines)


class Generator:
    """Grows a program step by step, knowing the shapes of all values so far."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        extent = lambda: int(self.rng.choice([0, 1, 2, 3], p=[0.05, 0.1, 0.5, 0.35]))  # noqa: E731
        extents = {"m": extent(), "n": extent()}
        self.kinds: list[Extent] = ["m", "n", 2, extent()]
        shapes: dict[str, Shape] = {}
        for name in "uvw"[: self.rng.integers(1, 4)]:
            ndim = int(self.rng.choice([0, 1, 2], p=[0.15, 0.45, 0.4]))
            shapes[name] = tuple([self.pick(self.kinds) for _ in range(ndim)])
        self.program = Program(shapes, extents)
        self.shapes = list(shapes.values())
        self.size = self.program.size

    def pick(self, items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def below(self, n: int) -> int:
        return int(self.rng.integers(n))

    def emit(self, op: str, places: Any, shape: Any, **more: Any) -> None:
        self.program.steps.append((op, tuple(places), more))
        self.shapes.append(tuple(shape))

    def value(self) -> int:
        """A value so far: a recent one more often, so that expressions become deep."""
        n = len(self.shapes)
        return n - 1 - min(n - 1, int(self.rng.geometric(0.35)) - 1)

    def run(self, steps: int) -> Program:
        draws = [row.draw for row in OPERATIONS.values() for _ in range(row.often)]
        while len(self.program.steps) < steps:
            self.pick(draws)(self)
        return self.program

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            name: self.rng.normal(size=[self.size(e) for e in shape])
            for name, shape in self.program.shapes.items()
        }


def build(program: Program, xp: Any, values: list[Any], extent: Callable[[Extent], Any]) -> Any:
    """The program in tcalc or jax.numpy; `extent` gives what an extent is called there."""
    context = Context(xp, extent)
    for op, places, more in program.steps:
        values.append(OPERATIONS[op].build(context, [values[k] for k in places], **more))
    return values[-1]


def naive(program: Program, values: list[Jet], total: int) -> tuple[Jet, float]:
    """The program on jets, and the largest number on the way times the worst condition."""
    context = Context(None, program.size, total)
    for op, places, more in program.steps:
        values.append(OPERATIONS[op].naive(context, [values[k] for k in places], **more))
    return values[-1], max(v.condition for v in values) * max(v.largest for v in values)


class Evaluated(NamedTuple):
    """A program with its data, and its value and derivatives on jets.

    Attributes
    ----------
    arrays : dict
        By the names of its variables.
    jet : Jet
    places : dict
        Where the entries of a variable stand among all inputs.
    largest : float
        The largest number on the way times the worst condition of a matrix.
    """

    program: Program
    arrays: dict[str, np.ndarray]
    jet: Jet
    places: dict[str, slice]
    largest: float

    def first(self, name: str) -> np.ndarray:
        """The Jacobian by a variable."""
        shape = self.jet.v.shape + self.arrays[name].shape
        found: np.ndarray = self.jet.g[..., self.places[name]].reshape(shape)
        return found

    def second(self, one: str, two: str) -> np.ndarray:
        """The second derivative by two variables."""
        shape = self.jet.v.shape + self.arrays[one].shape + self.arrays[two].shape
        found: np.ndarray = self.jet.h[..., self.places[one], self.places[two]].reshape(shape)
        return found


def evaluated(program: Program, arrays: dict[str, np.ndarray]) -> Evaluated:
    with np.errstate(all="ignore"):
        inputs, places = jets.inputs(arrays)
        total = sum(a.size for a in arrays.values())
        jet, largest = naive(program, list(inputs.values()), total)
    return Evaluated(program, arrays, jet, places, largest)


def drawn(seed: int) -> Generator:
    """A generator that has drawn a program of two to eight steps."""
    generator = Generator(seed)
    generator.run(int(generator.rng.integers(2, 9)))
    return generator


def holding(program: Program, seed: int) -> Generator:
    """A generator that holds a given program."""
    generator = Generator(seed)
    generator.program, generator.size = program, program.size
    return generator
