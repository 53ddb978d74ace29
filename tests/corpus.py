"""All expressions of the case tables, with their first and second derivatives, by name."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import tcalc as tc
from tcalc.graph.normal import bare
from tests import cases, linalg_cases, loop_cases, place_cases

SIZES = {"m": 4, "n": 3, "k": 2}
NAMED = {name: name for name in SIZES}


def _tables() -> Iterator[tuple[str, tc.Expr, str]]:
    """A name, an expression, and the variable that it is differentiated by."""
    for case in cases.CASES:
        yield case.name, case.expression(), case.targets[0]
    for sizes, kind in ((SIZES, "sizes"), (NAMED, "names")):
        for matrix in linalg_cases.CASES:
            shapes = {n: linalg_cases.shape_of(k, sizes) for n, k in matrix.inputs.items()}  # type: ignore[arg-type]
            variables = [tc.var(n, shape) for n, shape in shapes.items()]
            try:
                e = matrix.build(*variables)
            except (tc.Error, TypeError):  # some need numbers as extents
                continue
            if isinstance(e, tc.Expr) and e.variables:
                yield f"{matrix.name} of {kind}", e, variables[0].name
    for place in place_cases.CASES:
        floats = [n for n in place.shapes if n not in place.below]
        yield f"place {place.name}", place.build(**place.variables()), floats[0]
    for loop in loop_cases.CASES:
        yield f"loop {loop.name}", loop_cases.expression(loop, 4), "init0"


@cache
def corpus() -> dict[str, tc.Expr]:
    """Values, gradients and Hessians (of the sum of all entries) by name."""
    found = {}
    for name, e, wrt in _tables():
        total = tc.sum(e) if e.shape else e
        found[name] = bare(e)
        if wrt in e.variables:
            found[f"{name}'"] = bare(tc.grad(total, wrt))
            found[f"{name}''"] = bare(tc.hessian(total, wrt))
    return found
