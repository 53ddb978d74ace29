"""Comparisons of differences with 0."""

from __future__ import annotations

from collections.abc import Mapping

from ...graph.nodes import Add, Apply
from ...graph.products import is_number
from .matrix_form import NodeForm
from .notation import Fragment
from .style import MIRRORED


def sides(node: Apply, forms: Mapping[int, NodeForm]) -> tuple[str, Fragment, Fragment] | None:
    """The sign and the sides of a comparison of a difference with 0: `a - b > 0` is a > b."""
    sign = node.op.spelling.infix
    if sign not in ("<", "<="):
        return None
    for total, other in (node.args, node.args[::-1]):
        if isinstance(total, Add) and len(total.args) == 2 and is_number(other, 0):
            terms = [forms[id(term)].short or forms[id(term)].plain for term in total.args]
            terms.sort(key=lambda p: p.negative)
            if [p.negative for p in terms] == [False, True]:
                above, below = (p._replace(negative=False) for p in terms)
                return (sign if total is node.args[0] else MIRRORED[sign]), above, below
    return None
