"""Sparse data on a device: SciPy's are uploaded, CuPy's are taken as they are."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tcalc as tc
from tcalc.support.namespaces import on_device, on_host
from tests import test_sparse_entries
from tests.cupy_device import DEVICE
from tests.cupy_stand_in import has_device
from tests.test_sparse_data import DENSE, EXPRESSIONS, FORMATS, LOSS, M, N, X, empty, sparse, w

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("device")]
stand_in_only = pytest.mark.skipif(has_device(), reason="counts what the stand-in is asked for")
#: Expressions with a product of two sparse matrices, which CuPy waits for.
TWICE = {"normal equations", "weighted", "other way round", "weighted other way round",
         "two sparse", "norm", "Hessian"}  # fmt: skip


def there(data: dict[str, Any], form: str) -> dict[str, Any]:
    """All of the data on the device."""
    module, cp = importlib.import_module("cupyx.scipy.sparse"), importlib.import_module("cupy")
    make = getattr(module, f"{form}_matrix")
    held = sparse(data, form)
    return {k: make(a) if scipy.sparse.issparse(a) else cp.asarray(a) for k, a in held.items()}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_matrices_of_the_device_are_taken(name: str, form: str) -> None:
    e = EXPRESSIONS[name]
    found = tc.compile(e, backend="cupy")(there(DENSE, form))
    assert on_device(found)
    np.testing.assert_allclose(on_host(found), e(DENSE), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", test_sparse_entries.VALUES)
def test_entries_of_matrices_of_the_device_are_read_there(name: str) -> None:
    e, data = test_sparse_entries.VALUES[name], test_sparse_entries.data(7, 5, 0.4)
    used = {k: data[k] for k in e.variables}
    module, cp = importlib.import_module("cupyx.scipy.sparse"), importlib.import_module("cupy")
    for root in (e, *[tc.grad(e, k) for k in used if k in "yuvUV"]):
        step = tc.compile(root, backend="cupy")
        wanted = root(used)
        for given in (used, {
            k: module.csr_matrix(a) if scipy.sparse.issparse(a) else cp.asarray(a)
            for k, a in used.items()
        }):  # fmt: skip
            found = step(given)
            np.testing.assert_allclose(on_host(found), wanted, rtol=1e-11, atol=1e-12)


@stand_in_only
@pytest.mark.parametrize("name", sorted(EXPRESSIONS.keys() - TWICE))
def test_products_with_arrays_wait_for_results_alone(name: str) -> None:
    given = sparse(DENSE)
    data = {k: given[k] for k in "XY"}
    rest = {k: a for k, a in given.items() if k not in data}
    for step, arrays in (
        (tc.compile(EXPRESSIONS[name], backend="cupy", data=data), rest),
        (tc.compile(EXPRESSIONS[name], backend="cupy"), given),
    ):
        step(arrays)
        before = DEVICE.waits
        step(arrays)
        assert DEVICE.waits - before == 1


@stand_in_only
@pytest.mark.parametrize("name", sorted(TWICE))
def test_products_of_two_sparse_matrices_wait_once_each(name: str) -> None:
    """cuSPARSE finds the pattern of one first, and CuPy allocates what that needs."""
    e, given = EXPRESSIONS[name], sparse(DENSE)
    step = tc.compile(e, backend="cupy")
    step(given)
    (bound,) = step._engine.programs.values()
    pairs = [s for s in bound.program.plan.steps if s.kind in ("sparse_gram", "sparse_inner")]
    before = DEVICE.waits
    step(given)
    assert DEVICE.waits - before <= 1 + len(pairs)
    assert pairs


@stand_in_only
def test_a_product_of_data_alone_is_made_once() -> None:
    given = sparse(DENSE)
    step = tc.compile(tc.sin(w) @ (X.T @ X), backend="cupy", data={"X": given["X"]})
    step(w=DENSE["w"])
    before = DEVICE.waits
    step(w=DENSE["w"])
    assert DEVICE.waits - before == 1


@pytest.mark.parametrize("shape", [(0, 5), (7, 0), (1, 1)])
@pytest.mark.parametrize("name", ["gradient", "Hessian", "two sparse", "row sums", "total"])
def test_empty_matrices(name: str, shape: tuple[int, int]) -> None:
    data = empty(shape)
    found = tc.compile(EXPRESSIONS[name], backend="cupy")(sparse(data))
    np.testing.assert_allclose(found, EXPRESSIONS[name](data))


def test_compressed_hessians_and_newton() -> None:
    given = {"X": sparse(DENSE)["X"], "y": DENSE["y"]}
    wanted = tc.compile(tc.hessian(LOSS, w), structured=True)(**given, w=DENSE["w"])
    held = tc.compile(tc.hessian(LOSS, w), structured=True, backend="cupy", data=given)
    found = held(w=DENSE["w"])
    np.testing.assert_allclose(found.solve(DENSE["w"]), wanted.solve(DENSE["w"]), rtol=1e-9)
    assert all(map(on_device, found.cores))
    fit = tc.newton(LOSS, {"w": np.zeros(N)}, data=given, backend="cupy")
    best = tc.newton(LOSS, {"w": np.zeros(N)}, data={"X": DENSE["X"], "y": DENSE["y"]})
    np.testing.assert_allclose(fit.x["w"], best.x["w"], atol=1e-8)


def test_other_back_ends_say_that_it_is_on_a_device() -> None:
    with pytest.raises(TypeError, match=r'X is an array on a device; compile\(backend="cupy"\)'):
        tc.compile(EXPRESSIONS["product"], backend="numpy")(there(DENSE, "csr"))


def test_duplicates_are_added() -> None:
    once = scipy.sparse.coo_array(DENSE["X"])
    row, column = np.tile(once.coords[0], 2), np.tile(once.coords[1], 2)
    twice = scipy.sparse.coo_array((np.tile(once.data / 2, 2), (row, column)), shape=(M, N))
    found = tc.compile(EXPRESSIONS["product"], backend="cupy")(X=twice, w=DENSE["w"])
    np.testing.assert_allclose(found, DENSE["X"] @ DENSE["w"], rtol=1e-12)
