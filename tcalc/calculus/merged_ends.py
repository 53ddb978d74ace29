"""Derivatives between axes that are merged or split at both ends: of what is, by what is.

A matrix of parameters is often passed as a vector, which the function reads in one other shape. A
derivative by the vector is that by the matrix with axes merged; found so, unit tensors stay
repeated indices, which are none of the merged axes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeGuard

from ..graph.nodes import Einsum, Expr, Var, postorder
from ..graph.normal import einsum
from ..ops.reshape import merges, regrouped
from ..support.records import NamedTuple


class Ends(NamedTuple):
    """A value in the shape in which it is made, and variables in those in which it reads them.

    Attributes
    ----------
    value : Expr
    leaves : sequence of Expr
        What it is derived by.
    around : sequence of Expr
        The nodes from `value` to what is wanted the derivative of, each an operand of the next.
    wrt : sequence of Var
        By what it is wanted.
    """

    value: Expr
    leaves: Sequence[Expr]
    around: Sequence[Expr]
    wrt: Sequence[Var]

    def back(self, k: int, e: Expr) -> Expr:
        """The derivative of the value by leaf k as the one that is wanted by variable k."""
        e = apart(e, self.value.ndim, self.leaves[k])
        for inner, node in pairwise(self.around):
            e = _around(e, inner, node)
        return e


def ends(value: Expr, wrt: Sequence[Var]) -> Ends:
    """Where derivatives of a value by variables begin and end; of a number, at itself and these."""
    if not value.ndim:
        return Ends(value, wrt, [value], wrt)
    readers: dict[int, list[Expr]] = {id(v): [] for v in wrt if not v.properties}
    for node in postorder([value]):
        for arg in node.args:
            if id(arg) in readers:
                readers[id(arg)].append(node)
    leaves = [v if v.properties else _read(v, readers[id(v)]) for v in wrt]
    around = [value]
    while merges(around[-1]) or permutes(around[-1]):
        around += around[-1].args
    # Below a leaf there is nothing to derive; and what is permuted alone stays as it is.
    known = set(map(id, leaves))
    while len(around) > 1 and (id(around[-2]) in known or not merges(around[-2])):
        around.pop()
    return Ends(around[-1], leaves, around[::-1], wrt)


def permutes(e: Expr) -> TypeGuard[Einsum]:
    """Is it a multiple of one operand, of which it has all axes in another order?"""
    return (
        isinstance(e, Einsum)
        and len(e.args) == 1
        and not e.summed
        and len(set(e.out)) == len(e.out) == len(set(e.labels[0])) == e.args[0].ndim
    )


def _around(e: Expr, inner: Expr, node: Expr) -> Expr:
    """The derivative of a node by that of its operand: linear maps of leading axes."""
    if merges(node):
        core, target = node.params
        first = inner.ndim - core
        return regrouped(e, first, inner.shape[first:], target)
    assert isinstance(node, Einsum)
    rest = tuple(range(node.ndim, node.ndim + e.ndim - inner.ndim))
    return einsum([e], [(*node.labels[0], *rest)], (*node.out, *rest), node.coef)


def apart(e: Expr, axis: int, read: Expr) -> Expr:
    """A derivative by what reads another array, from `axis` on, with the axes of that array."""
    if not merges(read):
        return e
    (arg,), (core, target) = read.args, read.params
    first = arg.ndim - core
    return regrouped(e, axis + first, target, arg.shape[first:])


def _read(v: Var, readers: Sequence[Expr]) -> Expr:
    """The one shape in which a variable is read, if there is one; else the variable."""
    return readers[0] if len(readers) == 1 and merges(readers[0]) else v
