"""Functions that formulas call by a name of their own, though they are composed of other nodes."""

from __future__ import annotations

from ...graph.extents import ONE, Shape, extent_coef
from ...graph.nodes import Add, Apply, Einsum, Expr
from ...graph.normal import add, view
from ...graph.sums import absent_axes
from ...ops.arithmetic import var
from ...ops.reductions import softmax, std
from ...support.records import NamedTuple
from .matrix_form import NodeForm
from .notation import Fragment
from .style import Style


class Abbreviation(NamedTuple):
    """A function by its name, of an argument; `turned`: the node is the transpose of that."""

    name: str
    argument: Expr
    turned: bool = False


def abbreviation(node: Apply) -> Abbreviation | None:
    """The function that this node composes; None for others."""
    if len(node.args) != 1:
        return None
    (inner,) = node.args
    if node.ndim in (1, 2) and isinstance(inner, Add):
        return _softmax(node, inner)
    x = None if node.ndim else spread_of(inner)
    return Abbreviation("std", x) if x is not None and std(x) is node else None


def _softmax(node: Apply, exponent: Add) -> Abbreviation | None:
    for term in exponent.args:
        total = term.args[0] if isinstance(term, Einsum) and len(term.args) == 1 else None
        if not isinstance(total, Apply) or len(total.args) != 1:
            continue
        (x,) = total.args
        if x.shape == node.shape and softmax(x) is node:
            return Abbreviation("softmax", x)
        if node.ndim == 2 and x.shape == node.shape[::-1] and view(softmax(x), (1, 0)) is node:
            return Abbreviation("softmax", x, True)
    return None


def spread_of(e: Expr) -> Expr | None:
    """x of a multiple of the sum of all (x - mean(x)) squared; None for other expressions."""
    if not isinstance(e, Einsum) or e.ndim:
        return None
    if not e.summed:
        return spread_of(e.args[0]) if len(e.args) == 1 else None
    d = e.args[0]
    if len(e.args) != 2 or e.args[1] is not d or not isinstance(d, Add):
        return None
    own = [t for t in d.args if len(absent_axes(t)) < d.ndim]
    if not 0 < len(own) < len(d.args):
        return None
    x = add(own)
    known = var(x)
    return x if isinstance(known, Einsum) and known.args[0] is e else None


def spread_form(style: Style, x: Fragment, shape: Shape) -> NodeForm:
    """The sum of all (x - mean(x)) squared as a multiple of the variance."""
    variance, count = style.function("var", [x]), ONE
    for extent in shape:
        count = count.by(extent_coef(extent))
    scaled = style.scale(None, count, [variance])
    return NodeForm(scaled, scaled, spread=(variance, count))
