"""autograd: reverse over reverse, one pass per row of the Hessian."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np

from ..problem import Array, Task
from . import Entry, Oracle


def make(task: Task) -> Iterator[Entry]:
    for quantity, function in functions(task).items():
        yield Entry(quantity, "autograd", "autograd", bind(function, task.data[task.problem.wrt]))


def functions(task: Task) -> dict[str, Callable[[Array], Any]]:
    def objective(variable: Any) -> Any:
        return task.problem.objective(anp, {**task.data, task.problem.wrt: variable})

    return {
        "value": objective,
        "gradient": autograd.grad(objective),
        "hessian": autograd.hessian(objective),
    }


def bind(function: Callable[[Array], Any], variable: Array) -> Callable[[], Any]:
    return lambda: function(variable)


def oracle(task: Task) -> Oracle:
    variable, made = task.data[task.problem.wrt], functions(task)

    def product(v: Array) -> Array:
        along = autograd.grad(lambda x: anp.sum(made["gradient"](x) * v))
        return np.asarray(along(variable))

    return Oracle("autograd", lambda quantity: np.asarray(made[quantity](variable)), product)
