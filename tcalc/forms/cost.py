"""What a formula costs its reader: its length, what nests in it, and what is unusual in it."""

from __future__ import annotations

import re

TOKEN = re.compile(r"[A-Za-z_]\w*|\d+(?:\.\d+)?|\.?[*/^]|[^\s.,)]")

#: What a token costs that is no plain sign or name.
COSTS = {
    "(": 0.7, "'": 0.6, "[": 0.7,
    "#": 8.0, "vector": 3.0, "iota": 6.0, "reshape": 6.0, "where": 4.0,
    "matrix_function": 8.0, "reciprocal": 1.0, "reciprocal0": 6.0, "diag": 1.5, "extent": 3.0,
    "adj": 1.5, "lq_l": 5.0, "lq_q": 5.0, "tri_inverse": 5.0,
}  # fmt: skip


def reading_cost(text: str) -> float:
    """What a text in the matrix language costs."""
    tokens = TOKEN.findall(text)
    return len(tokens) + sum([COSTS[t] - 1 for t in tokens if t in COSTS])
