"""Plans on a device: what is uploaded, what is waited for, where results lie, what is refused.

Without a device they run on a stand-in, which proves names, logic and the numbers of kernels'
bodies. Values of all tables of cases are compared in `test_backends`.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import Any
from unittest import mock

import numpy as np
import pytest
import scipy.special

import tcalc as tc
from tcalc.backends.cupy.library import BY_HOST, MissingDevice
from tcalc.backends.cupy.pieces import of_host
from tcalc.linalg import expm, logm, sqrtm
from tests import linalg_cases, place_cases
from tests.cases import CASES, Case
from tests.cupy_device import DEVICE
from tests.cupy_stand_in import API, has_device
from tests.test_backends import of_matrices, of_places
from tests.test_operators import ELEMENTWISE

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("device")]
stand_in_only = pytest.mark.skipif(has_device(), reason="counts what the stand-in is asked for")

X, w, S = tc.var("X", ("m", "n")), tc.var("w", "n"), tc.var("S", ("n", "n"), symmetric=True)
F = tc.sum(tc.log(1 + tc.exp(-X @ w))) + w @ S @ w
RNG = np.random.default_rng(0)
DATA: dict[str, Any] = {"X": RNG.normal(size=(5, 3)), "w": RNG.normal(size=3), "S": 2 * np.eye(3)}


def cupy() -> Any:
    return importlib.import_module("cupy")


def waits(step: Any, arrays: dict[str, Any]) -> int:
    """How many times a second call waits."""
    step(arrays)
    before = DEVICE.waits
    step(arrays)
    return DEVICE.waits - before


# --- where arrays lie -----------------------------------------------------------------------------


def test_results_lie_where_arguments_do() -> None:
    wanted = tc.compile([F, tc.grad(F, (w, S))])(DATA)
    step = tc.compile([F, tc.grad(F, (w, S))], backend="cupy")
    value, (by_w, by_s) = step(DATA)
    assert isinstance(value, np.float64)
    assert isinstance(by_w, np.ndarray)
    cp = cupy()
    value, (by_w, by_s) = step(DATA | {"X": cp.asarray(DATA["X"])})
    for found, other in zip((value, by_w, by_s), (wanted[0], *wanted[1]), strict=True):
        assert isinstance(found, cp.ndarray)
        np.testing.assert_allclose(cp.asnumpy(found), other, rtol=1e-12)


def test_results_on_the_device_are_nobody_elses() -> None:
    cp = cupy()
    x = cp.asarray(DATA["w"])
    step = tc.compile([w, w[::-1], tc.zeros(3), w + 1, w + 1], backend="cupy", data={})
    results = step(w=x)
    for found in results:
        found += 1
    np.testing.assert_array_equal(cp.asnumpy(x), DATA["w"])
    again = step(w=x)
    wanted = tc.compile([w, w[::-1], tc.zeros(3), w + 1, w + 1])(w=DATA["w"])
    for found, other in zip(again, wanted, strict=True):
        np.testing.assert_array_equal(cp.asnumpy(found), other)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dtypes_are_those_of_numpy(dtype: str) -> None:
    given = {name: a.astype(dtype) for name, a in DATA.items()}
    cp, expressions = cupy(), [F, tc.grad(F, S)]
    wanted = tc.compile(expressions)(given)
    for arrays in (given, {name: cp.asarray(a) for name, a in given.items()}):
        for found, other in zip(
            tc.compile(expressions, backend="cupy")(arrays), wanted, strict=True
        ):
            assert (found.dtype, found.shape) == (other.dtype, other.shape)


def test_projections_on_the_device() -> None:
    cp = cupy()
    for names in ({"lower": True}, {"symmetric": True}, {"diagonal": True}):
        A = tc.var("A", ("n", "n"), **names)
        e = tc.grad(tc.sum(tc.exp(A) * w), A)
        a = {"A": np.diag([1.0, 2.0, 3.0]), "w": DATA["w"]}
        found = tc.compile(e, backend="cupy")({k: cp.asarray(v) for k, v in a.items()})
        np.testing.assert_allclose(cp.asnumpy(found), e(a), rtol=1e-12)


def test_properties_of_arrays_on_the_device_are_checked() -> None:
    cp = cupy()
    given = {name: cp.asarray(a) for name, a in DATA.items()}
    given["S"] = cp.asarray(np.arange(9.0).reshape(3, 3))
    with pytest.raises(ValueError, match="S is declared symmetric"):
        tc.compile(F, backend="cupy")(given)
    tc.compile(F, backend="cupy", check=False)(given)


def test_integers_on_the_device_index() -> None:
    v, g = tc.var("v", 8), tc.var("g", 5, integer=True)
    e = tc.sum(v[g] ** 2)
    given = {"v": np.arange(8.0), "g": np.array([3, -1, 0, 3, 7])}
    cp = cupy()
    on_device = {name: cp.asarray(a) for name, a in given.items()}
    for outputs in (e, tc.grad(e, v)):
        found = tc.compile(outputs, backend="cupy")(on_device)
        np.testing.assert_allclose(cp.asnumpy(found), outputs(given))
    for wrong in ({"g": cp.asarray(np.array([0, 1, 8, 2, 3]))}, {"g": np.array([0, 1, 8, 2, 3])}):
        with pytest.raises(IndexError, match="the index g holds 8 at 2, out of range"):
            tc.compile(e, backend="cupy")(on_device | wrong)


def test_other_back_ends_name_the_array_and_the_back_end() -> None:
    on_device = DATA | {"X": cupy().asarray(DATA["X"])}
    for backend in ("numpy", "functional", "auto"):
        with pytest.raises(
            TypeError, match=r'X is an array on a device; compile\(backend="cupy"\)'
        ):
            tc.compile(F, backend=backend)(on_device)


# --- what is uploaded and waited for --------------------------------------------------------------


@stand_in_only
def test_data_and_constants_are_uploaded_once() -> None:
    e = F + tc.sum(tc.const(np.arange(3.0)) * tc.sin(X)[0, :3])
    data = {name: DATA[name] for name in ("X", "S")}
    step = tc.compile([e, tc.grad(e, w)], backend="cupy", data=data)
    step(w=DATA["w"])
    DEVICE.uploads.clear()
    step(w=DATA["w"])
    assert [shape for shape in DEVICE.uploads if shape] == [(3,)]


@stand_in_only
def test_each_device_has_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    step = tc.compile(F, backend="cupy", data={name: DATA[name] for name in ("X", "S")})
    uploads = []
    for number in (0, 1, 0, 1):
        monkeypatch.setattr(DEVICE, "number", number)
        DEVICE.uploads.clear()
        step(w=DATA["w"])
        uploads.append((5, 3) in DEVICE.uploads)
    assert uploads == [True, True, False, False]


@stand_in_only
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_values_and_derivatives_wait_for_results_alone(case: Case) -> None:
    e = case.expression()
    x = tc.var(case.targets[0], case.shapes[case.targets[0]])
    outputs = [e, *[tc.derivative(e, x, k) for k in range(1, min(case.order, 2) + 1)]]
    step = tc.compile(outputs, backend="cupy")
    assert waits(step, case.sample()) <= 1 + by_host(step, case.sample())


@stand_in_only
@pytest.mark.parametrize("case", linalg_cases.CASES, ids=lambda case: case.name)
def test_factorisations_are_not_waited_for(case: linalg_cases.Case) -> None:
    expressions, arrays = of_matrices(case)
    step = tc.compile(expressions, backend="cupy")
    assert waits(step, arrays) <= 1 + by_host(step, arrays)


@stand_in_only
@pytest.mark.parametrize("case", place_cases.CASES, ids=lambda case: case.name)
def test_gathers_wait_for_results_alone(case: place_cases.Case) -> None:
    expressions, arrays = of_places(case)
    assert waits(tc.compile(expressions, backend="cupy"), arrays) == 1


def by_host(step: Any, arrays: dict[str, Any]) -> int:
    """How often what the host computes has to wait for its operands: once for a chain at most."""
    plan = step.plan_for(**{name: np.shape(a) for name, a in arrays.items()})
    return min(len([s for s in plan.steps if of_host(s)]), 1)


A, B, C = (tc.var(name, ("n", "n")) for name in "ABC")
#: Outputs with steps of the host's, and how many times one of these has to wait for the device.
HOSTED = {
    "apart": ([expm(A), logm(B), sqrtm(C), tc.jv(2, A)], 1),
    "on one another": ([expm(logm(B)), logm(sqrtm(B)) + B], 1),
    "with steps of the device between": (
        [expm(logm(B) @ C), sqrtm(B), logm(expm(A).T)],
        2,
    ),
    "none": ([A @ B], 0),
}


@stand_in_only
@pytest.mark.parametrize("name", HOSTED)
def test_what_the_host_computes_is_waited_for_together(name: str) -> None:
    outputs, wanted = HOSTED[name]
    step = tc.compile(outputs, backend="cupy")
    near = np.eye(4) + RNG.normal(size=(4, 4)) / 20
    arrays = {v: near + k / 10 * np.eye(4) for k, v in enumerate("ABC")}
    assert waits(step, arrays) == 1 + wanted
    for found, e in zip(step(arrays), outputs, strict=True):
        np.testing.assert_allclose(found, e(**{v: arrays[v] for v in e.variables}), rtol=1e-12)


U, V, T = tc.var("U", ("m", "k")), tc.var("V", ("n", "k")), tc.var("T", ("m", "n"))
LARGE = {"m": 60, "n": 50, "k": 4}
CHAINS = {
    "logistic": tc.hessian(F, w),
    "factorisation": [tc.grad(tc.sum((T - U @ V.T) ** 2 * tc.sigmoid(T)), v) for v in (U, V)],
    "products": tc.sin(tc.exp(T) @ tc.cos(T).T) @ tc.exp(T) @ (T.T @ T),
    "reductions": tc.softmax(tc.tanh(T) * T, 0) + tc.softmax(T * T, 1),
}


@stand_in_only
@pytest.mark.parametrize("name", CHAINS)
def test_memory_is_what_was_predicted_and_an_array(name: str) -> None:
    """A step holds its operands and its result at once, where NumPy's writes over them."""
    e = CHAINS[name]
    step, cp = tc.compile(e, backend="cupy"), cupy()
    shapes = {
        v.name: tuple([LARGE[str(n)] for n in v.shape])
        for leaf in (e if isinstance(e, list) else [e])
        for v in leaf.variables.values()
    }
    given = {n: RNG.normal(size=s) for n, s in shapes.items()}
    if "S" in given:
        given["S"] = np.eye(LARGE["n"])
    arrays = {n: cp.asarray(a) for n, a in given.items()}
    step(arrays)
    plan = step.plan_for(**shapes)
    before = DEVICE.peak = DEVICE.live
    step(arrays)
    largest = max(8 * int(np.prod(s.shape)) for s in plan.steps)
    assert DEVICE.peak - before <= plan.peak_bytes + 2 * largest


