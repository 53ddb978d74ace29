"""Weighted products of rows that are orthonormal up to a scale of their columns.

With L Q = A the rows of Q = inv(L) A are orthonormal, and where A is D diag(c), so are those of
inv(L) D diag(c): Q diag(d) Q' is then a multiple of the identity for d = c^2. Which weights are in
most columns such a multiple only a call sees, whose kernel leaves these columns out.
"""

from __future__ import annotations

from ...ops.matrix.lq import LQ, lq_triangle_row
from ..builder import Builder
from ..steps import Step


def completed(b: Builder) -> None:
    """Note on symmetric products with which weights they are the identity."""
    if not any(step.kind == "gram" for step in b.steps):
        return
    made = {step.out: step for step in b.steps}
    b.steps = [_noted(step, made) if step.kind == "gram" else step for step in b.steps]


def _noted(step: Step, made: dict[int, Step]) -> Step:
    turned = made.get(step.args[0])
    if turned is None or turned.kind != "transpose" or turned.params != (1, 0):
        return step
    scale = _scale(turned.args[0], made)
    if scale is None:
        return step
    words = (*step.words[:-1], *[(0,) for _ in scale], step.words[-1])
    return step._replace(args=(*step.args, *scale), words=words, params=(True,))


def _scale(rows: int, made: dict[int, Step]) -> tuple[int, ...] | None:
    """The scale of the columns, nothing for 1; None where the rows are not known orthonormal."""
    step = made.get(rows)
    if step is None:
        return None
    if step.kind == "part":
        whole = made.get(step.args[0])
        known = whole is not None and whole.kind == "kernels" and whole.params[0] is LQ
        return () if known and step.params == (1,) else None
    if step.kind != "trisolve" or step.params[0]:
        return None
    triangle, columns = step.args
    whole = made.get(triangle)
    if whole is None or whole.kind != "finish" or whole.params[0] is not lq_triangle_row():
        return None
    (matrix,) = made[whole.args[0]].args
    if matrix == columns:
        return ()
    scaled = made.get(matrix)
    if scaled is None or scaled.kind != "multiply" or columns not in scaled.args:
        return None
    (scale,) = [a for a in scaled.args if a != columns] or [columns]
    along = scaled.words[scaled.args.index(scale)] == scaled.words[-1][-1:]
    return (scale,) if along else None
