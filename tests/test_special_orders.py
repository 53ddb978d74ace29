"""Functions of a whole number and another one."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc


@pytest.mark.parametrize("name", ["polygamma", "inverse_mills", "spherical_jn"])
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_orders_that_are_no_whole_numbers_give_nan(name: str, backend: str) -> None:
    w = tc.var("w", 2)
    at = np.array([0.5, 1.5])
    for e in (tc.parse(f"{name}(1.5, w)", w=w), tc.parse(f"{name}(s, w)", w=w, s=())):
        given = {"w": at, "s": 1.5}
        arrays = {key: given[key] for key in e.variables}
        assert np.isnan(tc.compile(e, backend=backend)(**arrays)).all()
    whole = tc.compile(tc.parse(f"{name}(1, w)", w=w), backend=backend)
    assert np.isfinite(whole(w=at)).all()


def test_negative_orders_are_nan() -> None:
    assert np.isnan(tc.parse("inverse_mills(-1, w)", w=1)(w=[0.5])).all()
