"""Places that wrap around: circular shifts and convolutions read windows, in memory of O(n)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc

#: Index text, extents, and the same by entries of NumPy.
PROGRAMS: dict[str, tuple[str, dict[str, int]]] = {
    "circular correlation": ("y[i=0..n-1] = sum[j=0..n-1](w[j]*x[mod(i+j, n)])", {"n": 9}),
    "circular convolution": ("y[i=0..n-1] = sum[j=0..n-1](w[j]*x[mod(i-j, n)])", {"n": 8}),
    "short filter": ("y[i=0..n-1] = sum[j=0..k-1](w[j]*x[mod(i-j+1, n)])", {"n": 9, "k": 3}),
    "longer filter": ("y[i=0..n-1] = sum[j=0..k-1](w[j]*x[mod(i+j, n)])", {"n": 4, "k": 11}),
    "shift": ("y[i=0..n-1] = w[0]*x[mod(i+3, n)]", {"n": 7}),
    "strided": ("y[i=0..n-1] = sum[j=0..k-1](w[j]*x[mod(2*i-j, n)])", {"n": 7, "k": 2}),
    "squares": ("y[i=0..n-1] = (x[mod(i+1, n)] - x[i])^2*w[0]", {"n": 6}),
    "twice": ("y[i=0..n-1] = x[mod(i+1, n)]*x[mod(i-1, n)]*w[0]", {"n": 6}),
    "one entry": ("y[i=0..n-1] = w[0]*x[mod(i+5, n)]", {"n": 1}),
}


def naive(name: str, n: int, x: np.ndarray, w: np.ndarray) -> np.ndarray:
    k = range(len(w))
    entry = {
        "circular correlation": lambda i: sum(w[j] * x[(i + j) % n] for j in k),
        "circular convolution": lambda i: sum(w[j] * x[(i - j) % n] for j in k),
        "short filter": lambda i: sum(w[j] * x[(i - j + 1) % n] for j in k),
        "longer filter": lambda i: sum(w[j] * x[(i + j) % n] for j in k),
        "shift": lambda i: w[0] * x[(i + 3) % n],
        "strided": lambda i: sum(w[j] * x[(2 * i - j) % n] for j in k),
        "squares": lambda i: (x[(i + 1) % n] - x[i]) ** 2 * w[0],
        "twice": lambda i: x[(i + 1) % n] * x[(i - 1) % n] * w[0],
        "one entry": lambda i: w[0] * x[(i + 5) % n],
    }[name]
    return np.array([entry(i) for i in range(n)])


def parsed(name: str, literal: bool) -> tuple[Any, Any, dict[str, int]]:
    text, sizes = PROGRAMS[name]
    sizes = {"k": sizes["n"], **sizes}
    n, k = (sizes["n"], sizes["k"]) if literal else ("n", "k" if "k" in text[8:] else "n")
    if literal:
        text = text.replace("n-1", str(sizes["n"] - 1)).replace(", n)", f", {sizes['n']})")
        text = text.replace("k-1", str(sizes["k"] - 1))
    y = tc.parse_index(text, x=(n,), w=(k,))
    f = tc.sum(tc.sin(y) * y)
    return y, f, sizes


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("literal", [False, True])
def test_values_and_gradients(name: str, backend: str, literal: bool) -> None:
    y, f, sizes = parsed(name, literal)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=sizes["n"]), rng.normal(size=sizes["k"])
    variables = f.variables
    found = tc.compile(
        [y, tc.grad(f, variables["x"]), tc.grad(f, variables["w"])], backend=backend
    )(x=x, w=w)
    np.testing.assert_allclose(found[0], naive(name, sizes["n"], x, w), rtol=1e-12)

    def loss(x: np.ndarray, w: np.ndarray) -> float:
        v = naive(name, sizes["n"], x, w)
        return float(np.sum(np.sin(v) * v))

    for place, gradient in ((0, found[1]), (1, found[2])):
        for k in range(len(gradient)):
            step = np.zeros((2, max(sizes["n"], sizes["k"])))
            step[place, k] = 1e-6
            dx, dw = step[0, : sizes["n"]], step[1, : sizes["k"]]
            slope = (loss(x + dx, w + dw) - loss(x - dx, w - dw)) / 2e-6
            assert gradient[k] == pytest.approx(slope, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(
    "name", [n for n in PROGRAMS if n not in ("one entry", "longer filter", "strided")]
)
def test_memory_is_that_of_a_few_vectors(name: str) -> None:
    _, f, sizes = parsed(name, literal=False)
    n, k = 3000, 3000 if sizes["k"] == sizes["n"] else sizes["k"]
    for v in ("x", "w"):
        outputs = [f, tc.grad(f, f.variables[v])]
        plan = tc.compile(outputs).plan_for(x=(n,), w=(k,))
        assert plan.peak_bytes < 16 * 8 * n


def test_batches_and_other_axes() -> None:
    X, w = tc.var("X", ("b", "n")), tc.var("w", "n")
    y = tc.build("b", lambda m: tc.build("n", lambda i: tc.sum(
        tc.build("n", lambda j: w[j] * X[m, tc.mod(i - j, 6)])
    )))  # fmt: skip
    rng = np.random.default_rng(1)
    a, v = rng.normal(size=(3, 6)), rng.normal(size=6)
    expected = np.real(np.fft.ifft(np.fft.fft(a, axis=1) * np.fft.fft(v), axis=1))
    np.testing.assert_allclose(y(X=a, w=v), expected, rtol=1e-10, atol=1e-12)
    g = tc.grad(tc.sum(y * y), w)(X=a, w=v)
    wanted = 2 * np.real(
        np.fft.ifft(np.fft.fft(expected, axis=1) * np.conj(np.fft.fft(a, axis=1)), axis=1)
    ).sum(0)
    np.testing.assert_allclose(g, wanted, rtol=1e-9)
