"""Random programs of fixed seeds, through every back end but C, every printer and language."""

from __future__ import annotations

import pytest

from tests.fuzz import CHECKS, piece


@pytest.mark.parametrize("first", [0, 1_000_000, 1_000_300])
def test_random_programs_agree_with_jets_everywhere(first: int) -> None:
    compared, done, mismatches = piece(first, 22, without=("c",))
    assert compared >= 18
    assert done.keys() == CHECKS.keys()
    assert not mismatches, "\n".join(map(str, mismatches))
