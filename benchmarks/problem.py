"""What a benchmark problem is: data, one formula, what to compute, expert forms, and claims."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from . import nests
from .suite import Eval

if TYPE_CHECKING:
    from .harness import Rates, Row

Array = np.ndarray
Data = Mapping[str, Array]
Sizes = Mapping[str, int]
Rows = Mapping[tuple[str, str], "Row"]

#: What can be asked of a problem. `both` is value and gradient at once, `jacobian` that of values
#: which are arrays, `core` the Hessian as core tensors, never dense, and `newton` the solution p of
#: H p = g for the given gradient, core and solve together.
QUANTITIES = ("value", "gradient", "both", "jacobian", "hessian", "core", "newton")
USUAL = ("value", "gradient", "hessian", "core", "newton")


@dataclass(frozen=True)
class Case:
    """One set of sizes, or one real data set; `load` draws or reads the arrays.

    `quantities` leaves out what no rival could hold in memory.
    """

    label: str
    sizes: Sizes
    load: Callable[[np.random.Generator], dict[str, Array]]
    quantities: tuple[str, ...] = USUAL


def start(least: int) -> str:
    """From which size on something is claimed, in words."""
    return f" from n={least}" if least else ""


@dataclass(frozen=True)
class Claim:
    """time(mine) <= at_most * time(theirs) + overhead, both given as (quantity, contestant).

    `overhead` is the seconds that one call may cost before it computes anything; `least` is the
    n from which on it is claimed.
    """

    mine: tuple[str, str]
    theirs: tuple[str, str]
    at_most: float
    overhead: float = 1e-5
    least: int = 0

    def __str__(self) -> str:
        (quantity, name), (other_quantity, other_name) = self.mine, self.theirs
        other = other_name if other_quantity == quantity else f"{other_name}'s {other_quantity}"
        ratio = f"{self.at_most:.3g}" if self.at_most > 0.01 else f"1/{1 / self.at_most:,.0f}"
        overhead = f" + {self.overhead * 1e6:g} µs" if self.overhead else ""
        return f"{quantity}: {name} <= {ratio} x {other}{overhead}{start(self.least)}"

    def judge(self, rows: Rows, rates: Rates, sizes: Sizes) -> tuple[float, bool] | None:
        """The measured ratio and whether it is met; None where a side was not timed."""
        times = [rows[side].seconds if side in rows else None for side in (self.mine, self.theirs)]
        mine, theirs = times
        if mine is None or theirs is None:
            return None
        return mine / theirs, mine <= self.at_most * theirs + self.overhead


@dataclass(frozen=True)
class Limit:
    """mine <= at_most times what one n x n matrix costs.

    `unit` is "products", the seconds of so many matrix products, or "matrices", the predicted
    peak memory in so many matrices.
    """

    mine: tuple[str, str]
    at_most: float
    unit: str
    least: int = 0

    def __str__(self) -> str:
        quantity, name = self.mine
        bound = f"{self.at_most:g} {self.unit} of n x n"
        return f"{quantity}: {name} <= {bound}{start(self.least)}"

    def judge(self, rows: Rows, rates: Rates, sizes: Sizes) -> tuple[float, bool] | None:
        row, n = rows.get(self.mine), sizes["n"]
        if row is None or row.seconds is None or row.peak is None:
            return None
        used = {
            "products": row.seconds * rates.flops / (2 * n**3),
            "matrices": row.peak / (8 * n * n),
        }
        return used[self.unit], used[self.unit] <= self.at_most


@dataclass(frozen=True)
class Promised:
    """time(mine) <= within * (operations of `counted` / operations of `theirs`) * time(theirs).

    What the better algorithm saves by its operation count, up to a factor; `counted` and `theirs`
    are forms by hand.
    """

    mine: tuple[str, str]
    counted: tuple[str, str]
    theirs: tuple[str, str]
    within: float
    least: int = 0

    def __str__(self) -> str:
        (quantity, name), counted, theirs = self.mine, self.counted[1], self.theirs[1]
        bound = f"{self.within:g} x operations of {counted} / of {theirs} x {theirs}"
        return f"{quantity}: {name} <= {bound}{start(self.least)}"

    def judge(self, rows: Rows, rates: Rates, sizes: Sizes) -> tuple[float, bool] | None:
        found = [rows.get(side) for side in (self.mine, self.counted, self.theirs)]
        mine, counted, theirs = found
        if mine is None or counted is None or theirs is None:
            return None
        if mine.seconds is None or theirs.seconds is None or not (counted.flops and theirs.flops):
            return None
        ratio = (mine.seconds / theirs.seconds) / (counted.flops / theirs.flops)
        return ratio, ratio <= self.within


@dataclass(frozen=True)
class Memory:
    """mine takes at most so many bytes, by `per` for each item that this size counts.

    `what` is "held", the bytes of what is returned, or "traced", the most that NumPy's arrays take
    at once in a call beside its inputs, measured.
    """

    mine: tuple[str, str]
    at_most: float
    what: str
    per: str = ""
    least: int = 0

    def __str__(self) -> str:
        quantity, name = self.mine
        per = f" per item of {self.per}" if self.per else ""
        return (
            f"{quantity}: {name} {self.what} <= {self.at_most:,.0f} bytes{per}{start(self.least)}"
        )

    def judge(self, rows: Rows, rates: Rates, sizes: Sizes) -> tuple[float, bool] | None:
        row = rows.get(self.mine)
        taken = None if row is None else {"held": row.bytes, "traced": row.traced}[self.what]
        if taken is None:
            return None
        by = taken / (sizes[self.per] if self.per else 1)
        return by, by <= self.at_most


@dataclass(frozen=True)
class Faster:
    """Our forward or backward is so many times as fast as the best of jax and torch.

    Forward is the value; backward is what value and gradient take longer than the value.
    """

    part: str
    at_least: float
    least: int = 0
    mine: str = "tcalc"

    def __str__(self) -> str:
        bound = f"{self.at_least:g} x as fast as the best of jax and torch"
        return f"{self.part}: {self.mine} >= {bound}{start(self.least)}"

    def judge(self, rows: Rows, rates: Rates, sizes: Sizes) -> tuple[float, bool] | None:
        times = {label: parts(rows, label) for label in (self.mine, "jax", "torch")}
        taken = {label: found[self.part] for label, found in times.items() if found}
        mine = taken.pop(self.mine, None)
        if mine is None or not taken:
            return None
        ratio = min(taken.values()) / mine
        return ratio, ratio >= self.at_least


def parts(rows: Rows, label: str) -> dict[str, float] | None:
    """Seconds forward and backward of one contestant."""
    value, both = rows.get(("value", label)), rows.get(("both", label))
    if value is None or both is None or value.seconds is None or both.seconds is None:
        return None
    return {"forward": value.seconds, "backward": max(both.seconds - value.seconds, 1e-9)}


AnyClaim = Claim | Limit | Promised | Memory | Faster


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
    wrt : str or tuple of str
        The variables that derivatives are with respect to; results nest likewise.
    text : str
        The formula as shown.
    objective : callable
        ``objective(xp, arrays)`` for every rival that has an array namespace.
    expression : callable
        ``expression(sizes)`` builds the same with tcalc's public names.
    cases : mapping
        Cases by set: "tiny" for tests, "small", "paper", "real" data alone.
    of_size : callable
        The case for an n chosen on the command line.
    hand : mapping
        Quantity -> name of the form -> Form.
    product : callable
        ``product(core, data, v)`` is the Hessian, or Jacobian, times v for the core of a form by
        hand or by `batched`.
    batched : mapping
        Quantity -> name -> ``call(arrays, rhs)`` as an expert writes it with jax, the structure
        declared by hand; jitted by those who run it.
    sparse : bool
        Whether the Hessian is worth colouring.
    fit : str
        SciPy's method that minimises it from the data's values of the variables; "" where there
        is nothing to be found.
    without : tuple of str
        Rivals that lack an operation.
    suite : Eval, optional
        The public suite's program for it.
    """

    name: str
    wrt: str | tuple[str, ...]
    text: str
    objective: Callable[[Any, Mapping[str, Any]], Any]
    expression: Callable[[Sizes], Any]
    cases: Mapping[str, tuple[Case, ...]]
    of_size: Callable[[int], Case]
    hand: Mapping[str, Mapping[str, Form]]
    product: Callable[[Any, Data, Any], Any] = lambda core, data, v: nests.times(core, v)
    batched: Mapping[str, Mapping[str, Callable[[Any, Any], Any]]] = field(default_factory=dict)
    sparse: bool = False
    claims: tuple[AnyClaim, ...] = field(default=())
    fit: str = ""
    without: tuple[str, ...] = ()
    suite: Eval | None = None

    def point(self, data: Mapping[str, Any]) -> nests.Nest:
        """The variables' values, nested as `wrt`."""
        return nests.each(data.__getitem__, self.wrt)

    def at(self, point: nests.Nest, data: Mapping[str, Any]) -> dict[str, Any]:
        """The data with other values of the variables."""
        names, values = nests.leaves(self.wrt), nests.leaves(point)
        return {**data, **dict(zip(names, values, strict=True))}

    def select(self, sizes: str) -> tuple[Case, ...]:
        """The cases of a named set, or of numbers such as ``100,300``."""
        if sizes in self.cases:
            return self.cases[sizes]
        if not sizes.replace(",", "").isdigit():
            raise ValueError(
                f"{self.name} has no sizes {sizes!r}: {', '.join(self.cases)} or 100,300"
            )
        return tuple([self.of_size(int(n)) for n in sizes.split(",")])


@dataclass(frozen=True)
class Task:
    """A problem with the arrays of one case; `rhs` is the right-hand side of `newton`."""

    problem: Problem
    case: Case
    data: Data
    rhs: nests.Nest

    def times(self, core: Any, v: nests.Nest) -> nests.Nest:
        """The Hessian, or Jacobian, that the problem's own forms give, times v."""
        return self.problem.product(core, self.data, v)

    @classmethod
    def of(cls, problem: Problem, case: Case) -> Task:
        """Always the same arrays, read-only."""
        rng = np.random.default_rng(0)
        data = case.load(rng)
        rhs = nests.each(lambda x: rng.standard_normal(np.shape(x)), problem.point(data))
        for array in (*data.values(), *nests.leaves(rhs)):
            array.flags.writeable = False
        return cls(problem, case, data, rhs)
