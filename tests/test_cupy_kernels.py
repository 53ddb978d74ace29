"""Kernels that backend "cupy" writes: what is one kernel, what is stored, and that all are CUDA.

Their numbers are those of the tables in `test_backends`, where the stand-in runs their bodies
through the C compiler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.cupy.fusion import KernelText
from tcalc.backends.cupy.library import _cut, library
from tcalc.backends.cupy.program import DeviceProgram, bind
from tcalc.backends.cupy.triangles import lower_factor
from tcalc.graph.applications import apply
from tests import linalg_cases, loop_cases, nvrtc, place_cases
from tests.cases import CASES
from tests.cupy_device import DEVICE
from tests.test_backends import of_matrices, of_places
from tests.test_operators import ELEMENTWISE

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("device")]

x, y, X = tc.var("x", "n"), tc.var("y", "n"), tc.var("X", ("m", "n"))
SHAPES = {"x": 5, "y": 5, "X": (4, 5)}

#: Functions of complex numbers that CuPy's headers declare where kernels stand.
CUPYS_FUNCTIONS = ("conj", "real", "imag", "arg")
#: Rows that the library computes: C has no function of theirs.
BY_LIBRARY = {
    "beta", "betainc", "betaln", "digamma", "erfcinv", "erfinv", "gamma", "gammainc",
    "gammaincc", "gammasgn", "inverse_mills", "iv", "ive", "jv", "kv", "log_ndtr", "logit",
    "ndtri", "polygamma", "rgamma", "spherical_jn", "stdtr", "yv",
}  # fmt: skip


def program(outputs: Any, shapes: Any = None, dtype: Any = np.float64) -> DeviceProgram:
    names = tc.compile(outputs)._engine.variables
    given = {name: s for name, s in (shapes or SHAPES).items() if name in names}
    plan = tc.compile(outputs, backend="cupy").plan_for(**given)
    return bind(plan, np.dtype(dtype))


def pieces(outputs: Any) -> list[str]:
    return [type(piece).__name__ for piece in program(outputs)._each]


def test_a_run_of_one_shape_is_one_kernel() -> None:
    (kernel,) = program(tc.exp(tc.sin(X) * y) / (1 + X * X)).kernels
    assert (len(kernel.ins), len(kernel.outs)) == (2, 1)
    assert "exp(" in kernel.operation
    assert "sin(" in kernel.operation


def test_what_others_read_is_stored_and_nothing_else() -> None:
    e = tc.exp(x * y)
    (kernel,) = program([e, tc.sin(e) * e, tc.cos(tc.sin(e))]).kernels
    assert len(kernel.outs) == 3


def test_a_sum_and_what_it_sums_are_one_reduction() -> None:
    assert pieces(tc.sum(tc.log(1 + tc.exp(-x * y)) * tc.sin(x))) == ["FusedSum"]
    assert pieces(tc.sum(tc.exp(X * y), 0)) == ["FusedSum"]


def test_inner_products_store_no_product() -> None:
    assert pieces(tc.sum(tc.exp(X) * tc.sin(X * y), 1)) == ["FusedSum"]


def test_a_value_that_is_summed_and_read_is_stored() -> None:
    e = tc.exp(X * y)
    assert sorted(pieces([tc.sum(e, 0), e])) == ["FusedSteps", "SingleStep"]


def test_single_precision_calls_single_functions() -> None:
    (kernel,) = program(tc.sin(x) * y, dtype=np.float32).kernels
    assert kernel.kind == "float32"
    assert "sinf(" in kernel.operation


def test_kernels_are_made_once() -> None:
    step = tc.compile(tc.exp(x) * y, backend="cupy")
    given = {"x": np.ones(5), "y": np.ones(5)}
    step(given)
    (bound,) = step._engine.programs.values()
    (piece,) = bound.program._each
    kernel = piece.kernel
    step(given)
    assert piece.kernel is kernel


def test_rows_that_are_no_text_of_a_kernel_are_these() -> None:
    found = set()
    for row in ELEMENTWISE:
        operands = [tc.var(f"x{k}", "n") for k in range(len(row.core))]
        made = program(apply(row, *operands), {v.name: (3,) for v in operands})
        if not made.kernels:
            found.add(row.name)
    assert found == BY_LIBRARY


# --- CUDA -----------------------------------------------------------------------------------------


def outputs_of_tables() -> Iterator[tuple[Any, dict[str, Any]]]:
    for case in CASES:
        e = case.expression()
        v = tc.var(case.targets[0], case.shapes[case.targets[0]])
        yield [e, *[tc.derivative(e, v, k) for k in (1, 2)][: case.order]], case.sample()
    yield from [of_matrices(case) for case in linalg_cases.CASES]
    yield from [of_places(case) for case in place_cases.CASES]
    for loop in loop_cases.CASES:
        yield loop_cases.expression(loop, 3), loop_cases.data(loop, 3)
    for row in ELEMENTWISE:
        operands = [tc.var(f"x{k}", "n") for k in range(len(row.core))]
        yield apply(row, *operands), {v.name: np.zeros(3) for v in operands}


def kernels_of_tables(dtype: str) -> set[KernelText]:
    found: set[KernelText] = set()
    for outputs, arrays in outputs_of_tables():
        shapes = {name: np.shape(a) for name, a in arrays.items()}
        found.update(program(outputs, shapes, dtype).kernels)
    return found


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("columns", [None, 1, 3, 5, 9])
@pytest.mark.parametrize("order", ["C", "F", "a part"])
def test_triangles_in_any_order_of_memory(columns: int | None, order: str, dtype: str) -> None:
    """Solutions and factors by routines that are called by addresses."""
    rng, xp = np.random.default_rng(0), library()
    a = np.tril(rng.normal(size=(5, 5))).astype(dtype) + 3 * np.eye(5, dtype=dtype)
    b = rng.normal(size=(5,) if columns is None else (5, columns)).astype(dtype)
    matrix = xp.asarray(a @ a.T)
    held = xp.asarray(np.asfortranarray(a) if order == "F" else a)
    if order == "a part":
        held = xp.asarray(np.pad(a, 2, constant_values=np.nan))[2:7, 2:7]
    for transposed in (False, True):
        sides = xp.asarray(b)
        found, kept = xp.on_host([xp.triangular(held, sides, transposed), sides])
        wanted = np.linalg.solve(a.T if transposed else a, b)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, wanted, atol=50 * np.finfo(dtype).eps)
        np.testing.assert_array_equal(kept, b)
    factor, bad = xp.on_host(lower_factor(xp, matrix))
    np.testing.assert_allclose(factor, a, atol=200 * np.finfo(dtype).eps)
    assert not bad.any()


#: Shapes of two operands and the axes of their product's sum.
SUMS: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
    ((10_007,), (10_007,), (0,)), ((9_000,), (1,), (-1,)), ((8192,), (8192,), (0,)),
    ((3, 5003), (5003,), (1,)), ((5003, 3), (5003, 1), (0,)), ((71, 73), (71, 73), (0, 1)),
    ((2, 71, 3, 73), (71, 1, 73), (1, 3)), ((70, 3, 70), (1, 3, 70), (0, -1)),
    ((1200, 6), (6,), (1,)), ((4, 5000), (4, 1), (0,)),
]  # fmt: skip


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize(("first", "second", "axes"), SUMS)
def test_long_sums_of_few_results_are_cut_into_parts(
    first: tuple[int, ...], second: tuple[int, ...], axes: tuple[int, ...], dtype: str
) -> None:
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape).astype(dtype) for shape in (first, second))
    xp = library()
    found = xp.inner(xp.asarray(x), xp.asarray(y), axes)
    wanted = (x.astype(float) * y.astype(float)).sum(axes)
    assert found.dtype == dtype
    scale = (np.abs(x).astype(float) * np.abs(y)).sum(axes)
    np.testing.assert_array_less(np.abs(xp.on_host([found])[0] - wanted),
                                 4 * np.finfo(dtype).eps * scale + 1e-300)  # fmt: skip
    cut = _cut((first, second), axes)
    assert (cut is None) == (wanted.size >= 1024 or scale.size * 4096 > (x + y).size)


#: What stands before kernels where CuPy compiles them: names that its headers bring.
HEADERS = "\n".join(
    ["namespace thrust {"]
    + [f"template <typename T> __device__ T {name}(T z);" for name in CUPYS_FUNCTIONS]
    + ["}"]
    + [f"using thrust::{name};" for name in CUPYS_FUNCTIONS]
)


@nvrtc.needed
@pytest.mark.parametrize(
    ("dtype", "arch"), zip(["float64", "float32"], nvrtc.ARCHITECTURES, strict=True)
)
def test_every_kernel_is_cuda(dtype: str, arch: str) -> None:
    kernels = kernels_of_tables(dtype)
    assert len(kernels) > 200
    alone = [text.alone(f"kernel{k}") for k, text in enumerate(kernels)]
    apart = [f"namespace n{k} {{{text}\n#undef real\n}}" for k, text in enumerate(alone)]
    together = "\n".join([HEADERS, *apart])
    assert nvrtc.compile(together, "kernels.cu", arch)


def test_nothing_waits_where_kernels_are_written() -> None:
    before = DEVICE.waits
    program(tc.sum(tc.exp(X * y), 0))
    assert DEVICE.waits == before
