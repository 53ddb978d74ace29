"""Plans compiled by the system's C compiler: the same numbers, whatever way arrays lie.

Cases that all back ends run are in `test_backends`.
"""

from __future__ import annotations

import itertools
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c.rows import entry
from tcalc.graph.applications import apply
from tcalc.graph.operators import TABLE
from tests.shared import in_turn
from tests.test_backends import failure

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, np.inf, -np.inf, np.nan, 1e-30, 3.7, -2.3, 710.0, 20.0]


def compiled(outputs: Any, **options: Any) -> Any:
    return tc.compile(outputs, backend="c", **options)


# --- entries ------------------------------------------------------------------------------------


ELEMENTWISE = [row for row in TABLE.values() if row.elementwise and row.core]
#: Entrywise rows that C has no text for: special functions that its library lacks.
BY_KERNEL = {
    "beta", "betainc", "betaln", "digamma", "erfcinv", "erfinv", "gamma", "gammainc", "gammaincc",
    "gammasgn", "inverse_mills", "iv", "ive", "jv", "kv", "log_ndtr", "logit", "ndtri", "polygamma",
    "rgamma", "spherical_jn", "stdtr", "yv",
}  # fmt: skip


def test_rows_without_c_are_listed() -> None:
    assert {row.name for row in ELEMENTWISE if not entry(row)} == BY_KERNEL


@pytest.mark.parametrize("name", sorted({row.name for row in ELEMENTWISE} - BY_KERNEL))
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_entries(name: str, dtype: type) -> None:
    """Rows as C against their kernels, at special values too: a few roundings apart."""
    row = TABLE[name]
    drawn = np.random.default_rng(0).uniform(0.1, 0.9, 40)
    points = [np.concatenate([SPECIAL, drawn]).astype(dtype)] * len(row.core)
    arrays = [np.ascontiguousarray(a).ravel() for a in np.meshgrid(*points, indexing="ij")]
    variables = [tc.var(f"x{k}", "n") for k in range(len(arrays))]
    given = {f"x{k}": a for k, a in enumerate(arrays)}
    # A scaled copy, so that there is something to fuse.
    e = 2 * apply(row, *variables)
    found, wanted = compiled(e)(**given), tc.compile(e)(**given)
    np.testing.assert_allclose(found, wanted, rtol=64 * np.finfo(dtype).eps, atol=1e-300)
    zero = (found == 0) & (wanted == 0)
    np.testing.assert_array_equal(np.signbit(found[zero]), np.signbit(wanted[zero]))


#: Functions made of exp(-|x|), by mpmath with enough digits for a sum of 1 and the least number.
OF_DECAY: dict[str, Any] = {
    "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
    "softplus": lambda x: mp.log1p(mp.exp(x)),
    "sech": mp.sech,
    "tanh": mp.tanh,
}


@pytest.mark.parametrize("name", OF_DECAY)
def test_functions_of_an_exponential_are_right_to_three_units(name: str) -> None:
    """Near 0, where pieces of polynomials meet, and down to numbers below normal ones."""
    rng = np.random.default_rng(5)
    sizes = np.array([5e-324, 1e-310, 1e-300, 1e-17, 36.7, 708.4, 709.8, 720.3, 744.4, 745.2, 1e10])
    meet = np.log([2**0.5, 2**0.5 - 1, 2**1.5, 0.5])
    near = np.add.outer(meet, rng.normal(size=20) * 1e-3).ravel()
    drawn = np.concatenate([rng.normal(size=60) * scale for scale in (1e-3, 0.1, 1, 4, 40)])
    points = np.concatenate([sizes, near, drawn])
    points = np.concatenate([points, -points])
    found = compiled(apply(TABLE[name], tc.var("x", "n")))(x=points)
    with mp.workprec(1200):
        for x, value in zip(points, found, strict=True):
            wanted = OF_DECAY[name](mp.mpf(float(x)))
            assert abs(float(value) - wanted) <= 3 * np.spacing(abs(float(wanted))), (x, value)


