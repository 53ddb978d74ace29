"""The first nan: which part of an expression made it, in the words in which it was written.

What is asked here, after the fact, follows a nan of a result down the expression, from a node to
the operand that brought it, until none did. Plans fuse and rewrite; the expression is what the user
knows, and each of its nodes has a value of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..graph import trees
from ..graph.applications import application
from ..graph.bound_variables import shown
from ..graph.nodes import Apply, Const, Derivative, Expr, Part, Var
from ..support.arrays import Array
from ..support.excerpts import shortened
from ..support.namespaces import NUMPY
from .compiled import Compiled, evaluate
from .structured_results import CompiledStructured

Place = tuple[int, ...]
Values = Mapping[str, Any]


class WatchedCompiled(Compiled):
    """What ``compile(…, debug=True)`` returns."""

    def __call__(self, /, *arguments: Any, **values: Any) -> Any:
        results = super().__call__(*arguments, **values)
        return _looked_at(results, self._outputs, self, arguments, values)


class WatchedStructured(CompiledStructured):
    """What ``compile(…, structured=True, debug=True)`` returns: cores are looked at."""

    def __call__(self, /, *arguments: Any, **values: Any) -> Any:
        results = super().__call__(*arguments, **values)
        return _looked_at(results, self._outputs, self._sizes, arguments, values)


def _looked_at(
    results: Any, outputs: Any, held: Compiled, arguments: tuple[Any, ...], values: Values
) -> Any:
    """The results of a call; a nan from numbers without one is an error."""
    if any(map(_has_nan, _arrays(results))):
        given = _all_of(held, arguments, values)
        if not any(map(_has_nan, given.values())):
            raise FloatingPointError(_first_nan(outputs, given))
    return results


def _all_of(held: Compiled, arguments: tuple[Any, ...], values: Values) -> Values:
    """What a call has by name: bound data, arguments, and the extents that they say."""
    given = {**held._data, **(held.named(arguments, dict(values)) if arguments else values)}
    return {**held._engine.sizes(given), **given}


def _arrays(results: Any) -> Iterable[Any]:
    for leaf in trees.leaves(results):
        yield from getattr(leaf, "cores", (leaf,))


def _has_nan(value: Any) -> bool:
    data = getattr(value, "data", value) if hasattr(value, "tocsr") else value
    array = np.asarray(data)
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def _first_nan(outputs: Any, values: Values) -> str:
    """What made the first nan of the outputs."""

    def alone(node: Expr) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(evaluate(node, values))

    for root in [leaf for leaf in trees.leaves(outputs) if isinstance(leaf, Expr)]:
        written = root.inner if isinstance(root, Derivative) else root
        if _has_nan(found := alone(written)):
            return _followed(written, found, alone)
    return "a result is nan, though none of the outputs by itself is"


def _followed(node: Expr, value: Array, alone: Callable[[Expr], Array]) -> str:
    """Down from a node with a nan to the one that made it of operands without."""
    place: Place | None = None
    while True:
        place = _place(value, place)
        operands = [arg for arg in _operands(node) if not isinstance(arg, Var)]
        known = [(arg, alone(arg)) for arg in operands]
        below = next(
            (k for k, (_, v) in enumerate(known) if _brings(node, operands, k, v, place, alone)),
            None,
        )
        if below is None:
            return _told(node, place, alone)
        node, value = known[below]


def _operands(node: Expr) -> Sequence[Expr]:
    return application(node).args if isinstance(node, Part) else node.args


def _place(value: Array, before: Place | None) -> Place:
    """A place of a nan: that of the node above where it is one here too, else the first."""
    if before is not None and len(before) == value.ndim:
        inside = all(k < n for k, n in zip(before, value.shape, strict=True))
        if inside and np.isnan(value[before]):
            return before
    first = np.argwhere(np.isnan(value))[0]
    return tuple(int(k) for k in first)


def _elementwise(node: Expr) -> bool:
    return isinstance(node, Apply) and node.op.elementwise


def _brings(
    node: Expr, operands: Sequence[Expr], k: int, value: Array, place: Place,
    alone: Callable[[Expr], Array],
) -> bool:  # fmt: skip
    """Is this operand's nan the node's? Of a function of entries: without it, is there none?"""
    if not _has_nan(value):
        return False
    if not isinstance(node, Apply) or not _elementwise(node):
        return True
    if not np.isnan(value[place]):
        return False
    entries = [np.float64(alone(arg)[place]) for arg in node.args]
    at = [j for j, arg in enumerate(node.args) if arg is operands[k]]
    tried = [np.float64(1) if j in at else entry for j, entry in enumerate(entries)]
    with np.errstate(all="ignore"):
        return not np.isnan(node.op.kernels.compute(NUMPY, node.params, *tried))


def _told(node: Expr, place: Place, alone: Callable[[Expr], Array]) -> str:
    """The message about the node that made a nan."""
    at = f" at {list(place)}" if place else ""
    head = f"the first nan is of {_as_computed(node)}{at}"
    operands = [arg for arg in dict.fromkeys(_operands(node)) if not isinstance(arg, Const)]
    if _elementwise(node):
        reasons = [f"{_shown(arg)} = {float(alone(arg)[place])!r}" for arg in operands]
    else:
        infinite = [arg for arg in operands if np.isinf(alone(arg)).any()]
        reasons = [f"{_shown(arg)} has infinite entries" for arg in infinite]
    return f"{head}, where {' and '.join(reasons)}" if reasons else head


def _shown(node: Expr) -> str:
    """The text of a node, arguments of traced functions under their own names."""
    text = str(node)
    for name in sorted(node.variables, key=len, reverse=True):
        text = text.replace(name, shown(name))
    return shortened(text)


def _as_computed(node: Expr) -> str:
    """The text of a node; its operation, where formulas have it simplified, as x/x to 1."""
    text, operands = _shown(node), [_shown(arg) for arg in _operands(node)]
    if not isinstance(node, Apply) or not _elementwise(node):
        return text
    if not operands or any(operand in text for operand in operands):
        return text
    return f"{node.op.name}({', '.join(operands)})"
