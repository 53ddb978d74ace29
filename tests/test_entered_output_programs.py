"""Printed and compiled programs of sorts, triangles, inverses read on diagonals, and infinity."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests.c_programs import Job, compiled, needs_compiler
from tests.interpreters import octave
from tests.source_programs import Program
from tests.source_runs import computed

RNG = np.random.default_rng(8)
w, A, B, T = (
    tc.var("w", 4),
    tc.var("A", ("n", "n")),
    tc.var("B", ("n", "n")),
    tc.var("T", (3, 3, 3)),
)
C, E = tc.var("C", (3, 3)), tc.var("E", (0, 3))
VALUES: dict[str, Any] = {
    "w": np.array([0.5, -2.0, 3.25, 1.0]), "A": RNG.normal(size=(3, 3)),
    "B": RNG.normal(size=(3, 3)), "C": RNG.normal(size=(3, 3)), "T": RNG.normal(size=(3, 3, 3)),
    "E": np.zeros((0, 3)),
}  # fmt: skip


def slopes(run: Callable[[np.ndarray], Any], at: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """The gradient by central differences of fourth order."""
    found = np.zeros(at.shape)
    for place in np.ndindex(at.shape):
        moved = [at.copy() for _ in range(4)]
        for k, m in zip((-2, -1, 1, 2), moved, strict=True):
            m[place] += k * step
        far_left, left, right, far = map(run, moved)
        found[place] = (8 * (right - left) - (far - far_left)) / (12 * step)
    return found


def weighted_rows(C: np.ndarray, B: np.ndarray) -> float:
    return float((np.linalg.qr(C)[0] * B).sum())


PRINTED: dict[str, tuple[tc.Expr, tuple[str, ...], Callable[..., Any]]] = {
    "sorted": (tc.sort(w), ("w",), np.sort),
    "median": (tc.median(w), ("w",), np.median),
    "quantile": (tc.quantile(w, 0.3), ("w",), lambda w: np.quantile(w, 0.3)),
    "largest": (w[tc.argmax(w)], ("w",), np.max),
    "largest squared": (tc.grad(w[tc.argmax(w)] ** 2, "w"), ("w",), lambda w: 6.5 * (w == 3.25)),
    "inverse on a diagonal": (tc.einsum("ij,ji->i", tc.linalg.inv(A), B @ B), ("A", "B"),
                              lambda A, B: np.diag(np.linalg.inv(A) @ B @ B)),
    "inverse with stacks": (tc.einsum("ij,jik->ik", tc.linalg.inv(C), T), ("C", "T"),
                            lambda C, T: np.array([np.linalg.inv(C)[i] @ T[:, i]
                                                   for i in range(3)])),
    "triangle": (tc.sum(tc.tril(tc.exp(C))), ("C",), lambda C: np.tril(np.exp(C)).sum()),
    "rows of QR": (tc.grad(tc.sum(tc.linalg.qr(A)[0] * B), "A"), ("A", "B"),
                   lambda A, B: slopes(lambda at: weighted_rows(at, B), A)),
}  # fmt: skip


@needs_compiler
def test_programs_of_sorts_and_inverses_in_c(tmp_path: Path) -> None:
    jobs = [
        Job(name, e, {k: VALUES[k] for k in given}, {"n": 3} if "A" in given else {})
        for name, (e, given, _) in PRINTED.items()
    ]
    for program in compiled(jobs, tmp_path):
        _, given, wanted = PRINTED[program.job.name]
        status, (found,) = program()
        assert not status
        answer = wanted(*[VALUES[k] for k in given])
        np.testing.assert_allclose(found, answer, rtol=1e-8, atol=1e-9, err_msg=program.job.name)


def test_programs_of_sorts_and_inverses_in_octave(tmp_path: Path) -> None:
    programs = [
        Program({name: e}, {k: VALUES[k] for k in given}) for name, (e, given, _) in PRINTED.items()
    ]
    for (name, (_, given, wanted)), found in zip(
        PRINTED.items(), octave(programs, tmp_path), strict=True
    ):
        assert not isinstance(found, str), (name, found)
        answer = wanted(*[VALUES[k] for k in given])
        np.testing.assert_allclose(found[name], answer, rtol=1e-8, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("language", ["numpy", "torch"])
@pytest.mark.parametrize("name", PRINTED)
def test_programs_of_sorts_and_inverses_in_python(name: str, language: str) -> None:
    e, given, wanted = PRINTED[name]
    arrays = {k: VALUES[k] for k in given}
    answer = wanted(*arrays.values())
    np.testing.assert_allclose(computed(e, arrays, language), answer, rtol=1e-8, atol=1e-9)


def test_arrays_without_entries_in_julia() -> None:
    # A product with ones is no array of the program; what is given keeps its shape.
    assert "zeros(0, 3)" in tc.to_code(E + np.zeros((0, 3)), "julia") + tc.to_code(
        tc.where(E > 0, E, np.ones((0, 3))), "julia"
    )


# --- compiled programs ----------------------------------------------------------------------------

v = tc.var("v", 7)
LINE = RNG.normal(size=7)


@needs_compiler
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("e", "wanted"), [
    (v * np.inf, lambda v: v * np.inf), (v * -np.inf, lambda v: v * -np.inf),
    (tc.maximum(v, -np.inf) + 1, lambda v: v + 1),
    (tc.minimum(v * v, np.inf), lambda v: v * v),
    (tc.where(v > 0, np.inf, v), lambda v: np.where(v > 0, np.inf, v)),
    (tc.where(v > 0, -np.inf, v) * 2, lambda v: np.where(v > 0, -np.inf, 2 * v)),
    (tc.exp(v - np.inf), lambda v: 0 * v),
])  # fmt: skip
def test_infinity_in_compiled_programs(
    e: tc.Expr, wanted: Callable[..., Any], dtype: type[np.floating[Any]]
) -> None:
    given = LINE.astype(dtype)
    found = tc.compile(e, backend="c")(v=given)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, wanted(given), rtol=3 * float(np.finfo(dtype).eps))


@needs_compiler
@pytest.mark.parametrize(("e", "given", "wanted"), [
    (lambda a: tc.pad(a, (2, 1)) + 1, (1,), lambda a: np.pad(a, (2, 1)) + 1),
    (lambda a: tc.pad(a, (2, 2)), (0,), lambda a: np.zeros(4)),
    (lambda a: tc.pad(a, ((0, 2), (1, 1))) * 3, (1, 4),
     lambda a: np.pad(a, ((0, 2), (1, 1))) * 3),
    (lambda a: tc.pad(a, ((1, 0), (0, 0))) - 1, (3, 1), lambda a: np.pad(a, ((1, 0), (0, 0))) - 1),
    (lambda a: tc.max(a, ()) + a, (3, 2), lambda a: 2 * a),
    (lambda a: tc.softmax(a, ()) - a, (3, 4), lambda a: 1 - a),
    (lambda a: a @ tc.exp(a.T), (3, 1), lambda a: a @ np.exp(a.T)),
    (lambda a: a @ tc.exp(a.T), (3, 0), lambda a: np.zeros((3, 3))),
    (lambda a: tc.exp(a) * 2 + a.T, (1, 1), lambda a: np.exp(a) * 2 + a.T),
    (lambda a: tc.exp(a)[None, :, None] * a, (3, 3),
     lambda a: np.exp(a)[None, :, None] * a),
    (lambda a: tc.linalg.eigvalsh(a + a.transpose(0, 2, 1)), (2, 3, 3),
     lambda a: np.linalg.eigvalsh(a + a.transpose(0, 2, 1))),
])  # fmt: skip
def test_axes_of_one_entry_and_of_none_in_compiled_programs(
    e: Callable[..., Any], given: tuple[int, ...], wanted: Callable[..., Any]
) -> None:
    array = RNG.normal(size=given)
    found = tc.compile(e(tc.var("a", given)), backend="c")(a=array)
    answer = wanted(array)
    assert found.shape == answer.shape
    np.testing.assert_allclose(found, answer, rtol=1e-13, atol=1e-13)
