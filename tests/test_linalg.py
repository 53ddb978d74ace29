"""Every function of tcalc.linalg against recurrences in mpmath, to third order.

A derivative of order k is contracted with k generic directions, each with its own entries for every
input and every item of a batch, and compared with the same number from the oracle, where one
evaluation in nilpotent arithmetic gives it to 50 digits.
"""

from __future__ import annotations

import itertools
import zlib
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests.hyper import hyper, last
from tests.linalg_cases import CASES, Case, sample, shape_of

MODES = ("forward", "reverse", "cross-country")
SIZES = {"m": 2, "n": 3, "k": 2}
BATCH = (2,)
EXTENTS = (0, 1)
KAPPAS = (1e2, 1e6, 1e10)
#: What is tested of every case: tuples of modes by order.
COMPOSITIONS: dict[int, list[tuple[str, ...]]] = {
    0: [()],
    1: [(mode,) for mode in MODES],
    2: list(itertools.product(MODES, MODES)),
    3: [(mode,) * 3 for mode in MODES],
}
#: Errors, relative to the largest entry, by order; and those of float32.
TOLERANCES = {0: 1e-11, 1: 1e-11, 2: 1e-11, 3: 1e-10}
SINGLE = 1e-4
#: What is tested in batches, at extents 0 and 1, in float32 and of badly conditioned data.
ELSEWHERE: tuple[tuple[str, ...], ...] = ((), ("reverse",), ("reverse", "forward"))
la = tc.linalg

Arrays = dict[str, np.ndarray]


def setting(case: Case, batch: tuple[int, ...], sizes: dict[str, int], order: int) -> Any:
    """Variables, data and directions of a case."""
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    variables: dict[str, tc.Expr] = {}
    arrays: Arrays = {}
    for name, kind in case.inputs.items():
        shape = shape_of(kind, sizes)
        # A vector beside a matrix is one right-hand side for the whole batch, as in NumPy.
        shape = shape if len(shape) == 1 and len(case.inputs) > 1 else batch + shape
        variables[name] = tc.var(name, shape)
        arrays[name] = sample(kind, shape, rng)
    directions = [{k: rng.normal(size=a.shape) for k, a in arrays.items()} for _ in range(order)]
    return variables, arrays, directions


def outputs(case: Case, variables: dict[str, tc.Expr]) -> tuple[tc.Expr, ...]:
    found = case.build(*variables.values())
    return found if isinstance(found, tuple) else (found,)


def oracle(case: Case, batch: tuple[int, ...], arrays: Arrays, directions: list[Arrays]) -> Any:
    """The outputs' derivative along all directions, item after item."""
    items = []
    for at in np.ndindex(batch):
        given = []
        for name, kind in case.inputs.items():
            place = at if kind != "n" or len(case.inputs) == 1 else ()
            given.append(hyper(arrays[name][place], [d[name][place] for d in directions]))
        found = case.oracle(*given)
        found = found if isinstance(found, tuple) else (found,)
        items.append([last(f, len(directions)) for f in found])
    return [
        np.reshape([item[k] for item in items], batch + items[0][k].shape)
        for k in range(len(items[0]))
    ]


def blocks(found: Any, variables: dict[str, tc.Expr], modes: tuple[str, ...]) -> Any:
    """All blocks of the derivative that `modes` name, first order first."""
    for mode in modes:
        found = mapped(lambda e, mode=mode: tc.derivative(e, variables, 1, mode), found)
    return found


def mapped(f: Any, nest: Any) -> Any:
    return {k: mapped(f, part) for k, part in nest.items()} if isinstance(nest, dict) else f(nest)


def contracted(nest: Any, directions: list[Arrays]) -> Any:
    """The sum of all blocks, each along its directions: the last axes belong to the last one."""
    if not directions:
        return nest
    total: Any = 0.0
    for name, part in nest.items():
        along = directions[0][name]
        total = total + np.tensordot(contracted(part, directions[1:]), along, axes=along.ndim)
    return total


