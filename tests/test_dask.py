"""Data in dask's blocks: the same numbers as on one machine, from tasks that hold their blocks."""

from __future__ import annotations

import pickle
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.cluster import nodes
from tcalc.cluster.tasks import PartCall, PartWork, Settings
from tcalc.partition.split import row_axes, split
from tests import row_models
from tests.dask_blocks import ROWS, Tasks, da, dask, in_blocks
from tests.row_models import CASES, OBJECTIVES, REFUSED, X, y


@pytest.fixture(autouse=True)
def _in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


# --- values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_one_machine(name: str) -> None:
    e, values = CASES[name], row_models.data(rows=ROWS)
    given = in_blocks(e, values)
    found = tc.compile(e, backend="dask")(given)
    wanted = e(**{k: values[k] for k in given})
    if hasattr(found, "dask"):
        assert found.shape == wanted.shape
        found = found.compute()
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)
    assert np.shape(found) == np.shape(wanted)
    assert np.asarray(found).dtype == wanted.dtype


@pytest.mark.parametrize("name", ["standardised", "slopes of a variance", "softmax, hessian"])
def test_without_compute_one_graph_has_all_passes(name: str) -> None:
    e, values = CASES[name], row_models.data(rows=ROWS)
    given = in_blocks(e, values)
    with Tasks() as tasks:
        later = tc.compile({"it": e}, backend="dask", compute=False)(given)["it"]
        assert not tasks.keys
        (found,) = dask.compute(later)
    np.testing.assert_allclose(found, e(**{k: values[k] for k in given}), rtol=1e-12, atol=1e-12)


def test_results_by_rows_are_arrays_in_the_blocks_of_the_data() -> None:
    e, values = CASES["probabilities"], row_models.data(rows=ROWS)
    found = tc.compile(e, backend="dask")(in_blocks(e, values))
    assert found.chunks[0] == (13, 13, 13, 13, 8)
    np.testing.assert_allclose(found[20:30].compute(), e(**values)[20:30], rtol=1e-13)


@pytest.mark.parametrize("scheduler", ["synchronous", "threads"])
def test_any_scheduler_gives_the_same_bits(scheduler: str) -> None:
    e, values = CASES["logistic, hessian"], row_models.data(rows=900)
    run = tc.compile(e, backend="dask")
    given = in_blocks(e, values, rows=10)
    first = run(given)
    with dask.config.set(scheduler=scheduler):
        for _ in range(3):
            assert np.array_equal(run(given), first)


def test_a_penalty_is_added_once_and_a_mean_divides_by_all_rows() -> None:
    c = tc.var("c")
    given = {"y": da.ones(40, chunks=3), "c": 5.0}
    assert tc.compile(tc.sum(y) + c, backend="dask")(given) == 45
    assert tc.compile(tc.mean(y) + c, backend="dask")(given) == 6


def test_blocks_without_rows_count_for_nothing() -> None:
    values = np.array([3.0, 1.0, 2.0])
    lazy = da.concatenate([da.from_array(values[:0]), da.from_array(values), da.zeros(0)])
    got = tc.compile((tc.max(y), tc.sum(y), y * 2), backend="dask")(y=lazy)
    assert got[:2] == (3, 6)
    assert got[2].compute().tolist() == [6, 2, 4]


def test_float32_stays_and_float64_anywhere_widens() -> None:
    values = row_models.data(rows=ROWS)
    single = {k: np.asarray(values[k], np.float32) for k in ("X", "y", "w")}
    f, _ = OBJECTIVES["ridge"]
    given = {**single, "c": 0.5, "X": da.from_array(single["X"], (7, 2))}
    run = tc.compile((f, tc.grad(f, "w"), X @ tc.grad(f, "w")), backend="dask")
    value, slopes, rows = run(given)
    assert (value.dtype, slopes.dtype, rows.compute().dtype) == (np.float32,) * 3
    np.testing.assert_allclose(value, f(**{**single, "c": 0.5}), rtol=1e-5)
    value, slopes, rows = run({**given, "w": values["w"]})
    assert (value.dtype, slopes.dtype, rows.compute().dtype) == (np.float64,) * 3
    wide = {k: np.asarray(v, float) for k, v in single.items()} | {"w": values["w"], "c": 0.5}
    np.testing.assert_allclose(value, f(**wide), rtol=1e-14)


def test_what_is_by_rows_but_no_array_of_dasks_is_cut_as_that_is() -> None:
    e, values = CASES["slopes by rows"], row_models.data(rows=ROWS)
    given = in_blocks(e, values) | {"U": values["U"]}
    found = tc.compile(e, backend="dask")(given).compute()
    np.testing.assert_allclose(found, e(**values), rtol=1e-12)


