"""Loops that threads share: the same bits for any number of them, and nothing left behind."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c import loopnests, pool, sharing
from tcalc.backends.host.pool import POOL
from tcalc.backends.numpy import tiles
from tcalc.support.threads import default_threads, group_cores
from tests.cases import CASES, Case
from tests.shared import plan_for_machine

SOURCE = Path(pool.__file__).with_name("routines") / "pool.c"
#: What becomes of machines where loops over tiles take all that they may.
TINY = {"large": 2, "tile": 12, "wide_tile": 24, "worth_choosing": 0}


def at_once(outputs: Any, **arrays: Any) -> tuple[Any, pool.Counts]:
    """Results of three threads, compared with those of one, and what the pool did for them."""
    alone = tc.compile(outputs, backend="c", threads=1)
    step = tc.compile(outputs, backend="c", threads=3)
    wanted, found = alone(**arrays), step(**arrays)
    before = pool.counts()
    for _ in range(3):
        for one, again, other in zip(*map(leaves, (found, step(**arrays), wanted)), strict=True):
            np.testing.assert_array_equal(one, again)
            np.testing.assert_array_equal(one, other)
    after = pool.counts()
    return found, pool.Counts(*[n - m for n, m in zip(after, before, strict=True)])


def leaves(nest: Any) -> list[Any]:
    return [e for part in nest for e in leaves(part)] if isinstance(nest, tuple) else [nest]


# --- what is computed -----------------------------------------------------------------------------


@pytest.fixture
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """All loops that can be are shared, an index or a tile at a time."""
    for module, name in ((sharing, "LEAST"), (sharing, "CHUNK"), (loopnests, "LANES")):
        monkeypatch.setattr(module, name, 1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.usefixtures("everything")
def test_cases_in_chunks(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nests in steps for one machine, loops over tiles for another."""
    e, arrays = case.expression(), case.sample()
    wanted = tuple(
        tc.derivative(e, tc.var(v, case.shapes[v]), k)
        for v in case.targets
        for k in range(min(case.order, 2) + 1)
    )
    others = tc.compile(wanted, backend="functional")(arrays)
    for tiled in (False, True):
        if tiled:
            plan_for_machine(monkeypatch, **TINY)
        found = tc.compile(wanted, backend="c", threads=2)(arrays)
        for one, other in zip(found, others, strict=True):
            size = max(1.0, float(np.abs(other).max(initial=0)))
            np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11 * size)


