"""Steps that solve, as calls of routines."""

from __future__ import annotations

from collections.abc import Callable

from ...plan.steps import Step
from .frames import Frame, checked, lies, start_of, strides


def _trisolve(frame: Frame, step: Step) -> str:
    a, b = step.args
    matrix, columns = frame.arrays[a], frame.arrays[b]
    if not lies(matrix) or len(matrix.shape) != 2 or len(columns.shape) > 2:
        return ""
    n, r = (*columns.shape, 1)[:2]
    given = f"p{a}, {strides(matrix)}, {int(step.params[0])}, p{step.out}, {r}, {n}, {r}"
    return f"{frame.copied(b, step)} if (solve_lower({given})) {{ FAIL; }}"


def _solve(frame: Frame, step: Step) -> str:
    (a, b), (transposed, _) = step.args, step.params
    n, columns = (*frame.shape(step), 1)[:2]
    if a in frame.held:
        call = f"solve_lu(p{a}, {int(transposed)}, p{step.out}, {n}, {columns})"
        return f"{frame.copied(b, step)} if ({call}) {{ FAIL; }}"
    r, c = frame.arrays[a].strides[::-1] if transposed else frame.arrays[a].strides
    call = f"solve_general(p{a}, {r}, {c}, p{step.out}, {n}, {columns})"
    return f"{frame.copied(b, step)} if ({call}) {{ FAIL; }}"


def _congruence(frame: Frame, step: Step) -> str:
    """Each symmetric matrix with the inverse of a triangle on both sides, in place."""
    (a, b), (axis, _) = step.args, step.params
    out, factor = frame.arrays[step.out], frame.arrays[b]
    if not lies(factor) or out.strides[2] != 1:
        return ""
    count, n = out.shape[axis], out.shape[2]
    start = start_of(step.out, (out.strides[axis],))
    given = f"p{b}, {strides(factor)}, {start}, {out.strides[1 - axis]}, {n}"
    return f"{frame.copied(a, step)} {checked((count,), f'congruence({given})')}"


SOLVES: dict[str, Callable[[Frame, Step], str]] = {
    "trisolve": _trisolve,
    "congruence": _congruence,
    "solve": _solve,
}
