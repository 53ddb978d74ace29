"""Inverses of products beside the factors of these, as in least squares: formulas and values."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc

jax.config.update("jax_enable_x64", True)  # type: ignore[no-untyped-call]

RNG = np.random.default_rng(4)
SHAPES: dict[str, tuple[str, ...]] = {
    "X": ("m", "n"), "W": ("n", "k"), "A": ("n", "n"), "B": ("n", "n"), "K": ("m", "m"),
    "y": ("m",), "z": ("m",), "w": ("n",), "s": (),
}  # fmt: skip
EXTENTS = {"m": 7, "n": 4, "k": 2}
VARIABLES = {name: tc.var(name, shape) for name, shape in SHAPES.items()}
DATA = {
    name: RNG.uniform(0.5, 1.5, [EXTENTS[extent] for extent in shape])
    for name, shape in SHAPES.items()
}


def read(text: str) -> tc.Expr:
    return tc.parse(text, **VARIABLES)


def value(text: str) -> Any:
    """The text's value in steps of NumPy, which know no inverse but as a matrix."""
    names: dict[str, Any] = {**DATA, "inv": np.linalg.inv, "tr": np.trace, "eye": np.eye}
    for name, extent in EXTENTS.items():
        names[name] = extent
    python = text.replace("*", "@").replace("s@", "s*").replace("2@", "2*").replace("'", ".T")
    return eval(python, names)


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("X*inv(X'*X)*X'*X*inv(X'*X)*X'*y", "X*inv(X'*X)*X'*y"),
        ("X'*(y - X*inv(X'*X)*X'*y)", "vector(0, n)"),
        ("X'*(2*y - X*inv(X'*X)*X'*(y + z))", "X'*(y - z)"),
        ("inv(X'*X/s)*X'*X*w", "s*w"),
        ("X*inv(s*X'*X)*X'*X*w", "X*w/s"),
        ("inv(X'*K*X)*X'*K*X*w", "w"),
        ("inv(X'*K*X)*X'*K'*X*w", None),
        ("inv(X'*X)*X'*K*X*w", None),
        ("inv(A'*A)*A'*A*w", "w"),
        ("A*inv(A'*A)*A'*w", "w"),
        ("tr(X*inv(X'*X)*X')", "extent(n)"),
        ("tr(inv(W'*A*W)*W'*A*W)", "extent(k)"),
        ("tr(inv(W'*A*W)*W'*B*W)", None),
        ("inv(A + B)*(A + B)*w", "w"),
        ("inv(A)*(A + B)", "inv(A)*B + eye(n)"),
        ("inv(X'*X + A)*(X'*X)*w", None),
    ],
)
def test_products_of_inverses(text: str, simple: str | None) -> None:
    found = tc.simplify(read(text))
    assert str(found) == (text if simple is None else simple) or simple is None
    if simple is None:
        assert "inv" in str(found)
    for e in (read(text), found) if found.variables else (read(text),):
        np.testing.assert_allclose(e(DATA), value(text), rtol=1e-8, atol=1e-9)


def fitted(xp: Any, X: Any, y: Any) -> Any:
    return X @ xp.linalg.inv(X.T @ X) @ X.T @ y


@pytest.mark.parametrize(
    ("text", "name", "formula", "function"),
    [
        (
            "norm2(y - X*inv(X'*X)*X'*y)^2", "X", "-2*(y - X*inv(X'*X)*X'*y)*y'*X*inv(X'*X)",
            lambda X, y: jnp.sum((y - fitted(jnp, X, y)) ** 2),
        ),
        (
            "norm2(y - X*inv(X'*X)*X'*y)^2", "y", "2*(y - X*inv(X'*X)*X'*y)",
            lambda X, y: jnp.sum((y - fitted(jnp, X, y)) ** 2),
        ),
        (
            "y'*X*inv(X'*X)*X'*y", "X", "2*(y - X*inv(X'*X)*X'*y)*y'*X*inv(X'*X)",
            lambda X, y: y @ fitted(jnp, X, y),
        ),
    ],
)  # fmt: skip
def test_gradients_of_what_is_fitted(text: str, name: str, formula: str, function: Any) -> None:
    gradient = tc.grad(read(text), VARIABLES[name])
    assert str(gradient) == formula
    wanted = jax.grad(function, "Xy".index(name))(DATA["X"], DATA["y"])
    for found in (gradient, tc.parse(str(gradient), **VARIABLES)):
        np.testing.assert_allclose(found(DATA), wanted, rtol=1e-8, atol=1e-9)


def test_hessian_is_the_residual_maker() -> None:
    hessian = tc.hessian(read("norm2(y - X*inv(X'*X)*X'*y)^2"), VARIABLES["y"])
    assert str(hessian) == "2*(eye(m) - X*inv(X'*X)*X')"


def test_batches() -> None:
    """One identity for each item; matrices of other items are no inverses."""
    X = tc.var("X", (3, 7, 4))
    data = RNG.normal(size=X.shape)
    gram = tc.numpy.swapaxes(X, 1, 2) @ X
    kept = tc.simplify(tc.linalg.inv(gram) @ gram)
    assert not kept.variables
    np.testing.assert_array_equal(kept(), np.broadcast_to(np.eye(4), (3, 4, 4)))
    other = tc.simplify(tc.einsum("bij,cjk->bcik", tc.linalg.inv(gram), gram))
    g = np.swapaxes(data, 1, 2) @ data
    wanted = np.einsum("bij,cjk->bcik", np.linalg.inv(g), g)
    np.testing.assert_allclose(other(X=data), wanted, rtol=1e-9, atol=1e-9)
    total = tc.simplify(tc.einsum("bij,bji->", tc.linalg.inv(gram), gram))
    assert total() == pytest.approx(12)
