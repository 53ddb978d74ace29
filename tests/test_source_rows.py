"""Every row of the library has source in every language."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import tcalc as tc
from tcalc.graph.applications import apply, apply_all
from tcalc.graph.operators import Op
from tcalc.languages.source.registry import LANGUAGES
from tcalc.ops.matrix.adjugate import adjugate_row
from tcalc.ops.matrix.divided_differences import Scalar, X
from tcalc.ops.matrix.functions import SCALARS, frechet_row
from tcalc.ops.matrix.spectral import spectral_row, trace_row
from tests.test_operators import APPLIED, ELEMENTWISE
from tests.test_source_tables import CONSTANTS, SELECTIONS

#: Languages and the rows that they refuse.
REFUSED: set[tuple[str, str]] = set()


def rows() -> Iterator[tuple[Op, tuple[Any, ...]]]:
    """Rows under all their parameters; of families the first members."""
    yield from [(row, ()) for row in ELEMENTWISE]
    yield from [*APPLIED, *CONSTANTS]
    for order in range(4):
        yield from [(frechet_row(name, order), ()) for name in SCALARS]
        yield adjugate_row(order), ()
        yield spectral_row(order), (Scalar(tc.exp(tc.sin(X)), order),)
    yield trace_row(), (Scalar(tc.exp(X)),)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_row_is_written(language: str) -> None:
    refused = set()
    for row, params in rows():
        operands = [tc.var(f"x{k}", (3,) * abs(c)) for k, c in enumerate(row.cores(params))]
        try:
            tc.to_code((apply_all if row.parts else apply)(row, *operands, params=params), language)
        except tc.UnsupportedError:
            refused.add((language, row.name))
    for row in SELECTIONS:
        g = tc.var("g", "n", integer=True)
        tc.to_code(tuple([apply(row, g, params=params) for params in row.admitted]), language)
    assert refused == {pair for pair in REFUSED if pair[0] == language}
