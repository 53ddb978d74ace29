"""Printed programs where an extent is 0, over array libraries: the values of plans."""

from __future__ import annotations

import jax
import pytest

from tests.source_programs import Program, differences, programs
from tests.source_runs import computed

PROGRAMS = programs("voids")


@pytest.mark.parametrize("language", ["numpy", "jax", "torch", "cupy"])
@pytest.mark.parametrize("program", [*PROGRAMS.values()], ids=[*PROGRAMS])
def test_extents_of_0(program: Program, language: str) -> None:
    with jax.enable_x64(True):
        assert not differences(program, computed(program.wanted, program.data, language))
