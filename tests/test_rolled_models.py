"""Models whose steps are loops of Python: each is one fold, with its derivatives."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import postorder
from tcalc.loops.rolling import rolled, with_fold
from tests.test_rolled_loops import loops_in

RNG = np.random.default_rng(0)
SEEN, SERIES = RNG.uniform(0, 2, (200, 2)), RNG.normal(size=200)
RATES, WEIGHTS = np.array([0.8, 0.05, 0.7, 0.06]), 0.5 * RNG.normal(size=24)

Model = Callable[[Any, Any, int], Any]


def solved(method: str, entries: bool = False, seen: bool = True) -> Model:
    """Predators and prey, as one array or two numbers."""

    def model(xp: Any, p: Any, n: int) -> Any:
        def slope(u: Any) -> Any:
            made = p[0] * u[0] - p[1] * u[0] * u[1], p[3] * u[0] * u[1] - p[2] * u[1]
            return made if entries else xp.stack(made)

        def moved(u: Any, h: float, v: Any) -> Any:
            return tuple(a + h * b for a, b in zip(u, v, strict=True)) if entries else u + h * v

        u, h, total = ((10.0, 5.0) if entries else np.array([10.0, 5.0])), 0.05, 0.0
        for t in range(n):
            a = slope(u)
            if method == "Euler":
                u = moved(u, h, a)
            elif method == "Heun":
                u = moved(moved(u, h / 2, a), h / 2, slope(moved(u, h, a)))
            else:
                b = slope(moved(u, h / 2, a))
                c = slope(moved(u, h / 2, b))
                d = slope(moved(u, h, c))
                u = moved(moved(moved(moved(u, h / 6, a), h / 3, b), h / 3, c), h / 6, d)
            if seen:
                total = total + (u[0] - SEEN[t, 0]) ** 2 + (u[1] - SEEN[t, 1]) ** 2
        return total if seen else u[0] * u[1]

    return model


def pendulum(xp: Any, p: Any, n: int) -> Any:
    """Leapfrog steps, and what is seen of them."""
    q, v, total = p[0], p[1], 0.0
    for t in range(n):
        v = v - 0.025 * p[2] * xp.sin(q)
        q = q + 0.05 * v
        v = v - 0.025 * p[2] * xp.sin(q)
        total = total + (q - SERIES[t]) ** 2
    return total * p[3]


def filtered(inverse: bool) -> Model:
    """Kalman's filter, with what it predicts and how it is corrected."""

    def model(xp: Any, p: Any, n: int) -> Any:
        f = xp.stack([xp.stack([p[0], p[1]]), xp.stack([-p[1], p[0]])])
        h, q, r = np.array([[1.0, 0.5], [0.2, 1.0]]), p[2] * np.eye(2), p[3] * np.eye(2)
        m, s, total = np.zeros(2), np.eye(2), 0.0
        for t in range(n):
            m, s = f @ m, f @ s @ f.T + q
            w, e = h @ s @ h.T + r, SEEN[t] - h @ m
            if inverse:
                gain, total = s @ h.T @ xp.linalg.inv(w), total - e @ xp.linalg.inv(w) @ e
            else:
                gain, total = xp.linalg.solve(w, h @ s).T, total - e @ xp.linalg.solve(w, e)
            total = total - xp.linalg.slogdet(w)[1]
            m, s = m + gain @ e, s - gain @ h @ s
        return total

    return model


def volatility(xp: Any, p: Any, n: int) -> Any:
    """GARCH(1, 1), which begins with its stationary variance."""
    e, total = SERIES[0] - p[3], 0.0
    h = p[1] / (1 - p[0] / 2 - p[2] / 2)
    for t in range(1, n):
        h = p[1] + p[2] / 2 * e**2 + p[0] / 2 * h
        e = SERIES[t] - p[3]
        total = total - xp.log(h) - e**2 / h
    return total


def leverage(xp: Any, p: Any, n: int) -> Any:
    """Variances that losses raise more than gains."""
    h, total, e = p[1], 0.0, SERIES[0] - p[3]
    for t in range(1, n):
        h = p[1] + (p[3] + p[2] / 2 * xp.where(e < 0, 1.0, 0.0)) * e**2 + p[0] / 2 * h
        e = SERIES[t] - p[3]
        total = total - xp.log(h) - e**2 / h
    return total


