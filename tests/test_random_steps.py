"""Loops of Python whose steps random programs make."""

from __future__ import annotations

import pytest

from tcalc.graph.nodes import postorder
from tcalc.loops.rolling import rolled
from tests import random_steps
from tests.random_steps import MORE_FROM, compare, expression, none, program

SEEDS, MORE = range(40), range(MORE_FROM, MORE_FROM + 12)
#: Steps that turn antisymmetric matrices: slopes lost digits step by step in reverse mode.
TURNED = (542, 650, 738, 5285, 5379, 5440, 5683)


#: Steps that choose between states by others, with what is not finite everywhere in between: every
#: choice doubled all that was before it.
CHOOSING = (1000090, 1000406, 1000493)


@pytest.mark.parametrize("seed", [*SEEDS, *TURNED, *MORE, CHOOSING[2]])
def test_values_slopes_and_curvatures(seed: int) -> None:
    compare(seed, curved=seed % 5 == 0)


def test_most_become_shorter() -> None:
    """What would not be loops would be compared with itself above."""
    expressions = list(map(expression, map(program, SEEDS)))
    long = [e for e in expressions if len(postorder([e])) > 60]
    short = [e for e in long if 2 * len(postorder(rolled([e], none))) < len(postorder([e]))]
    assert len(short) > 0.9 * len(long) > 20


@pytest.mark.parametrize("seed", CHOOSING)
def test_choices_in_all_steps_are_not_copied_for_each(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    for steps in (8, 16):
        monkeypatch.setattr(random_steps, "STEPS", steps)
        sizes.append(len(postorder([expression(program(seed))])))
    assert sizes[1] < 7 * sizes[0]
