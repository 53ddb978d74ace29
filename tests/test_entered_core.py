"""What few programs enter, of array functions, local derivatives and what rules bound."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.special

import tcalc as tc
from tcalc.accumulation.partials import local_derivative
from tcalc.compression.bands import _is_nonnegative
from tcalc.graph.extent_forms import value_of
from tcalc.graph.extents import Extent
from tcalc.graph.nodes import Expr
from tcalc.integers.affine import Affine, factors_of
from tcalc.ops.indicator import labels_among
from tcalc.ops.matrix.lq import lq_reflected_row, lq_triangle_row
from tcalc.ops.matrix.spectral import trace_function
from tcalc.ops.matrix_cores import attempt

VECTOR = np.array([0.5, -1.2, 2.7])
MATRIX = np.arange(6.0).reshape(2, 3) ** 1.5 - 3
TENSOR = np.sin(np.arange(24.0)).reshape(2, 3, 4)
WEIGHTS = np.array([1.0, 2.0, 3.5])
x, X, T = tc.var("x", 3), tc.var("X", (2, 3)), tc.var("T", (2, 3, 4))
s = tc.var("s")
DATA = {"x": VECTOR, "X": MATRIX, "T": TENSOR, "s": -1.5}

#: Calls of one spelling for expressions and arrays; np.e is the module that gives the values.
ALIKE: list[Callable[[Any, Any, Any, Any, Any], Any]] = [
    lambda np, x, X, T, s: np.dot(s, x), lambda np, x, X, T, s: np.dot(X, s),
    lambda np, x, X, T, s: np.inner(X, s), lambda np, x, X, T, s: np.inner(s, X),
    lambda np, x, X, T, s: np.vdot(X, np.concatenate([x, x * x])),
    lambda np, x, X, T, s: np.rot90(X, 2), lambda np, x, X, T, s: np.rot90(T, -2, (2, 0)),
    lambda np, x, X, T, s: X.transpose(1, 0), lambda np, x, X, T, s: T.transpose(1, 2, 0),
    lambda np, x, X, T, s: np.round(x), lambda np, x, X, T, s: np.round(x * 100, -2),
    lambda np, x, X, T, s: np.average(X, 0), lambda np, x, X, T, s: np.average(T, (0, 2)),
    lambda np, x, X, T, s: np.corrcoef(x), lambda np, x, X, T, s: np.median(T, (0, 2)),
    lambda np, x, X, T, s: np.median(T, (2, 1)), lambda np, x, X, T, s: np.diff(X, 0),
    lambda np, x, X, T, s: np.diff(x, 3), lambda np, x, X, T, s: np.diff(X, 4, axis=0),
    lambda np, x, X, T, s: np.diff(X, prepend=X[:, :2] * 3, append=s),
    lambda np, x, X, T, s: np.diff(X, append=X[:1] + s, axis=0),
    lambda np, x, X, T, s: np.append(X, 2 * X, 1), lambda np, x, X, T, s: np.append(X, X[:1], 0),
    lambda np, x, X, T, s: np.concatenate(T), lambda np, x, X, T, s: np.hstack(T),
    lambda np, x, X, T, s: X.imag, lambda np, x, X, T, s: (X * s).imag + X.real,
]  # fmt: skip


@pytest.mark.parametrize("call", ALIKE)
def test_calls_that_numpy_has(call: Callable[..., Any]) -> None:
    found = call(tc, x, X, T, s)
    wanted = call(np, *[np.asarray(v) for v in DATA.values()])
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(found(**DATA), wanted, rtol=1e-13, atol=1e-14)


@pytest.mark.parametrize(("found", "wanted"), [
    (tc.jn(2, x * x), scipy.special.jn(2, VECTOR**2)),
    (tc.yn(3, x * x), scipy.special.yn(3, VECTOR**2)),
    (tc.trapezoid(X, dx=0.25), np.trapezoid(MATRIX, dx=0.25)),
    (tc.trapezoid(X, dx=s, axis=0), np.trapezoid(MATRIX, dx=-1.5, axis=0)),
    (tc.median(T, ()), TENSOR), (tc.norm(s), 1.5), (tc.norm(X, axis=()), np.abs(MATRIX)),
    (tc.norm(x, -np.inf), 0.5), (tc.norm(tc.maximum(x, 0), 0), 2.0),
    (tc.norm(X, -np.inf, 1), np.abs(MATRIX).min(1)),
    (tc.weighted_logsumexp(x, WEIGHTS, ()), VECTOR + np.log(WEIGHTS)),
    (tc.const(x * x), VECTOR**2),
    (tc.quantile(x, 0.0), VECTOR.min()), (tc.quantile(x, [0, 1]), [VECTOR.min(), VECTOR.max()]),
])  # fmt: skip
def test_values_at_the_edge_of_what_functions_take(found: Expr, wanted: Any) -> None:
    np.testing.assert_allclose(found(**DATA), wanted, rtol=1e-12)


@pytest.mark.parametrize(("call", "error", "message"), [
    (lambda: tc.broadcast_to(x, (1,)), tc.ShapeError, r"\(3,\) does not broadcast to \(1,\)"),
    (lambda: tc.squeeze(X[:1], 1), tc.ShapeError, "axis 1 of shape .* is not 1"),
    (lambda: tc.moveaxis(T, (0, 1), 2), tc.ShapeError, "2 axes cannot be moved to 1 places"),
    (lambda: tc.repeat(x, -1), ValueError, "no numbers of repetitions"),
    (lambda: tc.repeat(x, [1, 2]), tc.ShapeError, "2 repetitions for an axis of extent 3"),
    (lambda: tc.meshgrid(x, x, indexing="yx"), ValueError, "'yx'; 'xy' or 'ij'"),
    (lambda: tc.diff(x, -1), ValueError, "n = -1 is negative"),
    (lambda: tc.gradient(x[:1]), tc.ShapeError, "needs two entries along each axis"),
    (lambda: tc.diagonal(x), tc.ShapeError, "needs two axes, not shape"),
    (lambda: tc.einsum("...i,i->i", X, x), tc.ShapeError, r"the result needs '\.\.\.'"),
    (lambda: tc.select([x > 0], [x, x]), tc.UnsupportedError, "1 conditions and 2 choices"),
    (lambda: tc.stack(s), TypeError, "stack takes a sequence of arrays"),
    (lambda: tc.pad(x, 1, constant_values=x), tc.UnsupportedError, "is one number"),
    (lambda: tc.take_along_axis(X, [[0, 1]], 1), tc.ShapeError, r"indices of shape .* axis 1"),
    (lambda: tc.quantile(x, 0.5, method="lower"), tc.UnsupportedError, "method 'lower'"),
    (lambda: tc.quantile(x, [0.5, 1.1]), ValueError, "between 0 and 1"),
    (lambda: tc.quantile(x[:0], 0.5), tc.ShapeError, "of no entries"),
    (lambda: tc.median(x[:0]), tc.UnsupportedError, "extent 0"),
    (lambda: tc.vander(X), tc.ShapeError, "powers of a vector"),
    (lambda: tc.polyval(X, x), tc.ShapeError, "coefficients are a vector"),
    (lambda: tc.vec(x), tc.ShapeError, "takes a matrix"),
    (lambda: tc.array_split(x, 0), tc.ShapeError, "into 0 parts"),
    (lambda: tc.split(x, 2), tc.ShapeError, "2 equal parts of an axis of extent 3"),
    (lambda: tc.average(X, 0, WEIGHTS), tc.ShapeError, "weights of shape"),
    (lambda: tc.cov(T), tc.ShapeError, "a vector or a matrix"),
    (lambda: tc.tril(s), tc.ShapeError, "at least one axis"),
    (lambda: tc.var("v", "n").std(ddof=0.5), tc.UnsupportedError, "ddof=0.5 over n entries"),
])  # fmt: skip
def test_what_functions_refuse(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        call()


def test_functions_declared_again_keep_their_number_of_operands() -> None:
    declared = tc.elementwise("declared_once", lambda v: v**3, [lambda v: 3 * v**2])
    np.testing.assert_allclose(tc.derivative(tc.sum(declared(x)), x)(x=VECTOR), 3 * VECTOR**2)
    again = tc.elementwise("declared_once", lambda v: v**2, [lambda v: 2 * v])
    np.testing.assert_allclose(tc.derivative(tc.sum(again(x)), x)(x=VECTOR), 2 * VECTOR)
    with pytest.raises(ValueError, match="was declared with 1 operands"):
        tc.elementwise("declared_once", np.hypot, [lambda a, b: a, lambda a, b: b])


# --- local derivatives, which are asked for only where nothing better is known --------------------

P, v6, v3 = tc.var("P", (3, 3)), tc.var("v", 6), tc.var("v", 3)


def _lower(a: Any) -> Any:
    return a[np.tril_indices(3)]


def _spread(v: Any) -> Any:
    found = np.zeros((3, 3))
    found[np.triu_indices(3)] = v
    return found


@pytest.mark.parametrize(("e", "function", "shape"), [
    (tc.cumsum(x), np.cumsum, (3,)),
    (tc.revcumsum(x), lambda v: np.cumsum(v[::-1])[::-1], (3,)),
    (tc.linalg.extracttrian(P), _lower, (3, 3)),
    (tc.linalg.extractdiag(P, 1), lambda a: np.diag(a, 1), (3, 3)),
    (tc.linalg.maketrian(v6, lower=False), _spread, (6,)),
    (tc.linalg.makediag(v3, -1), lambda v: np.diag(v, -1), (3,)),
])  # fmt: skip
def test_local_derivatives_of_linear_maps(
    e: Expr, function: Callable[[Any], Any], shape: tuple[int, ...]
) -> None:
    found = local_derivative(e, 0)
    assert found is not None
    units = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    wanted = np.stack([function(unit) for unit in units], -1)
    np.testing.assert_array_equal(found(), wanted.reshape(*wanted.shape[:-1], *shape))


def test_local_derivatives_of_batches_are_those_of_items() -> None:
    """Along the first axes nothing moves, so that these stand once."""
    found = local_derivative(tc.revcumsum(X, 1), 0)
    assert found is not None
    np.testing.assert_array_equal(found(), [np.triu(np.ones((3, 3)))] * 2)
    batch = tc.linalg.makediag(tc.var("v", (2, 3)), 1)
    found = local_derivative(batch, 0)
    assert found is not None
    units = np.stack([np.diag(unit, 1) for unit in np.eye(3)], -1)
    np.testing.assert_array_equal(found(), [units] * 2)


def test_triangles_of_wide_matrices() -> None:
    """With the signs of LAPACK among zeros, and with a positive diagonal; also of batches."""
    a = np.array([[1.0, 2, -0.5], [0.3, -1, 2]])
    batch = np.stack([a, 2 * a, -a])
    wanted = [np.concatenate([np.linalg.qr(m.T)[1].T, np.zeros((2, 1))], 1) for m in batch]
    kernels, given = lq_reflected_row().kernels, batch.copy()
    assert kernels.over is not None
    kernels.over(np, (), given)
    np.testing.assert_allclose(given, wanted, atol=1e-14)
    np.testing.assert_allclose(kernels.compute(np, (), batch), wanted, atol=1e-14)
    found = lq_triangle_row().kernels.compute(np, ("lq", "rows"), batch)
    np.testing.assert_allclose(found, np.linalg.cholesky(batch @ batch.mT), atol=1e-14)


# --- functions of matrices ------------------------------------------------------------------------

S, V = tc.var("S", ("n", "n"), symmetric=True), tc.var("V", ("n", "n"))
MIXED = np.array([[2.0, 1, 0], [1, -3, 0.5], [0, 0.5, 1]])


@pytest.mark.parametrize("degree", range(4))
def test_directional_derivatives_of_polynomials_of_matrices(degree: int) -> None:
    """Along one direction again and again, until nothing is left."""
    along = np.array([[0.5, 1, -1], [1, 2, 0.3], [-1, 0.3, 0.7]])
    e = tc.linalg.matrix_function(S, lambda a: 5 * a**degree + a - 2)

    def function(a: Any) -> Any:
        return 5 * np.linalg.matrix_power(a, degree) + a - 2 * np.eye(len(a))

    for order in range(4):
        # exact for polynomials: a Cauchy integral over a circle by as many points as needed
        turns = np.exp(2j * np.pi * np.arange(8) / 8)
        around = np.stack([function(MIXED + t * along) for t in turns])
        factor = scipy.special.factorial(order)
        wanted = np.einsum("t,tij->ij", turns**-order, around).real * factor / 8
        np.testing.assert_allclose(e(S=MIXED, V=along), wanted, atol=1e-11)
        e = tc.jvp(e, S, V)
    trace = trace_function(S, lambda a: 5 * a**degree + a - 2)
    slope = 5 * degree * np.linalg.matrix_power(MIXED, max(degree - 1, 0)) + np.eye(3)
    np.testing.assert_allclose(tc.derivative(trace, S)(S=MIXED), slope, atol=1e-12)


def test_derivatives_along_the_identity() -> None:
    """Those of the polynomial, at the matrix."""
    e = tc.linalg.matrix_function(S, lambda a: 5 * a**3 - 7 * a**2 + a - 2)
    square = MIXED @ MIXED
    for wanted in (
        15 * square - 14 * MIXED + np.eye(3),
        30 * MIXED - 14 * np.eye(3),
        30 * np.eye(3),
        0 * MIXED,
    ):
        e = tc.jvp(e, S, tc.diag(tc.ones("n")))
        np.testing.assert_allclose(e(S=MIXED, n=3), wanted, atol=1e-11)


def test_traces_of_constant_functions_count_eigenvalues() -> None:
    e = trace_function(S, lambda a: 0 * a - 2.5)
    np.testing.assert_allclose([e(S=np.eye(k)) for k in range(4)], [0, -2.5, -5, -7.5])


def test_errors_of_batches_say_which_matrix() -> None:
    def compute(a: Any) -> Any:
        if a.ndim > 2 or a[0, 0] < 0:
            raise np.linalg.LinAlgError("no factor")
        return a

    matrices = np.stack([np.eye(2), np.eye(2), -np.eye(2)])
    with pytest.raises(tc.LinAlgError, match=r"failed.*\b2\b"):
        attempt("failed", compute, matrices)
    with pytest.raises(np.linalg.LinAlgError, match="no factor"):  # of no matrix alone
        attempt("failed", compute, matrices[:2])


# --- bands ----------------------------------------------------------------------------------------

SIZES: list[Extent] = ["m", "n", 2, 3]
FACTORS = ["#0", "#1", "#2", "#3", "#0*m", "#1*n", "#2*m", "#3*m*n", "m", "n", "m*n", "min(m,n)"]


def _values(form: Affine, extents: dict[int, Extent], m: int, n: int) -> list[int]:
    """The values of a form at all labels in range."""
    labels = sorted(labels_among(form.names))
    sizes = [value_of(Affine.of(extents[k]), {"m": m, "n": n}) for k in labels]
    return [
        value_of(form.substitute({f"#{k}": i for k, i in zip(labels, at, strict=True)}),
                 {"m": m, "n": n})
        for at in itertools.product(*map(range, sizes))
    ]  # fmt: skip


def test_forms_said_to_be_nonnegative_are_so_at_all_labels() -> None:
    """Also where a label stands in terms of both signs, of which nothing is said."""
    rng = random.Random(5)
    extents = dict(enumerate(SIZES))
    said = mixed = 0
    for _ in range(600):
        terms = [(rng.choice(FACTORS), rng.choice([-2, -1, 1, 1, 2])) for _ in range(3)]
        form = Affine(tuple(terms), rng.choice([-1, 0, 0, 1, 2]))
        if not _is_nonnegative(form, extents):
            continue
        said += 1
        own = [{c > 0 for name, c in form.terms if f"#{k}" in factors_of(name)} for k in range(4)]
        mixed += any(len(signs) > 1 for signs in own)
        for m, n in itertools.product(range(5), repeat=2):
            assert min(_values(form, extents, m, n), default=0) >= 0, (str(form), m, n)
    assert said > 60
    assert not mixed
    assert not _is_nonnegative(Affine((("#0*m", 1), ("#0", -1))), extents)
