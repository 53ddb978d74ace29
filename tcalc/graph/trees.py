"""Nested tuples, lists and dicts (pytrees): of variables, and of derivatives by these."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from ..support.records import NamedTuple
from .arraylike import Evaluated
from .extents import show_shape
from .nodes import Derivative, Expr


class Block(tuple[Any, ...], Evaluated):
    """A tuple of expressions or further blocks; calling it with arrays evaluates all of them.

    Attributes
    ----------
    kind : type
        What values stand in: tuples, lists or named tuples.
    """

    kind: type = tuple


class NamedBlock(dict[Any, Any], Evaluated):
    """A dict of expressions or further blocks; calling it with arrays evaluates all of them.

    Attributes
    ----------
    kind : type
        What values stand in: a dict, or one with an order of its own.
    """

    kind: type = dict


def _kind(tree: Any) -> type:
    """What values stand in that nest as `tree` does."""
    if isinstance(tree, Block | NamedBlock):
        return tree.kind
    if isinstance(tree, dict):
        return OrderedDict if isinstance(tree, OrderedDict) else dict
    return type(tree) if hasattr(tree, "_fields") else list if isinstance(tree, list) else tuple


def _made(kind: type, values: Any) -> Any:
    return kind(*values) if hasattr(kind, "_fields") else kind(values)


def is_function(value: object) -> bool:
    """Is this a Python function? Expressions and nests of them may be called too, but are none."""
    return callable(value) and not isinstance(value, Expr | Block | NamedBlock)


def leaves(tree: Any) -> list[Any]:
    """The leaves of a nest, in order."""
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in leaves(value)]
    if isinstance(tree, tuple | list):
        return [leaf for value in tree for leaf in leaves(value)]
    return [tree]


def spelled_places(tree: Any) -> list[str]:
    """Where the leaves of a nest stand, in order, as one writes it: ``['w'][0]``, ``.bias``."""
    if isinstance(tree, dict):
        parts = [(f"[{key!r}]", value) for key, value in tree.items()]
    elif isinstance(tree, tuple | list):
        names = [f".{name}" for name in getattr(tree, "_fields", ())]
        parts = list(zip(names or [f"[{k}]" for k in range(len(tree))], tree, strict=True))
    else:
        return [""]
    return [own + place for own, value in parts for place in spelled_places(value)]


def rebuild(tree: Any, values: Iterable[Any]) -> Any:
    """The values in the structure of `tree`, in blocks, which can be evaluated."""
    source = iter(values)
    return _rebuild(tree, source)


def _rebuild(tree: Any, source: Iterator[Any]) -> Any:
    if not isinstance(tree, dict | tuple | list):
        return next(source)
    block: Block | NamedBlock
    if isinstance(tree, dict):
        block = NamedBlock({key: _rebuild(value, source) for key, value in tree.items()})
    else:
        block = Block([_rebuild(value, source) for value in tree])
    if (kind := _kind(tree)) is not block.kind:
        block.kind = kind
    return block


def unflatten(tree: Any, leaves: Iterator[Any]) -> Any:
    """The leaves in the structure of `tree`, in plain tuples, named tuples, lists and dicts."""
    if isinstance(tree, dict):
        return _kind(tree)({key: unflatten(value, leaves) for key, value in tree.items()})
    if isinstance(tree, tuple | list):
        return _made(_kind(tree), [unflatten(value, leaves) for value in tree])
    return next(leaves)


def builder(tree: Any) -> Callable[[Sequence[Any]], Any]:
    """Leaves, in order, to the structure of `tree` as `unflatten` has it: found out once."""
    if not isinstance(tree, dict | list | tuple):
        return itemgetter(0)
    parts, kind = list(tree.values() if isinstance(tree, dict) else tree), _kind(tree)
    if any(isinstance(part, dict | list | tuple) for part in parts):
        return lambda leaves: unflatten(tree, iter(leaves))
    if isinstance(tree, dict):
        keys = tuple(tree)
        return lambda leaves: kind(zip(keys, leaves, strict=True))
    return kind if kind in (list, tuple) else partial(_made, kind)


class Place(NamedTuple):
    """What tells a leaf from the others of its nest.

    Attributes
    ----------
    path : tuple
        Keys and numbers that lead to it; empty where the variables tell enough.
    wrt : tuple of str
        The variables that it is a derivative by; empty for what is none.
    """

    path: tuple[Any, ...]
    wrt: tuple[str, ...]

    def __str__(self) -> str:
        power = len(self.wrt) if len(self.wrt) > 1 else ""
        by = f"d{power}/{' '.join([f'd{name}' for name in self.wrt])}" if self.wrt else ""
        return " ".join([part for part in ("".join([f"[{k!r}]" for k in self.path]), by) if part])


def places(tree: Any) -> list[Place]:
    """The places of the leaves: derivatives by their variables, and by paths where these repeat."""
    found = [
        Place(path, tuple([v.name for v in leaf.wrt]) if isinstance(leaf, Derivative) else ())
        for path, leaf in _paths(tree)
    ]
    clear = all(by for _, by in found) and len({by for _, by in found}) == len(found)
    return [place._replace(path=()) for place in found] if clear else found


def _paths(tree: Any) -> Iterator[tuple[tuple[Any, ...], Any]]:
    if not isinstance(tree, tuple | list | dict):
        yield (), tree
        return
    for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
        for path, leaf in _paths(value):
            yield (key, *path), leaf


def listed(tree: Any, texts: Sequence[str]) -> str:
    """Texts of the leaves as lines ``place: text``; several lines start on a line of their own."""
    pairs = zip(places(tree), texts, strict=True)
    return "\n".join([f"{at}:\n{text}" if "\n" in text else f"{at}: {text}" for at, text in pairs])


def mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """The function of every leaf, in the structure of `tree`."""
    return rebuild(tree, [function(leaf) for leaf in leaves(tree)])


def shown_shapes(outputs: Any) -> str:
    """The shapes of a nest of outputs, nested as these are."""
    if isinstance(outputs, dict):
        shown = [f"{key!r}: {shown_shapes(value)}" for key, value in outputs.items()]
        return f"{{{', '.join(shown)}}}"
    if isinstance(outputs, tuple | list):
        return f"[{', '.join(map(shown_shapes, outputs))}]"
    return show_shape(outputs.shape)
