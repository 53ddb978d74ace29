"""Random programs through every back end but C, every printer and language."""

from __future__ import annotations

import pytest

from tests.fuzz import CHECKS, case, compared, piece
from tests.random_corpus import CORPUS
from tests.random_programs import Program


@pytest.mark.parametrize("first", [0, 1_000_000, 1_000_300])
def test_random_programs_agree_with_jets_everywhere(first: int) -> None:
    compared, done, mismatches = piece(first, 22, without=("c",))
    assert compared >= 18
    assert done.keys() == CHECKS.keys()
    assert not mismatches, "\n".join(map(str, mismatches))


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
