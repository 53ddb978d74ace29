"""Products with indicators and selection tensors as text: slices, margins, gathers, segments."""

from __future__ import annotations

from collections.abc import Callable

from ...graph.nodes import Einsum, Expr, Labels
from .gathers import as_gather, as_segment_sum, as_strided_view
from .matrix_form import NodeForm
from .notation import Fragment
from .padded import as_padded, as_units
from .style import Style


def indexed(
    node: Expr,
    style: Style,
    formed: Callable[[Expr], NodeForm],
    permuted: Callable[[Expr, Fragment, Labels], NodeForm],
) -> NodeForm | None:
    """An indicator as a slice; a product with selection tensors also as a sum by segments.

    `formed` is the form of any expression, `permuted` that of the node from a text with its axes in
    another order.
    """
    if (cut := as_strided_view(node)) is not None:
        slices = [None if key is None else Fragment(key) for key in cut.keys]
        fragment = style.indexed(formed(cut.array).plain, slices)
        return permuted(node, fragment, cut.perm)
    if not isinstance(node, Einsum):
        units = as_units(node)
        return None if units is None else formed(units)
    if (held := as_padded(node)) is not None:
        widths = [str(width) for pair in held.widths for width in pair]
        fragment = style.function("pad", [formed(held.array).plain], widths)
        return permuted(node, fragment, held.perm)
    if (taken := as_gather(node)) is not None:
        keys = [None if key is None else formed(key).plain for key in taken.keys]
        fragment = style.indexed(formed(taken.array).plain, keys)
        return permuted(node, fragment, taken.perm)
    if (summed := as_segment_sum(node)) is None:
        return None
    args = [formed(summed.summand).plain, formed(summed.index).plain]
    fragment = style.function("segment_sum", args, [str(summed.extent)])
    return permuted(node, fragment, summed.perm)
