"""Errors of the matrix language word by word, long and deep texts, and nonsense."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import tcalc as tc
from tcalc.graph import nodes
from tcalc.languages.matrix.functions import FUNCTIONS, available, signature_of
from tcalc.languages.reading.lexer import MAX_DEPTH, MAX_TEXT
from tcalc.languages.reading.library import LIBRARY

DECLARED: dict[str, Any] = {
    **dict.fromkeys(("a", "b", "c"), ()),
    **dict.fromkeys(("x", "y", "mask_1"), ("n",)),
    "z": ("m",),
    **dict.fromkeys(("A", "P"), ("n", "n")),
    "B": ("m", "n"),
    "T3": ("n", "n", "n"),
    "v4": (4,),
}

PARSE_ERRORS = [
    # text, line, column, words of the message
    ("", 1, 1, ["empty", "expected an expression"]),
    (" \n# only\n", 3, 1, ["empty"]),
    ("% comment", 1, 10, ["empty"]),
    ("x +", 1, 4, ["expected a number, a name, a function or a parenthesis", "end of the text"]),
    ("x +\ny", 1, 4, ["end of the line", "inside parentheses"]),
    ("x * * y", 1, 5, ["expected a number", "`*`"]),
    ("2x", 1, 2, ["operator", "2*x"]),
    ("x y", 1, 3, ["operator", "x*y"]),
    ("2(x)", 1, 2, ["2*("]),
    ("(a)(b)", 1, 4, ["(a)*("]),
    ("x.5", 1, 2, ["x*.5"]),
    ("1e999", 1, 1, ["too large"]),
    ("1e-999", 1, 1, ["too small"]),
    ("a^b^c", 1, 4, ["(a^b)^c"]),
    ("a²^c", 1, 3, ["powers do not chain"]),
    ("a^(b)²", 1, 6, ["powers do not chain"]),
    ("a^--b", 1, 4, ["one sign"]),
    ("a^'", 1, 3, ["expected an exponent", "parenthesis"]),
    ("(a + b", 1, 1, ["never closed", "expected )"]),
    ("2*(a + (b)", 1, 3, ["never closed"]),
    ("a)", 1, 2, ["closes nothing"]),
    ("sum(x; y)", 1, 6, ["expected )", "1:4", "`;`"]),
    ("sum(x", 1, 4, ["never closed"]),
    ("sum()", 1, 5, ["an argument of sum"]),
    ("max(x,)", 1, 7, ["an argument of max"]),
    ("(a, b)", 1, 3, ["comma", "expected )"]),
    ("a, b", 1, 2, ["comma"]),
    ("a = b = c", 1, 7, ["name = expression", "=="]),
    ("= 3", 1, 1, ["expected a number"]),
    ("a = 1; a = 2", 1, 8, ["`a` has a value already"]),
    ("x = x + 1", 1, 1, ["used before"]),
    ("pi = 3", 1, 1, ["`pi` is a number"]),
    ("z = 3", 1, 1, ["declared"]),
    ("x'*y\n+ 1", 1, 1, ["not used"]),
    ("x; y", 1, 1, ["not used"]),
    ("x $ y", 1, 3, ["unexpected character '$'"]),
    ("x \x00", 1, 3, ["'\\x00'"]),
    ("x +\ud800", 1, 4, ["'\\ud800'"]),
    ("x\u200b", 1, 2, ["'\\u200b'"]),
    ("x¹", 1, 2, ["unexpected character '¹'"]),
    ("x[", 1, 3, ["expected a number"]),
    ("x[0", 1, 2, ["never closed; expected ]"]),
    ("x[1,2]", 1, 2, ["`x`: 2 indices for shape (n,)"]),
    ("A @ x", 1, 3, ["`@`", "is *"]),
    ("x ** 2", 1, 3, ["`**`", ".^", "^"]),
    ("A.T*x", 1, 2, ["`.T`", "'"]),
    ("x.Ty", 1, 2, ["unexpected character '.'"]),
    ("where(a > 1 && b > 1, a, b)", 1, 13, ["`&&`", "logical_and(a, b)"]),
    ("a || b", 1, 3, ["`||`", "logical_or(a, b)"]),
    ("|x|", 1, 1, ["`|`", "abs(x)"]),
    ("where(!a, a, b)", 1, 7, ["`!`", "logical_not(a)"]),
    ("where(a ~= b, a, b)", 1, 9, ["`~=`", "!="]),
    ("where(a ≤ b, a, b)", 1, 9, ["`≤`", "<="]),
    ("where(a ≥ b, a, b)", 1, 9, ["`≥`", ">="]),
    ("a // b", 1, 3, ["`//`", "floor(a ./ b)"]),
    ("lgo(x)", 1, 1, ["unknown function `lgo`", "did you mean `log`"]),
    ("qqqqq(x)", 1, 1, ["unknown function `qqqqq`"]),
    ("z(2)", 1, 1, ["no function", "z*("]),
    ("pi(2)", 1, 1, ["pi*("]),
    ("lambda_1*x", 1, 1, ["unknown name `lambda_1`", "lambda_1=()", 'lambda_1=("n",)']),
    ("mask + 1", 1, 1, ["did you mean `mask_1`"]),
    ("exp + 1", 1, 1, ["is a function", "exp("]),
    ("exp(x, y)", 1, 1, ["exp takes 1 argument, not 2"]),
    ("max(x, y, x)", 1, 1, ["1 to 2 arguments, not 3"]),
    ("where(x > 1)", 1, 1, ["3 arguments, not 1"]),
    ("where(a < b < c, x, y)", 1, 13, ["chain"]),
    ("eye", 1, 1, ["size of eye", "eye(n)"]),
    ("a + eye*2", 1, 5, ["eye(n)"]),
    ("tr(eye)", 1, 4, ["eye(n)"]),
    ("sum(vector(2))", 1, 5, ["vector(a, n)"]),
    ("matrix(2)*x", 1, 1, ["matrix(a, m, n)"]),
    ("matrix(2, n)", 1, 1, ["both sizes"]),
    ("eye(2.5)", 1, 5, ["int or the name of a dimension"]),
    ("eye(n*n2 + 1/2)", 1, 5, ["int or the name of a dimension"]),
    ("eye(x)*y", 1, 5, ["`x` is a variable"]),
    ("A^a", 1, 2, ["integer", "A .^ a"]),
    ("(A + A)^0.5", 1, 8, ["(A + A) .^ 0.5"]),
    ("A^1e7", 1, 2, ["1000000"]),
]

SHAPE_ERRORS = [
    ("T3*x", 1, 3, ["shape (n, n, n)", "#('ijk,k->ij', T, x)"]),
    ("x*y", 1, 2, ["`x` is a column of shape (n,)", "x'*y", "x*y'", "x.*y"]),
    ("x'*y'", 1, 3, ["`x'` is a row", "x'*y for the scalar"]),
    ("(x + y)*(x - y)", 1, 8, ["(x + y)'*(x - y)", "(x + y).*(x - y)"]),
    ("x*A", 1, 2, ["x'*A", "diag(x)*A"]),
    ("A*x'", 1, 2, ["`x'` is a row", "A*diag(x')"]),
    ("x'*z", 1, 3, ["`x'` is a row of shape (n,)", "`z` is a column of shape (m,)", "index 0"]),
    ("B*z", 1, 2, ["columns of `B` (index 1, extent n)", "entries of `z` (index 0, extent m)"]),
    ("(a +\nB*z)", 2, 2, ["`B`", "`z`"]),
    ("B*B", 1, 2, ["columns of `B` (index 1, extent n)", "rows of `B` (index 0, extent m)"]),
    ("x + z", 1, 3, ["(n,)", "(m,)", "entries of `x` (index 0, extent n)"]),
    ("x + v4", 1, 3, ["extent n", "extent 4"]),
    ("x + y'", 1, 3, ["column", "row", "transpose"]),
    ("A + x", 1, 3, ["never broadcast", "diag(v)*A"]),
    ("A.*x", 1, 2, ["never broadcast"]),
    ("max(x, z)", 1, 1, ["`x`", "`z`"]),
    ("where(x > z, 1, 2)", 1, 9, ["`x`", "`z`"]),
    ("where(x > 1, z, 2)", 1, 1, ["`x > 1`", "`z`"]),
    ("x/y", 1, 2, ["scalar", "x ./ y"]),
    ("A/P", 1, 2, ["A ./ P", "P \\ b"]),
    ("B\\z", 1, 2, ["square", "(m, n)"]),
    ("A\\z", 1, 2, ["index 1, extent n", "index 0, extent m"]),
    ("A\\x'", 1, 2, ["column or matrix"]),
    ("x'*A\\y", 1, 5, ["`x'*A` is a row"]),
    ("x^2", 1, 2, [".^", "x .^ 2"]),
    ("x²", 1, 2, ["x .^ 2"]),
    ("x³", 1, 2, ["x .^ 3"]),
    ("2^A", 1, 2, ["2 .^ A"]),
    ("B^2", 1, 2, ["square", "(m, n)"]),
    ("tr(B)", 1, 1, ["square", "rows of `B` (index 0, extent m)", "columns of `B`"]),
    ("inv(x)", 1, 1, ["square matrix", "column"]),
    ("diag(a)", 1, 1, ["scalar"]),
    ("vector(x)", 1, 1, ["a scalar"]),
    ("kron(A, x)", 1, 1, ["Kronecker"]),
    ("eye(m)*x", 1, 7, ["extent m", "extent n"]),
    ("sum(x)/h", 1, 7, ["`h` is a column of shape (k,) (undeclared)"]),
]
ERRORS = [(tc.ParseError, *row) for row in PARSE_ERRORS] + [
    (tc.ShapeError, *row) for row in SHAPE_ERRORS
]


@pytest.mark.parametrize(("kind", "text", "line", "column", "words"), ERRORS)
def test_error(kind: type[tc.Error], text: str, line: int, column: int, words: list[str]) -> None:
    with pytest.raises(kind) as caught:
        tc.parse(text, **DECLARED)
    assert type(caught.value) is kind
    message = str(caught.value)
    first, shown, caret = message.split("\n")
    assert first.startswith(f"{line}:{column}: ")
    assert all(word in first for word in words)
    assert len(caret) == 2 + column
    assert caret.endswith("^")
    assert shown[2:] == "".join(c if c.isprintable() else " " for c in text.split("\n")[line - 1])


def test_functions_follow_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in FUNCTIONS:
        assert signature_of(name) is not None
    monkeypatch.delitem(LIBRARY, "logdet")
    assert not available("logdet")
    with pytest.raises(tc.ParseError, match="`logdet` is not available"):
        tc.parse("logdet(A)")


# --- sizes and nonsense ---------------------------------------------------------------------------


def chain(count: int) -> dict[str, str]:
    return {
        "sum": "+".join(["x"] * count),
        "calls": "tanh(" * count + "x" + ")" * count,
        "parentheses": "(" * count + "x" + ")" * count,
        "right": "(x-" * count + "x" + ")" * count,
        "signs": "-" * count + "x",
        "transposes": "x" + "'" * count,
        "powers": "(" * count + "a" + ")^b" * count,
        "statements": "\n".join([f"v{k} = x{k}.*x" for k in range(count)]) + "\nx",
    }


@pytest.mark.parametrize("name", chain(1))
def test_long_and_deep_texts(name: str) -> None:
    assert tc.parse(chain(3000)[name]) is not None


def test_long_chain_keeps_its_terms() -> None:
    e = tc.parse(chain(2000)["calls"])
    assert len(nodes.postorder((e,))) == 2001


def test_bounds() -> None:
    deep = "(" * (MAX_DEPTH + 1)
    with pytest.raises(tc.ParseError, match=f"^1:{MAX_DEPTH + 1}: more than {MAX_DEPTH} nested"):
        tc.parse(deep + "x" + ")" * (MAX_DEPTH + 1))
    assert tc.parse(deep[1:] + "x" + ")" * MAX_DEPTH) is tc.parse("x")
    with pytest.raises(tc.ParseError, match="at most"):
        tc.parse("x" + " " * MAX_TEXT)


WORDS = st.sampled_from(
    [
        *"xyABSab(()),;=<+-*/\\^'²⊗123#%nm\n",
        *("pi", "eye", "sum", "exp", "max", "where", "inv", "diag", "vector", "kron", "tr"),
        *("==", ".*", "./", ".^", ".'", "0.5", "1e3"),
    ]
)


@given(st.lists(WORDS, max_size=14).map(" ".join) | st.text(max_size=20))
@example("A^-1*eye*x")
@example("1/0 + 0/0*a")
@example("where(1 > 0, 1e308*1e308, x)")
@example("0^-1 .* x")
def test_any_text_gives_an_expression_or_an_error(text: str) -> None:
    with suppress(tc.ParseError, tc.ShapeError):
        assert isinstance(tc.parse(text, S=tc.var("S", ("n", "n"), symmetric=True)), tc.Expr)


def test_functions_of_eigenvalues_are_of_square_matrices() -> None:
    e, data = tc.parse("matrix_function(A, exp)"), np.diag([1.0, 2.0])
    assert e.shape == ("n", "n")
    np.testing.assert_allclose(e(A=data), np.diag(np.exp([1.0, 2.0])), atol=1e-14)
    with pytest.raises(tc.ShapeError, match="a square one is needed here"):
        tc.parse("matrix_function_trace(B, exp)", B=("n", "m"))


def test_what_is_not_similar_is_not_suggested() -> None:
    with pytest.raises(tc.ParseError) as caught:
        tc.parse("huber(x)", x="n")
    assert "did you mean" not in str(caught.value)
