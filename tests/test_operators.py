"""Every row of the operator table: kernel and partials to order 3, at points of its domain.

The table is iterated, so a new elementwise row is tested without an edit here: each derivative
against differences of the one before it (eight points, no function of tcalc's), and against mpmath
at 50 digits where mpmath knows the function.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import mpmath as mp
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.applications import apply, apply_all
from tcalc.graph.operators import INFINITE, TABLE, Op, Selection
from tcalc.ops.affine_entries import integral
from tcalc.ops.elementwise_row import Refused
from tcalc.ops.matrix_cores import symmetric_part
from tests import oracle

ELEMENTWISE = sorted((row for row in TABLE.values() if row.elementwise and row.core), key=str)
WITH_CORE = sorted(
    (
        row
        for row in TABLE.values()
        if row.core and not row.elementwise and not isinstance(row, Selection)
        if not row.spelling.shown  # operands that follow from others cannot be drawn freely
        # Of formulas alone, and derivatives of other rows: they are made when one first has them.
        if row.name != "symmetric_part" and "_frechet" not in row.name
    ),
    key=str,
)
KNOWN = [row for row in ELEMENTWISE if oracle.function(row.name) is not None]

#: Rows with a core under all parameters that they admit.
APPLIED = [(row, params) for row in WITH_CORE for params in row.admitted]

#: Eight-point central difference: weights of f(x + k h) - f(x - k h), k = 1 … 4.
WEIGHTS = (4 / 5, -1 / 5, 4 / 105, -1 / 280)


def differences(compute: Callable[[np.ndarray], np.ndarray], x: np.ndarray, h: float) -> np.ndarray:
    """The Jacobian by central differences: axes of the value, then those of x."""
    columns = []
    for k in range(x.size):
        step = np.zeros(x.size)
        step[k] = h
        step = step.reshape(x.shape)
        columns.append(
            sum(
                w * (compute(x + i * step) - compute(x - i * step))
                for i, w in enumerate(WEIGHTS, 1)
            )
            / h
        )
    return np.stack(columns, axis=-1).reshape(np.shape(columns[0]) + x.shape)


def points(row: Op, count: int, seed: int = 0) -> list[np.ndarray]:
    """Points of the row's domain, one array per operand, away from the ends."""
    rng = np.random.default_rng(seed)
    return [
        np.full(count, low)
        if low == high
        else rng.uniform(low + 0.2 * (high - low), high - 0.2 * (high - low), count)
        for low, high in row.domain
    ]


def close(found: Any, wanted: Any, tolerance: float) -> None:
    size = max(1.0, float(np.max(np.abs(wanted), initial=0)))
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * size)


#: Rows whose derivative is not that of their values, which is what they are for.
STOPPED = {"stop_gradient"}


def differentiable(row: Op) -> list[int]:
    """The operands by which derivatives are offered."""
    partials = enumerate(row.meaning.partials)
    return [k for k, partial in partials if not isinstance(partial, Refused)]


def drawn(row: Op) -> list[int]:
    """The operands whose domain is more than a point."""
    return [k for k, (low, high) in enumerate(row.domain) if low < high]


@pytest.mark.parametrize("row", [r for r in ELEMENTWISE if r.name not in STOPPED], ids=str)
def test_partials_against_differences(row: Op) -> None:
    """Order k + 1 is the difference quotient of order k, for every sequence of operands."""
    arity = len(row.core)
    variables = [tc.var(f"x{k}") for k in range(arity)]
    free = [k for k in drawn(row) if k in differentiable(row)]
    at = {v.name: p[0] for v, p in zip(variables, points(row, 1), strict=True)}
    for order in range(1, 4):
        for ks in itertools.combinations_with_replacement(free, order):
            before = apply(row, *variables)
            for k in ks[:-1]:
                before = tc.jacobian(before, variables[k])
            last = variables[ks[-1]]
            compute = lambda x: before(**{**at, last.name: float(x)})  # noqa: B023, E731
            wanted = differences(compute, np.array(at[last.name]), 1e-2)
            close(tc.jacobian(before, last)(**at), wanted, 1e-7)


