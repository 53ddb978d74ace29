"""`build`: the nodes of matrix algebra, values and derivatives of unrolled loops, errors."""

# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

import itertools
import pickle
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc import build
from tcalc.graph.nodes import Derivative
from tcalc.graph.normal import einsum
from tcalc.integers.affine import Constraint
from tcalc.integers.boxes import index
from tcalc.ops.indicator import indicator
from tests.test_operators import close

A, M, N = tc.var("A", ("n", "n")), tc.var("M", ("m", "n")), tc.var("N", ("n", "k"))
x, y, v = tc.var("x", "n"), tc.var("y", "n"), tc.var("v", "m")
T = tc.var("T", ("m", "n", "k"))
rows, cols = (tc.var(name, "q", integer=True) for name in ("rows", "cols"))
w = tc.var("w", "k")


def shifted(e: tc.Expr, other: tc.Expr, extent: str) -> tc.Expr:
    """sum over j of e[i+j] other[j], i below an extent."""
    extents = {0: e.shape[0], 1: other.shape[0], 2: extent}
    held = indicator(extents, [Constraint(index(0) - index(1) - index(2), True)])
    return einsum([e, other, held[0][0]], [(0,), (1,), held[0][1]], (2,), extents=extents)


# --- the same nodes -------------------------------------------------------------------------------

NODES: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "identity": (lambda: build("n", lambda i: x[i]), lambda: x),
    "transposition": (lambda: build("n", lambda i: build("m", lambda j: M[j, i])), lambda: M.T),
    "transposition by rows": (
        lambda: build("n", lambda i: build("m", lambda j: M[j][i])), lambda: M.T,
    ),
    "three axes": (
        lambda: build("k", lambda i: build("m", lambda j: build("n", lambda l: T[j, l, i]))),
        lambda: tc.transpose(T, (2, 0, 1)),
    ),
    "matrix product": (
        lambda: build("m", lambda i: build("k", lambda j: tc.sum(
            build("n", lambda l: M[i, l] * N[l, j])))),
        lambda: M @ N,
    ),
    "matrix product by rows": (
        lambda: build("m", lambda i: build("k", lambda j: M[i] @ N[:, j])), lambda: M @ N,
    ),
    "matrix product by folds": (
        lambda: build("m", lambda i: build("k", lambda j: tc.fold(
            lambda s, l: s + M[i, l] * N[l, j], 0, "n"))),
        lambda: M @ N,
    ),
    "trace": (lambda: tc.sum(build("n", lambda i: A[i, i])), lambda: tc.trace(A)),
    "diagonal": (lambda: build("n", lambda i: A[i, i]), lambda: tc.diagonal(A)),
    "outer product": (
        lambda: build("n", lambda i: build("n", lambda j: x[i] * y[j])), lambda: tc.outer(x, y),
    ),
    "outer product with rows": (lambda: build("n", lambda i: x[i] * y), lambda: tc.outer(x, y)),
    "slice": (lambda: build("n-2", lambda i: x[i + 1]), lambda: x[1:-1]),
    "stride": (lambda: build("(n+1)//2", lambda i: x[2 * i]), lambda: x[::2]),
    "reversed": (lambda: build("n", lambda i: y[y.shape[0] and -1] * x[i]), lambda: y[-1] * x),
    "differences": (lambda: build("n-1", lambda i: x[i + 1] - x[i]), lambda: x[1:] - x[:-1]),
    "shifted diagonal": (
        lambda: build("n-1", lambda i: A[i, i + 1]), lambda: tc.diagonal(A, 1),
    ),
    "convolution": (
        lambda: build("n-k+1", lambda i: tc.sum(build("k", lambda j: x[i + j] * w[j]))),
        lambda: shifted(x, w, "n-k+1"),
    ),
    "windows": (
        lambda: build("n-k+1", lambda i: build("k", lambda j: x[i + j])) @ w,
        lambda: shifted(x, w, "n-k+1"),
    ),
    "gather": (lambda: build("q", lambda i: x[rows[i]]), lambda: x[rows]),
    "two gathers": (lambda: build("q", lambda i: M[rows[i], cols[i]]), lambda: M[rows, cols]),
    "gathered twice": (lambda: build("q", lambda i: x[rows[cols[i]]]), lambda: x[rows[cols]]),
    "numbers": (lambda: build("n", lambda i: i), lambda: tc.arange("n")),
    "filled": (lambda: build("n", lambda i: 7), lambda: 7 * tc.ones("n")),
    "repeated": (lambda: build("m", lambda i: x), lambda: tc.ones("m")[:, None] * x),
    "eye": (lambda: build("n", lambda i: build("n", lambda j: tc.where(i == j, 1, 0))),
            lambda: tc.eye("n")),
    "hot": (
        lambda: build("m", lambda i: build("m", lambda j: tc.where(i == j, v[j], 0))),
        lambda: tc.diag(v),
    ),
    "comparison as a number": (
        lambda: build("m", lambda i: build("m", lambda j: (i == j) * v[j])), lambda: tc.diag(v),
    ),
    "elementwise": (
        lambda: build("m", lambda i: build("n", lambda j: tc.exp(M[i, j]) / (1 + x[j] ** 2))),
        lambda: tc.exp(M) / (1 + x**2),
    ),
    "reduction": (lambda: build("m", lambda i: tc.logsumexp(M[i])), lambda: tc.logsumexp(M, 1)),
    "factorisation": (
        lambda: build("m", lambda i: tc.linalg.logdet(A + v[i] * tc.eye("n"))),
        lambda: tc.linalg.logdet(A + v[:, None, None] * tc.eye("n")),
    ),
    "named index twice": (
        lambda: build("n", lambda i: tc.sum(build("n", lambda i: A[i, i])) * x[i]),
        lambda: tc.trace(A) * x,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NODES)
