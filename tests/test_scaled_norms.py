"""Norms near the ends of the range of the format, in value and gradient, wherever they are run."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import tcalc as tc
from tests.shared import run_source

x, X = tc.var("x", "n"), tc.var("X", ("m", "n"))
SCALES = [
    (np.float64, 1e160), (np.float64, 1e300), (np.float64, 1e-25), (np.float64, 1e-160),
    (np.float64, 1e-300), (np.float64, 1.0), (np.float32, 1e20), (np.float32, 1e30),
    (np.float32, 1e-25), (np.float32, 1e-35), (np.float32, 1.0),
]  # fmt: skip
EXPRESSIONS = {
    "vector": (x, tc.norm(x), ()),
    "rows": (X, tc.norm(X, axis=1), (1,)),
    "columns": (X, tc.norm(X, axis=0), (0,)),
    "matrix": (X, tc.norm(X), (0, 1)),
    "root of squares": (x, tc.sqrt(tc.sum(x**2)), ()),
}  # fmt: skip


def reference(data: Any) -> Any:
    """Norm and unit vector of one vector, with fifty digits."""
    with mpmath.workdps(50):
        entries = [mpmath.mpf(float(entry)) for entry in data]
        norm = mpmath.sqrt(mpmath.fsum([entry**2 for entry in entries]))
        return float(norm), [float(entry / norm) if norm else 0.0 for entry in entries]


def programs(outputs: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        name: tc.compile(outputs, backend=name) for name in ("numpy", "c", "functional")
    }
    return found


@pytest.mark.parametrize("kind", EXPRESSIONS)
@pytest.mark.parametrize(("dtype", "scale"), SCALES)
def test_norms_and_their_gradients_at_any_scale(kind: str, dtype: Any, scale: float) -> None:
    variable, norm, axes = EXPRESSIONS[kind]
    rng = np.random.default_rng(1)
    data = (rng.normal(size=(5,) if variable is x else (3, 5)) * scale).astype(dtype)
    lines = {(): [data], (0, 1): [data.ravel()], (1,): list(data), (0,): list(data.T)}[axes]
    wanted = [reference(line) for line in lines]
    norms = np.reshape([norm for norm, _ in wanted], norm.shape and (-1,))
    units = np.array([unit for _, unit in wanted])
    units = (units.T if axes == (0,) else units).reshape(data.shape)
    tolerance = 64 * np.finfo(dtype).eps
    outputs = {"value": norm, "gradient": tc.grad(tc.sum(norm), variable)}
    for name, run in programs(outputs).items():
        found = run({variable.name: data})
        assert found["value"].dtype == dtype, name
        np.testing.assert_allclose(found["value"], norms, rtol=tolerance, err_msg=name)
        np.testing.assert_allclose(found["gradient"], units, atol=tolerance, err_msg=name)
    if kind != "root of squares":  # printed as it is written
        printed = run_source(norm, {variable.name: data})
        np.testing.assert_allclose(printed, norms, rtol=tolerance)


@pytest.mark.parametrize("backend", ["numpy", "c", "functional"])
@pytest.mark.parametrize(
    ("data", "norm"),
    [
        ([0.0, 0.0], 0.0), ([], 0.0), ([np.inf, 1.0], np.inf), ([-np.inf, np.inf], np.inf),
        ([np.nan, 1.0], np.nan), ([5e-324, 0.0], 5e-324), ([-3.0, 4.0], 5.0),
    ],
)  # fmt: skip
def test_special_entries(backend: str, data: list[float], norm: float) -> None:
    found = tc.compile(tc.norm(x), backend=backend)(x=np.array(data, float))
    np.testing.assert_equal(found, norm)


@pytest.mark.parametrize("ord", [1, 2, 3, np.inf])
def test_norms_over_three_axes_are_refused(ord: float) -> None:
    """NumPy has none either, but for the root of the sum of squares."""
    cube = tc.var("T", (2, 3, 4))
    with pytest.raises(tc.UnsupportedError, match="3 axes"):
        tc.norm(cube, ord, axis=(0, 1, 2))
