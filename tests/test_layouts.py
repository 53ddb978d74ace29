"""Many small arrays: computed with the long axis last, tile by tile, as a few are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.run.backends import BACKENDS
from tests.shared import plan_for_machine

#: So many rows that layouts are chosen for them and loops run, and so few that neither is done.
MANY, FEW = 3011, 37


def jacobian(x):
    """Windows, cross products, norms, quotients and placements of derivatives."""
    a, b, c = x[:, :3], x[:, 3:6], x[:, 6:7]
    turned = tc.cross(a, b) / tc.norm(a, axis=1)[:, None] + c * b
    seen = turned[:, :2] / (2 + turned[:, 2:] ** 2)
    return tc.einsum("oaoi->oai", tc.jacobian(seen, x))


def gram(x):
    """Blocks of sums over a few entries."""
    blocks = tc.reshape(x[:, :6], (x.shape[0], 2, 3))
    return tc.einsum("nij,nkj,nk->nik", blocks, tc.exp(blocks), x[:, 5:])


def softmax(x):
    """Reductions of every row, broadcast over it again."""
    shares = tc.exp(x - tc.logsumexp(x, axis=1)[:, None])
    return shares * tc.sum(shares * x, axis=1)[:, None]


def totals(x):
    """Sums over the long axis, and products with both sides of it."""
    rows = x[:, 1:4] * x[:, :1]
    return [tc.sum(rows, axis=0), rows.T @ tc.tanh(x[:, 2:5]), tc.sum(rows * x[:, 4:])]


EACH = [jacobian, gram, softmax]


@pytest.fixture(params=["whole", "tiles"])
def tiles(request, monkeypatch):
    """Loops wherever they can be, with an incomplete last tile."""
    if request.param == "tiles":
        plan_for_machine(monkeypatch, large=64, tile=1 << 11, wide_tile=1 << 12)


@pytest.fixture(params=BACKENDS)
def backend(request):
    return request.param


def rows(width, dtype):
    return np.random.default_rng(0).uniform(0.5, 1.5, (MANY, width)).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("function", EACH)
def test_many_rows_are_as_few_rows(function, dtype, tiles, backend):
    x = tc.var("x", ("n", 7))
    step, data = tc.compile(function(x), backend=backend), rows(7, dtype)
    found = step(x=data)
    expected = np.concatenate([step(x=data[k : k + FEW]) for k in range(0, MANY, FEW)])
    assert found.dtype == expected.dtype
    tolerance = 1e-12 if dtype is np.float64 else 1e-4
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)
    if backend != "auto":  # where C takes over at any call, with other last digits
        np.testing.assert_array_equal(found, step(x=data))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_totals_of_many_rows(dtype, tiles, backend):
    step = tc.compile(totals(tc.var("x", ("n", 5))), backend=backend)
    data = rows(5, dtype)
    parts = [step(x=data[k : k + FEW]) for k in range(0, MANY, FEW)]
    for found, *pieces in zip(step(x=data), *parts, strict=True):
        assert found.dtype == dtype
        tolerance = 1e-12 if dtype is np.float64 else 1e-4
        np.testing.assert_allclose(found, sum(pieces), rtol=tolerance)


def test_small_vectors_are_computed_along_the_long_axis():
    step = tc.compile(jacobian(tc.var("x", ("n", 7))))
    plan = str(step.plan_for(x=(100_000, 7)))
    assert plan.count("rows at a time") == 1
    assert "100000×2×3\n" not in plan.split("rows at a time")[0]


def test_products_with_thin_matrices_stay_in_the_loop():
    loss = tc.parse("sum(log(U*V) + A ./ (U*V))", U=("n", "k"), V=("k", "m"), A=("n", "m"))
    shapes = {"A": (1000, 1000), "U": (1000, 5), "V": (5, 1000)}
    gradient = tc.compile(tc.grad(loss, "U"))
    assert gradient.plan_for(**shapes).peak_bytes < 4 * 2**20
    product = tc.compile(tc.hvp(loss, "U", tc.var("P", ("n", "k"))))
    assert product.plan_for(**shapes, P=(1000, 5)).peak_bytes < 4 * 2**20


@pytest.mark.parametrize("n", [128, 160, 300])
def test_half_a_product_of_rows_of_a_loop(n, backend):
    """The other half is multiplied by zeros; the rows come from a loop over many columns."""
    Z, A = tc.var("Z", ("n", "w")), tc.var("A", ("n", "k"))
    B, M = tc.var("B", ("k", "n")), tc.var("M", ("n", "n"))
    weights = tc.sum(tc.exp(Z), axis=1)[:, None]
    step = tc.compile(((A * weights) @ B) * tc.linalg.cholesky(M), backend=backend)
    rng = np.random.default_rng(0)
    z, a, b = rng.normal(size=(n, 2000)), rng.normal(size=(n, 100)), rng.normal(size=(100, n))
    root = np.tril(rng.uniform(0.5, 1, (n, n))) + n * np.eye(n)
    expected = ((a * np.exp(z).sum(1)[:, None]) @ b) * root
    found = step(Z=z, A=a, B=b, M=root @ root.T)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11 * abs(expected).max())


#: Two operands that hold two summed labels in opposite orders, at tails of blocks and none.
CROSSED = ("ipj,jqi->pq", "ipj,iqj->qp", "pij,jqri->prq", "jpi,iqj->pq", "ijp,jqi->pq")
EXTENTS = {"i": 150, "j": 256, "p": 3, "q": 5, "r": 2}


@pytest.mark.parametrize("backend", ["numpy", "c", "functional"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("spec", CROSSED)
def test_products_over_axes_in_opposite_orders(spec, dtype, backend):
    rng = np.random.default_rng(5)
    words = spec.partition("->")[0].split(",")
    data = {
        name: rng.normal(size=tuple([EXTENTS[k] for k in word])).astype(dtype)
        for name, word in zip("xy", words, strict=True)
    }
    x, y = [tc.var(name, a.shape) for name, a in data.items()]
    step = tc.compile(tc.einsum(spec, x, y), backend=backend)
    crossed = "crossed" in {s.kind for s in step.plan_for().steps}
    assert crossed == (spec in ("ipj,jqi->pq", "jpi,iqj->pq", "pij,jqri->prq"))
    right = np.einsum(spec, *[a.astype(np.float64) for a in data.values()])
    tolerance = 400 * np.finfo(dtype).eps * 200
    np.testing.assert_allclose(step(**data), right, atol=tolerance, rtol=0)


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("n", [256, 259, 320])
def test_products_with_the_same_array_turned(n, backend):
    """Blocks on one side of the diagonal are enough."""
    a = np.random.default_rng(6).normal(size=(n, 3, n))
    x = tc.var("x", a.shape)
    for spec in ("ipj,jqi->pq", "jpi,iqj->qp"):
        step = tc.compile(tc.einsum(spec, x, x), backend=backend)
        assert "crossed" in {s.kind for s in step.plan_for().steps}
        np.testing.assert_allclose(step(x=a), np.einsum(spec, a, a, optimize=True), atol=1e-9)


# --- functions of axes ---------------------------------------------------------------------------

L = tc.linalg
#: Functions of three axes and of matrices in the last two, each of which has a form in C.
OF_AXES: list[Any] = [
    *[lambda v, f=f, a=a: f(v, axis=a) for f in (tc.max, tc.min, tc.logsumexp, L.norm)
      for a in (0, 1, 2, (0, 1), (1, 2))],
    lambda v: v @ v, lambda v: v @ v.transpose(0, 2, 1), lambda v: v[0] @ v[1],
    lambda v: v[0].T @ v[0], lambda v: v @ v[0, 0], lambda v: v[1, :, 0] @ v,
    lambda v: tc.sum(v * v[::-1], 2),
    lambda v: tc.einsum("aij,bjk->abik", v, v),
    lambda v: tc.einsum("aij,jib->ab", v, v.transpose(2, 1, 0)),
    lambda v: L.inv(v), lambda v: L.det(v), lambda v: L.logdet(v), lambda v: L.adj(v),
    lambda v: L.cholesky(v @ v.transpose(0, 2, 1)), lambda v: L.tri_inverse(tc.tril(v)),
    lambda v: L.logdet(v @ v.transpose(0, 2, 1)), lambda v: L.lq(v)[0], lambda v: L.lq(v[0])[1],
    lambda v: L.eigh(v + v.transpose(0, 2, 1))[0], lambda v: abs(L.eigh(v[1] + v[1].T)[1]),
    lambda v: tc.sum((v[0][:, None] - v[1]) ** 2, -1), lambda v: tc.triu(v),
    lambda v: tc.diagonal(v, 0, 1, 2),
]  # fmt: skip
#: Numbers of them, of which derivatives are taken.
OF_ALL: list[Any] = [
    *[lambda v, f=f, a=a: tc.sum(tc.sin(f(v, axis=a))) for f in (tc.max, tc.min, L.norm)
      for a in (0, 1, 2, (1, 2), (0, 2))],
    lambda v: tc.sum(L.det(v)), lambda v: tc.sum(L.cholesky(v @ v.transpose(0, 2, 1)) ** 3),
    lambda v: tc.sum(L.eigh(v + v.transpose(0, 2, 1))[0] ** 3),
]  # fmt: skip
#: Ways in which an array lies in memory, all of extents 3, 4 and 4.
LYING: dict[str, tuple[tuple[int, ...], Any]] = {
    "in order": ((3, 4, 4), lambda x: x),
    "columns": ((3, 4, 4), lambda x: x.transpose(0, 2, 1)),
    "items last": ((4, 4, 3), lambda x: x.transpose(2, 0, 1)),
    "items between": ((4, 3, 4), lambda x: x.transpose(1, 2, 0)),
    "every second": ((6, 8, 8), lambda x: x[::2, 1::2, ::2]),
    "rows of more": ((3, 6, 7), lambda x: x[:, 1:5, 2:6]),
    "backwards": ((3, 4, 4), lambda x: x[::-1, ::-1, ::-1]),
}


@pytest.mark.parametrize("name", LYING)
def test_functions_of_axes_however_they_lie(name: str) -> None:
    """By C of a view, and by NumPy of the copy."""
    shape, view = LYING[name]
    data = np.random.default_rng(7).normal(size=shape)
    X, Y = tc.var("X", shape), tc.var("Y", (3, 4, 4))
    both = []
    for x, v, backend in ((X, view(X), "c"), (Y, Y, "numpy")):
        results = [[f(v) for f in OF_AXES], [tc.grad(f(v), x) for f in OF_ALL]]
        given = {"X": data} if x is X else {"Y": np.ascontiguousarray(view(data))}
        both.append(tc.compile(results, backend=backend)(**given))
    (found, gradients), (wanted, slopes) = both
    for slope in slopes:
        whole = np.zeros(shape)
        view(whole)[...] = slope
        wanted.append(whole)
    for k, (one, other) in enumerate(zip([*found, *gradients], wanted, strict=True)):
        size = abs(other).max()
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10 * size, err_msg=str(k))
