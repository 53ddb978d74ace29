"""Kinds with an entry of the result for every entry of the broadcast operands, but operators."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from ...support.arrays import AnyArray, Sizes
from . import tiles
from .kind import Kind, Params, Result, broadcast, given, kept, one_each

Reference = Callable[..., AnyArray]


def _copy(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    return xp.asarray(xp.broadcast_to(a, result.shape), result.dtype)


def _fill(xp: Any, result: Result, params: Params) -> AnyArray:
    return xp.full(result.shape, params[0], result.dtype)


def _scratch(xp: Any, result: Result, params: Params) -> AnyArray:
    return xp.zeros(result.shape, result.dtype)


def _triangle(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    side, number = params
    apart = xp.tril(a, -1) if side == "lower" else xp.triu(a, 1)
    return xp.where(xp.eye(a.shape[-1], dtype=bool), number * a, apart)


def _powers(xp: Any, result: Result, params: Params, a: AnyArray) -> AnyArray:
    first, apart = params
    exponents = [first + apart * k for k in range(result.shape[-1])]
    return xp.asarray(xp.power(a[..., None], xp.asarray(exponents)), result.dtype)


def _on_diagonal(shape: Sizes, params: Params, *shapes: Sizes) -> float:
    return prod(shape[:-1])


def _numbered(compute: Callable[[float, AnyArray], AnyArray]) -> Reference:
    """The reference of a kind with one operand and a number."""
    return lambda xp, result, params, a: compute(params[0], a)


def _binary(compute: Callable[[AnyArray, AnyArray], AnyArray]) -> Reference:
    """The reference of a kind with two operands."""
    return lambda xp, result, params, a, b: compute(a, b)


def _quick(name: str, number: str, reference: Reference) -> Kind:
    """One operation an entry, with a number or with another array."""
    return Kind(
        name=name,
        params={"number": number} if number else {},
        shape=kept if number else broadcast,
        flops=one_each,
        tiles=tiles.entrywise,
        in_place="any",
        quick=True,
        reference=reference,
    )


ENTRYWISE: Sequence[Kind] = [
    Kind(name="copy", shape=given, reference=_copy, tiles=tiles.entrywise),
    Kind(
        name="fill",
        params={"number": "every entry", "output": "whose array this is: no two share one"},
        shape=given, reference=_fill, cheap=True,
    ),
    Kind(name="scratch", shape=given, reference=_scratch, cheap=True),
    Kind(
        name="triangle",
        params={"side": 'of the diagonal that stays, "lower" or "upper"; the other one is zero',
                "number": "that the diagonal is multiplied by"},
        shape=kept, flops=_on_diagonal, reference=_triangle, in_place="first",
    ),
    Kind(
        name="powers",
        params={"first": "exponent", "apart": "from one exponent to the next: none is negative"},
        shape=given, flops=one_each, reference=_powers, tiles=tiles.behind,
    ),
    _quick("scale", "the factor", _numbered(operator.mul)),
    _quick("shift", "what is added", _numbered(operator.add)),
    _quick("minus_from", "what the operand is subtracted from", _numbered(operator.sub)),
    _quick("multiply", "", _binary(operator.mul)),
    _quick("add", "", _binary(operator.add)),
    _quick("subtract", "", _binary(operator.sub)),
]  # fmt: skip
