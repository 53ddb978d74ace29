"""Loops of Python over traced values as loops: equal steps are one fold.

A function that is traced gives every step of its loops as nodes of their own. Where enough of them
are equal they are put into a fold, whose body is one step; so a thousand steps are derived and
planned as one is. Steps at the beginning may look otherwise, as a state that is 0 leaves its
products; they stay as they are. Values of steps that are read from outside of the loop are read
from its history.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..calculus.deep_expressions import rolls
from ..graph.applications import rewritten, with_args
from ..graph.extents import ONE
from ..graph.nodes import Apply, Const, Einsum, Expr, Var, postorder
from ..graph.normal import einsum, view
from ..graph.products import zeros_node
from ..ops.arithmetic import const
from ..ops.indexing import getitem, index_expr
from ..ops.selection import selection
from .fold import fold
from .looks import NEAR, Looks
from .repetitions import Steps, repeated
from .upright import Upright

#: Steps of a long loop, which is looked for first, and of one at all; their nodes times their
#: number, below which they are better left as they are; loops that are looked for in one trace.
MANY_STEPS, LEAST_STEPS, LEAST_SIZE, MOST_LOOPS = 16, 6, 1024, 16
#: How many times fewer are looked for in what a loop repeats.
FEWER = 4
#: Kinds of nodes that are tried as results of a step, and nodes that are tried as that before it.
TRIED, PER_STEP = 12, 4


Stack = Callable[[Sequence[Var]], Expr | None]


def rolled(roots: Sequence[Expr], stack: Stack, most: int = MOST_LOOPS) -> list[Expr]:
    """The roots with folds in place of steps that repeat.

    Parameters
    ----------
    roots : sequence of Expr
    stack : callable
        The variable for the arrays of several variables along a leading axis; None where these do
        not stand for arrays.
    most : int
        How many folds are looked for.
    """
    found = list(roots)
    for _ in range(most):
        looped = with_fold(found, stack, False, most) or with_fold(found, stack, True, most)
        if looped is None:
            break
        found = looped
    return found


def with_fold(
    roots: Sequence[Expr], stack: Stack, turned: bool, most: int = MOST_LOOPS
) -> list[Expr] | None:
    """The roots with one fold, of steps that are compared as they are or with turned axes."""
    upright = Upright(roots, turned)
    if len(upright.nodes) ** 2 < LEAST_SIZE or (turned and not upright.changed):
        return None
    steps = _longest(postorder([upright.of[id(root)][0] for root in roots]))
    return None if steps is None else _as_fold(roots, upright, steps, stack, most)


def _longest(nodes: Sequence[Expr]) -> Steps | None:
    """Steps that repeat, of those whose last one stands latest; None where no loop is long."""
    looks = Looks(nodes, LEAST_STEPS)
    for steps in (MANY_STEPS, LEAST_STEPS):
        for last, before in _likely(looks, steps):
            found = repeated(last, before, looks, steps)
            if found is not None and len(found.each) ** 2 * len(found.inside) >= LEAST_SIZE:
                return found
    return None


def _likely(looks: Looks, steps: int) -> Iterator[tuple[Expr, Expr]]:
    """Nodes that may be results of the last of so many steps and of the step before it."""
    # The first steps may look otherwise as far down as the beginning is near.
    long = [group for group in looks.groups() if len(group) >= steps - NEAR]
    long.sort(key=lambda group: -looks.place[id(group[-1])])
    for *earlier, last in long[:TRIED]:
        for before in looks.likest(last, earlier, PER_STEP):
            # Further apart, so many steps would begin below all nodes.
            if looks.rise(last, before) * steps <= looks.height[id(last)]:
                yield last, before


def _as_fold(
    roots: Sequence[Expr], upright: Upright, steps: Steps, stack: Stack, most: int
) -> list[Expr] | None:
    """The roots with a fold for these steps; None where what a step reads is made by another."""
    moving = steps.moving()
    made = {id(step[id(node)]): (k, node) for k, step in enumerate(steps.each) for node in moving}
    outside = [step[at] for step in steps.each[-1:] for at in steps.results]
    outside += [arg for node in steps.inside for arg in node.args if id(arg) not in steps.each[0]]
    if any(id(node) in made for node in postorder(outside)):
        return None
    found = {at: made[id(e)] for at, (e, _) in upright.of.items() if id(e) in made}
    read = [n for n in postorder(roots, lambda n: id(n) in found) if id(n) in found]
    wanted = {id(node): node for _, node in [found[id(n)] for n in read]}
    ends = all(found[id(n)][0] == 0 for n in read)
    sequences = [
        _sequence(hole.kind, [values[k] for values in reversed(steps.values)], stack)
        for k, hole in enumerate(steps.holes)
    ]
    if any(each is None for each in sequences):
        return None
    values = _folded(steps, upright, sequences, list(wanted.values()), not ends, stack, most)
    known = dict(zip(wanted, values, strict=True))
    last = len(steps.each) - 1

    def value(n: Expr) -> Expr:
        k, node = found[id(n)]
        whole = known[id(node)]
        return view(whole if ends else getitem(whole, last - k), upright.of[id(n)][1])

    given = {id(n): value(n) for n in read}
    return rewritten(roots, lambda new, old: given.get(id(old), new), lambda n: id(n) in found)


def _folded(
    steps: Steps,
    upright: Upright,
    sequences: Sequence[Any],
    wanted: Iterable[Expr],
    history: bool,
    stack: Stack,
    most: int,
) -> list[Expr]:
    """What these nodes of a step are after the loop, or after every step."""
    results = list(steps.results.values())
    more = [node for node in wanted if all(node is not result for result in results)]
    before = [upright.plain(steps.each[-1][at]) for at in steps.results]
    before += [zeros_node(n.shape) for n in more]

    def body(state: tuple[Expr, ...], i: Expr) -> tuple[Expr, ...]:
        new = dict(zip(steps.results, state, strict=False))
        fill = {id(h.node): (h.kind, each) for h, each in zip(steps.holes, sequences, strict=True)}
        for node in reversed(steps.inside):
            args = [new[id(arg)] if id(arg) in new else upright.plain(arg) for arg in node.args]
            if id(node) in fill:
                new[id(node)] = _filled(node, args, *fill[id(node)], i)
            else:
                new[id(node)] = upright.plain(with_args(node, args))
        made = [new[id(node)] for node in (*results, *more)]
        return tuple(rolled(made, stack, most // FEWER))

    found = fold(body, tuple(before), len(steps.each), history)
    of = {id(node): value for node, value in zip((*results, *more), found, strict=True)}
    return [of[id(node)] for node in wanted]


def _sequence(kind: str, values: list[Any], stack: Stack) -> Any:
    """What stands in a hole at every step: a first place and a stride, or an array."""
    if kind == "array":
        return stack(values)
    if kind == "place":
        strides = set(np.diff(values).tolist())
        if len(strides) == 1:
            return values[0], strides.pop()
        return index_expr(np.array(values))
    return const(np.array([v.value if isinstance(v, Const) else float(v) for v in values]))


def _filled(node: Expr, args: Sequence[Expr], kind: str, each: Any, i: Expr) -> Expr:
    """The node of these operands with what stands in its hole at step i."""
    if kind in ("constant", "array"):
        return getitem(each, i)
    if kind == "coefficient":
        assert isinstance(node, Einsum)
        coef = ONE._replace(times=node.coef.times, over=node.coef.over)
        return einsum(
            [*args, getitem(each, i)], [*node.labels, ()], node.out, coef,
            dict(enumerate(node.extents)),
        )  # fmt: skip
    assert isinstance(node, Apply)
    place = each[0] + each[1] * i if isinstance(each, tuple) else getitem(each, i)
    return selection(index_expr(place), node.shape[0])


rolls.append(lambda roots: rolled(roots, lambda variables: None))
