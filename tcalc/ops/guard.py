"""Branches of `where`: operators that are not finite everywhere see a safe point off their branch.

where(c, f(x), b) equals where(c, f(where(c, x, safe)), b), and in the second form f and all its
derivatives are finite where the branch is not taken, so that masks multiply numbers, never
infinity.

Where the condition asks for nan, or is data, as masks of what was observed are, nan is expected off
the branch. There all that is not linear sees a number in its place.

Of a large branch that is left as it is what the other branch reads too, which is read whatever the
condition is, and what stands below several choices. So the value that a step of many chooses by is
not copied for every choice after it, nor are all choices before, twice as many with each step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from math import inf, isfinite

from ..graph.applications import apply
from ..graph.extents import ONE
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels
from ..graph.normal import add, einsum
from ..graph.operators import operator_named
from ..graph.products import is_number, numeral, numeric_value
from ..support.limits import spend
from .choices import NEAREST, Key, Place, below, choice, choose, is_truth, operands_by_entry
from .missing import SUMMED, missing_places, rows_of_sum

#: Steps of looking at one node of a branch.
_VISIT = 20
#: Places of a branch from which on it is large; those at which it is found out whether the other
#: branch reads them too, and the choices around these; and the choices around what is guarded.
LARGE, LOOKED, DEPTH, NESTED = 128, 4096, 4, 1


def guarded(conditions: Sequence[Expr], branches: Sequence[Expr]) -> list[Expr]:
    """Both branches of a choice, their restricted operators kept inside their domain.

    They are where the condition of the other branch holds; there a branch is not taken.
    """
    shared: Collection[Key] | None = None
    found = []
    for condition, branch, other in zip(conditions, branches, branches[::-1], strict=True):
        missing = missing_places(condition, branch, other)
        new = _Guard(condition, missing).run(branch, LARGE)
        if new is None:
            shared = _read_by_both(conditions, branches) if shared is None else shared
            still = {*shared, *_below_choices((branch, tuple(range(branch.ndim))))}
            new = _Guard(condition, missing, still).run(branch)
        assert new is not None
        found.append(new)
    return found


class _Guard:
    """One branch: its nodes, each with the axes of the condition that its own axes are.

    Conditions inside of it stay as they are: they are 1 or 0 off the branch too, and multiply
    nothing else. So what is guarded already is left as it is, whose guards are such conditions.
    """

    def __init__(
        self, condition: Expr, missing: Collection[Key], shared: Collection[Key] = ()
    ) -> None:
        self.condition = condition
        self.shape = condition.shape
        self.shared = shared
        self.done: dict[Key, Expr | None] = {}
        #: Places that may be nan off the branch; those of them that stand in sums.
        self.missing = set(missing)
        self.within_sums = {key for key in missing if SUMMED in key[1]}

    def run(self, branch: Expr, most: float = inf) -> Expr | None:
        """The branch, guarded; None where it has more places than `most`."""
        root = (branch, tuple(range(branch.ndim)))
        stack = [root]
        while stack:
            if len(self.done) > most:
                return None
            node, word = stack[-1]
            missing = [p for p in self.operands(node, word) if (id(p[0]), p[1]) not in self.done]
            if missing:
                stack.extend(missing)
            else:
                stack.pop()
                self.done.setdefault((id(node), word), self.rebuilt(node, word))
        found = self.done[id(branch), root[1]]
        return branch if found is None else found

    def operands(self, node: Expr, word: Labels) -> list[Place]:
        """The operands that are looked at."""
        still = is_truth(node) or (id(node), word) in self.shared
        return [] if still else operands_by_entry(node, word)

    def expanded(self, node: Expr, word: Labels) -> Expr:
        extents = dict(enumerate(self.shape))
        return einsum([node], [word], range(len(self.shape)), ONE, extents)

    def rebuilt(self, node: Expr, word: Labels) -> Expr | None:
        """The node in the condition's shape with guarded operands; None where nothing changes."""
        spend("steps", _VISIT)
        places = self.operands(node, word)
        results = [self.done[id(arg), w] for arg, w in places]
        if places and self.loses(node, word):
            first = results[1] if results[1] is not None else node.args[1]
            return choose(self.condition, first, numeral(1, self.shape))
        if self.within_sums and isinstance(node, Einsum) and node.summed:
            return self.summed(node, word)
        if not places:
            return None  # it is read whatever the condition is
        safe = self.safe_points(node, word)
        if all(r is None for r in (*results, *safe)):
            return None
        args = [
            r if r is not None else self.expanded(arg, w)
            for r, (arg, w) in zip(results, places, strict=True)
        ]
        args = [self.kept(arg, point) for arg, point in zip(args, safe, strict=True)]
        if isinstance(node, Apply):
            return apply(node.op, *args, params=node.params)
        if isinstance(node, Add):
            return add(args)
        assert isinstance(node, Einsum)
        axes = range(len(self.shape))
        return einsum(args, [axes] * len(args), axes, node.coef, dict(enumerate(self.shape)))

    def safe_points(self, node: Expr, word: Labels) -> Sequence[float | None]:
        """For every operand the number that it is off the branch, None where it stays.

        Sums of what may be nan may be so too; all else sees numbers, and is one.
        """
        places = self.operands(node, word)
        doubtful = [(id(arg), w) in self.missing for arg, w in places]
        safe = (isinstance(node, Apply) and node.op.meaning.safe) or (None,) * len(places)
        if isinstance(node, Add) or (isinstance(node, Einsum) and len(places) == 1):
            if any(doubtful):
                self.missing.add((id(node), word))
            return safe
        return [
            0.0 if point is None and doubt else point
            for point, doubt in zip(safe, doubtful, strict=True)
        ]

    def summed(self, node: Einsum, word: Labels) -> Expr | None:
        """A sum of products whose operands are 0 off the branch, where they may be nan there."""
        args = list(node.args)
        for k, (arg, places) in rows_of_sum(node, word, len(self.shape)).items():
            missing = {
                (at, own)
                for (at, own), _ in below((arg, tuple(range(arg.ndim))))
                if (at, tuple([places[i] for i in own])) in self.within_sums
            }
            if missing:
                axes = [places.index(i) for i in range(len(self.shape))]
                extents = dict(enumerate(arg.shape))
                condition = einsum([self.condition], [axes], range(arg.ndim), ONE, extents)
                guard = _Guard(condition, missing)
                found = guard.run(arg)
                assert found is not None
                args[k] = guard.kept(found, 0.0)
        if all(new is arg for new, arg in zip(args, node.args, strict=True)):
            return None
        extents = dict(enumerate(node.extents))
        return self.expanded(einsum(args, node.labels, node.out, node.coef, extents), word)

    def loses(self, node: Expr, word: Labels) -> bool:
        """Is it a choice by the condition itself, with nan or infinity off the branch?"""
        own = choice(node)
        if own is None or own[0] is not self.condition or word != tuple(range(len(self.shape))):
            return False
        value = numeric_value(own[2])
        return value is not None and not isfinite(value)

    def kept(self, arg: Expr, point: float | None) -> Expr:
        """The operand, at its safe point off the condition; as it is where it is there already."""
        known = None if point is None else choice(arg)
        while known is not None and known[0] is not self.condition:
            known = choice(known[1]) if is_number(known[2], point) else None
        if point is None or (known is not None and is_number(known[2], point)):
            return arg
        own = choice(arg)
        inner = own[1] if own is not None and own[0] is self.condition else arg
        return choose(self.condition, inner, numeral(point, self.shape))


