"""No program of C reads or writes memory that is not its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.sanitized import environment


def run(tmp_path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    around = environment(tmp_path)
    if around is None:
        pytest.skip("no address sanitizer of the C compiler runs here")
    command = [sys.executable, "-m", "tests.sanitized", *options]
    return subprocess.run(command, env=around, capture_output=True, text=True, check=False)


def test_an_entry_too_many_is_found(tmp_path: Path) -> None:
    found = run(tmp_path, "--wrong")
    assert found.returncode
    assert "heap-buffer-overflow" in found.stderr
    assert "beyond" in found.stderr


def test_programs_stay_in_their_memory(tmp_path: Path) -> None:
    found = run(tmp_path)
    assert not found.returncode, found.stderr[-3000:]
    assert found.stdout.endswith("all in bounds\n")
