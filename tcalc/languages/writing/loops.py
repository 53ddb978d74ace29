"""Loops in formulas: `fold(s -> tanh(w*s + x[i]), s0, i=0..T-1)`.

Operands that are no variables have names there, `fold(s -> u*s + v[i], s0, u=…, v=…, i=0..T-1)`, so
that each is written once, and read as the whole that it is. A loop that ends at a condition says so
behind its range, `i=0..99 until s < 1`, and one of a number of steps `i=99..0 if i < u`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...graph.applications import application, parts
from ...graph.extents import extent_from, form_of
from ...graph.iterations import Iteration
from ...graph.nodes import Expr, Part, Var
from ...graph.operators import Loop
from .matrix_form import NodeForm
from .notation import Fragment, Rope, fragment_size, join_ropes
from .style import Style

#: Letters of states, of indices and of operands that are no variables, by depth of nesting.
STATES, INDICES, OPERANDS = "srqpo", "ijklm", "uvwyz"

#: Writes expressions, given the forms of some nodes: statements before them, and their fragments.
Inner = Callable[
    [Sequence[Expr], dict[int, NodeForm]], tuple[list[tuple[str, Fragment]], list[Fragment]]
]


class Names:
    """Makes names of states and indices that no variable has."""

    def __init__(self, taken: set[str], level: int = 0) -> None:
        self.taken, self.level = taken, level

    def inner(self) -> Names:
        return Names(self.taken, self.level + 1)

    def chosen(self, letters: str, count: int) -> list[str]:
        """`count` unused names of one of these letters, numbered where they are several."""
        name = letters[self.level % len(letters)] * (1 + self.level // len(letters))
        numbers = [""] if count == 1 else [str(k + 1) for k in range(count)]
        while any(name + number in self.taken for number in numbers):
            name += "_"
        return [name + number for number in numbers]


def loop_of(node: Part) -> Iteration | None:
    """One step of the loop that a node is an output of; None for other operators."""
    whole = application(node)
    op = whole.op
    return op.iteration(whole.params, range(len(parts(whole)))) if isinstance(op, Loop) else None


def loop_word(node: Part) -> tuple[str, str]:
    """The name of a loop's output, and what is behind the call: the state, if it has several."""
    whole = application(node)
    count = len(parts(whole)) // 3
    kind, number = divmod(node.index, max(1, count))
    several = count > 1 and node.index < 3 * count
    return whole.op.parts[kind if count else -1], f"[{number}]" if several else ""


def range_of(loop: Iteration) -> str:
    """The range of a loop's index, the first value first: `0..T-1`."""
    ends = "0", str(extent_from(form_of(loop.times) - 1))
    low, high = reversed(ends) if loop.backward else ends
    return f"{low}..{high}"


def bound_operands(args: Sequence[Expr]) -> list[Expr]:
    """The operands that a loop's text has a name for: all that are no variables, once each."""
    return list({id(arg): arg for arg in args if not isinstance(arg, Var)}.values())


def together(texts: Sequence[str]) -> str:
    """One text, or several in parentheses."""
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def repeated(
    node: Part,
    loop: Iteration,
    style: Style,
    names: Names,
    operands: Sequence[NodeForm],
    settled: Callable[[Expr, Fragment], NodeForm],
    inner: Inner,
) -> Fragment:
    """A loop as a function of its step, the first states, operands by name, and the range."""
    n, fed = loop.results, application(node).args[len(loop.states) :]
    operands = [*operands[:n], *operands[len(loop.states) :]]
    own = [style.name(name) for name in names.chosen(STATES, n)]
    (index,) = [style.name(name) for name in names.chosen(INDICES, 1)]
    forms = dict(zip(map(id, fed), operands[n:], strict=True))
    bound = bound_operands(fed)
    called = [style.name(name) for name in names.chosen(OPERANDS, len(bound))]
    given = [
        (style.signed(p), "=", style.signed(forms[id(e)].plain))
        for e, p in zip(bound, called, strict=True)
    ]
    short = {id(e): settled(e, p) for e, p in zip(bound, called, strict=True)}
    inside = [short.get(id(arg), forms[id(arg)]) for arg in fed]
    known = {id(v): settled(v, p) for v, p in zip(loop.states, own, strict=False)}
    for v, form in zip(loop.slices, inside, strict=False):
        known[id(v)] = settled(v, style.indexed(form.plain, [index]))
    known |= {id(v): form for v, form in zip(loop.fixed, inside[len(loop.slices) :], strict=True)}
    statements, after = inner([loop.following[k] for k in range(n)], known)
    step = (
        _together(style, own),
        style.maps_to,
        *_told(style, statements),
        _together(style, after),
    )
    first = [operands[k].plain for k in range(n)]
    ending, conditions = _ending(style, loop, index, known, inner)
    every = [*after, *first, *[p for _, p in statements], *[forms[id(e)].plain for e in bound]]
    size, flips = fragment_size([*every, *conditions], 6 + n)
    extent = (style.signed(index), "=", range_of(loop), *ending)
    body = Fragment(
        join_ropes(", ", [step, _together(style, first), *given, extent]), size=size, flips=flips
    )
    name, place = loop_word(node)
    found = style.function(name, [body])
    return style.indexed(found, [Fragment(place[1:-1])]) if place else found


def _ending(
    style: Style, loop: Iteration, index: Fragment, known: dict[int, NodeForm], inner: Inner
) -> tuple[list[Rope], list[Fragment]]:
    """What is behind the range of a loop that may make fewer steps, and its fragments."""
    if loop.until is not None:
        before, (condition,) = inner([loop.until], known)
        ropes = [style.keyword("until"), *_told(style, before), style.argument(condition)]
        return ropes, [*[p for _, p in before], condition]
    if loop.bound is not None:
        condition = style.compared("<", index, known[id(loop.bound)].plain)
        return [style.keyword("if"), style.argument(condition)], [condition]
    return [], []


def _told(style: Style, statements: Sequence[tuple[str, Fragment]]) -> list[Rope]:
    """Statements before what reads them."""
    return [
        (style.signed(style.name(name)), " = ", style.signed(p), "; ") for name, p in statements
    ]


def _together(style: Style, fragments: Sequence[Fragment]) -> Rope:
    ropes = [style.signed(p) for p in fragments]
    return ropes[0] if len(ropes) == 1 else ("(", join_ropes(", ", ropes), ")")
