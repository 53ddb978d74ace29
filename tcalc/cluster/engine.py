"""The back end: data are bound to dask's arrays, passes run one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..backends.interface import BackEnd
from ..graph.nodes import Derivative, Expr
from ..graph.subspaces import projected
from ..graph.variables import checked_extent
from ..partition.found import ByRows, Known
from ..partition.passes import Passes
from ..partition.split import row_axes, split
from ..run.binding import absent, by_name, to_array
from ..run.dtypes import is_of_no_dtype
from ..run.engine import Engine, Roots, Values
from ..support.errors import Error, LinAlgError, PartitionError
from ..support.lazy_arrays import dask, in_blocks, is_lazy
from ..support.records import NamedTuple
from .graphs import Rows, by_rows, fused, in_rows, reduced
from .stages import Stage, Staged
from .tasks import Settings

_MAX_STAGED = 64
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


class Mode(NamedTuple):
    """When things are done: at once, or as parts of a graph that a user computes.

    Attributes
    ----------
    do : callable
        ``do(function, *arguments)``, in the process that asks or as a task.
    ahead : callable
        What is needed before the next pass begins.
    alone : bool
        Has each pass a graph of its own, in which nothing else reads the blocks?
    """

    do: Callable[..., Any]
    ahead: Callable[[Any], Any]
    alone: bool


def _computed(value: Any) -> Any:
    """What a graph gives, by the scheduler that the user has chosen."""
    try:
        return dask().compute(value)[0]
    except Exception as error:
        if type(error).__module__.partition(".")[0] != "distributed":
            raise
        raise Error(
            f"workers lost what they held ({type(error).__name__}: {error}). Blocks that tasks "
            "make are made again; data that were scattered to workers have no recipe: load them "
            "by tasks, or scatter them again"
        ) from error


NOW = Mode(lambda function, *arguments: function(*arguments), _computed, True)
LATER = Mode(
    lambda function, *arguments: dask("delayed").delayed(function, pure=False)(*arguments),
    lambda value: value,
    False,
)


class DaskEngine:
    """Expressions over dask's arrays, as an `Engine` is asked for them.

    The dimension of their first axis is that of the rows. Without one of them all is computed here.
    """

    entries: Sequence[Any] = ()

    def __init__(
        self,
        roots: Roots,
        backend: BackEnd,
        limit: int | None,
        check: bool,
        lent: bool = False,
        ordered: bool = False,
        threads: int = 1,
        compute: bool = True,
    ) -> None:
        self.here = Engine(roots, backend, limit, check, lent, ordered)
        self.variables, self.dimensions = self.here.variables, self.here.dimensions
        self._needed = self.here.read(roots)
        self.settings = Settings(limit, check, threads)
        self.mode, self.gather = NOW if compute else LATER, lent
        self.data: dict[str, Any] = {}
        self.unread: dict[str, Any] = {}
        self._staged: dict[Any, Staged] = {}
        self._fused: tuple[Any, dict[str, Any]] = (), {}

    def bound(self, data: Values) -> dict[str, Any]:
        """Data that come with every call; blocks of unknown size are counted now."""
        known = self.variables.keys() | set(self.dimensions)
        self.data = {name: value for name, value in data.items() if name in known}
        return self.data

    def run(self, roots: Roots, values: Values) -> list[Any]:
        given = {**self.data, **by_name(values)}
        known = self.variables.keys() | set(self.dimensions)
        unused = [name for name in given if name not in known]
        for declared in self.here.needed:
            if given.get(declared.name) is None:
                raise TypeError(absent(declared, unused))
        given = {name: value for name, value in given.items() if name in known}
        given = {name: _known_blocks(name, value) for name, value in given.items()}
        lazy = {name: value for name, value in given.items() if is_lazy(value)}
        plain = {name: value for name, value in given.items() if name not in lazy}
        dims = self.here.extents({**plain, **lazy})
        for name, value in plain.items():
            if name in self.variables and self.variables[name].extent:
                dims.bind_extent(name, checked_extent(name, value))
        dims.require(self._needed, self.variables, unused)
        staged = self._staged_for(roots, dims.sizes, lazy)
        if staged is None:
            sizes = {name: n for name, n in dims.sizes.items() if name in self.dimensions}
            return self.here.run(roots, {**plain, **sizes})
        dtype = self._dtype({**plain, **lazy})
        rows = self._rows(staged, lazy)
        env = {**plain, **dims.sizes}
        try:
            results = self._passed(staged, rows, env, dtype)
        except LinAlgError as error:  # it may be of the results of a pass, by their names
            error.add_note(str(staged.passes))
            raise
        return [self._projected(root, value) for root, value in zip(roots, results, strict=True)]

    def sizes(self, values: Values) -> dict[str, int]:
        """Extents by dimension that these arguments say."""
        return self.here.sizes({k: _known_blocks(k, value) for k, value in values.items()})

    def plan_for(self, roots: Roots, data: Values, shapes: Mapping[str, Any]) -> Any:
        """The passes, where data are in blocks; else the plan of one machine."""
        lazy = {name: value for name, value in data.items() if is_lazy(value)}
        if not lazy:
            return self.here.plan_for(roots, data, shapes)
        dims = self.here.extents(data)
        dims.bind_given(shapes, self.variables, self.dimensions)
        dims.solve()
        staged = self._staged_for(roots, dims.sizes, lazy)
        return self.here.plan_for(roots, data, shapes) if staged is None else staged.passes

    # --- what is by rows --------------------------------------------------------------------------

    def _staged_for(
        self, roots: Roots, sizes: Mapping[str, int], lazy: Mapping[str, Any]
    ) -> Staged | None:
        """The passes for these extents; None where the roots read nothing that is in blocks."""
        key = (tuple(sorted(sizes.items())), tuple(sorted(lazy)))
        if key not in self._staged:
            dims = self.here.extents(sizes)
            passes = self._passes(self.here.options(roots, dims), lazy)
            if passes is None:
                return None
            if len(self._staged) >= _MAX_STAGED:
                self._staged.pop(next(iter(self._staged)))
            self._staged[key] = Staged(passes, sizes, self.settings)
        return self._staged[key]

    def _passes(self, options: Sequence[Roots], lazy: Mapping[str, Any]) -> Passes | None:
        """The passes of the first values that parts of the rows give."""
        refused: PartitionError | None = None
        for values in options:
            rows = row_axes(values, lazy)
            if not rows:
                return None
            try:
                return split(values, rows)
            except PartitionError as error:
                refused = refused or error
        assert refused is not None
        raise refused

    def _dtype(self, given: Mapping[str, Any]) -> np.dtype[Any]:
        """The working dtype, as of one machine: float32 if all arrays and constants are."""
        kinds = set(self.here.constants)
        for declared in self.here.needed:
            value = given[declared.name]
            if declared.integer or is_of_no_dtype(value):
                continue
            empty = np.empty((0,) * value.ndim, value.dtype) if is_lazy(value) else value
            kinds.add(to_array(empty, declared).dtype)
        return _SINGLE if kinds == {_SINGLE} else _DOUBLE

    # --- running ----------------------------------------------------------------------------------

    def _rows(self, staged: Staged, lazy: Mapping[str, Any]) -> Rows:
        """All that is in blocks, these at the same places: those of the first array."""
        axes = {v.name: axis for v, axis in staged.passes.rows.items()}
        sizes = next(lazy[name] for name in axes).chunks[0]
        arrays = [in_rows(lazy[name], axis, sizes) for name, axis in axes.items()]
        if not axes.keys() <= self.data.keys():
            return Rows(dict(zip(axes, fused(arrays), strict=True)), axes, sizes)
        key, kept = tuple([a.name for a in arrays]), self._fused
        if kept[0] != key:  # of data that are held anyway
            kept = self._fused = key, dict(zip(axes, fused(arrays), strict=True))
        return Rows(kept[1], axes, sizes)

    def _passed(self, staged: Staged, rows: Rows, env: Any, dtype: np.dtype[Any]) -> list[Any]:
        """The outputs: what is known after the last pass, and what stays by rows."""
        mode = self.mode
        staying: dict[int, Any] = {}
        for number in range(staged.passes.number + 1):
            for v, stage in staged.made.items():
                made = staged.passes.made[v]
                if made.passes == number:
                    call, read = self._call(stage, staged, rows, env, dtype)
                    (found,) = by_rows(call, read, _shapes(staged, [made], rows), dtype)
                    rows = rows.with_array(v.name, found, made.axis)
            for stage, places in staged.staying:
                if staged.passes.outputs[places[0]].passes == number:
                    call, read = self._call(stage, staged, rows, env, dtype)
                    outputs = [staged.passes.outputs[k] for k in places]
                    found = by_rows(call, read, _shapes(staged, outputs, rows), dtype)
                    staying |= dict(zip(places, found, strict=True))
            if number < staged.passes.number:
                stage = staged.reducing[number]
                call, read = self._call(stage, staged, rows, env, dtype)
                whole = reduced(call, read, stage.grouped(read, staged.sizes), mode.alone)
                env = mode.do(staged.extended, env, number, mode.ahead(whole), dtype)
        if self.gather:
            staying = dict(zip(staying, _computed(list(staying.values())), strict=True))
        last = mode.do(staged.last, env) if staged.known else []
        known = {place: last[k] for k, place in enumerate(staged.known)}
        return [{**known, **staying}[k] for k in range(len(staged.passes.outputs))]

    def _call(
        self, stage: Stage, staged: Staged, rows: Rows, env: Any, dtype: np.dtype[Any]
    ) -> tuple[Any, Rows]:
        """What parts of the rows are called with, and the blocks that they read."""
        known = self.mode.do(stage.known, env)
        for name, sliced in stage.sliced.items():
            value = known[name]
            if is_lazy(value):
                shape = staged.shape(sliced.value.expr, sum(rows.sizes))
                value = dask("array").from_delayed(value, shape, dtype)
            if sliced.places:
                rows = rows.with_places(name, value)
            else:
                rows = rows.with_array(name, value, sliced.axis)
        return self.mode.do(stage.call, known, dtype), rows.only(stage.blocks)

    def _projected(self, root: Expr, value: Any) -> Any:
        """A result in the subspaces of the variables by which it was differentiated."""
        for slot in root.slots if isinstance(root, Derivative) else ():
            if hasattr(value, "map_blocks"):
                value = value.map_blocks(projected, slot, dtype=value.dtype)
            else:
                value = self.mode.do(projected, value, slot)
        return value


def _known_blocks(name: str, value: Any) -> Any:
    """One of dask's collections as an array whose blocks are known, or as the number it is."""
    if not is_lazy(value):
        return value
    array = in_blocks(value, name)
    return array if array.ndim else _computed(array)


def _shapes(
    staged: Staged, outputs: Sequence[Known | ByRows], rows: Rows
) -> list[tuple[tuple[int, ...], int]]:
    """The shapes, over all rows, of values that stay by rows, and the axes that run over them."""
    return [
        (staged.shape(one.expr, sum(rows.sizes)), one.axis)
        for one in outputs
        if isinstance(one, ByRows)
    ]
