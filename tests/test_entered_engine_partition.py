"""What few programs enter, of expressions over the rows of their data: refusals, single rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import Var
from tcalc.partition.passes import Passes
from tcalc.partition.split import split
from tests.test_partition import run_by_hand, value_of

X, Q, P, Z = (tc.var(name, shape) for name, shape in [
    ("X", ("m", "n")), ("Q", ("m", "m")), ("P", ("m", "m")), ("Z", ("n", "m")),
])  # fmt: skip
y, w, A, B = tc.var("y", "m"), tc.var("w", "n"), tc.var("A", ("n", "n")), tc.var("B", ("n", "n"))
RNG = np.random.default_rng(0)
VALUES = {
    "X": RNG.normal(size=(6, 3)), "Q": RNG.normal(size=(6, 6)), "P": RNG.normal(size=(6, 6)),
    "Z": RNG.normal(size=(3, 6)), "y": RNG.normal(size=6), "w": RNG.normal(size=3),
    "A": RNG.normal(size=(3, 3)), "B": RNG.normal(size=(3, 3)),
}  # fmt: skip


def split_over(e: tc.Expr, rows: dict[Any, int]) -> Passes:
    return split([value_of(e)], {v: axis for v, axis in rows.items() if isinstance(v, Var)})


def by_parts(e: tc.Expr, rows: dict[Any, int], wanted: Callable[..., Any]) -> None:
    """Passes over parts of any number of rows, none among them, give what NumPy gives of all."""
    given = {name: VALUES[name] for name in value_of(e).variables}
    told = split_over(e, rows)
    for bounds in ([0, 6], [0, 2, 6], [0, 0, 1, 2, 6, 6]):
        (found,) = run_by_hand(told, given, bounds)
        np.testing.assert_allclose(found, wanted(**given), rtol=1e-12, atol=1e-12)


PAIRS = "it pairs rows with rows, so that no part of them suffices"


@pytest.mark.parametrize(("e", "rows", "told"), [
    (tc.trace(Q), {Q: 0}, f"tr(Q) cannot be computed from parts of the rows (m) of Q: {PAIRS}"),
    (tc.diagonal(Q), {Q: 0},
     f"diag(Q) cannot be computed from parts of the rows (m) of Q: {PAIRS}"),
    (tc.trace(Q), {Q: 1}, f"tr(Q) cannot be computed from parts of the rows (m) of Q: {PAIRS}"),
    (Q + Q.T, {Q: 0}, f"Q + Q' cannot be computed from parts of the rows (m) of Q: {PAIRS}"),
    (tc.exp(y[:, None] + y), {y: 0},
     f"vector(1, m)*y' + y*vector(1, m)' cannot be computed from parts of the rows (m) of y: "
     f"{PAIRS}"),
    (tc.maximum(Q, Q.T), {Q: 0},
     f"maximum(Q, Q') cannot be computed from parts of the rows (m) of Q: {PAIRS}"),
    (tc.sum(y * tc.diagonal(P)), {y: 0},
     f"diag(P)'*y cannot be computed from parts of the rows (m) of y: {PAIRS}"),
])  # fmt: skip
def test_entries_of_two_rows_are_refused(e: tc.Expr, rows: dict[Any, int], told: str) -> None:
    with pytest.raises(tc.PartitionError) as error:
        split_over(e, rows)
    assert str(error.value) == told


def test_a_sum_and_a_function_along_one_axis() -> None:
    """The same nodes as those refused, where all operands have their rows on one axis."""
    by_parts(Q + P, {Q: 0, P: 0}, lambda Q, P: Q + P)
    by_parts(Q + P.T, {Q: 0, P: 1}, lambda Q, P: Q + P.T)
    by_parts(tc.maximum(Z, X.T), {Z: 1, X: 0}, lambda X, Z: np.maximum(Z, X.T))
    by_parts(tc.trace(Q @ P), {Q: 0, P: 1}, lambda Q, P: np.trace(Q @ P))


@pytest.mark.parametrize(("spelled", "wanted"), [
    ("mi,ij,jk->", lambda X, A, B: (X @ A @ B).sum()),
    ("mi,ij,jk->k", lambda X, A, B: (X @ A @ B).sum(0)),
    ("mi,ij,kj->", lambda X, A, B: (X @ A @ B.T).sum()),
])  # fmt: skip
def test_all_that_is_summed_with_rows_is_of_one_pass(
    spelled: str, wanted: Callable[..., Any]
) -> None:
    """A chain of known matrices beside the rows is multiplied with them, and one sum is left."""
    e = tc.einsum(spelled, X, A, B)
    by_parts(e, {X: 0}, wanted)
    told = split_over(e, {X: 0})
    assert told.number == 1
    assert [[p.shape for p in r.parts] for r in told.reductions] == [[e.shape]]
    assert str(told).splitlines()[-1] == "at last: result"


def test_what_stays_by_rows_is_told() -> None:
    told = str(tc.explain(X @ w * tc.sum(y), over=["X", "y"]))
    assert (
        told.splitlines()[-4:]
        == [
            "1 pass over the rows (m) of X, y",
            "pass 1, sums: result = sum(y)  ()",
            "by rows: result*X*w  (rows,)",
        ][-4:]
        or "by rows: result*X*w  (rows,)" in told
    )
    by_parts(X @ w * tc.sum(y), {X: 0, y: 0}, lambda X, w, y: X @ w * y.sum())


@pytest.mark.parametrize(("e", "wanted"), [
    (tc.maximum(y, tc.arange("m") + tc.sqrt(tc.arange("m")) - 3),
     lambda y: np.maximum(y, np.arange(6) + np.sqrt(np.arange(6)) - 3)),
    (tc.exp(y * (tc.sin(tc.arange("m")) + tc.cos(tc.arange("m")))),
     lambda y: np.exp(y * (np.sin(np.arange(6)) + np.cos(np.arange(6))))),
])  # fmt: skip
def test_sums_that_no_data_are_in_run_along_rows(e: tc.Expr, wanted: Callable[..., Any]) -> None:
    by_parts(e, {y: 0}, wanted)


@pytest.mark.parametrize(("e", "wanted"), [
    (lambda one: tc.maximum(y, one), lambda y: np.maximum(y, np.eye(6)[2])),
    (lambda one: tc.exp(y) + one, lambda y: np.exp(y) + np.eye(6)[2]),
    (lambda one: tc.exp(one * y) - 2 * one, lambda y: np.exp(np.eye(6)[2] * y) - 2 * np.eye(6)[2]),
])  # fmt: skip
def test_one_row_among_others(e: Callable[..., tc.Expr], wanted: Callable[..., Any]) -> None:
    """The derivative of one entry is 1 in its row alone, whichever part that is in."""
    by_parts(e(tc.simplify(tc.grad(y[2], y))), {y: 0}, wanted)


def test_factorisations_of_what_is_known() -> None:
    """Parts of a factorisation are no rows where what is factored is not by rows."""
    vectors, values = tc.linalg.eigh(X.T @ X)[1], tc.linalg.eigh(A @ A.T)[0]
    by_parts(vectors[:, 0] ** 2, {X: 0}, lambda X: np.linalg.eigh(X.T @ X)[1][:, 0] ** 2)
    by_parts(X @ values, {X: 0}, lambda X, A: X @ np.linalg.eigvalsh(A @ A.T))
