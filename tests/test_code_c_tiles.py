"""Printed C that multiplies matrices by parts of their rows, for all remainders of these."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numpy as np
import pytest

import tcalc as tc
from benchmarks.printed_c import scipy_cblas
from tests.c_programs import COUNTING, Job, built, called, needs_compiler

LARGE = {"m": 1000, "n": 300, "k": 5}
T, W = tc.var("T", ("m", "n")), tc.var("W", ("m", "n"))
U, V = tc.var("U", ("m", "k")), tc.var("V", ("n", "k"))
SQUARES = tc.sum((W * (T - U @ V.T)) ** 2)
CASES = {
    "a sum": SQUARES,
    "its derivative by rows": tc.grad(SQUARES, "U"),
    "that by columns": tc.grad(SQUARES, "V"),
    "several results": (SQUARES, tc.grad(SQUARES, ("U", "T"))),
    "an array": tc.exp(U @ V.T) * W,
    "two products": (tc.tanh(U @ V.T) * tc.tanh((T @ V) @ V.T)) @ V,
    "rows of an array that is a result": (E := tc.tanh(U @ V.T), E @ V),
}


def printed(name: str) -> str:
    return tc.to_code(CASES[name], "c", sizes=LARGE)


def body(name: str) -> str:
    return printed(name).rpartition("_workspace(")[2]


@needs_compiler
@pytest.mark.parametrize("library", [False, True], ids=["loops", "BLAS"])
@pytest.mark.parametrize("name", CASES)
def test_parts_of_rows_are_all_rows(name: str, library: bool, tmp_path: Path) -> None:
    source, flags = printed(name), scipy_cblas(tmp_path) if library else []
    program = built(source, tmp_path, "-O1", *(["-DCBLAS", *flags] if flags else []))
    rng = np.random.default_rng(0)
    for m, n, k in [
        (0, 3, 2),
        (1, 1, 1),
        (63, 9, 3),
        (64, 5, 2),
        (65, 4, 0),
        (200, 0, 2),
        (130, 7, 9),
    ]:
        shapes = {"T": (m, n), "W": (m, n), "U": (m, k), "V": (n, k)}
        arrays = {v: rng.normal(size=s) for v, s in shapes.items()}
        job = Job(name, CASES[name], arrays, {"m": m, "n": n, "k": k})
        status, found = called(program, source, "f", job)
        assert status == 0
        for a, b in zip(found, job.expected(), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-11 * max(1, np.abs(b).max(initial=0)))


def test_products_stand_where_their_rows_are_used() -> None:
    for name in ("a sum", "its derivative by rows", "an array", "two products"):
        head = printed(name).rpartition("_workspace(")[2].partition("}")[0]
        assert "i % 64" in body(name), name
        assert "m * n" not in head, name


def test_others_are_made_as_a_whole() -> None:
    assert "i % 64" not in tc.to_code(SQUARES, "c")  # it may have many terms
    assert "i % 64" not in tc.to_code(SQUARES, "c", sizes={"m": 30, "n": 30, "k": 5})
    assert "out_0[i % 64" not in body("rows of an array that is a result")


@needs_compiler
def test_products_that_a_library_would_rearrange_go_by_pieces(tmp_path: Path) -> None:
    """Of large ones, and of rows with rows: some columns and some terms at a time, all of them."""
    (tmp_path / "cblas.h").write_text(COUNTING)
    crossed, large = U @ V.T, T.T @ (2 * W)
    program = built(tc.to_code((crossed, large), "c"), tmp_path, "-DCBLAS", f"-I{tmp_path}")
    source, count = tc.to_code((crossed, large), "c"), ctypes.c_int.in_dll(program, "calls")
    rng = np.random.default_rng(0)
    for (m, n, k), calls in {(7, 3, 5): 1, (40, 33, 9): 3, (300, 70, 2): 12}.items():
        shapes = {"T": (m, n), "W": (m, n), "U": (m, k), "V": (n, k)}
        arrays = {v: rng.normal(size=s) for v, s in shapes.items()}
        job = Job("products", (crossed, large), arrays, {"m": m, "n": n, "k": k})
        count.value = 0
        status, found = called(program, source, "f", job)
        assert status == 0
        assert count.value == calls
        np.testing.assert_allclose(found[0], arrays["U"] @ arrays["V"].T, atol=1e-12)
        np.testing.assert_allclose(found[1], 2 * arrays["T"].T @ arrays["W"], atol=1e-11)
