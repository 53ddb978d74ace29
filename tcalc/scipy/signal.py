"""`scipy.signal` with expressions among the arguments: convolutions and correlations."""

from __future__ import annotations

from typing import Any

import scipy.signal

from ..graph.nodes import Expr
from ..loops.convolutions import Pairs, convolved
from ..ops.arithmetic import as_expr
from .namespace import member, stands_in

__all__ = sorted(name for name in dir(scipy.signal) if not name.startswith("_"))


@stands_in(scipy.signal)
def convolve(
    in1: object,
    in2: object,
    mode: str = "full",
    method: str = "auto",
    *,
    axes: Pairs | None = None,
    dot_axes: Pairs = ((), ()),
) -> Any:
    """As `scipy.signal.convolve`, of arrays whose extents are numbers; computed directly.

    Parameters
    ----------
    in1, in2 : array_like or Expr
        Of the same number of axes, unless `axes` says which are convolved.
    mode : {"full", "valid", "same"}
    method : str
        As SciPy's, without a say.
    axes, dot_axes : pair of sequences of int, optional
        The axes of `in1` and of `in2` that are convolved with each other, by default all in turn,
        and those that are summed over. The result has all others, of `in1` and then of `in2`, in
        front of the convolved ones: layers of neural nets.

    Returns
    -------
    Expr
        An array where both are arrays.

    Raises
    ------
    ShapeError
        Where extents of both have names, and for arrays of which neither covers the other where
        "valid". An extent that has a name counts as no less than a number.
    """
    return convolved(in1, in2, mode, axes, dot_axes)


@stands_in(scipy.signal)
def correlate(in1: object, in2: object, mode: str = "full", method: str = "auto") -> Expr:
    """As `scipy.signal.correlate`, by `convolve`."""
    b = as_expr(in2)
    found: Expr = convolve(as_expr(in1), b[(slice(None, None, -1),) * b.ndim], mode)
    return found


def __getattr__(name: str) -> Any:
    found = member(scipy.signal, globals(), name)
    globals()[name] = found
    return found
