"""Functions of LQ factors that depend on the rows' space only: derived and planned without Q."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import tcalc as tc
from benchmarks.problems.linear_regression import LQ, simulated
from tcalc.graph.normal import bare, einsum
from tcalc.ops.matrix.row_spaces import (
    DUAL,
    INVERSE,
    PROJECTOR,
    VOLUME,
    from_factors,
    row_space,
    row_space_row,
)
from tcalc.plan.steps import Plan
from tcalc.rules.row_spaces import of_factors
from tests.test_operators import differences

L = tc.linalg
M, t, C, y = tc.var("M", ("n", "k")), tc.var("t", "k"), tc.var("C", ("n", "k")), tc.var("y", "n")


def lq_and_inverse(a: tc.Expr) -> tuple[tc.Expr, tc.Expr, tc.Expr]:
    factor, q = L.lq(a)
    return factor, q, L.tri_inverse(factor)


def of_qr(a: tc.Expr) -> tc.Expr:
    q, r = L.qr(a.T)
    return tc.sum(tc.log(tc.diag(r))) - tc.sum((q.T @ t) ** 2)


def of_lq(build: Callable[[tc.Expr, tc.Expr, tc.Expr], tc.Expr]) -> Callable[[tc.Expr], tc.Expr]:
    return lambda a: build(*lq_and_inverse(a))


#: Spellings of functions of the rows' space.
INVARIANT: dict[str, Callable[[tc.Expr], tc.Expr]] = {
    "log of the diagonal": of_lq(lambda l, q, x: L.sumlogdiag(l)),
    "the same, multiplied out": of_lq(lambda l, q, x: tc.sum(3 * tc.log(tc.diag(l)) + 1)),
    "projection": of_lq(lambda l, q, x: (q @ t) @ (q @ t)),
    "squares of a projection": of_lq(lambda l, q, x: tc.sum((q @ t) ** 2) ** 2),
    "residual": of_lq(lambda l, q, x: tc.sum((t - q.T @ (q @ t)) ** 2)),
    "solution of least norm": of_lq(lambda l, q, x: tc.sum(tc.sin(q.T @ (x @ y)))),
    "quadratic form": of_lq(lambda l, q, x: tc.sum((x @ y) ** 2)),
    "solves": of_lq(lambda l, q, x: tc.sum(L.solve_triangular(l, y, lower=True) ** 2)),
    "leverages": of_lq(lambda l, q, x: tc.sum(tc.exp(tc.sum(q * q, axis=0)) * t)),
    "dual basis": of_lq(lambda l, q, x: tc.sum(C * (x.T @ q) ** 2)),
    "by qr": of_qr,
}


def data(*names: str, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"M": (3, 5), "t": (5,), "C": (3, 5), "y": (3,)}
    return {name: rng.normal(size=shapes[name]) for name in shapes if name in names}


@pytest.mark.parametrize("name", INVARIANT)
def test_derivatives_are_those_of_the_values(name: str) -> None:
    f = INVARIANT[name](M)
    at = data(*f.variables)
    moved = lambda e: lambda a: e(**{**at, "M": a})  # noqa: E731
    gradient = tc.grad(f, M)
    wanted = differences(moved(f), at["M"], 1e-2 / 4)
    np.testing.assert_allclose(gradient(**at), wanted, rtol=1e-7, atol=1e-7 * abs(wanted).max())
    wanted = differences(moved(gradient), at["M"], 1e-2 / 4)
    for mode in ("reverse", "forward", "cross-country"):
        found = tc.hessian(f, M, mode)(**at)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6 * abs(wanted).max())
    np.testing.assert_allclose(
        tc.hvp(f, M, M)(**at), np.tensordot(wanted, at["M"], 2), atol=1e-5 * abs(wanted).max()
    )


@pytest.mark.parametrize("name", INVARIANT)
def test_derivatives_hold_no_mask(name: str) -> None:
    """The pullback through a triangle masks it; of what an orthogonal matrix leaves nothing is."""
    f = INVARIANT[name](M)
    for e in (tc.grad(f, M), tc.hessian(f, M)):
        assert "lower_half" not in str(e)
        assert "tril" not in tc.to_latex(e)


def test_batches_have_the_derivatives_of_their_items() -> None:
    N, at = tc.var("N", (4, 3, 5)), data("t")["t"]
    factor, q = L.lq(N)
    volumes = tc.sum(tc.log(tc.diagonal(factor, 0, -2, -1)), axis=-1)
    f = tc.sum(tc.sin(volumes)) + tc.sum((q @ at) ** 2)
    one, rows = L.lq(M)
    g = tc.grad(tc.sin(L.sumlogdiag(one)) + tc.sum((rows @ t) ** 2), M)
    items = np.random.default_rng(1).normal(size=(4, 3, 5))
    wanted = np.stack([g(M=item, t=at) for item in items])
    np.testing.assert_allclose(tc.grad(f, N)(N=items), wanted, rtol=1e-10, atol=1e-12)


# --- digits ---------------------------------------------------------------------------------------


def regression(design: tc.Expr, a: tc.Expr, b: tc.Expr) -> tc.Expr:
    """Of the design with columns scaled by exp(a r + b (1 - r))."""
    r = tc.var("r", "k")
    q, factor = L.gelqf(design * tc.exp(a * r + b * (1 - r)))
    return L.sumlogdiag(factor) - (q @ t) @ (q @ t) / 2


def test_a_badly_conditioned_matrix_keeps_its_digits() -> None:
    """Errors are of the matrix's condition, 1e7, where those by way of M M' would be of its square.

    Against 60 digits, where M M' has enough of them.
    """
    rng = np.random.default_rng(5)
    n, k, condition = 4, 9, 1e7
    left, right = np.linalg.qr(rng.normal(size=(n, n)))[0], np.linalg.qr(rng.normal(size=(k, n)))[0]
    design = left * np.geomspace(1, 1 / condition, n) @ right.T
    r, target = rng.uniform(size=k), rng.normal(size=k)

    def exact(a: Any, b: Any) -> Any:
        scales = [mp.exp(a * x + b * (1 - x)) for x in map(mp.mpf, r.tolist())]
        rows = mp.matrix(design.tolist()) * mp.diag(scales)
        gram, right = rows * rows.T, rows * mp.matrix(target.tolist())
        return mp.log(mp.det(gram)) / 2 - (right.T * mp.lu_solve(gram, right))[0] / 2

    a, b = tc.var("a"), tc.var("b")
    f = regression(tc.var("D", ("n", "k")), a, b)
    at = {"D": design, "r": r, "t": target, "a": np.array(0.3), "b": np.array(-0.4)}
    wanted = {"value": f, "by a": tc.grad(f, a), "by a and b": tc.hessian(f, (a, b))[0][1]}
    orders = {"value": (0, 0), "by a": (1, 0), "by a and b": (1, 1)}
    with mp.workdps(60):
        for backend in ("numpy", "c"):
            found = tc.compile(wanted, backend=backend)(**at)
            for name, order in orders.items():
                point = (mp.mpf("0.3"), mp.mpf("-0.4"))
                true = mp.diff(exact, point, order) if sum(order) else exact(*point)
                assert abs(float(found[name] - true)) < 1e-8 * max(1, abs(float(true))), name


# --- operations -----------------------------------------------------------------------------------

N_ROWS = 120
FULL = simulated(N_ROWS).load(np.random.default_rng(0))


def plan_of(e: Any, backend: str = "numpy") -> Plan:
    function = tc.compile(e, backend=backend)
    leaf = bare(e) if isinstance(e, tc.Expr) else None
    names = leaf.variables if leaf is not None else LQ.expression({}).variables
    shapes = {name: np.shape(a) for name, a in FULL.items() if name in names}
    return function.plan_for(**shapes)


@pytest.mark.parametrize(
    ("quantity", "most"), [("value", 1.05), ("gradient", 1.6), ("hessian", 2.1)]
)
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_regression_takes_about_the_operations_of_code_by_hand(
    quantity: str, most: float, backend: str
) -> None:
    """One factorisation without Q, inv(L) M, and one weighted product of it with itself."""
    f, wrt = LQ.expression({}), tuple(map(tc.var, LQ.wrt))
    e = {"value": f, "gradient": tc.value_and_grad(f, wrt), "hessian": tc.hessian(f, wrt)}[quantity]
    plan = plan_of(e, backend)
    by_hand = LQ.hand[quantity][""].flops({"n": N_ROWS, "m": 4 * N_ROWS})
    assert plan.flops <= most * by_hand
    kinds = ("kernel", "kernels", "over", "finish")
    made = [step.params[0].name for step in plan.steps if step.kind in kinds]
    assert made.count("lq_reflected") == made.count("lq_triangle") == 1
    assert "lq" not in made
    large = N_ROWS * 5 * N_ROWS
    assert max(int(np.prod(step.shape)) for step in plan.steps) <= large


#: Weights of the first 100 of 300 columns, and of the others; None for different ones.
WEIGHTS = {
    "different": (None, None), "ones": (None, 1), "others": (None, -0.3), "zeros": (None, 0),
    "all": (0.7, 0.7), "one other": (0, 1), "cancelled": (0, 1), "nan": (np.nan, 1),
}  # fmt: skip


@pytest.fixture(params=WEIGHTS)
def weighted(request: pytest.FixtureRequest) -> dict[str, np.ndarray]:
    """Rows D, and r and s for their columns; those of weight 1 may be tiny."""
    rng = np.random.default_rng(0)
    r, s = rng.normal(size=300), rng.uniform(0.5, 2, 300)
    for part, number in zip((slice(100), slice(100, None)), WEIGHTS[request.param], strict=True):
        r[part] = r[part] if number is None else number
    s[100:] *= 1e-5 if request.param == "cancelled" else 1
    return {"D": rng.normal(size=(80, 300)), "r": r, "s": s}


def noted(function: Any, **shapes: Any) -> list[tuple[Any, int]]:
    """Parameters and operands of symmetric products."""
    steps = function.plan_for(**shapes).steps
    return [(step.params, len(step.args)) for step in steps if step.kind == "gram"]


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_columns_of_one_weight_are_told_by_the_others(
    weighted: dict[str, np.ndarray], backend: str
) -> None:
    """Q Q' is the identity; where Q r Q' is much smaller, its digits are not lost to that."""
    D, r, s, a = tc.var("D", (80, 300)), tc.var("r", 300), tc.var("s", 300), tc.var("a")
    shapes = {name: array.shape for name, array in weighted.items()}
    exact, triangle = np.linalg.qr((weighted["D"] * weighted["s"]).T)
    exact = (exact * np.sign(np.diagonal(triangle))).T
    wanted = exact * weighted["r"] @ exact.T
    _, q = L.lq(D * s)
    square = tc.compile((q * r) @ q.T, backend=backend)
    assert noted(square, **shapes) == [((True,), 3)]
    atol = 1e-12 * abs(wanted).max()
    np.testing.assert_allclose(square(**weighted), wanted, atol=atol, rtol=0)

    volume = L.sumlogdiag(L.lq(D * s * tc.exp(a * r))[0])
    bend = tc.compile(tc.hessian(volume, a), backend=backend)
    assert noted(bend, a=(), **shapes) == [((True,), 4)]
    first, second = np.trace(exact * weighted["r"] ** 2 @ exact.T), (wanted**2).sum()
    found = bend(**weighted, a=np.array(0.0))
    np.testing.assert_allclose(found, 2 * (first - second), atol=1e-12 * first, rtol=1e-11)


def test_arrays_keep_the_digits_of_reflectors() -> None:
    """A small residual and a least-squares solution have less error than inv(L) M would give."""
    rng = np.random.default_rng(2)
    n, k = 80, 160
    left = np.linalg.qr(rng.normal(size=(n, n)))[0]
    right = np.linalg.qr(rng.normal(size=(k, n)))[0]
    rows, x = left * np.geomspace(1, 1e-9, n) @ right.T, rng.normal(size=n)
    target = rows.T @ x
    q, factor = L.gelqf(M)
    found_q, _ = tc.compile((q, L.sumlogdiag(factor)))(M=rows)
    assert abs(found_q @ found_q.T - np.eye(n)).max() < 1e-13
    residual = tc.compile(t - q.T @ (q @ t))(M=rows, t=target)
    assert abs(residual).max() < 1e-13 * np.linalg.norm(x)
    wanted = np.linalg.lstsq(rows.T, target, rcond=None)[0]
    solved = tc.compile(L.tri_inverse(factor).T @ (q @ t))(M=rows, t=target)
    assert abs(solved - x).max() < 10 * abs(wanted - x).max()


@pytest.mark.parametrize("scaled", [False, True])
def test_the_matrix_that_a_dual_basis_meets_goes(scaled: bool) -> None:
    """W' A is P and G A is W for the inverse W' of the rows of A and G = (A A')^-1.

    Also of A with scaled columns, whose factors stand among others, whatever axes are called.
    """
    scale, y = tc.exp(t), tc.var("y", "k")
    a = M * scale if scaled else M
    dual, inverse, projector = (row_space(name, a, ()) for name in (DUAL, INVERSE, PROJECTOR))
    for n, k, j in ((0, 1, 2), (1, 2, 0), (2, 0, 1), (1, 0, 2)):
        times, of = ([M, scale, y], [(n, j), (j,), (j,)]) if scaled else ([M, y], [(n, j), (j,)])
        for one, word, other in ((dual, (n, k), projector), (inverse, (k, n), dual)):
            found, wanted = (
                of_factors([einsum([one, *times], [word, *of], (k,))]),
                of_factors([einsum([other, y], [(k, j), (j,)], (k,))]),
            )
            assert found[0] is wanted[0]


WORDS = ("lq", "rows")
#: What each of the four is, by NumPy.
BY_NUMPY: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    VOLUME: lambda a: np.linalg.slogdet(a @ a.mT)[1] / 2,
    DUAL: lambda a: np.linalg.pinv(a).mT,
    PROJECTOR: lambda a: np.linalg.pinv(a) @ a,
    INVERSE: lambda a: np.linalg.inv(a @ a.mT),
}


@pytest.mark.parametrize("batch", [(), (4,), (4, 1), (3, 2)])
@pytest.mark.parametrize("name", BY_NUMPY)
def test_each_of_the_four_is_numpys(name: str, batch: tuple[int, ...]) -> None:
    """By its kernel, by the formula of factors, and its derivatives, of batches of any shape."""
    rng = np.random.default_rng(len(batch))
    A = tc.var("A", (*batch, 2, 3))
    e = row_space(name, A, WORDS)
    data, weights = rng.normal(size=A.shape), rng.normal(size=e.shape)
    wanted = BY_NUMPY[name](data)
    np.testing.assert_allclose(row_space_row(name).kernels.compute(np, WORDS, data), wanted, 1e-10)
    np.testing.assert_allclose(from_factors(e)(A=data), wanted, 1e-10)
    slopes = tc.grad(tc.sum(tc.const(weights) * e), A)
    quotients = differences(lambda a: (BY_NUMPY[name](a) * weights).sum(), data, 1e-3)
    np.testing.assert_allclose(slopes(A=data), quotients, 1e-7, 1e-7 * abs(quotients).max())
    if not batch:
        for order in (1, 2):
            before = tc.derivative(e, A, order - 1)
            steps = differences(lambda a, f=before: f(A=a), data, 1e-3)
            found = tc.jacobian(before, A)(A=data)
            np.testing.assert_allclose(found, steps, 1e-7, 1e-7 * abs(steps).max())


def test_logarithms_of_a_diagonal_times_others_stay() -> None:
    """Of the diagonal of a factor alone, or of a number's multiple, they are half a logdet."""
    S, T = (tc.var(k, ("n", "n"), positive_definite=True) for k in "ST")
    v = tc.var("v", "n")
    one, other = (tc.diag(tc.linalg.cholesky(a)) for a in (S, T))
    A = np.random.default_rng(0).standard_normal((4, 4))
    data = {"S": A @ A.T + np.eye(4), "T": A.T @ A + 2 * np.eye(4), "v": np.arange(1.0, 5)}
    for e, kept in ((one * v, True), (one * other, True), (2 * one, False)):
        root = tc.sum(tc.log(e))
        found = tc.simplify(root)
        assert ("logdet" in str(found)) is not kept
        given = {k: data[k] for k in root.variables}
        np.testing.assert_allclose(found(**given), root(**given), rtol=1e-13)
