"""Arrays in blocks, which dask computes when they are asked for."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from weakref import finalize

from .errors import Error

#: Chunks of what was counted, by its id, as long as it lives. A name says what tasks read, not what
#: they find there: another array of this name may have other rows.
_counted: dict[int, Any] = {}


def dask(module: str = "") -> Any:
    """A module of dask's, imported when it is first asked for."""
    return import_module(f"dask.{module}" if module else "dask")


def is_lazy(value: object) -> bool:
    """Is it one of dask's collections?"""
    return hasattr(value, "__dask_graph__")


def in_blocks(value: Any, name: str) -> Any:
    """A dask array, or the array of a DataFrame, of known chunks along the first axis alone.

    Chunks across other axes become one; rows of blocks whose number nobody knows are counted, once
    for each array, and the blocks are checked to have as many whenever they are made.

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
        array = _with_chunks(array, value, name)
    if 0 in array.shape:  # dask leaves several blocks without entries apart: the first is all
        array = array.blocks[tuple([slice(None if size else 1) for size in array.shape])]
    across = {axis: -1 for axis in range(1, array.ndim) if len(array.chunks[axis]) > 1}
    return array.rechunk(across) if across else array


def _with_chunks(array: Any, value: Any, name: str) -> Any:
    """The array of a collection with chunks that are known."""
    if id(value) not in _counted:
        found = array.copy()  # what is counted is written to the array
        _counted[id(value)] = found.compute_chunk_sizes().chunks
        finalize(value, _counted.pop, id(value), None)
    array = dask("array").Array(array.dask, array.name, _counted[id(value)], meta=array)
    return array.map_blocks(_as_counted, variable=name, dtype=array.dtype, meta=array._meta)


def _as_counted(block: Any, variable: str, block_info: Any) -> Any:
    """A block, which has as many rows as were counted."""
    (number, *_), ((first, last), *_) = (
        block_info[0][key] for key in ("chunk-location", "array-location")
    )
    if block.shape[0] != last - first:
        raise Error(
            f"block {number} of {variable} has {block.shape[0]} rows, and had {last - first} when "
            "they were counted: its source has changed since; pass an array that is made anew"
        )
    return block
