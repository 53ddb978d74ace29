"""What must hold for whole derivatives of factorisations, and what they refuse."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tcalc as tc
from tests.linalg_cases import sample
from tests.test_code import loaded

MODES = ("forward", "reverse", "cross-country")
la = tc.linalg

# --- invariants -----------------------------------------------------------------------------------

A, B = tc.var("A", (3, 3)), tc.var("B", (2, 3))
GENERIC = {
    "A": sample("positive", (3, 3), np.random.default_rng(1)),
    "B": sample("mn", (2, 3), np.random.default_rng(2)),
}


def value(e: Any) -> Any:
    return e(**{name: GENERIC[name] for name in e.variables})


@pytest.mark.parametrize("mode", MODES)
def test_products_of_factors_are_linear(mode: str) -> None:
    factor = la.cholesky(A)
    first = value(tc.derivative(factor @ factor.T, A, 1, mode))
    unit = np.einsum("ik,jl->ijkl", np.eye(3), np.eye(3))
    np.testing.assert_allclose(first, (unit + unit.transpose(0, 1, 3, 2)) / 2, atol=1e-13)
    lower, q = la.lq(B)
    w, v = la.eigh(A)
    for order in (2, 3):
        second = value(tc.derivative(factor @ factor.T, A, order, mode))
        np.testing.assert_allclose(second, 0, atol=1e-11)
        np.testing.assert_allclose(value(tc.derivative(lower @ q, B, order, mode)), 0, atol=1e-11)
        whole = (v * w) @ v.T
        np.testing.assert_allclose(value(tc.derivative(whole, A, order, mode)), 0, atol=1e-9)
    for orthogonal, x in ((q, B), (v, A)):
        for order in (1, 2):
            still = tc.derivative(orthogonal @ orthogonal.T, x, order, mode)
            np.testing.assert_allclose(value(still), 0, atol=1e-11)


def test_determinant_of_the_cholesky_jacobian() -> None:
    n = 3
    jacobian, factor = value(tc.jacobian(la.cholesky(A), A)), value(la.cholesky(A))
    np.testing.assert_allclose(jacobian, jacobian.transpose(0, 1, 3, 2), atol=1e-15)
    rows = [(i, j) for i in range(n) for j in range(i + 1)]
    vech = [[jacobian[i, j, k, m] * (1 if k == m else 2) for k, m in rows] for i, j in rows]
    wanted = 1 / (2**n * np.prod([factor[i, i] ** (n - i) for i in range(n)]))
    np.testing.assert_allclose(abs(np.linalg.det(vech)), wanted, rtol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_lq_is_cholesky_of_the_gram_matrix(mode: str) -> None:
    lower, gram = la.lq(B)[0], la.cholesky(B @ B.T)
    for order in range(4):
        left, right = (value(tc.derivative(e, B, order, mode)) for e in (lower, gram))
        np.testing.assert_allclose(left, right, atol=1e-11 * np.max(np.abs(right)))


SCALARS = {
    "cholesky": la.cholesky(A), "inv": la.inv(A), "adj": la.adj(A), "logdet": la.logdet(A),
    "det": la.det(A), "lq": la.lq(B)[0], "q": la.lq(B)[1], "w": la.eigh(A)[0],
    "v": la.eigh(A)[1], "tri_inverse": la.tri_inverse(A), "pinv": la.pinv(B),
    "norm": la.norm(B, 2), "nuclear": la.norm(B, "nuc"),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALARS)
def test_hessians_are_symmetric(name: str) -> None:
    e = SCALARS[name]
    x = B if "B" in e.variables else A
    weights = np.random.default_rng(0).normal(size=e.shape)
    for modes in itertools.product(MODES, MODES):
        f = tc.sum(e * weights)
        h = value(tc.jacobian(tc.grad(f, x, mode=modes[0]), x, mode=modes[1]))
        h = h.reshape(GENERIC[x.name].size, -1)
        np.testing.assert_allclose(h, h.T, atol=1e-12 * max(1, np.max(np.abs(h))))


# --- equal eigenvalues ----------------------------------------------------------------------------

TIED = np.stack([np.diag([1.0, 2.0, 3.0]), np.diag([1.0, 2.0, 2.0])])


@pytest.mark.parametrize("degenerate", ["raise", "nan", "epsilon"])
def test_eigenvalues_at_ties_are_exact(degenerate: str) -> None:
    S = tc.var("S", (3, 3))
    w, _ = la.eigh(S, degenerate=degenerate)
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    for data in (TIED[1], q @ TIED[1] @ q.T, 2 * np.eye(3)):
        np.testing.assert_allclose(tc.grad(tc.sum(w), S)(S=data), np.eye(3), atol=1e-14)
        cubes = tc.grad(tc.sum(w * w * w), S)(S=data)
        np.testing.assert_allclose(cubes, 3 * data @ data, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ties_are_seen_through_rounding(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    vectors = tc.jacobian(la.eigh(A)[1], A)
    for _ in range(50):
        q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        with pytest.raises(tc.LinAlgError, match="equal eigenvalues"):
            vectors(A=((q * rng.choice([1.0, -0.7]) * [1, 0.3, 0.3]) @ q.T).astype(dtype))


def test_eigenvectors_at_ties_do_as_asked() -> None:
    S = tc.var("S", (2, 3, 3))
    for function in (la.eigh, la.syevd):
        vectors = {
            d: function(S, degenerate=d)[function is la.eigh] for d in ("raise", "nan", "epsilon")
        }
        with pytest.raises(tc.LinAlgError, match=r"eigh: equal eigenvalues.*item 1 of the batch"):
            tc.jacobian(vectors["raise"], S)(S=TIED)
        broken = tc.jacobian(vectors["nan"], S)(S=TIED)
        assert np.isnan(broken[1]).any()
        assert np.isfinite(tc.jacobian(vectors["epsilon"], S)(S=TIED)).all()
        apart = np.stack([TIED[0], TIED[0]])
        wanted = tc.jacobian(vectors["raise"], S)(S=apart)
        for d in ("nan", "epsilon"):
            np.testing.assert_allclose(tc.jacobian(vectors[d], S)(S=apart), wanted, atol=1e-14)
    with pytest.raises(ValueError, match="degenerate"):
        la.eigh(S, degenerate="ignore")


# --- errors ---------------------------------------------------------------------------------------

SINGULAR = np.array([[1.0, 2, 3], [2, 4, 6], [0, 1, 1]])
ZERO = np.array([[1.0, 0, 0], [2, 0, 0], [3, 4, 5]])
WRONG = [
    ("cholesky", la.cholesky, -np.eye(3), "cholesky: .*not positive definite"),
    ("cholesky-nan", la.cholesky, np.full((3, 3), np.nan), "cholesky: .*not positive definite"),
    ("potrf", la.potrf, np.diag([1.0, 1.0, -1.0]), "cholesky: .*not positive definite"),
    ("inv", la.inv, np.zeros((3, 3)), "inv: the matrix is singular"),
    ("tri_inverse", la.tri_inverse, ZERO, "tri_inverse: a zero on the diagonal"),
    ("potri", la.potri, ZERO, "tri_inverse: a zero on the diagonal"),
    ("lq", lambda a: la.lq(a)[0], SINGULAR, "lq: the rows .* dependent"),
    ("lq-zero", lambda a: la.lq(a)[1], np.zeros((3, 3)), "lq: the rows .* dependent"),
    ("eigh", lambda a: la.eigh(a)[1], np.full((3, 3), np.nan), "eigh: no convergence"),
    ("adj", la.adj, np.full((3, 3), np.nan), "adj: entries that are not finite"),
    ("qr", lambda a: la.qr(a)[1], SINGULAR, "qr: the columns are linearly dependent"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "function", "data", "message"), WRONG, ids=[w[0] for w in WRONG])
def test_matrices_without_the_property(name: str, function: Any, data: Any, message: str) -> None:
    one, many = tc.var("M", (3, 3)), tc.var("M", (2, 2, 3, 3))
    with pytest.raises(tc.LinAlgError, match=message) as caught:
        function(one)(M=data)
    assert "batch" not in str(caught.value)
    batch = np.stack([np.eye(3)] * 4).reshape(2, 2, 3, 3)
    assert np.isfinite(function(many)(M=batch)).all()
    batch[1, 0] = data
    with pytest.raises(tc.LinAlgError, match=message + r".*\(item 1, 0 of the batch\)"):
        function(many)(M=batch)


def test_dependent_rows_are_judged_by_their_own_size() -> None:
    M = tc.var("M", (2, 2))
    tiny = np.array([[1.0, 1.0], [1e-30, -1e-30]])
    factor, q = (part(M=tiny) for part in la.lq(M))
    np.testing.assert_allclose(factor @ q, tiny, rtol=1e-14)


@pytest.mark.parametrize(
    "name",
    ["adj", "cho_solve", "cholesky", "det", "eigh", "inv", "inverse", "logdet", "matrix_power",
     "potrf", "potri", "slogdet", "solve", "solve_triangular", "syevd", "tri_inverse", "trmm",
     "trsm"],
)  # fmt: skip
def test_non_square_matrices(name: str) -> None:
    M, v = tc.var("M", (2, 3)), tc.var("v", (3,))
    more = {
        "matrix_power": (2,),
        "solve": (v,),
        "solve_triangular": (v,),
        "trmm": (B,),
        "trsm": (B,),
    }
    first = (M, True) if name == "cho_solve" else M
    extra = (v,) if name == "cho_solve" else more.get(name, ())
    word = {"inverse": "inv", "syevd": "eigh"}.get(name, name)
    with pytest.raises(tc.ShapeError, match=f"^{word} needs a square matrix"):
        getattr(la, name)(first, *extra)


def test_shapes_and_options_that_do_not_fit() -> None:
    tall, v = tc.var("M", (3, 2)), tc.var("v", (3,))
    for name in ("lq", "gelqf", "qr", "pinv"):
        with pytest.raises(tc.ShapeError, match=f"{name} needs a matrix"):
            getattr(la, name)(v)
    with pytest.raises(tc.ShapeError, match="lstsq needs a matrix"):
        la.lstsq(v, v)
    with pytest.raises(tc.ShapeError, match=r"lstsq of shapes \(3, 2\) and \(2,\)"):
        la.lstsq(tall, tc.var("w", 2))
    with pytest.raises(ValueError, match="trans=3"):
        la.solve_triangular(A, v, trans=3)
    with pytest.raises(TypeError, match="cho_solve"):
        la.cho_solve(A, v)
    with pytest.raises(ValueError, match="matrix_power"):
        la.matrix_power(A, 0.5)  # type: ignore[arg-type]
    with pytest.raises(tc.UnsupportedError):
        la.norm(A, 3)


@pytest.mark.parametrize("trans", [0, 1])
@pytest.mark.parametrize("columns", [1, 16, 17, 300])
@pytest.mark.parametrize("rows", [159, 161, 257])
def test_large_triangles_are_solved_by_blocks(rows: int, columns: int, trans: int) -> None:
    rng = np.random.default_rng(3)
    factor = np.tril(rng.normal(size=(rows, rows))) / rows + 2 * np.eye(rows)
    right = rng.normal(size=(rows, columns))
    A, B = tc.var("A", (rows, rows)), tc.var("B", (rows, columns))
    solve = tc.compile(la.solve_triangular(A, B, trans, lower=True), backend="numpy")
    found = solve(A=factor + np.triu(np.ones((rows, rows)), 1), B=right)
    wanted = scipy.linalg.solve_triangular(factor, right, trans, lower=True)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_the_other_triangle_is_not_read() -> None:
    L, b = tc.var("L", (3, 3)), tc.var("b", (3, 2))
    data = {"L": sample("factor", (3, 3), np.random.default_rng(0)), "b": np.ones((3, 2))}
    nan = {**data, "L": data["L"] + np.triu(np.full((3, 3), np.nan), 1)}
    for e in (
        la.trsm(L, b),
        la.trmm(L, b, transpose=True),
        la.potri(L),
        la.tri_inverse(L),
        la.cho_solve((L, True), b),
        la.solve_triangular(L, b, lower=True),
    ):
        assert np.isfinite(e(**{k: nan[k] for k in e.variables})).all()
        found, wanted = (tc.jacobian(e, L)(**{k: d[k] for k in e.variables}) for d in (nan, data))
        np.testing.assert_array_equal(found, wanted)


def test_rows_of_syevd_have_a_sign() -> None:
    S = tc.var("S", (2, 3, 3))
    data = np.stack([GENERIC["A"], -GENERIC["A"]])
    data[1, 0] += 0.3
    u, w = (e(S=data) for e in la.syevd(S))
    top = np.take_along_axis(u, np.abs(u).argmax(axis=-1)[..., None], axis=-1)
    assert (top > 0).all()
    symmetric = (data + data.swapaxes(-1, -2)) / 2
    np.testing.assert_allclose(u @ symmetric, w[..., None] * u, atol=1e-13)


def test_determinants_of_singular_matrices_have_gradients() -> None:
    M = tc.var("M", (3, 3))
    gradient = tc.grad(la.det(M), M)
    cofactors = [
        [
            (-1) ** (i + j) * np.linalg.det(np.delete(np.delete(SINGULAR, i, 0), j, 1))
            for j in range(3)
        ]
        for i in range(3)
    ]
    np.testing.assert_allclose(gradient(M=SINGULAR), cofactors, atol=1e-14)
    np.testing.assert_allclose(gradient(M=np.ones((3, 3))), 0, atol=1e-14)
    sign, logabs = (e(M=SINGULAR * 0) for e in la.slogdet(M))
    assert (sign, logabs) == (0, -np.inf)


@pytest.mark.parametrize("order", [2, "nuc"])
def test_norms_of_singular_values_at_zero_and_ties(order: Any) -> None:
    M = tc.var("M", (2, 3))
    e = la.norm(M, order)
    assert e(M=np.zeros((2, 3))) == 0
    np.testing.assert_array_equal(tc.grad(e, M)(M=np.zeros((2, 3))), np.zeros((2, 3)))
    tied = np.eye(2, 3)
    wanted = tied / 2 if order == 2 else tied  # the largest ones of equal size share the derivative
    np.testing.assert_allclose(tc.grad(e, M)(M=tied), wanted, atol=1e-15)
    rng = np.random.default_rng(0)
    batch = rng.normal(size=(4, 2, 3))
    found = la.norm(tc.var("N", (4, 2, 3)), order, axis=(1, 2))(N=batch)
    np.testing.assert_allclose(found, np.linalg.norm(batch, order, axis=(1, 2)), rtol=1e-14)
    found = la.norm(tc.var("N", (2, 4, 3)), order, axis=(2, 0))(N=batch.swapaxes(0, 1))
    np.testing.assert_allclose(found, np.linalg.norm(batch, order, axis=(1, 2)), rtol=1e-14)


def test_least_squares_of_named_dimensions() -> None:
    M, y = tc.var("M", ("m", "n")), tc.var("y", "m")
    rng = np.random.default_rng(0)
    data = {"M": rng.normal(size=(6, 3)), "y": rng.normal(size=6)}
    found = la.lstsq(M, y)(data)
    np.testing.assert_allclose(found, np.linalg.lstsq(data["M"], data["y"])[0], rtol=1e-13)
    np.testing.assert_allclose(la.pinv(M)(data), np.linalg.pinv(data["M"]), atol=1e-14)
    with pytest.raises(tc.LinAlgError, match=r"^lstsq: the columns are linearly dependent"):
        la.lstsq(M, y)(M=np.ones((6, 3)), y=data["y"])
    with pytest.raises(tc.LinAlgError, match=r"^pinv: the rows are linearly dependent"):
        la.pinv(tc.ones((2, 3)))()


NAMED = [
    ("lq", lambda M: la.lq(M)[0], (3, 2), "as many columns as rows", "3 x 2"),
    ("gelqf", lambda M: la.gelqf(M)[0], (3, 2), "as many columns as rows", "3 x 2"),
    ("qr", lambda M: la.qr(M)[0], (2, 3), "as many rows as columns", "2 x 3"),
]


@pytest.mark.parametrize(("name", "function", "shape", "rule", "given"), NAMED, ids=lambda p: p)
def test_the_longer_side_of_named_dimensions(
    name: str, function: Any, shape: tuple[int, int], rule: str, given: str
) -> None:
    e = function(tc.var("M", ("m", "n")))
    data = np.random.default_rng(0).normal(size=shape)
    wanted = function(tc.var("M", shape[::-1]))
    np.testing.assert_allclose(e(M=data.T), wanted(M=data.T), atol=1e-15)
    message = f"^{name} needs at least {rule}, as is assumed of named dimensions, not {given}"
    with pytest.raises(tc.ShapeError, match=message):
        e(M=data)


EITHER = {
    "svdvals": la.svdvals,
    "svd": lambda M: tc.sum(la.svd(M)[0] ** 3) + tc.sum(la.svd(M)[2] ** 3),
    "spectral": lambda M: la.norm(M, 2),
    "nuclear": lambda M: la.norm(M, "nuc"),
    "pinv": la.pinv,
    "lstsq": lambda M: la.lstsq(M, tc.arange(M.shape[0]) + 1),
    "several": lambda M: la.lstsq(M, tc.exp(M)),
}
MODES = ("forward", "reverse", "cross-country")


@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
@pytest.mark.parametrize("name", EITHER)
def test_named_dimensions_in_either_shape(
    name: str, shape: tuple[int, int], tmp_path: Path
) -> None:
    """One expression for all shapes: values and derivatives are those of extents by numbers."""
    named, given = tc.var("M", ("m", "n")), tc.var("M", shape)
    e, wanted = EITHER[name](named), EITHER[name](given)
    data = {"M": np.random.default_rng(1).normal(size=shape)}
    for backend in ("numpy", "c"):
        found = tc.compile(e, backend=backend)(data)
        np.testing.assert_allclose(found, wanted(data), rtol=1e-10, atol=1e-12)
    for mode, order in itertools.product(MODES, (1, 2)):
        found = tc.derivative(e, named, order, mode)(data)
        known = tc.derivative(wanted, given, order)(data)
        np.testing.assert_allclose(found, known, rtol=1e-8, atol=1e-9)
    first = tc.grad(tc.sum(e), named)
    np.testing.assert_allclose(
        loaded(tc.to_code(first), tmp_path)(**data), first(data), rtol=1e-9, atol=1e-11
    )
    again = tc.parse_index(tc.to_index(first), M=("m", "n"))
    np.testing.assert_allclose(again(data), first(data), rtol=1e-9, atol=1e-11)


def test_what_vanishes_for_a_shape_is_not_computed() -> None:
    """The parts outside of the range of a factor are planned for the longer side only."""
    M = tc.var("M", ("m", "n"))
    J = tc.compile(tc.jacobian(la.svd(M)[0], M))
    assert "svd_reciprocal" in str(J.plan_for(M=(3, 2)))
    assert "svd_reciprocal" not in str(J.plan_for(M=(2, 3)))
    assert np.isfinite(J(M=np.diag([2.0, 1.0, 0.0]))).all()
    least = tc.compile(tc.jacobian(la.pinv(M), M))
    square, tall = (least.plan_for(M=shape).flops for shape in [(30, 30), (30, 29)])
    assert 4 * square < 3 * tall


def test_longer_sides_that_follow_from_forms() -> None:
    tall, wide = tc.var("T", ("n+1", "n")), tc.var("W", ("m", "m+k"))
    assert la.svdvals(tall).shape == ("n",)
    assert la.svdvals(wide).shape == ("m",)
    rng = np.random.default_rng(0)
    T, W = rng.normal(size=(4, 3)), rng.normal(size=(2, 5))
    np.testing.assert_allclose(la.pinv(tall)(T=T), np.linalg.pinv(T), atol=1e-13)
    np.testing.assert_allclose(la.pinv(wide)(W=W), np.linalg.pinv(W), atol=1e-13)
    lower, q = la.lq(tall)
    np.testing.assert_allclose((lower @ q)(T=T), T, atol=1e-13)
