"""Random steps whose subscripts are computed: affine maps, windows, paddings, integer variables."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tests import jets
from tests.jets import Jet
from tests.random_operations import Context, Extent, Operation

if TYPE_CHECKING:
    from tests.random_programs import Generator

# --- comprehensions with affine subscripts --------------------------------------------------------

#: A subscript: a factor for each index, and a number more. `None` is n - 1 - i, for a named extent.
Affine = tuple[tuple[int, ...], int]


def _subscript(g: Generator, ranges: Sequence[int], n: int, guarded: bool) -> Affine | None:
    """A subscript that stays inside n entries where nothing guards it."""
    coefs = [0] * len(ranges)
    for k in g.rng.permutation(len(ranges))[: 1 + g.below(2)]:
        coefs[k] = g.pick([1, 1, -1, 2, -2])
    ends = [sorted((0, coef * max(r - 1, 0))) for coef, r in zip(coefs, ranges, strict=True)]
    low, high = sum(e[0] for e in ends), sum(e[1] for e in ends)
    if guarded:
        return tuple(coefs), g.pick([-1, 0, 1, 2]) - (low if g.chance(0.5) else 0)
    return (tuple(coefs), -low + g.below(n - high + low)) if high - low < n else None


def _affine(g: Generator) -> None:
    """Sums of products whose subscripts are affine in indices of the result and of the sum."""
    fitting = [k for k, s in enumerate(g.shapes) if s and all(isinstance(e, int) and e for e in s)]
    if not fitting:
        return
    kept, summed = 1 + g.below(2), g.below(3)
    ranges = [1 + g.below(3) for _ in range(kept + summed)]
    if g.chance(0.05):
        ranges[g.below(kept)] = 0
    factors, places = [], []
    for _ in range(1 + g.below(2)):
        k = g.pick(fitting)
        guarded = g.chance(0.3)
        subscripts = [_subscript(g, ranges, g.size(e), guarded) for e in g.shapes[k]]
        if any(s is None for s in subscripts):
            return
        places.append(k)
        factors.append((guarded, tuple(subscripts)))
    order = g.pick(["", "<=", "<"]) if len(ranges) > 1 else ""
    g.emit(
        "affine", places, ranges[:kept], ranges=tuple(ranges), kept=kept,
        factors=tuple(factors), order=order,
    )  # fmt: skip


def _place(subscript: Affine, indices: Sequence[Any]) -> Any:
    coefs, more = subscript
    terms = [coef * i for coef, i in zip(coefs, indices, strict=True) if coef]
    return sum(terms[1:], start=terms[0]) + more


def _build_affine(
    c: Context, args: Sequence[Any], ranges: Any, kept: int, factors: Any, order: str
) -> Any:
    xp = c.xp

    def entry(indices: tuple[Any, ...]) -> Any:
        found: Any = 1.0
        for a, (guarded, subscripts) in zip(args, factors, strict=True):
            places = [_place(s, indices) for s in subscripts]
            value = a[tuple(places)]
            if guarded:
                for place, n in zip(places, a.shape, strict=True):
                    value = xp.where((place >= 0) & (place < n), value, 0)
            found = found * value
        if order:
            i, j = indices[0], indices[-1]
            found = xp.where(i <= j if order == "<=" else i < j, found, 0)
        return found

    def level(indices: tuple[Any, ...]) -> Any:
        depth = len(indices)
        if depth == len(ranges):
            return entry(indices)
        built = xp.build(ranges[depth], lambda i: level((*indices, i)))
        return built if depth < kept else xp.sum(built, axis=0)

    return level(())


def _affine_jets(
    c: Context, args: Sequence[Jet], ranges: Any, kept: int, factors: Any, order: str
) -> Jet:
    zero = jets.constant(np.zeros(ranges[:kept]), c.total)
    found = Jet(zero.v.copy(), zero.g.copy(), zero.h.copy())
    for indices in itertools.product(*map(range, ranges)):
        i, j = indices[0], indices[-1]
        if order and not (i <= j if order == "<=" else i < j):
            continue
        value = jets.constant(1.0, c.total)
        for a, (_, subscripts) in zip(args, factors, strict=True):
            places = tuple([int(_place(s, indices)) for s in subscripts])
            inside = all(0 <= p < n for p, n in zip(places, a.v.shape, strict=True))
            value = value * (a[places] if inside else 0.0)
        for name in "vgh":
            getattr(found, name)[indices[:kept]] += getattr(value, name)
    return found


# --- moves of entries -----------------------------------------------------------------------------


def _moved(a: np.ndarray, name: str, number: int) -> np.ndarray:
    """By name, what happens to the leading axes of an array with any trailing axes."""
    if name == "pad":
        return np.pad(a, [(number, 1), *[(0, 0)] * (a.ndim - 1)])
    if name == "diff":
        return np.diff(a, axis=0)
    if name == "repeat":
        return np.repeat(a, number, axis=0)
    if name == "tile":
        return np.concatenate([a] * number) if number else a[:0]
    if name == "flip":
        return np.flip(a, 0)
    if name == "ravel":
        return a.reshape(a.shape[0] * a.shape[1], *a.shape[2:])
    mask = {"tril": np.tril, "triu": np.triu}[name](np.ones(a.shape[:2]), number)
    return a * mask.reshape(*mask.shape, *(1,) * (a.ndim - 2))


def _move(g: Generator) -> None:
    k = g.value()
    shape = g.shapes[k]
    names = {1: ["pad", "diff", "repeat", "tile", "flip"], 2: ["ravel", "tril", "triu", "flip"]}
    name = g.pick(names.get(len(shape), [""]))
    number = 1 + g.below(2)
    if not name or (name in ("pad", "repeat", "tile", "ravel") and not _plain(shape)):
        return
    if name == "diff" and not (isinstance(shape[0], int) and shape[0]):
        return
    first = {
        "pad": lambda n: n + number + 1,
        "diff": lambda n: n - 1,
        "repeat": lambda n: n * number,
        "tile": lambda n: n * number,
    }.get(name, lambda n: n)
    after = (shape[0] * shape[1],) if name == "ravel" else (first(shape[0]), *shape[1:])  # type: ignore[operator]
    if all(isinstance(e, str) or e <= 6 for e in after):
        g.emit("move", [k], after, name=name, number=number)


def _plain(shape: Sequence[Extent]) -> bool:
    return all(isinstance(e, int) for e in shape)


def _build_move(c: Context, args: Sequence[Any], name: str, number: int) -> Any:
    a = args[0]
    if name == "pad":
        return c.xp.pad(a, (number, 1))
    if name in ("diff", "ravel"):
        return getattr(c.xp, name)(a)
    if name == "flip":
        return c.xp.flip(a, 0)
    return getattr(c.xp, name)(a, number)


# --- integers that are variables ------------------------------------------------------------------


def _integers(g: Generator, extent: Extent, below: int) -> str:
    """A variable of integers below a number."""
    data = [g.below(below) for _ in range(g.size(extent))]
    name = f"r{len(g.program.integers)}"
    g.program.integers[name] = (extent, data)
    return name


def _pick(g: Generator) -> None:
    k = g.value()
    shape = g.shapes[k]
    if shape and g.size(shape[0]):
        extent = g.pick(g.kinds)
        name = _integers(g, extent, g.size(shape[0]))
        g.emit("pick", [k], (extent, *shape[1:]), name=name)


def _segments(g: Generator) -> None:
    k = g.value()
    shape = g.shapes[k]
    extent = g.pick(g.kinds)
    if shape and g.size(extent):
        name = _integers(g, shape[0], g.size(extent))
        g.emit("segments", [k], (extent, *shape[1:]), name=name, extent=extent)


def _added(a: np.ndarray, rows: Sequence[int], n: int) -> np.ndarray:
    found = np.zeros((n, *a.shape[1:]))
    np.add.at(found, np.array(rows, dtype=int), a)
    return found


INDICES: dict[str, Operation] = {
    "affine": Operation(_affine, _build_affine, _affine_jets, 5),
    "move": Operation(
        _move, _build_move, lambda c, args, **more: args[0].map(lambda a: _moved(a, **more)), 2
    ),
    "pick": Operation(
        _pick, lambda c, args, name: args[0][c.integers[name]],
        lambda c, args, name: args[0][np.array(c.integers[name], dtype=int)],
    ),
    "segments": Operation(
        _segments,
        lambda c, args, name, extent: c.xp.segment_sum(args[0], c.integers[name], c.extent(extent)),
        lambda c, args, name, extent: args[0].map(
            lambda a: _added(a, c.integers[name], int(c.extent(extent)))
        ),
    ),
}  # fmt: skip
