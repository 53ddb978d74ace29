"""jax in double precision, jitted: `jax.hessian` (forward over reverse), reverse over reverse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..nests import Nest, each, pushed
from ..problem import Task
from . import Entry, Oracle

jax.config.update("jax_enable_x64", True)


def split(task: Task) -> tuple[Callable[[Any, Any], Any], Any, Any]:
    """The objective of (variables, data), and both as device arrays."""

    def objective(variable: Any, rest: Any) -> Any:
        return task.problem.objective(jnp, task.problem.at(variable, rest))

    arrays = {name: jnp.asarray(array) for name, array in task.data.items()}
    return objective, task.problem.point(arrays), arrays


def make(task: Task) -> Iterator[Entry]:
    objective, variable, rest = split(task)
    wanted = {
        ("value", "jax"): objective,
        ("gradient", "jax"): jax.grad(objective),
        ("both", "jax"): jax.value_and_grad(objective),
        ("jacobian", "jax"): jax.jacfwd(objective),
        ("jacobian", "jax reverse"): jax.jacrev(objective),
        ("hessian", "jax"): jax.hessian(objective),
        ("hessian", "jax rev-rev"): jax.jacrev(jax.jacrev(objective)),
    }
    for (quantity, label), function in wanted.items():
        if quantity != "jacobian" or quantity not in task.problem.batched:
            yield Entry(quantity, label, "jax", bind(jax.jit(function), variable, rest), pushed)
    for quantity, forms in task.problem.batched.items():
        rhs = each(jnp.asarray, task.rhs)
        for name, form in forms.items():
            call = bind(jax.jit(form), rest, rhs)
            yield Entry(quantity, f"jax {name}", "jax", call, task.times)


def bind(function: Callable[[Any, Any], Any], variable: Any, rest: Any) -> Callable[[], Any]:
    return lambda: jax.block_until_ready(function(variable, rest))


def oracle(task: Task) -> Oracle:
    objective, variable, rest = split(task)
    functions = {
        "value": objective,
        "gradient": jax.grad(objective),
        "both": jax.value_and_grad(objective),
        "hessian": jax.hessian(objective),
    }

    def dense(quantity: str) -> Nest:
        return each(np.asarray, jax.jit(functions[quantity])(variable, rest))

    def product(v: Nest) -> Nest:
        def gradient(x: Any) -> Any:
            return jax.grad(objective)(x, rest)

        return each(np.asarray, jax.jvp(gradient, (variable,), (each(jnp.asarray, v),))[1])

    def pushforward(v: Nest) -> Nest:
        def value(x: Any) -> Any:
            return objective(x, rest)

        return np.asarray(jax.jvp(value, (variable,), (each(jnp.asarray, v),))[1])

    return Oracle("jax", dense, product, pushforward)
