"""Objectives for SciPy's minimisers, and Newton's method, against solutions known otherwise."""

from __future__ import annotations

import _thread
import signal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize

import tcalc as tc

RNG = np.random.default_rng(5)
X = RNG.standard_normal((60, 4))
Y = np.sign(X @ RNG.standard_normal(4) + RNG.standard_normal(60))
T = RNG.standard_normal((9, 6))
RIDGE = 0.1

LOGISTIC = tc.parse(
    "sum(log(1 + exp(-y .* (X*w)))) + 0.5*norm2(w)^2", X=("m", "n"), y=("m",), w=("n",)
)
FACTORS = tc.parse(
    "norm2(T - U*V')^2 + c*norm2(U)^2 + c*norm2(V)^2",
    T=("m", "n"), U=("m", "k"), V=("n", "k"), c=(),
)  # fmt: skip
FACTOR_DATA = {"T": T, "c": RIDGE}


def start() -> dict[str, Any]:
    return {"U": RNG.standard_normal((9, 2)), "V": RNG.standard_normal((6, 2))}


def least_of_factors() -> float:
    """By singular values: those kept cost 2 c s - c^2, the others s^2 (soft thresholding)."""
    s = np.linalg.svd(T, compute_uv=False)
    return float((2 * RIDGE * s[:2] - RIDGE**2).sum() + (s[2:] ** 2).sum())


# --- functions of one vector ----------------------------------------------------------------------


def test_functions_agree_with_differences() -> None:
    s = tc.scipy_functions(FACTORS, ("U", "V"), data=FACTOR_DATA)
    x, p = s.pack(start()), RNG.standard_normal(30)
    assert s.names == ["U", "V"]
    assert np.allclose(s.jac(x), approx_fprime(x, s.fun, 1e-7), atol=1e-4)
    assert np.allclose(s.hess(x), approx_fprime(x, s.jac, 1e-7), atol=1e-4)
    assert np.allclose(s.hess(x) @ p, s.hessp(x, p), rtol=1e-12, atol=1e-12)
    assert s.hess(x).shape == (30, 30)


def test_pack_and_unpack_are_inverse_and_in_c_order() -> None:
    s = tc.scipy_functions(FACTORS, ("V", "U"), data=FACTOR_DATA)
    point = start()
    x = s.pack(point)
    assert np.array_equal(x, np.concatenate([point["V"].ravel(), point["U"].ravel()]))
    assert all(np.array_equal(s.unpack(x)[name], point[name]) for name in point)
    assert np.array_equal(s.pack([point["V"], point["U"]]), x)


@pytest.mark.parametrize("method", ["trust-exact", "Newton-CG", "trust-krylov", "trust-constr"])
def test_minimisers_of_scipy(method: str) -> None:
    s = tc.scipy_functions(LOGISTIC, "w", data={"X": X, "y": Y})
    second: dict[str, Any] = {"hess": s.hess} if method == "trust-exact" else {"hessp": s.hessp}
    found = minimize(s.fun, np.zeros(4), jac=s.jac, method=method, **second)
    assert np.abs(s.jac(found.x)).max() < 1e-3


def test_value_and_gradient_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    s = tc.scipy_functions(LOGISTIC, "w", data={"X": X, "y": Y})
    calls: list[Any] = []
    first = s._first
    monkeypatch.setattr(s, "_first", lambda point: calls.append(point) or first(point))
    x = np.zeros(4)
    before = s.jac(x)
    before[:] = 7
    assert s.fun(x) == pytest.approx(60 * np.log(2))
    assert np.abs(s.jac(x)).max() != 7
    assert len(calls) == 1
    x[0] = 1
    s.fun(x)
    assert len(calls) == 2


# --- Newton ---------------------------------------------------------------------------------------


