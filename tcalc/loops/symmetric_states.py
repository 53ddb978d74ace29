"""States that stay symmetric matrices, as a covariance in a filter does: found by induction.

Where the first value is symmetric, and so is the next one of a symmetric state, the state is a
symmetric variable: it is its own transpose in products, and a factorisation reads it as it is. So
are slices of what is scanned, and what is captured. Tangents of such a state are symmetric too, so
that it is enough of a cotangent what it has in common with these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph.nodes import Expr, Var
from .body import body_variable, replaced, symmetric

__all__: list[str] = []


def symmetric_states(
    states: Sequence[Var],
    outputs: Sequence[Expr],
    inits: Sequence[Expr],
    inside: Mapping[Var, Expr],
) -> tuple[dict[Var, Var], list[Expr]]:
    """Symmetric variables for the states that are symmetric before and after every step.

    What else stands for variables of the steps, `inside`, is put in their place on the way.

    Returns
    -------
    found : dict
        The variables by state.
    after : list of Expr
        The next values of all states, in these.
    """
    found: dict[Var, Var] = {}
    for v, init in zip(states, inits, strict=True):
        if not v.properties and (known := symmetric(init)):
            found[v] = body_variable(v.name + "~", v.shape, known)
    while True:
        after = replaced(outputs, {**inside, **found})
        kept = {v for v, e in zip(states, after, strict=True) if v in found and symmetric(e)}
        if len(kept) == len(found):
            return found, after
        found = {v: new for v, new in found.items() if v in kept}
