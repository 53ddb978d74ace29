"""Sequential loops: the row `fold`.

An application holds the body of its loop, closed: one step as expressions in variables of its own,
which stand for the states, for slices of scanned operands and for captured operands. Its outputs
are, for every state, the last one, those after each step and those before each step; the two
histories are views of one array, and plans make only what is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import cycle, islice, repeat
from math import prod
from typing import Any

from ..graph.extents import Shape, extent_names, extent_of
from ..graph.row import Iteration, Kernels, Loop, Meaning, Spelling
from .body import Body
from .derivatives import cotangents, for_batch, tangents
from .hoisting import ahead

__all__: list[str] = []

Array = Any


def _shapes(params: tuple[Any, ...], *shapes: Shape) -> tuple[Shape, ...]:
    body, length, _ = params
    last = [v.shape for v in body.states]
    return (*last, *[(length, *s) for s in last], *[(length, *s) for s in last])


def _extents(params: tuple[Any, ...]) -> set[str]:
    body, length, _ = params
    found: set[str] = body.dimensions | extent_names([length])
    return found


def _iteration(params: tuple[Any, ...], read: Collection[int]) -> Iteration:
    """One step, as far as the outputs that are read need it."""
    body, length, backward = params
    needed, kept = _needed(body, read)

    def entries(sizes: Mapping[str, int]) -> int:
        count = extent_of(length, sizes)
        shapes = [(k, [extent_of(x, sizes) for x in body.states[k].shape]) for k in needed]
        return sum([prod(s) * _rows(count, k in kept) for k, s in shapes])

    following = {k: body.outputs[k] for k in needed}
    variables = body.states, body.steps, body.captured
    return Iteration(following, *variables, length, backward, entries)


def _needed(body: Body, read: Collection[int]) -> tuple[list[int], set[int]]:
    """The states that the outputs in `read` need, and those with a history among them."""
    n = len(body.states)
    return sorted(body.reaching({k % n for k in read})), {k % n for k in read if k >= n}


def _rows(count: int, kept: bool) -> int:
    """How many values of a state are held: all of them, or the one before a step and after it."""
    return count + 1 if kept else min(count, 1) + 1


class _Values:
    """Memory for the values of a state, in the order in which they are made.

    Row t of a history is the state before step t, and the one after step t - 1; of a loop from the
    last step on it is the other way round.
    """

    def __init__(
        self, xp: Any, init: Array, count: int, kept: bool, backward: bool, dtype: Any
    ) -> None:
        self.memory = xp.empty((_rows(count, kept), *init.shape), dtype)
        rows = range(len(self.memory))
        self.order = rows[::-1] if backward else rows
        self.last = self.memory[self.order[count if kept else count % 2], ...]
        self.memory[self.order[0], ...] = init

    def before(self) -> Iterator[Array]:
        return _slices(self.memory, cycle(self.order))

    def after(self) -> Iterator[Array]:
        return islice(self.before(), 1, None)


def _slices(array: Array, order: Iterable[int]) -> Iterator[Array]:
    """Slices of the first axis, as arrays also where they have no axes."""
    return map(array.__getitem__, zip(order, repeat(...), strict=False))


def _run(xp: Any, params: tuple[Any, ...], *arrays: Array) -> list[Array | None]:
    """All outputs that are read, None for the others.

    The last three parameters are the extent, the outputs that are read, and a step that is run by
    ``step.sweep(count, fixed, moving, into)``: with arrays by name that stay, with arrays by name
    for one step after the other, and with arrays to write the results of one step after the other.
    """
    body, _, backward, count, read, step = params
    arrays = tuple([xp.asarray(a, order="C") for a in arrays])
    n, m = len(body.states), len(body.steps)
    needed, kept = _needed(body, read)
    order = range(count)[::-1] if backward else range(count)
    held = {k: _Values(xp, arrays[k], count, k in kept, backward, step.dtype) for k in needed}
    moving = {body.states[k].name: values.before() for k, values in held.items()}
    for v, array in zip(body.steps, arrays[n : n + m], strict=True):
        moving[v.name] = _slices(array, order)
    fixed = {v.name: a for v, a in zip(body.captured, arrays[n + m :], strict=True)}
    step.sweep(count, fixed, moving, [values.after() for values in held.values()])
    results: list[Array | None] = [None] * (3 * n)
    for k, values in held.items():
        results[k] = values.last
        if k in kept:
            early, late = values.memory[:-1], values.memory[1:]
            results[n + k], results[2 * n + k] = (early, late) if backward else (late, early)
    return results


FOLD = Loop(
    "fold", (),
    Meaning((), shape=_shapes, dimensions=_extents),
    Kernels(_run, host=True),
    Spelling(r"\operatorname{{fold}}"),
    tangents=tangents, cotangents=cotangents, batched=for_batch, iteration=_iteration,
    hoisted=ahead, parts=("fold", "fold_after", "fold_before"),
)  # fmt: skip
