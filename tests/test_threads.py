"""Loops that threads share: the same bits for any number of them, and no trace of them elsewhere."""

from __future__ import annotations


import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c import loopnests, pool, sharing
from tests.cases import CASES, Case
from tests.shared import plan_for_machine
from tests.test_derivatives import DOUBLE, SINGLE, assert_equal, expected


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """All loops are shared, whatever their size, and all that can run by tiles does."""
    for module, names in ((sharing, ("LEAST", "CHUNK", "LANES")), (loopnests, ("LANES",))):
        for name in names:
            monkeypatch.setattr(module, name, 1)
    plan_for_machine(monkeypatch, large=4, tile=2, wide_tile=4)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.usefixtures("everything")
def test_cases_in_chunks(case: Case) -> None:
    e = case.expression()
    wanted = {(v, k): tc.derivative(e, tc.var(v, case.shapes[v]), k) if k else e
              for v in case.targets for k in range(min(case.order, 2) + 1)}
    steps = [tc.compile(wanted, backend="c", threads=n) for n in (1, 2)]
    for dtype, tolerance in ((np.float64, DOUBLE), (np.float32, 10 * SINGLE)):
        arrays = case.sample(dtype=dtype)
        alone, shared = [step(arrays) for step in steps]
        for (v, k), found in shared.items():
            np.testing.assert_array_equal(found, alone[v, k])
            assert_equal(found, expected(case, v)[k], tolerance)
