"""Texts that few programs have, in the languages that are read and those that are printed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.linalg import expm

import tcalc as tc
from tests.c_programs import Job, compiled, needs_compiler
from tests.interpreters import octave
from tests.source_programs import Program
from tests.source_runs import computed

RNG = np.random.default_rng(5)
DECLARED: dict[str, Any] = {
    "x": ("n",), "X": ("m", "n"), "A": ("n", "n"), "a": (3, 5), "c": (), "d": (8,), "w": (4,),
}  # fmt: skip
VALUES: dict[str, Any] = {
    "x": RNG.normal(size=5), "X": RNG.normal(size=(3, 5)), "A": RNG.normal(size=(5, 5)),
    "a": RNG.normal(size=(3, 5)), "c": 0.5, "d": RNG.normal(size=8), "w": RNG.normal(size=4),
}  # fmt: skip
x, w = tc.var("x", "n"), tc.var("w", 4)

# --- indices --------------------------------------------------------------------------------------

ENTRIES: list[tuple[str, Callable[..., Any]]] = [
    ("f[i=0..n-1] = [mod(i, 3) == 5]*x[i]", lambda x: 0 * x),
    ("f[i=0..n-1] = [mod(i, 3) == -1]*x[i] + x[i]", lambda x: x),
    ("f[i=0..n-1] = where([mod(i+1, 3) == 2], x[i], 3)", lambda x: [3, x[1], 3, 3, x[4]]),
    ("f[i=0..n-1] = [~(mod(i, 3) == 5)]*x[i]", lambda x: x),
    ("t[j=2..5] = d[j]; f[i=0..3] = t[argsort(w)[i] + 2]", lambda d, w: d[2:6][np.argsort(w)]),
    ("t[j=-1..2] = d[j+1]; f[i=0..3] = t[argsort(w)[i] - 1]", lambda d, w: d[np.argsort(w)]),
    ("f[i, j] = expm(A)[i, j]", lambda A: expm(A)),
    ("f = det(A)*2", lambda A: 2 * np.linalg.det(A)),
    ("f[i=0..4] = sum[k=0..i*1](d[k])", lambda d: np.cumsum(d)[:5]),
    ("f[i=0..2] = sum[k=0..2*min(i,1)](d[k])", lambda d: np.cumsum(d)[[0, 2, 2]]),
    ("f[i=0..2] = sum[k=0..min(i,1)*(-2)+2](d[k])", lambda d: np.cumsum(d)[[2, 0, 0]]),
    ("f[i=0..2] = sum[k=0..0*min(i,1)+i](d[k])", lambda d: np.cumsum(d)[:3]),
    ("f[i=0..6] = sum[k=-1*floor(i/2)..0](d[-k])", lambda d: np.cumsum(d)[np.arange(7) // 2]),
    ("f[i=0..n-1] = (floor(n/2) - i)*x[i]", lambda x: (2 - np.arange(5)) * x),
    ("f[i=0..floor((2*n-5)/3)] = i + floor((n-8)/2)", lambda x: [-2, -1]),
    ("f[i=0..n-1] = x[i] + min(floor((n-2)/2), 2)", lambda x: x + 1),
    ("f[d=0..2] = w[d]/2", lambda w: w[:3] / 2),  # no array of that name is read
    ("t[i=0..1] = 2\nf = t[0]*x[0]; f", lambda x: 2 * x[0]),
    *[(f"f[j=0..1] = {name}[i=j..j-1](d[i])", lambda d, e=empty: [e, e])
      for name, empty in (("sum", 0), ("prod", 1), ("max", -np.inf), ("min", np.inf),
                          ("norm2", 0), ("logsumexp", -np.inf))],
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), ENTRIES)
def test_entries(text: str, wanted: Callable[..., Any]) -> None:
    e = tc.parse_index(text, **DECLARED)
    names = wanted.__code__.co_varnames[: wanted.__code__.co_argcount]
    arrays = [VALUES[name] for name in names if name in VALUES]
    data = {name: VALUES[name] for name in e.variables}
    sizes = {} if data else {"n": 5}
    for read in (e, tc.parse_index(tc.to_index(e), **DECLARED)):
        np.testing.assert_allclose(read({**data, **sizes}), wanted(*arrays), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(("text", "error", "at", "told"), [
    ("f[i,j] = inv(A+A)[i,j]", tc.ParseError, 14, "inv takes arrays by their names alone"),
    ("f[i,j] = inv(q)[i,j]", tc.ParseError, 14, "inv takes arrays by their names alone"),
    ("f[i] = inv(x)[i,i]", tc.ShapeError, 8, r"inv needs a square matrix, not shape \(n,\)"),
    ("f = det(A, 1)", tc.ParseError, 5, "det: it has 0 parameters behind its operands, not 1"),
    ("f = det(A, [0, 1])", tc.ParseError, 5, "det: it has 0 parameters .*, not 1"),
    ("f = inv(A)", tc.ShapeError, 5, r"inv has shape \(n, n\) here: its entries are inv\(…\)\[…\]"),
    ("f = xx(A)", tc.ParseError, 5, "there is no function `xx`"),
    ("f[i=0..n-1] = x[mod(i)]", tc.ParseError, 17, "mod takes two arguments"),
    ("f[i=0..n-1] = x[mod(i, 2, 3)]", tc.ParseError, 17, "mod takes two arguments"),
    ("f[i=0..2] = sum[k=0..ceil(i, 2)](d[k])", tc.ParseError, 22, "ceil takes one argument"),
    ("f[i=0..2] = sum[k=0..floor(i/2)+floor(i/3)](d[k])", tc.ParseError, 22, "two roundings are"),
    ("f[i=0..2] = sum[k=0..2*floor(i/2)](d[k])", tc.ParseError, 22, "a multiple of a rounded quot"),
    ("f = sum[k=0.." + "+".join([f"max(n, {j})" for j in range(6)]) + "](d[k])", tc.ParseError, 14,
     "more than 32 forms in one bound"),
    ("f = sum[x](w[x]) + x[0]", tc.ParseError, 9, "`x` is the name of an array; choose another"),
    ("f[i=0..3, j=0..i] = 1", tc.ParseError, 16, "range of `j`, an axis of an array, is affine in"),
    ("x[i+1; f = 3", tc.ParseError, 6, r"expected \] for the \[ at 1:2"),
])  # fmt: skip
def test_texts_of_indices_that_are_wrong(
    text: str, error: type[Exception], at: int, told: str
) -> None:
    with pytest.raises(error, match=f"^1:{at}: .*{told}"):
        tc.parse_index(text, **DECLARED)


def test_arrays_of_numbers_that_are_not_finite_are_written_by_their_places() -> None:
    for numbers in ([np.inf, 1.5, 0, -np.inf], [0, np.nan, 2, 0]):
        for e in (w + np.array(numbers), tc.outer(w, np.array(numbers))):
            read = tc.parse_index(tc.to_index(e), w=4)
            with np.errstate(invalid="ignore"):
                wanted = np.add if e.ndim == 1 else np.outer
                np.testing.assert_array_equal(
                    read(w=VALUES["w"]), wanted(VALUES["w"], np.array(numbers))
                )


@pytest.mark.parametrize(("text", "latex"), [
    ("f = sum[i=0..n-2](cos(pi*x[i])*x[i+1])",
     r"\sum_{i=0}^{n - 2} x_{i + 1} \, \cos(\pi x_{i})"),
    ("f = norm2[i=0..n-2](where([i >= 1], x[i], x[i+1]))", r"\sqrt{\sum_{i=0}^{n - 1} \begin{cases}"
     r" \begin{cases} x_{i} & i \geq 1 \\ x_{i + 1} & \text{otherwise} \end{cases} & n \geq i + 2"
     r" \\ 0 & \text{otherwise} \end{cases}^{2}}"),
    ("f[i=0..n-1] = logsumexp[j=0..n-1](A[i,j] - [j <= i]*x[j])",
     r"[\mathrm{logsumexp}_{j=0}^{n - 1}(A_{ij} - [i \geq j] x_{j})]_{i=0}^{n - 1}"),
])  # fmt: skip
def test_formulas_of_reductions_over_indices(text: str, latex: str) -> None:
    assert tc.to_latex(tc.parse_index(text, **DECLARED)) == latex


# --- programs -------------------------------------------------------------------------------------

y, A, e0 = tc.var("y", "n"), tc.var("A", ("n", "n")), tc.var("e", 0)
LINE = {"x": RNG.normal(size=9), "y": RNG.normal(size=9)}
SQUARE = {"A": RNG.normal(size=(9, 9))}


def of_indices(text: str) -> tc.Expr:
    return tc.parse_index(text, **DECLARED, y="n")


def slope(run: Callable[[np.ndarray], Any], at: np.ndarray) -> np.ndarray:
    """The gradient by complex steps."""
    found = np.zeros(at.shape)
    for place in np.ndindex(at.shape):
        moved = at.astype(complex)
        moved[place] += 1e-40j
        found[place] = run(moved).imag / 1e-40
    return found


def lagged(x: Any, y: Any) -> Any:
    count = len(x) - 2
    rows = [
        [sum(x[i + p] * y[j + p] for p in range(3)) for j in range(count)] for i in range(count)
    ]
    return np.array(rows)


LAGS = of_indices("f[i=0..n-3, j=0..n-3] = sum[p=0..2](x[i+p]*y[j+p])")
THIRDS = np.add.outer(2 * np.arange(9), np.arange(9)) % 5 == 1

#: An expression, the arrays, and the value by NumPy.
PRINTED: dict[str, tuple[tc.Expr, dict[str, Any], Callable[..., Any]]] = {
    "infinite numbers": (w + np.array([np.inf, 1, 2.5, -np.inf]), {"w": VALUES["w"]},
                         lambda w: w + [np.inf, 1, 2.5, -np.inf]),
    "no numbers": (w * np.array([np.nan, 1, 2, 0]), {"w": VALUES["w"]},
                   lambda w: w * [np.nan, 1, 2, 0]),
    "a condition of remainders": (
        of_indices("f[i=0..n-1, j=0..n-1] = where([mod(2*i-j, 5) == 1], A[i,j], 2)"), SQUARE,
        lambda A: np.where(np.subtract.outer(2 * np.arange(9), np.arange(9)) % 5 == 1, A, 2)),
    "a sum where remainders are": (
        of_indices("f = sum[i,j](A[i,j]^2*[mod(2*i+j, 5) == 1])"), SQUARE,
        lambda A: (A**2)[THIRDS].sum()),
    "nothing": (e0 + np.zeros(0), {"e": np.zeros(0)}, lambda e: e),
    "a matrix without columns": (tc.outer(w, np.zeros(0)), {"w": VALUES["w"]},
                                 lambda w: np.zeros((4, 0))),
    "one square in a product": (tc.sum(x**2 * y), LINE, lambda x, y: (x**2 * y).sum()),
    "squares of products": (tc.sum(x**2 * y**2), LINE, lambda x, y: (x**2 * y**2).sum()),
    "squares of products of matrices": (
        tc.einsum("ij,ij,ij,ij->i", A, A, A.T, A.T), SQUARE, lambda A: (A**2 * A.T**2).sum(1)),
    "products of windows": (LAGS, LINE, lagged),
    "their gradient": (tc.grad(tc.sum(LAGS**2), x), LINE,
                       lambda x, y: slope(lambda z: (lagged(z, y) ** 2).sum(), x)),
    "their other gradient": (tc.grad(tc.sum(LAGS**2), y), LINE,
                             lambda x, y: slope(lambda z: (lagged(x, z) ** 2).sum(), y)),
    "a gradient by the steps of a loop that forgets": (
        tc.grad(tc.sum(tc.parse("fold(s -> tanh(A[i]), x, i=0..n-1)", A=A, x=x) ** 2), A),
        {**SQUARE, "x": LINE["x"]},
        lambda A, x: np.outer(np.eye(9)[8], 2 * np.tanh(A[8]) / np.cosh(A[8]) ** 2)),
    "squares of windows": (of_indices("f[i=0..n-3] = sum[p=0..2](x[i+p]^2)"), {"x": LINE["x"]},
                           lambda x: x[:-2] ** 2 + x[1:-1] ** 2 + x[2:] ** 2),
}  # fmt: skip


def test_programs_in_numpy() -> None:
    for name, (e, arrays, wanted) in PRINTED.items():
        found = computed(e, arrays, "numpy")
        np.testing.assert_allclose(found, wanted(**arrays), rtol=1e-12, atol=1e-12, err_msg=name)


@needs_compiler
def test_programs_in_c(tmp_path: Path) -> None:
    sizes = {"n": 9}
    jobs = [Job(name, e, arrays, sizes) for name, (e, arrays, _) in PRINTED.items()]
    for program in compiled(jobs, tmp_path):
        name, arrays = program.job.name, program.job.arrays
        status, (found,) = program()
        wanted = PRINTED[name][2](**arrays)
        assert not status
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12, err_msg=name)


def test_programs_in_octave(tmp_path: Path) -> None:
    programs = [Program({"f": e}, arrays) for e, arrays, _ in PRINTED.values()]
    answers = octave(programs, tmp_path)
    for (name, (_, arrays, wanted)), found in zip(PRINTED.items(), answers, strict=True):
        assert not isinstance(found, str), found
        np.testing.assert_allclose(
            found["f"], wanted(**arrays), rtol=1e-12, atol=1e-12, err_msg=name
        )
