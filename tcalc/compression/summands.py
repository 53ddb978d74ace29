"""Sums of products that a tensor is compressed as: what is distributed, and what is one core."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..graph.factors import indicates
from ..graph.nodes import Add, Einsum, Expr, postorder
from ..graph.normal import distribute, scale
from ..graph.products import split_coef
from ..graph.sums import flattened, low_order, structured
from .core_terms import is_spread

#: Terms beyond which products are not distributed over sums.
MAX_SUMMANDS = 64


def summands(value: Expr) -> list[Expr]:
    """The terms of a sum, products distributed over sums that should be no core of their own.

    These are sums whose terms have fewer axes than the sum, as in x_l (A_ik B_j + A_jk B_i), sums
    of factors of other terms, x_i y_j + (x_j + y_j) y_i has rank two, and those of sums of items by
    segments along several axes.
    """
    larger: dict[int, Add] = {}
    looked: set[Expr] = set()

    def opens(arg: Add) -> bool:
        found = postorder([arg], looked.__contains__)
        for node in [e for e in found if isinstance(e, Add) and e not in looked]:
            alike = any(all(map(kind, node.args)) for kind in (low_order, is_spread))
            if alike or structured(node, larger):
                larger[id(node)] = node
        looked.update(found)
        return id(arg) in larger

    def opened(e: Expr) -> Sequence[Expr] | None:
        if isinstance(e, Add):
            return e.args
        if (whole := _unscaled(e)) is not e and isinstance(whole, Einsum) and whole.summed:
            parts = opened(whole)
            return parts and [scale(part, split_coef(e)[0]) for part in parts]
        return _distributed(e, opens)

    found = flattened(value, opened, MAX_SUMMANDS)
    standing = {_unscaled_id(arg) for e in found for arg in _factors(e)}
    return [
        part
        for e in found
        for part in _distributed(e, lambda arg: standing.issuperset(map(_unscaled_id, arg.args)))
        or [e]
    ]


def _factors(e: Expr) -> tuple[Expr, ...]:
    """The factors of an outer product."""
    return e.args if isinstance(e, Einsum) and not e.summed and len(e.args) > 1 else ()


def _unscaled(e: Expr) -> Expr:
    """What e is a multiple of."""
    rest = split_coef(e)[1]
    axes = tuple(range(e.ndim))
    whole = isinstance(rest, Einsum) and len(rest.args) == 1 and rest.labels[0] == rest.out == axes
    return rest.args[0] if whole else rest


def _unscaled_id(e: Expr) -> int:
    return id(_unscaled(e))


def _distributed(e: Expr, opens: Callable[[Add], bool]) -> list[Expr] | None:
    """The product e distributed over the first of its sums that opens, or None.

    Contractions are where an indicator shifts the sum: bands inside of bands are bands.
    """
    if not isinstance(e, Einsum) or (e.summed and not any(map(indicates, e.args))):
        return None
    for k, arg in enumerate(e.args):
        if isinstance(arg, Add) and opens(arg):
            return distribute(e, {k: arg.args})
    return None
