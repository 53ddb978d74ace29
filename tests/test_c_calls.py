"""Calls of programs that C does alone: one entry, whatever comes, and nothing else changes."""

from __future__ import annotations

import functools
import gc
import sys
import threading
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from benchmarks.problem import Task
from benchmarks.problems import PROBLEMS
from tcalc.backends.c.background import BACKGROUND
from tcalc.graph.trees import leaves

X, y, w = tc.var("X", ("m", "n")), tc.var("y", "m"), tc.var("w", "n")
A, c = tc.var("A", ("n", "n")), tc.var("c")
LOSS = tc.sum(tc.log(1 + tc.exp(-y * (X @ w))))
RNG = np.random.default_rng(0)
VALUES: dict[str, Any] = {
    "X": RNG.normal(size=(6, 4)), "y": RNG.normal(size=6), "w": RNG.normal(size=4),
    "A": RNG.normal(size=(4, 4)) / 8 + 4 * np.eye(4), "c": 0.5,
}  # fmt: skip
B = A @ A.T + tc.eye("n")
#: Its Hessian is a diagonal plus a matrix of rank two.
COSINES = tc.sum((tc.sum(1 - tc.cos(w)) + 2 * tc.cos(w) - tc.sin(w)) ** 2)
#: Outputs of which C does all: with views of inputs and of results, unit tensors, factorisations,
#: outputs that hold several steps' results, numbers, nests.
ALONE: dict[str, Any] = {
    "value and gradient": tc.value_and_grad(LOSS, w),
    "hessian": tc.hessian(LOSS, w),
    "views of an input": [tc.sum(X[1:].T * X[:-1].T, axis=0), X.T @ y, tc.exp(X.T)],
    "views of results": tc.exp(X @ w)[::-1][1:] * tc.sin(y)[:-1] + 1,
    "a diagonal": tc.einsum("i->ii", tc.exp(w)) + A,
    "an axis for another": tc.einsum("ijk->kij", tc.exp(X[:, :, None] * tc.sin(w))) * c,
    "factors": {"logdet": tc.linalg.logdet(B), "by A": tc.grad(tc.linalg.logdet(B), A)},
    "an inverse": tc.linalg.inv(B) * c,
    "a system": [tc.linalg.solve(A, w), tc.linalg.inv(A), tc.linalg.logdet(A)],
    "all entries of a transpose": tc.max(abs(A.T @ A + A).T) * tc.norm(tc.sin(A).T),
    "a Newton step": tc.compress(tc.hessian(COSINES, w)).solve(tc.grad(COSINES, w)),
    "one function of entries": tc.cos(X),
    "a sine beside a cosine": tc.sin(X) * tc.cos(X),
    "nests": {"a": (w * c, [tc.sum(w), {"b": tc.exp(w)}]), "k": c * c * 3},
    "a number": c * tc.sum(tc.exp(w * c)),
}


def names(outputs: Any) -> set[str]:
    return {name for e in leaves(outputs) for name in e.variables}


def of(outputs: Any, **others: Any) -> dict[str, Any]:
    return {name: v for name, v in (VALUES | others).items() if name in names(outputs)}


def agree(found: Any, wanted: Any, rtol: float = 1e-11) -> None:
    assert type(found) is type(wanted)
    for one, other in zip(leaves(found), leaves(wanted), strict=True):
        assert (type(one), np.shape(one), one.dtype) == (type(other), np.shape(other), other.dtype)
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol)


def entered(outputs: Any, values: dict[str, Any], **options: Any) -> Any:
    """A function whose next call with such values is an entry."""
    step = tc.compile(outputs, backend="c", **options)
    step(**values)
    assert not step._engine.entries
    step(**values)
    assert step._engine.entries
    return step


def functions_called(call: Callable[[], Any]) -> Counter[str]:
    """How many functions of Python's, and built into it, a call enters."""
    counts: Counter[str] = Counter()

    def profile(frame: Any, event: str, arg: Any) -> None:
        counts[event] += 1

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return counts


