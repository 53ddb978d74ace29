"""Compiled objects of the C back end: loops, threads, the compiler and its cache."""

from __future__ import annotations

import gc
import hashlib
import os
import pickle
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from benchmarks.harness import peak_traced
from tcalc.backends.c import compiler, program, together
from tcalc.backends.c.cache import private
from tcalc.backends.c.library import heading
from tests.cases import CASES


def compiled(outputs: Any, **options: Any) -> Any:
    return tc.compile(outputs, backend="c", **options)


def test_loops_data_structure_and_pickles() -> None:
    rng = np.random.default_rng(0)
    X, w = tc.var("X", ("m", "n")), tc.var("w", ("n",))
    f = tc.sum(tc.softplus(X @ w))
    x, v = rng.normal(size=(300, 4)), rng.normal(size=4)
    bound = compiled(tc.hessian(f, w), data={"X": x}, args=("w",))
    wanted = tc.compile(tc.hessian(f, w))(X=x, w=v)
    np.testing.assert_allclose(bound(v), wanted)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(bound))(v), wanted)
    core = compiled(tc.hessian(f, w), structured=True)(X=x, w=v)
    np.testing.assert_allclose(core.todense(), wanted)
    state = tc.fold(lambda s, i: tc.tanh(w * s + X[i]), tc.zeros("n"), "m")
    for e in (state, tc.grad(tc.sum(state), w)):
        np.testing.assert_allclose(compiled(e)(X=x, w=v), tc.compile(e)(X=x, w=v), rtol=1e-10)


def test_large_arrays_in_tiles() -> None:
    rng = np.random.default_rng(0)
    X, y = tc.var("X", ("m", "n")), tc.var("y", ("m",))
    f = tc.sum(tc.log(1 + tc.exp(-y[:, None] * X)) * X)
    x, v = rng.normal(size=(3000, 200)), rng.normal(size=3000)
    for found, wanted in zip(
        compiled(tc.value_and_grad(f, X))(X=x, y=v),
        tc.compile(tc.value_and_grad(f, X))(X=x, y=v),
        strict=True,
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-11)


def test_results_go_as_soon_as_they_are_used() -> None:
    L, B = tc.var("L", ("n", "n")), tc.var("B", ("n", "n"))
    e = B
    for k in range(8):
        e = tc.linalg.solve_triangular(L, e, trans=k % 2, lower=True)
    one, other = compiled(e @ e), tc.compile(e @ e)
    given = {"L": np.eye(400) * 3, "B": np.ones((400, 400))}
    for step in (one, other):
        step(**given)  # makes the workspace
    assert peak_traced(lambda: one(**given)) <= peak_traced(lambda: other(**given)) + 10_000


def test_many_functions_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plans of which a function takes two steps only, so that all is handed on by memory."""
    monkeypatch.setattr(program, "MOST", 2)
    for case in CASES[::4]:
        e, arrays = case.expression(), case.sample()
        outputs = (e, tc.derivative(e, case.targets[0], 2))
        for found, wanted in zip(
            compiled(outputs)(arrays), tc.compile(outputs)(arrays), strict=True
        ):
            scale = abs(wanted).max(initial=1)
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-11 * scale)


def test_threads() -> None:
    X, y = tc.var("X", ("n", "n")), tc.var("y", ("n",))
    step = compiled(tc.value_and_grad(tc.sum(tc.exp(X @ y) * y) + tc.sum(X @ X.T), X))
    rng = np.random.default_rng(0)
    data = [(rng.normal(size=(30, 30)) / 30, rng.normal(size=30)) for _ in range(8)]
    wanted = [step(X=x, y=v)[1] for x, v in data]

    def is_right(k: int) -> bool:
        found = [step(X=data[k][0], y=data[k][1])[1] for _ in range(50)]
        return all(np.array_equal(gradient, wanted[k]) for gradient in found)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(is_right, range(8)))


def run_python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A compiler that optimises nothing, for tests of what is kept of it."""
    script = tmp_path_factory.mktemp("quick") / "cc"
    words = shlex.join(compiler.command())
    script.write_text(f'#!/usr/bin/env bash\nexec {words} "${{@/#-O3/-O0}}"\n')
    script.chmod(0o755)
    return str(script)


