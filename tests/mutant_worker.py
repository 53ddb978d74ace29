"""Runs tests in a process of its own, for `mutants`: in order, up to the first that fails.

The task is JSON: `tests`, lists of names of tests, one after the other; with `entered`, a file to
which is written which functions each test enters, and how long it takes, of as many tests as end
within `seconds` of the processor's time, in an order by chance. After `limit` seconds of the
processor it is killed. The answer is the last line.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent.parent
MEMORY = 12 << 30
OPTIONS = ("-q", "-x", "--no-header", "-p", "no:cacheprovider", "-p", "no:doctest",
           "-o", "addopts=", "-o", "strict_markers=true")  # fmt: skip


class First:
    """Which test failed first."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = f"{report.nodeid} (collecting)"


class Entered:
    """Functions of the package that each test enters: a function is its file and first line."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.tests: dict[str, tuple[float, list[tuple[str, int]]]] = {}
        self.failed: set[str] = set()

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        self.end = time.process_time() + self.seconds
        random.Random(0).shuffle(items)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: Any) -> Iterator[None]:
        codes: dict[int, CodeType] = {}

        def enter(frame: FrameType, event: str, value: Any) -> None:
            code = frame.f_code
            codes[id(code)] = code

        start = time.process_time()
        threading.settrace(enter)
        sys.settrace(enter)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
            found = {
                (str(Path(code.co_filename).relative_to(HERE)), code.co_firstlineno)
                for code in codes.values()
                if code.co_filename.startswith(f"{HERE}/tcalc/")
            }
            self.tests[item.nodeid] = (round(time.process_time() - start, 3), sorted(found))
            if time.process_time() > self.end:
                item.session.shouldstop = "enough tests are measured"

    def pytest_runtest_logreport(self, report: Any) -> None:
        if not report.passed:
            self.failed.add(report.nodeid)


def main(task: dict[str, Any]) -> str:
    os.chdir(HERE)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(task["limit"]), resource.RLIM_INFINITY))
    if "entered" in task:
        told = Entered(task["seconds"])
        pytest.main([*(o for o in OPTIONS if o != "-x"), *task["tests"][0]], plugins=[told])
        kept = {name: row for name, row in told.tests.items() if name not in told.failed}
        Path(task["entered"]).write_text(json.dumps(kept))
        return "measured"
    for names in task["tests"]:
        first = First()
        status = pytest.main([*OPTIONS, *names], plugins=[first])
        if status != 0:
            return f"failed {first.failed or status}"
    return "passed"


if __name__ == "__main__":
    print("\n==", main(json.loads(sys.argv[1])), flush=True)
    os._exit(0)
