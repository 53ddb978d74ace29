"""Nested products as one, where nobody else reads the inner one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .expr import Einsum, Expr
from .extents import Coef, Extent
from .paths import EXACT_OPERANDS
from .steps import Word


class Flat(NamedTuple):
    """A product with the contractions opened that nobody else reads."""

    operands: Sequence[tuple[Expr, Word]]
    extents: Mapping[int, Extent]
    coef: Coef


def flat(e: Einsum) -> Flat:
    return Flat(list(zip(e.args, e.labels, strict=True)), dict(enumerate(e.extents)), e.coef)


def nested(e: Einsum, uses: Mapping[int, int]) -> bool:
    return any(isinstance(arg, Einsum) and uses[id(arg)] == 1 for arg in e.args)


def flatten(e: Einsum, uses: Mapping[int, int]) -> tuple[Flat, list[Expr]]:
    """Nested products as one, so that the contraction path is chosen over all their operands."""
    extents: dict[int, Extent] = dict(enumerate(e.extents))
    coef, room = e.coef, EXACT_OPERANDS - len(e.args)
    stack = list(zip(e.args, e.labels, strict=True))[::-1]
    operands: list[tuple[Expr, Word]] = []
    opened: list[Expr] = []
    while stack:
        arg, word = stack.pop()
        if (
            not isinstance(arg, Einsum)
            or uses[id(arg)] > 1
            or len(arg.args) - 1 > room
            or len(set(arg.out)) < len(arg.out)
        ):
            operands.append((arg, word))
            continue
        room -= len(arg.args) - 1
        opened.append(arg)
        coef = coef.by(arg.coef)
        local = dict(zip(arg.out, word, strict=True))
        for label, extent in enumerate(arg.extents):
            if label not in local:
                local[label] = len(extents)
                extents[len(extents)] = extent
        stack += [
            (inner, tuple([local[label] for label in labels]))
            for inner, labels in zip(arg.args[::-1], arg.labels[::-1], strict=True)
        ]
    return Flat(operands, extents, coef), opened
