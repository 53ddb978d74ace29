"""Loops in formulas: `fold(s -> tanh(w*s + x[i]), s0, i=0..T-1)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...graph.applications import application, parts
from ...graph.nodes import Expr, Part
from ...graph.operators import Iteration, Loop
from .matrix_form import NodeForm
from .notation import Fragment, Rope, Style, fragment_size, join_ropes

#: Letters of states and of indices, by depth of nesting.
STATES, INDICES = "srqpo", "ijklm"

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
    return op.iteration(whole.params, (node.index,)) if isinstance(op, Loop) else None


def repeated(
    node: Part,
    loop: Iteration,
    style: Style,
    names: Names,
    operands: Sequence[NodeForm],
    settled: Callable[[Expr, Fragment], NodeForm],
    inner: Inner,
) -> Fragment:
    """A loop as a function of its step, the first states and the range of the index."""
    n = len(loop.states)
    needed = list(loop.following)
    own = [style.name(name) for name in names.chosen(STATES, len(needed))]
    (index,) = [style.name(name) for name in names.chosen(INDICES, 1)]
    known = {
        id(loop.states[k]): settled(loop.states[k], fragment)
        for k, fragment in zip(needed, own, strict=True)
    }
    sliced, fixed = operands[n : n + len(loop.slices)], operands[n + len(loop.slices) :]
    for v, form in zip(loop.slices, sliced, strict=True):
        known[id(v)] = settled(v, style.indexed(form.plain, [index]))
    known |= {id(v): form for v, form in zip(loop.fixed, fixed, strict=True)}
    statements, after = inner(list(loop.following.values()), known)
    first = [operands[k].plain for k in needed]
    named = [(style.name(name), fragment) for name, fragment in statements]
    ropes = [(style.signed(p), " = ", style.signed(q), "; ") for p, q in named]
    step = (*ropes, _together(style, own), style.maps_to, _together(style, after))
    ends = ("0", f"{loop.times}-1") if isinstance(loop.times, str) else ("0", str(loop.times - 1))
    low, high = reversed(ends) if loop.backward else ends
    every = [*after, *first, *[fragment for _, fragment in statements]]
    size, flips = fragment_size(every, 6 + len(needed))
    extent = (style.signed(index), "=", low, "..", high)
    kind, number = divmod(node.index, len(parts(application(node))) // 3)
    name = application(node).op.parts[kind]
    body = Fragment(
        join_ropes(", ", [step, _together(style, first), extent]), size=size, flips=flips
    )
    found = style.function(name, [body])
    if len(needed) > 1:
        place = Fragment(str(needed.index(number)))
        return style.indexed(found, [place])
    return found


def _together(style: Style, fragments: Sequence[Fragment]) -> Rope:
    ropes = [style.signed(p) for p in fragments]
    return ropes[0] if len(ropes) == 1 else ("(", join_ropes(", ", ropes), ")")
