"""One row of the tables: a query and the formula that an expert would write for it."""

from __future__ import annotations

from typing import Any, NamedTuple

import tcalc as tc
from tcalc.app.queries import GALLERY
from tcalc.graph.nodes import Expr

#: The gallery's queries by name.
QUERIES = {query.name: query for queries in GALLERY.values() for query in queries}

#: Sizes at which forms are evaluated.
SIZES = {"n": 3, "m": 4, "k": 2}


class Formula(NamedTuple):
    """A query of the tables.

    Attributes
    ----------
    name : str
        What it is called.
    declared : str
        Its variables as on the command line, `"X=m,n S=n,n:symmetric c="`.
    text : str
        The function, in the matrix language.
    by : str
        Names of the variables to derive by, one after the other.
    form : str
        What an expert writes, in the matrix language.
    source : str
        Where the identity stands: "MC 61" is equation 61 of the Matrix Cookbook (2012).
    """

    name: str
    declared: str
    text: str
    by: str
    form: str
    source: str = ""

    @property
    def shapes(self) -> dict[str, tuple[str, ...]]:
        return {name: shape for name, shape, _ in self._declarations()}

    @property
    def properties(self) -> dict[str, str]:
        return {name: held for name, _, held in self._declarations() if held}

    def _declarations(self) -> list[tuple[str, tuple[str, ...], str]]:
        found = []
        for item in self.declared.split():
            name, _, rest = item.partition("=")
            shape, _, held = rest.partition(":")
            found.append((name, tuple(filter(None, shape.split(","))), held))
        return found

    def variables(self) -> dict[str, Expr]:
        """The variables as the library declares them."""
        held = self.properties
        return {
            name: tc.var(name, shape, **({held[name]: True} if name in held else {}))
            for name, shape in self.shapes.items()
        }

    def derivative(self) -> Expr:
        """The library's derivative."""
        found: Any = tc.parse(self.text, **self.variables())
        for name in self.by.split():
            found = tc.derivative(found, name)
        return found

    def printed(self) -> str:
        """What the library prints, or the error that it gives."""
        try:
            return str(self.derivative())
        except tc.Error as error:
            return f"{type(error).__name__}: {error}"


def shown(name: str, form: str, source: str = "") -> Formula:
    """The row of a query that the gallery shows."""
    return Formula(*QUERIES[name], form, source)
