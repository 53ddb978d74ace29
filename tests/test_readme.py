"""Examples of the README and of the documentation run: Python blocks as doctests, console blocks
through the command line.
"""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tcalc.app.cli import main
from tests.documents import DOCUMENTS, FLAGS, ROOT, blocks, everything, run, text

#: Pages whose examples add to the library's tables, and so need a process of their own.
ISOLATED = {"adding"}
#: What the examples of a page import besides.
NEEDED = {"clusters": ("dask.array",)}


def name(path: Path) -> str:
    return path.stem


@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if "```python\n" in text(path)], ids=name
)
def test_python_blocks(path: Path) -> None:
    for package in NEEDED.get(path.stem, ()):
        pytest.importorskip(package, reason=f"examples of {path.name} need {package}")
    if path.stem in ISOLATED:
        command = [sys.executable, "-m", "tests.documents", str(path)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    else:
        assert run(path).failed == 0


def test_what_is_said_in_blocks_is_run() -> None:
    """Every block that looks like Python is run, and there are many."""
    kinds = set(re.findall(r"^```([\w{}-]*)$", everything(), re.MULTILINE)) - {""}
    assert kinds <= {"python", "console", "sh", "text", "{toctree}", "{include}"}
    programs = [block for path in DOCUMENTS for block in blocks(text(path), "python")]
    assert len(programs) > 50
    assert not [block for block in programs if not block.startswith(">>> ")]


def test_files_that_are_named_exist() -> None:
    names = re.findall(r"`((?:\w+/)*\w+\.(?:py|c)|(?:\w+/)+)`", everything())
    assert len(names) > 20
    missing = [n for n in names if not any((root / n).exists() for root in (ROOT, ROOT / "tcalc"))]
    assert not missing


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_links_lead_somewhere(path: Path) -> None:
    prose = re.sub(r"^```.*?^```|`[^`]*`", "", text(path), flags=re.DOTALL | re.MULTILINE)
    links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", prose)
    inside = [link for link in links if "://" not in link]
    assert not [link for link in inside if not (path.parent / link).exists()]


@pytest.mark.parametrize("path", DOCUMENTS, ids=name)
def test_no_page_holds_two_versions(path: Path) -> None:
    """As merges leave them that were not ended."""
    assert not re.search(r"^(<{7}|={7}|>{7})( |$)", text(path), re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    found = []
    for path in DOCUMENTS:
        for block in blocks(text(path), "console"):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                line, _, output = part.partition("\n")
                found.append((line, output))
    return list(dict.fromkeys(found))


@pytest.mark.parametrize(("line", "output"), commands())
def test_console_blocks(line: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, *arguments = shlex.split(line)
    assert program == "tcalc"
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    checker = doctest.OutputChecker()
    assert checker.check_output(output, printed, FLAGS), printed
