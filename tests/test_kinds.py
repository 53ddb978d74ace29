"""The table of kinds of steps: rows are complete, and NumPy's kernels compute the references.

Steps are those of plans for the tables of cases, on the arrays that stand there in these plans.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy.sparse import csr_array

import tcalc as tc
from tcalc.backends.functional.program import FunctionalProgram
from tcalc.backends.numpy.kernels import KERNELS
from tcalc.ops.matrix.inverse import LU
from tcalc.ops.selection import selection
from tcalc.plan.kinds.kind import Reading, StepAccess
from tcalc.plan.kinds.sparse import TAKING_SPARSE
from tcalc.plan.kinds.table import KINDS
from tcalc.plan.lowering.make import make_plan
from tcalc.plan.steps import Plan, Step
from tcalc.support.arrays import Sizes
from tcalc.support.machine import Machine
from tcalc.support.namespaces import NUMPY
from tests import loop_cases, place_cases
from tests.cases import CASES
from tests.linalg_cases import CASES as MATRIX_CASES
from tests.test_backends import of_matrices, of_places

#: Different steps of one kind that are tried.
MANY = 60

DOUBLE = np.dtype(np.float64)


class Made(NamedTuple):
    """A step, what it reads, and what the reference makes of it."""

    step: Step
    arrays: list[Any]
    result: Any


class Traced(FunctionalProgram):
    """A program that remembers all steps."""

    seen: list[Made]

    def _run(self, step: Step, arrays: Any) -> Any:
        result = super()._run(step, arrays)
        self.seen.append(Made(step, list(arrays), result))
        return result


def programs() -> Iterator[tuple[Any, dict[str, Any]]]:
    """Outputs of all cases, and their arrays."""
    for case in CASES:
        e = case.expression()
        x = tc.var(case.targets[0], case.shapes[case.targets[0]])
        yield [e, *[tc.derivative(e, x, k) for k in (1, 2)]], case.sample()
    for case in MATRIX_CASES:
        yield of_matrices(case)
    for case in place_cases.CASES:
        yield of_places(case)
    for case in loop_cases.CASES:
        yield loop_cases.expression(case, 3), loop_cases.data(case, 3)
    yield products()
    g, v = tc.var("g", 5, integer=True), tc.var("v", 8)
    yield v[tc.mod(g * g + tc.arange(5), 8)], {"g": np.arange(5) - 3, "v": np.arange(8.0)}
    yield along_axes()


def along_axes() -> tuple[Any, dict[str, Any]]:
    """Functions, sums, windows and places along each axis of arrays with two axes and three."""
    P, Q, x, y = (
        tc.var(*v) for v in (("P", (7, 5)), ("Q", (4, 6, 3)), ("x", (9, 3)), ("y", (8, 3)))
    )
    i, j = tc.var("i", 4, integer=True), tc.var("j", (2, 3), integer=True)
    e = [tc.sum((x[:, None] - y) ** 2, -1), tc.sum(abs(x[:, None] - y), -1)]
    for a in (P, Q):
        whole: tuple[Any, ...] = (slice(None),) * (a.ndim - 1)
        for axis in range(a.ndim):
            e += [
                f(a, axis) for f in (tc.sum, tc.max, tc.cumsum, tc.sort, tc.softmax, tc.logsumexp)
            ]
            for key in (slice(1, None), slice(None, None, 2), slice(2, 3), i, j, 1):
                f = a[(*whole[:axis], key, *whole[axis:])]
                e += [f, tc.grad(tc.sum(tc.sin(f)), a)]
    e += [tc.sum(Q * tc.cos(Q), -1), tc.sum(P * tc.cos(P), -1), tc.sum(x * tc.cos(x), 0)]
    R = tc.var("R", (2, 3, 4))  # tables of two axes are subtracted at their places
    e += [R - 2 * selection(j, 4), R.transpose(2, 0, 1) + selection(j, 4).transpose(2, 0, 1)]
    e += [tc.linalg.inv(Q[:3, :3] @ Q[:3, :3].transpose(0, 2, 1)), P.T @ P, P @ P[:5]]
    rng = np.random.default_rng(1)
    data = {v.name: rng.normal(size=v.shape) for v in (P, Q, R, x, y)}
    return e, data | {"i": np.array([2, 0, 1, 2]), "j": rng.integers(0, 3, (2, 3))}


def products() -> tuple[Any, dict[str, Any]]:
    """Large ones: products of which one half is enough, and factors that several steps read."""
    rng = np.random.default_rng(0)
    A, B, d = tc.var("A", (170, 170)), tc.var("B", (170, 170)), tc.var("d", (170,))
    L = tc.linalg.cholesky(A)
    squares = tc.grad(tc.sum(tc.linalg.trmm(A, B) ** 2), A)
    X, Y, T = tc.var("X", (170, 20)), tc.var("Y", (170, 20)), tc.var("T", (420, 170))
    V = tc.var("V", (170, 4, 170))
    weighted = tc.einsum("nk,nkl->kl", A, X[:, None] - Y)
    inverse, W = tc.linalg.tri_inverse(L), V + V.transpose(2, 1, 0)
    e = [
        weighted,
        squares,
        tc.grad(tc.sum(B * L), A),
        A.T @ (d[:, None] * A),
        (A @ B) * L,
        (L @ B) * L.T,
        tc.exp(T) @ B,
        tc.einsum("ipj,jqi->pq", V, V),
        tc.einsum("ipj,iqj->pq", V, V[::-1].transpose(2, 1, 0)),
        inverse @ tc.exp(B + B.T) @ inverse.T,
        tc.einsum("im,mpn,jn->ipj", inverse, W, inverse),
        tc.einsum("im,mpn,jn->pij", inverse, tc.sin(W), inverse),
        tc.einsum("im,pmn,jn->jpi", inverse, tc.cos(W).transpose(1, 0, 2), inverse),
        tc.linalg.logdet(B),
        tc.linalg.solve(B, d),
        tc.linalg.inv(B),
    ]
    a = rng.normal(size=(170, 170))
    return e, {
        "A": a @ a.T + np.eye(170),
        "B": rng.normal(size=(170, 170)),
        "d": rng.normal(size=170),
        "X": rng.normal(size=(170, 20)),
        "Y": rng.normal(size=(170, 20)),
        "T": rng.normal(size=(420, 170)),
        "V": rng.normal(size=(170, 4, 170)),
    }


def plans() -> Iterator[tuple[Plan, dict[str, Any]]]:
    """The plans of all programs, and one of sparse matrices."""
    for outputs, arrays in programs():
        shapes = {name: np.shape(a) for name, a in arrays.items()}
        yield tc.compile(outputs).plan_for(**shapes), arrays
    m, n, k = 6, 5, 3
    V = tc.var("V", (m, n))
    S, T, s, W = tc.var("S", (m, n)), tc.var("T", (m, k)), tc.var("s", m), tc.var("W", (n, k, 2))
    e = [S.T @ s, tc.einsum("ij,jkl->ikl", S, W), S.T @ T, S @ S.T, tc.sum(S * V)]
    e.append(tc.einsum("ij,i,ik->jk", S, s, S))
    rng = np.random.default_rng(0)
    data = {v.name: rng.normal(size=v.shape) for v in (S, T, V, s, W)}
    yield make_plan(e, {}, sparse={"S": m * n, "T": m * k}), data


@cache
def steps() -> dict[str, list[Made]]:
    """Steps of all plans by kind, those that differ in extents or parameters."""
    found: dict[str, dict[Any, Made]] = {}
    for plan, arrays in plans():
        for made in traced(plan, [arrays[name] for name in plan.inputs]):
            shapes = tuple([np.shape(a) for a in made.arrays if isinstance(a, np.ndarray)])
            key = shapes, made.step.shape, repr(made.step.params)
            found.setdefault(made.step.kind, {}).setdefault(key, made)
    return {kind: list(several.values()) for kind, several in found.items()}


def traced(plan: Plan, arrays: list[Any]) -> list[Made]:
    program = Traced(plan, DOUBLE)
    program.seen = []
    program([np.asarray(a) for a in arrays])
    return program.seen


def some(kind: str) -> list[Made]:
    """A few steps of a kind, from all over the cases."""
    found = steps().get(kind, [])
    return found[:: max(1, len(found) // MANY)]


# --- rows -----------------------------------------------------------------------------------------


def test_every_kind_has_a_kernel_and_every_kernel_a_kind() -> None:
    # A loop is run by a program of its own.
    assert KERNELS.keys() | {"loop"} == KINDS.keys()
    assert all(name == kind.name for name, kind in KINDS.items())


def test_every_kind_is_exercised() -> None:
    assert steps().keys() == KINDS.keys()


@pytest.mark.parametrize("kind", KINDS)
def test_parameters_are_those_of_the_row(kind: str) -> None:
    names = list(KINDS[kind].params)
    least = len([name for name in names if not name.startswith("*")])
    assert not any(name.startswith("*") for name in names[:-1])
    for made in some(kind):
        assert len(made.step.params) >= least
        assert len(made.step.params) == least or least < len(names)


@pytest.mark.parametrize("kind", KINDS)
def test_extents_and_operations_are_those_of_the_row(kind: str) -> None:
    row = KINDS[kind]
    for step, arrays, result in some(kind):
        shapes = [np.shape(a) if isinstance(a, np.ndarray | np.generic) else () for a in arrays]
        if all(isinstance(a, np.ndarray | np.generic) for a in arrays):
            assert row.shape(step.shape, step.params, *shapes) == step.shape
            halved = kind == "dot" and step.params
            if row.flops is not None and not halved:
                assert row.flops(step.shape, step.params, *shapes) == step.flops
        if isinstance(result, np.ndarray | np.generic):
            assert np.shape(result) == step.shape


@pytest.mark.parametrize("kind", KINDS)
def test_facts_fit_together(kind: str) -> None:
    row = KINDS[kind]
    assert not (row.view and row.allocates)
    assert not (row.in_place and (row.view or row.allocates))
    assert not row.into_zeros or (row.cheap and not row.in_place)
    assert not row.quick or row.in_place == "any"
    assert bool(row.inverts) == bool(row.solves)
    assert not inspect.signature(row.reference).parameters.keys() & {"out"}


# --- kernels --------------------------------------------------------------------------------------


def reads_factors(step: Step) -> bool:
    """Is the first operand what a factorisation makes: for references the matrix itself?"""
    if step.kind == "finish":
        return step.params[0].kernels.factor is LU
    return step.kind == "solve" and bool(step.params[1])


def sparse_operands(step: Step) -> range:
    """The operands that are sparse matrices; references have them written out."""
    return range((step.kind in TAKING_SPARSE) + (step.kind == "sparse_gram"))


def run(made: Made, over: int | None = None) -> Any:
    """What NumPy's kernel makes of copies of the arrays, over one of them or beside them."""
    step, row = made.step, KINDS[made.step.kind]
    v: list[Any] = [None] * (max(step.out, *step.args, 0) + 1)
    for slot, array in zip(step.args, made.arrays, strict=True):
        v[slot] = array.copy() if isinstance(array, np.ndarray) else array
    for place in sparse_operands(step):
        v[step.args[place]] = csr_array(made.arrays[place])
    if reads_factors(step):
        v[step.args[0]] = LU.compute(NUMPY, (), v[step.args[0]])
    if not row.view and not row.allocates:
        empty = np.zeros if row.into_zeros else np.empty
        v[step.out] = empty(step.shape) if over is None else v[over]
        if over is None and not row.into_zeros:
            v[step.out].fill(np.nan)
    with np.errstate(all="ignore"):
        KERNELS[step.kind](step, DOUBLE)(v)
    return v[step.out]


