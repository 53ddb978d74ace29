"""tcalc with steps compiled by the system's C compiler."""

from __future__ import annotations

from collections.abc import Iterator

from ..problem import Task
from . import Entry
from .own import entries


def make(task: Task) -> Iterator[Entry]:
    return entries(task, "tcalc c", "c")
