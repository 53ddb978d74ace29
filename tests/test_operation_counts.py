"""Predicted operations of every kind of step and of every matrix operator, by closed formulas."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import pytest

import tcalc as tc
from tcalc.graph.operators import TABLE, operations
from tcalc.plan.kinds.kind import nothing
from tcalc.plan.kinds.table import KINDS
from tests import random_costs, recorded_forms

M, N, K, B = 5, 700, 3, 4

Counted = tuple[tuple[int, ...], tuple[Any, ...], list[tuple[int, ...]], float]

SHAPES = [(N,), (M, N), (N, M), (N, N), (B, M, N)]
ENTRYWISE = [(s, (), [s, s], prod(s)) for s in SHAPES] + [((), (), [(), ()], 1)]

NUMBERED, BINARY = ("scale", "shift", "minus_from"), ("multiply", "add", "subtract")

#: For every kind that counts: extents of the result, parameters, extents of operands, operations.
CLOSED: dict[str, list[Counted]] = {
    **{kind: [(s, (2.0,), [s], p) for s, _, _, p in ENTRYWISE] for kind in NUMBERED},
    **{kind: [*ENTRYWISE, ((N, M), (), [(M,), (N, M)], N * M)] for kind in BINARY},
    "powers": [((N, M), (0, 1), [(N,)], N * M), ((M,), (4, -1), [()], M)],
    "triangle": [
        ((N, N), ("lower", 0.5), [(N, N)], N),
        ((B, M, M), ("upper", 0.0), [(B, M, M)], B * M),
    ],
    "sum": [
        ((), (0,), [(N,)], N),
        ((M,), (1,), [(M, N)], M * N),
        ((M,), (0, 2), [(B, M, N)], B * M * N),
    ],
    "vecdot": [
        ((), (), [(N,), (N,)], 2 * N),
        ((B,), (), [(B, N), (B, N)], 2 * B * N),
        ((B,), (), [(N,), (B, N)], 2 * B * N),
        ((B, M), (), [(M, N), (B, M, N)], 2 * B * M * N),
    ],
    "matmul": [
        ((B, M, K), (), [(B, M, N), (B, N, K)], 2 * B * M * N * K),
        ((B, M, K), (), [(M, N), (B, N, K)], 2 * B * M * N * K),
        ((B, N, 1), (), [(B, N, K), (B, K, 1)], 2 * B * N * K),
    ],
    "dot": [
        ((), (), [(N,), (N,)], 2 * N),
        ((M,), (), [(M, N), (N,)], 2 * M * N),
        ((N,), (), [(M,), (M, N)], 2 * M * N),
        ((N, K), (), [(N, M), (M, K)], 2 * N * M * K),
    ],
    "dot_over": [((M, N), (), [(M, N), (N, N)], 2 * M * N * N)],
    "einsum": [
        ((M,), ("ij,j->i",), [(M, N), (N,)], 2 * M * N),
        ((B, M, K), ("bij,bjk->bik",), [(B, M, N), (B, N, K)], 2 * B * M * N * K),
        ((M, N), ("i,j->ij",), [(M,), (N,)], 2 * M * N),
    ],
    "crossed": [((M, K), (), [(N, M, B), (B, K, N)], 2 * N * M * B * K)],
    "weighted": [((M, K), (1.0, -1.0), [(M, N), (N, K), (M, K)], 3 * M * N * K)],
    "gram": [
        ((M, M), (), [(N, M), (N,), (N, M)], N * M * (M + 2)),
        ((N, N), (), [(M, N), (M,), (M, N)], M * N * (N + 2)),
    ],
    "correlate": [
        ((B, N), (1, True), [(K, N), (B, K)], 2 * B * N * K),
        ((B, K), (1, False), [(K, N), (B, N)], 2 * B * N * K),
    ],
    "joint": [((N,), ((M, 0, 1), (K, 1, 1)), [(N,), (N,)], 2 * N)],
    "take": [((B,), (0,), [(N,), (B,)], B), ((M, B), (1,), [(M, N), (B,)], M * B)],
    "segments": [((K,), (0,), [(N,), (N,)], N), ((K, M), (0,), [(N, M), (N,)], N * M)],
    "count": [((K,), (), [(N,)], N)],
    "integers": [((M, N), (None,), [(M, 1), (N,)], M * N), ((N,), (None,), [(N,)], N)],
    "onehot": [((B, K), (), [(B,)], B * K)],
    "add_at": [((N, M), (1.0, ((0, 1), (-1, 1))), [(N, M), (1,)], 1)],
    "embed_add": [
        ((N, N), ((0, 0),), [(N, N), (N,)], N),
        ((N, N), ((0, 0),), [(N, N), ()], N),
        ((M, N, M), ((0, 1, 0),), [(M, N, M), (M, N)], M * N),
    ],
    "place": [
        ((N,), ((M,), ((2, (1,)),)), [(M,)], M),
        ((N, N), ((M, K), ((0, (1, 0)), (0, (0, 1)))), [(M, K)], M * K),
    ],
    "place_add": [((N,), ((M,), ((2, (1,)),)), [(N,), (M,)], M)],
    "solve": [
        ((N, K), (False, False), [(N, N), (N, K)], 2 * N**3 / 3 + 2 * N * N * K),
        ((N, K), (True, True), [(N, N), (N, K)], 2 * N * N * K),
        ((N,), (False, True), [(N, N), (N,)], 2 * N * N),
    ],
    "sparse_dot": [  # of 8 entries
        ((N,), (1, 8), [(N, M), (M,)], 16),
        ((M, K), (0, 8), [(N, M), (N, K)], 16 * K),
    ],
    "sparse_gram": [((M, K), (0, 0, 8, 6), [(N, M), (N, K)], 2 * 8 * 6 / N)],
    "sparse_inner": [((), (8,), [(N, M), (N, M)], 16)],
    "congruence": [
        ((N, M, N), (1, ""), [(N, M, N), (N, N)], M * N**3),
        ((M, N, N), (0, ""), [(M, N, N), (N, N)], M * N**3),
    ],
    "trisolve": [
        ((N, K), (False, ""), [(N, N), (N, K)], N * N * K),
        ((N,), (True, ""), [(N, N), (N,)], N * N),
    ],
}


def test_every_kind_that_counts_has_a_closed_formula() -> None:
    counting = {name for name, row in KINDS.items() if row.flops not in (None, nothing)}
    assert counting == CLOSED.keys()


@pytest.mark.parametrize("kind", CLOSED)
def test_operations_of_kinds(kind: str) -> None:
    row = KINDS[kind]
    assert row.flops is not None
    for shape, params, shapes, operations_there in CLOSED[kind]:
        assert row.flops(shape, params, *shapes) == pytest.approx(operations_there)


def cube(number: float) -> Callable[..., float]:
    return lambda *batch: number * prod(batch) * N**3


#: Rows of square matrices by name: operations of a batch.
SQUARE: dict[str, Callable[..., float]] = {
    "tri_inverse": cube(1 / 3),
    "lower_triangle": cube(0),
    "cholesky": cube(1 / 3),
    **dict.fromkeys(("eigh", "eigh_nan", "eigh_epsilon"), cube(9)),
    "column_signs": lambda *batch: prod(batch) * N**2,
    "inv": cube(4 / 3),
    "adj": cube(26),
    **dict.fromkeys(
        ("det", "logdet", "det_sign", "logdet_definite"), lambda *batch: 11 * prod(batch) * N
    ),
    **dict.fromkeys(("expm", "sqrtm", "logm"), cube(25)),
    "inverse_definite": cube(2 / 3),
    **dict.fromkeys(("extracttrian", "extractdiag"), cube(0)),
    "cholesky_pullback": cube(2 / 3),
}


def lq_count(m: int, n: int) -> float:
    return 4 * m * m * n - 4 * m**3 / 3


def svd_count(m: int, n: int) -> float:
    return min(14 * m * n * n + 8 * n**3, 6 * m * n * n + 20 * n**3)


PSEUDOINVERSES = ("pinv", "least_squares_inverse")


def test_every_row_of_matrices_has_a_closed_formula() -> None:
    known = SQUARE.keys() | {"lq", "svd", "squared_distances", *PSEUDOINVERSES}
    # What users declare has a number behind its name.
    rows = {name: row for name, row in TABLE.items() if "##" not in name}
    found = {name for name, row in rows.items() if 2 in row.core and not row.family}
    assert found == {name for name in known if not TABLE[name].family}


@pytest.mark.parametrize("name", SQUARE)
def test_operations_of_square_matrices(name: str) -> None:
    row = TABLE[name]
    for batch in ((), (B,), (B, K)):
        assert operations(row, *[(*batch, N, N) for _ in row.core]) == pytest.approx(
            SQUARE[name](*batch)
        )


def test_operations_of_tall_and_wide_matrices() -> None:
    for batch in ((), (B,)):
        times = prod(batch)
        assert operations(TABLE["lq"], (*batch, M, N)) == pytest.approx(times * lq_count(M, N))
        for shape in ((M, N), (N, M)):
            expected = times * svd_count(N, M)
            assert operations(TABLE["svd"], (*batch, *shape)) == pytest.approx(expected)
            for name in PSEUDOINVERSES:
                expected = times * (lq_count(M, N) + N * M * M)
                assert operations(TABLE[name], (*batch, *shape)) == pytest.approx(expected)
        found = operations(TABLE["squared_distances"], (*batch, N, K), (*batch, M, K))
        assert found == 3 * times * N * M * K


def flops(e: Any) -> float:
    return float(tc.compile(e).plan.flops)


def test_operations_of_users_functions_on_tall_and_wide_matrices() -> None:
    wide, tall = tc.var("X", (50, 2000)), tc.var("X", (2000, 50))
    least = lq_count(50, 2000)
    assert flops(tc.linalg.lq(wide)) == pytest.approx(least)
    assert flops(tc.linalg.qr(tall)) == pytest.approx(least)
    product = 50**2 * 2000
    for e in (wide, tall):
        assert flops(tc.linalg.pinv(e)) == pytest.approx(least + product)
        assert flops(tc.linalg.svd(e)) == pytest.approx(svd_count(2000, 50))
    b = tc.var("b", 2000)
    assert flops(tc.linalg.lstsq(tall, b)) == pytest.approx(least + 2 * 2000 * 50 + 50**2)


def test_shared_factors_are_counted_once() -> None:
    A, n = tc.var("A", (200, 200)), 200
    both = flops([tc.linalg.inv(A), tc.linalg.logdet(A)])
    assert both == pytest.approx(2 * n**3 + 11 * n)
    S = tc.var("S", (n, n), positive_definite=True)
    both = flops([tc.linalg.inv(S), tc.linalg.logdet(S)])
    assert both == pytest.approx(n**3 + 11 * n, rel=0.02)  # and the symmetric part


def test_a_triangle_times_a_column() -> None:
    A, b = tc.var("A", (1000, 1000)), tc.var("b", 1000)
    for side in (tc.linalg.trmm(A, b), tc.linalg.trmm(A, b, transpose=True)):
        assert flops(side) == 2 * 1000**2


@pytest.mark.parametrize("kind", random_costs.DRAWS)
def test_random_programs_cost_no_more_than_they_did(kind: str) -> None:
    """Nodes, operations and memory: forms that are no longer found are seen here alone."""
    recorded = random_costs.recorded()[kind]
    found = {seed: random_costs.costs(kind, seed) for seed in random_costs.SEEDS}
    assert {str(seed) for seed, rows in found.items() if rows} == recorded.keys()
    assert not {
        seed: (rows, recorded.get(str(seed)))
        for seed, rows in found.items()
        if random_costs.grown(rows, recorded.get(str(seed)))
    }


@pytest.mark.parametrize("kind", recorded_forms.everything())
def test_programs_get_the_forms_that_they_had(kind: str) -> None:
    """How much C they are, what is left to Python, how Hessians are held and solved with."""
    recorded = recorded_forms.recorded()[kind]
    found = {name: make() for name, make in recorded_forms.everything()[kind].items()}
    assert found.keys() == recorded.keys()
    assert not {
        name: (rows, recorded[name])
        for name, rows in found.items()
        if recorded_forms.worse(rows, recorded[name])
    }
