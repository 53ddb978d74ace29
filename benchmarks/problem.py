"""What a benchmark problem is: data, one formula, what to compute, expert forms, and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray
Data = Mapping[str, Array]
Sizes = Mapping[str, int]

#: What can be asked of a problem. `core` is the Hessian as core tensors, never dense; `newton` is
#: the solution p of H p = g for the given gradient, core and solve together.
QUANTITIES = ("value", "gradient", "hessian", "core", "newton")


@dataclass(frozen=True)
class Case:
    """One set of sizes, or one real data set; `load` draws or reads the arrays.

    `quantities` leaves out what no rival could hold in memory.
    """

    label: str
    sizes: Sizes
    load: Callable[[np.random.Generator], dict[str, Array]]
    quantities: tuple[str, ...] = QUANTITIES


@dataclass(frozen=True)
class Claim:
    """time(mine) <= at_most * time(theirs) + overhead, both given as (quantity, contestant).

    `overhead` is the seconds that one call may cost before it computes anything.
    """

    mine: tuple[str, str]
    theirs: tuple[str, str]
    at_most: float
    overhead: float = 1e-5

    def __str__(self) -> str:
        (quantity, name), (other_quantity, other_name) = self.mine, self.theirs
        other = other_name if other_quantity == quantity else f"{other_name}'s {other_quantity}"
        return f"{quantity}: {name} <= {self.at_most:g} x {other} + {self.overhead * 1e6:g} µs"

    def met(self, mine: float, theirs: float) -> bool:
        return mine <= self.at_most * theirs + self.overhead


@dataclass(frozen=True)
class Form:
    """An expert's NumPy and SciPy for one quantity, and the operations it needs.

    ``call(data)``; for `newton`, ``call(data, rhs)``.
    """

    call: Callable[..., Any]
    flops: Callable[[Sizes], float]


@dataclass(frozen=True)
class Problem:
    """One problem.

    Attributes
    ----------
    wrt : str
        The variable that derivatives are with respect to.
    text : str
        The formula as shown.
    objective : callable
        ``objective(xp, arrays)`` for every rival that has an array namespace.
    expression : callable
        ``expression()`` builds the same with tcalc's public names.
    cases : mapping
        Cases by set: "tiny" for tests, "small", "paper".
    of_size : callable
        The case for an n chosen on the command line.
    hand : mapping
        Quantity -> name of the form -> Form.
    product : callable
        ``product(core, data, v)`` is the Hessian times v for the core of a form by hand.
    """

    name: str
    wrt: str
    text: str
    objective: Callable[[Any, Mapping[str, Any]], Any]
    expression: Callable[[], Any]
    cases: Mapping[str, tuple[Case, ...]]
    of_size: Callable[[int], Case]
    hand: Mapping[str, Mapping[str, Form]]
    product: Callable[[Any, Data, Array], Array]
    claims: tuple[Claim, ...] = field(default=())

    def select(self, sizes: str) -> tuple[Case, ...]:
        """The cases of a named set, or of numbers such as ``100,300``."""
        if sizes in self.cases:
            return self.cases[sizes]
        return tuple([self.of_size(int(n)) for n in sizes.split(",")])


@dataclass(frozen=True)
class Task:
    """A problem with the arrays of one case; `rhs` is the right-hand side of `newton`."""

    problem: Problem
    case: Case
    data: Data
    rhs: Array

    @classmethod
    def of(cls, problem: Problem, case: Case) -> Task:
        """Always the same arrays, read-only."""
        rng = np.random.default_rng(0)
        data = case.load(rng)
        rhs = rng.standard_normal(data[problem.wrt].shape)
        for array in (*data.values(), rhs):
            array.flags.writeable = False
        return cls(problem, case, data, rhs)
