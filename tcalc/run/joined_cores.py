"""Cores of a row of blocks as one array, side by side, as the data of a sparse matrix lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import prod

from ..compression.compress import Compressed
from ..graph.extents import ONE, extent_of, extent_product
from ..graph.nodes import Expr
from ..ops.joining import concatenate
from ..ops.reshape import reshape
from ..support.arrays import AnyArray
from ..support.records import NamedTuple


class Place(NamedTuple):
    """Where a core is: an output, or some columns of one, in a shape of their own."""

    output: int
    columns: slice | None = None
    shape: tuple[int, ...] = ()

    def of(self, outputs: Sequence[AnyArray]) -> AnyArray:
        whole = outputs[self.output]
        if self.columns is None:
            return whole
        part: AnyArray = whole[..., self.columns].reshape(self.shape)
        return part


class CoreOutputs(NamedTuple):
    """Cores, and what a program computes for them.

    Attributes
    ----------
    cores : list of Expr
    rows : list of (int, list of int)
        How many axes are those of rows, and the numbers of the cores that lie side by side.
    outputs : list of Expr
        Cores that stand alone, then one array a row.
    """

    cores: list[Expr]
    rows: list[tuple[int, list[int]]]
    outputs: list[Expr]

    def places(self, sizes: Mapping[str, int]) -> list[Place]:
        """One a core, at known sizes."""
        found: dict[int, Place] = {}
        alone = len(self.outputs) - len(self.rows)
        for number, (axes, row) in enumerate(self.rows, alone):
            start = 0
            for k in row:
                shape = tuple([extent_of(e, sizes) for e in self.cores[k].shape])
                stop = start + prod(shape[axes:])
                found[k] = Place(number, slice(start, stop), shape)
                start = stop
        others = [k for k in range(len(self.cores)) if k not in found]
        found |= {k: Place(number) for number, k in enumerate(others)}
        return [found[k] for k in range(len(self.cores))]


def joined(cores: list[Expr], rows: Sequence[Sequence[Compressed]]) -> CoreOutputs:
    """What to compute for some cores, of which those of rows of blocks lie side by side."""
    place = {id(core): k for k, core in enumerate(cores)}
    uses = Counter([id(core) for row in rows for form in row for core in form.arrays])
    found, wholes = [], []
    for row in rows:
        if len(row) > 1 and all(
            _is_one_core(form) and uses[id(form.arrays[0])] == 1 for form in row
        ):
            axes = len(row[0].shape) - row[0].columns
            parts = [_flat(form.arrays[0], axes) for form in row]
            found.append((axes, [place[id(form.arrays[0])] for form in row]))
            wholes.append(concatenate(parts, axis=-1))
    taken = {k for _, row in found for k in row}
    alone = [core for k, core in enumerate(cores) if k not in taken]
    return CoreOutputs(cores, found, [*alone, *wholes])


def _flat(core: Expr, axes: int) -> Expr:
    """All axes behind those of rows as one."""
    return reshape(core, (*core.shape[:axes], extent_product(core.shape[axes:])))


def _is_one_core(form: Compressed) -> bool:
    """Does a block hold, row by row, the entries of one core in their order, and zeros else?"""
    if len(form.terms) != 1 or len(form.arrays) != 1:
        return False
    (term,), axes = form.terms, len(form.shape) - form.columns
    rows = tuple(range(axes))
    known = [item in rows if isinstance(item, int) else {*item.labels} <= {*rows}
             for item in term.out[axes:]]  # fmt: skip
    free = [item for item, given in zip(term.out[axes:], known, strict=True) if not given]
    inner = (*rows, *[item for item in free if isinstance(item, int)])
    return (
        term.coef == ONE
        and any(known)
        and len(inner) == axes + len(free)
        and term.out[:axes] == rows
        and term.labels == (inner,)
        and len(set(inner)) == len(inner)
    )