def test_parameters_may_have_the_dimension_of_the_rows() -> None:
    A, v = tc.var("A", ("n", "n")), tc.var("v", ("n",))
    values = np.random.default_rng(2).normal(size=(9, 9))
    given = {"A": da.from_array(values, (4, 9)), "v": np.arange(9.0)}
    wanted = given["v"] @ values @ given["v"]
    assert tc.compile(v @ A @ v, backend="dask")(given) == pytest.approx(wanted, rel=1e-13)


def test_extents_that_are_numbers_bind_dimensions() -> None:
    k = tc.var("k", integer=True)
    e = tc.sum(y) * tc.sum(tc.arange("k")) * k
    assert tc.compile(e, backend="dask")(y=da.ones(6, chunks=4), k=3) == 6 * 3 * 3


def test_a_number_of_dasks_is_a_number() -> None:
    c = tc.var("c")
    assert (
        tc.compile(c * tc.sum(y), backend="dask")(y=da.ones(6, chunks=4), c=da.ones(3).sum()) == 18
    )


@pytest.mark.parametrize("fusion", [True, False])
def test_a_task_makes_the_blocks_that_it_alone_reads(fusion: bool) -> None:
    lazy = ((da.ones((64, 3), chunks=(16, 3)) + 1) * 2).map_blocks(np.exp)
    each = {"tcalc.task-seconds": 0, "optimization.fuse.active": None if fusion else False}
    with dask.config.set(each), Tasks() as tasks:
        tc.compile(tc.sum(X @ row_models.w - y), backend="dask")(
            X=lazy, y=lazy[:, 0] + da.ones(64, chunks=16), w=np.ones(3)
        )
    others = [k for k in tasks.keys if k not in tasks.passes()]
    assert len(tasks.passes()) == 4
    assert (len(others) == 1) == fusion  # what combines them


def test_what_several_tasks_read_is_made_once() -> None:
    made: list[int] = []

    def counted(block: Any) -> Any:
        made.append(len(block))
        return block

    wide = da.ones((60, 3), chunks=(20, 3)).map_blocks(counted, meta=np.ones((0, 0)))
    given = {"X": wide.rechunk((10, 3)), "y": wide[:, 0].rechunk(10), "w": np.ones(3)}
    e = tc.sum(tc.exp(X @ row_models.w - y))
    with dask.config.set({"tcalc.task-seconds": 0}):
        with Tasks() as tasks:
            tc.compile(e, backend="dask")(given)
        assert len(tasks.passes()) == 6
        assert made == [20, 20, 20]
        later = [tc.compile(x, backend="dask", compute=False)(given) for x in (e, tc.grad(e, "w"))]
        dask.compute(*later)
    assert made == [20] * 6


def test_a_task_that_reads_blocks_which_are_held_goes_where_they_are() -> None:
    """It makes a part of what it reads, but is not said to make data."""
    spec = pytest.importorskip("dask._task_spec")
    below = {("made", k): spec.DataNode(("made", k), np.ones(5)) for k in range(2)}
    refs = [(nodes.ref(("held", k)), nodes.ref(("made", k))) for k in range(2)]
    layer = {k: nodes.task(k, np.dot, *refs[k]) for k in range(2)}
    nodes.inline(layer, [0, 1], below)
    for k, node in layer.items():
        assert node.dependencies == {("held", k)}
        assert not node.data_producer
        assert node({("held", k): np.ones(5)}) == 5


def test_blocks_that_disagree_are_cut_alike() -> None:
    e, values = OBJECTIVES["ridge"][0], row_models.data(rows=ROWS)
    given = in_blocks(e, values) | {"y": da.from_array(values["y"], 17)}
    assert tc.compile(e, backend="dask")(given) == pytest.approx(e(**values), rel=1e-13)


def test_a_table_of_functions_of_python_is_traced_over_blocks() -> None:
    values = row_models.data(rows=ROWS)

    def loss(w: Any, A: Any, t: Any) -> Any:
        return np.sum((A @ w - t) ** 2)

    step = tc.compile(tc.grad(loss), backend="dask")
    given = values["w"], da.from_array(values["X"], (13, 2)), da.from_array(values["y"], 13)
    wanted = tc.grad(loss)(values["w"], values["X"], values["y"])
    np.testing.assert_allclose(step(*given), wanted, rtol=1e-12)


def test_without_blocks_it_is_one_machine() -> None:
    e, values = OBJECTIVES["ridge"][0], row_models.data()
    with Tasks() as tasks:
        assert tc.compile(e, backend="dask")(values) == e(**values)
    assert not tasks.keys


# --- data of other kinds --------------------------------------------------------------------------