@pytest.mark.parametrize("name", ALONE)
def test_calls_by_entry_are_calls(name: str) -> None:
    outputs = ALONE[name]
    values = of(outputs)
    step = entered(outputs, values)
    plain = tc.compile(outputs, backend="numpy")
    others = {n: v * 1.25 if n == "A" else v - 0.125 for n, v in values.items()}
    for given in (values, others, values):
        agree(step(**given), plain(**given))


@pytest.mark.parametrize("kind", [float, np.float64, np.array])
@pytest.mark.parametrize("bound", [(), ("X",)])
def test_cores_that_are_arguments_are_lent_by_entry(bound: tuple[str, ...], kind: Any) -> None:
    """As they are, transposed, and as numbers; nothing holds an argument longer than a result."""
    H = tc.hessian(LOSS + c / 2 * w @ w, w)
    held = of([LOSS, c]) | {"c": kind(0.5)}
    data = {name: held.pop(name) for name in bound}
    step, plain = (tc.compile(H, structured=True, backend=b, data=data) for b in ("c", "numpy"))
    others = {name: kind(0.25) if name == "c" else value + 1 for name, value in held.items()}
    for _ in range(3):
        for given in (held, others):
            found, wanted = step(**given), plain(**given)
            for one, other in zip(found.cores, wanted.cores, strict=True):
                assert (one.strides, one.dtype) == (other.strides, other.dtype)
                np.testing.assert_allclose(one, other, rtol=1e-14)
                for value in (given | data).values():
                    assert np.shares_memory(one, value) == np.shares_memory(other, value)
    (known,) = step._known.values()
    assert bool(known.program._engine.entries) == (kind is np.array)
    count = {name: sys.getrefcount(value) for name, value in held.items()}
    found = [step(**held) for _ in range(100)]
    del found
    gc.collect()
    assert count == {name: sys.getrefcount(value) for name, value in held.items()}


def test_a_call_is_one_function_of_python_and_one_of_c() -> None:
    for outputs in (LOSS, tc.value_and_grad(LOSS, w), tc.hessian(LOSS, w)):
        for bound in ((), ("X", "y")):
            values = of(outputs)
            step = entered(outputs, values, data={n: values.pop(n) for n in bound})
            counts = functions_called(functools.partial(step, **values))
            assert counts["call"] == 1
            assert counts["c_call"] <= 2  # besides the entry what ends the profile


LAYOUTS: dict[str, Callable[[np.ndarray], Any]] = {
    "by rows": np.ascontiguousarray,
    "by columns": np.asfortranarray,
    "every second entry": lambda a: np.repeat(a, 2, axis=-1)[..., ::2],
    "backwards": lambda a: np.ascontiguousarray(a[::-1])[::-1],
    "single": lambda a: a.astype(np.float32),
    "a list": lambda a: a.tolist(),
    "a subclass": lambda a: a.view(np.matrix) if a.ndim == 2 else a,
    "other bytes": lambda a: a.astype(">f8"),
    "not aligned": lambda a: np.frombuffer(b"." + a.tobytes(), offset=1).reshape(a.shape),
    "rows of another array": lambda a: np.concatenate([a, a])[: len(a)],
}


@pytest.mark.parametrize("first", ["by rows", "by columns"])
@pytest.mark.parametrize("name", ["value and gradient", "views of an input", "factors"])
def test_arrays_may_lie_anyhow(name: str, first: str) -> None:
    outputs = ALONE[name]
    values = of(outputs)
    step = entered(outputs, {n: LAYOUTS[first](v) for n, v in values.items()})
    wanted = tc.compile(outputs, backend="numpy")(**values)
    for kind in LAYOUTS:
        given = {n: LAYOUTS[kind](v) for n, v in values.items()}
        if kind == "single":
            wanted_single = tc.compile(outputs, backend="numpy")(**given)
            agree(step(**given), wanted_single, 1e-5)
        else:
            agree(step(**given), wanted)


