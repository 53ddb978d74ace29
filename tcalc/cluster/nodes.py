"""Nodes of dask's graphs: tasks that refer to keys, and tasks that run others of one reader."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, MutableMapping, Sequence
from typing import Any

from ..support.lazy_arrays import dask


def task(key: Any, function: Callable[..., Any], *args: Any) -> Any:
    """A task of dask's, whose arguments may be references and lists of them."""
    return dask("_task_spec").Task(key, function, *args)


def ref(key: Any) -> Any:
    """What stands under a key of the graph."""
    return dask("_task_spec").TaskRef(key)


def refs(keys: Any) -> Any:
    """What stands under the keys of a list, or of lists of them."""
    if isinstance(keys, list):
        return dask("_task_spec").List(*map(refs, keys))
    return ref(keys)


def inline(layer: MutableMapping[Any, Any], keys: Sequence[Any], graph: Mapping[Any, Any]) -> None:
    """Let tasks of a layer run what they alone read: it is not scheduled, held or sent any more.

    Where a user has turned dask's fusion off nothing changes.

    Parameters
    ----------
    keys : sequence
        The tasks.
    graph : mapping
        What stands below the layer. Nodes of dask's are taken, but what forbids it; no others.
    """
    if dask("config").get("optimization.fuse.active", None) is False:
        return
    nodes = {k: v for k, v in graph.items() if isinstance(v, dask("_task_spec").GraphNode)}
    free = {k: v for k, v in nodes.items() if not v.block_fusion}
    others = [v.dependencies for k, v in nodes.items() if k not in free]
    own = _own(free, [*[layer[k].dependencies for k in keys], *others])
    for key, found in zip(keys, own, strict=False):
        if found:
            whole = layer[key].fuse(*[free[k] for k in found], layer[key], key=key)
            # Were it said to make data, as a part of it does, it would run where it reads nothing.
            layer[key] = task(key, whole.func, *whole.args)


def _own(graph: Mapping[Any, Any], read: Sequence[Collection[Any]]) -> list[list[Any]]:
    """For each reader of some keys, what it alone needs of a graph."""
    readers: dict[Any, int] = {}
    several = -1
    for reader, wanted in enumerate(read):
        ahead = list(wanted)
        while ahead:
            key = ahead.pop()
            if key in graph and readers.get(key) not in (reader, several):
                readers[key] = several if key in readers else reader
                ahead += graph[key].dependencies
    found: list[list[Any]] = [[] for _ in read]
    for key, reader in readers.items():
        if reader != several:
            found[reader].append(key)
    return found