def agree(found: Any, made: Made) -> None:
    """Equal but for rounding; of half a product, the half that is wanted."""
    wanted = made.result
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            agree(one, made._replace(result=other))
        return
    if made.step.kind == "dot" and made.step.params:
        half = {"lower": np.tril, "upper": np.triu}.get(made.step.params[0], np.asarray)
        found, wanted = half(found), half(wanted)
    size = np.abs(wanted).max(initial=1, where=np.isfinite(wanted))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10 * size, err_msg=str(made.step))
    assert np.shape(found) == np.shape(wanted)


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - {"scratch", "loop", "factor"}))
def test_kernels_against_references(kind: str) -> None:
    for made in some(kind):
        agree(run(made), made)


@pytest.mark.parametrize("kind", [name for name, row in KINDS.items() if row.in_place])
def test_kernels_over_their_operands(kind: str) -> None:
    done = 0
    for made in some(kind):
        step = made.step
        for place in KINDS[kind].written_over(len(step.args)):
            slot, array = step.args[place], made.arrays[place]
            alone = step.args.count(slot) == 1 or kind in ("multiply", "add", "subtract")
            if np.shape(array) == step.shape and np.asarray(array).dtype == DOUBLE and alone:
                arrays = [np.array(a, order="C") for a in made.arrays]
                agree(run(made._replace(arrays=arrays), slot), made)
                done += 1
    assert done


