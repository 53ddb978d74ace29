"""ASCII matrix notation: what `str` of an expression is."""

from __future__ import annotations

from ...forms.choose import chosen
from ...graph.arraylike import surface
from ...graph.nodes import Expr
from ..writing.layout import FormulaLayout
from ..writing.nests import of_nests
from ..writing.style import Style


@of_nests()
def to_text(e: Expr) -> str:
    """The expression in the matrix language; einsum forms ``#(...)`` where that has none.

    Parameters
    ----------
    e : Expr, or a nested tuple, list or dict of Expr
        Parts of a nest stand below each other, each with its variables or its place.

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
    return FormulaLayout(Style()).text(chosen(e))


surface["str"] = to_text
