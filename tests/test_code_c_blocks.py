"""Printed C that goes through the rows of matrices by blocks, at all remainders of these."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tcalc as tc
from benchmarks.printed_c import declared
from tcalc.languages.source.c_blocks import BLOCK, by_blocks
from tcalc.languages.source.c_memory import reused
from tcalc.languages.source.c_nests import Array, Line, Loop, Node, lines
from tests.c_programs import Job, built, called, needs_compiler

X, Z = tc.var("X", ("m", "n")), tc.var("Z", ("m", "k"))
w, v, u, y = tc.var("w", "n"), tc.var("v", "n"), tc.var("u", "k"), tc.var("y", "m")
LOSS = tc.sum(tc.softplus(-y * (X @ w)))
HINGE = tc.sum(tc.maximum(0, 1 - y * (X @ w)) ** 2)
PAIR = tc.sum(tc.tanh(X @ w) * tc.sin(Z @ u))
WEIGHTS = tc.var("V", ("n", "n"))


class Case(NamedTuple):
    """Expressions, and the same by NumPy from arrays under the names of the variables."""

    tree: Any
    by_hand: Callable[..., Any]


def sigmoid(t: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-t))


def slopes(X: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
    return -y * sigmoid(-y * (X @ w))


def curved(X: np.ndarray, w: np.ndarray, y: np.ndarray, v: np.ndarray) -> np.ndarray:
    s = sigmoid(y * (X @ w))
    return X.T @ (y**2 * s * (1 - s) * (X @ v))


def of_pair(X: np.ndarray, Z: np.ndarray, w: np.ndarray, u: np.ndarray) -> Any:
    a, b = X @ w, Z @ u
    s = np.sin(b) / np.cosh(a) ** 2
    return (
        np.sum(np.tanh(a) * np.sin(b)),
        X.T @ s,
        Z.T @ (np.tanh(a) * np.cos(b)),
        np.outer(s, w),
    )


def two_layers(V: np.ndarray, w: np.ndarray) -> np.ndarray:
    a = np.tanh(V @ w)
    return V.T @ ((1 - a**2) * (V.T @ (1 - np.tanh(V @ a) ** 2)))


CASES = {
    "gradient": Case(tc.grad(LOSS, w), lambda X, w, y: X.T @ slopes(X, w, y)),
    "all of one function": Case(
        (LOSS, tc.grad(LOSS, w), tc.hessian(LOSS, w) @ v),
        lambda X, w, y, v: (
            np.sum(np.logaddexp(0, -y * (X @ w))),
            X.T @ slopes(X, w, y),
            curved(X, w, y, v),
        ),
    ),
    "kinks": Case(
        tc.grad(HINGE, w), lambda X, w, y: X.T @ (-2 * y * np.maximum(0, 1 - y * (X @ w)))
    ),
    "a sum of squares": Case(tc.sum((X @ w - y) ** 2), lambda X, w, y: np.sum((X @ w - y) ** 2)),
    "nothing between": Case(X.T @ (X @ w), lambda X, w: X.T @ (X @ w)),
    "a product alone": Case(X.T @ y, lambda X, y: X.T @ y),
    "two matrices": Case((PAIR, *tc.grad(PAIR, (w, u, X))), of_pair),
    "two layers": Case(tc.grad(tc.sum(tc.tanh(WEIGHTS @ tc.tanh(WEIGHTS @ w))), w), two_layers),
}


@needs_compiler
@pytest.mark.parametrize("flags", [(), ("-DSINGLE",)], ids=["double", "float"])
@pytest.mark.parametrize("name", CASES)
def test_blocks_of_rows_are_all_rows(name: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    case, real = CASES[name], np.float32 if flags else np.float64
    source, rng = tc.to_code(case.tree, "c"), np.random.default_rng(0)
    library = built(source, tmp_path, "-O2", "-fopenmp-simd", *flags)
    names = [p.split()[-1] for p in declared(source, "f") if p.startswith("const")]
    several = isinstance(case.tree, tuple)
    for m in (0, 1, 3, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK + 5):
        for n, k in ((0, 2), (1, 0), (3, 1), (8, 5), (37, 20)):
            shapes = {"X": (m, n), "Z": (m, k), "V": (n, n), "w": n, "v": n, "u": k, "y": m}
            arrays = {p: rng.uniform(-1, 1, shapes[p]) for p in names}
            job = Job(name, case.tree, arrays, {"m": m, "n": n, "k": k})
            status, found = called(library, source, "f", job, real)
            assert status == 0
            wanted = case.by_hand(**arrays)
            for a, b in zip(found, wanted if several else [wanted], strict=True):
                size = max(1, np.abs(b).max(initial=0))
                np.testing.assert_allclose(a, b, atol=(2e-5 if flags else 1e-13) * size)


def body(e: Any) -> str:
    return tc.to_code(e, "c").rpartition("\nint f(")[2]


def test_rows_that_are_read_twice_are_read_by_blocks() -> None:
    """One loop over blocks, calls in it, and the functions of numbers in a loop of their own."""
    (block,) = re.findall(r"^    for [^\n]* low \+= .*?^    }", body(tc.grad(LOSS, w)), re.M | re.S)
    assert re.findall(r"(\w+_rows)\(high - low, n, X \+ low \* n, ", block) == [
        "multiply_rows", "add_rows",
    ]  # fmt: skip
    assert block.count("for (") == 2
    assert "[i - low] = vector_sigmoid(" in block


def test_what_blocks_hold_is_all_the_memory() -> None:
    """Neither products of all rows nor a copy of the result that is scaled in the end."""
    heads = [tc.to_code(e, "c").rpartition("_workspace(")[2] for e in (LOSS, tc.grad(LOSS, w))]
    assert f"return (size_t)({BLOCK} + {BLOCK}) * sizeof(real);" in heads[1]


def test_names_of_the_user_are_not_those_of_blocks() -> None:
    low, high = tc.var("low", ("high", "n")), tc.var("high1", "high")
    text = tc.to_code(tc.grad(tc.sum(tc.softplus(high * (low @ w))), w), "c")
    given = re.findall(r"(?:ptrdiff_t|real|restrict) \**(\w+)[,)]", text.rpartition("int f(")[2])
    made = re.findall(r"ptrdiff_t (\w+) = ", text.rpartition("int f(")[2])
    assert len(made) > 3
    assert not {*given} & {*made}


def test_rows_that_depend_on_earlier_ones_stay_in_turn() -> None:
    """A solve's rows: each product reads what the one before has written."""
    arrays = {"A": Array("A", ("n", "n")), "x": Array("x", ("n",))}
    dot: list[Node] = [
        Line("t", "=", "0", "real"),
        Loop("_1", "n", [Line("t", "+=", "A[_0 * n + _1] * x[_1]")]),
        Line("x[_0]", "=", "exp(t)"),
    ]
    loop: list[Node] = [Loop("_0", "n", dot)]
    assert by_blocks(loop, arrays, ()) == loop
    dot[-1] = Line("z[_0]", "=", "exp(t)")
    assert "multiply_rows(high - low, n, A + low * n, x, t);" in "\n".join(
        lines(by_blocks(loop, arrays | {"z": Array("z", ("n",))}, ()))
    ).replace("    ", "")


def test_a_result_is_filled_where_it_stays() -> None:
    """Where each entry is read as it is written; not where entries of others are still read."""
    arrays = {"t": Array("t", ("n",)), "out": Array("out", ("n",))}
    begin = Loop("_0", "n", [Line("t[_0]", "=", "a[_0]")])
    same = Loop("_0", "n", [Line("out[_0]", "=", "2 * t[_0]")])
    other = Loop("_0", "n", [Line("out[_0]", "=", "2 * t[n - 1 - _0]")])
    assert "\n".join(lines(reused([begin, same], arrays, ["out"]))).count("out[") == 3
    assert lines(reused([begin, other], arrays, ["out"])) == lines([begin, other])
