"""Compressed derivatives under hostile use: odd shapes and numbers, threads, writes, interrupts."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import tcalc as tc
from tcalc.structured.solvers import choose
from tcalc.structured.solvers.by_names import ByNames
from tcalc.structured.solvers.dense import Dense
from tcalc.structured.tensor import Structured
from tcalc.structured.terms.numeric_terms import Terms
from tcalc.structured.terms.tensor_layout import CoreProduct, TensorLayout
from tests.test_structured import factorisation, hessian_of
from tests.test_structured_blocks import FACTORS, factors, flat, leaves

RNG = np.random.default_rng(5)


def one(n: int, m: int, k: int) -> tuple[Any, np.ndarray]:
    """The Hessian over one factor, and a right-hand side."""
    f, x = factorisation(False)
    data = {
        "T": RNG.normal(size=(n, m)),
        "U": RNG.normal(size=(n, k)),
        "V": RNG.normal(size=(m, k)),
    }
    return tc.compile(tc.hessian(f, x), structured=True)(data), np.ones((n, k))


def both(n: int = 7, m: int = 5, k: int = 2) -> tuple[Any, tuple[np.ndarray, np.ndarray]]:
    data = factors(n, m, k)
    held = tc.compile(tc.hessian(FACTORS, ("U", "V")), structured=True)(data)
    return held, (RNG.normal(size=(n, k)), RNG.normal(size=(m, k)))


@pytest.mark.parametrize(
    "sizes", [(0, 3, 2), (3, 0, 2), (3, 4, 0), (1, 1, 1), (0, 0, 0), (3, 1, 1)]
)
def test_extents_of_nothing_and_of_one(sizes: tuple[int, int, int]) -> None:
    n, m, k = sizes
    held, g = one(n, m, k)
    matrix = held.tomatrix() + 2 * np.eye(n * k)
    x = held.solve(g, damping=2)
    np.testing.assert_allclose(matrix @ x.ravel(), g.ravel())
    shifted = held + 2.0 * tc.identity_like(held)
    assert shifted.slogdet() == pytest.approx(np.linalg.slogdet(matrix))
    assert shifted.inverse().diagonal().shape == (n, k)
    assert "solve: " in held.explain()
    pair, rhs = both(n, m, k)
    matrix = pair.todense() + 9 * np.eye((n + m) * k)
    np.testing.assert_allclose(matrix @ flat(pair.solve(rhs, damping=9)), flat(rhs))
    shifted = pair + 9.0 * tc.identity_like(pair)
    assert shifted.slogdet() == pytest.approx(np.linalg.slogdet(matrix))
    spread = np.diag(np.linalg.inv(matrix))
    np.testing.assert_allclose(flat(shifted.inverse().diagonal()), spread, 1e-9)
    assert pickle.loads(pickle.dumps(shifted.inverse())).shape == matrix.shape


def test_numbers_that_are_not_finite_are_named_as_such() -> None:
    bad = np.diag([1.0, np.nan, 2.0])
    for value in (bad, np.full((3, 3), np.inf)):
        held = hessian_of("x'*A*x", x=np.ones(3), A=value)
        with pytest.raises(tc.LinAlgError, match="3 x 3 matrix has entries that are not finite"):
            held.solve(np.ones(3), damping=1)
    held = hessian_of("sum(x.^4)", x=np.array([1.0, np.inf]))
    with pytest.raises(tc.LinAlgError, match="inf at \\(1,\\)"):
        held.solve(np.ones(2))
    assert np.isnan(hessian_of("x'*A*x", x=np.ones(3), A=bad).logdet())


def test_structure_becomes_no_array_by_the_way() -> None:
    held, g = one(3, 4, 2)
    pair, _ = both()
    for h in (held, pair):
        for call in (np.asarray, lambda h: g + h, lambda h: g - h, lambda h: np.linalg.inv(h)):
            with pytest.raises(TypeError, match=r"no array.*todense"):
                call(h)
        for damping in ("1", b"1", 1j):
            with pytest.raises(TypeError, match="damping= is a number"):
                h.factor(damping)


def test_what_is_given_and_returned_is_not_shared() -> None:
    for text in ("x'*x/2", "sum(x.^4)", "logsumexp(x) + x'*x", "sum(x)^2 + sum(exp(x))"):
        held, g = hessian_of(text, x=np.arange(1.0, 5)), np.ones(4)
        wanted, dense = held.solve(g), held.todense()
        inverse = held.inverse()
        for found in (
            held.solve(g), held @ g, held.diagonal(), held.todense(), held.blocks(), inverse @ g,
            inverse.diagonal(), inverse.todense(), held.tosparse().data, held.factor().solve(g),
        ):  # fmt: skip
            found[...] = np.nan
        assert not any(core.flags.writeable for core in (*held.cores, *inverse.cores))
        np.testing.assert_array_equal(held.solve(g), wanted)
        np.testing.assert_array_equal(held.todense(), dense)
    pair, rhs = both()
    wanted = flat(pair.solve(rhs))
    inverse = pair.inverse()
    for tree in (pair.solve(rhs), pair @ rhs, pair.diagonal(), inverse.diagonal(), inverse @ rhs):
        for leaf in leaves(tree):
            leaf[...] = np.nan
    assert not any(core.flags.writeable for core in (*pair.cores, *inverse.cores))
    np.testing.assert_array_equal(flat(pair.solve(rhs)), wanted)
    np.testing.assert_allclose(flat(inverse @ rhs), wanted, 1e-8)


def test_inputs_may_be_read_only_lists_and_strided() -> None:
    held, _ = one(6, 5, 2)
    g = RNG.normal(size=(2, 6)).T
    wanted = held.solve(g.copy())
    g.flags.writeable = False
    for given in (g, g.tolist(), np.ma.array(g), g.astype(np.longdouble)):
        found = held.solve(given)
        assert type(found) is np.ndarray
        np.testing.assert_allclose(found, wanted, 1e-12)
    for given in (g * 1j, g.astype(object), "g", None):
        with pytest.raises(TypeError, match="real numbers"):
            held.solve(given)


@pytest.mark.parametrize("build", [lambda: one(50, 5, 2), both])
def test_threads_solve_one_object_with_different_damping(build: Any) -> None:
    held, g = build()
    held = held + 20.0 * tc.identity_like(held)
    wanted = [flat((held.solve(g, damping=d),)) for d in (0.0, 1.0, 2.0)]

    def job(k: int) -> bool:
        assert "solve: " in held.explain()
        return np.array_equal(flat((held.solve(g, damping=float(k % 3)),)), wanted[k % 3])

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(job, range(300)))


def test_an_interrupt_leaves_the_object_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    held, g = one(6, 5, 2)
    wanted = held.solve(g, damping=1)

    def stopped(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tcalc.structured.tensor.factor", stopped)
        with pytest.raises(KeyboardInterrupt):
            held.solve(g)
    np.testing.assert_array_equal(held.solve(g, damping=1), wanted)
    np.testing.assert_allclose(held @ held.solve(g), g)
    assert choose.solve_methods(held.terms.layout, 8)


def test_copies_and_pickles_of_everything() -> None:
    for held, g in (one(6, 5, 2), both()):
        wanted = flat((held.solve(g, damping=3),))
        for again in (copy.copy(held), copy.deepcopy(held), pickle.loads(pickle.dumps(held))):
            np.testing.assert_array_equal(flat((again.solve(g, damping=3),)), wanted)
        factor = pickle.loads(pickle.dumps(held.factor(3)))
        np.testing.assert_allclose(flat((factor.solve(g),)), wanted, 1e-12)


@pytest.mark.parametrize("order", [1, 3, 4])
def test_other_orders_multiply_and_do_not_solve(order: int) -> None:
    x = tc.var("x", "n")
    D = tc.derivative(tc.sum(tc.exp(x)) * tc.sum(x), x, order)
    held, data = tc.compile(D, structured=True)(x=np.arange(3.0)), {"x": np.arange(3.0)}
    np.testing.assert_allclose(held @ np.arange(3.0), D(data) @ np.arange(3.0))
    rhs = np.ones((3,) * (order - 1))
    for call in (lambda: held.solve(rhs), held.inverse, held.slogdet, held.factor, held.diagonal):
        with pytest.raises(tc.ShapeError, match="square"):
            call()


def test_large_tensors_stay_inside_the_limit() -> None:
    f, x = factorisation(False)
    n = 200_000
    data = {"T": np.ones((n, 3)), "U": np.ones((n, 2)), "V": RNG.normal(size=(3, 2))}
    held = tc.compile(tc.hessian(f, x), structured=True, memory_limit="200MB")(data)
    for call in (held.todense, held.tomatrix):
        with pytest.raises(tc.MemoryLimitError, match=r"1\.16 TiB"):
            call()
    assert held.solve(data["U"]).shape == held.inverse().diagonal().shape == (n, 2)
    pair = tc.compile(tc.hessian(f, ("U", "V")), structured=True, memory_limit="200MB")(data)
    with pytest.raises(tc.MemoryLimitError, match=r"1\.16 TiB"):
        pair.todense()
    shifted = pair + 1e6 * tc.identity_like(pair)
    found = shifted.solve((data["U"], data["V"]))
    np.testing.assert_allclose(flat(shifted @ found), flat((data["U"], data["V"])), 1e-9)
    assert shifted.inverse().diagonal()[0].shape == (n, 2)


def test_cores_of_integers_solve() -> None:
    layout = TensorLayout((2, 2), 1, [CoreProduct(((0, (0, 1)),), (0, 1), (2, 2))])
    held = Structured(Terms(layout, (np.array([[2, 1], [1, 3]]),), (1.0,)))
    np.testing.assert_allclose(held.solve([1.0, 2.0]), [0.2, 0.6])


def test_operators_of_nothing_multiply() -> None:
    held, _ = both(0, 0, 2)
    assert (held.to_scipy() @ np.zeros(0)).shape == (0,)


# --- no entries -----------------------------------------------------------------------------------

VIEWS: dict[str, Callable[[Any], Any]] = {
    "as it is": lambda e: e,
    "zeros behind": lambda e: tc.pad(e, (0, 2)),
    "zeros around": lambda e: tc.pad(e, (2, 1)),
    "numbers behind": lambda e: tc.pad(e, (0, 2), constant_values=1),
    "ones behind": lambda e: tc.concatenate([e, tc.ones(2)]),
    "reversed": lambda e: e[::-1],
    "twice": lambda e: tc.stack([e, 2 * e]),
    "summed": tc.cumsum,
}


@pytest.mark.parametrize("name", VIEWS)
def test_axes_without_entries(name: str) -> None:
    """Compressed Hessians are the dense ones, and solve, where an extent is 0."""
    x, X, w = tc.var("x", "n"), tc.var("X", ("n", "m")), tc.var("w", "m")
    view = VIEWS[name]
    rows = tc.sum(X * w, axis=1)
    losses = [
        (tc.sum(tc.exp(view(x)) ** 2), x),
        (tc.sum(view(x) ** 2) + tc.sum(view(x)), x),
        (tc.sum(tc.exp(view(rows))), w),
        (tc.sum(tc.exp(view(rows))), X),
    ]
    for loss, variable in losses:
        H = tc.hessian(loss, variable)
        step = tc.compile(H, structured=True)
        for n, m in ((0, 0), (0, 2), (1, 0), (3, 2)):
            data = {"x": np.arange(n) / 3, "X": np.arange(n * m).reshape(n, m) / 9, "w": np.ones(m)}
            data = {k: data[k] for k in H.variables}
            held, dense = step(**data), H(**data)
            np.testing.assert_allclose(held.todense(), dense, atol=1e-12)
            v = np.ones(dense.shape[: dense.ndim // 2])
            np.testing.assert_allclose(held @ v, np.tensordot(dense, v, v.ndim), atol=1e-12)
            assert held.diagonal().shape == v.shape
            assert (held + tc.identity_like(held)).solve(v).shape == v.shape


@pytest.mark.parametrize("least", [1.0, 1e-8, 1e-14, 1e-20, 1e-40])
def test_updates_of_nearly_singular_diagonals_keep_their_digits(least: float) -> None:
    """A vector on a diagonal: the whole is well conditioned wherever the diagonal is not."""
    rng, n = np.random.default_rng(0), 200
    diagonal, outer = ((0, (0,)),), ((1, (0,)), (1, (1,)))
    terms = [CoreProduct(diagonal, (0, 0), (n,)), CoreProduct(outer, (0, 1), (n, n))]
    d, w, b = rng.uniform(1, 2, n), rng.normal(size=n), rng.normal(size=(n, 1))
    d[0] = least
    solver, method = choose.factor(Terms(TensorLayout((n, n), 1, terms), [d, w], [1.0, 1.0]), None)
    assert ("low rank" in method.text) == (least > 1e-12)
    wanted = np.linalg.solve(np.diag(d) + np.outer(w, w), b)
    np.testing.assert_allclose(solver.solve(b), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shift", [1.0, -3.0])
def test_signs_of_nearly_symmetric_matrices_are_those_of_their_symmetric_parts(
    shift: float,
) -> None:
    a = np.random.default_rng(1).normal(size=(6, 6))
    nearly = a @ a.T + shift * np.eye(6)
    nearly[0, 1] += 1e-8
    least = np.linalg.eigvalsh((nearly + nearly.T) / 2)[0]
    assert (Dense(nearly, "the matrix").negatives == 0) == (least > 0) == (shift > 0)
    nearly[0, 1] += 1
    assert Dense(nearly, "the matrix").negatives != 0


# --- arrays of a device ---------------------------------------------------------------------------


class Names:
    """NumPy and SciPy under the names that libraries for devices have."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def errstate(self, **options: Any) -> Any:
        return nullcontext()

    def solve_triangular(self, a: Any, b: Any, **options: Any) -> Any:
        if a.ndim == 2:
            return scipy.linalg.solve_triangular(a, b, **options)
        each = [scipy.linalg.solve_triangular(m, c, **options) for m, c in zip(a, b, strict=True)]
        return np.stack(each)