def test_hyperbolic_tangents_do_not_pass_1() -> None:
    x = tc.var("x", "n")
    points = np.linspace(-25, 25, 100_001)
    tanh = compiled(tc.tanh(x))
    found = tanh(x=points)
    assert np.abs(found).max() == 1
    assert (np.diff(found) >= 0).all()
    np.testing.assert_array_equal(found, -tanh(x=-points))


def test_functions_of_an_exponential_are_the_same_alone_and_together() -> None:
    """Whatever they share; in a vector C's library may round another way."""
    x = tc.var("x", "n")
    outputs = [tc.sigmoid(x), tc.sigmoid(-x), tc.softplus(x), tc.sech(x), tc.tanh(x)]
    points = np.random.default_rng(6).normal(size=67) * 3
    together = compiled(outputs)(x=points)
    for output, whole in zip(outputs, together, strict=True):
        alone = compiled(output)
        np.testing.assert_array_equal(alone(x=points), whole)
        one_by_one = np.concatenate([alone(x=p[None]) for p in points])
        np.testing.assert_allclose(one_by_one, whole, rtol=1e-15)


def test_products_are_rounded_before_they_are_added() -> None:
    """Differences that are zero stay so, and roots of them are no nan."""
    a, b = tc.var("a", "n"), tc.var("b", "n")
    values = np.random.default_rng(0).uniform(0.1, 10, 1000)
    for e in (tc.sqrt(a * a - b * b), tc.sign(a * b - a * a), 3 * (b * b - a * a)):
        np.testing.assert_array_equal(compiled(e)(a=values, b=values.copy()), 0)


# --- arrays ---------------------------------------------------------------------------------------


def layouts(a: np.ndarray) -> list[np.ndarray]:
    """The same array, lying in memory in different ways."""
    wide = np.zeros([2 * n + 1 for n in a.shape])
    wide[tuple([slice(1, None, 2)] * a.ndim)] = a
    flipped = np.ascontiguousarray(a[::-1])
    packed = np.zeros(a.shape, [("one", "i1"), ("x", "f8")])["x"]
    packed[...] = a
    spaced = wide[tuple([slice(1, None, 2)] * a.ndim)]
    return [a, np.asfortranarray(a), spaced, flipped[::-1], packed]


@pytest.mark.parametrize("shape", [(5, 3), (1, 7), (7, 1), (70, 40), (33, 129)])
def test_layouts(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    X, y = tc.var("X", ("m", "n")), tc.var("y", ("n",))
    f = tc.sum(tc.exp(-0.1 * (X - y) ** 2) @ y) + tc.sum(X.T @ X)
    step, wanted = compiled(tc.value_and_grad(f, "X")), tc.compile(tc.value_and_grad(f, "X"))
    x, v = rng.normal(size=shape), rng.normal(size=shape[1])
    value, gradient = wanted(X=x, y=v)
    for a, b in itertools.product(layouts(x), layouts(v)):
        before = a.copy(), b.copy()
        found = step(X=a, y=b)
        np.testing.assert_allclose(found[0], value, rtol=1e-12)
        np.testing.assert_allclose(found[1], gradient, rtol=0, atol=1e-12 * abs(gradient).max())
        np.testing.assert_array_equal(a, before[0])
        np.testing.assert_array_equal(b, before[1])
        assert found[1].flags.writeable


@pytest.mark.parametrize("seed", range(24))
def test_products(seed: int) -> None:
    """Einsums of two and three operands with extents around those of tiles and pieces."""
    rng = np.random.default_rng(seed)
    extents = dict(zip("ijkl", map(int, rng.choice([1, 2, 3, 31, 32, 33, 64, 70], 4)), strict=True))
    words = ["".join(rng.permutation(list("ijkl"))[: rng.integers(1, 4)]) for _ in range(3)]
    words = words[: int(rng.integers(2, 4))]
    labels = sorted(set("".join(words)))
    out = "".join(rng.permutation(labels)[: rng.integers(0, min(3, len(labels)) + 1)])
    spec = f"{','.join(words)}->{out}"
    arrays = [rng.normal(size=[extents[c] for c in word]) for word in words]
    turned = [np.asfortranarray(a) if k % 2 else a for k, a in enumerate(arrays)]
    variables = [tc.var(f"x{k}", tuple(word)) for k, word in enumerate(words)]
    step = compiled({"e": tc.einsum(spec, *variables), "f": 2 * tc.einsum(spec, *variables) + 1})
    found = step({f"x{k}": a for k, a in enumerate(turned)})
    wanted = np.einsum(spec, *arrays)
    scale = max(1.0, abs(wanted).max(initial=0))
    np.testing.assert_allclose(found["e"], wanted, rtol=0, atol=1e-12 * scale)
    np.testing.assert_allclose(found["f"], 2 * wanted + 1, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(3, 4, 5), (40, 1, 50), (2, 64, 65)])
