"""Plain NumPy code on expressions: functions by name, with their options, as NumPy computes them."""

# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
import tcalc.numpy as tnp
from tcalc.numpy.table import FUNCTIONS, REPLACEMENTS
from tests.test_arrays import ALIKE

RNG = np.random.default_rng(0)
A = RNG.normal(size=(3, 4))
v = RNG.normal(size=5)
S = RNG.normal(size=(3, 3))
T = RNG.normal(size=(2, 3, 4))
P = np.abs(A) + 0.1

#: A function of one array, and where it is compared with NumPy.
# fmt: off
CASES: list[tuple[Callable[[Any], Any], np.ndarray]] = [
    (lambda x: np.expand_dims(x, (0, 2)), A),
    (lambda x: np.squeeze(x[None, :, None]), A),
    (lambda x: np.squeeze(x[None, :, None], axis=0), A),
    (lambda x: np.swapaxes(x, 0, 2), T),
    (lambda x: np.moveaxis(x, (0, 1), (-1, 0)), T),
    (lambda x: np.rollaxis(x, 2, 1), T),
    (lambda x: np.rot90(x, 3), A),
    (lambda x: np.rot90(x, -1, (1, 2)), T),
    (lambda x: np.repeat(x, [1, 0, 2], 0), A),
    (lambda x: np.repeat(x, 2), A),
    (lambda x: np.repeat(x, 0, axis=1), A),
    (lambda x: np.tile(x, (2, 1, 3)), A),
    (lambda x: np.tile(x, 2), A),
    (lambda x: np.atleast_3d(x), A),
    (lambda x: np.atleast_3d(x), v),
    (lambda x: np.vstack([x, x[0]]), A),
    (lambda x: np.hstack((x, x)), v),
    (lambda x: np.dstack([x, x]), A),
    (lambda x: np.column_stack([x[:, 0], x]), A),
    (lambda x: np.append(x, x), A),
    (lambda x: np.concatenate(np.split(x, [1, 2], axis=1)[::-1], axis=1), A),
    (lambda x: np.concatenate(np.array_split(x, 3)[::-1]), v),
    (lambda x: np.tril(x, 1), A),
    (lambda x: np.triu(x, -1), T),
    (lambda x: np.tril(x), v),
    (lambda x: np.diff(x, 2, axis=0, prepend=1.0), A),
    (lambda x: np.gradient(x, 0.5, axis=1), A),
    (lambda x: np.trapezoid(x, np.arange(4.0) ** 2), A),
    (lambda x: np.sort(x, axis=0), A),
    (lambda x: np.sort(x, axis=None), A),
    (lambda x: np.median(x, axis=1, keepdims=True), A),
    (lambda x: np.median(x), v),
    (lambda x: np.quantile(x, [0.1, 0.5], axis=0), A),
    (lambda x: np.ptp(x, axis=0), A),
    (lambda x: x[np.argsort(x)], v),
    (lambda x: np.var(x, axis=0, ddof=1), A),
    (lambda x: np.std(x, ddof=2, keepdims=True), A),
    (lambda x: np.average(x, axis=1, weights=np.arange(1.0, 5)), A),
    (lambda x: np.cov(x), A),
    (lambda x: np.corrcoef(x), A),
    (lambda x: np.corrcoef(x[0], x[1] ** 2)[0, 1], A),
    (lambda x: np.cov(x, np.sin(x[:1])) * np.cov(x[0], x[1], bias=True)[1, 0], A),
    (lambda x: np.cov(x, x**2, rowvar=False), A),
    (lambda x: np.inner(x, x), A),
    (lambda x: np.vdot(x, x), A),
    (lambda x: np.kron(x, x), S),
    (lambda x: np.fmax(x, np.nan), A),
    (lambda x: np.arcsinh(x), A),
    (lambda x: np.arccosh(x + 1), P),
    (lambda x: np.deg2rad(x), A),
    (lambda x: np.sinc(x), A),
    (lambda x: np.ceil(x) * x, A),
    (lambda x: np.rint(x) * x, A),
    (lambda x: np.select([x > 1, x > 0], [x, x ** 2], 3.0), A),
    (lambda x: np.cbrt(x), P),
    (lambda x: np.sum(x, axis=0, initial=2.0, where=np.array([True, False, True, True])), A),
    (lambda x: np.max(x, axis=0, initial=0.5), A),
    (lambda x: np.mean(x, where=A > 0), A),
    (lambda x: np.zeros_like(x) + np.ones_like(x) * x + np.full_like(x, 2.0), A),
    (lambda x: np.linalg.trace(x), T.transpose(1, 0, 2)),
    (lambda x: np.trace(x), T),
    (lambda x: np.linalg.diagonal(x, offset=1), T),
    (lambda x: np.diagonal(x, -1), A),
    (lambda x: np.linalg.svd(x, full_matrices=False).S, A),
    (lambda x: np.abs(np.linalg.qr(x)[1]), S),
    (lambda x: np.linalg.norm(x, axis=1, keepdims=True), A),
    (lambda x: np.linalg.norm(x, 3, axis=0), A),
    (lambda x: np.linalg.norm(x, 'nuc', axis=(0, 1)), T),
    (lambda x: np.cumsum(x), A),
    (lambda x: np.cumprod(x, axis=1), A),
    (lambda x: np.take(x, [0, 5]), A),
    (lambda x: np.concatenate([x, x], axis=None), A),
    (lambda x: np.outer(x, x), A),
    (lambda x: np.roll(x, 5), A),
    (lambda x: np.einsum('...i,...i->...', x, x), T),
    (lambda x: np.einsum(x, [0, 1], x, [2, 1], [0, 2]), A),
    (lambda x: np.einsum('ij,ij->i', x, x[:1]), A),
    (lambda x: np.einsum('ij,kj', x, x, optimize=True), A),
    (lambda x: np.reshape(x, (2, 6), order='F'), A),
    (lambda x: x.ravel(order='F'), A),
    (lambda x: np.clip(x, a_min=-0.5, a_max=None), A),
    (lambda x: x.clip(0, 1).astype(float).flatten().squeeze().swapaxes(0, 0).repeat(2).copy(), A),
    (lambda x: np.add.reduce(x), A),
    (lambda x: np.add.accumulate(x, axis=1), A),
    (lambda x: np.subtract.outer(x[0], x), A),
    (lambda x: np.linalg.lstsq(x, np.arange(4.0), rcond=None)[0], A.T.copy()),
    (lambda x: np.nansum(x + np.array([0, np.nan, 0, 0]), axis=1), A),
    (lambda x: np.cross(x, x[::-1], axis=0), A),
    (lambda x: np.linspace(x, 2 * x, 4, axis=1), A),
    (lambda x: np.meshgrid(x, x[:2])[0], v),
    (lambda x: np.pad(x, ((1, 2), (0, 1)), constant_values=2.0), A),
    (lambda x: np.block([[x, x], [x, x]]), A),
    (lambda x: np.delete(x, 1, axis=1), A),
    (lambda x: np.linalg.multi_dot([x, x.T, x]), A),
    (lambda x: np.linalg.cond(x), S),
    (lambda x: np.nan_to_num(x), A),
    (lambda x: np.where(np.any(x > 1, axis=0), x[0], 0), A),
    (lambda x: np.linalg.vector_norm(x, axis=0, ord=2), A),
    (lambda x: np.round(x, 1) * x, A),
    (lambda x: x // 0.3 * x, A),
    (lambda x: np.logaddexp2(x, 1), A),
    (lambda x: np.percentile(x, 30), A),
    (lambda x: np.sum(x) / np.size(x) / x.size / np.ndim(x) * np.shape(x)[0], A),
    (lambda x: x.T.trace(offset=1), A),
    (lambda x: np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), 1), A),
    (lambda x: np.matvec(x, np.arange(4.0)), T),
    (lambda x: np.matrix_transpose(x) @ np.permute_dims(x, (0, 1, 2)), T),
    (lambda x: np.hsplit(x, 2)[1] + np.vsplit(x, [1, 2])[1][:, :2], A),
    (lambda x: np.dsplit(x, [1, 3])[1], T),
    (lambda x: np.nanmean(x + np.array([0, np.nan, 0, 0]), axis=1), A),
    (lambda x: np.nanvar(x + np.array([0, np.nan, 0, 0]), axis=1, ddof=1), A),
    (lambda x: np.where(np.isnan(np.nanvar(x[:1] + np.nan, axis=0, ddof=1)), x[0], 0), A),
    (lambda x: np.nanstd(x + np.array([0, np.nan, 0, 0]), keepdims=True), A),
    (lambda x: np.polyval(x[0], x) + np.polyval(np.array([1.0, -2.0]), x), A),
    (lambda x: np.convolve(x, [1.0, -2.0, 0.5]) * np.convolve(np.arange(3.0), x, 0)[0], v),
    (lambda x: np.convolve(x, np.arange(9.0), "same") + np.convolve(np.arange(9.0), x, "same"), v),
    (lambda x: np.convolve(x[0], x[1], "valid") * np.convolve(x[0, 0], x[2]), A),
    (lambda x: np.correlate(x, [1.0, -2.0]) * np.correlate([1.0, -2.0], x), v),
    (lambda x: np.correlate(x, [1.0, -2.0], "same") * np.correlate([1.0, -2.0], x, 1), v),
    (lambda x: np.correlate(x, [1.0, -2.0, 0.3], "full") * np.correlate([1.0, -2.0, 0.3], x, 2), v),
    (lambda x: np.bincount([2, 0, 2, 1][: len(x)] + [0] * (len(x) - 4), x) ** 2, v),
    (lambda x: np.bincount(np.array([4, 0, 4]), weights=x[:3] ** 2, minlength=7), v),
    (lambda x: np.interp(x, [-1.0, 0.1, 0.2, 5.0], [2.0, -1.0, 1.0, 3.0]), T),
    (lambda x: np.interp(x, [-0.2, 0.1], [2.0, -1.0], left=7.0, right=-9.0) * x, A),
    (lambda x: np.interp(x, [1.3, 0.1, -0.2], [2.0, -1.0, 4.0], period=1.7), A),
    (lambda x: np.interp([-9.0, 0.15, 0.3, 9.0], [0.0, 0.2, 0.4], x[:3]), v),
    (lambda x: np.interp([0.15, 0.3, 2.0], np.cumsum(np.abs(x)), x**2), v),
    (lambda x: np.interp(0.3, x[:1], x[1:2]) + np.interp(x[0], [1.0], [2.0]), v),
    (lambda x: np.piecewise(x, [x < -0.3, x > 0.5], [lambda t: t**2, np.sin, lambda t: -t]), A),
    (lambda x: np.piecewise(x, [x < 1, x < 0], [lambda t, c: c * t**2, 3.0], 5.0), A),
    (lambda x: np.apply_along_axis(lambda row: row[0] * np.sum(row**2), 1, x), A),
    (lambda x: np.apply_along_axis(np.outer, 0, x, np.arange(2.0)), A),
    (lambda x: np.apply_along_axis(np.cumsum, -2, x), T),
    (lambda x: np.vander(x[0]) @ np.vander(x[1], 3, increasing=True), A),
    (lambda x: np.nanmax(x, axis=0) + np.nanmin(x, axis=0), A),
    (lambda x: np.heaviside(x, 0.5) * x + np.trunc(x) * x, A),
    (lambda x: np.where(np.isfinite(x) & np.logical_xor(x > 0, x > 1), x, np.real(x) + np.imag(x)), A),
    (lambda x: np.count_nonzero(x > 0, axis=0) * x, A),
    (lambda x: np.diagflat(x[0], 1) @ np.tri(5, 5, -1), A),
    (lambda x: np.ediff1d(x), A),
    (lambda x: np.linalg.eigh(x @ x.T).eigenvalues, S),
    (lambda x: np.linalg.slogdet(x).logabsdet + np.linalg.qr(x, mode='r')[0, 0] ** 2, S),
    (lambda x: np.linalg.cholesky(x @ x.T + np.eye(3), upper=True), S),
    (lambda x: np.linalg.matrix_norm(x, keepdims=True) + np.linalg.svdvals(x), S),
    (lambda x: np.sum(x, 0, None, None, True) + x.sum(axis=(0, 1)), A),
    (lambda x: np.std(x, axis=1, correction=1) + np.mean(x, axis=1, dtype=float), A),
    (lambda x: np.tan(x / 4) + np.sinh(x) * np.cosh(x) - np.tanh(x) + np.cos(x), A),
    (lambda x: np.arccos(x / 4) + np.arcsin(x / 4) + np.arctan(x) + np.arctanh(x / 4), A),
    (lambda x: np.exp2(x) + np.log2(x) + np.log10(x) + np.rad2deg(x), P),
    (lambda x: np.where((x > 0) & (x < 1) | (x >= 2) | (x <= -1), x, np.angle(x)), A),
    (lambda x: np.where(np.bitwise_and(x > 0, np.invert(x > 1)) | ~np.bitwise_or(x < 1, x > 2), x, 2), A),
    (lambda x: np.where(np.bitwise_xor(x > 0, x > 1), x, 2 * x), A),
    (lambda x: np.where(np.logical_and(x == x, np.logical_or(x != x, np.isinf(x))), x, 2 * x), A),
    (lambda x: np.where(np.isnan(x) | np.all(x < 9), x, 0) + np.fmin(x, np.nan), A),
    (lambda x: np.where(np.less(x, 0) | np.greater(x, 1), x, 0), A),
    (lambda x: np.where(np.less_equal(x, 0) | np.greater_equal(x, 1), x, 0), A),
    (lambda x: np.where(np.equal(x, 0) | np.not_equal(x, 1), x, 0), A),
    (lambda x: x * np.floor_divide(x, 0.3) + np.take_along_axis(x, np.argmin(x, 0, keepdims=True), 0), A),
    (lambda x: np.atleast_1d(x[0, 0]) + np.atleast_2d(x[0]), A),
    (lambda x: np.broadcast_arrays(x, x[0])[1] + np.flip(x) + np.flipud(x) + np.fliplr(x), A),
    (lambda x: np.linalg.eigvalsh(x @ x.T) + np.linalg.matrix_power(x, 3)[0], S),
    (lambda x: np.linalg.pinv(x) + np.stack([x[0], x[1], x[2]], axis=1), A),
    (lambda x: np.linalg.vecdot(x, x) + np.vecdot(x, x) + np.vecmat(x[0, 0], x[0, :, :].T), T),
    (lambda x: np.partition(x, 2)[2:3] + np.full_like(x[:1], 1.0), v),
    (lambda x: np.fft.fftshift(x) + np.fft.ifftshift(x, axes=1) + np.roll(x, (1, 2), axis=(0, 1)), A),
    (lambda x: np.linalg.eigh(x).eigenvalues + np.linalg.eigvalsh(x, UPLO="U"), S),
]
# fmt: on


