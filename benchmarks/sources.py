"""Printed programs beside the plans of the same expressions: time and peak memory.

NumPy's beside plans on NumPy, C beside those of back end c.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import tcalc as tc

from . import harness, nests, processes
from .printed_c import CProgram
from .problem import Task
from .problems import PROBLEMS

#: Problems, and the n at which printed programs are measured, in NumPy and in C.
SIZES = {
    "logistic": (300, 1000),
    "matrix-factorisation": (100, 300),
    "weighted-factorisation": (100, 300),
    "net": (40, 100),
    "gp": (300, 300),
    "convolution-1d": (10_000, 10_000),
    "convolution-1d-kernel": (10_000, 10_000),
    "convolution-1d-product": (10_000, 10_000),
    "convolution-2d": (64, 64),
    "convolution-2d-image": (64, 64),
    "convolution-2d-product": (64, 64),
    "convolution-2d-channels": (32, 64),
    "convolution-2d-channels-image": (32, 64),
    "kalman": (10, 100),
    "rnn": (10, 100),
}
LANGUAGES = ("numpy", "c")
ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "value": lambda e, wrt: e,
    "gradient": tc.grad,
    "hessian": tc.hessian,
}
TOLERANCE = 1e-10


@dataclass
class Printed:
    """A program and the plan of one expression, with the data of both.

    Attributes
    ----------
    source : str
    program, plan : callable
        Both compute the expression, without arguments.
    predicted : int
        Bytes at the plan's peak.
    held : int
        Bytes that the program takes; 0 where a call tells.
    """

    source: str
    program: Callable[[], Any]
    plan: Callable[[], Any]
    predicted: int
    held: int = 0

    @classmethod
    def of(cls, task: Task, quantity: str, language: str = "numpy") -> Printed:
        """A row of `ORDERS`, printed and compiled."""
        value = task.problem.expression(task.case.sizes)
        e = ORDERS[quantity](value, task.problem.wrt)
        extents = {n for leaf in nests.leaves(e) for v in leaf.variables.values() for n in v.shape}
        sizes = {n: size for n, size in task.case.sizes.items() if n in extents}
        source, step = tc.to_code(e, language, sizes=sizes), tc.compile(e, backend=language)
        data = {name: task.data[name] for name in value.variables}
        plan = step.plan_for(**{name: array.shape for name, array in data.items()})
        found = cls(source, lambda: None, lambda: step(**data), plan.peak_bytes)
        if language == "c":
            program = CProgram.of(source, data, task.case.sizes, step(**data))
            return replace(found, program=program, held=program.held)
        scope: dict[str, Any] = {}
        exec(source, scope)
        names = inspect.signature(scope["f"]).parameters
        given = {name: task.data.get(name, task.case.sizes.get(name)) for name in names}
        return replace(found, program=lambda: scope["f"](**given))


#: Bytes of an array that a process has had before it measures. Programs allocate in every call,
#: plans once; the C library gives memory back to the system, and has to ask for it again, where it
#: never saw arrays of that size freed.
SEEN = 32 * 2**20


def run(problem: str, n: int, repeat: int, language: str) -> dict[str, Any]:
    """Rows of one problem, of the quantities that its case has."""
    np.ones(SEEN // 8 - 4096)
    task = Task.of(PROBLEMS[problem], PROBLEMS[problem].of_size(n))
    quantities = [quantity for quantity in ORDERS if quantity in task.case.quantities]
    return {"rows": [measured(task, quantity, repeat, language) for quantity in quantities]}


def measured(task: Task, quantity: str, repeat: int, language: str = "numpy") -> dict[str, Any]:
    """Seconds and bytes of program and plan, after their values were compared.

    A plan predicts its arrays; buffers of its kernels are seen in a call, which has its arrays from
    an earlier one.
    """
    found = Printed.of(task, quantity, language)
    calls = (found.program, found.plan)
    error = harness.relative_error(*[tuple(nests.leaves(call())) for call in calls])
    first = [harness.timed_alone(call) for call in calls]
    best = list(first)
    for _ in range(repeat):  # taking turns: a noisy moment hits both
        for k, call in enumerate(calls):
            loops = max(1, int(harness.SHORTEST / first[k]))
            best[k] = min(best[k], harness.timed(call, loops))
    return {
        "problem": task.problem.name,
        "n": task.case.sizes["n"],
        "language": language,
        "quantity": quantity,
        "error": error,
        "program": best[0],
        "plan": best[1],
        "traced": found.held or harness.peak_traced(found.program),
        "predicted": found.predicted,
        "kernels": harness.peak_traced(found.plan),
    }


if __name__ == "__main__":
    processes.serve(run)
