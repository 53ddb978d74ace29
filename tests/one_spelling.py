"""Expressions that one text stands for: equal where quotients, powers and chains are spelt alike.

Text has one line for a quotient, one spelling of a power and no parentheses in a chain of matrix
products; the graph has several nodes for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

from tcalc.graph.applications import rewritten
from tcalc.graph.extents import ONE
from tcalc.graph.nodes import Apply, Einsum, Expr, Labels
from tcalc.graph.normal import bare, einsum
from tcalc.ops.arithmetic import multiply
from tcalc.ops.elementwise import reciprocal
from tcalc.ops.powers import whole_power


def one_spelling(e: Expr) -> Expr:
    """The expression with products in the place of quotients and powers, sums over all at once."""
    for _ in range(8):
        before = e
        (e,) = rewritten([bare(e)], _spelt)
        if e is before:
            break
    return e


def _spelt(new: Expr, old: Expr) -> Expr:
    if isinstance(new, Apply) and new.op.name == "divide":
        return multiply(new.args[0], reciprocal(new.args[1]))
    if isinstance(new, Apply) and new.op.name in ("reciprocal", "reciprocal0"):
        (below,) = new.args
        if not isinstance(below, Einsum) or below.summed or not below.args or below.coef.zero:
            return reciprocal(below)
        parts = [reciprocal(arg) for arg in below.args]
        extents = dict(enumerate(below.extents))
        return einsum(parts, below.labels, below.out, below.coef.inverse(), extents)
    if (power := whole_power(new)) is not None and power[1] < 10:
        base, times = power
        axes = range(base.ndim)
        return einsum([base] * times, [axes] * times, axes)
    return _flat(new) if isinstance(new, Einsum) else new


def _flat(node: Einsum) -> Expr:
    """The product with contractions among its operands opened."""
    fresh = count(len(node.extents))
    args: list[Expr] = []
    words: list[Sequence[int]] = []
    extents = dict(enumerate(node.extents))
    coef = node.coef
    for arg, word in zip(node.args, node.labels, strict=True):
        inner = _opened(arg)
        if inner is None:
            args.append(arg)
            words.append(word)
            continue
        local: dict[int, int] = dict(zip(inner.out, word, strict=True))
        for label in range(len(inner.extents)):
            if label not in local:
                local[label] = next(fresh)
                extents[local[label]] = inner.extents[label]
        args += inner.args
        words += [_renamed(w, local) for w in inner.labels]
        coef = coef.by(inner.coef)
    return einsum(args, words, node.out, coef, extents) if len(args) > len(node.args) else node


def _opened(arg: Expr) -> Einsum | None:
    opens = isinstance(arg, Einsum) and arg.summed and arg.coef == ONE and arg.ndim
    return arg if opens and isinstance(arg, Einsum) else None


def _renamed(word: Labels, local: dict[int, int]) -> Labels:
    return tuple([local[label] for label in word])
