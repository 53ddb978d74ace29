"""The README and the pages of the documentation, and how their examples are run.

`python -m tests.documents FILE ...` runs the Python blocks of files, each in names of its own.
"""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
PAGES = sorted((ROOT / "docs").glob("*.md"))
DOCUMENTS = [README, *PAGES]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def everything() -> str:
    """All that a user reads, one page after the other."""
    return "\n".join(map(text, DOCUMENTS))


def blocks(words: str, kind: str) -> list[str]:
    """The fenced blocks of a kind."""
    return re.findall(rf"^```{kind}\n(.*?)^```", words, flags=re.DOTALL | re.MULTILINE)


def run(path: Path) -> doctest.TestResults:
    """Run the Python blocks of a page as one doctest."""
    source = "\n".join(blocks(text(path), "python"))
    test = doctest.DocTestParser().get_doctest(source, {}, path.stem, str(path), 0)
    return doctest.DocTestRunner(optionflags=FLAGS).run(test)


if __name__ == "__main__":
    sys.exit(sum(run(Path(name)).failed for name in sys.argv[1:]))