def test_data_frames_are_data() -> None:
    pd = pytest.importorskip("pandas", reason="pandas is not installed: pip install '.[test]'")
    dd = pytest.importorskip("dask.dataframe", reason="dask has no DataFrames here")
    values = row_models.data(rows=ROWS)
    frame = pd.DataFrame(values["X"], columns=list("abc")).assign(y=values["y"])
    parts = dd.from_pandas(frame, npartitions=4)
    f, _ = OBJECTIVES["ridge"]
    data = {"X": parts[list("abc")], "y": parts["y"], "c": 0.1}
    wanted = tc.newton(f, {"w": np.zeros(3)}, data={**data, "X": values["X"], "y": values["y"]})
    found = tc.newton(f, {"w": np.zeros(3)}, data=data, backend="dask")
    np.testing.assert_allclose(found.x["w"], wanted.x["w"], rtol=1e-12)


def test_rows_that_nobody_knows_the_number_of_are_counted_once() -> None:
    values = row_models.data(rows=ROWS)
    kept = values["X"][:, 0] > 0
    lazy = da.from_array(values["X"], (13, 3))
    unknown = lazy[lazy[:, 0] > 0]
    assert np.isnan(unknown.shape[0])
    run = tc.compile(tc.mean(X, axis=0), backend="dask")
    with Tasks() as first:
        found = run(X=unknown)
    with Tasks() as second:
        run(X=unknown)
    np.testing.assert_allclose(found, values["X"][kept].mean(0), rtol=1e-13)
    assert len(second.keys) < len(first.keys)
    assert np.isnan(unknown.shape[0])  # the user's array is as it was


def test_chunks_across_columns_become_one() -> None:
    values = row_models.data(rows=ROWS)
    found = tc.compile(tc.norm(X, axis=1), backend="dask")(X=da.from_array(values["X"], (20, 1)))
    np.testing.assert_allclose(found.compute(), np.linalg.norm(values["X"], axis=1), rtol=1e-14)


def test_sparse_blocks_are_multiplied_as_they_are() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    values = row_models.data(rows=ROWS)
    thin = values["X"] * (values["X"] > 0.5)
    lazy = da.from_array(thin, (20, 3)).map_blocks(sparse.csr_array)
    e = tc.sum((X @ row_models.w - y) ** 2)
    given = {"X": lazy, "y": da.from_array(values["y"], 20), "w": values["w"]}
    wanted = ((thin @ values["w"] - values["y"]) ** 2).sum()
    assert tc.compile(e, backend="dask")(given) == pytest.approx(wanted, rel=1e-13)


# --- refusals -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", REFUSED)
def test_models_over_all_rows_are_refused_before_anything_runs(name: str) -> None:
    e, node, why = REFUSED[name]
    with Tasks() as tasks, pytest.raises(tc.PartitionError) as caught:
        tc.compile(e, backend="dask")(in_blocks(e, row_models.data()))
    assert node in str(caught.value)
    assert why in str(caught.value)
    assert not tasks.keys


def test_a_hessian_over_rows_is_kept_compressed() -> None:
    f = tc.sum(tc.exp(y))
    values = row_models.data()["y"]
    found = tc.compile(tc.hessian(f, "y"), backend="dask", structured=True)(
        y=da.from_array(values, 7)
    )
    np.testing.assert_allclose(found.diagonal(), np.exp(values), rtol=1e-15)
    assert found.nbytes == values.nbytes


def test_rows_of_two_dimensions_are_refused() -> None:
    Z = tc.var("Z", ("k", "n"))
    e = tc.sum(X) + tc.sum(Z)
    with pytest.raises(tc.PartitionError, match="X over m, Z over k"):
        tc.compile(e, backend="dask")(X=da.ones((4, 2)), Z=da.ones((3, 2)))


def test_other_collections_are_no_data() -> None:
    with pytest.raises(TypeError, match="y is dask's Delayed"):
        tc.compile(tc.sum(y), backend="dask")(y=dask.delayed(1))


def test_text_is_no_data() -> None:
    with pytest.raises(TypeError, match="y is of dtype <U1"):
        tc.compile(tc.sum(y), backend="dask")(y=da.from_array(np.array(["a", "b"])))


def test_shapes_that_disagree_and_missing_data_say_what() -> None:
    run = tc.compile(X @ row_models.w, backend="dask")
    with pytest.raises(tc.ShapeError, match="w has extent 2"):
        run(X=da.ones((6, 3), chunks=2), w=np.ones(2))
    with pytest.raises(TypeError, match="w is missing"):
        run(X=da.ones((6, 3), chunks=2))
    with pytest.raises(TypeError, match="extent of dimension g is not known: pass g="):
        tc.compile(CASES["groups' sums"], backend="dask")(y=da.ones(4), group=np.zeros(4, int))


