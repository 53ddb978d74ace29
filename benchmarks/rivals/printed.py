"""tcalc's printed NumPy programs, with the peak that they were seen to take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import signature
from typing import Any

import tcalc as tc

from ..harness import peak_traced
from ..nests import Nest
from ..problem import Task
from . import Entry

LABEL = "tcalc source"


def make(task: Task) -> Iterator[Entry]:
    problem = task.problem
    expression = problem.expression(task.case.sizes)
    wishes: dict[str, Callable[[], Any]] = {
        "value": lambda: expression,
        "gradient": lambda: tc.grad(expression, problem.wrt),
        "both": lambda: tc.value_and_grad(expression, problem.wrt),
        "hessian": lambda: tc.hessian(expression, problem.wrt),
    }
    wished = [q for q in task.case.quantities if q in problem.hand]
    for quantity, wish in wishes.items():
        if quantity in wished:
            call = bound(wish(), task)
            yield Entry(quantity, LABEL, "tcalc", call, peak=peak_traced(call))


def bound(e: Any, task: Task) -> Callable[[], Nest]:
    """The program's function at the data of a task."""
    scope: dict[str, Any] = {}
    exec(tc.to_code(e), scope)
    known = {**task.case.sizes, **task.data}
    given = {name: known[name] for name in signature(scope["f"]).parameters}
    return lambda: scope["f"](**given)
