"""The back end that begins with NumPy and goes over to C: who waits for what, and what fails."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c import compiler, together
from tcalc.backends.c.background import BACKGROUND, Background
from tcalc.calculus import modes
from tcalc.graph.nodes import postorder
from tcalc.plan.lowering.make import Known
from tcalc.run import bound as bounds
from tcalc.run import plans
from tcalc.run.backends import BACKENDS, backend_named
from tcalc.run.engine import Engine
from tests.shared import called

x = tc.var("x", "n")
#: A program of four calls.
CALLS = """
import tcalc as tc
x = tc.var("x", "n")
step = tc.compile(tc.sum(tc.exp(x) * 3), backend="auto")
print([float(step(x=[0.0, 0.0])) for _ in range(4)])
"""
F = tc.sum(tc.exp(x) * tc.sin(x) + tc.log1p(x * x))


def run(text: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, **environment},
    )  # fmt: skip


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Counts functions, by library, as they are compiled."""
    counts: list[int] = []
    make = together.functions

    def counted(texts: Any, *rest: Any) -> Any:
        counts.append(len(texts))
        return make(texts, *rest)

    monkeypatch.setattr(together, "functions", counted)
    return counts


def test_c_takes_over_after_the_second_call(compiled: list[int]) -> None:
    step = tc.compile(tc.value_and_grad(F, x), backend="auto")
    at = np.linspace(-1, 1, 7)
    wanted = tc.compile(tc.value_and_grad(F, x), backend="numpy")(x=at)
    for calls in range(1, 6):
        for found, known in zip(step(x=at), wanted, strict=True):
            np.testing.assert_allclose(found, known, rtol=1e-13)
        assert tc.wait_for_compiler(60)
        assert compiled == ([] if calls < 2 else [1])


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Is added to whenever all modes are compared."""
    made: list[int] = []
    search = modes.Accumulated._by_all_modes

    def counted(self: modes.Accumulated) -> Any:
        made.append(len(self.wrt))
        return search(self)

    monkeypatch.setattr(modes.Accumulated, "_by_all_modes", counted)
    return made


def gaussian_process(n: int) -> tuple[Any, dict[str, np.ndarray]]:
    """A function with Hessians that modes make differently; of a declared size, which is new."""
    A, s = tc.var("A", (n, n)), tc.var("s", "k")
    kernel = A @ A.T + tc.exp(s @ s) * tc.eye(n)
    f = tc.linalg.logdet(kernel) + tc.sum(tc.linalg.inv(kernel) ** 2)
    rng = np.random.default_rng(n)
    return tc.hessian(f, s), {"A": rng.normal(size=(n, n)), "s": rng.normal(size=3) / 3}


def test_modes_are_compared_at_the_second_call(searches: list[int]) -> None:
    hessian, data = gaussian_process(5)
    step = tc.compile(hessian, backend="auto")
    first = step(**data)
    assert searches == []
    again = [step(**data) for _ in range(3)]
    assert searches == [1]
    wanted = tc.compile(hessian, backend="numpy")(**data)
    for found in (first, *again):
        np.testing.assert_allclose(found, wanted, rtol=1e-10)


@pytest.mark.parametrize("backend", ["numpy", "functional"])
def test_other_back_ends_compare_modes_at_once(backend: str, searches: list[int]) -> None:
    hessian, data = gaussian_process(6)
    step = tc.compile(hessian, backend=backend)
    np.testing.assert_array_equal(step(**data), step(**data))
    assert searches == [1]


def test_a_first_call_that_takes_longer_than_comparing_is_planned_with_care(
    searches: list[int],
) -> None:
    """Nor is what is found quickly run where it takes more memory than it may."""
    hessian, data = gaussian_process(7)
    row = backend_named("auto")
    roots, longest = [hessian], replace(row.machine, worth_searching=0)
    for given, limit in ((row._replace(machine=longest), None), (row, 200)):
        searches.clear()
        engine = Engine(roots, given, limit, True)
        with suppress(tc.MemoryLimitError):
            engine.run(roots, data)
        assert len(searches) == (limit is None)
        made = [bound.patience for bound in engine.programs.values()]
        assert made == [None] * (limit is None)


def test_a_search_that_takes_long_waits_until_calls_have_taken_as_long(
    searches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of larger expressions alone: others look at the second call."""
    clock = [0.0]

    def passes() -> float:
        clock[0] += 0.01
        return clock[0]

    monkeypatch.setattr(bounds, "perf_counter", passes)
    for n, at_once, calls in ((9, 0.0, 7), (10, 100.0, 1)):
        hessian, data = gaussian_process(n)
        monkeypatch.setattr(plans, "AT_ONCE", at_once)
        monkeypatch.setattr(plans, "SEARCH", 0.065 / len(postorder([plans.first_of(hessian)])))
        step = tc.compile(hessian, backend="auto")
        for k in range(10):
            searches.clear()
            step(**data)
            assert searches == [1] * (k == calls)


