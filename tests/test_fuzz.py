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


@pytest.mark.parametrize("seed", [40020152, 40020603, 40020648, 40021011])
def test_programs_whose_operands_are_read_in_products_alone(seed: int) -> None:
    """What a product reads once it is flattened is no operand of any node that is written.

    Terms that stand at places are none of the sums that unit tensors go onto.
    """
    found = case(seed)
    assert found is not None
    assert not compared(found, "source")
