"""The command line of the benchmarks on tiny sizes: what it prints, draws, refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cli, plot, report
from benchmarks.problems import PROBLEMS
from benchmarks.rivals import RIVALS


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


def test_factor_reports_forward_and_backward(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "factor.png"
    words = ["factor", "potrf", "--sizes", "8", "--rivals", "hand,jax", "--repeat", "1"]
    assert cli.main([*words, "--plot", str(out)]) == 0
    lines = capsys.readouterr().out.splitlines()
    for n in ("8",):
        for name in ("tcalc", "hand", "jax"):
            assert sum(line.split()[:2] == [n, name] for line in lines) == 1
    assert out.stat().st_size > 1000


def test_fit_reports_that_it_converged(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["fit", "linear-regression", "--sizes", "tiny"]) == 0
    header, line = capsys.readouterr().out.splitlines()
    assert header.split()[-1] == "converged"
    assert line.split()[0] == "linear-regression"
    assert line.split()[-1] == "yes"


@pytest.mark.parametrize(
    "words",
    [
        ["run", "nonsense"],
        ["run", "--rivals", "x"],
        ["run", "net", "--sizes", "enormous"],
        ["factor", "net"],
        ["fit", "net"],
        ["plot", "no"],
    ],
)
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


def test_cluster_reports_what_a_block_costs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="dask is not installed: pip install '.[test]'")
    picture, file = tmp_path / "blocks.png", tmp_path / "blocks.json"
    words = ["cluster", "--partitions", "1,4", "--workers", "none", "--repeat", "1"]
    assert cli.main([*words, "--plot", str(picture), "--json", str(file)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["blocks", "1", "4"]
    assert lines[-1].startswith("a block of its own task:")
    assert picture.stat().st_size > 1000
    assert json.loads(file.read_text(encoding="utf-8"))["overhead"]["alone"][1][0] == 4


def test_the_line_through_times_is_what_they_were_made_of() -> None:
    from benchmarks.clusters import line

    counts = (1, 10, 100, 1000)
    base, each = line([(n, 0.02 + 0.003 * n) for n in counts])
    assert base == pytest.approx(0.02)
    assert each == pytest.approx(0.003)
