"""Data of the row models in dask's blocks, and what ran; importing it needs dask, or skips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests import row_models
from tests.row_models import OBJECTIVES

dask = pytest.importorskip("dask", reason="dask is not installed: pip install '.[test]'")
da = pytest.importorskip("dask.array", reason="dask is not installed: pip install '.[test]'")
ROWS = 60


class Tasks(dask.callbacks.Callback):  # type: ignore[misc]
    """The tasks that ran, by the first word of their keys."""

    def __init__(self) -> None:
        self.keys: list[Any] = []

    def _pretask(self, key: Any, graph: Any, state: Any) -> None:
        self.keys.append(key)

    def passes(self) -> list[Any]:
        """Tasks that read blocks."""
        return [k for k in self.keys if k[0].startswith("tcalc-pass")]


def in_blocks(e: tc.Expr, values: dict[str, Any], rows: int = 13) -> dict[str, Any]:
    """An expression's data, those whose first axis is that of the rows in small blocks."""
    found = {k: v for k, v in values.items() if k in [*e.variables, "g"]}
    for name, v in e.variables.items():
        if v.shape[:1] == ("m",):
            chunks = (rows,) + (2,) * (v.ndim - 1)
            found[name] = da.from_array(values[name], chunks)
    return found


def of_objective(
    name: str, rows: int = ROWS
) -> tuple[tc.Expr, str, dict[str, Any], dict[str, Any]]:
    """An objective, its unknown, where it starts, and data, with counts for y where it has them."""
    f, by = OBJECTIVES[name]
    values = row_models.data(rows=rows)
    values["y"] = np.abs(values["y"]).round() if name == "poisson" else np.sign(values["y"])
    known = {k: v for k, v in values.items() if k in f.variables and k != by}
    return f, by, {by: values[by]}, known
