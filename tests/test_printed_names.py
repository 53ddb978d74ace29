"""What formulas call: names that users can write, functions by the names that readers know."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from scipy import special

import tcalc as tc
from tcalc.graph.normal import bare
from tcalc.languages.matrix.functions import signature_of
from tests.formula_tables import FORMULAS

PAGE = (Path(__file__).resolve().parent.parent / "docs" / "languages.md").read_text()
A, B, t = tc.var("A", ("n", "n")), tc.var("B", ("n", "n")), tc.var("t")
x, y, c = tc.var("x", ("n",)), tc.var("y", ("n",)), tc.var("c", ("n",))
X, w = tc.var("X", ("m", "n")), tc.var("w", ("n",))
NAME = re.compile(r"([A-Za-z]\w*)\(")
RNG = np.random.default_rng(5)


def called(text: str) -> set[str]:
    return set(NAME.findall(text))


@pytest.mark.parametrize("name", ["expm", "sqrtm", "logm", "inv", "adj", "det", "logdet"])
def test_derivatives_of_matrix_functions_call_what_the_documentation_names(name: str) -> None:
    f = tc.parse(
        f"sum({name}(A) .* B)" if name not in ("det", "logdet") else f"{name}(A)", A=A, B=B
    )
    for order in (1, 2):
        for word in called(str(tc.derivative(f, "A", order))):
            base = re.sub(r"_frechet\d?$", "", word)
            assert f"`{word}(" in PAGE or signature_of(base), word
            assert base == word or base in ("expm", "sqrtm", "logm", "adj"), word


def test_formulas_call_what_text_reads() -> None:
    words = set().union(*[called(row.printed()) for row in FORMULAS])
    assert all(signature_of(word) or f"`{word}(" in PAGE for word in words), words


@pytest.mark.parametrize(
    ("function", "direction"),
    [("expm(t*A)", "A"), ("logm(t*A)", "A"), ("sqrtm(t*A)", "A"), ("expm(t*A*A)", "A^2"),
     ("expm(A + t*inv(A))", "inv(A)"), ("expm(t*expm(A))", "expm(A)")],
)  # fmt: skip
def test_along_functions_of_one_matrix_there_are_no_frechet_derivatives(
    function: str, direction: str
) -> None:
    matrix = RNG.uniform(0, 0.3, (3, 3)) + np.eye(3)
    other = RNG.normal(size=(3, 3))
    for text in (function, f"tr(B*{function})"):
        g = tc.derivative(tc.parse(text, A=A, B=B, t=t), "t")
        given = {"A": matrix, "t": 0.7} | ({"B": other} if "B" in text else {})
        h = 1e-6
        names = {k: v for k, v in given.items() if k != "t"}
        f = tc.parse(text, A=A, B=B, t=t)
        assert "frechet" not in str(g)
        wanted = (f(t=0.7 + h, **names) - f(t=0.7 - h, **names)) / (2 * h)
        again = tc.parse(str(g), A=A, B=B, t=t)
        names = {k: v for k, v in given.items() if k in again.variables}
        np.testing.assert_allclose(again({"n": 3, **names}), wanted, rtol=1e-7, atol=1e-8)


def test_other_directions_keep_the_name() -> None:
    g = tc.grad(tc.parse("tr(B*expm(A))", A=A, B=B), A)
    assert str(g) == "expm_frechet(A, B)'"
    a, b = RNG.normal(size=(2, 3, 3))
    _, wanted = scipy.linalg.expm_frechet(a, b)
    np.testing.assert_allclose(tc.parse(str(g), A=A, B=B)(A=a, B=b), wanted.T, rtol=1e-10)


# --- logarithms of determinants -------------------------------------------------------------------


def test_logarithms_of_determinants_have_inverses_at_all_orders() -> None:
    f = tc.parse("log(det(X'*X))", X=X)
    g = tc.parse("logdet(X'*X)", X=X)
    for order in (1, 2, 3):
        text = str(tc.derivative(f, "X", order))
        assert "adj" not in text
        assert text == str(tc.derivative(g, "X", order))
    second = str(tc.hessian(tc.parse("log(det(A))", A=A), A))
    assert second == "-#('jk,li->ijkl', inv(A), inv(A))"


def test_derivatives_of_adjugates_are_written_with_inverses() -> None:
    matrix = RNG.normal(size=(3, 3))
    for order in (1, 2):
        g = tc.derivative(tc.parse("sum(adj(A).^2)", A=A), "A", order)
        again = tc.parse(str(g), A=A)
        assert "frechet" not in str(g) or order == 2
        np.testing.assert_allclose(again(A=matrix), g(A=matrix), rtol=1e-8, atol=1e-8)


# --- the normal density over its distribution function --------------------------------------------


def test_the_inverse_mills_ratio_is_written_out_and_read_as_the_stable_row() -> None:
    g = tc.grad(tc.sum(tc.log_ndtr(c * x)), x)
    assert "inverse_mills" not in str(g)
    again = tc.parse(str(g), c=c, x=x)
    at = np.array([-1e9, -1e4, -40.0, -2.0, 0.0, 3.0, 50.0])
    ones = np.ones(7)
    wanted = np.sqrt(2 / np.pi) / special.erfcx(-at[:6] / np.sqrt(2))
    for f in (g, again, tc.compile(again)):
        np.testing.assert_allclose(f(c=ones, x=at)[:6], wanted, rtol=1e-13)
        assert f(c=ones, x=at)[6] == 0


def test_densities_that_do_not_cancel_stay() -> None:
    e = tc.parse("exp(-x.^2/2 - log_ndtr(y))", x=x, y=y)
    assert "inverse_mills" not in str(tc.to_einsum(tc.simplify(e)))


# --- dimensions, spreads, shares ------------------------------------------------------------------


def test_dimensions_of_variables_that_cancelled_are_written_by_their_names() -> None:
    g = tc.grad(tc.parse("logdet(t*A)", A=A, t=t), t)
    assert str(g) == "n/t"
    assert tc.parse(str(g), **g.variables)(A=np.eye(3), t=2.0) == 1.5
    assert str(bare(g)) == "extent(n)/t"  # nothing says what n is
    n = tc.var("n")
    g = tc.grad(tc.parse("logdet(n*A)", A=A, n=n), n)
    assert str(g) == "extent(n)/n"


@pytest.mark.parametrize(
    "text", ["std(x)", "var(x)", "3*var(x)", "sum((x - mean(x)).^2)", "var(X)"]
)
def test_spreads_have_their_names(text: str) -> None:
    e = tc.parse(text, x=x, X=X)
    shown = str(e)
    assert "mean" not in shown
    assert bare(tc.parse(shown, x=x, X=X)) is bare(e) or "sum" in text
    values = {"x": RNG.normal(size=5)} if "x" in e.variables else {"X": RNG.normal(size=(5, 3))}
    np.testing.assert_allclose(tc.parse(shown, x=x, X=X)(values), e(values), rtol=1e-13)
    assert "std" in tc.to_latex(e) or "var" in tc.to_latex(e)


def test_other_deviations_are_no_spreads() -> None:
    assert "var" not in str(tc.parse("sum((x - mean(y)).^2)", x=x, y=y))
    assert "std" not in str(tc.parse("sqrt(mean(x.^2))", x=x))


def test_softmax_of_rows_has_its_name_in_both_orientations() -> None:
    for text in ("softmax(X*A)'", "softmax(A*X')", "sum(softmax(A*A')*B)"):
        e = tc.parse(text, A=A, X=X, B=B)
        assert "softmax" in str(e)
        assert "exp" not in str(tc.grad(tc.sum(e), B)) or "B" not in e.variables


# --- products -------------------------------------------------------------------------------------


def test_products_that_repeat_are_powers() -> None:
    e = tc.parse("A*inv(A + B)*A*inv(A + B)*A*inv(A + B)", A=A, B=B)
    assert str(e) == "(A*inv(A + B))^3"
    assert str(tc.parse(str(e), A=A, B=B)) == str(e)
    assert str(tc.parse("A*B*A*B", A=A, B=B)) == "A*B*A*B"


def test_what_stands_beside_diagonal_matrices_is_written_once() -> None:
    e = tc.parse("A*diag(x)*B - A*x*y'*B", A=A, B=B, x=x, y=y)
    assert str(e) == "A*(diag(x) - x*y')*B"
    values = {"A": RNG.normal(size=(3, 3)), "B": RNG.normal(size=(3, 3)),
              "x": RNG.normal(size=3), "y": RNG.normal(size=3)}  # fmt: skip
    again = tc.parse(str(e), A=A, B=B, x=x, y=y)
    np.testing.assert_allclose(again(values), e(values), rtol=1e-12)


def test_numbers_stand_behind_dimensions_in_differences() -> None:
    assert str(tc.parse("(t - 1 - n)*x", t=t, x=x)) == "(t - n - 1)*x"


# --- conditions on indices in typeset formulas ----------------------------------------------------

PLACES = {
    "stride": tc.jacobian(tc.var("z", (9,))[1::2], tc.var("z", (9,))),
    "flip": tc.jacobian(tc.var("z", (5,))[::-1], tc.var("z", (5,))),
    "band": tc.parse_index("f[i=0..4, j=0..4] = [i <= j]", z=(5,)),
    "lower band": tc.parse_index("f[i=0..4, j=0..4] = [2*i >= j + 1]", z=(5,)),
    "every third": tc.parse_index("f[i=0..4, j=0..4] = [mod(i + 2*j, 3) == 0]", z=(5,)),
    "by a dimension": tc.jacobian(tc.var("z", ("k",))[::-1], tc.var("z", ("k",))),
}


@pytest.mark.parametrize("name", PLACES)
def test_conditions_on_indices_are_brackets_that_say_what_holds(name: str) -> None:
    e = PLACES[name]
    found = re.search(r"\[(.*)\]_\{(.)(.)\}\)?(\^\{.top\})?", tc.to_latex(e))
    assert found is not None
    condition, *letters, turned = found.groups()
    assert "k" not in letters or "k" not in str(e.shape)
    python = condition.replace(" = ", " == ").replace(r"\leq", "<=").replace(r" \mid ", " divides ")
    python = re.sub(r"(\d+) divides (.*)", r"(\2) % \1 == 0", python)
    python = re.sub(r"(\d) ([a-z])", r"\1*\2", python)
    rows, columns = [5 if n == "k" else n for n in e.shape]
    wanted = np.zeros((rows, columns))
    for at in np.ndindex(rows, columns):
        known = dict(zip(letters, at[::-1] if turned else at, strict=True))
        wanted[at] = eval(python, {"k": 5, **known})
    given = {"z": np.zeros(5)} if "k" in e.shape else {}
    np.testing.assert_array_equal(e(given, k=5) if "k" in e.shape else e(given), wanted)


def test_typeset_convolutions_and_their_derivatives_have_no_word_for_conditions() -> None:
    h, v = tc.var("h", ("k",)), tc.var("v", ("n",))
    f = tc.parse_index("f[i=0..n-k] = sum[j=0..k-1](h[j]*v[i+j])", h=h, v=v)
    for e in (f, tc.grad(tc.sum(tc.sin(f)), h), tc.hessian(tc.sum(tc.sin(f)), h)):
        for text in (tc.to_latex(e), tc.to_mathml(e).split(">", 1)[1]):
            assert "indicator" not in text
