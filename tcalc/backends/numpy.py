"""Plans on NumPy: one closure per step, run in a loop over a list of arrays.

Views of the workspace are bound once, when a workspace is made; a call only fills in its inputs and
allocates its outputs. A workspace serves one call at a time and then waits in a pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from ..errors import LinAlgError
from ..steps import CONST, RESULT, VIEW, Output, Plan, Step

Array = np.ndarray
Slots = list[Any]
Run = Callable[[Slots], None]

#: Workspaces above this size are freed after every call.
KEPT_BYTES = 1 << 28
#: Arrays made by kernels are dropped early from this size on.
_DROP_BYTES = 1 << 14


class Program:
    """A plan bound to a dtype; calling it with input arrays gives a list of fresh outputs."""

    def __init__(self, plan: Plan, dtype: np.dtype[Any]) -> None:
        self.plan = plan
        self.dtype = dtype
        self._count = len(plan.inputs)
        self._pool: list[Slots] = []
        self._kept = sum(plan.blocks) <= KEPT_BYTES
        self._static: list[Run] = []
        self._runs: list[Run] = []
        self._compile()
        self._returns = [self._return(output) for output in plan.outputs]

    def __call__(self, arrays: Sequence[Array]) -> list[Any]:
        try:
            base = self._pool.pop()
        except IndexError:
            base = self._workspace()
        slots = base.copy()
        slots[: self._count] = arrays
        try:
            with np.errstate(all="ignore"):
                for run in self._runs:
                    run(slots)
        except np.linalg.LinAlgError as error:
            raise LinAlgError(str(error)) from error
        results = [finish(slots) for finish in self._returns]
        if self._kept:
            self._pool.append(base)
        return results

    def _compile(self) -> None:
        plan = self.plan
        ends = self._drops()
        born: set[int] = set()
        for index, step in enumerate(plan.steps):
            owner = plan.owner[step.out]
            place = plan.home[owner]
            run = KERNELS[step.kind](step, self.dtype)
            if plan.origin[step.out] is VIEW and (
                plan.origin[owner] is CONST or (place is not None and place >= 0)
            ):
                self._static.append(run)
                continue
            if place is not None and place < 0 and place not in born:
                born.add(place)
                self._runs.append(self._allocation(-1 - place, step.kind))
            elif step.kind == "embed":
                self._runs.append(_cleared(step.out))
            if step.kind != "scratch":
                self._runs.append(run)
            if index in ends:
                self._runs.append(_drop(tuple(ends[index])))

    def _drops(self) -> dict[int, list[int]]:
        """Slots with memory of their own that can be forgotten, by the step after which."""
        plan = self.plan
        ends: dict[int, list[int]] = {}
        for slot, owner in enumerate(plan.owner):
            large = prod(plan.shapes[owner]) * plan.itemsize >= _DROP_BYTES
            if large and plan.origin[owner] is RESULT and plan.last_use[owner] < len(plan.steps):
                ends.setdefault(plan.last_use[owner], []).append(slot)
        return ends

    def _allocation(self, number: int, kind: str) -> Run:
        """Binds all slots that live in output `number` to a new array."""
        plan = self.plan
        # Pages of zeros come from the system unwritten, where a unit tensor is mostly zeros.
        new = np.zeros if kind == "embed" else np.empty
        final = plan.outputs[number].slot
        shape, dtype = plan.shapes[final], self.dtype
        members = [slot for slot, place in enumerate(plan.home) if place == -1 - number]
        same = [slot for slot in members if plan.shapes[slot] == shape and slot != final]
        other = [(slot, plan.shapes[slot]) for slot in members if plan.shapes[slot] != shape]

        def run(v: Slots) -> None:
            array = v[final] = new(shape, dtype)
            for slot in same:
                v[slot] = array
            for slot, reshaped in other:
                v[slot] = array.reshape(reshaped)

        return run

    def _workspace(self) -> Slots:
        plan, dtype = self.plan, self.dtype
        slots: Slots = [None] * len(plan.shapes)
        for slot, array in plan.consts.items():
            slots[slot] = array if slot in plan.integers else array.astype(dtype)
        blocks = [np.empty(size, np.uint8) for size in plan.blocks]
        bound: dict[Any, Array] = {}
        for slot, place in enumerate(plan.home):
            if place is not None and place >= 0:
                shape = plan.shapes[slot]
                key = (place, shape)
                if key not in bound:
                    size = prod(shape) * dtype.itemsize
                    bound[key] = blocks[place][:size].view(dtype).reshape(shape)
                slots[slot] = bound[key]
        for run in self._static:
            run(slots)
        return slots

    def _return(self, output: Output) -> Callable[[Slots], Any]:
        slot, perm = output
        made_by_kernel = self.plan.origin[slot] is RESULT
        ndim = len(self.plan.shapes[slot])

        def finish(v: Slots) -> Any:
            array = v[slot]
            if made_by_kernel and not _owned(array, v, slot):
                array = array.copy()
            return array[()] if ndim == 0 else array if perm is None else array.transpose(perm)

        return finish


def _owned(array: Array, v: Slots, slot: int) -> bool:
    """Did a kernel return an array of its own that no other slot holds?"""
    flags = array.flags
    return (
        flags.owndata
        and flags.writeable
        and not any(other is array for k, other in enumerate(v) if k != slot)
    )


def _cleared(slot: int) -> Run:
    def run(v: Slots) -> None:
        v[slot].fill(0)

    return run


def _drop(slots: tuple[int, ...]) -> Run:
    def run(v: Slots) -> None:
        for slot in slots:
            v[slot] = None

    return run


# --- kernels --------------------------------------------------------------------------------------

Maker = Callable[[Step, "np.dtype[Any]"], Run]


def _unary(apply: Callable[[Any, Step], Any]) -> Maker:
    """Views: the slot is bound to what `apply` makes of the operand."""

    def make(step: Step, dtype: np.dtype[Any]) -> Run:
        (a,), o = step.args, step.out

        def run(v: Slots) -> None:
            v[o] = apply(v[a], step)

        return run

    return make


def _into(function: Callable[..., Any]) -> Maker:
    """Functions of one or two operands with an `out` behind them."""

    def make(step: Step, dtype: np.dtype[Any]) -> Run:
        return _called(function, step.args, step.out)

    return make


def _called(function: Callable[..., Any], args: tuple[int, ...], o: int) -> Run:
    if len(args) == 1:
        (a,) = args

        def one(v: Slots) -> None:
            function(v[a], v[o])

        return one
    if len(args) == 2:
        a, b = args

        def two(v: Slots) -> None:
            function(v[a], v[b], v[o])

        return two

    def several(v: Slots) -> None:
        function(*[v[k] for k in args], v[o])

    return several


def _transpose(step: Step, dtype: np.dtype[Any]) -> Run:
    (a,), o, perm = step.args, step.out, step.params

    def run(v: Slots) -> None:
        v[o] = v[a].transpose(perm)

    return run


def _insert(step: Step, dtype: np.dtype[Any]) -> Run:
    (a,), o = step.args, step.out
    index = tuple([slice(None) if present else None for present in step.params])

    def run(v: Slots) -> None:
        v[o] = v[a][index]

    return run


def _scale(step: Step, dtype: np.dtype[Any]) -> Run:
    (a,), o, (coef,) = step.args, step.out, step.params
    if coef == -1:
        return _called(np.negative, step.args, o)

    def run(v: Slots) -> None:
        np.multiply(v[a], coef, v[o])

    return run


def _shift(step: Step, dtype: np.dtype[Any]) -> Run:
    (a,), o, (number,) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        np.add(v[a], number, v[o])

    return run


def _minus_from(step: Step, dtype: np.dtype[Any]) -> Run:
    (a,), o, (number,) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        np.subtract(number, v[a], v[o])

    return run


def _sum(step: Step, dtype: np.dtype[Any]) -> Run:
    (a,), o, axes = step.args, step.out, step.params
    axis = None if not step.shape else axes[0] if len(axes) == 1 else axes
    reduce = np.add.reduce

    def run(v: Slots) -> None:
        reduce(v[a], axis, None, v[o])

    return run


def _copy(step: Step, dtype: np.dtype[Any]) -> Run:
    (a,), o = step.args, step.out

    def run(v: Slots) -> None:
        np.copyto(v[o], v[a], casting="unsafe")

    return run


def _fill(step: Step, dtype: np.dtype[Any]) -> Run:
    o, value = step.out, step.params[0]

    def run(v: Slots) -> None:
        v[o].fill(value)

    return run


def _ufunc(step: Step, dtype: np.dtype[Any]) -> Run:
    return _called(getattr(np, step.params[0].ufunc), step.args, step.out)


def _kernel(step: Step, dtype: np.dtype[Any]) -> Run:
    op, *rest = step.params
    args, o, kernel, params = step.args, step.out, op.kernel, tuple(rest)

    def run(v: Slots) -> None:
        v[o] = np.asarray(kernel(np, params, *[v[k] for k in args]), dtype)

    return run


def _strided(step: Step, dtype: np.dtype[Any]) -> Callable[[Array], Array]:
    """The writable view of a contiguous result that runs over the distinct labels of a pattern."""
    (pattern,) = step.params
    count = max(pattern) + 1
    shape, strides = [0] * count, [0] * count
    stride = dtype.itemsize
    for label, extent in zip(pattern[::-1], step.shape[::-1], strict=True):
        shape[label] = extent
        strides[label] += stride
        stride *= extent

    def view(array: Array) -> Array:
        return np.ndarray(shape, dtype, array, 0, strides)

    return view


def _embed(step: Step, dtype: np.dtype[Any]) -> Run:
    """Writes into zeros, which the program provides."""
    (a,), o = step.args, step.out
    view = _strided(step, dtype)
    empty = not prod(step.shape)

    def run(v: Slots) -> None:
        if not empty:
            np.copyto(view(v[o]), v[a])

    return run


def _embed_add(step: Step, dtype: np.dtype[Any]) -> Run:
    (a, b), o = step.args, step.out
    view = _strided(step, dtype)
    empty = not prod(step.shape)

    def run(v: Slots) -> None:
        target = v[o]
        if v[a] is not target:
            np.copyto(target, v[a])
        if not empty:
            entries = view(target)
            np.add(entries, v[b], entries)

    return run


def _gram(step: Step, dtype: np.dtype[Any]) -> Run:
    """Xᵀ diag(d) X; NumPy multiplies √d X with its own transpose by a symmetric rank update."""
    (a, b, c), o = step.args, step.out

    def run(v: Slots) -> None:
        x, d, rows, out = v[a], v[b], v[c], v[o]
        if not d.size or d.min() >= 0:
            np.multiply(x, np.sqrt(d)[:, None], rows)
            np.dot(rows.T, rows, out)
        elif d.max() <= 0:
            np.multiply(x, np.sqrt(-d)[:, None], rows)
            np.dot(rows.T, rows, out)
            np.negative(out, out)
        elif np.isnan(d).any():
            np.multiply(x, d[:, None], rows)
            np.dot(x.T, rows, out)
        else:
            order = np.argsort(d < 0, kind="stable")
            count = int(np.count_nonzero(d >= 0))
            np.take(x, order, 0, rows, mode="clip")
            np.multiply(rows, np.sqrt(np.abs(d[order]))[:, None], rows)
            np.dot(rows[:count].T, rows[:count], out)
            np.subtract(out, np.dot(rows[count:].T, rows[count:]), out)

    return run


def _scratch(step: Step, dtype: np.dtype[Any]) -> Run:
    return _drop(())


#: How each kind of step is run.
KERNELS: dict[str, Maker] = {
    "transpose": _transpose,
    "insert": _insert,
    "reshape": _unary(lambda a, step: a.reshape(step.shape)),
    "broadcast": _unary(lambda a, step: np.broadcast_to(a, step.shape)),
    "diagonal": _unary(lambda a, step: a.diagonal(0, *step.params)),
    "copy": _copy,
    "fill": _fill,
    "scale": _scale,
    "shift": _shift,
    "minus_from": _minus_from,
    "multiply": _into(np.multiply),
    "add": _into(np.add),
    "subtract": _into(np.subtract),
    "ufunc": _ufunc,
    "sum": _sum,
    "dot": _into(np.dot),
    "matmul": _into(np.matmul),
    "vecdot": _into(np.vecdot),
    "embed": _embed,
    "embed_add": _embed_add,
    "gram": _gram,
    "kernel": _kernel,
    "scratch": _scratch,
}
