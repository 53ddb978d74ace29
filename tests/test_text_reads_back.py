"""All that `str` prints is read: the same node, or an equal value, over all tables of cases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph import trees
from tcalc.graph.nodes import Expr, dimensions
from tcalc.graph.normal import bare
from tcalc.graph.properties import sample
from tests import cases, linalg_cases, place_cases

SIZES = {"m": 2, "n": 3, "k": 2}


def _derived(name: str, e: Expr, targets: list[str]) -> Iterator[tuple[str, Expr]]:
    yield name, e
    for target in targets:
        if target in e.variables:
            for order in (1, 2):
                yield f"{name}, order {order} in {target}", tc.derivative(e, target, order)


def _cases() -> Iterator[tuple[str, Expr]]:
    for case in cases.CASES:
        yield from _derived(case.name, case.expression(), case.targets)


def _places() -> Iterator[tuple[str, Expr]]:
    for case in place_cases.CASES:
        floats = [name for name in case.shapes if name not in case.below]
        yield from _derived(case.name, case.build(**case.variables()), floats)


def _matrices() -> Iterator[tuple[str, Expr]]:
    for case in linalg_cases.CASES:
        shapes = {n: linalg_cases.shape_of(k, SIZES) for n, k in case.inputs.items()}
        variables = [tc.var(name, shape) for name, shape in shapes.items()]
        for k, e in enumerate(trees.leaves(case.build(*variables))):
            yield from _derived(f"{case.name}[{k}]", e, [variables[0].name])


def _data(e: Expr, below: dict[str, int]) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    sizes = {name: 2 + k % 3 for k, name in enumerate(dimensions([e]))}
    found: dict[str, Any] = dict(sizes)
    for name, v in e.variables.items():
        shape = [sizes[n] if isinstance(n, str) else n for n in v.shape]
        if v.integral:
            found[name] = rng.integers(0, below.get(name, 2), shape)
        else:
            square = len(shape) == 2 and shape[0] == shape[1]
            numbers = rng.uniform(0.2, 1.0, shape) + (2 * np.eye(shape[0]) if square else 0)
            found[name] = sample(numbers, v.properties)
    return found


@pytest.mark.parametrize(("table", "least"), [(_cases, 0.95), (_places, 0.95), (_matrices, 0.85)])
def test_all_that_is_printed_is_read(table: Any, least: float) -> None:
    counts: Counter[str] = Counter()
    for name, root in table():
        e = bare(root)
        found = bare(tc.parse(str(e), **{v.name: v for v in e.variables.values()}))
        counts["same" if found is e else "equal"] += 1
        assert found.shape == e.shape, name
        if found is not e:
            data = _data(e, {})
            with np.errstate(all="ignore"):
                expected = np.asarray(e(data))
            np.testing.assert_allclose(found(data), expected, rtol=1e-8, atol=1e-10, err_msg=name)
    assert counts["same"] >= least * counts.total(), counts
