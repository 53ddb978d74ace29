"""Expressions with axes in an order that is the same at every step of a loop.

Whether A + B or its transpose is the normal form is up to a digest, and so may change from step to
step. Here the axes of a node are those of its highest operand, which in a step is the one that its
state goes through. Such nodes are no normal forms: they are compared, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_

from ..graph.extents import ONE
from ..graph.nodes import Add, Derivative, Einsum, Expr, Labels, Permutation, intern, postorder
from ..graph.normal import view
from ..graph.orientation import inverse_permutation


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

    def _stood(self, node: Expr) -> tuple[Expr, Permutation]:
        """What stands for the node, and its axes."""
        operands = [self.of[id(arg)] for arg in node.args]
        if isinstance(node, Einsum):
            return self._product(node, operands)
        axes = back = _own(node)
        if isinstance(node, Add):
            axes = max(operands, key=lambda found: self._height[id(found[0])])[1]
            back = inverse_permutation(axes)
            args = [self._turned(arg, [order[k] for k in back]) for arg, order in operands]
        else:
            args = [self._turned(arg, order) for arg, order in operands]
        if all(map(is_, args, node.args)):
            return node, axes
        meta = node.meta
        if isinstance(node, Add):
            args.sort(key=lambda arg: arg.order)
        return intern(type(node), meta, tuple(args)), axes

    def _turned(self, e: Expr, axes: Sequence[int]) -> Expr:
        """Axis k is axis ``axes[k]`` of e."""
        word = _own(e)
        if tuple(axes) == word:
            return e
        found: Expr = intern(Einsum, ((word,), tuple(axes), e.shape, ONE), (e,))
        self._note(found)
        self._plain.setdefault(id(found), view(self.plain(e), axes))
        return found

    def _product(
        self, node: Einsum, operands: Sequence[tuple[Expr, Permutation]]
    ) -> tuple[Expr, Permutation]:
        words: list[Labels] = []
        for (_, axes), word in zip(operands, node.labels, strict=True):
            words.append(tuple([word[k] for k in inverse_permutation(axes)]))
        out, known = node.out, [arg for arg, _ in operands]
        if len(set(out)) == len(out):
            high = sorted(range(len(words)), key=lambda k: -self._height[id(known[k])])
            read = dict.fromkeys([x for k in high for x in words[k]])
            out = tuple([x for x in {**read, **dict.fromkeys(out)} if x in node.out])
            if node.coef == ONE and words == [out]:
                return known[0], tuple([out.index(x) for x in node.out])
            axes = tuple([out.index(x) for x in node.out])
        else:
            axes = _own(node)
        if all(map(is_, known, node.args)) and (tuple(words), out) == (node.labels, node.out):
            return node, axes
        meta = (tuple(words), out, node.extents, node.coef)
        return intern(Einsum, meta, tuple(known)), axes


def _own(e: Expr) -> Permutation:
    """Its axes as they are."""
    return tuple(range(e.ndim))
