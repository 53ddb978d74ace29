"""From text to the first Hessian in a fresh process, for tcalc and for a jitted `jax.hessian`.

Nothing is loaded before the clock starts, so NumPy counts to the import of either; the data are
drawn while the clock stands.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import processes

if TYPE_CHECKING:
    from .problem import Task

IMPORTS = {"tcalc": ("tcalc",), "jax": ("jax", "jax.numpy")}


def run(problem: str, label: str) -> dict[str, Any]:
    """Seconds of the import, of everything up to the first number, and of the next call."""
    start = time.perf_counter()
    for name in IMPORTS[label]:
        import_module(name)
    imported = time.perf_counter() - start

    from .problem import Task
    from .problems import PROBLEMS

    task = Task.of(PROBLEMS[problem], PROBLEMS[problem].cases["small"][0])
    start = time.perf_counter()
    call = {"tcalc": by_tcalc, "jax": by_jax}[label](task)
    call()
    first = time.perf_counter() - start
    start = time.perf_counter()
    call()
    return {"import": imported, "first": first, "again": time.perf_counter() - start}


def by_tcalc(task: Task) -> Callable[[], Any]:
    import tcalc as tc

    expression = task.problem.expression(task.case.sizes)
    step = tc.compile(tc.hessian(expression, task.problem.wrt))
    arrays = {name: task.data[name] for name in expression.variables}
    return lambda: step(**arrays)


def by_jax(task: Task) -> Callable[[], Any]:
    import jax
    import jax.numpy as jnp

    def objective(variable: Any, rest: Any) -> Any:
        return task.problem.objective(jnp, task.problem.at(variable, rest))

    hessian = jax.jit(jax.hessian(objective))
    variable = task.problem.point(task.data)
    return lambda: jax.block_until_ready(hessian(variable, dict(task.data)))


def measure(
    problems: list[str],
    threads: int,
    repeat: int,
    tell: processes.Tell,
    step: Callable[[], Any],
) -> list[dict[str, Any]]:
    """Best of several fresh processes for every problem and contestant."""
    results = []
    for problem in problems:
        for label in IMPORTS:
            runs = []
            for _ in range(repeat):
                job = {"problem": problem, "label": label}
                runs.append(processes.run("first", job, threads, tell))
                step()
            best = {key: min(run[key] for run in runs) for key in runs[0]}
            results.append({"problem": problem, "label": label, **best})
    return results


if __name__ == "__main__":
    processes.serve(run)