def of_eigenvalues(*values: float) -> Any:
    """A symmetric matrix with these eigenvalues."""
    q = np.linalg.qr(np.random.default_rng(3).normal(size=(len(values),) * 2))[0]
    a = q * values @ q.T
    return (a + a.T) / 2


SKEW = np.tri(3, k=-1) - np.tri(3, k=-1).T
GOOD, BAD = of_eigenvalues(1, 2, 5), of_eigenvalues(-1, 2, 5)
#: Matrices; are they definite but for rounding, and what are they solved with?
REGULAR: dict[str, tuple[Any, bool, str]] = {
    "definite": (GOOD, True, "Cholesky"),
    "nearly symmetric": (GOOD + 1e-7 * SKEW, True, "LU"),
    "not so nearly": (GOOD + 1e-3 * SKEW, False, "LU"),
    "indefinite": (BAD, False, "LU"),
    "nearly symmetric, indefinite": (BAD + 1e-7 * SKEW, False, "LU"),
    "general": (GOOD + SKEW, False, "LU"),
    "ill conditioned": (of_eigenvalues(-1, 1e-9, 5), False, "LU"),
    "pivots far apart": (np.diag([1e-15, 1.0, 1.0]), True, "LU"),
    "several": (np.stack([GOOD, np.eye(3)]), True, "Cholesky"),
    "one is indefinite": (np.stack([GOOD, BAD]), False, "LU"),
    "none": (np.zeros((0, 0)), True, "Cholesky"),
}
LOST = np.diag([1.0, 0.0, 2.0])
NO_INVERSE: dict[str, tuple[Any, str]] = {
    "singular": (LOST, "^it is singular; "),
    "ill conditioned": (of_eigenvalues(-1, 1e-17, 1), r"^it is singular \(reciprocal condition "),
    "the second": (np.stack([BAD, LOST]), "^it 1 is singular; "),
    "the second, ill conditioned": (
        np.stack([BAD, of_eigenvalues(-1, 1e-17, 1)]), r"^it 1 is singular \(rec",
    ),
    "not finite": (np.full((3, 3), np.nan), "^it has entries that are not finite"),
}  # fmt: skip


