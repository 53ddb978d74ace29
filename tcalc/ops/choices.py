"""Choices between two branches, and the places of nodes that an entry of one reads."""

from __future__ import annotations

from collections.abc import Iterator

from ..graph.applications import apply
from ..graph.nodes import Add, Apply, Einsum, Expr, Labels
from ..graph.operators import Op, operator_named

Place = tuple[Expr, Labels]
Key = tuple[int, Labels]
#: The nearest places below a branch, which are looked at to find out what it reads.
NEAREST = 512


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
    return isinstance(e, Apply) and e.op.meaning.truth


def below(root: Place) -> Iterator[tuple[Key, Expr]]:
    """The places below a branch and what stands there, the nearest first."""
    waiting, seen = [root], {(id(root[0]), root[1])}
    for node, word in waiting:
        yield (id(node), word), node
        places = [] if is_truth(node) else operands_by_entry(node, word)
        for place in places[1:] if choice(node) else places:
            if (key := (id(place[0]), place[1])) not in seen:
                seen.add(key)
                waiting.append(place)
