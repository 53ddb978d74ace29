"""What few programs enter, of compressed tensors, their sums, texts and factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.compression.bands import Table

x, y, c = tc.var("x", "n"), tc.var("y", "n"), tc.var("c")
X, S = tc.var("X", ("n", "m")), tc.var("S", ("n", "n"), symmetric=True)
A, B, C = tc.var("A", ("n", "n")), tc.var("B", ("m", "m")), tc.var("C", ("n", "n"))
DATA = np.array([0.5, -0.2, 0.7])


def held(e: tc.Expr, v: Any, **data: Any) -> Any:
    return tc.compile(tc.hessian(e, v), structured=True)(**data)


# --- tables and texts -----------------------------------------------------------------------------

i, j = tc.arange("n"), tc.arange("m")


@pytest.mark.parametrize(("core", "affine"), [
    (i[:, None] + 2 * j[None, :] - 1, True), (3 * (i + 2), True),
    ((i[:, None] - j[None, :]).T, True),
    (2 * (i[:, None] - j[None, :]).T + i[None, :] * 3, True),
    (i + tc.exp(i), False), (2 * (i + i * i), False), (tc.diagonal(tc.diag(i + 1) + 2) - 3, True),
    (tc.diag(i + 2), False), (tc.sum(i[:, None] + j[None, :], 1), False),
])  # fmt: skip
def test_tables_are_affine_where_their_entries_are(core: tc.Expr, affine: bool) -> None:
    """The terms that a table tells add up to its entries, of whatever sizes."""
    table = Table(tc.simplify(core), tuple(range(5, 5 + core.ndim)))
    terms = table.affine()
    assert (terms is not None) == affine
    for n, m in [(2, 3), (4, 1), (5, 5)] if affine else []:
        wanted = np.asarray(core(n=n, m=m))
        places = np.indices(wanted.shape)
        found = np.zeros(wanted.shape)
        for coef, label in terms or []:
            assert not coef.times
            found += float(coef.value) * (1 if label is None else places[label - 5])
        np.testing.assert_array_equal(found, wanted)


def test_texts_tell_coefficients() -> None:
    """A sign in front, other numbers as factors, and nothing of a 1."""
    square = tc.sum(x * y) ** 2
    for scale, text in [(-1, "-C1[i] * C1[j]"), (1, "C1[i] * C1[j]"), (-3, "-3 * C1[i] * C1[j]"),
                        (0.5, "1/2 * C1[i] * C1[j]")]:  # fmt: skip
        shown = str(tc.compress(tc.hessian(scale / 2 * square, x)))
        assert shown.partition("\n")[0] == f"H[i,j] = {text}   shape (n, n)"


def test_compressed_tensors_of_other_shapes_do_not_add() -> None:
    one, many = held(tc.sum(x**3), x, x=DATA), held(tc.sum(C**3), C, C=np.eye(3))
    with pytest.raises(tc.ShapeError, match=r"\(3, 3\) and \(3, 3, 3, 3\) do not add"):
        one + many
    with pytest.raises(TypeError, match="a compressed tensor, not ndarray"):
        tc.identity_like(np.eye(3))


def test_sums_over_variables_of_other_properties() -> None:
    """What was projected onto symmetric matrices, beside what was not."""
    at = np.outer(DATA, DATA) + np.eye(3)
    symmetric, whole = held(tc.trace(S @ S @ S), S, S=at), held(tc.sum(C**3), C, C=at)
    units = np.einsum("ik,jl->ijkl", np.eye(3), np.eye(3))
    halves = (units + np.swapaxes(units, 2, 3)) / 2
    # of tr(S^3), 3 (dS S + S dS) along symmetric parts
    left, right = (np.einsum(w, np.eye(3), at) for w in ("ik,lj->ijkl", "jl,ik->ijkl"))
    one = np.einsum("ijab,abcd,cdkl->ijkl", halves, 3 * (left + right), halves)
    other = np.einsum("ij,ik,jl->ijkl", 6 * at, np.eye(3), np.eye(3))
    np.testing.assert_allclose((symmetric + whole).todense(), one + other, atol=1e-12)
    np.testing.assert_allclose((whole + symmetric).todense(), one + other, atol=1e-12)


def test_numbers_of_two_precisions_add_in_the_wider_one() -> None:
    single = held(tc.sum(x**4), x, x=DATA.astype(np.float32))
    double = held(tc.sum(x**2 * y) + tc.sum(x) ** 2, x, x=DATA, y=DATA + 1)
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    wanted = np.diag(12 * DATA**2) + np.diag(2 * (DATA + 1)) + 2
    for found in (single + double, double + single):
        assert found.todense().dtype == np.float64
        np.testing.assert_allclose(found.todense(), wanted, rtol=1e-6)
        np.testing.assert_allclose(found.diagonal(), wanted.diagonal(), rtol=1e-6)


# --- operators and blocks -------------------------------------------------------------------------


def test_operators_of_what_is_not_sparse() -> None:
    """Of a Jacobian that is no square: forward and backward, of one vector and of several."""
    matrix = np.outer(DATA, DATA + 1) + np.eye(3)[:, ::-1]
    e = tc.parse("exp(M*x)", M=("k", "n"), x=("n",))
    wide = tc.jacobian(e, "x")
    of = tc.compile(wide, structured=True)(x=DATA, M=matrix[:2])
    operator = of.to_scipy()
    wanted = np.exp(matrix[:2] @ DATA)[:, None] * matrix[:2]
    assert operator.shape == (2, 3)
    np.testing.assert_allclose(operator.matvec(DATA), wanted @ DATA)
    np.testing.assert_allclose(operator.rmatvec(DATA[:2]), wanted.T @ DATA[:2])
    np.testing.assert_allclose(operator.rmatmat(matrix[:2]), wanted.T @ matrix[:2])


def test_block_jacobians_as_matrices() -> None:
    made = tc.compile(tc.jacobian((tc.exp(x), tc.sum(x * y)), (x, y)), structured=True)
    found = made(x=DATA, y=DATA + 1)
    wanted = np.zeros((4, 6))
    wanted[:3, :3], wanted[3, :3], wanted[3, 3:] = np.diag(np.exp(DATA)), DATA + 1, DATA
    assert (found.ndim, len(found), found.shape) == (2, 2, (4, 6))
    assert (
        repr(found)
        == f"<BlockJacobian of [0] (3,), [1] () over x (3,), y (3,): {found.nbytes} bytes>"
    )
    for other, factor in [(found * np.array(-2.5), -2.5), (2 * found, 2), (found / 4, 0.25),
                          (found + found * 3, 4)]:  # fmt: skip
        np.testing.assert_allclose(other.todense(), factor * wanted)
    fewer = tc.compile(tc.jacobian((tc.exp(x), tc.sum(x * y)), (x,)), structured=True)
    assert len(fewer(x=DATA, y=DATA + 1)) == 2
    with pytest.raises(tc.ShapeError, match=r"blocks over shapes .* do not add"):
        found + fewer(x=DATA, y=DATA + 1)
    for wrong in (lambda: found + 1, lambda: found * "a", lambda: found / "a"):
        with pytest.raises(TypeError):
            wrong()


# --- factors --------------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", [False, True])
def test_determinants_of_singular_blocks(pair: bool) -> None:
    """Zero without properties; inside of properties it is refused."""
    e = tc.sum(x * y) * 0 + tc.sum(x - y) ** 2
    found = held(e, (x, y), x=DATA, y=DATA) if pair else held(tc.sum(x) ** 2, x, x=DATA)
    assert found.slogdet() == (0.0, -np.inf)
    v: Any = (S, x) if pair else S
    inside = held(tc.trace(S) ** 2 + tc.sum(x) ** 2, v, S=np.eye(3), x=DATA)
    with pytest.raises(tc.LinAlgError, match="is singular"):
        inside.slogdet()
    told = "inside the variables' properties" if pair else "inside the subspace of the variable's"
    assert told in inside.notes()[-1]


def test_inverses_inside_of_properties() -> None:
    """In coordinates of symmetric matrices beside a vector; their diagonals in all entries."""
    Y = tc.var("Y", ("k", "k"), symmetric=True)
    at = np.array([[2.0, 1], [1, 3]])
    point = {"x": DATA, "Y": at}
    found = held(
        tc.sum(x**4) + tc.sum(x) * tc.sum(Y**2) + tc.sum(Y**4) + tc.sum(x**2), (x, Y), **point
    )
    xx = np.diag(12 * DATA**2 + 2)
    whole = np.zeros((7, 7))
    whole[:3, :3], whole[:3, 3:] = xx, 2 * at.reshape(-1)
    whole[3:, :3], whole[3:, 3:] = (
        whole[:3, 3:].T,
        np.diag(2 * DATA.sum() + 12 * at.reshape(-1) ** 2),
    )
    basis = np.zeros((7, 6))
    basis[:3, :3], basis[3, 3], basis[6, 5] = np.eye(3), 1, 1
    basis[[4, 5], 4] = np.sqrt(0.5)
    inverse = basis @ np.linalg.inv(basis.T @ whole @ basis) @ basis.T
    first, last = found.inverse().diagonal()
    np.testing.assert_allclose(first, inverse.diagonal()[:3])
    np.testing.assert_allclose(last.reshape(-1), inverse.diagonal()[3:])


def test_complements_of_blocks_that_are_singular() -> None:
    """Where the block that is eliminated first has no inverse the others take its place."""
    at = {"x": np.linspace(1, 2, 30), "y": np.linspace(1, 3, 30) ** 2}
    at["x"][3] = 0.0
    turned = tc.concatenate([y[1:], y[:1]])
    found = held(
        tc.sum(x**4) + tc.sum(x * turned) + 3 * tc.sum(y) ** 2 + tc.sum(y**4), (x, y), **at
    )
    cross = np.roll(np.eye(30), 1, axis=1)
    whole = np.block(
        [[np.diag(12 * at["x"] ** 2), cross], [cross.T, np.diag(12 * at["y"] ** 2) + 6]]
    )
    np.testing.assert_allclose(found.todense(), whole, atol=1e-12)
    right = np.cos(np.arange(60.0))
    solved = np.concatenate(found.solve((right[:30], right[30:])))
    np.testing.assert_allclose(solved, np.linalg.solve(whole, right), rtol=1e-10)
    sign, size = np.linalg.slogdet(whole)
    assert sign == -1
    np.testing.assert_allclose(found.slogdet(), (sign, size))


def _symmetric(n: int, seed: int) -> Any:
    a = np.random.default_rng(seed).normal(size=(n, n))
    return a + a.T + np.diag(np.arange(1.0, n + 1))


KRONECKER: list[tuple[Callable[[Any], tc.Expr], Callable[[Any, Any, Any], Any]]] = [
    (lambda v: tc.trace(v @ A @ v @ A), lambda a, c, unit: 2 * a @ unit @ a),
    (lambda v: tc.trace(v @ A @ v @ C), lambda a, c, unit: a @ unit @ c + c @ unit @ a),
    (lambda v: tc.sum((A @ v) ** 2) + tc.sum((v @ C) ** 2),
     lambda a, c, unit: 2 * (a @ a @ unit + unit @ c @ c)),
    (lambda v: tc.trace(A @ v @ v), lambda a, c, unit: a @ unit + unit @ a),
]  # fmt: skip


@pytest.mark.parametrize("alike", ["", "vectors", "values"])
@pytest.mark.parametrize(("e", "product"), KRONECKER)
def test_products_inside_of_symmetric_matrices(e: Any, product: Any, alike: str) -> None:
    """Whether both sides are equal, have equal eigenvectors or equal eigenvalues, or neither."""
    a, more = _symmetric(4, 1), _symmetric(4, 2)
    w, v = np.linalg.eigh(a)
    if alike == "vectors":
        more = (v * np.array([1.5, 2, 4, 7])) @ v.T
        a = (v * np.array([1.0, 3, 5, 6])) @ v.T
    elif alike == "values":
        more = (np.linalg.eigh(more)[1] * w) @ np.linalg.eigh(more)[1].T
    found = held(e(S), S, A=a, C=more, S=np.eye(4))
    rows = [(p, q) for p in range(4) for q in range(p + 1)]
    basis = np.stack([np.eye(4)[:, [p]] @ np.eye(4)[[q]] for p, q in rows])
    basis = basis + np.swapaxes(basis, 1, 2)
    basis /= np.sqrt((basis**2).sum((1, 2), keepdims=True))
    reduced = np.einsum("rij,qij->qr", np.stack([product(a, more, unit) for unit in basis]), basis)
    right = _symmetric(4, 3)
    wanted = np.einsum("q,qij->ij", np.linalg.solve(reduced, (basis * right).sum((1, 2))), basis)
    np.testing.assert_allclose(found.solve(right), wanted, rtol=1e-8)
    np.testing.assert_allclose(found.factor().slogdet(), np.linalg.slogdet(reduced), rtol=1e-10)


@pytest.mark.parametrize("zero", [False, True])
def test_kronecker_sums(zero: bool) -> None:
    """Of eigenvalues that add up to zero nowhere, or somewhere; a zero matrix is one of two."""
    at = {
        "A": np.zeros((4, 4)) if zero else _symmetric(4, 4),
        "B": _symmetric(3, 5),
        "X": np.ones((4, 3)),
    }
    found = held((tc.sum(X * (A @ X)) + tc.sum(X * (X @ B))) / 2, X, **at)
    whole = np.kron(at["A"], np.eye(3)) + np.kron(np.eye(4), at["B"])
    right = np.sin(np.arange(12.0)).reshape(4, 3)
    solved = np.linalg.solve(whole, right.reshape(-1))
    np.testing.assert_allclose(found.solve(right).reshape(-1), solved, rtol=1e-9)
    np.testing.assert_allclose(found.slogdet(), np.linalg.slogdet(whole))
    at |= {"A": np.diag([1.0, 2, 3, 4]), "B": np.diag([-5.0, -3, -7])}
    with pytest.raises(tc.LinAlgError, match="12 x 12 matrix is singular"):
        held(tc.sum(X * (A @ X)) + tc.sum(X * (X @ B)), X, **at).solve(right)


def test_corrections_that_leave_nothing() -> None:
    """A diagonal and one vector, singular together: no solution, and the determinant is zero."""
    W = tc.var("W", ("k", "n"))
    found = held(tc.sum(W @ x) ** 2 / 2 - tc.sum(x**2) / 2, x, x=np.ones(40), W=np.eye(1, 40))
    with pytest.raises(tc.LinAlgError, match="40 x 40 matrix is singular"):
        found.solve(np.ones(40))
    assert found.slogdet() == (0.0, -np.inf)


def test_sparse_matrices_without_numbers() -> None:
    e = tc.sum((x[1:] - x[:-1]) ** 4) + tc.sum(x**2) / 2
    with pytest.raises(tc.LinAlgError, match="sparse 300 x 300 matrix has entries that are not"):
        held(e, x, x=np.full(300, np.nan)).solve(np.ones(300))
    found = held(e, x, x=np.cos(np.arange(300.0) ** 2))
    kept, empty = found.inverse(), held(tc.sum(x) * 2 + 0 * tc.sum(x**2), x, x=np.ones(300))
    wanted = np.linalg.inv(found.todense())
    np.testing.assert_allclose((kept + empty).todense(), wanted, atol=1e-10)
    np.testing.assert_allclose((kept + found).diagonal(), wanted.diagonal() + found.diagonal())


def test_several_blocks_an_item_that_are_singular() -> None:
    """The pair of entries of x and y that belong together has no inverse."""
    found = held(tc.sum((x - y) ** 2), (x, y), x=np.ones(40), y=np.zeros(40))
    wanted = np.kron([[2, -2], [-2, 2]], np.eye(40))
    np.testing.assert_array_equal(found.todense(), wanted)
    with pytest.raises(tc.LinAlgError, match="singular"):
        found.solve((np.ones(40), np.ones(40)))
    assert found.slogdet() == (0.0, -np.inf)
    solved = found.solve((np.ones(40), np.zeros(40)), damping=1)
    np.testing.assert_allclose(solved, np.repeat([[3 / 5], [2 / 5]], 40, 1))
