"""Every table of cases on every back end: the values and derivatives of another one, or of jax."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.applications import apply
from tcalc.graph.operators import Op
from tcalc.run.backends import BACKENDS
from tests import linalg_cases, loop_cases, place_cases, test_joining
from tests.cases import CASES, Case
from tests.shared import called
from tests.test_derivatives import DOUBLE, SINGLE, assert_equal, expected
from tests.test_fold import COUNT, by_jax, targets
from tests.test_linalg import outputs, setting
from tests.test_operators import APPLIED, ELEMENTWISE, differentiable, points, with_core

#: Expressions by name, and arrays.
Wanted = tuple[dict[str, tc.Expr], dict[str, Any]]

pytestmark = pytest.mark.parametrize("backend", BACKENDS)


def failure(call: Callable[[], Any]) -> str:
    with pytest.raises(tc.LinAlgError) as caught:
        call()
    return str(caught.value)


def computed(wanted: Wanted, backend: str) -> dict[str, Any]:
    expressions, arrays = wanted
    step = tc.compile(expressions, backend=backend)
    found: dict[str, Any] = called(step, arrays) if backend == "auto" else step(arrays)
    return found


def check(
    wanted: Wanted, backend: str, tolerance: float = 1e-10, unsigned: Collection[str] = ()
) -> None:
    """The same on this back end as by the references, and of these, as on NumPy.

    Where a device's library has a part in it, `unsigned` results have any signs.
    """
    found = computed(wanted, backend)
    others = computed(wanted, "numpy" if backend == "functional" else "functional")
    for name, other in others.items():
        assert type(found[name]) is type(other), name
        assert (found[name].shape, found[name].dtype) == (other.shape, other.dtype), name
        if name in unsigned and backend == "cupy":
            found[name], other = np.abs(found[name]), np.abs(other)
        size = np.abs(other).max(initial=1, where=np.isfinite(other))
        np.testing.assert_allclose(found[name], other, rtol=0, atol=tolerance * size, err_msg=name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_derivatives(case: Case, backend: str) -> None:
    """All of a case's derivatives in one function, so that much is shared and fused."""
    e = case.expression()
    wanted = {
        (v, k): tc.derivative(e, tc.var(v, case.shapes[v]), k) if k else e
        for v in case.targets
        for k in range(min(case.order, 2) + 1)
    }
    step = tc.compile(wanted, backend=backend)
    precisions = ((np.float64, DOUBLE), (np.float32, 10 * SINGLE))
    # What auto compiles is what "c" does: in one precision it is seen that it does. So it is of
    # CuPy, whose kernels are compiled in both by tests of their own.
    for dtype, tolerance in precisions[: 1 if backend in ("auto", "cupy") else 2]:
        arrays = case.sample(dtype=dtype)
        results = called(step, arrays) if backend == "auto" else step(arrays)
        for (v, k), found in results.items():
            assert_equal(found, expected(case, v)[k], tolerance)


def of_matrices(case: linalg_cases.Case) -> Wanted:
    """Values, gradient and second derivative."""
    variables, arrays, (directions,) = setting(case, (), {"m": 2, "n": 3, "k": 2}, 1)
    parts = outputs(case, variables)
    rng = np.random.default_rng(0)
    wanted: dict[str, tc.Expr] = {f"part {k}": e for k, e in enumerate(parts)}
    unsigned = linalg_cases.signless(case.name, wanted)
    seen = [e * e if name in unsigned else e for name, e in wanted.items()]
    f = sum([tc.sum(e * tc.const(rng.normal(size=e.shape))) for e in seen])
    for name, x in variables.items():
        wanted[f"gradient by {name}"] = tc.grad(f, x)
        wanted[f"second by {name}"] = tc.hvp(f, x, tc.const(directions[name]))
    return wanted, arrays


@pytest.mark.parametrize("case", linalg_cases.CASES, ids=lambda case: case.name)
def test_matrix_functions(case: linalg_cases.Case, backend: str) -> None:
    wanted, arrays = of_matrices(case)
    check((wanted, arrays), backend, 1e-9, linalg_cases.signless(case.name, wanted))


@pytest.mark.parametrize("case", loop_cases.CASES, ids=lambda case: case.name)
def test_loops(case: loop_cases.Case, backend: str) -> None:
    e, arrays = loop_cases.expression(case, "T"), loop_cases.data(case, COUNT)
    step = tc.compile([e, tc.grad(e, tuple(targets(case)))], backend=backend)
    value, gradients = step(**arrays, T=COUNT)
    for found, other in zip([value, *gradients], [*by_jax(case, 0), *by_jax(case, 1)], strict=True):
        size = max(1.0, float(np.abs(other).max(initial=0)))
        np.testing.assert_allclose(found, other, rtol=1e-9, atol=1e-10 * size)
    nothing = loop_cases.data(case, 0)
    assert step(**nothing, T=0)[0] == pytest.approx(float(e(**nothing, T=0)))