@pytest.mark.parametrize("row", KNOWN, ids=str)
def test_kernel_and_partials_against_mpmath(row: Op) -> None:
    compute = oracle.function(row.name)
    arity, count = len(row.core), 5
    variables = [tc.var(f"x{k}", count) for k in range(arity)]
    free = [k for k in drawn(row) if k in differentiable(row) and row.meaning.partials[k]]
    at = points(row, count, seed=1)
    arrays = {v.name: p for v, p in zip(variables, at, strict=True)}
    value = apply(row, *variables)
    for order in range(4):
        for ks in itertools.combinations_with_replacement(free, order):
            e = value
            for k in ks:
                ones = tc.ones(count)
                e = tc.jvp(e, variables[k], ones)
            times = tuple([ks.count(k) for k in range(arity)])
            fixed = [k for k in range(arity) if k not in free]
            for i, got in enumerate(e(**arrays)):
                where = [mp.mpf(float(p[i])) for p in at]

                def inner(*moving: Any) -> Any:
                    given = list(where)  # noqa: B023
                    for k, x in zip(free, moving, strict=True):
                        given[k] = x
                    return compute(*given)

                moving, orders = [where[k] for k in free], tuple([times[k] for k in free])
                wanted = mp.diff(inner, tuple(moving), orders) if order else compute(*where)
                assert fixed == [k for k in range(arity) if not times[k] and k not in free]
                assert abs(got - wanted) <= 1e-11 * max(1, abs(wanted))


@pytest.mark.parametrize(
    "row", [r for r in ELEMENTWISE if len(differentiable(r)) < len(r.core)],
    ids=str,
)  # fmt: skip
def test_derivatives_that_are_not_offered_are_refused(row: Op) -> None:
    variables = [tc.var(f"x{k}") for k in range(len(row.core))]
    for k in set(range(len(row.core))) - set(differentiable(row)):
        with pytest.raises(tc.UnsupportedError, match=row.name):
            tc.grad(apply(row, *variables), variables[k])


@pytest.mark.parametrize("row", ELEMENTWISE, ids=str)
def test_kernel_keeps_shape_dtype_and_extent_zero(row: Op) -> None:
    variables = [tc.var(f"x{k}", "n") for k in range(len(row.core))]
    e = apply(row, *variables)
    for dtype, count in itertools.product((np.float64, np.float32), (0, 3)):
        arrays = {
            v.name: p.astype(dtype) for v, p in zip(variables, points(row, count), strict=True)
        }
        found = e(**arrays)
        assert found.shape == (count,)
        assert found.dtype == dtype


@pytest.mark.parametrize("row", [r for r in ELEMENTWISE if r.meaning.safe], ids=str)
def test_safe_points_are_finite_to_order_three(row: Op) -> None:
    variables = [tc.var(f"x{k}") for k in range(len(row.core))]
    at = {
        v.name: float(np.mean(domain)) if point is None else point
        for v, point, domain in zip(variables, row.meaning.safe, row.domain, strict=True)
    }
    for k, v in enumerate(variables):
        if k in differentiable(row) and row.meaning.partials[k] is not None:
            for order in range(4):
                assert np.isfinite(tc.derivative(apply(row, *variables), v, order)(**at))


# --- rows with a core -----------------------------------------------------------------------------


def with_core(
    row: Op, params: tuple[Any, ...]
) -> tuple[tuple[tc.Expr, ...], list[Any], dict[str, np.ndarray]]:
    """The outputs of the row on a batch of two, its variables and data."""
    rng = np.random.default_rng(3)
    variables, arrays = [], {}
    for k, (axes, (low, high)) in enumerate(zip(row.cores(params), row.domain, strict=True)):
        v = tc.var(f"x{k}", (2, *(3,) * axes))
        variables.append(v)
        arrays[v.name] = rng.uniform(low, high, size=v.shape)
        if axes == 2:
            arrays[v.name] += 3 * np.eye(3)
    operands = [symmetric_part(v) for v in variables] if row.meaning.symmetric else variables
    if row.parts:
        return apply_all(row, *operands, params=params), variables, arrays
    return (apply(row, *operands, params=params),), variables, arrays


