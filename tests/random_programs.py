"""Random straight-line programs, and what they compute: in tcalc, in jax, and on jets.

Operations are rows of `random_operations`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from tests import jets
from tests.jets import Jet
from tests.random_indices import INDICES
from tests.random_loops import LOOPS
from tests.random_matrices import MATRICES
from tests.random_operations import OPERATIONS, Context, Extent, Operation, Shape
from tests.random_orders import ORDERS
from tests.random_views import VIEWS

#: Rows that are drawn where somebody asks for more of a kind.
FAMILIES: dict[str, dict[str, Operation]] = {
    "linalg": MATRICES,
    "loops": LOOPS,
    "affine": INDICES,
    "properties": {},
    "views": VIEWS,
    "orders": ORDERS,
}
ROWS = OPERATIONS | MATRICES | LOOPS | INDICES | VIEWS | ORDERS
#: Declarations of square matrices, and what lies in the subspace of each.
SUBSPACES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "symmetric": lambda a: (a + np.swapaxes(a, -1, -2)) / 2,
    "positive_definite": lambda a: (a + np.swapaxes(a, -1, -2)) / 2,
    "lower": np.tril,
    "upper": np.triu,
    "diagonal": lambda a: a * np.eye(a.shape[-1]),
}


#: The name of a row, the places of operands among all values so far, and what else the row takes.
Step = tuple[str, tuple[int, ...], dict[str, Any]]


@dataclass
class Program:
    """A straight-line program: data, which interpreters run and a failure prints."""

    shapes: dict[str, Shape]
    extents: dict[str, int]
    steps: list[Step] = field(default_factory=list)
    #: Extents and data of variables of integers, and what variables are declared to be.
    integers: dict[str, tuple[Extent, list[int]]] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)

    def size(self, extent: Extent) -> int:
        """The number that an extent is: of a name, or of a name and a number less."""
        if isinstance(extent, int):
            return extent
        name, _, less = extent.partition("-")
        return self.extents[name] - int(less or 0)

    def projected(self, name: str, derivative: np.ndarray, behind: int = 0) -> np.ndarray:
        """A derivative within the subspace of its variable, whose axes precede others behind."""
        declared = self.declared.get(name)
        if declared not in SUBSPACES:
            return derivative
        last = derivative.ndim - behind
        moved = np.moveaxis(derivative, (last - 2, last - 1), (-2, -1))
        return np.moveaxis(SUBSPACES[declared](moved), (-2, -1), (last - 2, last - 1))

    def __str__(self) -> str:
        lines = [
            f"{name}: {shape} {self.declared.get(name, '')}" for name, shape in self.shapes.items()
        ]
        first = len(lines)
        lines += [
            f"{k + first}: {op} {places} {more}" for k, (op, places, more) in enumerate(self.steps)
        ]
        return f"extents {self.extents}, integers {self.integers}\n" + "\n".join(lines)


class Generator:
    """Grows a program step by step, knowing the shapes of all values so far."""

    def __init__(self, seed: int, families: Collection[str] = (), zeros: bool = False) -> None:
        self.rng = np.random.default_rng(seed)
        self.families, self.zeros = families, zeros
        extent = lambda: int(self.rng.choice([0, 1, 2, 3], p=[0.05, 0.1, 0.5, 0.35]))  # noqa: E731
        extents = {"m": extent(), "n": extent()}
        self.kinds: list[Extent] = ["m", "n", 2, extent()]
        if "affine" in families:
            self.kinds.append(4)
        shapes: dict[str, Shape] = {}
        for name in "uvw"[: self.rng.integers(1, 4)]:
            ndim = int(self.rng.choice([0, 1, 2], p=[0.15, 0.45, 0.4]))
            shapes[name] = tuple([self.pick(self.kinds) for _ in range(ndim)])
        if "views" in families:
            self.kinds += [2, 4]
            shapes["u"] = (self.pick([4, 6, 8]),)
        if "linalg" in families:
            shapes["u"] = (self.pick(self.kinds),) * 2
        self.program = Program(shapes, extents)
        if "properties" in families:
            self.declare()
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

    def declare(self) -> None:
        """Makes most variables square matrices that are declared to be something."""
        for name in self.program.shapes:
            if self.chance(0.7):
                self.program.declared[name] = self.pick(sorted(SUBSPACES))
                self.program.shapes[name] = (self.pick(self.kinds),) * 2
            elif self.chance(0.5):
                self.program.declared[name] = "nonnegative"

    def value(self) -> int:
        """A value so far: a recent one more often, so that expressions become deep."""
        n = len(self.shapes)
        return n - 1 - min(n - 1, int(self.rng.geometric(0.35)) - 1)

    def run(self, steps: int) -> Program:
        draws = [row.draw for row in OPERATIONS.values() for _ in range(row.often)]
        for family in self.families:
            # As often as all others together.
            more = [row.draw for row in FAMILIES[family].values() for _ in range(row.often)]
            draws += more * (28 // len(more)) if more else []
        while len(self.program.steps) < steps:
            self.pick(draws)(self)
        return self.program

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: self.sample(name, shape) for name, shape in self.program.shapes.items()}

    def sample(self, name: str, shape: Shape) -> np.ndarray:
        """Data of a variable, of what it is declared to be."""
        size = [self.size(e) for e in shape]
        found = (
            self.rng.choice([-1.0, 0, 0, 1, 2], size) if self.zeros else self.rng.normal(size=size)
        )
        declared = self.program.declared.get(name)
        if declared == "nonnegative":
            return np.abs(found)
        if declared == "positive_definite":
            return found @ found.T / max(1, len(found)) + np.eye(len(found))
        return SUBSPACES[declared](found) if declared else found


def build(
    program: Program,
    xp: Any,
    values: list[Any],
    extent: Callable[[Extent], Any],
    integers: Mapping[str, Any] | None = None,
) -> Any:
    """The program in tcalc or jax.numpy; `extent` gives what an extent is called there."""
    context = Context(xp, extent, integers=integers or {})
    for op, places, more in program.steps:
        values.append(ROWS[op].build(context, [values[k] for k in places], **more))
    return values[-1]


def naive(program: Program, values: list[Jet], total: int) -> tuple[Jet, float]:
    """The program on jets, and the largest number on the way times the worst condition."""
    data = {name: numbers for name, (_, numbers) in program.integers.items()}
    context = Context(None, program.size, total, data)
    for op, places, more in program.steps:
        values.append(ROWS[op].naive(context, [values[k] for k in places], **more))
    # NaN is one of them, where a program has it.
    condition, largest = [np.max([getattr(v, n) for v in values]) for n in ("condition", "largest")]
    return values[-1], float(condition * largest)


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
        return self.program.projected(name, self.jet.g[..., self.places[name]].reshape(shape))

    def second(self, one: str, two: str) -> np.ndarray:
        """The second derivative by two variables."""
        shape = self.jet.v.shape + self.arrays[one].shape + self.arrays[two].shape
        found = self.jet.h[..., self.places[one], self.places[two]].reshape(shape)
        found = self.program.projected(one, found, behind=self.arrays[two].ndim)
        return self.program.projected(two, found)


def evaluated(program: Program, arrays: dict[str, np.ndarray]) -> Evaluated:
    with np.errstate(all="ignore"):
        inputs, places = jets.inputs(arrays)
        total = sum(a.size for a in arrays.values())
        jet, largest = naive(program, list(inputs.values()), total)
    return Evaluated(program, arrays, jet, places, largest)


def drawn(seed: int, families: Collection[str] = (), zeros: bool = False) -> Generator:
    """A generator that has drawn a program of two to eight steps."""
    generator = Generator(seed, families, zeros)
    generator.run(int(generator.rng.integers(2, 9)))
    return generator


def holding(
    program: Program, seed: int, families: Collection[str] = (), zeros: bool = False
) -> Generator:
    """A generator that holds a given program."""
    generator = Generator(seed, families, zeros)
    generator.program, generator.size = program, program.size
    return generator


# --- smaller programs -----------------------------------------------------------------------------


def shrunk(
    seed: int, differs: Callable[[Program], bool], draw: tuple[Collection[str], bool] = ((), False)
) -> Program:
    """A small program that still differs: a prefix, without steps that it can do without."""
    program = drawn(seed, *draw).program
    smaller = True
    while smaller:
        smaller = False
        for candidate in _smaller(program):
            if differs(candidate):
                program, smaller = candidate, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """Programs with a step less: the last one, or one whose readers read its operand."""
    count, first = len(program.steps), len(program.shapes)
    if count > 1:
        yield replace(program, steps=program.steps[:-1])
    for gone in range(count - 1):
        place = first + gone
        read = any(place in places for _, places, _ in program.steps[gone + 1 :])
        for other in [0] if not read else program.steps[gone][1]:
            yield replace(program, steps=_without(program.steps, gone, place, other))


def _without(steps: Sequence[Step], gone: int, place: int, other: int) -> list[Step]:
    """The steps without one, whose readers read another value."""

    def moved(k: int) -> int:
        k = other if k == place else k
        return k - (k > place)

    kept = [step for k, step in enumerate(steps) if k != gone]
    return [(op, tuple([moved(k) for k in places]), more) for op, places, more in kept]
