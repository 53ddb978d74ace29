"""Variables that cancel still bind dimensions; two declarations of one name never meet."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc

# Names of their own: what is alive elsewhere under a name has a say in what it binds.
x, X, c = tc.var("gone_x", "n"), tc.var("gone_X", ("m", "n")), tc.var("gone_c")
DATA = {"gone_x": np.arange(3.0), "gone_X": np.ones((2, 3)), "gone_c": 2.0}

CANCELLED: list[tuple[Callable[[], tc.Expr], Any]] = [
    (lambda: x - x, np.zeros(3)),
    (lambda: x * 0 + c, np.full(3, 2.0)),
    (lambda: x**0, np.ones(3)),
    (lambda: tc.sum(x**0) * c, 6.0),
    (lambda: tc.exp(X - X), np.ones((2, 3))),
    (lambda: 0 * X, np.zeros((2, 3))),
    (lambda: (X - X) @ x, np.zeros(2)),
    (lambda: tc.where(x - x, x, c) - x * 0, np.full(3, 2.0)),
    (lambda: tc.grad(tc.sum(x), x), np.ones(3)),
    (lambda: tc.hessian(tc.sum(x - x), x), np.zeros((3, 3))),
    (lambda: tc.zeros("n") + c, np.full(3, 2.0)),
]


@pytest.mark.parametrize(("build", "expected"), CANCELLED)
def test_a_variable_that_cancelled_still_binds_its_dimensions(
    build: Callable[[], tc.Expr], expected: Any
) -> None:
    e = build()
    in_order = tc.compile(e, args=("gone_X", "gone_x", "gone_c"))
    for value in (e(DATA), tc.compile(e)(DATA), in_order(*ORDERED)):
        np.testing.assert_array_equal(value, expected, strict=True)
    again = {**DATA, "gone_x": np.ones(5), "gone_X": np.ones((4, 5))}
    assert np.shape(e(again)) == tuple({3: 5, 2: 4}[n] for n in np.shape(expected))


ORDERED = [DATA["gone_X"], DATA["gone_x"], DATA["gone_c"]]


def test_extents_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(tc.ShapeError, match="dimension n"):
        (x * 0 + X * 0)(gone_x=np.ones(3), gone_X=np.ones((2, 4)))
    with pytest.raises(TypeError, match="pass n="):
        (x - x)(nobody=np.ones(3))
    with pytest.raises(TypeError, match="pass n="):
        (x - x)(gone_x=np.ones((3, 3)))  # another x than the declared one
    assert (x - x)(n=2, gone_x=np.ones(2)).shape == (2,)


TEXTS = [
    ("a-a", "a", (), {"a": 1.0}),
    ("x'*x - x'*x + b", "x", (3,), {"x": np.ones(3), "b": 2.0}),
    ("0*sum(X) + b", "X", (2, 3), {"X": np.ones((2, 3)), "b": 2.0}),
    ("sum(x.^0)", "x", (3,), {"x": np.ones(3)}),
    ("r = x - x; r'*r + b", "x", (3,), {"x": np.ones(3), "b": 2.0}),
]


@pytest.mark.parametrize(("text", "name", "shape", "data"), TEXTS)
def test_variables_of_a_text_have_derivatives_also_where_they_cancel(
    text: str, name: str, shape: tuple[int, ...], data: dict[str, Any]
) -> None:
    f = tc.parse(text)
    assert f.variables.keys() == data.keys()
    assert np.ndim(f(data)) == 0
    for order in (1, 2):
        d = tc.derivative(f, name, order)
        np.testing.assert_array_equal(d(data), np.zeros(shape * order), strict=True)
    kept = pickle.loads(pickle.dumps(f))
    assert kept.variables.keys() == data.keys()
    assert tc.to_code(f, "numpy").count(name)
    g = tc.parse_index("f = sum[i=0..2](v[i]*0) + b", v=3, b=())
    h = tc.parse_einsum("sum(v*0) + b", v=3, b=())
    for e in (g, h):
        np.testing.assert_array_equal(tc.grad(e, "v")(v=np.ones(3), b=1.0), np.zeros(3))


MEETING: list[Callable[[tc.Expr, tc.Expr], object]] = [
    lambda a, b: a + b,
    lambda a, b: b - a,
    lambda a, b: a * b,
    lambda a, b: a / b,
    lambda a, b: tc.sum(a) + tc.sum(b),
    lambda a, b: tc.einsum("i,j->ij", a, b),
    lambda a, b: tc.where(tc.sum(a) > 0, tc.sum(b), 1),
    lambda a, b: tc.maximum(tc.sum(a), tc.sum(b)),
    lambda a, b: tc.sum(tc.sin(tc.exp(a) * c)) * tc.sum(tc.cos(b) + c),
    lambda a, b: tc.outer(a, c * b),
]


@pytest.mark.parametrize("other", [("m",), (3,), ("n", "positive")], ids=str)
@pytest.mark.parametrize("meet", MEETING)
def test_two_declarations_of_a_name_are_refused_where_they_meet(
    meet: Callable[[tc.Expr, tc.Expr], object], other: tuple[Any, ...]
) -> None:
    first = tc.var("twice", "n")
    second = tc.var("twice", other[0], nonnegative=len(other) > 1)
    before = tc.exp(first) + c  # built before the name was in doubt, or after
    with pytest.raises(ValueError, match=r"twice is declared twice: \(") as caught:
        meet(first, second)
    assert all(shape in str(caught.value) for shape in ("(n,)", f"({other[0]},)"))
    with pytest.raises(ValueError, match="declared twice"):
        tc.sum(before) + tc.sum(second)
    assert (before + tc.exp(first)).variables["twice"] is first


def test_a_name_may_be_declared_again_in_another_expression() -> None:
    values = []
    for n in (2, 3):
        v = tc.var("again", n)
        values.append(tc.grad(v @ v, v)(again=np.ones(n)))
    assert [len(value) for value in values] == [2, 3]


def test_older_declarations_of_a_name_do_not_contradict() -> None:
    """One that is still alive somewhere says nothing against a name that has no other."""
    older = tc.var("gone_tau", "n")
    A, tau = tc.var("gone_A", ("k", "n", "n")), tc.var("gone_tau", "k")
    assert older.shape == ("n",)
    e = tc.simplify(tc.sum(tc.linalg.inv(-2 * tau[:, None, None] * A) * A.mT, axis=(1, 2)))
    values = {"gone_A": np.stack([2 * np.eye(3), np.eye(3)]), "gone_tau": np.array([2.0, -5.0])}
    np.testing.assert_allclose(e(values), [-3 / 4, 3 / 10])
