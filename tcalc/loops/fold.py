"""The front end of `fold`: the body is called once, with the state and the index as variables.

A state that is only accumulated, searched for or changed once needs no loop: it is a reduction over
the range of the index. For all other states, what is read at the index becomes an array that the
loop scans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import isqrt
from typing import Any

from ..calculus.batching import with_batch_axis
from ..graph import trees
from ..graph.applications import rewritten
from ..graph.bound_variables import Scope, is_bound, refuse_strays
from ..graph.extents import ONE, Extent, show_shape
from ..graph.nodes import Einsum, Expr, Var, postorder
from ..graph.normal import einsum
from ..graph.products import LabelledExpr, selects
from ..ops.affine_entries import integral
from ..ops.reductions import arange
from ..support.errors import ShapeError
from .accumulations import accumulated, dependents
from .bounds_checks import checked_accesses, runtime_checks
from .build import body_results, parameter_name, range_extent
from .choices import search_ends, searches, single_change
from .closure_conversion import folded
from .integer_states import check_integer_states


def fold(
    body: Callable[[Any, Any], Any],
    init: Any,
    n: Extent,
    history: bool = False,
    checkpoint: bool | int = False,
) -> Any:
    """The state after ``state = body(state, i)`` for i = 0 … n - 1.

    Parameters
    ----------
    body : callable
        Called once, with a state and an index (see `build`). It gives the state after a step, of
        the same nest and shapes.
    init : expression, array or number, or a nested tuple or dict of them
        The state before the first step.
    n : int, str or integer variable
        The number of steps; of none, the result is `init`. A variable of shape () is the dimension
        of its name, whose extent is given at evaluation.
    history : bool
        Whether the states after every step are wanted, along a leading axis of extent n.
    checkpoint : bool or int
        Whether reverse derivatives keep the state once in so many steps (of true: about √n) and
        compute those between again, a stretch at a time (Griewank 1992): for one more forward pass,
        about 2 √n states are held in place of n. Of a number of steps that is an int, without
        `history`.

    Returns
    -------
    Expr, or a nest of them like `init`

    Raises
    ------
    ShapeError
        Where the body changes the nest or a shape; errors of indices as in `build`.
    TypeError
        Where a state that is used as an index is no integer after a step, or a loop with
        checkpoints has a history, or a length that is no int.

    Notes
    -----
    A state that begins with integers and stays integers may be an index, as in ``x[s]``: what is
    derived are the entries that it picks.

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
    """
    if checkpoint:
        return _in_stretches(body, init, n, history, checkpoint)
    return _folded(body, init, n, history)


def _in_stretches(
    body: Callable[[Any, Any], Any], init: Any, n: Extent, history: bool, length: int
) -> Any:
    """A loop over stretches of so many steps, and what is left of them."""
    if history or not isinstance(n, int):
        what = "history=True" if history else f"{n!r}: give the number of steps as an int"
        raise TypeError(f"fold: no checkpoints with {what}")
    extent = int(range_extent(n, "fold"))
    each = _stretch(extent) if length is True else length
    if isinstance(each, bool) or not isinstance(each, int) or each < 1:
        raise ValueError(f"fold: a checkpoint every {length!r} steps: one or more are needed")
    whole = extent // each

    def stretch(s: Any, k: Any) -> Any:
        return _folded(lambda r, i: body(r, k * each + i), s, each)

    state = _folded(stretch, init, whole, frugal=True)
    return _folded(lambda r, i: body(r, whole * each + i), state, extent - whole * each)


def _stretch(n: int) -> int:
    """About √n steps, without a rest if there is such a number."""
    root = max(1, isqrt(n))
    return next((k for k in range(root, root // 2, -1) if n % k == 0), root)


def _folded(
    body: Callable[[Any, Any], Any],
    init: Any,
    n: Extent,
    history: bool = False,
    frugal: bool = False,
) -> Any:
    extent = range_extent(trip_count(n), "fold")
    inits = body_results(init, "fold: the state before the first step")
    with Scope() as scope:
        index = scope.index(parameter_name(body, 1, "fold"), extent)
        states = [scope.state(k, e.shape, integral(e)) for k, e in enumerate(inits)]
        result = body(trees.unflatten(init, iter(states)), index)
        _check_nest(init, result, "the state")
        outputs = body_results(result, "fold")
        for k, (before, after) in enumerate(zip(inits, outputs, strict=True)):
            _check_shape(before, after, k, len(inits))
        check_integer_states(states, outputs)
        loop = _Recurrence(scope, index, extent, states, checked_accesses(outputs), inits, frugal)
        found = loop.histories() if history else inits if extent == 0 else loop.ends()
        del loop
    refuse_strays(found)
    return trees.rebuild(init, found)


def trip_count(n: object) -> object:
    """The dimension that an integer variable of shape () is; anything else as it is."""
    known = isinstance(n, Var) and n.integral and not n.ndim and not is_bound(n)
    return n.name if known and isinstance(n, Var) else n


def _check_nest(init: Any, result: Any, place: str) -> None:
    """Refuse a body whose result is nested differently from the state."""
    if isinstance(init, dict):
        if isinstance(result, dict) and result.keys() == init.keys():
            for key in init:
                _check_nest(init[key], result[key], f"{place}[{key!r}]")
            return
        wanted = f"a dict with the keys {', '.join(map(repr, init))}"
    elif isinstance(init, tuple | list):
        if isinstance(result, tuple | list) and len(result) == len(init):
            for k, (one, other) in enumerate(zip(init, result, strict=True)):
                _check_nest(one, other, f"{place}[{k}]")
            return
        wanted = f"a tuple of {len(init)}"
    elif not isinstance(result, dict | tuple | list):
        return
    else:
        wanted = "one array"
    raise ShapeError(f"fold: {place} is {wanted}, and after a step {_described(result)}")


def _described(result: Any) -> str:
    if isinstance(result, dict):
        return f"a dict with the keys {', '.join(map(repr, result))}"
    return f"a tuple of {len(result)}" if isinstance(result, tuple | list) else "one array"


def _check_shape(before: Expr, after: Expr, k: int, count: int) -> None:
    if before.shape != after.shape:
        which = f"state {k}" if count > 1 else "the state"
        raise ShapeError(
            f"fold: {which} has shape {show_shape(before.shape)}, and after a step "
            f"{show_shape(after.shape)}; give an initial state of that shape, such as zeros"
        )


class _Recurrence:
    """The states of a fold, their next values, and which of them are only accumulated."""

    def __init__(
        self,
        scope: Scope,
        index: Var,
        extent: Extent,
        states: Sequence[Var],
        outputs: Sequence[Expr],
        inits: Sequence[Expr],
        frugal: bool,
    ) -> None:
        self.scope, self.index, self.extent, self.frugal = scope, index, extent, frugal
        self.states, self.outputs, self.inits = states, outputs, inits

    def ends(self) -> list[Expr]:
        """The last states."""
        found = self._accumulated(history=False)
        for search in searches(self.states, self.outputs):
            known = {search.place, *search.beside}
            if not known & found.keys() and not self._read_by_others(known):
                found |= search_ends(search, self.inits, self.batched)
        return self._looped(found, history=False)

    def histories(self) -> list[Expr]:
        """The states after every step."""
        return self._looped(self._accumulated(history=True), history=True)

    def batched(self, exprs: Sequence[Expr]) -> list[Expr]:
        """Expressions of the index for all its values, along a leading axis."""
        return with_batch_axis(list(exprs), {self.index: arange(self.extent)}, self.extent)

    def _read_by_others(self, places: Collection[int]) -> bool:
        """Does another state read one of these, which must then be known at every step?"""
        others = [out for k, out in enumerate(self.outputs) if k not in places]
        read = {id(node) for node in postorder(others)}
        return any(id(self.states[k]) in read for k in places)

    def _accumulated(self, history: bool) -> dict[int, Expr]:
        """The states that are only accumulated, as reductions."""
        rows = [
            accumulated(out, s, self.states, history)
            for out, s in zip(self.outputs, self.states, strict=True)
        ]
        looped = [out for out, row in zip(self.outputs, rows, strict=True) if row is None]
        read = {id(node) for node in postorder(looped)}
        chosen = {k: row for k, row in enumerate(rows) if row and id(self.states[k]) not in read}
        items = self.batched([found.item for found in chosen.values()])
        ends: dict[int, Expr] = {}
        for (k, (row, _)), values in zip(chosen.items(), items, strict=True):
            init = self.inits[k]
            if history:
                assert row.history is not None
                (init,) = with_batch_axis([init], {}, self.extent)
            ends[k] = (row.history or row.end)(init, values) if history else row.end(init, values)
        return ends

    def _looped(self, known: Mapping[int, Expr], history: bool) -> list[Expr]:
        """All states, of which some are known: the others by loops."""
        chosen = [k for k in range(len(self.states)) if k not in known]
        found = dict(known)
        states, outputs = [self.states[k] for k in chosen], [self.outputs[k] for k in chosen]
        for group in _independent_groups(states, outputs):
            mine, after = [states[k] for k in group], [outputs[k] for k in group]
            inits = [self.inits[chosen[k]] for k in group]
            ends = None
            if not history:
                ends = single_change(self.index, mine, after, inits, self.batched)
            if ends is None:
                ready, steps, scanned = self._scanned(after)
                ends = folded(mine, steps, ready, inits, scanned, self.extent, history, self.frugal)
            found.update(zip([chosen[k] for k in group], ends, strict=True))
        return [found[k] for k in range(len(self.states))]

    def _scanned(self, outputs: Sequence[Expr]) -> tuple[list[Expr], list[Var], list[Expr]]:
        """Outputs without the index, variables for slices, and the arrays that are scanned."""
        at_index = dependents(outputs, [self.index])
        moving = dependents(outputs, self.states)
        accesses = {
            id(node): node
            for node in postorder(outputs)
            if id(node) in at_index and id(node) not in moving and _is_read_at_index(node, at_index)
        }
        steps: dict[int, Var] = {
            at: self.scope.number("entry", k, node.shape, integral(node))
            for k, (at, node) in enumerate(accesses.items())
        }
        found = rewritten(outputs, lambda new, old: steps.get(id(old), new))
        arrays = dict(
            zip(
                steps,
                with_batch_axis(
                    list(accesses.values()), {self.index: arange(self.extent)}, self.extent
                ),
                strict=True,
            )
        )
        present = {id(node) for node in postorder(found)}
        if id(self.index) in present:
            steps[id(self.index)] = self.index
            arrays[id(self.index)] = self._places(found)
        used = [at for at, v in steps.items() if id(v) in present]
        return found, [steps[at] for at in used], [arrays[at] for at in used]

    def _places(self, outputs: Sequence[Expr]) -> Expr:
        """0, 1, … along the loop, with checks that indices into states are in range."""
        checks = runtime_checks(outputs, self.index, self.extent)
        operands: list[LabelledExpr] = [(arange(self.extent), (0,)), *checks]
        ops, words = [op for op, _ in operands], [word for _, word in operands]
        return einsum(ops, words, (0,), ONE, {0: self.extent})


def _is_read_at_index(node: Expr, at_index: set[int]) -> bool:
    """Does a product pick entries at the index?"""
    return isinstance(node, Einsum) and any(
        selects(arg) and id(arg) in at_index for arg in node.args
    )


def _independent_groups(states: Sequence[Var], outputs: Sequence[Expr]) -> list[list[int]]:
    """The connected components of states, where a state that reads another is an edge."""
    groups: list[set[int]] = []
    place = {id(s): k for k, s in enumerate(states)}
    for k, out in enumerate(outputs):
        read = {place[id(node)] for node in postorder([out]) if id(node) in place}
        mine = {k, *read}.union(*[g for g in groups if g & {k, *read}])
        groups = [g for g in groups if not g & mine] + [mine]
    return sorted(sorted(g) for g in groups)
