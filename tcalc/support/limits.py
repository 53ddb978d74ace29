"""Budgets: how far work may grow before it is refused, and how code counts what it does.

Code that may grow out of proportion to what it was given says so where it grows, in one line:

    spend("nodes")                  # or spend("steps", count): adds to what was spent
    within("digits", length)        # refuses one thing of this size

Either raises `LimitError` once a limit around it is passed, and either looks at the clock, so that
a loop which calls one of them is stopped by ``tc.limits(seconds=…)`` too. `LIMITS` has a row for
each name. A step is about a microsecond of work that makes no node: a loop whose round takes 40
spends 40, and passes the number of entries that it goes through rather than count every one of
them. Without a budget a call costs 40 ns. An entry point that reads text from outside is decorated
with `for_text`; what looks for a better answer but can do without is `attempted`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from numbers import Real
from typing import ParamSpec, TypeVar

from .errors import LimitError
from .records import NamedTuple

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Limit(NamedTuple):
    """One row: what is counted, what needs less of it, and how much there is.

    `text` is what one text may take where nobody has set the limit, `python` what Python code may.
    Counts refuse a text after about two seconds, the same text on every machine; time is for work
    that is not counted well, so far behind them that only a slow machine comes near it. One of
    these also takes as many `steps`.
    """

    what: str
    less: str
    text: float
    python: float = math.inf
    steps: int = 0


LIMITS = {
    "nodes": Limit("expression nodes", "a lower order or a shorter expression", 13_000, steps=75),
    "steps": Limit("steps", "a lower order, fewer indices or a shorter expression", 1_000_000),
    "seconds": Limit("seconds", "a lower order or a shorter expression", 10),
    "characters": Limit(
        "characters", "a lower order, or an output that names what repeats,", 4_000_000, 1e8
    ),
    "digits": Limit("digits in one integer", "a floating-point number", 300, 300),
    "terms": Limit("terms in one extent", "a dimension with a name of its own", 256, 10_000),
    "factors": Limit(
        "factors in one product of dimensions", "a dimension with a name of its own", 64, 10_000
    ),
}


class Budget:
    """What was spent inside one ``with limits(...)``, and inside the one around it."""

    __slots__ = ("allowed", "attempt", "due", "end", "outer", "short", "spent")

    def __init__(
        self, allowed: dict[str, float], outer: Budget | None, attempt: bool = False
    ) -> None:
        self.allowed = allowed
        self.outer = outer
        self.attempt = attempt  # is it of work that can be done without?
        self.short = False  # of steps, for some such work
        self.spent = dict.fromkeys(LIMITS, 0)
        seconds = allowed.get("seconds", math.inf)
        self.end = time.thread_time() + seconds
        self.due = time.monotonic() + seconds  # the other clock, which is cheap, runs no slower

    def spend(self, name: str, amount: int) -> None:
        steps = amount * LIMITS[name].steps
        around: Budget | None = self
        while around is not None:
            spent = around.spent[name] = around.spent[name] + amount
            if spent > around.allowed.get(name, math.inf):
                raise exceeded(name, around.allowed[name])
            if steps:
                spent = around.spent["steps"] = around.spent["steps"] + steps
                if spent > around.allowed.get("steps", math.inf):
                    raise exceeded("steps", around.allowed["steps"])
            if time.monotonic() > around.due:
                around.look()
            around = around.outer

    def look(self) -> None:
        """Refuse where the processor's time is over; else it is not before some other moment."""
        left = self.end - time.thread_time()
        if left < 0:
            raise exceeded("seconds", self.allowed["seconds"])
        self.due = time.monotonic() + left

    def passed(self) -> bool:
        """Is a limit passed, here or around, or was too little left for what was attempted?"""
        over = any(self.spent[name] > allowed for name, allowed in self.allowed.items())
        return self.short or over or (self.outer is not None and self.outer.passed())

    def steps_left(self) -> float:
        """The steps that may still be made of those that are set, not for attempts."""
        here = math.inf if self.attempt else self.allowed.get("steps", math.inf)
        here -= self.spent["steps"]
        return here if self.outer is None else min(here, self.outer.steps_left())

    def falls_short(self) -> None:
        """Remember that there were too few steps for an attempt."""
        self.short = True
        if self.outer is not None:
            self.outer.falls_short()

    def has(self, name: str) -> bool:
        return name in self.allowed or (self.outer is not None and self.outer.has(name))

    def largest(self, name: str) -> float:
        """The size that every `limits` around allows."""
        found = self.allowed.get(name)
        if self.outer is None:
            return LIMITS[name].python if found is None else found
        if found is None:
            return self.outer.largest(name)
        return min(found, self.outer.largest(name)) if self.outer.has(name) else found


#: Of the steps that are left, what may be spent on what can be done without.
PART = 0.8

_active: ContextVar[Budget | None] = ContextVar("_active", default=None)


def largest(name: str) -> float:
    """The size that a limit allows to one thing."""
    around = _active.get()
    return LIMITS[name].python if around is None else around.largest(name)


def exceeded(name: str, allowed: float) -> LimitError:
    row = LIMITS[name]
    return LimitError(
        f"more than {allowed:,.12g} {row.what} are needed; {row.less} takes less, and"
        f" tc.limits({name}=…), or --limit {name}=… on the command line, allows more",
        name,
    )


