"""Unit tensors in loops: of a state that is zero off a diagonal, only the diagonal is carried.

Tangents of a loop that works entry by entry, or on each item of a batch, are such states. A pattern
has one label per axis; the expression is zero where indices of axes with equal labels differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.nodes import Add, Einsum, Expr, Labels, Var, postorder
from ..graph.normal import einsum, terms_of
from ..graph.products import is_zero, zeros_node
from .body import body_variable, replaced

__all__: list[str] = []


def diagonal_pattern(e: Expr) -> Labels:
    """The pattern of an expression, from its unit tensors."""
    if isinstance(e, Einsum) and not e.summed:
        return _canonical(e.out)
    if isinstance(e, Add):
        return _joined([diagonal_pattern(term) for term in e.args if not is_zero(term)])
    return tuple(range(e.ndim))


def _canonical(word: Sequence[object]) -> Labels:
    names: dict[object, int] = {}
    return tuple([names.setdefault(label, len(names)) for label in word])


def _joined(patterns: Sequence[Labels]) -> Labels:
    """The pattern of a sum of expressions with these patterns."""
    return _canonical(list(zip(*patterns, strict=True)))


def embedded(core: Expr, word: Labels) -> Expr:
    """The expression of this pattern with a given diagonal."""
    return einsum([core], [range(core.ndim)], word)


def core_of_value(e: Expr, word: Labels) -> Expr:
    """The diagonal of an expression of this pattern, one axis a label."""
    return einsum([e], [word], range(len(set(word))))


def repeats(word: Labels) -> bool:
    """Whether two axes have the same label."""
    return len(set(word)) < len(word)


def slice_pattern(e: Expr) -> Labels:
    """The pattern that all slices along the first axis have."""
    first, *word = diagonal_pattern(e)
    return _canonical([k if label == first else -1 - label for k, label in enumerate(word)])


class DiagonalStates:
    """The diagonals that are carried in place of states, found as a fixed point of patterns.

    Attributes
    ----------
    patterns : mapping
        Patterns of the states of which a diagonal is carried, None for those that stay zero.
    following, first : mapping
        Next and first values of what is carried, by variable.
    """

    def __init__(self, following: Mapping[Var, Expr], first: Mapping[Var, Expr]) -> None:
        known: dict[Var, Labels | None] = {
            v: None if is_zero(first[v]) else diagonal_pattern(first[v]) for v in following
        }
        known = _with_fixed_terms(following, known)
        while True:
            after, found = _after(following, known), dict(known)
            for v, e in after.items():
                words = [
                    w
                    for w in (known[v], None if is_zero(e) else diagonal_pattern(e))
                    if w is not None
                ]
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
                core = core_variable(v, word)
                self.following[core], self.first[core] = (
                    core_of_value(e, word),
                    core_of_value(first[v], word),
                )

    def carried(self, e: Expr) -> Expr:
        """An expression of the states, in what is carried of them."""
        return replaced([e], _values(self.patterns))[0]


def core_variable(v: Var, word: Labels) -> Var:
    """The variable for the diagonal of a state."""
    shape = dict(zip(word, v.shape, strict=True))
    return body_variable(v.name + "'", tuple([shape[label] for label in range(len(shape))]))


def _with_fixed_terms(
    following: Mapping[Var, Expr], known: dict[Var, Labels | None]
) -> dict[Var, Labels | None]:
    """Patterns of states, joined to those of what is added to them whatever they are.

    Most that are not diagonal are told by it, without their next values being made anew.
    """
    terms = {v: [t for t in terms_of(e) if not is_zero(t)] for v, e in following.items()}
    while unknown := [v for v, word in known.items() if word is None or repeats(word)]:
        found, depends = dict(known), set(map(id, unknown))
        for node in postorder([t for v in unknown for t in terms[v]]):
            if not depends.isdisjoint(map(id, node.args)):
                depends.add(id(node))
        for v in unknown:
            words = [diagonal_pattern(t) for t in terms[v] if id(t) not in depends]
            words += [word for word in [known[v]] if word is not None]
            found[v] = _joined(words) if words else None
        if found == known:
            break
        known = found
    return known


def _after(following: Mapping[Var, Expr], known: Mapping[Var, Labels | None]) -> dict[Var, Expr]:
    """Next values where the states have these patterns."""
    after = replaced(list(following.values()), _values(known))
    return dict(zip(following, after, strict=True))


def _values(known: Mapping[Var, Labels | None]) -> dict[Var, Expr]:
    """What stands for states of these patterns."""
    values: dict[Var, Expr] = {}
    for v, word in known.items():
        if word is None:
            values[v] = zeros_node(v.shape)
        elif repeats(word):
            values[v] = embedded(core_variable(v, word), word)
    return values
