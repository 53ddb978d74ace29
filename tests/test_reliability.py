"""What the page on reliability points to exists, and every line says whether it is held."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec

import pytest

from tests.documents import ROOT, text

PAGE = text(ROOT / "docs" / "reliability.md")
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in PAGE.splitlines()
    if line.startswith("| ") and "`" in line.partition(" | ")[2].partition(" | ")[0]
]


def test_every_line_says_whether_it_is_held() -> None:
    assert len(ROWS) > 15
    for row in ROWS:
        assert len(row) == 3, row
        assert re.match("yes|no|partly", row[2]), row


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(tests/[\w./:]+)`", PAGE))))
def test_what_shows_it_is_there(name: str) -> None:
    path, _, function = name.partition("::")
    source = (ROOT / path).read_text(encoding="utf-8")
    if function:
        tests = {n.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)}
        assert function in tests


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`[^`]*python -m (\w[\w.]*)", PAGE))))
def test_commands_are_there(name: str) -> None:
    assert find_spec(name) is not None
