"""Data and functions where others are wanted: they work, or the error says what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

X, x, s = tc.var("X", ("m", "n")), tc.var("x", "n"), tc.var("s")
f = tc.sum(x**2)


class Recorded:
    """Data that give no array, as tensors that record gradients."""

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise RuntimeError("Can't call numpy() on Recorded; write .detach()")

    def __len__(self) -> int:
        return 2


def loss(w: Any) -> Any:
    return np.sum((w - 1) ** 2)


DATA = [
    # what is computed, of what type the error is, words of its message
    (lambda: s(s=10**400), ["s is of dtype object", "too large"]),
    (lambda: f(x=np.array([1, 2.5], object)), ["dtype object", ".astype(float) makes numbers"]),
    (lambda: f(x=np.array(["1", "2"])), ["dtype <U1", ".astype(float) makes numbers"]),
    (lambda: f(x=["a", "b"]), ["dtype <U1", "could not convert string to float", "'a'"]),
    (lambda: f(x=[{"a": 1}]), ["dtype object", "not 'dict'"]),
    (lambda: f(x=Recorded()), ["x is not an array of numbers", ".detach()"]),
    (lambda: tc.compile(f, data={"x": Recorded()})(), ["x is not an array", ".detach()"]),
    (lambda: tc.grad(loss)(Recorded()), ["grad: w is not an array of real", ".detach()"]),
    (lambda: tc.grad(loss)(np.array([1, 2], object)), ["w is not", ".astype(float)"]),
    (lambda: x + Recorded(), [".detach()"]),
    (lambda: x + np.array([10**30]), ["not object", ".astype(float) makes numbers"]),
    (lambda: x + np.array(["a"]), ["could not convert string"]),
]


@pytest.mark.parametrize(("call", "words"), DATA)
def test_data_that_are_no_numbers_say_what_to_do(call: Callable[[], Any], words: list[str]) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert [word for word in words if word not in str(caught.value)] == []


SHAPES = [
    # what is computed, the shape given, the message, and how data of it fit
    (f, (5, 1), "expected (n,); np.squeeze(x) has shape (5,)", np.squeeze),
    (f, (1, 5), "expected (n,); np.squeeze(x) has shape (5,)", np.squeeze),
    (f, (5, 2), "expected (n,)", np.ravel),
    (s, (1, 1), "expected (); np.squeeze(s) has shape ()", np.squeeze),
    (
        tc.sum(X),
        (5,),
        "expected (m, n); one column is np.reshape(X, (5, 1)), one row np.reshape(X, (1, 5))",
        lambda data: np.reshape(data, (5, 1)),
    ),
]


@pytest.mark.parametrize(("e", "shape", "message", "fitted"), SHAPES)
def test_axes_of_extent_1_are_told_apart(
    e: tc.Expr, shape: tuple[int, ...], message: str, fitted: Callable[[Any], Any]
) -> None:
    (name,) = e.variables
    for call in (e, tc.compile(e)):
        with pytest.raises(tc.ShapeError) as caught:
            call(**{name: np.ones(shape)})
        assert str(caught.value) == f"{name} has shape {shape}, {message}"
    assert e(**{name: fitted(np.ones(shape))}) == np.prod(shape)


def test_whole_numbers_are_of_any_size() -> None:
    assert s(s=10**30) == 1e30
    assert f(x=[10**30, 1, 0.5]) == 1e30**2
    assert tc.sum(X)(X=[[10**30], [1]]) == 1e30
    assert tc.grad(loss)(10**30) == 2e30
    index = tc.var("i", (), integer=True)
    with pytest.raises(
        TypeError, match=r"i is an integer variable, its data hold 1e\+30, beyond 64 bits"
    ):
        x[index](x=[1.0], i=10**30)


FUNCTIONS = [
    (lambda: tc.newton(loss, {"w": np.zeros(2)}), "newton minimises an expression"),
    (lambda: tc.scipy_functions(loss, "w"), "scipy_functions takes an expression"),
    (lambda: tc.check(loss, "w"), "one expression is checked"),
    (lambda: tc.explain(loss), "expressions are explained"),
    (lambda: tc.compress(loss), "expressions are compressed"),
    (lambda: tc.simplify(loss), "one expression is simplified at a time"),
    (lambda: tc.to_latex(loss), "formulas are written for one expression"),
    (lambda: tc.to_index(loss), "formulas are written for one expression"),
]


@pytest.mark.parametrize(("call", "begin"), FUNCTIONS)
def test_functions_are_called_with_variables(call: Callable[[], Any], begin: str) -> None:
    with pytest.raises(TypeError) as caught:
        call()
    assert str(caught.value).startswith(begin)
    assert str(caught.value).endswith(
        'function; a function gives one of variables: loss(tc.var("w", "n"))'
    )


def test_what_is_advised_of_a_function_can_be_minimised() -> None:
    found = tc.newton(loss(tc.var("w", "n")), {"w": np.zeros(2)})
    assert np.allclose(found.x["w"], 1)
    with pytest.raises(TypeError, match=r'f\(tc.var\("a", "n"\), tc.var\("b", "n"\)\)$'):
        tc.newton(lambda a, b, c=1: a, {})
    with pytest.raises(TypeError, match=r"not ndarray$"):
        tc.newton(np.zeros(2), {})


def test_torch_tensors_that_record_gradients_say_what_to_write() -> None:
    torch = pytest.importorskip("torch")
    w = torch.ones(3, requires_grad=True)
    with pytest.raises(TypeError, match=r"^x is not an array of numbers: .*\.detach\(\)"):
        f(x=w)
    assert f(x=w.detach()) == 3.0


def test_tables_in_functions_are_named() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})

    def product(w: Any) -> Any:
        return np.sum((table @ w) ** 2)

    with pytest.raises(tc.TraceError) as caught:
        tc.grad(product)(np.ones(2))
    assert str(caught.value) == (
        "`table`, a DataFrame of shape (2, 2), takes no expressions, which are no arrays; write "
        "np.asarray(table) in its place"
    )
    with pytest.raises(tc.TraceError, match=r"^a Series of shape \(2,\) takes .*asarray\(\.\.\.\)"):
        tc.grad(lambda w: np.sum(table["a"] * w))(np.ones(2))
    A = np.asarray(table)
    got = tc.grad(lambda w: np.sum((np.asarray(table) @ w) ** 2))(np.ones(2))
    assert np.allclose(got, 2 * A.T @ A @ np.ones(2))


def test_tables_are_data() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]})
    with pytest.raises(TypeError, match=r"X is of dtype object.* could not convert .* 'u'"):
        tc.sum(X)(X=table)
    with pytest.raises(tc.ShapeError, match=r"np\.squeeze\(x\) has shape \(2,\)"):
        f(x=table[["a"]])
    assert f(x=np.squeeze(table[["a"]])) == f(x=table["a"]) == 5.0
