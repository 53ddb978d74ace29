"""Errors of the matrix language say what to write in place of what other languages write."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc
from tcalc.languages.matrix.functions import FUNCTIONS, signature_of
from tcalc.languages.matrix.spellings import INSTEAD

SPELLED = [
    ("ln(x)", 1, "log(x)"),
    ("2*ln(x + 1)", 3, "log(x + 1)"),
    ("Tr(A)", 1, "tr(A)"),
    ("Det(A)", 1, "det(A)"),
    ("dot(x, y)", 1, "x'*y"),
    ("outer(x, y)", 1, "x*y'"),
    ("cross(x, y)", 1, "#('ijk,j,k->i', E, x, y)"),
    ("rank(A)", 1, "no derivative"),
    ("inverse(A)*x", 1, "inv(A)"),
    ("eig(A)", 1, "eigvals(A) and eigvecs(A)"),
    ("transpose(A*B)", 1, "A*B'"),
    ("ones(n)", 1, "vector(1, n)"),
    ("zeros(n)", 1, "vector(0, n)"),
    ("hadamard(A, B)", 1, "A .* B"),
    ("asin(x)", 1, "arcsin(x)"),
    ("acos(x) + atan(x)", 1, "arccos(x)"),
    ("||x||", 1, "norm(x)"),
    ("|x|", 1, "abs(x)"),
    ("x^T", 2, "x'"),
    ("A*B^T", 4, "B'"),
    ("A^-T", 2, "inv(A)'"),
    ("sin^2(x)", 1, "sin(x).^2"),
    ("a + cos^2(x + y)*b", 5, "cos(x + y).^2"),
    ("sin x", 1, "sin(x)"),
    ("log 2", 1, "log(2)"),
    ("inv A", 1, "inv(A)"),
    ("sum(X, 1)", 1, "sum(X, axis=0)"),
    ("mean(X, 2)", 1, "mean(X, axis=1)"),
    ("solve(A, x)", 1, "A \\ x"),
    ("const(100)*2", 1, "a declared variable"),
    ("svd(A)", 1, "svd_u(…) and svd_s(…)"),
]


@pytest.mark.parametrize(("text", "column", "words"), SPELLED)
def test_the_error_says_what_to_write(text: str, column: int, words: str) -> None:
    with pytest.raises((tc.ParseError, tc.ShapeError)) as caught:
        tc.parse(text)
    first, shown, caret = str(caught.value).split("\n")
    assert first.startswith(f"1:{column}: ")
    assert words in first
    assert shown == f"  {text}"
    assert caret == " " * (column + 1) + "^"


def test_the_table_names_nothing_that_the_language_has() -> None:
    assert not [name for name in INSTEAD if signature_of(name) and name not in ("ones", "zeros")]
    assert not [name for name in INSTEAD if name in FUNCTIONS and FUNCTIONS[name].least < 2]


X = np.arange(6.0).reshape(2, 3) / 4 - 0.5
Q, K, V = X, X[::-1] * 2, np.arange(4.0).reshape(2, 2)


def softmax(a: np.ndarray) -> np.ndarray:
    e = np.exp(a - a.max(axis=-1, keepdims=True))
    return np.asarray(e / e.sum(axis=-1, keepdims=True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("argsort(X, axis=2)", "argsort: axis 2 is out of range for 2 axes"),
        ("argsort(X, axis=(0, 1))", "argsort: it takes no `axis=(0, 1)`"),
        (
            "argsort(X, axis=0.5)",
            "argsort: axis= is a whole number, or several in parentheses, not `0.5`",
        ),
        (
            "argsort(X, axis=m)",
            "argsort: axis= is a whole number, or several in parentheses, not `m`",
        ),
        (
            "argmax(X, axis=True)",
            "argmax: axis= is a whole number, or several in parentheses, not `True`",
        ),
        ("sum(X, axis=0, 1)", "sum: it takes no `1` behind its operands; parameters have names"),
        (
            "sum(X, axis=0, a==1)",
            "sum: it takes no `a==1` behind its operands; parameters have names",
        ),
        ("trace(A, 1)", "trace: it takes no `1` behind its operands; parameters have names"),
        ("expm(A, 2)", "expm: it has 0 parameters behind its operands, not 1"),
        ("max(X, axis=0, keepdims=2)", "max: keepdims= is True or False, not `2`"),
        ("var(x, ddof=x)", "var: ddof= is a number, not `x`"),
        ("sum(X, axis=0, foo=1)", "sum: it takes no `foo=1`; by name it takes axis=, keepdims="),
        ("softmax(X, axis=0, axis=1)", "softmax: axis= is given twice"),
        ("argsort(X, order=0)", "argsort: it takes no `order=0`"),
        ("argsort(X, axis=0, axis=1)", "argsort: it takes no `axis=1`"),
        (
            "argsort(X, 1)",
            "argsort: it has 0 parameters behind its operands, not 1; an axis is written axis=0",
        ),
        ("cholesky(X, axis=0)", "cholesky: it takes no `axis=0`"),
        ("cumsum(x, reverse=1)", "cumsum: it takes no `reverse=1`; by name it takes axis="),
    ],
)
def test_what_a_function_does_not_take_is_named(text: str, message: str) -> None:
    with pytest.raises(tc.Error) as caught:
        tc.parse(text)
    assert str(caught.value).splitlines()[0] == f"1:1: {message}"


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("max(X, axis=0)", r"\max_{\mathrm{columns}}(X)"),
        ("cumsum(X, axis=1)", r"\operatorname{cumsum}_{\mathrm{rows}}(X)"),
        ("revcumsum(cumsum(X, axis=0), axis=0)", None),
        ("cumsum(x)", r"\operatorname{cumsum}(x)"),
        ("argsort(A*X, axis=0)", None),
        ("hardmax(A*X, axis=0)*hardmax(X, axis=1)'", None),
        ("logsumexp(X*A', axis=1)", None),
    ],
)
def test_functions_along_axes_are_printed_as_written(text: str, latex: str | None) -> None:
    shapes = {"A": ("m", "m") if "A*X" in text else ("k", "n"), "X": ("m", "n"), "x": ("n",)}
    e = tc.parse(text, **shapes)
    assert str(e) == text
    assert tc.parse(str(e), **shapes) is e
    assert latex is None or tc.to_latex(e) == latex


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sum(X, axis=0)", X.sum(0)),
        ("mean(X, axis=-1)", X.mean(-1)),
        ("max(X, axis=1)' + min(X, axis=1)'", X.max(1) + X.min(1)),
        ("prod(X + 2, axis=0)", (X + 2).prod(0)),
        ("logsumexp(X, axis=1)", np.log(np.exp(X).sum(1))),
        ("norm2(X, axis=0)", np.linalg.norm(X, axis=0)),
        ("norm1(X, axis=1)", np.abs(X).sum(1)),
        ("cumsum(X, axis=0)", X.cumsum(0)),
        ("cumsum(X, axis=1)", X.cumsum(1)),
        ("revcumsum(X, axis=0)", X[::-1].cumsum(0)[::-1]),
        ("argsort(X.*X, axis=0)", (X * X).argsort(0)),
        ("argmax(X.*X, axis=0)", (X * X).argmax(0)),
        ("argmin(X.*X, axis=-1)", (X * X).argmin(1)),
        ("hardmax(X, axis=0)", (X.max(0) == X) * 1.0),
        ("std(X, axis=0)", X.std(0)),
        ("std(X, axis=0, ddof=1)", X.std(0, ddof=1)),
        ("softmax(X)", softmax(X)),
        ("softmax(X, axis=0)", softmax(X.T).T),
        ("softmax(Q*K'/sqrt(d))*V", softmax(Q @ K.T / np.sqrt(3)) @ V),
        ("log_softmax(X)", np.log(softmax(X))),
        ("norm(X, 'fro')", np.linalg.norm(X)),
        ('norm(X, "nuc")', np.linalg.norm(X, "nuc")),
        ("norm(X, 2)", np.linalg.norm(X, 2)),
        ("X[:, 1:]*X[0, 1:]", X[:, 1:] @ X[0, 1:]),
        ("X[::-1, -1]", X[::-1, -1]),
        ("[[1, 2], [3, 4]]*X", np.array([[1.0, 2], [3, 4]]) @ X),
        ("extent(n)*X", 3 * X),
        ("zeros(2, 2, 2)", np.zeros((2, 2, 2))),
        ("eye(n-1)*X[0, 1:]", X[0, 1:]),
    ],
)
def test_functions_along_axes_are_numpys(text: str, expected: np.ndarray) -> None:
    sizes = {"n": 3} if "extent" in text else {}
    e = tc.parse(text, X=X.shape if not sizes and "n-1" not in text else (2, "n"),
                 Q=(2, 3), K=(2, 3), V=(2, 2), d=())  # fmt: skip
    data = {"X": X, "Q": Q, "K": K, "V": V, "d": 3.0}
    np.testing.assert_allclose(e(data), expected, rtol=1e-12, atol=1e-12)
    assert tc.parse(str(e), **e.variables) is e
