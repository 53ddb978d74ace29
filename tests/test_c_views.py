"""What Python's steps return may be a view of the workspace: C does not write over what is read."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests.c_programs import Job, problems

Source = random.Random
EXTENT = 8


def views(draw: Source, x: tc.Expr) -> tc.Expr:
    """Two entries of a vector that is read as a matrix, or as itself."""
    shape = draw.choice(((2, 4), (4, 2)))
    X = x.reshape(*shape)
    start = draw.randrange(EXTENT - 1)
    if shape == (2, 4):
        return draw.choice((
            X[:, draw.randrange(4)], X[draw.randrange(2), start % 3 : start % 3 + 2],
            X.sum(1), x[start : start + 2], tc.diag(X[:, 1:3]), (X @ X.T)[0],
        ))  # fmt: skip
    return draw.choice((X[draw.randrange(4)], X[1:3, draw.randrange(2)], X.sum(0), (X.T @ X)[1]))


def program(draw: Source) -> Callable[[tc.Expr], tc.Expr]:
    terms = [(draw.choice((1, 2, -3)), draw.choice((2, 3, 4))) for _ in range(draw.randrange(2, 5))]

    def f(x: tc.Expr) -> tc.Expr:
        total = tc.sum(x) * 0
        for factor, power in terms:
            total = total + tc.sum((views(draw, x) + factor * views(draw, x)) ** power)
        return tc.log(tc.exp(total / 50) + 1) if draw.random() < 0.3 else total

    return f


@pytest.mark.parametrize("seed", range(30))
def test_second_derivatives_of_views_of_one_vector(seed: int) -> None:
    draw = random.Random(seed)
    x = tc.var("x", EXTENT)
    e = program(draw)(x)
    at = np.arange(float(EXTENT)) / 5
    d = tc.derivative(e, x, 2, draw.choice(("forward", "reverse", "cross-country")))
    expected = tc.compile(d, backend="numpy")(x=at)
    np.testing.assert_allclose(tc.compile(d, backend="c")(x=at), expected, rtol=1e-9, atol=1e-9)


def test_a_reshaped_block_is_read_before_it_is_written_over() -> None:
    D, at = np.arange(9.0).reshape(3, 3) / 9, np.arange(9.0) / 9 + 0.1
    x = tc.var("x", 9)
    e = tc.log(tc.sum(tc.exp(D @ tc.diag(x.reshape(3, 3)))))
    d = tc.derivative(e, x, 2, "forward")
    expected = tc.compile(d, backend="numpy")(x=at)
    np.testing.assert_allclose(tc.compile(d, backend="c")(x=at), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("joined", [tc.add, tc.multiply, tc.maximum])
@pytest.mark.parametrize("backend", ["numpy", "c"])
def test_what_is_read_as_a_view_is_not_written_over(joined: Any, backend: str) -> None:
    n = 6
    X, at = tc.var("X", (n, n)), np.arange(n * n * 1.0).reshape(n, n) / 30
    Y, y = tc.cos(X) @ tc.exp(X), np.cos(at) @ np.exp(at)
    U = joined(Y, Y.reshape(n * n)[::-1].reshape(n, n))
    u = getattr(np, joined.__name__)(y, y.ravel()[::-1].reshape(n, n))
    step = tc.compile(U @ U @ tc.sin(X), backend=backend)
    for _ in range(2):
        np.testing.assert_allclose(step(X=at), u @ u @ np.sin(at), rtol=1e-12)


def test_printed_c_reads_reshaped_slices_where_they_begin(tmp_path: Path) -> None:
    x, at = tc.var("x", EXTENT), np.arange(float(EXTENT)) / 5
    cut, back = x[2:6].reshape(2, 2), x[::-1][1:5].reshape(2, 2)
    jobs = [
        Job(f"{k}", e, {"x": at}, {})
        for k, e in enumerate((cut, cut @ x[1:3], cut @ back, x.reshape(2, 4)[1].reshape(2, 2)))
    ]
    for seed in range(10):
        draw = random.Random(seed)
        d = tc.derivative(program(draw)(x), x, 2, draw.choice(("forward", "reverse")))
        jobs.append(Job(f"seed {seed}", d, {"x": at}, {}))
    assert not problems(jobs, tmp_path, 1e-9)
