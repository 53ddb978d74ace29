"""A loop as C: the text of one function, or of a step of one, loops inside of its steps included.

What a step reads and writes of the loop's states and slices moves on from step to step; all else
stays where it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from ...graph.iterations import Iteration
from ...plan.kinds.kind import Result
from ...plan.kinds.table import KINDS
from ...plan.steps import VIEW, Plan, Step
from ...support.arrays import Array, Sizes
from ...support.namespaces import NUMPY
from ...support.records import NamedTuple
from ..host.slots import Run, Slots
from ..numpy.kernels import KERNELS
from .asked import Lying, Question
from .forms import expressible, in_loops
from .loop_layout import Layout, LoopStates, Whole, rows_of, strided
from .objects import INTEGER, spelled
from .source import Source, read_by_others
from .statements import aligned

#: Rows and columns from which a product with a vector goes by columns of the matrix, the steps of
#: a loop that are worth a copy of it, and most entries: more do not stay in the nearest cache.
FEWEST, SMALL = 8, 1 << 14
#: In C, where an error was raised that Python has; what calls the loop says what this is.
LEFT = "return LEFT;"
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
        self._turned: dict[int, str] = {}
        self._once = self._steps([s for s in plan.steps if s.out in plan.fixed])
        self._each = self._steps([s for s in plan.steps if s.out not in plan.fixed])

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
        layout = self.layout
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
            self._once, *self._turning(), "}", f"for (; t < {last}; t++) {{", *end,
            f"times[{len(self.counts)}] = t;",
            *inner, self._each, *self._copied(), "}", *after, "}", "}",
        ]  # fmt: skip
        return "\n".join(lines)

    def _steps(self, steps: Sequence[Step]) -> str:
        source = Source(self.layout.frame, self.whole.dtype.char, self._asked)
        for step in steps:
            if self.plan.origin[step.out] is VIEW or (not step.args and step.kind in NO_WORK):
                continue
            product = self._by_columns(step) if step.out not in self.plan.fixed else ""
            if product:
                source.call(step, product)
            elif step.kind == "loop":
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

    def _by_columns(self, step: Step) -> str:
        """The product of a small matrix, the same in all steps, with a vector.

        Columns that do not lie next to each other are copied once, so that they do.
        """
        arrays = [self.layout.arrays[a] for a in step.args]
        if step.kind != "dot" or [a.ndim for a in arrays] != [2, 1] or self.whole.dtype != float:
            return ""
        (a, x), (m, k), entries = step.args, arrays[0].shape, arrays[0].size
        row, column = strided(arrays[0]).strides
        straight = strided(arrays[1]).strides == (1,)
        if a not in self.plan.fixed or not straight or min(m, k) < FEWEST or entries > SMALL:
            return ""
        place, apart = f"p{a}", column
        if row != 1:
            if column != 1 or (self.counts and self.counts[-1] < FEWEST):
                return ""
            if a not in self._turned:
                self._turned[a] = self.whole.memory(entries, self.whole.dtype)
            place, apart = self._turned[a], m
        return f"by_columns({place}, {apart}, p{x}, p{step.out}, {m}, {k});"

    def _turning(self) -> list[str]:
        """The copies."""
        found = []
        for a, place in self._turned.items():
            m, k = self.layout.arrays[a].shape
            row, _ = strided(self.layout.arrays[a]).strides
            found.append(f"columns_of(p{a}, {row}, {place}, {m}, {k});")
        return found

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

    def _inside(self, step: Step) -> str:
        """A loop inside of the step."""
        arrays, whole = [self.layout.arrays[a] for a in step.args], self.whole
        loop = InnerLoop(step, self.layout.states[step.out], whole, (*self.counts, step.params[-3]))
        loop.copied([k for k, array in enumerate(arrays) if not loop.in_place(k, array)], arrays)
        return loop.text(arrays)

    # --- Python -----------------------------------------------------------------------------------

    def _asked(self, step: Step) -> str:
        """The step as Python does it."""
        whole, layout = self.whole, self.layout
        slots = (step.out, *step.args)
        lying = tuple([Lying.of(layout.arrays[k]) for k in slots])
        parts = tuple([Lying.of(array) for array in layout.parts(step.out)])
        factors = {s.out for s in self.plan.by_kind.get("factor", ())}
        kernel = _referred if factors.intersection(step.args) else KERNELS[step.kind]
        question = Question(step, kernel(step, whole.dtype), self.counts, lying, parts)
        whole.questions.append(question)
        given = ", ".join([f"(char *)p{k}" for k in slots])
        return f"if (ask({len(whole.questions) - 1}, (char *[]){{{given}}})) {LEFT}"


class InnerLoop:
    """A loop as a step of a function, on memory of that function's workspace.

    Parameters
    ----------
    step : Step
    states : LoopStates
    whole : Whole
    counts : tuple of int
        The numbers of steps of this loop and those around it, as of `Level`.
    """

    def __init__(
        self, step: Step, states: LoopStates, whole: Whole, counts: tuple[int, ...] = ()
    ) -> None:
        op, *params, self.count, read, self.plan = step.params
        self.step, self.states, self.whole = step, states, whole
        self.once: Iteration = op.iteration(tuple(params), read)
        self.level = Level(whole, self.plan, counts)
        self._copies: dict[int, str] = {}

    def in_place(self, number: int, array: Array) -> bool:
        """Can steps read an operand where it lies: entries of their type, next to each other?"""
        scanned_or_captured = number >= len(self.once.states)
        return not scanned_or_captured or (
            array.flags.c_contiguous and array.dtype == self._dtype(number)
        )

    def copied(self, numbers: Iterable[int], arrays: Sequence[Array]) -> None:
        """Memory for operands that steps may not be able to read where they lie."""
        for k in numbers:
            self._copies[k] = self.whole.memory(arrays[k].size, self._dtype(k))

    def _dtype(self, number: int) -> np.dtype[Any]:
        return INTEGER if self.once.variables[number].integral else self.whole.dtype

    def text(self, arrays: Sequence[Array]) -> str:
        """The loop, given how its operands lie."""
        once, count, states = self.once, self.count, self.states
        n, m = len(once.states), len(once.slices)
        named: dict[str, Track] = {}
        lines: list[str] = []
        times, writes = str(count), []
        if once.counter is not None:
            times = f"n{len(self.level.counts)}"
            lines.append(f"long {times} = {self._times(self.step.args[once.counter])};")
        # Of a loop backward that makes fewer steps the first rows are left out, where it has all.
        short = f" + ({times} - {count}L)" if once.backward and times != str(count) else ""
        for k, at in rows_of(self.step).items():
            place, array = states.histories[k]
            # Rows by turns go on behind the last step, where the state lies that is left.
            left, last = (short, count) if at.kept else ("", count + 1)
            named[once.states[k].name] = before = _track(place, at.before, array, last, left)
            writes.append(_track(place, at.after, array, last, left))
            strides = aligned(array.shape[1:], arrays[k].shape, strided(arrays[k]).strides)
            slot = self.step.args[k]
            lines.append(_copy(before.start, "real", array.shape[1:], slot, strides))
        order = range(count)[::-1] if once.backward else range(count)
        for k, v in enumerate((*once.slices, *once.fixed), n):
            found = self._operand(k, arrays[k], lines)
            sliced = k < n + m
            named[v.name] = (
                _track(found, order, arrays[k], count, short) if sliced else Track(found)
            )
        reads = [named[name] for name in self.plan.inputs]
        ends = None if once.until is None else named[once.states[-1].name]
        after = [] if once.bound is None else self._ended(named)
        loop = self.level.loop(reads, writes, ("0", times), ends, after)
        return "\n".join(["{", *lines, loop, "}"])

    def _times(self, slot: int) -> str:
        """The number of steps that a number says."""
        return f"*p{slot} > 0 ? *p{slot} < {self.count} ? (long)*p{slot} : {self.count} : 0"

    def _ended(self, states: Mapping[str, Track]) -> list[str]:
        """What a loop with a bound leaves: its last states, zeros, the number of its steps."""
        found, once, ended = [], self.once, self.states.ended
        for k, at in rows_of(self.step).items():
            place, array = self.states.histories[k]
            size, row = prod(array.shape[1:]), states[once.states[k].name].row("t")
            if k in ended:
                found.append(f"memcpy({ended[k]}, {row}, {size} * sizeof(real));")
            if at.kept:
                rest = f"({at.held - 1}L - t) * {size} * sizeof(real)"
                found.append(f"memset({place} + (t + 1) * {size}L, 0, {rest});")
        if once.until is not None:
            found.append(f"*({ended[3 * once.results]}) = t;")
        return found

    def _operand(self, number: int, array: Array, lines: list[str]) -> str:
        """C for where an operand lies that steps can read, copied there if need be."""
        slot = self.step.args[number]
        if self.in_place(number, array):
            return f"p{slot}"
        place, kind = self._copies[number], spelled(self._dtype(number))
        lines.append(_copy(place, kind, array.shape, slot, strided(array).strides))
        return place


def _referred(step: Step, dtype: np.dtype[Any]) -> Run:
    """What uses a factorisation of plans, from the matrix itself."""
    result, reference = Result(step.shape, dtype), KINDS[step.kind].reference

    def run(v: Slots) -> None:
        v[step.out] = reference(NUMPY, result, step.params, *[v[a] for a in step.args])

    return run


def _track(place: object, order: range, array: Array, count: int, short: str = "") -> Track:
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
