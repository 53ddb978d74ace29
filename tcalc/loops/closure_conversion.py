"""Closure conversion of loops: what a body reads from outside becomes an operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph.applications import rewritten
from ..graph.extents import Extent, show_shape
from ..graph.nodes import Expr, Var
from ..graph.normal import bare
from ..graph.variables import check_extent
from ..support.errors import ShapeError
from .body import body_variable, kind_of, loop_invariants, replaced
from .fold_row import FOLD
from .normal_form import AFTER, LAST, LoopOperands, LoopRange, normal_form_loop


def folded(
    states: Sequence[Var],
    steps: Sequence[Var],
    outputs: Sequence[Expr],
    inits: Sequence[Expr],
    scanned: Sequence[Expr],
    length: Extent,
    history: bool = False,
    frugal: bool = False,
    until: Expr | None = None,
    made: Expr | None = None,
) -> list[Expr]:
    """The states after a number of steps, each made from those before it.

    Parameters
    ----------
    states, steps : sequence of Var
        Variables for the states before a step, and for one slice of each of `scanned`, which occur
        in no other expression.
    outputs : sequence of Expr
        The states after a step, written with `states`, `steps` and any other expressions.
    inits : sequence of Expr
        The states before the first step.
    scanned : sequence of Expr
        Arrays whose leading axis has the extent `length`; step i reads slice i.
    length : int or str
        The number of steps.
    history : bool
        Whether the states after every step are wanted, along a leading axis.
    frugal, until, made
        As of `LoopRange`.

    Returns
    -------
    list of Expr
        The last states (of no steps: `inits`), or the histories; with `until` then the number of
        steps.

    Raises
    ------
    ShapeError
        Where a state changes its shape, or a scanned array has not the length of the loop.
    TypeError
        Where something is no expression, or a variable is given twice.

    Examples
    --------
    >>> import tcalc as tc
    >>> s, x, w = tc.var("s"), tc.var("x", "n"), tc.var("w")
    >>> item = tc.var("item")
    >>> (last,) = folded([s], [item], [tc.tanh(w * s + item)], [tc.parse("0")], [x], "n")
    >>> float(last(x=[0.0, 0.0], w=1.0))
    0.0
    """
    _check_kinds(states, steps, outputs, inits, scanned)
    length = check_extent(length, "fold: the number of steps")
    if not states:
        return []
    fed = LoopOperands(dict(zip(steps, scanned, strict=True)), {})
    times = LoopRange(length, False, frugal, until, made)
    found = closed_loop(states, outputs, inits, fed, times)
    kind, n = AFTER if history else LAST, len(states)
    return [*found[kind * n : (kind + 1) * n], *found[3 * n :]]


def closed_loop(
    states: Sequence[Var],
    outputs: Sequence[Expr],
    inits: Sequence[Expr],
    feed: LoopOperands,
    steps: LoopRange,
) -> tuple[Expr, ...]:
    """All outputs of a loop as `normal_form_loop` gives them, its body made closed.

    `feed` has the slices, and those variables of the body that stand for what the loop captures as
    a whole; what else the body reads from outside is captured too. ShapeError as of `folded`.
    """
    length = steps.length
    for k, (v, e, init) in enumerate(zip(states, outputs, inits, strict=True)):
        for what, found in (("first", init), ("next", e)):
            if found.shape != v.shape:
                raise ShapeError(
                    f"fold: the {what} value of state {k} has shape {show_shape(found.shape)}, "
                    f"the state has {show_shape(v.shape)}"
                )
    for k, (v, e) in enumerate(feed.scanned.items()):
        if e.shape != (length, *v.shape):
            raise ShapeError(
                f"fold: scanned array {k} has shape {show_shape(e.shape)}, "
                f"expected {show_shape((length, *v.shape))}: one slice for each of {length} steps"
            )
    slices = list(feed.scanned)
    roots = [bare(e) for e in (*outputs, *([] if steps.until is None else [steps.until]))]
    _, free, integers = loop_invariants(roots, [*states, *slices])
    integers |= {id(v) for v in (*slices, *feed.captured) if v.integral}
    own, items, fixed = [
        [
            body_variable(f"{letter}{k}@", e.shape, kind_of(id(e) in integers))
            for k, e in enumerate(found)
        ]
        for letter, found in (("s", states), ("x", slices), ("c", free))
    ]
    pairs = zip([*states, *slices, *free], [*own, *items, *fixed], strict=True)
    change: dict[int, Expr] = {id(old): new for old, new in pairs}
    closed = rewritten(roots, lambda new, old: change.get(id(old), new))
    if steps.until is not None:
        steps = steps._replace(until=closed.pop())
    whole = replaced(free, feed.captured)
    fed = LoopOperands(
        dict(zip(items, feed.scanned.values(), strict=True)), dict(zip(fixed, whole, strict=True))
    )
    return normal_form_loop(FOLD, own, closed, inits, fed, steps)


def _check_kinds(
    states: Sequence[Any],
    steps: Sequence[Any],
    outputs: Sequence[Any],
    inits: Sequence[Any],
    scanned: Sequence[Any],
) -> None:
    for what, found, wanted in (
        ("next states", len(outputs), len(states)),
        ("first states", len(inits), len(states)),
        ("scanned arrays", len(scanned), len(steps)),
    ):
        if found != wanted:
            raise TypeError(f"fold: {found} {what} for {wanted}")
    for kind, items in ((Var, [*states, *steps]), (Expr, [*outputs, *inits, *scanned])):
        for item in items:
            if not isinstance(item, kind):
                what = "a variable" if kind is Var else "an expression"
                raise TypeError(f"fold: {item!r:.60} is not {what}")
    if len({id(v) for v in (*states, *steps)}) < len(states) + len(steps):
        raise TypeError("fold: a variable stands for two states or slices")
