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
    "V": rng.normal(size=(2, 2)), "c": np.array(0.7),
}  # fmt: skip
SHAPES = {
    "y": ("m",), "s": ("m",), "seen": ("m",), "X": ("m", "n"), "b": ("n",),
    "Y": ("m", "l"), "U": ("m", "k"), "V": ("l", "k"), "c": (),
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
    "a mask that is the weight too": (
        "b", lambda y, seen, X, b: np.where(seen > 0, seen * (y - X @ b) ** 2, 0),
        lambda y, seen, X, b: seen * (y - X @ b) ** 2,
    ),
    "a scale": (
        "c",
        lambda y, X, b, c: np.where(np.isnan(y), 0, ((y - X @ b) / c) ** 2 / 2 + np.log(c)),
        lambda y, X, b, c: ((y - X @ b) / c) ** 2 / 2 + jnp.log(c),
    ),
    "a scale in exponentials": (
        "c",
        lambda y, X, b, c: np.where(np.isnan(y), 0, (y - X @ b) ** 2 * np.exp(-2 * c) / 2 + c),
        lambda y, X, b, c: (y - X @ b) ** 2 * jnp.exp(-2 * c) / 2 + c,
    ),
    "multiples of what is missing": (
        "c", lambda y, s, c: np.nansum((y - c * s) ** 2), lambda y, s, c: (y - c * s) ** 2,
    ),
    "what is finite": (
        "b", lambda y, X, b: np.where(np.isfinite(y), (y - X @ b) ** 2, 0),
        lambda y, X, b: (y - X @ b) ** 2,
    ),
    "what equals itself": (
        "b", lambda y, X, b: np.where(y == y, (y - X @ b) ** 2, 0),
        lambda y, X, b: (y - X @ b) ** 2,
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


def _masked(y: Any, seen: Any) -> Any:
    return tc.where(seen, (y - tc.var("c") ** 2) ** 2 + tc.exp(tc.var("c") * y), 0)


#: Where the data and the mask are from: constants or variables, each.
KNOWN: dict[str, Callable[[Any, Any], Any]] = {
    "both constant": lambda y, seen: _masked(y, seen),
    "by isnan of a constant": lambda y, seen: tc.where(
        np.isnan(y), 0, (y - tc.var("c") ** 2) ** 2 + tc.exp(tc.var("c") * y)
    ),
    "a constant mask": lambda y, seen: _masked(tc.var("y", 4), seen),
    "constant data": lambda y, seen: _masked(y, tc.var("s", 4) > 0),
    "in the steps of a loop": lambda y, seen: tc.fold(
        lambda s, i: s + _masked(tc.var("y", 4)[i], tc.var("s", 4)[i] > 0), 0.0, 4
    ),
    "in the steps of a loop, both constant": lambda y, seen: tc.fold(
        lambda s, i: s + _masked(tc.const(y)[i], tc.const(seen)[i]), 0.0, 4
    ),
}


@pytest.mark.parametrize("name", KNOWN)
def test_masks_and_data_may_be_constants_and_entries_at_an_index(name: str) -> None:
    y, seen = DATA["y"], ~np.isnan(DATA["y"])
    f, there = tc.sum(KNOWN[name](y, seen)), y[~np.isnan(y)]

    def observed(c: Any) -> Any:
        return jnp.sum((there - c**2) ** 2 + jnp.exp(c * there))

    data = {"y": y, "s": seen * 1.0, "c": 0.7}
    for e, wanted in (
        (f, observed), (tc.grad(f, "c"), jax.grad(observed)),
        (tc.hessian(f, "c"), jax.hessian(observed)),
    ):  # fmt: skip
        given = {k: v for k, v in data.items() if k in e.variables}
        for backend in ("numpy", "c"):
            found = tc.compile(e, backend=backend)(**given)
            np.testing.assert_allclose(found, wanted(0.7), rtol=1e-12)


def test_a_value_that_is_missing_is_no_regressor_of_the_next_one() -> None:
    y, c = tc.var("y", "n"), tc.var("c")
    f = tc.nansum((y[1:] - c * y[:-1]) ** 2)
    data = {"y": np.array([0.1, NAN, 0.3, 0.2, 0.7, NAN]), "c": 0.3}
    pairs = [(0.3, 0.2), (0.2, 0.7)]
    for e, wanted in (
        (f, sum((b - 0.3 * a) ** 2 for a, b in pairs)),
        (tc.grad(f, c), sum(-2 * a * (b - 0.3 * a) for a, b in pairs)),
        (tc.hessian(f, c), sum(2 * a * a for a, b in pairs)),
    ):
        np.testing.assert_allclose(e(data), wanted, rtol=1e-12)


def test_what_lies_behind_the_lengths_of_rows_counts_for_nothing() -> None:
    X, c, length = tc.var("X", ("m", 3)), tc.var("c"), tc.var("l", "m", integer=True)
    f = tc.sum(tc.where(np.arange(3) < length[:, None], (X * c) ** 3, 0))
    data = {"X": np.array([[1.0, 2.0, NAN], [3.0, NAN, np.inf]]), "c": 0.4, "l": np.array([2, 1])}
    cubes = 1.0 + 8.0 + 27.0
    np.testing.assert_allclose(f(data), cubes * 0.4**3)
    np.testing.assert_allclose(tc.grad(f, c)(data), cubes * 3 * 0.4**2)
    np.testing.assert_allclose(tc.hessian(f, c)(data), cubes * 6 * 0.4)


ROWS: dict[str, Callable[..., Any]] = {
    "any of a row": lambda y, X, b: tc.where(tc.any(tc.isnan(X), axis=1), 0, (y - X @ b) ** 2),
    "how many": lambda y, X, b: tc.where(tc.sum(tc.isnan(X), 1) > 0, 0, (y - b @ X.T) ** 2),
    "all of a row": lambda y, X, b: tc.where(tc.all(tc.isfinite(X), 1), (y - X @ b) ** 2, 0),
    "what is fitted": lambda y, X, b: tc.where(tc.isnan(X @ b), 0, (y - X @ b) ** 2),
    "nansum": lambda y, X, b: tc.nansum((y - X @ b) ** 2),
}


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_rows_of_regressors_may_be_missing(name: str, backend: str) -> None:
    y, X, b = rng.normal(size=5), rng.normal(size=(5, 2)), rng.normal(size=2)
    holes = X.copy()
    holes[1, 0], holes[3] = NAN, NAN
    there = np.array([0, 2, 4])

    def observed(b: Any) -> Any:
        return jnp.sum((y[there] - X[there] @ b) ** 2)

    f = tc.sum(ROWS[name](tc.var("y", "m"), tc.var("X", ("m", "n")), tc.var("b", "n")))
    for e, wanted in (
        (f, observed), (tc.grad(f, "b"), jax.grad(observed)),
        (tc.hessian(f, "b"), jax.hessian(observed)),
    ):  # fmt: skip
        found = tc.compile(e, backend=backend)(
            **{k: v for k, v in {"y": y, "X": holes, "b": b}.items() if k in e.variables}
        )
        np.testing.assert_allclose(found, wanted(b), rtol=1e-12)
