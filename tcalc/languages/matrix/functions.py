"""The functions of the matrix language: how they are typed, and which library function they are.

Every elementwise row of the operator table is a function by its own name; the table here holds the
others. A function that the library does not have is unavailable, and works as soon as it has.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ...graph.applications import apply
from ...graph.row import TABLE
from ..reading.library import LIBRARY
from .syntax import CONSTANTS


class Function(NamedTuple):
    """A function: its typing rule, number of arguments, name in the library.

    The first `conditions` arguments may be comparisons; `part` is the one of several results;
    `row` is set where the operator itself is meant, which has no name in the library.
    """

    rule: str
    least: int = 1
    most: int = 1
    library: str = ""
    conditions: int = 0
    part: int | None = None
    row: bool = False


_TOTAL, _VECTOR = Function("total"), Function("vector")
_MATRIX, _INVARIANT = Function("square_matrix"), Function("invariant")

FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(("sum", "mean", "prod", "var", "std", "logsumexp"), _TOTAL),
    "norm1": Function("total", library="abs"),
    "norm2": Function("total", library="norm"),
    "max": Function("extremum", most=2),
    "min": Function("extremum", most=2),
    "norm": Function("total", most=2),
    **dict.fromkeys(("softmax", "log_softmax"), _VECTOR),
    "cumsum": Function("vector", most=2),
    **dict.fromkeys(("inv", "adj", "expm", "logm", "sqrtm"), _MATRIX),
    **dict.fromkeys(("cholesky", "tri_inverse"), _MATRIX),
    "lower_triangle": Function("square_matrix", row=True),
    "chol": Function("square_matrix", library="cholesky"),
    "eigvecs": Function("square_matrix", library="eigh", part=1),
    **dict.fromkeys(("eigvals", "eigvalsh"), Function("eigenvalues", library="eigvalsh")),
    "column_signs": Function("eigenvalues", row=True),
    "svd_u": Function("left", library="svd", part=0),
    **dict.fromkeys(("svd_s", "svdvals"), Function("singular_values", library="svdvals")),
    "svd_vh": Function("right", library="svd", part=2),
    "qr_q": Function("left", library="qr", part=0),
    "qr_r": Function("right", library="qr", part=1),
    "lq_l": Function("wide_left", library="lq", part=0),
    "lq_q": Function("wide_right", library="lq", part=1),
    "pinv": Function("pseudoinverse"),
    "lstsq": Function("least_squares", 2, 2),
    **dict.fromkeys(("extractdiag", "makediag"), Function("moved", most=2)),
    **dict.fromkeys(("extracttrian", "maketrian"), Function("moved", most=3)),
    **dict.fromkeys(("det", "logdet", "trace", "sumlogdiag"), _INVARIANT),
    "det_sign": Function("invariant", library="slogdet", part=0),
    **dict.fromkeys(CONSTANTS[:3], Function("constant", row=True)),
    **dict.fromkeys(CONSTANTS[3:], Function("constant", 2, 2, row=True)),
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

#: Functions of the library with several results, and the functions for these.
SEVERAL = {
    "svd": ("svd_u", "svd_s", "svd_vh"),
    "qr": ("qr_q", "qr_r"),
    "lq": ("lq_l", "lq_q"),
    "gelqf": ("lq_q", "lq_l"),
    "eigh": ("eigvals", "eigvecs"),
    "syevd": ("eigvecs", "eigvals"),
    "slogdet": ("det_sign", "logdet"),
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
    return library_name(name) in LIBRARY or (name in FUNCTIONS and FUNCTIONS[name].row)


def implementation(name: str) -> Callable[..., Any]:
    """What computes the function."""
    found = FUNCTIONS.get(name)
    if found and found.row:
        return partial(apply, TABLE[name])
    call = LIBRARY[library_name(name)]
    if found and found.part is not None:
        return lambda *args: call(*args)[found.part]
    return call


def closest(name: str) -> str:
    """The known function with the most similar name, or nothing."""
    known = sorted(n for n in {*FUNCTIONS, *TABLE} if function(n) and available(n))
    return next(iter(difflib.get_close_matches(name, known, 1)), "")
