"""Solves of small compressed tensors as compiled functions of their cores, one a structure."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ..compression.solutions import SymbolicTerms, formula, positive_formula
from ..graph.extents import number
from ..graph.variables import var
from ..structured.solvers.base import SolveMethod
from ..structured.solvers.choose import solve_methods
from ..structured.solvers.lowrank_factors import vectors_and_couplings
from ..structured.terms.numeric_terms import Terms
from ..support.arrays import Array
from ..support.errors import Error, LinAlgError
from .backends import CHOICE, DEFAULT, backend_row
from .compiled import Compiled

#: Back ends whose functions take arrays of this process, and the solves of one structure from which
#: on one is made. Planning takes a quarter of what the first call of the cores took, and as long as
#: a hundred solves: on NumPy, where a function saves less of each, many have to come.
REPEATED = {"c": 2, "auto": 2, "numpy": 256}
#: Predicted operations up to which a function is made: by a general formula, which takes more of
#: them than solvers do that look at their numbers, and by that for positive numbers.
FEW, POSITIVE = 1e6, 1e9
_MAX_KEPT = 64
_DOUBLE = np.dtype(np.float64)


class CompiledSolves:
    """Functions of cores and a right-hand side that solve, made when a structure comes again.

    Each also says how doubtful its result is: what its formula may not suit is left to the solvers
    that look at their numbers.
    """

    def __init__(self, backend: str | None, threads: int | None) -> None:
        self._backend = self._as = backend or os.environ.get(CHOICE, DEFAULT)
        self._threads = threads
        self._counts: dict[Any, int] = {}
        self._functions: dict[Any, Compiled | None] = {}

    def __call__(self, terms: Terms, b: Array) -> Array | None:
        """The solution for a right-hand side of the row shape, and any further axes, or None."""
        if terms.dtype is not _DOUBLE or b.dtype is not _DOUBLE:
            return None
        key = terms.layout, terms.coefs, b.shape
        try:
            function = self._functions[key]
        except KeyError:
            function = self._made(key, terms)
        if function is None:
            return None
        try:
            x, doubt = function(b=b, **{f"c{k}": core for k, core in enumerate(terms.cores)})
        except LinAlgError:
            return None
        return x if doubt <= 1 else None

    def _made(self, key: Any, terms: Terms) -> Compiled | None:
        """The function of a structure that came often enough, if it has one."""
        if len(self._counts) >= _MAX_KEPT:
            self._counts.clear()
            self._functions.clear()
        count = self._counts[key] = self._counts.get(key, 0) + 1
        if count < REPEATED.get(self._as, count + 1):
            return None
        if self._as == "auto":
            self._as = "c" if _compiles() else "numpy"
            if count < REPEATED[self._as]:
                return None
        function = self._functions[key] = self._compiled(terms, key[-1])
        return function

    def _compiled(self, terms: Terms, shape: tuple[int, ...]) -> Compiled | None:
        layout, cores = terms.layout, terms.cores
        methods = solve_methods(layout, _DOUBLE.itemsize)
        if not methods or methods[0].flops > POSITIVE:
            return None
        arrays = tuple([var(f"c{k}", core.shape) for k, core in enumerate(cores)])
        coefs = tuple([number(coef) for coef in terms.coefs])
        extents = tuple([term.extents for term in layout.terms])
        symbols = SymbolicTerms(layout, arrays, coefs, extents, layout.row_shape)
        low = _positive(terms, methods[0])
        try:
            found = positive_formula(symbols, low) if low else None
            if found is None and methods[0].flops > FEW:
                return None
            found = formula(symbols) if found is None else found
            outputs = found.solve(var("b", shape)), found.doubt()
        except Error:
            return None
        options = None, self._backend, None, None, False, self._threads
        return Compiled(outputs, *options)


def _compiles() -> bool:
    """Is there a C compiler?"""
    try:
        backend_row("c").available()
    except Error:
        return False
    return True


def _positive(terms: Terms, method: SolveMethod) -> tuple[int, ...]:
    """The terms of low rank, if none of their numbers is negative: later ones seldom are then."""
    low: tuple[int, ...] = getattr(method.build, "keywords", {}).get("low", ())
    if low:
        w, c = vectors_and_couplings(terms.layout, low).collected(terms)
        low = low if c.ndim < w.ndim and (c >= 0).all() else ()
    return low
