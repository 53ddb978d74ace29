"""From text to the first Hessian in a fresh process, for tcalc and for a jitted `jax.hessian`.

tcalc runs as it is where nobody names a back end; on NumPy alone; and as it is where nothing has
ever been compiled, which must cost the first call next to nothing: compilers run behind it.

Nothing is loaded before the clock starts, so NumPy counts to the import of either; the data are
drawn while the clock stands. What either imports only when it is needed counts to its import too.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING, Any

from . import processes

if TYPE_CHECKING:
    from .problem import Task

#: A contestant whose libraries were never compiled finds an empty folder under this name.
CACHE = "TCALC_CACHE"


def run(problem: str, label: str) -> dict[str, Any]:
    """What the contestant of this label takes (`opened`)."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as empty:
        if label == "tcalc, nothing compiled":
            os.environ[CACHE] = empty
        return opened(problem, *CONTESTANTS[label])


def opened(
    problem: str, imports: Sequence[str], ready: Callable[[Task], Callable[[], Any]]
) -> dict[str, Any]:
    """Seconds of the import, of everything up to the first number, and of the next call."""
    start = time.perf_counter()
    for name in imports:
        import_module(name)
    imported = time.perf_counter() - start

    from .problem import Task
    from .problems import PROBLEMS

    task = Task.of(PROBLEMS[problem], PROBLEMS[problem].cases["small"][0])
    with ImportClock() as clock:
        start = time.perf_counter()
        call = ready(task)
        call()
        first = time.perf_counter() - start - clock.seconds
    start = time.perf_counter()
    call()
    again = time.perf_counter() - start
    return {"import": imported + clock.seconds, "first": first, "again": again}


class ImportClock:
    """Seconds that modules take to run when they are imported inside."""

    def __init__(self) -> None:
        self.seconds, self.depth = 0.0, 0

    def __enter__(self) -> ImportClock:
        sys.meta_path.insert(0, self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """What the other finders find, with a loader that is timed; imports inside count once."""
        rest = [finder for finder in sys.meta_path if finder is not self]
        found = (finder.find_spec(name, path, target) for finder in rest)
        spec = next((one for one in found if one is not None), None)
        loader: Any = None if spec is None else spec.loader
        if loader is None or isinstance(loader, type):  # the interpreter's own are classes
            return spec
        for step in ("create_module", "exec_module"):
            setattr(loader, step, self.timed(getattr(loader, step)))
        return spec

    def timed(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """The step of an import, which is timed unless it is part of another import."""

        def run(given: Any) -> Any:
            start, self.depth = time.perf_counter(), self.depth + 1
            try:
                return step(given)
            finally:
                self.depth -= 1
                self.seconds += 0 if self.depth else time.perf_counter() - start

        return run


def by_tcalc(task: Task, backend: str = "auto") -> Callable[[], Any]:
    import tcalc as tc

    expression = task.problem.expression(task.case.sizes)
    step = tc.compile(tc.hessian(expression, task.problem.wrt), backend=backend)
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


#: By label: what is imported, and what makes the function that is called.
CONTESTANTS: dict[str, tuple[tuple[str, ...], Callable[[Task], Callable[[], Any]]]] = {
    "tcalc": (("tcalc",), by_tcalc),
    "tcalc numpy": (("tcalc",), partial(by_tcalc, backend="numpy")),
    "tcalc, nothing compiled": (("tcalc",), by_tcalc),
    "jax": (("jax", "jax.numpy"), by_jax),
}


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
        runs: dict[str, list[dict[str, Any]]] = {label: [] for label in CONTESTANTS}
        for _ in range(repeat):  # in turns
            for label, own in runs.items():
                job = {"problem": problem, "label": label}
                own.append(processes.run("first", job, threads, tell))
                step()
        for label, own in runs.items():
            best = {key: min(run[key] for run in own) for key in own[0]}
            results.append({"problem": problem, "label": label, **best})
    return results


if __name__ == "__main__":
    processes.serve(run)
