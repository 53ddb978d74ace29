"""Data in dask's blocks on processes of their own: the same numbers, whoever dies."""

from __future__ import annotations

import os
import signal
import threading
import time
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests import row_models
from tests.dask_blocks import da, dask, in_blocks, of_objective
from tests.row_models import OBJECTIVES

distributed = pytest.importorskip(
    "distributed", reason="dask is not installed: pip install '.[test]'"
)

ROWS, BLOCK = 400, 50


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Two workers of one thread each, which start again when they are killed."""
    cluster = distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
    )
    with cluster, distributed.Client(cluster) as found:
        yield found


def kill_one(client: Any) -> None:
    """End one worker's process, as a machine that is switched off does."""
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_fits_are_those_of_one_machine(name: str, client: Any) -> None:
    f, by, start, here = of_objective(name, ROWS)
    there = blocks_of(f, {**start, **here}, by)
    nest = {"value": f, "gradient": tc.grad(f, by), "hessian": tc.hessian(f, by)}
    found = tc.compile(nest, backend="dask")(**start, **there)
    for key, wanted in tc.compile(nest)(**start, **here).items():
        np.testing.assert_allclose(found[key], wanted, rtol=1e-12, atol=1e-12)
    one, many = tc.newton(f, start, here), tc.newton(f, start, there, backend="dask")
    assert many.success
    assert many.nit == one.nit
    np.testing.assert_allclose(many.x[by], one.x[by], rtol=1e-12, atol=1e-12)


def blocks_of(f: tc.Expr, values: dict[str, Any], by: str) -> dict[str, Any]:
    """An objective's data, in blocks that tasks make, without its unknown."""
    found = in_blocks(f, values, BLOCK)
    del found[by]
    return found


def slowly(block: Any) -> Any:
    time.sleep(0.2)
    return block


def test_a_worker_that_dies_changes_no_bit(client: Any) -> None:
    f, by, start, here = of_objective("logistic", ROWS)
    there = blocks_of(f, {**start, **here}, by)
    lazy = {k: v.map_blocks(slowly) if hasattr(v, "dask") else v for k, v in there.items()}
    # Each task takes one block: how many share one depends on the work, and this is little.
    run = tc.compile((f, tc.grad(f, by), tc.hessian(f, by)), backend="dask")
    calm = run(**start, **lazy)
    killer = threading.Timer(0.5, kill_one, [client])
    killer.start()
    disturbed = run(**start, **lazy)
    killer.join()
    for one, other in zip(calm, disturbed, strict=True):
        assert np.array_equal(one, other)


def test_data_that_were_scattered_die_with_their_worker(client: Any) -> None:
    e = tc.sum(row_models.y)
    client.wait_for_workers(2)
    worker = next(iter(client.scheduler_info()["workers"]))
    many = 1 << 17  # so that tasks go where they are: few would be copied to the other worker
    held = client.scatter([np.ones(many), np.ones(many)], workers=[worker])
    lazy = da.concatenate([da.from_delayed(future, (many,), float) for future in held])
    run = tc.compile(e, backend="dask")
    assert run(y=lazy) == 2 * many
    os.kill(client.run(os.getpid, workers=[worker])[worker], signal.SIGKILL)
    time.sleep(1)
    with pytest.raises(tc.Error, match="scattered"):
        run(y=lazy)
    client.wait_for_workers(2)
    assert run(y=da.ones(10, chunks=5)) == 10


def _watch(on: bool) -> int:
    """Begin to watch this process's memory, or its peak since."""
    if on:
        tracemalloc.start()
        return 0
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_a_worker_holds_few_blocks_however_many_there_are(client: Any) -> None:
    """What is held depends on when the scheduler hears of what is done, not on the rows."""
    blocks, rows, columns = 128, 1 << 13, 8
    w = row_models.w
    e = tc.sum(tc.softplus(-row_models.y * (row_models.X @ w)))
    run = tc.compile((e, tc.grad(e, w), tc.hessian(e, w)), backend="dask")
    m, chunks = blocks * rows, (rows, columns)
    x = da.random.default_rng(0).normal(size=(m, columns), chunks=chunks)
    lazy = {"X": x, "y": da.ones(m, chunks=rows)}
    client.wait_for_workers(2)
    client.run(_watch, True)
    with dask.config.set({"tcalc.task-seconds": 0}):
        run(w=np.zeros(columns), **lazy)
    block = 8 * rows * (columns + 1)
    held = max(client.run(_watch, False).values()) / block
    assert held < blocks / 4  # half of what it is given in all


def test_workers_get_expressions_and_parameters_alone(client: Any) -> None:
    """What travels for one call does not grow with the rows."""
    f, by, start, here = of_objective("ridge", ROWS)
    there = blocks_of(f, {**start, **here}, by)
    kept = {k: client.persist(v) if hasattr(v, "dask") else v for k, v in there.items()}
    distributed.wait([v for v in kept.values() if hasattr(v, "dask")])
    wanted = tc.compile(tc.hessian(f, by))(**start, **here)
    for data in (kept, {**kept, "y": kept["y"] + 0}):
        found = tc.compile(tc.hessian(f, by), backend="dask")(**start, **data)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    later = tc.compile(tc.hessian(f, by), backend="dask", compute=False)(**start, **kept)
    assert len(distributed.protocol.pickle.dumps(later)) < 100_000
