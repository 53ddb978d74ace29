"""What messages advise about text, which is what would be read, and about operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc


def told(text: str, **declared: Any) -> str:
    with pytest.raises(tc.Error) as caught:
        tc.parse(text, **declared)
    return str(caught.value).split("\n")[0]


def test_a_name_that_is_a_function_may_be_declared() -> None:
    message = told("norm2(y - X*beta)^2", y="m", X=("m", "n"))
    assert "`beta` is a function: write beta(…), or declare its shape: beta=()" in message
    assert tc.parse("norm2(y - X*beta)^2", y="m", X=("m", "n"), beta="n").shape == ()


def test_an_undeclared_name_that_is_transposed_is_a_column() -> None:
    f = tc.parse("1/2*x'*A*x - b'*x")
    assert f.shape == ()
    assert f.variables["b"].shape == f.variables["x"].shape == ("n",)
    assert str(tc.grad(f, "x")) == "sym(A)*x - b"
    assert tc.parse("x'*A*x + b'*x + c").variables["c"].shape == ()
    assert tc.parse("a*x'*x").variables["a"].shape == ()
    assert tc.parse("a'*x", a=()).shape == ("n",)  # declared


def test_a_scalar_by_convention_is_told_to_be_one() -> None:
    message = told("norm2(y - X*b)^2")
    assert (
        '`b` is not declared, and so a scalar by convention: declare its shape, such as b=("n",)'
        in message
    )
    assert tc.parse("norm2(y - X*b)^2", b="n").shape == ()
    assert "by convention" not in told("norm2(y - X*b)^2", b=())
    assert "`b` is not declared" in told("A\\b")


@pytest.mark.parametrize(
    ("text", "declared", "advice", "others"),
    [
        ("X*w'", {}, ["X*w to", "X*diag(w')"], ["w''"]),
        ("X*w'", {"X": ("m", "n"), "w": "m"}, ["w'*X to"], ["X*w to", "diag"]),
        ("X*w'", {"X": ("m", "n"), "w": "k"}, ["nothing like it fits"], ["write"]),
        ("x'*y'", {}, ["x'*y for the scalar", "x*y' for the outer", "x'.*y' for"], ["''"]),
        ("x*y", {"x": "m", "y": "n"}, ["x*y' for the outer"], ["scalar product", ".*"]),
        ("x*X", {}, ["x'*X", "diag(x)*X"], []),
        ("x*X", {"x": "n", "X": ("m", "n")}, ["X*x to"], ["x'*X", "diag"]),
        ("x*X", {"x": "k", "X": ("m", "n")}, ["nothing like it fits"], ["write"]),
        ("X*x", {"x": "m", "X": ("m", "n")}, ["X'*x to"], []),
        ("x'*X", {"x": "n", "X": ("m", "n")}, ["x'*X' to"], []),
        ("A*B", {"A": ("m", "n"), "B": ("k", "n")}, ["A*B' to"], ["B*A", "A'*B"]),
        ("A*B", {"A": ("m", "n"), "B": ("m", "k")}, ["A'*B to"], ["B*A", "A*B'"]),
        ("A*B", {"A": ("m", "n"), "B": ("k", "m")}, ["B*A to"], ["'"]),
        ("X*X'/s", {}, ["diag(1 ./ s)*(X*X')", "(X*X')*diag(1 ./ s)"], ["(X*X') ./ s"]),
        ("X/s", {"X": ("m", "n"), "s": "n"}, ["X*diag(1 ./ s)"], ["rows", "X ./ s"]),
        ("x/y", {"x": "n", "y": "n"}, ["x ./ y"], []),
        ("x/y", {"x": "m", "y": "n"}, ["nothing like it fits"], ["x ./ y"]),
        ("x/y'", {}, ["x ./ y to"], ["y'' "]),
        ("1/x", {}, ["1 ./ x"], []),
    ],
)
def test_only_what_fits_is_advised(
    text: str, declared: dict[str, Any], advice: list[str], others: list[str]
) -> None:
    message = told(text, **declared).partition("; ")[2]
    assert [word for word in advice if word not in message] == []
    assert [word for word in others if word in message] == []
    for part in advice:
        if not part.startswith("nothing"):
            tc.parse(part.partition(" to")[0].partition(" for")[0], **declared)


@pytest.mark.parametrize("mark", ["’", "′", "´", "⊤"])
def test_marks_that_are_pasted_have_a_hint(mark: str) -> None:
    assert told(f"x{mark}*x").endswith(f"there is no `{mark}` here; a transpose is '")
    with pytest.raises(tc.ParseError, match=r"a transpose is a\[j,i\]"):
        tc.parse_index(f"f[i,j] = A{mark}[i,j]", A="n")
    with pytest.raises(tc.ParseError, match="a transpose is #"):
        tc.parse_einsum(f"A{mark}", A=("n", "n"))


def test_signs_that_are_pasted() -> None:
    assert tc.parse("A·x − y") is tc.parse("A*x - y")
    assert "a product of matrices and vectors is *" in told("A×x")
    with pytest.raises(tc.ParseError, match=r"a product is \*"):
        tc.parse_index("f[i] = x[i]×x[i]", x="n")


def test_superscripts_are_powers() -> None:
    assert tc.parse("x'*A⁻¹*x", A=("n", "n")) is tc.parse("x'*inv(A)*x")
    assert tc.parse("c³ + c² + c⁻¹", c=()) is tc.parse("c^3 + c^2 + 1/c", c=())
    assert "powers do not chain" in told("c²³", c=())


def test_products_by_indices_are_read_by_the_name_of_other_libraries() -> None:
    form = "('ij,j->i', A, x)"
    assert tc.parse(f"2*einsum{form}") is tc.parse(f"2*#{form}")
    assert tc.parse_einsum(f"einsum{form}", A=("n", "n"), x="n") is tc.parse("A*x", A=("n", "n"))
    assert "write #('ij,jk->ik', A, …)" in told("einsum(A)")


@pytest.mark.parametrize(
    ("text", "place", "advice"),
    [
        ("x*np.exp(x)", 3, "there is no `np.` here; functions are named without it"),
        ("∑ x", 1, "write sum(x)"),
        ("x if x > 0 else 0", 3, "a choice is where(condition, a, b)"),
        ("1 + sum[i=0:n-1](x[i])", 5, "sum[…](…) is of the index language: read by parse_index"),
        ("sum[i](x[i])", 1, "sum[…](…) is of the index language: read by parse_index"),
        ("norm(A, dim=0)", 1, "it takes no `dim=0`; by name it takes ord=, axis=, keepdims="),
        ("pad(x, -1, 0)", 1, "a width is at least 0, not -1; what is cut off is a slice"),
    ],
)
def test_what_other_languages_write_is_told_what_is_written_here(
    text: str, place: int, advice: str
) -> None:
    message = told(text, A=("n", "n"))
    assert message.startswith(f"1:{place}: ")
    assert advice in message


def test_a_name_with_a_dot_behind_it_is_no_prefix() -> None:
    assert tc.parse("np.*x", np="n") is tc.parse("x.*np", np="n")
    with pytest.raises(tc.ParseError, match=r"there is no `:` here; a range is 0\.\.n - 1"):
        tc.parse_index("sum[i=0:n-1](x[i])", x="n")


def test_einstein_summation_is_told_how_sums_are_written() -> None:
    with pytest.raises(tc.ParseError, match=r"^1:12: `j` is not a .*is written sum\[j\]\(…\)"):
        tc.parse_index("f[i] = A[i,j]*x[j]", A=("m", "n"), x="n")
    with pytest.raises(tc.ParseError, match=r"^1:14: `j` is neither .* written out: sum\[j\]\(…\)"):
        tc.parse_index("f[i] = A[i,1+j]", A=("m", "n"), x="n")
    with pytest.raises(tc.ParseError, match="`j` is not a dimension or an index") as caught:
        tc.parse_index("f[i=0..j, j=0..3] = 1")
    assert "sum[j]" not in str(caught.value)


def test_an_index_that_is_not_affine_is_named() -> None:
    with pytest.raises(tc.ParseError, match=r"range of `i` .*, as `i\^2` is not affine; write i="):
        tc.parse_index("f[i] = x[i^2]", x="n")
    with pytest.raises(tc.ParseError, match=r"no use a\[i\]; write i="):
        tc.parse_index("f[i] = x[2*i]", x="n")


x, z = tc.var("x", "n"), tc.var("z", "m")
A, B = tc.var("A", ("n", "n")), tc.var("B", ("m", "n"))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda: B + z,
            tc.ShapeError,
            "`B` of shape (m, n) and `z` of shape (m,) do not broadcast",
        ),
        (lambda: B + np.ones(3), tc.ShapeError, "`B` of shape (m, n) and an array of shape (3,)"),
        (
            lambda: sum(tc.exp(k * x) for k in range(99)) + z,
            tc.ShapeError,
            "an expression of shape",
        ),
        (
            lambda: tc.concatenate([B, z]),
            tc.ShapeError,
            "`B` of shape (m, n) and `z` of shape (m,)",
        ),
        (lambda: tc.solve(A, z), tc.ShapeError, "`A` of shape (n, n) and `z` of shape (m,)"),
        (lambda: tc.einsum("ij,jk->ik", B), ValueError, "1 operands: `B` of shape (m, n)"),
        (lambda: np.convolve(x, z), tc.ShapeError, "write the sum as text for parse_index"),
        (lambda: np.median(x), tc.UnsupportedError, "extent n; declare it as a number"),
        (
            lambda: tc.grad("x'*x", "x"),
            TypeError,
            """is text, no array of numbers; parse("x'*x")""",
        ),
        (lambda: tc.diff(x @ x, x), tc.ShapeError, "the derivative by a variable is grad(f, x)"),
        (lambda: tc.diff(x, x), TypeError, "n = x is no integer; the derivative"),
        (lambda: tc.gradient(x @ x, x), tc.ShapeError, "a scalar has no neighbouring entries; the"),
        (lambda: tc.gradient(x, "x"), TypeError, "'x' is no distance between entries; the"),
        (lambda: tc.gradient(x, 1, 2), TypeError, "2 distances for 1 axes; the derivative by"),
        (lambda: tc.gradient(x, z), tc.UnsupportedError, "one number per axis; the derivative by"),
        (lambda: np.quantile(x, 0.5), tc.UnsupportedError, "extent n; declare it as a number"),
    ],
)
def test_operands_and_alternatives_are_named(
    call: Callable[[], Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)
