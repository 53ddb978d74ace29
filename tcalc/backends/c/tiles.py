"""A loop over tiles of rows as one function of C, chunks of which threads share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from ...plan.tiles import Sliced, Tiling
from ..host.slots import Run, Slots
from ..host.tiles import temporaries
from ..host.workspaces import Workspaces
from .frames import Frame, StridedArray
from .functions import Addresses, CFunction
from .matrices import CALLS
from .sharing import LANES, MOST, Cut, Shared, cut, joined, spaced
from .source import Source, read_by_others
from .statements import Count

#: Entries of the widest array in a tile of C, at most: what a tile hands on stays in the caches.
TILE = 1 << 14
#: Rows from which BLAS is no faster with more, as factors that stay are packed for each call.
ROWS = 1024


class CompiledTiles(CFunction):
    """A loop over tiles of rows; what exists in it only is memory for one tile.

    Parameters
    ----------
    scratch : int
        The slot with temporaries in buffers.
    other : Run
        The loop as it is run for arrays that no function is written for.
    """

    def __init__(self, workspaces: Workspaces, tiling: Tiling, scratch: int, other: Run) -> None:
        super().__init__(workspaces)
        self.tiling, self.loop, self.scratch, self.other = tiling, tiling.loop, scratch, other
        self.steps = tiling.computing
        self.views = {s.out: (s.args[0], workspaces.closure(s)) for s in tiling.views}
        self.inside = {s.out for s in self.steps if s.out not in self.loop.kept}
        self.sums = {slot: prod(self.plan.shapes[slot]) for slot in sorted(self.loop.sums)}
        self.cut = self._cut()
        self.place = workspaces.place(self.addresses)

    def slots(self) -> set[int]:
        return {a for step in self.loop.steps for a in (step.out, *step.args)}

    def outside(self, slot: int) -> bool:
        return slot not in self.views and self.plan.owner[slot] not in self.inside

    def addresses(self, slots: Slots) -> Addresses:
        """Of what stays, of sums of chunks, and of each thread's memory for a tile."""
        stay = [slots[k] for k in self.used.stay]
        held = [self._temporaries(slots[self.scratch])]
        sums = []
        if self.cut is not None:
            sums = [np.empty((self.cut.chunks, spaced(n)), self.dtype) for n in self.sums.values()]
            for _ in range(1, self.workspaces.threads):
                held.append(self._temporaries(temporaries(self.tiling, self.dtype)))
        return self._addresses([*stay, *sums, *[a for own in held for a in own.values()]])

    def _temporaries(self, scratch: Sequence[tuple[Sliced, np.ndarray]]) -> dict[int, np.ndarray]:
        """Memory for a tile, by slot; of kernels' results too, which NumPy allocates itself."""
        found = {sliced.slot: array for sliced, array in scratch}
        for sliced in self.tiling.returned_by_tile:
            shape = sliced.shape(self.plan.shapes[sliced.slot], self.loop.tile)
            found[sliced.slot] = np.empty(shape, self.dtype)
        return found

    def run(self, v: Slots) -> None:
        for slot in self.tiling.returned:
            v[slot] = np.empty(self.plan.shapes[slot], self.dtype)
        compute = self.compute(v)
        if compute is None:
            self.other(v)
            return
        self.called(compute, v)
        for step in self.tiling.read_behind:
            self.views[step.out][1](v)

    def text(self, arrays: Mapping[int, np.ndarray], v: Slots) -> str | None:
        loop, shapes = self.loop, self.plan.shapes
        temporaries = self._temporaries(v[self.scratch])
        cuts = [cut for slot in (*temporaries, *arrays) if (cut := self.tiling.cut(slot))]
        widest = max([prod(cut.shape(shapes[cut.slot], 1)) for cut in cuts], default=1)
        # BLAS has tiles of its own, and is no faster at less than one of the plan's.
        most = loop.tile if self._multiplies else max(1, TILE // widest)
        tile = -(-loop.tile // -(-loop.tile // most))
        held = {
            cut.slot: np.empty(cut.shape(shapes[cut.slot], tile), self.dtype)
            for cut in cuts
            if cut.slot in temporaries
        }
        # A function of the table's memory: sharing is the same in all workspaces.
        places = {slot: ("tile", a.ctypes.data) for slot, a in temporaries.items()}
        starts = [f"real *p{slot} = q{slot};" for slot in temporaries]
        for slot, array in arrays.items():
            if slot not in self.slots():  # where a view begins that is read
                continue
            cut = self.tiling.cut(slot)
            held[slot] = cut.part(array, 0, tile) if cut else array
            step = cut.ratio * array.strides[cut.axis] // array.itemsize if cut else 0
            starts.append(self.pointer("p", slot, f"q{slot} + r * {step}L"))
        slots: Slots = [held.get(k) for k in range(len(v))]
        for slot, (source, bind) in self.views.items():
            bind(slots)
            held[slot] = slots[slot]
            view, whole = held[slot], held[source]
            apart = (view.ctypes.data - whole.ctypes.data) // view.itemsize
            starts.append(self.pointer("p", slot, f"p{source} + {apart}L"))
        known = {slot: self._moving(slot, a, tile) for slot, a in held.items()}
        frame = Frame(self.plan, known, (), loop.sums, places, computed=self.steps)
        written = Source(frame, self.dtype.char, lambda step: "")
        for computing in self.steps:
            written.add(computing)
        if written.leaves:
            return None
        body = [*starts, written.body(read_by_others(self.plan), self.nest), "}"]
        return self._over_rows(tile, body, list(temporaries), v)

    def _over_rows(self, tile: int, body: Sequence[str], held: Sequence[int], v: Slots) -> str:
        """The loop around its body, whose rows threads share where that is worth it."""
        rows, shared = self.loop.rows, Shared(self.spelled)
        zeros = [f"memset(q{slot}, 0, {n} * sizeof(real));" for slot, n in self.sums.items()]
        if self.cut is None:
            head = [
                f"for (long r = 0; r < {rows}; r += {tile}) {{",
                f"long t = {rows} - r < {tile} ? {rows} - r : {tile};",
            ]
            return self.whole("\n".join([*zeros, *head, *body]), "q", shared, v, held)
        first = 1 + len(self.used.stay)
        parts = {slot: f"((real *)table[{first + k}])" for k, slot in enumerate(self.sums)}
        own = [f"real *q{k} = {parts[k]} + chunk * {spaced(n)}L;" for k, n in self.sums.items()]
        begin = first + len(parts)
        places = [f"{begin + k} + worker * {len(held)}" for k in range(len(held))]
        own += [f"real *q{k} = (real *)table[{at}];" for k, at in zip(held, places, strict=True)]
        head = [
            f"for (long r = first; r < last; r += {tile}) {{",
            f"long t = last - r < {tile} ? last - r : {tile};",
        ]
        work = "\n".join([*own, *zeros, *head, *body])
        call = shared.call(self.cut, work, [("table", "char **")], self._multiplies)
        sums = [(f"q{slot}", parts[slot], n, "=") for slot, n in self.sums.items()]
        return self.whole("\n".join([f"{call};", *joined(sums, self.cut.chunks)]), "q", shared, v)

    @property
    def _multiplies(self) -> bool:
        """Is one of the steps BLAS's? Functions of rows are not, but of all pairs of them."""
        return any(
            step.kind in CALLS and (step.kind != "kernel" or step.params[0].meaning.pairs)
            for step in self.steps
        )

    def _cut(self) -> Cut | None:
        """The rows in chunks, as many as there is room for their sums."""
        work = sum([step.flops + prod(step.shape) for step in self.steps])
        most = min(MOST, int(work / max(1, 8 * sum(self.sums.values()))))
        lanes = min(self.loop.tile, ROWS) if self._multiplies else LANES
        return cut(self.loop.rows, work, most, lanes)

    def _moving(self, slot: int, array: np.ndarray, tile: int) -> StridedArray:
        found, cut = self.array(array), self.tiling.cut(slot)
        if cut is None:
            return found
        shape = list(found.shape)
        shape[cut.axis] = Count(tile, cut.ratio)
        return found._replace(shape=tuple(shape))