# --- what the host computes -----------------------------------------------------------------------


def test_plans_and_explanations_say_what_the_host_computes() -> None:
    A = tc.var("A", ("n", "n"))
    e = tc.linalg.expm(A) @ w + tc.exp(w)
    assert "computed by the host: expm" in str(tc.compile(e, backend="cupy").plan)
    assert "computed by the host: expm" in str(tc.explain(e, backend="cupy"))
    assert "computed by the host" not in str(tc.explain(e))
    assert "computed by the host" not in str(tc.explain(tc.linalg.cholesky(A), backend="cupy"))
    loop = tc.fold(lambda s, i: tc.linalg.expm(s), A, 3)
    assert "computed by the host: expm" in str(tc.explain(loop, backend="cupy"))
    with pytest.raises(ValueError, match="backend 'cuppy' does not exist"):
        tc.explain(e, backend="cuppy")


def test_functions_of_entries_that_the_host_computes_are_those_that_cupy_lacks() -> None:
    names = {row.name for row in ELEMENTWISE if row.kernels.formula is None}
    known = API["cupy"].keys() | API["cupyx.scipy.special"].keys()
    lacking = {name for name in names - known if hasattr(scipy.special, name)}
    assert lacking == set(BY_HOST)


# --- errors ---------------------------------------------------------------------------------------