@pytest.mark.parametrize(("compute", "at"), CASES)
def test_values_and_derivatives_are_numpys(compute: Callable[[Any], Any], at: np.ndarray) -> None:
    x = tc.var("x", at.shape)
    e, wanted = compute(x), np.asarray(compute(at))
    found = e(x=at)
    assert np.shape(found) == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)
    direction, cotangent = RNG.normal(size=at.shape), RNG.normal(size=wanted.shape)
    forward = tc.jvp(e, x, tc.const(direction))(x=at)
    step = 1e-6 * direction
    central = (np.asarray(compute(at + step)) - np.asarray(compute(at - step))) / 2e-6
    np.testing.assert_allclose(forward, central, rtol=1e-6, atol=1e-6)
    backward = tc.vjp(e, x, tc.const(cotangent))(x=at)
    np.testing.assert_allclose(
        np.sum(backward * direction), np.sum(forward * cotangent), rtol=1e-9, atol=1e-9
    )


def names(compute: Any) -> set[str]:
    return set(compute.__code__.co_names)


def test_the_table_is_covered() -> None:
    """Every function that the table has under a name of its own is compared with NumPy."""
    tested = set().union(*[names(compute) for compute, _ in [*CASES, *[(f, A) for f in ALIKE]]])
    known = {id(f) for name, f in FUNCTIONS.items() if name.rpartition(".")[2] in tested}
    constructors = {"full", "zeros"}  # of which NumPy makes arrays
    missing = {name for name, f in FUNCTIONS.items() if id(f) not in known}
    assert missing <= constructors


