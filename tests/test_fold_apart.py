"""Along which axes of a loop's states entries stay apart from step to step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import tcalc as tc
from tcalc.graph.nodes import Apply, Expr, postorder
from tcalc.graph.operators import Loop
from tcalc.loops.joint_rows import _extents_apart

A, w, X = tc.var("A", ("n", "n")), tc.var("w", "n"), tc.var("X", ("k", "n"))
B, VECTOR, MATRIX = tc.var("B", ("n", "m")), tc.var("v", "n"), tc.var("M", ("n", "m"))
Step = Callable[[Any, Any], Any]
#: Steps of one state, where it begins, and the extents of axes along which its entries stay apart.
STEPS: list[tuple[Step, Expr, set[str]]] = [
    (lambda s, t: tc.tanh(s * w), VECTOR, {"n"}),
    (lambda s, t: s + 0.1 * s * s + X[t], VECTOR, {"n"}),
    (lambda s, t: tc.tanh(A @ s), VECTOR, set()),
    (lambda s, t: s * tc.sum(s) + w, VECTOR, set()),
    (lambda s, t: tc.exp(-s * s) * B, MATRIX, {"n", "m"}),
    (lambda s, t: tc.tanh(A @ s), MATRIX, {"m"}),
    (lambda s, t: s / (1 + tc.sum(s * s, axis=1)[:, None]), MATRIX, {"n"}),
]


def apart(step: Step, start: Any) -> Any:
    states = tc.fold(step, start, "k")
    roots = [tc.sum(e) for e in (states if isinstance(states, tuple) else (states,))]
    (loop,) = [e for e in postorder(roots) if isinstance(e, Apply) and isinstance(e.op, Loop)]
    return _extents_apart(loop.params[0])


@pytest.mark.parametrize(("step", "start", "wanted"), STEPS)
def test_axes_along_which_steps_keep_entries_apart(
    step: Step, start: Expr, wanted: set[str]
) -> None:
    assert apart(step, start) == wanted


def test_totals_keep_nothing_apart() -> None:
    """Their cotangents stay as they are given; of what a state adds to itself they do not."""
    other = tc.var("u", "n")

    def step(s: Any, t: Any) -> Any:
        return s[0] + tc.sum(s[1]) * w, tc.tanh(A @ s[1])

    def and_itself(s: Any, t: Any) -> Any:
        return s[0] + tc.sum(s[1]) * w + tc.sin(s[0]), tc.tanh(A @ s[1])

    assert apart(step, (VECTOR, other)) == set()
    assert apart(and_itself, (VECTOR, other)) == {"n"}
