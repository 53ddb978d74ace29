"""Entries that are not observed: nan off the branch of a choice reaches no derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc

jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(5)
NAN = np.nan
DATA = {
    "y": np.array([1.0, NAN, 3.0, 2.0]), "s": np.array([1.0, NAN, 2.0, 0.5]),
    "seen": np.array([1.0, 0.0, 1.0, 1.0]), "X": rng.normal(size=(4, 2)), "b": np.array([1.0, 0.5]),
    "Y": np.array([[1.0, NAN], [2.0, 3.0], [NAN, 1.0], [0.5, -1.0]]), "U": rng.normal(size=(4, 2)),
    "V": rng.normal(size=(2, 2)),
}  # fmt: skip
SHAPES = {
    "y": ("m",), "s": ("m",), "seen": ("m",), "X": ("m", "n"), "b": ("n",),
    "Y": ("m", "l"), "U": ("m", "k"), "V": ("l", "k"),
}  # fmt: skip

#: Sums of losses over what is observed: by NumPy's names, and of what is observed alone, by jax.
LOSSES: dict[str, tuple[str, Callable[..., Any], Callable[..., Any]]] = {
    "squares": (
        "b", lambda y, X, b: np.where(np.isnan(y), 0, (y - X @ b) ** 2),
        lambda y, X, b: (y - X @ b) ** 2,
    ),
    "squares, the other way round": (
        "b", lambda y, X, b: np.where(np.logical_not(np.isnan(y)), (y - X @ b) ** 2, 0),
        lambda y, X, b: (y - X @ b) ** 2,
    ),
    "nansum": (
        "b", lambda y, X, b: np.nansum((y - X @ b) ** 2), lambda y, X, b: (y - X @ b) ** 2,
    ),
    "a mask": (
        "b", lambda y, seen, X, b: np.where(seen, (y - X @ b) ** 2, 0),
        lambda y, seen, X, b: (y - X @ b) ** 2,
    ),
    "a mask that is compared, and scales": (
        "b", lambda y, s, seen, X, b: np.where(seen > 0, (y - X @ b) ** 4 / s**2 + np.log(s), 0),
        lambda y, s, seen, X, b: (y - X @ b) ** 4 / s**2 + jnp.log(s),
    ),
    "both": (
        "b",
        lambda y, s, seen, X, b: np.where(
            np.logical_and(seen, np.logical_not(np.isnan(y))), ((y - X @ b) / s) ** 2, 0
        ),
        lambda y, s, seen, X, b: ((y - X @ b) / s) ** 2,
    ),
    "Poisson": (
        "b", lambda y, X, b: np.where(np.isnan(y), 0, np.exp(X @ b) - y * (X @ b)),
        lambda y, X, b: jnp.exp(X @ b) - y * (X @ b),
    ),
    "logistic": (
        "b", lambda y, X, b: np.where(np.isnan(y), 0, np.log(1 + np.exp(-y * (X @ b)))),
        lambda y, X, b: jnp.log(1 + jnp.exp(-y * (X @ b))),
    ),
    "Student's": (
        "b", lambda y, X, b: np.where(np.isnan(y), 0, np.log(1 + (y - X @ b) ** 2 / 3)),
        lambda y, X, b: jnp.log(1 + (y - X @ b) ** 2 / 3),
    ),
    "Huber's": (
        "b",
        lambda y, X, b: np.where(
            np.isnan(y), 0,
            np.where(abs(y - X @ b) < 1, (y - X @ b) ** 2 / 2, abs(y - X @ b) - 0.5),
        ),
        lambda y, X, b: jnp.where(
            jnp.abs(y - X @ b) < 1, (y - X @ b) ** 2 / 2, jnp.abs(y - X @ b) - 0.5
        ),
    ),
    "what is broadcast": (
        "b",
        lambda y, X, b: np.nansum((y - (X @ b)[:, None]) ** 2),
        lambda y, X, b: (y - (X @ b)[:, None]) ** 2,
    ),
    "a condition that is broadcast": (
        "b",
        lambda y, X, b: np.where(np.isnan(y), 0, (y - (X @ b)[:, None]) ** 2),
        lambda y, X, b: (y - (X @ b)[:, None]) ** 2,
    ),
    "a matrix": (
        "U", lambda Y, U, V: np.where(np.isnan(Y), 0, (Y - U @ V.T) ** 2),
        lambda Y, U, V: (Y - U @ V.T) ** 2,
    ),
    "a matrix, nansum": (
        "V", lambda Y, U, V: np.nansum((Y - U @ V.T) ** 2), lambda Y, U, V: (Y - U @ V.T) ** 2,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_those_of_what_is_observed(name: str) -> None:
    by, fun, loss = LOSSES[name]
    names = fun.__code__.co_varnames[: fun.__code__.co_argcount]
    f = tc.sum(fun(**{k: tc.var(k, SHAPES[k]) for k in names}))
    data = {k: DATA[k] for k in names}
    filled = {k: np.nan_to_num(a, nan=1.0) for k, a in data.items()}
    keep = ~np.isnan(data["Y" if "Y" in data else "y"])

    def wanted(v: Any) -> Any:
        return jnp.sum(jnp.where(keep, loss(**{**filled, by: v}), 0))

    for found, expected in (
        (f, wanted), (tc.grad(f, by), jax.grad(wanted)), (tc.hessian(f, by), jax.hessian(wanted)),
        (tc.derivative(f, by, 3), jax.jacobian(jax.hessian(wanted))),
    ):  # fmt: skip
        np.testing.assert_allclose(found(data), expected(DATA[by]), rtol=1e-10, atol=1e-12)
    assert np.all(np.isfinite(tc.compile(tc.grad(f, by), backend="c")(data)))


def test_formulas_choose_once() -> None:
    f = tc.parse("sum(where(isnan(y), 0, (y - X*b).^2))", X=("m", "n"), y="m", b="n")
    assert str(tc.grad(f, "b")) == "-2*X'*where(logical_not(isnan(y)), y - X*b, 0)"


def test_choices_by_what_a_branch_reads_stay_as_they_are() -> None:
    """No guard for what no data are behind: those of rectifiers, of both branches, of triangles."""
    x, t, n = tc.var("x", "n"), tc.var("t", "n"), 3
    for e in (
        tc.where(x > 0, x**2, 0), tc.where(t > 0, x**2, tc.sin(x)),
        tc.where(np.tril(np.ones((n, n))) > 0, tc.var("A", (n, n)) ** 2, 0),
    ):  # fmt: skip
        assert str(e).count("where") == 1
