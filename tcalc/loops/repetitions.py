"""Steps that repeat in an expression: two are laid side by side, then all before them.

What Python's loop computes in one step looks as the step before it, but for what differs from step
to step. So two steps are compared node by node, from their results down, later nodes first: where
both are the same node they read something from outside; where the earlier one stands for what the
later one has read already, that is a state; and numbers, constants and places at which arrays are
read may differ (anti-unification, Plotkin 1970). The steps before are matched with what was found,
each beginning with the states that the step after it has read. What a step reads of several steps
before it is as many states, each of which becomes the next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from heapq import heapify, heappop, heappush
from operator import is_not
from typing import Any

from ..graph.captures import is_captured
from ..graph.nodes import Add, Apply, Const, Einsum, Expr, Part, Var, postorder
from ..support.records import NamedTuple
from .looks import Looks, number_of, place_of, words_on_axes

#: Nodes of one step, and how many of them may be told apart later than between the last two steps.
MAX_NODES, MAX_OPENED = 4096, 32
#: Results of one step that are looked for beside the first.
MAX_RESULTS = 16

Step = dict[int, Expr]
#: Results of the last step, each with that of the step before.
Ends = list[tuple[Expr, Expr]]


class Hole(NamedTuple):
    """What differs from step to step in a node: ``kind`` is what its values are."""

    node: Expr
    kind: str


class Steps(NamedTuple):
    """Equal steps, the last one first.

    Attributes
    ----------
    results : mapping
        Of the last step: the node of each state, by id -> the state after the step.
    inside : list of Expr
        The nodes that it computes, later ones first.
    holes : list of Hole
        What differs from step to step.
    each : list of mapping
        Of every step: the node that stands in place of each node of the last, by id.
    values : list of list
        Of every step: what stands in the holes.
    """

    results: Mapping[int, Expr]
    inside: list[Expr]
    holes: list[Hole]
    each: list[Step]
    values: list[list[Any]]

    def moving(self) -> list[Expr]:
        """The nodes inside that depend on a state, later ones first."""
        known = set(self.results)
        for node in reversed(self.inside):
            if not known.isdisjoint(map(id, node.args)):
                known.add(id(node))
        return [node for node in self.inside if id(node) in known]


def repeated(last: Expr, before: Expr, looks: Looks, least: int) -> Steps | None:
    """The steps of which these nodes are part, where there are at least so many.

    Parameters
    ----------
    last, before : Expr
        One result of the last step, and of the step before it.
    looks : Looks
        Of all nodes.
    """
    for most in (MAX_RESULTS, 1):
        ends, opened = [(last, before)], set[int]()
        best: Steps | None = None
        for _ in range(MAX_OPENED):
            found, apart = _steps(ends, looks, opened, most, least)
            if found is not None and (best is None or len(found.each) > len(best.each)):
                best = found
            if apart <= opened:
                break
            opened |= apart
        if best is not None and len(best.each) >= least:
            return best
        if len(ends) == 1:
            break
    return None


def _steps(
    ends: Ends, looks: Looks, opened: Collection[int], most: int, least: int
) -> tuple[Steps | None, set[int]]:
    """The steps that are equal; and what each may make for itself, where that may give more."""
    while not isinstance(found := _two_steps(ends, looks, opened, most), Steps):
        if found is None:
            return None, set()
        ends.append(found)
    while isinstance(step := _matched(found, found.each[-1], looks), tuple):
        found.each.append(step[0])
        found.values.append(step[1])
    differ = [
        not all(same(v[k], found.values[0][k]) for v in found.values)
        for k in range(len(found.holes))
    ]
    holes = [hole for hole, each in zip(found.holes, differ, strict=True) if each]
    values = [[v for v, each in zip(row, differ, strict=True) if each] for row in found.values]
    apart = {step} if step is not None else set[int]()
    if step is None and len(found.each) < least:
        apart = _of_no_state(found)
    return found._replace(holes=holes, values=values), apart


def _of_no_state(found: Steps) -> set[int]:
    """The states that a step makes of no state: the next one may make them for itself."""
    moving = {*found.results, *map(id, found.moving())}
    return {at for at, result in found.results.items() if id(result) not in moving}


def _two_steps(
    ends: Ends,
    looks: Looks,
    opened: Collection[int],
    most: int,
) -> Steps | tuple[Expr, Expr] | None:
    """The last two steps; or one more result of theirs, of which there are so many at most.

    Where the last step would make anew what a step before it has made, and a node above looks like
    that, it is a state, and the node above is the result.
    """
    pairs: Step = {id(last): before for last, before in ends}
    later: Step = {id(before): last for last, before in ends}  # the one that takes its place
    results: Step = {}
    inside: list[Expr] = []
    holes: list[Hole] = []
    waiting = [(-looks.place[id(last)], id(last), last) for last, _ in ends]
    heapify(waiting)
    while waiting:
        _, at, node = heappop(waiting)
        other = pairs[at]
        if node is other and at not in opened:
            continue
        if at in later and at not in opened:
            if later[at].shape != node.shape:
                return None
            results[at] = later[at]
            later.setdefault(id(other), node)  # if it is read too, it is a state that becomes this
            continue
        after = looks.after(node, other) if len(ends) < most and at not in opened else None
        if after is not None and id(after) not in pairs:
            return after, node
        below = _laid_beside(node, other, looks, pairs)
        if below is None or len(inside) == MAX_NODES:
            return None
        kind = _difference(node, other) or (_kind(node) if at in opened else "")
        if kind:
            holes.append(Hole(node, kind))
        inside.append(node)
        later.setdefault(id(other), node)
        for one, two in below:
            if id(one) not in pairs:
                pairs[id(one)] = two
                heappush(waiting, (-looks.place[id(one)], id(one), one))
            elif pairs[id(one)] is not two:
                return None
    operands: Step = {}
    while results and operands.keys() != results.keys():
        # what no other result reads is none
        needed = _needed(results)
        inside = [node for node in inside if id(node) in needed]
        holes = [hole for hole in holes if id(hole.node) in needed]
        read = [*results.values(), *[arg for node in inside for arg in node.args]]
        operands = {id(arg): arg for arg in read if id(arg) in results}
        results = {at: result for at, result in results.items() if at in operands}
    if not results:
        return None
    first: Step = {id(node): node for node in inside} | {at: operands[at] for at in results}
    second: Step = {at: pairs[at] for at in first}
    values = [[_value(step[id(h.node)], h.kind) for h in holes] for step in (first, second)]
    return Steps(results, inside, holes, [first, second], values)


def _needed(results: Step) -> set[int]:
    """What the last results are computed from, down to those before them."""
    return set(map(id, postorder(results.values(), lambda n: id(n) in results)))


def _matched(found: Steps, after: Step, looks: Looks) -> tuple[Step, list[Any]] | int | None:
    """The step before one, where it is equal, and what stands in its holes.

    Else what it does not read, where all steps behind it do; None where there is more to it.
    """
    given: Step = {}
    for at, result in found.results.items():
        if given.setdefault(id(result), after[at]) is not after[at]:
            return None
    first = found.each[0]
    kinds = {id(hole.node): hole.kind for hole in found.holes}
    for node in found.inside:
        other = given.get(id(node))
        if other is None:
            return None
        below = _laid_beside(node, other, looks, given)
        if below is None:
            return None
        if _difference(node, other) not in ("", kinds.get(id(node), "")):
            return id(node)
        for one, two in below:
            if given.setdefault(id(one), two) is not two:
                return None
            if one is not two and id(one) not in first:
                return id(one)
    step = {at: given[at] for at in first if at in given}
    if len(step) < len(first):
        return None
    return step, [_value(step[id(h.node)], h.kind) for h in found.holes]


# --- two nodes ------------------------------------------------------------------------------------


def _kind(node: Expr) -> str:
    """What may differ between such nodes from step to step, operands apart."""
    if isinstance(node, Einsum):
        return "coefficient"
    if isinstance(node, Const):
        return "constant"
    if isinstance(node, Var):
        return "array" if is_captured(node) else ""
    return "" if place_of(node) is None else "place"


def _difference(node: Expr, other: Expr) -> str:
    """What differs between two nodes but for their operands."""
    kind = _kind(node)
    return "" if same(_value(node, kind), _value(other, kind)) else kind


def same(one: Any, two: Any) -> bool:
    """Are these the same in a hole?"""
    return one is two if isinstance(one, Expr) else bool(one == two)


def _value(node: Expr, kind: str) -> Any:
    """What stands in a hole: a number, a place, or a node."""
    return number_of(node) if kind in ("coefficient", "place") else node


def _laid_beside(
    node: Expr, other: Expr, looks: Looks, known: Mapping[int, Expr]
) -> list[tuple[Expr, Expr]] | None:
    """The operands of two nodes that compute the same, in pairs; None where they do not."""
    if type(node) is not type(other) or node.shape != other.shape:
        return None
    if len(node.args) != len(other.args):
        return None
    if isinstance(node, Einsum) and isinstance(other, Einsum):
        if (node.coef.times, node.coef.over) != (other.coef.times, other.coef.over):
            return None
        labels = dict(zip(node.out, other.out, strict=True))
        if [labels[x] for x in node.out] != list(other.out):
            return None
        same = (node.labels, node.out, node.extents) == (other.labels, other.out, other.extents)
        if same and _one_moved(node, other):
            return list(zip(node.args, other.args, strict=True))
        return next(_factors_beside(node, other, labels, (), looks, known), None)
    if isinstance(node, Add):
        return _terms_beside(node, other, looks, known)
    if isinstance(node, Apply) and isinstance(other, Apply):
        plain = not (node.params or other.params)
        same = node.op is other.op and (plain or repr(node.params) == repr(other.params))
        places = place_of(node) is not None and place_of(other) is not None
        if not same and not (places and node.op is other.op):
            return None
    elif isinstance(node, Part):
        if node.meta != other.meta:
            return None
    elif isinstance(node, Var) and isinstance(other, Var):
        if node.properties != other.properties or not (is_captured(node) and is_captured(other)):
            return None
    elif not (isinstance(node, Const) and isinstance(other, Const) and node._dtype == other._dtype):
        return None
    return list(zip(node.args, other.args, strict=True))


def _one_moved(node: Expr, other: Expr) -> bool:
    """Are all operands but one the same, in their order?"""
    return sum(map(is_not, node.args, other.args)) == 1


def _terms_beside(
    node: Expr, other: Expr, looks: Looks, known: Mapping[int, Expr]
) -> list[tuple[Expr, Expr]]:
    if _one_moved(node, other):
        return list(zip(node.args, other.args, strict=True))
    left = list(other.args)
    rise = looks.rise(node, other)
    found = []
    for arg in sorted(node.args, key=lambda a: all(a is not b for b in other.args)):
        best = min(left, key=lambda b: _unlike(arg, b, rise, looks, known))
        left = [b for b in left if b is not best]
        found.append((arg, best))
    return found


def _unlike(
    one: Expr, two: Expr, rise: int, looks: Looks, known: Mapping[int, Expr]
) -> tuple[int, ...]:
    """How far two operands are from being a pair: the least are taken.

    What is above both is higher by `rise` in one step than in the other, as all that it computes.
    """
    return (
        one is not two, known.get(id(one), two) is not two, not _on_same_axes(one, two),
        -looks.alike(one, two), -looks.alike_in_kind(one, two), looks.rise(one, two) != rise,
        number_of(one) != number_of(two),
    )  # fmt: skip


def _on_same_axes(one: Expr, two: Expr) -> bool:
    """If both are products: do their operands stand on the same axes of them?"""
    if not (isinstance(one, Einsum) and isinstance(two, Einsum)):
        return True
    return sorted(words_on_axes(one)) == sorted(words_on_axes(two))


def _factors_beside(
    node: Einsum,
    other: Einsum,
    labels: Mapping[int, int],
    taken: tuple[int, ...],
    looks: Looks,
    known: Mapping[int, Expr],
) -> Iterator[list[tuple[Expr, Expr]]]:
    """The factors in pairs, beside those taken, so that labels of one are those of the other."""
    if len(taken) == len(node.args):
        yield [(node.args[i], other.args[j]) for i, j in enumerate(taken)]
        return
    word, arg, rise = node.labels[len(taken)], node.args[len(taken)], looks.rise(node, other)
    free = [j for j in range(len(other.args)) if j not in taken]
    for j in sorted(free, key=lambda j: _unlike(arg, other.args[j], rise, looks, known)):
        if len(word) != len(other.labels[j]):
            continue
        more = dict(labels)
        pairs = zip(word, other.labels[j], strict=True)
        if all(more.setdefault(x, y) == y for x, y in pairs) and _same_extents(node, other, more):
            yield from _factors_beside(node, other, more, (*taken, j), looks, known)


def _same_extents(node: Einsum, other: Einsum, labels: Mapping[int, int]) -> bool:
    injective = len(set(labels.values())) == len(labels)
    return injective and all(node.extents[x] == other.extents[y] for x, y in labels.items())
