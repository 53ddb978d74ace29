"""Printed programs of sums around a ring."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("f = sum[i]((p[i]-p[mod(i+1,n)])^2)", (5,)),
        ("f = sum[i,j](p[i,j]^4 + (p[i,j]-p[mod(i+1,n),j])^2)", (4, 3)),
    ],
)
def test_hessians_of_rings_are_printed(text: str, shape: tuple[int, ...]) -> None:
    e = tc.parse_index(text, p=("n", "m")[: len(shape)])
    hessian = tc.hessian(e, "p")
    at = np.linspace(-1, 2, np.prod(shape)).reshape(shape)
    found: dict[str, object] = {}
    exec(tc.to_code(hessian, "numpy", name="h"), found)
    expected = tc.compile(hessian, structured=False)(p=at)
    np.testing.assert_allclose(found["h"](at), expected, atol=1e-12)  # type: ignore[operator]
    for language in ("jax", "torch", "julia", "matlab", "c", "cuda", "cupy"):
        assert "h" in tc.to_code(hessian, language, name="h")
