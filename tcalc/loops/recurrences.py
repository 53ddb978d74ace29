"""The states of a loop as the front end has them: variables, and their next values.

A state that is only accumulated, searched for or changed once needs no loop: it is a reduction over
the range of the index. For all other states, what is read at the index becomes an array that the
loop scans.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from ..calculus.batching import with_batch_axis
from ..graph import trees
from ..graph.applications import rewritten
from ..graph.bound_variables import Scope
from ..graph.extents import ONE, show_shape
from ..graph.factors import LabelledExpr, selects
from ..graph.nodes import Einsum, Expr, Var, postorder
from ..graph.normal import einsum
from ..ops.affine_entries import integral
from ..ops.elementwise import truth
from ..ops.reductions import arange
from ..support.errors import ShapeError
from .accumulations import accumulated, dependents
from .array_captures import called
from .body import replaced
from .bounds_checks import checked_accesses, runtime_checks
from .build import body_results, parameter_name, range_extent
from .choices import search_ends, searches, single_change
from .closure_conversion import folded
from .integer_states import as_index, check_integer_states


class Recurrence:
    """The states of a fold and their next values, and the loops and reductions that they are.

    Parameters
    ----------
    scope : Scope
        Of the body's variables, which nothing outside of it may read.
    body, init, n, frugal
        As of `fold` and of `Body`.

    Attributes
    ----------
    inits : list of Expr
    extent : int or str
        The number of steps.

    Raises
    ------
    ShapeError, TypeError
        As of `fold`.
    """

    def __init__(
        self,
        scope: Scope,
        body: Callable[[Any, Any], Any],
        init: Any,
        n: object,
        frugal: bool = False,
    ) -> None:
        self.scope, self.init, self.frugal = scope, init, frugal
        self.extent = range_extent(n, "fold")
        self.inits = body_results(init, "fold: the state before the first step")
        self.index = scope.index(parameter_name(body, 1, "fold"), self.extent)
        self._begin = list(map(as_index, trees.leaves(init)))
        self.states = [scope.state(k, e.shape, integral(e)) for k, e in enumerate(self._begin)]
        result = called(body, self.nest(), self.index)
        _check_nest(init, result, "the state")
        outputs = body_results(result, "fold")
        for k, (before, after) in enumerate(zip(self.inits, outputs, strict=True)):
            _check_shape(before, after, k, len(self.inits))
        self._check_indices(outputs)
        self.outputs = checked_accesses(outputs)

    def _check_indices(self, read: Sequence[Expr]) -> None:
        """Arrays that indices begin with are integers, where others are numbers as any."""
        for k in check_integer_states(self.states, read):
            self.inits[k] = self._begin[k]

    def nest(self) -> Any:
        """The states' variables in the nest of the first states."""
        return trees.unflatten(self.init, iter(self.states))

    def ends(self) -> list[Expr]:
        """The last states."""
        if self.extent == 0:
            return self.inits
        found = self._accumulated(history=False)
        for search in searches(self.states, self.outputs):
            known = {search.place, *search.beside}
            if not known & found.keys() and not self._read_by_others(known):
                found |= search_ends(search, self.inits, self.batched)
        return self._looped(found, history=False)

    def histories(self) -> list[Expr]:
        """The states after every step."""
        return self._looped(self._accumulated(history=True), history=True)

    def until(self, condition: Expr, history: bool) -> list[Expr]:
        """The last states or those after every step, the number of steps, and 1 if it is met."""
        self._check_indices([*self.outputs, condition])
        after, steps, scanned = self._scanned(self.outputs)
        given = self.states, steps, after, self.inits, scanned, self.extent
        *ends, made = folded(*given, until=condition)
        (met,) = replaced([truth(condition)], dict(zip(self.states, ends, strict=True)))
        return [*(folded(*given, history, until=condition)[:-1] if history else ends), made, met]

    def counted(self, made: Expr, history: bool) -> list[Expr]:
        """The states after so many steps, or those after every step."""
        after, steps, scanned = self._scanned(self.outputs)
        given = self.states, steps, after, self.inits, scanned, self.extent
        return folded(*given, history, made=made)

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
