"""Conditions that keep accesses in range, one in another: all of those around an access hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special

import tcalc as tc
from tcalc.graph.nodes import postorder
from tcalc.ops.guard import _read_by_both

Condition = Callable[[Any, Any], Any]

#: Two conditions, and a place (by rows and columns) that is inside where both hold, of 4 x 5.
NESTED: list[tuple[Condition, Condition, Callable[[Any, Any], tuple[Any, Any]]]] = [
    (lambda i, j: i >= 1, lambda i, j: j >= 2, lambda i, j: (i - 1, j - 2)),
    (lambda i, j: i < 3, lambda i, j: j < 4, lambda i, j: (i + 1, j + 1)),
    (lambda i, j: i + j >= 2, lambda i, j: i + j < 6, lambda i, j: (i + j - 2, j)),
    (lambda i, j: i == j + 1, lambda i, j: j >= 1, lambda i, j: (i - 2, j - 1)),
    (lambda i, j: i <= j, lambda i, j: j < 4, lambda i, j: (i, j - i)),
    (lambda i, j: 2 * i >= j, lambda i, j: 2 * i - j < 4, lambda i, j: (2 * i - j, j)),
]


@pytest.mark.parametrize("outer", [0, 1])
@pytest.mark.parametrize("case", NESTED)
@pytest.mark.parametrize("shape", [(4, 5), ("m", "n")])
def test_conditions_inside_one_another_guard_together(
    shape: tuple[Any, Any], case: Any, outer: int
) -> None:
    X, place = tc.var("X", shape), case[2]
    first, second = case[outer], case[1 - outer]

    def entry(i: Any, j: Any) -> Any:
        inner = tc.where(second(i, j), tc.exp(X[place(i, j)]), -1)
        return tc.where(first(i, j), inner * 2, 3)

    e = tc.build(shape[0], lambda i: tc.build(shape[1], lambda j: entry(i, j)))
    data = np.random.default_rng(0).normal(size=(4, 5))
    wanted, slopes = np.empty((4, 5)), np.zeros((4, 5, 4, 5))
    for i, j in np.ndindex(4, 5):
        inside = bool(first(i, j)) and bool(second(i, j))
        wanted[i, j] = -2 if first(i, j) else 3
        if inside:
            wanted[i, j] = 2 * np.exp(data[place(i, j)])
            slopes[(i, j, *place(i, j))] = wanted[i, j]
    for backend in ("numpy", "c"):
        found = tc.compile((e, tc.jacobian(e, X)), backend=backend)(X=data)
        np.testing.assert_allclose(found[0], wanted, rtol=1e-13)
        np.testing.assert_allclose(found[1], slopes, rtol=1e-13)


def test_an_access_outside_where_all_conditions_hold_is_refused() -> None:
    x = tc.var("x", 4)
    far = lambda i, j: tc.where(i >= 1, tc.where(j >= 2, x[i + 1], 0), 0)  # noqa: E731
    with pytest.raises(IndexError, match=r"\[i\+1\]: index 4 is out of range .* where .*"):
        tc.build(4, lambda i: tc.build(4, lambda j: far(i, j)))


def test_what_a_condition_guards_elsewhere_is_no_excuse() -> None:
    x = tc.var("x", 4)
    inner = lambda i, j: tc.where(j >= 1, x[i - 1], 0)  # noqa: E731
    with pytest.raises(IndexError, match="index -1 is out of range"):
        tc.build(4, lambda i: tc.build(4, lambda j: tc.where(i >= 1, inner(i, j), 0) + inner(i, j)))


def test_a_guard_is_that_of_the_condition_that_answers_for_the_access() -> None:
    """A gather of n entries, not one of n times m."""
    x, y = tc.var("x", "n"), tc.var("y", "m")
    product = lambda i, j: x[i - 1] * y[j - 2]  # noqa: E731
    e = tc.build(
        "n",
        lambda i: tc.build("m", lambda j: tc.where(i >= 1, tc.where(j >= 2, product(i, j), 0), 0)),
    )
    assert "x[where(indicator(i=n, i >= 1), iota(n) - 1, 0)]" in str(e)


#: Functions of all numbers, and some that are of positive ones only.
EVERYWHERE = ["sin", "cos", "tan", "arctan", "tanh", "arcsinh", "abs", "floor", "ceil", "rint",
              "sign", "erf", "erfc"]  # fmt: skip
SOMEWHERE = ["log", "sqrt", "reciprocal", "log2", "gammaln"]


@pytest.mark.parametrize("name", [*EVERYWHERE, *SOMEWHERE])
def test_only_what_needs_it_is_computed_for_every_entry_of_a_condition(name: str) -> None:
    """Of a row under a condition on a matrix, as many entries as the row has."""
    M, x = tc.var("M", ("m", "n")), tc.var("x", "n")
    function, plain = getattr(tc, name), getattr(np, name, getattr(special, name, None))
    e = tc.where(M > 0, function(x), 0)
    of_row = function(x)
    assert any(node is of_row for node in postorder([e])) == (name in EVERYWHERE)
    data = {"M": np.array([[1.0, -1.0, 2.0], [-1.0, -2.0, 3.0]]), "x": np.array([0.5, -1.0, 1.5])}
    with np.errstate(all="raise"):
        found = e(**data)
    with np.errstate(all="ignore"):
        wanted = np.where(data["M"] > 0, plain(data["x"]), 0)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


@pytest.mark.parametrize("shape", [(), ("n",)])
@pytest.mark.parametrize("seed", range(20))
def test_branches_in_one_another_are_read_as_they_are_written(seed: int, shape: Any) -> None:
    """Guards that are there already stay as they are, however deep branches lie in each other."""
    draw, x = np.random.default_rng(seed), tc.var("x", shape)
    at = np.linspace(-2, 2, 9) if shape else np.asarray(0.7)
    made: list[tuple[tc.Expr, Any]] = [
        (x, at),
        (-tc.power(x, 3), -(at**3)),
        (tc.exp(x), np.exp(at)),
    ]
    with np.errstate(all="ignore"):
        for _ in range(6):
            (c, cs), (a, ys), (b, zs) = (made[draw.integers(len(made))] for _ in range(3))
            if draw.integers(2):
                a, ys = tc.log(a), np.log(ys)
            if draw.integers(2):
                b, zs = 1 / b, 1 / zs
            made.append((tc.where(c > 0.1, a, b), np.where(cs > 0.1, ys, zs)))
    e, wanted = made[-1]
    assert tc.parse(str(e), **e.variables) is e
    np.testing.assert_allclose(e(x=at), wanted, rtol=1e-9)


# --- choices in a row -----------------------------------------------------------------------------


class Taylor:
    """A number with two derivatives by x: what is computed of it is by the branch that is taken."""

    def __init__(self, value: float, first: float = 0.0, second: float = 0.0) -> None:
        self.terms = value, first, second

    def through(self, value: float, first: float, second: float) -> Taylor:
        """A function of it, whose value and derivatives there are given."""
        _, d, dd = self.terms
        return Taylor(value, first * d, first * dd + second * d * d)

    def __add__(self, other: Any) -> Taylor:
        terms = other.terms if isinstance(other, Taylor) else (other, 0, 0)
        return Taylor(*[a + b for a, b in zip(self.terms, terms, strict=True)])

    def __mul__(self, other: Any) -> Taylor:
        a, b, c = other.terms if isinstance(other, Taylor) else (other, 0, 0)
        v, d, dd = self.terms
        return Taylor(v * a, v * b + d * a, v * c + 2 * d * b + dd * a)

    __rmul__ = __mul__

    def __gt__(self, bound: float) -> bool:
        return self.terms[0] > bound


class Branches:
    """What steps are written with, in tcalc's expressions and in numbers."""

    def __init__(self, of_numbers: bool) -> None:
        self.of_numbers = of_numbers

    def where(self, condition: Any, one: Any, other: Any) -> Any:
        if not self.of_numbers:
            return tc.where(condition, one(), other())
        return one() if condition else other()

    def exp(self, e: Any) -> Any:
        return tc.exp(e) if not self.of_numbers else e.through(*[np.exp(e.terms[0])] * 3)

    def log(self, e: Any) -> Any:
        a = e.terms[0] if self.of_numbers else None
        return tc.log(e) if a is None else e.through(np.log(a), 1 / a, -1 / a**2)

    def sqrt(self, e: Any) -> Any:
        a = e.terms[0] if self.of_numbers else None
        return tc.sqrt(e) if a is None else e.through(a**0.5, a**-0.5 / 2, -(a**-1.5) / 4)

    def over(self, e: Any) -> Any:
        a = e.terms[0] if self.of_numbers else None
        return 1 / e if a is None else e.through(1 / a, -1 / a**2, 2 / a**3)


