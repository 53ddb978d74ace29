"""Gathers, and sums by segment, among other steps: in tiles, in functions of C, in structures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from benchmarks.problems import PROBLEMS
from tcalc.backends.c.functions import CompiledSteps
from tcalc.graph.nodes import Expr
from tcalc.plan.steps import TiledLoop
from tests.shared import plan_for_machine

N = 53  # no multiple of a tile
RNG = np.random.default_rng(0)
DATA: dict[str, Any] = {
    "W": RNG.normal(size=(3, N)),
    "L": RNG.normal(size=(N, 4)),
    "T": RNG.normal(size=(7, 4)),
    "C": RNG.normal(size=(2, 3, N)),
    "few": np.array([1, 2, 0, 1]),
    "own": RNG.integers(0, 7, N),
    "rows": RNG.integers(0, N, N),
}
W, L, T = tc.var("W", (3, N)), tc.var("L", (N, 4)), tc.var("T", (7, 4))
C = tc.var("C", (2, 3, N))
few, own = tc.var("few", 4, integer=True), tc.var("own", N, integer=True)
rows = tc.var("rows", N, integer=True)

#: What is taken, as an expression and as NumPy says it, and which variable is differentiated.
TAKEN: dict[str, tuple[Any, Callable[[Any], Any], str]] = {
    "along a short first axis": (W[few], lambda d: d["W"][d["few"]], "W"),
    "along a middle axis": (C[:, few], lambda d: d["C"][:, d["few"]], "C"),
    "along a short last axis": (L[:, few], lambda d: d["L"][:, d["few"]], "L"),
    "rows of a table": (T[own], lambda d: d["T"][d["own"]], "T"),
    "rows of a long array": (L[rows], lambda d: d["L"][d["rows"]], "L"),
    "columns of a wide array": (W[:, rows], lambda d: d["W"][:, d["rows"]], "W"),
}


@pytest.mark.parametrize("backend", ["numpy", "c"])
@pytest.mark.parametrize("name", TAKEN)
def test_tiles_take_the_same_entries(
    name: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_for_machine(monkeypatch, large=2, tile=12, wide_tile=24, worth_choosing=0)
    taken, by_numpy, variable = TAKEN[name]
    f = tc.sum(tc.exp(taken) * taken)
    step = tc.compile(
        {"value": 2 * tc.sin(taken) + 1, "slope": tc.grad(f, variable)}, backend=backend
    )
    found = step(
        {key: DATA[key] for key in (variable, *("few", "own", "rows")) if key in f.variables}
    )
    a = by_numpy(DATA)
    np.testing.assert_allclose(found["value"], 2 * np.sin(a) + 1, rtol=1e-13)
    slope = np.zeros_like(DATA[variable])
    places = by_numpy({**DATA, variable: np.arange(slope.size).reshape(slope.shape)})
    np.add.at(slope.reshape(-1), places, np.exp(a) * (a + 1))
    np.testing.assert_allclose(found["slope"], slope, rtol=1e-12, atol=1e-12)


def test_they_are_steps_of_one_loop() -> None:
    """Planned as by default, where arrays are large: nothing of it is made as a whole."""
    n = 100_000
    W, few = tc.var("W", (3, n)), np.array([1, 2, 0])
    f = tc.sum(tc.exp(W[few]) * W)
    units = tc.compile(tc.grad(f, W), backend="c").plan_for(W=(3, n)).units
    (loop,) = [unit for unit in units if isinstance(unit, TiledLoop)]
    assert {"take", "segments"} <= {step.kind for step in loop.steps}


def test_a_jacobian_of_many_observations_is_one_loop_over_them() -> None:
    problem = PROBLEMS["bundle-jacobian"]
    sizes = problem.cases["paper"][0].sizes
    e = problem.expression(sizes)
    step = tc.compile(tc.jacobian(e, problem.wrt), backend="c", structured=True)
    n, m, o = sizes["n"], sizes["m"], sizes["o"]
    shapes = {"cams": (n, 11), "pts": (m, 3), "w": (o,), "z": (o, 2), "ci": (o,), "pi": (o,)}
    units = step.plan_for(**shapes).units
    (loop,) = [unit for unit in units if isinstance(unit, TiledLoop)]
    assert loop.rows == o
    views = {"transpose", "insert", "fill", "index"}
    assert {unit.kind for unit in units if not isinstance(unit, TiledLoop)} <= views


def test_integers_that_are_made_between_functions_of_c_are_read_by_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Functions are written before there are arrays: what they are given are integers then too."""
    x, i = tc.var("x", "n"), tc.var("i", "m", integer=True)
    before = tc.sin(tc.exp(x) * 2) + 1
    step = tc.compile([before, tc.cos(before[i] + 1) * 3], backend="c")
    data = {"x": np.linspace(0, 1, 6), "i": np.array([4, 0, 0, 5])}
    step(data)
    left: list[int] = []
    monkeypatch.setattr(CompiledSteps, "_step", lambda self, v, number: left.append(number))
    first, second = step(data)
    assert not left
    wanted = np.sin(np.exp(data["x"]) * 2) + 1
    np.testing.assert_allclose(first, wanted, rtol=1e-14)
    np.testing.assert_allclose(second, np.cos(wanted[data["i"]] + 1) * 3, rtol=1e-14)


def test_calls_of_structured_jacobians_print_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of indices are named in errors only."""
    x, i = tc.var("x", ("n", 2)), tc.var("i", "m", integer=True)
    step = tc.compile(tc.jacobian(tc.sin(x[i]), x), structured=True)
    data = {"x": np.ones((3, 2)), "i": np.array([0, 2, 2, 1])}
    step(data)
    with monkeypatch.context() as patched:
        patched.setattr(Expr, "__str__", lambda self: pytest.fail("an expression is printed"))
        found = step(data)
    wanted = np.einsum("mn,kl->mknl", np.eye(3)[data["i"]], np.eye(2)) * np.cos(1)
    np.testing.assert_allclose(found.todense(), wanted)
    with pytest.raises(tc.ShapeError, match="the index i holds 3"):
        step({**data, "i": np.array([0, 3])})
