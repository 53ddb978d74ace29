"""Integers that index, where they are computed: in 64 bits, as floats end being exact at 2**53."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...graph.bound_variables import readable
from ...graph.extents import extent_of
from ...graph.factors import indicates, selects
from ...graph.nodes import Add, Apply, Einsum, Expr, postorder
from ...ops.affine_entries import integral
from ...ops.indicator import bound
from ...support.arrays import AnyArray
from ...support.namespaces import NUMPY


def computed(e: Expr) -> bool:
    """Is a node of integers a sum, a product or an entrywise function of others?"""
    if isinstance(e, Einsum):
        return len(set(e.out)) == len(e.out) and not any(map(selects, e.args))
    if isinstance(e, Apply) and e.op.meaning.truth:
        return all(map(integral, e.args))
    return isinstance(e, Add) or (isinstance(e, Apply) and e.op.elementwise and not selects(e))


def constant(e: Expr) -> bool:
    """Does a node count along an axis, or is it a condition on places?"""
    return (isinstance(e, Apply) and not e.args and not e.params[1:]) or indicates(e)


class IntegerForm:
    """Integers as a function of others.

    Parameters
    ----------
    e : Expr
    sizes : mapping
        The extents of dimensions.

    Attributes
    ----------
    leaves : list of Expr
        What it is a function of.
    """

    def __init__(self, e: Expr, sizes: Mapping[str, int]) -> None:
        self.e, self.sizes = e, sizes
        self.leaves: list[Expr] = []
        self.nodes: list[Expr] = []
        inner = {id(e)}
        for node in reversed(postorder([e])):
            if id(node) not in inner:
                continue
            if computed(node) or constant(node):
                self.nodes.append(node)
                inner.update(map(id, node.args))
            else:
                self.leaves.append(node)
        self.nodes.reverse()

    def __call__(self, *arrays: AnyArray) -> AnyArray:
        """The integers, from arrays of the leaves."""
        found = {
            id(leaf): np.rint(np.asarray(a)).astype(np.int64)
            for leaf, a in zip(self.leaves, arrays, strict=True)
        }
        for node in self.nodes:
            args = [found[id(arg)] for arg in node.args]
            found[id(node)] = np.asarray(self._entries(node, args)).astype(np.int64, copy=False)
        return found[id(self.e)]

    def _entries(self, node: Expr, args: list[Any]) -> Any:
        if isinstance(node, Add):
            total = args[0]
            for term in args[1:]:
                total = total + term
            return total
        if isinstance(node, Einsum):
            return self._product(node, args)
        assert isinstance(node, Apply)
        params = bound(node.params, self.sizes) if indicates(node) else node.params
        if not node.args and not indicates(node):
            params = tuple([extent_of(p, self.sizes) for p in params])
        return node.op.kernels.compute(NUMPY, params, *args)

    def _product(self, node: Einsum, args: list[Any]) -> Any:
        extents = [extent_of(n, self.sizes) for n in node.extents]
        standing = {label for word in node.labels for label in word}
        coef = int(node.coef.evaluate(self.sizes))
        for label in set(range(len(extents))) - standing - set(node.out):
            coef *= extents[label]
        core = [label for label in node.out if label in standing]
        pairs = [part for a, w in zip(args, node.labels, strict=True) for part in (a, list(w))]
        value = coef * np.einsum(*pairs, core) if pairs else np.int64(coef)
        shape = tuple([extents[label] if label in standing else 1 for label in node.out])
        return np.broadcast_to(value.reshape(shape), tuple([extents[k] for k in node.out]))

    def __repr__(self) -> str:
        return readable(str(self.e))
