"""Seldom used options and neighbours of NumPy's, SciPy's and the library's own functions."""

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.signal

import tcalc as tc
from tcalc.scipy import linalg, signal

X = tc.var("x", 3)


def test_clip_everywhere_is_clip():
    found = tc.grad(lambda x: np.clip(x, 0, 1, where=True).sum())(np.array([0.5, 2.0]))
    np.testing.assert_array_equal(found, [1.0, 0.0])
    with pytest.raises(tc.TraceError, match=r"np.clip of expressions has no option where=array"):
        tc.grad(lambda x: np.clip(x, 0, 1, where=np.array([True, False])).sum())(np.ones(2))


@pytest.mark.parametrize("shape", [(2, 3), (3, 3)])
@pytest.mark.parametrize("mode", ["full", "r", "economic"])
def test_qr_of_wide_matrices_in_every_mode(shape, mode):
    a = np.random.default_rng(3).normal(size=shape)
    wanted = scipy.linalg.qr(a, mode=mode)
    signs = np.sign(np.diag(wanted[-1]))[:, None]
    found = linalg.qr(tc.var("A", shape), mode=mode)
    assert len(found) == len(wanted)
    np.testing.assert_allclose(found[-1](A=a), signs * wanted[-1], atol=1e-13)
    if mode != "r":
        np.testing.assert_allclose(found[0](A=a), wanted[0] * signs.T, atol=1e-13)


@pytest.mark.parametrize("mode", ["full", "r"])
@pytest.mark.parametrize("shape", [(3, 2), ("m", "n")])
def test_qr_with_more_rows_than_columns_says_which_mode_there_is(shape, mode):
    with pytest.raises(tc.TraceError, match='mode="economic"'):
        linalg.qr(tc.var("A", shape), mode=mode)


def test_a_numpy_function_is_the_derivative_of_one_operand():
    sine = tc.elementwise("sine_of_options", np.sin, np.cos)
    x = np.array([0.1, 0.7, 2.0])
    np.testing.assert_allclose(tc.grad(tc.sum(sine(X)), "x")(x=x), np.cos(x))
    scaled = tc.elementwise("scaled_of_options", lambda x: 3 * x, lambda x, by=3.0: 0 * x + by)
    np.testing.assert_allclose(tc.grad(tc.sum(scaled(X)), "x")(x=x), [3.0, 3.0, 3.0])
    with pytest.raises(TypeError, match="called with as many operands as there are, 1"):
        tc.elementwise("between_of_options", np.sin, lambda x, value, more: x)


def test_vectors_of_products_keep_single_precision():
    f = tc.compile(lambda a, b: np.cross(a, b))
    a, b = np.arange(3, dtype=np.float32), np.array([2, -1, 5], np.float32)
    assert f(a, b).dtype == np.float32
    np.testing.assert_array_equal(f(a, b), np.cross(a, b))
    exact = (np.cross(a.astype(float), b) / 3) * 0.1
    np.testing.assert_allclose((f(a.astype(float), b.astype(float)) / 3) * 0.1, exact, rtol=1e-15)


def test_convolutions_name_the_shapes_in_the_order_given():
    with pytest.raises(tc.ShapeError, match=r"neither \[3, 5\] nor \[4, 2\] covers the other"):
        signal.convolve(tc.var("A", (3, 5)), np.ones((4, 2)), mode="valid")
    with pytest.raises(tc.ShapeError, match=r"neither \[4, 2\] nor \[3, 5\] covers the other"):
        signal.convolve(tc.var("A", (4, 2)), np.ones((3, 5)), mode="valid")


def test_packing_checks_extents_made_of_others():
    x, y = tc.var("x", "n"), tc.var("y", ("2*n",))
    f = tc.sum(x**2) + tc.sum(y**2)
    functions = tc.scipy_functions(f, (x, y))
    assert functions.pack({"x": np.ones(2), "y": np.ones(4)}).shape == (6,)
    with pytest.raises(tc.ShapeError, match=r"extent 2\*n is 4 and 5"):
        tc.scipy_functions(f, (x, y)).pack({"x": np.ones(2), "y": np.ones(5)})


def test_a_zero_sum_of_kronecker_products_is_singular_and_finite():
    A, B, V = tc.var("A", ("n", "n")), tc.var("B", ("m", "m")), tc.var("V", ("n", "m"))
    f = tc.sum(V * (A @ A.T @ V)) / 2 + tc.sum(V * (V @ (B @ B.T))) / 2
    hessian = tc.compile(tc.hessian(f, V), structured=True)
    h = hessian(A=np.zeros((3, 3)), B=np.zeros((2, 2)), V=np.ones((3, 2)))
    with pytest.raises(tc.LinAlgError, match="is singular; solve"):
        h.solve(np.ones((3, 2)))


def test_a_sparse_laplacian_is_singular_and_one_with_a_small_shift_is_not():
    x, ends, others = tc.var("x", "n"), *(tc.var(s, "e", integer=True) for s in "IK")
    d, rng = tc.var("d", ()), np.random.default_rng(1)
    f = tc.sum((x[ends] - x[others]) ** 2) / 2 + d * tc.sum(x**2) / 2
    hessian = tc.compile(tc.hessian(f, x), structured=True)
    for n in (60, 97, 400, 1500):
        i = np.r_[np.arange(n), rng.integers(0, n, n // 2)]
        k = np.r_[(np.arange(n) + 1) % n, rng.integers(0, n, n // 2)]
        with pytest.raises(tc.LinAlgError, match=f"{n} x {n} matrix is singular"):
            hessian(I=i, K=k, n=n, d=0.0).solve(np.ones(n))
        found = hessian(I=i, K=k, n=n, d=1e-9).solve(np.ones(n))
        np.testing.assert_allclose(found, np.full(n, 1e9), rtol=1e-4)


def test_messages_name_what_the_user_named():
    with pytest.raises(tc.ShapeError, match="the direction for theta has shape"):
        tc.hvp(lambda theta: np.sum(theta**3))(np.ones(3), np.ones(4))
    with pytest.raises(IndexError, match="the index 3 is out of range for an axis of extent 3"):
        tc.grad(lambda th: th[3])(np.ones(3))
    with pytest.raises(tc.RangeError, match=r"q\[i\+1\]: index 5 is out of range"):
        tc.build(5, lambda i: tc.diag(tc.var("q", 5))[i + 1, i])


def test_hints_name_namespaces_that_have_functions():
    def solved(x):
        return scipy.integrate.odeint(lambda y, t: -x * y, 1.0, [0, 1]).sum()

    with pytest.raises(tc.TraceError, match=r"functions of scipy.integrate make arrays .*given$"):
        tc.grad(solved)(np.ones(1))
    with pytest.raises(tc.TraceError, match=r"tcalc\.scipy\.signal has some for expressions"):
        tc.grad(lambda x: scipy.signal.convolve(x, x).sum())(np.ones(3))


def test_arrays_of_expressions_say_what_was_meant():
    def set_entry(x):
        rows = np.zeros((3, 3))
        rows[1] = x
        return rows.sum()

    cases = {
        set_entry: "entries of an array of numbers cannot be set to it: stack or concatenate parts",
        lambda x: np.arange(5)[x].sum(): r"array\[i\] at an index i is const\(array\)\[i\]",
        lambda x: np.array([x[0], x[1]]).sum(): r"np.array\(\[...\]\) of expressions is stack",
    }
    for f, message in cases.items():
        with pytest.raises(tc.TraceError, match=f"an expression is not an array; {message}"):
            tc.grad(f)(np.ones(3))