@stand_in_only
def test_nobody_looks_whether_a_factorisation_failed_unless_told_to() -> None:
    cp, cupyx = cupy(), importlib.import_module("cupyx")
    indefinite = cp.asarray(np.diag([1.0, -1.0]))
    assert float(cp.linalg.cholesky(indefinite)[0, 0]) == 77
    with cupyx.errstate(linalg="raise"), pytest.raises(np.linalg.LinAlgError):
        cp.linalg.cholesky(indefinite)
    A = tc.var("A", ("n", "n"))
    for arrays in ({"A": indefinite}, {"A": np.diag([1.0, -1.0])}):
        with pytest.raises(tc.LinAlgError, match="not positive definite, in cholesky"):
            tc.compile(tc.linalg.cholesky(A), backend="cupy")(arrays)


def test_the_first_condition_is_the_one_that_is_told() -> None:
    A, b = tc.var("A", ("n", "n")), tc.var("b", "n")
    x = tc.linalg.solve_triangular(A, b, lower=True)
    e = tc.sum(tc.linalg.cholesky(tc.einsum("i,j->ij", x, x) + tc.eye("n")))
    step = tc.compile(e, backend="cupy")
    with pytest.raises(tc.LinAlgError, match="solve_triangular"):
        step(A=np.diag([1.0, 0.0]), b=np.ones(2))
    assert step(A=np.eye(2), b=np.ones(2)) == pytest.approx(e(A=np.eye(2), b=np.ones(2)))


