"""Evil names, extreme sizes and orders, interrupts: fast, or a bounded error, and nothing runs."""

from __future__ import annotations

import copy
import pickle
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

x, y, c = tc.var("x", "n"), tc.var("y", "n"), tc.var("c")
f = tc.sum(tc.exp(x) * y)
H = tc.hessian(f, x)

# --- names ----------------------------------------------------------------------------------------

NAMES = [
    "__import__", "exec", "eval", "lambda", "import", "None", "True", "class", "self", "e",
    "mapping", "wrt", "args", "values", "np", "special", "floats", "dtype", "einsum", "f", "x",
    "t1", "_", "__", "sum", "pi", "é", "ﬁ", "µ", "Σ", "n", "__builtins__", "print", "open",
    "result",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_any_identifier_is_a_name_and_no_name_runs(name: str) -> None:
    """As variable and as dimension, in evaluation, source and formulas."""
    u = tc.var(name, (name,))
    loss = tc.sum(tc.exp(u) * u) + tc.norm(u)
    outputs = (loss, tc.grad(loss, name), tc.hessian(loss, u), tc.eye(name) * tc.mean(u))
    data = np.array([0.5, -1.0])
    spelled = next(iter(loss.variables))
    wanted = tc.compile(outputs)({spelled: data})
    scope: dict[str, Any] = {}
    exec(compile(tc.to_code(outputs, name="computed"), "source", "exec"), scope)
    for found, value in zip(scope["computed"](data), wanted, strict=True):
        np.testing.assert_allclose(found, value, rtol=1e-12)
    assert tc.to_latex(loss)
    assert pickle.loads(pickle.dumps(u)) is u


def test_names_that_python_reads_alike_are_alike() -> None:
    """Keywords turn the micro sign into a mu; text, declarations and `wrt` follow."""
    for text, names in (("µ*x", {"µ": ()}), ("\u03bc*x", {"µ": ()}), ("µ*x", {"\u03bc": ()})):
        e = tc.parse(text, x="n", **names)
        assert list(e.variables) == ["x", "\u03bc"]
        assert tc.jacobian(e, "µ") is tc.jacobian(e, "\u03bc")
    assert tc.var("µ")(µ=3.0) == 3.0


def test_constants_in_source() -> None:
    e = tc.const([np.nan, np.inf, -np.inf, -0.0]) + tc.var("q", 4) * 10**400
    empty = tc.const(np.zeros((0, 3))) @ tc.var("v", 3)
    scope: dict[str, Any] = {}
    exec(tc.to_code((e, empty), name="computed"), scope)
    with np.errstate(all="ignore"):
        found, nothing = scope["computed"](np.ones(4), np.ones(3))
    np.testing.assert_array_equal(found, [np.nan, np.inf, np.nan, np.inf])
    assert nothing.shape == (0,)


@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 1e308, 1e-320])
def test_numbers_without_a_reciprocal_stay_where_they_are(number: float) -> None:
    A = tc.var("A", ("n", "n"))
    assert str(tc.linalg.inv(number * A)) == f"inv({number}*A)"
    assert str(tc.linalg.logdet(number * A)) == f"logdet({number}*A)"
    assert str(number * (A + A.T)) == f"{number}*(A + A')"


# --- what is allowed ------------------------------------------------------------------------------


def test_directions_go_by_key() -> None:
    a, b = tc.var("p", "n"), tc.var("q", "n")
    assert tc.jvp(f, {"1": x, "2": y}, {"2": b, "1": a}) is tc.jvp(f, (x, y), (a, b))


def test_orders_of_numpy_and_high_orders() -> None:
    assert tc.derivative(f, x, np.int64(2)) is H
    assert tc.derivative(c**30, c, 30)() == pytest.approx(2.6525285981219107e32)
    assert tc.derivative(c**30, c, 200)() == 0
    assert tc.derivative(tc.sum(x * x), x, 200).ndim == 200
    many = tc.derivative(tc.sum(x) ** 60, x, 60)
    assert len(str(many)) > 60
    assert len(tc.to_latex(many)) > 60


def test_nodes_in_sets_copies_and_loops() -> None:
    assert {x: 1}[x] == 1
    assert len({x, y, tc.var("x", "n")}) == 2
    assert copy.copy(H) is H
    assert copy.deepcopy(H) is H
    assert pickle.loads(pickle.dumps(H)) is H
    e = x
    e += 1
    assert e is x + 1
    assert x.shape == ("n",)


