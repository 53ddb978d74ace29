"""The documentation's table of linear algebra says what the tests do."""

from __future__ import annotations

import re

import pytest

import tcalc as tc
from tests.linalg_cases import CASES
from tests.operators_table import END, PAGE, START, operator, table, written


def test_the_page_has_the_table() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.count(START) == text.count(END) == 1
    message = "run `python -m tests.operators_table`"
    assert written(text) == text, message


def test_every_function_has_a_case() -> None:
    tested = {operator(case) for case in CASES}
    assert tested == set(tc.linalg.__all__)


def test_the_module_lists_its_functions() -> None:
    listed = re.findall(r"^- [^`]*`([^`]*)`", tc.linalg.__doc__ or "", flags=re.MULTILINE)
    assert sorted(" ".join(listed).split()) == sorted(tc.linalg.__all__)


def test_the_table_follows_the_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    before = table()
    name = "tests.test_linalg.COMPOSITIONS"
    monkeypatch.setattr(name, {0: [()], 1: [("forward",)]})
    assert "0–1" in table()
    monkeypatch.undo()
    monkeypatch.setattr("tests.operators_table.CASES", [c for c in CASES if c.name != "lq-tall"])
    assert table() != before
