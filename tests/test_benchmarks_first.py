"""The time to a first result: what counts to imports, wherever they stand."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks import first


def test_late_imports_count_to_the_import_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A module that imports another one takes its own time and the other's."""
    now = [0.0]

    def takes(seconds: float) -> None:
        now[0] += seconds

    ticking = ModuleType("ticking")
    ticking.takes = takes  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ticking", ticking)
    monkeypatch.setattr(first.time, "perf_counter", lambda: now[0])
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "late_outer.py").write_text(
        "import ticking\nticking.takes(2)\nimport late_inner\n"
        "try:\n    import late_failing\nexcept ValueError:\n    ticking.takes(1)\n"
    )
    (tmp_path / "late_inner.py").write_text("import ticking\nticking.takes(4)\n")
    (tmp_path / "late_failing.py").write_text(
        "import ticking\nticking.takes(8)\nraise ValueError\n"
    )
    finders = list(sys.meta_path)
    with first.ImportClock() as clock:
        takes(16)
        import_module("late_outer")
        import_module("late_inner")
    assert clock.seconds == 2 + 4 + 8 + 1
    assert sys.meta_path == finders
