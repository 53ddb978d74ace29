"""Requests drawn from the description of the JSON interface get answers that it describes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the extra `web` is not installed")
pytest.importorskip("schemathesis", reason="schemathesis is not installed")

from tests.web_server import served

# Whether text is in the language is for the parser to say, not for the description.
CONFIGURATION = Path(__file__).with_name("schemathesis.toml")


def test_answers_are_as_described() -> None:
    with served() as address:
        done = subprocess.run(
            [
                sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIGURATION),
                "run", f"{address}/openapi.json", "--max-examples", "40",
            ],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:]
    assert "generated" in done.stdout
