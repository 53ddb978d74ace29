"""One case of one problem, checked and timed; runs as a process of its own."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from . import harness, processes
from .problem import Task
from .problems import PROBLEMS


def run(
    problem: str,
    sizes: str,
    place: int,
    rivals: list[str],
    quantities: list[str],
    repeat: int,
    patience: float = harness.PATIENCE,
    without: Sequence[Sequence[str]] = (),
) -> dict[str, Any]:
    """The result as plain data; `place` is the case's position among those of `sizes`.

    Contestants that are named in `without`, as (quantity, label), are left out.
    """
    case = PROBLEMS[problem].select(sizes)[place]

    def tell(what: str) -> None:
        print(f"{problem}, {case.label}: {what}", file=sys.stderr, flush=True)

    task = Task.of(PROBLEMS[problem], case)
    refused = {tuple(pair) for pair in without}
    entries = harness.enter(task, rivals, quantities, tell)
    entries = [entry for entry in entries if (entry.quantity, entry.label) not in refused]
    rows = harness.measure(task, entries, repeat, tell, patience)
    rates = harness.machine_rates() if repeat else None
    verdicts = harness.judge(task.problem.claims, rows, rates, case.sizes) if rates else []
    return {
        "problem": problem,
        "case": case.label,
        "sizes": dict(case.sizes),
        "rates": asdict(rates) if rates else None,
        "rows": [asdict(row) for row in rows],
        "claims": [asdict(verdict) for verdict in verdicts],
    }


if __name__ == "__main__":
    processes.serve(run)
