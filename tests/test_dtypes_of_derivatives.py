"""Derivatives that no longer read their parameters are in the parameters' dtype."""

import numpy as np
import pytest

import tcalc as tc

RNG = np.random.default_rng(0)
FLAGS = RNG.random((500, 4)) < 0.3
SINGLE = RNG.normal(size=(50, 4)).astype(np.float32)
Y = np.ones(500)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hessians_with_flags_as_data(dtype):
    wanted = 2 * FLAGS.T.astype(float) @ FLAGS / 3
    b, y = np.zeros(4, dtype), Y.astype(dtype)

    def misfit(b):
        return np.sum((y - FLAGS @ b) ** 2) / 3

    def misfit_of(b, x):
        return np.sum((y - x @ b) ** 2) / 3

    for found in (
        tc.hessian(misfit)(b),
        tc.compile(tc.hessian(misfit))(b),
        tc.hessian(misfit_of)(b, FLAGS),
        tc.compile(tc.hessian(misfit_of), backend="numpy")(b, FLAGS),
    ):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, rtol=100 * np.finfo(dtype).eps)


def test_flags_in_expressions():
    b = tc.var("b", 4)
    f = tc.sum((Y - tc.const(FLAGS) @ b) ** 2) / 3
    hessian = tc.hessian(f, b)
    assert hessian().dtype == np.float64
    assert hessian(b=np.zeros(4)).dtype == np.float64
    np.testing.assert_allclose(hessian(), 2 * FLAGS.T.astype(float) @ FLAGS / 3, rtol=1e-13)


def test_many_flags_are_counted_exactly():
    flags = np.ones((2**24 + 3, 1), bool)
    assert tc.hessian(lambda b: np.sum((flags @ b) ** 2) / 2)(np.zeros(1)) == 2**24 + 3


def test_choices_by_flags():
    flags = np.array([True, False])
    found = tc.jacobian(lambda b: np.where(flags, b / 3, b * np.pi))(np.ones(2))
    np.testing.assert_array_equal(found, np.diag([1 / 3, np.pi]))


def test_data_in_single_precision_with_parameters_in_double():
    def misfit(b):
        return np.sum((SINGLE @ b) ** 2)

    assert tc.hessian(misfit)(np.ones(4)).dtype == np.float64
    assert tc.hessian(misfit)(np.ones(4, np.float32)).dtype == np.float32
    exact = SINGLE.astype(float)
    np.testing.assert_allclose(tc.hessian(misfit)(np.ones(4)), 2 * exact.T @ exact, rtol=1e-13)


def test_whole_numbers_in_single_precision_have_no_say():
    x = tc.var("x", 3)
    e = tc.const(np.array([1, -2, 3], np.float32)) * x
    assert e(x=np.ones(3)).dtype == np.float64
    assert e(x=np.ones(3, np.float32)).dtype == np.float32
