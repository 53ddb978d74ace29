"""Programs over every array library on every table of cases: the values that plans compute."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.applications import apply
from tcalc.graph.nodes import Const, postorder
from tcalc.graph.normal import bare
from tcalc.graph.operators import Op
from tcalc.languages.source.registry import LANGUAGES
from tests import linalg_cases, loop_cases, place_cases, test_joining, until_cases
from tests.cases import CASES, Case
from tests.shared import in_turn, named
from tests.source_runs import LIBRARIES, computed, run_checked, typed
from tests.test_backends import of_matrices, of_places, of_row
from tests.test_fold import COUNT, targets
from tests.test_operators import APPLIED, ELEMENTWISE, differentiable, points
from tests.test_source_tables import CONSTANTS, DIMENSIONS, SELECTIONS

OTHERS = [name for name in LIBRARIES if name != "numpy"]
each_language = pytest.mark.parametrize("language", OTHERS)


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    with jax.enable_x64(True):
        yield


def constant(wanted: dict[str, tc.Expr]) -> bool:
    """Are there constants of double precision?"""
    return any(isinstance(node, Const) for node in postorder([bare(e) for e in wanted.values()]))


def check(
    wanted: dict[str, tc.Expr],
    arrays: dict[str, Any],
    language: str,
    tolerance: float = 1e-11,
) -> None:
    """The values of plans, in their shapes and dtypes; also where arrays have single precision.

    What compiles every program anew for these is asked for their shapes and dtypes.
    """
    precisions = [(np.float64, tolerance, computed), (np.float32, 1e-4, typed)]
    exact = tc.compile(wanted)(arrays)
    for dtype, near, run in precisions[: 1 if constant(wanted) else 2]:
        given = {
            name: a.astype(dtype) if np.asarray(a).dtype.kind == "f" else a
            for name, a in arrays.items()
        }
        found = run(wanted, given, language)
        for name, other in exact.items():
            value = found[name]
            assert (value.shape, value.dtype) == (np.shape(other), dtype), name
            if not isinstance(value, np.ndarray | np.generic):
                continue
            size = np.abs(other).max(initial=1, where=np.isfinite(other))
            np.testing.assert_allclose(value, other, rtol=0, atol=near * size, err_msg=name)


@pytest.mark.parametrize(("case", "language"), in_turn(CASES, OTHERS), ids=named)
def test_derivatives(case: Case, language: str) -> None:
    e = case.expression()
    wanted = {
        f"{k} by {v}": tc.derivative(e, tc.var(v, case.shapes[v]), k)
        for v in case.targets
        for k in range(min(case.order, 2) + 1)
    }
    check(wanted, case.sample(), language)


@pytest.mark.parametrize(("case", "language"), in_turn(linalg_cases.CASES, OTHERS), ids=named)
def test_matrix_functions(case: linalg_cases.Case, language: str) -> None:
    wanted, arrays = of_matrices(case)
    if case.name.startswith("svd-"):  # columns are given up to their signs
        parts = [e * e for name, e in wanted.items() if name.startswith("part")]
        total = sum([tc.sum(e * e) for e in parts])
        along = tc.const(np.random.default_rng(0).normal(size=arrays["A"].shape))
        wanted = {f"square {k}": e for k, e in enumerate(parts)}
        wanted |= {"by A": tc.grad(total, "A"), "second by A": tc.hvp(total, "A", along)}
    check(wanted, arrays, language)


@each_language
@pytest.mark.parametrize("case", loop_cases.CASES, ids=lambda case: case.name)
def test_loops(case: loop_cases.Case, language: str) -> None:
    e = loop_cases.expression(case, "T")
    both = [e, tc.grad(e, tuple(targets(case)))]
    for count in (COUNT, 0):
        arrays = loop_cases.data(case, count)
        found = computed(both, arrays, language, T=count)
        wanted = tc.compile(both)(**arrays, T=count)
        for value, other in zip([found[0], *found[1]], [wanted[0], *wanted[1]], strict=True):
            np.testing.assert_allclose(value, other, rtol=1e-11, atol=1e-11)


@each_language
@pytest.mark.parametrize("case", until_cases.CASES, ids=lambda case: case.name)
def test_loops_until_a_condition(case: until_cases.Case, language: str) -> None:
    e = case.expression()
    check({"value": e, "gradient": tc.grad(e, case.targets[0])}, case.arrays(), language, 1e-9)


@each_language
@pytest.mark.parametrize("case", place_cases.CASES, ids=lambda case: case.name)
def test_places(case: place_cases.Case, language: str) -> None:
    check(*of_places(case), language)


@each_language
@pytest.mark.parametrize(("name", "build"), test_joining.CASES)
def test_joining_and_slicing(name: str, build: Any, language: str) -> None:
    x = tc.var(name, test_joining.SHAPES[name])
    e = build(x)
    arrays = {name: test_joining.ARRAYS[name]}
    check({"value": e, "gradient": tc.grad(tc.sum(e * e), x)}, arrays, language)


@each_language
@pytest.mark.parametrize("row", ELEMENTWISE, ids=str)
def test_elementwise_rows(row: Op, language: str) -> None:
    variables = [tc.var(f"x{k}", "n") for k in range(len(row.core))]
    e = apply(row, *variables)
    wanted = {"value": e, "twice": 2 * e}
    wanted |= {f"gradient by x{k}": tc.grad(tc.sum(e), f"x{k}") for k in differentiable(row)}
    at = [p.astype(float) for p in points(row, 5)]
    arrays = {x.name: p for x, p in zip(variables, at, strict=True)}
    check(wanted, arrays, language)


@each_language
@pytest.mark.parametrize(("row", "params"), APPLIED, ids=str)
def test_rows(row: Op, params: tuple[Any, ...], language: str) -> None:
    check(*of_row(row, params), language)


@each_language
@pytest.mark.parametrize(("row", "params"), CONSTANTS, ids=str)
def test_rows_without_operands(row: Op, params: tuple[Any, ...], language: str) -> None:
    e = apply(row, params=params)
    sizes = {name: n for name, n in DIMENSIONS.items() if name in e.shape}
    np.testing.assert_array_equal(computed(e, {}, language, **sizes), e(**sizes))


@each_language
@pytest.mark.parametrize("row", SELECTIONS, ids=str)
def test_selections(row: Op, language: str) -> None:
    g = tc.var("g", 5, integer=True)
    for params in row.admitted:
        e, at = apply(row, g, params=params), np.array([2, 0, -1, 1, 1])
        sizes = {name: n for name, n in DIMENSIONS.items() if name in e.shape}
        found = computed(e, {"g": at}, language, **sizes)
        np.testing.assert_array_equal(found, e(g=at, **sizes))


@each_language
@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("row", [r for r in ELEMENTWISE if len(r.core) < 3], ids=str)
def test_numbers_of_python_are_taken(row: Op, order: int, language: str) -> None:
    names = [tc.var(f"x{k}") for k in range(len(row.core))]
    at = {v.name: np.array(float(p[0])) for v, p in zip(names, points(row, 1), strict=True)}
    e = apply(row, *names)
    if order and row.meaning.partials[-1] is not None:
        e = tc.derivative(e, names[-1], order)
    np.testing.assert_allclose(computed(e, at, language), e(at), rtol=1e-11)


# --- names, strings, checks -----------------------------------------------------------------------

NAMES = [
    "jnp", "jax", "torch", "cp", "cupyx", "np", "numpy", "scipy", "special", "math", "itertools",
    "floats", "dtype", "device", "lambda", "None", "print", "__import__", "t1", "_fold", "_check",
    "é", "Σ", "self",
]  # fmt: skip


@each_language
def test_any_identifier_is_a_name(language: str) -> None:
    """As variable and as dimension."""
    given = [tc.var(name, (name,)) for name in NAMES]
    total = sum([tc.sum(tc.exp(v) * (k + 1)) for k, v in enumerate(given)])
    outputs = (total, tc.grad(tc.norm(given[0]) * total, given[1]), tc.eye(NAMES[2]))
    arrays = {v.name: np.array([0.5, -1.0]) for v in given}
    f = tc.to_code(outputs, language)
    names = [p.arg for p in ast.parse(f).body[-1].args.args]  # type: ignore[attr-defined]
    renamed = dict(zip(sorted(arrays), names, strict=True))
    found = computed(outputs, {renamed[name]: a for name, a in arrays.items()}, language)
    for value, other in zip(found, tc.compile(outputs)(arrays), strict=True):
        np.testing.assert_allclose(value, other, rtol=1e-12)


@each_language
@pytest.mark.parametrize("name", ["floats", "_check", "_fold", "dtype", "print", "lambda", "f g"])
def test_names_of_functions_mean_nothing_else(name: str, language: str) -> None:
    module = LANGUAGES[language].library  # type: ignore[attr-defined]
    for bad in (name, module):
        with pytest.raises(ValueError, match="identifier"):
            tc.to_code(tc.var("x"), language, name=bad)


@each_language
def test_keys_are_text(language: str) -> None:
    texts = ["a'\"\\\n", '"""', "#", "*/", "np.zeros(", "{0}", "%s", "\ud800"]
    x = tc.var("x")
    numbers = {0: x, -3: x, 1.5: x}
    outputs = {"texts": {key: k * x for k, key in enumerate(texts)}, "numbers": numbers}
    found = computed(outputs, {"x": np.array(2.0)}, language)
    assert found["numbers"].keys() == numbers.keys()
    assert {key: float(value) for key, value in found["texts"].items()} == {
        key: 2 * k for k, key in enumerate(texts)
    }


x, X, S = tc.var("x", "n"), tc.var("X", ("m", "n")), tc.var("S", ("n", "n"), positive_definite=True)


@each_language
@pytest.mark.parametrize(
    "e",
    [tc.hessian(tc.sum(tc.log(1 + tc.exp(X @ x))), x), tc.grad(tc.logdet(S), S), (X @ x, {"s": x})],
    ids=["Hessian", "logdet", "shapes"],
)
def test_self_checks_pass(e: Any, language: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_checked(tc.to_code(e, language, check=True), language)
    assert re.search("central differences|shapes are", capsys.readouterr().out)


@each_language
def test_self_checks_find_what_is_wrong(language: str) -> None:
    source = tc.to_code(tc.grad(tc.sum(tc.exp(X @ x)), x), language, check=True)
    right, rest = source.split("def f_before", 1)
    before, _, after = right.rpartition("return ")
    with pytest.raises(SystemExit):
        run_checked(f"{before}return 1 + {after}def f_before{rest}", language)
