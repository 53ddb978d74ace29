"""The functions of the matrix language: how they are typed, and which library function they are.

Every elementwise row of the operator table is a function by its own name; the table here holds the
others. A function that the library does not have is unavailable, and works as soon as it has.
"""

from __future__ import annotations

import difflib
from typing import NamedTuple

from ..op import TABLE

# Imported for the functions they make public.
from ..ops import elementwise, lapack, linalg, norms, reductions  # noqa: F401
from ..surface import surface


class Function(NamedTuple):
    """A function: its typing rule, number of arguments, name in the library.

    The first `conditions` arguments may be comparisons.
    """

    rule: str
    least: int = 1
    most: int = 1
    library: str = ""
    conditions: int = 0


_TOTAL, _VECTOR = Function("total"), Function("vector")
_MATRIX, _INVARIANT = Function("square_matrix"), Function("invariant")

FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(("sum", "mean", "prod", "var", "std", "logsumexp"), _TOTAL),
    "norm1": Function("total", library="abs"),
    "norm2": Function("total", library="norm"),
    "max": Function("extremum", most=2),
    "min": Function("extremum", most=2),
    **dict.fromkeys(("softmax", "log_softmax", "cumsum"), _VECTOR),
    **dict.fromkeys(("inv", "adj", "expm", "logm", "sqrtm"), _MATRIX),
    "chol": Function("square_matrix", library="cholesky"),
    **dict.fromkeys(("det", "logdet", "trace"), _INVARIANT),
    "tr": Function("invariant", library="trace"),
    "diag": Function("diagonal"),
    "kron": Function("kronecker", 2, 2),
    "eye": Function("identity"),
    "vector": Function("filled_vector", 1, 2, library="broadcast_to"),
    "matrix": Function("filled_matrix", 1, 3, library="broadcast_to"),
    "where": Function("entrywise", 3, 3, conditions=1),
    "logical_and": Function("entrywise", 2, 2, conditions=2),
    "logical_or": Function("entrywise", 2, 2, conditions=2),
    "logical_not": Function("entrywise", conditions=1),
    "square": Function("entrywise"),
    "clip": Function("entrywise", 3, 3),
}

#: Operators by their names in the library.
OPERATORS = {
    "+": "add",
    "-": "subtract",
    "*": "multiply",
    ".*": "multiply",
    "/": "divide",
    "./": "divide",
    ".^": "power",
    "<": "less",
    "<=": "less_equal",
    ">": "greater",
    ">=": "greater_equal",
    "==": "equal",
    "!=": "not_equal",
}


def function(name: str) -> Function | None:
    """The function of this name, available or not."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    row = TABLE.get(name)
    if row is None or not row.core or not row.elementwise:
        return None
    return Function("entrywise", len(row.core), len(row.core))


def library_name(name: str) -> str:
    found = FUNCTIONS.get(name)
    return (found.library if found else "") or name


def available(name: str) -> bool:
    return library_name(name) in surface


def closest(name: str) -> str:
    """The known function with the most similar name, or nothing."""
    known = sorted(n for n in {*FUNCTIONS, *TABLE} if function(n) and available(n))
    return next(iter(difflib.get_close_matches(name, known, 1)), "")
