"""Conditions restrict what their branches read; ranges of axes have maxima and minima as bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc


def entries(n: int, f: Callable[[int], float]) -> np.ndarray:
    return np.array([f(i) for i in range(n)], float)


Entry = Callable[[int, int, Any, Any], float]
BRANCHES: list[tuple[str, Entry]] = [
    ("where(i==0, x[0], x[i]*y[i-1])", lambda i, n, x, y: x[i] * y[i - 1] if i else x[0]),
    ("where(0 == i, x[0], x[i]*y[i-1])", lambda i, n, x, y: x[i] * y[i - 1] if i else x[0]),
    ("where(i!=0, x[i]*y[i-1], x[0])", lambda i, n, x, y: x[i] * y[i - 1] if i else x[0]),
    ("where(~(i==0), x[i-1], 2)", lambda i, n, x, y: x[i - 1] if i else 2),
    ("where(i!=n-1, x[i+1], 3)", lambda i, n, x, y: x[i + 1] if i < n - 1 else 3),
    ("where(i>0, x[i-1], x[n-1])", lambda i, n, x, y: x[i - 1]),
    ("where(i<=0, 0, x[i-1])", lambda i, n, x, y: x[i - 1] if i else 0),
    (
        "where(i==0 | i==n-1, 0, x[i-1] + x[i+1])",
        lambda i, n, x, y: x[i - 1] + x[i + 1] if 0 < i < n - 1 else 0,
    ),
    (
        "where(i!=0 & i!=n-1, x[i-1] + x[i+1], 0)",
        lambda i, n, x, y: x[i - 1] + x[i + 1] if 0 < i < n - 1 else 0,
    ),
    (
        "where(i<1 | i>n-2, y[i], x[i-1]*x[i+1])",
        lambda i, n, x, y: x[i - 1] * x[i + 1] if 0 < i < n - 1 else y[i],
    ),
    ("where(x[i]>0 & i>=1, x[i-1], 0)", lambda i, n, x, y: x[i - 1] if x[i] > 0 and i else 0),
    ("[i!=0]*x[i-1]", lambda i, n, x, y: x[i - 1] if i else 0),
    ("[[i>0] & [1==1]]*x[i-1]", lambda i, n, x, y: x[i - 1] if i else 0),
    (
        "where(i==0, y[0], where(i==1, y[1], x[i-2]))",
        lambda i, n, x, y: x[i - 2] if i > 1 else y[i],
    ),
]


@pytest.mark.parametrize(("body", "entry"), BRANCHES, ids=[body for body, _ in BRANCHES])
@pytest.mark.parametrize("n", [2, 3, 6])
@pytest.mark.parametrize("named", [False, True])
def test_branches_read_where_their_condition_holds(
    body: str, entry: Entry, n: int, named: bool
) -> None:
    rng = np.random.default_rng(n)
    data = {"x": rng.normal(size=n), "y": rng.normal(size=n)}
    extent: int | str = "n" if named else n
    text = body if named else body.replace("n-", f"{n}-")
    f = tc.parse_index(f"f[i=0..{extent}-1] = {text}", x=extent, y=extent)
    sizes = {"n": n} if named else {}
    wanted = entries(n, lambda i: entry(i, n, data["x"], data["y"]))
    used = {name: data[name] for name in f.variables}
    np.testing.assert_allclose(f({**used, **sizes}), wanted, rtol=1e-12)
    held = tc.vjp(f, "x", tc.const(np.ones(n)) if not named else tc.ones("n"))

    def total(x: np.ndarray) -> float:
        return sum(entry(i, n, x, data["y"]) for i in range(n))

    slope = [(total(data["x"] + h) - total(data["x"] - h)) / 2e-6 for h in 1e-6 * np.eye(n)]
    np.testing.assert_allclose(held({**used, **sizes}), slope, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize(
    "text",
    [
        "f[i=0..4] = where(i==1, 0, x[i-1])",
        "f[i=0..4] = where(i!=0, x[i], x[i-1])",
        "f[i=0..4] = where(i==0 & i<3, 0, x[i-2])",
        "f[i=0..4] = where(i!=0 | i!=4, x[i-1], 0)",
    ],
)
def test_what_a_condition_leaves_open_is_refused(text: str) -> None:
    with pytest.raises(tc.ShapeError, match="reads outside of x"):
        tc.parse_index(text, x=5)


@pytest.mark.parametrize(
    ("low", "high", "first", "last"),
    [
        ("0", "min(n, m) - 1", lambda n, m: 0, lambda n, m: min(n, m) - 1),
        ("0", "max(n, m) - 1", lambda n, m: 0, lambda n, m: max(n, m) - 1),
        ("max(0, n-3)", "n-1", lambda n, m: max(0, n - 3), lambda n, m: n - 1),
        ("max(0, min(2, m))", "max(n, 4)", lambda n, m: min(2, m), lambda n, m: max(n, 4)),
        ("floor(n/2)", "max(ceil(m/2), n)", lambda n, m: n // 2, lambda n, m: max(-(-m // 2), n)),
    ],
)
def test_bounds_of_axes_are_maxima_and_minima(
    low: str, high: str, first: Callable[..., int], last: Callable[..., int]
) -> None:
    f = tc.parse_index(f"f[i={low}..{high}] = i*c + sum[k={low}..i](1)", c=(), X=("n", "m"))
    for n in range(5):
        for m in range(5):
            wanted = [i * 0.5 + i - first(n, m) + 1 for i in range(first(n, m), last(n, m) + 1)]
            if last(n, m) - first(n, m) + 1 >= 0:
                np.testing.assert_allclose(f(c=0.5, n=n, m=m), wanted)


def test_conditions_in_brackets_are_conditions() -> None:
    assert float(tc.parse_index("f = [[1==1]]")()) == 1
    assert float(tc.parse_index("f = [[[2<1]] | [1==1]]")()) == 1
