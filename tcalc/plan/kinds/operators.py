"""Kinds that run an operator: as a ufunc, its own kernel for one result or several, a loop."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from ...support.arrays import AnyArray, Sizes
from ...support.errors import LinAlgError
from ...support.namespaces import NUMPY
from . import tiles
from .kind import Kind, Params, Result, broadcast, given


def _made(shape: Sizes, params: Params, *shapes: Sizes) -> Sizes:
    op, *rest = params
    found: Sizes = op.result_shape(tuple(rest), *shapes)
    return broadcast(shape, params, *shapes) if op.elementwise else found


def computed(xp: Any, params: Params, *arrays: AnyArray) -> Any:
    """What an operator, the first parameter, makes of arrays of a namespace.

    A row that needs NumPy's arrays, and has no portable form, gets such arrays and gives them.
    """
    op, *rest = params
    kernels = op.kernels
    if not kernels.host:
        return kernels.compute(xp, tuple(rest), *arrays)
    if kernels.portable is not None:
        return kernels.portable(xp, tuple(rest), *arrays)
    return kernels.compute(NUMPY, tuple(rest), *xp.on_host(arrays))


def _kernel(xp: Any, result: Result, params: Params, *arrays: AnyArray) -> AnyArray:
    return xp.asarray(computed(xp, params, *arrays), result.dtype)


def _shares(params: Params) -> bool:
    """May the row's result lie in the memory of an operand?"""
    return bool(params[0].kernels.shares)


def _all_entries(shape: Sizes, params: Params, *shapes: Sizes) -> Sizes:
    op, *rest = params
    return (sum([prod(one) for one in op.meaning.shape(tuple(rest), *shapes)]),)


def _kernels(xp: Any, result: Result, params: Params, *arrays: AnyArray) -> tuple[AnyArray, ...]:
    return tuple([xp.asarray(one, result.dtype) for one in computed(xp, params, *arrays)])


def _loop(
    xp: Any, result: Result, params: Params, *arrays: AnyArray
) -> tuple[AnyArray | None, ...]:
    """The last states, those after every step, and those before: None for what is not read.

    Of a loop that ends at a condition the number of steps is the last.
    """
    op, *rest, count, read, step = params
    once = op.iteration(tuple(rest), read)
    n, m = len(once.states), len(once.slices)
    held = {k: [xp.asarray(arrays[k], result.dtype)] for k in once.following}
    scanned, fixed = arrays[n : n + m], _named(once.fixed, arrays[n + m :])
    times = count if once.counter is None else min(max(int(arrays[once.counter]), 0), count)
    order = range(times)[::-1] if once.backward else range(times)
    for number, t in enumerate(order, 1):
        if once.until is not None and held[n - 1][-1]:
            break
        states = {once.states[k].name: rows[-1] for k, rows in held.items()}
        slices = _named(once.slices, [a[t] for a in scanned])
        try:
            after = step({**states, **slices, **fixed})
        except np.linalg.LinAlgError as error:
            raise LinAlgError(f"{error}, at step {number} of {count} of a loop") from error
        for rows, array in zip(held.values(), after, strict=True):
            rows.append(array)
    outputs: dict[int, AnyArray] = {}
    done, shown = len(next(iter(held.values()))) - 1, once.results
    for k, rows in held.items():
        rest = [xp.zeros_like(rows[0])] * (count - done)
        every = xp.stack([*(rows[::-1] if once.backward else rows), *rest])
        late, early = (every[:-1], every[1:]) if once.backward else (every[1:], every[:-1])
        if k < shown:
            outputs |= {k: rows[-1], shown + k: late, 2 * shown + k: early}
    if once.until is not None:
        outputs[3 * shown] = xp.asarray(done, dtype=result.dtype)
    return tuple([outputs.get(k) for k in range(3 * shown + (once.until is not None))])


def _named(variables: Any, arrays: Any) -> Mapping[str, AnyArray]:
    return {v.name: array for v, array in zip(variables, arrays, strict=True)}


OPERATOR = {"operator": "the row", "*params": "those of the row"}

OPERATORS = [
    Kind(
        name="ufunc", params=OPERATOR,
        shape=broadcast, flops=None, reference=_kernel, tiles=tiles.entrywise, in_place="any",
    ),
    Kind(
        name="kernel", params=OPERATOR,
        shape=_made, flops=None, reference=_kernel, tiles=tiles.operator,
        allocates=True, may_return=_shares,
    ),
    Kind(name="into", params=OPERATOR, shape=_made, flops=None, reference=_kernel),
    # The result is a tuple of arrays, which steps of the kind `part` read.
    Kind(
        name="kernels", params=OPERATOR,
        shape=_all_entries, flops=None, speed="factorisation", reference=_kernels,
        allocates=True, may_return=_shares,
    ),
    Kind(
        name="loop",
        params={
            "operator": "the row",
            "*params": "those of the row, the number of steps, the outputs that are read, and the "
                       "plan of one step; of the reference: what runs it, of arrays by name",
        },
        shape=given, flops=None, reference=_loop, allocates=True,
    ),
]  # fmt: skip