def test_waiting_for_the_compiler_ends_it(
    searches: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "AT_ONCE", 0.0)
    monkeypatch.setattr(plans, "SEARCH", 1e3)
    hessian, data = gaussian_process(11)
    step = tc.compile(hessian, backend="auto")
    for _ in range(3):
        step(**data)
    assert searches == []
    assert tc.wait_for_compiler(60)
    for _ in range(3):
        step(**data)
    assert searches == [1]


def test_modes_are_compared_after_pickling_too() -> None:
    hessian, _ = gaussian_process(8)
    wanted = hessian.values
    again = pickle.loads(pickle.dumps(hessian))
    assert again is hessian
    assert len(wanted) > 1
    text = pickle.dumps(hessian)
    del hessian, again
    found = pickle.loads(text)
    assert found.ways is not None
    assert all(one is other for one, other in zip(found.values, wanted, strict=True))


def test_no_call_waits_for_the_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls return while the compiler is held."""
    held = threading.Event()
    loaded = together.functions

    def waits(*given: Any) -> Any:
        assert held.wait(60)
        return loaded(*given)

    monkeypatch.setattr(together, "functions", waits)
    step = tc.compile(tc.grad(F, x), backend="auto")
    found = [step(x=np.arange(3.0)) for _ in range(4)]
    assert not tc.wait_for_compiler(0)
    held.set()
    assert BACKGROUND.wait(60)
    np.testing.assert_allclose(found[0], step(x=np.arange(3.0)), rtol=1e-13)


@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_pinned_back_ends_change_no_digit(backend: str) -> None:
    step = tc.compile(tc.hessian(F, x), backend=backend)
    at = np.linspace(-1, 1, 9)
    first = step(x=at)
    for _ in range(3):
        assert BACKGROUND.wait(60)
        np.testing.assert_array_equal(step(x=at), first)


def test_strides_of_their_own_and_loops() -> None:
    A = tc.var("A", ("n", "n"))
    state = tc.fold(lambda s, i: tc.tanh(A @ s + A[i]), x, "n")
    step = tc.compile(tc.value_and_grad(tc.sum(state), (x, A)), backend="auto")
    rng = np.random.default_rng(0)
    a, v = rng.normal(size=(4, 4)), rng.normal(size=4)
    for given in (a, a.T, np.repeat(a, 2, axis=1)[:, ::2]):
        wanted = tc.compile(tc.value_and_grad(tc.sum(state), (x, A)), backend="numpy")(A=given, x=v)
        value, gradients = called(step, A=given, x=v)
        np.testing.assert_allclose(value, wanted[0], rtol=1e-12)
        for one, other in zip(gradients, wanted[1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


def test_without_a_compiler_numpy_answers() -> None:
    done = run(CALLS, CC="no-such-compiler")
    assert (done.stdout.strip(), done.stderr) == ("[6.0, 6.0, 6.0, 6.0]", "")


def test_a_compiler_that_fails_is_told_to_nobody(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    waits = "from tcalc.backends.c.background import BACKGROUND\nprint(BACKGROUND.wait(60))\n"
    done = run(CALLS + waits, CC=str(broken), TCALC_CACHE=str(tmp_path / "cache"))
    assert (done.stdout.strip(), done.stderr) == ("[6.0, 6.0, 6.0, 6.0]\nTrue", "")


def test_the_interpreter_ends_while_a_compiler_runs(tmp_path: Path) -> None:
    slow = tmp_path / "slow"
    slow.write_text('#!/bin/sh\n[ "$1" = --version ] && exec cc --version\nexec sleep 100\n')
    slow.chmod(0o755)
    cache = tmp_path / "cache"
    text = CALLS + "import time\nfrom tcalc.backends.c import objects\ntime.sleep(0.5)\n"
    text += "print(objects.calls.cache_info().currsize)\n"
    done = run(text, CC=str(slow), TCALC_CACHE=str(cache))
    assert (done.stdout.split("\n"), done.stderr) == (["[6.0, 6.0, 6.0, 6.0]", "0", ""], "")
    assert not list(cache.glob("*"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_children_of_a_fork_compile_what_was_left() -> None:
    text = """
