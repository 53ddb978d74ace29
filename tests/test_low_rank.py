"""Multiples of the identity plus squares of few columns are planned by matrices of that size."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc

N, K = 400, 6
SPELLINGS = {
    "Z*Z'": "s*eye(n) + t*Z*Z'",
    "Y'*Y": "s*eye(n) + t*Y'*Y",
    "two multiples": "s*eye(n) + t*Z*Z' + eye(n)/2",
    "squares": "s^2*eye(n) + exp(t)*(Z*Z')",
    "a vector": "s*eye(n) + t*c*c'",
    "ones": "s*eye(n) + t*matrix(1, n, n)",
}
FUNCTIONS = {
    "logdet": "logdet(V)",
    "form": "r'*inv(V)*r",
    "solve": "r'*(V\\c)",
    "likelihood": "logdet(V)/2 + r'*(V\\r)/2",
    "matrix": "tr(C'*inv(V)*C)",
}


@pytest.fixture
def data() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    Z = rng.normal(size=(N, K))
    return {
        "s": 0.7, "t": 0.4, "Z": Z, "Y": Z.T.copy(), "r": rng.normal(size=N),
        "c": rng.normal(size=N), "C": rng.normal(size=(N, 2)),
    }  # fmt: skip


def parsed(spelling: str, function: str) -> tc.Expr:
    text = FUNCTIONS[function].replace("V", f"({SPELLINGS[spelling]})")
    shapes: dict[str, Any] = {
        "s": (), "t": (), "Z": ("n", "k"), "Y": ("k", "n"), "r": "n", "c": "n", "C": ("n", 2),
    }  # fmt: skip
    return tc.parse(text, **{name: shape for name, shape in shapes.items() if name in text})


def dense(spelling: str, function: str, d: dict[str, Any]) -> Any:
    """The function of s and t by jax, which factors the whole matrix."""
    Z, eye, r = d["Z"], jnp.eye(N), d["r"]

    def value(s: Any, t: Any) -> Any:
        V = {
            "Z*Z'": s * eye + t * Z @ Z.T,
            "Y'*Y": s * eye + t * Z @ Z.T,
            "two multiples": (s + 0.5) * eye + t * Z @ Z.T,
            "squares": s * s * eye + jnp.exp(t) * Z @ Z.T,
            "a vector": s * eye + t * jnp.outer(d["c"], d["c"]),
            "ones": s * eye + t * jnp.ones((N, N)),
        }[spelling]
        return {
            "logdet": lambda: jnp.linalg.slogdet(V)[1],
            "form": lambda: r @ jnp.linalg.solve(V, r),
            "solve": lambda: r @ jnp.linalg.solve(V, d["c"]),
            "likelihood": lambda: (jnp.linalg.slogdet(V)[1] + r @ jnp.linalg.solve(V, r)) / 2,
            "matrix": lambda: jnp.trace(d["C"].T @ jnp.linalg.solve(V, d["C"])),
        }[function]()

    return value


def close(found: Any, expected: Any) -> None:
    """Up to what is lost of the largest number."""
    most = float(np.abs(expected).max())
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-13 * most)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_values_and_derivatives(data: dict[str, Any], spelling: str, function: str) -> None:
    f, by_jax = parsed(spelling, function), dense(spelling, function, data)
    given = {name: data[name] for name in f.variables}
    value, slopes = tc.compile(tc.value_and_grad(f, ("s", "t")), backend="numpy")(given)
    np.testing.assert_allclose(value, by_jax(0.7, 0.4), rtol=1e-11)
    np.testing.assert_allclose(tc.compile(f)(given), value, rtol=1e-12)
    close(slopes, jax.grad(by_jax, (0, 1))(0.7, 0.4))
    compiled = tc.compile(tc.hessian(f, ("s", "t")), backend="numpy")
    expected = jax.hessian(by_jax, (0, 1))(0.7, 0.4)
    close(compiled(given), expected)
    shapes = {name: np.shape(value) for name, value in given.items()}
    for e in (compiled, tc.compile(f), tc.compile(tc.grad(f, "t"))):
        assert max(int(np.prod(shape)) for shape in e.plan_for(**shapes).shapes) < N * N


def test_derivatives_by_the_columns(data: dict[str, Any]) -> None:
    f = parsed("Z*Z'", "likelihood")
    given = {name: data[name] for name in f.variables}
    V = 0.7 * np.eye(N) + 0.4 * data["Z"] @ data["Z"].T
    inverse = np.linalg.inv(V)
    a = inverse @ data["r"]
    expected = 0.4 * (inverse - np.outer(a, a)) @ data["Z"]
    compiled = tc.compile(tc.grad(f, "Z"))
    np.testing.assert_allclose(compiled(given), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("t", [0.0, -1e-3])
def test_no_sign_is_asked_of_the_square(data: dict[str, Any], t: float) -> None:
    f = parsed("Z*Z'", "likelihood")
    given = {name: data[name] for name in f.variables} | {"t": t}
    found = tc.compile(tc.value_and_grad(f, "s"))(given)
    by_jax = dense("Z*Z'", "likelihood", data)
    np.testing.assert_allclose(found, jax.value_and_grad(by_jax)(0.7, t), rtol=1e-9)


def test_many_columns_stay_in_one_matrix(data: dict[str, Any]) -> None:
    f = parsed("Z*Z'", "likelihood")
    rng = np.random.default_rng(0)
    Z, r = rng.normal(size=(60, 40)), rng.normal(size=60)
    V = 0.7 * np.eye(60) + 0.4 * Z @ Z.T
    expected = (np.linalg.slogdet(V)[1] + r @ np.linalg.solve(V, r)) / 2
    compiled = tc.compile(f)
    np.testing.assert_allclose(compiled(s=0.7, t=0.4, Z=Z, r=r), expected, rtol=1e-12)
    plan = compiled.plan_for(Z=(60, 40), r=60, s=(), t=())
    assert (60, 60) in plan.shapes
