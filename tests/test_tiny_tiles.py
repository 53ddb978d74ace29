"""The tables of cases where every plan runs in tiles of a few entries, the last one incomplete."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c.tiles import CompiledTiles
from tests import place_cases, test_joining
from tests.cases import CASES, Case
from tests.shared import plan_for_machine
from tests.test_backends import Wanted, of_places

#: Loops for all that may have one, tiles of a few rows, and no end of steps too short for a loop.
TINY = {"large": 2, "tile": 12, "wide_tile": 24, "worth_choosing": 0}


@pytest.fixture(params=["numpy", "c"])
def tiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is compiled for such a machine."""
    plan_for_machine(monkeypatch, **TINY)
    return lambda wanted: tc.compile(wanted, backend=request.param)


def check(wanted: Wanted, tiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs, arrays = wanted
    found = tiled(outputs)(arrays)
    monkeypatch.undo()
    for name, other in tc.compile(outputs, backend="numpy")(arrays).items():
        size = max(1.0, float(np.abs(other).max(initial=0)))
        np.testing.assert_allclose(found[name], other, rtol=1e-11, atol=1e-11 * size, err_msg=name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_derivatives(case: Case, tiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    e = case.expression()
    wanted = {
        f"{k} by {v}": tc.derivative(e, tc.var(v, case.shapes[v]), k)
        for v in case.targets
        for k in range(min(case.order, 2) + 1)
    }
    check((wanted, case.sample()), tiled, monkeypatch)


@pytest.mark.parametrize("case", place_cases.CASES, ids=lambda case: case.name)
def test_places(case: place_cases.Case, tiled: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    check(of_places(case), tiled, monkeypatch)


@pytest.mark.parametrize(("name", "build"), test_joining.CASES)
def test_joining_and_slicing(
    name: str, build: Any, tiled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = tc.var(name, test_joining.SHAPES[name])
    e = build(x)
    wanted = {"value": e, "gradient": tc.grad(tc.sum(e * e), x)}
    check((wanted, {name: test_joining.ARRAYS[name]}), tiled, monkeypatch)


# --- loops in C -----------------------------------------------------------------------------------


@pytest.fixture
def loops(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of every loop over tiles that C is asked for, whether it has been written."""
    written: list[bool] = []
    text = CompiledTiles.text

    def counted(self: CompiledTiles, arrays: Any, v: Any) -> str | None:
        made = text(self, arrays, v)
        written.append(made is not None)
        return made

    monkeypatch.setattr(CompiledTiles, "text", counted)
    return written


X, Y, u = tc.var("X", ("n", 3)), tc.var("Y", ("n", 2)), tc.var("u", "n")
TURNED = tc.concatenate([tc.sin(X.T), tc.exp(Y.T) * u])
JOINED = {
    "columns side by side": tc.concatenate([tc.sin(X) * u[:, None], tc.exp(Y)], axis=1),
    "rows one above the other": TURNED * TURNED,
    "the Jacobian's blocks": tc.einsum(
        "oaoi->oai", tc.jacobian(tc.tanh(X[:, :2] * u[:, None]) * tc.sin(X[:, 1:]), X)
    ),
    "a column in the middle": tc.einsum(
        "oaoi->oai", tc.jacobian(tc.sin(X * X[:, 1:2]) / (1 + u * u)[:, None], X)
    ),
}


@pytest.mark.parametrize("name", JOINED)
@pytest.mark.parametrize("n", [7, 12, 29])
def test_entries_at_places_are_written_by_c(
    name: str, n: int, loops: list[bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_for_machine(monkeypatch, **TINY)
    rng = np.random.default_rng(n)
    data = {"X": rng.normal(size=(n, 3)), "Y": rng.normal(size=(n, 2)), "u": rng.normal(size=n)}
    e = JOINED[name]
    arrays = {k: a for k, a in data.items() if k in e.variables}
    found = tc.compile(e, backend="c")(**arrays)
    assert loops
    assert all(loops)
    wanted = tc.compile(e, backend="functional")(**arrays)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)
