"""Products of tall matrices with square ones, written over the tall ones by panels of rows.

What multiplies several matrices of one size at once, as a Hessian does with the derivatives of a
covariance, then holds one such array and not two. So do congruences, which are in place anyway.
"""

from __future__ import annotations

from collections.abc import Collection

from ..builder import Builder
from ..steps import BUFFER, Step

#: How many times as many rows as columns a matrix has that is tall.
TALL = 2


def over_rows(b: Builder, results: Collection[int]) -> None:
    """Make such products steps that may write over their first operand, after all that read it."""
    if "half" not in b.machine.forms:
        return
    kept = {b.owner[slot] for slot in results}
    for step in [s for s in b.steps if s.kind == "congruence" or _is_product(b, s)]:
        operand = b.owner[step.args[0]]
        if b.origin[step.args[0]] is BUFFER and not {operand} & (kept | b.fixed):
            b.steps = _last(b, step, operand) or b.steps


def _is_product(b: Builder, step: Step) -> bool:
    return step.kind == "dot" and not step.params and _is_tall(b, step)


def _is_tall(b: Builder, step: Step) -> bool:
    (one, two), machine = step.args, b.machine
    if len(step.shape) != 2 or b.shapes[one] != step.shape or b.owner[one] == b.owner[two]:
        return False
    rows, columns = step.shape
    return rows >= TALL * columns >= TALL * machine.half_depth and rows * columns >= machine.large


def _last(b: Builder, step: Step, operand: int) -> list[Step] | None:
    """The steps with this one behind all that read its operand; None where these need its result.

    What needs the result goes with it.
    """
    at = b.steps.index(step)
    readers = [k for k, s in enumerate(b.steps) if operand in [b.owner[a] for a in s.args]]
    made, before, after = {b.owner[step.out]}, [], []
    for other in b.steps[at + 1 : readers[-1] + 1]:
        owners = {b.owner[a] for a in other.args}
        if not owners & made:
            before.append(other)
            continue
        if operand in owners:
            return None
        made.add(b.owner[other.out])
        after.append(other)
    moved = step._replace(kind="dot_over") if step.kind == "dot" else step
    return [*b.steps[:at], *before, moved, *after, *b.steps[readers[-1] + 1 :]]
