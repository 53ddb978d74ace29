"""Arrays in blocks, which dask computes when they are asked for."""

from __future__ import annotations

from collections import OrderedDict
from importlib import import_module
from typing import Any

#: Chunks of arrays that were counted, by the arrays' names, which say what they hold.
_counted: OrderedDict[str, Any] = OrderedDict()
_MAX_COUNTED = 256


def dask(module: str = "") -> Any:
    """A module of dask's, imported when it is first asked for."""
    return import_module(f"dask.{module}" if module else "dask")


def is_lazy(value: object) -> bool:
    """Is it one of dask's collections?"""
    return hasattr(value, "__dask_graph__")


def in_blocks(value: Any, name: str) -> Any:
    """A dask array, or the array of a DataFrame, of known chunks along the first axis alone.

    Chunks across other axes become one; rows of blocks whose number nobody knows are counted, once
    for all arrays of the same content.

    Raises
    ------
    TypeError
        For other collections; `name` is the variable.
    """
    array = value.to_dask_array() if hasattr(type(value), "to_dask_array") else value
    if not isinstance(array, dask("array").Array):
        raise TypeError(
            f"{name} is dask's {type(value).__name__}; its arrays, DataFrames and Series are data"
        )
    if any(size != size for size in array.shape):  # nan: unknown
        array = _with_chunks(array)
    across = {axis: -1 for axis in range(1, array.ndim) if len(array.chunks[axis]) > 1}
    return array.rechunk(across) if across else array


def _with_chunks(array: Any) -> Any:
    """The array with chunks that are known."""
    if array.name not in _counted:
        found = array.copy()  # what is counted is written to the array
        _counted[array.name] = found.compute_chunk_sizes().chunks
        while len(_counted) > _MAX_COUNTED:
            _counted.popitem(last=False)
    return dask("array").Array(array.dask, array.name, _counted[array.name], meta=array)