# --- tiles ----------------------------------------------------------------------------------------


class Anything(Machine):
    """A machine on which arrays are wide, or none is, and all operands are small."""

    def is_wide(self, shape: Sizes) -> bool:
        return self.shortest > 0 and len(shape) > 1


MACHINES = [Anything(shortest=k, small=1 << 30, summed=1 << 30) for k in (0, 1)]


def part(array: Any, mode: str, low: int, high: int, rows: int) -> Any:
    """What a tile sees of an array."""
    if mode == "whole":
        return array
    axis = array.ndim - 1 if mode == "columns" else 0
    assert array.shape[axis] == rows
    return array[(slice(None),) * axis + (slice(low, high),)]


def by_tiles(made: Made, found: Reading, tile: int) -> Any:
    """The step computed by tiles of some rows, by the reference of its kind."""
    (rows, read, mode), step = found, made.step
    assert mode == "sum" or step.shape[len(step.shape) - 1 if mode == "columns" else 0] == rows
    parts = []
    for low in range(0, rows, tile):
        high = min(low + tile, rows)
        v: list[Any] = [None] * (max(step.out, *step.args) + 1)
        for slot, array, each in zip(step.args, made.arrays, read, strict=True):
            v[slot] = np.array(part(np.asarray(array), each, low, high, rows))
        if not KINDS[step.kind].view and not KINDS[step.kind].allocates:
            whole = np.zeros(step.shape)
            v[step.out] = whole if mode == "sum" else part(whole, mode, low, high, rows).copy()
        if step.kind == "dot":  # which a loop has otherwise
            v[step.out] = v[step.args[0]] @ v[step.args[1]]
        elif step.kind == "sum":
            v[step.out] = v[step.args[0]].sum(step.params)
        else:
            KERNELS[step.kind](step, DOUBLE)(v)
        parts.append(v[step.out])
    return sum(parts) if mode == "sum" else np.concatenate(parts, -1 if mode == "columns" else 0)


