"""Methods for blocks over several variables: which are eliminated, and which of them jointly.

Variables that are tied along common axes (an item's weights and its bias) are one block diagonal
matrix with larger blocks. Groups that are not coupled are eliminated at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ...support.byte_counts import show_bytes
from ...support.errors import LinAlgError, MemoryLimitError
from ...support.namespaces import NUMPY
from ...support.records import NamedTuple
from .base import BlockRows, Unsuitable
from .block_rows import (
    VariableIndices,
    entry_count,
    is_sparse,
    namespace_of_rows,
    variable_sizes,
)
from .choose import solve_methods
from .joint import JointBlocks, TiedVariables, tied_variables
from .schur import (
    BlockSolveMethod,
    BlockSolver,
    DenseBlocks,
    Independent,
    MakeBlockSolver,
    Schur,
    SingleVariable,
)


class EliminationGroup(NamedTuple):
    """Variables that are eliminated as one: alone, or tied along common axes."""

    places: tuple[int, ...]
    tie: TiedVariables | None
    flops: float
    bytes: float
    text: str

    def build(self, limit: int | None) -> MakeBlockSolver:
        """What makes the solver of the group's blocks."""
        return (
            partial(SingleVariable, limit=limit)
            if self.tie is None
            else partial(JointBlocks, axes=self.tie.axes)
        )


def elimination_groups(rows: BlockRows, itemsize: int) -> list[EliminationGroup]:
    """What may be eliminated: every variable alone, and variables that are tied."""
    found = []
    for k in range(len(rows)):
        best = solve_methods(rows[k][k].layout, itemsize)[0]
        found.append(EliminationGroup((k,), None, best.flops, best.bytes, best.text))
    for tie in tied_variables(rows):
        b, n = tie.sizes(rows)
        count = sum([entry_count(rows[i][j].layout) for i in tie.places for j in tie.places])
        text = f"block diagonal together: {b} blocks of {n} x {n}, Cholesky"
        flops = b * (n**3 / 3 + 2.0 * n * n) + 2.0 * count
        found.append(EliminationGroup(tie.places, tie, flops, 2.0 * b * n * n * itemsize, text))
    return found


def coupled_variables(rows: BlockRows) -> list[list[int]]:
    """The connected components of variables, where blocks with terms are edges."""
    groups: list[list[int]] = []
    for k in range(len(rows)):
        near = [g for g in groups if any(rows[k][j].layout.terms for j in g)]
        groups = [g for g in groups if g not in near]
        groups.append(sorted([k, *(j for g in near for j in g)]))
    return sorted(groups)


def block_solve_methods(
    rows: BlockRows, names: Sequence[str], limit: int | None
) -> list[BlockSolveMethod]:
    """All methods, by predicted operations."""
    groups = coupled_variables(rows)
    if len(groups) > 1:
        return [_independent_groups(rows, groups, names, limit)]
    if len(rows) == 1:
        best = solve_methods(rows[0][0].layout, rows[0][0].dtype.itemsize)[0]
        return [BlockSolveMethod(best.text, best.flops, 0.0, partial(SingleVariable, limit=limit))]
    total = sum(variable_sizes(rows))
    itemsize = max([t.dtype.itemsize for row in rows for t in row])
    dense = f"dense: one {total} x {total} matrix, Cholesky (LDL^T where that fails)"
    found = [BlockSolveMethod(dense, total**3 / 3, 2.0 * total**2 * itemsize, DenseBlocks)]
    options = sorted(elimination_groups(rows, itemsize), key=lambda group: group.flops)
    tried = set()
    for first in options:
        gone = [first]
        for more in options:
            if _is_uncoupled(rows, gone, more) and (
                _cost(rows, [*gone, more], itemsize) < _cost(rows, gone, itemsize)
            ):
                gone.append(more)
        gone.sort(key=lambda group: group.places)
        key = tuple([group.places for group in gone])
        if key not in tried:
            tried.add(key)
            found.append(_eliminating(rows, gone, names, limit, itemsize))
    return sorted(found, key=lambda method: method.flops)


