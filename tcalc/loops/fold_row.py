"""Sequential loops: the row of the operator `fold`.

The body of a loop is closed: one step as expressions in variables of its own, for the states, for
slices of scanned operands and for captured operands. The outputs are, for every state, its last
value, its values after each step and its values before each step. The two histories are views of
one array, and plans compute only the outputs that are read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import cycle, islice, repeat
from math import prod
from typing import Any

from ..graph.extents import Shape, extent_names, extent_of
from ..graph.operators import Iteration, Kernels, Loop, Meaning, Spelling
from ..support.arrays import AnyArray
from .batches import batched_loop
from .body import Body
from .derivatives import loop_pullback, loop_pushforward
from .hoisting import hoisted

__all__: list[str] = []


def _shapes(params: tuple[Any, ...], *shapes: Shape) -> tuple[Shape, ...]:
    body, length, _ = params
    last = [v.shape for v in body.states]
    return (*last, *[(length, *s) for s in last], *[(length, *s) for s in last])


def _extents(params: tuple[Any, ...]) -> set[str]:
    body, length, _ = params
    found: set[str] = body.dimensions | extent_names([length])
    return found


def _iteration(params: tuple[Any, ...], read: Collection[int]) -> Iteration:
    """One step, restricted to the states that the outputs in `read` need."""
    body, length, backward = params
    needed, kept = _needed(body, read)

    def entries(sizes: Mapping[str, int]) -> int:
        count = extent_of(length, sizes)
        shapes = [(k, [extent_of(x, sizes) for x in body.states[k].shape]) for k in needed]
        return sum([prod(s) * _held_values(count, k in kept) for k, s in shapes])

    following = {k: body.outputs[k] for k in needed}
    variables = body.states, body.steps, body.captured
    return Iteration(following, *variables, length, backward, entries)


def _needed(body: Body, read: Collection[int]) -> tuple[list[int], set[int]]:
    """The states that the outputs in `read` need, and those whose history is read."""
    n = len(body.states)
    return sorted(body.reaching({k % n for k in read})), {k % n for k in read if k >= n}


def _held_values(count: int, kept: bool) -> int:
    """How many values of a state are held: all, or those before and after the current step."""
    return count + 1 if kept else min(count, 1) + 1


class _StateMemory:
    """Memory for the values of one state.

    Row t of a history is the state before step t and after step t - 1; in a loop that runs backward
    it is the state after step t and before step t - 1.
    """

    def __init__(
        self, xp: Any, init: AnyArray, count: int, kept: bool, backward: bool, dtype: Any
    ) -> None:
        self.memory = xp.empty((_held_values(count, kept), *init.shape), dtype)
        rows = range(len(self.memory))
        self.order = rows[::-1] if backward else rows
        self.last = self.memory[self.order[count if kept else count % 2], ...]
        self.memory[self.order[0], ...] = init

    def before(self) -> Iterator[AnyArray]:
        return _slices(self.memory, cycle(self.order))

    def after(self) -> Iterator[AnyArray]:
        return islice(self.before(), 1, None)


def _slices(array: AnyArray, order: Iterable[int]) -> Iterator[AnyArray]:
    """Slices along the first axis, arrays even where they have no axes."""
    return map(array.__getitem__, zip(order, repeat(...), strict=False))


def _run_steps(xp: Any, params: tuple[Any, ...], *arrays: AnyArray) -> list[AnyArray | None]:
    """The outputs that are read, None for the others.

    The last three parameters are the number of steps, the outputs that are read, and the compiled
    step. ``step.sweep(count, fixed, moving, into)`` runs it `count` times: `fixed` are arrays by
    name, `moving` iterators by name over the arrays of each step, `into` iterators over the arrays
    that each step writes.
    """
    body, _, backward, count, read, step = params
    arrays = tuple([xp.asarray(a, order="C") for a in arrays])
    n, m = len(body.states), len(body.steps)
    needed, kept = _needed(body, read)
    order = range(count)[::-1] if backward else range(count)
    held = {k: _StateMemory(xp, arrays[k], count, k in kept, backward, step.dtype) for k in needed}
    moving = {body.states[k].name: values.before() for k, values in held.items()}
    for v, array in zip(body.steps, arrays[n : n + m], strict=True):
        moving[v.name] = _slices(array, order)
    fixed = {v.name: a for v, a in zip(body.captured, arrays[n + m :], strict=True)}
    step.sweep(count, fixed, moving, [values.after() for values in held.values()])
    results: list[AnyArray | None] = [None] * (3 * n)
    for k, values in held.items():
        results[k] = values.last
        if k in kept:
            early, late = values.memory[:-1], values.memory[1:]
            results[n + k], results[2 * n + k] = (early, late) if backward else (late, early)
    return results


FOLD = Loop(
    "fold", (),
    Meaning((), shape=_shapes, dimensions=_extents),
    Kernels(_run_steps, host=True),
    Spelling(r"\operatorname{{fold}}"),
    tangents=loop_pushforward, cotangents=loop_pullback, batched=batched_loop, iteration=_iteration,
    hoisted=hoisted, parts=("fold", "fold_after", "fold_before"),
)  # fmt: skip
