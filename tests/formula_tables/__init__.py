"""Queries with the formulas that experts write: papers, the Matrix Cookbook, text books.

The forms are written down independently of what the library prints:
`python -m tests.formula_tables` shows where the two differ.
"""

from __future__ import annotations

from . import (
    as_written,
    control,
    determinants,
    entries,
    learning,
    norms,
    prices,
    regression,
    statistics,
    traces,
)
from .row import Formula

TABLES = {
    "traces": traces.ROWS,
    "determinants": determinants.ROWS,
    "norms": norms.ROWS,
    "regression": regression.ROWS,
    "statistics": statistics.ROWS,
    "learning": learning.ROWS,
    "control": control.ROWS,
    "entries": entries.ROWS,
    "prices": prices.ROWS,
    "as written": as_written.ROWS,
}
FORMULAS: tuple[Formula, ...] = tuple(row for rows in TABLES.values() for row in rows)
