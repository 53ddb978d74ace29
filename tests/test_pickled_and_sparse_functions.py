"""Transforms of functions: they pickle, and take sparse matrices that nothing is derived by."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tcalc as tc

rng = np.random.default_rng(0)
w, y, scale = rng.normal(size=3), rng.normal(size=5), 0.5
dense = rng.normal(size=(5, 3)) * (rng.random((5, 3)) < 0.5)
S = scipy.sparse.csr_array(dense)


def loss(w: Any, scale: Any) -> Any:
    return np.sum(np.exp(w * scale))


def residuals(w: Any, S: Any, y: Any) -> Any:
    return np.sum((S @ w - y) ** 2)


TRANSFORMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (tc.grad(loss), (w, scale)),
    (tc.grad(loss, argnums=(0, 1)), (w, scale)),
    (tc.value_and_grad(loss), (w, scale)),
    (tc.jacobian(tc.grad(loss)), (w, scale)),
    (tc.derivative(loss, 0, 3), (w, scale)),
    (tc.hvp(loss), (w, scale, w)),
    (tc.vmap(loss, in_axes=(None, 0)), (w, y)),
    (tc.vmap(tc.grad(loss), in_axes=(None, 0), out_axes=1), (w, y)),
]


@pytest.mark.parametrize("backend", [None, "numpy", "c"])
def test_they_pickle(backend: str | None) -> None:
    for f, args in [*TRANSFORMS, (loss, (w, scale))]:
        made = tc.compile(f, backend=backend) if backend or f is loss else f
        wanted, found = made(*args), pickle.loads(pickle.dumps(made))(*args)
        assert repr(found) == repr(wanted)


def test_functions_that_have_no_name_do_not() -> None:
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(tc.compile(tc.grad(lambda w: np.sum(w**2))))


def test_sparse_arguments_are_data() -> None:
    slope = 2 * dense.T @ (dense @ w - y)
    for make in (lambda f: f, tc.compile, lambda f: tc.compile(f, backend="c")):
        for matrix in (S, scipy.sparse.csc_matrix(dense), scipy.sparse.coo_array(dense)):
            np.testing.assert_allclose(make(tc.grad(residuals))(w, matrix, y), slope, rtol=1e-12)
            found = make(tc.hessian(residuals))(w, matrix, y)
            np.testing.assert_allclose(found, 2 * dense.T @ dense, atol=1e-12)
    rows = rng.normal(size=(4, 3))
    found = tc.vmap(residuals, in_axes=(0, None, None))(rows, S, y)
    np.testing.assert_allclose(found, [np.sum((dense @ row - y) ** 2) for row in rows])
    nested = tc.compile(tc.grad(lambda w, data: residuals(w, data["S"], data["y"])))
    np.testing.assert_allclose(nested(w, {"S": S, "y": y}), slope, rtol=1e-12)


@pytest.mark.parametrize("f", [lambda w: np.sum(S @ w), lambda w: np.sum(w @ S.T)])
def test_what_to_do_with_sparse_matrices_of_closures_is_told(f: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match=r"a sparse matrix .*: give it to the function as an arg"):
        tc.grad(f)(w)


def test_nothing_is_derived_by_a_sparse_matrix() -> None:
    with pytest.raises(TypeError, match="S is not an array of real numbers"):
        tc.grad(residuals, 1)(w, S, y)


def test_a_power_is_no_exclusive_or() -> None:
    x = tc.var("x")
    for call in (lambda: x ^ 2, lambda: 2 ^ x):
        with pytest.raises(TypeError, match=r"a power is \*\*"):
            call()
    assert float(((x > 0) ^ (x < 1))(x=0.5)) == 0.0
    assert float(((x > 0) ^ (x < 1))(x=1.5)) == 1.0
