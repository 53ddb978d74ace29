"""Branches of `where`: operators that are not finite everywhere see a safe point off their branch.

where(c, f(x), b) equals where(c, f(where(c, x, safe)), b), and in the second form f and all its
derivatives are finite where the branch is not taken, so that masks multiply numbers, never
infinity.
"""

from __future__ import annotations

from ..graph.applications import apply
from ..graph.extents import ONE
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels
from ..graph.normal import add, einsum
from ..graph.operators import Op, operator_named
from ..graph.products import is_number, numeral
from ..support.limits import spend

Place = tuple[Expr, Labels]
#: Steps of looking at one node of a branch.
_VISIT = 20


def chooses(op: Op) -> bool:
    """Is a row the choice between two branches by a condition?"""
    return op is operator_named("where")


def choice(e: Expr) -> tuple[Expr, Expr, Expr] | None:
    """Condition and branches, where e chooses between two."""
    if isinstance(e, Apply) and chooses(e.op):
        condition, one, other = e.args
        return condition, one, other
    return None


def choose(condition: Expr, one: Expr, other: Expr) -> Expr:
    """The choice between branches of one shape that need no guard."""
    return apply(operator_named("where"), condition, one, other)


def guarded(condition: Expr, branch: Expr) -> Expr:
    """The branch with its restricted operators kept inside their domain off the condition."""
    return _Guard(condition).run(branch)


def operands_by_entry(node: Expr, word: Labels) -> list[Place]:
    """Operands that every entry of a node, whose axes are labelled, meets entry by entry."""
    if isinstance(node, Add) or (isinstance(node, Apply) and node.op.elementwise):
        return [(arg, word) for arg in node.args]
    if isinstance(node, Einsum) and not node.summed and len(set(node.out)) == len(node.out):
        axis = dict(zip(node.out, word, strict=True))
        words = [tuple([axis[label] for label in w]) for w in node.labels]
        return list(zip(node.args, words, strict=True))
    return []


def is_truth(e: Expr) -> bool:
    """Is e 1 or 0 whatever its operands are, and its derivative zero?"""
    if not isinstance(e, Apply):
        return False
    return e.op.meaning.range == (0.0, 1.0) and not any(e.op.meaning.partials)


class _Guard:
    """One branch: its nodes, each with the axes of the condition that its own axes are.

    Conditions inside of it stay as they are: they are 1 or 0 off the branch too, and multiply
    nothing else. So what is guarded already is left as it is, whose guards are such conditions.
    """

    def __init__(self, condition: Expr) -> None:
        self.condition = condition
        self.shape = condition.shape
        self.done: dict[tuple[int, Labels], Expr | None] = {}

    def run(self, branch: Expr) -> Expr:
        root = (branch, tuple(range(branch.ndim)))
        stack = [root]
        while stack:
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
        return [] if is_truth(node) else operands_by_entry(node, word)

    def expanded(self, node: Expr, word: Labels) -> Expr:
        extents = dict(enumerate(self.shape))
        return einsum([node], [word], range(len(self.shape)), ONE, extents)

    def rebuilt(self, node: Expr, word: Labels) -> Expr | None:
        """The node in the condition's shape with guarded operands; None where nothing changes."""
        spend("steps", _VISIT)
        places = self.operands(node, word)
        results = [self.done[id(arg), w] for arg, w in places]
        restricted = isinstance(node, Apply) and any(s is not None for s in node.op.meaning.safe)
        if not places or (not restricted and all(r is None for r in results)):
            return None
        args = [
            r if r is not None else self.expanded(arg, w)
            for r, (arg, w) in zip(results, places, strict=True)
        ]
        if isinstance(node, Apply):
            safe = node.op.meaning.safe or (None,) * len(args)
            kept = [self.kept(arg, point) for arg, point in zip(args, safe, strict=True)]
            return apply(node.op, *kept, params=node.params)
        if isinstance(node, Add):
            return add(args)
        assert isinstance(node, Einsum)
        axes = range(len(self.shape))
        return einsum(args, [axes] * len(args), axes, node.coef, dict(enumerate(self.shape)))

    def kept(self, arg: Expr, point: float | None) -> Expr:
        """The operand, at its safe point off the condition; as it is where it is there already."""
        known = None if point is None else choice(arg)
        while known is not None and known[0] is not self.condition:
            known = choice(known[1]) if is_number(known[2], point) else None
        if point is None or known is not None:
            return arg
        return choose(self.condition, arg, numeral(point, self.shape))
