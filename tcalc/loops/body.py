"""The body of a loop: one step as expressions in variables of its own."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from typing import Any

from ..graph.applications import rewritten
from ..graph.extents import Shape
from ..graph.nodes import Apply, Const, Einsum, Expr, Var, dimensions, intern, postorder
from ..graph.products import selects
from ..graph.properties import INTEGERS
from ..graph.sums import absent_axes

__all__: list[str] = []


class Body:
    """One step of a loop, closed in its own variables.

    Their names are no identifiers, so no variable of a user is one of them, and tell how deep loops
    are nested inside: operands of a loop may hold variables of loops around it, never its own.
    """

    def __init__(
        self,
        states: tuple[Var, ...],
        steps: tuple[Var, ...],
        captured: tuple[Var, ...],
        outputs: tuple[Expr, ...],
    ) -> None:
        self.states, self.steps, self.captured = states, steps, captured
        self.outputs = outputs
        state = blake2b(digest_size=16)
        for part in (states, steps, captured, outputs):
            state.update(b"/" + b"".join([e.order[2] for e in part]))
        self.digest = state.hexdigest()

    @property
    def formals(self) -> tuple[Var, ...]:
        return self.states + self.steps + self.captured

    @cached_property
    def reads(self) -> list[set[str]]:
        """The names that each output depends on."""
        return [set(e.variables) for e in self.outputs]

    @cached_property
    def dimensions(self) -> set[str]:
        return set(dimensions([*self.formals, *self.outputs]))

    @cached_property
    def depth(self) -> int:
        """How many loops stand inside one another in this one."""
        return depth_of(postorder(self.outputs))

    def __repr__(self) -> str:
        return f"body {self.digest}"

    def __reduce__(self) -> tuple[Any, ...]:
        return Body, (self.states, self.steps, self.captured, self.outputs)

    def varying(self, names: Collection[str]) -> set[int]:
        """The states that change with the variables of these names."""
        known = set(names)
        found: set[int] = {k for k, v in enumerate(self.states) if v.name in known}
        while True:
            more = {k for k, reads in enumerate(self.reads) if k not in found and reads & known}
            if not more:
                return found
            found |= more
            known |= {self.states[k].name for k in more}

    def reaching(self, states: Collection[int]) -> set[int]:
        """The states that these depend on, themselves included."""
        found = waiting = set(states)
        while waiting:
            names = set().union(*[self.reads[k] for k in waiting])
            waiting = {k for k, v in enumerate(self.states) if v.name in names} - found
            found = found | waiting
        return found


def depth_of(nodes: Sequence[Expr]) -> int:
    bodies = [p for n in nodes if isinstance(n, Apply) for p in n.params if isinstance(p, Body)]
    return 1 + max([body.depth for body in bodies], default=0)


def formal(name: str, shape: Shape, integer: bool = False) -> Var:
    """A variable of a body."""
    made: Var = intern(Var, (name, shape, INTEGERS if integer else ()))
    return made


def like(prefix: str, v: Var, before: Shape = (), behind: Shape = ()) -> Var:
    """A variable that belongs to another one, with further axes."""
    return formal(prefix + v.name, (*before, *v.shape, *behind))


def cut(outputs: Sequence[Expr], moving: Sequence[Var]) -> tuple[list[Expr], list[Expr], set[int]]:
    """The nodes that depend on what moves, the largest ones below that do not, and integers there.

    Numbers, unit tensors and whatever has no entries of its own stay inside. Of what unit tensors
    or broadcasts make larger, the core is taken out, and of a selection tensor the integers.
    """
    nodes = postorder(outputs)
    depends = set(map(id, moving))
    for node in nodes:
        if any(id(arg) in depends for arg in node.args):
            depends.add(id(node))
    inside = [node for node in nodes if id(node) in depends]
    plain = plain_below(outputs)
    found: dict[int, Expr] = {}
    whole: set[int] = set()
    waiting = [*outputs, *[arg for node in inside for arg in node.args]]
    while waiting:
        node = waiting.pop()
        if id(node) in depends or plain[id(node)]:
            continue
        if _spreads(node):
            waiting.extend(node.args)
        elif selects(node):
            waiting.extend(node.args)
            whole.update(map(id, node.args))
        else:
            found[id(node)] = node
    return inside, list(found.values()), whole


def _spreads(e: Expr) -> bool:
    unit = isinstance(e, Einsum) and not e.summed and len(set(e.out)) < e.ndim
    return unit or bool(absent_axes(e))


def plain_below(roots: Sequence[Expr]) -> dict[int, bool]:
    """Is nothing below a node a variable or an array of real numbers?"""
    found: dict[int, bool] = {}
    for node in postorder(roots):
        real = isinstance(node, Const) and node.value.dtype.kind == "f"
        found[id(node)] = not (real or isinstance(node, Var)) and all(
            found[id(arg)] for arg in node.args
        )
    return found


def replaced(roots: Sequence[Expr], values: Mapping[Var, Expr]) -> list[Expr]:
    """The roots with all these variables replaced at once."""
    by_id: dict[int, Expr] = {id(v): value for v, value in values.items()}
    return rewritten(roots, lambda new, old: by_id.get(id(old), new)) if by_id else list(roots)
