"""Graphs of tasks over the blocks of dask's arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any
from uuid import uuid4

import numpy as np

from ..partition.combinations import Part
from ..support.arrays import Array
from ..support.lazy_arrays import dask, is_lazy
from ..support.records import NamedTuple
from .nodes import inline, ref, refs, task
from .tasks import PartCall

#: How many parts one task combines: more make the tree of reductions flat, fewer its tasks small.
COMBINED = 16


class Rows(NamedTuple):
    """Arrays whose blocks lie along the rows, all at the same places.

    Attributes
    ----------
    arrays : mapping
        dask arrays by name.
    axes : mapping
        By name, the axis that runs over the rows.
    sizes : tuple of int
        The rows of each block.
    """

    arrays: Mapping[str, Any]
    axes: Mapping[str, int]
    sizes: tuple[int, ...]

    @property
    def keys(self) -> list[list[Any]]:
        """For every block, the keys of all arrays."""
        return list(map(list, zip(*[_keys(a) for a in self.arrays.values()], strict=True)))

    def only(self, names: Sequence[str]) -> Rows:
        """Some of the arrays, in this order."""
        return self._replace(arrays={name: self.arrays[name] for name in names})

    def with_array(self, name: str, value: Any, axis: int) -> Rows:
        """A further array, in blocks of as many rows."""
        return self._replace(
            arrays={**self.arrays, name: in_rows(value, axis, self.sizes)},
            axes={**self.axes, name: axis},
        )

    def with_places(self, name: str, value: Any) -> Rows:
        """The places in each block at which a vector is not 0: at most as many as it has rows."""
        rows = self.with_array(name, value, 0)
        found = rows.arrays[name].map_blocks(np.flatnonzero, dtype=int)
        return rows._replace(arrays={**rows.arrays, name: found})


def in_rows(value: Any, axis: int, sizes: Sequence[int]) -> Any:
    """An array, of dask's or not, in blocks of so many rows."""
    chunks = tuple([tuple(sizes) if k == axis else -1 for k in range(np.ndim(value))])
    if is_lazy(value):
        return value.rechunk(chunks)
    return dask("array").from_array(np.asarray(value), chunks, name=False)


def fused(arrays: Sequence[Any]) -> list[Any]:
    """The arrays, of which what makes a block is few tasks: what several need is made once.

    Optimising drops what is held by workers already from graphs, though tasks refer to it.
    """
    merged = _graph().merge(*[a.dask for a in arrays])
    whole = arrays[0].__dask_optimize__(merged, [a.__dask_keys__() for a in arrays])
    held = {key: value for key, value in merged.items() if _is_future(value)}
    source = f"tcalc-blocks-{uuid4().hex}"
    layers = {source: {**held, **whole}, **{a.name: {} for a in arrays}}
    graph = _graph()(layers, {name: {source} - {name} for name in layers})
    array = dask("array").Array
    return [array(graph, a.name, a.chunks, meta=a) for a in arrays]


def _is_future(value: object) -> bool:
    return type(value).__module__.partition(".")[0] == "distributed"


def _keys(array: Any) -> list[Any]:
    found = array.__dask_keys__()
    for _ in range(array.ndim - 1):
        found = list(chain.from_iterable(found))
    return list(found)


class Tasks:
    """The tasks of one pass, as a layer of a graph.

    The values that all of them take are one node, which has a recipe: it is made again where it is
    lost with a worker.
    """

    def __init__(self, what: str, call: Any, rows: Rows) -> None:
        self.name, self.rows = f"{what}-{uuid4().hex}", rows
        self.call = f"known-{self.name}"
        self.layer: dict[Any, Any] = {self.call: call}
        self._before = list(rows.arrays.values())
        if is_lazy(call):
            self._before.append(call)
            self.call = call.key
            self.layer = {}

    def add(self, key: Any, function: Callable[..., Any], read: Any) -> None:
        """A task, that takes what all take, and what stands under keys in lists of lists."""
        self.layer[key] = task(key, function, ref(self.call), refs(read))

    @property
    def graph(self) -> Any:
        return _graph().from_collections(self.name, self.layer, self._before)


def reduced(call: Any, rows: Rows, groups: Sequence[Sequence[int]], alone: bool) -> Any:
    """What parts of the rows give, combined in an order that does not depend on who is ready.

    Parameters
    ----------
    groups : sequence of sequences of int
        The numbers of the blocks that one task takes.
    alone : bool
        Is this the whole graph? Then a task makes the blocks that it reads.
    """
    tasks, keys = Tasks("tcalc-pass", call, rows), rows.keys
    level: list[Any] = [(tasks.name, k) for k in range(len(groups))]
    for key, group in zip(level, groups, strict=True):
        tasks.add(key, _of_blocks, [keys[b] for b in group])
    if alone:
        inline(tasks.layer, level, {k: v for a in rows.arrays.values() for k, v in a.dask.items()})
    depth, above = 0, tasks.name.replace("pass", "combined")
    while len(level) > 1:
        depth += 1
        parts = [level[k : k + COMBINED] for k in range(0, len(level), COMBINED)]
        level = [(above, depth, k) for k in range(len(parts))]
        for key, part in zip(level, parts, strict=True):
            tasks.add(key, _combined, part)
    return dask("delayed").Delayed(level[0], tasks.graph, layer=tasks.name)


def by_rows(
    call: Any,
    rows: Rows,
    outputs: Sequence[tuple[tuple[int, ...], int]],
    dtype: np.dtype[Any],
) -> list[Any]:
    """Results that stay by rows, as dask arrays in the blocks of the data.

    Parameters
    ----------
    outputs : sequence of (shape, axis)
        Of all rows, and the axis that runs over them.
    """
    tasks = Tasks("tcalc-rows", call, rows)
    for k, keys in enumerate(rows.keys):
        tasks.add((tasks.name, k), _of_block, keys)
    names = [f"tcalc-output-{uuid4().hex}" for _ in outputs]
    for place, (name, (shape, axis)) in enumerate(zip(names, outputs, strict=True)):
        for k in range(len(rows.sizes)):
            index = tuple([k if i == axis else 0 for i in range(len(shape))])
            tasks.layer[name, *index] = task((name, *index), _item, ref((tasks.name, k)), place)
    graph = tasks.graph
    return [
        dask("array").Array(
            _renamed(graph, tasks.name, name), name, _chunks(shape, axis, rows), dtype=dtype
        )
        for name, (shape, axis) in zip(names, outputs, strict=True)
    ]


def _graph() -> Any:
    return dask("highlevelgraph").HighLevelGraph


def _renamed(graph: Any, layer: str, name: str) -> Any:
    """The graph with its layer under the name of an array."""
    layers, before = dict(graph.layers), dict(graph.dependencies)
    layers[name], before[name] = layers.pop(layer), before.pop(layer)
    return _graph()(layers, before)


def _chunks(shape: Sequence[int], axis: int, rows: Rows) -> tuple[tuple[int, ...], ...]:
    return tuple([rows.sizes if k == axis else (n,) for k, n in enumerate(shape)])


# --- what tasks do --------------------------------------------------------------------------------


def _of_blocks(call: PartCall, blocks: Sequence[Sequence[Any]]) -> list[Part]:
    return call.of_blocks(blocks)


def _combined(call: PartCall, items: Sequence[list[Part]]) -> list[Part]:
    return call.work.combined(items)


def _of_block(call: PartCall, block: Sequence[Any]) -> list[Array]:
    return call.of_block(block)


def _item(items: Sequence[Any], place: int) -> Any:
    return items[place]
