"""Tests as trials of planted faults: collected once, and run one by one in forks."""

from __future__ import annotations

import importlib.util
import os
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType
from typing import Any

import pytest

from tests.documents import ROOT
from tests.planted import GRACE, PATIENCE, Trial, forked

OPTIONS = ("-x", "-p", "no:cacheprovider", "-p", "no:doctest",
           "-p", "no:terminal", "--capture=sys", "-o", "addopts=")  # fmt: skip


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
    """In place of running the tests that were collected, some work has them as trials by file."""

    def __init__(self, work: Callable[[Mapping[str, Sequence[Trial]]], None]) -> None:
        super().__init__()
        self.work = work

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        assert not self.failed, self.failed
        found: dict[str, list[Trial]] = {}
        for item in session.items:

            def run(item: pytest.Item = item) -> str:
                self.failed = ""
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
                return self.failed

            found.setdefault(item.nodeid.partition("::")[0], []).append(Trial(item.nodeid, run))
        self.work(found)
        return True


def each_file(files: Sequence[str], work: Callable[[Mapping[str, Sequence[Trial]]], None]) -> None:
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


class Some(First):
    """Tests in an order by chance, as many as begin within some seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        random.Random(0).shuffle(items)
        self.end = time.process_time() + self.seconds

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        if self.failed:
            self.failed = f"{nodeid}: {self.failed}"
            raise pytest.exit.Exception(self.failed)
        if time.process_time() > self.end:
            raise pytest.exit.Exception("enough")


def imported_anew(module: str, text: str, files: Sequence[str], seconds: float) -> str:
    """What the first test tells that fails where a module of the package has another text."""

    def work(tell: Callable[[str], None]) -> None:
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        for name in list(sys.modules):
            if name.split(".")[0] in ("tcalc", "tests") and name != "tests":
                del sys.modules[name]
        name = module.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        sys.meta_path.insert(0, Faulty(name, str(ROOT / module), text))
        first = Some(seconds)
        status = pytest.main([*OPTIONS, *files], plugins=[first])
        if status not in (0, pytest.ExitCode.INTERRUPTED) or first.failed:
            tell(first.failed or f"ended with {int(status)}")

    lines, end = forked(work, PATIENCE * seconds + 2 * GRACE)
    return next(iter(lines), "") or end
