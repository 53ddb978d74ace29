"""Chains of operands, each of which shares labels with the one before it and the one behind.

Their exact order takes n^3 steps, where that over all trees takes 3^n; a matrix chain ends in
matrices or in vectors, or closes to a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from ..graph.nodes import Labels
from ..support.machine import Machine
from ..support.records import NamedTuple

#: Where the product of the operands from one number to another is split.
Split = Callable[[int, int], int]

#: Operands up to which orders of chains are exact (a second or less).
EXACT_CHAIN = 1000


class Chain(NamedTuple):
    """Operands in the order of the chain, and the extents between them, those of the ends included.

    One more extent than operands: what is kept at both ends, 1 at the end of a vector. A trace is
    cut where its extent is least.
    """

    order: list[int]
    extents: list[float]


def is_chain(words: Sequence[Labels], keep: Labels) -> bool:
    """Are operands with these labels a chain?"""
    ones = dict.fromkeys([label for word in words for label in word], 1)
    return len(words) > 2 and chain_of(words, keep, ones) is not None


def chain_of(
    words: Sequence[Labels], keep: Labels, extents: Sequence[int] | Mapping[int, int]
) -> Chain | None:
    """The operands as a chain; None where they are none."""
    holders: dict[int, list[int]] = {}
    for k, word in enumerate(words):
        for label in set(word):
            holders.setdefault(label, []).append(k)
    outside = set(keep)
    bonds: list[dict[int, float]] = [{} for _ in words]
    for label, held in holders.items():
        if len(held) > 2 or (len(held) == 2 and label in outside):
            return None
        if len(held) == 2:
            one, two = held
            for mine, other in ((one, two), (two, one)):
                bonds[mine][other] = bonds[mine].get(other, 1.0) * extents[label]
    ends = [k for k, near in enumerate(bonds) if len(near) < 2]
    if any(len(near) > 2 for near in bonds) or len(ends) not in (0, 2):
        return None
    cut = 1.0
    if not ends:
        between = {(k, other): n for k, near in enumerate(bonds) for other, n in near.items()}
        least = min(between, key=lambda pair: between[pair])
        ends = list(least)
        cut = bonds[ends[0]].pop(ends[1])
        del bonds[ends[1]][ends[0]]
    order = [ends[0]]
    while ahead := [k for k in bonds[order[-1]] if k not in order[-2:]]:
        order.append(ahead[0])
    if len(order) < len(words) or any(outside.intersection(words[k]) for k in order[1:-1]):
        return None
    first, last = (cut * prod([extents[i] for i in words[k] if i in outside]) for k in ends)
    inner = [bonds[one][two] for one, two in pairwise(order)]
    return Chain(order, [first, *inner, last])


def chain_pairs(chain: Chain, machine: Machine) -> list[tuple[int, int]]:
    """The products of a chain in their order, each product appended to the list of operands.

    The fastest order of up to `EXACT_CHAIN` operands; of more, one with at most 15.5 % more
    multiplications than the least.
    """
    n = len(chain.order)
    middle = _fastest(chain.extents, machine) if n <= EXACT_CHAIN else _near_least(chain.extents)
    made = {(k, k + 1): operand for k, operand in enumerate(chain.order)}
    pairs: list[tuple[int, int]] = []
    waiting = [(0, n)]
    while waiting:
        low, high = waiting[-1]
        split = middle(low, high)
        missing = [part for part in ((low, split), (split, high)) if part not in made]
        if missing:
            waiting += missing
            continue
        waiting.pop()
        pairs.append((made[low, split], made[split, high]))
        made[low, high] = n + len(pairs) - 1
    return pairs


def _fastest(extents: Sequence[float], machine: Machine) -> Split:
    """Dynamic programming over intervals of the chain, all of one length at a time."""
    p = np.array(extents)
    n = len(p) - 1
    # Making an interval and reading it, by its start or its end, and its length.
    from_start, to_end = np.zeros((n, n + 1)), np.zeros((n + 1, n + 1))
    from_start[:, 1] = to_end[1:, 1] = machine.read * p[:-1] * p[1:]
    split = np.zeros((n, n + 1), np.int32)
    for length in range(2, n + 1):
        count = n - length + 1
        ends = p[:count] * p[length:]
        inner = sliding_window_view(p, length - 1)[1 : count + 1]
        times = inner * (ends / machine.gemm)[:, None]
        times += from_start[:count, 1:length]
        times += to_end[length:, length - 1 : 0 : -1]
        split[:count, length] = best = times.argmin(axis=1)
        least = times[np.arange(count), best] + ends * (machine.write + machine.read)
        from_start[:count, length] = to_end[length:, length] = least
    return lambda low, high: low + 1 + int(split[low, high - low])


def _near_least(extents: Sequence[float]) -> Split:
    """Corners of the polygon cut off, and the rest as a fan from the least extent.

    Chin 1978; the bound is that of Hu & Shing 1981. A triangle a < b < c says where the product of
    the operands from a to c is split.
    """
    n = len(extents)
    least = min(range(n), key=extents.__getitem__)
    over = [1 / max(extent, 1e-9) for extent in extents]
    triangles: list[tuple[int, int, int]] = []
    stack = [least]
    for k in (*range(least + 1, n), *range(least), least):
        while len(stack) > 2 and over[stack[-1]] + over[least] < over[stack[-2]] + over[k]:
            corner = stack.pop()
            triangles.append((stack[-1], corner, k))
        stack.append(k)
    triangles += [(least, one, two) for one, two in pairwise(stack[1:-1])]
    ordered = map(sorted, triangles)
    found = {(low, high): split for low, split, high in ordered}
    return lambda low, high: found[low, high]
