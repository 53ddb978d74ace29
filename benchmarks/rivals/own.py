"""tcalc itself, through its public names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import tcalc as tc

from ..nests import Nest
from ..problem import Array, Task
from . import Entry

Call = Callable[[], Any]


def make(task: Task) -> Iterator[Entry]:
    return entries(task, "tcalc", partial(tc.compile, backend="numpy"))


def as_it_is(call: Call) -> Call:
    return call


def entries(
    task: Task, label: str, step_of: Callable[..., Any], settled: Callable[[Call], Call] = as_it_is
) -> Iterator[Entry]:
    """What functions that ``step_of(outputs, structured=)`` compiles compute.

    Calls are timed as `settled` makes them.
    """
    problem, quantities = task.problem, task.case.quantities
    expression = problem.expression(task.case.sizes)
    arrays = {name: task.data[name] for name in expression.variables}
    shapes = {name: array.shape for name, array in arrays.items()}
    wishes: dict[str, Callable[[], Any]] = {
        "value": lambda: step_of(expression),
        "gradient": lambda: step_of(tc.grad(expression, problem.wrt)),
        "both": lambda: step_of(tc.value_and_grad(expression, problem.wrt)),
        "jacobian": lambda: step_of(tc.jacobian(expression, problem.wrt), structured=True),
        "hessian": lambda: step_of(tc.hessian(expression, problem.wrt)),
        "core": lambda: step_of(tc.hessian(expression, problem.wrt), structured=True),
    }
    wished = [q for q in quantities if q in problem.hand]
    for quantity, wish in wishes.items():
        if quantity in wished:
            step = wish()
            plan, call = step.plan_for(**shapes), settled(bind(step, arrays))
            yield Entry(quantity, label, "tcalc", call, times, plan.flops, plan.peak_bytes)
    if "newton" in wished:
        step = wishes["core"]()
        yield Entry("newton", label, "tcalc", settled(newton(step, arrays, task.rhs)))


def bind(step: Callable[..., Any], arrays: dict[str, Array]) -> Call:
    return lambda: step(**arrays)


def newton(step: Callable[..., Any], arrays: dict[str, Array], rhs: Nest) -> Callable[[], Nest]:
    """Core and solution together; every call factors anew."""
    return lambda: step(**arrays).solve(rhs)


def times(core: Any, v: Nest) -> Nest:
    product: Nest = core @ v
    return product