@pytest.mark.parametrize("kind", [float, int, np.float64, np.float32, np.int64, np.array, bool])
@pytest.mark.parametrize("first", [float, np.float64, np.array, int])
def test_numbers_of_all_kinds(first: Any, kind: Any) -> None:
    outputs = [c * w, c + 1]
    step = tc.compile(outputs, backend="c")
    plain = tc.compile(outputs, backend="numpy")
    at = np.arange(3.0)
    for make, value in ((first, 2), (first, 3), (kind, 5), (kind, 0), (first, 7)):
        given = {"c": make(value), "w": at}
        agree(step(**given), plain(**given))


def test_other_extents_and_arguments_take_the_other_way() -> None:
    step = entered(LOSS, of(LOSS), args=("w",))
    short = {"X": VALUES["X"][:3], "y": VALUES["y"][:3], "w": VALUES["w"]}
    agree(step(**short), tc.compile(LOSS, backend="numpy")(**short))
    rest = {n: v for n, v in of(LOSS).items() if n != "w"}
    agree(step(VALUES["w"], **rest), LOSS(**of(LOSS)))
    agree(step(of(LOSS)), LOSS(**of(LOSS)))
    agree(step(**of(LOSS), unused=1), LOSS(**of(LOSS)))
    with pytest.raises(TypeError, match="w is missing"):
        step(**rest)
    with pytest.raises(tc.ShapeError, match="dimension n"):
        step(**rest, w=np.ones(5))


def test_what_no_step_reads_is_looked_at_too() -> None:
    e = tc.hessian(tc.sum((X @ w - y) ** 2), w)
    step = entered(e, of(LOSS))
    for given in (
        of(LOSS),
        of(LOSS, y=VALUES["y"] * 2),
        {n: v for n, v in of(LOSS).items() if n != "y"},
    ):
        agree(step(**given), e(**given))
    with pytest.raises(tc.ShapeError, match="dimension m"):
        step(**of(LOSS, y=np.ones(9)))
    count = tc.var("n", (), integer=True)
    grown = tc.compile(tc.sum(w) * count + tc.sum(tc.exp(w)), backend="c")
    for n in (3, 4, 3):
        at = np.ones(n)
        np.testing.assert_allclose(grown(w=at, n=np.array(n)), n * n + n * np.e)


@pytest.mark.parametrize("name", ["logistic", "gp", "net"])
def test_models_are_called_by_entry(name: str) -> None:
    problem = PROBLEMS[name]
    task = Task.of(problem, problem.cases["tiny"][0])
    e = problem.expression(task.case.sizes)
    given = {n: task.data[n] for n in e.variables}
    outputs = leaves([tc.value_and_grad(e, problem.wrt), tc.hessian(e, problem.wrt)])
    step = entered(outputs, given)
    assert functions_called(functools.partial(step, **given))["call"] == 1
    agree(step(**given), tc.compile(outputs, backend="numpy")(**given), 1e-7)


def test_places_that_integers_say_are_checked_by_entry() -> None:
    at, to = tc.var("at", "k", integer=True), tc.var("to", "k", integer=True)
    e = tc.sum(tc.exp(X[at]) @ w) * tc.sum(A[at, to] * c)
    outputs = [*tc.value_and_grad(e, w), tc.grad(e, X)]
    given = {**of(e), "at": np.array([0, 3, -1]), "to": np.array([1, -4, 1])}
    step = entered(outputs, given)
    plain = tc.compile(outputs, backend="numpy")
    for integers in ([0, 3, -1], [-4, 2, 2], [3, 0, 1]):
        there = {**given, "at": np.array(integers)}
        assert functions_called(functools.partial(step, **there))["call"] == 1
        agree(step(**there), plain(**there))
    for wrong in ({"at": np.array([0, 4, 0])}, {"to": np.array([0, -5, 0])}):
        with pytest.raises(tc.ShapeError) as wanted:
            plain(**{**given, **wrong})
        with pytest.raises(IndexError) as found:
            step(**{**given, **wrong})
        assert str(found.value) == str(wanted.value)
    agree(step(**given), plain(**given))


