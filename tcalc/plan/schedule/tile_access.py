"""How a step runs on a few rows at a time: what it reads of its operands, and what it makes.

Rows are entries of the first axis, or of a long last one after few short ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..steps import Builder, Sizes, Step

#: Kinds whose result has an entry for every entry of the broadcast operands.
ENTRYWISE = frozenset(
    {"scale", "shift", "minus_from", "multiply", "add", "subtract", "ufunc", "kernel", "copy"}
)
#: The number of rows, how a tile reads the operands, and how it has the result: its "rows",
#: "columns", or a "sum" over rows.
Reading = tuple[int, dict[int, str], str]


def _mode(b: Builder, shape: Sizes) -> str:
    return "columns" if b.machine.is_wide(shape) else "rows"


def reading(b: Builder, step: Step) -> Reading | None:
    """How the step runs on a few rows at a time; None where it cannot."""
    kind, shapes, args = step.kind, b.shapes, step.args
    if kind in ENTRYWISE and step.shape:
        if kind == "kernel" and not step.params[0].elementwise:
            return _reduced(b, step)
        return _broadcast(b, step, len(step.shape))
    if kind == "vecdot" and step.shape:
        return _by_rows(b, step, len(step.shape) + 1)
    if kind == "matmul" and len(step.shape) == 3:
        return _by_rows(b, step, 3)
    if kind in ("transpose", "insert", "window", "place", "place_add", "einsum") and step.shape:
        return _moved(b, step)
    if kind == "sum" and shapes[args[0]]:
        return _summed(b, step)
    # Of a product of which one half is wanted, a tile's rows have that of other columns each.
    return _product(b, step) if kind == "dot" and not step.params else None


def _by_rows(b: Builder, step: Step, ndim: int) -> Reading:
    """Operands with the first axis of the result are sliced, others are broadcast along it."""
    length, shapes = step.shape[0], b.shapes
    full = {a for a in step.args if len(shapes[a]) == ndim and shapes[a][0] == length}
    return length, {a: "rows" if a in full else "whole" for a in step.args}, "rows"


def _broadcast(b: Builder, step: Step, ndim: int) -> Reading:
    if not b.machine.is_wide(step.shape):
        return _by_rows(b, step, ndim)
    length = step.shape[-1]
    modes: dict[int, str] = {}
    for a in step.args:
        shape = b.shapes[a]
        mode = "columns" if len(shape) > 1 else "rows"
        modes[a] = mode if shape and shape[-1] == length else "whole"
    return length, modes, "columns"


def _reduced(b: Builder, step: Step) -> Reading | None:
    """A function of each vector of a batch."""
    (first, *others), op = step.args or (-1,), step.params[0]
    if first < 0 or others or op.core[0] not in (1, -1):
        return None
    shape = b.shapes[first]
    if (
        len(shape) != len(step.shape) + 1
        or shape[0] != step.shape[0]
        or b.machine.is_wide(step.shape)
    ):
        return None
    return shape[0], {first: "rows"}, "rows"


def _summed(b: Builder, step: Step) -> Reading | None:
    shape = b.shapes[step.args[0]]
    mode, axis = _mode(b, shape), len(shape) - 1 if b.machine.is_wide(shape) else 0
    if axis in step.params:
        return shape[axis], {step.args[0]: mode}, "sum"
    result = "columns" if mode == "columns" and len(step.shape) > 1 else "rows"
    return shape[axis], {step.args[0]: mode}, result


def _moved(b: Builder, step: Step) -> Reading | None:
    """Views, placements and products that are spelled by labels: where the long one stands."""
    last = len(step.shape) - 1
    axis = last if b.machine.is_wide(step.shape) else 0
    if step.kind == "transpose":
        axis = step.params.index(last if b.machine.is_wide(b.shapes[step.args[0]]) else 0)
        if axis not in (0, last):
            return None
    length = step.shape[axis]
    modes: dict[int, str] = {}
    places = _places(b, step, axis)
    if places is None:
        return None
    for a, place in zip(step.args, places, strict=True):
        shape = b.shapes[a]
        if place is None or shape[place] != length:
            mode = "whole"
        elif place == 0:
            mode = "rows"
        elif place == len(shape) - 1:
            mode = "columns"
        else:
            return None
        if modes.setdefault(a, mode) != mode:
            return None
    if step.kind in ("transpose", "insert", "window") and "whole" in modes.values():
        return None
    return length, modes, "columns" if axis else "rows"


def _places(b: Builder, step: Step, axis: int) -> list[int | None] | None:
    """The axis of every operand that is this one of the result, if there is one."""
    if step.kind == "transpose":
        return [step.params[axis]]
    if step.kind == "insert":
        return [sum(step.params[:axis])] if step.params[axis] else None
    if step.kind == "einsum":
        label = step.words[-1][axis]
        words = step.words[:-1]
        return [word.index(label) if label in word else None for word in words]
    if step.kind == "window":
        return _window_place(b, step, axis)
    counts, forms = step.params
    alone = _alone([coefs for _, coefs in forms], axis)
    if alone is None or forms[axis][0] or counts[alone] != step.shape[axis]:
        return None
    *onto, a = step.args
    place = alone - (len(counts) - len(b.shapes[a]))
    return [*[axis] * len(onto), place if place >= 0 else None]


def _window_place(b: Builder, step: Step, axis: int) -> list[int | None] | None:
    """For a window that is a slice, where every axis is read by one label of its own, in order."""
    used = [[k for k, c in enumerate(coefs) if c] for _, coefs in step.params]
    if [k for ks in used for k in ks] != list(range(len(step.shape))) or max(map(len, used)) > 1:
        return None
    place = used.index([axis])
    start, coefs = step.params[place]
    whole = not start and coefs[axis] == 1 and b.shapes[step.args[0]][place] == step.shape[axis]
    return [place] if whole else None


def _alone(forms: Sequence[tuple[int, ...]], axis: int) -> int | None:
    """The label that the form of this axis is, if no other form has it."""
    used = [k for k, c in enumerate(forms[axis]) if c]
    if len(used) != 1 or forms[axis][used[0]] != 1:
        return None
    return used[0] if sum([1 for coefs in forms if coefs[used[0]]]) == 1 else None


def _product(b: Builder, step: Step) -> Reading | None:
    """A matrix product with a small factor, or with a small result that is summed over rows."""
    one, two = step.args
    first, second = b.shapes[one], b.shapes[two]
    turned = _is_turned(b, one), _is_turned(b, two)
    wide = turned[0] or b.machine.is_wide(first)
    result = b.machine.is_wide(step.shape) or len(first) == 1
    if result and b.machine.is_wide(second) and one != two and prod(first) <= b.machine.small:
        return second[1], {one: "whole", two: "columns"}, _mode(b, step.shape)
    if prod(step.shape) <= b.machine.summed and not turned[1] and (wide or len(first) == 1):
        return second[0], {one: "columns" if wide else "rows", two: "rows"}, "sum"
    if one == two:  # not to be seen in two ways
        return None
    if turned[1] and len(first) == 1 and prod(first) <= b.machine.small:
        return second[1], {one: "whole", two: "columns"}, "rows"
    if prod(second) <= b.machine.small and len(first) == 2 and not wide:
        return first[0], {one: "rows", two: "whole"}, "rows"
    return None


def _is_turned(b: Builder, slot: int) -> bool:
    """Is the slot a transposed view of a matrix that is not wide?"""
    shape = b.shapes[slot]
    return slot in b.turned and shape[1] >= shape[0]
