"""Functions of matrices that are diagonal as they are written."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Expr

x, y = tc.var("x", "n"), tc.var("y", "n")
S = tc.diag(tc.exp(x))
DATA = {"x": np.array([0.3, -1.2, 2.0]), "y": np.array([1.0, 2.0, -0.5])}
SIZES = np.exp(DATA["x"])
#: What is written, its value, and the text of its gradient by x.
CASES: dict[str, tuple[Expr, Any, str]] = {
    "solve": (tc.linalg.solve(tc.diag(x), y), DATA["y"] / DATA["x"], "-y./x.^2"),
    "inv": (tc.linalg.inv(S), np.diag(1 / SIZES), "-exp(-x)"),
    "logdet": (tc.linalg.slogdet(S)[1], DATA["x"].sum(), "vector(1, n)"),
    "det": (tc.linalg.det(tc.diag(x)), DATA["x"].prod(), "prod(x)./x"),
    "cholesky": (tc.trace(tc.linalg.cholesky(S)), np.sqrt(SIZES).sum(), "exp(-x/2) .* exp(x)/2"),
    "density": (
        y @ tc.linalg.inv(S) @ y + tc.linalg.slogdet(S)[1],
        (DATA["y"] ** 2 / SIZES + DATA["x"]).sum(), "1 - y.^2 .* exp(-x)",
    ),
    "identity": (tc.sum(tc.linalg.solve(3 * tc.eye("n"), y) * x), DATA["y"] @ DATA["x"] / 3, "y/3"),
}  # fmt: skip


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", CASES)
def test_values_are_of_the_entries(name: str, backend: str) -> None:
    e, wanted, _ = CASES[name]
    arrays = {v: DATA[v] for v in e.variables}
    np.testing.assert_allclose(tc.compile(e, backend=backend)(**arrays), wanted, rtol=1e-13)
    plan = tc.compile(e).plan_for(**dict.fromkeys(e.variables, (1000,)))
    assert plan.flops < 1e5


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_written_by_the_entries(name: str) -> None:
    e, _, text = CASES[name]
    assert str(tc.grad(tc.sum(e), x)) == text


def test_batches_and_signs() -> None:
    X = tc.var("X", ("b", "n"))
    values = np.array([[1.0, -2.0, 3.0], [-1.0, -2.0, -0.5]])
    sign, size = tc.linalg.slogdet(tc.einsum("bi,ij->bij", X, tc.eye("n")))
    wanted = np.linalg.slogdet(values[:, :, None] * np.eye(3))
    np.testing.assert_allclose(sign(X=values), wanted.sign)
    np.testing.assert_allclose(size(X=values), wanted.logabsdet, rtol=1e-14)


def test_entries_that_are_not_positive_have_no_factor() -> None:
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        tc.linalg.cholesky(tc.diag(x))(x=DATA["x"])
