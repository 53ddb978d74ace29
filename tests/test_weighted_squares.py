"""Products X' diag(d) X, of which half is multiplied, beside those that NumPy writes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests.c_programs import needs_compiler


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("without", [0, 5, 30, 50])
@pytest.mark.parametrize("sign", [1, -1, 0])
@pytest.mark.parametrize("backend", ["numpy", pytest.param("c", marks=needs_compiler)])
def test_weights_of_any_sign(sign: int, without: int, order: Any, backend: str) -> None:
    """Also where rows have no weight: a number that is not finite times 0 is still a nan."""
    X, d = tc.var("X", ("m", "n")), tc.var("d", "m")
    node = 3 * tc.einsum("mi,m,mj->ij", X, d, X)
    rng = np.random.default_rng(0)
    x, w = np.asarray(rng.standard_normal((50, 210)), order=order), rng.standard_normal(50)
    w = np.abs(w) * sign if sign else w
    w[rng.permutation(50)[:without]] = 0
    function = tc.compile(node, backend=backend)
    assert "gram" in str(function.plan_for(X=(50, 210), d=50))
    wanted = 3 * x.T @ (w[:, None] * x)
    np.testing.assert_allclose(function(X=x, d=w), wanted, rtol=1e-12, atol=1e-12)
    for bad in (np.inf, np.nan) if without else ():
        x[np.flatnonzero(w == 0)[-1], 7] = bad
        with np.errstate(invalid="ignore"):
            found = np.isnan(function(X=x, d=w))
        seventh = np.arange(210) == 7
        np.testing.assert_array_equal(found, seventh | seventh[:, None])
    w[3] = np.nan
    assert np.isnan(function(X=x, d=w)).all()
