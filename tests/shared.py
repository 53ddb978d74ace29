"""A few variables, arrays for them, and the comparison that tests of the API share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from inspect import signature
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c.background import BACKGROUND
from tcalc.graph.operators import TABLE, Op
from tcalc.ops.declared import DECLARED
from tcalc.run.backends import BACKENDS

X, y, w, c = tc.var("X", ("m", "n")), tc.var("y", "m"), tc.var("w", "n"), tc.var("c")
A = tc.var("A", ("n", "n"))
RNG = np.random.default_rng(0)
DATA = {
    "X": RNG.normal(size=(4, 3)),
    "y": RNG.normal(size=4),
    "w": RNG.uniform(0.5, 2, size=3),
    "c": 0.7,
    "A": RNG.normal(size=(3, 3)),
}


def library_rows() -> list[Op]:
    """Rows of the table without those of users' own operators, which other tests declare."""
    return [
        row
        for row in TABLE.values()
        if "##" not in row.name and row.spelling.printed not in DECLARED
    ]


def same(e: Any, compute: Any, **data: Any) -> None:
    """The expression and the same computation on arrays agree in shape and every entry."""
    given = data or {name: DATA[name] for name in e.variables}
    found, wanted = e(**given), np.asarray(compute(**{k: np.asarray(v) for k, v in given.items()}))
    assert np.shape(found) == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-13)


def plan_for_machine(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    """What is compiled from here on is planned as if machines had these numbers."""
    for name, row in BACKENDS.items():
        monkeypatch.setitem(BACKENDS, name, row._replace(machine=replace(row.machine, **fields)))


def run_source(e: Any, data: Mapping[str, Any], **options: Any) -> Any:
    """What the printed NumPy program of an expression computes; extents may be among the data."""
    scope: dict[str, Any] = {}
    exec(tc.to_code(e, "numpy", name="printed", **options), scope)
    printed = scope["printed"]
    return printed(**{name: data[name] for name in signature(printed).parameters})


def called(step: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What a compiled function gives once all its functions of C are there."""
    for _ in range(2):
        step(*args, **kwargs)
        assert BACKGROUND.wait(60)
    return step(*args, **kwargs)


def in_turn(cases: Sequence[Any], others: Sequence[Any], share: int = 2) -> list[tuple[Any, Any]]:
    """Every case with one in so many of the others, by turns, where all pairs take too long."""
    return [
        (case, other)
        for k, case in enumerate(cases)
        for j, other in enumerate(others)
        if (k + j) % share == 0
    ]


def named(case: Any) -> str:
    """What a case is called in the names of tests."""
    return str(getattr(case, "name", case))
