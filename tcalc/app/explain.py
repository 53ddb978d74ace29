"""Predicted costs of a derivative in every mode, and the rewrites that were applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..calculus.transforms import AUTO_MODES, check_order, derivative
from ..graph import trees
from ..graph.extents import NOMINAL, show_shape
from ..graph.nodes import Derivative, Expr, dimensions, postorder
from ..graph.normal import bare
from ..plan.lowering.make import make_plan
from ..rules.strategy import simplify
from ..run.binding import checked_extent
from ..support.byte_counts import show_bytes


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
    """

    def __init__(
        self,
        title: str,
        rows: Sequence[Row],
        rewrites: dict[str, int],
        sizes: dict[str, int],
        note: str,
    ) -> None:
        self.title, self.rows, self.rewrites = title, list(rows), rewrites
        self.sizes, self.note = sizes, note

    def __str__(self) -> str:
        head = ("mode", "nodes", "steps", "operations", "peak memory")
        table = [head] + [
            (r.mode, str(r.nodes), str(r.steps), f"{r.flops:.3g}", show_bytes(r.peak_bytes))
            for r in self.rows
        ]
        widths = [max(len(line[k]) for line in table) for k in range(len(head))]
        lines = [self.title + self.note]
        for line in table:
            cells = [
                c.ljust(w) if k == 0 else c.rjust(w)
                for k, (c, w) in enumerate(zip(line, widths, strict=True))
            ]
            lines.append("  " + "  ".join(cells).rstrip())
        fired = ", ".join(f"{name} x{count}" for name, count in sorted(self.rewrites.items()))
        lines.append(f"  rewrites: {fired or 'none'}")
        return "\n".join(lines)

    __repr__ = __str__


def explain(e: Expr, /, wrt: Any = None, order: int = 1, **sizes: int) -> Explanation:
    """Modes side by side: nodes, steps, predicted operations and peak memory; rewrites that fired.

    Parameters
    ----------
    e : Expr
        A derivative, or with `wrt` what is to be differentiated. Any other expression is explained
        as it is.
    wrt : variable, name or nest of these, optional
    order : int
    **sizes : int
        Extents of dimensions; the others count 100.

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
    if not isinstance(e, Expr):
        raise TypeError(f"one expression is explained at a time, not {type(e).__name__}")
    fired: Counter[str] = Counter()
    if wrt is None and isinstance(e, Derivative):
        targets: tuple[Any, ...] = e.wrt
        source = e.of
    else:
        targets, source = (wrt,) * check_order(order) if wrt is not None else (), e
    simplify(bare(source), fired)
    known = {n: checked_extent(n, sizes.get(n, NOMINAL)) for n in dimensions([e])}
    unknown = sorted(sizes.keys() - known.keys())
    if unknown:
        raise TypeError(f"{unknown[0]} is no dimension of the expression ({', '.join(known)})")
    rows, shapes = [], []
    for mode in AUTO_MODES if targets else ("value",):
        roots = [source]
        for target in targets:
            roots = [leaf for r in roots for leaf in trees.leaves(derivative(r, target, 1, mode))]
        rows.append(_row(mode, [bare(r) for r in roots], known))
        shapes = [show_shape(r.shape) for r in roots]
    shape = " and ".join(shapes)
    what = "value" if not targets else f"derivative of order {len(targets)}"
    guessed = [name for name in known if name not in sizes]
    note = f" ({', '.join(guessed)} taken as {NOMINAL})" if guessed else ""
    at = ", ".join(f"{name} = {extent}" for name, extent in known.items())
    title = f"{what}, shape {shape}" + (f", at {at}" if at else "")
    return Explanation(title, rows, dict(fired), known, note)


def _row(mode: str, roots: list[Expr], sizes: dict[str, int]) -> Row:
    plan = make_plan(roots, sizes)
    return Row(mode, len(postorder(roots)), len(plan.steps), plan.flops, plan.peak_bytes)
