"""Elementwise functions that users declare are as good as the library's."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from scipy import special

import tcalc as tc
from tests.shared import run_source

x, y, X = tc.var("x", "n"), tc.var("y", "n"), tc.var("X", ("m", "n"))
RNG = np.random.default_rng(0)
DATA = {"x": RNG.uniform(0.5, 2, 4), "y": RNG.uniform(0.5, 2, 4), "X": RNG.uniform(0.5, 2, (3, 4))}


@pytest.fixture(scope="module")
def bessel() -> Any:
    """J0 and J1, each of which has the other in its derivative."""
    j1: Any = None

    def by_x(a: tc.Expr) -> tc.Expr:
        return -j1(a)

    j0 = tc.elementwise(
        "bessel0", special.j0, by_x, latex="J_0({0})", code={"numpy": "special.j0({0})"}
    )
    j1 = tc.elementwise(
        "bessel1", special.j1, lambda a, value: j0(a) - value / a, latex="J_1({0})",
        code={"numpy": "special.j1({0})"},
    )  # fmt: skip
    return j0


@pytest.mark.parametrize("backend", ["numpy", "c", "functional"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_and_derivatives_of_all_orders(bessel: Any, backend: str, dtype: Any) -> None:
    f = tc.sum(bessel(X) * tc.exp(bessel(x)))
    data = {name: DATA[name].astype(dtype) for name in ("x", "X")}
    point = DATA["x"]
    for order in range(4):
        for mode in ("forward", "reverse", "cross-country"):
            e = tc.derivative(tc.sum(bessel(x)), x, order=order, mode=mode)
            wanted = special.jvp(0, point, order)
            index = (np.arange(4),) * order
            full = np.zeros((4,) * order) if order else np.sum(wanted)
            if order:
                full[index] = wanted
            found = tc.compile(e, backend=backend)(data)
            assert found.dtype == dtype
            np.testing.assert_allclose(found, full, atol=1e-13 if dtype is np.float64 else 1e-5)
    found = tc.compile(tc.grad(f, x), backend=backend)(data)
    wanted = -special.j1(point) * np.exp(special.j0(point)) * special.j0(DATA["X"]).sum(0)
    np.testing.assert_allclose(found, wanted, rtol=1e-12 if dtype is np.float64 else 1e-5)


def test_output(bessel: Any) -> None:
    e = tc.grad(tc.sum(bessel(X) @ x), X)
    assert tc.parse(str(e), X=("m", "n"), x="n") is tc.parse(str(e), X=X, x=x)
    np.testing.assert_array_equal(tc.parse(str(e), X=X, x=x)(DATA), e(DATA))
    np.testing.assert_array_equal(tc.parse_index(tc.to_index(e), X=X, x=x)(DATA), e(DATA))
    assert "J_1(" in tc.to_latex(e)
    data = {name: DATA[name] for name in ("X", "x")}
    np.testing.assert_allclose(run_source(e, data), e(DATA), rtol=1e-13)
    named = tc.elementwise("my_fun", np.arctan, lambda a: 1 / (1 + a * a))
    assert tc.to_latex(named(x)) == r"\operatorname{my\_fun}(x)"
    with pytest.raises(tc.UnsupportedError, match="my_fun"):
        tc.to_code(named(x))


def test_two_operands_broadcast() -> None:
    angle = tc.elementwise(
        "angle", np.arctan2,
        [lambda a, b: b / (a * a + b * b), lambda a, b: -a / (a * a + b * b)],
    )  # fmt: skip
    hess = tc.hessian(tc.sum(angle(X, x)), x)
    np.testing.assert_allclose(
        hess(DATA), tc.hessian(tc.sum(tc.arctan2(X, x)), x)(DATA), rtol=1e-12
    )
    rounded = tc.elementwise("rounded_up", np.rint, None)
    np.testing.assert_array_equal(tc.grad(tc.sum(x * rounded(x)), x)(DATA), np.rint(DATA["x"]))
    half = tc.elementwise("half_known", np.hypot, [lambda a, b, value: a / value, None])
    np.testing.assert_array_equal(tc.grad(tc.sum(half(x, y)), y)(DATA), np.zeros(4))


def test_declared_again_and_loaded_elsewhere() -> None:
    first = tc.elementwise("again", np.sin, tc.cos)
    old = first(x)
    second = tc.elementwise("again", np.cos, lambda a: -tc.sin(a))
    np.testing.assert_array_equal(old(DATA), np.sin(DATA["x"]))
    np.testing.assert_array_equal(second(x)(DATA), np.cos(DATA["x"]))
    np.testing.assert_array_equal(tc.parse("again(x)", x=x)(DATA), np.cos(DATA["x"]))
    text = pickle.dumps(second(x))
    assert pickle.loads(text) is second(x)
    code = f"import pickle, tcalc\npickle.loads({text!r})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "declare it with elementwise()" in run.stderr


def test_functions_of_arrays(bessel: Any) -> None:
    def f(a: Any) -> Any:
        return np.sum(bessel(a) ** 2)

    found = tc.grad(f)(DATA["x"])
    wanted = -2 * special.j0(DATA["x"]) * special.j1(DATA["x"])
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


TAKEN = ["sin", "sum", "norm2", "1a", "a b", "", "é", "for", "__import__('os')"]


@pytest.mark.parametrize("name", TAKEN)
def test_names_that_are_taken_or_no_names(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        tc.elementwise(name, np.sin, tc.cos)


def test_wrong_shapes_are_told() -> None:
    total = tc.elementwise("wrong_total", np.sum, lambda a: a)
    with pytest.raises(tc.ShapeError, match="wrong_total gave shape"):
        total(x)(DATA)
    turned = tc.elementwise("wrong_plane", lambda a: 1j * a, None)
    with pytest.raises(TypeError, match="wrong_plane gave no real numbers, but complex128"):
        turned(x)(DATA)
    slope = tc.elementwise("wrong_slope", np.sin, lambda a: tc.ones((2, 2)))
    with pytest.raises(tc.ShapeError, match="derivative of wrong_slope"):
        tc.grad(tc.sum(slope(x)), x)
    with pytest.raises(TypeError, match="takes 1 operands, not 2"):
        slope(x, x)
    with pytest.raises(TypeError, match="derivative of odd"):
        tc.elementwise("odd", np.sin, 3)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"derivative of odd is called .* 1, .*missing .* 'b'"):
        tc.elementwise("odd", np.sin, lambda a, b, c: a)


def test_functions_of_the_library_are_derivatives_as_they_are() -> None:
    """They take any number of operands, and are called with those alone."""
    wave = tc.elementwise("wave", np.sin, tc.cos)
    np.testing.assert_allclose(tc.grad(tc.sum(wave(x)), x)(DATA), np.cos(DATA["x"]), rtol=1e-15)


@pytest.mark.parametrize(
    "texts",
    [
        {"latex": r"\frac{1}{2}{0}"},
        {"latex": r"\operatorname{sn}({0})"},
        {"latex": "{0"},
        {"code": {"c": "sin({1})"}},
        {"code": {"c": "({ double t = {0}; sin(t); })"}},
        {"code": {"numpy": "np.sin({0!r})"}},
        {"code": {"numpy": "np.sin({0:3})"}},
        {"code": {"numpy": "np.sin({})"}},
    ],
)
def test_texts_with_other_fields_than_operands_are_refused(texts: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"filled: in .* braces other than of \{0\} are doubled"):
        tc.elementwise("filled", np.sin, lambda a: tc.cos(a), **texts)
    with pytest.raises(TypeError, match="texts by the names of languages"):
        tc.elementwise("filled", np.sin, lambda a: tc.cos(a), code={"c": 3})  # type: ignore[dict-item]


def test_a_derivative_that_was_not_given_is_no_zero() -> None:
    link = tc.elementwise("link_alone", np.tanh)
    np.testing.assert_allclose(tc.sum(link(x))(DATA), np.tanh(DATA["x"]).sum())
    with pytest.raises(tc.UnsupportedError, match="link_alone was declared without a derivative"):
        tc.grad(tc.sum(link(x)), x)
    np.testing.assert_allclose(
        tc.grad(tc.sum(link(x) * y), y)(x=DATA["x"][:4], y=np.ones(4)), np.tanh(DATA["x"][:4])
    )
