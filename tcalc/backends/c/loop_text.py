"""A loop as the text of one C function, loops inside of its steps included.

What a step reads and writes of the loop's states and slices moves on from step to step; all else
stays where it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...graph.iterations import Iteration
from ...plan.kinds.kind import Result
from ...plan.kinds.table import KINDS
from ...plan.steps import VIEW, Plan, Step
from ...support.arrays import Array, Sizes
from ...support.namespaces import NUMPY
from ..host.slots import Run, Slots
from ..numpy.kernels import KERNELS
from .asked import Lying, Question
from .forms import expressible, in_loops
from .functions import read_by_others
from .loop_layout import Layout, Whole, rows_of, strided
from .loopnests import aligned
from .objects import INTEGER, spelled
from .source import Source

#: Kinds of steps without operands whose results are there from the start.
NO_WORK = frozenset({"kernel", "scratch"})


class Track(NamedTuple):
    """C for where the row of an array lies that a step reads or writes.

    At `start` and, of what moves, `apart` entries further for each of the steps, of which those
    that `mask` has count: all, or where rows take turns, the last bit.
    """

    start: str
    apart: str = ""
    mask: str = "-1"

    def row(self, step: str) -> str:
        """Where the row of a step lies."""
        return f"{self.start} + (({step}) & {self.mask}) * {self.apart}"


@cache
def moves(order: range, count: int) -> tuple[int, int, int]:
    """Rows of a loop with so many steps: the first, how far the next is, and the mask of steps."""
    if not order:
        return 0, 0, 0
    return (
        order[0],
        order.step * (len(order) > 1),
        len(order) - 1 if len(order) < count else -1,
    )


class Level:
    """One loop: the plan of its steps.

    Parameters
    ----------
    whole : Whole
    plan : Plan
    counts : tuple of int
        The numbers of steps of this loop and those around it, but the outermost.
    """

    def __init__(self, whole: Whole, plan: Plan, counts: tuple[int, ...] = ()) -> None:
        self.whole, self.plan, self.counts = whole, plan, counts
        whole.depth = max(whole.depth, 1 + len(counts))
        self.layout = Layout(plan, whole)

    def loop(
        self,
        reads: Sequence[Track],
        writes: Sequence[Track],
        span: tuple[str, str],
        ends: Track | None = None,
        after: Sequence[str] = (),
    ) -> str:
        """The loop from one step to another, given what is read and written in it.

        It ends before the first step at which the row of `ends` is not 0; `after` it, t is the step
        that would be next.
        """
        layout, plan = self.layout, self.plan
        tracks = {**dict(enumerate(reads)), **dict(enumerate(writes, layout.first))}
        tracks = {k: track for k, track in tracks.items() if k in layout.arrays}
        # A pointer of an outer loop may have the name of one in here.
        starts = [f"{layout.kind(k)} *b{k} = {track.start};" for k, track in tracks.items()]
        outer: list[str] = []
        inner: list[str] = []
        for k, (_, apart, mask) in tracks.items():
            at = f"b{k} + (t & {mask}) * {apart}" if apart else f"b{k}"
            (inner if apart else outer).append(f"{layout.kind(k)} *p{k} = {at};")
        moving = {f"p{k}" for k, track in tracks.items() if track.apart}
        for slot, place in layout.places.items():
            moves = place.partition(" ")[0] in moving
            if moves:
                moving.add(f"p{slot}")
            (inner if moves else outer).append(f"{layout.kind(slot)} *p{slot} = {place};")
        first, last = span
        end = [] if ends is None else [f"if (*({ends.row('t')}) != 0) break;"]
        lines = [
            "{", *starts, "{", *outer,
            f"long t = {first};", "if (t == 0) {",
            self._steps([s for s in plan.steps if s.out in plan.fixed]),
            "}", f"for (; t < {last}; t++) {{", *end, f"times[{len(self.counts)}] = t;",
            *inner, self._steps([s for s in plan.steps if s.out not in plan.fixed]),
            *self._copied(), "}", *after, "}", "}",
        ]  # fmt: skip
        return "\n".join(lines)

    def _steps(self, steps: Sequence[Step]) -> str:
        source = Source(self.layout.frame, self.whole.dtype.char, self._asked)
        for step in steps:
            if self.plan.origin[step.out] is VIEW or (not step.args and step.kind in NO_WORK):
                continue
            if step.kind == "loop":
                source.call(step, self._inside(step))
            elif self._expressible(step):
                source.add(step)
            elif prod(step.shape) or KINDS[step.kind].operator:
                source.call(step, "FAIL;")
        return source.body(read_by_others(self.plan))

    def _expressible(self, step: Step) -> bool:
        if any(not self.layout.arrays[a].size for a in (step.out, *step.args)):
            return False
        return in_loops(step) or expressible(self.plan, step, self.layout.integral)

    def _copied(self) -> list[str]:
        """Outputs that no step writes where they are wanted."""
        found = []
        for k, (slot, perm) in enumerate(self.plan.outputs):
            if not self.layout.direct(k):
                array = self.layout.arrays[slot]
                turned = array if perm is None else array.transpose(perm)
                place = f"p{self.layout.first + k}"
                found.append(_copy(place, "real", turned.shape, slot, strided(turned).strides))
        return found

    # --- loops in steps ---------------------------------------------------------------------------

    def _inside(self, step: Step) -> str:
        """A loop inside of the step."""
        op, *params, count, read, plan = step.params
        once = op.iteration(tuple(params), read)
        level = Level(self.whole, plan, (*self.counts, count))
        n, m = len(once.states), len(once.slices)
        named: dict[str, Track] = {}
        lines: list[str] = []
        times, writes = str(count), []
        if once.counter is not None:
            times = f"n{len(self.counts)}"
            lines.append(f"long {times} = {self._times(step.args[once.counter], count)};")
        # Of a loop backward that makes fewer steps the first rows are left out.
        short = f" + ({times} - {count}L)" if once.backward and times != str(count) else ""
        for k, at in rows_of(step).items():
            place, array = self.layout.histories[step.out][k]
            named[once.states[k].name] = before = _track(place, at.before, array, count, short)
            writes.append(_track(place, at.after, array, count, short))
            lines.append(self._initial(step.args[k], before.start, array))
        order = range(count)[::-1] if once.backward else range(count)
        for k, v in enumerate((*once.slices, *once.fixed), n):
            dtype = INTEGER if v.integral else self.whole.dtype
            place = self._contiguous(step.args[k], dtype, lines)
            array = self.layout.arrays[step.args[k]]
            named[v.name] = _track(place, order, array, count, short) if k < n + m else Track(place)
        reads = [named[name] for name in plan.inputs]
        ends = None if once.until is None else named[once.states[-1].name]
        after = [] if once.bound is None else self._ended(step, once, named)
        return "\n".join(["{", *lines, level.loop(reads, writes, ("0", times), ends, after), "}"])

    def _times(self, slot: int, count: int) -> str:
        """The number of steps that a number says."""
        return f"*p{slot} > 0 ? *p{slot} < {count} ? (long)*p{slot} : {count} : 0"

    def _ended(self, step: Step, once: Iteration, states: Mapping[str, Track]) -> list[str]:
        """What a loop with a bound leaves: its last states, zeros, the number of its steps."""
        found, results = [], self.layout.results[step.out]
        for k, at in rows_of(step).items():
            place, array = self.layout.histories[step.out][k]
            size, row = prod(array.shape[1:]), states[once.states[k].name].row("t")
            if k in results:
                found.append(f"memcpy({results[k]}, {row}, {size} * sizeof(real));")
            if at.kept:
                rest = f"({at.held - 1}L - t) * {size} * sizeof(real)"
                found.append(f"memset({place} + (t + 1) * {size}L, 0, {rest});")
        if once.until is not None:
            found.append(f"*({results[3 * once.results]}) = t;")
        return found

    def _initial(self, slot: int, place: str, held: Array) -> str:
        """The first state, which may be broadcast."""
        found, shape = self.layout.frame.arrays[slot], held.shape[1:]
        strides = aligned(shape, found.shape, found.strides)
        return _copy(place, "real", shape, slot, strides)

    def _contiguous(self, slot: int, dtype: np.dtype[Any], lines: list[str]) -> str:
        """C for where an array lies whose entries are of this type and next to each other, copied
        if need be."""
        array = self.layout.arrays[slot]
        if array.flags.c_contiguous and array.dtype == dtype:
            return f"p{slot}"
        place = self.whole.memory(array.size, dtype)
        lines.append(_copy(place, spelled(dtype), array.shape, slot, strided(array).strides))
        return place

    # --- Python -----------------------------------------------------------------------------------

    def _asked(self, step: Step) -> str:
        """The step as Python does it."""
        whole, layout = self.whole, self.layout
        slots = (step.out, *step.args)
        lying = tuple([Lying.of(layout.arrays[k]) for k in slots])
        parts = tuple([Lying.of(array) for array in layout.parts(step.out)])
        factors = {s.out for s in self.plan.steps if s.kind == "factor"}
        kernel = _referred if factors.intersection(step.args) else KERNELS[step.kind]
        question = Question(step, kernel(step, whole.dtype), self.counts, lying, parts)
        whole.questions.append(question)
        given = ", ".join([f"(char *)p{k}" for k in slots])
        return f"if (ask({len(whole.questions) - 1}, (char *[]){{{given}}})) return 1;"


def _referred(step: Step, dtype: np.dtype[Any]) -> Run:
    """What uses a factorisation of plans, from the matrix itself."""
    result, reference = Result(step.shape, dtype), KINDS[step.kind].reference

    def run(v: Slots) -> None:
        v[step.out] = reference(NUMPY, result, step.params, *[v[a] for a in step.args])

    return run


def _track(place: str, order: range, array: Array, count: int, short: str = "") -> Track:
    """Rows of a contiguous array at a place; `short` is added to the first of rows in order."""
    first, apart, mask = moves(order, count)
    size = prod(array.shape[1:])
    start = f"{place} + ({first}L{short}) * {size}L" if short and mask == -1 else ""
    return Track(start or f"{place} + {first * size}L", f"{apart * size}L", str(mask))


def _copy(place: str, kind: str, shape: Sizes, slot: int, strides: Sizes) -> str:
    """Loops that write a slot's entries one after the other."""
    loops = "".join([f"for (long i{k} = 0; i{k} < {n}; i{k}++) " for k, n in enumerate(shape)])
    read = " + ".join([f"i{k} * {s}L" for k, s in enumerate(strides)]) or "0"
    return f"{{ {kind} *h = {place}; {loops}*h++ = p{slot}[{read}]; }}"