def spend(name: str, amount: int = 1) -> None:
    """Count `amount` more of what this limit is about.

    Raises
    ------
    LimitError
        Where that is more than a budget around allows, or its time is over.
    """
    around = _active.get()
    if around is not None:
        around.spend(name, amount)


def within(name: str, size: int) -> None:
    """Refuse one thing that is larger than this limit allows; nothing is spent.

    Raises
    ------
    LimitError
        Where it is, or where the time of a budget is over.
    """
    allowed = largest(name)
    if size > allowed:
        raise exceeded(name, allowed)
    spend(name, 0)


def limits(
    *,
    nodes: float | None = None,
    steps: float | None = None,
    seconds: float | None = None,
    characters: float | None = None,
    digits: float | None = None,
    terms: float | None = None,
    factors: float | None = None,
) -> AbstractContextManager[None]:
    """Bound what the code inside may take: ``with tc.limits(nodes=100_000, seconds=2):``.

    Text may ask for much in few words. What reads it (`parse` and its like, the command line) runs
    under defaults, each of which is replaced by the limit of that name around it. Python code has
    no limit on work unless one is set. Limits hold in this thread, until the end of the block; what
    is spent inside a block is spent in those around it, whose limits an inner one cannot lift.

    Parameters
    ----------
    nodes : number, optional
        Nodes of expressions that may be asked for, those that exist already counted too.
    steps : number, optional
        Symbolic work in units of about 1 µs: a node takes 75, and what makes no node is counted as
        it grows: integer elimination, rewriting, matching, planning, printing. The default of text
        grows with the `nodes` that are set.
    seconds : number, optional
        Of this thread's processor, looked at wherever something else is counted. Text has 10, which
        counts are to refuse long before: whether time does depends on the machine.
    characters : number, optional
        Length of one printed formula or program.
    digits : number, optional
        Decimal digits of one exact integer, such as an extent.
    terms : number, optional
        Terms of one extent, such as the two of ``n-1``.
    factors : number, optional
        Dimensions in one product of them, such as the two of an extent ``m*n``, or of ``1/n^2``.

    Returns
    -------
    context manager
        For one ``with``. ``math.inf`` allows all.

    Raises
    ------
    LimitError
        Inside: what grew, how far it may, what takes less. Its attribute `limit` is the name.
    TypeError, ValueError
        For a limit that is no number, or below 0.

    Examples
    --------
    >>> import tcalc as tc
    >>> with tc.limits(nodes=1000):
    ...     tc.derivative(tc.parse("exp(exp(exp(a)))"), "a", 30)
    Traceback (most recent call last):
        ...
    tcalc.LimitError: more than 1,000 expression nodes are needed; a lower order or a shorter \
expression takes less, and tc.limits(nodes=…), or --limit nodes=… on the command line, allows more
    """
    given = {
        "nodes": nodes, "steps": steps, "seconds": seconds, "characters": characters,
        "digits": digits, "terms": terms, "factors": factors,
    }  # fmt: skip
    allowed = {name: value for name, value in given.items() if value is not None}
    for name, value in allowed.items():
        if not isinstance(value, Real) or isinstance(value, bool):
            raise TypeError(f"{name}= is a number, not {value!r}")
        if not value >= 0:
            raise ValueError(f"{name}= is 0 or more, not {value!r}")
    return _inside(allowed)


def attempted(work: Callable[[], _Result], steps: int) -> _Result | None:
    """What some work finds that can be done without; None where it takes more than these steps,
    or than PART of those that are left around, so that there are some for what is needed.
    """
    around = _active.get()
    most = math.inf if around is None else PART * around.steps_left()
    try:
        with _inside({"steps": min(steps, most)}, attempt=True):
            return work()
    except LimitError:
        if around is not None and most < steps:
            around.falls_short()
        return None


def counted(work: Callable[[], _Result]) -> tuple[_Result, int]:
    """What some work finds, and the steps that it takes."""
    budget = Budget({}, _active.get())
    token = _active.set(budget)
    try:
        return work(), budget.spent["steps"]
    finally:
        _active.reset(token)


def exhausted() -> bool:
    """Is a limit around passed, so that what was attempted might be found at another time?"""
    around = _active.get()
    return around is not None and around.passed()


def for_text(entry: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """A function that reads text from outside, under the defaults of limits that are not set."""

    @wraps(entry)
    def limited(*args: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        around = _active.get()
        missing = {n: r.text for n, r in LIMITS.items() if around is None or not around.has(n)}
        if around is not None and "steps" in missing:
            missing["steps"] += _steps_of_more(around)
        if not missing:
            return entry(*args, **options)
        with _inside(missing):
            return entry(*args, **options)

    return limited


def _steps_of_more(around: Budget) -> float:
    """The steps of what a limit around allows beyond its default."""
    return sum([
        row.steps * max(0, around.largest(name) - row.text)
        for name, row in LIMITS.items()
        if row.steps and around.has(name)
    ])  # fmt: skip


@contextmanager
def _inside(allowed: dict[str, float], attempt: bool = False) -> Iterator[None]:
    token = _active.set(Budget(allowed, _active.get(), attempt))
    try:
        yield
    finally:
        _active.reset(token)