def test_sums(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    x = tc.var("x", ("a", "b", "c"))
    values = np.random.default_rng(0).normal(size=shape)
    step = compiled((tc.sum(tc.cos(x), axis=axes), tc.sum(tc.cos(x) * x, axis=axes), tc.cos(x)))
    turned = values.transpose(2, 0, 1).copy().transpose(1, 2, 0)
    for array in (values, np.asfortranarray(values), turned):
        first, second, third = step(x=array)
        np.testing.assert_allclose(first, np.cos(values).sum(axes), atol=1e-12 * values.size)
        np.testing.assert_allclose(second, (np.cos(values) * values).sum(axes), atol=1e-10)
        np.testing.assert_allclose(third, np.cos(values), rtol=1e-14)


@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (1, 2), (0, 1, 2)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_reductions(axes: tuple[int, ...], dtype: type) -> None:
    x = tc.var("x", ("a", "b", "c"))
    functions = {
        "max": tc.max, "min": tc.min, "norm": tc.norm, "logsumexp": tc.logsumexp,
        "hardmax": tc.hardmax, "hardmin": tc.hardmin,
    }  # fmt: skip
    wanted = {
        name: 2 * f(tc.sin(x), axis=axes)
        for name, f in functions.items()
        if name != "norm" or len(axes) < 3
    }
    step, numpy = compiled(wanted), tc.compile(wanted)
    values = np.random.default_rng(0).normal(size=(4, 5, 40)).astype(dtype)
    special = values.copy()
    special[1, 2, 3], special[2, 3, 4], special[3, 3, 3] = np.nan, np.inf, -np.inf
    for array in (values, np.asfortranarray(values), special):
        for found, value in zip(step(x=array).values(), numpy(x=array).values(), strict=True):
            assert found.dtype == dtype
            np.testing.assert_allclose(found, value, rtol=100 * np.finfo(dtype).eps)


def test_nothing_to_compute() -> None:
    x, y = tc.var("x", ("m", "n")), tc.var("y", ("n",))
    step = compiled({"a": tc.sum(tc.exp(x) @ y), "b": tc.exp(x) * 2 + y, "c": x.T @ x})
    found = step(x=np.zeros((0, 3)), y=np.ones(3))
    assert found["a"] == 0
    assert found["b"].shape == (0, 3)
    np.testing.assert_array_equal(found["c"], np.zeros((3, 3)))


def test_long_sums_keep_their_digits_in_single_precision() -> None:
    x = tc.var("x", "n")
    values = np.random.default_rng(0).uniform(size=60_000).astype(np.float32)
    total, product = compiled((tc.sum(tc.sqrt(x) * x), x @ tc.sqrt(x)))(x=values)
    wanted = np.sum(values.astype(float) ** 1.5)
    assert total.dtype == product.dtype == np.float32
    np.testing.assert_allclose([total, product], wanted, rtol=1e-7)


def test_shared_arrays_and_repeated_calls() -> None:
    """One array for two variables; results of an earlier call stay as they are."""
    x, y = tc.var("x", "n"), tc.var("y", "n")
    step = compiled((tc.exp(x) * y + x, tc.sin(y) - x))
    a = np.linspace(0, 1, 50)
    first = step(x=a, y=a)
    kept = [r.copy() for r in first]
    step(x=a + 1, y=a + 2)
    for result, copy in zip(first, kept, strict=True):
        np.testing.assert_array_equal(result, copy)
    np.testing.assert_allclose(first[0], np.exp(a) * a + a)


def test_in_place_chains() -> None:
    """Many temporaries that share blocks of the workspace, transposes among them."""
    rng = np.random.default_rng(0)
    X = tc.var("X", ("n", "n"))
    e = X
    for k in range(12):
        e = tc.tanh(e + 0.1 * e.T) * (1 + 0.1 * k) - tc.mean(e, axis=0) if k % 3 else e @ X + e.T
    for n in (1, 2, 5, 40):
        x = rng.normal(size=(n, n)) / n
        outputs = (e, tc.sum(e * e, axis=1), tc.jvp(e, X, X))
        for found, wanted in zip(compiled(outputs)(X=x), tc.compile(outputs)(X=x), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-12)


# --- matrices -------------------------------------------------------------------------------------


SIZES = (1, 2, 3, 8, 15, 16, 17, 33, 64, 65, 100, 129, 200, 257)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_cholesky_and_its_pullback(n: int, dtype: type) -> None:
    """Against the formula, with SciPy's solves (Seeger et al. 2017, section 3)."""
    from scipy.linalg import solve_triangular

    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n))
    a, c = root @ root.T / n + np.eye(n), rng.normal(size=(n, n))
    A, C = tc.var("A", ("n", "n")), tc.var("C", ("n", "n"))
    f = tc.sum(C * tc.linalg.cholesky(A))
    value, gradient = compiled(tc.value_and_grad(f, A))(A=a.astype(dtype), C=c.astype(dtype))
    factor = np.linalg.cholesky(a)
    m = np.tril(factor.T @ np.tril(c))
    m += np.tril(m, -1).T
    half = solve_triangular(factor, m, lower=True, trans=1)
    wanted = solve_triangular(factor, half.T, lower=True, trans=1).T / 2
    wanted = (wanted + wanted.T) / 2
    eps = np.finfo(dtype).eps * 1000 * max(n, 10)
    assert gradient.dtype == dtype
    np.testing.assert_allclose(value, np.sum(c * factor), rtol=0, atol=eps * n)
    np.testing.assert_allclose(gradient, wanted, rtol=0, atol=eps * abs(wanted).max())


