"""The README's examples run: Python blocks as doctests, console blocks through the command line."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import pytest

from tcalc.app.cli import main

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", TEXT, flags=re.DOTALL)


def test_python_blocks() -> None:
    source = "\n".join(blocks("python"))
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    test = doctest.DocTestParser().get_doctest(source, {}, "README", "README.md", 0)
    runner = doctest.DocTestRunner(optionflags=flags)
    runner.run(test)
    assert runner.tries > 10
    assert runner.failures == 0


def test_files_that_are_named_exist() -> None:
    names = re.findall(r"`((?:\w+/)*\w+\.(?:py|c)|(?:\w+/)+)`", TEXT)
    assert len(names) > 20
    missing = [n for n in names if not any((root / n).exists() for root in (ROOT, ROOT / "tcalc"))]
    assert not missing


def commands() -> list[tuple[str, str]]:
    found = []
    for block in blocks("console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            found.append((line, output))
    return found


@pytest.mark.parametrize(("line", "output"), commands())
def test_console_blocks(line: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, *arguments = shlex.split(line)
    assert program == "tcalc"
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    checker = doctest.OutputChecker()
    assert checker.check_output(output, printed, doctest.ELLIPSIS), printed
