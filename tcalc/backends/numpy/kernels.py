"""NumPy kernels: how each kind of step is run, as a closure over slot numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import prod
from typing import Any

import numpy as np

from ...plan.failures import without_entries
from ...plan.steps import Step
from ...support.arrays import Array
from ...support.namespaces import NUMPY
from ..host.slots import Run, Slots, dropped
from .correlations import CORRELATIONS
from .gathers import TABLES
from .matrices import MATRICES, Maker
from .sparse import SPARSE
from .strided import WINDOWS

#: NumPy divides with wider instructions than it inverts.
FASTER: dict[Callable[..., Any], Callable[..., Any]] = {np.reciprocal: partial(np.divide, 1)}


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
            function(v[a], v[b], out=v[o])

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
    return _indexed(step, tuple([slice(None) if present else None for present in step.params]))


def _indexed(step: Step, index: Any) -> Run:
    (a,), o = step.args, step.out

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


def _powers(step: Step, dtype: np.dtype[Any]) -> Run:
    """Each half of the powers is the one before times one power."""
    (a,), o, (first, apart), count = step.args, step.out, step.params, step.shape[-1]
    order = slice(None, None, 1 if apart > 0 else -1)
    low = min(first, first + apart * (count - 1))

    def run(v: Slots) -> None:
        base, out, done = v[a][..., None], v[o][..., order], 1
        out[..., :1], factor = base**low, base ** abs(apart)
        while done < count:
            more = min(done, count - done)
            np.multiply(out[..., :more], factor, out[..., done : done + more])
            done, factor = done + more, factor * factor

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


def _einsum(step: Step, dtype: np.dtype[Any]) -> Run:
    (a, b), o, (spec,) = step.args, step.out, step.params

    def run(v: Slots) -> None:
        np.einsum(spec, v[a], v[b], out=v[o])

    return run


def _ufunc(step: Step, dtype: np.dtype[Any]) -> Run:
    function = getattr(np, step.params[0].kernels.ufunc)
    return _called(FASTER.get(function, function), step.args, step.out)


def _kernel(step: Step, dtype: np.dtype[Any]) -> Run:
    op, *params = step.params
    args, o = step.args, step.out
    # A formula by itself is one call of Python less, which small arrays feel.
    formula = op.kernels.formula
    first = (NUMPY,) if formula else (NUMPY, tuple(params))
    compute = formula or op.kernels.compute

    def run(v: Slots) -> None:
        try:
            v[o] = np.asarray(compute(*first, *[v[k] for k in args]), dtype)
        except ValueError as error:
            empty = without_entries(step, [v[k] for k in args])
            if empty is None or isinstance(error, np.linalg.LinAlgError):
                raise
            raise empty from error

    return run


def _kernels(step: Step, dtype: np.dtype[Any]) -> Run:
    op, *rest = step.params
    args, o, kernel, params = step.args, step.out, op.kernels.compute, tuple(rest)

    def run(v: Slots) -> None:
        results = kernel(NUMPY, params, *[v[k] for k in args])
        v[o] = tuple([np.asarray(result, dtype) for result in results])

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


def _scratch(step: Step, dtype: np.dtype[Any]) -> Run:
    return dropped(())


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
    "powers": _powers,
    "multiply": _into(np.multiply),
    "add": _into(np.add),
    "subtract": _into(np.subtract),
    "ufunc": _ufunc,
    "sum": _sum,
    "matmul": _into(np.matmul),
    "vecdot": _into(np.vecdot),
    "einsum": _einsum,
    "embed": _embed,
    "embed_add": _embed_add,
    "kernel": _kernel,
    "kernels": _kernels,
    "part": lambda step, dtype: _indexed(step, *step.params),
    "scratch": _scratch,
    **MATRICES,
    **SPARSE,
    **TABLES,
    **CORRELATIONS,
    **WINDOWS,
}
