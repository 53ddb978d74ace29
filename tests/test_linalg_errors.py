"""Matrices without a property: errors name the expression as it was written, and the item."""

from __future__ import annotations

import gc
import pickle
import re
import threading
import weakref
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.support.excerpts import WIDTH, shortened

la = tc.linalg
A, X = tc.var("A", ("n", "n")), tc.var("X", ("n", "m"))
L, b, t = tc.var("L", ("n", "n")), tc.var("b", "n"), tc.var("t")
ZERO, UNIT = np.zeros((3, 3)), np.eye(3)
SINGULAR = np.array([[1.0, 2, 3], [2, 4, 6], [0, 1, 1]])


def message(e: Any, **values: Any) -> str:
    """What is said, the same by every way to evaluate."""
    found = set()
    functions = [e, tc.compile(e), tc.compile(e, data=values)]
    for k, function in enumerate(functions):
        for _ in range(2):
            with pytest.raises(tc.LinAlgError) as caught:
                function(**(values if k < 2 else {}))
            assert type(caught.value) is tc.LinAlgError
            found.add(str(caught.value))
    assert len(found) == 1
    return found.pop()


WRITTEN = [
    (la.cholesky(X @ X.T - t * tc.eye("n")), {"X": UNIT, "t": 2.0},
     "cholesky: the matrix is not positive definite, in cholesky(X*X' - t*eye(n))"),
    (la.cholesky(A), {"A": -UNIT}, "cholesky: the matrix is not positive definite, in cholesky(A)"),
    (la.potrf(A @ A, lower=False), {"A": np.diag([1.0, 0, 2])},
     "cholesky: the matrix is not positive definite, in cholesky(A^2)"),
    (tc.parse("chol(A*A' - eye)"), {"A": ZERO},
     "cholesky: the matrix is not positive definite, in cholesky(A*A' - eye(m))"),
    (la.inv(A - tc.eye("n")), {"A": UNIT}, "inv: the matrix is singular, in inv(A - eye(n))"),
    (la.solve(A, b), {"A": ZERO, "b": np.ones(3)}, "solve: the matrix is singular, in inv(A)"),
    (tc.parse("A \\ x"), {"A": ZERO, "x": np.ones(3)},
     "solve: the matrix is singular, in inv(A)"),
    (la.solve_triangular(L, b, lower=True), {"L": ZERO, "b": np.ones(3)},
     "solve_triangular: a zero on the diagonal, in tri_inverse(L)"),
    (la.potri(L), {"L": ZERO}, "tri_inverse: a zero on the diagonal, in tri_inverse(L)"),
    (la.lq(2 * A)[0], {"A": SINGULAR}, "lq: the rows are linearly dependent, in lq(2*A)"),
    (la.qr(X)[1], {"X": np.ones((4, 2))}, "qr: the columns are linearly dependent, in qr(X)"),
    (la.qr(tc.var("Z", (2, 3)))[1], {"Z": np.ones((2, 3))},
     "qr: the first 2 columns are linearly dependent, in qr(Z)"),
    (la.lstsq(X, b), {"X": np.ones((4, 2)), "b": np.ones(4)},
     "lstsq: the columns are linearly dependent, in lstsq(X)"),
    (la.expm(A), {"A": ZERO * np.nan}, "expm: entries that are not finite, in expm(A)"),
    (la.logm(-A), {"A": UNIT},
     "logm: an eigenvalue is negative, so the principal logarithm is not real, in logm(-A)"),
    (tc.grad(tc.sum(la.sqrtm(A)), A), {"A": ZERO},
     "sqrtm: the matrix is singular, where the square root has no derivative, in sqrtm(A)"),
]  # fmt: skip


@pytest.mark.parametrize(("e", "values", "wanted"), WRITTEN, ids=[w[2] for w in WRITTEN])
def test_the_application_is_named(e: tc.Expr, values: dict[str, Any], wanted: str) -> None:
    assert message(e, **values) == wanted


