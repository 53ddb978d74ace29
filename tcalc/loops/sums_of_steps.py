"""Sums over the steps of a loop that are made in it, so that no history is held for them.

A sum behind a loop reads values of all steps, which are written for it and read once more; in the
loop what it adds up is at hand. That is done where every reader of a loop's histories is such a sum
and each adds entry by entry. An outer product of histories is left where it is: summed over the
steps, it is one product of matrices.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import NamedTuple

from ..graph.applications import parts, with_args
from ..graph.extents import ONE, Extent, extent_of
from ..graph.nodes import Add, Apply, Einsum, Expr, Part, Var, postorder
from ..graph.normal import add, einsum
from ..graph.products import indicates, selects, zeros_node
from .body import body_variable
from .derivatives import Primal, move_axis
from .normal_form import AFTER, LoopOperands, normal_form_loop

__all__: list[str] = []

#: An operand and the axis of its that the steps are along; None: it is the same in all.
_Sliced = tuple[Expr, int | None]


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
    done = _rewritten(nodes, found.loop(list(sums.values())), sums)
    return [done[id(root)] for root in roots]


class _Sum(NamedTuple):
    """A sum over steps, or a product with one: `rest` are its other operands, by place.

    `item` is what one step adds, whose axes have the labels `word` in the product.
    """

    whole: Expr
    item: Expr
    word: tuple[int, ...] = ()
    rest: Mapping[int, tuple[int, ...]] = {}


class _Steps:
    """One step of a loop, and what expressions behind it are at that step."""

    def __init__(self, node: Apply, nodes: Sequence[Expr], sizes: Mapping[str, int]) -> None:
        self.node, self.sizes = node, sizes
        self.primal = Primal.of(node)
        self.n = self.primal.body.results
        self.order = {id(e): k for k, e in enumerate(nodes)}
        self.above: dict[int, Expr] = {id(node): node}
        for e in nodes:
            if any(id(arg) in self.above for arg in e.args):
                self.above[id(e)] = e
        self.scanned: dict[tuple[int, int], tuple[Var, Expr]] = {}
        self.known: dict[tuple[int, int], Expr | None] = {}
        self.known_sums: dict[int, _Sum] = {}

    @property
    def widest(self) -> int:
        """Entries of the largest state."""
        return max([self._entries(v.shape) for v in self.primal.body.states], default=0)

    def _kept(self, e: Expr) -> bool:
        return isinstance(e, Part) and e.args[0] is self.node and e.index >= AFTER * self.n

    def _entries(self, shape: Sequence[Extent]) -> int:
        return prod([extent_of(x, self.sizes) for x in shape])

    def _entrywise(
        self, e: Einsum, words: Sequence[Sequence[int]], labels: Collection[int]
    ) -> bool:
        """Are a step's products, with these labels, no more than one operand has entries?"""
        held = [self._entries([e.extents[i] for i in {*w} & {*labels}]) for w in words]
        return self._entries([e.extents[i] for i in labels]) <= max(held, default=1)

    # --- sums -------------------------------------------------------------------------------------

    def sums(self, roots: Sequence[Expr]) -> dict[int, _Sum] | None:
        """The largest sums over steps, by id; None if anything else reads a history."""
        for e in sorted(self.above.values(), key=lambda e: self.order[id(e)]):
            made = self._sum_of(e)
            if made is not None:
                self.known_sums[id(e)] = made
        found: dict[int, _Sum] = {}
        waiting = {id(root): root for root in roots}
        seen: set[int] = set()
        while waiting:
            key, e = waiting.popitem()
            if self._kept(e):
                return None
            seen.add(key)
            places: Collection[int] = range(len(e.args))
            if key in self.known_sums:
                found[key] = self.known_sums[key]
                places = found[key].rest.keys()
            more = [e.args[k] for k in places]
            waiting |= {id(a): a for a in more if id(a) in self.above and id(a) not in seen}
        return found

    def _sum_of(self, e: Expr) -> _Sum | None:
        """What a step adds to it, if it is a sum over all steps."""
        items = [self.known_sums.get(id(arg)) for arg in e.args]
        whole = [s.item for s in items if s is not None and not s.rest]
        if isinstance(e, Add) or (isinstance(e, Einsum) and not e.summed and len(e.args) == 1):
            return _Sum(e, with_args(e, whole)) if len(whole) == len(items) else None
        if not isinstance(e, Einsum):
            return None
        words = [set(w) for a, w in zip(e.args, e.labels, strict=True) if id(a) in self.above]
        for label in sorted(set().union(*words).difference(e.out)):
            if e.extents[label] == self.primal.steps.length:
                found = self._sum_over(e, label)
                if found is not None:
                    return found
        return None

    def _sum_over(self, e: Einsum, label: int) -> _Sum | None:
        pairs = list(enumerate(zip(e.args, e.labels, strict=True)))
        inside = {k: word for k, (_, word) in pairs if label in word}
        rest = {k: word for k, (_, word) in pairs if label not in word}
        read = set(e.out).union(*rest.values())
        left = dict.fromkeys([i for word in inside.values() for i in word if i != label])
        out = tuple([i for i in left if i in read]) if rest else e.out
        extents = {i: n for i, n in enumerate(e.extents) if i in left or i in out}
        if not self._entrywise(e, list(inside.values()), left):
            return None
        if any(word.count(label) > 1 or _chooses(e.args[k]) for k, word in inside.items()):
            return None
        items = [self._sliced(e.args[k], word.index(label)) for k, word in inside.items()]
        operands = [item for item in items if item is not None]
        if len(operands) < len(items):
            return None
        words = [[i for i in word if i != label] for word in inside.values()]
        item = einsum(operands, words, out, ONE if rest else e.coef, extents)
        return _Sum(e, item, out, rest)

    def loop(self, sums: Sequence[_Sum]) -> dict[int, Expr]:
        """What takes the place of the loop's outputs and of the sums, by id."""
        body, n = self.primal.body, self.n
        first, scanned, captured = self.primal.operands
        added = [body_variable(f"g{k}@", s.item.shape) for k, s in enumerate(sums)]
        outputs = [*body.outputs, *[add([v, s.item]) for v, s in zip(added, sums, strict=True)]]
        inits = [*first, *[zeros_node(v.shape) for v in added]]
        feed = LoopOperands(scanned | dict(self.scanned.values()), captured)
        states = [*body.states, *added]
        made = normal_form_loop(self.node.op, states, outputs, inits, feed, self.primal.steps)
        found = {}
        for k, part in enumerate(parts(self.node)):
            kind, state = divmod(k, n)
            found[id(part)] = made[kind * len(states) + state]
        return found | {id(s.whole): made[n + k] for k, s in enumerate(sums)}

    # --- one step ---------------------------------------------------------------------------------

    def _sliced(self, e: Expr, axis: int) -> Expr | None:
        """The row of an expression along this axis that belongs to a step.

        None where it is not the loop's to know: where a step would need another step's states.
        """
        waiting, found = [(e, axis)], {}
        while waiting:
            one, at = waiting.pop()
            key = id(one), at
            if key in self.known or key in found:
                continue
            found[key] = one, at, self._operands(one, at)
            waiting += [(a, k) for a, k in found[key][2] or () if k is not None]
        for key, (one, at, operands) in sorted(found.items(), key=lambda x: self.order[x[0][0]]):
            self.known[key] = self._made(one, at, operands)
        return self.known[id(e), axis]

    def _operands(self, e: Expr, axis: int) -> list[_Sliced] | None:
        """The operands whose rows make the row of an entrywise expression; None of another one."""
        if self._kept(e):
            return None
        if isinstance(e, Add) or (isinstance(e, Apply) and e.op.elementwise):
            return [(arg, axis) for arg in e.args]
        if not isinstance(e, Einsum) or e.out.count(e.out[axis]) > 1:
            return None
        label = e.out[axis]
        words = [word for arg, word in zip(e.args, e.labels, strict=True) if not _chooses(arg)]
        moving = [word for word in words if label in word]
        if len(words) > 1 and not self._entrywise(e, moving, set().union(*words) - {label}):
            return None
        found: list[_Sliced] = []
        for arg, word in zip(e.args, e.labels, strict=True):
            here = [k for k, i in enumerate(word) if i == label]
            if len(here) > 1 or (here and _chooses(arg)):
                return None
            found.append((arg, here[0] if here else None))
        return found

    def _made(self, e: Expr, axis: int, operands: Sequence[_Sliced] | None) -> Expr | None:
        if self._kept(e) and axis == 0 and isinstance(e, Part):
            kind, k = divmod(e.index, self.n)
            return self.primal.body.outputs[k] if kind == AFTER else self.primal.body.states[k]
        rows: list[Expr] = []
        for arg, at in operands or ():
            row = self.known[id(arg), at] if at is not None else arg
            if row is None or (at is None and id(arg) in self.above):
                operands = None
                break
            rows.append(row)
        if operands is None or not operands:
            return None if id(e) in self.above else self._slice(e, axis)
        if not isinstance(e, Einsum):
            return with_args(e, rows)
        label = e.out[axis]
        words = [[i for i in word if i != label] for word in e.labels]
        extents = {i: x for i, x in enumerate(e.extents) if i != label}
        return einsum(rows, words, [i for i in e.out if i != label], e.coef, extents)

    def _slice(self, e: Expr, axis: int) -> Expr:
        """A variable for what the loop scans."""
        key = id(e), axis
        if key not in self.scanned:
            shape = (*e.shape[:axis], *e.shape[axis + 1 :])
            v = body_variable(f"r{len(self.scanned)}@", shape)
            self.scanned[key] = v, move_axis(e, axis, 0)
        return self.scanned[key][0]


def _chooses(e: Expr) -> bool:
    """Does it say which entries of other operands are read?"""
    return indicates(e) or selects(e)


def _rewritten(
    nodes: Sequence[Expr], known: Mapping[int, Expr], sums: Mapping[int, _Sum]
) -> dict[int, Expr]:
    """All nodes, by id, with what is `known` of a sum as one operand of its product."""
    done: dict[int, Expr] = {}
    for e in nodes:
        found = sums.get(id(e))
        if found is not None and found.rest and isinstance(e, Einsum):
            ops = [known[id(e)], *[done[id(e.args[k])] for k in found.rest]]
            words = [found.word, *found.rest.values()]
            done[id(e)] = einsum(ops, words, e.out, e.coef, dict(enumerate(e.extents)))
        elif id(e) in known:
            done[id(e)] = known[id(e)]
        else:
            done[id(e)] = with_args(e, [done[id(a)] for a in e.args]) if e.args else e
    return done
