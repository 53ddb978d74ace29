"""Printed programs beside plans: what is measured and reported; nothing is said of the times."""

from __future__ import annotations

import pytest

from benchmarks import report, sources
from benchmarks.problem import Task
from benchmarks.problems import PROBLEMS


@pytest.mark.parametrize("problem", sources.SIZES)
def test_programs_are_measured_beside_plans(problem: str) -> None:
    task = Task.of(PROBLEMS[problem], PROBLEMS[problem].cases["tiny"][0])
    rows = [
        sources.measured(task, quantity, repeat=1)
        for quantity in sources.ORDERS
        if quantity in task.case.quantities
    ]
    assert rows
    for row in rows:
        assert row["error"] < sources.TOLERANCE
        assert min(row[key] for key in ("program", "plan", "traced", "predicted")) > 0
    assert problem in report.sources(rows)