def test_convex_objective_in_few_steps() -> None:
    found = tc.newton(LOGISTIC, {"w": np.zeros(4)}, data={"X": X, "y": Y})
    assert found.success
    assert found.nit < 10
    s = tc.scipy_functions(LOGISTIC, "w", data={"X": X, "y": Y})
    other = minimize(s.fun, np.zeros(4), jac=s.jac, method="BFGS", options={"gtol": 1e-9})
    assert np.allclose(found.x["w"], other.x, atol=1e-6)
    assert found.fun == pytest.approx(other.fun)
    errors = np.sqrt(found.hess.inverse().diagonal())
    assert np.allclose(errors, np.sqrt(np.diag(np.linalg.inv(s.hess(found.x["w"])))))


def test_several_variables_and_an_indefinite_start() -> None:
    found = tc.newton(FACTORS, start(), data=FACTOR_DATA)
    assert found.success
    assert found.fun == pytest.approx(least_of_factors())
    assert set(found.x) == {"U", "V"} == set(found.jac)
    hess = found.hess  # nested as they are
    assert np.array_equal(hess["U"]["V"].todense(), hess["V"]["U"].T.todense())
    assert set(hess.diagonal()) == {"U", "V"}
    once = hess @ hess.solve(found.jac)
    assert all(np.allclose(once[name], found.jac[name], atol=1e-9) for name in found.jac)


def test_singular_hessian_is_damped() -> None:
    f = tc.parse("norm2(A*w - b)^2", A=("m", "n"), b=("m",), w=("n",))
    A = np.outer(np.arange(1.0, 5), [1.0, 2.0])
    found = tc.newton(f, {"w": np.array([3.0, -1.0])}, data={"A": A, "b": np.ones(4)})
    assert found.success
    assert found.fun == pytest.approx(np.linalg.lstsq(A, np.ones(4))[1].sum() or 4 - 100 / 30)


def test_a_saddle_is_no_success() -> None:
    f = tc.parse("x1^2 - x2^2 + x1^4 + x2^4", x1=(), x2=())
    found = tc.newton(f, {"x1": 0.0, "x2": 0.0})
    assert not found.success
    assert "no minimum" in found.message


def test_saddles_of_even_index_are_left_and_told() -> None:
    w, a = tc.var("w", "n"), tc.var("a", "n")
    f = tc.sum(a * w**2) / 2 + tc.sum(w**4) / 4
    data = {"a": [-1.0, -1.0, 100.0]}
    found = tc.newton(f, {"w": np.array([0.1, 0.1, 1.0])}, data=data)
    assert found.success
    assert found.fun == pytest.approx(-0.5)
    stuck = tc.newton(f, {"w": np.array([0.0, 0.0, 1.0])}, data=data)
    assert not stuck.success
    assert "no minimum" in stuck.message


@pytest.mark.parametrize("seed", range(8))
def test_minima_that_are_not_isolated_are_minima(seed: int) -> None:
    """Rotations of the factors leave the objective as it is, so the Hessian is singular."""
    rng = np.random.default_rng(seed)
    point = {"U": rng.standard_normal((9, 2)), "V": rng.standard_normal((6, 2))}
    found = tc.newton(FACTORS, point, data=FACTOR_DATA)
    assert found.success
    assert found.fun == pytest.approx(least_of_factors())


def test_points_where_the_objective_is_not_defined_are_avoided() -> None:
    A = tc.var("A", ("n", "n"), symmetric=True)
    f = tc.trace(A) - tc.linalg.logdet(A @ A) / 2 - tc.linalg.sumlogdiag(tc.linalg.cholesky(A))
    found = tc.newton(f, {"A": 9.0 * np.eye(3)})
    assert found.success
    assert np.allclose(found.x["A"], 1.5 * np.eye(3), atol=1e-6)


def test_single_precision_stays() -> None:
    f = tc.parse("sum(exp(w) - c .* w)", c=("n",), w=("n",))
    c = np.array([1, 2], np.float32)
    found = tc.newton(f, {"w": np.zeros(2, np.float32)}, data={"c": c}, tolerance=1e-5)
    assert found.success
    assert found.x["w"].dtype == np.float32


def test_start_is_not_changed_and_steps_are_limited() -> None:
    begin = np.zeros(4)
    found = tc.newton(LOGISTIC, {"w": begin}, data={"X": X, "y": Y}, max_steps=1)
    assert not found.success
    assert found.nit == 1
    assert not begin.any()