import os, sys
import tcalc as tc
from tcalc.backends.c.background import BACKGROUND
x = tc.var("x", "n")
step = tc.compile(tc.sum(tc.exp(x) * 3 + tc.sin(x)), backend="auto")
step(x=[0.0]), step(x=[0.0])
child = os.fork()
assert BACKGROUND.wait(60)
assert float(step(x=[0.0, 0.0])) == 6
if child:
    sys.exit(os.waitpid(child, 0)[1])
"""
    done = run(text)
    assert (done.returncode, done.stderr) == (0, "")


def test_work_is_done_in_order_and_failures_stop_nothing() -> None:
    queue, done = Background(), list[int]()

    def work(k: int) -> Callable[[], None]:
        def at_it() -> None:
            if k == 1:
                raise tc.Error("the compiler failed")
            done.append(k)

        return at_it

    for k in range(4):
        queue.put(work(k))
    assert queue.wait(10)
    assert done == [0, 2, 3]
    queue.end()
    queue.put(work(7))
    assert not queue.wait(0.05)
    assert done == [0, 2, 3]


def test_a_defect_in_the_background_is_logged_and_holds_up_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    queue, done = Background(), list[int]()
    queue.put(lambda: done.append(1 // 0))
    queue.put(lambda: done.append(1))
    assert queue.wait(10)
    assert done == [1]
    queue.end()
    assert "ZeroDivisionError" in caplog.text


def test_compilers_in_the_background_leave_the_processor_to_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with compiler.gently():
        told = compiler._told(["sh", "-c", "nice"])
    assert int(told.stdout) >= int(compiler._told(["sh", "-c", "nice"]).stdout) + 5


def test_the_environment_says_what_runs_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    at = np.linspace(-1, 1, 7)
    for named, wanted in ((None, "auto"), ("numpy", "numpy"), ("functional", "functional")):
        monkeypatch.delenv("TCALC_BACKEND", raising=False)
        if named is not None:
            monkeypatch.setenv("TCALC_BACKEND", named)
        assert getattr(backend_named().bind, "func", None) is BACKENDS[wanted].bind
        np.testing.assert_allclose(tc.compile(F)(x=at), F(x=at), rtol=1e-13)
    monkeypatch.setenv("TCALC_BACKEND", "numppy")
    with pytest.raises(ValueError, match="TCALC_BACKEND 'numppy' does not exist; there is 'auto'"):
        tc.compile(F)


def test_of_numbers_too_a_first_call_takes_a_plan_that_is_found_quickly() -> None:
    """Of which no modes are compared; the plan that follows is as if it had been made at once."""
    X, a, b = tc.var("X", ("m", "n")), tc.var("a"), tc.var("b")
    matrix = X.T @ X * tc.exp(a) + tc.exp(b) * tc.eye("n")
    root = tc.derivative(tc.linalg.logdet(matrix) + b, a, 2)
    data = {"a": 0.1, "b": 0.2}
    row = backend_named("auto")
    for n, worth in ((2, False), (100, True)):
        data["X"] = np.random.default_rng(0).normal(size=(2 * n, n))
        engine = Engine([root], row, None, True)
        (first,) = engine.run([root], data)
        (bound,) = engine.programs.values()
        assert (bound.patience is not None, bool(bound.known)) == (worth, worth)
        (second,) = engine.run([root], data)
        (bound,) = engine.programs.values()
        assert bound.patience is None
        assert not bound.known
        np.testing.assert_allclose(first, second, rtol=1e-9)
        sizes = engine.extents({name: np.asarray(value) for name, value in data.items()}).sizes
        known: Known = {}
        plans = [engine.plans.best([root], [root.inner], sizes, {})[0]]
        assert (engine.plans.of_one_call([root], sizes, known, 8) is not None) == worth
        plans.append(engine.plans.best([root], [root.inner], sizes, known)[0])
        assert len({"\n".join(map(str, plan.steps)) for plan in plans}) == 1
        assert len({(plan.peak_bytes, plan.flops) for plan in plans}) == 1
