"""Which equalities of a compressed derivative become places of its cores."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc


def _cores(e: tc.Expr) -> list[int]:
    return [core.ndim for core in tc.compress(e).cores]


def test_neighbours_are_a_band() -> None:
    """The Hessian of an autoregression is three diagonals; none of its cores has two axes."""
    f = tc.parse_index("sum[t=1..n-1]((x[t] - a*x[t-1])^2)/2", x=("n",), a=())
    hessian = tc.hessian(f, "x")
    assert max(_cores(hessian)) == 1
    data = {"x": np.arange(6.0), "a": 0.5}
    held = tc.compile(hessian, structured=True)(**data)
    expected = np.diag([0.25] + [1.25] * 4 + [1.0]) - 0.5 * (np.eye(6, k=1) + np.eye(6, k=-1))
    np.testing.assert_allclose(held.todense(), expected, 1e-14)
    goal = np.arange(1.0, 7)
    with pytest.raises(tc.LinAlgError, match="singular"):  # growth by 1/a costs nothing
        held.solve(goal)
    solution = np.linalg.solve(expected + np.eye(6), goal)
    np.testing.assert_allclose(held.solve(goal, damping=1), solution, 1e-10)


@pytest.mark.parametrize("wrt", ["x", "w"])
def test_a_convolution_is_held_in_less_than_its_windows(wrt: str) -> None:
    """In the kernel the Hessian is as small as it is; the sums behind it are not held."""
    f = tc.parse_index("sum[i]((sum[k](x[i+k]*w[k]) - y[i])^2)/2",
                       x=("n",), w=("m",), y=("n-m+1",))  # fmt: skip
    hessian = tc.hessian(f, wrt)
    plan = tc.compile(hessian, structured=True).plan_for(x=(10000,), w=(16,))
    assert plan.peak_bytes < 4 * 8 * 10000 * 16
    rng = np.random.default_rng(0)
    data = {"x": rng.standard_normal(30), "w": rng.standard_normal(4)}
    held = tc.compile(hessian, structured=True)(**data)
    np.testing.assert_allclose(held.todense(), tc.compile(hessian)(**data), 1e-12, 1e-12)
