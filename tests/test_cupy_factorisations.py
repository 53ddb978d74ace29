"""Factorisations on a device: none is waited for, and none that failed goes unseen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests import cupy_stand_in
from tests.cupy_device import DEVICE
from tests.cupy_stand_in import has_device

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("device")]
stand_in_only = pytest.mark.skipif(has_device(), reason="counts what the stand-in is asked for")

A, B, b = tc.var("A", ("n", "n")), tc.var("B", ("n", "m")), tc.var("b", "n")
G = tc.var("G", ("k", "n", "n"))
la = tc.linalg
RNG = np.random.default_rng(0)
WELL = RNG.normal(size=(6, 6))
DEFINITE = WELL @ WELL.T + np.eye(6)


def waits(step: Any, arrays: dict[str, Any]) -> int:
    """Of a second call."""
    step(arrays)
    before = DEVICE.waits
    step(arrays)
    return DEVICE.waits - before


@stand_in_only
def test_a_plan_of_several_factorisations_waits_once() -> None:
    w, v = la.eigh(A)
    u, s, _ = la.svd(B)
    several = {
        "cholesky": la.cholesky(A), "of cholesky": la.cholesky(la.inv(A) + A),
        "solve": la.solve(A, b), "determinant": la.logdet(A), "eigh": v @ w, "svd": u @ s,
        "qr": la.qr(B)[0], "gradient": tc.grad(tc.sum(la.cholesky(A)) * la.logdet(A), A),
        "batch": la.cholesky(G) @ la.inv(G),
    }  # fmt: skip
    given = {"A": DEFINITE, "B": WELL[:, :4], "b": WELL[0], "G": np.stack([DEFINITE] * 3)}
    step = tc.compile(several, backend="cupy")
    assert waits(step, given) == 1
    data = tc.compile(several, backend="cupy", data={"A": DEFINITE})
    assert waits(data, {k: a for k, a in given.items() if k != "A"}) == 1
    wanted = tc.compile(several)(given)
    for name, found in step(given).items():
        np.testing.assert_allclose(found, wanted[name], rtol=1e-9, atol=1e-9)


#: Rows, and the least eigenvalue where the largest is 1.
MATRICES = [(5, 1.0), (5, 1e-13), (60, 1e-3), (60, 1e-12)]


@stand_in_only
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("n", "least"), MATRICES)
def test_what_is_in_order_is_not_computed_again(n: int, least: float, dtype: str) -> None:
    turn = np.linalg.qr(np.random.default_rng(n).normal(size=(n, n)))[0]
    least = max(least, 1e-4 if dtype == "float32" else 0.0)
    a = (turn * np.geomspace(least, 1, n) @ turn.T).astype(dtype)
    a = (a + a.T) / 2
    e = [la.cholesky(A), la.inv(A), la.solve(A, b), *la.eigh(A), *la.svd(A)]
    for scale in (1e-12, 1.0, 1e12):
        given = {"A": (scale * a).astype(dtype), "b": turn[0].astype(dtype)}
        assert waits(tc.compile(e, backend="cupy"), given) == 1


def untouched(a: np.ndarray) -> np.ndarray:
    return np.tril(a)


def unfinished(a: np.ndarray) -> np.ndarray:
    """As LAPACK leaves it: columns of the factor up to the pivot that is not positive."""
    found = np.tril(a).copy()
    for item in found.reshape(-1, *found.shape[-2:]):
        for j in range(len(item)):
            item[j, j] -= item[j, :j] @ item[j, :j]
            if not item[j, j] > 0:
                break
            item[j, j] **= 0.5
            item[j + 1 :, j] -= item[j + 1 :, :j] @ item[j, :j]
            item[j + 1 :, j] /= item[j, j]
    return found


LEFT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "numbers": lambda a: np.full_like(a, 77),
    "nan": lambda a: np.full_like(a, np.nan),
    "zeros": np.zeros_like,
    "the matrix": untouched,
    "part of a factor": unfinished,
    "roots": lambda a: np.sqrt(np.abs(np.tril(a))),
    "an identity": lambda a: np.broadcast_to(np.eye(a.shape[-1]), a.shape).copy(),
}


@stand_in_only
@pytest.mark.parametrize("left", LEFT)
def test_a_failure_is_seen_whatever_is_left_behind(
    left: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cupy_stand_in, "garbage", LEFT[left])
    step = tc.compile(la.cholesky(A), backend="cupy")
    of_batch = tc.compile(la.cholesky(G), backend="cupy")
    for n in (1, 2, 7):
        turn = np.linalg.qr(np.random.default_rng(n).normal(size=(n, n)))[0]
        for least in (-1.0, -1e-6, 0.0):
            values = np.linspace(least, 1.0, n) if n > 1 else np.array([min(least, -0.5)])
            a = np.diag(values) if least == 0 else turn * values @ turn.T
            a = (a + a.T) / 2
            with pytest.raises(tc.LinAlgError, match="not positive definite"):
                step(A=a)
            with pytest.raises(tc.LinAlgError, match=r"not positive definite \(item 1 "):
                of_batch(G=np.stack([np.eye(n), a]))
    singular = np.ones((2, 2))
    for e in (la.inv(A), la.solve(A, tc.ones("n"))):
        with pytest.raises(tc.LinAlgError, match="singular"):
            tc.compile(e, backend="cupy")(A=singular)


def test_matrices_that_are_not_finite_end_as_on_the_host() -> None:
    with pytest.raises(tc.LinAlgError, match="not positive definite"):
        tc.compile(la.cholesky(A), backend="cupy")(A=np.diag([1.0, np.nan]))


@stand_in_only
def test_a_doubt_that_proves_wrong_is_no_error() -> None:
    large = np.diag([1.0, np.inf])
    np.testing.assert_array_equal(tc.compile(la.cholesky(A), backend="cupy")(A=large), large)


def test_an_error_on_the_host_does_not_hide_the_failure_before_it() -> None:
    e = la.expm(la.cholesky(A)) + la.sqrtm(la.cholesky(A))
    with pytest.raises(tc.LinAlgError, match="not positive definite"):
        tc.compile(e, backend="cupy")(A=-np.eye(3))
