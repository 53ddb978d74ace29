"""tcalc itself, through its public names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import tcalc as tc

from ..nests import Nest
from ..problem import Array, Task
from . import Entry


def make(task: Task) -> Iterator[Entry]:
    problem, quantities = task.problem, task.case.quantities
    expression = problem.expression(task.case.sizes)
    arrays = {name: task.data[name] for name in expression.variables}
    shapes = {name: array.shape for name, array in arrays.items()}
    wishes: dict[str, Callable[[], Any]] = {
        "value": lambda: tc.compile(expression),
        "gradient": lambda: tc.compile(tc.grad(expression, problem.wrt)),
        "both": lambda: tc.compile(tc.value_and_grad(expression, problem.wrt)),
        "hessian": lambda: tc.compile(tc.hessian(expression, problem.wrt)),
        "core": lambda: tc.compile(tc.hessian(expression, problem.wrt), structured=True),
    }
    wished = [q for q in quantities if q in problem.hand]
    for quantity, wish in wishes.items():
        if quantity in wished:
            step = wish()
            plan, call = step.plan_for(**shapes), bind(step, arrays)
            yield Entry(quantity, "tcalc", "tcalc", call, times, plan.flops, plan.peak_bytes)
    if "newton" in wished:
        step = wishes["core"]()
        yield Entry("newton", "tcalc", "tcalc", newton(step, arrays, task.rhs))


def bind(step: Callable[..., Any], arrays: dict[str, Array]) -> Callable[[], Any]:
    return lambda: step(**arrays)


def newton(step: Callable[..., Any], arrays: dict[str, Array], rhs: Nest) -> Callable[[], Nest]:
    """Core and solution together; every call factors anew."""
    return lambda: step(**arrays).solve(rhs)


def times(core: Any, v: Nest) -> Nest:
    product: Nest = core @ v
    return product
