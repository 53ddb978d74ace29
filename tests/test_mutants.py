"""Planted faults are faults, each is one, and what ran is told as it was."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import mutant_parts, mutants
from tests.mutations import Faults, meaning

#: A module, and lines that faults put in place of one of its own.
MODULE = '''
"""Words."""
def f(a, b, c=1):
    """More words."""
    if a < b and not c:
        raise ValueError(f"{a} + {b}")
    total = a - b * c
    total += 0.5
    for k in range(a):
        if k:
            continue
        total = g(total, k)
    return [x[k + 1] for x in total if x is not None]
'''
PLANTED = {
    "if a <= b and (not c):", "if a < b or not c:", "if not c:", "if a < b:", "if a < b and c:",
    "total = a + b * c", "total = a", "total = a - (b + c)", "total = a - 1.001 * (b * c)",
    "total = a - b", "total -= 0.5", "total += 0.5005", "def f(a, b, c=2):", "if not k:",
    "total = g(k, total)", "return [x[k - 1] for x in total if x is not None]",
    "return [x[k] for x in total if x is not None]",
    "return [x[k + 2] for x in total if x is not None]",
    "return [x[k + 1 - 1] for x in total if x is not None]",
    "return [x[k + 1] for x in total if x is None]", "return [x[k + 1] for x in total]", "pass",
}  # fmt: skip


def test_faults_change_one_line_and_what_it_means() -> None:
    faults = Faults(MODULE)
    plain = ast.unparse(ast.parse(MODULE)).splitlines()
    found = set()
    for fault in faults.all:
        source = faults.planted(fault)
        assert source is not None
        assert meaning(source) != meaning(MODULE)
        (changed,) = [
            line for old, line in zip(plain, source.splitlines(), strict=True) if old != line
        ]
        found.add(changed.strip())
        assert fault.functions == (3,)
    assert found >= PLANTED - {"total -= 0.5", "if a < b or not c:"}
    assert ast.unparse(faults.tree).splitlines() == plain


@pytest.mark.parametrize(
    "text",
    [
        "import a",
        "__all__ = [1, 2]",
        '"""a + b"""',
        "x: list[1] = y",
        "raise E(1 + 2)",
        "y = zip(*a, strict=True)",
        "y = min(a, b)",
        "y = row(a, flops=1 + 2)",
        "flops = 1 + 2",
        "def _path_time(a): return a + 1",
        "y = self.times * (self.time - loops) >= least",
        "y = row(a, domain=((0, 1), (2, 3)))",
        "y = spend(name, 2 * n)",
    ],
)
def test_what_nothing_computes_with_has_no_faults(text: str) -> None:
    assert not Faults(text, texts=True).all


def test_what_means_the_same_is_no_fault() -> None:
    same = Faults("y = 1 * 1")
    assert [same.planted(fault) is None for fault in same.all] == [False, True, False, False, False]


def test_text_that_is_compiled_has_faults_too() -> None:
    faults = Faults('row = "({0} + {1} * 2)"\n', texts=True)
    planted = {faults.planted(f) for f in faults.all}
    assert {
        "row = '({0} - {1} * 2)'",
        "row = '({0} + {1} / 2)'",
        "row = '({0} + {1} * 3)'",
    } <= planted


@pytest.mark.parametrize("name", mutant_parts.PARTS)
def test_parts_have_modules(name: str) -> None:
    part = mutant_parts.PARTS[name]
    for path in part.modules:
        assert (mutants.ROOT / path).exists(), path
    assert len(part.modules) > 4
    first, again = ([m.key for m in mutants.drawn(name, 2, seed=3)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 2


def test_reasons_are_of_faults_that_there_are() -> None:
    for module, what in mutant_parts.REASONS:
        part = next(p for p in mutant_parts.PARTS.values() if module in p.modules)
        faults = Faults((mutants.ROOT / module).read_text(encoding="utf-8"), part.texts)
        assert what in {fault.what for fault in faults.all}, (module, what)


SMALL_REPOSITORY = {
    "tcalc/__init__.py": "",
    "tcalc/small.py": """
LIMIT = 3

def f(n):
    return LIMIT * n + 1 if n else 1

def unread(n):
    return -n
""",
    "tests/__init__.py": "",
    "tests/test_small.py": """
from tcalc.small import f

def test_f():
    assert f(2) == 7
""",
    "tests/mutant_programs.py": """
from tcalc.small import f
from tests.planted import Trial

def trials(count):
    return [Trial("program 1", lambda: "" if f(1) > 2 else "f(1) is small")]
""",
    "tests/mutant_parts.py": """
from typing import NamedTuple

class Part(NamedTuple):
    modules: tuple
    texts: bool = False

PARTS = {"small": Part(("tcalc/small.py",))}
REASONS = {}

def tests():
    return ["tests/test_small.py"]
""",
    "pyproject.toml": "",
}


def test_a_run_goes_from_programs_to_tests_and_goes_on(tmp_path: Path) -> None:
    """In a small repository, of which no file is changed; what is in the log is not run again."""
    files = {**SMALL_REPOSITORY}
    for name in ("documents", "mutants", "mutant_tests", "mutations", "planted", "reach"):
        files[f"tests/{name}.py"] = (mutants.ROOT / f"tests/{name}.py").read_text(encoding="utf-8")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    log = tmp_path / "log.jsonl"
    command = [sys.executable, "-m", "tests.mutants", "--log", str(log), "--count", "20"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    ran = [
        subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert [r.returncode for r in ran] == [1, 1], ran[0].stderr
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    product = "LIMIT * n"
    file = "tests/test_small.py"
    assert sorted((r["what"], r["answer"].partition(":")[0]) for r in rows) == sorted([
        ("3 -> 4", "imported anew"),
        ("if n -> if not", "program 1"),
        (f"{product} + 1 -> {product} - 1", "program 1"),
        (f"{product} + 1 -> {product}", file),
        (f"{product} -> LIMIT + n", file),
        (f"{product} -> LIMIT", file),
        (f"{product} -> 1.001 * ({product})", file),
        ("1 -> 2", file),
        ("1 -> 2", "passed 2"),
        ("-n -> n", mutants.UNREACHED),
    ])  # fmt: skip
    told = "small: 8 of 10 caught (80.0%), 2 by programs; 0 make no difference, 1 not reached"
    assert all(told in r.stdout for r in ran)
    assert all((tmp_path / name).read_text(encoding="utf-8") == files[name] for name in files)
