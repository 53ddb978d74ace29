"""Loops of Python whose steps random programs make."""

from __future__ import annotations

import pytest

from tcalc.graph.nodes import postorder
from tcalc.loops.rolling import rolled
from tests.random_steps import compare, expression, none, program

SEEDS = range(40)
#: Steps that turn antisymmetric matrices: slopes lost digits step by step in reverse mode.
TURNED = (542, 650, 738, 5285, 5379, 5440, 5683)


@pytest.mark.parametrize("seed", [*SEEDS, *TURNED])
def test_values_slopes_and_curvatures(seed: int) -> None:
    compare(seed, curved=seed % 5 == 0)


def test_most_become_shorter() -> None:
    """What would not be loops would be compared with itself above."""
    expressions = list(map(expression, map(program, SEEDS)))
    long = [e for e in expressions if len(postorder([e])) > 60]
    short = [e for e in long if 2 * len(postorder(rolled([e], none))) < len(postorder([e]))]
    assert len(short) > 0.9 * len(long) > 20
