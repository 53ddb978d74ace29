"""Printed C of long functions: in parts, each of which compilers take little time for."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tcalc as tc
from benchmarks.problems import kalman
from tcalc.languages.source import c_function, c_parts
from tests.c_programs import Job, built, called, needs_compiler

pytestmark = needs_compiler

n = 5
x, S, c = tc.var("x", "n"), tc.var("S", ("n", "n")), tc.var("c")
X = tc.var("X", ("n", "k"))
fixed = np.arange(6.0).reshape(2, 3)


def data(e: tc.Expr, **sizes: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    shapes = {v.name: [sizes[str(k)] for k in v.shape] for v in e.variables.values()}
    return {name: rng.uniform(0.5, 1.5, shape) for name, shape in shapes.items()}


#: What several parts name: numbers, constants, how often a loop ran, what fails, and why.
total = tc.sum(x * x)
until, steps, _ = tc.fold(
    lambda s, t: s * c / 2, tc.ones("n"), until=lambda s: tc.sum(s) < 1e-3, limit=50
)
definite = S @ S.T + tc.eye("n")
EXPRESSIONS: dict[str, tc.Expr] = {
    "numbers": tc.sin(x / total) * total + tc.cumsum(x) / tc.sum(tc.exp(x)),
    "constants": tc.sum(fixed * c) * x + tc.sum(tc.exp(fixed)) * tc.cumsum(x),
    "loops that end": until * steps + tc.sum(tc.cumsum(until)) * steps,
    "factors": tc.linalg.inv(definite) @ x + tc.linalg.logdet(definite) * x,
    "loops": tc.fold(lambda s, t: tc.tanh(S @ s + X[:, t]), x, "k") + total,
}


@pytest.mark.parametrize("sizes", [{}, {"n": n, "k": 3}], ids=["any extents", "few"])
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_parts_compute_what_the_whole_does(
    name: str, sizes: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where every statement is a part; at the extents that are few, and at others."""
    monkeypatch.setattr(c_function, "WHOLE", 0)
    monkeypatch.setattr(c_parts, "ENDED", 1)
    e = EXPRESSIONS[name]
    known = {k: size for k, size in sizes.items() if k in tc.graph.nodes.dimensions([e])}
    source = tc.to_code(e, "c", sizes=known)
    assert source.count("f_part1") > 1
    assert ("_sized(" in source) == bool(known)
    library = built(source, tmp_path)
    for extents in ({"n": n, "k": 3}, {"n": 9, "k": 4}):
        job = Job(name, e, data(e, **extents), extents)
        status, (found,) = called(library, source, "f", job)
        assert status == 0
        np.testing.assert_allclose(found, job.expected()[0], rtol=1e-11)


def test_a_part_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(c_function, "WHOLE", 0)
    monkeypatch.setattr(c_parts, "ENDED", 1)
    e = tc.linalg.cholesky(S) @ x
    for sizes in ({}, {"n": 3}):
        source = tc.to_code(e, "c", sizes=sizes)
        library = built(source, tmp_path, name=f"of{len(sizes)}")
        for sign, expected in ((1, 0), (-1, 1)):
            arrays = {"S": sign * np.eye(3), "x": np.ones(3)}
            status, _ = called(library, source, "f", Job("S", e, arrays, {"n": 3}))
            assert status == expected


def test_derivatives_of_filters_are_no_long_functions() -> None:
    """Thousands of lines, of which compilers read a few at a time."""
    value = kalman.expression({})
    source = tc.to_code(tc.hessian(value, ("F", "q", "r")), "c", sizes={"n": 100, "k": 2})
    functions = re.split(r"^}$", source, flags=re.MULTILINE)
    assert source.count("\n") > 10 * c_function.WHOLE
    assert max(text.count("\n") for text in functions) < 2 * c_function.WHOLE
