"""Sums over the steps of a loop that are made in it, so that no history is held for them.

A sum behind a loop reads values of all steps, which are written for it and read once more; in the
loop what it adds up is at hand. That is done where every reader of a loop's histories is such a sum
and each adds entry by entry. An outer product of histories is left where it is: summed over the
steps, it is one product of matrices.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ..graph.applications import with_args
from ..graph.extents import ONE
from ..graph.nodes import Add, Apply, Einsum, Expr, postorder
from ..graph.normal import einsum
from .step_values import StepValue, StepValues, chooses, rewritten_with

__all__: list[str] = []


def summed_inside(
    node: Apply, roots: Sequence[Expr], sizes: Mapping[str, int], fewest: int
) -> list[Expr] | None:
    """The roots with sums over all steps of a loop made in it.

    None where its histories are needed for something else, and where none has a row of `fewest`
    entries: then a step costs its calls, of which one for all steps is made behind.
    """
    if node.params[0].bound is not None:
        return None
    nodes = postorder(roots)
    found = _Steps(node, nodes, sizes)
    if found.widest < fewest:
        return None
    sums = found.sums(roots)
    if not sums:
        return None
    done = rewritten_with(nodes, found.loop(list(sums.values())), sums)
    return [done[id(root)] for root in roots]


class _Steps(StepValues):
    """One step of a loop, and the sums of what it makes."""

    def __init__(self, node: Apply, nodes: Sequence[Expr], sizes: Mapping[str, int]) -> None:
        super().__init__(node, nodes, sizes)
        self.known_sums: dict[int, StepValue] = {}

    @property
    def widest(self) -> int:
        """Entries of the largest state."""
        return max([self.entries(v.shape) for v in self.primal.body.states], default=0)

    def sums(self, roots: Sequence[Expr]) -> dict[int, StepValue] | None:
        """The largest sums over steps, by id; None if anything else reads a history."""
        for e in sorted(self.above.values(), key=lambda e: self.order[id(e)]):
            made = self._sum_of(e)
            if made is not None:
                self.known_sums[id(e)] = made
        found: dict[int, StepValue] = {}
        waiting = {id(root): root for root in roots}
        seen: set[int] = set()
        while waiting:
            key, e = waiting.popitem()
            if self.is_history(e):
                return None
            seen.add(key)
            places: Collection[int] = range(len(e.args))
            if key in self.known_sums:
                found[key] = self.known_sums[key]
                places = found[key].rest.keys()
            more = [e.args[k] for k in places]
            waiting |= {id(a): a for a in more if id(a) in self.above and id(a) not in seen}
        return found

    def _sum_of(self, e: Expr) -> StepValue | None:
        """What a step adds to it, if it is a sum over all steps."""
        items = [self.known_sums.get(id(arg)) for arg in e.args]
        whole = [s.item for s in items if s is not None and not s.rest]
        if isinstance(e, Add) or (isinstance(e, Einsum) and not e.summed and len(e.args) == 1):
            return StepValue(e, with_args(e, whole)) if len(whole) == len(items) else None
        if not isinstance(e, Einsum):
            return None
        words = [set(w) for a, w in zip(e.args, e.labels, strict=True) if id(a) in self.above]
        for label in sorted(set().union(*words).difference(e.out)):
            if e.extents[label] == self.primal.steps.length:
                found = self._sum_over(e, label)
                if found is not None:
                    return found
        return None

    def _sum_over(self, e: Einsum, label: int) -> StepValue | None:
        pairs = list(enumerate(zip(e.args, e.labels, strict=True)))
        inside = {k: word for k, (_, word) in pairs if label in word}
        rest = {k: word for k, (_, word) in pairs if label not in word}
        read = set(e.out).union(*rest.values())
        left = dict.fromkeys([i for word in inside.values() for i in word if i != label])
        out = tuple([i for i in left if i in read]) if rest else e.out
        extents = {i: n for i, n in enumerate(e.extents) if i in left or i in out}
        if not self.entrywise(e, list(inside.values()), left):
            return None
        if any(word.count(label) > 1 or chooses(e.args[k]) for k, word in inside.items()):
            return None
        items = [self.row(e.args[k], word.index(label)) for k, word in inside.items()]
        operands = [item for item in items if item is not None]
        if len(operands) < len(items):
            return None
        words = [[i for i in word if i != label] for word in inside.values()]
        item = einsum(operands, words, out, ONE if rest else e.coef, extents)
        return StepValue(e, item, out if rest else None, rest)
