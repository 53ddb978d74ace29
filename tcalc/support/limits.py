"""Budgets: how far work may grow before it is refused, and how code counts what it does.

Code that may grow out of proportion to what it was given says so where it grows, in one line:

    spend("nodes")                  # or spend("steps", count): adds to what was spent
    within("digits", length)        # refuses one thing of this size

Either raises `LimitError` once a limit around it is passed, and either looks at the deadline, so
that a loop which calls one of them is stopped by ``tc.limits(seconds=…)`` too. `LIMITS` has a row
for each name. A step is about a microsecond of work that makes no node: pass the number of entries
that a loop goes through rather than count every one of them. Without a budget a call costs
40 ns. An entry point that reads text from outside is decorated with `for_text`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import wraps
from numbers import Real
from typing import NamedTuple, ParamSpec, TypeVar

from .errors import LimitError

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


class Limit(NamedTuple):
    """One row: what is counted, what needs less of it, and how much there is.

    `text` is what one text may take where nobody has set the limit, `python` what Python code may.
    Time is no default, so that whether a text is refused does not depend on the machine.
    """

    what: str
    less: str
    text: float
    python: float = math.inf


LIMITS = {
    "nodes": Limit("expression nodes", "a lower order or a shorter expression", 20_000),
    "steps": Limit("steps", "a lower order, fewer indices or a shorter expression", 2_000_000),
    "seconds": Limit("seconds", "a lower order or a shorter expression", math.inf),
    "characters": Limit(
        "characters", "a lower order, or an output that names what repeats,", 4_000_000, 1e8
    ),
    "digits": Limit("digits in one integer", "a floating-point number", 300, 300),
    "terms": Limit("terms in one extent", "a dimension with a name of its own", 256, 10_000),
}


class Budget:
    """What was spent inside one ``with limits(...)``, and inside the one around it."""

    __slots__ = ("allowed", "deadline", "outer", "spent")

    def __init__(self, allowed: dict[str, float], outer: Budget | None) -> None:
        self.allowed = allowed
        self.outer = outer
        self.spent = dict.fromkeys(LIMITS, 0)
        seconds = allowed.get("seconds", math.inf)
        self.deadline = time.monotonic() + seconds if seconds < math.inf else None

    def spend(self, name: str, amount: int) -> None:
        around: Budget | None = self
        while around is not None:
            spent = around.spent[name] = around.spent[name] + amount
            if spent > around.allowed.get(name, math.inf):
                raise exceeded(name, around.allowed[name])
            if around.deadline is not None and time.monotonic() > around.deadline:
                raise exceeded("seconds", around.allowed["seconds"])
            around = around.outer

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
) -> AbstractContextManager[None]:
    """Bound what the code inside may take: ``with tc.limits(nodes=100_000, seconds=2):``.

    Text may ask for much in few words. What reads it (`parse` and its like, the command line) runs
    under defaults, each of which is replaced by the limit of that name around it. Python code has
    no limit on work unless one is set. Limits hold in this thread, until the end of the block; what
    is spent inside a block is spent in those around it, whose limits an inner one cannot lift.

    Parameters
    ----------
    nodes : number, optional
        Nodes of expressions that may be asked for, those that exist already counted too. One takes
        about 10 µs.
    steps : number, optional
        Other symbolic work in units of about 1 µs: integer elimination, rewriting, matching,
        planning.
    seconds : number, optional
        Wall time, looked at wherever something else is counted; running a plan counts nothing.
    characters : number, optional
        Length of one printed formula or program.
    digits : number, optional
        Decimal digits of one exact integer, such as an extent.
    terms : number, optional
        Terms of one extent, such as the two of ``n-1``.

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
        "digits": digits, "terms": terms,
    }  # fmt: skip
    allowed = {name: value for name, value in given.items() if value is not None}
    for name, value in allowed.items():
        if not isinstance(value, Real) or isinstance(value, bool):
            raise TypeError(f"{name}= is a number, not {value!r}")
        if not value >= 0:
            raise ValueError(f"{name}= is 0 or more, not {value!r}")
    return _inside(allowed)


def for_text(entry: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """A function that reads text from outside, under the defaults of limits that are not set."""

    @wraps(entry)
    def limited(*args: _Parameters.args, **options: _Parameters.kwargs) -> _Result:
        around = _active.get()
        missing = {n: r.text for n, r in LIMITS.items() if around is None or not around.has(n)}
        if not missing:
            return entry(*args, **options)
        with _inside(missing):
            return entry(*args, **options)

    return limited


@contextmanager
def _inside(allowed: dict[str, float]) -> Iterator[None]:
    token = _active.set(Budget(allowed, _active.get()))
    try:
        yield
    finally:
        _active.reset(token)
