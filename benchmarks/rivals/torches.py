"""torch.func on the CPU in double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..nests import pushed
from ..problem import Task
from . import Entry

torch.set_default_dtype(torch.float64)


def make(task: Task) -> Iterator[Entry]:
    arrays = {name: torch.tensor(array) for name, array in task.data.items()}
    variable = task.problem.point(arrays)

    def objective(x: Any) -> Any:
        return task.problem.objective(torch, task.problem.at(x, arrays))

    wanted = {
        "value": objective,
        "both": lambda x: torch.func.grad_and_value(objective)(x)[::-1],
        "gradient": torch.func.grad(objective),
        "jacobian": torch.func.jacrev(objective),
        "hessian": torch.func.hessian(objective),
    }
    for quantity, function in wanted.items():
        yield Entry(quantity, "torch", "torch", bind(function, variable), pushed)


def bind(function: Callable[[Any], Any], variable: Any) -> Callable[[], Any]:
    return lambda: function(variable)
