"""Steps that move entries: to places that integers say, or affine ones; triangles of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np

from ...plan.steps import Step
from ...support.arrays import Sizes
from .frames import Frame, full
from .integer_forms import integers
from .rows import PACKED
from .sharing import items
from .statements import Count, aligned, together


def _loops(shape: Sequence[int]) -> str:
    return "".join([f"for (long i{k} = 0; i{k} < {n}; i{k}++) " for k, n in enumerate(shape)])


def _sum(strides: Sequence[int], labels: Sequence[int] | None = None) -> str:
    """An index: strides with the labels of their axes."""
    terms = [
        f"i{k} * {s}L" for k, s in zip(labels or range(len(strides)), strides, strict=True) if s
    ]
    return " + ".join(terms) or "0"


def _read(frame: Frame, slot: int, shape: Sizes) -> str:
    """The entry of a slot that is broadcast to a shape."""
    found = frame.arrays[slot]
    return f"p{slot}[{_sum(aligned(shape, found.shape, found.strides))}]"


def _zeros(frame: Frame, step: Step) -> str:
    """The result cleared; of a tile what is there of it."""
    shape, strides = frame.arrays[step.out]
    if strides == full(shape) and not any(isinstance(n, Count) for n in shape[1:]):
        return f"memset(p{step.out}, 0, {together(shape)} * sizeof(real));"
    return f"{_loops(shape)}p{step.out}[{_sum(strides)}] = 0;"


# --- places that integers say ---------------------------------------------------------------------


def _index(frame: Frame, step: Step) -> str:
    """Integers in range; those that count from the end."""
    (a,), (extent, _), shape = step.args, step.params, frame.shape(step)
    out = f"p{step.out}[{_sum(full(shape))}]"
    return (
        f"{{ int bad = 0; {_loops(shape)}{{ long n = (long){_read(frame, a, shape)}; "
        f"bad |= n != {_read(frame, a, shape)} || n < -{extent}L || n >= {extent}L; "
        f"{out} = n < 0 ? n + {extent}L : n; }} if (bad) {{ FAIL; }} }}"
    )


def _joint(frame: Frame, step: Step) -> str:
    shape, total = frame.shape(step), "0"
    for extent, place, behind in step.params:
        own = f"i{len(shape) - behind}"
        at = own if place < 0 else _read(frame, step.args[place], shape)
        total = at if total == "0" else f"({total}) * {extent}L + {at}"
    return f"{_loops(shape)}p{step.out}[{_sum(full(shape))}] = {total};"


def _take(frame: Frame, step: Step) -> str:
    (a, i), (axis,), shape = step.args, step.params, frame.shape(step)
    array, index = frame.arrays[a], frame.arrays[i]
    behind = axis + len(index.shape)
    labels = [*range(axis), *range(behind, len(shape))]
    own = [s for k, s in enumerate(array.strides) if k != axis]
    at = f"p{i}[{_sum(index.strides, range(axis, behind))}]"
    read = f"p{a}[{_sum(own, labels)} + {at} * {array.strides[axis]}L]"
    out = f"p{step.out}[{_sum(frame.result(step).strides)}]"
    return f"{items(shape[0], shape[1:]) if shape else ''}{out} = {read};"


def _flat(frame: Frame, slot: int) -> int | None:
    """From one entry to the next in C order, None where there is no such number."""
    found = frame.arrays[slot]
    axes = [(n, s) for n, s in zip(found.shape, found.strides, strict=True) if n > 1]
    step = axes[-1][1] if axes else 1
    wanted = [step * prod([n for n, _ in axes[k + 1 :]]) for k in range(len(axes))]
    return step if [s for _, s in axes] == wanted else None


def _segments(frame: Frame, step: Step) -> str:
    (a, i), (axis,), o = step.args, step.params, step.out
    shape, apart = frame.arrays[a].shape, _flat(frame, i)
    if apart is None:
        return ""
    rest = [k for k in range(len(shape)) if k != axis]
    one, *strides = frame.result(step).strides
    at = f"p{o}[p{i}[i{axis} * {apart}L] * {one}L + {_sum(strides, rest)}]"
    return f"{_zeros(frame, step)} {_loops(shape)}{at} += {_read(frame, a, shape)};"


def _count(frame: Frame, step: Step) -> str:
    (i,) = step.args
    shape = frame.arrays[i].shape
    return f"{_zeros(frame, step)} {_loops(shape)}p{step.out}[{_read(frame, i, shape)}] += 1;"


def _onehot(frame: Frame, step: Step) -> str:
    (i,) = step.args
    shape = frame.arrays[i].shape
    columns = prod(step.shape[len(shape) :])
    places = _sum([s * columns for s in full(shape)])
    one = f"{_loops(shape)}p{step.out}[{places} + {_read(frame, i, shape)}] = 1;"
    return f"{_zeros(frame, step)} {one}"


def _add_at(frame: Frame, step: Step) -> str:
    (onto, *integers), (coef, places) = step.args, step.params
    own = [
        (extent,) + (1,) * (behind - 1)
        for extent, (place, behind) in zip(step.shape, places, strict=True)
        if place < 0
    ]
    shape = np.broadcast_shapes(*[frame.arrays[k].shape for k in integers], *own)
    terms = []
    for (place, behind), s in zip(places, full(step.shape), strict=True):
        at = f"i{len(shape) - behind}"
        at = at if place < 0 else _read(frame, integers[place - 1], shape)
        terms.append(f"{at} * {s}L")
    added = f"p{step.out}[{' + '.join(terms)}] += (real){float(coef).hex()};"
    return f"{frame.copied(onto, step)} {_loops(shape)}{added}"


# --- affine places --------------------------------------------------------------------------------


def _place(frame: Frame, step: Step) -> str:
    (a,), (counts, forms) = step.args, step.params
    return f"{_zeros(frame, step)} {_placed(frame, step, a, counts, forms, '=')}"


def _place_add(frame: Frame, step: Step) -> str:
    (onto, a), (counts, forms) = step.args, step.params
    return f"{frame.copied(onto, step)} {_placed(frame, step, a, counts, forms, '+=')}"


def _pad(frame: Frame, step: Step) -> str:
    (a,), counts = step.args, frame.arrays[step.args[0]].shape
    forms = [
        (before, tuple([int(j == k) for j in range(len(counts))]))
        for k, (before, _) in enumerate(step.params)
    ]
    return f"{_zeros(frame, step)} {_placed(frame, step, a, counts, forms, '=')}"


def _placed(
    frame: Frame,
    step: Step,
    a: int,
    counts: Sizes,
    forms: Sequence[tuple[int, tuple[int, ...]]],
    sign: str,
) -> str:
    """The entries that come to lie inside, whose labels all have loops.

    The rows of a tile are the entries of a label that stands alone at its axis.
    """
    inside = []
    start, strides, extents = 0, [0] * len(counts), list(counts)
    shape, steps = frame.arrays[step.out]
    for (first, coefs), n, length, s in zip(forms, step.shape, shape, steps, strict=True):
        if isinstance(length, Count):
            extents[coefs.index(1)] = length
        ends = [c * (count - 1) for c, count in zip(coefs, counts, strict=True)]
        at = f"{first}L + {_sum(coefs)}"
        if first + sum([min(end, 0) for end in ends]) < 0:
            inside.append(f"{at} >= 0")
        if first + sum([max(end, 0) for end in ends]) >= n:
            inside.append(f"{at} < {n}L")
        start += first * s
        strides = [total + c * s for total, c in zip(strides, coefs, strict=True)]
    if not all(counts):
        return ""
    check = f"if ({' && '.join(inside)}) " if inside else ""
    target = f"p{step.out}[{start}L + {_sum(strides)}]"
    return f"{_loops(extents)}{check}{target} {sign} {_read(frame, a, counts)};"


# --- matrices -------------------------------------------------------------------------------------


def _triangle(frame: Frame, step: Step) -> str:
    (a,), (side, number), shape = step.args, step.params, frame.shape(step)
    i, j = f"i{len(shape) - 2}", f"i{len(shape) - 1}"
    sign = "<" if side == "lower" else ">"
    read = _read(frame, a, shape)
    kept = f"{j} {sign} {i} ? {read} : {j} == {i} ? (real){float(number).hex()} * {read} : 0"
    return f"{_loops(shape)}p{step.out}[{_sum(full(shape))}] = {kept};"


def packed(frame: Frame, step: Step) -> str:
    """Entries of a triangle of square matrices, row after row, as a vector; or back among zeros."""
    (a,), (op, offset, lower), o = step.args, step.params, step.out
    taken = PACKED[op.name]
    (*lead, n, _), (*batch, r, c) = frame.arrays[a if taken else o]
    *_, step_of = frame.arrays[o if taken else a].strides
    vectors = frame.arrays[o if taken else a].strides[:-1]
    last = len(lead)
    i, j = f"i{last}", f"i{last + 1}"
    matrix = f"[{_sum((*batch, r, c))}]"
    vector = f"[{_sum(vectors)} + k++ * {step_of}L]"
    inside = f"{j} {'<=' if lower else '>='} {i} + ({offset}L)"
    entry = f"p{o}{vector} = p{a}{matrix}" if taken else f"p{o}{matrix} = p{a}{vector}"
    other = "" if taken else f" else p{o}{matrix} = 0;"
    rows = f"for (long {i} = 0; {i} < {n}; {i}++) for (long {j} = 0; {j} < {n}; {j}++)"
    body = f"{{ long k = 0; {rows} if ({inside}) {entry};{other} }}"
    return f"{items(lead[0], lead[1:]) if lead else ''}{body}"


#: C for steps of each kind.
MOVES: dict[str, Callable[[Frame, Step], str]] = {
    "integers": integers,
    "index": _index,
    "joint": _joint,
    "take": _take,
    "segments": _segments,
    "count": _count,
    "onehot": _onehot,
    "add_at": _add_at,
    "place": _place,
    "place_add": _place_add,
    "pad": _pad,
    "triangle": _triangle,
}