def test_what_data_alone_make_wrong_is_told_at_every_call() -> None:
    A, b = tc.var("A", ("n", "n")), tc.var("b", "n")
    step = tc.compile(
        tc.linalg.solve_triangular(A, b, lower=True) * b,
        backend="cupy",
        data={"A": np.zeros((2, 2))},
    )
    for _ in range(2):
        with pytest.raises(tc.LinAlgError, match="a zero on the diagonal"):
            step(b=np.ones(2))


def test_without_cupy_it_says_what_to_install() -> None:
    with (
        mock.patch.dict(sys.modules, {"cupy": None}),
        pytest.raises(MissingDevice, match=r'pip install "tcalc\[cuda12\]"'),
    ):
        tc.compile(F, backend="cupy")


def _no_driver() -> int:
    raise RuntimeError("cudaErrorNoDevice: no CUDA-capable device is detected")


@stand_in_only
@pytest.mark.parametrize("count", [_no_driver, lambda: 0])
def test_without_a_device_it_says_so(count: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupy().cuda.runtime, "getDeviceCount", count)
    with pytest.raises(tc.Error, match="CuPy finds no device"):
        tc.compile(F, backend="cupy")


@stand_in_only
def test_memory_is_the_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cupy().cuda.runtime, "memGetInfo", lambda: (1000, 2000))
    monkeypatch.setattr(
        cupy(), "get_default_memory_pool", lambda: mock.Mock(free_bytes=lambda: 500)
    )
    e = tc.exp(w) * tc.sin(w)[:, None]
    for n, fits in ((8, True), (50, False)):
        step = tc.compile(e, backend="cupy")
        if fits:
            step(w=np.ones(n))
        else:
            with pytest.raises(tc.MemoryLimitError, match=r"1\.46 KiB available"):
                step(w=np.ones(n))
            tc.compile(e, backend="cupy", memory_limit="1GiB")(w=np.ones(n))


# --- the table ------------------------------------------------------------------------------------


def test_the_table_is_of_the_cupy_that_is_installed() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "tests.cupy_table", "--show"], capture_output=True, text=True
    )
    if told.returncode:
        pytest.skip("CuPy is not installed: its names are compared where it is")
    found = json.loads(told.stdout)
    if found["version"] != API["version"]:
        pytest.skip(f"the table is of CuPy {API['version']}, not {found['version']}")
    assert found == {name: API[name] for name in found}