X, Y, u, v = tc.var("X", ("m", "n")), tc.var("Y", ("m", "n")), tc.var("u", "m"), tc.var("v", "n")
LARGE = {
    "an entry each": tc.exp(X) * Y,
    "two shapes of one sum": (tc.exp(X).sum(axis=0), tc.exp(X).sum(axis=1), tc.exp(X).sum()),
    "value and gradient": tc.value_and_grad(tc.sum(tc.log(1 + tc.exp(-u[:, None] * X)) * Y), X),
    "across": tc.sin(X) + tc.cos(X.T).T,
    "a product in tiles": tc.exp(X @ tc.tanh(v)) @ Y,
    "turned": tc.exp(X.T) * v[:, None],
}


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("shape", [(700, 300), (3, 60_001), (60_001, 3)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_large_arrays(name: str, shape: tuple[int, int], dtype: Any) -> None:
    if name == "across" and shape[0] != shape[1]:
        shape = (333, 333)
    rng = np.random.default_rng(0)
    m, n = shape
    data = {"X": rng.normal(size=shape), "Y": rng.normal(size=shape), "u": rng.normal(size=m)}
    data |= {"v": rng.normal(size=n) / n}
    names = {name for e in leaves(LARGE[name]) for name in e.variables}
    arrays = {k: a.astype(dtype) for k, a in data.items() if k in names}
    found, counts = at_once(LARGE[name], **arrays)
    assert counts.shared >= 3
    for one, other in zip(
        leaves(found), leaves(tc.compile(LARGE[name], backend="functional")(**arrays)), strict=True
    ):
        size = max(1.0, float(np.abs(other).max(initial=0)))
        np.testing.assert_allclose(one, other, rtol=0, atol=size * 1000 * np.finfo(dtype).eps)


A, B = tc.var("A", ("k", 8, 8)), tc.var("B", ("k", 8, 5))
SYMMETRIC = A @ tc.swapaxes(A, 1, 2) + 8 * tc.eye(8)
BATCHES = {
    "factors": tc.linalg.cholesky(SYMMETRIC),
    "factors and their pullback": tc.grad(tc.sum(tc.linalg.cholesky(SYMMETRIC)), A),
    "products": tc.exp(A @ B) @ tc.const(np.ones((5, 2))),
    "functions of rows": tc.logsumexp(B, axis=2),
    "entries at places": tc.var("C", ("k", 8))[:, np.arange(5000)[::-1] % 8] * 3,
}


@pytest.mark.parametrize("name", BATCHES)
def test_batches(name: str) -> None:
    rng = np.random.default_rng(0)
    data = {"A": rng.normal(size=(1000, 8, 8)), "B": rng.normal(size=(30_000, 8, 5))}
    data |= {"C": rng.normal(size=(40, 8))}
    if "A" in BATCHES[name].variables:
        data["B"] = data["B"][:1000]
    arrays = {k: a for k, a in data.items() if k in BATCHES[name].variables}
    found, counts = at_once(BATCHES[name], **arrays)
    assert counts.shared >= 3
    wanted = tc.compile(BATCHES[name], backend="functional")(**arrays)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("bad", [[0], [999], [700, 400, 500], [1, 600]])
def test_the_error_of_a_batch_is_that_of_its_first_item(bad: list[int]) -> None:
    S = tc.var("S", ("k", 8, 8))
    given = np.tile(2 * np.eye(8), (1000, 1, 1))
    given[bad] *= -1
    for e in (tc.linalg.cholesky(S), tc.linalg.cholesky(S + 0 * S)):
        texts = []
        for backend, threads in (("numpy", 1), ("c", 1), ("c", 3)):
            with pytest.raises(tc.LinAlgError) as caught:
                tc.compile(e, backend=backend, threads=threads)(S=given)
            texts.append(str(caught.value))
        assert texts[1:] == texts[:1] * 2


def test_small_arrays_are_nobody_elses_work() -> None:
    f = tc.value_and_grad(tc.sum(tc.exp(X) * Y), X)
    rng = np.random.default_rng(0)
    for m in (1, 10, 50):
        _, counts = at_once(f, X=rng.normal(size=(m, 20)), Y=rng.normal(size=(m, 20)))
        assert counts[:2] == (0, 0)


def test_one_thread_starts_none() -> None:
    code = """
import numpy as np, tcalc as tc
from tcalc.backends.c import pool
x = tc.var("x", "n")
step = tc.compile(tc.sum(tc.exp(x) * x), backend="c")
step(x=np.ones(300_000))
print(pool.counts())
"""
    assert run_python(code, OMP_NUM_THREADS="1") == "Counts(shared=0, alone=1, workers=0)\n"
    assert run_python(code, OMP_NUM_THREADS="3,2") == "Counts(shared=1, alone=0, workers=2)\n"


# --- who may, and how many ------------------------------------------------------------------------


def test_numbers_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    x = tc.var("x", "n")
    for wrong in (0, -1):
        with pytest.raises(ValueError, match=f"threads= is at least 1, not {wrong}"):
            tc.compile(x, threads=wrong)
    for odd in (True, 1.0, "2"):
        with pytest.raises(TypeError, match="threads= is a number of threads, not"):
            tc.compile(x, threads=odd)  # type: ignore[arg-type]
    for backend in ("auto", "numpy", "c", "functional"):
        assert tc.compile(2 * x, backend=backend, threads=np.int64(2))(x=[1.0]) == 2
    structured = tc.compile(tc.hessian(tc.sum(x**3), x), structured=True, threads=2)
    assert structured(x=[1.0]).todense() == 6
    for text, wanted in (("3", 3), ("2,1", 2), (" 4 ", 4)):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert default_threads() == wanted
    for text in ("", "0", "many", "-2"):
        monkeypatch.setenv("OMP_NUM_THREADS", text)
        assert default_threads() <= len(os.sched_getaffinity(0))


def test_cores_of_a_control_group(tmp_path: Path) -> None:
    inner = tmp_path / "root" / "a" / "b"
    inner.mkdir(parents=True)
    membership = tmp_path / "cgroup"
    membership.write_text("1:cpu,cpuacct:/a/b\n0::/a/b\n")
    assert list(group_cores(membership, tmp_path / "root")) == []
    (inner / "cpu.max").write_text("150000 100000\n")
    (inner.parent / "cpu.max").write_text("max 100000\n")
    (tmp_path / "root" / "cpu.max").write_text("400000 100000\n")
    assert list(group_cores(membership, tmp_path / "root")) == [2, 4]


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_children_of_a_fork_have_threads_of_their_own() -> None:
    shown = run_python("""
import os, sys
import numpy as np, tcalc as tc
from tcalc.backends.c import pool
x = tc.var("x", "n")
step = tc.compile(tc.value_and_grad(tc.sum(tc.exp(x) * x), x), backend="c", threads=3)
given = np.linspace(0, 1, 300_000)
wanted = step(x=given)
before = pool.counts()
for _ in range(3):
    child = os.fork()
    if not child:
        shared = pool.counts()
        assert shared.workers == 0
        same = [np.array_equal(a, b) for a, b in zip(step(x=given), wanted)]
        assert pool.counts() == (shared.shared + 1, shared.alone, 2)
        os._exit(0 if all(same) else 1)
    print(os.waitpid(child, 0)[1], end=" ")
step(x=given)
print(pool.counts().workers == before.workers == 2)
""")
    assert shown == "0 0 0 True\n"


def test_calls_from_many_threads() -> None:
    """One of them has the pool, the others work alone meanwhile: the same bits."""
    f = tc.value_and_grad(tc.sum(tc.exp(X @ tc.tanh(v)) * u), (X, v))
    step = tc.compile(f, backend="c", threads=3)
    rng = np.random.default_rng(0)
    data = [
        {"X": rng.normal(size=(400, 300)) / 300, "u": rng.normal(size=400),
         "v": rng.normal(size=300)}
        for _ in range(6)
    ]  # fmt: skip
    wanted = [leaves(step(**given)) for given in data]

    def is_right(k: int) -> bool:
        return all(
            np.array_equal(one, other)
            for _ in range(15)
            for one, other in zip(leaves(step(**data[k])), wanted[k], strict=True)
        )

    with ThreadPoolExecutor(6) as several:
        assert all(several.map(is_right, range(6)))


def test_interrupts_leave_a_pool_that_works() -> None:
    shown = run_python("""
import os, signal, threading
import numpy as np, tcalc as tc
from tcalc.backends.c import pool
x = tc.var("x", "n")
step = tc.compile(tc.sum(tc.exp(x) * x), backend="c", threads=2)
given, caught = np.linspace(0, 1, 400_000), 0
wanted = step(x=given)
for k in range(5):
    timer = threading.Timer(0.02 + 0.003 * k, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        while True:
            step(x=given)
    except KeyboardInterrupt:
        caught += 1
    timer.join()
    before = pool.counts()
    assert step(x=given) == wanted
    assert pool.counts().shared == before.shared + 1
print(caught)
""")
    assert shown == "5\n"


@pytest.mark.parametrize("flags", [(), ("-fsanitize=thread",)], ids=["plain", "sanitized"])
def test_the_pool_by_itself(flags: tuple[str, ...], tmp_path: Path) -> None:
    """Four callers at once; where the compiler has a thread sanitizer it watches them."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    driver = Path(__file__).with_name("pool_driver.c").read_text()
    (tmp_path / "pool.c").write_text(SOURCE.read_text() + driver)
    made = subprocess.run(
        [compiler, "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror",
         "-Wno-unused-parameter", *flags, "-pthread", "-o", "pool", "pool.c"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if made.returncode and flags:
        pytest.skip(f"the compiler has no thread sanitizer: {made.stderr[:200]}")
    assert not made.returncode, made.stderr
    command = [str(tmp_path / "pool")]
    if flags and (fixed := shutil.which("setarch")):
        command = [fixed, "-R", *command]  # its memory stands where others put theirs at random
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    if "unexpected memory mapping" in done.stderr:
        pytest.skip("the thread sanitizer does not run on this kernel")
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)


# --- tiles of NumPy -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LARGE)
@pytest.mark.parametrize("shape", [(700, 300), (60_001, 3)])
def test_tiles_of_numpy(name: str, shape: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits with three threads and with one; small loops are nobody else's work."""
    rng = np.random.default_rng(0)
    m, n = (333, 333) if name == "across" else shape
    data = {"X": rng.normal(size=(m, n)), "Y": rng.normal(size=(m, n)), "u": rng.normal(size=m)}
    data |= {"v": rng.normal(size=n) / n}
    names = {k for e in leaves(LARGE[name]) for k in e.variables}
    arrays = {k: a for k, a in data.items() if k in names}
    before = POOL.shared
    wanted = tc.compile(LARGE[name], backend="numpy", threads=1)(**arrays)
    assert POOL.shared == before
    monkeypatch.setattr(tiles, "LEAST", 1)
    step = tc.compile(LARGE[name], backend="numpy", threads=3)
    for _ in range(3):
        for found, other in zip(leaves(step(**arrays)), leaves(wanted), strict=True):
            np.testing.assert_array_equal(found, other)
    assert POOL.shared >= before + 3


@pytest.mark.parametrize("name", [*LARGE, "views of what a tile holds"])
def test_tiles_of_numpy_are_done_by_whoever_has_time(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the thread that calls gets no piece: what it reads behind them is there."""
    if name in LARGE:
        outputs, shapes = LARGE[name], {"X": (333, 333), "Y": (333, 333), "u": 333, "v": 333}
    else:
        outputs, shapes = hessian_of_kernel(), {"X": (300, 4), "w": 4, "Y": (300, 300)}
    rng = np.random.default_rng(0)
    names = {k for e in leaves(outputs) for k in e.variables}
    arrays = {k: rng.normal(size=shape) / 10 for k, shape in shapes.items() if k in names}
    wanted = tc.compile(outputs, backend="numpy", threads=1)(**arrays)
    monkeypatch.setattr(tiles, "LEAST", 1)

    def by_another(piece: Callable[[int, int], None], pieces: int, threads: int) -> None:
        for k in range(pieces):
            piece(k, threads - 1)

    monkeypatch.setattr(POOL, "share", by_another)
    found = tc.compile(outputs, backend="numpy", threads=2)(**arrays)
    for one, other in zip(leaves(found), leaves(wanted), strict=True):
        np.testing.assert_array_equal(one, other)


def hessian_of_kernel() -> tc.Expr:
    """Of a plan whose tiles hold squares of differences, which they read in two orders."""
    X, Y, w = tc.var("X", ("n", "d")), tc.var("Y", ("n", "n")), tc.var("w", "d")
    kernel = tc.exp(-((X[:, None, :] - X[None, :, :]) ** 2) @ tc.exp(w))
    return tc.hessian(tc.sum(kernel * Y), w)


def test_errors_in_pieces_are_those_of_the_first() -> None:
    done: list[int] = []

    def piece(number: int, worker: int) -> None:
        assert 0 <= worker < 3
        if number % 5 == 4:
            raise ValueError(number)
        done.append(number)

    for _ in range(20):
        done.clear()
        with pytest.raises(ValueError, match=r"^4$"):
            POOL.share(piece, 40, 3)
        assert {0, 1, 2, 3} <= set(done)
        POOL.share(lambda number, worker: done.append(-number), 30, 3)
        assert {-number for number in range(30)} <= set(done)


def test_a_piece_that_shares_does_it_alone() -> None:
    done: list[tuple[int, int]] = []

    def inner(number: int, worker: int) -> None:
        done.append((number, worker))

    POOL.share(lambda number, worker: POOL.share(inner, 5, 3), 4, 2)
    assert sorted(done) == sorted([(k, 0) for k in range(5)] * 4)