COMPUTE = """
import tcalc as tc
x = tc.var("x", "n")
print(tc.compile(tc.sum(tc.exp(x) * 3), backend="c")(x=[0.0, 0.0]))
"""


def test_compilers(tmp_path: Path, quick: str) -> None:
    shown = run_python(COMPUTE, CC="no-such-compiler")
    assert 'Error: backend="c" needs a C compiler; looked for CC=no-such-compiler' in shown
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho out of order >&2\nexit 1\n")
    broken.chmod(0o755)
    shown = run_python(COMPUTE, CC=str(broken), TCALC_CACHE=str(tmp_path / "one"))
    assert "out of order" in shown
    assert "tcalc.Error" in shown
    for command in ("true", 'gcc "'):
        shown = run_python(COMPUTE, CC=command, TCALC_CACHE=str(tmp_path / "one"))
        assert "tcalc.Error" in shown
    assert run_python(COMPUTE, CC=quick, TCALC_CACHE=str(tmp_path / "two")) == "6.0\n"
    made = {path: path.stat().st_mtime_ns for path in (tmp_path / "two").glob("*.so")}
    assert made
    assert run_python(COMPUTE, CC=quick, TCALC_CACHE=str(tmp_path / "two")) == "6.0\n"
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "two").glob("*.so")} == made


def libraries_in(cache: Path) -> list[Path]:
    """The libraries, the one that takes longest to compile last."""
    return sorted(cache.glob("*.so"), key=lambda library: library.stat().st_size)


def test_a_library_that_is_not_whole_is_made_again(tmp_path: Path, quick: str) -> None:
    assert run_python(COMPUTE, CC=quick, TCALC_CACHE=str(tmp_path / "c")) == "6.0\n"
    whole = {library: library.read_bytes() for library in libraries_in(tmp_path / "c")}
    small = [*whole][:-1]
    for kept, libraries in ((0, small), (4097, [*whole]), (len(whole[small[0]]) - 1, small)):
        for library in libraries:
            library.unlink()
            library.write_bytes(whole[library][:kept])
        assert run_python(COMPUTE, CC=quick, TCALC_CACHE=str(tmp_path / "c")) == "6.0\n"
        assert all(len(library.read_bytes()) > kept for library in libraries)
    for library in small:
        library.with_suffix(".sha256").unlink()
    assert run_python(COMPUTE, CC=quick, TCALC_CACHE=str(tmp_path / "c")) == "6.0\n"


def test_a_library_of_something_else_is_made_again(tmp_path: Path, quick: str) -> None:
    """One that loads, with the right digest, and has none of the functions."""
    assert run_python(COMPUTE, CC=quick, TCALC_CACHE=str(tmp_path / "c")) == "6.0\n"
    (tmp_path / "other.c").write_text("int other = 1;")
    other = tmp_path / "other.so"
    subprocess.run(
        [*compiler.command(), "-shared", "-fPIC", "-o", other, tmp_path / "other.c"], check=True
    )
    for library in libraries_in(tmp_path / "c")[:-1]:
        library.unlink()
        library.write_bytes(other.read_bytes())
        digest = hashlib.sha256(other.read_bytes()).hexdigest()
        library.with_suffix(".sha256").write_text(digest)
    assert run_python(COMPUTE, CC=quick, TCALC_CACHE=str(tmp_path / "c")) == "6.0\n"


def test_compilers_that_speak_otherwise(tmp_path: Path) -> None:
    """Messages in Latin-1, a script that no kernel runs, a compiler of something else."""
    broken, mute, wrong = tmp_path / "cc", tmp_path / "mute", tmp_path / "wrong"
    broken.write_bytes(b"#!/bin/sh\nprintf 'd\\351faut \\377\\n' >&2\nexit 1\n")
    mute.write_bytes(b"\0nothing")
    script = """#!/bin/sh
    [ "$1" = --version ] && exit
    place=$(echo "$@" | sed "s/.*-o //; s/ .*//")
    echo "int other;" | {} -shared -fPIC -x c - -o "$place"
    """
    wrong.write_text(script.format(" ".join(compiler.command())))
    spoken = ((broken, "d\ufffdfaut"), (mute, "does not run"), (wrong, "no library with"))
    for named, said in spoken:
        named.chmod(0o755)
        shown = run_python(COMPUTE, CC=str(named), TCALC_CACHE=str(tmp_path / "c"))
        assert "tcalc.Error" in shown
        assert said in shown