Step = Callable[[Branches, Any], Any]
STEPS: dict[str, Step] = {
    "both read it": lambda b, e: b.where(e > 0, lambda: b.exp(-1 * e), lambda: b.log(-1 * e + 1)),
    "step of an integrator": lambda b, e: (
        e + 0.1 * b.where(e > 0, lambda: b.exp(-1 * e), lambda: b.over(e + 1))
    ),
    "one reads it": lambda b, e: b.where(e > 0, lambda: b.log(e), lambda: 0 * e),
    "three branches": lambda b, e: b.where(
        e > 1,
        lambda: b.log(e),
        lambda: b.where(e > 0, lambda: b.sqrt(e), lambda: b.over(e + -1)),
    ),
    "as it is": lambda b, e: b.where(e > 0, lambda: e * b.log(e), lambda: e),
}


@pytest.mark.parametrize("depth", [2, 5, 12])
@pytest.mark.parametrize("name", STEPS)
def test_choices_in_a_row_have_the_derivatives_of_what_is_taken(name: str, depth: int) -> None:
    at = np.linspace(-2, 2, 9) + 0.013
    x, step = tc.var("x", "n"), STEPS[name]
    e: Any = x
    wanted = [Taylor(value, 1.0) for value in at]
    for _ in range(depth):
        e = step(Branches(False), e)
        wanted = [step(Branches(True), value) for value in wanted]
    total = tc.sum(e)
    outputs = e, tc.grad(total, x), tc.diag(tc.hessian(total, x))
    for backend in ("numpy", "c"):
        found = tc.compile(outputs, backend=backend)(x=at)
        np.testing.assert_allclose(
            np.transpose(found), [value.terms for value in wanted], rtol=1e-8, atol=1e-10
        )


