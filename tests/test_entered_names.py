"""Names of NumPy and SciPy, and minimisation, where few programs go."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.linalg
import scipy.signal
import scipy.stats

import tcalc as tc
import tcalc.numpy as tnp
import tcalc.scipy.integrate
import tcalc.scipy.linalg
import tcalc.scipy.signal
import tcalc.scipy.stats

x, y, k, t = tc.var("x", "n"), tc.var("y", "n"), tc.var("k", "m"), tc.var("t")
A, B = tc.var("A", ("n", "n")), tc.var("B", ("m", "n"))
MATRIX = np.array([[2.0, -1, 0.5], [0.3, 3, 0.5], [-0.7, 0.2, 1]])
DATA = np.array([0.5, -0.2, 0.7])

# --- NumPy ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [
    *[lambda np, a, p=p: np.linalg.cond(a, p) for p in (1, np.inf, "fro", "nuc")],
    *[lambda np, a, end=end: np.linalg.eigvalsh(a, end) for end in "lu"],
    lambda np, a: np.linalg.vector_norm(a),
    lambda np, a: np.linalg.vector_norm(a[:2], keepdims=True, ord=3),
    lambda np, a: np.linalg.vector_norm(a[:2], axis=1, keepdims=True, ord=1),
    lambda np, a: np.add.reduce(a, 1, None, None, True),
    lambda np, a: np.multiply.reduce(a, axis=1, dtype=float, out=None),
    lambda np, a: np.subtract(a, 1, casting="unsafe", order="F", dtype=float),
    lambda np, a: np.clip(a, -0.5, 1, casting="unsafe", dtype=float),
    lambda np, a: np.reshape(a, (-1,), order="F")[:5],
])  # fmt: skip
def test_calls_of_numpy_with_rare_options(call: Callable[..., Any]) -> None:
    e, wanted = call(np, A), call(np, MATRIX)
    found = np.asarray(tc.compile(e)(A=MATRIX))
    assert found.shape == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_condition_number_in_a_norm_has_a_derivative() -> None:
    slope = tc.grad(np.linalg.cond(A, "fro"), A)(A=MATRIX)
    wanted = np.zeros((3, 3))
    for place in np.ndindex(3, 3):
        ends = [MATRIX.copy(), MATRIX.copy()]
        for end, step in zip(ends, (1e-6, -1e-6), strict=True):
            end[place] += step
        one, two = (np.linalg.cond(end, "fro") for end in ends)
        wanted[place] = (one - two) / 2e-6
    np.testing.assert_allclose(slope, wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("call", "error", "told"), [
    (lambda: tnp.reshape(A, (9,), order="K"), ValueError, "reshape: order 'K'; 'C' or 'F'"),
    (lambda: tnp.linalg.eigvalsh(A, "X"), ValueError, "UPLO='X': 'L' or 'U'"),
    (lambda: np.linalg.eigh(A, "u"), tc.UnsupportedError, "other signs; write 'L'"),
    (lambda: np.linalg.qr(A, "complete"), tc.UnsupportedError, "mode 'complete'; there are"),
    (lambda: tnp.correlate(A, x), tc.ShapeError, r"correlate: .* not shape \(n, n\)"),
    (lambda: tnp.convolve(x, B), tc.ShapeError, r"convolve: .* not shape \(m, n\)"),
    (lambda: tnp.convolve(x, np.zeros(0)), ValueError, "convolve: a sequence without entries"),
    (lambda: tnp.convolve(x, x, "other"), ValueError, "mode 'other' is not 'full'"),
    (lambda: tnp.correlate(x, x, 3), ValueError, "correlate: mode 3 is not"),
    (lambda: tnp.interp(x, A, k), tc.ShapeError, r"vectors, not of shapes \(n, n\) and \(m,\)"),
    (lambda: tnp.interp(t, x, 1.0), tc.ShapeError, r"vectors, not of shapes \(n,\) and \(\)"),
    (lambda: tnp.interp(t, x, k), tc.ShapeError, r"interp: \(n,\) knots, \(m,\) values"),
    (lambda: np.piecewise(x, [x > 0, x < 0], [1.0] * 4), ValueError, "2 conditions, 4 functions"),
    (lambda: np.piecewise(x, [x > 0], []), ValueError, "1 conditions, 0 functions"),
    (lambda: tnp.r_["0,2", x], tc.TraceError, "r_ with directives in text does not take"),
    (lambda: tnp.einsum_path("i,i", x, x), tc.TraceError, "np.einsum_path does not take"),
    (lambda: tnp.fft.fft(x), tc.TraceError, "np.fft.fft does not take expressions: numbers are"),
    (lambda: np.clip(x, 0, 1, dtype=int), tc.TraceError, "np.clip: .* not converted to int"),
    (lambda: np.add.reduce(x, 0, np.int64), tc.TraceError, "add.reduce: .* not converted to int"),
    (lambda: np.add.reduce(x, out=DATA), tc.TraceError, "np.add.reduce with out=: an array cannot"),
    (lambda: tcalc.scipy.linalg.solve_banded((0, 1), B, x), tc.ShapeError, "a number, not n"),
    (lambda: tcalc.scipy.linalg.qr(B), tc.TraceError, r"mode='full' .* there is mode=\"economic\""),
    (lambda: tcalc.scipy.integrate.quad_vec(x, 0, 1), tc.TraceError, "integrate.quad_vec does not"),
    (lambda: tcalc.scipy.signal.hilbert(x), tc.TraceError, "scipy.signal.hilbert does not take"),
    (lambda: tcalc.scipy.stats.norm(t, 2), tc.UnsupportedError, r"as in scipy.stats.norm.logpdf\("),
    (lambda: tcalc.scipy.stats.dirichlet.logpdf(tc.var("d", 5), DATA), tc.ShapeError,
     "dirichlet: 5 entries of x for 3 of alpha"),
])  # fmt: skip
def test_calls_that_expressions_do_not_have(
    call: Callable[[], Any], error: type[Exception], told: str
) -> None:
    with pytest.raises(error, match=told):
        call()


# --- SciPy ----------------------------------------------------------------------------------------


def test_names_of_scipy_and_numpy_without_expressions_are_theirs() -> None:
    assert tcalc.scipy.integrate.quad(np.sin, 0, 1) == scipy.integrate.quad(np.sin, 0, 1)
    assert tcalc.scipy.integrate.LSODA is scipy.integrate.LSODA
    ours = tcalc.scipy.signal.detrend(DATA**2, type="constant")
    np.testing.assert_allclose(ours, DATA**2 - np.mean(DATA**2), atol=1e-15)
    np.testing.assert_array_equal(tnp.fft.fft(DATA), np.fft.fft(DATA))
    np.testing.assert_array_equal(tnp.fft.rfftfreq(5, 0.5), np.fft.rfftfreq(5, 0.5))
    row, frozen = tcalc.scipy.stats.expon, tcalc.scipy.stats.expon(1, scale=2)
    assert (row.name, row.a, row.numargs) == ("expon", 0.0, 0)
    assert frozen.cdf(1.7) == scipy.stats.expon(1, scale=2).cdf(1.7) != scipy.stats.expon.cdf(1.7)


@pytest.mark.parametrize("name", ["norm", "expon", "uniform"])
def test_quantiles_have_location_and_scale(name: str) -> None:
    ours, theirs = (getattr(module, name) for module in (tcalc.scipy.stats, scipy.stats))
    levels, s = np.array([0.05, 0.5, 0.93]), tc.var("s")
    e = ours.ppf(x, t, scale=s)
    values = {"x": levels, "t": 0.7, "s": 1.9}
    np.testing.assert_allclose(e(values), theirs.ppf(levels, 0.7, 1.9), rtol=1e-12)
    by_scale = tc.grad(tc.sum(e), s)(values)
    np.testing.assert_allclose(by_scale, theirs.ppf(levels).sum(), rtol=1e-12)
    by_level = tc.grad(tc.sum(e), x)(values)
    np.testing.assert_allclose(by_level, 1.9 / theirs.pdf(theirs.ppf(levels)), rtol=1e-10)


@pytest.mark.parametrize("cov", [2.0, [1.0, 0.0, 2.0], [[2.0, 0, 1], [0, 1, 0], [1, 0, 0.5]]])
def test_normal_density_of_a_singular_covariance(cov: Any) -> None:
    points = tc.var("p", ("m", 3))
    values = np.array([[0.3, 0.0, 0.8], [-1.0, 0.0, 0.1]])
    given = {"mean": np.array([0.5, 0, -0.1]), "cov": cov, "allow_singular": True}
    if np.ndim(cov) == 2:
        values[:, 2] = given["mean"][2] + (values[:, 0] - 0.5) / 2  # on the support
    found = tcalc.scipy.stats.multivariate_normal.logpdf(points, **given)(p=values)
    wanted = scipy.stats.multivariate_normal.logpdf(values, **given)
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_factors_of_scipy() -> None:
    linalg = tcalc.scipy.linalg
    found = tc.compile(linalg.svd(B, compute_uv=False))(B=MATRIX[:2])
    wanted = scipy.linalg.svd(MATRIX[:2], compute_uv=False)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    square = {"full": A, "r": A}
    for mode, e, value in [*[(m, e, MATRIX) for m, e in square.items()],
                           ("economic", B, MATRIX[:, :2])]:  # fmt: skip
        factors = [np.asarray(tc.compile(f)({e.name: value})) for f in linalg.qr(e, mode=mode)]
        theirs = scipy.linalg.qr(value, mode=mode)
        assert [f.shape for f in factors] == [f.shape for f in theirs]
        flips = np.sign(np.diag(theirs[-1]))  # here diagonals are positive
        assert (flips < 0).any()
        np.testing.assert_allclose(factors[-1], flips[:, None] * theirs[-1], atol=1e-12)
        for q, other in zip(factors[:-1], theirs, strict=False):
            np.testing.assert_allclose(q, other * flips, atol=1e-12)


# --- minimisation ---------------------------------------------------------------------------------

KINK = tc.where(t >= 0, t, -t)
#: Falls a little further from 0 on; at 0 a short step leads to the bottom of a shallow dent.
DENT = t**3 + 1e-9 * t + 1e-4 * t**2 / 2


@pytest.mark.parametrize(("f", "start", "options", "ends", "told"), [
    (tc.sqrt(t), 0.0, {}, 0.0, "no direction of descent"),
    (tc.where(t < 0.25, -np.inf, t**2), 1.0, {}, -np.inf, "the objective is unbounded below"),
    (KINK + t**2, 0.0, {}, 0.0, "or a kink"),
    (1e-9 * KINK + t**2 / 2, 0.0, {"tolerance": 0}, 0.0, "rounding errors of the objective"),
    (-tc.sum(tc.abs(x) ** 1.5), np.zeros(2), {}, 0.0, "no minimum: the objective falls from there"),
    # infinite between the values whose differences would tell of noise
    (tc.where(tc.logical_and(t > -9.5e-13, t < -8e-13), np.inf, DENT), 0.0, {}, 0.0,
     "no minimum: the objective falls from there"),
])  # fmt: skip
def test_searches_that_end_where_there_is_no_way_on(
    f: Any, start: Any, options: Any, ends: float, told: str
) -> None:
    name = "x" if np.ndim(start) else "t"
    with np.errstate(invalid="ignore"):
        found = tc.newton(f, {name: start}, **options)
    assert told in found.message
    assert found.success == ("rounding errors of" in found.message)
    assert found.fun == ends
    assert found.nit == (ends == -np.inf)
    np.testing.assert_array_equal(found.x[name], 0 * np.asarray(start))


def test_unknowns_of_extents_that_are_forms() -> None:
    longer, even = tc.var("y", "n + 1"), tc.var("z", "2*n")
    f = tc.sum((longer - 1) ** 2) + tc.sum((x + 2) ** 2) + tc.sum(even**4)
    start: dict[str, Any] = {"y": np.zeros(4), "x": np.ones(3), "z": np.ones(6)}
    functions = tc.scipy_functions(f, ("y", "x", "z"))
    packed = functions.pack(start)
    np.testing.assert_array_equal(packed, [0] * 4 + [1] * 9)
    assert functions.fun(packed) == 4 + 27 + 6
    np.testing.assert_array_equal(functions.jac(packed), [-2] * 4 + [6] * 3 + [4] * 6)
    found = tc.newton(f - tc.sum(even**4), {name: start[name] for name in ("y", "x")})
    np.testing.assert_allclose(found.x["y"], np.ones(4))
    np.testing.assert_allclose(found.x["x"], -2 * np.ones(3))
    cases: list[tuple[dict[str, Any], str]] = [
        ({"y": np.zeros(0)}, r"y: 0 is n\+1 for no whole number n"),
        ({"x": np.ones(2)}, "x: extent n is 3 and 2"),
        ({"x": np.ones((3, 1))}, r"x has shape \(3, 1\), expected \(n,\)"),
    ]
    for wrong, told in cases:
        with pytest.raises(tc.ShapeError, match=told):
            tc.scipy_functions(f, ("y", "x", "z")).pack({**start, **wrong})


def test_directions_of_hessians_are_no_variables_of_the_objective() -> None:
    taken = tc.var("x_direction", "n")
    weights, along = np.array([1.0, 2, 3]), np.array([1.0, 0, -2])
    functions = tc.scipy_functions(tc.sum(x**3 * taken) / 6, "x", data={"x_direction": weights})
    np.testing.assert_allclose(functions.hessp(DATA, along), DATA * weights * along)


@pytest.mark.parametrize("axes", [(0, 1), (1, 0), (-1, -2), (2, 0), (0, 2), (1, -1), (-1, 1)])
@pytest.mark.parametrize("order", [1, np.inf, "fro", 2, "nuc"])
def test_matrix_norms_take_rows_and_columns_in_the_order_given(
    axes: tuple[int, int], order: Any
) -> None:
    """A matrix's are the first axis that is named, and the last one."""
    values = np.random.default_rng(3).normal(size=(3, 4, 2))
    for shape in ((3, 4, 2), (3, 4)):
        at = values[..., 0] if len(shape) == 2 else values
        if max(axes) < len(shape) and len({k % len(shape) for k in axes}) == 2:
            A = tc.var("A", shape)
            for keepdims in (False, True):
                wanted = np.linalg.norm(at, order, axes, keepdims)
                found = tc.norm(A, order, axes, keepdims)(A=at)
                np.testing.assert_allclose(found, wanted, rtol=1e-13)
                named = np.linalg.norm(A, order, axes, keepdims)  # type: ignore[call-overload]
                np.testing.assert_allclose(named(A=at), wanted, rtol=1e-13)


@pytest.mark.parametrize("start", [600.0, 690.0, 708.0])
def test_objectives_that_fall_to_the_end_of_numbers(start: float) -> None:
    """The Hessian is so large that no damping makes it definite."""
    t = tc.var("t")
    found = tc.newton(-tc.exp(t), {"t": start}, max_steps=1000)
    assert (found.success, found.message) == (False, "the objective is unbounded below")
    assert np.isfinite(found.x["t"])
