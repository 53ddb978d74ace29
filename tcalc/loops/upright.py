"""Expressions with axes in an order that is the same at every step of a loop.

Whether A + B or its transpose is the normal form is up to a digest, and so may change from step to
step. Here axes come in the order of those that they are of: of the highest operand, which in a step
is the one that its state goes through. What is moved along an axis of a state, or stands in a row
of it, so keeps the order of its axes. Such nodes are no normal forms: they are compared, and
nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from ..graph.extents import ONE, Shape
from ..graph.nodes import (
    Add,
    Apply,
    Derivative,
    Einsum,
    Expr,
    Labels,
    Permutation,
    intern,
    postorder,
)
from ..graph.normal import view
from ..graph.orientation import inverse_permutation

#: Of each axis, that of an array far below which it is of; None where it is of none.
Origins = tuple[int | None, ...]


class Upright:
    """Expressions with their axes in such an order.

    Parameters
    ----------
    roots : sequence of Expr
    turned : bool
        Else every node stands for itself.

    Attributes
    ----------
    nodes : list of Expr
        Those below the roots, operands before consumers.
    of : dict
        Node, by id -> the one that stands for it, and its axes: axis k of the node is axis
        ``axes[k]`` of that one.
    """

    def __init__(self, roots: Sequence[Expr], turned: bool) -> None:
        self.nodes = postorder(roots)
        self.of: dict[int, tuple[Expr, Permutation]] = {}
        self._plain: dict[int, Expr] = {}
        self._height: dict[int, int] = {}
        self._origins: dict[int, Origins] = {}
        turned &= not any(isinstance(node, Derivative) for node in self.nodes)
        for node in self.nodes:
            self.of[id(node)] = e, axes = self._stood(node) if turned else (node, _own(node))
            self._note(e)
            if e is not node:
                self._plain.setdefault(id(e), view(node, inverse_permutation(axes)))

    @property
    def changed(self) -> bool:
        """Does any node stand for another?"""
        return bool(self._plain)

    def plain(self, e: Expr) -> Expr:
        """The normal form of a node that stands for another."""
        return self._plain.get(id(e), e)

    def _note(self, e: Expr) -> None:
        self._height[id(e)] = 1 + max([self._height[id(arg)] for arg in e.args], default=0)
        self._origins.setdefault(id(e), _own(e))

    def _stood(self, node: Expr) -> tuple[Expr, Permutation]:
        """What stands for the node, and its axes."""
        operands = [self.of[id(arg)] for arg in node.args]
        if isinstance(node, Einsum):
            return self._product(node, operands)
        axes, origins = _own(node), None
        if isinstance(node, Add) or (isinstance(node, Apply) and node.op.elementwise and operands):
            axes, origins = _in_order(self._origins_of(operands))
            back = inverse_permutation(axes)
            operands = [(arg, tuple([order[k] for k in back])) for arg, order in operands]
        args = [self._turned(arg, order) for arg, order in operands]
        found = node
        if not all(map(is_, args, node.args)):
            if isinstance(node, Add):
                args.sort(key=lambda arg: arg.order)
            found = intern(type(node), node.meta, tuple(args))
        if origins is not None:
            self._origins.setdefault(id(found), origins)
        return found, axes

    def _origins_of(self, operands: Sequence[tuple[Expr, Permutation]]) -> Origins:
        """Those of axes that operands share, by the highest one that knows."""
        found: list[int | None] = [None] * len(operands[0][1])
        for e, axes in sorted(operands, key=lambda operand: -self._height[id(operand[0])]):
            known = self._origins[id(e)]
            found = [known[axes[k]] if old is None else old for k, old in enumerate(found)]
        return tuple(found)

    def _turned(self, e: Expr, axes: Sequence[int]) -> Expr:
        """Axis k is axis ``axes[k]`` of e."""
        word = _own(e)
        if tuple(axes) == word:
            return e
        found: Expr = intern(Einsum, ((word,), tuple(axes), e.shape, ONE), (e,))
        self._origins.setdefault(id(found), tuple([self._origins[id(e)][k] for k in axes]))
        self._note(found)
        self._plain.setdefault(id(found), view(self.plain(e), axes))
        return found

    def _product(
        self, node: Einsum, operands: Sequence[tuple[Expr, Permutation]]
    ) -> tuple[Expr, Permutation]:
        words: list[Labels] = []
        for (_, axes), word in zip(operands, node.labels, strict=True):
            words.append(tuple([word[k] for k in inverse_permutation(axes)]))
        known = [arg for arg, _ in operands]
        high = sorted(range(len(words)), key=lambda k: -self._height[id(known[k])])
        factors = [(words[k], self._origins[id(known[k])]) for k in high]
        axes, origins = _in_order(_of_labels(factors, node.out))
        out = tuple([node.out[k] for k in inverse_permutation(axes)])
        if len(set(out)) == len(out) and node.coef == ONE and words == [out]:
            return known[0], axes
        found: Expr = node
        meta = (*_renamed(words, out, node.extents), node.coef)
        if not (all(map(is_, known, node.args)) and meta == node.meta):
            found = intern(Einsum, meta, tuple(known))
        self._origins.setdefault(id(found), origins)
        return found, axes


def _of_labels(factors: Sequence[tuple[Labels, Origins]], out: Labels) -> Origins:
    """The origins of the labels of a product, by the first of its factors.

    A label that another factor has in place of one that is summed over is of the same axis.
    """
    known: dict[int, int | None] = {}
    for k, (word, origins) in enumerate(factors):
        ends = [known[x] for x in word if x in known and x not in out]
        for x, origin in zip(word, origins, strict=True):
            if x not in known:
                known[x] = origin if not k else ends.pop(0) if ends else None
    return tuple([known.get(x) for x in out])


def _renamed(
    words: Sequence[Labels], out: Labels, extents: Shape
) -> tuple[tuple[Labels, ...], Labels, Shape]:
    """The labels of a product numbered as they come, so that equal ones are one node."""
    order = dict.fromkeys([*[x for word in words for x in word], *out])
    new = {x: k for k, x in enumerate(order)}
    renamed = tuple([tuple([new[x] for x in word]) for word in words])
    return renamed, tuple([new[x] for x in out]), tuple([extents[x] for x in order])


def _in_order(origins: Origins) -> tuple[Permutation, Origins]:
    """Which axis each becomes in the order of their origins; and the origins in that order.

    Axes of no origin take the places that others leave.
    """
    n = len(origins)
    places: dict[int, int] = {}
    if None not in origins:
        order = sorted(range(n), key=lambda k: (origins[k], k))
        places = {k: place for place, k in enumerate(order)}
    else:
        for k, origin in enumerate(origins):
            if origin is not None and origin < n and origin not in places.values():
                places[k] = origin
        free = iter([place for place in range(n) if place not in places.values()])
        places |= {k: next(free) for k in range(n) if k not in places}
    axes = tuple([places[k] for k in range(n)])
    return axes, tuple([origins[k] for k in inverse_permutation(axes)])


def _own(e: Expr) -> Permutation:
    """Its axes as they are."""
    return tuple(range(e.ndim))
