"""Entrywise steps and sums as C: steps of one shape in one nest of loops.

What such steps hand to each other is a local variable; only what others read is written. Axes that
all arrays run through alike are one loop; where an array lies across the innermost loop, two loops
go by tiles.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from ...support.arrays import Sizes
from ...support.c_text import indented
from .sharing import LANES, MOST, SUMMED, Cut, Shared, cut, entry_work, joined, spaced
from .statements import COperand, Count, CStatement, merged, moves

#: Extent from which two loops go by tiles, and the tiles' extent.
LONG, TILE = 32, 32
#: Chunks that are enough for threads to end at about the same time.
FEW_CHUNKS = 16
#: Rows whose entries are summed before they are added to what is there, which the next entry would
#: wait for; how many rows are worth it; and the work of an entry from which on that takes longer.
ROWS, MANY, MUCH = 8, 32, 6
#: Cost of reading and of writing an entry that is not next to the one before.
APART, APART_WRITTEN = 8, 12


class Nest:
    """Loops around statements; `stored` are the slots that others read."""

    def __init__(
        self, shape: Sizes, statements: Sequence[CStatement], stored: Collection[int]
    ) -> None:
        self.stored = stored
        self.extents, self.statements = merged(shape, statements)
        self.inner = self._inner()
        self.across = self._across()
        self.shared, self.cut = -1, Cut(0, 0, 0)
        made: set[int] = set()
        self.loads: list[COperand] = []
        for statement in self.statements:
            new = [a for a in statement.args if a.slot not in made and a not in self.loads]
            self.loads += dict.fromkeys(new)
            if not statement.summed:
                made.add(statement.out.slot)

    def _inner(self) -> int:
        """The axis along which most arrays lie, the last of equal ones."""
        axes = range(len(self.extents))
        return min(reversed(axes), key=self._cost, default=-1)

    def _cost(self, axis: int) -> int:
        if self.extents[axis] < 4:
            return APART_WRITTEN * len(self.statements)
        cost = 0
        for statement in self.statements:
            cost += sum([APART * (a.strides[axis] not in (0, 1)) for a in statement.args])
            cost += APART_WRITTEN * (statement.out.strides[axis] not in (0, 1))
        return cost

    def _across(self) -> int:
        """An axis of arrays that lie across the innermost loop, or -1."""
        if self.inner < 0 or self.extents[self.inner] < LONG:
            return -1
        for operand in [o for s in self.statements for o in (s.out, *s.args)]:
            if operand.strides[self.inner] not in (0, 1) and 1 in operand.strides:
                axis = operand.strides.index(1)
                if self.extents[axis] >= LONG:
                    return axis
        return -1

    # --- text -------------------------------------------------------------------------------------

    def text(self, shared: Shared | None = None) -> str:
        """A block of C, of which threads share a loop that is worth it."""
        found = self._range() if shared is not None else None
        if shared is None or found is None:
            return self._block()
        self.shared, self.cut = found
        return self._by_chunks(shared)

    def _block(self) -> str:
        sums = [s for s in self.statements if s.summed]
        whole = [s for s in sums if len(s.summed) == len(self.extents)]
        kept = [s for s in sums if s not in whole]
        lines = [f"wide a{s.out.slot} = 0;" for s in whole]
        # A sum that one run of the innermost loop ends is not added to what is there.
        at_once = [] if self.across >= 0 else [s for s in kept if s.summed == {self.inner}]
        at_once = [s for s in at_once if not s.adding]
        for s in kept:
            if s not in at_once and not s.adding:
                lines += self._cleared(s)
        lines += self._loops(whole, kept, at_once)
        for s in whole:
            place = f"*p{s.out.slot}" if self.shared < 0 else f"h{s.out.slot}[chunk * {spaced(1)}L]"
            lines.append(f"{place} {'+=' if s.adding else '='} (real)a{s.out.slot};")
        return "{\n" + "\n".join([f"    {line}" for line in lines]) + "\n}"

    # --- chunks -----------------------------------------------------------------------------------

    def _range(self) -> tuple[int, Cut] | None:
        """The loop that is cut: the outermost of enough indices, or of as many as there are."""
        if any(isinstance(n, Count) for n in self.extents) or any(
            s.adding for s in self.statements
        ):
            return None
        entries = prod(self.extents)
        work = sum([entries * entry_work(s.entry) for s in self.statements])
        order = [k for k in range(len(self.extents)) if k not in (self.inner, self.across)]
        order += [k for k in (self.across, self.inner) if k >= 0]
        found = [
            (k, made)
            for k in order
            if (made := cut(self.extents[k], work, self._most(k), self._lanes(k)))
        ]
        return max(found, key=lambda at: min(at[1].chunks, FEW_CHUNKS), default=None)

    def _lanes(self, axis: int) -> int:
        return LANES if axis in (self.inner, self.across) else 1

    def _most(self, axis: int) -> int:
        """Chunks of this axis for whose sums there is room."""
        sizes = [self._size(s) for s in self.statements if axis in s.summed]
        return min([MOST, *[SUMMED // (len(sizes) * n) for n in sizes]])

    def _size(self, s: CStatement) -> int:
        return prod([n for k, n in enumerate(self.extents) if k not in s.summed])

    def _by_chunks(self, shared: Shared) -> str:
        """The chunks of one loop; what they sum over it is added up behind them."""
        over = [s for s in self.statements if self.shared in s.summed]
        parts = [(s.out.slot, self._size(s)) for s in over]
        own = [
            f"real *p{slot} = h{slot} + chunk * {spaced(n)}L;"
            for s, (slot, n) in zip(over, parts, strict=True)
            if len(s.summed) < len(self.extents)
        ]
        body = "\n".join([*own, self._block()])
        call = shared.call(self.cut, body, [(f"h{slot}", "real *") for slot, _ in parts])
        chunks = self.cut.chunks
        held = [f"real h{slot}[{chunks * spaced(n)}];" for slot, n in parts]
        sums = joined([(f"p{slot}", f"h{slot}", n, "=") for slot, n in parts], chunks)
        return "\n".join(["{", *held, f"{call};", *sums, "}"])

    def _ends(self, axis: int) -> tuple[str, str]:
        """Where the loop over an axis begins and ends."""
        return ("first", "last") if axis == self.shared else ("0", f"{self.extents[axis]}")

    # --- loops ------------------------------------------------------------------------------------

    def _cleared(self, s: CStatement) -> list[str]:
        axes = [k for k in range(len(self.extents)) if k not in s.summed]
        loops = [line for k in axes for line in self._for(k, False)]
        return [*loops, f"{self._place(s.out)} = 0;", "}" * len(axes)]

    def _loops(
        self, whole: list[CStatement], kept: list[CStatement], at_once: list[CStatement]
    ) -> list[str]:
        running = [s for s in kept if self.inner in s.summed]
        hoisted = [a for a in self.loads if self.inner < 0 or not moves(a, self.inner)]
        before = [self._load(a) for a in hoisted]
        before += [f"wide a{s.out.slot} = 0;" for s in running]
        body = [self._load(a) for a in self.loads if a not in hoisted]
        for s in self.statements:
            body += self._statement(s, running + whole)
        after = []
        for s in running:
            sign = "=" if s in at_once else "+="
            after.append(f"{self._place(s.out)} {sign} (real)a{s.out.slot};")
        if self.inner < 0:
            return [*before, *body, *after]
        adding = ", ".join([f"a{s.out.slot}" for s in running + whole])
        pragma = f"#pragma omp simd reduction(+:{adding})" if adding else "#pragma omp simd"
        inside = [
            *before,
            pragma,
            *self._for(self.inner, self.across >= 0),
            *indented(body),
            "}",
            *after,
        ]
        outer = [k for k in range(len(self.extents)) if k not in (self.inner, self.across)]
        rows = None if running else self._rows(outer, kept)
        if rows is not None:
            outer.remove(rows)
        head: list[str] = []
        for k in outer:
            head += self._for(k, False)
        if self.across >= 0:
            for k in (self.across, self.inner):
                low, high = self._ends(k)
                head.append(f"for (long j{k} = {low}; j{k} < {high}; j{k} += {TILE}) {{")
            head += self._for(self.across, True)
        if rows is not None:
            innermost = [pragma, *self._for(self.inner, False)]
            inside = self._by_rows(rows, whole, kept, hoisted, innermost, inside)
        return [*head, *indented(inside), "}" * len(head)] if head else inside

    def _rows(self, outer: list[int], kept: list[CStatement]) -> int | None:
        """The loop around the innermost one over which all sums go, if rows of it go together."""
        work = sum([entry_work(s.entry) for s in self.statements])
        if not kept or self.across >= 0 or work > MUCH:
            return None
        summed = frozenset.intersection(*[s.summed for s in kept])
        return max([k for k in outer if k in summed and self.extents[k] >= MANY], default=None)

    def _by_rows(
        self,
        axis: int,
        whole: list[CStatement],
        kept: list[CStatement],
        hoisted: list[COperand],
        innermost: list[str],
        rest: list[str],
    ) -> list[str]:
        """Rows of a loop at a time, whose entries in sums are one number; what is left one by one.

        Otherwise every entry of a sum would wait for the one before it to be written and read.
        """
        low, high = self._ends(axis)
        each = f"#pragma GCC unroll {ROWS}", f"for (long r = 0; r < {ROWS}; r++) {{"
        row = f"const long i{axis} = b{axis} + r;"
        numbers = [self.loads.index(a) for a in hoisted]
        before = [f"real y{n}[{ROWS}];" for n in numbers]
        if hoisted:
            read = [self._load(a) for a in hoisted]
            before += [*each, row, *read, *[f"y{n}[r] = x{n};" for n in numbers], "}"]
        body = [f"const real x{n} = y{n}[r];" for n in numbers]
        body += [self._load(a) for a in self.loads if a not in hoisted]
        for s in self.statements:
            made = [f"s{s.out.slot} += {self._value(s)};"] if s in kept else None
            body += made or self._statement(s, whole)
        return [
            f"long b{axis} = {low};",
            f"for (; b{axis} + {ROWS} <= {high}; b{axis} += {ROWS}) {{",
            *indented(
                [
                    *before,
                    *innermost,
                    *indented(
                        [
                            *[f"real s{s.out.slot} = 0;" for s in kept],
                            *each,
                            *indented([row, *body]),
                            "}",
                            *[f"{self._place(s.out)} += s{s.out.slot};" for s in kept],
                        ]
                    ),
                    "}",
                ]
            ),
            "}",
            f"for (long i{axis} = b{axis}; i{axis} < {high}; i{axis}++) {{",
            *indented(rest),
            "}",
        ]

    def _for(self, axis: int, tiled: bool) -> list[str]:
        low, high = self._ends(axis)
        if tiled:
            end = f"(j{axis} + {TILE} < {high} ? j{axis} + {TILE} : {high})"
            return [f"for (long i{axis} = j{axis}; i{axis} < {end}; i{axis}++) {{"]
        return [f"for (long i{axis} = {low}; i{axis} < {high}; i{axis}++) {{"]

    def _statement(self, s: CStatement, running: list[CStatement]) -> list[str]:
        value = self._value(s)
        if not s.summed and not s.adding:  # to add up one entry is to add it
            made = f"const real t{s.out.slot} = {value};"
            if s.out.slot not in self.stored:
                return [made]
            return [made, f"{self._place(s.out)} = t{s.out.slot};"]
        if s in running:
            return [f"a{s.out.slot} += {value};"]
        return [f"{self._place(s.out)} += {value};"]

    def _value(self, s: CStatement) -> str:
        return s.entry.format(*[self._name(a) for a in s.args])

    def _name(self, operand: COperand) -> str:
        if operand in self.loads:
            return f"x{self.loads.index(operand)}"
        return f"t{operand.slot}"

    def _load(self, operand: COperand) -> str:
        ends = [
            f"i{k} {sign} {end}"
            for k, low, high in operand.guards
            for sign, end, known in ((">=", low, 0), ("<", high, self.extents[k]))
            if end != known
        ]
        guarded = f"({' && '.join(ends)}) ? {self._place(operand)} : 0" if ends else ""
        return f"const real x{self.loads.index(operand)} = {guarded or self._place(operand)};"

    def _place(self, operand: COperand) -> str:
        terms = [f"i{k}" if s == 1 else f"i{k} * {s}L" for k, s in enumerate(operand.strides) if s]
        terms += [f"({operand.start}L)"] if operand.start else []
        return f"p{operand.slot}[{' + '.join(terms) or 0}]"
