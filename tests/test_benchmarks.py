"""The benchmark harness on tiny sizes: what it checks, refuses and reports. Nothing is timed here
but to see that a time appears."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import cli, harness, plot, report
from benchmarks.problem import QUANTITIES, Claim, Task
from benchmarks.problems import PROBLEMS
from benchmarks.rivals import RIVALS, Entry

RIVAL_NAMES = [name for name, rival in RIVALS.items() if rival.installed]


def tiny(problem: str) -> Task:
    return Task.of(PROBLEMS[problem], PROBLEMS[problem].cases["tiny"][0])


@pytest.mark.parametrize("rival", RIVAL_NAMES)
@pytest.mark.parametrize("problem", PROBLEMS)
def test_values_agree_with_another_family(problem: str, rival: str) -> None:
    task = tiny(problem)
    entries = harness.enter(task, [rival], QUANTITIES)
    assert entries
    for row in harness.measure(task, entries, repeat=0):
        assert not row.refused
        assert row.error is not None
        assert row.error < harness.TOLERANCE
        assert row.seconds is None


def faulty(change: Callable[[Any], Any]) -> tuple[Task, list[Entry]]:
    task = tiny("logistic")
    right = harness.enter(task, ["hand"], ["hessian"])
    wrong = [replace(entry, call=lambda e=entry: change(e.call())) for entry in right]  # type: ignore[misc]
    return task, wrong


@pytest.mark.parametrize(
    "change",
    [
        lambda h: -h,
        lambda h: h * 1.001,
        lambda h: h[:-1],
        lambda h: h.astype(np.float32),
        lambda h: h * np.nan,
        lambda h: np.triu(h),
    ],
)
def test_a_wrong_value_gets_no_time(change: Callable[[Any], Any]) -> None:
    task, entries = faulty(change)
    for row in harness.measure(task, entries, repeat=1):
        assert row.refused.startswith("wrong value")
        assert row.seconds is None


def test_a_wrong_core_gets_no_time() -> None:
    task = tiny("weighted-factorisation")
    (entry,) = harness.enter(task, ["hand"], ["core"])
    wrong = replace(entry, call=lambda: entry.call()[:, ::-1])
    (row,) = harness.measure(task, [wrong], repeat=1)
    assert row.refused.startswith("wrong value")
    assert row.seconds is None


def test_a_contestant_that_fails_is_reported() -> None:
    task = tiny("logistic")
    (entry,) = harness.enter(task, ["hand"], ["gradient"])
    (row,) = harness.measure(task, [replace(entry, call=lambda: [][0])], repeat=1)
    assert row.refused == "failed: IndexError: list index out of range"
    assert row.seconds is None


def test_a_wrong_newton_step_gets_no_time() -> None:
    task = tiny("matrix-factorisation")
    (entry,) = harness.enter(task, ["hand"], ["newton"])
    wrong = replace(entry, call=lambda: 2 * entry.call())
    (row,) = harness.measure(task, [wrong], repeat=1)
    assert row.refused
    assert row.seconds is None


def test_nobody_checks_his_own_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "ORACLES", ("hand",))
    task = tiny("logistic")
    (row,) = harness.measure(task, harness.enter(task, ["hand"], ["gradient"]), repeat=1)
    assert row.refused == "nobody to check it"
    assert row.seconds is None


def test_zeros_check_nothing() -> None:
    with pytest.raises(harness.Degenerate):
        harness.relative_error(np.zeros(3), np.zeros(3))


def test_a_right_value_gets_a_time() -> None:
    task = tiny("logistic")
    for row in harness.measure(task, harness.enter(task, ["hand"], ["hessian"]), repeat=1):
        assert row.seconds is not None
        assert row.seconds > 0


def row(label: str, seconds: float | None) -> harness.Row:
    return harness.Row("hessian", label, 0.0, seconds, "" if seconds else "wrong value", 1e6)


def test_claims_are_judged_by_the_measured_ratio() -> None:
    claims = [
        Claim(("hessian", "tcalc"), ("hessian", "hand"), 1.25),
        Claim(("hessian", "jax"), ("hessian", "hand"), 1.25),
        Claim(("hessian", "torch"), ("hessian", "hand"), 1.25),
    ]
    rows = [row("tcalc", 1.2), row("hand", 1.0), row("jax", 5.0), row("torch", None)]
    assert [verdict.met for verdict in harness.judge(claims, rows)] == [True, False, None]
    assert harness.judge(claims, rows)[1].ratio == 5


def test_a_claim_names_contestants_that_exist() -> None:
    for problem in PROBLEMS.values():
        forms = {
            (quantity, f"hand {name}".strip())
            for quantity, named in problem.hand.items()
            for name in named
        }
        others = {(q, name) for q in QUANTITIES for name in ("tcalc", "jax")}
        for claim in problem.claims:
            assert {claim.mine, claim.theirs} <= forms | others


def test_arrays_are_the_same_every_time_and_read_only() -> None:
    first, second = tiny("net"), tiny("net")
    assert first.data.keys() == second.data.keys()
    for name, array in first.data.items():
        assert np.array_equal(array, second.data[name])
        assert not array.flags.writeable


def test_real_data_loads() -> None:
    for problem in ("logistic", "matrix-factorisation"):
        for case in PROBLEMS[problem].cases["paper"]:
            if case.label.startswith(("breast", "digits")):
                task = Task.of(PROBLEMS[problem], case)
                assert task.rhs.shape == task.data[task.problem.wrt].shape


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `run` writes, from a fresh process."""
    folder = tmp_path_factory.mktemp("results")
    files = [folder / "results.json", folder / "results.md"]
    arguments = ["run", "logistic", "--sizes", "4", "--rivals", "hand,jax", "--repeat", "1"]
    status = cli.main([*arguments, "--json", str(files[0]), "--markdown", str(files[1])])
    assert status == 0
    assert "| hessian | tcalc |" in files[1].read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(files[0].read_text(encoding="utf-8"))
    return found


def test_run_reports_every_contestant(document: dict[str, Any]) -> None:
    (result,) = document["results"]
    assert {row["label"] for row in result["rows"]} >= {"tcalc", "hand gemm", "hand syrk", "jax"}
    assert all(row["seconds"] > 0 for row in result["rows"])
    assert result["rates"]["flops"] > 0
    assert "hessian: tcalc <= 1.25 x hand gemm + 10 µs, measured" in report.text(document)


def test_plot_writes_a_picture(document: dict[str, Any], tmp_path: Path) -> None:
    plot.draw(document, tmp_path / "curves.png")
    assert (tmp_path / "curves.png").stat().st_size > 1000


@pytest.mark.parametrize("words", [["run", "nonsense"], ["run", "--rivals", "x"], ["plot", "no"]])
def test_bad_words_end_with_status_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = cli.main([*words, "--out", "x.png"] if words[0] == "plot" else words)
    except SystemExit as stop:
        status = int(stop.code or 0)
    assert status == 2
    assert "Traceback" not in capsys.readouterr().err


def test_interrupt_ends_with_status_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.processes, "run", interrupted)
    assert cli.main(["run", "logistic"]) == 130


def test_list_names_everything(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in (*PROBLEMS, *RIVALS))
