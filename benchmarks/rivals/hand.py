"""The forms that an expert writes by hand, which live with each problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..nests import each
from ..problem import Form, Task
from . import Entry, Oracle


def make(task: Task) -> Iterator[Entry]:
    for quantity, forms in task.problem.hand.items():
        for name, form in forms.items():
            yield Entry(
                quantity,
                f"hand {name}".strip(),
                "hand",
                bind(form, quantity, task),
                product=task.times,
                flops=form.flops(task.case.sizes),
                ready=True,
            )


def bind(form: Form, quantity: str, task: Task) -> Callable[[], Any]:
    if quantity == "newton":
        return lambda: form.call(task.data, task.rhs)
    return lambda: form.call(task.data)


def oracle(task: Task) -> Oracle:
    hand = task.problem.hand

    def first(quantity: str) -> Any:
        return next(iter(hand[quantity].values())).call(task.data)

    core = "core" if "core" in hand else "hessian"

    def along(quantity: str) -> Callable[[Any], Any]:
        return lambda v: task.problem.product(first(quantity), task.data, v)

    return Oracle(
        "hand",
        lambda quantity: each(np.asarray, first(quantity)),
        along(core),
        along("jacobian"),
    )