# --- lists of traced values -----------------------------------------------------------------------

LISTS: list[Callable[[Any, Any], Any]] = [
    lambda np, x: np.array([x[0], x[1] * 2, 1.0]),
    lambda np, x: np.array([[x[0], 1.0], [0.0, x[1] ** 2]]),
    lambda np, x: np.array((x, np.exp(x))),
    lambda np, x: np.asarray([x[0], 2.0]),
    lambda np, x: np.mean([x[0], x[1]]),
    lambda np, x: np.sum([x, x * x], axis=0),
    lambda np, x: np.std((x[0], x[1], 0.5)),
    lambda np, x: np.var([x[0], x[2]], ddof=1),
    lambda np, x: np.max([x[0], x[1]]),
    lambda np, x: np.dot([x[0], x[1]], [1.0, 2.0]),
    lambda np, x: np.concatenate([[x[0], 1.0], x]),
    lambda np, x: np.stack([[x[0], 1.0], [2.0, x[1]]]),
    lambda np, x: np.vstack([[x[0], x[1]], [1.0, 2.0]]),
    lambda np, x: np.hstack([x[0], [x[1]]]),
    lambda np, x: np.linalg.norm([x[0], x[1]]),
    lambda np, x: np.linalg.det([[x[0], 1.0], [2.0, x[1]]]),
    lambda np, x: np.r_[x, 1:3, x[0]],
    lambda np, x: np.c_[x, x * 2],
    lambda np, x: np.append([x[0], x[1]], 3.0),
    lambda np, x: np.full(3, x[0]) + np.full((2, 3), x),
    lambda np, x: np.outer([x[0], 1.0], x),
    lambda np, x: np.einsum("i,i->", [x[0], x[1]], [1.0, 3.0]),
]