@pytest.mark.parametrize("mode", ["forward", "reverse", "cross-country"])
@pytest.mark.parametrize(("row", "params"), APPLIED, ids=str)
def test_core_derivatives_against_differences(row: Op, params: tuple[Any, ...], mode: str) -> None:
    outputs, variables, arrays = with_core(row, params)
    for e, x in itertools.product(outputs, variables):
        assert e(**arrays).shape == e.shape
        # Derivatives of arrays with many axes would take gigabytes.
        for order in (1,) if x.ndim > 3 else (1, 2) if row.parts else (1, 2, 3):
            before = tc.derivative(e, x, order - 1, mode)
            compute = lambda at: before(**{**arrays, x.name: at})  # noqa: B023, E731
            found = tc.jacobian(before, x, mode=mode)(**arrays)
            close(found, differences(compute, arrays[x.name], 1e-3), 1e-6)


# --- what rows say of values ----------------------------------------------------------------------

#: How far inside its range's ends the values of a row are seen, at most.
SLACK = 0.06
#: Numbers of all sizes, by chance and not.
WIDE = np.concatenate(
    [*(np.random.default_rng(2).normal(size=300) * size for size in (1, 30)), np.arange(-12.0, 13)]
)


def values(row: Op, operands: list[np.ndarray]) -> np.ndarray:
    variables = [tc.var(f"x{k}", "n") for k in range(len(operands))]
    e = apply(row, *variables)
    with np.errstate(all="ignore"):
        found = e(**{v.name: a for v, a in zip(variables, operands, strict=True)})
    return found[np.isfinite(found)]


@pytest.mark.parametrize("row", [r for r in ELEMENTWISE if r.meaning.range != INFINITE], ids=str)
def test_values_fill_the_range_of_the_row(row: Op) -> None:
    rng, (low, high) = np.random.default_rng(5), row.meaning.range
    far = values(row, [np.append(rng.permutation(WIDE), [0, np.nan]) for _ in row.domain])
    near = values(row, [np.append(rng.uniform(*ends, 400), ends) for ends in row.domain])
    seen = np.concatenate([far, near])
    assert (low <= seen).all()
    assert (seen <= high).all()
    assert np.isinf(low) or seen.min() < low + SLACK
    assert np.isinf(high) or seen.max() > high - SLACK


#: Rows that have integers at integers, and do not say it: nothing takes them for subscripts.
WHOLE_UNSAID = {"gamma", "gammasgn", "relu", "sign"}


@pytest.mark.parametrize("row", ELEMENTWISE, ids=str)
def test_integers_have_integers_where_the_row_says_so(row: Op) -> None:
    rng = np.random.default_rng(5)
    lows = [0 if low >= 0 and not row.meaning.integral else -8 for low, _ in row.domain]
    found = values(row, [rng.integers(low, 9, 300).astype(float) for low in lows])
    told = integral(apply(row, *[tc.var(f"x{k}", integer=True) for k in range(len(lows))]))
    if told or len(found) > 100:  # others are hardly finite anywhere but at 0
        whole = bool((found == np.rint(found)).all())
        assert len(found)
        assert whole == (told or row.name in WHOLE_UNSAID)


#: Rows of which something holds that they do not say, since nothing asks it of them.
UNSAID = {
    "transposes": {
        "column_signs", "extractdiag", "hardmax", "hardmin", "logsumexp", "max", "min", "norm2",
        "prod", "symmetric_part", "weighted_logsumexp",
    },
    "triangular": {"hardmax", "hardmin", "lq_reflected", "makediag", "maketrian"},
    "definite": {"cholesky_pullback", "symmetric_part"},
    # These read one triangle, or hardly any entry; their operand is any matrix.
    "symmetric": {
        "cholesky_pullback", "column_signs", "det_sign", "extractdiag", "extracttrian",
        "hardmax", "lower_triangle", "max", "min", "tri_inverse",
    },
}  # fmt: skip


@pytest.mark.parametrize("what", UNSAID)
def test_rows_say_what_holds_of_matrices(what: str) -> None:
    said = {row.name for row, _ in APPLIED if getattr(row.meaning, what)}
    assert not said & UNSAID[what]
    holds = [(row.name, holding(row, params)[what]) for row, params in APPLIED]
    declared = {name for name, _ in holds}  # some rows are, as soon as they are asked for
    assert {name for name, held in holds if held} == said | (UNSAID[what] & declared)
    assert all(held for name, held in holds if name in said)


