"""How C spells an entry of the result of an entrywise step, for all that writes C or CUDA."""

from __future__ import annotations

from math import inf

from ...plan.steps import Step
from .rows import entry as written_entry

#: C for an entry of the result, by kind: of entries of the operands, and the step's number. What
#: uses a factorisation of plans reads the matrix itself.
ENTRIES = {
    "factor": "{0}",
    "copy": "{0}",
    "fill": "{number}",
    "scale": "({0} * {number})",
    "shift": "({0} + {number})",
    "minus_from": "({number} - {0})",
    "multiply": "({0} * {1})",
    "add": "({0} + {1})",
    "subtract": "({0} - {1})",
}


def entry_of(step: Step, suffix: str) -> str:
    """C for an entry of the result, for steps whose operands are broadcast to it; else empty.

    The `suffix` is that of C's functions for the dtype.
    """
    if step.kind in ENTRIES:
        entry = ENTRIES[step.kind]
        numbered = "{number}" in entry
        return entry.replace("{number}", _number(step.params[0])) if numbered else entry
    if step.kind in ("ufunc", "kernel") and step.params[0].elementwise:
        return written_entry(step.params[0]).replace("{f}", suffix)
    return ""


def _number(value: float) -> str:
    """A number as C, digit by digit."""
    if value != value:
        return "(real)NAN"
    if value in (inf, -inf):
        return f"(real){'-' * (value < 0)}INFINITY"
    return f"(real){float(value).hex()}"
