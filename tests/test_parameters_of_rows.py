"""Parameters of rows in texts: those of other sorts, and shapes that no row takes, are refused."""

import itertools

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.operators import TABLE

SHAPES = {"x": ("n",), "A": ("n", "n"), "X": ("m", "k"), "T": ("n", "m", "k")}
NUMBERS = {
    "x": np.arange(1.0, 4),
    "A": np.eye(3) * 2 + 0.1,
    "X": np.arange(6.0).reshape(3, 2) + 0.5,
    "T": np.arange(18.0).reshape(3, 3, 2),
}
PARAMETERS = (
    *("", "0", "-1", "1.5", "7", "1e300", "100000000000000000000", "inf"),
    *("n+1", "-n", "(1,2)", "()", "True", "'a'", "nuclear", "sin(x)"),
)
NAMES = [
    name
    for row in list(TABLE.values())
    if not (row.elementwise and row.core)
    for name in row.parts or (row.name,)
]


@pytest.mark.parametrize("name", dict.fromkeys(NAMES))
@pytest.mark.filterwarnings("ignore")
def test_rows_with_any_parameters_have_a_value_or_an_error_of_ours(name):
    rows = [row for row in TABLE.values() if name == row.name or name in row.parts]
    count = len(rows[0].core)
    for first in itertools.product(SHAPES, repeat=min(2, count)):
        operands = [*first, *["A"] * (count - len(first))]
        for parameter in PARAMETERS:
            text = f"{name}({', '.join([*operands, *[parameter] * bool(parameter)])})"
            try:
                e = tc.parse(text, **SHAPES)
                e(**{key: NUMBERS[key] for key in e.variables})
            except tc.Error:
                continue
            except TypeError as error:
                if not str(error).startswith("the extent of dimension nuclear is not known"):
                    raise


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("f = norm(x)", "norm: it has 1 parameter behind its operands, not 0"),
        ("f = norm(x, [1])", r"norm: a parameter behind its operands is a number, not `\(1,\)`"),
        ("f[i,j] = gaps(x, 0)[i,j]", "raise, nan, epsilon or a positive number, not `0`"),
        ("f[i,j] = svd_gaps(x, any)[i,j]", "spectral, norm or a positive number, not `any`"),
        ("f[i,j] = matrix_function(A, A, A)[i,j]", "matrix_function: it has 1 parameter"),
        ("f[i,j] = maketrian(x)[i,j]", "maketrian: it has 2 parameters behind its operands, not 0"),
        ("f[i,j] = maketrian(x, 0, 1)[i,j]", "is True or False, not `1`"),
        ("f[i,j] = maketrian(x, 1.5, True)[i,j]", "is a whole number, not `1.5`"),
        ("f[i,j] = selection(x, [0])[i,j]", r"an extent, such as 3 or n, not `\(0,\)`"),
        ("f[i,j] = inverse_definite(X)[i,j]", r"inv needs a square matrix, not shape \(m, k\)"),
        ("f[i,j] = squared_distances(A, X)[i,j]", r"not shapes \(n, n\) and \(m, k\)"),
        ("f[i,j] = cholesky_pullback(A, B)[i,j]", r"one shape, not \(n, n\) and \(m, m\)"),
    ],
)
def test_index_texts_say_which_parameter_a_row_takes(text, message):
    with pytest.raises(tc.Error, match=message):
        tc.parse_index(text, x="n", A=("n", "n"), B=("m", "m"), X=("m", "k"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lower_half(-1)", "extent -1 is negative"),
        ("eye(True)", "a size of eye is an int or the name of a dimension"),
        ("extracttrian(A, 'a')", "is a whole number, not `a`"),
        ("extracttrian(A, 0, 2)", "is True or False, not `2`"),
        ("makediag(x, True)", "is a whole number, not `True`"),
        ("merge_axes(A, (2, 4))", "these are not as many"),
    ],
)
def test_matrix_texts_say_which_parameter_a_row_takes(text, message):
    with pytest.raises(tc.Error, match=message):
        tc.parse(text, x="n", A=(3, 3))


def test_entries_that_are_not_as_many_are_refused_once_extents_are_known():
    f = tc.parse("merge_axes(A, (2, 4))", A=("n", "n"))
    with pytest.raises(tc.ShapeError, match=r"shape \(3, 3\) cannot have shape \(2, 4\)"):
        f(A=np.eye(3))


def test_the_least_gap_of_eigenvalues_is_read_back():
    w, v = tc.linalg.eigh(tc.var("A", ("n", "n")), degenerate=1e-8)
    for e in (w, v):
        assert tc.parse(str(e), A=("n", "n")) is e


def test_whole_numbers_are_numbers_where_a_row_takes_these():
    f = tc.parse_index("f[i,j] = svd_gaps(x, 2)[i,j]", x="n")
    g = tc.parse_index("f[i,j] = svd_gaps(x, 2.0)[i,j]", x="n")
    assert f is g


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("i=8, i*i >= 5", "`i*i` is not affine in the indices"),
        ("i=5, j=4, i*j == 2", r"`i\*j` is not affine in the indices"),
        ("i=8, i//2 == 1", "`i//2` is not affine in the indices"),
        ("i=8, n//0 >= 1", "`n//0` is no affine form of indices and dimensions"),
        ("i=8, i mod 0 == 0", "`i mod 0 == 0` is no condition; these are of the forms i >= j"),
        ("i=8, i mod 2 == 1", "`i mod 2 == 1` is no condition"),
        ("i=8, i > 1", "`i > 1` is no condition"),
        ("i=-3, i >= 2", "the index i: extent -3 is negative"),
        ("i=3, i=4, i >= 2", "the index i is named twice"),
    ],
)
def test_conditions_of_indicators_are_affine(condition, message):
    for read in (tc.parse, tc.parse_einsum):
        with pytest.raises(tc.Error, match=message.replace("i*i", r"i\*i")):
            read(f"indicator({condition})", d=8)


def test_conditions_may_have_dimensions_as_factors():
    f = tc.parse("indicator(i=n, j=5, n*i - j >= 2, (i + j) mod 3 == 0)")
    i, j = np.ogrid[:4, :5]
    np.testing.assert_array_equal(f(n=4), (4 * i - j >= 2) & ((i + j) % 3 == 0))


def test_the_least_entry_is_a_norm():
    assert tc.parse("norm(x, ord=-inf)", x="n")(x=np.array([3.0, -0.5, 2.0])) == 0.5