def test_items_of_batches_are_named_too() -> None:
    M = tc.var("M", (2, "n", "n"))
    data = np.stack([UNIT, -UNIT])
    wanted = "cholesky: the matrix is not positive definite (item 1 of the batch), in cholesky(M)"
    assert message(la.cholesky(M), M=data) == wanted
    assert message(tc.grad(tc.sum(la.cholesky(M)), M), M=data) == wanted


@pytest.mark.parametrize("n", [3, 80])
def test_derivatives_name_the_function_that_was_differentiated(n: int) -> None:
    positive = X @ X.T - t * tc.eye("n")
    values = {"X": np.eye(n), "t": 2.0, "b": np.ones(n)}
    f = tc.sum(la.cholesky(positive) ** 3)
    for e in (tc.grad(f, X), tc.grad(f, t), tc.jacobian(tc.grad(f, t), t), tc.hvp(f, t, 1.0)):
        given = {k: v for k, v in values.items() if k in e.variables or k in ("X", "t")}
        assert message(e, **given).endswith("definite, in cholesky(X*X' - t*eye(n))")
    values["t"] = 1.0
    for of in (la.logdet(positive), tc.trace(la.inv(positive)), b @ la.solve(positive, b)):
        text = message(tc.hessian(of, t), **values)
        name = "logdet" if of is la.logdet(positive) else "inv"
        assert text.endswith(f"the matrix is singular, in {name}(X*X' - t*eye(n))")


def test_ties_name_the_decomposition() -> None:
    S = A @ A.T
    vectors = tc.grad(tc.sum(la.eigh(S)[1]), A)
    assert message(vectors, A=UNIT).endswith("goes on, in eigh(A*A')")
    vectors = tc.hessian(tc.sum(la.svd(2 * X)[0]), X)
    assert message(vectors, X=np.eye(4, 3)).endswith("goes on, in svd(2*X)")
    norm = tc.hessian(la.norm(X - t, 2), X)
    assert message(norm, X=np.eye(3), t=0.0).endswith("one largest singular value, in norm(X - t)")


def test_of_several_applications_the_one_that_failed_is_named() -> None:
    B = tc.var("B", ("n", "n"))
    pair = [la.cholesky(A) @ la.cholesky(B), la.inv(A) + la.inv(B)]
    wrong = -UNIT
    for e, name in zip(pair, ("cholesky", "inv"), strict=True):
        values = {"A": UNIT, "B": UNIT}
        for which in "AB":
            given = {**values, which: wrong if name == "cholesky" else ZERO}
            assert message(e, **given).endswith(f"in {name}({which})")
    both = la.eigh(A)[1] @ la.eigh(B)[1]
    apart = np.diag([1.0, 2, 3])
    assert message(tc.jacobian(both, A), A=UNIT, B=apart).endswith("in eigh(A)")
    assert message(tc.jacobian(both, B), A=apart, B=UNIT).endswith("in eigh(B)")


def test_inner_ones_come_first() -> None:
    nested = la.cholesky(la.inv(A) - 3 * tc.eye("n"))
    assert message(nested, A=ZERO).endswith("in inv(A)")
    assert message(nested, A=UNIT).endswith("in cholesky(inv(A) - 3*eye(n))")


def test_structured_results_name_it_too() -> None:
    h = tc.compile(tc.hessian(la.logdet(A), A), structured=True)
    with pytest.raises(tc.LinAlgError, match=r"inv: the matrix is singular, in inv\(A\)$"):
        h(A=ZERO)


def test_long_expressions_are_shortened() -> None:
    e = A
    for k in range(40):
        e = e + (k + 2) * tc.tanh(e)
    text = message(la.inv(e), A=ZERO)
    assert len(text) < 150
    assert text.startswith("inv: the matrix is singular")
    e = A
    for k in range(9):
        e = e + tc.tanh(A * (k + 2))
    text = message(la.inv(e), A=ZERO)
    assert re.fullmatch(r"inv: the matrix is singular, in inv\(.*\.\.\..*\)", text)
    assert len(text) <= WIDTH + len("inv: the matrix is singular, in ")
    assert shortened("x" * WIDTH) == "x" * WIDTH


