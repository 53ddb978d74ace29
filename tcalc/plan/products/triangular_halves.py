"""Square matrix products of which one half is enough: symmetric ones, and those under a triangle.

The half is computed by panels of rows; a symmetric one is then copied to the other side.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod

from ..builder import Builder
from ..steps import Step


def halved(b: Builder, results: Collection[int]) -> None:
    """Note on products which half is wanted: "lower", "upper" or, with its mirror, "symmetric".

    And note whether an operand is a triangle whose zeros leave less to sum.
    """
    if "half" not in b.machine.forms:
        return
    candidates = [s for s in b.steps if s.kind == "dot" and _is_large(b, s) and not s.params]
    if not candidates:
        return
    triangles = _triangles(b)
    readers: dict[int, list[Step]] = {}
    for step in b.steps:
        for slot in set(step.args):
            readers.setdefault(b.owner[slot], []).append(step)
    for slot in results:
        readers.pop(b.owner[slot], None)
    halves = {s.out: _half(b, s, readers.get(s.out, []), triangles) for s in candidates}
    b.steps = [
        _by_half(b, s, half, triangles) if (half := halves.get(s.out)) else s for s in b.steps
    ]


def masked(b: Builder, results: Sequence[int]) -> None:
    """Products with constant triangles as one side of the matrix; no triangle is held for that."""
    masks: dict[int, tuple[str, float]] = {}
    found: list[Step] = []
    for step in b.steps:
        mask = step.params[0].meaning.mask if step.kind == "kernel" else None
        if mask is not None and step.shape[0] >= b.machine.half_rows:
            masks[step.out] = mask
        elif step.kind == "transpose" and step.args[0] in masks and step.params == (1, 0):
            side, number = masks[step.args[0]]
            masks[step.out] = "upper" if side == "lower" else "lower", number
        elif step.kind == "multiply" and (known := [a for a in step.args if a in masks]):
            rest = [a for a in step.args if a not in masks]
            if len(known) == 1 and b.shapes[rest[0]] == step.shape:
                word = step.words[-1]
                step = step._replace(
                    kind="triangle", args=(rest[0],), words=(word, word), params=masks[known[0]],
                    flops=float(prod(step.shape[:-1])),
                )  # fmt: skip
        found.append(step)
    if masks:
        b.steps = found
        b.drop_unused(results)


def _by_half(b: Builder, step: Step, half: str, triangles: dict[int, str]) -> Step:
    """The step with what panels need: which half, and whether a triangle's zeros shorten sums."""
    one, two = (triangles.get(slot) for slot in step.args)
    first, second = ("upper", "lower") if half == "upper" else ("lower", "upper")
    short = one == first or two == second
    fraction = b.machine.triangle if short else b.machine.half
    return step._replace(params=(half, short), flops=step.flops * fraction)


def _is_large(b: Builder, step: Step) -> bool:
    """Is it a large square product, and not of a matrix with itself, which is quick anyway?"""
    one, two = step.args
    square = len(step.shape) == 2 and step.shape[0] == step.shape[1] >= b.machine.half_rows
    return square and b.shapes[one][-1] >= b.machine.half_depth and b.owner[one] != b.owner[two]


def _triangles(b: Builder) -> dict[int, str]:
    """Slots of matrices that are triangular by how they are made, and their transposes."""
    found: dict[int, str] = {}
    several = {s.out for s in b.steps if s.kind == "kernels" and s.params[0].meaning.triangular}
    for step in b.steps:
        made = step.kind in ("kernel", "over") and step.params[0].meaning.triangular
        if made or (step.kind == "part" and step.args[0] in several and step.params[0] == 0):
            found[step.out] = "lower"
        elif step.kind == "transpose" and step.args[0] in found and step.params == (1, 0):
            found[step.out] = "lower" if found[step.args[0]] == "upper" else "upper"
    return found


def _half(b: Builder, step: Step, readers: list[Step], triangles: dict[int, str]) -> str | None:
    if (1, 0) in b.symmetries.get(step.out, ()):
        return "symmetric"
    masks = {triangles.get(slot) for reader in readers for slot in reader.args if slot != step.out}
    masked = all(r.kind == "multiply" and r.args.count(step.out) == 1 for r in readers)
    return masks.pop() if masked and len(masks) == 1 else None