def _independent_groups(
    rows: BlockRows, groups: Sequence[VariableIndices], names: Sequence[str], limit: int | None
) -> BlockSolveMethod:
    """A method for each component of variables."""

    def build(part: BlockRows, group: VariableIndices) -> BlockSolver:
        return factor_blocks(part, [names[k] for k in group], limit)[0]

    builds = [partial(build, group=group) for group in groups]
    text = f"{len(groups)} groups of variables that no block couples, each alone"
    return BlockSolveMethod(text, 0.0, 0.0, partial(Independent, groups=groups, builds=builds))


def _is_uncoupled(
    rows: BlockRows, gone: Sequence[EliminationGroup], more: EliminationGroup
) -> bool:
    """Whether a group shares no variable with other groups and no block couples it to them."""
    return not any(
        i == j or rows[i][j].layout.terms for g in gone for i in g.places for j in more.places
    )


def _cost(rows: BlockRows, gone: Sequence[EliminationGroup], itemsize: int) -> tuple[float, float]:
    """Operations and bytes of eliminating groups."""
    counts = variable_sizes(rows)
    out = [k for group in gone for k in group.places]
    left = [k for k in range(len(rows)) if k not in out]
    count, rest = sum([counts[k] for k in out]), sum([counts[k] for k in left])
    cross = [rows[i][j] for i in out for j in left]
    sparse = namespace_of_rows(rows) is NUMPY and all(is_sparse(t) for t in cross)
    held = sum([entry_count(t.layout) for t in cross]) if sparse else count * rest
    flops = sum([group.flops for group in gone]) + 2.0 * held * held / max(1, count) + rest**3 / 3
    bytes_ = sum([group.bytes for group in gone]) + itemsize * (3.0 * held + 3.0 * rest * rest)
    return flops, bytes_


def _eliminating(
    rows: BlockRows,
    gone: Sequence[EliminationGroup],
    names: Sequence[str],
    limit: int | None,
    itemsize: int,
) -> BlockSolveMethod:
    flops, bytes_ = _cost(rows, gone, itemsize)
    groups = [group.places for group in gone]
    builds = [group.build(limit) for group in gone]
    if sum(map(len, groups)) == len(rows):  # coupled variables are then in one group
        return BlockSolveMethod(gone[0].text, flops, bytes_, builds[0])
    out = ", ".join(names[k] for group in groups for k in group)
    rest = sum(variable_sizes(rows)) - sum(
        [variable_sizes(rows)[k] for group in groups for k in group]
    )
    text = (
        f"Schur complement: {out} eliminated by [{'; '.join(group.text for group in gone)}], "
        f"{rest} x {rest} dense left"
    )
    return BlockSolveMethod(
        text, flops, bytes_,
        partial(Schur, groups=groups, builds=builds, names=out, limit=limit),
    )  # fmt: skip


def factor_blocks(
    rows: BlockRows, names: Sequence[str], limit: int | None
) -> tuple[BlockSolver, str]:
    """The solver of the cheapest method that fits the memory and suits the numbers."""
    singular: LinAlgError | None = None
    found = block_solve_methods(rows, names, limit)
    for method in found:
        if limit is not None and method.bytes > limit:
            continue
        try:
            return method.build(rows), method.text
        except Unsuitable:
            continue
        except LinAlgError as error:
            singular = error
    if singular is not None:
        raise singular
    n = sum(variable_sizes(rows))
    raise MemoryLimitError(
        f"no structure of these {len(rows)} x {len(rows)} blocks helps to solve: a dense {n} x {n} "
        f"matrix and its factor take {show_bytes(2.0 * n * n * 8)}, {show_bytes(limit or 0)} "
        "allowed; scipy.sparse.linalg.cg(Hs.to_scipy(), g) solves with products alone"
    )


def first_block_method(rows: BlockRows, names: Sequence[str], limit: int | None) -> str:
    """The description of the method that `factor_blocks` tries first."""
    for method in block_solve_methods(rows, names, limit):
        if limit is None or method.bytes <= limit:
            return method.text
    return "does not fit the memory; to_scipy() serves iterative solvers"
