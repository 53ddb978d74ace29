"""Variables from texts like X=m,n and S=n,n:symmetric."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..graph.extents import show_shape
from ..graph.nodes import Expr, Var
from ..graph.variables import canonical_name, check_shape, var
from ..support.whole_numbers import clipped_repr


def declare(rows: Iterable[str]) -> dict[str, Var]:
    """The variables that rows declare, by name.

    Parameters
    ----------
    rows : iterable of str
        `NAME=extents`, extents separated by commas and none for a scalar, with `:property` behind
        them as often as there are properties.

    Raises
    ------
    ValueError
        Of rows of another form, of a name that is declared twice, of an unknown property.
    """
    found: dict[str, Var] = {}
    for row in rows:
        shown = f"--var {clipped_repr(row, 200)}"
        name, equals, rest = row.partition("=")
        name = canonical_name(name.strip())
        extents, _, properties = rest.partition(":")
        words = [w.strip() for w in extents.strip("() ").removesuffix(",").split(",")]
        chosen = [p.strip() for p in properties.replace(":", ",").split(",") if p.strip()]
        if not equals:
            raise ValueError(f"{shown}: expected NAME=extents, such as X=m,n")
        if name in found:
            raise ValueError(f"{shown}: {name} is declared already")
        shape = check_shape(words if words != [""] else (), shown)
        try:
            found[name] = var(name, shape, **dict.fromkeys(chosen, True))
        except TypeError as problem:
            raise ValueError(f"{shown}: {problem}") from None
    return found


def assumed(e: Expr, declared: Collection[str]) -> str:
    """The shapes of variables that nobody declared, in words; empty where there are none.

    Examples
    --------
    >>> import tcalc as tc
    >>> assumed(tc.parse("norm(X*w)^2 + l*norm1(w)"), [])
    'X is (m, n), l is (k,), w is (n,)'
    """
    unknown = sorted(set(e.variables) - set(declared))
    return ", ".join([f"{name} is {_words(e.variables[name])}" for name in unknown])


def _words(variable: Var) -> str:
    return show_shape(variable.shape) if variable.shape else "a scalar"