def test_nodes_of_matrix_algebra(name: str) -> None:
    comprehension, matrices = NODES[name]
    assert comprehension() is matrices()
    assert comprehension() is comprehension()


def test_nodes_do_not_depend_on_names_of_parameters() -> None:
    def body(i: Any) -> Any:
        return build("n", lambda row: tc.tanh(A[i, row] * x[i] + i * y[row]))

    def other(zeta: Any) -> Any:
        return build("n", lambda alpha: tc.tanh(A[zeta, alpha] * x[zeta] + zeta * y[alpha]))

    assert build("n", body) is build("n", other)


# --- identities of Shaikhha et al. ----------------------------------------------------------------


def transposed(e: tc.Expr) -> tc.Expr:
    return build(e.shape[1], lambda i: build(e.shape[0], lambda j: e[j, i]))


def dot(a: tc.Expr, b: tc.Expr) -> tc.Expr:
    return tc.fold(lambda s, i: s + a[i] * b[i], 0, a.shape[0])


def eye(n: Any) -> tc.Expr:
    return build(n, lambda i: build(n, lambda j: tc.where(i == j, 1, 0)))


def product(a: tc.Expr, b: tc.Expr) -> tc.Expr:
    return build(a.shape[0], lambda i: build(b.shape[1], lambda j: dot(a[i], transposed(b)[j])))


def test_identities() -> None:
    assert transposed(transposed(M)) is M  # Example 5
    one = eye("n")
    assert build("n", lambda i: tc.fold(lambda s, j: s + x[j] * one[j, i], 0, "n")) is x  # 6
    assert build("n", lambda i: tc.fold(
        lambda s, j: tc.where(i == j, s + x[j], s), 0, "n")) is x  # fmt: skip
    for mode in ("forward", "reverse", "cross-country"):  # Example 7
        assert value(tc.derivative(dot(x, y), x, mode=mode)) is y
    trace = tc.fold(lambda s, i: s + A[i, i], 0, "n")
    assert value(tc.grad(trace, A)) is tc.eye("n")
    form = product(build(1, lambda i: v), product(M, transposed(build(1, lambda i: x))))[0, 0]
    assert value(tc.grad(form, M)) is tc.outer(v, x)  # Example 1


def value(e: tc.Expr) -> tc.Expr:
    assert isinstance(e, Derivative)
    return e.args[0]


