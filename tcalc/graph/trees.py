"""Nested tuples and dicts of expressions: what `wrt` may be, and what comes back in its shape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from .arraylike import Evaluated
from .nodes import Expr


class Block(tuple[Any, ...], Evaluated):
    """A tuple of expressions or further blocks; calling it with arrays evaluates all of them."""

    __slots__ = ()


class NamedBlock(dict[Any, Any], Evaluated):
    """A dict of expressions or further blocks; calling it with arrays evaluates all of them."""


def is_function(value: object) -> bool:
    """Is this a function of Python, rather than expressions, which may be called too?"""
    return callable(value) and not isinstance(value, Expr | Block | NamedBlock)


def leaves(tree: Any) -> list[Any]:
    """Leaves of nested tuples, lists and dicts, in order."""
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in leaves(value)]
    if isinstance(tree, tuple | list):
        return [leaf for value in tree for leaf in leaves(value)]
    return [tree]


def rebuild(tree: Any, values: Iterable[Any]) -> Any:
    """A nest like `tree` with other leaves; one leaf without nest is that leaf."""
    source = iter(values)
    return _rebuild(tree, source)


def _rebuild(tree: Any, source: Iterator[Any]) -> Any:
    if isinstance(tree, dict):
        return NamedBlock({key: _rebuild(value, source) for key, value in tree.items()})
    if isinstance(tree, tuple | list):
        return Block([_rebuild(value, source) for value in tree])
    return next(source)


def filled(tree: Any, leaves: Iterator[Any]) -> Any:
    """The nest with other leaves, in plain tuples, lists and dicts."""
    if isinstance(tree, dict):
        return {key: filled(value, leaves) for key, value in tree.items()}
    if isinstance(tree, list):
        return [filled(value, leaves) for value in tree]
    if isinstance(tree, tuple):
        values = [filled(value, leaves) for value in tree]
        return type(tree)(*values) if hasattr(tree, "_fields") else tuple(values)
    return next(leaves)


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    return rebuild(tree, [function(leaf) for leaf in leaves(tree)])
