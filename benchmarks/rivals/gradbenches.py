"""GradBench's own C++, by hand or made by Tapenade, where a checkout is named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..nests import Nest
from ..problem import Data, Task
from ..suite import Run, checkout, program
from . import Entry

#: Seconds in which a program repeats what is to be timed.
REPEATING = 0.05


def make(task: Task) -> Iterator[Entry]:
    root, suite = checkout(), task.problem.suite
    given = suite.given(task.data) if root and suite else None
    if root is None or suite is None or given is None:
        return
    for tool in suite.tools:
        for quantity, (function, read) in suite.functions.items():
            run = Run(program(root, tool, suite.name), function, given)
            label = "gradbench" if tool == "manual" else f"gradbench {tool}"
            call, clock = value_of(run, read, task.data), clock_of(run)
            yield Entry(quantity, label, "gradbench", call, task.times, ready=True, clock=clock)


def value_of(run: Run, read: Callable[[Any, Data], Nest], data: Data) -> Callable[[], Nest]:
    return lambda: read(run()[0], data)


def clock_of(run: Run) -> Callable[[], float]:
    def clock() -> Any:
        return run(REPEATING, 3)[1]

    return clock
