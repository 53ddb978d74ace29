"""Functions along the last axes of arrays: extremes, norms and sums, and what is found by them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from math import prod

from ...plan.steps import Step
from ...support.arrays import Sizes
from .frames import Frame, full, over_all, start_of
from .rows import COLUMNS, OF_PAIRS, PLACES, REDUCTIONS, RUNNING, SHARES
from .statements import aligned, together

#: The most entries that are put next to each other, on the stack, where they lie apart.
LONGEST_PART = 4096


def _reduced(frame: Frame, step: Step) -> str:
    """A function of the last axes, where these lie as one, or of columns next to each other."""
    (a,), (op, count) = step.args, step.params
    found, axes = frame.arrays[a], len(frame.shape(step))
    core = found.shape[axes:]
    # In any order: all of these axes are reduced.
    steps = sorted([(s, n) for n, s in zip(core, found.strides[axes:], strict=True) if n > 1])
    apart = steps[0][0] if steps else 1
    dense = all(s == apart * prod([n for _, n in steps[:k]]) for k, (s, _) in enumerate(steps))
    lead, (read, written) = _leading(frame, axes, a, step.out)
    starts = start_of(a, read), start_of(step.out, written)
    name, n = REDUCTIONS[op.name], prod(core)
    if not count or (lead and written[-1] != 1):
        return ""
    if dense and apart == 1:
        return f"{over_all(lead)}*({starts[1]}) = {name}({starts[0]}, {n});"
    if dense and lead and read[-1] == 1:
        loops, width = _columns(lead)
        return f"{loops}{name}_across({starts[0]}, {n}, {apart}, {width}, {starts[1]});"
    called = f"{name}_across(part, {n}, m, m, {starts[1]});"
    return _beside(lead, core, (starts[0], read, found.strides[axes:]), called)


def _shares(frame: Frame, step: Step) -> str:
    """What entries have of the extreme one along the last axes, where these lie as one."""
    (a,), (op, count) = step.args, step.params
    arrays = found, out = frame.arrays[a], frame.arrays[step.out]
    axes, extreme = len(out.shape) - count, SHARES[op.name]
    core = found.shape[axes:]
    lead, (read, written) = _leading(frame, axes, a, step.out)
    starts, n = (start_of(a, read), start_of(step.out, written)), prod(core)
    apart = [_apart(core, x.strides[axes:]) for x in arrays]
    if not count:
        return ""
    if None in apart:
        called = f"shares_across(part, part, {n}, m, m, 1, m, {extreme}_across);"
        given, taken = [
            (start, steps, x.strides[axes:])
            for start, steps, x in zip(starts, (read, written), arrays, strict=True)
        ]
        return _beside(lead, core, given, called, taken)
    if apart == [1, 1]:
        called = f"shares({starts[0]}, {n}, {extreme}({starts[0]}, {n}), {starts[1]});"
        return over_all(lead) + called
    beside = lead and read[-1] == 1
    loops, width = _columns(lead) if beside else (over_all(lead), "1")
    places = f"{n}, {apart[0]}, {apart[1]}, {written[-1] if beside else 1}, {width}"
    return f"{loops}shares_across({', '.join(starts)}, {places}, {extreme}_across);"


def _leading(frame: Frame, axes: int, *slots: int) -> tuple[Sizes, list[Sizes]]:
    """The extents of leading axes, and the strides of slots along these.

    The last ones are one axis where they are so in all slots, as long as that has few entries.
    """
    shape = frame.arrays[slots[0]].shape[:axes]
    kept = [k for k, n in enumerate(shape) if n != 1]
    lead = [shape[k] for k in kept]
    along = [[frame.arrays[slot].strides[k] for k in kept] for slot in slots]
    while len(lead) > 1 and lead[-1] < COLUMNS and all(s[-2] == s[-1] * lead[-1] for s in along):
        lead[-2:] = [together(lead[-2:])]
        for strides in along:
            del strides[-2]
    return tuple(lead), list(map(tuple, along))


#: A pointer to the first entry, and the strides of leading axes and of the others.
_Place = tuple[str, Sizes, Sizes]


def _beside(
    lead: Sizes, core: Sizes, given: _Place, called: str, taken: _Place | None = None
) -> str:
    """A call for m columns of entries at a time that are put next to each other first, as `part`.

    Columns are along the last of the leading axes; what is made of `part` may be taken to a place.
    """
    n = prod(core)
    if not 0 < n <= LONGEST_PART:
        return ""
    most = min(COLUMNS, LONGEST_PART // n)
    loops, width = _columns(lead, most) if lead else ("", "1")
    inside = "".join([f"for (long c{k} = 0; c{k} < {x}; c{k}++) " for k, x in enumerate(core)])

    def along(strides: Sizes) -> str:
        return " + ".join([f"c{k} * {s}L" for k, s in enumerate(strides)])

    def entry(place: _Place) -> str:
        start, outer, inner = place
        return f"({start})[j * {outer[-1] if lead else 0}L + {along(inner)}]"

    each, part = f"{inside}for (long j = 0; j < m; j++) ", f"part[({along(full(core))}) * m + j]"
    before = f"const long m = {width}; real part[{most * n}]; {each}{part} = {entry(given)};"
    after = f" {each}{entry(taken)} = {part};" if taken else ""
    return f"{loops}{{ {before} {called}{after} }}"


def _of_pairs(frame: Frame, step: Step) -> str:
    """A function of the last axes of two arrays, where these lie as one."""
    op, count = step.params
    out = frame.arrays[step.out]
    lead, given, cores = out.shape, [], set()
    for slot in step.args:
        shape, strides = frame.arrays[slot]
        axes = len(shape) - count
        core = shape[axes:]
        cores.add(core)
        apart = _apart(core, strides[axes:])
        if apart is None:
            return ""
        given.append(f"{start_of(slot, aligned(lead, shape[:axes], strides[:axes]))}, {apart}L")
    if not count or len(cores) > 1:  # one may be repeated along the other
        return ""
    target = start_of(step.out, out.strides)
    return f"{over_all(lead)}*({target}) = {OF_PAIRS[op.name]}({', '.join(given)}, {prod(core)});"


def _running(frame: Frame, step: Step) -> str:
    """Sums along the last axis, up to every entry or from it on."""
    (a,) = step.args
    starts, apart = [], []
    for slot in (a, step.out):
        shape, strides = frame.arrays[slot]
        starts.append(start_of(slot, strides[:-1]))
        apart.append(strides[-1])
    given = f"{starts[0]}, {apart[0]}L, {starts[1]}, {apart[1]}L, {shape[-1]}"
    return f"{over_all(shape[:-1])}{RUNNING[step.params[0].name]}({given});"


def _place_along(frame: Frame, step: Step) -> str:
    """Where along the last axis one entry is."""
    (a,), out = step.args, frame.arrays[step.out]
    shape, strides = frame.arrays[a]
    given = f"{start_of(a, strides[:-1])}, {strides[-1]}L, {shape[-1]}"
    target, name = start_of(step.out, out.strides), PLACES[step.params[0].name]
    return f"{over_all(out.shape)}*({target}) = {name}({given});"


def _columns(lead: Sizes, most: int = COLUMNS) -> tuple[str, str]:
    """Loops over items, of which some along the last axis at once, and how many these are."""
    last, m = f"i{len(lead) - 1}", lead[-1]
    loops = f"{over_all(lead[:-1])}for (long {last} = 0; {last} < {m}; {last} += {most}) "
    return loops, f"{m} - {last} < {most} ? {m} - {last} : {most}"


def _apart(shape: Sizes, strides: Sizes) -> int | None:
    """How far apart entries are in memory along these axes in order; None where that differs."""
    steps = [(n, s) for n, s in zip(shape, strides, strict=True) if n > 1]
    if any(s != n * t for (_, s), (n, t) in pairwise(steps)):
        return None
    return steps[-1][1] if steps else 1


#: C for rows of kernels along axes, by name.
ALONG_AXES: dict[str, Callable[[Frame, Step], str]] = {
    **dict.fromkeys(REDUCTIONS, _reduced),
    **dict.fromkeys(SHARES, _shares),
    **dict.fromkeys(RUNNING, _running),
    **dict.fromkeys(PLACES, _place_along),
    **dict.fromkeys(OF_PAIRS, _of_pairs),
}
