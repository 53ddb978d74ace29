"""Operators of whole arrays in the index language: which these are, equations that are written as
such, and loops, whose step is a text of the language with a value for each state.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...graph.applications import application, rewritten
from ...graph.factors import indicates, selects
from ...graph.iterations import Iteration
from ...graph.nodes import Add, Apply, Einsum, Expr, Part, Var, intern
from ...graph.operators import batch_axes
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

EQUALITIES = ("==", "!=")

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


def written_parameters(node: Apply) -> Sequence[object]:
    """The parameters that calls write: how many axes an operator takes, where it takes not all."""
    of_all = node.op.core[:1] == (-1,) and not batch_axes(node)
    return node.params[of_all:] if node.op.spelling.parameters else ()


def equated_sums(nodes: Sequence[Expr]) -> set[int]:
    """Equations of sums of which entries at equal indices are read, by their ids.

    At equal indices the terms of such a sum are fewer: it adds up to a number that may be rounded
    otherwise, and is then no longer equal to the same sum elsewhere, to its minimum say.
    """
    sums: set[int] = set()
    read: set[int] = set()
    for node in nodes:
        inner = isinstance(node, Add) or (isinstance(node, Apply) and node.op.elementwise)
        if isinstance(node, Add) or (inner and not sums.isdisjoint(map(id, node.args))):
            sums.add(id(node))
        if isinstance(node, Einsum):
            equated = any(map(indicates, node.args))
            for arg, word in zip(node.args, node.labels, strict=True):
                if equated or len({*word}) < len(word):
                    read.add(id(arg))
    found: set[int] = set()
    for node in reversed(nodes):
        if id(node) not in read or not isinstance(node, Add | Apply):
            continue
        if isinstance(node, Apply) and node.op.spelling.infix in EQUALITIES:
            found |= {id(node)} & sums if node.ndim > 1 else set()
        elif isinstance(node, Add) or node.op.elementwise:
            read.update(map(id, node.args))
    return found


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
