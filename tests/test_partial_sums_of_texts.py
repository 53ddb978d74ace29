"""Sums up to an index, or from one on, in the index language: partial sums where that is all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

RNG = np.random.default_rng(0)
N, M = 5, 3
u, A, B = RNG.normal(size=N), RNG.normal(size=(N, M)), RNG.normal(size=(M, N))
I, K = range(N), range(M)

#: A text, its value by loops, and the function of partial sums that it is, if it is one.
TEXTS: list[tuple[str, Callable[[], Any], str]] = [
    (
        "f[i=0..n-1] = sum[j=i..n-1](exp(u[j]))",
        lambda: [sum(np.exp(u[j]) for j in range(i, N)) for i in I],
        "revcumsum",
    ),
    (
        "f[i=0..n-1] = sum[j=0..i](exp(u[j])*u[j])",
        lambda: [sum(np.exp(u[j]) * u[j] for j in range(i + 1)) for i in I],
        "cumsum",
    ),
    (
        "f[k,i=0..n-1] = sum[j=0..i](A[j,k]*u[j])",
        lambda: [[sum(A[j, k] * u[j] for j in range(i + 1)) for i in I] for k in K],
        "cumsum",
    ),
    (
        "f[i=0..n-1,k] = sum[j=i..n-1](B[k,j]*A[j,k])",
        lambda: [[sum(B[k, j] * A[j, k] for j in range(i, N)) for k in K] for i in I],
        "revcumsum",
    ),
    (
        "f[i=0..n-1] = sum[j=0..i](j*u[j])",
        lambda: [sum(j * u[j] for j in range(i + 1)) for i in I],
        "cumsum",
    ),
    (
        "f[i=0..n-1] = sum[j=i..n-1](u[n-1-j])",
        lambda: [sum(u[N - 1 - j] for j in range(i, N)) for i in I],
        "revcumsum",
    ),
    (
        "f = sum[i=0..n-1](u[i]*log(sum[j=i..n-1](exp(u[j]))))",
        lambda: sum(u[i] * np.log(sum(np.exp(u[j]) for j in range(i, N))) for i in I),
        "revcumsum",
    ),
    ("f[i=0..2] = sum[j=0..i](u[j])", lambda: [sum(u[: i + 1]) for i in range(3)], "cumsum"),
    ("f[i=0..n-1] = sum[j=0..i](u[i]*u[j])", lambda: [u[i] * sum(u[: i + 1]) for i in I], ""),
    ("f[i=0..n-1] = sum[j=0..i](2)", lambda: [2 * (i + 1) for i in I], ""),
    ("f[i=1..n-1] = sum[j=0..i](u[j])", lambda: [sum(u[: i + 1]) for i in range(1, N)], ""),
    ("f[i=0..n-1] = sum[j=0..i-1](u[j])", lambda: [sum(u[:i]) for i in I], ""),
    (
        "f = sum[i=0..n-1]([i>=2]*u[i]*log(sum[j=i..n-1](exp(u[j]))))",
        lambda: sum(u[i] * np.log(sum(np.exp(u[j]) for j in range(i, N))) for i in range(2, N)),
        "",
    ),
    (
        "f = sum[i=0..n-1](u[i]*sum[j=0..i](sum[k](A[j,k])))",
        lambda: sum(u[i] * sum(A[j].sum() for j in range(i + 1)) for i in I),
        "",
    ),
    (
        "f[i=0..n-1] = sum[j=i..n-1, k=0..j](u[k])",
        lambda: [sum(u[k] for j in range(i, N) for k in range(j + 1)) for i in I],
        "",
    ),
]
SHAPES = {"u": "n", "A": ("n", "m"), "B": ("m", "n")}


def value(e: tc.Expr) -> Any:
    return e(**{name: {"u": u, "A": A, "B": B}[name] for name in e.variables})


@pytest.mark.parametrize(("text", "wanted", "row"), TEXTS, ids=[text for text, *_ in TEXTS])
def test_values_and_forms(text: str, wanted: Callable[[], Any], row: str) -> None:
    e = tc.parse_index(text, **SHAPES)
    np.testing.assert_allclose(value(e), wanted(), rtol=1e-12)
    again = tc.parse_index(tc.to_index(e), **SHAPES)
    np.testing.assert_allclose(value(again), wanted(), rtol=1e-12)
    assert (f"{row}(" in str(e)) if row else ("cumsum" not in str(e))


def test_partial_likelihood_of_many_cases() -> None:
    """Cox (1972): the gradient by sums of weights of those at risk."""
    f = tc.parse_index(
        "f = sum[i=0..n-1](d[i]*(u[i] - log(sum[j=i..n-1](exp(u[j])))))", u="n", d="n"
    )
    n = 20_000
    at, seen = RNG.normal(size=n), (RNG.random(n) < 0.5) * 1.0
    weights = np.exp(at)
    risk = np.cumsum(weights[::-1])[::-1]
    wanted = seen - weights * np.cumsum(seen / risk)
    np.testing.assert_allclose(tc.grad(f, "u")(u=at, d=seen), wanted, rtol=1e-9, atol=1e-9)


def test_sums_over_nothing() -> None:
    f = tc.parse_index("f[i=0..n-1] = sum[j=i..n-1](u[j])", u="n")
    assert f(u=np.zeros(0)).shape == (0,)
    np.testing.assert_array_equal(f(u=np.array([3.0])), [3.0])
