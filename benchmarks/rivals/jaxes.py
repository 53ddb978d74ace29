"""jax in double precision, jitted: `jax.hessian` (forward over reverse), reverse over reverse."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..problem import Array, Task
from . import Entry, Oracle

jax.config.update("jax_enable_x64", True)


def split(task: Task) -> tuple[Callable[[Any, Any], Any], Any, Any]:
    """The objective of (variable, rest), and both as device arrays."""

    def objective(variable: Any, rest: Any) -> Any:
        return task.problem.objective(jnp, {**rest, task.problem.wrt: variable})

    arrays = {name: jnp.asarray(array) for name, array in task.data.items()}
    return objective, arrays.pop(task.problem.wrt), arrays


def make(task: Task) -> Iterator[Entry]:
    objective, variable, rest = split(task)
    wanted = {
        ("value", "jax"): objective,
        ("gradient", "jax"): jax.grad(objective),
        ("hessian", "jax"): jax.hessian(objective),
        ("hessian", "jax rev-rev"): jax.jacrev(jax.jacrev(objective)),
    }
    for (quantity, label), function in wanted.items():
        yield Entry(quantity, label, "jax", bind(jax.jit(function), variable, rest))


def bind(function: Callable[[Any, Any], Any], variable: Any, rest: Any) -> Callable[[], Any]:
    return lambda: function(variable, rest).block_until_ready()


def oracle(task: Task) -> Oracle:
    objective, variable, rest = split(task)
    functions = {
        "value": objective,
        "gradient": jax.grad(objective),
        "hessian": jax.hessian(objective),
    }

    def product(v: Array) -> Array:
        def gradient(x: Any) -> Any:
            return jax.grad(objective)(x, rest)

        return np.asarray(jax.jvp(gradient, (variable,), (jnp.asarray(v),))[1])

    return Oracle(
        "jax", lambda quantity: np.asarray(jax.jit(functions[quantity])(variable, rest)), product
    )