@pytest.fixture
def by_names(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], ByNames]:
    monkeypatch.setattr("tcalc.structured.solvers.by_names.namespace_of", lambda array: Names())
    return lambda a: ByNames(a, "it")


@pytest.mark.parametrize("name", REGULAR)
def test_factors_by_names_are_numpys(name: str, by_names: Callable[[Any], ByNames]) -> None:
    a, definite, kind = REGULAR[name]
    found, b = by_names(a), np.random.default_rng(0).normal(size=(*a.shape[:-1], 2))
    assert (found.kind, not np.sum(found.negatives)) == (kind, definite)
    digits = 4e-15 * np.max(np.linalg.cond(a), initial=1) if a.size else 0
    for got, wanted in (
        (found.solve(b), np.linalg.solve(a, b)),
        (found.inverse(), np.linalg.inv(a)),
    ):
        np.testing.assert_allclose(got, wanted, atol=digits * abs(wanted).max(initial=0))
    sums = a.sum(axis=-1, keepdims=True)  # a residual is small whatever the condition
    np.testing.assert_allclose(a @ found.solve(sums), sums, rtol=0, atol=1e-13)
    assert found.solve(b[..., :0]).shape == (*a.shape[:-1], 0)
    for part, wanted in zip(found.slogdet(), np.linalg.slogdet(a), strict=True):
        np.testing.assert_allclose(part, wanted, rtol=1e-13, atol=1e-14)
        assert isinstance(part, float) == (a.ndim == 2)
    if kind == "Cholesky":
        assert (found.inverse() == found.inverse().mT).all()


@pytest.mark.parametrize("name", NO_INVERSE)
def test_singular_matrices_by_names_are_told(name: str, by_names: Callable[[Any], ByNames]) -> None:
    a, words = NO_INVERSE[name]
    with pytest.raises(np.linalg.LinAlgError, match=words):
        by_names(a)


@pytest.mark.parametrize("sizes", [(3, 3, 2), (3, 3, 3), (2, 2, 5), (2, 3, 2)])
def test_signs_of_products_whose_axes_change_places(sizes: tuple[int, ...]) -> None:
    """Rows of a Kronecker product in another order than its columns: exchanges that may be odd."""
    cores = [RNG.normal(size=(n, n)) for n in sizes]
    X = tc.var("X", sizes)
    for out in ("ijk", "jik") if sizes[0] == sizes[1] else ("ijk", "kji"):
        mapped = tc.einsum(f"ia,jb,kc,abc->{out}", *cores, X)
        held = tc.compile(tc.jacobian(mapped, X), structured=True)()
        sign, log = np.linalg.slogdet(held.todense().reshape(np.prod(sizes), -1))
        assert held.slogdet() == pytest.approx((sign, log))
