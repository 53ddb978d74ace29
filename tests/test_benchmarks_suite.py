"""The public suite's programs as a rival, on a checkout that stands in for it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import harness
from benchmarks.problem import QUANTITIES, Task
from benchmarks.problems import PROBLEMS

PROGRAM = """#!{python}
import json, sys
import numpy as np
given = json.load(open(sys.argv[1]))
assert sys.argv[2] == "primal" and given["min_runs"] >= 1
x, y = np.array(given["x"]), np.zeros(len(given["x"]))
for _ in range(given["s"]):
    h, f = 2 / given["s"], lambda y: x * np.concatenate([[1], y[:-1]])
    a = f(y)
    b = f(y + h / 2 * a)
    c = f(y + h / 2 * b)
    y = y + h / 6 * (a + 2 * b + 2 * c + f(y + h * c))
print(json.dumps(y.tolist()))
for taken in (5000, 4000, 7000):
    print(json.dumps({{"name": "evaluate", "nanoseconds": taken}}))
"""


def task() -> Task:
    problem = PROBLEMS["runge-kutta"]
    return Task.of(problem, problem.cases["tiny"][0])


def test_programs_of_the_suite_run_on_our_data_and_time_themselves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tools" / "manual"
    folder.mkdir(parents=True)
    (folder / "source").write_text(PROGRAM.format(python=sys.executable))
    (folder / "Makefile").write_text("bin/ode: source\n\tmkdir -p bin; cp $< $@; chmod +x $@\n")
    monkeypatch.setenv("GRADBENCH", str(tmp_path))
    (row,) = harness.measure(task(), harness.enter(task(), ["gradbench"], QUANTITIES), repeat=2)
    assert (row.quantity, row.refused, row.seconds) == ("value", "", 4e-6)
    wrong = PROGRAM.replace("h / 6", "h / 5").format(python=sys.executable)
    (folder / "bin" / "ode").write_text(wrong)
    (row,) = harness.measure(task(), harness.enter(task(), ["gradbench"], QUANTITIES), repeat=2)
    assert row.refused.startswith("wrong value")


def test_a_program_that_cannot_be_made_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "tools" / "manual"
    folder.mkdir(parents=True)
    (folder / "Makefile").write_text("bin/ode:\n\t@echo no compiler here >&2; exit 1\n")
    monkeypatch.setenv("GRADBENCH", str(tmp_path))
    with pytest.raises(RuntimeError, match="no compiler here"):
        harness.enter(task(), ["gradbench"], QUANTITIES)