def test_libraries_are_closed_with_what_they_were_made_for() -> None:
    """There is a limit to how many libraries a process can have open."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        pytest.skip("only Linux lists what is mapped")
    x = tc.var("x", "n")
    shown = []
    gc.collect()
    for k in range(3):
        step = compiled(tc.sum(tc.exp(x) * (k + 7.25)))
        step(x=np.ones(3))
        shown.append({line.split()[-1] for line in maps.read_text().splitlines() if ".so" in line})
        del step
        gc.collect()
    assert len(shown[0]) == len(shown[1]) == len(shown[2])
    assert shown[0] != shown[1]


def test_a_folder_may_be_relative_and_may_vanish(tmp_path: Path) -> None:
    code = f"import os, shutil, tcalc; os.chdir({str(tmp_path)!r}){COMPUTE}"
    code += f"shutil.rmtree('kept'); os.chdir('/'){COMPUTE.replace('* 3', '* 4')}"
    assert run_python(code, TCALC_CACHE="kept") == "6.0\n8.0\n"
    assert (tmp_path / "kept").is_dir()


def test_a_folder_that_others_write_to_is_not_used(tmp_path: Path, quick: str) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    assert run_python(COMPUTE, CC=quick, TCALC_CACHE=str(shared)) == "6.0\n"
    assert not list(shared.iterdir())
    inner = shared / "mine"
    inner.mkdir(mode=0o700)
    assert not private(inner)
    assert run_python(COMPUTE, CC=quick, TCALC_CACHE=str(inner)) == "6.0\n"
    assert not list(inner.iterdir())
    shared.chmod(0o1777)  # as /tmp is: what lies there cannot be replaced by others
    assert private(inner)
    assert not private(shared)
    for mode, safe in ((0o755, True), (0o775, False), (0o757, False)):
        shared.chmod(mode)
        assert private(inner) is safe


def test_source_is_c_without_warnings(tmp_path: Path) -> None:
    """The routines, both precisions, by a compiler that complains."""
    for dtype in (np.float64, np.float32):
        text = tmp_path / f"{np.dtype(dtype).name}.c"
        text.write_text(heading(np.dtype(dtype).char), encoding="utf-8")
        done = subprocess.run(
            [*compiler.command(), "-std=gnu11", "-Wall", "-Wextra", "-Wno-unused-function",
             "-Wno-unknown-pragmas", "-Wno-sign-compare", "-c", "-o", os.devnull, str(text)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0
        assert not done.stderr


def test_functions_of_a_program_are_compiled_together(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    make = together.functions

    def counted(texts: Any, *rest: Any) -> Any:
        calls.append(len(texts))
        return make(texts, *rest)

    monkeypatch.setattr(together, "functions", counted)
    A, x = tc.var("A", ("n", "n")), tc.var("x", ("n",))
    # Factorisations stand between the functions; x[::-1] is a view of an argument.
    first = tc.solve(A, tc.exp(x) * x[::-1] + 1)
    second = tc.solve(A.T + tc.eye("n"), tc.sin(first) * first - 2)
    step = compiled(tc.cos(second) * x + tc.exp(-second) * first)
    # Of so many rows that Python has LAPACK factor them.
    a, v = np.eye(80) * 30 + np.ones((80, 80)), np.linspace(0.1, 1, 80)
    one = np.linalg.solve(a, np.exp(v) * v[::-1] + 1)
    two = np.linalg.solve(a.T + np.eye(80), np.sin(one) * one - 2)
    np.testing.assert_allclose(step(A=a, x=v), np.cos(two) * v + np.exp(-two) * one, rtol=1e-12)
    assert calls == [3]
    strided = np.linspace(0.1, 1, 160)[::2]
    step(A=a, x=v), step(A=a, x=strided), step(A=a, x=strided)
    assert len(calls) == 2  # those that read x were compiled for its strides, at once
