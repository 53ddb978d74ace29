"""tcalc on a device by CuPy, where arrays lie before a call and results after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import cupy

import tcalc as tc

from ..nests import Nest, each
from ..problem import Task
from . import Entry
from .own import entries


def make(task: Task) -> Iterator[Entry]:
    arrays = {name: cupy.asarray(array) for name, array in task.data.items()}
    on_device = replace(task, data=arrays, rhs=each(cupy.asarray, task.rhs))
    for entry in entries(on_device, "tcalc cupy", partial(tc.compile, backend="cupy")):
        yield replace(entry, call=waited(entry.call), on_host=on_host)


def waited(call: Callable[[], Any]) -> Callable[[], Any]:
    def whole() -> Any:
        found = call()
        cupy.cuda.get_current_stream().synchronize()
        return found

    return whole


def on_host(value: Nest) -> Nest:
    return each(lambda leaf: leaf.get() if isinstance(leaf, cupy.ndarray) else leaf, value)
