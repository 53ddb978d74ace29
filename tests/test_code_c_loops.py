"""Loops in printed C: what their steps compute, call and hold, counted in the text and in runs."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.languages.source.c_header import header_of
from tests.c_programs import COUNTING, Job, built, called, needs_compiler, printed

pytestmark = needs_compiler

W, U, X = tc.var("W", ("k", "k")), tc.var("U", ("k", "k")), tc.var("X", ("n", "k"))
LAST = tc.fold(lambda s, t: tc.tanh(W @ s + U @ X[t]), tc.zeros("k"), "n")


def steps(source: str) -> list[str]:
    """The loops over steps."""
    pattern = r"^    for \(ptrdiff_t t\d+ = .*?\n    }$"
    return re.findall(pattern, source, re.MULTILINE | re.DOTALL)


def test_what_needs_no_state_is_computed_ahead_for_all_steps() -> None:
    """One product for all inputs; no step reads the weights of inputs, or computes slopes."""
    source = tc.to_code(tc.grad(LAST @ LAST, (W, U)), "c")
    forward, backward = steps(source)
    assert not re.search(r"\bU\b", forward + backward)
    assert "tanh(" in forward
    assert not re.search(r"\w+h\(", backward)


def test_steps_multiply_several_rows_at_a_time_and_copy_nothing_to_itself() -> None:
    """Also where a step keeps its state before it goes on."""
    source = tc.to_code(tc.grad(LAST @ LAST, (W, U)), "c")
    forward, backward = steps(source)
    assert forward.count("multiply_rows(k, k, W, ") == 1
    assert backward.count("add_rows(k, k, W, ") == 1
    assert not re.search(r"^ *(\S+) = \1;$", source, re.MULTILINE)


def test_short_rows_that_all_steps_read_are_turned_ahead_once() -> None:
    """Neither rows so long that a sum along them is little, nor a matrix that a step makes."""
    made = {k: tc.to_code(LAST @ LAST, "c", sizes={"k": k, "n": 9}) for k in (4, 16, 200)}
    (loop,) = steps(made[16])
    assert "multiply_columns(k, k, W_columns, " in loop
    assert made[16].count("W_columns[i * k + j] = W[j * k + i];") == 1
    assert "W_columns[" not in loop + made[4] + made[200]
    own = tc.fold(lambda S, t: tc.tanh(S @ X[t])[:, None] * W, W, "n")
    assert "multiply_columns" not in tc.to_code(own, "c", sizes={"k": 16, "n": 9})


@pytest.mark.parametrize("flags", [(), ("-DSINGLE",)], ids=["double", "float"])
def test_products_by_columns_are_right_at_all_extents(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    real, rng = np.float32 if flags else np.float64, np.random.default_rng(2)
    source = tc.to_code(LAST, "c", "f0", sizes={"k": 16, "n": 9})
    library = built(source, tmp_path, "-O3", "-fopenmp-simd", *flags)
    for k in (1, 2, 7, 15, 16, 17, 32, 33, 50):
        U, W = rng.normal(size=(2, k, k)) / k
        arrays = {"U": U, "W": W, "X": rng.normal(size=(9, k))}
        status, (found,) = called(
            library, source, "f0", Job(str(k), LAST, arrays, {"k": k, "n": 9}), real
        )
        state = np.zeros(k)
        for x in arrays["X"]:
            state = np.tanh(W @ state + U @ x)
        assert status == 0
        np.testing.assert_allclose(
            found, state, rtol=1e-3 if flags else 1e-11, atol=1e-5 if flags else 1e-12
        )


def test_extents_decide_whether_there_is_room_ahead() -> None:
    """Values that are held for all steps are no larger than the slices."""
    wide = tc.var("V", ("p", "k"))
    last = tc.fold(lambda s, t: tc.tanh(s * (wide @ X[t])), tc.ones("p"), "n")
    few, many = (tc.to_code(last, "c", sizes={"n": 50, "k": 8, "p": p}) for p in (4, 400))
    assert not re.search(r"\bV\b", "".join(steps(few)))
    assert re.search(r"\bV(_columns)?\b", "".join(steps(many)))


def test_small_products_call_no_library(tmp_path: Path) -> None:
    (tmp_path / "cblas.h").write_text(COUNTING)
    e = tc.fold(lambda S, t: tc.tanh(W @ S @ U), tc.eye("k"), "n") + 0 * tc.sum(X)
    source = printed(Job("", e, {}, {}), 0)
    library = built(source, tmp_path, "-DCBLAS", f"-I{tmp_path}")
    rng = np.random.default_rng(0)
    for k in (1, 2, 4, 9):
        arrays = {"W": rng.normal(size=(k, k)), "U": rng.normal(size=(k, k)), "X": np.ones((7, k))}
        job = Job(f"{k}", e, arrays, {"k": k, "n": 7})
        count = ctypes.c_int.in_dll(library, "calls")
        count.value = 0
        status, (found,) = called(library, source, "f0", job)
        assert status == 0
        np.testing.assert_allclose(found, job.expected()[0], rtol=1e-12, atol=1e-14)
        assert count.value == (0 if k < 5 else 14)


def filtered() -> tc.Expr:
    """A Kalman filter's value, F' a F and factorisations of it in each step."""
    F, Y = tc.var("F", ("k", "k")), tc.var("Y", ("n", "k"))

    def step(state: Any, t: Any) -> Any:
        m, P, total = state
        m, P = F @ m, F @ P @ F.T + tc.eye("k")
        factor = tc.linalg.cholesky(P + tc.eye("k"))
        gain = tc.linalg.solve_triangular(factor, P, lower=True)
        white = tc.linalg.solve_triangular(factor, Y[t] - m, lower=True)
        return m + white @ gain, P - gain.T @ gain, total + white @ white

    return tc.fold(step, (tc.zeros("k"), tc.eye("k"), tc.zeros(())), "n")[2]


@pytest.mark.parametrize("flags", [(), ("-DSINGLE",)], ids=["double", "float"])
def test_programs_are_right_at_extents_that_they_were_not_made_for(
    flags: tuple[str, ...], tmp_path: Path
) -> None:
    """Optimised as users are told to, without a warning."""
    value, real = filtered(), np.float32 if flags else np.float64
    tree = {"value": value, "gradient": tc.grad(value, "F")}
    rng = np.random.default_rng(1)
    for few in (1, 2, 3):
        source = tc.to_code(tree, "c", "f0", sizes={"k": few, "n": 9})
        library = built(source, tmp_path, "-O3", "-fopenmp-simd", *flags, name=f"few{few}")
        for k in (few, 5):
            arrays = {"F": rng.normal(size=(k, k)) / k, "Y": rng.normal(size=(9, k))}
            job = Job(f"{few} {k}", tree, arrays, {"k": k, "n": 9})
            status, found = called(library, source, "f0", job, real)
            assert status == 0
            for mine, expected in zip(found, job.expected(), strict=True):
                near = 1e-3 if flags else 1e-11
                np.testing.assert_allclose(mine, expected, rtol=near, atol=near)


def test_few_rows_are_written_out_by_the_compiler() -> None:
    """Where extents are said, in one function that knows them and not in a second text."""
    value = filtered()
    made = {k: tc.to_code(value, "c", sizes={"k": k, "n": 99}) for k in (2, 16)}
    assert re.search(r"k == 2\)\n.*\n +return f_sized\(F, Y, 2, n, out, work\);", made[2])
    assert len(re.findall(r"cholesky\(\w+, k\)", made[2])) == 1
    assert "f_sized" not in header_of(made[2]) + made[16] + tc.to_code(value, "c")


def test_large_rows_are_made_in_steps() -> None:
    """As in plans: of all arrays with a row for every step two are held, as steps leave them."""
    source = tc.to_code(tc.hessian(LAST @ LAST, W), "c", sizes={"n": 64, "k": 16})
    (total,) = re.findall(r"return \(size_t\)\((.*)\) \* sizeof", source)
    assert [sorted(size.split(" * ")) for size in total.split(" + ")].count(list("kkkn")) == 2


def test_steps_make_states_as_they_lie() -> None:
    """No step copies a state to where its axes have another order."""
    source = tc.to_code(tc.hessian(LAST @ LAST, W), "c", sizes={"n": 64, "k": 16})
    assert "product(k * k, k, k, t" in source
    assert "[(l * k + i) * k + j];" not in source


def test_steps_are_written_in_the_form_of_least_work() -> None:
    """As in plans: V W + Z W is one product."""
    source = tc.to_code(tc.hessian(LAST @ LAST, W), "c", sizes={"n": 64, "k": 16})
    assert max(step.count("product(k * k") for step in steps(source)) == 2


def test_what_several_loops_read_row_by_row_is_copied_once() -> None:
    """The Hessian's loops read the slopes of all steps; they are made by columns."""
    source = tc.to_code(tc.hessian(LAST @ LAST, W), "c")
    (slope,) = re.findall(r"const real (\w+) = vector_sech\(", source)
    stored = re.findall(rf"(\w+)\[i \* n \+ j\] = {slope};", source)
    copied = re.findall(rf"\w+\[i \* k \+ j\] = ({'|'.join(stored)})\[j \* n \+ i\];", source)
    assert len(copied) == 1