@pytest.mark.parametrize("kind", [name for name, row in KINDS.items() if row.tiles])
def test_tiles_of_a_step_are_steps_on_tiles(kind: str) -> None:
    """Where a row says what a tile reads, that is enough to make the tile of the result."""
    tiles = KINDS[kind].tiles
    assert tiles is not None
    done = set()
    for made in steps()[kind]:
        if not all(isinstance(a, np.ndarray | np.generic) for a in made.arrays):
            continue
        shapes = tuple([np.shape(a) for a in made.arrays])
        turned = [(False,) * len(shapes), tuple([len(shape) == 2 for shape in shapes])]
        for machine, way in itertools.product(MACHINES, turned):
            found = tiles(StepAccess(made.step.shape, shapes, made.step.params, way, machine))
            if found is None or len({*zip(made.step.args, found[1], strict=True)}) > len(
                {*made.step.args}
            ):
                continue
            done.add(found[2])
            with np.errstate(all="ignore"):
                agree(by_tiles(made, found, 2), made)
    assert done


def test_weights_of_few_long_rows_are_read_by_tiles_of_columns() -> None:
    """However they lie, where few are wide; otherwise only where they are transposed."""
    wide, square, weighted = (4, 500), (400, 500), KINDS["weighted"].tiles
    assert weighted is not None
    for shape, turned, found in ((wide, False, True), (square, False, False), (square, True, True)):
        step = StepAccess((shape[0], 3), (shape, (500, 3), (500,)), (), (turned,) * 3, Machine())
        assert (weighted(step) is not None) is found
