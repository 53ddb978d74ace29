"""Autograd's own tests on tcalc: ``python -m tests.peer CHECKOUT [FILE …]``.

The tests of a checkout of https://github.com/HIPS/autograd are copied to a temporary folder, their
import lines changed, and nothing else; what pytest says of each is counted by what it means.
``python -m tests.peer CHECKOUT --examples [NAME …]`` runs its examples so, and compares them with
what they print and hold on autograd.
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

from tests import peer_examples
from tests.peer_imports import changed

ROOT = Path(__file__).resolve().parent.parent

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
    if files[:1] == ("--examples",):
        peer_examples.compare(Path(checkout), files[1:])
        return
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
