"""What has no form in C outside of loops, and why; gathers and integers have one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c.forms import PLAIN, READING
from tcalc.backends.c.functions import CompiledSteps
from tcalc.backends.c.rows import (
    ALONG_AXES,
    GENERAL,
    OF_FACTORS,
    PACKED,
    PAIRWISE,
    ROUTINES,
    SEVERAL,
    SPECIAL,
    SPREAD,
)
from tcalc.backends.c.rows import entry as written_entry
from tcalc.backends.c.tiles import CompiledTiles
from tcalc.graph.applications import apply
from tcalc.graph.operators import TABLE, Loop, Selection
from tcalc.plan.kinds.table import KINDS
from tests.shared import library_rows, plan_for_machine
from tests.test_tiny_tiles import TINY

#: By kind, why a step of it is left to Python.
LEFT = {
    **dict.fromkeys(
        ("transpose", "insert", "reshape", "broadcast", "diagonal", "window", "part", "scratch"),
        "nothing is computed: views, and memory",
    ),
    **dict.fromkeys(
        ("dot_over", "factor", "finish", "solve", "kernels"),
        "a few calls of LAPACK or BLAS, but of matrices with few rows, whose results are held",
    ),
    "gram": "rows that are known orthonormal are told from others by NumPy; all else is C's",
    **dict.fromkeys(("sparse_dot", "sparse_gram", "sparse_inner"), "SciPy's sparse products"),
    **dict.fromkeys(("integers", "index", "joint"), "integers are checked, once a call"),
    "loop": "a function of its own",
}

#: By reason, the operators that are left.
LEFT_ROWS = {
    "SciPy's special functions": """
        logit spherical_jn jv yv iv kv
        ive gammainc gammaincc betainc stdtr rgamma gammasgn""",
    "of whole matrices, by LAPACK": """
        sqrtm logm pinv least_squares_inverse logdet_definite matrix_function
        matrix_function_trace expm_frechet3 logm_frechet logm_frechet2
        logm_frechet3 sqrtm_frechet sqrtm_frechet2 sqrtm_frechet3""",
    "entries moved by NumPy, once a call": """
        lower_half lower_triangle lower_trapezoid extractdiag makediag
        leading_rows merge_axes""",
    "NumPy's own loops over rows": "norm",
}


def test_every_kind_of_step_has_a_form_or_a_reason() -> None:
    """Kernels of operators have one by their operator."""
    formed = {*PLAIN, *READING, "ufunc", "kernel", "into", "over"}
    assert not formed & LEFT.keys()
    assert KINDS.keys() <= formed | LEFT.keys()
    assert LEFT.keys() <= KINDS.keys()


def test_every_operator_has_a_form_or_a_reason() -> None:
    """Of general matrices that have few rows: for others LAPACK is faster."""
    formed = {*ALONG_AXES, *ROUTINES, *PAIRWISE, *PACKED, *GENERAL - OF_FACTORS}
    formed |= {name for name, _ in SPREAD} | SEVERAL.keys() | SPECIAL.keys()
    left = {
        row.name
        for row in library_rows()
        if row.core
        and not row.family
        and row.name not in formed
        and not (row.elementwise and written_entry(row))
        and not isinstance(row, Loop | Selection)
    }
    given = set(" ".join(LEFT_ROWS.values()).split())
    assert left <= given
    assert not formed & given


i, j = (tc.var(name, "n", integer=True) for name in "ij")
A, x, u = tc.var("A", ("m", 3)), tc.var("x", "m"), tc.var("u", "n")
GATHERED = {
    "rows": tc.sin(A[i]) * u[:, None],
    "entries of two vectors": tc.exp(x[i]) * x[j] + u,
    "a gradient by segments": tc.grad(tc.sum(tc.sin(A[i]) * A[j] * u[:, None]), A),
    "a gradient of a vector": tc.grad(tc.sum(tc.exp(x[i] * x[j]) * u), x),
    "a diagonal of counts": tc.hessian(tc.sum(x[i] ** 2 * u), x),
    "a Hessian at pairs": tc.hessian(tc.sum(x[i] * x[j] * u), x),
    "integers among numbers": u * i + j,
}


@pytest.mark.parametrize("tiny", [False, True], ids=["whole", "tiles"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", GATHERED)
def test_entries_that_integers_say_are_read_and_added_by_c(
    name: str, dtype: Any, tiny: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    n, m = 29, 5
    data = {
        "A": rng.normal(size=(m, 3)).astype(dtype), "x": rng.normal(size=m).astype(dtype),
        "u": rng.normal(size=n).astype(dtype),
        "i": rng.integers(-m, m, n), "j": rng.integers(0, m, n),
    }  # fmt: skip
    e = GATHERED[name]
    arrays = {k: a for k, a in data.items() if k in e.variables}
    wanted = tc.compile(e, backend="functional")(**arrays)
    if tiny:
        plan_for_machine(monkeypatch, **TINY)
    written: list[bool] = []
    for kind in (CompiledSteps, CompiledTiles):
        text = kind.text

        def counted(self: Any, *given: Any, text: Any = text) -> str | None:
            found: str | None = text(self, *given)
            written.append(found is not None)
            return found

        monkeypatch.setattr(kind, "text", counted)
    found = tc.compile(e, backend="c")(**arrays)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-12 if dtype is np.float64 else 1e-5)
    assert written
    assert all(written)


def test_integers_out_of_range_are_named_as_ever() -> None:
    step = tc.compile(tc.exp(x[i]) * u, backend="c")
    with pytest.raises(IndexError, match=r"the index i holds 7 at 1, out of range"):
        step(x=np.ones(3), i=np.array([0, 7]), u=np.ones(2))
    np.testing.assert_allclose(
        step(x=np.arange(3.0), i=np.array([0, -1]), u=np.ones(2))[1], np.exp(2)
    )


@pytest.mark.parametrize("function", [np.logical_and, np.logical_or, np.logical_xor, np.not_equal])
def test_conditions_are_ones_and_zeros(function: Any) -> None:
    a, b = tc.var("a", 9), tc.var("b", 9)
    values = np.array([0.0, 2.0, -3.0])
    data = {"a": np.repeat(values, 3), "b": np.tile(values, 3)}
    found = tc.compile(function(a, b) * 1.0 + tc.exp(a) * 0, backend="c")(**data)
    np.testing.assert_array_equal(found, function(data["a"], data["b"]) * 1.0)


def test_gaps_of_equal_numbers_are_none() -> None:
    """1 / (w_j - w_i), and 0 on the diagonal."""
    numbers = np.array([1.0, 2.5, 4.0])
    w = tc.var("w", 3)
    found = tc.compile(apply(TABLE["gaps"], tc.exp(w), params=("raise",)), backend="c")(w=numbers)
    apart = np.exp(numbers) - np.exp(numbers)[:, None]
    wanted = 1 / np.where(apart == 0, np.inf, apart)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_remainders_of_integers_have_the_divisors_sign() -> None:
    a, b = np.arange(-6.0, 7), np.array([-3.0, -2.0, -1.0, 1.0, 2.0, 3.0])
    left, right = tc.var("a", 13), tc.var("b", 6)
    e = np.mod(left[:, None], right) + 0 * left[:, None]
    found = tc.compile(e, backend="c")(a=a, b=b)
    np.testing.assert_array_equal(found, a[:, None] - b * np.floor(a[:, None] / b))