def long_memory(xp: Any, p: Any, n: int) -> Any:
    """Cells of an LSTM."""
    w, h, c, total = p.reshape(4, 3, 2), np.zeros(2), np.zeros(2), 0.0
    for t in range(n):
        z = xp.concatenate([h, SEEN[t, :1]])
        i, f, o = (1 / (1 + xp.exp(-(z @ w[k]))) for k in range(3))
        c = f * c + i * xp.tanh(z @ w[3])
        h = o * xp.tanh(c)
        total = total + xp.sum((h - SEEN[t]) ** 2)
    return total


def gated_unit(xp: Any, p: Any, n: int) -> Any:
    """Cells of a GRU."""
    w, u, h, total = p[:12].reshape(3, 2, 2), p[12:].reshape(3, 2, 2), np.zeros(2), 0.0
    for t in range(n):
        z, r = (1 / (1 + xp.exp(-(w[k] @ SEEN[t] + u[k] @ h))) for k in range(2))
        h = (1 - z) * xp.tanh(w[2] @ SEEN[t] + u[2] @ (r * h)) + z * h
        total = total + xp.sum((h - SEEN[t]) ** 2)
    return total


def momentum(xp: Any, p: Any, n: int) -> Any:
    """Gradient descent."""
    a = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]])
    x, v = np.zeros(3), np.zeros(3)
    for _ in range(n):
        v = p[0] * v - 0.05 * (a @ x - p[1:] + 0.1 * x**3)
        x = x + v
    return xp.sum(x * x) + x[0]


def newton(xp: Any, p: Any, n: int) -> Any:
    x = p[0] + 1
    for _ in range(n):
        x = x - 0.5 * (x**3 - p[1] * x - p[2]) / (3 * x**2 + p[3])
    return x


def horner(xp: Any, p: Any, n: int) -> Any:
    y = 0.0
    for t in range(n):
        y = y * p[0] + SERIES[t]
    return y * p[2]


def second_order(xp: Any, p: Any, n: int) -> Any:
    """A linear recurrence with what comes in."""
    a, b, total = p[0], p[2], 0.0
    for t in range(n):
        a, b = b, p[1] * a + p[2] * b + SERIES[t]
        total = total + b * b
    return total


def third_order(xp: Any, p: Any, n: int) -> Any:
    """An autoregression, and what is left of it under other coefficients."""
    y, total = [p[0], p[1], p[2]], 0.0
    for t in range(n):
        y.append(p[0] * y[-1] - 0.2 * y[-2] + p[1] * y[-3] + p[3] * SERIES[t])
        total = total + (y[-1] - p[1] * y[-2] - p[3] * y[-3] - 0.1 * p[2] * y[-4]) ** 2
    return total


def seasons(xp: Any, p: Any, n: int) -> Any:
    """What was six steps before, and nothing between."""
    x = [p[k % 4] * SERIES[k] for k in range(6)]
    for t in range(n):
        x.append(p[0] * x[-1] + p[1] * x[-6] + p[2] * SERIES[t])
    return sum(v * v for v in x)


def coupled(held: bool, cubic: bool) -> Model:
    """Two oscillators that pull at each other with one force, by steps of Euler's."""

    def model(xp: Any, p: Any, n: int) -> Any:
        x, v, y, w, total = p[3], 0.0, 0.3, 0.0, 0.0
        for t in range(n):
            force = p[0] * (y - x) + (p[2] * (y - x) ** 3 if cubic else 0.0)
            a, b = (force - p[1] * x, -force - p[1] * y) if held else (force, -force)
            x, v, y, w = x + 0.05 * v, v + 0.05 * a, y + 0.05 * w, w + 0.05 * b
            if cubic:
                total = total + (x - SEEN[t, 0]) ** 2 + (y - SEEN[t, 1]) ** 2
        return total if cubic else x * x + v * y

    return model


def oscillator(xp: Any, p: Any, n: int) -> Any:
    x, v = p[0], p[3]
    for _ in range(n):
        x, v = x + 0.05 * v, v + 0.05 * (p[2] * (1 - x * x) * v - x)
    return x * x + v * v


