"""Texts and formulas that are seldom: margins, remainders, loops, numbers that are not finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

DECLARED: dict[str, Any] = {"a": (3, 5), "c": (), "d": (8,), "x": ("n",)}
RNG = np.random.default_rng(3)
VALUES: dict[str, Any] = {
    "a": RNG.normal(size=(3, 5)), "c": 0.75, "d": RNG.normal(size=8), "x": RNG.normal(size=5),
}  # fmt: skip
i8 = np.arange(8)


def padded(a: np.ndarray) -> np.ndarray:
    found = np.zeros((6, 12))
    found[1:4, 3:8] = a
    return found


READ: list[tuple[str, Callable[..., Any]]] = [
    ("d .* indicator(i=8, (i+1) mod 2 == 0)", lambda d: np.where(i8 % 2 == 1, d, 0)),
    ("d .* indicator(i=8, (3*i+1) mod 5 == 0)", lambda d: np.where((3 * i8 + 1) % 5 == 0, d, 0)),
    ("indicator(i=8, i mod 3 == 0, i>=2)", lambda: np.where((i8 % 3 == 0) & (i8 >= 2), 1.0, 0)),
    ("indicator(i=3, j=4, (i+2*j) mod 3 == 0)",
     lambda: [[float((i + 2 * j) % 3 == 0) for j in range(4)] for i in range(3)]),
    ("indicator(i=3, j=4, (2*i-j) mod 1 == 0)", lambda: np.ones((3, 4))),
    ("pad(a, 1, 2, 3, 4)", padded),
    ("d'*fold(loop -> loop*0.5, d, i=0..3)", lambda d: d @ d / 16),
    ("fold(s -> s + loop, c, loop=0..3)", lambda c: c + 6),
    ("fold(loop -> loop + fold(loop_ -> loop_ + c, 0, loop__=0..1), 0, i=0..2)",
     lambda c: 6 * c),
    ("fold((p, q) -> (q, p+q), (c, 1), i=0..5)[0]", lambda c: 5 * c + 8),
    ("fold((p, q) -> (q, p+q), (c, 1), i=0..5)[1]", lambda c: 8 * c + 13),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), READ)
def test_matrices_of_remainders_margins_and_loops(text: str, wanted: Callable[..., Any]) -> None:
    e = tc.parse(text, **DECLARED)
    names = wanted.__code__.co_varnames[: wanted.__code__.co_argcount]
    data = {name: VALUES[name] for name in e.variables}
    answer = wanted(*[VALUES[name] for name in names])
    for read in (e, tc.parse(str(e), **DECLARED)):
        np.testing.assert_allclose(read(data), answer, rtol=1e-13, atol=1e-13)


def nested(depth: int) -> str:
    text = "c"
    for k in range(depth):
        text = f"fold(s{k} -> s{k} + {text}, 0, i{k}=0..0)"
    return text


REFUSED = [
    ("pad(a, 1, 2)", r"1:1: pad: write the widths before and behind along each of 2 axes"),
    ("pad(d)", r"1:1: pad: write the widths before and behind along each of 1 axes"),
    ("pad(d, 1, 2, 3, 4)", r"1:1: pad: write the widths before and behind along each of 1 axes"),
    ("fold((p, q) -> (q, p+q), (1, 1, 2), i=0..5)", "1:6: 2 states have 3 first states"),
    ("fold((p, q) -> (q, p+q), 1, i=0..5)", "1:6: 2 states have 1 first states"),
    ("fold(s -> d[s], 0, i=0..2)", "1:6: fold: state 0 is used as an index, so it is an integer"),
    ("fold((t, s) -> (t + d[s], s*0.5), (0, 1), i=0..2)[0]",
     "1:6: fold: state 1 is used as an index, so it is an integer"),
    (nested(31), "loops are nested deeper than 30 here"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "told"), REFUSED, ids=[told for _, told in REFUSED])
def test_texts_that_are_refused(text: str, told: str) -> None:
    with pytest.raises(tc.ParseError) as found:
        tc.parse(text, **DECLARED)
    assert told in str(found.value)


def test_loops_are_read_as_deeply_as_allowed() -> None:
    assert tc.parse(nested(30), **DECLARED)(c=0.75) == 0.75


def test_a_bound_of_too_many_forms_is_refused_and_a_bound_of_few_is_read() -> None:
    least = "min(" + ", ".join([f"max(n, {j})" for j in range(1, 7)]) + ")"
    with pytest.raises(tc.ParseError, match=r"^1:14: more than 32 forms in one bound"):
        tc.parse_index(f"f = sum[k=0..{least}-1](x[k])", x="n")
    read = tc.parse_index("f = sum[k=0..min(max(n, 1), max(n-1, 3))-1](x[k])", x="n")
    x = VALUES["x"]
    assert read(x=x) == pytest.approx(x[:4].sum(), rel=1e-14)


x, w, cube = tc.var("x", "n"), tc.var("w", 3), tc.var("T", (2, 2, 2))
n = tc.var("A", ("n", "n"))


@pytest.mark.parametrize(("e", "latex"), [
    (x * np.inf, r"\infty x"),
    (tc.maximum(x, -np.inf), r"\max(x, -\infty)"),
    (x + np.nan, r"x + \mathrm{nan} \, \mathbf{1}"),
    (w + np.array([np.inf, 1, np.nan]), r"w + (\infty, 1, \mathrm{nan})^{\top}"),
    (cube + np.arange(8.0).reshape(2, 2, 2), r"T + \mathrm{const}_{2 \times 2 \times 2}"),
    (tc.var("v", 400) + np.arange(400.0), r"v + \mathrm{const}_{400}"),
])  # fmt: skip
def test_numbers_that_are_not_finite_and_arrays_too_large_to_be_shown(
    e: tc.Expr, latex: str
) -> None:
    assert tc.to_latex(e) == latex


@pytest.mark.parametrize(("e", "sign"), [(x * np.inf, "∞"), (x + np.nan, "<mi>nan</mi>"),
                                         (w - np.array([np.inf, 0, 1]), "∞")])  # fmt: skip
def test_numbers_that_are_not_finite_in_mathml(e: tc.Expr, sign: str) -> None:
    shown = tc.to_mathml(e)
    assert sign in shown.partition(">")[2]


def test_formulas_without_names_are_the_same_with_where() -> None:
    e = tc.log(x) * x
    assert tc.to_latex(e, where=True) == tc.to_latex(e) == r"x \odot \log(x)"
    assert tc.to_mathml(e, where=True) == tc.to_mathml(e)


T = tc.var("T", ("n", "n", "n"))
DATA = {"T": RNG.normal(size=(3, 3, 3)), "A": RNG.normal(size=(3, 3))}


@pytest.mark.parametrize(("e", "wanted"), [
    (tc.sum((T - tc.mean(T)) ** 2, (0, 1)), lambda T, A: ((T - T.mean()) ** 2).sum((0, 1))),
    (tc.sum((T - tc.mean(T, 0)) ** 2, (1, 2)), lambda T, A: ((T - T.mean(0)) ** 2).sum((1, 2))),
    (tc.trace((n - tc.mean(n)) ** 2), lambda T, A: (np.diag(A - A.mean()) ** 2).sum()),
])  # fmt: skip
def test_squares_of_deviations_that_are_no_variances_are_not_written_as_some(
    e: tc.Expr, wanted: Callable[..., Any]
) -> None:
    assert "var(" not in str(e)
    read = tc.parse(str(e), T=("n", "n", "n"), A=("n", "n"))
    data = {name: DATA[name] for name in read.variables}
    np.testing.assert_allclose(read(data), wanted(**DATA), rtol=1e-12)


#: Texts in which names are written that loops would give their own parts, and their values.
NAMED_AS_PARTS = [
    ("loop1*fold(s -> s + loop1, 5, i=0..3)", 2 * (5 + 4 * 2)),
    ("t1 = fold(s -> s + 1, 0, i=0..2)\nloop1 = 5\nt1*loop1", 15),
    ("loop1 = 5\nt1 = fold(s -> s + loop1, 0, i=0..2)\nt1*loop1", 75),
    ("loop2 = 5\nt1 = fold(s -> s + loop2, 0, i=0..2)\nloop1 = t1*2\nt1*loop1+loop2", 455),
    ("loop1 = 5\nfold(s -> s + fold(t -> t + s*loop1, 0, j=0..1), 1, i=0..2) + loop1", 1336),
    ("a = fold(s -> s*2, 1, i=0..2)\nloop1 = a + 1\n"
     "loop2 = fold(s -> s + loop1, 0, i=0..1)\nloop1*loop2 + a", 170),
    ("fold(s -> s + fold(loop3 -> loop3 + s + v[loop1], 0, loop1=0..1), 1, loop2=0..2)", 66),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), NAMED_AS_PARTS)
def test_names_that_are_written_are_told_from_those_of_parts_of_loops(
    text: str, wanted: float
) -> None:
    shapes: dict[str, Any] = {"v": 2} if "loop1 =" in text else {"v": 2, "loop1": ()}
    if "loop1=" in text:
        del shapes["loop1"]
    e = tc.parse(text, **shapes)
    given = {"v": np.array([1.0, 2.0]), "loop1": 2.0}
    assert e({name: given[name] for name in e.variables}) == wanted
