"""Errors of the index language word by word, long and deep texts, and nonsense."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcalc as tc

DECLARED: dict[str, Any] = {
    "x": ("n",), "X": ("m", "n"), "a": (3, 5), "b": (4, 5), "c": (), "d": (8,),
}  # fmt: skip

PARSE_ERRORS = [
    # text, line, column, words of the message
    ("", 1, 1, ["empty", "name[indices] = expression"]),
    ("# only\n", 2, 1, ["empty"]),
    ("f[i] = x[i] + q", 1, 15, ["`q` is neither declared nor an index"]),
    ("f[i] = q[i]", 1, 8, ["`q` is no array"]),
    ("f[i] = a[i,k]", 1, 12, ["`k` is not a dimension or an index"]),
    ("f[i] = sum[k](X[k,i]) + k", 1, 25, ["`k`", "sum[k](…)"]),
    ("f[i] = 1", 1, 3, ["range of `i`", "i=low..high"]),
    ("f[i=0..2.5] = 1", 1, 8, ["`2.5` is not an integer"]),
    ("f[i=0..c] = 1", 1, 8, ["`c` is not a dimension"]),
    ("f[i=0..n-1] = sum[k=0..i*i](x[k])", 1, 24, ["`i*i` is not affine"]),
    ("f[i=0..n-1] = sum[k=0..i/2](x[k])", 1, 24, ["floor(a/b)"]),
    ("f[i=0..n-1] = x[i/2]", 1, 17, ["rounded"]),
    ("f[i=0..n-1] = x[floor(i/2)]", 1, 17, ["not affine", "mod(e, n)"]),
    ("f[i=0..j, j=0..3] = 1", 1, 8, ["`j` is not a dimension or an index"]),
    ("f[i, i] = X[i,i]", 1, 6, ["`i` is an index already"]),
    ("f[i] = sum[i](x[i])", 1, 12, ["`i` is an index already", "once"]),
    ("x = 1", 1, 1, ["`x` is declared"]),
    ("t = 1; t = 2", 1, 8, ["`t` has a value already"]),
    ("1; 2", 1, 1, ["not used"]),
    ("f[i] = x[i", 1, 9, ["this [ is never closed"]),
    ("f[i] = (x[i]", 1, 8, ["this ( is never closed"]),
    ("f[i] = x[i))", 1, 11, ["expected ] for the [ at 1:9"]),
    ("f = c)", 1, 6, ["closes nothing"]),
    ("f = sum[k](x[k]", 1, 11, ["this ( is never closed"]),
    ("f = sum[k]x[k]", 1, 11, ["expected ( behind the indices of sum"]),
    ("f = sum(x)", 1, 5, ["sum[k](…)"]),
    ("f = sum[](1)", 1, 9, ["name of an index"]),
    ("f = sum[k=0..](1)", 1, 14, ["a bound of k"]),
    ("f = sum[k=0](1)", 1, 12, ["expected .. in the range of k"]),
    ("f[i+1] = x[i]", 1, 4, ["behind i"]),
    ("f[0] = 1", 1, 3, ["name of an index"]),
    ("f[i] = x[i]*2x[i]", 1, 14, ["*: 2*x"]),
    ("f[i] = exp(x[i], 2)", 1, 8, ["exp takes one argument, not 2"]),
    ("f[i] = sinn(x[i])", 1, 8, ["no function `sinn`", "did you mean sin"]),
    ("f[i] = x[i]*x(i)", 1, 13, ["`x` is an array", "x[i]"]),
    ("f[i] = [x[i]]*x[i]", 1, 9, ["no condition"]),
    ("f[i] = x[i]^2^2", 1, 14, ["powers do not chain"]),
    ("f[i] = [0 < i < 3]*x[i]", 1, 15, ["do not chain", "&"]),
    ("f[i=0..n-1] = x[mod(i, 0)]", 1, 24, ["positive"]),
    ("f = 0..4", 1, 6, ["a range stands behind an index"]),
    ("f = c = 2", 1, 7, ["name[indices] = expression"]),
    ("f =\n1", 1, 4, ["end of the line"]),
    ("t = c\nf[i] = x[i] @ c", 2, 13, ["sum[k]"]),
    ("f = c $ 2", 1, 7, ["unexpected character"]),
]

SHAPE_ERRORS = [
    ("f[i=0..4] = d[i+4]", 1, 15, ["d[i+4]", "(8,)", "index i+4 of axis 0 is 8", "0 to 7"]),
    ("f[i=0..3] = d[i-1]", 1, 15, ["d[i-1]", "is -1", "0 to 7"]),
    ("f[i=0..3] = a[0, 3*i-3]", 1, 18, ["axis 1", "(3, 5)"]),
    ("f = sum[k=0..8](d[k])", 1, 19, ["index k", "is 8"]),
    ("f = sum[k=0..7](d[k]) + d[8]", 1, 27, ["index 8"]),
    ("f[i=0..7] = sum[k=i..8](d[k])", 1, 27, ["is 8"]),
    ("f[i=0..8] = [i<=8]*d[i]", 1, 22, ["is 8"]),
    ("f[i=0..8] = where(i<8, d[i], d[i])", 1, 32, ["is 8"]),
    ("t[i=2..5] = d[i]; f[i=0..3] = t[i]", 1, 33, ["is 0", "2 to 5"]),
    ("f[i,j,k] = a[i,k]*b[j,k]*d[k]", 1, 26, ["`k` is 0..4 in a[i,k]", "(3, 5)", "0..7 in d[k]"]),
    ("f = sum[i](X[i,i])", 1, 12, ["0..m-1", "0..n-1"]),
    ("f = x", 1, 5, ["x has shape (n,)", "one subscript, not 0"]),
    ("f[i] = X[i]", 1, 8, ["(m, n)", "2 subscripts, not 1"]),
    ("f[i] = x[i]*c[i]", 1, 13, ["shape ()", "no subscripts"]),
]


def placed(error: Any, line: int, column: int, words: list[str], text: str) -> None:
    message = str(error.value)
    assert message.startswith(f"{line}:{column}: "), message
    assert all(word in message for word in words), message
    shown, caret = message.split("\n")[-2:]
    assert caret.endswith("^")
    whole = text.split("\n")[line - 1]
    assert shown[2:] == whole or shown[2:] in whole


@pytest.mark.parametrize(("text", "line", "column", "words"), PARSE_ERRORS)
def test_parse_errors(text: str, line: int, column: int, words: list[str]) -> None:
    with pytest.raises(tc.ParseError) as error:
        tc.parse_index(text, **DECLARED)
    placed(error, line, column, words, text)
    assert (error.value.line, error.value.column) == (line, column)


@pytest.mark.parametrize(("text", "line", "column", "words"), SHAPE_ERRORS)
def test_shape_errors(text: str, line: int, column: int, words: list[str]) -> None:
    with pytest.raises(tc.ShapeError) as error:
        tc.parse_index(text, **DECLARED)
    placed(error, line, column, words, text)


def test_reads_outside_are_found_when_extents_are_known() -> None:
    e = tc.parse_index("s = c\nf[i=0..n-1] = y[i+1] + s*x[i]", x="n", y="m", c=())
    np.testing.assert_allclose(e(x=[1.0, 2.0], y=[0.0, 3.0, 4.0], c=1.0), [4, 6])
    with pytest.raises(tc.ShapeError, match=r"2:15: y\[i\+1\]: index 2 is out of range .* 2"):
        e(x=[1.0, 2.0], y=[0.0, 3.0], c=1.0)
    for text in ("f[i=0..n-1] = y[i-1]", "f = sum[k=0..n](y[k])"):
        with pytest.raises(IndexError):
            tc.parse_index(text, x="n", y="m")(y=[1.0, 2.0], n=2)


def test_what_is_declared() -> None:
    with pytest.raises(TypeError, match="shape or a variable"):
        tc.parse_index("x", x=2.5)
    with pytest.raises(TypeError, match="is a str"):
        tc.parse_index(3)  # type: ignore[arg-type]
    S = tc.var("S", ("n", "n"), symmetric=True)
    e = tc.parse_index("f = sum[i,j](S[i,j]*S[j,i])", S=S)
    assert e is tc.sum(S * S)
    assert tc.parse_index("µ*2", **{"\u03bc": ()}).variables.keys() == {"\u03bc"}


DEEP = [
    "(" * 10_000 + "c" + ")" * 10_000,
    "(" * 200_000,
    "-" * 10_000 + "c",
    "exp(" * 10_000 + "c" + ")" * 10_000,
    "c+" * 5_000 + "c",
    "c*" * 5_000 + "c",
    "c^(" * 5_000 + "2" + ")" * 5_000,
    "".join(f"sum[k{i}=0..1](" for i in range(300)) + "c" + ")" * 300,
    "".join(f"sum[k{i}=0..{f'k{i - 1}' if i else 1}](" for i in range(40)) + "k39" + ")" * 40,
    "[" * 10_000,
    "d[" * 5_000 + "0" + "]" * 5_000,
    "f[k=" + "max(0," * 10_000 + "1" + ")" * 10_000 + "..3] = 1",
    "sum[k=0.." + "(" * 5_000 + "3" + ")" * 5_000 + "](k)",
    "where(c<1," * 2_000 + "c" + ",c)" * 2_000,
    "[c<1]*" * 1_000 + "c",
    "f[i=0..7] = [" + "|".join(["i<3"] * 1_000) + "]",
    "f[i=0..7] = " + "~" * 3_000 + "[i<3]",
    "".join(f"t{i} = c;" for i in range(3_000)),
    "sum[k=min(" + ",".join(map(str, range(40))) + ")..3](k)",
    "sum[k=0..99999999999999999999999999](1)",
    "d[99999999999999999999999]",
    "1" * 5_000,
    "f[i=0..7] = sum[k=i-3..i+3, l=k-i..k+i, m=l-k..l+k](k*l*m)",
]


@pytest.mark.parametrize("text", DEEP, ids=[text[:20] for text in DEEP])
def test_deep_and_long_texts_end(text: str) -> None:
    start = time.perf_counter()
    with suppress(tc.Error):
        assert isinstance(tc.parse_index(text, **DECLARED), tc.Expr)
    assert time.perf_counter() - start < 10


WORDS = ["x", "a", "c", "d", "i", "j", "k", "n", "f", "sum", "max", "exp", "mod", "where", "0", "1",
         "2.5", "(", ")", "[", "]", ",", ";", "=", "..", "+", "-", "*", "/", "^", "==", "<=", "&",
         "\n", "floor", "inv", "svd_u", "True", "~", "'", "#", "1e9"]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=14))
def test_nonsense_is_refused(words: list[str]) -> None:
    for text in ("".join(words), "f[i=0..2, j=0..1] = " + " ".join(words)):
        try:
            e = tc.parse_index(text, **DECLARED)
        except tc.Error:
            continue
        assert isinstance(e, tc.Expr)
