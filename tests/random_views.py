"""Random steps that read parts of few arrays in other shapes, as those of flat parameters do."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, Any

from tests.jets import Jet
from tests.random_operations import Context, Operation

if TYPE_CHECKING:
    from tests.random_programs import Generator

#: A place along each axis: a slice as its ends and step, or a number.
Key = tuple[tuple[int | None, int | None, int] | int, ...]


def whole(g: Generator, ndims: Sequence[int]) -> int | None:
    """A value whose extents are all numbers: a variable as often as not."""
    first = len(g.program.shapes)
    found = [
        k for k, s in enumerate(g.shapes)
        if len(s) in ndims and all(isinstance(e, int) and e for e in s)
    ]  # fmt: skip
    given = [k for k in found if k < first]
    if given and g.chance(0.5):
        return int(g.pick(given))
    return int(g.pick(found[-4:])) if found else None


def _reshape(g: Generator) -> None:
    k = whole(g, (1, 2, 3))
    if k is None:
        return
    size = prod(int(e) for e in g.shapes[k])
    shapes = [(size,)] + [(d, size // d) for d in range(1, size + 1) if size % d == 0]
    shape = g.pick([s for s in shapes if s != tuple(g.shapes[k])] or shapes)
    g.emit("reshape", [k], shape, target=shape)


def _reshaped(c: Context, args: Sequence[Any], target: tuple[int, ...]) -> Any:
    return args[0].reshape(target)


def _reshaped_jet(c: Context, args: Sequence[Jet], target: tuple[int, ...]) -> Jet:
    ndim = args[0].v.ndim
    return args[0].map(lambda a: a.reshape(*target, *a.shape[ndim:]))


def _part(g: Generator) -> None:
    k = whole(g, (1, 2))
    if k is None:
        return
    key: list[tuple[int | None, int | None, int] | int] = []
    shape: list[int] = []
    for n in map(int, g.shapes[k]):
        start = g.below(n)
        stop = start + 1 + g.below(n - start)
        item = g.pick([(None, None, 1), (start, stop, 1), (None, None, -1), start])
        key.append(item)
        if not isinstance(item, int):
            shape.append(len(range(n)[slice(*item)]))
    g.emit("part", [k], shape, key=tuple(key))


def _key(key: Key) -> tuple[slice | int, ...]:
    return tuple([k if isinstance(k, int) else slice(*k) for k in key])


def _parted(c: Context, args: Sequence[Any], key: Key) -> Any:
    return args[0][_key(key)]


def _turn(g: Generator) -> None:
    k = whole(g, (2,))
    if k is not None:
        g.emit("turned", [k], g.shapes[k][::-1])


def _turned(c: Context, args: Sequence[Any]) -> Any:
    return args[0].T


def _turned_jet(c: Context, args: Sequence[Jet]) -> Jet:
    return args[0].T


VIEWS = {
    "reshape": Operation(_reshape, _reshaped, _reshaped_jet, 3),
    "part": Operation(_part, _parted, lambda c, args, key: args[0][_key(key)], 3),
    "turned": Operation(_turn, _turned, _turned_jet),
}
