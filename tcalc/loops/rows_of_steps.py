"""Rows of large arrays that are made in the steps of a loop, where they are at hand.

An array with a row for each step that is larger than a cache costs its way to memory and back. One
that a loop scans, and nobody else reads, is made row by row in the loop. A product behind the loop
that sums over the steps reads one array, which the steps leave: what it would be made of entry by
entry for all steps at once is not held. The product itself stays behind, where it is one product of
matrices: a sum of outer products is slow step by step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod

from ..graph.extents import ONE, extent_of
from ..graph.nodes import Add, Apply, Einsum, Expr, Var, postorder
from ..graph.normal import einsum
from ..support.machine import Machine
from ..support.records import NamedTuple
from .hoisting import rereads
from .step_values import StepValue, StepValues, chooses, rewritten_with

__all__: list[str] = []


def rows_inside(
    node: Apply, roots: Sequence[Expr], sizes: Mapping[str, int], machine: Machine
) -> list[Expr] | None:
    """The roots with large rows made in the steps of a loop; None where there are none.

    A row is worth a step's calls from `machine.call` entries on, and an array is large from
    `machine.large`.
    """
    body, length, _ = node.params
    count = extent_of(length, sizes)
    least = max(machine.large, machine.call * count)
    rows = [v.shape for v in (*body.states, *body.steps)]
    entries = [count * prod([extent_of(x, sizes) for x in row]) for row in rows]
    if body.bound is not None or max(entries) < least:
        return None
    nodes = postorder(roots)
    found = _Rows(node, nodes, sizes, least)
    found.look(roots, nodes)
    values = {id(e): found.held(e, group) for e, group in found.groups}
    change = found.made_inside()
    if not values and not change:
        return None
    done = rewritten_with(nodes, found.loop([*values.values()], change), values)
    return [done[id(root)] for root in roots]


class _Group(NamedTuple):
    """Operands of a product that sums over steps, at places, whose rows make one row."""

    label: int
    places: list[int]


class _Rows(StepValues):
    """One step of a loop.

    Attributes
    ----------
    groups : list
        The products behind the loop of which operands are held as one array.
    """

    def __init__(
        self, node: Apply, nodes: Sequence[Expr], sizes: Mapping[str, int], least: int
    ) -> None:
        super().__init__(node, nodes, sizes)
        self.groups: list[tuple[Einsum, _Group]] = []
        self._least = least
        self._inside: set[int] = set()

    def _large(self, e: Expr) -> bool:
        return self.entries(e.shape) >= self._least

    def stays(self, e: Expr) -> bool:
        return id(e) not in self.above and id(e) not in self._inside and self._large(e)

    def joins(self, e: Einsum, label: int) -> bool:
        if super().joins(e, label):
            return True
        if id(e) in self.above:
            return False

        def size(word: Sequence[int]) -> int:
            return self.entries([e.extents[i] for i in word if i != label])

        return not self._large(e) or not rereads(e, [label in word for word in e.labels], size)

    # --- what is made in the steps ----------------------------------------------------------------

    def look(self, roots: Sequence[Expr], nodes: Sequence[Expr]) -> None:
        """Find what every reader has in the steps of this loop, readers first."""
        readers: dict[int, list[tuple[int, int]]] = {id(root): [(0, 0)] for root in roots}
        for e in nodes:
            for k, arg in enumerate(e.args):
                readers.setdefault(id(arg), []).append((id(e), k))
        wanted: dict[int, set[int]] = {}
        within: set[tuple[int, int]] = set()
        for e in reversed(nodes):
            for k, axis in self._read_in_steps(e, wanted, within, readers):
                within.add((id(e), k))
                if axis is not None:
                    wanted.setdefault(id(e.args[k]), set()).add(axis)

    def _read_in_steps(
        self,
        e: Expr,
        wanted: Mapping[int, set[int]],
        within: set[tuple[int, int]],
        readers: Mapping[int, Sequence[tuple[int, int]]],
    ) -> Iterator[tuple[int, int | None]]:
        """The places of operands that steps read for it, and along which axes."""
        first, count = len(self.primal.body.states), len(self.primal.body.steps)
        if e is self.node:
            yield from [(k, 0) for k in range(first, first + count)]
            return
        axes = wanted.get(id(e), set())
        if len(axes) == 1 and within.issuperset(readers[id(e)]):
            operands = None if self.is_history(e) else self.operands(e, *axes)
            if operands is not None:
                self._inside.add(id(e))
                yield from [(k, axis) for k, (_, axis) in enumerate(operands)]
                return
        group = self._group(e)
        if group is not None and isinstance(e, Einsum):
            self.groups.append((e, group))
            yield from [(k, e.labels[k].index(group.label)) for k in group.places]

    def made_inside(self) -> dict[Var, Expr]:
        """Variables for slices that are large, and the rows that steps make of them."""
        first, found = len(self.primal.body.states), {}
        for v, e in zip(self.primal.body.steps, self.node.args[first:], strict=False):
            row = self.row(e, 0) if id(e) in self._inside and self._large(e) else None
            if row is not None:
                found[v] = row
        return found

    # --- what is held -----------------------------------------------------------------------------

    def _group(self, e: Expr) -> _Group | None:
        """The operands of a product with a sum over steps that are made of the loop's states."""
        if not isinstance(e, Einsum) or not e.summed:
            return None
        pairs = list(enumerate(zip(e.args, e.labels, strict=True)))
        behind = [k for k, (arg, _) in pairs if id(arg) in self.above and self._large(arg)]
        if not behind:
            return None
        widest = max(behind, key=lambda k: self.entries(e.args[k].shape))
        labels = set(e.labels[widest])
        for label in sorted(labels.difference(e.out)):
            places = [
                k for k, (arg, word) in pairs
                if word.count(label) == 1 and labels.issuperset(word) and not chooses(arg)
            ]  # fmt: skip
            whole = places == [widest] and self.is_history(e.args[widest])
            if (
                e.extents[label] == self.primal.steps.length
                and widest in places
                and not whole
                and all(self._known_in_step(e.args[k], e.labels[k].index(label)) for k in places)
            ):
                return _Group(label, places)
        return None

    def _known_in_step(self, e: Expr, axis: int) -> bool:
        """Does a step know this row, whatever of it was made before the loop?"""
        waiting, seen = [(e, axis)], set()
        while waiting:
            one, at = waiting.pop()
            if (id(one), at) in seen or id(one) not in self.above:
                continue
            seen.add((id(one), at))
            if self.is_history(one):
                if at:
                    return False
                continue
            operands = self.operands(one, at)
            if operands is None or any(k is None and id(a) in self.above for a, k in operands):
                return False
            waiting += [(a, k) for a, k in operands if k is not None]
        return True

    def held(self, e: Einsum, group: _Group) -> StepValue:
        """The row of a group, axes as they lie in the state that it is made of."""
        items, words = [], []
        for k in group.places:
            item = self.row(e.args[k], e.labels[k].index(group.label))
            assert item is not None
            items.append(item)
            words.append([i for i in e.labels[k] if i != group.label])
        widest = max(range(len(items)), key=lambda k: len(words[k]))
        lying = [words[widest][axis] for axis in _as_it_lies(items[widest])]
        out = tuple(dict.fromkeys([*lying, *[i for word in words for i in word]]))
        item = einsum(items, words, out, ONE, {i: e.extents[i] for i in out})
        rest = {k: word for k, word in enumerate(e.labels) if k not in group.places}
        return StepValue(e, item, (group.label, *out), rest, held=True)


def _as_it_lies(e: Expr) -> Sequence[int]:
    """The axes in their order in a variable that the expression is made of entry by entry."""
    return _order(e) or range(e.ndim)


def _order(e: Expr) -> list[int] | None:
    if isinstance(e, Var):
        return list(range(e.ndim))
    whole = [range(e.ndim)] * len(e.args)
    entrywise = isinstance(e, Add) or (isinstance(e, Apply) and e.op.elementwise)
    pairs = list(zip(e.args, e.labels if isinstance(e, Einsum) else whole, strict=True))
    out = e.out if isinstance(e, Einsum) and not e.summed else range(e.ndim) if entrywise else ()
    for arg, word in pairs:
        if arg.ndim == e.ndim == len(set(out)) and set(word) == set(out):
            order = _order(arg)
            if order is not None:
                return [out.index(word[axis]) for axis in order]
    return None
