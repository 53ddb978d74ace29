"""Planted faults are faults, each is one, and what ran is told as it was."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest

from tests import mutant_parts, mutant_programs, mutants
from tests.fuzz import CHECKS, Draw
from tests.mutations import Faults, meaning
from tests.random_programs import FAMILIES

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
def test_parts_have_modules_and_tests(name: str) -> None:
    part = mutant_parts.PARTS[name]
    for path in (*part.modules, *part.tests):
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


def test_a_run_catches_faults_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a small repository, of which no file is changed; what is in the log is not run again."""
    files = {
        "tcalc/__init__.py": "",
        "tcalc/small.py": "def f(n):\n    return 3 * n + 1 if n else 1\n",
        "tests/__init__.py": "",
        "tests/test_small.py": "from tcalc.small import f\n\ndef test_f():\n    assert f(2) == 7\n",
        "pyproject.toml": "",
    }
    for name in ("documents", "mutant_worker"):
        files[f"tests/{name}.py"] = (mutants.ROOT / f"tests/{name}.py").read_text(encoding="utf-8")
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    part = mutant_parts.Part(("tcalc/small.py",), ("tests/test_small.py",))
    monkeypatch.setattr(mutants, "ROOT", tmp_path)
    monkeypatch.setattr(mutants, "COPIED", ("tcalc", "tests", "pyproject.toml"))
    monkeypatch.setattr(mutants, "PARTS", {"small": part})
    log = tmp_path / "log.jsonl"
    arguments = ["--log", str(log), "--map", str(tmp_path / "map.json"), "--count", "3"]
    status = mutants.main(arguments)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len(lines) == 3
    assert (tmp_path / "tcalc/small.py").read_text() == files["tcalc/small.py"]
    said = capsys.readouterr().out
    caught = sum(line["caught"] for line in lines)
    assert f"small: {caught} of 3 caught" in said
    assert status == (caught < 3)
    mutants.main(arguments)
    assert log.read_text().count("\n") == 3
    assert all(line["tests"] == 1 for line in lines)
    assert {line["answer"].partition(" ")[0] for line in lines} <= {"failed", "passed"}


# --- faults that random programs look for ---------------------------------------------------------

SMALL = """
from functools import lru_cache

def f(n):
    return 3 * n + 1

def outer(k):
    def inner(n):
        return k * n
    return inner

made = outer(5)
rows = {"g": lambda n: n - 2, "h": lambda n: n - 2}

@lru_cache
def held(n):
    return n * 7
"""
#: What is called, and the line of its function.
CALLS = {"f(2)": 5, "made(2)": 9, "outer(5)(2)": 9, "rows['g'](2)": 13, "held(2)": 17}


def spawned(check: Callable[..., None], *given: Any) -> None:
    """Run a check in a new process: threads that libraries have started here may hang its forks."""
    with get_context("spawn").Pool(1) as pool:
        pool.apply(check, given)


@pytest.mark.parametrize("call", CALLS)
def test_a_fault_is_planted_in_functions_of_a_fork(call: str, tmp_path: Path) -> None:
    """In functions that were made before, and in those that are made later."""
    (tmp_path / "small.py").write_text(SMALL, encoding="utf-8")
    spawned(planted_in_forks, call, tmp_path)


def planted_in_forks(call: str, folder: Path) -> None:
    mutant_programs.ROOT = folder

    def imported(source: str) -> dict[str, Any]:
        scope: dict[str, Any] = {}
        exec(compile(source, str(folder / "small.py"), "exec"), scope)
        return scope

    here, faults = imported(SMALL), Faults(SMALL)
    plain, count = eval(call, here), 0
    for fault in faults.all:
        source = faults.planted(fault)
        if fault.line == CALLS[call] and source is not None:
            mutant = mutants.Mutant("", "small.py", fault, source)
            wanted = repr(eval(call, imported(source)))

            def work(mutant: mutants.Mutant = mutant) -> str:
                return repr(eval(call, here)) if mutant_programs.plant(mutant) else "not planted"

            found = mutant_programs.forked(work, 5)
            assert found == wanted, (found, wanted)
            count += wanted != repr(plain)
    assert count > 1
    assert eval(call, here) == plain


def test_what_hangs_or_dies_in_a_fork_is_told() -> None:
    spawned(hanging_and_dying)


def hanging_and_dying() -> None:
    def endless() -> str:
        while True:
            pass

    assert mutant_programs.forked(endless, 1) == "hangs"
    assert mutant_programs.forked(lambda: str(1 / 0), 5) == "died"
    assert mutant_programs.forked(lambda: "x" * 9000, 5) == "x" * 4000


def test_random_programs_see_a_fault_that_they_reach() -> None:
    """A derivative's sign; each kind of comparison is measured for some programs."""
    spawned(seen_by_programs)


def seen_by_programs() -> None:
    units = list(mutant_programs.units(200))
    assert {where for unit in units for where in unit.checks} == {*CHECKS}
    assert {unit.draw for unit in units} >= {Draw((family,)) for family in FAMILIES}
    module = "tcalc/ops/elementwise.py"
    faults = Faults((mutants.ROOT / module).read_text(encoding="utf-8"))
    known = mutant_programs.measured(3)
    told = []
    for fault in faults.all:
        source = faults.planted(fault) if (module, fault.line) in known else None
        if source is not None and fault.functions and " * " in fault.what and len(told) < 4:
            mutant = mutants.Mutant("derivatives", module, fault, source)
            told.append(mutant_programs.verdict(mutant, known))
    assert told
    assert any(line["answer"].startswith("differs") for line in told), told
