"""Lifetimes to memory: which slots share a block of the workspace, and the peak of a call."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from .steps import BUFFER, IN_PLACE, RESULT, VIEW, Builder, Output, Step

_ALIGN = 64


class Memory(NamedTuple):
    """Homes of slots: block k of the workspace as k, output k as -1 - k, None elsewhere."""

    home: list[int | None]
    blocks: tuple[int, ...]
    last_use: dict[int, int]
    peak_bytes: int


def lifetimes(b: Builder, outputs: Sequence[Output]) -> dict[int, int]:
    """The last step that reads each slot's memory, by owner of the memory."""
    end = len(b.steps)
    last = {b.owner[o.slot]: end for o in outputs}
    for index in range(end - 1, -1, -1):
        step = b.steps[index]
        # A kernel may return an operand's memory, which must then live as long as the result.
        until = last.setdefault(b.owner[step.out], index)
        until = until if b.origin[step.out] is RESULT else index
        for slot in step.args:
            owner = b.owner[slot]
            last[owner] = max(last.get(owner, index), until)
    return last


def _overwritten(b: Builder, step: Step, index: int, last: dict[int, int]) -> int | None:
    """The owner of an operand that this step may overwrite with its result."""
    if step.kind not in IN_PLACE:
        return None
    owners = [b.owner[slot] for slot in step.args]
    candidates = step.args[:1] if step.kind == "embed_add" else step.args
    for slot, owner in zip(candidates, owners, strict=False):
        if (
            b.origin[slot] is BUFFER
            and last[owner] == index
            and owner not in b.fixed
            and b.shapes[slot] == step.shape
            and all(other == slot for other, o in zip(step.args, owners, strict=True) if o == owner)
        ):
            return owner
    return None


def assign(b: Builder, outputs: Sequence[Output], itemsize: int) -> Memory:
    """Blocks for all buffers; a block is free again after the last use of what it holds."""
    last = lifetimes(b, outputs)
    group: dict[int, int] = {}
    until: dict[int, int] = {}
    for index, step in enumerate(b.steps):
        if b.origin[step.out] is BUFFER and step.out not in b.fixed:
            over = _overwritten(b, step, index, last)
            group[step.out] = step.out if over is None else group[over]
            until[group[step.out]] = last[step.out]
    place: dict[int, int] = {}
    for number, output in enumerate(outputs):
        owner = b.owner[output.slot]
        if owner in group:
            place[group[owner]] = -1 - number
    blocks = _blocks(b, group, until, place, itemsize)
    home: list[int | None] = [None] * len(b.shapes)
    for slot, owner in enumerate(b.owner):
        if owner in group and b.origin[slot] is BUFFER:
            home[slot] = place[group[owner]]
    written = [o.slot for o in outputs if b.origin[o.slot] is BUFFER]
    once = [step.out for step in b.steps if step.out in b.fixed and b.origin[step.out] is not VIEW]
    held = sum([prod(b.shapes[slot]) for slot in written + once]) * itemsize
    return Memory(home, blocks, last, sum(blocks) + held + _kernel_peak(b, last, itemsize))


def _blocks(
    b: Builder, group: dict[int, int], until: dict[int, int], place: dict[int, int], itemsize: int
) -> tuple[int, ...]:
    """Best fit, else the largest free block grows, else a new one."""
    blocks: list[int] = []
    free: list[tuple[int, int]] = []
    ends: dict[int, list[int]] = {}
    for index, step in enumerate(b.steps):
        head = group.get(step.out)
        if head == step.out and head not in place:
            need = -(-prod(step.shape) * itemsize // _ALIGN) * _ALIGN
            at = bisect_left(free, (need, -1))
            if free:
                _, block = free.pop(min(at, len(free) - 1))
                blocks[block] = max(blocks[block], need)
            else:
                block = len(blocks)
                blocks.append(need)
            place[head] = block
            ends.setdefault(until[head], []).append(block)
        for block in ends.pop(index, ()):
            insort(free, (blocks[block], block))
    return tuple(blocks)


def _kernel_peak(b: Builder, last: dict[int, int], itemsize: int) -> int:
    """Peak of the arrays that kernels allocate themselves."""
    live = peak = 0
    ends: dict[int, int] = {}
    for index, step in enumerate(b.steps):
        if b.origin[step.out] is RESULT and step.out not in b.fixed:
            size = prod(step.shape) * itemsize
            live += size
            ends[last[step.out]] = ends.get(last[step.out], 0) + size
        peak = max(peak, live)
        live -= ends.pop(index, 0)
    return peak
