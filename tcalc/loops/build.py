"""Array comprehensions: `build` calls its body once, with an index that runs over a range.

The body is an expression of an integer variable; along the axis of the range the variable is 0, 1,
2, …. Entries that are picked at affine integers are slices, diagonals and transpositions, so the
result is the same expression as that of array operations (Shaikhha et al. 2019, section 5).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..calculus.batching import with_batch_axis
from ..graph import trees
from ..graph.bound_variables import Scope, readable, refuse_strays
from ..graph.extents import Extent
from ..graph.nodes import Expr, Var
from ..graph.variables import check_extent
from ..ops.arithmetic import as_expr
from ..ops.reductions import arange
from ..support.errors import TraceError
from .array_captures import called
from .bounds_checks import checked_accesses


def build(n: Extent, body: Callable[[Any], Any]) -> Any:
    """The array of ``body(i)`` for i = 0 … n - 1, along a leading axis.

    Parameters
    ----------
    n : int or str
        The extent of the new axis: a number, a dimension or an affine form such as ``"n-1"``.
    body : callable
        Called with an index. The index picks entries of expressions (``x[i]``, ``M[j, i]``,
        ``x[2*i+k]``, ``x[idx[i]]``), is compared and is a number in arithmetic. Results may nest in
        tuples and dicts, and hold further builds, folds and derivatives. Where it picks entries of
        a NumPy array that a function closes over, the body is called a second time with constants
        in place of such arrays; elsewhere write ``const(array)[i]``.

    Returns
    -------
    Expr, or a nest of them
        Shape ``(n, *shape of the body)``.

    Raises
    ------
    ShapeError
        For a negative n.
    RangeError
        A ShapeError and an IndexError, where an index is out of range: here if extents are numbers,
        else at evaluation. In a branch of `where` it must be in range where the condition holds.
    TraceError
        A TypeError, for truth values of comparisons, and for indices used outside of their body.

    Examples
    --------
    >>> import tcalc as tc
    >>> M, x = tc.var("M", ("m", "n")), tc.var("x", "n")
    >>> tc.build("n", lambda i: tc.build("m", lambda j: M[j, i])) is M.T
    True
    >>> print(tc.build("n-1", lambda i: x[i + 1] - x[i]))
    x[1:] - x[:-1]
    >>> tc.build(3, lambda i: tc.build(3, lambda j: tc.where(j <= i, i - j, 0)))()
    array([[0., 0., 0.],
           [1., 0., 0.],
           [2., 1., 0.]])
    """
    extent = range_extent(n, "build")
    with Scope() as scope:
        index = scope.index(parameter_name(body, 0, "build"), extent)
        result = called(body, index)
        found = over_range(body_results(result, "build"), index, extent)
    refuse_strays(found)
    return trees.rebuild(result, found)


def range_extent(n: object, what: str) -> Extent:
    """The extent of a range, which no index can be: rows of several lengths are no array."""
    if isinstance(n, Expr):
        raise TypeError(
            f"{what}: the extent is a number or a dimension, not {readable(str(n)):.60}; "
            "write where(i < j, ..., 0) over a whole range"
        )
    return check_extent(n, f"{what}: the extent")


def over_range(exprs: list[Expr], index: Var, extent: Extent) -> list[Expr]:
    """Expressions of an index for all its values, along a leading axis."""
    return with_batch_axis(checked_accesses(exprs), {index: arange(extent)}, extent)


def parameter_name(body: Callable[..., Any], place: int, what: str) -> str:
    """The name of a parameter of a body, for messages."""
    if isinstance(body, Expr) or not callable(body):
        raise TypeError(f"{what}: the body is a function of an index, not {body!s:.60}")
    try:
        names = list(inspect.signature(body).parameters)
    except (TypeError, ValueError):
        names = []
    return names[place] if place < len(names) else "the index"


def body_results(result: Any, what: str) -> list[Expr]:
    """The leaves of the result of a body, as expressions."""
    found = []
    for leaf in trees.leaves(result):
        try:
            found.append(as_expr(leaf))
        except TraceError:
            raise
        except TypeError:
            raise TypeError(
                f"{what}: the body gives expressions and numbers, in tuples and dicts, "
                f"not {leaf!r:.60}"
            ) from None
    return found
