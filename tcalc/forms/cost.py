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
#: A quotient by 1 + exp(x), which is a sigmoid, and overflows where that does not.
LOGISTIC, LOGISTIC_COST = "/(1 + exp(", 12.0


def reading_cost(text: str) -> float:
    """What a text in the matrix language costs."""
    tokens = TOKEN.findall(text)
    unusual = sum([COSTS[t] - 1 for t in tokens if t in COSTS])
    return len(tokens) + unusual + LOGISTIC_COST * text.count(LOGISTIC)
