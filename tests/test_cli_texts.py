"""Expressions on the command line, in files and on standard input."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from tests.test_cli import run

MODEL = "# two lines\nr = A*x - b\nr'*r\n"


def test_an_expression_is_read_from_a_file_or_from_standard_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("data.npz", w=np.ones(3))
    options = ["--var", "A=m,n", "--var", "x=n", "--var", "b=m", "--wrt", "x"]
    wanted = (0, "2*A'*(A*x - b)\n", "")
    Path("model.txt").write_text(MODEL)
    assert run(capsys, "derive", "@model.txt", *options) == wanted
    Path("marked.txt").write_bytes(b"\xef\xbb\xbf" + MODEL.encode())
    assert run(capsys, "derive", "@marked.txt", *options) == wanted
    for word in ("-", " - "):
        monkeypatch.setattr("sys.stdin", io.StringIO(MODEL))
        assert run(capsys, "derive", word, *options) == wanted
    monkeypatch.setattr("sys.stdin", io.StringIO("sum(w)"))
    assert run(capsys, "eval", "-", "--data", "data.npz") == (0, "3.0\n", "")


def test_files_that_are_no_expressions_are_told_how_they_are_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("model.txt").write_text(MODEL)
    Path("x").write_text(MODEL)
    Path("bytes.txt").write_bytes(b"\xff\xfe")
    told = "tcalc: model.txt is a file, no expression: @model.txt reads it\n"
    assert run(capsys, "derive", "model.txt") == (2, "", told)
    here = f"{tmp_path}/model.txt"
    assert run(capsys, "derive", here)[2].endswith(f"no expression: @{here} reads it\n")
    assert run(capsys, "derive", "x") == (0, "x\n", "")
    assert run(capsys, "derive", "@none.txt") == (
        2, "", "tcalc: none.txt: No such file or directory\n"
    )  # fmt: skip
    assert run(capsys, "derive", "@bytes.txt") == (2, "", "tcalc: bytes.txt is no text in UTF-8\n")
    Path("model.txt").write_text("x +\n")
    assert "1:4: expected a number" in run(capsys, "derive", "@model.txt")[2]
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert "the text is empty" in run(capsys, "derive", "-")[2]
