"""Entries of blocks beside others that are nan or infinite; blocks without any, or other ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests.dask_blocks import da, dask
from tests.row_models import X, y

#: Every other entry is nan or infinite.
READ: dict[str, tuple[Callable[..., Any], list[int], list[int]]] = {
    "a row": (lambda A, b, i: A[1], [1], [0, 1, 2]),
    "the last row but one": (lambda A, b, i: A[-2], [2], [0, 1, 2]),
    "an entry of a vector": (lambda A, b, i: b[2] + 1, [2], [0]),
    "a row that an integer names": (lambda A, b, i: A[i[0]], [3], [0, 1, 2]),
    "two rows": (lambda A, b, i: np.stack([A[1], A[3]]), [1, 3], [0, 1, 2]),
    "two entries of each of two": (
        lambda A, b, i: np.stack([np.stack([A, 2 * A], axis=2)[1], np.stack([A, A], axis=2)[3]]),
        [1, 3], [0, 1, 2],
    ),
    "a column": (lambda A, b, i: np.sum(A[:, 1]), [0, 1, 2, 3], [1]),
    "every other column": (lambda A, b, i: np.sum(A[:, ::2], axis=1), [0, 1, 2, 3], [0, 2]),
    "columns that integers name": (lambda A, b, i: A[:, i[1:]], [0, 1, 2, 3], [0, 2]),
    "columns taken from the end": (
        lambda A, b, i: np.take(A, [-1, 0, -1], axis=1), [0, 1, 2, 3], [0, 2]
    ),
}  # fmt: skip
MOVED: dict[str, Callable[[Any], Any]] = {
    "flipped": lambda A: np.flip(A, 1),
    "rolled": lambda A: np.roll(A, 1, 1),
    "joined": lambda A: np.concatenate([A[:, 1:], A], axis=1),
    "stacked": lambda A: np.stack([A, A + 1], axis=1),
    "differences": lambda A: A[:, 1:] - A[:, :-1],
}
CHUNKS = [(4,), (1, 1, 1, 1), (0, 3, 0, 1), (1, 3)]


@pytest.fixture(autouse=True)
def _in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="synchronous"):
        yield


def cut(a: Any, rows: tuple[int, ...], known: bool = True) -> Any:
    """An array in blocks of so many rows; where nobody knows how many, one more is left out."""
    if known:
        return da.from_array(a, (rows, *a.shape[1:]))
    more = np.concatenate([a[:2], np.full_like(a[:1], np.nan), a[2:]])
    kept, rows = np.arange(len(more)) != 2, (*rows[:-1], rows[-1] + 1)
    return da.from_array(more, (rows, *a.shape[1:]))[da.from_array(kept, (rows,))]


def computed(e: tc.Expr, **values: Any) -> Any:
    return dask.compute(tc.compile(e, backend="dask")(**values))[0]


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("rows", CHUNKS)
@pytest.mark.parametrize("name", READ)
def test_entries_that_are_not_read_count_for_nothing(
    name: str, rows: tuple[int, ...], known: bool
) -> None:
    formula, kept, columns = READ[name]
    rng = np.random.default_rng(3)
    A, b = (rng.choice([np.nan, np.inf, -np.inf], shape) for shape in ((4, 3), (4,)))
    A[np.ix_(kept, columns)] = rng.normal(size=(len(kept), len(columns)))
    b[kept] = rng.normal(size=len(kept))
    i = tc.var("i", (3,), integer=True)
    e, index = formula(X, y, i), np.array([-1, 2, 0])
    given = {"X": cut(A, rows, known), "y": cut(b, rows, known), "i": index}
    found = computed(e, **{k: given[k] for k in e.variables})
    np.testing.assert_allclose(found, formula(A, b, index), rtol=1e-13)


@pytest.mark.parametrize("rows", CHUNKS)
@pytest.mark.parametrize("name", MOVED)
def test_entries_that_are_not_numbers_stay_where_they_are(name: str, rows: tuple[int, ...]) -> None:
    A = np.arange(12.0).reshape(4, 3)
    A[1, 1], A[3, 0], A[2, 2] = np.nan, np.inf, -np.inf
    found = computed(MOVED[name](X), X=cut(A, rows))
    np.testing.assert_allclose(found, MOVED[name](A), rtol=1e-13)


def test_a_row_times_what_is_infinite_reads_no_other_row() -> None:
    c, w = tc.var("c"), tc.var("w", ("n",))
    A = np.array([[1.0, 2.0], [0.0, 0.0], [3.0, 4.0]])
    assert computed(y[0] * c, y=cut(A[:, 0], (1, 1, 1)), c=np.inf) == np.inf
    assert computed(X[0] @ w, X=cut(A, (1, 1, 1)), w=np.array([np.inf, 1.0])) == np.inf


def test_slopes_of_a_row_are_zero_elsewhere() -> None:
    A = np.array([[np.nan, np.inf], [2.0, 3.0], [np.inf, 1.0]])
    found = computed(tc.grad(tc.sum(X[1] ** 2), "X"), X=cut(A, (2, 1)))
    np.testing.assert_array_equal(found, [[0, 0], [4, 6], [0, 0]])


def test_neighbouring_columns_are_read_without_a_matrix_that_selects_them() -> None:
    Z = tc.var("Z", ("m", 20_000))
    e = tc.sum((Z[:, 1:] - Z[:, :-1]) ** 2)
    run = tc.compile(e, backend="dask", memory_limit="8MiB")
    steps = np.tile(np.arange(20_000.0), (4, 1))
    assert run(Z=cut(steps, (2, 2))) == 4 * 19_999


def test_integers_by_rows_need_not_be_of_dasks() -> None:
    label = tc.var("label", ("m",), integer=True)
    A, at = np.arange(12.0).reshape(4, 3), np.array([2, 0, -1, 1])
    e = tc.einsum("ij,ij->i", X, tc.eye("n")[label])
    found = computed(e, X=cut(A, (1, 3)), label=at)
    np.testing.assert_array_equal(found, A[np.arange(4), at])


@pytest.mark.parametrize("columns", [3, 0])
def test_arrays_without_rows_need_not_agree_in_their_blocks(columns: int) -> None:
    one = da.zeros((0, columns), chunks=((0, 0, 0), (1,) * columns or (0, 0)))
    e = (tc.sum(X * y[:, None], axis=0), X * 2)
    total, rows = tc.compile(e, backend="dask")(X=one, y=da.zeros(0, chunks=((0, 0),)))
    assert total.tolist() == [0] * columns
    assert rows.compute().shape == (0, columns)


@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize(
    ("entries", "weights", "wanted"),
    [
        ([1, np.inf, 3], [1, 1, 1], np.inf), ([1, np.inf, 3], [1, 0, 1], 3 + np.log1p(np.exp(-2))),
        ([np.inf, 800, 1], [1, 0, 1], np.inf), ([-np.inf] * 3, [1, 1, 1], -np.inf),
    ],
)  # fmt: skip
def test_infinite_exponents_have_the_sums_of_one_machine(
    entries: list[float], weights: list[float], wanted: float, rows: int
) -> None:
    e = tc.weighted_logsumexp(y, tc.var("v", ("m",)))
    given = {"y": da.from_array(np.array(entries, float), rows), "v": np.array(weights, float)}
    assert tc.compile(e, backend="dask")(given) == pytest.approx(wanted, rel=1e-14)


def test_rows_are_counted_again_for_another_array_of_the_same_name() -> None:
    held = {"v": np.arange(6.0)}

    def source() -> Any:
        made = dask.delayed(lambda: held["v"])(dask_key_name="load-v")
        return da.from_delayed(made, (np.nan,), float)

    run, first = tc.compile(tc.mean(y), backend="dask"), source()
    assert run(y=first) == 2.5
    held["v"] = np.arange(3.0) + 10
    assert run(y=source()) == 11
    with pytest.raises(tc.Error, match="block 0 of y has 3 rows, and had 6"):
        run(y=first)
