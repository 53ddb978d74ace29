"""Stacks of products of matrices in CUDA: one call of cuBLAS for all of them."""

from __future__ import annotations

from collections.abc import Sequence

from .c_contractions import merged
from .c_nests import Call
from .c_values import Value, transposed
from .c_writer import Writer

Labels = Sequence[int]


def by_batches(
    language: Writer, values: Sequence[Value], words: Sequence[Labels], out: Labels
) -> Value | None:
    """A contraction of two arrays that is a product of matrices for each of its first axes."""
    if len(values) != 2 or language.integers:
        return None
    stack = [k for k in out if k in words[0] and k in words[1]]
    if not stack or len(stack) == len(out):
        return None
    if out[len(stack)] in words[1]:
        values, words = values[::-1], words[::-1]
    p, q = words
    left, right = ([k for k in out if k in w and k not in stack] for w in (p, q))
    summed = [k for k in p if k in q and k not in out]
    orders = [*stack, *left, *summed], [*stack, *summed, *right]
    whole = all(sorted(w) == sorted(o) for w, o in zip(words, orders, strict=True))
    if not (whole and left and right and summed) or [*stack, *left, *right] != list(out):
        return None
    groups = (stack, left, summed), (stack, summed, right)
    found = [_strided(language, v, w, g) for v, w, g in zip(values, words, groups, strict=True)]
    (first, a), (other, b) = found
    if any(m != n for m, n in ((first[0], other[0]), (first[2], other[1]))):
        return None
    extents = [
        v.shape[w.index(k)] for k in out for v, w in [(values[k not in p], words[k not in p])]
    ]
    array, result = language.storage(tuple(extents))
    sizes = f"{first[0]}, {first[1]}, {other[2]}, {first[2]}"
    call = f"batched_product({sizes}, {a}, {b}, {array.name})"
    language.emit(Call(call, (array.name,)), made=[array])
    return result


def _strided(
    language: Writer, v: Value, word: Labels, groups: Sequence[Labels]
) -> tuple[list[str], str]:
    """The extents of groups of axes, each as one, and where they lie: copied where they do not."""
    order = [word.index(k) for group in groups for k in group]
    sizes = [len(group) for group in groups]
    places = [order[sum(sizes[:k]) : sum(sizes[: k + 1])] for k in range(3)]
    if v.memory is not None:
        axes = [merged(v, group) for group in places]
        steps = [step for _, step in filter(None, axes)]
        if len(steps) == 3 and "1" in steps[1:] and "0" not in steps[1:]:
            extents = [extent for extent, _ in filter(None, axes)]
            return extents, f"{v.memory.pointer}, {', '.join(steps)}"
    turned = transposed(v, order)
    copied = language.filled(turned.shape, turned, rows=True)
    return _strided(language, copied, range(len(order)), _grouped(sizes))


def _grouped(sizes: Sequence[int]) -> list[list[int]]:
    """Axes in order, in groups of these sizes."""
    return [list(range(sum(sizes[:k]), sum(sizes[: k + 1]))) for k in range(len(sizes))]
