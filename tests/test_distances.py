"""Squared distances between rows: exact differences in every layout, tile by tile."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest

import tcalc as tc
from tcalc.plan.steps import TiledLoop
from tests.shared import plan_for_machine

P, C = tc.var("P", ("n", "d")), tc.var("C", ("k", "d"))
D = tc.sum((P[:, None] - C) ** 2, 2)
#: Of points, centroids and entries: fewer and more than vectors and blocks have, either one longer.
SIZES = [(5, 3, 2), (70, 45, 3), (33, 64, 130), (200, 10, 8), (10, 200, 8), (1, 7, 3), (7, 1, 1)]


def given(n: int, k: int, d: int, dtype: Any = np.float64) -> tuple[dict[str, Any], np.ndarray]:
    rng = np.random.default_rng(n + k + d)
    p, c = (1e3 + rng.normal(size=(m, d)).astype(dtype) for m in (n, k))
    apart = p.astype(np.longdouble)[:, None] - c.astype(np.longdouble)
    return {"P": p.astype(dtype), "C": c.astype(dtype)}, (apart**2).sum(2)


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("sizes", SIZES)
def test_they_are_sums_of_squared_differences(
    sizes: tuple[int, int, int], backend: str, tiny: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Near 1000, where squares that are multiplied out would lose six digits."""
    if tiny:
        plan_for_machine(monkeypatch, large=2, tile=12, wide_tile=24, worth_choosing=0)
    data, wanted = given(*sizes)
    step = tc.compile([D, tc.exp(-D), D.T[::-1], tc.sum(tc.min(D, 1))], backend=backend)
    assert "squared_distances" in str(step.plan_for(**{k: a.shape for k, a in data.items()}))
    plain, gone, turned, least = step(data)
    np.testing.assert_allclose(plain, wanted.astype(float), rtol=1e-12)
    np.testing.assert_allclose(gone, np.exp(-wanted).astype(float), rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(turned, wanted.T[::-1].astype(float), rtol=1e-12)
    np.testing.assert_allclose(least, float(wanted.min(1).sum()), rtol=1e-12)


def test_single_precision_and_slices_of_larger_arrays() -> None:
    data, _ = given(40, 33, 6)
    p, c = data["P"][::2, 1:5], data["C"].T[2:, ::-1].T
    wanted = ((p[:, None] - c) ** 2).sum(2)
    np.testing.assert_allclose(tc.compile(D, backend="c")(P=p, C=c), wanted, rtol=1e-12)
    p, c = p.astype("f4") - 1000, c.astype("f4") - 1000
    found = tc.compile(D, backend="c")(P=p, C=c)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, ((p[:, None] - c) ** 2).sum(2), rtol=1e-5)


def test_gradients_of_the_nearest_one() -> None:
    """By mpmath at one point: twice the differences from the centroid that is nearest."""
    data, _ = given(30, 4, 2)
    found = tc.compile(tc.grad(tc.sum(tc.min(D, 1)), C), backend="c")(data)
    wanted = np.zeros((4, 2))
    with mpmath.workdps(40):
        for p in data["P"]:
            far = [
                sum((mpmath.mpf(float(a)) - float(b)) ** 2 for a, b in zip(p, c, strict=True))
                for c in data["C"]
            ]
            j = far.index(min(far))
            wanted[j] += 2 * (data["C"][j] - p)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("k", [10, 1000])
def test_minima_of_distances_exist_tile_by_tile(k: int) -> None:
    n, d = 20_000, 16
    step = tc.compile(tc.sum(tc.min(D, 1)), backend="c")
    plan = step.plan_for(P=(n, d), C=(k, d))
    (loop,) = [unit for unit in plan.units if isinstance(unit, TiledLoop)]
    assert loop.rows == n
    assert plan.peak_bytes < 8 * n * k / 4 + 4e6


# --- weighted sums of differences -----------------------------------------------------------------

W = tc.var("W", ("n", "k"))
#: By the sum over which axis, and with which signs.
SUMS = {
    "of points from centroids": (tc.einsum("nk,nkl->kl", W, P[:, None] - C), 1, -1, 0),
    "of centroids from points": (tc.einsum("nk,nkl->nl", W, C - P[:, None]), -1, 1, 1),
    "of both": (tc.einsum("nk,nkl->nl", W, -3 * P[:, None] - 2 * C), -3, -2, 1),
}


@pytest.mark.parametrize("tiny", [False, True])
@pytest.mark.parametrize("backend", ["numpy", "c", "functional"])
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("sizes", [(300, 40, 16), (9, 700, 35), (4000, 9, 2)])
def test_weighted_sums_lose_no_digits(
    sizes: tuple[int, int, int], name: str, backend: str, tiny: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Far from the origin, where the sums multiplied out would agree to six digits."""
    if tiny:
        plan_for_machine(monkeypatch, large=2, tile=12, wide_tile=24, worth_choosing=0)
    e, first, second, axis = SUMS[name]
    data, _ = given(*sizes)
    rng = np.random.default_rng(0)
    n, k, _ = sizes
    data["W"] = rng.normal(size=(n, k)) * (rng.random((n, k)) < 0.05)
    step = tc.compile(e, backend=backend)
    assert "weighted" in {made.kind for made in step.plan_for(**shapes_of(data)).steps}
    apart = first * data["P"].astype(np.longdouble)[:, None] + second * data["C"]
    terms = data["W"][:, :, None] * apart
    size = np.abs(terms).sum(axis).max()
    np.testing.assert_allclose(step(data), terms.sum(axis).astype(float), atol=1e-14 * float(size))


def shapes_of(data: dict[str, Any]) -> dict[str, Any]:
    return {name: a.shape for name, a in data.items()}


@pytest.mark.parametrize("k", [10, 1000])
def test_newtons_direction_of_k_means_is_one_loop_over_points(k: int) -> None:
    """Neither distances, nor weights, nor differences exist for more than a tile."""
    n, d = 20_000, 16
    far = tc.sum(tc.min(D, 1))
    step = tc.compile(tc.grad(far, C) / tc.einsum("jljl->jl", tc.hessian(far, C)), backend="c")
    plan = step.plan_for(P=(n, d), C=(k, d))
    (loop,) = [unit for unit in plan.units if isinstance(unit, TiledLoop)]
    assert loop.rows == n
    assert "weighted" in {made.kind for made in loop.steps}
    assert plan.peak_bytes < 4e6
