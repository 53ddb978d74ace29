"""Steps of loops in C: each kind's numbers as on NumPy, and the kinds that Python is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c.source import FORMS
from tcalc.backends.c.spelling import ENTRIES
from tcalc.plan.kinds.table import KINDS
from tests import place_cases
from tests.test_backends import failure

#: Kinds without a form in C, and why.
BY_PYTHON = {
    "dot_over": "panels of products so large that a call of BLAS by Python is little beside them",
    "sparse_dot": "no loop has sparse operands",
    "sparse_gram": "no loop has sparse operands",
    "sparse_inner": "no loop has sparse operands",
}
#: Kinds that are nests of loops of their own kind, or no work.
OTHERWISE = {"ufunc", "into", "sum", "vecdot", "einsum", "correlate", "loop", "scratch"}


def test_kinds_without_c_are_listed() -> None:
    written = {*FORMS, *ENTRIES, *OTHERWISE}
    views = {name for name, kind in KINDS.items() if kind.view}
    assert KINDS.keys() - written - views == BY_PYTHON.keys()


def repeated(e: tc.Expr, variables: dict[str, tc.Expr]) -> tc.Expr:
    """The sum of what an expression is where variables change from step to step."""
    scale = tc.var("scale", "steps")

    def body(s: tc.Expr, t: tc.Expr) -> tc.Expr:
        by = scale[t] + tc.sum(s) / 1000
        return s + e.subs({v: v * by for v in variables.values()})

    return tc.fold(body, tc.zeros(e.shape), "steps")


def agree(wanted: Any, arrays: dict[str, Any], tolerance: float = 1e-9) -> None:
    (dtype, *_) = [a.dtype for a in map(np.asarray, arrays.values()) if a.dtype.kind == "f"]
    arrays = {**arrays, "scale": np.array([0.5, 1.5, 1.1], dtype)}
    found, others = [tc.compile(wanted, backend=b)(arrays) for b in ("c", "numpy")]
    for one, other in zip(found, others, strict=True):
        size = np.abs(other).max(initial=1)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * size)


@pytest.mark.parametrize("case", place_cases.CASES, ids=lambda case: case.name)
def test_places(case: place_cases.Case, entries: list[str]) -> None:
    variables = case.variables()
    e = case.build(**variables)
    moving = {n: v for n, v in variables.items() if n not in case.below}
    gradients = [tc.grad(tc.sum(e * e), v) for v in moving.values()]
    agree([repeated(one, moving) for one in (e, *gradients)], case.sample())
    assert not entries


@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_general_matrices(n: int, entries: list[str]) -> None:
    """Inverses, solves and determinants, by LAPACK where they are large."""
    A, b, B = tc.var("A", ("n", "n")), tc.var("b", "n"), tc.var("B", ("n", 3))
    rng = np.random.default_rng(n)
    arrays = {"A": rng.normal(size=(n, n)), "b": rng.normal(size=n), "B": rng.normal(size=(n, 3))}
    values = [
        tc.linalg.inv(A), tc.linalg.solve(A, b), tc.linalg.solve(A.T, B), tc.linalg.slogdet(A)[0],
        tc.logdet(A) * tc.linalg.solve(A, b), tc.grad(tc.logdet(A) + b @ tc.linalg.solve(A, b), A),
        tc.linalg.logdet(A @ A.T + tc.eye("n")),
    ]  # fmt: skip
    agree([repeated(e, {"A": A}) for e in values], arrays, 1e-7)
    assert not entries


@pytest.mark.parametrize("n", [1, 3, 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_eigenvalues_and_orthogonal_factors(n: int, dtype: Any, entries: list[str]) -> None:
    A, b = tc.var("A", ("n", "n")), tc.var("b", "n")
    w, V = tc.linalg.eigh(A + A.T)
    L, Q = tc.linalg.lq(A)
    values = [
        tc.sin(w) * b, V @ (tc.exp(w / 9) * (V.T @ b)), L @ b, Q @ b,
        tc.grad(tc.sum(L * L) + b @ Q @ b, A), tc.grad(b @ V @ (tc.sin(w) * (V.T @ b)), A),
    ]  # fmt: skip
    rng = np.random.default_rng(n)
    arrays = {"A": rng.normal(size=(n, n)).astype(dtype), "b": rng.normal(size=n).astype(dtype)}
    agree([repeated(e, {"A": A}) for e in values], arrays, 1e-8 if dtype is np.float64 else 2e-2)
    assert not entries


def test_dependent_rows_are_errors_of_numpy() -> None:
    A = tc.var("A", ("steps", 2, 2))
    a = np.stack([np.eye(2), np.ones((2, 2)), np.eye(2)])
    e = tc.fold(lambda s, t: s + tc.linalg.lq(A[t] * (1 + tc.sum(s * s)))[0], tc.eye(2), "steps")
    wanted = failure(lambda: tc.compile(e)(A=a))
    assert "at step 2 of 3 of a loop" in wanted
    assert failure(lambda: tc.compile(e, backend="c")(A=a)) == wanted


def test_singular_matrices_are_errors_of_numpy() -> None:
    A, b = tc.var("A", ("steps", 2, 2)), tc.var("b", 2)
    a = np.stack([np.eye(2), np.eye(2), np.ones((2, 2)), np.eye(2)])
    for e in (
        tc.fold(lambda s, t: tc.linalg.solve(A[t] * (1 + s @ s), s), b, "steps"),
        tc.fold(lambda s, t: tc.linalg.inv(A[t] * (1 + s @ s)) @ s, b, "steps"),
        tc.fold(
            lambda s, t: s * tc.logdet(A[t] * s[0]) + tc.linalg.solve(A[t] * s[0], s), b, "steps"
        ),
    ):
        given = {"A": a, "b": np.ones(2)}
        wanted = failure(lambda e=e, given=given: tc.compile(e)(**given))
        assert "at step 3 of 4 of a loop" in wanted
        assert failure(lambda e=e, given=given: tc.compile(e, backend="c")(**given)) == wanted


def test_indices_out_of_range_are_errors_of_numpy() -> None:
    x, after = tc.var("x", 3), tc.var("after", 3, integer=True)
    e = tc.fold(lambda s, t: (after[s[0]], s[1] * x[s[0]]), (0, 1.0), "steps")[1]
    good = {"x": np.array([2.0, 3.0, 5.0]), "after": [2, 0, 1]}
    assert tc.compile(e, backend="c")(**good, steps=2) == pytest.approx(10.0)
    bad = {**good, "after": [2, 0, 3]}
    messages = []
    for backend in ("numpy", "c"):
        with pytest.raises(IndexError) as caught:
            tc.compile(e, backend=backend)(**bad, steps=3)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_batches_of_matrices(entries: list[str]) -> None:
    """Factors and inverses of many matrices a step, and the error of one of them."""
    A, b = tc.var("A", (3, 3)), tc.var("b", 3)

    def body(s: tc.Expr, t: tc.Expr) -> tc.Expr:
        factor = tc.linalg.cholesky(A + (1 + s @ s) * tc.eye(3))
        return tc.linalg.cho_solve((factor, True), b) + tc.linalg.solve_triangular(factor, s)

    e = tc.fold(body, tc.ones(3), 4)
    wanted = [tc.vmap(x, {"A": 0}, size="B") for x in (tc.sum(e), tc.grad(tc.sum(e), A))]
    drawn = np.random.default_rng(0).normal(size=(5, 3, 3))
    arrays = {"A": drawn @ drawn.transpose(0, 2, 1), "b": np.ones(3)}
    agree(wanted, arrays)
    assert not entries
    bad = {**arrays, "A": arrays["A"].copy()}
    bad["A"][2:] = -9 * np.eye(3)
    messages = [
        failure(lambda backend=backend: tc.compile(wanted[0], backend=backend)(**bad))
        for backend in ("numpy", "c")
    ]
    assert "item 2" in messages[0]
    assert messages[0] == messages[1]
