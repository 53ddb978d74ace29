"""Tests as trials of planted faults: collected once, run one by one in forks or a new process."""

from __future__ import annotations

import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType
from typing import Any

import pytest

from tests.documents import ROOT
from tests.planted import BUSY, DIED, HANGS, PATIENCE, Trial, processor

OPTIONS = ("-x", "-p", "no:cacheprovider", "-p", "no:doctest",
           "-p", "no:terminal", "--capture=sys", "-o", "addopts=")  # fmt: skip
#: Seconds in which tests are collected in a new process; what its answer follows.
COLLECTING, TOLD = 120.0, "\n\x1etold "


class First:
    """Which test failed first."""

    def __init__(self) -> None:
        self.failed = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = f"failed {report.when}"

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.failed:
            self.failed = f"failed collecting {report.nodeid}"


class Loop(First):
    """In place of running the tests that were collected, some work has them as trials."""

    def __init__(self, work: Callable[[Sequence[Trial]], None]) -> None:
        super().__init__()
        self.work = work

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        assert not self.failed, self.failed
        found: list[Trial] = []
        for item in session.items:
            if item.get_closest_marker("gpu"):  # what stands in for devices
                continue

            def run(item: pytest.Item = item) -> str:
                self.failed = ""
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                return self.failed

            found.append(Trial(item.nodeid, run))
        self.work(found)
        return True


def with_tests(files: Sequence[str], work: Callable[[Sequence[Trial]], None]) -> None:
    """Collect tests, and have some work done with them."""
    status = pytest.main([*OPTIONS, *files], plugins=[Loop(work)])
    assert status in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), status


# --- faults in what runs when a module is imported ------------------------------------------------


class Faulty(SourceFileLoader):
    """A module with another source."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self.text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self.text, self.path, "exec", dont_inherit=True)

    def find_spec(self, name: str, *rest: Any) -> ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)


class Chosen(First):
    """Of the tests that are collected those with some names run, in this order, within a time."""

    def __init__(self, names: Sequence[str], seconds: float) -> None:
        super().__init__()
        self.rank = {name: k for k, name in enumerate(names)}
        self.seconds, self.passed = seconds, 0

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self.rank]
        items.sort(key=lambda item: self.rank[item.nodeid])
        self.end = processor() + self.seconds

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.failed:
            self.failed = f"{nodeid}: {self.failed}"
            raise pytest.exit.Exception(self.failed)
        self.passed += 1
        if processor() > self.end:
            raise pytest.exit.Exception("enough")


def imported_anew(module: str, text: str, names: Sequence[str], seconds: float) -> tuple[str, int]:
    """What the first of some tests tells that fails in a new process; how many passed.

    There a module of the package has another text when it is imported.
    """
    given = json.dumps([module, text, [*names], seconds])
    command = [sys.executable, "-m", "tests.mutant_tests"]
    limit = BUSY * seconds
    try:
        ran = subprocess.run(command, input=given, capture_output=True, text=True, cwd=ROOT,
                             timeout=limit, preexec_fn=lambda: limited(seconds))  # fmt: skip
    except subprocess.TimeoutExpired:
        return HANGS, 0
    told = ran.stdout.rpartition(TOLD)[2] if TOLD in ran.stdout else ""
    if not told:
        return (HANGS if ran.returncode == -signal.SIGXCPU else DIED), 0
    failed, passed = json.loads(told)
    return failed, passed


def limited(seconds: float) -> None:
    """Collecting tests takes some time too."""
    cpu = int(PATIENCE * seconds + COLLECTING)
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))


def main() -> None:
    module, text, names, seconds = json.load(sys.stdin)
    name = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    sys.meta_path.insert(0, Faulty(name, str(ROOT / module), text))
    chosen = Chosen(names, seconds)
    files = {name.partition("::")[0]: None for name in names}
    status = pytest.main([*OPTIONS, *files], plugins=[chosen])
    absent = status == pytest.ExitCode.NO_TESTS_COLLECTED  # what is gone has not failed
    if status not in (0, pytest.ExitCode.INTERRUPTED) and not absent and not chosen.failed:
        chosen.failed = f"ended with {int(status)}"
    os.write(1, f"{TOLD}{json.dumps([chosen.failed, chosen.passed])}".encode())


if __name__ == "__main__":
    main()