@pytest.mark.parametrize("n", SIZES)
def test_triangular_solves(n: int) -> None:
    rng = np.random.default_rng(n)
    a = np.tril(rng.normal(size=(n, n))) + 3 * n**0.5 * np.eye(n)
    A = tc.var("A", ("n", "n"))
    for columns, trans in in_turn((0, 1, 2, 17, 130), (n % 2, 1 - n % 2)):
        shape = ("n",) if not columns else ("n", "k")
        b = rng.normal(size=(n, columns) if columns else n)
        B = tc.var("B", shape)
        step = compiled(2 * tc.linalg.solve_triangular(A, B, trans=trans, lower=True))
        for way in (np.asarray, np.asfortranarray):
            found = step(A=way(a), B=way(b))
            wanted = 2 * np.linalg.solve(a.T if trans else a, b)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-12 * abs(wanted).max())


@pytest.mark.parametrize("n", SIZES)
def test_inverses(n: int) -> None:
    """Of a definite matrix from its factor, and of a triangle, whose other half is not read."""
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n))
    a = root @ root.T / n + np.eye(n)
    A, L = tc.var("A", ("n", "n"), positive_definite=True), tc.var("L", ("n", "n"))
    inverse = compiled(tc.inv(A) * 2 + A)(A=a) - a
    np.testing.assert_allclose(inverse, inverse.T, rtol=0, atol=1e-15)
    np.testing.assert_allclose(inverse @ a, 2 * np.eye(n), rtol=0, atol=1e-12)
    factor = np.linalg.cholesky(a)
    read = factor + np.triu(np.full((n, n), 1e3), 1)
    found = compiled(tc.linalg.tri_inverse(L) + 1)(L=read) - 1
    np.testing.assert_array_equal(np.triu(found, 1), 0)
    np.testing.assert_allclose(found @ factor, np.eye(n), rtol=0, atol=1e-12)


