"""How a step runs on a few rows at a time: what it reads of its operands, and what it makes.

Rows are entries of the first axis, or of a long last one after few short ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ...support.arrays import Sizes
from .kind import Reading, StepAccess


def _mode(step: StepAccess, shape: Sizes) -> str:
    return "columns" if step.machine.is_wide(shape) else "rows"


# --- entrywise steps and functions of rows --------------------------------------------------------


def entrywise(step: StepAccess) -> Reading | None:
    """An entry of the result for every entry of the broadcast operands."""
    shape = step.shape
    if not step.machine.is_wide(shape):
        return _by_rows(step, len(shape)) if shape else None
    length = shape[-1]
    modes = []
    for operand in step.shapes:
        mode = "columns" if len(operand) > 1 else "rows"
        modes.append(mode if operand and operand[-1] == length else "whole")
    return length, modes, "columns"


def _by_rows(step: StepAccess, ndim: int) -> Reading:
    """Operands with the first axis of the result are sliced, others are broadcast along it."""
    length = step.shape[0]
    full = [len(shape) == ndim and shape[0] == length for shape in step.shapes]
    return length, ["rows" if sliced else "whole" for sliced in full], "rows"


def behind(step: StepAccess) -> Reading | None:
    """Several entries of the result, along a last axis, for every one of the operand."""
    wide = step.machine.is_wide(step.shape)
    return None if wide or len(step.shape) < 2 else (step.shape[0], ["rows"], "rows")


def operator(step: StepAccess) -> Reading | None:
    """An entrywise function, one of each vector of a batch, or one of all pairs of rows."""
    op = step.params[0]
    if op.elementwise:
        return entrywise(step)
    if op.meaning.pairs and len(step.shape) == 2:
        wide = step.machine.is_wide(step.shape)
        read = ("whole", "rows") if wide else ("rows", "whole")
        return step.shape[wide], read, "columns" if wide else "rows"
    if not step.shape or len(step.shapes) != 1 or op.core[0] not in (1, -1):
        return None
    (shape,) = step.shapes
    core = op.core[0] if op.core[0] > 0 else step.params[1]
    along = len(shape) == len(step.shape) + 1 or (shape == step.shape and core < len(shape))
    if not along or shape[0] != step.shape[0] or step.machine.is_wide(step.shape):
        return None
    return shape[0], ["rows"], "rows"


def inner(step: StepAccess) -> Reading | None:
    """Inner products of a batch."""
    return _by_rows(step, len(step.shape) + 1) if step.shape else None


def batched(step: StepAccess) -> Reading | None:
    """Products of a batch of matrices."""
    return _by_rows(step, 3) if len(step.shape) == 3 else None


def summed(step: StepAccess) -> Reading | None:
    """A sum over axes, which are the parameters."""
    (shape,) = step.shapes
    if not shape:
        return None
    mode, axis = _mode(step, shape), len(shape) - 1 if step.machine.is_wide(shape) else 0
    if axis in step.params:
        return shape[axis], [mode], "sum"
    result = "columns" if mode == "columns" and len(step.shape) > 1 else "rows"
    return shape[axis], [mode], result


# --- steps that move axes -------------------------------------------------------------------------


def transposed(step: StepAccess) -> Reading | None:
    last = len(step.shape) - 1
    axis = step.params.index(last if step.machine.is_wide(step.shapes[0]) else 0)
    return _viewed(step, axis, [step.params[axis]]) if axis in (0, last) else None


def inserted(step: StepAccess) -> Reading | None:
    if not step.shape:
        return None
    axis = _long(step)
    return _viewed(step, axis, [sum(step.params[:axis])]) if step.params[axis] else None


def windowed(step: StepAccess) -> Reading | None:
    """For a window that is a slice, where every axis is read by one label of its own, in order."""
    if not step.shape:
        return None
    used = [[k for k, c in enumerate(coefs) if c] for _, coefs in step.params]
    if [k for ks in used for k in ks] != list(range(len(step.shape))) or max(map(len, used)) > 1:
        return None
    axis = _long(step)
    place = used.index([axis])
    start, coefs = step.params[place]
    whole = not start and coefs[axis] == 1 and step.shapes[0][place] == step.shape[axis]
    return _viewed(step, axis, [place]) if whole else None


def taken(step: StepAccess) -> Reading | None:
    """Entries taken by integers: a tile has those of a few integers, or of a part of each entry."""
    if not step.shape:
        return None
    (_, index), (first,) = step.shapes, step.params
    axis, behind = _long(step), first + len(index)
    if first <= axis < behind:
        return _moved(step, axis, [None, axis - first])
    return _moved(step, axis, [axis if axis < first else axis - len(index) + 1, None])


def segmented(step: StepAccess) -> Reading | None:
    """Entries added by segment: a tile has a part of each."""
    (array, _), (axis,) = step.shapes, step.params
    last = len(array) - 1
    if axis == last or not step.machine.is_wide(step.shape):
        return None
    return _moved(step, len(step.shape) - 1, [last, None])


def spelled(step: StepAccess) -> Reading | None:
    """A product whose labels are spelled as NumPy's einsum has them."""
    if not step.shape:
        return None
    axis = _long(step)
    *words, result = step.params[0].replace("->", ",").split(",")
    places = [word.index(result[axis]) if result[axis] in word else None for word in words]
    return _moved(step, axis, places)


