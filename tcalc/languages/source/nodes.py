"""What programs ask of nodes: which form is written, what is read as integers, what is counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import chain
from typing import Any

from ...contraction.nested import Admits, Size, flatten
from ...contraction.paths import path_of
from ...graph.extents import NOMINAL
from ...graph.factors import Factors, factors_of, indicates, selects
from ...graph.nodes import (
    Add,
    Apply,
    Const,
    Derivative,
    Einsum,
    Expr,
    Part,
    Var,
    dimensions,
    variables,
)
from ...graph.normal import bare
from ...graph.operators import Loop
from ...graph.trees import leaves
from ...ops.affine_entries import integral
from ...plan.lowering.spellings import ahead
from ...rules.strategy import simplify
from ...support.errors import ShapeError
from ...support.machine import Machine
from .values import places, unscaled

#: Part of the time of a product and of scaling it that scaling ahead may take.
AHEAD = 0.9


def hoisted(roots: list[Expr], sizes: Mapping[str, int], machine: Machine) -> list[Expr]:
    """The roots with as much of their loops ahead of them as fits at these, or NOMINAL, extents."""
    try:
        known = {**dict.fromkeys(dimensions(roots), NOMINAL), **sizes}
        return ahead(roots, known, machine)
    except ShapeError:  # extents are others less more than that
        return roots


def below(
    e: Expr, written: Container[int], operands: Callable[[Expr], Sequence[Expr]]
) -> list[Expr]:
    """What is read to write e, operands first, itself last: nothing below what is written."""
    found: list[Expr] = []
    seen, waiting = set(), [(e, False)]
    while waiting:
        node, read = waiting.pop()
        if read:
            found.append(node)
        elif id(node) not in seen and id(node) not in written:
            seen.add(id(node))
            waiting.append((node, True))
            waiting += [(arg, False) for arg in reversed(operands(node))]
    return found


def contracts(e: Einsum) -> bool:
    """Is e a contraction of arrays?"""
    return e.summed and _ordinary(e)


def _ordinary(e: Einsum) -> bool:
    """Are all operands arrays, so that no gather and no indicator is to be written?"""
    return not any(selects(arg) or indicates(arg) for arg in e.args)


def scaled_ahead(e: Einsum, opens: Admits, size: Size) -> bool:
    """Is a contraction quicker whose operand is scaled than one whose result is?"""
    inner = [arg for arg in e.args if isinstance(arg, Einsum) and opens(arg)]
    plain = len(inner) == 1 and _ordinary(e)
    if not plain or len(set(e.out)) < e.ndim or {*e.out} - {*chain(*e.labels)}:
        return False
    joined = flatten(e, opens, size)
    if any(op is inner[0] for op, _ in joined.operands):
        return False
    apart = [flatten(inner[0], opens, size), factors_of(e)]
    return _time(joined, size) < AHEAD * sum([_time(product, size) for product in apart])


def _time(product: Factors, size: Size) -> float:
    """Predicted, of pairs of operands."""
    extents = {label: size(n) for label, n in product.extents.items()}
    return path_of([word for _, word in product.operands], product.out, extents).time


def stable(leaf: Any) -> Expr:
    """What is written: the form that is computed when the expression is called."""
    if not isinstance(leaf, Expr):
        raise TypeError(f"source is written for expressions, not for {type(leaf).__name__}")
    done = isinstance(leaf, Derivative) and not leaf.as_written
    return bare(leaf) if done else simplify(bare(leaf))


def parameters_of(tree: Any) -> dict[str, Var]:
    """Variables, also of what was differentiated: they stay parameters even if they cancelled."""
    found = leaves(tree)
    roots = [leaf for leaf in found if isinstance(leaf, Derivative)]
    kept = [e for root in roots for e in (root.of, *root.kept)]
    return variables([*map(bare, found), *kept])


def read_once(nodes: Sequence[Expr], uses: Counter[int]) -> set[int]:
    """Contractions that one outer product reads: they are written with the axes it wants."""
    return {
        id(arg)
        for node in nodes
        if isinstance(node, Einsum) and not node.summed
        for arg in node.args
        if isinstance(arg, Einsum) and arg.summed and arg.ndim > 1 and uses[id(arg)] == 1
    }


def placed_once(nodes: Sequence[Expr], uses: Counter[int]) -> set[int]:
    """Products with indicators that one sum reads; constants may be of higher precision."""
    if any(isinstance(node, Const) for node in nodes):
        return set()
    found: set[int] = set()
    for node in nodes:
        for term in node.args if isinstance(node, Add) else ():
            chain = [term] if unscaled(term)[1] is term else [term, unscaled(term)[1]]
            if places(chain[-1]) and all(indicates(e) or uses[id(e)] == 1 for e in chain):
                found.update(map(id, chain))
    return found


def counts(node: Expr) -> bool:
    """May the values be integers, though operands are not: places, comparisons, or states?

    States of loops and their histories are numbers, of which an index is made where they are read.
    """
    return (
        isinstance(node, Part)
        or (isinstance(node, Apply) and node.op.meaning.places)
        or compares_numbers(node)
    )


def compares_numbers(node: Expr) -> bool:
    """Is a node 1 or 0, whatever its operands are, which are no integers?"""
    truth = isinstance(node, Apply) and node.op.meaning.truth
    return truth and not all(map(integral, node.args))


def index_places(node: Expr) -> Sequence[int]:
    """Which operands are read as integers; one may be read as numbers in another place."""
    if selects(node):
        return range(len(node.args))
    if isinstance(node, Apply) and isinstance(node.op, Loop):
        variables = node.op.iteration(node.params, ()).variables
        return [k for k, v in enumerate(variables) if v.integral]
    return ()


def indices(node: Expr) -> tuple[Expr, ...]:
    """The operands that are read as integers."""
    return tuple([node.args[k] for k in index_places(node)])


def described(roots: list[Expr]) -> str:
    shapes = [" x ".join(map(str, root.shape)) or "scalar" for root in roots]
    return f"Returns {', '.join(shapes)}."