@pytest.mark.parametrize("compute", LISTS)
def test_lists_of_traced_values_are_arrays(compute: Callable[[Any, Any], Any]) -> None:
    at = np.array([0.7, 1.3, -0.4])
    np.testing.assert_allclose(compute(tnp, at), compute(np, at))
    found = tc.jacobian(lambda x: compute(tnp, x))(at)
    step = 1e-6 * np.eye(3)
    columns = [(compute(np, at + h) - compute(np, at - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(found, np.stack(columns, -1), atol=1e-8)


def test_everything_else_of_the_module_is_numpys() -> None:
    assert tnp.pi is np.pi
    assert tnp.float64 is np.float64
    assert tnp.exp is np.exp
    assert tnp.__version__ == np.__version__
    assert tnp.random.default_rng is np.random.default_rng
    assert tnp.linalg.LinAlgError is np.linalg.LinAlgError
    np.testing.assert_array_equal(tnp.array([1, 2]), np.array([1, 2]))
    assert tnp.array([1, 2]).dtype == np.array([1, 2]).dtype
    with pytest.raises(AttributeError):
        _ = tnp.no_such_name


# --- what is refused ------------------------------------------------------------------------------


def entry_set(x: Any) -> Any:
    z = np.zeros(3)
    z[0] = x[0]
    return z.sum()


def slice_set(x: Any) -> Any:
    z = np.zeros(3)
    z[:2] = x[:2]
    return z.sum()


def added(x: Any) -> Any:
    z = np.zeros(3)
    z += x
    return z.sum()


def multiplied(x: Any) -> Any:
    z = np.ones((3, 3))
    z @= x
    return z.sum()


def traced_set(x: Any) -> Any:
    z = x * np.ones((3, 3))
    z[np.arange(3), np.arange(3)] = 0
    return z.sum()


REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (entry_set, "stack"),
    (slice_set, "stack"),
    (added, r"a = a \+ x, not a \+= x"),
    (multiplied, "in place"),
    (traced_set, "maketrian.*gather"),
    (lambda x: np.array([x[0], x[1]]), "stack"),
    (lambda x: np.mean([x[0], x[1]]), "stack"),
    (lambda x: float(x[0]), "stack"),
    (lambda x: np.sum(x, dtype=int), "int64"),
    (lambda x: x.astype("float32"), "float32"),
    (lambda x: np.sum(x, out=np.zeros(())), "out="),
    (lambda x: np.sqrt(x, where=np.array([True, False, True])), "where="),
    (lambda x: np.fft.fft(x), "real"),
    (lambda x: np.nonzero(x), "where"),
    (lambda x: np.bincount(x), "segment_sum"),
    (lambda x: np.where(x > 0), "where"),
    (lambda x: np.apply_over_axes(np.sum, x, 0), "vmap"),
    (lambda x: np.linalg.eig(np.outer(x, x)), "eigh"),
    (lambda x: np.searchsorted(x, 0.5), "sum"),
    (lambda x: np.frexp(x), "frexp"),
    (lambda x: x.sort(), "np.sort"),
    (lambda x: x.tolist(), "values"),
    (lambda x: np.subtract.reduce(x), "reduce"),
]


@pytest.mark.parametrize(("compute", "said"), REFUSED)
def test_what_is_refused_says_what_to_write(compute: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(tc.TraceError, match=said):
        tc.grad(compute)(np.ones(3))


@pytest.mark.parametrize("name", sorted(REPLACEMENTS))
def test_replacements_are_of_names_that_the_table_lacks(name: str) -> None:
    assert name not in FUNCTIONS


def test_np_linalg_svd_has_numpys_default() -> None:
    x = tc.var("x", (4, 3))
    with pytest.raises(tc.UnsupportedError, match="full_matrices=False"):
        np.linalg.svd(x)
    assert [e.shape for e in np.linalg.svd(tc.var("s", (3, 3)))] == [(3, 3), (3,), (3, 3)]


def test_an_objective_of_one_entry_is_refused_with_its_place() -> None:
    with pytest.raises(tc.ShapeError, match=r"\[0\]"):
        tc.grad(lambda x: x[:1] ** 2)(np.ones(3))


def test_scipys_ufuncs_are_ours() -> None:
    special = pytest.importorskip("scipy.special")
    x = tc.var("x", 3)
    for name in ("gammaln", "psi", "expit", "logit", "betaln", "gamma", "beta", "erf", "ndtr"):
        two = (x, 0.5) if name.startswith("beta") else (x,)
        at = np.array([0.2, 0.5, 0.9])
        wanted = getattr(special, name)(*[at if a is x else a for a in two])
        np.testing.assert_allclose(getattr(special, name)(*two)(x=at), wanted)


def test_attributes_are_those_of_arrays() -> None:
    x = tc.var("x", (2, 3))
    assert (x.ndim, x.size, x.dtype, len(x)) == (2, 6, np.dtype(float), 2)
    assert x.real is x
    assert x.copy() is x
    assert x.conj() is x
    assert [e.shape for e in x.flat] == [()] * 6
    with pytest.raises(tc.TraceError, match="not known"):
        _ = tc.var("y", "n").size


def test_stopped_gradients() -> None:
    found = tc.grad(lambda x: np.sum(x * tc.stop_gradient(x)))(np.array([2.0, 3.0]))
    np.testing.assert_array_equal(found, [2.0, 3.0])


@pytest.mark.parametrize("places", [[-1, 0, 1], [0.5, 0, 1], [[0, 1, 2]]])
def test_counted_places_are_refused_as_numpys(places: list[Any]) -> None:
    for weights in (np.ones(3), tc.var("x", 3)):
        with pytest.raises((ValueError, TypeError)):
            np.bincount(np.array(places), weights)
