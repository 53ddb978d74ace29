"""Extents at which a program would read outside of an array: statements that refuse them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ...graph.applications import parts
from ...graph.extents import form_of
from ...graph.nodes import Apply, Expr, postorder
from ...graph.operators import Indicator, Loop
from ...integers.affine import Constraint
from ...ops.outside import Outside, conditions_outside, holds
from .language import Language

#: The place in a text from which an access was read: a program has another one.
_READ_AT = re.compile(r"^\d+:\d+: ")


def refusals(language: Language, roots: Sequence[Expr]) -> list[str]:
    """The statements of a function that come first: they refuse extents that do not fit."""
    lines: list[str] = []
    told = dict.fromkeys([(o.conditions, _message(o)) for o in outside(roots)])
    for conditions, message in told:
        lines += language.refuse(conditions, message)
    return lines


def fits(roots: Sequence[Expr], sizes: Mapping[str, int]) -> bool:
    """Are all accesses inside at these extents?"""
    return not any(all(holds(c, sizes) for c in found.conditions) for found in outside(roots))


def _message(found: Outside) -> str:
    what = _READ_AT.sub("", found.access.what)
    return f"{what} is out of range for an axis of extent {found.access.extent}"


def outside(roots: Sequence[Expr]) -> Iterator[Outside]:
    """When accesses in expressions, steps of loops among them, leave their axes."""
    waiting: list[tuple[tuple[Constraint, ...], Sequence[Expr]]] = [((), roots)]
    while waiting:
        known, found = waiting.pop()
        for node in postorder(found):
            if not isinstance(node, Apply):
                continue
            if isinstance(node.op, Indicator):
                for o in conditions_outside(node.params):
                    yield o._replace(conditions=(*known, *o.conditions))
            if isinstance(node.op, Loop):
                step = node.op.iteration(node.params, range(len(parts(node))))
                some = Constraint(form_of(step.times) - 1)
                inner = known if some.trivial else (*known, some)
                waiting.append((inner, list(step.following.values())))