def test_what_a_task_finds_wrong_is_said_as_on_one_machine() -> None:
    P = row_models.P
    lazy = da.zeros((6, 2, 2), chunks=(2, 2, 2))
    with pytest.raises(tc.LinAlgError, match="inv"):
        tc.compile(tc.sum(tc.linalg.inv(P)), backend="dask")(P=lazy)
    with pytest.raises(tc.LinAlgError) as caught:
        tc.compile(tc.linalg.inv(X.T @ X), backend="dask")(X=da.zeros((6, 2), chunks=2))
    assert "result = X'*X" in caught.value.__notes__[0]
    positive = tc.var("p", ("m",), nonnegative=True)
    with pytest.raises(ValueError, match="p is declared nonnegative"):
        tc.compile(tc.sum(positive), backend="dask")(p=-da.ones(4, chunks=2))


def test_later_is_for_dask_alone() -> None:
    with pytest.raises(TypeError, match="compute=False is for backend='dask'"):
        tc.compile(tc.sum(y), backend="numpy", compute=False)
    with pytest.raises(TypeError, match="plain results"):
        tc.compile(tc.sum(y), backend="dask", structured=True, compute=False)


# --- tasks ----------------------------------------------------------------------------------------


def staged_for(e: tc.Expr, sizes: dict[str, int], lazy: dict[str, Any]) -> tuple[Any, Any]:
    """The first stage of what a compiled function does with such data, and these as it has them."""
    engine = tc.compile(e, backend="dask")._engine
    staged = engine._staged_for([e], sizes, lazy)
    return staged.reducing[0], engine._rows(staged, lazy)


def test_small_blocks_share_a_task_and_large_ones_do_not() -> None:
    run, lazy = tc.compile(tc.sum(tc.exp(X)), backend="dask"), da.ones((1200, 2), chunks=(1, 2))
    # A tenth of a millisecond is what a block costs a task without any work.
    for seconds, wanted in ((None, 2), (0.01, 12), (0, 1200)):
        settings = {} if seconds is None else {"tcalc.task-seconds": seconds}
        with Tasks() as tasks, dask.config.set(settings):
            run(X=lazy)
        assert len(tasks.passes()) == wanted
    for rows, wanted in ((1 << 12, 1), (1 << 18, 6), (1 << 22, 64)):
        m = 64 * rows
        stage, found = staged_for(
            tc.sum(tc.exp(X)), {"m": m, "n": 4}, {"X": da.ones((m, 4), chunks=(rows, 4))}
        )
        groups = stage.grouped(found, {"m": m, "n": 4})
        assert [k for group in groups for k in group] == list(range(64))
        assert len(groups) == pytest.approx(wanted, abs=2)


def test_a_task_computes_within_the_memory_of_its_own_rows() -> None:
    e, rows, m = CASES["softmax, gradient"], 1 << 14, 1 << 20
    sizes = {"m": m, "n": 3, "k": 4}
    lazy = {"X": da.zeros((m, 3), (rows, 3)), "label": da.zeros(m, rows, dtype=int)}
    stage, _ = staged_for(e, sizes, lazy)
    predicted = stage.plan(sizes, rows).peak_bytes
    assert predicted < 16 * rows * 8
    call = PartCall(stage.work, {"W": np.ones((3, 4)), **sizes}, np.dtype(float))
    block = {"X": np.ones((rows, 3)), "label": np.zeros(rows, int)}
    call.of_block([block[name] for name in stage.blocks])
    tracemalloc.start()
    call.of_block([block[name] for name in stage.blocks])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * predicted + 50_000


def test_a_limit_of_memory_holds_for_each_task() -> None:
    e = tc.sum(tc.cumsum(tc.exp(X), axis=1) * X)
    lazy = da.ones((100_000, 20), chunks=(1000, 20))
    assert np.isfinite(tc.compile(e, backend="dask", memory_limit="4MiB")(X=lazy))
    with pytest.raises(tc.MemoryLimitError):
        tc.compile(e, backend="dask", memory_limit="4MiB")(X=lazy.rechunk((50_000, 20)))


def test_what_workers_are_sent_is_small() -> None:
    value = row_models.derivatives("logistic")["hessian"].inner
    (reduction,) = split([value], row_axes([value], ["X", "y"])).reductions
    work = PartWork(reduction.parts, [(None, 1)], ["X", "y"], Settings(None, True, 1))
    call = PartCall(work, {"w": np.zeros(3), "m": 10, "n": 3}, np.dtype(float))
    assert len(pickle.dumps(call)) < 4000
    again = pickle.loads(pickle.dumps(call))
    block = [np.ones((2, 3)), np.ones(2)]
    assert np.array_equal(again.of_block(block)[0], call.of_block(block)[0])


def test_compiled_functions_pickle() -> None:
    given = {"y": da.from_array(np.arange(6.0), 2)}
    for options in ({}, {"compute": False}):
        run = pickle.loads(pickle.dumps(tc.compile(tc.sum(y), backend="dask", **options)))
        assert dask.compute(run(given))[0] == 15