def holding(row: Op, params: tuple[Any, ...]) -> dict[str, bool]:
    """What is seen of the row's first output at one point."""
    outputs, _, arrays = with_core(row, params)
    found = outputs[0](**arrays)
    cores = row.cores(params)
    turned = {
        name: np.swapaxes(a, -1, -2) if axes == 2 else a
        for (name, a), axes in zip(arrays.items(), cores, strict=True)
    }
    matrix = found.ndim == 3
    square = matrix and found.shape[1] == found.shape[2]
    back = np.swapaxes(found, -1, -2) if matrix else found
    return {
        "transposes": {*cores} == {2} and not row.parts and same(outputs[0](**turned), back),
        "triangular": square and same(found, np.tril(found)),
        "definite": square and same(found, back) and bool((np.linalg.eigvalsh(found) > 0).all()),
        "symmetric": 2 in cores[:1] and reads_one_triangle(row, params, [*arrays.values()]),
    }


def reads_one_triangle(row: Op, params: tuple[Any, ...], arrays: list[np.ndarray]) -> bool:
    """Of its first operand."""
    first = (arrays[0] + np.swapaxes(arrays[0], -1, -2)) / 2

    def value(a: np.ndarray) -> np.ndarray:
        found = row.kernels.compute(np, params, a, *arrays[1:])
        return np.asarray(found[0] if isinstance(found, tuple) else found)

    other = [np.triu(np.ones((3, 3)), 1), np.tril(np.ones((3, 3)), -1)]
    return any(same(value(first), value(first + a)) for a in other)


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and np.allclose(a, b, 1e-8, 1e-8)


# --- points where the usual formula fails ---------------------------------------------------------

#: Row, point, and the highest order that must be right there.
EXTREMES = [
    ("softplus", (800.0,), 2),
    ("softplus", (-800.0,), 2),
    ("softplus", (-40.0,), 2),
    ("sigmoid", (-800.0,), 2),
    ("sigmoid", (800.0,), 2),
    ("sigmoid", (-40.0,), 2),
    ("logaddexp", (1000.0, 1000.0), 2),
    ("logaddexp", (-1000.0, 1000.0), 2),
    ("log_ndtr", (-40.0,), 1),
    ("log_ndtr", (20.0,), 1),
    ("ndtr", (-20.0,), 1),
    ("expm1", (1e-20,), 1),
    ("log1p", (1e-20,), 2),
    ("hypot", (1e200, 1e200), 1),
    ("hypot", (1e-200, 1e-200), 1),
    ("erfc", (20.0,), 1),
    ("gammaln", (1e-10,), 1),
    ("gammaln", (1e10,), 2),
    ("tanh", (400.0,), 2),
    ("arctan2", (1e-300, 1.0), 1),
    ("xlogy", (0.0, 0.5), 1),
]


@pytest.mark.parametrize(("name", "at", "order"), EXTREMES, ids=lambda p: str(p))
def test_extreme_points(name: str, at: tuple[float, ...], order: int) -> None:
    variables = [tc.var(f"x{k}") for k in range(len(at))]
    compute = oracle.function(name)
    arrays = {v.name: value for v, value in zip(variables, at, strict=True)}
    with mp.workdps(400):
        for k in range(order + 1):
            found = tc.derivative(apply(TABLE[name], *variables), variables[-1], k)(**arrays)
            last = lambda x: compute(*map(mp.mpf, at[:-1]), x)  # noqa: E731
            h = mp.mpf(10) ** -60 * (abs(mp.mpf(at[-1])) or 1)
            x = mp.mpf(at[-1])
            quotient = [
                last(x),
                (last(x + h) - last(x - h)) / (2 * h),
                (last(x + h) - 2 * last(x) + last(x - h)) / h**2,
            ]
            wanted = quotient[k]
            tiny = mp.mpf(5e-324) if abs(wanted) < 1e-300 else 0
            assert abs(found - wanted) <= mp.mpf(1e-11) * abs(wanted) + tiny, (
                k,
                found,
                mp.nstr(wanted),
            )