def forced(xp: Any, p: Any, n: int) -> Any:
    """Runge-Kutta steps, whose stages share a force where times are equal in floating point."""

    def slope(y: Any, t: float) -> Any:
        return p[1] * 10 * np.cos(t) - p[0] * y

    y, h = p[2], 0.05
    for k in range(n):
        t = k * h
        a = slope(y, t)
        b = slope(y + h / 2 * a, t + h / 2)
        c = slope(y + h / 2 * b, t + h / 2)
        y = y + h / 6 * (a + 2 * b + 2 * c + slope(y + h * c, t + h))
    return y * y


def hidden_states(xp: Any, p: Any, n: int) -> Any:
    """Forward probabilities of a hidden Markov chain, as logarithms."""
    change = p.reshape(2, 2) - xp.log(xp.sum(xp.exp(p.reshape(2, 2)), axis=1))[:, None]
    a = -((SERIES[0] - p[:2]) ** 2)
    for t in range(1, n):
        z = a[:, None] + change
        top = xp.max(z, axis=0)
        a = top + xp.log(xp.sum(xp.exp(z - top), axis=0)) - (SERIES[t] - p[:2]) ** 2
    return xp.log(xp.sum(xp.exp(a)))


def joseph(xp: Any, p: Any, n: int) -> Any:
    """Kalman's filter of one series, whose states are columns."""
    f, h = np.array([[1.0, 1.0], [0.0, 1.0]]), np.array([[1.0, 0.0]])
    q, r, one = xp.diag(p[:2]), p[2] * np.eye(1), np.eye(2)
    x, s, total = np.zeros((2, 1)), 10 * np.eye(2), 0.0
    for t in range(n):
        x, s = f @ x, f @ s @ f.T + q
        e, w = SERIES[t] - h @ x, h @ s @ h.T + r
        gain = s @ h.T @ xp.linalg.inv(w)
        left = one - gain @ h
        x, s = x + gain @ e, left @ s @ left.T + gain @ r @ gain.T
        total = total - xp.linalg.slogdet(w)[1] - (e.T @ xp.linalg.inv(w) @ e)[0, 0]
    return total * p[3]


def lorenz(xp: Any, p: Any, n: int) -> Any:
    """Three numbers, by Heun's method."""

    def slope(x: Any, y: Any, z: Any) -> Any:
        return p[0] * 10 * (y - x), x * (30 * p[2] - z) - y, x * y - 2 * p[0] * z

    s = (1.0, 1.0, 1.0)
    for _ in range(n):
        a = slope(*s)
        b = slope(*[v + 0.01 * d for v, d in zip(s, a, strict=True)])
        s = tuple(v + 0.005 * (d + e) for v, d, e in zip(s, a, b, strict=True))
    return s[0] * s[1] + s[2]


def bodies(method: str, pull: str) -> Model:
    """Four bodies in the plane that pull at each other."""

    def model(xp: Any, p: Any, n: int) -> Any:
        def force(q: Any) -> Any:
            d = q[:, None] - q[None]
            near = 1 / ((d**2).sum(-1)[..., None] + p[3]) ** 1.5
            return -p[2] * (d * near if pull == "gravity" else xp.tanh(d)).sum(1)

        q, v, h = p[0] * SEEN[:4], p[1] * SEEN[4:8], 0.05
        for _ in range(n):
            if method == "explicit":
                q, v = q + h * v, v + h * force(q)
            elif method == "symplectic":
                v = v + h * force(q)
                q = q + h * v
            else:
                v = v + h / 2 * force(q)
                q = q + h * v
                v = v + h / 2 * force(q)
        return (q * q).sum()

    return model


