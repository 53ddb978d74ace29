"""`compile(debug=True)`: the part of an expression that made the first nan is named."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.applications import apply
from tcalc.graph.operators import Op
from tests.test_operators import ELEMENTWISE

x, y, A = tc.var("x", "n"), tc.var("y", "n"), tc.var("A", ("n", "n"))
AT = {"x": np.array([2.0, 0.5, 3.0]), "y": np.array([1.0, 1.0, -1.0])}


def told(e: Any, *arguments: Any, structured: bool = False, **values: Any) -> str:
    """What a call says of the first nan."""
    with pytest.raises(FloatingPointError) as found:
        tc.compile(e, debug=True, structured=structured)(*arguments, **values)
    return str(found.value)


def outside(row: Op) -> float | None:
    """A number at which a function of one operand is nan."""
    tried = np.array([-0.5, -1.5, 1.5, -20.5, 20.5])
    with np.errstate(all="ignore"):
        values = apply(row, x)(x=tried)
    wrong = tried[np.isnan(values)]
    return float(wrong[0]) if wrong.size else None


PARTIAL = [
    (row, at)
    for row in ELEMENTWISE
    if len(row.core) == 1 and "#" not in row.name and (at := outside(row)) is not None
]


def test_there_are_functions_with_a_domain() -> None:
    assert {"log", "sqrt", "arcsin", "arccosh"} & {row.name for row, _ in PARTIAL}


@pytest.mark.parametrize(("row", "at"), PARTIAL, ids=lambda case: getattr(case, "name", ""))
def test_functions_outside_of_their_domains_are_named(row: Op, at: float) -> None:
    inner = apply(row, tc.sinh(y))
    for e in (tc.exp(inner) @ A, {"a": x, "b": [tc.tanh(inner) / 2]}, tc.sum(inner * x)):
        given = {"x": np.ones(3), "y": np.arcsinh(np.full(3, at)), "A": np.eye(3)}
        text = told(e, **given)
        assert str(inner) in text
        assert ", where " in text
        assert float(text.rpartition(" = ")[2]) == pytest.approx(at)


CASES: dict[str, tuple[Any, str]] = {
    "gradient": (tc.grad(tc.sum(tc.sqrt(x - 1) * y), x), "sqrt(x - 1) at [1], where x - 1 = -0.5"),
    "beside a branch": (tc.where(x > 1, tc.log(x - 1), 0) + tc.log(y),
                        "log(y) at [2], where y = -1.0"),
    "difference": (tc.exp(500 * x) - tc.exp(600 * x), "infinite entries"),
    "product": (tc.exp(500 * x) @ tc.log(x / x), "exp(500*x) has infinite entries"),
    "slice": (tc.log(x[1:] - x[:-1]), "log(x[1:] - x[:-1]) at [0]"),
    "loop": (tc.fold(lambda s, i: tc.sqrt(s) - 1, x[1], 4), "fold(s -> sqrt(s) - 1, x[1]"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_part_and_the_entry_are_named(name: str) -> None:
    e, words = CASES[name]
    assert words in told(e, **{k: v for k, v in AT.items() if k in e.variables})


def test_every_way_to_compile_names_it() -> None:
    f = tc.sum(tc.arcsin(x) ** 2)
    words = "sqrt(1 - x.^2) at [1], where 1 - x.^2 = -1.25"
    given = np.array([0.1, 1.5])
    hessian = tc.hessian(f, x)
    assert words in told(hessian, structured=True, x=given)
    assert words in told(hessian, {"x": given})
    for options in ({"args": ["x"]}, {"data": {"x": given}}):
        step = tc.compile(hessian, debug=True, **options)
        for held in (step, pickle.loads(pickle.dumps(step))):
            with pytest.raises(FloatingPointError, match=r"sqrt\(1"):
                held(*([given] if "args" in options else []))
    traced: Callable[..., Any] = tc.compile(lambda v: np.sum(np.log(v - 1)), debug=True)
    with pytest.raises(FloatingPointError, match="log"):
        traced(given)


def test_what_is_no_fault_of_the_expression_passes() -> None:
    guarded = tc.where(x > 1, tc.log(x - 1), 0)
    step = tc.compile({"f": guarded, "g": tc.grad(tc.sum(guarded), x)}, debug=True)
    assert np.isfinite(step(x=AT["x"])["g"]).all()
    assert np.isnan(step(x=[2.0, np.nan])["f"]).sum() <= 1  # the argument's own nan
    assert tc.compile(tc.log(x), debug=True)(x=[0.0])[0] == -np.inf
    plain = tc.compile(tc.log(x))(x=[-1.0])
    assert np.isnan(plain).all()
    with pytest.raises(TypeError, match="debug="):
        tc.compile(x, debug="yes")  # type: ignore[arg-type]


def test_what_was_computed_is_told_and_each_operand_once() -> None:
    assert told(x / x, x=np.zeros(1)).endswith("divide(x, x) at [0], where x = 0.0")
    z, c = tc.var("z"), tc.var("c")
    assert told(z / z * c, z=0.0, c=1.0).endswith("is of divide(z, z), where z = 0.0")


def test_arguments_of_traced_functions_have_their_own_names() -> None:
    loss = tc.compile(lambda theta: np.sum(np.log(theta)), debug=True)
    for held in (
        loss,
        tc.compile(tc.value_and_grad(lambda theta: np.sum(np.log(theta))), debug=True),
    ):
        with pytest.raises(FloatingPointError, match=r"log\(theta\) at \[0\], where theta = -1.0$"):
            held(np.array([-1.0, 2.0]))
