"""What is known of slots besides their shapes, so that others need not make them."""

from __future__ import annotations

from ..support.records import NamedTuple


class Inverse(NamedTuple):
    """What a slot is the inverse of: products with it are solves.

    `matrix` is the slot of a triangle ("lower"), of a Cholesky factor ("positive"), or of a matrix
    or its factors ("general", `factored`); `name` is that of the row, for errors.
    """

    kind: str
    matrix: int
    factored: bool
    name: str


class OuterSum(NamedTuple):
    """What a slot is the sum of: of each operand its sign, slot, and the sum's axes that it has."""

    parts: tuple[tuple[int, int, tuple[int, ...]], ...]


class Placement(NamedTuple):
    """Where the entries of an array stand in a larger one: affine places on each of its axes.

    `counts` are the extents of the array, `forms` a number and a coefficient for every axis of it.
    """

    counts: tuple[int, ...]
    forms: tuple[tuple[int, tuple[int, ...]], ...]
