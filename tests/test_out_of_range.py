"""Accesses outside of an axis: refused when read, by printed programs, and by printed text."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tcalc as tc
from tests.c_programs import COMPILER, needs_compiler
from tests.interpreters import octave_script

#: Text of the index language that reads outside for all extents, the column, and what is told.
OUTSIDE: list[tuple[str, dict[str, Any], int, str]] = [
    ("f[i=0..n-1] = x[i+1]", {"x": "n"}, 17, "x[i+1] reads outside of x, of shape (n,)"),
    ("f[i=0..n-1] = x[i-1]", {"x": "n"}, 17, "index i-1 of axis 0 leaves 0 to n-1"),
    ("f[i] = sum[j=0..n](A[i,j])", {"A": ("m", "n")}, 24, "index j of axis 1 leaves 0 to n-1"),
    ("f = sum[i=0..n](x[i]*y[i])", {"x": "n", "y": "n"}, 19, "x[i] reads outside"),
    ("f = x[n]", {"x": "n"}, 7, "whatever the extents are"),
    ("f = x[-1]", {"x": "n"}, 7, "x[-1] reads outside"),
    ("f[i=0..n-1] = sum[j=0..i](x[j+1])", {"x": "n"}, 29, "x[j+1]"),
    ("f[i=0..n-1] = where(i < n, x[i+1], 0)", {"x": "n"}, 30, "x[i+1]"),
    ("f[i=0..n-1] = x[mod(i, n+1)]", {"x": "n"}, 17, "x[mod(i, n+1)]"),
    ("t[i=2..n] = x[i]; f = t[1]", {"x": "n+1"}, 25, "leaves 2 to n"),
]


@pytest.mark.parametrize(("text", "declared", "column", "told"), OUTSIDE)
def test_what_is_outside_for_all_extents_is_refused(
    text: str, declared: dict[str, Any], column: int, told: str
) -> None:
    with pytest.raises(tc.ShapeError) as caught:
        tc.parse_index(text, **declared)
    assert isinstance(caught.value, IndexError)
    assert str(caught.value).startswith(f"1:{column}: ")
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("text", "declared"),
    [
        ("f = x[5]", {"x": "n"}),
        ("f = x[n-3]", {"x": "n"}),
        ("f[i=0..2] = x[i+1]", {"x": "n"}),
        ("f[i=0..n-1] = x[2*i]", {"x": "n"}),  # inside where n is 1
        ("f = sum[j=0..k](x[j])", {"x": "n"}),
        ("f[i=0..n-1] = X[n*i]", {"X": "m"}),
        ("f[i=0..n-1] = where(i < n-1, x[i+1], 0)", {"x": "n"}),
        ("f[i=0..n-1] = [n == 0]*x[i+1]", {"x": "n"}),
    ],
)
def test_what_is_inside_for_some_extents_is_read(text: str, declared: dict[str, Any]) -> None:
    tc.parse_index(text, **declared)


def test_the_matrix_language_and_python_refuse_it_too() -> None:
    with pytest.raises(IndexError, match=r"(?s)^1:2: an index \[n\] is out of range.*\n   \^$"):
        tc.parse("x[n]", x="n")
    with pytest.raises(tc.ShapeError, match=r"an index \[i\+1\] is out of range"):
        tc.build("n", lambda i: tc.var("x", "n")[i + 1])


# --- printed programs -----------------------------------------------------------------------------


class Depending(NamedTuple):
    """Text of the index language, extents that fit and that do not, and the text of the access."""

    text: str
    declared: dict[str, Any]
    good: dict[str, int]
    bad: dict[str, int]
    access: str

    def read(self, text: str = "") -> tc.Expr:
        """The text, or another one, with these declarations."""
        return tc.parse_index(text or self.text, **self.declared)

    def data(self, sizes: dict[str, int]) -> dict[str, Any]:
        """The array, and dimensions that it does not have."""
        ((name, own),) = self.declared.items()
        return {
            name: np.arange(1.0, 1 + sizes[own]),
            **{k: n for k, n in sizes.items() if k != own},
        }


DEPENDING = [
    Depending("f = x[5]", {"x": "n"}, {"n": 6}, {"n": 5}, "x[5]"),
    Depending("f = x[0]", {"x": "n"}, {"n": 1}, {"n": 0}, "x[0]"),
    Depending("f = x[n-3]", {"x": "n"}, {"n": 3}, {"n": 2}, "x[n-3]"),
    Depending("f[i=0..2] = x[i+1]", {"x": "n"}, {"n": 4}, {"n": 3}, "x[i+1]"),
    Depending("f = sum[j=0..k](x[j])", {"x": "n"}, {"n": 4, "k": 3}, {"n": 4, "k": 4}, "x[j]"),
    Depending("f[i=0..n-1] = x[2*i]", {"x": "n"}, {"n": 1}, {"n": 2}, "x[2*i]"),
    Depending("f[i=0..n-1] = X[n*i]", {"X": "m"}, {"n": 3, "m": 7}, {"n": 3, "m": 6}, "X[n*i]"),
    Depending(
        "f[i=0..n-1] = sum[j=0..i](x[i+j])",
        {"x": "m"},
        {"n": 3, "m": 5},
        {"n": 3, "m": 4},
        "x[i+j]",
    ),
    Depending("f = x[floor(n/2)]*x[1]", {"x": "n"}, {"n": 2}, {"n": 1}, "x[1]"),
    Depending(
        "f = fold(s -> s*x[2], 1, i=0..k-1)", {"x": "n"}, {"n": 3, "k": 2}, {"n": 2, "k": 2}, "x[2]"
    ),
]


@pytest.mark.parametrize("language", ["numpy", "jax", "torch"])
@pytest.mark.parametrize("row", DEPENDING, ids=lambda row: row.text)
def test_programs_in_python_refuse_what_is_outside(row: Depending, language: str) -> None:
    if language != "numpy":
        pytest.importorskip(language)
    f, names = row.read(), dict[str, Any]()
    exec(tc.to_code(f, language), names)

    def called(sizes: dict[str, int]) -> np.ndarray:
        data = row.data(sizes)
        if language == "torch":
            data = {k: names["torch"].asarray(a) if np.ndim(a) else a for k, a in data.items()}
        return np.asarray(names["f"](**data))

    np.testing.assert_allclose(called(row.good), f(row.data(row.good)), rtol=1e-5)
    with pytest.raises(IndexError, match=re.escape(f"{row.access} is out of range for an axis of")):
        called(row.bad)


@pytest.mark.parametrize("row", DEPENDING, ids=lambda row: row.text)
def test_all_other_languages_have_the_statement(row: Depending) -> None:
    f = row.read()
    for language in ("c", "cuda", "cupy", "julia", "matlab"):
        source = tc.to_code(f, language)
        assert f"{row.access} is out of range for an axis of extent" in source
        assert ("return 3;" in source) == (language in ("c", "cuda"))


@pytest.mark.parametrize("row", DEPENDING, ids=lambda row: row.text)
def test_programs_that_check_themselves_choose_extents_that_fit(row: Depending) -> None:
    source = tc.to_code(row.read(), "numpy", check=True)
    exec(source, {"__name__": "__main__"})


@needs_compiler
def test_a_program_in_c_returns_a_status(tmp_path: Path) -> None:
    source = tc.to_code(tc.parse_index("f[i=0..2] = x[i+1]", x="n"), "c")
    (tmp_path / "f.c").write_text(source, encoding="utf-8")
    built = tmp_path / "f.so"
    subprocess.run([str(COMPILER), "-shared", "-fPIC", "-o", built, tmp_path / "f.c"], check=True)
    call = ctypes.CDLL(str(built)).f
    pointer = ctypes.POINTER(ctypes.c_double)
    call.argtypes = [pointer, ctypes.c_ssize_t, pointer, ctypes.c_void_p]
    x, out = np.arange(4.0), np.zeros(3)
    of_x, of_out = x.ctypes.data_as(pointer), out.ctypes.data_as(pointer)
    assert call(of_x, 3, of_out, None) == 3
    assert call(of_x, 4, of_out, None) == 0
    np.testing.assert_array_equal(out, [1.0, 2.0, 3.0])


def test_a_program_in_matlab_raises_an_error(tmp_path: Path) -> None:
    (tmp_path / "f.m").write_text(tc.to_code(tc.parse_index("f = x[5]", x="n"), "matlab"))
    script = "try, f((1:5)'), catch e, disp(e.message), end, disp(f((1:6)'))"
    ran = octave_script(script, tmp_path)
    assert ran.stdout.split("\n")[:2] == ["x[5] is out of range for an axis of extent n", "6"]


def test_slices_and_the_matrix_language_are_refused_too() -> None:
    names: dict[str, Any] = {}
    exec(tc.to_code(tc.parse("x[3:8]", x="n"), "numpy"), names)
    assert names["f"](np.arange(8.0)).shape == (5,)
    with pytest.raises(IndexError, match=r"x\[3:8\] is out of range for an axis of extent n"):
        names["f"](np.arange(7.0))


def test_accesses_known_to_be_inside_cost_no_statement() -> None:
    y = tc.parse_index("y[i=0..n-m] = sum[k](w[k]*x[i+k])", x="n", w="m")
    for e in (y, tc.vjp(y, "x", tc.var("dy", "n-m+1")), tc.var("x", "n")[1:-1]):
        assert "out of range" not in tc.to_code(e, "numpy")


# --- printed text ---------------------------------------------------------------------------------


@pytest.mark.parametrize("row", DEPENDING[:-1], ids=lambda row: row.text)
def test_printed_text_has_the_access_and_no_guard_of_its_own(row: Depending) -> None:
    f = row.read()
    again = row.read(tc.to_index(f))
    np.testing.assert_allclose(again(row.data(row.good)), f(row.data(row.good)))
    for e in (f, again):
        with pytest.raises(IndexError):
            e(row.data(row.bad))


def test_guards_that_are_written_stay() -> None:
    for text in (
        "f = [n >= 6]*x[5]",
        "f[i=0..k] = [i >= 1]*x[i-1]",
        "f[i=0..k] = [n >= i+1]*x[i]*[i >= 2]",
    ):
        f = tc.parse_index(text, x="n")
        again = tc.parse_index(tc.to_index(f), x="n")
        for n, k in ((7, 3), (5, 4)):
            data = {"x": np.arange(1.0, 1 + n), "k": k}
            np.testing.assert_array_equal(again(**data), f(**data))
    assert tc.to_index(tc.parse("x[3:8]", x="n")) == "f[i=0..4] = x[i+3]"
