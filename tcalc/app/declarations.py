"""Variables from texts like X=m,n and S=n,n:symmetric."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping

from ..graph.extents import extent_names, show_shape
from ..graph.nodes import Expr, Var
from ..graph.properties import PROPERTIES
from ..graph.variables import canonical_name, check_shape, var
from ..support.misspelt import closest_name
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
        Of rows of another form, of a name that is declared twice, of an unknown property, or of one
        among the extents.
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
        among = [w for w in words if w in PROPERTIES]
        if among:
            sizes = ",".join([w for w in words if w not in PROPERTIES])
            meant = ":".join([f"{name}={sizes}", *among, *chosen])
            raise ValueError(
                f"{shown}: {among[0]} is a property, which stands behind a colon: {meant}"
            )
        shape = check_shape(words if words != [""] else (), shown)
        try:
            found[name] = var(name, shape, **dict.fromkeys(chosen, True))
        except TypeError as problem:
            raise ValueError(f"{shown}: {problem}") from None
    return found


def as_option(name: str, shape: Iterable[str]) -> str:
    """A declaration as the command line has it."""
    return f"--var {name}={','.join(shape)}"


def unused(text: str, e: Expr, declared: Mapping[str, Var]) -> list[str]:
    """What is to be said of variables that are declared and not in the expression.

    A declaration also serves where the text only reads one of its dimensions.

    Examples
    --------
    >>> import tcalc as tc
    >>> text, wrong = "sum(weight)", tc.var("wieght", "n")
    >>> unused(text, tc.parse(text, weight="n"), {"wieght": wrong})
    ['--var wieght: the expression has no wieght; did you mean `weight`?']
    """
    words = {*e.variables, *re.findall(r"\w+", unicodedata.normalize("NFKC", text))}
    found = []
    for name, variable in declared.items():
        if words.isdisjoint({name, *extent_names(variable.shape)}):
            close = closest_name(name, e.variables.keys() - declared.keys())
            has = ", ".join(e.variables) or "no variables"
            hint = f"did you mean `{close}`?" if close else f"it has {has}"
            found.append(f"--var {name}: the expression has no {name}; {hint}")
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
