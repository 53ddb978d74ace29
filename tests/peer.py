"""Autograd's own tests on tcalc: ``python -m tests.peer CHECKOUT [FILE …]``.

The tests of a checkout of https://github.com/HIPS/autograd are copied to a temporary folder, their
import lines changed, and nothing else; what pytest says of each is counted by what it means.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent

#: What an import of autograd becomes, the longest names first.
IMPORTS = {
    "autograd.numpy": "tcalc.numpy",
    "autograd.scipy": "tcalc.scipy",
    "autograd.test_util": "tcalc.autograd.test_util",
    "autograd.misc.optimizers": "tcalc.autograd.optimizers",
    "autograd.misc.flatten": "tcalc.autograd.flattening",
    "autograd.misc": "tcalc.autograd.flattening",
    "autograd.builtins": "tcalc.autograd",
    "autograd.tracer import isbox": "tcalc.autograd import isbox",
    "autograd": "tcalc.autograd",
}

#: What a failure is, by its message; the first that is found counts.
MEANINGS = {
    "needs complex numbers": (
        r"complex|not an array of real|numbers are real|eigenvalues may be|holomorphic"
    ),
    "needs autograd's inside": (
        r"No module named 'tcalc\.autograd|cannot import name|has no attribute"
    ),
    "refused by a typed error": r"tcalc\.\w*Error",
}


def changed(line: str) -> str:
    """A line of a file, with other imports and the names that they bring."""
    if not re.match(r"\s*(from|import)\s+autograd\b", line):
        return re.sub(r"\bautograd\.scipy\.", "tcalc.scipy.", line)
    # Distributions are objects here, as in SciPy, where autograd has modules.
    line = re.sub(r"import (autograd\.scipy\.stats)\.(\w+) as", r"from \1 import \2 as", line)
    name = next(name for name in IMPORTS if re.search(rf"\b{re.escape(name)}\b", line))
    return re.sub(rf"\b{re.escape(name)}\b", IMPORTS[name], line, count=1)


def copy(checkout: Path, target: Path) -> None:
    """The tests with other imports."""
    for path in (checkout / "tests").glob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        (target / path.name).write_text("".join(map(changed, lines)), encoding="utf-8")


def outcomes(folder: Path, files: list[str]) -> Iterator[tuple[str, str, str]]:
    """The name, the outcome and the message of every test."""
    report = folder / "report.xml"
    command = [
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
        "--continue-on-collection-errors",
    ]  # fmt: skip
    subprocess.run(
        [*command, *files], cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False,
        capture_output=True,
    )  # fmt: skip
    for case in ElementTree.parse(report).iter("testcase"):
        name = f"{case.get('classname')}::{case.get('name')}"
        found = [part for part in case if part.tag in ("failure", "error", "skipped")]
        if not found:
            yield name, "passed", ""
            continue
        message = f"{found[0].get('message')}\n{found[0].text}"
        means = (what for what, pattern in MEANINGS.items() if re.search(pattern, message))
        kind = "skipped" if found[0].tag == "skipped" else next(means, "FAILED")
        yield name, kind, str(found[0].get("message")).split("\n")[0]


def main(checkout: str, *files: str) -> None:
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        copy(Path(checkout), Path(folder))
        for name, kind, message in outcomes(Path(folder), list(files)):
            counts[kind] += 1
            if kind not in ("passed", "skipped"):
                print(f"{kind:26}{name}: {message:.100}")
    for kind, count in counts.most_common():
        print(f"{count:6} {kind}")


if __name__ == "__main__":
    main(*sys.argv[1:])
