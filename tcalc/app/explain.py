"""Predicted costs of a derivative in every mode, and the rewrites that were applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ..calculus.modes import AUTO_MODES
from ..calculus.respelling import respelled
from ..calculus.transforms import check_order, derivative
from ..graph import trees
from ..graph.extents import NOMINAL, show_shape
from ..graph.nodes import Derivative, Expr, Var, dimensions, postorder
from ..graph.normal import bare
from ..graph.variables import canonical_name, check_sizes, checked_extent
from ..partition.split import row_axes, split
from ..plan.lowering.candidates import chosen
from ..plan.lowering.make import make_plan
from ..rules.strategy import simplify
from ..run.backends import backend_row
from ..run.binding import argument_names
from ..run.limits import within
from ..support import html
from ..support.byte_counts import read_bytes, show_bytes
from ..support.errors import PartitionError
from ..support.given import no_expression
from ..support.records import NamedTuple
from .convention import layout

HEAD = ("mode", "nodes", "steps", "operations", "peak memory")


class Row(NamedTuple):
    """One mode: number of nodes and steps, predicted operations and peak memory in bytes."""

    mode: str
    nodes: int
    steps: int
    flops: float
    peak_bytes: int


class Explanation:
    """The table that `explain` returns; printing it shows all modes side by side.

    Attributes
    ----------
    rows : list of Row
    rewrites : dict
        Names of rules and how often they fired.
    sizes : dict
        Extents of the dimensions that the predictions are for.
    layout : str
        How the axes of what is explained are ordered, in words.
    passes : str
        How it is computed over the rows of data, or why not; empty where nothing is said of rows.
    """

    def __init__(
        self,
        title: str,
        rows: Sequence[Row],
        rewrites: dict[str, int],
        sizes: dict[str, int],
        note: str,
        layout: str,
        passes: str = "",
    ) -> None:
        self.title, self.rows, self.rewrites = title, list(rows), rewrites
        self.sizes, self.note, self.layout = sizes, note, layout
        self.passes = passes

    def __str__(self) -> str:
        cells = self._cells()
        widths = [max(len(line[k]) for line in cells) for k in range(len(HEAD))]
        lines = [self.title + self.note]
        for line in cells:
            padded = [
                c.ljust(w) if k == 0 else c.rjust(w)
                for k, (c, w) in enumerate(zip(line, widths, strict=True))
            ]
            lines.append("  " + "  ".join(padded).rstrip())
        lines += [f"  {self._fired()}", *[f"  {line}" for line in self.passes.splitlines()]]
        return "\n".join(lines)

    __repr__ = __str__

    def _cells(self) -> Sequence[Sequence[str]]:
        return [HEAD] + [
            (r.mode, str(r.nodes), str(r.steps), f"{r.flops:.3g}", show_bytes(r.peak_bytes))
            for r in self.rows
        ]

    def _fired(self) -> str:
        fired = ", ".join(f"{name} x{count}" for name, count in sorted(self.rewrites.items()))
        return f"rewrites: {fired or 'none'}"

    def _repr_html_(self) -> str:
        """For notebooks."""
        head, *rows = self._cells()
        notes = [self._fired(), *self.passes.splitlines()]
        return html.table(self.title + self.note, head, rows, notes)


class Source(NamedTuple):
    """What is differentiated: the derivatives of `of` by `wrt`, or those that are `kept` of them.

    Attributes
    ----------
    of : Expr or nest of Expr
    wrt : variable, name or nest of these
    order : int
    kept : set of tuple of Var, optional
        By what the derivatives are.
    """

    of: Any
    wrt: Any
    order: int
    kept: set[tuple[Var, ...]] | None = None

    def derivatives(self, mode: str) -> list[Expr]:
        """The derivatives, accumulated in a mode."""
        if not self.order:
            return trees.leaves(self.of)
        found = trees.leaves(derivative(self.of, self.wrt, self.order, mode))
        return [d for d in found if self.kept is None or d.wrt in self.kept]


def _sources(parts: Sequence[Expr]) -> list[Source]:
    """What derivatives came of: those of one expression and order together; others as they are."""
    kept: dict[tuple[Expr, int], dict[tuple[Var, ...], None]] = {}
    for part in parts:
        of, by = (part.of, part.wrt) if isinstance(part, Derivative) else (part, ())
        kept.setdefault((of if by else part, len(by)), {})[by] = None
    return [
        Source(of, tuple(dict.fromkeys([v for by in found for v in by])), order, set(found))
        for (of, order), found in kept.items()
    ]


def explain(
    e: Any,
    /,
    wrt: Any = None,
    order: int = 1,
    over: Any = (),
    backend: Any = None,
    memory_limit: int | str | None = None,
    sizes: Mapping[str, int] | int | None = None,
    **more: int,
) -> Explanation:
    """Modes side by side: nodes, steps, predicted operations and peak memory; rewrites that fired.

    Parameters
    ----------
    e : Expr, or a nested tuple, list or dict of Expr
        A derivative, or with `wrt` what is to be differentiated. Any other expression is explained
        as it is. The parts of a nest are computed together, and what they share is counted once.
    wrt : variable, name or nest of these, optional
    order : int
    over : sequence of variables or their names, optional
        Data whose first axis is that of the rows: with them, the passes over these in which the
        back end "dask" computes it.
    backend : str, optional
        What is to run it: plans are those that it is given, and it is told what of them the host
        computes. By default NumPy.
    memory_limit : int or str, optional
        As of `compile`: of plans that would take more, those with checkpoints in their loops are
        shown, where these take less.
    sizes : mapping, optional
        Extents of dimensions by their names; the others count 100.
    **more : int
        The same by keyword.

    Returns
    -------
    Explanation
        Its text is a table; `rows` are its lines.

    Examples
    --------
    >>> import tcalc as tc
    >>> f = tc.parse("norm2(T - U*V')^2", T=("n", "m"), U=("n", "k"), V=("m", "k"))
    >>> [row.mode for row in tc.explain(f, "U", order=2, n=50, m=40, k=3).rows]
    ['reverse', 'forward', 'cross-country']
    """
    parts = trees.leaves(e)
    for part in parts:
        if not isinstance(part, Expr):
            raise TypeError(f"expressions are explained, not {no_expression(part)}")
    sources = _sources(parts) if wrt is None else [Source(e, wrt, check_order(order))]
    fired: Counter[str] = Counter()
    for root in {leaf: None for source in sources for leaf in trees.leaves(source.of)}:
        simplify(bare(root), fired)
    named = {"sizes": sizes} if isinstance(sizes, int) else sizes or {}  # a dimension's name
    given = {**named, **more}
    known = all_sizes(parts, given)
    row = backend_row(backend or "numpy")
    choose = partial(chosen, sizes=known, machine=row.machine)
    rows, shapes, remarks = [], [], dict[str, None]()
    orders = sorted({source.order for source in sources})
    for mode in AUTO_MODES if any(orders) else ("value",):
        roots = [leaf for source in sources for leaf in source.derivatives(mode)]
        values = [bare(r) for r in roots]
        plan = within(
            make_plan(values, known, machine=row.machine),
            read_bytes(memory_limit),
            partial(respelled, roots, known, choose, checkpoints=True, mode=mode),
            partial(make_plan, sizes=known, machine=row.machine),
        )
        rows.append(Row(mode, len(postorder(values)), len(plan.steps), plan.flops, plan.peak_bytes))
        remarks |= dict.fromkeys([row.remark(plan), plan.note and f"{mode}: {plan.note}"])
        shapes = [show_shape(r.shape) for r in roots]
    shape = " and ".join(shapes)
    what = f"derivative of order {' and '.join(map(str, orders))}" if any(orders) else "value"
    guessed = [name for name in known if name not in given]
    note = f" ({', '.join(guessed)} taken as {NOMINAL})" if guessed else ""
    at = ", ".join(f"{name} = {extent}" for name, extent in known.items())
    title = f"{what}, shape {shape}" + (f", at {at}" if at else "")
    ordered = [
        layout(bare(leaf), [canonical_name(str(v)) for v in trees.leaves(source.wrt)], source.order)
        for source in sources
        for leaf in trees.leaves(source.of)
    ]
    passes = _passes(parts if wrt is None else sources[0].derivatives("auto"), over)
    passes = "\n".join([line for line in (passes, *remarks) if line])
    layouts = "; ".join(dict.fromkeys(ordered))
    return Explanation(title, rows, dict(fired), known, note, layouts, passes)


def _passes(roots: Sequence[Expr], over: Any) -> str:
    """How parts of the rows compute the roots, or why they do not."""
    values = [e.inner if isinstance(e, Derivative) else simplify(e) for e in roots]
    try:
        rows = row_axes(values, argument_names(over))
        return str(split(values, rows)) if rows else ""
    except PartitionError as error:
        return str(error)


def all_sizes(roots: Sequence[Expr], sizes: Mapping[str, int]) -> dict[str, int]:
    """The extents of all dimensions: those that are given, NOMINAL of the others."""
    check_sizes(roots, sizes)
    return {n: checked_extent(n, sizes.get(n, NOMINAL)) for n in dimensions(roots)}
