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
    ("||x||", 1, "norm(a)"),
    ("|x|", 1, "abs(a)"),
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
        ("std(X, axis=0)", X.std(0)),
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
