"""The index language: every entry of an expression as a formula in its indices."""

from __future__ import annotations

from ...forms.choose import shorter
from ...graph.nodes import Expr
from ...graph.normal import bare
from ...ops.distances import as_sums
from ...support.given import no_expression
from ..writing.nests import of_nests
from .writer import IndexWriter


@of_nests()
def to_index(e: Expr, computed: bool = False) -> str:
    """The expression in the index language; `parse_index` reads it.

    Sums have bounds, accesses are affine, and what is zero elsewhere has a guard, as in Urban and
    van der Smagt (2017). Parts that are long and used more than once are statements of their own.

    Parameters
    ----------
    e : Expr, or a nested tuple, list or dict of Expr
        Parts of a nest stand below each other, each with its variables or its place.
    computed : bool
        Write what is computed, with its guards at kinks and poles, which is read back as the same
        node, or as an equal one. Else, as in all formulas, the form is chosen that reads best,
        which takes as given that quotients, logarithms and roots exist and no point is a kink.

    Returns
    -------
    str

    Raises
    ------
    UnsupportedError
        Where the language has no words: for constants of many entries, and for operators of whole
        arrays whose parameters are no numbers.

    Examples
    --------
    >>> import tcalc as tc
    >>> y = tc.parse_index("y[i=0..2] = sum[k](w[k]*x[i+k])", x=5, w=3)
    >>> print(tc.to_index(tc.vjp(y, "x", tc.var("dy", 3))))
    f[i=0..4] = sum[j=max(0,i-2)..min(2,i)](dy[i-j]*w[j])
    """
    if not isinstance(e, Expr):
        raise TypeError(f"formulas are written for one expression, not for {no_expression(e)}")
    if computed:
        return IndexWriter([as_sums(bare(e))]).text()
    return shorter(lambda form: IndexWriter([as_sums(form)], quotients=True).text(), e)
