"""torch.func in double precision, on the device where there is one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..nests import Nest, each, pushed
from ..problem import Task
from . import Entry

torch.set_default_dtype(torch.float64)
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def make(task: Task) -> Iterator[Entry]:
    arrays = {name: torch.tensor(array, device=DEVICE) for name, array in task.data.items()}
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
        call = bind(function, variable)
        yield Entry(quantity, "torch", "torch", call, pushed, on_host=on_host)


def bind(function: Callable[[Any], Any], variable: Any) -> Callable[[], Any]:
    def call() -> Any:
        found = function(variable)
        if DEVICE == "cuda":
            torch.cuda.synchronize()
        return found

    return call


def on_host(value: Nest) -> Nest:
    return each(lambda leaf: leaf.cpu(), value)
