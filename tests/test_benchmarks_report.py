"""The benchmark report: runs that go on where they stopped, ends of rivals, and the page."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks import cli, harness, nests, plot, processes
from benchmarks.problem import Task
from benchmarks.problems import PROBLEMS
from benchmarks.reporting import jobs, selection, tables
from benchmarks.reporting.jobs import Folder, Job
from benchmarks.reporting.sections import SECTIONS

ROOT = Path(__file__).resolve().parent.parent

#: Seconds of each contestant in results that are made up.
TAKEN = {"tcalc auto": 2e-3, "hand": 1e-3, "jax": 4e-3, "torch": 8e-3}
STEPS = {"build": 0.1, "derive": 0.2, "plan": 0.3}


def made_up(module: str, asked: dict[str, Any]) -> dict[str, Any]:
    """What a job would give."""
    if module == "cases":
        case = jobs.case_of(asked)
        rows = [
            {"quantity": q, "label": label, "seconds": taken, "refused": "", "error": 1e-16,
             "bytes": 8, "peak": 8}
            for q in asked["quantities"]
            for label, taken in TAKEN.items()
        ]  # fmt: skip
        sizes = {"n": case.sizes.get("n", 1)}
        label = f"n={sizes['n']}"
        return {"problem": asked["problem"], "case": label, "sizes": sizes, "rows": rows}
    return {
        "memory": lambda: {**asked, "case": "n=4", "label": asked["rival"], "bytes": 10**6,
                           "predicted": 900, "result": 8},
        "depth": lambda: {"layers" if asked["kind"] == "net" else "operations": asked["count"],
                          "seconds": STEPS},
        "first": lambda: {"import": 0.3, "first": 0.2, "again": 0.1},
        "sources": lambda: {"rows": [{
            "problem": asked["problem"], "n": asked["n"], "quantity": "value", "error": 0.0,
            "language": asked["language"], "program": 2e-6, "plan": 1e-6, "traced": 8,
            "predicted": 8, "kernels": 8,
        }]},
        "spellings": lambda: {"rows": [{
            "model": "gp", "n": 9, "spelling": "apart", "operations": [1, 2, 3],
            "products": 4.0, "matrices": 5.0,
        }]},
        "fit": lambda: {
            "case": "tiny", "method": "BFGS", "parameters": 2, "steps": 3, "start": 1.0,
            "end": 0.0, "slope": 0.0, "curvature": 1.0, "derived": 0.1, "seconds": 0.1,
            "converged": True,
        },
    }[module]()  # fmt: skip


class Workers:
    """Stands for processes: what was asked of them, and how each answers."""

    def __init__(self, answer: Callable[[str, dict[str, Any]], dict[str, Any]] = made_up) -> None:
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.answer = answer

    def __call__(
        self, module: str, job: dict[str, Any], threads: int, tell: Any, **_: Any
    ) -> dict[str, Any]:
        self.asked.append((module, job))
        return json.loads(json.dumps(self.answer(module, job)))


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Workers:
    found = Workers()
    monkeypatch.setattr(processes, "run", found)
    return found


def run(folder: Path, *words: str) -> tuple[int, str]:
    """The status of the command and the page that it wrote."""
    status = cli.main(
        ["report", "--sizes", "tiny", "--results", str(folder / "results"),
         "--out", str(folder / "page"), *words]
    )  # fmt: skip
    return status, (folder / "page/index.md").read_text(encoding="utf-8")


def test_a_run_that_ends_early_goes_on_where_it_stopped(workers: Workers, tmp_path: Path) -> None:
    words = ["--sections", "depth,first"]
    status, page = run(tmp_path, *words, "--budget", "0")
    assert (status, workers.asked) == (1, [])
    assert "No results are here yet" in page
    assert run(tmp_path, "--sections", "depth")[0] == 0
    first = list(workers.asked)
    status, page = run(tmp_path, *words)
    assert status == 0
    assert workers.asked[: len(first)] == first
    assert {module for module, _ in workers.asked[len(first) :]} == {"first"}
    assert "Not measured yet" not in page
    run(tmp_path, *words)
    assert len(workers.asked) == len(list((tmp_path / "results").glob("*.json")))


def test_results_are_told_apart_by_all_that_was_asked(tmp_path: Path) -> None:
    job = Job("cases", {"problem": "gp", "sizes": "4"}, 1)
    others = [
        replace(job, module="memory"), replace(job, threads=2), replace(job, turn=1),
        replace(job, arguments={"problem": "gp", "sizes": "5"}),
        replace(job, arguments={"problem": "gp", "sizes": "4", "repeat": 2}),
    ]  # fmt: skip
    assert len({other.name for other in (job, *others)}) == 6
    assert replace(job).name == job.name
    assert len(jobs.distinct([job, replace(job), *others])) == 6


@pytest.mark.parametrize("reach", selection.REACHES)
def test_jobs_are_of_cases_that_are_there(reach: str) -> None:
    for section in SECTIONS.values():
        for job in section.jobs(selection.Selection(reach)):
            assert (ROOT / f"benchmarks/{job.module}.py").exists()
            if job.module == "cases":
                case = jobs.case_of(job.arguments)
                offered = {*case.quantities, "value"} & set(job.arguments["quantities"])
                assert offered, (section.name, case.label)


def test_a_rival_that_ends_its_process_is_named_and_left_out(tmp_path: Path) -> None:
    def answer(module: str, job: dict[str, Any]) -> dict[str, Any]:
        refused = [list(pair) for pair in job.get("without", [])]
        for label, step in (("jax", "checking"), ("torch", "calling")):
            if ["hessian", label] not in refused:
                said = [f"logistic, n=30: {step} hessian, {label}", "a warning"]
                raise processes.Failed(module, "out of memory", said)
        result = made_up(module, job)
        result["rows"] = [r for r in result["rows"] if ["hessian", r["label"]] not in refused]
        return result

    workers, folder = Workers(answer), Folder(tmp_path)
    asked = {"problem": "logistic", "place": 0, "quantities": ["hessian"], "rivals": []}
    small, large = (Job("cases", {**asked, "sizes": n}) for n in ("30", "100"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(processes, "run", workers)
        assert jobs.measure([small, large], folder, processes.Bounds(1.0), None, print) == 0
    (first, second) = (folder.read(job) for job in (small, large))
    assert first is not None
    assert second is not None
    assert len(workers.asked) == 4  # the larger case is not tried with those
    ended = {r["label"]: r["refused"] for r in first["result"]["rows"] if r["refused"]}
    assert ended == {"jax": "out of memory", "torch": "out of memory"}
    ended = {r["label"]: r["refused"] for r in second["result"]["rows"] if r["refused"]}
    assert ended["jax"] == "not tried: out of memory at n=30"


def test_who_cannot_be_judged_in_time_is_not_blamed_for_it() -> None:
    line = "logistic, n=30: judging hessian, tcalc auto"
    assert jobs.culprit([line]) == (("hessian", "tcalc auto"), "unchecked: ")
    assert jobs.culprit(["logistic, n=30: timing hessian"]) is None


def test_a_job_without_a_result_is_a_line_of_the_page(tmp_path: Path) -> None:
    def answer(module: str, job: dict[str, Any]) -> dict[str, Any]:
        if job["kind"] == "chain":
            raise processes.Failed(module, "status 1", ["no room"])
        return made_up(module, job)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(processes, "run", Workers(answer))
        status, page = run(tmp_path, "--sections", "depth")
    assert status == 0
    assert "* depth, chain, 10, threads 1: status 1" in page
    workers = Workers()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(processes, "run", workers)
        run(tmp_path, "--sections", "depth")
        assert not workers.asked  # it is written down, too
        page = run(tmp_path, "--sections", "depth", "--again")[1]
    assert [job["kind"] for _, job in workers.asked] == ["chain"]
    assert "status 1" not in page


def test_the_page_has_every_section_and_shows_what_is_lost(
    workers: Workers, tmp_path: Path
) -> None:
    status, page = run(tmp_path)
    assert status == 0
    for section in SECTIONS.values():
        assert f"\n## {section.title}\n" in page
    lost = page.partition("### To code by hand")[2]
    assert re.search(
        r"\| logistic \| n=4 \| 1 \| hessian \| 2 ms \| hand \| 1 ms \| \*\*2.00", lost
    )
    assert "None." in page.partition("### To other systems")[2].partition("###")[0]
    assert "faster than jax in" in page
    pictures = re.findall(r"!\[[^]]*\]\(([^)]+)\)", page)
    assert len(pictures) == len(set(pictures)) >= 10
    for name in pictures:
        root = ElementTree.parse(tmp_path / "page" / name).getroot()
        assert root.tag.endswith("svg")
    rows = (tmp_path / "page/results.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) > 100
    assert rows[0].startswith("problem,case,threads,commit,quantity,label,seconds")


def test_other_machines_and_states_of_the_code_are_told_apart(
    workers: Workers, tmp_path: Path
) -> None:
    run(tmp_path, "--sections", "depth")
    file = next((tmp_path / "results").glob("depth-net-2-*.json"))
    record = json.loads(file.read_text(encoding="utf-8"))
    record["machine"] |= {"commit": "0123456789ab", "date": "2001-01-01"}
    file.write_text(json.dumps(record), encoding="utf-8")
    page = run(tmp_path, "--sections", "depth")[1]
    assert page.count("* measurement ") == 2
    assert re.search(r"measurement 1: .*2001-01-01; commit 0123456789ab; 1 job", page)
    assert "From measurement 1 (1 jobs), measurement 2 (2 jobs)." in page


def test_losses_are_of_the_best_of_the_others_and_of_who_has_no_time() -> None:
    rows = [
        {"quantity": "value", "label": label, "seconds": taken, "refused": why}
        for label, taken, why in (
            ("tcalc auto", 3.0, ""), ("jax", 2.0, ""), ("jax rev-rev", 1.0, ""), ("hand", 9.0, ""),
        )
    ]  # fmt: skip
    result = {"problem": "p", "case": "n=1", "threads": 1, "rows": rows}
    (found,) = tables.compared([result], ("jax", "torch"))
    assert (found.rival, found.ratio) == ("jax rev-rev", 3.0)
    assert not tables.compared([result], ("torch",))
    rows[0] |= {"seconds": None, "refused": "failed: MemoryError: too large"}
    (found,) = tables.compared([result], ("jax",))
    assert "out of memory" in tables.lost([found])
    assert "**no time**" in tables.lost([found])


def test_figures_show_where_rivals_end(tmp_path: Path) -> None:
    def row(label: str, taken: float | None, why: str = "") -> dict[str, Any]:
        return {"quantity": "hessian", "label": label, "seconds": taken, "refused": why}

    results = [
        {"problem": "p", "case": f"n={n}", "sizes": {"n": n}, "threads": 1, "rows": [
            row("tcalc auto", 1e-4 * n),
            row("jax", 1e-2) if n < 9 else row("jax", None, "failed: X: Out of memory allocating"),
        ]}
        for n in (3, 9)
    ]  # fmt: skip
    out = tmp_path / "curves.svg"
    drawn = plot.panels({"results": results})
    plot.picture(drawn, "seconds", 3, out, ratios=True)
    texts = [e.text for e in ElementTree.parse(out).getroot().iter() if e.tag.endswith("text")]
    assert "jax: out of memory" in texts
    assert {"tcalc auto", "jax", "÷ tcalc", "seconds", "n", "9", "0.001"} <= set(texts)
    first = out.read_bytes()
    plot.picture(drawn, "seconds", 3, out, ratios=True)
    assert out.read_bytes() == first


def test_large_hessians_are_judged_by_products(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = PROBLEMS["gp"]  # by three variables: blocks
    task = Task.of(problem, problem.cases["tiny"][0])
    (entry,) = harness.enter(task, ["tcalc"], ["hessian"])
    (judge, *_) = harness.oracles(task)
    monkeypatch.setattr(harness, "LARGE", 4)
    unheld = replace(judge, dense=lambda quantity: pytest.fail("a dense oracle"))
    assert harness.validate(task, entry, [unheld])[0].refused == ""

    def wrong() -> Any:
        changed = nests.each(np.array, entry.call())
        changed[0][0][0, 1] *= -1
        return changed

    row, _ = harness.validate(task, replace(entry, call=wrong), [unheld])
    assert row.refused.startswith("wrong value")


def test_a_silent_process_is_ended() -> None:
    with pytest.raises(processes.Failed, match=r"over 0\.2 s") as found:
        processes.run("depth", {"kind": "chain", "count": 10}, 1, print, False, bounded(0.2))
    assert found.value.why == "over 0.2 s"


def bounded(seconds: float) -> processes.Bounds:
    return processes.Bounds(seconds)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux limits the data of a process")
def test_allocations_over_the_bound_fail() -> None:
    code = (
        "import numpy as np; from benchmarks import processes\n"
        "processes.limit(2**30); np.empty(10**6)\n"
        "try: np.empty(2**28)\n"
        "except MemoryError: print('refused')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "refused"


def test_the_site_has_the_page_and_its_files() -> None:
    page = (ROOT / "docs/report/index.md").read_text(encoding="utf-8")
    assert "\nreport/index\n" in (ROOT / "docs/index.md").read_text(encoding="utf-8")
    named = re.findall(r"\]\(([\w.-]+\.(?:svg|csv))\)", page)
    there = [file.name for file in (ROOT / "docs/report").iterdir() if file.suffix != ".md"]
    assert sorted(named) == sorted(there)
    assert sum(file.stat().st_size for file in (ROOT / "docs/report").iterdir()) < 1.5 * 2**20


def test_legends_have_as_many_columns_as_fit(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    plt = plot.opened()
    figure, _ = plt.subplots(figsize=(4.2, 4), layout="constrained")
    monkeypatch.setattr(plt, "close", lambda figure: None)
    styles = {f"a contestant with a long name, the {k}th": ("k", "o", "-") for k in range(4)}
    plot.saved(figure, styles, tmp_path / "legend.png", 4)
    (legend,) = figure.legends
    assert 0 < legend.get_window_extent().width <= figure.bbox.width
