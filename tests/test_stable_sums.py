"""Sums of exponentials, however they are spelled, and their derivatives at large arguments.

The oracle is the formula as it is written, with numbers of 1,500 digits in mpmath, and differences
of it.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from scipy import special

import tcalc as tc

a, b, c = (tc.var(name) for name in "abc")
x, y = tc.var("x", 3), tc.var("y", 3)
X, K = tc.var("X", (2, 3)), tc.var("K", (2, 3))
VARIABLES = (a, b, c, x, y, X, K)


def _entrywise(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    ufunc = np.frompyfunc(function, 1, 1)
    return lambda x: ufunc(x)


EXACT = SimpleNamespace(
    **{name: _entrywise(getattr(mp, name)) for name in ("exp", "log", "cosh", "sinh", "sqrt")},
    log1p=_entrywise(lambda v: mp.log(1 + v)),
    log2=_entrywise(lambda v: mp.log(v, 2)),
    log10=_entrywise(lambda v: mp.log(v, 10)),
    sum=np.sum,
    mean=lambda v: np.sum(v) / np.size(v),
    reciprocal=lambda v: 1 / v,
    ndtr=_entrywise(lambda v: mp.erfc(-v / mp.sqrt(2)) / 2),
)

#: Spellings as functions of a namespace and of the variables; the weights y are of any sign.
SPELLINGS: dict[str, Callable[..., Any]] = {
    "1 + sum": lambda f, a, b, c, x, y, X, K: f.log(1 + f.sum(f.exp(x))),
    "5 + 2 sum": lambda f, a, b, c, x, y, X, K: f.log(5 + 2 * f.sum(f.exp(x))),
    "mean": lambda f, a, b, c, x, y, X, K: f.log(f.mean(f.exp(x))),
    "weights": lambda f, a, b, c, x, y, X, K: f.log(f.sum(y * f.exp(x))),
    "mean of weights": lambda f, a, b, c, x, y, X, K: f.log(f.mean(y * f.exp(x))),
    "1 + weights": lambda f, a, b, c, x, y, X, K: f.log(f.exp(a) + f.sum(y * f.exp(x))),
    "twice": lambda f, a, b, c, x, y, X, K: f.log(2 * f.sum(f.exp(x))),
    "three": lambda f, a, b, c, x, y, X, K: f.log(f.exp(a) + f.exp(b) + f.exp(c)),
    "weighted numbers": lambda f, a, b, c, x, y, X, K: f.log(2 * f.exp(a) + 3 * f.exp(b) + 0.5),
    "difference": lambda f, a, b, c, x, y, X, K: f.log(f.exp(a) - f.exp(b)),
    "less a number": lambda f, a, b, c, x, y, X, K: f.log(f.exp(a * a) - 0.5),
    "plus a variable": lambda f, a, b, c, x, y, X, K: f.log(c * c + f.exp(a)),
    "plus variables": lambda f, a, b, c, x, y, X, K: f.sum(f.log(c * c + y * y + 2 + f.exp(x))),
    "over a variable": lambda f, a, b, c, x, y, X, K: f.reciprocal(c * c + f.exp(a)),
    "log1p of a sum": lambda f, a, b, c, x, y, X, K: f.log1p(f.sum(f.exp(x))),
    "log2": lambda f, a, b, c, x, y, X, K: f.log2(1 + f.exp(a)),
    "log10": lambda f, a, b, c, x, y, X, K: f.log10(f.exp(a) + f.exp(b)),
    "axis": lambda f, a, b, c, x, y, X, K: f.sum(f.log(f.sum(f.exp(X), axis=1))),
    "other axis": lambda f, a, b, c, x, y, X, K: f.sum(f.log(f.sum(f.exp(X), axis=0)) * y),
    "weights, axis": lambda f, a, b, c, x, y, X, K: f.sum(f.log(f.sum(K * f.exp(X), axis=1))),
    "matrix": lambda f, a, b, c, x, y, X, K: f.sum(f.log(K @ f.exp(x))),
    "matrices": lambda f, a, b, c, x, y, X, K: f.sum(f.log(f.exp(X) @ f.exp(X).T)),
    "matrices, weights": lambda f, a, b, c, x, y, X, K: f.sum(
        f.log(f.exp(X) @ (K * f.exp(X)).T) * K[:, :2]
    ),
    "three matrices": lambda f, a, b, c, x, y, X, K: f.log(f.exp(x) @ f.exp(X).T @ f.exp(X) @ y),
    "shares": lambda f, a, b, c, x, y, X, K: f.log(
        f.sum(f.exp(x) / f.sum(f.exp(x)) @ (f.exp(X) / f.sum(f.exp(X), axis=1)[:, None]).T)
    ),
    "two in a sum": lambda f, a, b, c, x, y, X, K: f.log(f.sum(f.exp(x) + 3 * f.exp(-x))),
    "product": lambda f, a, b, c, x, y, X, K: f.log(f.sum(f.exp(x) * f.exp(y))),
    "nested": lambda f, a, b, c, x, y, X, K: f.log(f.exp(a) * (1 + f.exp(b)) + f.exp(c)),
    "of products": lambda f, a, b, c, x, y, X, K: f.log((1 + f.exp(a)) * f.sum(f.exp(x)) * y[0]),
    "of quotients": lambda f, a, b, c, x, y, X, K: f.log(f.sum(f.exp(x)) / f.sum(f.exp(y))),
    "root": lambda f, a, b, c, x, y, X, K: f.log(f.sqrt(1 + f.exp(a))),
    "share": lambda f, a, b, c, x, y, X, K: f.exp(a) / (f.exp(a) + f.exp(b)),
    "squared share": lambda f, a, b, c, x, y, X, K: (f.exp(a) / (f.exp(a) + f.exp(b))) ** 2,
    "share of three": lambda f, a, b, c, x, y, X, K: f.exp(a) / (f.exp(a) + f.exp(b) + f.exp(c)),
    "weighted share": lambda f, a, b, c, x, y, X, K: f.exp(a) / (y[0] * f.exp(a) + y[1] * f.exp(b)),
    "times reciprocal": lambda f, a, b, c, x, y, X, K: f.exp(a) * f.reciprocal(f.exp(a) + f.exp(b)),
    "squared below": lambda f, a, b, c, x, y, X, K: 1 / (1 + f.exp(a)) ** 2,
    "cubed below": lambda f, a, b, c, x, y, X, K: 1 / (f.exp(b) + f.exp(a)) ** 3 * f.exp(3 * b),
    "density": lambda f, a, b, c, x, y, X, K: f.exp(a) / (1 + f.exp(a)) ** 2,
    "root below": lambda f, a, b, c, x, y, X, K: 1 / f.sqrt(1 + f.exp(a)),
    "minus below": lambda f, a, b, c, x, y, X, K: 1 / (f.exp(a) - 0.5),
    "softmax": lambda f, a, b, c, x, y, X, K: f.sum(y * (f.exp(x) / f.sum(f.exp(x)))),
    "average": lambda f, a, b, c, x, y, X, K: f.sum(y * f.exp(x)) / f.sum(f.exp(x)),
    "softmax of rows": lambda f, a, b, c, x, y, X, K: f.sum(
        K * (f.exp(X) / f.sum(f.exp(X), axis=1)[:, None])
    ),
    "number below": lambda f, a, b, c, x, y, X, K: f.exp(b) / (2 * f.exp(a)),
    "root of a number below": lambda f, a, b, c, x, y, X, K: 1 / f.sqrt(3 * f.exp(a)),
    "power of a number below": lambda f, a, b, c, x, y, X, K: (5 * f.exp(a)) ** -1.5,
    "small number below": lambda f, a, b, c, x, y, X, K: 1 / (1e-200 * f.exp(a)),
    "large number below": lambda f, a, b, c, x, y, X, K: 1 / f.sqrt(1e200 * f.exp(a)),
    "log cosh": lambda f, a, b, c, x, y, X, K: f.sum(f.log(f.cosh(x))),
    "tanh": lambda f, a, b, c, x, y, X, K: f.sinh(a) / f.cosh(a),
    "log of products": lambda f, a, b, c, x, y, X, K: f.log(y[0] * f.exp(a) * f.cosh(b)),
    "log ndtr": lambda f, a, b, c, x, y, X, K: f.log(f.ndtr(a)),
    "log of ndtr times": lambda f, a, b, c, x, y, X, K: f.log(y[0] * f.ndtr(a)),
}

#: a, b, c, x; the other values are chosen so that the weighted sums are positive.
POINTS = [
    (1000.0, 999.0, -1000.0, [1000.0, 999.5, -1000.0]),
    (-20.0, -21.0, -22.0, [-1000.0, -1001.0, -999.0]),
    (20.0, 1.0, 30.0, [1e4, 1e4, 0.0]),
    (1.5, 0.5, -0.5, [0.0, 0.5, -0.5]),
    (800.0, -800.0, 0.0, [-800.0, 800.0, 720.0]),
]


def values(point: tuple[Any, ...]) -> list[np.ndarray]:
    first, second, third, entries = point
    return [
        np.array(first), np.array(second), np.array(third), np.array(entries),
        np.array([2.0, 1.5, -0.25]), np.array([entries, entries[::-1]]) / 2,
        np.array([[1.0, 0.5, 2.0], [0.3, 1.0, 0.0]]),
    ]  # fmt: skip


DIRECTION = [
    np.array(1.0), np.array(-0.5), np.array(0.25), np.array([0.5, 1.0, -1.0]),
    np.array([0.1, 0.2, -0.3]), np.array([[1.0, 0.5, 0.2], [0.3, -1.0, 0.7]]),
    np.array([[0.1, -0.2, 0.3], [0.2, 0.1, 0.0]]),
]  # fmt: skip


def along(e: tc.Expr, order: int) -> tc.Expr:
    """The derivative of an order along `DIRECTION`."""
    for _ in range(order):
        e = tc.jvp(e, VARIABLES, tuple(map(tc.const, DIRECTION)))
    return e


def exact(build: Callable[..., Any], at: list[np.ndarray], order: int) -> mp.mpf:
    with mp.workdps(1500):
        h = mp.mpf(10) ** -300

        def moved(t: mp.mpf) -> Any:
            lifted = _entrywise(mp.mpf)
            pairs = zip(at, DIRECTION, strict=True)
            return build(EXACT, *[lifted(v) + t * lifted(d) for v, d in pairs])

        if order == 0:
            return moved(mp.mpf(0))
        if order == 1:
            return (moved(h) - moved(-h)) / (2 * h)
        if order == 2:
            return (moved(h) - 2 * moved(mp.mpf(0)) + moved(-h)) / h**2
        return (moved(2 * h) - 2 * moved(h) + 2 * moved(-h) - moved(-2 * h)) / (2 * h**3)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_sums_of_exponentials_are_stable(spelling: str) -> None:
    build = SPELLINGS[spelling]
    e = build(tc, *VARIABLES)
    for order in range(4):
        wrong = []
        steps = [tc.compile(along(e, order), backend=name) for name in ("numpy", "c")]
        for point in POINTS:
            at = values(point)
            wanted = exact(build, at, order)
            for step in steps:
                arrays = {v.name: value for v, value in zip(VARIABLES, at, strict=True)}
                found = step(arrays)
                if not abs(found - wanted) <= 1e-9 * abs(wanted) + 1e-11:
                    wrong.append((point, order, found, mp.nstr(wanted)))
        assert not wrong, (str(tc.simplify(e)), str(along(e, order)), wrong)


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_stable_forms_are_left_as_they_are(spelling: str) -> None:
    once = tc.simplify(SPELLINGS[spelling](tc, *VARIABLES))
    assert tc.simplify(once) is once


# --- the row with weights -------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_weighted_log_sums_are_those_of_scipy(backend: str) -> None:
    rng = np.random.default_rng(4)
    e = tc.log(tc.sum(K * tc.exp(X), axis=1))
    step = tc.compile({"e": e, "by X": tc.grad(tc.sum(e), X)}, backend=backend)
    for scale in (1.0, 1e3, 1e5):
        for _ in range(20):
            exponents, weights = scale * rng.normal(size=(2, 3)), rng.normal(size=(2, 3))
            weights[rng.random(size=(2, 3)) < 0.3] = 0.0
            found = step(X=exponents, K=weights)
            with np.errstate(all="ignore"):
                wanted = special.logsumexp(exponents, axis=1, b=weights)
                shares = weights * np.exp(exponents - wanted[:, None])
            rows = np.isfinite(wanted)
            assert not np.any(np.isfinite(found["e"][~rows]))  # log(0), log of a negative number
            np.testing.assert_allclose(found["e"][rows], wanted[rows], rtol=1e-13)
            near = rows[:, None] & (np.abs(exponents - wanted[:, None]) < 700)
            np.testing.assert_allclose(found["by X"][near], shares[near], rtol=1e-9)


def test_a_weight_of_zero_hides_its_exponent() -> None:
    e = tc.log(tc.sum(y * tc.exp(x)))
    at = {"x": np.array([1000.0, 0.0, np.inf]), "y": np.array([0.0, 2.0, 0.0])}
    np.testing.assert_allclose(e(at), np.log(2), rtol=1e-15)


def test_weighted_log_sums_are_printed_and_read() -> None:
    e = tc.simplify(tc.log(tc.sum(y * tc.exp(x))))
    assert str(e) == "weighted_logsumexp(x, y)"
    assert tc.parse(str(e), x=(3,), y=(3,)) is e
    assert tc.parse_index(tc.to_index(e), x=(3,), y=(3,)) is e
    space: dict[str, Any] = {}
    exec(tc.to_code({"e": e, "g": tc.grad(e, x)}, "numpy"), space)
    at = np.array([1e3, 1e3 - 1, 0]), np.array([1.0, -0.5, 3.0])
    found = space["f"](*at)
    np.testing.assert_allclose(found["e"], special.logsumexp(at[0], b=at[1]), rtol=1e-15)
    np.testing.assert_allclose(found["g"], at[1] * np.exp(at[0] - found["e"]), rtol=1e-15)


TAKEN_AWAY: dict[str, Callable[..., Any]] = {
    "a + log(1 - exp(b - a))": lambda f, a, b, c: f.log(f.exp(a) - f.exp(b)),
    "a + log(1 - exp(b + 2*c - a))": lambda f, a, b, c: f.log(f.exp(a) - f.exp(b) * f.exp(c) ** 2),
    "log(1 - 2*exp(b - logaddexp(a, c))) + logaddexp(a, c)": (
        lambda f, a, b, c: f.log(f.exp(a) + f.exp(c) - 2 * f.exp(b))
    ),
    "log(sigmoid(a - b) - c*sigmoid(b - a)) + logaddexp(b, a)": (
        lambda f, a, b, c: f.log(f.exp(a) - f.exp(b) * c)
    ),
}


@pytest.mark.parametrize("form", TAKEN_AWAY)
def test_what_is_taken_away_is_no_summand_of_the_largest(form: str) -> None:
    """A logarithm wants its sum positive: then terms with a sign below it are the smaller ones."""
    e = tc.simplify(TAKEN_AWAY[form](tc, a, b, c))
    assert str(e) == form
    at = {"a": 1000.0, "b": 998.5, "c": 0.3}
    with mp.workdps(1500):
        wanted = float(TAKEN_AWAY[form](EXACT, *map(mp.mpf, at.values())))
    assert float(e({name: at[name] for name in e.variables})) == pytest.approx(wanted, rel=1e-15)


def test_products_of_exponentials_are_products_of_matrices() -> None:
    """Topics of documents and words: no array has an entry for every document, topic and word."""
    T, W = tc.var("T", ("n", "k")), tc.var("W", ("k", "m"))
    C, w = tc.var("C", ("n", "m")), tc.var("w", "k")
    shares = tc.softmax(T, axis=1) @ tc.softmax(W, axis=1)
    sizes = {"n": 60, "k": 50, "m": 70}
    rng = np.random.default_rng(0)
    data = {name: rng.normal(size=(sizes[i], sizes[j])) for name, i, j in ("Tnk", "Wkm", "Cnm")}
    data["w"] = rng.normal(size=50)
    logarithms = {
        "shares": (tc.log(shares), special.softmax(data["T"], 1) @ special.softmax(data["W"], 1)),
        "exponentials": (tc.log(tc.exp(T) @ tc.exp(W)), np.exp(data["T"]) @ np.exp(data["W"])),
        "weighted": (
            tc.log(tc.einsum("ik,k,kj->ij", tc.exp(T), tc.exp(w), tc.exp(W))),
            (np.exp(data["T"]) * np.exp(data["w"])) @ np.exp(data["W"]),
        ),
    }
    for e, product in logarithms.values():
        loss = tc.sum(C * e)
        given = {name: data[name] for name in loss.variables}
        step = tc.compile((loss, tc.grad(loss, "T")))
        value, gradient = step(given)
        assert step.plan_for(**{k: v.shape for k, v in given.items()}).peak_bytes < 4 * 8 * (
            60 * 70 + 60 * 50 + 50 * 70
        )
        np.testing.assert_allclose(value, np.sum(data["C"] * np.log(product)))
        direction, h = rng.normal(size=(60, 50)), 1e-6
        sides = [step({**given, "T": data["T"] + s * direction})[0] for s in (h, -h)]
        slope = np.subtract(*sides) / (2 * h)
        np.testing.assert_allclose(np.sum(gradient * direction), slope, rtol=1e-6)
