"""Runs of steps as one C function, for arrays whose strides are known.

The function takes a table of addresses of arrays that stay, arrays of this call, and where to
start. What a step leaves to Python (an error to raise, a case that is NumPy's) is done where it
stands: how, is for the function to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import prod

from ...plan.steps import Plan, Step
from ...support.arrays import Sizes
from ...support.records import NamedTuple
from .correlations import correlate
from .frames import Frame, StridedArray, full
from .loopnests import Nest
from .matrices import CALLS
from .moves import MOVES, packed
from .powers import powers
from .rows import PACKED, SPECIAL, SPREAD, Spread
from .sharing import BATCH, Shared, alone
from .solves import SOLVES
from .spelling import entry_of
from .statements import COperand, Count, CStatement, aligned, alike, keep_rows

#: C for steps, by kind.
FORMS = {**CALLS, **SOLVES, **MOVES, "powers": powers, "correlate": correlate}
#: Items of a function that are looked through, from the last, for one that a step may join.
REACH = 16
#: Most multiplications of a product that is written out: of matrices, and with a vector.
WRITTEN_OUT, BY_VECTOR = 1024, 4096
#: Most operations of a correlation that is, where no routine reads its operands.
FEW_PRODUCTS = 1 << 17
#: How many entries of a result there are at most for one that has a place in it, where each looks.
SPARSE = 4


class FusedStatements(NamedTuple):
    """Statements of one nest of loops."""

    shape: Sizes
    statements: list[CStatement]


class Call(NamedTuple):
    """C for one step."""

    text: str
    reads: tuple[int, ...]
    writes: tuple[int, ...]


class Source:
    """The text of one function, to which steps are added; `leaves` where one leaves its work.

    `left` is what a step says to have Python do it; `shared` takes what threads share, None where
    they do not.
    """

    def __init__(
        self, frame: Frame, char: str, left: Callable[[Step], str], shared: Shared | None = None
    ) -> None:
        self.frame, self.left, self.shared = frame, left, shared
        self.suffix = "f" if char == "f" else ""
        self.items: list[FusedStatements | Call] = []
        self.leaves = False

    # --- grouping ---------------------------------------------------------------------------------

    def add(self, step: Step) -> None:
        """A step that has a form in C, for arrays that lie as most do."""
        made = self._entrywise(step)
        if made is not None:
            shape, statements = made
            for statement in statements:
                self._join(shape, statement)
            return
        form = packed if _packs(step) else FORMS.get(step.kind)
        text = form(self.frame, step) if form else ""
        self.call(step, text or self._spread(step) or "FAIL;")

    def call(self, step: Step, text: str) -> None:
        """A step as this text, in which FAIL leaves it to Python."""
        before, _, batch = text.rpartition(BATCH)
        if self.shared is not None:
            work = step.flops + prod(step.shape)
            text = before + self.shared.batch(batch, work, before, step.kind in {**CALLS, **SOLVES})
        else:
            text = before + alone(batch, before)
        if "FAIL;" in text:
            self.leaves = True
            text = text.replace("FAIL;", self.left(step))
        self.items.append(Call(text, step.args, (step.out,)))

    def _spread(self, step: Step) -> str:
        """Entries for all of a vector's, or for all pairs, unless there are exceptional ones."""
        found = spread(step)
        if found is None:
            return ""
        (w,), shape = step.args, self.frame.shape(step)
        (s,) = self.frame.arrays[w].strides
        axes = range(len(shape))
        args = tuple([COperand(w, tuple([s if k == axis else 0 for k in axes])) for axis in axes])
        made = CStatement(self.frame.result(step), found.entry, args)
        check = f"{found.check}(p{w}, {s}, {shape[0]})"
        return f"if ({check}) {{ FAIL; }} else {Nest(shape, [made], {step.out}).text()}"

    def _join(self, shape: Sizes, statement: CStatement) -> None:
        """Put a statement where it belongs (`_place_of`)."""
        found = self._place_of(shape, statement)
        if isinstance(found, FusedStatements):
            found.statements.append(statement)
        else:
            self.items.insert(found, FusedStatements(shape, [statement]))

    def _place_of(self, shape: Sizes, statement: CStatement) -> FusedStatements | int:
        """The last group of its shape that a statement can be moved to.

        Where there is none, where it is a group of its own: before larger ones that it can be moved
        over, so that what reads it may become part of these.
        """
        at = len(self.items)
        for k in range(at - 1, max(at - REACH, 0) - 1, -1):
            item = self.items[k]
            if isinstance(item, FusedStatements):
                if alike(item.shape, shape) and self._fits(item, statement):
                    return item
                read = [a.slot for s in item.statements for a in s.args]
                made = [s.out.slot for s in item.statements]
            else:
                read, made = [*item.reads], [*item.writes]
            reads, writes = self.frame.touched(read), self.frame.touched(made)
            own = self.frame.touched([a.slot for a in statement.args])
            out = self.frame.touched([statement.out.slot])
            if own & writes or out & writes or out & reads:
                break
            if isinstance(item, FusedStatements) and prod(item.shape) > prod(shape):
                at = k
        return at

    def _fits(self, group: FusedStatements, new: CStatement) -> bool:
        """Do the statements see the same, entry by entry, as one after the other?"""
        if keep_rows(group.shape, [*group.statements, new]):
            return False
        made = {s.out.slot: s for s in group.statements}
        written = self.frame.touched([s.out.slot for s in group.statements])
        read = [a for s in group.statements for a in s.args]
        for a in new.args:
            if a.slot in made:
                if made[a.slot].summed or not a.as_made(made[a.slot].out.strides):
                    return False
            elif self.frame.touched([a.slot]) & written:
                return False
        out = self.frame.touched([new.out.slot])
        return all(
            not new.summed and o.as_made(new.out.strides) and self.frame.alone(o.slot)
            for o in [*read, *[s.out for s in group.statements]]
            if self.frame.touched([o.slot]) & out
        )

    # --- entrywise steps --------------------------------------------------------------------------

    def _entrywise(self, step: Step) -> tuple[Sizes, list[CStatement]] | None:
        """The shape of the loops and the statements, if the step has no other form."""
        shape = self.frame.shape(step)
        entry = entry_of(step, self.suffix) or _special(step)
        if entry:
            args = tuple([self.frame.operand(a, shape) for a in step.args])
            return shape, [CStatement(self.frame.result(step), entry, args)]
        if step.kind == "sum":
            (a,), axes = step.args, step.params
            whole = self.frame.arrays[a].shape
            return self._summed(step, whole, [self.frame.operand(a, whole)], frozenset(axes), "{0}")
        if step.kind == "vecdot":
            shapes = [self.frame.arrays[a].shape[::-1] for a in step.args]
            pairs = zip_longest(*shapes, fillvalue=1)
            whole = tuple([n if n != 1 else m for m, n in pairs])[::-1]
            pair = [self.frame.operand(a, whole) for a in step.args]
            return self._summed(step, whole, pair, frozenset({len(whole) - 1}), "{0} * {1}")
        if step.kind == "dot":
            return self._small_product(step) or self._by_vector(step)
        if step.kind == "matmul":
            return self._by_vector(step)
        if step.kind == "einsum":
            return self._einsum(step)
        if step.kind == "correlate" and step.flops <= FEW_PRODUCTS:
            return None if correlate(self.frame, step) else self._correlation(step)
        if step.kind in ("place", "place_add"):
            return self._placed(step)
        if regroups(step):
            (a,) = step.args
            shape = self.frame.arrays[a].shape
            return shape, [
                CStatement(COperand(step.out, full(shape)), "{0}", (self.frame.operand(a, shape),))
            ]
        return None

    def _summed(
        self,
        step: Step,
        shape: Sizes,
        args: Sequence[COperand],
        axes: frozenset[int],
        entry: str,
    ) -> tuple[Sizes, list[CStatement]]:
        strides = iter(self.frame.result(step).strides)
        out = tuple([0 if k in axes else next(strides) for k in range(len(shape))])
        adding = step.out in self.frame.adding
        return shape, [CStatement(COperand(step.out, out), entry, tuple(args), axes, adding)]

    def _small_product(self, step: Step) -> tuple[Sizes, list[CStatement]] | None:
        """A product of vectors, or of matrices so small that a call takes longer."""
        one, two = [self.frame.arrays[a] for a in step.args]
        shape = (*self.frame.shape(step), one.shape[-1])
        most = WRITTEN_OUT if len(shape) > 2 else BY_VECTOR
        few = prod(shape) <= most and not any(isinstance(n, Count) for n in shape)
        if max(len(one.shape), len(two.shape)) > 2 or (len(shape) > 1 and not few):
            return None
        left = (*one.strides[:-1], *[0] * (len(two.shape) - 1), one.strides[-1])
        right = (*[0] * (len(one.shape) - 1), *two.strides[1:], two.strides[0])
        pair = [COperand(a, s) for a, s in zip(step.args, (left, right), strict=True)]
        return self._summed(step, shape, pair, frozenset({len(shape) - 1}), "{0} * {1}")

    def _by_vector(self, step: Step) -> tuple[Sizes, list[CStatement]] | None:
        """Matrices by vectors, in the loops that make the entries of one of them.

        A routine would have these written first, and read them again.
        """
        one, two, out = [self.frame.arrays[a] for a in (*step.args, step.out)]
        if len(one.shape) == 1:
            one, out = [StridedArray((1, *x.shape), (0, *x.strides)) for x in (one, out)]
        if len(two.shape) == 1:
            two, out = [StridedArray((*x.shape, 1), (*x.strides, 0)) for x in (two, out)]
        products = m, _, n = (*one.shape[-2:], two.shape[-1])
        if (m == 1) == (n == 1):
            return None
        lead, kept = out.shape[:-2], slice(1, 3) if m == 1 else slice(2)

        def operand(slot: int, x: StridedArray, last: Sizes) -> COperand:
            before = aligned(lead, x.shape[:-2], x.strides[:-2])
            return COperand(slot, (*before, *last[kept]))

        args = (
            operand(step.args[0], one, (*one.strides[-2:], 0)),
            operand(step.args[1], two, (0, *two.strides[-2:])),
        )
        result = operand(step.out, out, (out.strides[-2], 0, out.strides[-1]))
        shape, axes = (*lead, *products[kept]), frozenset({len(lead) + int(m != 1)})
        adding = step.out in self.frame.adding
        statement = CStatement(result, "{0} * {1}", args, axes, adding)
        group = self._place_of(shape, statement)
        made = group.statements if isinstance(group, FusedStatements) else []
        if {s.out.slot for s in made}.isdisjoint(step.args):
            return None
        return shape, [statement]

    def _correlation(self, step: Step) -> tuple[Sizes, list[CStatement]]:
        """Windows, whose first or last axes are summed with the last ones of the other operand."""
        windows, other = [self.frame.arrays[a] for a in step.args]
        few, keeps_many = step.params
        axes = range(len(windows.shape))
        summed = list(axes[:few] if keeps_many else axes[few:])
        own = [k for k in axes if k not in summed]
        lead = len(other.shape) - len(summed)
        shape = (*self.frame.shape(step), *[windows.shape[k] for k in summed])
        first = (*[0] * lead, *[windows.strides[k] for k in (*own, *summed)])
        second = (*other.strides[:lead], *[0] * len(own), *other.strides[lead:])
        args = [COperand(a, s) for a, s in zip(step.args, (first, second), strict=True)]
        places = frozenset(range(len(shape) - len(summed), len(shape)))
        return self._summed(step, shape, args, places, "{0} * {1}")

    def _placed(self, step: Step) -> tuple[Sizes, list[CStatement]] | None:
        """Entries at places of their own: every entry of the result looks for the one of it.

        Not where these are few, or come to what is there already.
        """
        *onto, a = step.args
        counts, forms = step.params
        shape, array = self.frame.shape(step), self.frame.arrays[a]
        there = [o for o in onto if self.frame.memory(o) == self.frame.memory(step.out)]
        if there or prod(counts) * SPARSE < prod(step.shape):
            return None
        own = aligned(counts, array.shape, array.strides)
        left = {k for k, n in enumerate(counts) if n > 1}
        start, strides, guards = 0, [0] * len(shape), []
        for axis, (first, coefs) in enumerate(forms):
            labels = [k for k, c in enumerate(coefs) if c]
            if len(labels) > 1 or any(abs(coefs[k]) > 1 or k not in left for k in labels):
                return None
            low, high = first, first + 1
            for k in labels:
                left.remove(k)
                start -= coefs[k] * first * own[k]
                strides[axis] = coefs[k] * own[k]
                ends = first, first + coefs[k] * (counts[k] - 1)
                low, high = min(ends), max(ends) + 1
            if not isinstance(shape[axis], Count) and (low > 0 or high < shape[axis]):
                guards.append((axis, max(low, 0), min(high, shape[axis])))
        if left:
            return None
        placed = COperand(a, tuple(strides), start, tuple(guards))
        args = [self.frame.operand(o, shape) for o in onto]
        entry = "({0} + {1})" if onto else "{0}"
        return shape, [CStatement(self.frame.result(step), entry, (*args, placed))]

    def _einsum(self, step: Step) -> tuple[Sizes, list[CStatement]]:
        words, _, result = step.params[0].partition("->")
        spelled = words.split(",")
        extents: dict[str, int] = {}
        strides: list[dict[str, int]] = []
        for slot, word in zip(step.args, spelled, strict=True):
            found = self.frame.arrays[slot]
            strides.append({})
            for label, n, stride in zip(word, found.shape, found.strides, strict=True):
                extents[label] = n
                strides[-1][label] = strides[-1].get(label, 0) + stride
        order = [*result, *[label for label in extents if label not in result]]
        shape = tuple([extents[label] for label in order])
        args = [
            COperand(slot, tuple([held.get(label, 0) for label in order]))
            for slot, held in zip(step.args, strides, strict=True)
        ]
        axes = frozenset(range(len(result), len(order)))
        return self._summed(step, shape, args, axes, "{0} * {1}")

    # --- text -------------------------------------------------------------------------------------

    def body(
        self,
        read: Callable[[int, set[int]], bool],
        nest: Callable[[str, set[int]], str] = lambda text, slots: text,
    ) -> str:
        """All items; `read(slot, steps)` tells whether others than these steps' read a slot.

        `nest` is given every nest of loops, and its slots.
        """
        lines = []
        for item in self.items:
            if isinstance(item, Call):
                lines.append(item.text)
                continue
            made = {s.out.slot for s in item.statements}
            stored = {slot for slot in made if read(slot, made)}
            slots = {o.slot for s in item.statements for o in (s.out, *s.args)}
            made_of = Nest(item.shape, item.statements, stored)
            lines.append(nest(made_of.text(self.shared), slots))
        return "\n".join(lines)


def read_by_others(plan: Plan) -> Callable[[int, set[int]], bool]:
    """Do other steps than the one that makes a slot and these read it, or the caller?"""
    readers = plan.readers
    returned = {plan.owner[output.slot] for output in plan.outputs}

    def read(slot: int, made: set[int]) -> bool:
        owner = plan.owner[slot]
        return owner in returned or not made.issuperset(readers.get(owner, ()))

    return read


def _special(step: Step) -> str:
    elementwise = step.kind in ("ufunc", "kernel") and step.params[0].elementwise
    return SPECIAL.get(step.params[0].name, "") if elementwise else ""


def _packs(step: Step) -> bool:
    return step.kind == "kernel" and step.params[0].name in PACKED


def regroups(step: Step) -> bool:
    """Has a step's result the entries of its operand in C order, in another shape?"""
    return step.kind == "kernel" and bool(step.params[0].meaning.regroups)


def spread(step: Step) -> Spread | None:
    """How entries of a vector, which has no batch axes, are made into the step's result."""
    if step.kind not in ("into", "kernel") or len(step.params) != 2:
        return None
    op, kind = step.params
    found = SPREAD.get((op.name, kind))
    return found if found is not None and len(step.shape) == found.axes else None
