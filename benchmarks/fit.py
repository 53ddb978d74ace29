"""SciPy's minimisers driven by tcalc's compiled value, gradient and Hessian."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import tcalc as tc

from . import nests, processes
from .problem import Array, Case, Problem, Task
from .problems import PROBLEMS

TOLERANCE = 1e-6  # of the gradient's norm, relative to f where that is larger than 1
STEPS = 200


@dataclass
class Fit:
    """Where a fit ended; `trace` is f after every step, `derived` the seconds before the first."""

    problem: str
    case: str
    method: str
    parameters: int
    steps: int
    start: float
    end: float
    slope: float
    curvature: float
    derived: float
    seconds: float
    trace: list[float]
    point: dict[str, Any]

    @property
    def converged(self) -> bool:
        """At a minimum: the gradient is zero and no curvature is negative."""
        allowed = TOLERANCE * max(1.0, abs(self.end))
        return self.slope <= allowed and self.curvature >= -allowed


class Objective:
    """Compiled functions of one flat vector."""

    def __init__(self, task: Task) -> None:
        self.task = task
        expression, wrt = task.problem.expression(task.case.sizes), task.problem.wrt
        names = expression.variables
        self.data = {name: task.data[name] for name in names}
        self.value = self.bind(tc.compile(expression), lambda found: found)
        self.gradient = self.bind(tc.compile(tc.grad(expression, wrt)), nests.flat)
        self.hessian = self.bind(tc.compile(tc.hessian(expression, wrt)), nests.matrix)
        self.start = nests.flat(task.problem.point(task.data))
        for function in (self.value, self.gradient, self.hessian):
            function(self.start)  # plans are made at the first call

    def bind(self, step: Callable[..., Any], shape: Callable[[Any], Any]) -> Callable[[Array], Any]:
        start = self.task.problem.point(self.task.data)

        def call(vector: Array) -> Any:
            point = nests.unflat(vector, start)
            return shape(step(self.task.problem.at(point, self.data)))

        return call


def fit(problem: Problem, case: Case, tell: Callable[[str], None] = lambda _: None) -> Fit:
    """Minimise from the values that the variables have in the data."""
    from scipy.optimize import minimize

    task = Task.of(problem, case)
    tell(f"{problem.name}, {case.label}: deriving")
    begun = time.perf_counter()
    objective = Objective(task)
    derived = time.perf_counter() - begun
    trace = [float(objective.value(objective.start))]

    def follow(vector: Array) -> None:
        trace.append(float(objective.value(vector)))
        tell(f"{problem.name}, {case.label}: step {len(trace) - 1}, f = {trace[-1]:.6f}")

    begun = time.perf_counter()
    found = minimize(
        objective.value,
        objective.start,
        method=problem.fit,
        jac=objective.gradient,
        hess=objective.hessian,
        callback=follow,
        options={"gtol": TOLERANCE / 10 * max(1.0, abs(trace[0])), "maxiter": STEPS},
    )
    seconds = time.perf_counter() - begun
    return Fit(
        problem=problem.name,
        case=case.label,
        method=problem.fit,
        parameters=objective.start.size,
        steps=int(found.nit),
        start=trace[0],
        end=float(found.fun),
        slope=float(np.linalg.norm(objective.gradient(found.x))),
        curvature=float(np.linalg.eigvalsh(objective.hessian(found.x))[0]),
        derived=derived,
        seconds=seconds,
        trace=trace,
        point=named(problem, nests.unflat(found.x, problem.point(task.data))),
    )


def named(problem: Problem, point: nests.Nest) -> dict[str, Any]:
    return {name: np.asarray(x).tolist() for name, x in problem.at(point, {}).items()}


def run(problem: str, sizes: str, place: int) -> dict[str, Any]:
    """The fit of one case as plain data."""

    def tell(what: str) -> None:
        print(what, file=sys.stderr, flush=True)

    found = fit(PROBLEMS[problem], PROBLEMS[problem].select(sizes)[place], tell)
    return {**vars(found), "converged": found.converged}


if __name__ == "__main__":
    processes.serve(run)