def test_update_formula_of_nonnegative_factorisation() -> None:
    """The negative log likelihood of an exponential distribution, over two vectors."""
    u = tc.var("u", "m")
    loss = tc.fold(
        lambda s, i: s + tc.fold(
            lambda t, j: t + tc.log(u[i] * x[j]) + M[i, j] / (u[i] * x[j]), 0, "n"
        ), 0, "m",
    )  # fmt: skip
    whole = tc.outer(u, x)
    assert value(tc.grad(loss, u)) is value(tc.grad(tc.sum(tc.log(whole) + M / whole), u))
    rng = np.random.default_rng(0)
    at = {"M": rng.uniform(1, 2, (4, 3)), "u": rng.uniform(1, 2, 4), "x": rng.uniform(1, 2, 3)}
    uv = np.outer(at["u"], at["x"])
    close(tc.grad(loss, u)(**at), ((uv - at["M"]) / uv**2) @ at["x"], 1e-12)


def test_no_perturbation_confusion() -> None:
    a, b = tc.var("a"), tc.var("b")
    assert value(tc.grad(a * tc.grad(a + b, b), a)) is tc.ones(())  # Example 4
    inner = build("n", lambda i: a * tc.grad(x[i] * a + tc.sum(y) * b, b) * tc.grad(a * x[i], a))
    np.testing.assert_allclose(inner(a=2.0, x=[3.0, 5], y=[1.0, 7]), [48, 80])
    np.testing.assert_allclose(tc.jacobian(inner, a)(a=2.0, x=[3.0, 5], y=[1.0, 7]), [24, 40])
    # the derivative inside is of x[i] x[i+1], by all of x, and read at the index itself
    moved = build("n-1", lambda i: tc.grad(x[i] * x[i + 1], x)[i])
    np.testing.assert_allclose(moved(x=[3.0, 5, 7]), [5, 7])
    hessians = build("m", lambda i: tc.hessian(v[i] * tc.sum(tc.exp(x)), x))
    assert hessians is v[:, None, None] * tc.diag(tc.exp(x))


# --- values and derivatives are those of unrolled loops -------------------------------------------

Body = Callable[..., Any]


def unrolled(n: int, body: Callable[[Any], Any]) -> Any:
    return tc.stack([tc.const(np.asarray(0.0)) + body(k) for k in range(n)])


