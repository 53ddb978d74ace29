"""ASCII matrix notation: what `str` of an expression is."""

from __future__ import annotations

from ...forms.choose import chosen
from ...graph.nodes import Derivative, Expr
from ..writing.nests import of_nests
from ..writing.style import Style
from ..writing.where import formula_text


@of_nests()
def to_text(e: Expr, where: bool = False) -> str:
    """The expression in the matrix language; einsum forms ``#(...)`` where that has none.

    Parameters
    ----------
    e : Expr, or a nested tuple, list or dict of Expr
        Parts of a nest stand below each other, each with its variables or its place.
    where : bool
        Name what is repeated, and tell behind the formula what names stand for, where that is
        shorter; the matrix language reads this.

    Returns
    -------
    str

    Examples
    --------
    >>> import tcalc as tc
    >>> A, x = tc.var("A", ("n", "n")), tc.var("x", ("n",))
    >>> print(x @ A + 2 * x)
    A'*x + 2*x
    """
    style = Style()
    if isinstance(e, Derivative):
        style.stated = _stated(e)  # by variables that may have cancelled
    return formula_text(chosen(e), style, where)


def _stated(e: Expr) -> set[str]:
    """The dimensions of an expression's variables, without those that have a variable's name."""
    known = e.variables
    return {n for v in known.values() for n in v.shape if isinstance(n, str)} - set(known)
