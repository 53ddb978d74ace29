"""The body of a loop: one step as expressions in variables of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any

from ..graph.applications import is_symmetric, rewritten
from ..graph.extents import Shape
from ..graph.factors import selects
from ..graph.nodes import Apply, Const, Einsum, Expr, Var, dimensions, intern, postorder
from ..graph.properties import INTEGERS, SYMMETRIC
from ..graph.sums import absent_axes
from ..support.digests import blake2b

__all__: list[str] = []


class Body:
    """One step of a loop as expressions in variables of its own.

    Names of these variables are no identifiers, so that no user has them, and contain how deep
    loops are nested inside, so that operands with variables of an outer loop cannot clash.

    Attributes
    ----------
    states, steps, captured : tuple of Var
        For the states before the step, for slices of scanned operands, for captured operands.
    outputs : tuple of Expr
        The states after the step.
    frugal : bool
        Does a pullback go step by step, so that what it needs of a step exists for that step only?
    bound, until : Var and Expr, or None
        As of `Iteration`: the last of `states` or one of `captured`, and the condition that such a
        state holds.
    digest : str
        Equal for equal bodies.
    """

    def __init__(
        self,
        states: tuple[Var, ...],
        steps: tuple[Var, ...],
        captured: tuple[Var, ...],
        outputs: tuple[Expr, ...],
        frugal: bool = False,
        bound: Var | None = None,
        until: Expr | None = None,
    ) -> None:
        self.states, self.steps, self.captured = states, steps, captured
        self.outputs, self.frugal = outputs, frugal
        self.bound, self.until = bound, until
        state = blake2b(digest_size=16)
        for part in (states, steps, captured, outputs):
            state.update(b"/" + b"".join([e.order[2] for e in part]))
        if frugal:
            state.update(b"/frugal")
        for e in (bound, until):
            if e is not None:
                state.update(b"/until" + e.order[2])
        self.digest = state.hexdigest()

    @property
    def formals(self) -> tuple[Var, ...]:
        return self.states + self.steps + self.captured

    @property
    def results(self) -> int:
        """The number of states, without the one that holds a condition."""
        return len(self.states) - (self.until is not None)

    @cached_property
    def reads(self) -> list[set[str]]:
        """The names that each output depends on."""
        return [set(e.variables) for e in self.outputs]

    @cached_property
    def dimensions(self) -> set[str]:
        return set(dimensions([*self.formals, *self.outputs]))

    @cached_property
    def depth(self) -> int:
        """How deep loops are nested, this one included."""
        return nesting_depth(postorder(self.outputs))

    def __repr__(self) -> str:
        return f"body {self.digest}"

    def __reduce__(self) -> tuple[Any, ...]:
        given = self.states, self.steps, self.captured, self.outputs
        return Body, (*given, self.frugal, self.bound, self.until)

    def varying(self, names: Collection[str]) -> set[int]:
        """The states that depend on variables of these names, through other states too."""
        known = set(names)
        found: set[int] = {k for k, v in enumerate(self.states) if v.name in known}
        while True:
            more = {k for k, reads in enumerate(self.reads) if k not in found and reads & known}
            if not more:
                return found
            found |= more
            known |= {self.states[k].name for k in more}

    def reaching(self, states: Collection[int]) -> set[int]:
        """The states that these depend on, through other states too, themselves included."""
        found = waiting = set(states)
        while waiting:
            names = set().union(*[self.reads[k] for k in waiting])
            waiting = {k for k, v in enumerate(self.states) if v.name in names} - found
            found = found | waiting
        return found


def nesting_depth(nodes: Sequence[Expr]) -> int:
    """How deep loops are nested in a body of these nodes; 1 if it has none inside."""
    bodies = [p for n in nodes if isinstance(n, Apply) for p in n.params if isinstance(p, Body)]
    return 1 + max([body.depth for body in bodies], default=0)


def body_variable(name: str, shape: Shape, properties: Sequence[str] = ()) -> Var:
    """A variable of a body."""
    made: Var = intern(Var, (name, shape, tuple(properties)))
    return made


def kind_of(integer: bool) -> tuple[str, ...]:
    """The properties of a variable that may be an index, or of any other."""
    return INTEGERS if integer else ()


def symmetric(e: Expr, leading: int = 0) -> tuple[str, ...]:
    """The properties of a variable for matrices, behind so many axes, that are symmetric or not."""
    return SYMMETRIC if e.ndim - leading >= 2 and is_symmetric(e) else ()


def alike(prefix: str, v: Var, before: Shape = ()) -> Var:
    """A variable named after another one, with its properties."""
    return body_variable(prefix + v.name, (*before, *v.shape), v.properties)


def derived_variable(prefix: str, v: Var, before: Shape = (), behind: Shape = ()) -> Var:
    """A variable named after another one, with further axes."""
    return body_variable(prefix + v.name, (*before, *v.shape, *behind))


def loop_invariants(
    outputs: Sequence[Expr], moving: Sequence[Var]
) -> tuple[list[Expr], list[Expr], set[int]]:
    """What of a loop body depends on the variables `moving`, and its loop invariants.

    Returns
    -------
    inside : list of Expr
        The nodes that depend on `moving`.
    invariants : list of Expr
        The largest expressions below these that do not. Constants are none; of a tensor that unit
        tensors or broadcasts enlarge it is the core, of a selection tensor the integers.
    integers : set of int
        The ids of the invariants that are integers.
    """
    nodes = postorder(outputs)
    depends = set(map(id, moving))
    for node in nodes:
        if any(id(arg) in depends for arg in node.args):
            depends.add(id(node))
    inside = [node for node in nodes if id(node) in depends]
    plain = constant_below(outputs)
    found: dict[int, Expr] = {}
    integers: set[int] = set()
    waiting = [*outputs, *[arg for node in inside for arg in node.args]]
    while waiting:
        node = waiting.pop()
        if id(node) in depends or plain[id(node)]:
            continue
        if _is_enlarged(node):
            waiting.extend(node.args)
        elif selects(node):
            waiting.extend(node.args)
            integers.update(map(id, node.args))
        else:
            found[id(node)] = node
    return inside, list(found.values()), integers


def _is_enlarged(e: Expr) -> bool:
    unit = isinstance(e, Einsum) and not e.summed and len(set(e.out)) < e.ndim
    return unit or bool(absent_axes(e))


def constant_below(roots: Sequence[Expr]) -> dict[int, bool]:
    """By id: is there no variable and no array of real numbers below a node?"""
    found: dict[int, bool] = {}
    for node in postorder(roots):
        real = isinstance(node, Const) and node.value.dtype.kind == "f"
        found[id(node)] = not (real or isinstance(node, Var)) and all(
            found[id(arg)] for arg in node.args
        )
    return found


def replaced(roots: Sequence[Expr], values: Mapping[Var, Expr]) -> list[Expr]:
    """The roots with these variables replaced simultaneously."""
    by_id: dict[int, Expr] = {id(v): value for v, value in values.items()}
    return rewritten(roots, lambda new, old: by_id.get(id(old), new)) if by_id else list(roots)
