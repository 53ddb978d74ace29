"""In which order steps stand, within which runs of them become loops."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..builder import Builder
from ..kinds.table import KINDS
from ..steps import VIEW, Step


def is_large(b: Builder, step: Step) -> bool:
    """Does the step compute with an array that is worth a loop?"""
    if b.origin[step.out] is VIEW:
        return False
    return any(prod(b.shapes[slot]) >= b.machine.large for slot in (step.out, *step.args))


def delay_in_place(b: Builder) -> None:
    """Steps that may overwrite their operand wait until others have read it."""
    places = [k for k, step in enumerate(b.steps) if KINDS[step.kind].waits]
    for place in reversed(places):
        step = b.steps[place]
        operand, result = b.owner[step.args[0]], b.owner[step.out]
        for k in range(place + 1, len(b.steps)):
            owners = {b.owner[a] for a in b.steps[k].args}
            if result in owners:
                break
            if operand in owners:
                b.steps.insert(k, b.steps.pop(place))
                place = k


def hasten_integers(b: Builder) -> None:
    """Integers that are given, or made of such ones, are there before anything is computed.

    They say where entries are and cannot be made in a loop; between others they would end its era.
    """
    made = {step.out for step in b.steps}
    for step in b.steps:
        if KINDS[step.kind].integral and made.isdisjoint(step.args):
            made.remove(step.out)
    b.steps.sort(key=lambda step: step.out in made)


def hasten_reductions(b: Builder) -> None:
    """What makes something small of a large array runs once that is there, in its loop if it can.

    Later it might meet a loop of another era, and the array would be held until then.
    """
    place: dict[int, int] = {}
    hastened: set[int] = set()
    for k, step in enumerate(b.steps):
        place[step.out] = k
        if prod(step.shape) >= b.machine.large or KINDS[step.kind].waits:
            continue
        if is_large(b, step) or not hastened.isdisjoint(step.args):
            made = [place[slot] for a in step.args for slot in (a, b.owner[a]) if slot in place]
            if made and step.out not in b.fixed:
                place[step.out] = max(made)
                hastened.add(step.out)
    b.steps.sort(key=lambda step: place[step.out])


def beside_each_other(steps: Sequence[Step]) -> list[Step]:
    """Functions of one operand follow each other: compilers see what they have in common."""
    found: list[Step] = []
    last: dict[tuple[int, ...], Step] = {}
    for step in steps:
        place = len(found)
        if step.kind in ("ufunc", "kernel") and step.params[0].elementwise:
            if step.args in last:
                place = next(k for k, s in enumerate(found) if s is last[step.args]) + 1
            last[step.args] = step
        found.insert(place, step)
    return found
