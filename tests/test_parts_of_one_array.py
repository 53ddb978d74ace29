"""Differences of parts of one array stay differences: no digits cancel at large offsets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Einsum, Expr
from tcalc.ops.entries import array_read
from tests.shared import run_source

N = 40
#: Exact in floats, far above the differences.
OFFSET = 2.0**30
RNG = np.random.default_rng(0)
#: Multiples of 2**-10 stay exact beside the offset.
A, B = np.round(RNG.normal(size=(2, N)) * 1024) / 1024
DATA = {"w": RNG.normal(size=N), "W": RNG.normal(size=(N, N)), "Z": RNG.normal(size=(N, N))}
w, W, Z = tc.var("w", (N,)), tc.var("W", (N, N)), tc.var("Z", (N, N))

#: Two parts of an array, and the array of which they are these parts.
PARTS: dict[str, tuple[Any, Callable[[Any], tuple[Any, Any]], np.ndarray]] = {
    "slices": ((2 * N,), lambda t: (t[:N], t[N:]), np.r_[A, B]),
    "scaled": ((2 * N,), lambda t: (2 * t[:N], 2 * t[N:]), np.r_[A, B] / 2),
    "strided": ((2 * N,), lambda t: (t[::2], t[1::2]), np.stack([A, B], 1).ravel()),
    "backwards": ((2 * N,), lambda t: (t[:N][::-1], t[N:][::-1]), np.r_[A[::-1], B[::-1]]),
    "gathered": ((2 * N,), lambda t: (t[np.arange(N)], t[np.arange(N, 2 * N)]), np.r_[A, B]),
    "rows": ((2, N), lambda t: (t[0], t[1]), np.stack([A, B])),
    "reshaped": ((2 * N,), lambda t: tuple(t.reshape(2, N)[k] for k in (0, 1)), np.r_[A, B]),
    "diagonals": ((2, N, N), lambda t: (np.diagonal(t[0]), np.diagonal(t[1])),
                  np.stack([np.diag(A), np.diag(B)])),
}  # fmt: skip

#: Functions of differences, which NumPy evaluates too.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "weighted squares": lambda a, b, w, W, Z: np.sum(Z * (a[:, None] - b) ** 2),
    "squares by columns": lambda a, b, w, W, Z: np.sum(w * (a[:, None] - b) ** 2),
    "cubes": lambda a, b, w, W, Z: np.sum(w * (a[:, None] - b) ** 3),
    "map of differences": lambda a, b, w, W, Z: np.sum(np.tanh(W @ (a[:, None] - b))),
    "product": lambda a, b, w, W, Z: np.sum(np.tanh((a[:, None] - b) @ W @ (a[:, None] - b))),
    "form": lambda a, b, w, W, Z: (a - b) @ W @ (a - b),
    "distances": lambda a, b, w, W, Z: np.sum(np.sqrt(np.sum((a[:, None] - b) ** 2, axis=1) + 1)),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("parts", PARTS)
def test_no_digits_cancel(parts: str, function: str) -> None:
    shape, of, small = PARTS[parts]
    t, f = tc.var("t", shape), FUNCTIONS[function]
    e = f(*of(t), w, W, Z)
    if parts == "diagonals":  # what is not on the diagonals stays as it is
        large = small + OFFSET * np.eye(N)
    else:
        large = small + (OFFSET / 2 if parts == "scaled" else OFFSET)
    right = f(*of(small), **DATA)
    np.testing.assert_allclose(tc.compile(e, backend="numpy")(t=large, **DATA), right, rtol=1e-11)
    given = {name: DATA[name] for name in e.variables if name != "t"}
    np.testing.assert_allclose(run_source(e, {"t": large, **given}), right, rtol=1e-11)
    slope = tc.compile(tc.grad(e, t), backend="numpy")
    steep = slope(t=small, **DATA)
    np.testing.assert_allclose(
        slope(t=large, **DATA), steep, rtol=1e-10, atol=1e-11 * np.abs(steep).max()
    )


def test_what_adds_reads_no_entries() -> None:
    x, X = tc.var("x", "n"), tc.var("X", ("m", "n"))
    g = tc.var("g", "k", integer=True)

    def read(e: Expr) -> Expr | None:
        assert isinstance(e, Einsum)
        return array_read(e)

    for e in (x[2:], x[::-1], x[1::3], x[g], tc.pad(x, 2)):
        assert read(e) is x, e
    for e in (X[1:, 2], X[:, g]):
        assert read(e) is X, e
    window = tc.parse_index("y[i=0..n-3,k=0..2] = x[i+k]", x="n")
    assert read(window) is x
    bounded = tc.parse_index("y[i=0..n-1] = sum[k=0..i](x[k])", x="n")
    by_windows = tc.parse_index("y[i=0..n-3] = sum[k=0..2](x[i+k])", x="n")
    for e in (x @ x, X @ x, tc.sum(X, 0), tc.segment_sum(x, tc.var("s", "n", integer=True), 4)):
        assert read(e) is None, e
    for e in (tc.trace(X[:, :3] @ X[:3]), bounded, by_windows, tc.sum(x[2:])):
        assert not isinstance(e, Einsum) or not e.summed or read(e) is None, e
