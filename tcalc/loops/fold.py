"""The front end of `fold`: the body is called once, with the state and the index as variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..graph import trees
from ..graph.bound_variables import Scope, refuse_strays
from ..graph.extents import Extent, show_shape
from ..graph.nodes import Expr
from ..support.errors import ShapeError
from .array_captures import called
from .bounds_checks import checked_accesses
from .build import body_results, range_extent
from .checkpoints import stretch as stretch_of
from .recurrences import Recurrence
from .trip_counts import most_steps, trip_count


class Ending(trees.Block):
    """What a loop gives that ends at a condition: ``state, steps, met``."""

    __slots__ = ()

    @property
    def state(self) -> Any:
        """The state in the end, or with `history` after each step, with zeros behind the last."""
        return self[0]

    @property
    def steps(self) -> Any:
        """The number of steps that are made, of shape ()."""
        return self[1]

    @property
    def met(self) -> Any:
        """1 where the condition holds in the end; 0 where the loop ends at its limit."""
        return self[2]


def fold(
    body: Callable[[Any, Any], Any],
    init: Any,
    n: Extent | Expr | None = None,
    history: bool = False,
    checkpoint: bool | int = False,
    *,
    until: Callable[[Any], Any] | None = None,
    limit: Extent | None = None,
) -> Any:
    """The state after ``state = body(state, i)`` for i = 0 … n - 1.

    Parameters
    ----------
    body : callable
        Called with a state and an index, as that of `build`. It gives the state after a step, of
        the same nest and shapes.
    init : expression, array or number, or a nested tuple or dict of them
        The state before the first step.
    n : int, str or integer expression
        The number of steps; of none, the result is `init`. A variable of shape () is the dimension
        of its name, whose extent is given at evaluation. Other integers of shape () are computed,
        the index of a loop around this one for example: as many steps are made, of those below 0
        none, and no more than `limit`.
    history : bool
        Whether the states after every step are wanted, along a leading axis of extent n (of
        `limit`, where there is one, with zeros for steps that are not made).
    checkpoint : bool or int
        Whether reverse derivatives keep the state once in so many steps (of true: about √n) and
        compute those between again, a stretch at a time (Griewank 1992): for one more forward pass,
        about 2 √n states are held in place of n. Of a number of steps that is an int, without
        `history`.
    until : callable
        Called with a state: a condition, a number for all of it. The loop ends before the
        first step at which it holds (is not 0), and so gives `init` where that meets it.
    limit : int, str or integer variable
        How many steps are made at most: with `until`, in place of `n`, or with an `n` that is
        computed, where that is no affine form in indices of loops around this one.

    Returns
    -------
    Expr, or a nest of them like `init`
        With `until` an `Ending`: ``state, steps, met``, the number of steps and whether the
        condition holds in the end, which it may not where all steps of the limit are made.

    Raises
    ------
    ShapeError
        Where the body changes the nest or a shape; errors of indices as in `build`.
    TypeError
        Where a state that is used as an index is no integer after a step, or a loop with
        checkpoints has a history, a condition, or a length that is no int; where it is not said, or
        said twice, how many steps are made.

    Notes
    -----
    A state that begins with integers and stays integers may be an index, as in ``x[s]``: what is
    derived are the entries that it picks.

    The number of steps that a condition leaves has no derivative: derivatives of the state are
    those of the steps that are made, forward and backward, and cost as many steps. Items of a batch
    (`vmap`) end each at a step of its own.

    Examples
    --------
    >>> import tcalc as tc
    >>> x, w = tc.var("x", "n"), tc.var("w")
    >>> tc.fold(lambda s, i: s + x[i] * x[i], 0, "n") is x @ x
    True
    >>> steps = tc.fold(lambda s, i: tc.tanh(w * s + x[i]), 0, "n", history=True)
    >>> steps(x=[0.1, 0.2], w=2.0).round(4)
    array([0.0997, 0.3794])
    >>> after = tc.var("after", "n", integer=True)
    >>> k = tc.var("k", integer=True)
    >>> _, product = tc.fold(lambda s, i: (after[s[0]], s[1] * x[s[0]]), (0, 1), k)
    >>> float(product(x=[2.0, 3.0, 5.0], after=[2, 0, 1], k=2))
    10.0

    Heron's root of a, and its derivative 1/4:

    >>> a = tc.var("a")
    >>> near = lambda s: abs(s * s - a) < 1e-12
    >>> root, steps, met = tc.fold(lambda s, i: (s + a / s) / 2, 1, until=near, limit=50)
    >>> [round(float(e(a=4.0)), 6) for e in (root, steps, met, tc.derivative(root, a))]
    [2.0, 5.0, 1.0, 0.25]
    """
    count, most = trip_count(n), trip_count(limit)
    if until is None:
        said = n is not None and (limit is None or isinstance(count, Expr))
    else:
        said = n is None and limit is not None
    if not said:
        raise TypeError("fold: a loop has n steps, or a condition until= and a limit=")
    if checkpoint:
        what = "until=" if until is not None else "history=True" if history else ""
        return _in_stretches(body, init, count, what, checkpoint)
    if until is not None:
        return _until(body, init, until, most, history)
    if isinstance(count, Expr):
        return _folded(
            body, init, most_steps(count) if limit is None else most, history, made=count
        )
    return _folded(body, init, count, history)


def _in_stretches(
    body: Callable[[Any, Any], Any], init: Any, n: Any, refused: str, length: int
) -> Any:
    """A loop over stretches of so many steps, and what is left of them."""
    if refused or not isinstance(n, int):
        what = refused or f"{n!r}: give the number of steps as an int"
        raise TypeError(f"fold: no checkpoints with {what}")
    extent = int(range_extent(n, "fold"))
    each = stretch_of(extent) if length is True else length
    if isinstance(each, bool) or not isinstance(each, int) or each < 1:
        raise ValueError(f"fold: a checkpoint every {length!r} steps: one or more are needed")
    whole = extent // each

    def stretch(s: Any, k: Any) -> Any:
        return _folded(lambda r, i: body(r, k * each + i), s, each)

    state = _folded(stretch, init, whole, frugal=True)
    return _folded(lambda r, i: body(r, whole * each + i), state, extent - whole * each)


def _folded(
    body: Callable[[Any, Any], Any],
    init: Any,
    n: Any,
    history: bool = False,
    frugal: bool = False,
    made: Expr | None = None,
) -> Any:
    with Scope() as scope:
        loop = Recurrence(scope, body, init, n, frugal)
        if made is not None:
            found = loop.counted(made, history)
        else:
            found = loop.histories() if history else loop.ends()
        del loop
    refuse_strays(found)
    return trees.rebuild(init, found)


def _until(
    body: Callable[[Any, Any], Any], init: Any, until: Callable[[Any], Any], n: Any, history: bool
) -> Ending:
    with Scope() as scope:
        loop = Recurrence(scope, body, init, n)
        condition = body_results(called(until, loop.nest()), "fold: the condition")
        if len(condition) != 1 or condition[0].ndim:
            shapes = ", ".join([show_shape(e.shape) for e in condition])
            raise ShapeError(f"fold: the condition is one number, not of shape {shapes}")
        found = loop.until(checked_accesses(condition)[0], history)
        del loop, condition
    refuse_strays(found)
    *states, made, met = found
    return Ending([trees.rebuild(init, states), made, met])
