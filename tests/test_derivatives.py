"""Every case, every order to 3, every mode and pair of modes, every entry, against jax."""

from __future__ import annotations

from functools import cache

import jax
import numpy as np
import pytest

import tcalc as tc
from tests.cases import CASES, Case

MODES = ("forward", "reverse", "cross-country", "auto")
PAIRS = [(outer, inner) for outer in MODES[:3] for inner in MODES[:3]]
DOUBLE, SINGLE = 1e-11, 1e-5

Column = tuple[Case, str]


@pytest.fixture(
    scope="module",
    params=[pytest.param((c, v), id=f"{c.name}-{v}") for c in CASES for v in c.targets],
)
def column(request: pytest.FixtureRequest) -> Column:
    """A case and one of its variables; tests of one column run together and share jax's results."""
    found: Column = request.param
    return found


@cache
def expected(case: Case, v: str) -> list[np.ndarray]:
    """Value and derivatives of all orders in double precision, by jax."""
    orders = range(case.order + 1)
    compute = jax.jit(lambda arrays: [case.derivative(v, k)(arrays) for k in orders])
    return [np.asarray(found) for found in compute(case.sample())]


def assert_equal(found: object, wanted: np.ndarray, tolerance: float = DOUBLE) -> None:
    """Every entry, relative to the largest one; dtype and shape too."""
    dtype = np.float64 if tolerance == DOUBLE else np.float32
    assert isinstance(found, np.ndarray if wanted.ndim else dtype)
    assert found.dtype == dtype
    assert found.shape == wanted.shape
    size = np.max(np.abs(wanted), initial=0) or 1
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * size)


def test_all_orders_in_all_modes(column: Column) -> None:
    case, v = column
    e, arrays = case.expression(), case.sample()
    x = tc.var(v, case.shapes[v])
    assert_equal(e(**arrays), expected(case, v)[0])
    for order in range(1, case.order + 1):
        for mode in MODES:
            d = tc.derivative(e, x, order, mode)
            assert d.shape == e.shape + order * x.shape
            assert_equal(d(**arrays), expected(case, v)[order])


def test_compositions_of_modes(column: Column) -> None:
    case, v = column
    e, arrays = case.expression(), case.sample()
    x = tc.var(v, case.shapes[v])
    for outer, inner in PAIRS:
        found = tc.jacobian(tc.jacobian(e, x, mode=inner), x, mode=outer)
        assert_equal(found(**arrays), expected(case, v)[2])


def test_single_precision(column: Column) -> None:
    """float32 data give float32 results, to the accuracy that float32 data allow."""
    case, v = column
    e, arrays = case.expression(), case.sample(dtype=np.float32)
    x = tc.var(v, case.shapes[v])
    doubles = {name: a.astype(np.float64) for name, a in arrays.items()}
    for order in range(min(case.order, 2) + 1):
        d = tc.derivative(e, x, order)
        assert_equal(d(**arrays), np.asarray(d(**doubles)), SINGLE)


def test_inputs_stay_and_outputs_are_fresh(column: Column) -> None:
    case, v = column
    e, arrays = case.expression(), case.sample()
    for a in arrays.values():
        a.flags.writeable = False
    compiled = tc.compile((e, tc.derivative(e, tc.var(v, case.shapes[v]))))
    first, second = compiled(**arrays), compiled(**arrays)
    for a, b in zip(first, second, strict=True):
        if isinstance(a, np.ndarray):
            assert a.flags.writeable
            assert not np.shares_memory(a, b)
            assert not any(np.shares_memory(a, given) for given in arrays.values())
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("case", [c for c in CASES if len(c.targets) == 2], ids=lambda c: c.name)
def test_mixed_derivatives(case: Case) -> None:
    """d²e / dx dy, in both orders of differentiation and in all pairs of modes."""
    e, arrays = case.expression(), case.sample()
    x, y = [tc.var(v, case.shapes[v]) for v in case.targets]
    compute = case.function()

    def by_both(a: object, b: object) -> object:
        return compute({**arrays, x.name: a, y.name: b})

    wanted = np.asarray(
        jax.jit(jax.jacfwd(jax.jacrev(by_both, 0), 1))(arrays[x.name], arrays[y.name])
    )
    for outer, inner in PAIRS:
        found = tc.jacobian(tc.jacobian(e, x, mode=inner), y, mode=outer)(**arrays)
        assert_equal(found, wanted)
        swapped = tc.jacobian(tc.jacobian(e, y, mode=inner), x, mode=outer)(**arrays)
        d, nx, ny = e.ndim, x.ndim, y.ndim
        axes = [*range(d), *range(d + ny, d + ny + nx), *range(d, d + ny)]
        assert_equal(np.transpose(swapped, axes) if axes else swapped, wanted)


def test_products_with_the_derivative(column: Column) -> None:
    """jvp, vjp and hvp are the full derivative times a vector."""
    case, v = column
    e, arrays = case.expression(), case.sample()
    x, jacobian = tc.var(v, case.shapes[v]), expected(case, v)[1]
    rng = np.random.default_rng(1)
    along, against = rng.normal(size=arrays[v].shape), rng.normal(size=expected(case, v)[0].shape)
    forward = tc.jvp(e, x, tc.var("along", x.shape))(along=along, **arrays)
    assert_equal(forward, np.asarray(np.tensordot(jacobian, along, along.ndim)))
    backward = tc.vjp(e, x, tc.var("against", e.shape))(against=against, **arrays)
    assert_equal(backward, np.asarray(np.tensordot(against, jacobian, against.ndim)))
    if not e.shape:
        second = tc.hvp(e, x, tc.var("along", x.shape))(along=along, **arrays)
        assert_equal(second, np.asarray(np.tensordot(expected(case, v)[2], along, along.ndim)))