BODIES: dict[str, Body] = {
    "recurrence in two": lambda b, n, m, x, X: b(n - 1, lambda i: tc.sin(x[i]) * x[i + 1] + i),
    "triangle": lambda b, n, m, x, X: b(n, lambda i: b(n, lambda j: tc.where(
        j <= i, x[i] * x[j] ** 2, tc.exp(x[j])))),
    "matrix of differences": lambda b, n, m, x, X: b(n, lambda i: b(n, lambda j: (x[i] - x[j]) ** 3)),
    "rows": lambda b, n, m, x, X: b(m, lambda i: tc.tanh(X[i] @ x) * X[i]),
    "softmax of rows": lambda b, n, m, x, X: b(m, lambda i: tc.softmax(X[i] * x)),
    "number of the index": lambda b, n, m, x, X: b(n, lambda i: x[i] ** (i + 1) + tc.cos(i * x[i])),
    "maximum of rows": lambda b, n, m, x, X: b(m, lambda i: tc.max(X[i]) * (i + 2)),
    "sums to the index": lambda b, n, m, x, X: b(n, lambda i: tc.sum(
        tc.where(tc.arange(n) <= i, x * x, 0))),
    "strides": lambda b, n, m, x, X: b(2, lambda i: b(2, lambda j: x[i + 2 * j] * X[j, 2 * i])),
    "reversed": lambda b, n, m, x, X: b(n, lambda i: x[n - 1 - i] * x[i] * X[:, n - 1 - i]),
    "outside of a guard": lambda b, n, m, x, X: b(n, lambda i: tc.where(
        i > 0, tc.exp(x[np.maximum(i - 1, 0) if isinstance(i, int) else i - 1]), x[0])),
    "nested builds": lambda b, n, m, x, X: b(m, lambda i: tc.sum(
        b(n, lambda j: tc.sum(b(n, lambda l: x[j] * x[l] * X[i, l]))) * X[i])),
    "solves": lambda b, n, m, x, X: b(m, lambda i: tc.linalg.solve(
        tc.outer(x, x) + (3 + i) * tc.eye(n), X[i])),
    "quotients": lambda b, n, m, x, X: b(n, lambda i: x[i] / (1 + tc.sum(x * x)) - i / (2 + x[i] ** 2)),
    "pairs of rows": lambda b, n, m, x, X: b(m, lambda i: b(m, lambda j: tc.sum((X[i] - X[j]) ** 2))),
    "prod": lambda b, n, m, x, X: b(n, lambda i: tc.prod(tc.where(tc.arange(n) <= i, x, 1))),
    "remainders": lambda b, n, m, x, X: b(2 * n, lambda i: x[i % n] * X[0, (i + 1) % n]),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_unrolled(name: str) -> None:
    n, m = 4, 3
    vector, matrix = tc.var("x", n), tc.var("X", (m, n))
    rng = np.random.default_rng(1)
    at = {"x": rng.uniform(0.5, 1.5, n), "X": rng.normal(size=(m, n))}
    found = BODIES[name](build, n, m, vector, matrix)
    wanted = BODIES[name](unrolled, n, m, vector, matrix)
    at = {k: at[k] for k in found.variables}
    close(found(**at), wanted(**at), 1e-12)
    for target in found.variables:
        for order, mode in itertools.product((1, 2), ("forward", "reverse", "cross-country")):
            e = tc.derivative(found, target, order, mode)
            if order == 1 or e.ndim < 7:
                close(e(**at), tc.derivative(wanted, target, order)(**at), 1e-10)


def test_nests_and_extents() -> None:
    found = build("n", lambda i: {"a": x[i] * 2, "b": (i, [y[i], 1])})
    values = found(x=[1.0, 2], y=[3.0, 4])
    np.testing.assert_array_equal(values["a"], [2, 4])
    np.testing.assert_array_equal(values["b"][1][0], [3, 4])
    np.testing.assert_array_equal(values["b"][1][1], [1, 1])
    u = tc.var("u", 5)
    assert build(len(u), lambda i: u[i]) is u
    assert build(np.int64(5), lambda i: u[i]) is u
    for count in (0, 1):
        assert build(count, lambda i: u[i])(u=np.zeros(5)).shape == (count,)
        assert build("n", lambda i: x[i] + y[i])(x=np.ones(count), y=np.ones(count)).shape == (
            count,
        )
    assert pickle.loads(pickle.dumps(build("n", lambda i: x[i] * i))) is build(
        "n", lambda i: x[i] * i
    )


def test_evaluation_has_no_loop_over_entries() -> None:
    second = build("n-2", lambda i: x[i + 2] - 2 * x[i + 1] + x[i])
    f = tc.sum(second**2)
    step = tc.compile({"f": f, "g": tc.grad(f, x)})
    steps = [len(str(step.plan_for(x=(n,))).splitlines()) for n in (10, 1_000_000)]
    assert max(steps) < 30
    start = time.perf_counter()
    step(x=np.ones(1_000_000))
    assert time.perf_counter() - start < 1
    held = tc.compile(tc.hessian(f + x @ x, x), structured=True)(x=np.ones(100_000))
    assert held.nbytes < 100 * 100_000
    close(held.solve(np.ones(100_000))[50_000], 0.5, 1e-9)


# --- scopes ---------------------------------------------------------------------------------------


def test_indices_stay_inside() -> None:
    kept: list[Any] = []
    build("n", lambda i: (kept.append(i), x[i])[1])
    with pytest.raises(tc.TraceError, match="i is used outside of the body"):
        build("n", lambda j: x[kept[0]] * x[j])
    with pytest.raises(TypeError, match="i is used outside of the body"):
        x[kept[0]](x=np.ones(3))
    with pytest.raises(tc.TraceError, match="i is used outside of the body"):
        tc.fold(lambda s, j: s * x[kept[0]], 1, "n")


def test_errors_leave_no_scope_open() -> None:
    before = build("n", lambda i: tc.exp(x[i]) * i)
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            build("n", lambda i: build("n", lambda j: x[i] / (1 // 0)))
    assert build("n", lambda i: tc.exp(x[i]) * i) is before


def test_threads_do_not_share_indices() -> None:
    wanted = build("n", lambda i: build("m", lambda j: tc.sin(M[j, i]) * i))
    found: list[Any] = []

    def work() -> None:
        for _ in range(20):
            found.append(build("n", lambda i: build("m", lambda j: tc.sin(M[j, i]) * i)))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    at = {"M": np.arange(6.0).reshape(2, 3)}
    assert len(found) == 80
    for e in found:
        np.testing.assert_array_equal(e(**at), wanted(**at))


# --- errors ---------------------------------------------------------------------------------------

u = tc.var("u", 5)
U = tc.var("U", (3, 5))
WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: build(6, lambda i: u[i]), IndexError, r"u\[i\]: index 5 is out of range .* extent 5"),
    (lambda: build(6, lambda i: u[i]), tc.ShapeError, "out of range"),
    (lambda: build(5, lambda i: u[i - 1]), IndexError, r"u\[i-1\]: index -1"),
    (lambda: build(3, lambda k: U[k, 2 * k + 1]), IndexError, r"U\[k, 2\*k\+1\]: index 5"),
    (lambda: build(3, lambda i: build(3, lambda j: u[i + j + 1])), IndexError, r"u\[i\+j\+1\]"),
    (
        lambda: build(5, lambda i: tc.where(i > 1, u[i - 3], 0)),
        IndexError,
        "index -1.* where i >= 2",
    ),
    (
        lambda: build(5, lambda i: tc.where((i > 0) & (i < 4), u[i + 2], 0)),
        IndexError,
        "index 5 .* where i >= 1 and 3 >= i",
    ),
    (lambda: build(2.5, lambda i: i), TypeError, "2.5 is neither an int nor a dimension name"),
    (lambda: build(-1, lambda i: i), tc.ShapeError, "extent -1 is negative"),
    (lambda: build("n n", lambda i: i), tc.ShapeError, "'n n' is neither"),
    (lambda: build(True, lambda i: i), TypeError, "True is neither"),
    (lambda: build("n", lambda i: build(i, lambda j: x[j])), TypeError, "not i; write where"),
    (lambda: build("n", lambda i: tc.zeros((i, 2))), TypeError, "zeros: i is neither"),
    (lambda: build("n", x), TypeError, "the body is a function"),
    (lambda: build("n", 3), TypeError, "the body is a function of an index, not 3"),
    (lambda: build("n", lambda i: None), TypeError, "gives expressions and numbers.*not None"),
    (lambda: build("n", lambda i: "x"), TypeError, "not 'x'"),
    (lambda: build("n", lambda i: {"a": object()}), TypeError, "gives expressions"),
    (lambda: build("n", lambda i: 1 if i < 2 else 0), tc.TraceError, "where"),
    (lambda: build("n", lambda i: x[i] if i == 0 else 0), tc.TraceError, "where"),
    (lambda: build("n", lambda i: x[i / 2]), TypeError, "not i/2"),
    (lambda: build("n", lambda i: x[x[i]]), TypeError, "an index is an array of integers"),
    (lambda: build("n", lambda i: x[i > 0]), TypeError, "mask"),
    (lambda: build("n", lambda i: x[i:]), tc.TraceError, "the ends of a slice are numbers, not i"),
    (lambda: build("n", lambda i: np.arange(3)[i]), tc.TraceError, "const"),
    (lambda: build("n", lambda i: sum(range(i))), tc.TraceError, "range"),
    (lambda: build("n", lambda i: M[i, i, i]), IndexError, r"3 indices for shape \(m, n\)"),
    (lambda: build("n", lambda i: tc.grad(x[i], i)), TypeError, "integer variable"),
]


@pytest.mark.parametrize(("call", "kind", "text"), WRONG)
def test_errors(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text) as caught:
        call()
    assert isinstance(caught.value, tc.Error | TypeError | IndexError)
    assert "$" not in str(caught.value)


def test_named_extents_are_checked_when_known() -> None:
    e = build("m", lambda i: x[i] * 2)
    np.testing.assert_array_equal(e(x=np.ones(3), m=2), [2, 2])
    with pytest.raises(IndexError, match=r"an index \[i\]: index 3 is out of range"):
        e(x=np.ones(3), m=4)
    guarded = build("n", lambda i: tc.where(i > 1, x[i - 2], -1))
    np.testing.assert_array_equal(guarded(x=[1.0, 2, 3, 4]), [-1, -1, 1, 2])
    np.testing.assert_array_equal(tc.jacobian(guarded, x)(x=[1.0, 2, 3, 4]), np.eye(4, k=-2))


def test_a_namespace_of_numpy() -> None:
    """NumPy's functions on entries are those of expressions."""
    np_like = SimpleNamespace(exp=np.exp, where=np.where)
    e = build("n", lambda i: np_like.where(i > 1, np_like.exp(x[i]), np.sin(i)))
    np.testing.assert_allclose(e(x=np.zeros(4)), [0, np.sin(1), 1, 1])
