"""Which steps have a form in C: alone, in a tile, in a loop."""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from ...plan.steps import VIEW, Plan, Step, TiledLoop
from .moves import MOVES
from .rows import (
    ALONG_AXES,
    FEW_ENTRIES,
    FEW_ROWS,
    GENERAL,
    LONGEST,
    OF_FACTORS,
    PACKED,
    PAIRWISE,
    ROUTINES,
    SEVERAL,
    SPECIAL,
)
from .rows import entry as written_entry
from .source import FEW_PRODUCTS, regroups, spread
from .spelling import ENTRIES

#: Kinds of which every step has a form.
PLAIN = frozenset({
    *ENTRIES, "sum", "vecdot", "einsum", "dot", "matmul", "trisolve", "congruence", "embed",
    "embed_add", "place", "place_add", "pad", "triangle", "powers", "weighted", "crossed",
    "correlate",
}) - {"factor"}  # fmt: skip


#: Kinds that make the integers which index, after a look whether they are in range.
_INTEGERS = frozenset({"index", "joint"})

#: Kinds that a tile does not do, as they begin with zeros or may fail.
_WHOLE = frozenset({
    "embed", "embed_add", "fill", "trisolve", "congruence", "solve", "over", "pad", "triangle",
    *_INTEGERS,
})  # fmt: skip


#: Entries of an array in another shape up to which they are copied: where they lie row by row NumPy
#: has them for nothing, but takes longer for a call.
MOVED = 1 << 14

#: Kinds of which steps read integers, which are in range.
READING = frozenset({"copy", "take", "segments", "count", "onehot", "add_at"})


def tileable(plan: Plan, loop: TiledLoop, integers: Collection[int]) -> bool:
    """Have all steps of a loop a form in C?"""
    return all(
        plan.origin[step.out] is VIEW
        or (expressible(plan, step, integers) and step.kind not in _WHOLE)
        for step in loop.steps
    )


def expressible(
    plan: Plan, step: Step, integers: Collection[int], held: Collection[int] = ()
) -> bool:
    """Has the step a form in C, for arrays that lie as most do?

    Slots of integers are known, and those of LU factors that functions share.
    """
    if not all(prod(plan.shapes[a]) for a in (step.out, *step.args)):
        return False
    if step.out in integers:
        return step.kind in _INTEGERS
    if any(a in integers for a in step.args):
        return step.kind in READING
    if step.kind in PLAIN:
        return True
    if step.kind == "gram":
        return not step.params
    if step.kind in ("ufunc", "kernel") and step.params[0].elementwise:
        few = prod(step.shape) <= FEW_ENTRIES and step.params[0].name in SPECIAL
        return few or bool(written_entry(step.params[0]))
    if step.kind == "kernel" and step.params[0].name in ALONG_AXES:
        if step.params[0].name in LONGEST:
            return plan.shapes[step.args[0]][-1] <= LONGEST[step.params[0].name]
        return not any(isinstance(n, int) and n < 1 for n in step.params[1:])
    if step.kind == "finish":
        return step.params[0].name in OF_FACTORS or step.args[0] in held
    if step.kind == "solve" and step.params[1]:
        return step.args[0] in held
    general = step.kind == "kernel" and step.params[0].name in GENERAL - OF_FACTORS
    if general or step.kind == "solve":
        return plan.shapes[step.args[0]][-1] <= FEW_ROWS
    if step.kind == "kernel" and step.params[0].name in PACKED:
        return True
    if regroups(step):
        return prod(step.shape) <= MOVED or plan.origin[step.args[0]] is VIEW
    if step.kind == "kernel" and step.params[0].name in PAIRWISE:
        return len(step.shape) == 2
    if spread(step) is not None:
        return True
    return step.kind in ("over", "kernel") and step.params[0].name in ROUTINES


def in_loops(step: Step) -> bool:
    """Has the step a form in C among steps of a loop, where integers and matrices are C's too?"""
    if regroups(step):
        return True
    if step.kind in ("finish", "kernel") and not step.params[0].elementwise:
        name = step.params[0].name
        return name in GENERAL and (step.kind == "finish" or name not in OF_FACTORS)
    if step.kind == "kernels":
        return step.params[0].name in SEVERAL
    if step.kind == "correlate":
        return step.flops <= FEW_PRODUCTS
    return step.kind in MOVES or step.kind in ("factor", "gram", "solve")
