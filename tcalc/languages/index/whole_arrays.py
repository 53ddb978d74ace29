"""Operators of whole arrays in the index language: which these are, and loops, whose step is a text
of the language with a value for each state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...graph.applications import application, rewritten
from ...graph.nodes import Apply, Expr, Part, Var, intern
from ...graph.operators import Iteration
from ...graph.products import indicates, selects
from ..writing.loops import (
    INDICES,
    OPERANDS,
    STATES,
    Names,
    bound_operands,
    loop_word,
    range_of,
    together,
)
from .grammar import BINDERS

#: Writes expressions beside names that are taken: statements of parts, and those of the values.
Lines = Callable[[Sequence[Expr], set[str]], tuple[list[str], list[str]]]


def has_parts(node: Expr) -> bool:
    return isinstance(node, Apply) and node.op.outputs > 1


def of_arrays(node: Apply) -> bool:
    """Does an operator act on whole arrays?"""
    plain = node.op.elementwise and bool(node.args)
    known = selects(node) or indicates(node) or (not node.args and node.ndim == 1)
    known = known or node.op.meaning.regroups
    return not plain and not known and not (node.op.core == (-1,) and node.op.name in BINDERS)


def loop_text(
    node: Part, loop: Iteration, names: Names, operands: Sequence[str], lines: Lines
) -> str:
    """The array of one output of a loop whose operands are arrays of these names."""
    n, args = len(loop.states), application(node).args
    own, (index,) = names.chosen(STATES, n), names.chosen(INDICES, 1)
    bound = bound_operands(args[n:])
    called = dict(zip(map(id, bound), names.chosen(OPERANDS, len(bound)), strict=True))
    inside = [called.get(id(e), name) for e, name in zip(args[n:], operands[n:], strict=True)]
    scanned = [f"{name}[{index}]" for name in inside[: len(loop.slices)]]
    spelled = [*own, *scanned, *inside[len(loop.slices) :]]
    change: dict[int, Expr] = {
        id(v): intern(Var, (name, v.shape, v.properties))
        for v, name in zip(loop.variables, spelled, strict=True)
    }
    after = rewritten(list(loop.following.values()), lambda new, old: change.get(id(old), new))
    before, values = lines(after, {*names.taken, *own, *called.values(), index})
    word = {id(e): name for e, name in zip(args, operands, strict=True)}
    parts = [
        f"{together(own)} -> {'; '.join([*before, together(values)])}",
        together(operands[:n]),
        *[f"{called[id(e)]}={word[id(e)]}" for e in bound],
        f"{index}={range_of(loop)}",
    ]
    name, place = loop_word(node)
    return f"{name}({', '.join(parts)}){place}"
