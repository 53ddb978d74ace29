"""Formulas in indices as LaTeX and MathML, where matrix notation would need indicators."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
import pytest

import tcalc as tc

#: Text of the index language, what it is differentiated by, and its LaTeX.
ROWS = (
    ("f = x[n-1]", "", "x_{n - 1}"),
    ("f[i=0..n-k] = sum[j](w[j]*x[i+j])", "",
     r"\left[\sum_{j=0}^{k - 1} w_{j} x_{i + j}\right]_{i=0}^{n - k}"),
    ("f = sum[i=0..n-2]((x[i+1]-x[i])^2)", "", r"\sum_{i=0}^{n - 2} (x_{i + 1} - x_{i})^{2}"),
    ("f = sum[i=0..n-2](sqrt((x[i+1]-x[i])^2 + 1))", "",
     r"\sum_{i=0}^{n - 2} \sqrt{(x_{i + 1} - x_{i})^{2} + 1}"),
    ("f = sum[i=0..n-2](x[i]*x[i+1]/2)", "", r"\frac{1}{2} \sum_{i=0}^{n - 2} x_{i} x_{i + 1}"),
    ("f = sum[i=0..n-2](-x[i]*sin(x[i+1])/(x[i]^2 + 3))", "",
     r"-\sum_{i=0}^{n - 2} \frac{x_{i} \, \sin(x_{i + 1})}{x_{i}^{2} + 3}"),
    ("f = sum[i,j=0..i-1](1/abs(x[i]-x[j]))", "x",
     r"\left[-\left(\sum_{j=0}^{i - 1} \frac{\operatorname{sign}(x_{i} - x_{j})}"
     r"{|x_{j} - x_{i}|^{2}} + \sum_{j=i + 1}^{n - 1} \frac{\operatorname{sign}(x_{i} - x_{j})}"
     r"{|x_{i} - x_{j}|^{2}}\right)\right]_{i=0}^{n - 1}"),
    ("f[i,j] = where([i < j & j <= i+2], A[i,j], 0)", "",
     r"\left[\begin{cases} A_{ij} & j \geq i + 1 \wedge i + 2 \geq j \\ 0 & \text{otherwise}"
     r" \end{cases}\right]_{i=0,j=0}^{n - 1,n - 1}"),
)  # fmt: skip


@pytest.mark.parametrize(("text", "by", "latex"), ROWS)
def test_sums_with_bounds_and_entries_with_subscripts(text: str, by: str, latex: str) -> None:
    e = tc.parse_index(text, x="n", w="k", A=("n", "n"))
    e = tc.derivative(e, by) if by else e
    assert tc.to_latex(e) == latex
    assert ET.fromstring(tc.to_mathml(e)).tag == "math"


def test_what_matrix_notation_says_stays() -> None:
    e = tc.parse_index("f[i=1..n-2] = x[i-1] - 2*x[i] + x[i+1]", x="n")
    assert tc.to_latex(e) == "x[2:] - 2 x[1:-1] + x[:-2]"


def test_loops_stay_in_matrix_notation() -> None:
    step = "fold(s -> r[j] = tanh(s[j]*x[i+1]), s0, i=0..n-2)[0]"
    e = tc.parse_index(f"f = {step} + sum[i=0..n-2](x[i]*x[i+1])", x="n", s0=3)
    assert "fold" in tc.to_latex(e)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("f = sum[i=0..n-2](where([n >= i+2], sqrt(x[i+1]^2 + 1), x[i]))", "sqrt(x[i+1]^2 + 1)"),
        ("f = sum[i=0..n-2](where([i >= n-1], x[i], x[i+1]))", "x[i+1]"),
        ("f = sum[i=0..n-2](where([i >= 1], x[i+1], where([i >= 1], x[i], 1)))",
         "where([i >= 1], x[i+1], where([i >= 1], x[i], 1))"),
    ],
)  # fmt: skip
def test_conditions_that_bounds_say_are_not_written(text: str, steps: str) -> None:
    e = tc.parse_index(text, x="n")
    written = tc.to_index(e, computed=True)
    assert written == f"f = sum[i=0..n-2]({steps})"
    x = [1.0, -2.0, 3.0, 0.5]
    assert tc.parse_index(written, x="n")(x=x) == e(x=x)


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("var(X, axis=0)", r"\mathrm{var}_{\mathrm{columns}}(X)"),
        ("std(X', axis=0)", r"\mathrm{std}_{\mathrm{rows}}(X)"),
        ("sum(log(var(X, axis=1)))",
         r"\operatorname{sum}(\log(\mathrm{var}_{\mathrm{rows}}(X)))"),
        ("softmax(X, axis=0)", r"\mathrm{softmax}_{\mathrm{columns}}(X)"),
        ("diag(1 ./ std(X, axis=1))*X", r"\operatorname{diag}(\mathbf{1} \oslash"
         r" \mathrm{std}_{\mathrm{rows}}(X)) \, X"),
    ],
)  # fmt: skip
def test_spreads_along_an_axis_have_their_names(text: str, latex: str) -> None:
    e = tc.parse(text, X=("m", "n"))
    assert tc.to_latex(e) == latex
    assert tc.parse(str(e), X=("m", "n")) is e


@pytest.mark.parametrize(
    ("text", "matrices"),
    [
        ("f = sum[i,j](w[i]*w[j]*exp(-sum[c]((X[i,c]-X[j,c])^2)/2))",
         "w'*exp(-squared_distances(X, X)/2)*w"),
        ("f = sum[i](min[k](sum[c]((X[i,c]-M[k,c])^2)))",
         "sum(min(squared_distances(M, X), axis=0))"),
    ],
)  # fmt: skip
def test_squares_of_differences_are_not_multiplied_out(text: str, matrices: str) -> None:
    """Far from the origin, squares and products of what is large would cancel."""
    given = {"X": ("n", "d"), "M": ("m", "d"), "w": "n"}
    e = tc.parse_index(text, **given)
    assert str(e) == matrices
    assert "squared_distances" not in tc.to_index(e)
    rng = np.random.default_rng(0)
    arrays = {
        "X": rng.normal(size=(4, 3)) + 1e8,
        "M": rng.normal(size=(2, 3)) + 1e8,
        "w": [1.0] * 4,
    }
    arrays = {name: arrays[name] for name in e.variables}
    for read in (tc.parse(str(e), **given), tc.parse_index(tc.to_index(e), **given)):
        assert read(**arrays) == pytest.approx(e(**arrays), rel=1e-6)