def check(
    case: Case,
    modes: tuple[str, ...],
    batch: tuple[int, ...] = (),
    tolerance: float | None = None,
    sizes: dict[str, int] = SIZES,
    dtype: Any = np.float64,
    replaced: Arrays | None = None,
    least: float = 1.0,
) -> None:
    """The derivative in these modes, first order first, against the oracle.

    Errors are relative to the largest entry, or to `least` where all are smaller.
    """
    variables, arrays, directions = setting(case, batch, sizes, len(modes))
    for name, kind in case.inputs.items():
        if replaced and name == "A":
            arrays[name] = replaced[kind]
    tolerance = TOLERANCES[len(modes)] if tolerance is None else tolerance
    found = outputs(case, variables)
    given = {k: a.astype(dtype) for k, a in arrays.items()}
    exact = {k: a.astype(np.float64) for k, a in given.items()}
    for e, wanted in zip(found, oracle(case, batch, exact, directions), strict=True):
        values = tc.compile(blocks(e, variables, modes))(given)
        for leaf in leaves(values):
            assert leaf.dtype == dtype or not e.variables
        got = contracted(values, directions)
        assert np.shape(got) == wanted.shape
        scale = max(least, float(np.max(np.abs(wanted), initial=0)))
        np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * scale)


def leaves(nest: Any) -> list[Any]:
    if isinstance(nest, dict):
        return [leaf for part in nest.values() for leaf in leaves(part)]
    return [nest]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_first_order(case: Case) -> None:
    for modes in (*COMPOSITIONS[0], *COMPOSITIONS[1]):
        check(case, modes)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_second_order_in_all_compositions(case: Case) -> None:
    for modes in COMPOSITIONS[2]:
        check(case, modes)


@pytest.mark.parametrize("modes", COMPOSITIONS[3], ids=lambda modes: modes[0])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_third_order(case: Case, modes: tuple[str, ...]) -> None:
    check(case, modes)


@pytest.mark.parametrize("case", [case for case in CASES if case.batch], ids=str)
def test_batches_of_distinct_items(case: Case) -> None:
    for modes in ELSEWHERE:
        check(case, modes, batch=BATCH)


@pytest.mark.parametrize("n", EXTENTS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_extents_zero_and_one(case: Case, n: int) -> None:
    if not n and not case.empty:
        return
    for modes in ELSEWHERE:
        check(case, modes, sizes={"m": n, "n": n, "k": 2})


@pytest.mark.parametrize("case", CASES, ids=str)
def test_float32(case: Case) -> None:
    for modes in ELSEWHERE:
        check(case, modes, tolerance=SINGLE, dtype=np.float32)


def test_words_and_numbers_say_the_same_of_a_triangle() -> None:
    A, b = tc.var("A", (3, 3)), tc.var("b", 3)
    for lower in (False, True):
        x = {t: tc.linalg.solve_triangular(A, b, t, lower) for t in (0, "N", 1, "T", 2, "C")}
        assert x["N"] is x[0]
        assert x["T"] is x["C"] is x[2] is x[1] is not x[0]
    assert tc.linalg.solve_triangular(A, b) is tc.linalg.solve_triangular(A, b, 0, False)


def test_powers_are_any_whole_number() -> None:
    M = tc.var("M", (2, 2))
    assert la.matrix_power(M, np.int64(3)) is la.matrix_power(M, 3)


# --- badly conditioned data -----------------------------------------------------------------------


def conditioned(kappa: float, seed: int = 0) -> dict[str, np.ndarray]:
    """One matrix of each kind with singular values from 1 down to 1 / kappa."""
    rng = np.random.default_rng(seed)
    u, v = (np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2))
    values = np.array([1, kappa**-0.5, 1 / kappa])
    return {
        "general": u * values @ v,
        "positive": u * values @ u.T,
        "spectrum": u * values @ u.T,
        "factor": np.linalg.qr(v.T * values @ u)[1].T,
        "mn": (u * values)[:, [0, 2]].T,
        "nm": (u * values)[:, [0, 2]],
    }


BY_NAME = {case.name: case for case in CASES}
CONDITIONED = [
    "cholesky", "potrf-upper", "tri_inverse", "trsm-nny", "trsm-yyy", "trsm-nyy", "trmm-nny",
    "solve_triangular-1-lower", "inv", "solve", "det", "logdet", "adj", "lq", "qr", "eigh",
    "pinv-wide", "lstsq-tall", "matrix_power+3", "lq-square", "lq-tall", "qr-wide", "svd-wide",
    "svd-square", "norm-2", "norm-nuc",
]  # fmt: skip


@pytest.mark.parametrize("kappa", KAPPAS)
@pytest.mark.parametrize("name", CONDITIONED)
def test_error_grows_as_the_condition(name: str, kappa: float) -> None:
    matrix = conditioned(kappa)
    for modes in ELSEWHERE:
        check(
            BY_NAME[name],
            modes,
            tolerance=1e-15 * kappa,
            replaced=matrix,
            least=0,
        )
