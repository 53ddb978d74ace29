"""The ways to solve a square tensor, cheapest first, and the first that its numbers allow."""

from __future__ import annotations

from functools import lru_cache
from math import prod

from ...graph.extents import show_shape
from ...support.byte_counts import show_bytes
from ...support.errors import MemoryLimitError
from ..terms.term import Layout, Read, Terms
from . import blocks, kronecker, lowrank, sparse
from .base import Solver, Unsuitable, Way


@lru_cache(1024)
def ways(layout: Layout, itemsize: int) -> tuple[Way, ...]:
    """All ways for this structure by predicted operations."""
    found = blocks.ways(layout, itemsize)
    inner = len(layout.tied) < layout.columns
    if inner and layout.size:
        found += kronecker.ways(layout, itemsize) + sparse.ways(layout, itemsize)
        found += lowrank.ways(layout, itemsize, lambda base: list(ways(base, itemsize)))
    return tuple(sorted(found, key=lambda way: way.flops))


def factor(terms: Terms, limit: int | None) -> tuple[Solver, Way]:
    """The tensor factored the cheapest way that fits the memory and the numbers."""
    found = ways(terms.layout, terms.dtype.itemsize)
    fitting = [way for way in found if limit is None or way.bytes <= limit]
    for way in fitting:
        try:
            solver = way.build(terms)
            return solver, way if way.told is None else way._replace(text=way.told(solver))
        except Unsuitable:
            continue
    raise too_large(terms.layout, terms.dtype.itemsize, limit)


def too_large(layout: Layout, itemsize: int, limit: int | None) -> MemoryLimitError:
    """The error where only a dense matrix would do and it does not fit."""
    n = prod(layout.column_shape)
    need, have = show_bytes(2.0 * n * n * itemsize), show_bytes(limit or 0)
    return MemoryLimitError(
        f"no structure of the tensor of shape {show_shape(layout.shape)} with "
        f"{len(layout.terms)} terms helps to solve, and a dense {n} x {n} matrix and its factor "
        f"take {need}, {have} allowed; scipy.sparse.linalg.cg(Hs.to_scipy(), g.ravel()) solves "
        "with products alone"
    )


def first_way(terms: Terms, limit: int | None) -> str:
    """What `factor` tries first, in words."""
    for way in ways(terms.layout, terms.dtype.itemsize):
        if limit is None or way.bytes <= limit:
            return f"{way.text}, about {way.flops:.2g} operations"
    return "does not fit the memory; to_scipy() serves iterative solvers"


def described(terms: Terms) -> list[str]:
    """One line a term: its factors, unit tensors and tables."""
    lines = []
    for term in terms.layout.terms:
        sizes = [show_shape(terms.cores[k].shape) for k, _ in term.factors]
        tables = len([item for item in term.out if isinstance(item, Read)])
        labels = [item for item in term.out if not isinstance(item, Read)]
        units = len(labels) - len(set(labels))
        notes = [f"{units} unit tensor{'s' * (units > 1)}"] if units else []
        notes += [f"{tables} axes by tables"] if tables else []
        lines.append("  term: " + ", ".join([" * ".join(sizes) or "1", *notes]))
    return lines
