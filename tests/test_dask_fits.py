"""Fits over data in dask's blocks, and what is said of their passes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import tcalc as tc
from tests import row_models, test_sparse_patterns
from tests.dask_blocks import da, dask, in_blocks, of_objective
from tests.row_models import CASES, COLUMNS, OBJECTIVES, X, y


@pytest.fixture(autouse=True)
def _in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


# --- fits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OBJECTIVES)
def test_newton_and_scipy_take_blocks_as_they_take_arrays(name: str) -> None:
    f, by, start, known = of_objective(name)
    lazy = in_blocks(f, {**start, **known})
    lazy.pop(by)
    here, there = (
        tc.newton(f, start, data=data, backend=backend)
        for data, backend in ((known, "numpy"), (lazy, "dask"))
    )
    assert there.success
    assert there.nit == here.nit
    np.testing.assert_allclose(there.x[by], here.x[by], rtol=1e-12, atol=1e-12)
    one, many = (
        tc.scipy_functions(f, by, data=data, backend=backend)
        for data, backend in ((known, "numpy"), (lazy, "dask"))
    )
    x = one.pack(start)
    many.pack(start)
    np.testing.assert_allclose(many.fun(x), one.fun(x), rtol=1e-12)
    np.testing.assert_allclose(many.jac(x), one.jac(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(many.hess(x), one.hess(x), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(many.hessp(x, x), one.hessp(x, x), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_compressed_hessians_solve_as_those_of_one_machine(name: str) -> None:
    f, by, start, known = of_objective(name)
    step = tc.compile(tc.hessian(f, by), backend="dask", structured=True)
    found = step(in_blocks(f, {**start, **known}))
    wanted = tc.compile(tc.hessian(f, by), structured=True)(**start, **known)
    np.testing.assert_allclose(found.todense(), wanted.todense(), rtol=1e-12, atol=1e-12)
    slopes = tc.grad(f, by)(**start, **known)
    np.testing.assert_allclose(found.solve(slopes), wanted.solve(slopes), rtol=1e-9)


@pytest.mark.parametrize(
    "name", ["tables", "another order", "reversed within rows", "slopes of one"]
)
def test_jacobians_over_several_variables_are_those_of_one_machine(name: str) -> None:
    model, data = test_sparse_patterns.MODELS[name], test_sparse_patterns.drawn(2)
    step = test_sparse_patterns.compiled(model, backend="dask")
    lazy = {k: da.from_array(data[k], (5, *data[k].shape[1:])) for k in "ijuZ"}
    found = step({k: v for k, v in (data | lazy).items() if k in step._taken()})
    wanted = test_sparse_patterns.slopes(model, data)
    np.testing.assert_allclose(found.todense(), wanted, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.to_scipy().toarray(), wanted, rtol=1e-12, atol=1e-12)


def test_unknowns_by_rows_are_fitted_with_blocks_of_data() -> None:
    u, t, c = tc.var("u", ("m",)), tc.var("t", ("m",)), tc.var("c")
    f = tc.sum((u - t) ** 2) + tc.sum(tc.exp(u)) + c**2
    t_here = row_models.data()["y"]
    start = {"u": np.zeros(t_here.size), "c": 1.0}
    here = tc.newton(f, start, data={"t": t_here})
    there = tc.newton(f, start, data={"t": da.from_array(t_here, 5)}, backend="dask")
    np.testing.assert_allclose(there.x["u"], here.x["u"], rtol=1e-12)


# --- what is said ---------------------------------------------------------------------------------


def test_the_plan_and_explain_say_the_passes() -> None:
    e = CASES["variance"]
    lazy = da.from_array(row_models.data()["X"], (7, COLUMNS))
    run = tc.compile(e, backend="dask", data={"X": lazy})
    assert "2 passes over the rows (m) of X" in str(run.plan_for(w=(COLUMNS,)))
    text = str(tc.explain(e, over=["X"]))
    assert "pass 1, sums" in text
    assert "pass 2, sums" in text
    assert "cannot be computed from parts" in str(tc.explain(X @ X.T, over=["X"]))


def test_without_dask_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcalc.cluster.program.find_spec", lambda name: None)
    with pytest.raises(tc.Error, match="pip install"):
        tc.compile(tc.sum(y), backend="dask")
