"""Benchmarks on a device: every problem gets through, and what is written down of the machine."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from benchmarks import cli, devices, harness, processes, report
from benchmarks.problem import QUANTITIES, Task
from benchmarks.problems import PROBLEMS
from tests.cupy_stand_in import has_device

pytestmark = pytest.mark.gpu


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("problem", devices.PROBLEMS)
def test_every_problem_is_checked_and_right(problem: str) -> None:
    task = Task.of(PROBLEMS[problem], PROBLEMS[problem].cases["tiny"][0])
    rows = harness.measure(task, harness.enter(task, ["tcalc-cupy"], QUANTITIES), repeat=0)
    assert {row.quantity for row in rows} >= {"value", "gradient"}
    assert not [row.refused for row in rows if row.refused]


@pytest.mark.usefixtures("device")
def test_one_command_runs_them_beside_jax_and_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[tuple[dict[str, Any], bool]] = []

    def recorded(module: str, job: Any, threads: int, tell: Any, device: bool) -> dict[str, Any]:
        jobs.append((job, device))
        raise RuntimeError("not run")

    monkeypatch.setattr(processes, "run", recorded)
    assert cli.main(["run", "--backend", "cupy", "--repeat", "1"]) == 1
    assert {job["problem"] for job, _ in jobs} == {*devices.PROBLEMS}
    assert {(tuple(job["rivals"]), job["sizes"], there) for job, there in jobs} == {
        (("tcalc-cupy", "jax", "torch"), "paper", True)
    }
    environment = processes.environment(1, device=True)
    assert environment["JAX_PLATFORMS"].split(",")[0] == "cuda"
    machine = cli.machine()
    line = report.machine_line({"machine": machine})
    for word in (machine["device"], date.today().isoformat()[:4], "CUDA", "numpy", "jax"):
        assert word in line


@pytest.mark.skipif(has_device(), reason="there is a device")
def test_without_a_device_it_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--backend", "cupy"]) == 2
    assert "CuPy finds none here" in capsys.readouterr().err
