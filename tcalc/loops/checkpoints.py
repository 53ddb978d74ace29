"""Loops in stretches: of a long one only the states before stretches of about √n steps are kept.

Reverse derivatives make the states between again, a stretch at a time (Griewank 1992).
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt

from ..graph.extents import extent_of
from ..graph.nodes import Apply, Expr, Var
from ..ops.reshape import reshape
from .body import alike, body_variable
from .derivatives import Primal
from .normal_form import LoopOperands, normal_form_loop

__all__: list[str] = []

#: Steps from which stretches hold notably less.
LONG = 16


def stretch(n: int) -> int:
    """About √n steps, without a rest if there is such a number."""
    root = max(1, isqrt(n))
    return next((k for k in range(root, root // 2, -1) if n % k == 0), root)


def in_stretches(node: Apply, sizes: Mapping[str, int]) -> tuple[Expr, ...] | None:
    """The last states of an equal loop over stretches, and what is left of them.

    None of a loop that is short, has a bound, or is one over stretches.
    """
    primal = Primal.of(node)
    body, steps = primal.body, primal.steps
    count = extent_of(steps.length, sizes)
    if body.bound is not None or body.frugal or count < LONG:
        return None
    each = stretch(count)
    whole = count // each * each
    first, scanned, captured = primal.operands
    begins = [body_variable(f"o{k}@", v.shape, v.properties) for k, v in enumerate(body.states)]
    pieces = {v: alike("y", v, (each,)) for v in body.steps}

    def run(inits: list[Expr], fed: Mapping[Var, Expr], times: int) -> list[Expr]:
        feed, of = LoopOperands(dict(fed), captured), steps._replace(length=times)
        return [*normal_form_loop(node.op, body.states, body.outputs, inits, feed, of)][
            : body.results
        ]

    start, rest = (count - whole, 0) if steps.backward else (0, whole)
    cut = {
        pieces[v]: reshape(e[start : start + whole], (whole // each, each, *e.shape[1:]))
        for v, e in scanned.items()
    }
    inside = run([*begins], pieces, each)
    feed = LoopOperands(cut, captured)
    of = steps._replace(length=whole // each, frugal=True)
    ends = [*normal_form_loop(node.op, begins, inside, first, feed, of)][: body.results]
    if whole == count:
        return tuple(ends)
    left = {v: e[rest : rest + count - whole] for v, e in scanned.items()}
    return tuple(run(ends, left, count - whole))
