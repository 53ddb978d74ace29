"""Passes over blocks on a cluster of processes: what a block costs, and what a second worker saves.

For what a block costs they are made by tasks and held by the workers before anything is timed, so
that times are those of one evaluation: graph, scheduler, tasks and the tree of reductions. Where
workers are compared blocks are made by the tasks that compute with them.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from statistics import median
from typing import Any

import numpy as np

import tcalc as tc

from . import processes

#: Rows and columns of a block whose work is nothing beside what its task costs.
SMALL, NARROW = 16, 20
#: Columns of blocks where workers are compared, and the least seconds of work that each has.
WIDE, WORK = 800, 0.1
#: Blocks for each worker there: so many that the client, which has no core to itself on a small
#: machine, is little beside them.
EACH = 30
#: With these settings of dask's no blocks share a task.
EACH_ALONE = {"tcalc.task-seconds": 0}
#: Blocks from which one evaluation is long enough to be timed once.
MANY = 1000


def objective() -> tuple[tc.Expr, tc.Expr]:
    """Logistic regression, and its unknown."""
    X, y, w = tc.var("X", ("m", "n")), tc.var("y", ("m",)), tc.var("w", ("n",))
    return tc.sum(tc.softplus(-y * (X @ w))) + w @ w, w


@contextmanager
def workers(count: int) -> Iterator[Any]:
    """A client of so many processes, each with one thread, and one for BLAS."""
    distributed = import_module("distributed")
    cluster = distributed.LocalCluster(
        n_workers=count, threads_per_worker=1, processes=True, dashboard_address=":0",
        silence_logs=50, env=processes.environment(1),
    )  # fmt: skip
    with cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(count)
        yield client


def held(client: Any, blocks: int, rows: int, columns: int) -> dict[str, Any]:
    """Data in so many blocks of so many rows, made and kept by the workers."""
    da, distributed = import_module("dask.array"), import_module("distributed")
    rng = da.random.default_rng(0)
    data = {
        "X": rng.normal(size=(blocks * rows, columns), chunks=(rows, columns)),
        "y": da.sign(rng.normal(size=blocks * rows, chunks=rows)),
    }
    kept = {name: client.persist(value) for name, value in data.items()}
    distributed.wait(list(kept.values()))
    return kept


def seconds(
    run: Callable[[], Any], repeat: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The median time of several calls, after one that is not counted; or that of one call."""
    found = []
    if repeat > 1:
        run()
    for _ in range(repeat):
        start = clock()
        run()
        found.append(clock() - start)
    return median(found)


def rows_worth(work: float) -> int:
    """Rows of a block whose Hessian takes so many seconds here."""
    step, rng = tc.compile(tc.hessian(*objective()), backend="numpy"), np.random.default_rng(0)
    rows, taken = 1 << 12, 0.0
    while taken < work:
        rows *= 2
        given = {"X": rng.normal(size=(rows, WIDE)), "y": np.ones(rows), "w": np.ones(WIDE)}
        taken = seconds(partial(step, given), 3, time.process_time)
    return rows


def tell(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def overhead(counts: Sequence[int], repeat: int) -> dict[str, Any]:
    """Times of one evaluation by the number of blocks, and the line through them."""
    alone: list[tuple[int, float]] = []
    shared: list[tuple[int, float]] = []
    step, start = tc.compile(tc.value_and_grad(*objective()), backend="dask"), np.zeros(NARROW)
    with workers(2) as client:
        for count in counts:
            data = held(client, count, SMALL, NARROW)
            for points, settings in ((alone, EACH_ALONE), (shared, {})):
                with import_module("dask").config.set(settings):
                    times = repeat if count < MANY else 1
                    points.append((count, seconds(partial(step, w=start, **data), times)))
            tell(f"{count} blocks: {alone[-1][1]:.3f} s; sharing tasks {shared[-1][1]:.3f} s")
    base, each = line(alone)
    return {"alone": alone, "shared": shared, "base": base, "each": each}


def line(points: Sequence[tuple[int, float]]) -> tuple[float, float]:
    """Seconds of a call without blocks, and of each block, by least squares of relative errors."""
    counts, times = (np.array(column, float) for column in zip(*points, strict=True))
    columns = np.stack([np.ones_like(counts), counts], 1) / times[:, None]
    (base, each), *_ = np.linalg.lstsq(columns, np.ones_like(times))
    return float(base), float(each)


def made(blocks: int, rows: int) -> dict[str, Any]:
    """Data whose blocks the task makes that computes with them: none is held, sent or moved."""
    da = import_module("dask.array")
    return {
        "X": da.random.default_rng(0).normal(size=(blocks * rows, WIDE), chunks=(rows, WIDE)),
        "y": da.ones(blocks * rows, chunks=rows),
    }


def speedup(counts: Sequence[int], repeat: int) -> dict[str, Any]:
    """Seconds of an evaluation by the number of workers, on the same blocks with enough work.

    Clusters take turns, so that what else the machine does meets all of them, and each has the
    machine to itself: workers that wait take some hundredths of a processor each. Each number is
    the best of its turns, after a small evaluation in which workers import and plan.
    """
    rows, blocks = rows_worth(WORK), EACH * max(counts)
    step = partial(tc.compile(tc.hessian(*objective()), backend="dask"), w=np.zeros(WIDE))
    best = dict.fromkeys(map(str, counts), float("inf"))
    for _ in range(repeat):
        for count in counts:
            with workers(count), import_module("dask").config.set(EACH_ALONE):
                step(**made(2 * count, rows))
                taken = seconds(partial(step, **made(blocks, rows)), 1)
            tell(f"{count} workers, {blocks} blocks of {rows} rows: {taken:.3f} s")
            best[str(count)] = min(best[str(count)], taken)
    return {"rows": rows, "columns": WIDE, "blocks": blocks, "work": WORK, "repeat": repeat,
            "seconds": best}  # fmt: skip


def run(partitions: list[int], workers: list[int], repeat: int) -> dict[str, Any]:
    """Both measurements; an empty list leaves one out."""
    return {
        "rows": SMALL,
        "overhead": overhead(partitions, repeat) if partitions else None,
        "speedup": speedup(workers, repeat) if workers else None,
    }


if __name__ == "__main__":
    processes.serve(run, confined=False)
