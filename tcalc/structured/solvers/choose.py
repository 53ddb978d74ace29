"""Methods for a square tensor, cheapest first, and the first that suits its numbers."""

from __future__ import annotations

from functools import lru_cache

from ...graph.extents import show_shape
from ...support.namespaces import NUMPY
from ..terms.numeric_terms import Terms
from ..terms.tensor_layout import TableIndex, TensorLayout
from . import blocks, kronecker, lowrank, sparse
from .base import ByHost, SolveMethod, Solver, Unsuitable
from .inverses import InverseSolver, InverseTerms
from .memory import too_large


@lru_cache(1024)
def solve_methods(layout: TensorLayout, itemsize: int) -> tuple[SolveMethod, ...]:
    """All methods for this structure, by predicted operations."""
    found = blocks.solve_methods(layout, itemsize)
    inner = len(layout.tied) < layout.columns
    if inner and layout.size:
        found += kronecker.solve_methods(layout, itemsize) + sparse.solve_methods(layout, itemsize)
        found += lowrank.solve_methods(
            layout, itemsize, lambda base: list(solve_methods(base, itemsize))
        )
    return tuple(sorted(found, key=lambda method: method.flops))


def factor(terms: Terms, limit: int | None) -> tuple[Solver, SolveMethod]:
    """The solver of the cheapest method that fits the memory and suits the numbers."""
    if isinstance(terms, InverseTerms) and terms.back is not None:
        back = terms.back if terms.xp is NUMPY else ByHost(terms.back, terms.xp)
        return back, SolveMethod(InverseSolver.text, 0.0, 0.0, lambda _: back)
    found = solve_methods(terms.layout, terms.dtype.itemsize)
    fitting = [method for method in found if limit is None or method.bytes <= limit]
    for method in fitting:
        try:
            solver = method.build(terms.on_host() if method.host else terms)
            if method.describe is not None:
                method = method._replace(text=method.describe(solver))
            if method.host and terms.xp is not NUMPY:
                return ByHost(solver, terms.xp), method._replace(text=_text(method, terms))
            return solver, method
        except Unsuitable:
            continue
    raise too_large(terms.layout, terms.dtype.itemsize, limit)


def _text(method: SolveMethod, terms: Terms) -> str:
    """The description, and whether the host has to do it."""
    return f"{method.text}, by the host" if method.host and terms.xp is not NUMPY else method.text


def first_method(terms: Terms, limit: int | None) -> str:
    """The description of the method that `factor` tries first."""
    if isinstance(terms, InverseTerms) and terms.back is not None:
        return InverseSolver.text
    for method in solve_methods(terms.layout, terms.dtype.itemsize):
        if limit is None or method.bytes <= limit:
            return f"{_text(method, terms)}, about {method.flops:.2g} operations"
    return "does not fit the memory; to_scipy() serves iterative solvers"


def term_lines(terms: Terms) -> list[str]:
    """One line a term: its factors, unit tensors and tables."""
    if isinstance(terms, InverseTerms):
        first, more = terms.described()
        return [f"term: {first}", *(term_lines(more) if more else [])]
    lines = []
    for term in terms.layout.terms:
        sizes = [show_shape(terms.cores[k].shape) for k, _ in term.factors]
        tables = len([item for item in term.out if isinstance(item, TableIndex)])
        labels = [item for item in term.out if not isinstance(item, TableIndex)]
        units = len(labels) - len(set(labels))
        notes = [f"{units} unit tensor{'s' * (units > 1)}"] if units else []
        notes += [f"{tables} axes by tables"] if tables else []
        lines.append("term: " + ", ".join([" * ".join(sizes) or "1", *notes]))
    return lines
