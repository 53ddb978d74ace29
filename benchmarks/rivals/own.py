"""tcalc itself, through its public names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tcalc as tc

from ..problem import Array, Task
from . import Entry


def make(task: Task) -> Iterator[Entry]:
    problem, quantities = task.problem, task.case.quantities
    expression = problem.expression()
    arrays = {name: task.data[name] for name in expression.variables}
    shapes = {name: array.shape for name, array in arrays.items()}
    wishes: dict[str, Callable[[], Any]] = {
        "value": lambda: tc.compile(expression),
        "gradient": lambda: tc.compile(tc.grad(expression, problem.wrt)),
        "hessian": lambda: tc.compile(tc.hessian(expression, problem.wrt)),
        "core": lambda: tc.compile(tc.hessian(expression, problem.wrt), structured=True),
    }
    for quantity, wish in wishes.items():
        if quantity in quantities and quantity in problem.hand:
            step = wish()
            flops = step.plan_for(**shapes).flops
            yield Entry(quantity, "tcalc", "tcalc", bind(step, arrays), times, flops)


def bind(step: Callable[..., Any], arrays: dict[str, Array]) -> Callable[[], Any]:
    return lambda: step(**arrays)


def times(core: Any, v: Array) -> Array:
    product: Array = core @ v
    return product
