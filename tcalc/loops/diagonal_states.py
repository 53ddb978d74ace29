"""Unit tensors through loops: a state that is zero off some diagonal is carried as that diagonal.

The derivative of a loop that acts entry by entry, or on the items of a batch, is such a state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.nodes import Add, Einsum, Expr, Labels, Var
from ..graph.normal import einsum
from ..graph.products import is_zero, zeros_node
from .body import formal, replaced

__all__: list[str] = []


def pattern(e: Expr) -> Labels:
    """One label per axis, the same for axes off whose common diagonal the expression is zero."""
    if isinstance(e, Einsum) and not e.summed:
        return _canonical(e.out)
    if isinstance(e, Add):
        return _joined([pattern(term) for term in e.args if not is_zero(term)])
    return tuple(range(e.ndim))


def _canonical(word: Sequence[object]) -> Labels:
    names: dict[object, int] = {}
    return tuple([names.setdefault(label, len(names)) for label in word])


def _joined(patterns: Sequence[Labels]) -> Labels:
    """The pattern of a sum of expressions with these."""
    return _canonical(list(zip(*patterns, strict=True)))


def embedded(core: Expr, word: Labels) -> Expr:
    return einsum([core], [range(core.ndim)], word)


def read(e: Expr, word: Labels) -> Expr:
    """The core of an expression of this pattern."""
    return einsum([e], [word], range(len(set(word))))


def repeats(word: Labels) -> bool:
    return len(set(word)) < len(word)


def slices(e: Expr) -> Labels:
    """The pattern of all slices along the first axis."""
    first, *word = pattern(e)
    return _canonical([k if label == first else -1 - label for k, label in enumerate(word)])


class Cores:
    """States by what is carried of them: the pattern, or None for a state that is zero.

    Attributes
    ----------
    patterns : mapping
        Patterns of the states that have one.
    following, first : mapping
        Next and first values of what is carried, by its variable.
    """

    def __init__(self, following: Mapping[Var, Expr], first: Mapping[Var, Expr]) -> None:
        known: dict[Var, Labels | None] = {
            v: None if is_zero(first[v]) else pattern(first[v]) for v in following
        }
        while True:
            after, found = _after(following, known), dict(known)
            for v, e in after.items():
                words = [w for w in (known[v], None if is_zero(e) else pattern(e)) if w is not None]
                found[v] = _joined(words) if words else None
            if found == known:
                break
            known = found
        self.patterns = {v: w for v, w in known.items() if w is None or repeats(w)}
        self.following: dict[Var, Expr] = {}
        self.first: dict[Var, Expr] = {}
        for v, e in after.items():
            word = known[v]
            if v not in self.patterns:
                self.following[v], self.first[v] = e, first[v]
            elif word is not None:
                core = core_of(v, word)
                self.following[core], self.first[core] = read(e, word), read(first[v], word)


def core_of(v: Var, word: Labels) -> Var:
    """The variable for the core of another one's values."""
    shape = dict(zip(word, v.shape, strict=True))
    return formal(v.name + "'", tuple([shape[label] for label in range(len(shape))]))


def _after(following: Mapping[Var, Expr], known: Mapping[Var, Labels | None]) -> dict[Var, Expr]:
    """Next values where the states have these patterns."""
    values: dict[Var, Expr] = {}
    for v, word in known.items():
        if word is None:
            values[v] = zeros_node(v.shape)
        elif repeats(word):
            values[v] = embedded(core_of(v, word), word)
    after = replaced(list(following.values()), values)
    return dict(zip(following, after, strict=True))