def test_errors_leave_a_function_as_it_was() -> None:
    f = tc.compile(la.cholesky(A))
    good = f(A=UNIT)
    for _ in range(3):
        with pytest.raises(tc.LinAlgError) as caught:
            f(A=-UNIT)
        np.testing.assert_array_equal(f(A=UNIT), good)
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)


def test_nothing_is_kept_alive() -> None:
    e = la.cholesky(A + tc.var("kept", ("n", "n")))
    gone = weakref.ref(e)
    with pytest.raises(tc.LinAlgError):
        e(A=-UNIT, kept=ZERO)
    del e
    gc.collect()
    assert gone() is None


# --- numbers that are hard, and arrays that are not ours ------------------------------------------


def definite(n: int, rng: np.random.Generator) -> np.ndarray:
    a = rng.normal(size=(n, n))
    return a @ a.T + np.eye(n)


@pytest.mark.parametrize("n", [3, 70])
def test_nothing_is_written_over_what_is_not_ours(n: int) -> None:
    rng = np.random.default_rng(0)
    P, C = definite(n, rng), definite(n, rng)
    v = rng.normal(size=n)
    S, b, D = tc.var("S", (n, n)), tc.var("b", n), tc.const(C)
    for matrix in (S, S + D, D * S, D):
        f = la.logdet(matrix) + b @ la.solve(matrix, b) + tc.sum(la.cholesky(matrix))
        outputs = [la.cholesky(matrix), la.inv(matrix), f, tc.grad(f, S), tc.grad(f, b)]
        for fixed in ((), ("S",), ("b",)):
            given = {"S": P.copy(), "b": v.copy()}
            kept = {k: a.copy() for k, a in given.items()}
            for a in given.values():
                a.setflags(write=False)
            function = tc.compile(outputs, data={k: given[k] for k in fixed})
            rest = {k: a for k, a in given.items() if k not in fixed}
            first = function(rest)
            copies = [np.array(r) for r in first]
            second = function(rest)
            for one, two, copy in zip(first, second, copies, strict=True):
                np.testing.assert_array_equal(one, copy)
                np.testing.assert_array_equal(two, copy)
                if np.ndim(two):
                    two.fill(np.nan)
            for one, copy in zip(function(rest), copies, strict=True):
                np.testing.assert_array_equal(one, copy)
            for k, a in given.items():
                np.testing.assert_array_equal(a, kept[k])
    np.testing.assert_array_equal(D(), C)


