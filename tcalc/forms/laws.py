"""The table of laws: named equalities by which expressions are written differently.

A law is one row: an equation in the matrix language, what is taken as given where its sides are not
equal everywhere, and the function that makes, from a node that looks like one side, nodes that look
like the other. Tests read the equations, evaluate both sides, and compare what the function makes
of the left one.

What is printed may take as given what a formula on paper does: that inverses, logarithms, roots and
quotients in it exist, and that no axis is empty; at kinks, where derivatives are conventions, the
convention is not printed. Numbers never come from these forms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

from ..graph.applications import rewritten, root_of
from ..graph.nodes import Expr
from ..support.records import NamedTuple

MAX_PASSES = 6

_KNOWN: ContextVar[dict[Any, Any] | None] = ContextVar("known", default=None)
T = TypeVar("T")


@contextmanager
def one_search() -> Iterator[None]:
    """Within it, what laws ask of a node `once` is computed once."""
    token = _KNOWN.set({})
    try:
        yield
    finally:
        _KNOWN.reset(token)


def once(function: Callable[[Expr], T]) -> Callable[[Expr], T]:
    """A function of nodes, each of which many laws and many sums of one search ask it of."""

    def known(e: Expr) -> T:
        held = _KNOWN.get()
        if held is None:
            return function(e)
        key = function, id(e)
        if key not in held:
            held[key] = e, function(e)  # the node lives as long as its id stands for it
        found: T = held[key][1]
        return found

    return known


Rewrite = Callable[[Expr], Iterable[Expr | None]]


class Law(NamedTuple):
    """One equality, used from left to right.

    Attributes
    ----------
    name : str
    equation : str
        An instance of it: both sides in the matrix language, `=` between them.
    on : tuple of str
        Node kinds and operators at the root of what it is tried on.
    rewrite : callable
        ``rewrite(node)`` gives nodes that equal it; None stands for no node.
    directed : bool
        Is the right side always what is wanted? Then no other form of the node is looked for.
    early : bool
        Does it only bring terms together, before factors are taken out of them?
    given : str
        What is taken as given, in words; empty where the sides are equal everywhere.
    """

    name: str
    equation: str
    on: tuple[str, ...]
    rewrite: Rewrite
    directed: bool
    early: bool
    given: str


LAWS: list[Law] = []
#: What brings terms together, and what is looked for then.
EARLY_LAWS: dict[str, list[Law]] = {}
LATE_LAWS: dict[str, list[Law]] = {}


def law(
    name: str,
    equation: str,
    *on: str,
    directed: bool = False,
    early: bool = False,
    given: str = "",
) -> Callable[[Rewrite], Rewrite]:
    """Enter a function as the law's rewrite."""

    def enter(rewrite: Rewrite) -> Rewrite:
        row = Law(name, equation, on, rewrite, directed, early, given)
        LAWS.append(row)
        for root in on:
            if directed:
                EARLY_LAWS.setdefault(root, []).append(row)
            if not early:
                LATE_LAWS.setdefault(root, []).append(row)
        return rewrite

    return enter


def brought_together(e: Expr, known: dict[int, Expr] | None = None) -> Expr:
    """The expression after all directed laws, operands first.

    `known` are nodes that no law changes any more, by their ids.
    """
    known = {} if known is None else known
    for _ in range(MAX_PASSES):
        found = rewritten([e], lambda new, old: _directed(new, known))[0]
        if found is e:
            break
        e = found
    return e


def _directed(new: Expr, known: dict[int, Expr]) -> Expr:
    for _ in range(MAX_PASSES):
        if id(new) in known:
            break
        before = new
        for row in EARLY_LAWS.get(root_of(new), ()):
            found = next(iter(row.rewrite(new)), None)
            if found is not None and found is not new:
                new = found
                break
        if new is before:
            known[id(new)] = new
    return new