MODELS: dict[str, tuple[Model, np.ndarray]] = {
    **{
        f"{method} {'entries' if entries else 'arrays'}{' seen' if seen else ''}": (
            solved(method, entries, seen), RATES,
        )
        for method in ("Euler", "Heun", "Runge-Kutta") for entries in (False, True)
        for seen in (False, True)
    },
    "coupled": (coupled(False, False), RATES), "coupled and held": (coupled(True, False), RATES),
    "coupled by cubes": (coupled(True, True), RATES),
    **{
        f"bodies {method} {pull}": (bodies(method, pull), RATES)
        for method in ("explicit", "symplectic", "leapfrog") for pull in ("gravity", "differences")
    },
    "solving filter": (filtered(False), RATES), "inverting filter": (filtered(True), RATES),
    **{f.__name__: (f, RATES) for f in (
        pendulum, volatility, momentum, newton, horner, second_order, hidden_states, joseph, lorenz,
        third_order, seasons, oscillator, forced, leverage,
    )},
    **{f.__name__: (f, WEIGHTS) for f in (long_memory, gated_unit)},
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("n", [24, 100])
def test_steps_are_one_fold(name: str, n: int) -> None:
    """Each is one of its own, and what is left around it does not grow with the steps."""
    model, at = MODELS[name]
    e = tc.sum(model(tc.numpy, tc.var("p", at.shape), n))
    (found,) = rolled([e], lambda rows: None)
    (loop,) = loops_in(found)
    assert loop.params[1] >= n - 6
    step = len(postorder([e])) / n
    assert len(postorder([found])) < 60 + 5 * step
    np.testing.assert_allclose(found(p=at), model(np, at, n), rtol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_steps_with_turned_axes_have_the_same_values(name: str) -> None:
    """As they are compared where the normal form turns axes from step to step."""
    model, at = MODELS[name]
    e = tc.sum(model(tc.numpy, tc.var("p", at.shape), 24))
    found = with_fold([e], lambda rows: None, True)
    (value,) = [e] if found is None else found
    np.testing.assert_allclose(value(p=at), model(np, at, 24), rtol=1e-9)


@pytest.mark.parametrize("name", ["Runge-Kutta arrays", "solving filter", "joseph", "lorenz"])
def test_few_steps_that_are_long_are_one_fold(name: str) -> None:
    model, at = MODELS[name]
    e = tc.sum(model(tc.numpy, tc.var("p", at.shape), 8))
    (found,) = rolled([e], lambda rows: None)
    (loop,) = loops_in(found)
    assert loop.params[1] >= 6
    assert len(postorder([found])) < len(postorder([e])) / 2
    np.testing.assert_allclose(found(p=at), model(np, at, 8), rtol=1e-9)


def slope_of(model: Model, at: np.ndarray, n: int) -> np.ndarray:
    """The gradient by complex steps, which lose no digits (Squire and Trapp 1998)."""
    linalg = SimpleNamespace(
        solve=np.linalg.solve,
        inv=np.linalg.inv,
        slogdet=lambda a: (1, np.log(np.linalg.det(a))),  # analytic, as NumPy's modulus is not
    )
    xp = SimpleNamespace(**{**vars(np), "linalg": linalg})
    return np.array([model(xp, at + 1e-30j * e, n).imag / 1e-30 for e in np.eye(len(at))])


@pytest.mark.parametrize("name", MODELS)
def test_derivatives_are_those_by_complex_steps(name: str) -> None:
    """Of second order along a direction, by differences of gradients."""
    (model, at), n = MODELS[name], 12
    wanted = slope_of(model, at, n)
    np.testing.assert_allclose(
        tc.grad(lambda p: model(np, p, n))(at), wanted, rtol=1e-8, atol=1e-9 * abs(wanted).max()
    )
    along = 1e-5 * np.linspace(0.5, 1, len(at))
    wanted = slope_of(model, at + along, n) - slope_of(model, at - along, n)
    found = tc.hessian(lambda p: model(np, p, n))(at) @ (2 * along)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5 * abs(wanted).max())


def test_expressions_of_some_steps_are_derived_as_loops() -> None:
    """By hand as traced: of twenty steps a gradient has about as many nodes as of forty."""
    model, at = MODELS["bodies leapfrog gravity"]
    p = tc.var("p", at.shape)
    slopes = [tc.grad(model(tc.numpy, p, n), p) for n in (20, 40)]
    few, many = [len(postorder([slope.inner])) for slope in slopes]
    assert many < few + 10
    np.testing.assert_allclose(slopes[0](p=at), slope_of(model, at, 20), rtol=1e-8)