def test_data_of_any_kind_are_numbers_and_stay_untouched() -> None:
    assert f(x=[True], y=[2]) == pytest.approx(2 * np.e)
    assert np.isnan(f(x=[np.nan], y=[1.0]))
    assert f(x=[1e4], y=[1.0]) == np.inf
    assert f(x=[], y=[]) == 0
    given = np.ones(3)
    x(x=given)[0] = 7
    constant = tc.const(given)
    given[:] = 5
    np.testing.assert_array_equal(constant(), 1)


def test_check_of_an_expression_with_integers() -> None:
    k = tc.var("k", "n", integer=True)
    assert tc.check(tc.sum(tc.exp(x) * k), x, 2).passed


# --- too large ------------------------------------------------------------------------------------

LARGE: list[tuple[Callable[[], Any], Callable[[Any], bool]]] = [
    (lambda: tc.trace(tc.eye(10**9))(), lambda r: r == 1e9),
    (lambda: tc.sum(tc.ones((10**200, 10**200)))(), lambda r: r == np.inf),
    (lambda: str(10**400 * x - x), lambda r: r.startswith("inf")),
    (lambda: tc.parse("sum(vector(1, 100000000000))")(), lambda r: r == 1e11),
    (lambda: tc.parse("9^(9^(9^9))")(), lambda r: r == np.inf),
    (lambda: tc.parse("a^1000000")(a=1.0), lambda r: r == 1),
    (lambda: tc.grad(tc.parse("tr(A^1000000)"), "A")(A=np.eye(2)), lambda r: r[0, 0] == 1e6),
    (lambda: len(str(tc.parse("A^1000000"))) < 10_000, bool),
    (lambda: tc.hessian(tc.parse("tr(A^30)"), "A").ndim, lambda r: r == 4),
    (lambda: str(tc.derivative(tc.logsumexp(x), x, 5)), bool),
    (lambda: str(tc.derivative(tc.parse("tanh(tanh(a))"), "a", 5)), bool),
    (lambda: tc.derivative(tc.norm(x), x, 4).ndim, lambda r: r == 4),
    (lambda: tc.parse("-" * 20_000 + "a") is tc.parse("a"), bool),
    (lambda: tc.parse("+".join(["a"] * 10_000)) is 10_000 * tc.var("a"), bool),
]


@pytest.mark.parametrize(("call", "right"), LARGE, ids=map(str, range(len(LARGE))))
def test_large_but_quick(call: Callable[[], Any], right: Callable[[Any], bool]) -> None:
    start = time.perf_counter()
    assert right(call())
    assert time.perf_counter() - start < 10


@pytest.mark.parametrize(
    "call",
    [
        lambda: tc.eye(10**9)(),
        lambda: tc.ones(10**14)(),
        lambda: tc.zeros("n")(n=10**15),
        lambda: tc.hessian(f, x)(x=np.ones(10**6), y=np.ones(10**6)),
        lambda: tc.hessian((x @ x) ** 2, x)(x=np.ones(10**6)),
        lambda: tc.derivative(f, x, 45)(x=[1.0, 2.0], y=[1.0, 2.0]),
        lambda: tc.parse("eye(1000000000)")(),
    ],
)
def test_too_large_for_any_memory(call: Callable[[], Any]) -> None:
    with pytest.raises(MemoryError):
        call()


def test_more_axes_than_arrays_have() -> None:
    with pytest.raises(ValueError, match="64"):
        tc.derivative(f, x, 70)(x=[1.0], y=[1.0])


@pytest.mark.skipif(
    threading.current_thread() is not threading.main_thread() or not hasattr(signal, "setitimer"),
    reason="needs signals in the main thread",
)
@pytest.mark.parametrize("delay", [0.01, 0.05, 0.2])
def test_interrupts_stop_symbolic_work(delay: float) -> None:
    """Within 100 ms, and the next answer is right."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    def interrupted() -> bool:
        try:
            # Again and again: one that falls into a callback of the collector is lost.
            signal.setitimer(signal.ITIMER_REAL, delay, 0.03)
            tc.derivative(tc.logsumexp(tc.tanh(x)), x, 40)
        except KeyboardInterrupt:
            signal.setitimer(signal.ITIMER_REAL, 0)
            return True
        return False

    wanted = str(tc.derivative(tc.logsumexp(x), x, 3))
    before = signal.signal(signal.SIGALRM, interrupt)
    start = time.perf_counter()
    try:
        assert interrupted()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.perf_counter() - start < delay + 0.1
    assert str(tc.derivative(tc.logsumexp(x), x, 3)) == wanted
