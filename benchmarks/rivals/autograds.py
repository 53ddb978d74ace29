"""autograd: reverse over reverse, one pass per row of the Hessian."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import autograd
import autograd.numpy as anp
import numpy as np

from ..nests import Nest, each, leaves, pushed, times
from ..problem import Task
from . import Entry, Oracle


def make(task: Task) -> Iterator[Entry]:
    for quantity, function in functions(task).items():
        yield Entry(quantity, "autograd", "autograd", bind(function, task), pushed)


def functions(task: Task) -> dict[str, Callable[[Nest], Nest]]:
    """autograd's own transforms take one array; a tuple of variables is taken block by block."""
    names = tuple(leaves(task.problem.wrt))
    places = {name: place for place, name in enumerate(names)}

    def objective(*variables: Any) -> Any:
        data = {**task.data, **dict(zip(names, variables, strict=True))}
        return task.problem.objective(anp, data)

    def value(x: Nest) -> Any:
        return objective(*leaves(x))

    def gradient(x: Nest) -> Nest:
        return each(
            lambda name: autograd.grad(objective, places[name])(*leaves(x)), task.problem.wrt
        )

    def hessian(x: Nest) -> Nest:

        def row(name: str) -> Nest:
            slope = autograd.grad(objective, places[name])
            return each(
                lambda other: autograd.jacobian(slope, places[other])(*leaves(x)),
                task.problem.wrt,
            )

        return each(row, task.problem.wrt)

    def jacobian(x: Nest) -> Nest:
        return each(
            lambda name: autograd.jacobian(objective, places[name])(*leaves(x)), task.problem.wrt
        )

    return {
        "value": value,
        "gradient": gradient,
        "both": lambda x: (value(x), gradient(x)),
        "jacobian": jacobian,
        "hessian": hessian,
    }


def bind(function: Callable[[Nest], Nest], task: Task) -> Callable[[], Nest]:
    point = task.problem.point(task.data)
    return lambda: function(point)


def oracle(task: Task) -> Oracle:
    point, made = task.problem.point(task.data), functions(task)

    def dense(quantity: str) -> Nest:
        return each(np.asarray, made[quantity](point))

    def product(v: Nest) -> Nest:
        return times(dense("hessian"), v)

    return Oracle("autograd", dense, product, lambda v: pushed(dense("jacobian"), v))
