"""Operators of whole arrays in the index language: which these are, and loops, whose step is a text
of the language with a value for each state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...graph.applications import application, rewritten
from ...graph.iterations import Iteration
from ...graph.nodes import Apply, Expr, Part, Var, intern
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
    n, args = loop.results, application(node).args
    fed, named = args[len(loop.states) :], operands[len(loop.states) :]
    own, (index,) = names.chosen(STATES, n), names.chosen(INDICES, 1)
    bound = bound_operands(fed)
    called = dict(zip(map(id, bound), names.chosen(OPERANDS, len(bound)), strict=True))
    inside = [called.get(id(e), name) for e, name in zip(fed, named, strict=True)]
    scanned = [f"{name}[{index}]" for name in inside[: len(loop.slices)]]
    spelled = [*own, *scanned, *inside[len(loop.slices) :]]
    change: dict[int, Expr] = {
        id(v): intern(Var, (name, v.shape, v.properties))
        for v, name in zip([*loop.states[:n], *loop.slices, *loop.fixed], spelled, strict=True)
    }

    def told(exprs: Sequence[Expr]) -> str:
        after = rewritten(exprs, lambda new, old: change.get(id(old), new))
        before, values = lines(after, {*names.taken, *own, *called.values(), index})
        return "; ".join([*before, together(values)])

    extent = f"{index}={range_of(loop)}"
    if loop.until is not None:
        extent += f" until {told([loop.until])}"
    elif loop.bound is not None:
        (count,) = [named[k] for k, v in enumerate(loop.fixed, len(loop.slices)) if v is loop.bound]
        extent += f" if {index} < {count}"
    word = {id(e): name for e, name in zip(args, operands, strict=True)}
    parts = [
        f"{together(own)} -> {told([loop.following[k] for k in range(n)])}",
        together(operands[:n]),
        *[f"{called[id(e)]}={word[id(e)]}" for e in bound],
        extent,
    ]
    name, place = loop_word(node)
    return f"{name}({', '.join(parts)}){place}"
