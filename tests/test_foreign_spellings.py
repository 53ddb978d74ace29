"""What people write who come from other notations: it is read, or told what to write instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.app.cli import main
from tcalc.languages.index.grammar import LEXICON as INDEX
from tcalc.languages.matrix.syntax import LEXICON as MATRIX

DECLARED: dict[str, Any] = {"A": ("n", "n"), "X": ("m", "n"), "x": "n", "w": "n"}


def told(read: Callable[..., tc.Expr], text: str, **declared: Any) -> tuple[str, str]:
    """The place and the message of the error for a text."""
    with pytest.raises((tc.ParseError, tc.ShapeError)) as caught:
        read(text, **(declared or DECLARED))
    place, message = str(caught.value).split("\n")[0].split(": ", 1)
    return place, message


MATRIX_TEXTS = [
    ("w*X", "1:2", "write X*w to multiply in the other order"),
    ("sum(w*X)", "1:6", "write X*w"),
    ("X'*x", "1:3", "must be equal; write X*x to multiply with the transpose"),
    ("A(1,2)", "1:1", "entries are A[…], counted from 0, and a product is written A*(…)"),
    ("x(3)", "1:1", "entries are x[…]"),
    ("x(w)", "1:1", "`x` is no function; a product is written x*(…)"),
    ("A(1,:)", "1:5", "A[0, :]"),
    ("A^{-1}", "1:3", "in parentheses, as in x^(-1)"),
    ("x^{2}", "1:3", "in parentheses"),
    ("x^T", "1:2", "there is no `^T` here; a transpose is written x'"),
    ("A^-T", "1:2", "there is no `^-T` here; the inverse of a transpose is written inv(A)'"),
    ("A^{T}*x", "1:2", "a transpose is '"),
    ("A^\\top", "1:2", "a transpose is '"),
    ("‖x‖", "1:1", "write norm(x)"),
    ("2*‖A*x - w‖^2", "1:3", "write norm(A*x - w)"),
    ("||x||_1", "1:1", "write norm(x, 1)"),
    ("‖x‖₂", "1:1", "write norm(x, 2)"),
    ("||x||_{∞}", "1:1", "write norm(x, inf)"),
    ("|x|", "1:1", "write abs(x)"),
    ("(x > 0) || (x < 1)", "1:9", "logical_or(a, b)"),
    ("|x", "1:1", "logical_or(a, b), and abs(a)"),
    ("1/n sum(x)", "1:5", "n*sum(…)"),
    ("1/n sum (x)", "1:5", "n*sum(…)"),
    ("avg(x)", "1:1", "write mean(x)"),
    ("sum(x)/len(x)", "1:8", "extent(n)"),
    ("σ(x)", "1:1", "write sigmoid(x)"),
    ("x.sum()", "1:2", "sum(x) for x.sum()"),
    ("√x", "1:1", "sqrt(x)"),
    ("\\sum x", "1:1", "LaTeX"),
    ("f := x", "1:3", "name = expression"),
    ("x > 0 and x < 1", "1:7", "logical_and(a, b)"),
    ("not x", "1:1", "logical_not(a)"),
]


INDEX_TEXTS = [
    ("f = sum[i](x(i)^2)", "1:12", "`x` is an array; its entries are x[i]"),
    ("f[i] = x[i] + X(i, 1)", "1:15", "its entries are X[i, 1]"),
    ("f = sum_j(x[j])", "1:5", "write sum[j](…)"),
    ("f = sum_j x[j]", "1:5", "write sum[j](…)"),
    ("f = sum_{j}(x[j])", "1:9", "in brackets"),
    ("f = Σ[i](x[i])", "1:5", "write sum[i](…)"),
    ("f = ∑[i](x[i])", "1:5", "write sum[i](…)"),
    ("f = mean[i](x[i])", "1:5", "write sum[i](…)/n"),
    ("f = mean(x)", "1:5", "write sum[k](…)/n"),
    ("f[i] = ln(x[i])", "1:8", "write log(x[i])"),
    ("f[i] == x[i]", "1:6", "a statement has one =: f[i] = …"),
    ("g == 2", "1:3", "a statement has one =: g = …"),
    ("f[i] = y[i]", "1:8", "`y` is no array: it is neither declared nor a name given before; "),
    ("f[i] = y[i]", "1:8", 'declare y=("n",)'),
    ("f = Z[0,1]", "1:5", 'declare Z=("m", "n")'),
    ("f = c", "1:5", "`c` is neither declared nor an index here; declare c=()"),
    ("f[i] = c", "1:8", "declare c=()"),
    ("f[i] = x[i]*lam", "1:13", "declare lam=()"),
    ("f[i] = exp(x)", "1:12", "one subscript"),
    ("f[i] = foo(x)", "1:8", "there is no function `foo`"),
    ("x[i]^2", "1:3", "an array f[i] = …"),
    ("f[i] = x[i] if x[i] > 0", "1:13", "where(condition, a, b)"),
    ("f[i] = x[i] > 0 and x[i] < 1", "1:17", "write &"),
    ("f = |x[0]|", "1:5", "write abs(x[0])"),
    ("f = ||x||^2", "1:5", "write norm(x)"),
    ("f[i] := x[i]", "1:6", "name[indices] = expression"),
    ("f[i] = A.T[i,0]", "1:9", "a[j,i]"),
]


EINSUM_TEXTS = [
    ("A*x", "1:2", "#('ij,j->i', A, x) to sum over an index, #('ij,j->ij', A, x) to keep it"),
    ("x*A", "1:2", "#('i,ik->k', x, A)"),
    ("X*w", "1:2", "#('ij,j->i', X, w)"),
    ("A(1,2)", "1:1", "index language"),
    ("A.T", "1:2", "#('ij->ji', A)"),
    ("A^{-1}", "1:3", "in parentheses"),
    ("‖x‖", "1:1", "write norm(x)"),
    ("avg(x)", "1:1", "write mean(…)"),
]


TEXTS = [
    *[(tc.parse, *row) for row in MATRIX_TEXTS],
    *[(tc.parse_index, *row) for row in INDEX_TEXTS],
    *[(tc.parse_einsum, *row) for row in EINSUM_TEXTS],
]


@pytest.mark.parametrize(("read", "text", "place", "words"), TEXTS)
def test_languages_tell_what_to_write(read: Any, text: str, place: str, words: str) -> None:
    found, message = told(read, text)
    assert found == place
    assert words in message


def test_some_messages_in_full() -> None:
    with pytest.raises(tc.ParseError) as caught:
        tc.parse("c*||A*x||_1", **DECLARED)
    assert str(caught.value) == (
        "1:3: there is no `||` here; write norm(A*x, 1)\n  c*||A*x||_1\n    ^"
    )
    assert told(tc.parse, "w*X") == (
        "1:2",
        "`*` does not take these: `w` is a column of shape (n,) and `X` is a matrix of shape "
        "(m, n); write X*w to multiply in the other order",
    )
    assert told(tc.parse_index, "f[i] = xs[i]") == (
        "1:8",
        "`xs` is no array: it is neither declared nor a name given before; did you mean `x`? "
        'Otherwise declare xs=("n",)',
    )


def test_what_is_advised_for_products_by_indices_is_read() -> None:
    A, x = np.arange(9.0).reshape(3, 3), np.array([1.0, -2.0, 0.5])
    _, message = told(tc.parse_einsum, "A*x")
    summed, kept = (part.split(" to ")[0] for part in message.split("write ")[1].split(", #"))
    assert np.allclose(tc.parse_einsum(summed, **DECLARED)(A=A, x=x), A @ x)
    assert np.allclose(tc.parse_einsum(f"#{kept}", **DECLARED)(A=A, x=x), A * x)


@pytest.mark.parametrize("read", [tc.parse_index, tc.parse_einsum])
def test_two_stars_are_a_power_where_all_is_entry_by_entry(read: Callable[..., tc.Expr]) -> None:
    text = "f[i] = -x[i]**2 + 2**-1" if read is tc.parse_index else "-x**2 + 2**-1"
    x = np.array([1.0, -3.0])
    assert np.array_equal(read(text, x="n")(x=x), -(x**2) + 2**-1)
    assert "a power of entries is .^" in told(tc.parse, "A**2")[1]


def test_a_mean_is_written_in_three_ways() -> None:
    mean = tc.parse("mean(x)", x="n")
    for text in ("sum(x)/n", "1/n*sum(x)", "sum(x)/extent(n)"):
        assert tc.parse(text, x="n") is mean
    assert tc.parse_index("f = sum[i](x[i])/n", x="n") is mean
    assert tc.parse_einsum("sum(x)/n", x="n") is mean
    assert mean(x=[1.0, 2.0, 6.0]) == 3.0


def test_an_extent_that_nothing_declares_is_told_how_to_be_one() -> None:
    _, message = told(tc.parse, "sum(x)/n", c=())
    assert message.endswith(
        "/ divides by a scalar: write sum(x) ./ n to divide entries, or declare n=() as a number, "
        'x=("n",) as an extent'
    )
    assert tc.parse("sum(x)/n", n=()).variables["n"].shape == ()
    assert tc.parse("sum(x)/n", x=("n",)) is tc.parse("mean(x)", x="n")


def test_the_command_line_is_told_its_own_declarations(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["derive", "f[i] = y[i]", "--language", "index"]) == 2
    assert "declare --var y=n" in capsys.readouterr().err
    assert main(["derive", "x*b"]) == 0
    assert main(["derive", "A*b"]) == 0
    assert main(["derive", "A\\b"]) == 2
    assert "such as --var b=n for a column" in capsys.readouterr().err


@pytest.mark.parametrize("lexicon", [MATRIX, INDEX])
def test_names_may_be_words_of_other_languages(lexicon: Any) -> None:
    words = [word for word in lexicon.hints if word.isascii() and word.isidentifier()]
    assert words
    for word in words:
        assert tc.parse(f"2*{word}", **{word: ()})(**{word: 3.0}) == 6.0


@pytest.mark.parametrize("text", ["x > 0", "(x > 0) .* x", "sum(x >= w)", "x == w", "x != w"])
def test_comparisons_are_1_or_0_outside_of_where_too(text: str) -> None:
    x, w = np.array([1.0, -2.0, 0.0]), np.array([1.0, 2.0, -1.0])
    python = text.replace(".*", "*").replace("sum(", "np.sum(")
    wanted = eval(python, {"np": np, "x": x, "w": w}) * 1.0
    e = tc.parse(text, x="n", w="n")
    assert np.array_equal(e(x=x, w=w) if "w" in text else e(x=x), wanted)
    assert tc.parse(f"where({text}, 1, 0)", x="n", w="n")(x=x, w=w).shape == wanted.shape


def test_comparisons_stand_outside_of_where_in_all_languages() -> None:
    e = tc.parse("x > 0", x="n")
    assert tc.parse_index("f[i] = x[i] > 0", x="n") is e
    assert tc.parse_einsum("x > 0", x="n") is e
