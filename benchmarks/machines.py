"""What a reader of the numbers must know: machine, versions, date, and the state of the code."""

from __future__ import annotations

import os
import platform
import subprocess
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from . import devices
from .processes import ROOT
from .rivals import RIVALS

#: What numbers depend on.
CODE = ("tcalc", "benchmarks")


def machine() -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "processor": processor(),
        "processors": os.cpu_count(),
        "memory": memory(),
        "date": datetime.now(UTC).date().isoformat(),
        "device": devices.described(),
        "commit": commit(),
        "versions": {rival.package: rival.version for rival in RIVALS.values() if rival.installed},
    }


def processor() -> str:
    """The processor's name, where the system tells."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor()


def memory() -> int | None:
    """Bytes of the machine's memory, where the system tells."""
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def commit() -> str:
    """The last commit of the code that is measured, with a plus where files differ from it."""
    try:
        last = git("log", "-1", "--format=%h", "--abbrev=12", "--", *CODE)
        changed = git("status", "--porcelain", "--untracked-files=no", "--", *CODE)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return last + "+" * bool(changed)


def git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.strip()
