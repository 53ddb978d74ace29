"""The problems about arrays against plain loops, which are differentiated by complex steps.

The loops are the formulas as they stand. A complex step gives a derivative without a difference of
close numbers, and without a rule that any of the contestants has.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from benchmarks import harness, nests
from benchmarks.problem import QUANTITIES, Task
from benchmarks.problems import PROBLEMS, array_micro
from benchmarks.rivals import Entry

STEP = 1e-30
Arrays = dict[str, np.ndarray]


def convolution(v: Arrays) -> Any:
    """One axis or two, with channels or without."""
    x, w, y = v["x"], v["w"], v["y"]
    spatial = 2 if x.ndim > 1 else 1
    total = 0.0
    for at in np.ndindex(y.shape):
        found = 0.0
        where = at[len(at) - spatial :]
        for shift in np.ndindex(w.shape[w.ndim - spatial :]):
            place = tuple([i + k for i, k in zip(where, shift, strict=True)])
            if x.ndim == spatial:
                found += w[shift] * x[place]
            else:
                for c in range(len(x)):
                    found += w[(at[0], c, *shift)] * x[(c, *place)]
        total += (found - y[at]) ** 2 / 2
    return total


def affine(v: Arrays) -> Any:
    a, b, c, d = v["a"], v["b"], v["c"], v["d"]
    total = 0.0
    for i, j in product(range(len(a)), range(len(b))):
        exponent = 0.0
        for k in range(a.shape[1]):
            exponent += (a[i, k] + b[j, k]) ** 2 * c[i, i] + d[i + k] ** 3
        total += cmath.exp(-exponent)
    return total


def exponential_noise(v: Arrays) -> Any:
    U, V, A = v["U"], v["V"], v["A"]
    total = 0.0
    for i, j in product(range(len(A)), range(A.shape[1])):
        s = sum(U[i, l] * V[l, j] for l in range(U.shape[1]))
        total += cmath.log(s) + A[i, j] / s
    return total


def projected(sight: np.ndarray) -> np.ndarray:
    """The rotation as a matrix, entry by entry."""
    (w0, w1, w2), c, f, p, k, x = np.split(sight, [3, 6, 7, 9, 11])
    angle = cmath.sqrt(w0 * w0 + w1 * w1 + w2 * w2)
    skew = np.array([[0, -w2, w1], [w2, 0, -w0], [-w1, w0, 0]]) / angle
    turn = np.eye(3) + cmath.sin(angle) * skew + (1 - cmath.cos(angle)) * skew @ skew
    seen = turn @ (x - c)
    q = seen[:2] / seen[2]
    r = q[0] ** 2 + q[1] ** 2
    return f * (1 + k[0] * r + k[1] * r**2) * q + p


def gradient(loss: Callable[[Arrays], Any], data: Arrays, name: str) -> np.ndarray:
    found = np.zeros(data[name].shape)
    for at in np.ndindex(found.shape):
        moved = data[name].astype(complex)
        moved[at] += STEP * 1j
        found[at] = np.imag(loss({**data, name: moved})) / STEP
    return found


def quadratic(loss: Callable[[Arrays], Any], data: Arrays, name: str) -> np.ndarray:
    """The Hessian of a quadratic function: what its gradient differs by a unit step."""
    shape = data[name].shape
    found = np.zeros(shape * 2)
    here = gradient(loss, data, name)
    for at in np.ndindex(shape):
        moved = data[name].copy()
        moved[at] += 1
        found[at] = gradient(loss, {**data, name: moved}, name) - here
    return found


LOSSES = {
    "convolution-1d": convolution,
    "convolution-1d-kernel": convolution,
    "convolution-2d": convolution,
    "convolution-2d-image": convolution,
    "convolution-2d-channels": convolution,
    "convolution-2d-channels-image": convolution,
    "affine-example": affine,
    "affine-example-expanded": affine,
    "nnmf": exponential_noise,
}
PRODUCTS = ("convolution-1d-product", "convolution-2d-product")
CASES = [(name, place) for name in LOSSES for place in range(len(PROBLEMS[name].cases["tiny"]))]


def entries(task: Task, quantity: str) -> list[Entry]:
    """jax is checked by forms by hand, which are checked here."""
    return harness.enter(task, ["tcalc", "hand"], [quantity])


@cache
def tasks(name: str, place: int) -> Task:
    return Task.of(PROBLEMS[name], PROBLEMS[name].cases["tiny"][place])


def agree(task: Task, quantity: str, wanted: Any) -> None:
    found = entries(task, quantity)
    assert found
    for entry in found:
        error = harness.relative_error(entry.call(), wanted)
        assert error < 1e-11, (entry.label, quantity, error)


@pytest.mark.parametrize(("name", "place"), CASES)
def test_values_and_gradients_are_those_of_loops(name: str, place: int) -> None:
    task, loss = tasks(name, place), LOSSES[name]
    data = dict(task.data)
    value = np.real(loss(data))
    slope = nests.each(lambda variable: gradient(loss, data, variable), task.problem.wrt)
    for quantity, wanted in (("value", value), ("gradient", slope), ("both", (value, slope))):
        if quantity in task.problem.hand and quantity in task.case.quantities:
            agree(task, quantity, wanted)


@pytest.mark.parametrize(("name", "place"), [c for c in CASES if c[0].startswith("conv")])
def test_hessians_of_convolutions_are_those_of_loops(name: str, place: int) -> None:
    task = tasks(name, place)
    if "hessian" not in task.problem.hand:
        assert "hessian" not in task.case.quantities
        return
    agree(task, "hessian", quadratic(convolution, dict(task.data), "w"))


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_convolutions_are_those_of_loops(name: str) -> None:
    for place in range(len(PROBLEMS[name].cases["tiny"])):
        task = tasks(name, place)
        data = dict(task.data)
        moved = {**data, "x": data["x"] + data["v"]}
        agree(task, "value", gradient(convolution, moved, "x") - gradient(convolution, data, "x"))


def test_hessian_of_the_factorisation_has_the_blocks_of_its_docstring() -> None:
    task = tasks("nnmf", 0)
    U, V, A, P = (task.data[name] for name in ("U", "V", "A", "P"))
    (n, k), m = U.shape, V.shape[1]
    wanted = np.zeros((n, k, n, k))
    for i, j, l, o in product(range(n), range(k), range(k), range(m)):
        s = sum(U[i, r] * V[r, o] for r in range(k))
        wanted[i, j, i, l] += V[j, o] * V[l, o] * (2 * A[i, o] / s - 1) / s**2
    agree(task, "hessian", wanted)
    agree(tasks("nnmf-product", 0), "value", np.tensordot(wanted, P, 2))


def test_jacobians_of_projections_are_those_of_a_rotation_matrix() -> None:
    task = tasks("bundle-adjustment-jacobian", 0)
    sights = task.data["sights"]
    wanted = np.zeros((len(sights), 2, 14))
    for o, i in np.ndindex(sights.shape):
        moved = sights[o].astype(complex)
        moved[i] += STEP * 1j
        wanted[o, :, i] = projected(moved).imag / STEP
    agree(task, "value", wanted)


@pytest.mark.parametrize("micro", array_micro.MICROS, ids=lambda micro: micro.name)
def test_small_jacobians_are_those_of_complex_steps(micro: array_micro.Micro) -> None:
    task = tasks(f"array-micro-{micro.name}", 0)
    data = dict(task.data)

    def loss(v: Arrays) -> Any:
        best = v["a"][np.argmax(v["a"].real)] if micro.name == "max" else micro.call(np, v)
        return np.asarray(best)

    shape = loss(data).shape
    wanted = np.zeros(shape + data[micro.wrt].shape)
    for at in np.ndindex(shape):
        wanted[at] = gradient(lambda v, at=at: loss(v)[at], data, micro.wrt)  # type: ignore[misc]
    agree(task, "value", wanted)


@pytest.mark.parametrize("micro", array_micro.MICROS, ids=lambda micro: micro.name)
def test_forward_mode_costs_one_pass(micro: array_micro.Micro) -> None:
    """Ten times the size is ten times the operations, or hundred where matrices are involved."""
    expression = micro.expression({})
    flops, peaks = [], []
    for n in (1_000, 10_000):
        shapes = {name: (n,) * expression.variables[name].ndim for name in expression.variables}
        plan = tc.compile(expression).plan_for(**shapes)
        flops.append(plan.flops)
        peaks.append(plan.peak_bytes)
    growth = 10**micro.power
    assert flops[1] <= 1.05 * growth * max(flops[0], 1)
    assert peaks[1] <= 1.05 * growth * max(peaks[0], 1)


def test_every_problem_offers_what_its_cases_ask() -> None:
    for name in (*LOSSES, *PRODUCTS, "nnmf-product", "bundle-adjustment-jacobian"):
        problem = PROBLEMS[name]
        for case in problem.cases["tiny"]:
            assert {q for q in QUANTITIES if q in case.quantities} <= set(problem.hand)