def test_callback_sees_every_step_and_may_stop() -> None:
    seen: list[float] = []

    def stop(state: Any) -> None:
        seen.append(state.fun)
        if len(seen) == 2:
            raise StopIteration

    found = tc.newton(LOGISTIC, {"w": np.zeros(4)}, data={"X": X, "y": Y}, callback=stop)
    assert seen[0] > seen[1] == found.fun
    assert found.message == "stopped by the callback"


def test_an_interrupt_gives_the_best_point_so_far() -> None:
    """Also where this process ignores interrupts from its start, as jobs in the background do."""

    def interrupt(state: Any) -> None:
        if state.nit == 2:
            _thread.interrupt_main()

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = tc.newton(LOGISTIC, {"w": np.zeros(4)}, data={"X": X, "y": Y}, callback=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert not found.success
    assert found.message.startswith("interrupted after")
    assert found.fun < 60 * np.log(2)


# --- errors ---------------------------------------------------------------------------------------

MISTAKES: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: tc.newton(LOGISTIC, {"z": 1.0}), TypeError, "z is not a variable of the objective"),
    (lambda: tc.newton(LOGISTIC, {}), TypeError, "variables to minimise over"),
    (lambda: tc.newton(3, {"w": 1.0}), TypeError, "not int"),  # type: ignore[arg-type]
    (
        lambda: tc.newton(LOGISTIC, {"w": np.zeros(4)}, data={"X": X}),
        TypeError, "y is missing",
    ),
    (
        lambda: tc.newton(LOGISTIC, {"w": np.zeros(3)}, data={"X": X, "y": Y}),
        tc.ShapeError, "w has extent 3",
    ),
    (
        lambda: tc.newton(LOGISTIC, {"w": np.full(4, np.nan)}, data={"X": X, "y": Y}),
        ValueError, "nan at the start",
    ),
    (
        lambda: tc.scipy_functions(LOGISTIC, "w", data={"X": X, "y": Y}).fun(np.zeros(3)),
        tc.ShapeError, "a vector of 3 entries, expected 4",
    ),
    (
        lambda: tc.scipy_functions(LOGISTIC, "w").fun(np.zeros(3)),
        tc.ShapeError, "pack a start first",
    ),
    (
        lambda: tc.scipy_functions(LOGISTIC, "w", data={"w": np.zeros(4)}),
        TypeError, "both a variable to minimise over and data",
    ),
    (
        lambda: tc.scipy_functions(LOGISTIC, ("w", "w")),
        TypeError, "each once",
    ),
    (
        lambda: tc.scipy_functions(FACTORS, ("U", "V"), data=FACTOR_DATA).pack({"U": T}),
        TypeError, "V is missing",
    ),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(MISTAKES)))
def test_mistakes(place: int) -> None:
    call, kind, words = MISTAKES[place]
    with pytest.raises(kind, match=words):
        call()


# --- objectives with rounding errors --------------------------------------------------------------


def marginal_likelihood(
    noise: Any, n: int, seed: int, spread: float = 0.1
) -> tuple[tc.Expr, dict[str, np.ndarray]]:
    """A Gaussian process of a sine: the negative logarithm, and its data; `th` are logarithms."""
    rng = np.random.default_rng(seed)
    inputs = np.sort(rng.uniform(0, 3, n))
    x, y, th = tc.var("x", "n"), tc.var("y", "n"), tc.var("th", 2)
    squares = (x[:, None] - x[None, :]) ** 2
    K = tc.exp(th[0] - squares * tc.exp(-th[1]) / 2) + noise * tc.eye("n")
    factor = tc.linalg.cholesky(K)
    white = tc.linalg.solve_triangular(factor, y, lower=True)
    values = np.sin(inputs) + spread * rng.normal(size=n)
    return white @ white / 2 + tc.linalg.sumlogdiag(factor), {"x": inputs, "y": values}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("noise", [1e-2, 1e-6, 1e-9])
