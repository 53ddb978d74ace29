"""Random programs through every back end but C, every printer and language."""

from __future__ import annotations

import pytest

from tests.fuzz import (
    CHECKS,
    TOGETHER,
    Draw,
    Mismatch,
    Work,
    case,
    compared,
    piece,
    still_differs,
    together,
)
from tests.random_corpus import CORPUS
from tests.random_programs import FAMILIES, Program, drawn, shrunk


@pytest.mark.parametrize("first", [0, 1_000_000, 1_000_300])
def test_random_programs_agree_with_jets_everywhere(first: int) -> None:
    compared, done, mismatches = piece(Work(first, 22, without=TOGETHER))
    assert compared >= 18
    assert done.keys() == CHECKS.keys()
    assert not mismatches, "\n".join(map(str, mismatches))


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_programs_with_more_steps_of_a_family_agree_too(family: str, zeros: bool) -> None:
    compared, _, mismatches = piece(Work(0, 6, TOGETHER, Draw((family,), zeros)))
    assert compared >= 5
    assert not mismatches, "\n".join(map(str, mismatches))


def test_what_differs_is_made_small() -> None:
    """A row that is taken for a fault stands alone in the end, with what it reads."""
    seed = next(s for s in range(1000) if len(drawn(s).program.steps) == 8)
    fault = drawn(seed).program.steps[4]
    has = lambda p: any(step[0] == fault[0] for step in p.steps)  # noqa: E731
    found = shrunk(seed, has)
    assert has(found)
    assert len(found.steps) < 4
    fine = still_differs(Mismatch(seed, "numpy", ""), Draw())
    assert not fine(drawn(seed).program)


@pytest.mark.parametrize(("seed", "program"), CORPUS)
def test_programs_that_failed_once_agree_everywhere(seed: int, program: Program) -> None:
    found = case(seed, program)
    assert found is not None
    assert not [wrong for where in CHECKS for wrong in compared(found, where)]


@pytest.mark.parametrize("seed", [40020152, 40020603, 40020648, 40021011, 40103745, 40104104])
def test_sums_of_units_and_of_what_stands_among_zeros(seed: int) -> None:
    """Both wait for the sum that they are added in, in which only one of them has a place."""
    found = case(seed)
    assert found is not None
    assert not compared(found, "source")


@pytest.mark.parametrize("seed", [53001255, 54001290, 54001924])
def test_entries_of_the_first_row_are_no_rows(seed: int) -> None:
    """Printed C does not write their index 0: loops over later axes run as if over the first."""
    found = case(seed)
    assert found is not None
    assert not together([found], "printed c")