def test_a_condition_holds_for_the_entries_that_it_is_about() -> None:
    """Where a condition holds, its transpose need not."""
    C, X = tc.var("C", ("n", "n")), tc.var("X", ("n", "n"))
    conditions = C > 0, tc.logical_not(C > 0)
    one = tc.where(C > 0, X, 0)
    for branch, read in ((one.T, False), (one, True)):
        assert bool(_read_by_both(conditions, (branch, 2 * X + 2 * X.T))) == read
    for branch, read in ((one, False), (tc.where(C > 0, 0, X), True)):
        assert bool(_read_by_both(conditions[::-1], (branch, 2 * X))) == read


@pytest.mark.parametrize("name", STEPS)
def test_choices_in_a_row_grow_by_what_a_step_has(name: str) -> None:
    """No step copies what the steps before it have computed, or once, where one branch reads it."""
    e: Any = tc.var("x", "n")
    sizes = []
    with tc.limits(nodes=100_000):
        for _ in range(20):
            e = STEPS[name](Branches(False), e)
            sizes.append(len(postorder([e])))
    added = np.diff(sizes[-5:], n=2 if name == "one reads it" else 1)
    assert max(added) - min(added) <= 2


X = tc.var("x", "n")
#: A choice in a branch of the same choice, whatever number it has off the branch.
CHOICES: list[tuple[tc.Expr, list[float], list[float]]] = [
    (tc.where(X > 0, tc.where(X > 0, X, np.nan) ** 2, 0), [0.5, 0, 0], [2, 0, 0]),
    (tc.where(X > 0, tc.sqrt(tc.where(X > 0, X, 0)), 0), [1, 0, 0], [-2, 0, 0]),
    (tc.where(X > 0, tc.log(tc.where(X > 0, X, 2)), 0), [4, 0, 0], [-16, 0, 0]),
    (tc.where(X > 0, tc.exp(tc.where(X > 0, tc.log(X), -np.inf)), X), [1, 1, 1], [0, 0, 0]),
]


@pytest.mark.parametrize(("e", "slope", "curvature"), CHOICES)
def test_numbers_off_a_branch_do_not_reach_its_derivatives(
    e: tc.Expr, slope: list[float], curvature: list[float]
) -> None:
    at = np.array([0.25, -1.0, 0.0])
    np.testing.assert_allclose(tc.grad(tc.sum(e), X)(x=at), slope, atol=1e-14)
    np.testing.assert_allclose(np.diag(tc.hessian(tc.sum(e), X)(x=at)), curvature, atol=1e-14)