@pytest.mark.parametrize(("n", "k"), [(7, 3), (7, 16), (3, 64)])
def test_steps_are_right_where_extents_are_said(n: int, k: int, tmp_path: Path) -> None:
    """Few rows are written out; short ones go by columns, forward and back; no state is copied."""
    value, sizes = LAST @ LAST, {"n": n, "k": k}
    tree = (value, tc.grad(value, (W, U)), *([tc.hessian(value, W)] if k < 4 else []))
    source = tc.to_code(tree, "c", "f0", sizes=sizes)
    rng = np.random.default_rng(n)
    arrays = {"W": rng.normal(size=(k, k)) / k**0.5, "U": rng.normal(size=(k, k)) / k}
    job = Job("steps", tree, arrays | {"X": rng.normal(size=(n, k))}, sizes)
    for flags in (), ("-O3", "-march=native", "-fopenmp-simd"):
        status, found = called(built(source, tmp_path, *flags), source, "f0", job)
        assert status == 0
        for mine, expected in zip(found, job.expected(), strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-11, atol=1e-12)
    first, *_, last = steps(source)
    if k < 8:
        assert "product(" not in first + last
    else:
        assert first.count("multiply_columns(") == last.count("multiply_columns(") == 1
        assert "add_rows(" not in source
        assert first.count("for (") == 2  # the steps, and what a step does entry by entry