def test_newton_finds_the_minimum_of_an_ill_conditioned_likelihood(noise: float, seed: int) -> None:
    """Its Hessian is symmetric to a few digits less than all, and its values have fewer too."""
    f, data = marginal_likelihood(noise, 60, seed, noise**0.5)
    found = tc.newton(f, {"th": np.zeros(2)}, data=data)
    assert found.success, found.message
    assert found.nit <= 20
    s = tc.scipy_functions(f, "th", data=data)
    other = minimize(s.fun, np.zeros(2), jac=s.jac, hess=s.hess, method="trust-exact")
    rounding = 1e-15 / noise * abs(other.fun) + 1e-9
    assert found.fun <= other.fun + rounding


@pytest.mark.parametrize("method", ["BFGS", "SLSQP", "trust-constr", "trust-krylov"])
def test_minimisers_step_back_from_points_without_a_value(method: str) -> None:
    """The covariance is definite for positive noise only, and nothing else keeps it so."""
    t = tc.var("t")
    f, data = marginal_likelihood(t, 40, 0)
    s = tc.scipy_functions(f, ["th", t], data=data)
    at = s.pack([np.zeros(2), 0.5])
    assert np.isfinite(s.fun(at))
    beside = at - np.array([0, 0, 10])
    assert s.fun(beside) == np.inf
    assert np.isnan(s.jac(beside)).all()
    with pytest.raises(tc.LinAlgError, match="not positive definite"):
        s.hess(beside)
    hess = s.hess if method.startswith("trust") else None
    found = minimize(s.fun, at, jac=s.jac, hess=hess, method=method)
    best = tc.newton(f, {"th": np.zeros(2), "t": 0.5}, data=data)
    assert best.success
    assert found.fun == pytest.approx(best.fun, abs=1e-3)


def test_a_start_without_a_value_is_told() -> None:
    t = tc.var("t")
    f, data = marginal_likelihood(t, 10, 0)
    s = tc.scipy_functions(f, ["th", t], data=data)
    with pytest.raises(tc.LinAlgError, match="not positive definite"):
        s.fun(s.pack([np.zeros(2), -10.0]))
    with pytest.raises(tc.LinAlgError, match="not positive definite"):
        s.hess(s.pack([np.zeros(2), -10.0]))


def test_steps_stay_where_unknowns_are_declared_to_be() -> None:
    """Beyond it the objective has no value: steps are shortened, as where a logarithm has none."""
    S = tc.var("S", (2, 2), positive_definite=True)
    found = tc.newton(-3 * tc.linalg.logdet(S) + tc.trace(S), {"S": 9 * np.eye(2)})
    np.testing.assert_allclose(found.x["S"], 3 * np.eye(2), atol=1e-7)
    q = tc.var("q", "n", nonnegative=True)
    found = tc.newton(tc.sum(q - 2 * tc.log(q)), {"q": np.full(2, 9.0)})
    np.testing.assert_allclose(found.x["q"], 2, atol=1e-7)
    with pytest.raises(
        tc.DeclarationError, match="q is declared nonnegative, but its data are not"
    ):
        tc.newton(tc.sum(q - 2 * tc.log(q)), {"q": np.full(2, -9.0)})


def test_what_is_no_objective_is_told() -> None:
    with pytest.raises(TypeError, match="scipy_functions takes an expression, not function"):
        tc.scipy_functions(lambda x: np.sum(x**2), "x")  # type: ignore[arg-type]
    square = tc.sum(tc.var("x", "n") ** 2)
    with pytest.raises(TypeError, match="newton has no option maxiter; there are tolerance, max_s"):
        tc.newton(square, {"x": np.ones(3)}, maxiter=5)
    with pytest.raises(TypeError, match="scipy_functions has no option maxiter; there are backend"):
        tc.scipy_functions(square, "x", maxiter=5)
    with pytest.raises(TypeError, match="x is not a variable of the objective: it has none"):
        tc.newton(tc.sum(tc.var("x", "n")) * 0 + 1, {"x": np.ones(3)})