def test_results_are_new_writable_and_nobody_elses() -> None:
    step = entered(ALONE["nests"], of(ALONE["nests"]))
    found = [leaves(step(**of(ALONE["nests"]))) for _ in range(3)]
    arrays = [a for results in found for a in results if a.ndim]
    for k, a in enumerate(arrays):
        assert a.flags.owndata
        a[...] = k
    assert [a.flat[0] for a in arrays] == list(range(len(arrays)))
    assert found[0][1] == VALUES["w"].sum()


def test_entries_keep_no_argument_and_no_result_alive() -> None:
    given = {n: np.array(v) for n, v in of(LOSS).items()}
    step = entered(tc.value_and_grad(LOSS, w), given)
    result = step(**given)[1]
    watched = [weakref.ref(a) for a in (*given.values(), result)]
    before = sys.getrefcount(None)
    for _ in range(100):
        step(**given)
    assert abs(sys.getrefcount(None) - before) < 50
    given.clear()
    del result
    gc.collect()
    assert [w() is None for w in watched] == [True] * len(watched)


def test_a_matrix_that_fails_is_told_as_ever() -> None:
    e = tc.exp(tc.linalg.cholesky(A)) + A
    step = entered(e, {"A": np.eye(3)})
    with pytest.raises(tc.LinAlgError) as wanted:
        tc.compile(e, backend="numpy")(A=-np.eye(3))
    for _ in range(3):
        with pytest.raises(tc.LinAlgError) as found:
            step(A=-np.eye(3))
        assert str(found.value) == str(wanted.value)
        assert "cholesky(A)" in str(found.value)
        np.testing.assert_allclose(step(A=4 * np.eye(3)), np.exp(2 * np.eye(3)) + 4 * np.eye(3))


def test_an_entry_that_mostly_fails_is_left() -> None:
    """The work of a call that Python has to finish is not done twice for ever."""
    e = tc.exp(tc.linalg.cholesky(A)) + A
    step = entered(e, {"A": np.eye(3)})
    (enter,) = step._engine.entries
    for _ in range(20):
        with pytest.raises(tc.LinAlgError):
            step(A=-np.eye(3))
    assert enter({"A": np.eye(3)}) is None
    np.testing.assert_allclose(step(A=4 * np.eye(3)), np.exp(2 * np.eye(3)) + 4 * np.eye(3))


def wrong_in_threads(step: Any, outputs: Any, given: list[dict[str, Any]]) -> list[int]:
    """The data, by their places, of which calls in a thread each gave what NumPy does not give."""
    wanted = [tc.compile(outputs, backend="numpy")(**one) for one in given]
    wrong: list[int] = []

    def work(k: int) -> None:
        for _ in range(50):
            for one, other in zip(step(**given[k]), wanted[k], strict=True):
                if not np.allclose(one, other, rtol=1e-9):
                    wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(len(given))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong


def test_threads_share_an_entry() -> None:
    outputs = tc.value_and_grad(tc.sum(tc.exp(tc.sin(X)) @ w), w)
    given = [{"X": RNG.normal(size=(300, 40)), "w": RNG.normal(size=40)} for _ in range(4)]
    assert not wrong_in_threads(entered(outputs, given[0]), outputs, given)


def test_layouts_without_end_make_no_entry_each() -> None:
    step = tc.compile(LOSS, backend="c")
    wide = RNG.normal(size=(6, 400))
    for k in range(1, 20):
        step(**of(LOSS, X=wide[:, : 4 * k : k]))
    assert len(step._engine.entries) <= 4


def test_numpy_goes_over_to_entries() -> None:
    step = tc.compile(tc.value_and_grad(LOSS, w), backend="auto")
    values = of(LOSS)
    wanted = step(**values)
    step(**values)
    assert BACKGROUND.wait(60)
    for _ in range(3):
        agree(step(**values), wanted)
    assert step._engine.entries
