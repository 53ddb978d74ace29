"""Calls of operators that are not entry by entry: parameters and axes behind their operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...graph.nodes import Apply
from ...graph.operators import batch_axes
from .matrix_form import NodeForm
from .notation import Fragment
from .style import Style


def call_parameters(node: Apply, axis: int = -1) -> list[tuple[str, Any]]:
    """Parameters as further arguments; the axes of a core where there are others before it.

    `axis` is what the last one of a matrix is called.
    """
    op = node.op
    if not op.spelling.parameters:
        return []
    shown: list[tuple[str, Any]] = []
    params = node.params
    if op.core and set(op.core) in ({-1}, {1}):
        count = params[0] if op.core[0] == -1 else 1
        params = params[1:] if op.core[0] == -1 else params
        if batch_axes(node):
            matrix = node.args[0].ndim == 2
            one = axis if matrix else -1
            shown.append(("axis", one if count == 1 else tuple(range(-count, 0))))
    return shown + [("", value) for value in params]


def whole_call(
    node: Apply, forms: Mapping[int, NodeForm], style: Style, matrix: bool
) -> tuple[Fragment, Fragment | None]:
    """The call, and its transpose where that is what is written.

    Functions of the rows of a transposed matrix are those of the columns of the matrix.
    """
    given = [forms[id(arg)] for arg in node.args]
    columns = matrix and _takes_rows(node) and given[0].reads_turned
    args = [form.turned if columns else form.plain for form in given]
    args = [args[k] for k in style.shown(node.op)] or args
    axis = (0 if columns else 1) if matrix else -1
    call = style.call(node.op, call_parameters(node, axis), args, [False])
    return (style.transpose(call), call) if columns and node.ndim == 2 else (call, None)


def _takes_rows(node: Apply) -> bool:
    """Are its operands matrices, of which it takes the rows one by one?"""
    flat = node.args and all(arg.ndim == 2 for arg in node.args)
    return bool(flat) and set(node.op.core) in ({-1}, {1}) and batch_axes(node) == 1