def of_places(case: place_cases.Case) -> Wanted:
    variables = case.variables()
    e = case.build(**variables)
    wanted = {"value": e}
    for name in case.shapes.keys() - case.below.keys():
        wanted |= {f"{k} by {name}": tc.derivative(e, variables[name], k) for k in (1, 2)}
    return wanted, case.sample()


@pytest.mark.parametrize("case", place_cases.CASES, ids=lambda case: case.name)
def test_places(case: place_cases.Case, backend: str) -> None:
    check(of_places(case), backend)


@pytest.mark.parametrize(("name", "build"), test_joining.CASES)
def test_joining_and_slicing(name: str, build: Any, backend: str) -> None:
    x = tc.var(name, test_joining.SHAPES[name])
    e = build(x)
    arrays = {name: test_joining.ARRAYS[name]}
    check(({"value": e, "gradient": tc.grad(tc.sum(e * e), x)}, arrays), backend)


@pytest.mark.parametrize("row", ELEMENTWISE, ids=str)
def test_elementwise_rows(row: Op, backend: str) -> None:
    variables = [tc.var(f"x{k}", "n") for k in range(len(row.core))]
    e = apply(row, *variables)
    wanted = {"value": e, "twice": 2 * e}
    wanted |= {f"gradient by x{k}": tc.grad(tc.sum(e), f"x{k}") for k in differentiable(row)}
    arrays = {x.name: p for x, p in zip(variables, points(row, 5), strict=True)}
    check((wanted, arrays), backend, 1e-12)


def of_row(row: Op, params: tuple[Any, ...]) -> Wanted:
    """Its parts, with what their squares have as gradients."""
    parts, variables, arrays = with_core(row, params)
    if row.name.startswith("expm"):
        # Of exponentials of large matrices single precision has few digits.
        arrays = {name: a / 4 for name, a in arrays.items()}
    wanted = {f"part {k}": e for k, e in enumerate(parts)}
    for (k, e), x in ((item, x) for item in enumerate(parts) for x in variables):
        wanted[f"gradient of part {k} by {x}"] = tc.grad(tc.sum(e * e), x)
    return wanted, arrays


@pytest.mark.parametrize(("row", "params"), APPLIED, ids=str)
def test_rows_with_a_core(row: Op, params: tuple[Any, ...], backend: str) -> None:
    wanted, arrays = of_row(row, params)
    check((wanted, arrays), backend, unsigned=linalg_cases.signless(row.name, wanted))


# --- errors ---------------------------------------------------------------------------------------


def test_errors_are_those_of_numpy(backend: str) -> None:
    A, b = tc.var("A", ("n", "n")), tc.var("b", ("n",))
    factor = tc.linalg.cholesky(A)
    U, _ = tc.linalg.syevd(A)
    indefinite = np.diag([1.0, -1.0, 2.0])
    cases = [
        (tc.sum(factor) + tc.sum(A), indefinite),
        (2 * tc.linalg.solve_triangular(A, b, lower=True) + b, np.diag([1.0, 0.0, 2.0])),
        (tc.grad(tc.sum(U * A), A), np.eye(3)),
        (tc.linalg.potri(A) * 2 + A, np.diag([1.0, 0.0, 2.0])),
        (tc.linalg.solve(A, b) * 2, np.zeros((3, 3))),
        (tc.logdet(A) * tc.linalg.solve(A.T, b), np.ones((3, 3))),
    ]
    for e, a in cases:
        given = {"A": a, "b": np.ones(3)}
        given = {k: v for k, v in given.items() if k in e.variables}
        wanted = failure(lambda e=e, given=given: tc.compile(e)(**given))
        step = tc.compile(e, backend=backend)
        for _ in range(2):
            assert failure(lambda step=step, given=given: step(**given)) == wanted
        # A function that failed once works with what it can do.
        good = {**given, "A": np.diag([1.0, 2.0, 4.0])}
        np.testing.assert_allclose(step(**good), tc.compile(e)(**good))


def test_errors_in_loops_name_the_step(backend: str) -> None:
    A = tc.var("A", ("T", 2, 2))
    e = tc.fold(lambda s, t: tc.sum(tc.linalg.cholesky(A[t] * s)), 1.0, "T")
    a = np.stack([np.eye(2), np.eye(2), -np.eye(2)])
    wanted = failure(lambda: tc.compile(e)(A=a))
    assert "at step 3 of 3" in wanted
    assert failure(lambda: tc.compile(e, backend=backend)(A=a)) == wanted


def test_functions_that_need_entries_say_so(backend: str) -> None:
    x = tc.var("x", "n")
    step = tc.compile(tc.max(x * 2), backend=backend)
    with pytest.raises(tc.ShapeError, match=r"of shape \(0,\): without entries it has no value"):
        step(x=np.zeros(0))