def test_states_are_made_in_the_rows_that_keep_them(tmp_path: Path) -> None:
    """Several states, forward and back, any number of steps, one of them a copy of another."""
    A, x = tc.var("A", ("k", "k")), tc.var("x", ("k", "k"))
    made = tc.fold(lambda s, t: (A @ s[0] * X[t], s[0], s[2] + s[0] @ s[1]), (x, 2 * x, A), "n")
    value = tc.sum(made[0] * made[1]) + tc.sum(made[2] ** 2)
    tree = (value, tc.grad(value, (A, x)), made)
    source = tc.to_code(tree, "c", "f0")
    kept = re.findall(r"real \*\w+ = \w+(?: \+ 1 < n)? \? &(\w+)\[.*\] : (\w+);", source)
    assert len(kept) >= 2
    assert all(
        f"{state}[" not in step
        for _, state in kept
        for step in steps(source)
        if f": {state};" in step
    )
    rng, library = np.random.default_rng(0), built(source, tmp_path, "-O1")
    for n, k in [(0, 2), (1, 3), (2, 2), (6, 3)]:
        arrays = {"A": rng.normal(size=(k, k)), "x": rng.normal(size=(k, k))}
        job = Job("states", tree, arrays | {"X": rng.normal(size=(n, k))}, {"n": n, "k": k})
        status, found = called(library, source, "f0", job)
        assert status == 0
        for mine, expected in zip(found, job.expected(), strict=True):
            np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-10)
