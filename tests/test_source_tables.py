"""Printed programs on every table of cases: the values and derivatives that plans compute."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.applications import apply, apply_all
from tcalc.graph.nodes import Const, postorder
from tcalc.graph.normal import bare
from tcalc.graph.operators import TABLE, Indicator, Loop, Op, Selection
from tcalc.support.namespaces import NUMPY
from tests import linalg_cases, loop_cases, place_cases, test_joining
from tests.cases import CASES, Case
from tests.shared import library_rows, run_source
from tests.test_backends import of_matrices, of_places, of_row
from tests.test_fold import COUNT, targets
from tests.test_operators import APPLIED, ELEMENTWISE, WITH_CORE, differentiable, points, with_core


def run(e: Any, arrays: dict[str, Any], **extents: int) -> Any:
    """What the source of outputs computes, in a namespace of its own."""
    scope: dict[str, Any] = {}
    exec(tc.to_code(e), scope)
    f = scope["f"]
    given = {**arrays, **extents}
    return f(**{name: given[name] for name in inspect.signature(f).parameters})


def constant(wanted: dict[str, tc.Expr]) -> bool:
    """Are there constants of double precision?"""
    return any(isinstance(node, Const) for node in postorder([bare(e) for e in wanted.values()]))


def check(wanted: dict[str, tc.Expr], arrays: dict[str, Any], tolerance: float = 1e-10) -> None:
    """The values of plans, in their shapes and dtypes; also where arrays have single precision."""
    precisions = [(np.float64, tolerance), (np.float32, 1e-3)]
    for dtype, near in precisions[: 1 if constant(wanted) else 2]:
        given = {
            name: a.astype(dtype) if np.asarray(a).dtype.kind == "f" else a
            for name, a in arrays.items()
        }
        found, others = run(wanted, given), tc.compile(wanted)(given)
        for name, other in others.items():
            value = np.asarray(found[name])
            assert (value.shape, value.dtype) == (other.shape, other.dtype), name
            size = np.abs(other).max(initial=1, where=np.isfinite(other))
            np.testing.assert_allclose(value, other, rtol=0, atol=near * size, err_msg=name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_derivatives(case: Case) -> None:
    e = case.expression()
    wanted = {
        f"{k} by {v}": tc.derivative(e, tc.var(v, case.shapes[v]), k)
        for v in case.targets
        for k in range(min(case.order, 2) + 1)
    }
    check(wanted, case.sample())


@pytest.mark.parametrize("case", linalg_cases.CASES, ids=lambda case: case.name)
def test_matrix_functions(case: linalg_cases.Case) -> None:
    wanted, arrays = of_matrices(case)
    check(wanted, arrays, 1e-8)
    parts = {name: e for name, e in wanted.items() if name.startswith("part")}
    total = sum([tc.sum(e * e) for e in parts.values()])
    check(parts | {f"by {v}": tc.grad(total, v) for v in total.variables}, arrays, 1e-8)


@pytest.mark.parametrize("case", loop_cases.CASES, ids=lambda case: case.name)
def test_loops(case: loop_cases.Case) -> None:
    e, arrays = loop_cases.expression(case, "T"), loop_cases.data(case, COUNT)
    both = [e, tc.grad(e, tuple(targets(case)))]
    found, wanted = run(both, arrays, T=COUNT), tc.compile(both)(**arrays, T=COUNT)
    for value, other in zip([found[0], *found[1]], [wanted[0], *wanted[1]], strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("case", place_cases.CASES, ids=lambda case: case.name)
def test_places(case: place_cases.Case) -> None:
    check(*of_places(case))


@pytest.mark.parametrize(("name", "build"), test_joining.CASES)
def test_joining_and_slicing(name: str, build: Any) -> None:
    x = tc.var(name, test_joining.SHAPES[name])
    e = build(x)
    arrays = {name: test_joining.ARRAYS[name]}
    check({"value": e, "gradient": tc.grad(tc.sum(e * e), x)}, arrays)


@pytest.mark.parametrize("row", ELEMENTWISE, ids=str)
def test_elementwise_rows(row: Op) -> None:
    variables = [tc.var(f"x{k}", "n") for k in range(len(row.core))]
    e = apply(row, *variables)
    wanted = {"value": e, "twice": 2 * e}
    wanted |= {f"gradient by x{k}": tc.grad(tc.sum(e), f"x{k}") for k in differentiable(row)}
    check(wanted, {x.name: p for x, p in zip(variables, points(row, 5), strict=True)})


# --- every row under all its parameters -----------------------------------------------------------

NULLARY = [row for row in TABLE.values() if not row.core and not isinstance(row, Indicator | Loop)]
CONSTANTS = [(row, params) for row in NULLARY for params in row.admitted]
SELECTIONS = [row for row in TABLE.values() if isinstance(row, Selection)]
DIMENSIONS = {"m": 3, "n": 4}


def test_every_row_is_in_a_table() -> None:
    """Loops and indicators are above, and so are families and operands that follow from others."""
    here = [*ELEMENTWISE, *WITH_CORE, *NULLARY, *SELECTIONS]
    rest = [row for row in library_rows() if row not in here]
    for row in rest:
        assert isinstance(row, Indicator | Loop) or row.spelling.shown or row.family, row


@pytest.mark.parametrize(("row", "params"), APPLIED, ids=str)
def test_rows(row: Op, params: tuple[Any, ...]) -> None:
    wanted, arrays = of_row(row, params)
    check(wanted, arrays)
    operands = [
        (a + np.swapaxes(a, -1, -2)) / 2 if row.meaning.symmetric else a for a in arrays.values()
    ]
    found = row.kernels.compute(NUMPY, params, *operands)
    for k, value in enumerate(found if row.parts else [found]):
        np.testing.assert_allclose(run(wanted[f"part {k}"], arrays), value, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("row", "params"), CONSTANTS, ids=str)
def test_rows_without_operands(row: Op, params: tuple[Any, ...]) -> None:
    e = apply(row, params=params)
    sizes = {name: n for name, n in DIMENSIONS.items() if name in e.shape}
    found = run(e, {}, **sizes)
    bound = tuple([sizes.get(p, p) for p in params])
    np.testing.assert_array_equal(found, row.kernels.compute(NUMPY, bound))
    np.testing.assert_array_equal(found, e(**sizes))


@pytest.mark.parametrize("row", SELECTIONS, ids=str)
def test_selections(row: Op) -> None:
    g = tc.var("g", 5, integer=True)
    for params in row.admitted:
        e, at = apply(row, g, params=params), np.array([2, 0, -1, 1, 1])
        sizes = {name: n for name, n in DIMENSIONS.items() if name in e.shape}
        np.testing.assert_array_equal(run(e, {"g": at}, **sizes), e(g=at, **sizes))


#: Rows of one vector, which may have equal entries.
OF_VECTORS = [(row, params) for row, params in APPLIED if row.core in ((1,), (-1,))]


@pytest.mark.parametrize("entries", [[0.0, 0.0, 0.0], [2.0, 2.0, 2.0], [2.0, 2.0, 0.0], [3, 2, 2]])
@pytest.mark.parametrize(("row", "params"), OF_VECTORS, ids=str)
def test_ties(row: Op, params: tuple[Any, ...], entries: list[float]) -> None:
    (e,), (x,), arrays = with_core(row, params)
    at = {x.name: np.broadcast_to(np.array(entries, float), arrays[x.name].shape)}
    for each in (e, tc.grad(tc.sum(e * e), x)):
        try:
            wanted = tc.compile(each)(at)
        except tc.LinAlgError:
            with pytest.raises(np.linalg.LinAlgError):
                run(each, at)
        else:
            with np.errstate(all="ignore"):
                np.testing.assert_allclose(run(each, at), wanted, rtol=1e-12)


@pytest.mark.parametrize("row", [r for r in TABLE.values() if len(r.params) > 1], ids=str)
def test_formulas_show_parameters(row: Op) -> None:
    """Applications that differ in parameters, and in their values, have different LaTeX.

    Parameters of rows with several outputs say how derivatives go on, and whom errors name.
    """
    cores = map(row.cores, row.params)
    given = [tc.var(f"x{k}", (3,) * max(axes)) for k, axes in enumerate(zip(*cores, strict=True))]
    given = [tc.var("g", 3, integer=True)] if isinstance(row, Selection) else given
    if row.parts:
        applied = [apply_all(row, *given, params=params) for params in row.params]
        at = {v.name: np.arange(9.0).reshape(3, 3) ** 2 + 5 * np.eye(3) for v in given}
        for parts in applied:
            for e, first in zip(parts, applied[0], strict=True):
                np.testing.assert_array_equal(e(at), first(at))
        return
    shown = {tc.to_latex(apply(row, *given, params=params)) for params in row.params}
    assert len(shown) == len(row.params)


FIRST, LAST = tc.eye("m")[0], tc.eye("m")[-1]
SCALE, ROLLED = tc.var("u", "m"), tc.roll(tc.var("u", "m"), -1)
PARTLY = {
    "one place at both ends": (FIRST @ LAST) * SCALE,
    "a product of both ends": FIRST * LAST * SCALE,
    "both ends on a diagonal": tc.outer(FIRST * SCALE, LAST) @ LAST,
    "rolled twice": tc.roll(ROLLED, -1),
    "rolled twice, by its entries": tc.jacobian(tc.roll(ROLLED * ROLLED, -1), "u"),
    "differences of what is rolled": tc.jacobian(tc.sin(ROLLED - tc.roll(ROLLED - SCALE, -1)), "u"),
    "a sum at one place": tc.einsum("i,j->j", FIRST * SCALE, SCALE),
}


@pytest.mark.parametrize("m", [1, 2, 3, 4])
@pytest.mark.parametrize("name", PARTLY)
def test_places_that_depend_on_extents(name: str, m: int) -> None:
    """Whether two places are one, and whether a sum has terms, is not known to the program."""
    given = {"u": np.arange(1.0, m + 1), "m": m}
    np.testing.assert_allclose(run_source(PARTLY[name], given), PARTLY[name](given), atol=1e-12)
