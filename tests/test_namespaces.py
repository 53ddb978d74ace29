"""Kernels and plans on arrays that are not NumPy's and cannot be written to: those of jax."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.functional.program import BACKEND, FunctionalProgram
from tcalc.graph.operators import TABLE, Op
from tcalc.integers.affine import Congruence, Constraint
from tcalc.integers.boxes import index
from tcalc.ops.matrix.divided_differences import Scalar, X
from tcalc.ops.matrix.functions import frechet_row
from tcalc.ops.matrix.spectral import spectral_row, trace_row
from tcalc.plan.kinds.operators import computed
from tcalc.run.backends import BACKENDS
from tcalc.support.namespaces import NUMPY, ArrayNamespace
from tests import linalg_cases, loop_cases, test_linalg
from tests.cases import CASES, Case, definite, regular
from tests.operators_table import operator

JAX = ArrayNamespace("jax.numpy", "jax.scipy.special")

#: Rows that need NumPy's arrays and have a portable form beside it.
FASTER = {
    "cholesky_pullback", "eigh", "eigh_epsilon", "eigh_nan", "lq", "norm2", "squared_distances",
}  # fmt: skip
#: Rows that run on NumPy's arrays wherever they run; a loop's steps are run by the back end itself.
HOST = {"adj", "expm", "logm", "sqrtm", "matrix_function", "fold"}
#: Functions that are SciPy's, and not jax's.
LACKING = {"erfcinv", "iv", "ive", "jv", "kv", "rgamma", "spherical_jn", "stdtr", "yv"}


ON_JAX = BACKEND._replace(bind=lambda plan, dtype, threads=1: FunctionalProgram(plan, dtype, JAX))


@pytest.fixture(autouse=True)
def _jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "jax", ON_JAX)


def same(found: Any, expected: Any) -> None:
    assert isinstance(found, jax.Array)
    size = np.abs(expected).max(initial=1)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-10 * size)


def same_on_jax(outputs: list[tc.Expr], data: dict[str, np.ndarray]) -> None:
    found = tc.compile(outputs, backend="jax")(**data)
    for one, expected in zip(found, tc.compile(outputs)(**data), strict=True):
        same(one, expected)


# --- kernels --------------------------------------------------------------------------------------


def families() -> list[Op]:
    """Rows that are made when they are first asked for, and all others."""
    for name in ("expm", "logm", "sqrtm"):
        frechet_row(name, 1)
    for order in (0, 1):
        spectral_row(order)
    trace_row()
    return [op for op in TABLE.values() if not op.name[-1].isdigit() or not op.family]


ROWS = families()

PARAMS: dict[str, tuple[Any, ...]] = {
    "norm": (1, 3),
    "symmetric_part": (2,),
    "extractdiag": (1,),
    "extracttrian": (0, False),
    "gaps": ("raise",),
    "indicator": (
        (3, 4), (Constraint(index(1) - index(0)), Congruence(index(0) + index(1), 2)), (),
    ),
    "iota": (3,),
    "leading_rows": (2, 3),
    "lower_half": (3,),
    "lower_ones": (3,),
    "lower_trapezoid": (3, 2),
    "lq": ("lq", "rows"),
    "makediag": (-1,),
    "maketrian": (-1, True),
    "matrix_function": (Scalar(tc.sin(X)),),
    "matrix_function_frechet": (Scalar(tc.sin(X), 1),),
    "matrix_function_trace": (Scalar(2 * tc.sin(X) + X * X),),
    "merge_axes": (2, (6,)),
    "selection": (4,),
    "svd": ("raise",),
    "svd_gaps": ("raise",),
    "svd_reciprocal": ("raise",),
    "upper_ones": (3,),
}  # fmt: skip
DEFINITE = {"cholesky", "inverse_definite", "logdet_definite", "logm", "sqrtm"}


def operands(op: Op) -> list[np.ndarray]:
    """Arrays of two items that the row is defined for."""
    rng = np.random.default_rng(0)
    if op.name == "selection":
        return [np.array([[0, 2], [3, -1]])]
    if op.name == "merge_axes":
        return [rng.normal(size=(2, 2, 3))]
    if op.name in {"gaps", "svd_gaps", "svd_reciprocal"}:
        return [np.array([[1.0, 2, 4], [0.5, 3, 5]])]
    if op.name == "maketrian":
        return [rng.normal(size=(2, 6))]
    if op.name.startswith("matrix_function"):
        a = definite(rng, (2, 3, 3))
        return [a, *np.linalg.eigh(a), *[regular(rng, a.shape) for _ in op.core[3:]]]
    cores = op.cores(PARAMS.get(op.name, (1,)))
    if 2 in cores:
        first = definite if op.name.split("_frechet")[0] in DEFINITE else regular
        return [(regular if k else first)(rng, (2, 3, 3)) for k, _ in enumerate(cores)]
    return [
        rng.uniform(low, high, (2, *(3,) * core))
        for core, (low, high) in zip(cores, op.domain, strict=True)
    ]


@pytest.mark.parametrize("op", [op for op in ROWS if op.name != "fold"], ids=str)
def test_results_have_memory_of_their_own_where_rows_say_so(op: Op) -> None:
    rest, arrays = PARAMS.get(op.name, (1,) if -1 in op.core else ()), operands(op)
    small = [a[..., :1, :1] if a.ndim > 2 else a[..., :1] for a in arrays]
    fixed = {"extracttrian", "maketrian", "matrix_function", "merge_axes"}
    for given in (arrays, arrays if op.name.removesuffix("_frechet") in fixed else small):
        try:
            results = op.kernels.compute(NUMPY, rest, *given)
        except (IndexError, ValueError):  # the parameters are those of the larger ones
            continue
        every = results if isinstance(results, tuple) else (results,)
        shared = any(np.shares_memory(r, a) for r in every if r is not None for a in given)
        assert not shared or op.kernels.shares


def test_functions_that_jax_lacks() -> None:
    import jax.scipy.special

    known = (jax.numpy, jax.scipy.special)
    assert not [name for name in LACKING for module in known if hasattr(module, name)]


@pytest.mark.parametrize("op", [op for op in ROWS if op.name not in {"fold", *LACKING}], ids=str)
def test_kernels(op: Op) -> None:
    rest, arrays = PARAMS.get(op.name, (1,) if -1 in op.core else ()), operands(op)
    expected = op.kernels.compute(NUMPY, rest, *arrays)
    given = [jax.numpy.asarray(a) for a in arrays]
    found = computed(JAX, (op, *rest), *given)
    if op.outputs == 1:
        found, expected = (found,), (expected,)
    pure = not op.kernels.host or op.kernels.portable
    for one, right in zip(found, expected, strict=True):
        same(one if pure else jax.numpy.asarray(one), right)


def test_rows_that_need_numpy() -> None:
    host = {op.name.split("_frechet")[0]: op.kernels for op in ROWS if op.kernels.host}
    assert {name for name, kernels in host.items() if kernels.portable} == FASTER
    assert {name for name, kernels in host.items() if not kernels.portable} == HOST
    assert all(op.kernels.host for op in ROWS if op.kernels.portable)


# --- plans ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_cases(case: Case) -> None:
    e, v = case.expression(), case.targets[0]
    outputs = [e]
    if v in tc.graph.nodes.variables([e]):
        outputs.append(tc.jacobian(e, v) if e.shape else tc.grad(e, v))
        if not e.shape and case.order > 1:
            outputs.append(tc.hessian(e, v))
    same_on_jax(outputs, case.sample())


#: Functions whose cases are the same kernels on transposed matrices: the first one will do.
ALIKE = {"gemm", "matrix_power", "solve_triangular", "trmm", "trsm"}
FIRST = {operator(case): case for case in reversed(linalg_cases.CASES)}
MATRIX_CASES = [
    case
    for case in linalg_cases.CASES
    if operator(case) not in ALIKE or case is FIRST[operator(case)]
]


@pytest.mark.parametrize("case", MATRIX_CASES, ids=str)
def test_linear_algebra(case: linalg_cases.Case) -> None:
    variables, arrays, _ = test_linalg.setting(case, (), test_linalg.SIZES, 0)
    found = test_linalg.outputs(case, variables)
    total = tc.sum(tc.sin(found[0]))
    for part in found[1:]:
        total = total + tc.sum(tc.sin(part))
    same_on_jax([*found, *[tc.grad(total, v) for v in variables.values()][:1]], arrays)


@pytest.mark.parametrize("case", loop_cases.CASES, ids=lambda case: case.name)
def test_loops(case: loop_cases.Case) -> None:
    e, data = loop_cases.expression(case, "T"), loop_cases.data(case, 2)
    long = case.name == "kalman"  # whose gradient takes jax as long as all others
    outputs = [e] if long else [e, tc.grad(e, loop_cases.names(case)[0])]
    same_on_jax(outputs, {**data, "T": 2})
