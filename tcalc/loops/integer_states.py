"""States of loops that are indices: integers before every step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..graph.factors import selects
from ..graph.nodes import Apply, Const, Expr, Var, postorder
from ..ops.affine_entries import integral
from ..ops.arithmetic import as_expr
from ..ops.indexing import index_expr

__all__: list[str] = []

#: Numbers below which all integers are floats; none that is larger is an index.
LARGE = 2**53


def as_index(first: Any) -> Expr:
    """A first state as it is where an index begins with it: an array of integers is no number.

    In texts, where arrays have no types, whole numbers are integers.
    """
    array = first.value if isinstance(first, Const) else first
    kinds = "iuf" if isinstance(first, Const) else "iu"
    if isinstance(array, np.ndarray) and array.ndim and array.dtype.kind in kinds:
        whole = (array == np.rint(array)) & (array > -LARGE) & (array < LARGE)
        if whole.all():
            return index_expr(array.astype(np.int64))
    return as_expr(first)


def check_integer_states(states: Sequence[Var], outputs: Sequence[Expr]) -> set[int]:
    """The numbers of the states that indices are made of, directly or by other states.

    Raises
    ------
    TypeError
        Where one is no integer after a step.
    """
    indices = [arg for node in postorder(outputs) if selects(node) for arg in node.args]
    seen: set[int] = set()
    while waiting := _read(indices, states) - seen:
        seen |= waiting
        indices = [outputs[k] for k in waiting]
        for k in sorted(waiting):
            if not integral(outputs[k]):
                raise TypeError(
                    f"fold: state {k} is used as an index, so it is an integer before and after "
                    "every step"
                )
    return seen


def _read(exprs: Sequence[Expr], states: Sequence[Var]) -> set[int]:
    """The numbers of the states that expressions read."""
    inside = {id(node) for node in postorder(exprs, _finds_places)}
    return {k for k, v in enumerate(states) if id(v) in inside}


def _finds_places(e: Expr) -> bool:
    """Are these integers whatever it reads, as those that sort an array?"""
    return isinstance(e, Apply) and (e.op.meaning.places or e.op.meaning.truth)
