"""tcalc with steps compiled by the system's C compiler."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import tcalc as tc

from ..problem import Task
from . import Entry
from .own import entries


def make(task: Task) -> Iterator[Entry]:
    return entries(task, "tcalc c", partial(tc.compile, backend="c"))
