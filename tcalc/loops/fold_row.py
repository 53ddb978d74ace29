"""Sequential loops: the row of the operator `fold`.

The body of a loop is closed: one step as expressions in variables of its own, for the states, for
slices of scanned operands and for captured operands. The outputs are, for every state, its last
value, its values after each step and its values before each step. The two histories are views of
one array, and plans compute only the outputs that are read.

A loop may have a bound (see `Iteration`). Its rows of histories that are no state around a step
that is made are zero; where a state is the bound, the number of steps is one more output.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod
from typing import Any

from ..graph.extents import Shape, extent_names, extent_of
from ..graph.iterations import Iteration
from ..graph.operators import Kernels, Loop, Meaning
from ..graph.spelling import Spelling
from ..support.arrays import AnyArray
from ..support.rows import Rows, StateRows
from .batches import batched_loop
from .body import Body
from .checkpoints import in_stretches
from .derivatives import loop_pushforward
from .hoisting import hoisted
from .joint_rows import loop_pullbacks
from .rows_of_steps import rows_inside
from .sums_of_steps import summed_inside

__all__: list[str] = []


def _shapes(params: tuple[Any, ...], *shapes: Shape) -> tuple[Shape, ...]:
    body, length, _ = params
    last = [v.shape for v in body.states[: body.results]]
    counted: list[Shape] = [()] if body.until is not None else []
    return (*last, *[(length, *s) for s in last], *[(length, *s) for s in last], *counted)


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
        return sum([prod(s) * StateRows(count, k in kept, backward).held for k, s in shapes])

    following = {k: body.outputs[k] for k in needed}
    variables = body.states, body.steps, body.captured
    return Iteration(following, *variables, length, backward, entries, body.bound, body.until)


def _needed(body: Body, read: Collection[int]) -> tuple[list[int], set[int]]:
    """The states that the outputs in `read` need, and those whose history is read."""
    n = body.results
    read = [k for k in read if k < 3 * n]
    ends = {k % n for k in read} | set(range(n, len(body.states)))
    return sorted(body.reaching(ends)), {k % n for k in read if k >= n}


def _run_steps(xp: Any, params: tuple[Any, ...], *arrays: AnyArray) -> list[AnyArray | None]:
    """The outputs that are read, None for the others.

    The last three parameters are the number of steps, the outputs that are read, and the compiled
    step. ``step.sweep(count, fixed, moving, into, flag)`` runs it up to `count` times: `fixed` are
    arrays by name, `moving` the rows that each step reads by name, `into` those that it writes, and
    `flag` the rows of the state that ends the loop.
    """
    body, length, backward, count, read, step = params
    arrays = tuple([xp.asarray(a, order="C") for a in arrays])
    n, m = len(body.states), len(body.steps)
    counter = _iteration((body, length, backward), read).counter
    needed, kept = _needed(body, read)
    times = count if counter is None else int(min(max(arrays[counter], 0), count))
    lies = {k: StateRows(times, k in kept, backward) for k in needed}
    memory = xp.empty if body.bound is None else xp.zeros
    held = {
        k: memory((at._replace(steps=count).held, *arrays[k].shape), step.dtype)
        for k, at in lies.items()
    }
    for k, at in lies.items():
        held[k][at.before[0], ...] = arrays[k]
    moving = {body.states[k].name: Rows(held[k], at.before) for k, at in lies.items()}
    ends = None if body.until is None else moving[body.bound.name]
    order = range(times)[::-1] if backward else range(times)
    for v, array in zip(body.steps, arrays[n : n + m], strict=True):
        moving[v.name] = Rows(array, order)
    fixed = {v.name: a for v, a in zip(body.captured, arrays[n + m :], strict=True)}
    into = [Rows(held[k], at.after) for k, at in lies.items()]
    done = step.sweep(times, fixed, moving, into, ends)
    n = body.results
    results: list[AnyArray | None] = [None] * (3 * n)
    for k, at in lies.items():
        if k < n:
            results[k] = held[k][at.row(done), ...]
        if k in kept:
            after, before = at.histories
            results[n + k], results[2 * n + k] = held[k][after], held[k][before]
    return results if ends is None else [*results, xp.asarray(done, step.dtype)]


FOLD = Loop(
    "fold", (),
    Meaning((), shape=_shapes, dimensions=_extents),
    Kernels(_run_steps, host=True),
    Spelling(r"\operatorname{{fold}}"),
    tangents=loop_pushforward, cotangents=loop_pullbacks, batched=batched_loop,
    iteration=_iteration, hoisted=hoisted, summed=summed_inside, stretched=in_stretches,
    rows=rows_inside,
    parts=("fold", "fold_after", "fold_before", "fold_steps"),
)  # fmt: skip
