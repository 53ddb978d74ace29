"""The most memory that a process grows by when a contestant computes, results and buffers included.

Measured by the system, so that it means the same for all: resident pages at their peak in a second
call, beside those there were when data and libraries were loaded and a tiny case had been computed.
What a compiler needed for the first call is given back before the second.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from . import harness, processes
from .problem import Task
from .problems import PROBLEMS
from .rivals import Entry

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def run(problem: str, sizes: str, quantity: str, rival: str) -> dict[str, Any]:
    """Bytes at the peak of the rival's first entry, and those that it predicts and returns."""
    if not RESET.exists():
        raise RuntimeError("this system does not tell the peak of a process")
    found = PROBLEMS[problem]
    for entry in entered(Task.of(found, found.cases["tiny"][0]), quantity, rival):
        entry.call()
    task = Task.of(found, found.select(sizes)[0])
    case = {"problem": problem, "case": task.case.label, "quantity": quantity}
    for entry in entered(task, quantity, rival):
        free()
        base = resident("VmRSS")
        returned = harness.held(entry.call())
        free()
        RESET.write_text("5")
        value = entry.call()
        peak = resident("VmHWM") - base
        del value
        row = {"label": entry.label, "bytes": peak, "predicted": entry.peak, "result": returned}
        return {**case, **row}
    return {**case, "label": rival, "bytes": None, "predicted": None, "result": None}


def entered(task: Task, quantity: str, rival: str) -> list[Entry]:
    """What the rival offers first."""
    task = replace(task, case=replace(task.case, quantities=(quantity,)))
    return harness.enter(task, [rival], [quantity])[:1]


def free() -> None:
    """Give back to the system what nobody holds."""
    gc.collect()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def resident(name: str) -> int:
    """A line of the process's status, in bytes."""
    lines = dict(line.split(":", 1) for line in STATUS.read_text("utf-8").splitlines())
    return 1024 * int(lines[name].split()[0])


if __name__ == "__main__":
    processes.serve(run)
