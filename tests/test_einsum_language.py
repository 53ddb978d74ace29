"""The einsum language: what it means, and that it reads all that is printed in it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import tcalc as tc
from tcalc.languages.registry import TEXT_LANGUAGES
from tests.corpus import corpus

#: Nodes whose parts are built in another order than what they came from, or whose constants are in
#: float32, which no text says: equal values.
EQUAL_ONLY = {
    *["powers-of-one-base" + primes for primes in ("", "'", "''")],
    "gaussian-process''",
    "mean-variance''",
    *[f"{name}-{form} of names''" for name in ("pinv", "lstsq") for form in ("wide", "tall")],
}


def has_loop(text: str) -> bool:
    return "fold" in text


def test_everything_printed_reads_back_to_the_same_node() -> None:
    other = []
    for name, e in corpus().items():
        text = tc.to_einsum(e, computed=True)
        if not has_loop(text) and tc.parse_einsum(text, **e.variables) is not e:
            other.append(name)
    assert set(other) <= EQUAL_ONLY


@pytest.mark.parametrize("name", sorted(EQUAL_ONLY))
def test_what_is_another_node_has_the_same_value(name: str) -> None:
    e = corpus()[name]
    again = tc.parse_einsum(tc.to_einsum(e, computed=True), **e.variables)
    rng = np.random.default_rng(0)
    sizes = {"m": 4, "n": 3, "k": 2}
    data = {
        n: rng.uniform(0.5, 1.5, [sizes.get(x, x) for x in v.shape]) for n, v in e.variables.items()
    }
    np.testing.assert_allclose(again(data), e(data), rtol=1e-9, atol=1e-9)


A, B = np.arange(6.0).reshape(2, 3) - 2, np.arange(12.0).reshape(3, 4) / 3
S, x = np.array([[2.0, 0.5], [0.25, 1.0]]), np.array([0.1, -0.4, 0.3])
DATA = {"A": A, "B": B, "S": S, "x": x, "c": np.float64(0.7)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#('ij,jk->ik', A, B)", A @ B),
        ("#('ij->ji', A)", A.T),
        ("#('i->ii', x)", np.diag(x)),
        ("#('->ii', i=3)", np.eye(3)),
        ("A@B", A @ B),
        ("A@x", A @ x),
        ("x@B@#('->i', i=4)", x @ B.sum(axis=1)),
        ("x@@A", np.multiply.outer(x, A)),
        ("|A|", abs(A)),
        ("2*|x - c|^2/3", 2 * abs(x - 0.7) ** 2 / 3),
        ("c/(B + 1)^2 - B*c", 0.7 / (B + 1) ** 2 - B * 0.7),
        ("-x^2", -(x**2)),
        ("asin(x) + acos(x)*atan(x)", np.arcsin(x) + np.arccos(x) * np.arctan(x)),
        ("inv(S) + adj(S)/det(S)", 2 * np.linalg.inv(S)),
        ("sum(A) + trace(S)", A.sum() + 3),
        ("sum(A, axis=0)", A.sum(axis=0)),
        ("max(A, axis=-1)", A.max(axis=1)),
        ("max(x, 0)", np.maximum(x, 0)),
        ("where(x < 0, 0, x)", np.maximum(x, 0)),
        ("[1, 2.5, -3]*x", np.array([1, 2.5, -3]) * x),
        ("y = A@x\nz = #('i,i->', y, y)\nexp(-z/2)", np.exp(-((A @ x) ** 2).sum() / 2)),
        ("norm2(x)*pi", np.linalg.norm(x) * np.pi),
    ],
)
def test_values(text: str, expected: np.ndarray) -> None:
    e = tc.parse_einsum(text, A=(2, 3), B=(3, 4), S=(2, 2), x=3, c=())
    data = {name: DATA[name] for name in e.variables}
    np.testing.assert_allclose(e(data), expected, rtol=1e-12)


def test_dimensions_are_numbers() -> None:
    f = tc.parse_einsum("x*n/(n-1) + (n+1)//2", x="n")
    np.testing.assert_allclose(f(x=[1.0, 2.0, 3.0]), np.array([1, 2, 3]) * 1.5 + 2)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("#('ij,jk->ik', A, B) + C", {"A": "mk", "B": "kn", "C": "mn"}),
        ("#('ijk,k->ij', T, x)", {"T": "mnk", "x": "k"}),
        ("#('i->', exp(x)*y)", {"x": "m", "y": "m"}),
        ("exp(A)*B", {"A": "mn", "B": "mn"}),
        ("A@B@C", {"A": "mk", "B": "kn", "C": "np"}),
        ("trace(A)", {"A": "nn"}),
        ("inv(A)@b", {"A": "nn", "b": "nm"}),
        ("c*#('i->', x)", {"c": "mn", "x": "k"}),
        ("#('i->i', c*x + d)", {"c": "m", "x": "m", "d": "m"}),
    ],
)
def test_undeclared_names_have_their_order_from_use_or_are_matrices(
    text: str, shapes: dict[str, str]
) -> None:
    found = tc.parse_einsum(text).variables
    assert {n: v.ndim for n, v in found.items()} == {n: len(s) for n, s in shapes.items()}
    pairs = {(a, b) for n, v in found.items() for a, b in zip(v.shape, shapes[n], strict=True)}
    assert len({a for a, _ in pairs}) == len({b for _, b in pairs}) == len(pairs)


@pytest.mark.parametrize(
    ("text", "line", "column", "words"),
    [
        ("A +", 1, 4, "expected a number"),
        ("a = 1\nA B", 2, 3, "a product is written with *: A*B"),
        ("#ij", 1, 1, "#('ij,jk->ik', A, B)"),
        ("A .* B", 1, 3, "write *"),
        ("x'", 1, 2, "#('ij->ji', A)"),
        ("sinn(A)", 1, 1, "did you mean `sin`?"),
        ("A(B)", 1, 1, "unknown function `A`"),
        ("a*extent()", 1, 3, "extent takes one dimension, as in extent(n)"),
        ("[1, 2", 1, 1, "never closed"),
        ("[1, [2]]", 1, 1, "nested brackets of equal lengths"),
        ("x = 1; x = 2; x", 1, 8, "has a value already"),
        ("||A||", 1, 1, "norm(A)"),
        ("|A", 1, 1, "expected |"),
        ("A[1]", 1, 2, "index language"),
        ("lower_ones(-3)", 1, 1, "an extent, such as 3 or n, not `-3`"),
        ("lower_ones()", 1, 1, "it has 1 parameter behind its operands, not 0"),
        ("svd(A)", 1, 1, "several results"),
        ("indicator(i=2, i <> 3)", 1, 1, "no condition"),
        ("1//2", 1, 2, "floor(a/b)"),
        ("const(100, 3)", 1, 1, "not in the text"),
    ],
)
def test_wrong_text_is_a_parse_error_at_its_place(
    text: str, line: int, column: int, words: str
) -> None:
    with pytest.raises(tc.ParseError) as caught:
        tc.parse_einsum(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A + B", ["`A` has shape (m, k)", "`B` has shape (k, n)", "index 0 has extent m and k"]),
        ("A*x", ["`A` has shape (m, k)", "`x` has shape (n,)", "2 and 1 axes"]),
        ("B@A", ["`B` has shape (k, n)", "`A` has shape (m, k)"]),
        ("#('ij,kj->ik', A, B)", ["`A` has shape (m, k)", "index j has extent k and n"]),
        ("#('i->i', A)", ["`A` has shape (m, k)", "'i'"]),
        ("inv(A)", ["square"]),
    ],
)
def test_operands_that_do_not_fit_are_shape_errors(text: str, words: list[str]) -> None:
    with pytest.raises(tc.ShapeError) as caught:
        tc.parse_einsum(text, A=("m", "k"), B=("k", "n"), x="n")
    assert all(word in str(caught.value) for word in words)
    assert "^" in str(caught.value)


def test_long_and_deep_texts_are_read() -> None:
    assert len(tc.parse_einsum("+".join([f"x{k}" for k in range(3000)])).args) == 3000
    assert tc.parse_einsum("(" * 5000 + "A" + ")" * 5000).shape == tc.parse_einsum("A").shape
    assert tc.parse_einsum("-" * 4999 + "A").ndim == 2


def test_arrays_have_as_many_axes_as_numpy_allows() -> None:
    assert tc.parse_einsum("@@".join(["A"] * 20)).ndim == 40
    with pytest.raises(tc.ParseError, match="at most 64 axes"):
        tc.parse_einsum("@@".join(["A"] * 500))


def test_rows_of_families_are_made_when_they_are_read() -> None:
    script = (
        "import tcalc as tc\n"
        "print(tc.parse_einsum('logm_frechet3(A, A, A, A) + adj_frechet2(A, A, A)', A=(2, 2)))\n"
        "print(tc.parse_einsum('matrix_function(A, eigvals(A), eigvecs(A), exp(x))', A=(2, 2)))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "logm_frechet3" in done.stdout, done.stderr


def test_the_registry_reads_what_it_writes() -> None:
    row = TEXT_LANGUAGES["einsum"]
    assert row.read is tc.parse_einsum
    assert row.write is tc.to_einsum


def test_coefficients_that_are_differences_of_dimensions_are_read_as_such() -> None:
    z, x = tc.var("z", "n-1"), tc.var("x", "n")
    e = tc.sum(x) * tc.sin(2 * tc.sum(tc.ones("n-1")) * z) - tc.sum(tc.ones("n-1")) * z
    assert tc.parse_einsum(tc.to_einsum(e, computed=True), **e.variables) is e
    assert tc.parse(str(e), **e.variables) is e


@pytest.mark.parametrize(
    ("text", "place"),
    [("#('ij,j->i', A, s) + 1", "s)"), ("c + inv(#('ij,j->i', A, s))", "s)"),
     ("q = v; #('ij->i', q)@A", "q)"), ("#('ij->i', #('i->ii', v)@A@@A)", "#('i->ii'")],
)  # fmt: skip
def test_operands_of_other_shapes_are_told_at_one_place(text: str, place: str) -> None:
    with pytest.raises(tc.ShapeError) as caught:
        tc.parse_einsum(text, A=("n", "n"), s=("m", "n"), v="n")
    message, shown, caret = str(caught.value).split("\n")
    assert message.startswith(f"1:{caret.index('^') - 1}: `")
    assert shown[caret.index("^") :].startswith(place)


@pytest.mark.parametrize("name", ["sum", "mean", "softmax", "std"])
def test_places_of_axes_have_their_name(name: str) -> None:
    """Behind a comma stands an operand, also where NumPy has an axis."""
    with pytest.raises(tc.ParseError, match=f"{name}: write axis=1, as operands stand here"):
        tc.parse_einsum(f"{name}(A, 1)", A=("m", "n", "k"))


@pytest.mark.parametrize("function", [lambda x: x**2, lambda x: x**3 - x, tc.sin, lambda x: 2 / x])
def test_functions_of_eigenvalues_read_back(function: Callable[[tc.Expr], tc.Expr]) -> None:
    """Also powers, which could be extents."""
    A = tc.var("A", ("n", "n"))
    e = tc.sum(tc.linalg.matrix_function(A, function))
    for outcome in (e, tc.grad(e, A), tc.grad(tc.trace(tc.linalg.matrix_function(A, function)), A)):
        again = tc.parse_einsum(tc.to_einsum(outcome, computed=True), A=A)
        data = np.array([[3.0, 1.0, 0.5], [1.0, 2.0, 0.0], [0.5, 0.0, 4.0]])
        np.testing.assert_allclose(again(A=data), outcome(A=data), rtol=1e-12)
