"""Functions that formulas call by a name of their own, though they are composed of other nodes."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.extents import ONE, Coef, extent_coef
from ...graph.nodes import Add, Apply, Einsum, Expr
from ...graph.normal import add, terms_of, view
from ...graph.sums import absent_axes
from ...ops.arithmetic import var
from ...ops.reductions import softmax, std
from ...support.records import NamedTuple
from .matrix_form import NodeForm
from .notation import Fragment
from .style import Style


class Abbreviation(NamedTuple):
    """A function by its name.

    Attributes
    ----------
    name : str
    argument : Expr
    axis : int or None
        Of a matrix: the one along which it is a function of vectors. None: of all entries.
    turned : bool
        Is the node the transpose of what the function gives?
    """

    name: str
    argument: Expr
    axis: int | None = None
    turned: bool = False

    def call(self, style: Style, form: NodeForm, ndim: int) -> tuple[Fragment, Fragment | None]:
        """The call, and its row or transpose where another text says that.

        A function of the rows of a transposed matrix is one of the columns of the matrix.
        """
        if self.axis is None:
            row = style.function(self.name, [form.turned]) if ndim and form.plain.flips else None
            return style.function(self.name, [form.plain]), row
        call = along(style, self.name, form, self.axis)
        if ndim == 2 and form.reads_turned != self.turned:
            return style.transpose(call), call
        return call, None


def along(style: Style, name: str, form: NodeForm, axis: int | None) -> Fragment:
    """A function of all entries, or along an axis of a matrix, whose transpose may read better."""
    columns = axis is not None and form.reads_turned
    turned = {0: 1, 1: 0, -1: 0}[axis] if columns and axis is not None else axis
    return style.along(name, form.turned if columns else form.plain, turned)


def abbreviation(node: Apply) -> Abbreviation | None:
    """The function that this node composes; None for others."""
    if len(node.args) != 1 or node.ndim > 2:
        return None
    (inner,) = node.args
    if node.ndim and len(terms := terms_of(inner)) > 1:
        return _softmax(node, terms)
    found = None if node.ndim == 2 else spread_of(inner)
    if found is None or std(found.of, found.axis) is not node:
        return None
    return Abbreviation("std", *found)


def _softmax(node: Apply, exponent: Sequence[Expr]) -> Abbreviation | None:
    axis = None if node.ndim == 1 else -1
    for term in exponent:
        total = term.args[0] if isinstance(term, Einsum) and len(term.args) == 1 else None
        if not isinstance(total, Apply) or len(total.args) != 1:
            continue
        (x,) = total.args
        if x.shape == node.shape and softmax(x) is node:
            return Abbreviation("softmax", x, axis)
        if node.ndim == 2 and x.shape == node.shape[::-1] and view(softmax(x), (1, 0)) is node:
            return Abbreviation("softmax", x, axis, True)
    return None


class Spread(NamedTuple):
    """What a multiple of a variance is about: all entries, or the vectors along an axis."""

    of: Expr
    axis: int | None

    @property
    def entries(self) -> Coef:
        """How many entries each variance is of."""
        shape, count = self.of.shape, ONE
        for extent in shape if self.axis is None else [shape[self.axis]]:
            count = count.by(extent_coef(extent))
        return count

    def written(self, style: Style, form: NodeForm, ndim: int) -> tuple[Fragment, Fragment]:
        """The variance, and the sum of squares as a multiple of it."""
        variance = along(style, "var", form, self.axis)
        scalars, body = ([], variance) if ndim else ([variance], None)
        return variance, style.scale(body, self.entries, scalars)


def spread_of(e: Expr) -> Spread | None:
    """Of a multiple of the sum of (x - mean(x)) squared; None for other expressions."""
    if not isinstance(e, Einsum) or e.ndim > 1:
        return None
    if not e.summed:
        usual = len(e.args) == 1 and e.labels[0] == e.out
        return spread_of(e.args[0]) if usual else None
    d, word = e.args[0], e.labels[0]
    if len(e.args) != 2 or e.args[1] is not d or not isinstance(d, Add) or e.labels[1] != word:
        return None
    if len(set(word)) < len(word) or d.ndim > (2 if e.ndim else d.ndim):
        return None
    axis = 1 - word.index(e.out[0]) if e.ndim else None
    gone = set(range(d.ndim)) if axis is None else {axis}
    own = [t for t in d.args if not gone <= absent_axes(t)]
    if not 0 < len(own) < len(d.args):
        return None
    x = add(own)
    known = var(x, axis)
    return Spread(x, axis) if isinstance(known, Einsum) and known.args[0] is e else None