def _below_choices(root: Place) -> set[Key]:
    """What stands below more than `NESTED` choices, each in a branch of the one before."""
    nearest = {(id(root[0]), root[1]): 0}
    waiting, beyond = deque([(root, 0)]), set[Key]()
    while waiting:
        (node, word), choices = waiting.popleft()
        if nearest[id(node), word] < choices or is_truth(node):
            continue
        more = int(choice(node) is not None)
        for place in operands_by_entry(node, word):
            key = id(place[0]), place[1]
            if choices + more > NESTED:
                beyond.add(key)
            elif nearest.get(key, inf) > choices + more:
                nearest[key] = choices + more
                (waiting.append if more else waiting.appendleft)((place, choices + more))
    return beyond - nearest.keys()


# --- what both branches read ----------------------------------------------------------------------


def _read_by_both(conditions: Sequence[Expr], branches: Sequence[Expr]) -> Collection[Key]:
    """What both branches of a choice read for every entry, each where it is taken."""
    roots = [(branch, tuple(range(branch.ndim))) for branch in branches]
    one, other = ({key for key, _ in islice(below(root), NEAREST)} for root in roots)
    wanted = one & other
    read = []
    for condition, root in zip(conditions, roots, strict=True):
        known = dict([_sense(condition, root[1])])
        read.append(_always_read(root, wanted, known, iter(range(LOOKED))))
    return read[0] & read[1]


def _sense(condition: Expr, word: Labels) -> tuple[Key, bool]:
    """The place that a condition is about, and whether it holds where that does."""
    positive = True
    while isinstance(condition, Apply):
        negated = condition.op is operator_named("logical_not")
        if not negated and not (
            condition.op is operator_named("not_equal") and is_number(condition.args[1], 0)
        ):
            break
        condition, positive = condition.args[0], positive is not negated
    return (id(condition), word), positive


def _always_read(
    root: Place, wanted: Collection[Key], known: Mapping[Key, bool], looks: Iterator[int]
) -> set[Key]:
    """The wanted places that every entry reads, where conditions hold or not as is `known`.

    What a choice reads is what both its branches do, or the one that is known to be taken. Nothing
    is looked for below what is found, nor after the last look.
    """
    found: set[Key] = set()
    waiting, seen = [root], set[Key]()
    while waiting and next(looks, None) is not None:
        node, word = waiting.pop()
        key = id(node), word
        chosen = choice(node)
        if key in wanted:
            found.add(key)
        elif key in seen or is_truth(node):
            continue
        elif chosen is None:
            waiting += operands_by_entry(node, word)
        else:
            about, positive = _sense(chosen[0], word)
            if about in known:
                waiting.append((chosen[1 if known[about] is positive else 2], word))
            elif len(known) < DEPTH:
                one, other = (
                    _always_read((branch, word), wanted, {**known, about: holds}, looks)
                    for branch, holds in ((chosen[1], positive), (chosen[2], not positive))
                )
                found |= one & other
        seen.add(key)
    return found
