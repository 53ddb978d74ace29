"""The ways to solve blocks over several variables: which are eliminated, and together with which.

Variables that are tied along common axes (an item's weights and its bias) are one block diagonal
matrix with larger blocks. Groups that nothing couples are eliminated at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from ...support.byte_counts import show_bytes
from ...support.errors import LinAlgError, MemoryLimitError
from .base import Unsuitable
from .choose import ways
from .joint import Joint, Tie, ties
from .schur import (
    Alone,
    BlockSolver,
    BlockWay,
    Build,
    DenseBlocks,
    Independent,
    Places,
    Rows,
    Schur,
    entries,
    few,
    sizes,
)


class Group(NamedTuple):
    """Variables that are eliminated as one: alone, or tied along common axes."""

    places: tuple[int, ...]
    tie: Tie | None
    flops: float
    bytes: float
    text: str

    def build(self, limit: int | None) -> Build:
        """What makes the solver of the group's blocks."""
        return (
            partial(Alone, limit=limit) if self.tie is None else partial(Joint, axes=self.tie.axes)
        )


def joined(rows: Rows, itemsize: int) -> list[Group]:
    """Every variable alone, and those that are tied to others."""
    found = []
    for k in range(len(rows)):
        best = ways(rows[k][k].layout, itemsize)[0]
        found.append(Group((k,), None, best.flops, best.bytes, best.text))
    for tie in ties(rows):
        b, n = tie.sizes(rows)
        count = sum([entries(rows[i][j]) for i in tie.places for j in tie.places])
        text = f"block diagonal together: {b} blocks of {n} x {n}, Cholesky"
        flops = b * (n**3 / 3 + 2.0 * n * n) + 2.0 * count
        found.append(Group(tie.places, tie, flops, 2.0 * b * n * n * itemsize, text))
    return found


def coupled(rows: Rows) -> list[list[int]]:
    """Groups of variables that blocks couple."""
    groups: list[list[int]] = []
    for k in range(len(rows)):
        near = [g for g in groups if any(rows[k][j].layout.terms for j in g)]
        groups = [g for g in groups if g not in near]
        groups.append(sorted([k, *(j for g in near for j in g)]))
    return sorted(groups)


def block_ways(rows: Rows, names: Sequence[str], limit: int | None) -> list[BlockWay]:
    """All ways, by predicted operations."""
    groups = coupled(rows)
    if len(groups) > 1:
        return [_apart(rows, groups, names, limit)]
    if len(rows) == 1:
        best = ways(rows[0][0].layout, rows[0][0].dtype.itemsize)[0]
        return [BlockWay(best.text, best.flops, 0.0, partial(Alone, limit=limit))]
    total = sum(sizes(rows))
    itemsize = max([t.dtype.itemsize for row in rows for t in row])
    dense = f"dense: one {total} x {total} matrix, Cholesky (LDL^T where that fails)"
    found = [BlockWay(dense, total**3 / 3, 2.0 * total**2 * itemsize, DenseBlocks)]
    options = sorted(joined(rows, itemsize), key=lambda group: group.flops)
    tried = set()
    for first in options:
        gone = [first]
        for more in options:
            if _apart_from(rows, gone, more) and (
                _cost(rows, [*gone, more], itemsize) < _cost(rows, gone, itemsize)
            ):
                gone.append(more)
        gone.sort(key=lambda group: group.places)
        key = tuple([group.places for group in gone])
        if key not in tried:
            tried.add(key)
            found.append(_eliminating(rows, gone, names, limit, itemsize))
    return sorted(found, key=lambda way: way.flops)


def _apart(
    rows: Rows, groups: Sequence[Places], names: Sequence[str], limit: int | None
) -> BlockWay:
    """Groups that no block couples, each its own way."""

    def build(part: Rows, group: Places) -> BlockSolver:
        return factor_blocks(part, [names[k] for k in group], limit)[0]

    builds = [partial(build, group=group) for group in groups]
    text = f"{len(groups)} groups of variables that no block couples, each alone"
    return BlockWay(text, 0.0, 0.0, partial(Independent, groups=groups, builds=builds))


def _apart_from(rows: Rows, gone: Sequence[Group], more: Group) -> bool:
    """Whether nothing couples a group to others, and it has no variable of theirs."""
    return not any(
        i == j or rows[i][j].layout.terms for g in gone for i in g.places for j in more.places
    )


def _cost(rows: Rows, gone: Sequence[Group], itemsize: int) -> tuple[float, float]:
    """Operations and bytes of eliminating groups."""
    counts = sizes(rows)
    out = [k for group in gone for k in group.places]
    left = [k for k in range(len(rows)) if k not in out]
    count, rest = sum([counts[k] for k in out]), sum([counts[k] for k in left])
    cross = [rows[i][j] for i in out for j in left]
    held = sum([entries(t) for t in cross]) if all(few(t) for t in cross) else count * rest
    flops = sum([group.flops for group in gone]) + 2.0 * held * held / max(1, count) + rest**3 / 3
    bytes_ = sum([group.bytes for group in gone]) + itemsize * (3.0 * held + 3.0 * rest * rest)
    return flops, bytes_


def _eliminating(
    rows: Rows, gone: Sequence[Group], names: Sequence[str], limit: int | None, itemsize: int
) -> BlockWay:
    flops, bytes_ = _cost(rows, gone, itemsize)
    groups = [group.places for group in gone]
    builds = [group.build(limit) for group in gone]
    if sum(map(len, groups)) == len(rows):  # coupled variables are then in one group
        return BlockWay(gone[0].text, flops, bytes_, builds[0])
    out = ", ".join(names[k] for group in groups for k in group)
    rest = sum(sizes(rows)) - sum([sizes(rows)[k] for group in groups for k in group])
    text = (
        f"Schur complement: {out} eliminated by [{'; '.join(group.text for group in gone)}], "
        f"{rest} x {rest} dense left"
    )
    return BlockWay(text, flops, bytes_, partial(Schur, groups=groups, builds=builds, names=out))


def factor_blocks(rows: Rows, names: Sequence[str], limit: int | None) -> tuple[BlockSolver, str]:
    """The blocks factored the cheapest way that fits the memory and the numbers."""
    singular: LinAlgError | None = None
    found = block_ways(rows, names, limit)
    for way in found:
        if limit is not None and way.bytes > limit:
            continue
        try:
            return way.build(rows), way.text
        except Unsuitable:
            continue
        except LinAlgError as error:
            singular = error
    if singular is not None:
        raise singular
    n = sum(sizes(rows))
    raise MemoryLimitError(
        f"no structure of these {len(rows)} x {len(rows)} blocks helps to solve: a dense {n} x {n} "
        f"matrix and its factor take {show_bytes(2.0 * n * n * 8)}, {show_bytes(limit or 0)} "
        "allowed; scipy.sparse.linalg.cg(Hs.to_scipy(), g) solves with products alone"
    )


def first_block_way(rows: Rows, names: Sequence[str], limit: int | None) -> str:
    """What `factor_blocks` tries first, in words."""
    for way in block_ways(rows, names, limit):
        if limit is None or way.bytes <= limit:
            return way.text
    return "does not fit the memory; to_scipy() serves iterative solvers"