def placed(step: StepAccess) -> Reading | None:
    """Entries at affine places, perhaps onto another array."""
    if not step.shape:
        return None
    axis = _long(step)
    counts, forms = step.params
    alone = _alone([coefs for _, coefs in forms], axis)
    if alone is None or forms[axis][0] or counts[alone] != step.shape[axis]:
        return None
    *onto, shape = step.shapes
    ndim = len(step.shape)
    places = [axis - (ndim - len(o)) for o in onto] + [alone - (len(counts) - len(shape))]
    return _moved(step, axis, [place if place >= 0 else None for place in places])


def _long(step: StepAccess) -> int:
    """The axis of the result whose entries are rows."""
    return len(step.shape) - 1 if step.machine.is_wide(step.shape) else 0


def _viewed(step: StepAccess, axis: int, places: Sequence[int | None]) -> Reading | None:
    """A tile of a view is a view of a tile."""
    found = _moved(step, axis, places)
    return None if found is None or "whole" in found[1] else found


def _moved(step: StepAccess, axis: int, places: Sequence[int | None]) -> Reading | None:
    """The axis of every operand that is this one of the result must be its first or its last."""
    length = step.shape[axis]
    modes = []
    for shape, place in zip(step.shapes, places, strict=True):
        if place is None or shape[place] != length:
            modes.append("whole")
        elif place == 0:
            modes.append("rows")
        elif place == len(shape) - 1:
            modes.append("columns")
        else:
            return None
    return length, modes, "columns" if axis else "rows"


def _alone(forms: Sequence[tuple[int, ...]], axis: int) -> int | None:
    """The label that the form of this axis is, if no other form has it."""
    used = [k for k, c in enumerate(forms[axis]) if c]
    if len(used) != 1 or forms[axis][used[0]] != 1:
        return None
    return used[0] if sum([1 for coefs in forms if coefs[used[0]]]) == 1 else None


# --- matrix products ------------------------------------------------------------------------------


def weighted(step: StepAccess) -> Reading | None:
    """Weighted sums over the rows of one operand, which stand in columns of the weights."""
    (weights, *_), (turned, *_) = step.shapes, step.turned
    few = prod(step.shape) <= step.machine.small and (turned or step.machine.is_wide(weights))
    return (weights[1], ["columns", "rows", "whole"], "sum") if few else None


def product(step: StepAccess) -> Reading | None:
    """A matrix product with a small factor, or with a small result that is summed over rows."""
    if step.params:  # of which one half is wanted: a tile's rows have that of other columns each
        return None
    (first, second), turned = step.shapes, step.turned
    wide = turned[0] or step.machine.is_wide(first)
    result = step.machine.is_wide(step.shape) or len(first) == 1
    if result and step.machine.is_wide(second) and prod(first) <= step.machine.small:
        return second[1], ["whole", "columns"], _mode(step, step.shape)
    if prod(step.shape) <= step.machine.summed and not turned[1] and (wide or len(first) == 1):
        return second[0], ["columns" if wide else "rows", "rows"], "sum"
    if turned[1] and len(first) == 1 and prod(first) <= step.machine.small:
        return second[1], ["whole", "columns"], "rows"
    if prod(second) <= step.machine.small and len(first) == 2 and not wide:
        return first[0], ["rows", "whole"], "rows"
    return None