@pytest.mark.parametrize("n", [0, 1, 3, 70])
def test_strides_do_not_matter(n: int) -> None:
    rng = np.random.default_rng(0)
    P, v = definite(n, rng), rng.normal(size=n)
    f = la.logdet(A) + b @ la.solve(A, b) + la.sumlogdiag(la.cholesky(A))
    function = tc.compile([f, tc.grad(f, A), tc.hessian(f, b)])
    wanted = function(A=P, b=v)
    wide = np.zeros((2 * n, 3 * n))
    wide[::2, ::3] = P
    for other in (np.asfortranarray(P), wide[::2, ::3], P[::-1, ::-1].copy()[::-1, ::-1]):
        for found, right in zip(function(A=other, b=v), wanted, strict=True):
            np.testing.assert_allclose(found, right, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_scales_of_the_data(scale: float) -> None:
    P = definite(4, np.random.default_rng(0))
    value, gradient = (e(A=P * scale) for e in (la.logdet(A), tc.grad(la.logdet(A), A)))
    np.testing.assert_allclose(value, np.linalg.slogdet(P)[1] + 4 * np.log(scale), rtol=1e-13)
    np.testing.assert_allclose(gradient * scale, np.linalg.inv(P).T, rtol=1e-12)
    factor = la.cholesky(A)
    np.testing.assert_allclose(factor(A=P * scale) / scale**0.5, np.linalg.cholesky(P), rtol=1e-14)
    unscaled = tc.grad(tc.sum(factor), A)(A=P)
    found = tc.grad(tc.sum(factor), A)(A=P * scale)
    np.testing.assert_allclose(found * scale**0.5, unscaled, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n", [2, 70])
def test_float32_stays(n: int) -> None:
    rng = np.random.default_rng(0)
    P, v = definite(n, rng), rng.normal(size=n)
    f = la.logdet(A) + b @ la.solve(A, b) + tc.sum(tc.tanh(la.cholesky(A)))
    outputs = [f, tc.grad(f, A), tc.grad(f, b), la.inv(A), la.eigh(A)[0]]
    single = tc.compile(outputs)(A=P.astype(np.float32), b=v.astype(np.float32))
    for one, two in zip(single, tc.compile(outputs)(A=P, b=v), strict=True):
        assert one.dtype == np.float32
        size = max(1, np.abs(two).max())
        np.testing.assert_allclose(one, two, rtol=0, atol=1e-4 * size)


@pytest.mark.parametrize("gap", [1e-6, 1e-10, 0.0])
def test_nearly_equal_eigenvalues(gap: float) -> None:
    q = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    P = (q * [1.0, 1.0 + gap, 2.0]) @ q.T
    f = tc.sum(tc.log(la.eigvalsh(A)))
    np.testing.assert_allclose(tc.grad(f, A)(A=P), np.linalg.inv(P), atol=1e-12)
    h = tc.hessian(f, A)(A=P)
    x = np.linalg.inv(P)
    wanted = -(np.einsum("ik,jl->ijkl", x, x) + np.einsum("il,jk->ijkl", x, x)) / 2
    np.testing.assert_allclose(h, wanted, atol=1e-11)


def test_a_condition_of_ten_billion() -> None:
    import mpmath as mp

    rng = np.random.default_rng(0)
    q = np.linalg.qr(rng.normal(size=(4, 4)))[0]
    P = (q * [1.0, 1e-3, 1e-7, 1e-10]) @ q.T
    P, v = (P + P.T) / 2, rng.normal(size=4)
    f = b @ la.solve(A, b) + la.logdet(A)
    with mp.workdps(50):
        x = mp.matrix(P.tolist()) ** -1
        y = x * mp.matrix(v.tolist())
        value = float((mp.matrix(v.tolist()).T * y)[0] + mp.log(mp.det(mp.matrix(P.tolist()))))
        gradient = np.array([[float(x[j, i] - y[i] * y[j]) for j in range(4)] for i in range(4)])
    np.testing.assert_allclose(f(A=P, b=v), value, rtol=64 * 2.3e-16 * 1e10)
    found = tc.grad(f, A)(A=P, b=v)
    np.testing.assert_allclose(found, gradient, atol=64 * 2.3e-16 * 1e10 * np.abs(gradient).max())


@pytest.mark.parametrize("n", [3, 70])
def test_threads_share_a_function(n: int) -> None:
    rng = np.random.default_rng(0)
    f = la.logdet(A) + b @ la.solve(A, b) + tc.sum(tc.tanh(la.cholesky(A)))
    function = tc.compile([f, tc.grad(f, A), la.inv(A)])
    data = [(definite(n, rng), rng.normal(size=n)) for _ in range(8)]
    wanted = [tc.compile([f, tc.grad(f, A), la.inv(A)])(A=P, b=v) for P, v in data]
    wrong: list[Any] = []

    def work(k: int) -> None:
        for _ in range(20):
            found = function(A=data[k][0], b=data[k][1])
            if not all(map(np.array_equal, found, wanted[k])):
                wrong.append(k)
            try:
                function(A=-data[k][0], b=data[k][1])
            except tc.LinAlgError as error:
                if not str(error).endswith("in cholesky(A)"):
                    wrong.append(str(error))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