@pytest.mark.parametrize("n", [1, 2, 64, 65, 130, 200])
def test_eigenvectors(n: int) -> None:
    """Second row of a matrix function by eigenvectors; gaps and signs are fused."""
    rng = np.random.default_rng(n)
    a, c = rng.normal(size=(2, n, n))
    a = a + a.T + 5 * np.diag(np.arange(n))
    A, C = tc.var("A", ("n", "n")), tc.var("C", ("n", "n"))
    U, w = tc.linalg.syevd(A)
    f = tc.sum(C * U) + tc.sum(w * w)
    found, wanted = compiled(tc.value_and_grad(f, A)), tc.compile(tc.value_and_grad(f, A))
    for one, other in zip(found(A=a, C=c), wanted(A=a, C=c), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-9 * abs(other).max())


def test_tall_products() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2300, 260)), rng.normal(size=(260, 2100))
    A, B = tc.var("A", ("m", "k")), tc.var("B", ("k", "n"))
    found = compiled((A @ B, A[:, 0]))(A=a, B=b)[0]
    np.testing.assert_allclose(found, a @ b, atol=1e-10)


@pytest.mark.parametrize(("m", "k", "n"), list(itertools.product((1, 3, 40, 130), repeat=3)))
def test_matrix_products(m: int, k: int, n: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(m, k)), rng.normal(size=(k, n))
    A, B = tc.var("A", ("m", "k")), tc.var("B", ("k", "n"))
    step = compiled((A @ B, (B.T @ A.T) * 2, tc.sum(A @ B, axis=0)))
    for x, y in itertools.product((a, np.asfortranarray(a)), (b, np.asfortranarray(b))):
        one, two, three = step(A=x, B=y)
        np.testing.assert_allclose(one, a @ b, atol=1e-12 * k)
        np.testing.assert_allclose(two, 2 * (a @ b).T, atol=1e-12 * k)
        np.testing.assert_allclose(three, (a @ b).sum(0), atol=1e-12 * k * m)


# --- errors and rare cases ------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 5, 40, 100, 260])
def test_indefinite_matrices_of_any_size(n: int) -> None:
    """Refused in place, wherever the pivot that is not positive stands."""
    rng = np.random.default_rng(n)
    A = tc.var("A", ("n", "n"))
    step = compiled(2 * tc.linalg.cholesky(A))
    for _ in range(10):
        q, _ = np.linalg.qr(rng.normal(size=(n, n)))
        values = rng.uniform(0.5, 2, n)
        values[rng.integers(n)] = -rng.uniform(1e-6, 1)
        a = (q * values) @ q.T
        assert failure(lambda a=a: step(A=a)) == (
            "cholesky: the matrix is not positive definite, in cholesky(A)"
        )


def test_ties_are_left_to_numpy() -> None:
    A = tc.var("A", ("n", "n"))
    for kind in ("nan", "epsilon"):
        _, v = tc.linalg.eigh(A, degenerate=kind)
        e = tc.grad(tc.sum(tc.exp(v[0])), A)
        a = np.diag([1.0, 1.0, 2.0])
        np.testing.assert_allclose(compiled(e)(A=a), tc.compile(e)(A=a), rtol=1e-6)
    U, _ = tc.linalg.syevd(A)
    a = np.array([[0.0, 1.0], [1.0, 0.0]])  # entries of equal magnitude in every eigenvector
    np.testing.assert_allclose(compiled(2 * U + 1)(A=a), tc.compile(2 * U + 1)(A=a))


def test_many_layouts_are_left_to_numpy() -> None:
    x = tc.var("x", ("m", "n"))
    step = compiled(tc.sum(tc.exp(x) * 2, axis=0))
    base = np.random.default_rng(0).normal(size=(400, 20))
    for stride in range(1, 14):
        a = base[::stride][:20]
        np.testing.assert_allclose(step(x=a), 2 * np.exp(a).sum(0))
