"""Calls for arrays of any number of axes: rows with their parameters, ``axis=``, and indices.

Their types are found by calling them: with a variable of its shape in the place of every operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...graph.arraylike import surface
from ...graph.extents import Extent, Shape, affine_extent
from ...graph.nodes import Expr, Var, intern
from ...graph.properties import INTEGERS
from ...ops.indexing import index_expr
from ...ops.joining import roll, widened
from ...support.errors import Error, LimitError, ParseError, ShapeError
from ..reading.calls import ArrayTree
from ..reading.library import LIBRARY
from ..reading.row_calls import called_row, options
from ..reading.rows import row_named
from ..reading.tree import Node
from .functions import implementation, library_name, signature_of

#: Which operand of a function is of integers.
INTEGER_OPERAND = {"selection": 0, "segment_sum": 1}
#: Functions of text that are rows of another name.
ROWS = {"reshape": "merge_axes"}
#: Functions of the entries' magnitudes, or of all entries, and what they are with ``axis=``.
WITH_AXES: dict[str, Callable[..., Expr]] = {
    "norm1": lambda a, **axes: LIBRARY["sum"](LIBRARY["abs"](a), **axes),
}


def placeholder(node: Node, k: int, shape: Shape) -> Expr:
    """A variable in the place of operand k."""
    found: Var = intern(Var, (f"@{k}", shape, INTEGERS if _of_integers(node, k) else ()))
    return found


def _of_integers(node: Node, k: int) -> bool:
    """Is operand k of a call an array of integers?"""
    return k > 0 if node.kind == "index" else INTEGER_OPERAND.get(node.name) == k


def _operands(tree: ArrayTree, node: Node, args: Sequence[Any]) -> list[Any]:
    """The operands of a call; numbers that are written where integers stand are integers."""
    found = list(args)
    for k, place in enumerate(node.args):
        while (operand := tree.nodes[place]).kind == "use":
            place = operand.args[0]
        if operand.kind == "array" and _of_integers(node, k):
            found[k] = index_expr(tree.numbers(operand).tolist())
    return found


def is_general(tree: ArrayTree, place: int, arrays: bool) -> bool:
    """Is this a call whose type is found by calling it? `arrays`: have operands many axes?"""
    node = tree.nodes[place]
    found = signature_of(node.name) if node.kind == "call" else None
    if found is None:
        return node.kind == "index"
    return found.rule in ("row", "general") or place in tree.parameters or (arrays and found.stacks)


def general_call(
    tree: ArrayTree, place: int, args: Sequence[Any], read: Callable[..., Expr]
) -> Expr:
    """The value of a call; `read` is the reader of text, for functions of one number.

    Raises
    ------
    ParseError
        Where there is no such call, at its place; ShapeError where operands do not fit.
    """
    node, texts = tree.nodes[place], tree.parameters.get(place, ())
    try:
        return _value(node, texts, _operands(tree, node, args), read)
    except (ParseError, LimitError):
        raise
    except ShapeError as error:
        raise tree.placed(error, node.at) from error
    except (Error, TypeError, ValueError, IndexError) as error:
        named = f"`{tree.source(node.args[0])}`" if node.kind == "index" else node.name
        raise tree.error(f"{named}: {error}", node.at) from error


def _value(
    node: Node, texts: Sequence[str], args: Sequence[Any], read: Callable[..., Expr]
) -> Expr:
    if node.kind == "index":
        waiting = iter(args[1:])
        found: Expr = surface["getitem"](
            args[0], tuple([_key(text) if text else next(waiting) for text in texts])
        )
        return found
    if node.name == "pad":
        return _padded(args[0], [affine_extent(text) for text in texts])
    if node.name == "roll":
        return _rolled(args[0], texts)
    row = row_named(ROWS.get(node.name, node.name))
    named = library_name(node.name)
    by_name = texts and all("=" in text and "==" not in text for text in texts)
    if by_name and named in LIBRARY:
        call = WITH_AXES.get(node.name) or implementation(node.name)
        whole: Expr = call(*args, **options(call, texts))
        return whole
    if row is None or (not texts and row.parameters and named in LIBRARY):
        if texts and named not in LIBRARY:
            raise ValueError("it takes no parameters by name")
        if texts:
            other = next(text for text in texts if "=" not in text or "==" in text)
            raise ValueError(f"it takes no `{other}` behind its operands; parameters have names")
        plain: Expr = implementation(node.name)(*args)
        return plain
    return called_row(row, args, texts, lambda text: read(text, x=()))


def _padded(e: Expr, widths: Sequence[Extent]) -> Expr:
    """An array in margins of zeros, ``pad(a, before, after, …)`` along each of its axes."""
    if len(widths) != 2 * e.ndim:
        raise ValueError(f"write the widths before and behind along each of {e.ndim} axes")
    if low := next((n for n in widths if isinstance(n, int) and n < 0), None):
        raise ValueError(f"a width is at least 0, not {low}; what is cut off is a slice")
    return widened(e, list(zip(widths[::2], widths[1::2], strict=True)))


def _rolled(e: Expr, texts: Sequence[str]) -> Expr:
    """An array shifted in a circle, ``roll(a, 1)``, or ``roll(a, 1, axis=0)`` of several axes."""
    shift, *named = texts or ["?"]
    if not shift.lstrip("-").isdigit() or len(named) > 1 or (e.ndim > 1) > len(named):
        raise ValueError("write a whole number, and the axis where there are several")
    return roll(e, int(shift), **{"axis": 0, **options(roll, named)})


def _key(text: str) -> slice | int:
    """A slice or a whole number."""
    parts = [part.strip() for part in text.split(":")]
    if len(parts) == 1:
        return int(text)
    return slice(*[int(part) if part else None for part in parts])
