"""Loops in formulas: `fold(s -> tanh(w*s + x[i]), s0, i=0..T-1)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...graph.applications import application, parts
from ...graph.nodes import Expr, Part
from ...graph.row import Iteration, Loop
from .matrix_form import Form
from .notation import Piece, Rope, Style, joined, measure

#: Letters of states and of indices, by how many loops are around.
STATES, INDICES = "srqpo", "ijklm"

#: The pieces of expressions, and the statements before them, from the pieces of some nodes.
Inner = Callable[[Sequence[Expr], dict[int, Form]], tuple[list[tuple[str, Piece]], list[Piece]]]


class Names:
    """Names of states and indices that nothing else in the formula has."""

    def __init__(self, taken: set[str], level: int = 0) -> None:
        self.taken, self.level = taken, level

    def inner(self) -> Names:
        return Names(self.taken, self.level + 1)

    def chosen(self, letters: str, count: int) -> list[str]:
        """So many names of these letters: one letter, or one with numbers."""
        name = letters[self.level % len(letters)] * (1 + self.level // len(letters))
        numbers = [""] if count == 1 else [str(k + 1) for k in range(count)]
        while any(name + number in self.taken for number in numbers):
            name += "_"
        return [name + number for number in numbers]


def loop_of(node: Part) -> Iteration | None:
    """The loop that the node is a result of."""
    whole = application(node)
    op = whole.op
    return op.iteration(whole.params, (node.index,)) if isinstance(op, Loop) else None


def repeated(
    node: Part,
    loop: Iteration,
    style: Style,
    names: Names,
    operands: Sequence[Form],
    settled: Callable[[Expr, Piece], Form],
    inner: Inner,
) -> Piece:
    """A loop as a function of its step, the first states and the range of the index."""
    n = len(loop.states)
    needed = list(loop.following)
    own = [style.name(name) for name in names.chosen(STATES, len(needed))]
    (index,) = [style.name(name) for name in names.chosen(INDICES, 1)]
    known = {
        id(loop.states[k]): settled(loop.states[k], piece)
        for k, piece in zip(needed, own, strict=True)
    }
    sliced, fixed = operands[n : n + len(loop.slices)], operands[n + len(loop.slices) :]
    for v, form in zip(loop.slices, sliced, strict=True):
        known[id(v)] = settled(v, style.indexed(form.plain, [index]))
    known |= {id(v): form for v, form in zip(loop.fixed, fixed, strict=True)}
    statements, after = inner(list(loop.following.values()), known)
    first = [operands[k].plain for k in needed]
    named = [(style.name(name), piece) for name, piece in statements]
    ropes = [(style.signed(p), " = ", style.signed(q), "; ") for p, q in named]
    step = (*ropes, _together(style, own), style.maps_to, _together(style, after))
    ends = ("0", f"{loop.times}-1") if isinstance(loop.times, str) else ("0", str(loop.times - 1))
    low, high = reversed(ends) if loop.backward else ends
    every = [*after, *first, *[piece for _, piece in statements]]
    size, flips = measure(every, 6 + len(needed))
    extent = (style.signed(index), "=", low, "..", high)
    kind, number = divmod(node.index, len(parts(application(node))) // 3)
    name = application(node).op.parts[kind]
    body = Piece(joined(", ", [step, _together(style, first), extent]), size=size, flips=flips)
    found = style.function(name, [body])
    if len(needed) > 1:
        place = Piece(str(needed.index(number)))
        return style.indexed(found, [place])
    return found


def _together(style: Style, pieces: Sequence[Piece]) -> Rope:
    ropes = [style.signed(p) for p in pieces]
    return ropes[0] if len(ropes) == 1 else ("(", joined(", ", ropes), ")")
