"""Sequential loops: values, derivatives of all orders and modes, against plain loops and jax."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import jax
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Expr
from tests.loop_cases import ARRAYS, CASES, JAX, Case, data, expression, loss, names
from tests.shared import in_turn

MODES = ("reverse", "forward", "cross-country")
COUNT = 3


def targets(case: Case, order: int = 1) -> list[str]:
    """One first state, one array of slices and one captured value, the last ones."""
    found = {"".join(c for c in n if c.isalpha()): n for n in names(case)}
    return list(found.values())[-2 if order > 2 else 0 :]


def blocks(found: Any, order: int) -> list[np.ndarray]:
    """The leaves of nested tuples."""
    if order == 0:
        return [np.asarray(found)]
    return [leaf for part in found for leaf in blocks(part, order - 1)]


@cache
def by_jax(case: Case, order: int) -> list[np.ndarray]:
    given = {k: jax.numpy.asarray(v) for k, v in data(case, COUNT).items()}
    wrt = targets(case, order)

    def function(chosen: Any) -> Any:
        values = {**given, **dict(zip(wrt, chosen, strict=True))}
        return loss(case, JAX, list(values.values()), COUNT)

    for _ in range(order):
        function = jax.jacfwd(function) if order > 1 else jax.grad(function)
    return blocks(jax.jit(function)([given[n] for n in wrt]), order)


@cache
def built(case: Case) -> Expr:
    return expression(case, "T")


def compare(found: Any, case: Case, order: int) -> None:
    given = data(case, COUNT)
    used = tc.compile(found)(**given, T=COUNT)
    for one, other in zip(blocks(used, order), by_jax(case, order), strict=True):
        size = max(1.0, float(np.abs(other).max(initial=0)))
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10 * size)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("count", [0, 1, 4])
@pytest.mark.parametrize("named", [False, True])
def test_values_and_gradients_against_complex_steps(case: Case, count: int, named: bool) -> None:
    e = expression(case, "T" if named else count)
    given = data(case, count, seed=count)
    sizes = {"T": count} if named else {}
    arrays = list(given.values())
    wanted = loss(case, ARRAYS, arrays, count)
    np.testing.assert_allclose(e(**given, **sizes), np.real(wanted), rtol=1e-12)
    for name in targets(case):
        found = tc.grad(e, name)(**given, **sizes)
        assert found.shape == given[name].shape
        place = names(case).index(name)
        for at in np.ndindex(given[name].shape):
            moved = [a.astype(complex) for a in arrays]
            moved[place][at] += 1e-30j
            slope = np.imag(loss(case, ARRAYS, moved, count)) / 1e-30
            np.testing.assert_allclose(found[at], slope, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_gradients_of_all_modes(case: Case, mode: str) -> None:
    compare(tc.grad(built(case), tuple(targets(case)), mode=mode), case, 1)


#: Of the filter, one chain of modes for all orders: in cross-country mode it has hundreds of edges.
LARGE = "kalman"
TWICE = [
    pytest.param(case, modes, id="-".join([case.name, *modes]))
    for case, modes in product(CASES, product(MODES, MODES))
    if case.name != LARGE or len(set(modes)) == 1
]
THRICE = [
    pytest.param(case, mode, id=f"{case.name}-{mode}")
    for case, mode in in_turn(CASES, MODES)
    if case.name != LARGE or mode != MODES[-1]
]


@pytest.mark.parametrize(("case", "modes"), TWICE)
def test_hessians_of_all_modes(case: Case, modes: tuple[str, str]) -> None:
    wrt = tuple(targets(case))
    first = tc.grad(built(case), wrt, mode=modes[0])
    compare(tuple([tc.jacobian(g, wrt, mode=modes[1]) for g in first]), case, 2)


@pytest.mark.parametrize(("case", "mode"), THRICE)
def test_third_derivatives(case: Case, mode: str) -> None:
    compare(tc.derivative(built(case), tuple(targets(case, 3)), 3, mode), case, 3)


@pytest.mark.parametrize("count", [2, 3, 7])
def test_states_that_are_alike(count: int) -> None:
    """What one of them was made with may be gone before the next one is made, of the same name."""
    x = tc.var("x", "n")
    start = tuple([tc.ones(2)] * count)
    found = tc.fold(lambda s, i: tuple([tc.sin(a) * x[i] for a in s]), start, "n")
    wanted, entries = np.ones(2), np.array([0.5, 2.0, 1.5])
    for entry in entries:
        wanted = np.sin(wanted) * entry
    for state in found:
        np.testing.assert_allclose(state(x=entries), wanted)
