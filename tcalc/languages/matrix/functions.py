"""The functions of the matrix language: how they are typed, and which library function they are.

Every elementwise row of the operator table is a function by its own name; the table here holds the
others. A function that the library does not have is unavailable, and works as soon as it has.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...graph.applications import apply
from ...graph.operators import TABLE
from ...support.misspelt import closest_name
from ...support.records import NamedTuple
from ..reading.library import LIBRARY
from ..reading.rows import row_named

#: Typing rules of functions of matrices and vectors, of which leading axes are a batch.
STACKING = (
    "square_matrix", "invariant", "eigenvalues", "singular_values", "left_vectors",
    "right_vectors", "left", "right", "wide_left", "wide_right", "pseudoinverse",
    "least_squares", "moved",
)  # fmt: skip

#: As many arguments as anybody likes.
MANY = 1_000


class FunctionSignature(NamedTuple):
    """How a function is typed, and what computes it.

    Attributes
    ----------
    rule : str
        The name of its typing rule.
    least, most : int
        The number of arguments.
    library : str
        The library function's name where that is another one.
    part : int or None
        The one of several results of the library function.
    row : bool
        Is the operator itself meant, which has no public function?
    sizes, literals : int
        How many arguments stand before those that are sizes, or literals.
    """

    rule: str
    least: int = 1
    most: int = 1
    library: str = ""
    part: int | None = None
    row: bool = False
    sizes: int = MANY
    literals: int = MANY

    @property
    def open(self) -> bool:
        """Are arguments behind the operands parameters of a row, as they are printed?"""
        many = self.stacks and self.rule != "moved"
        return many or self.rule == "row" or (self.rule == "general" and self.row)

    @property
    def stacks(self) -> bool:
        """Do operands of more axes stand for many, along their leading axes?"""
        return self.rule in STACKING


_TOTAL, _VECTOR = FunctionSignature("total"), FunctionSignature("vector")
_MATRIX, _INVARIANT = FunctionSignature("square_matrix"), FunctionSignature("invariant")

FUNCTIONS: dict[str, FunctionSignature] = {
    **dict.fromkeys(("sum", "mean", "prod", "var", "std", "logsumexp"), _TOTAL),
    "weighted_logsumexp": FunctionSignature("weighted", 2, 2),
    "norm1": FunctionSignature("total", library="abs"),
    "norm2": FunctionSignature("total", library="norm"),
    "max": FunctionSignature("extremum", most=2),
    "min": FunctionSignature("extremum", most=2),
    "norm": FunctionSignature("total", most=2, literals=1),
    **dict.fromkeys(("softmax", "log_softmax"), _VECTOR),
    **dict.fromkeys(("cumsum", "revcumsum"), FunctionSignature("line")),
    **dict.fromkeys(("inv", "adj", "expm", "logm", "sqrtm"), _MATRIX),
    **dict.fromkeys(("cholesky", "tri_inverse"), _MATRIX),
    "lower_triangle": FunctionSignature("square_matrix", row=True),
    "chol": FunctionSignature("square_matrix", library="cholesky"),
    "eigvecs": FunctionSignature("square_matrix", library="eigh", part=1),
    **dict.fromkeys(("eigvals", "eigvalsh"), FunctionSignature("eigenvalues", library="eigvalsh")),
    "column_signs": FunctionSignature("eigenvalues", row=True),
    "svd_u": FunctionSignature("left_vectors", library="svd", part=0),
    **dict.fromkeys(("svd_s", "svdvals"), FunctionSignature("singular_values", library="svdvals")),
    "svd_vh": FunctionSignature("right_vectors", library="svd", part=2),
    "qr_q": FunctionSignature("left", library="qr", part=0),
    "qr_r": FunctionSignature("right", library="qr", part=1),
    "lq_l": FunctionSignature("wide_left", library="lq", part=0),
    "lq_q": FunctionSignature("wide_right", library="lq", part=1),
    "pinv": FunctionSignature("pseudoinverse"),
    "lstsq": FunctionSignature("least_squares", 2, 2),
    **dict.fromkeys(("extractdiag", "makediag"), FunctionSignature("moved", most=2, literals=1)),
    **dict.fromkeys(("extracttrian", "maketrian"), FunctionSignature("moved", most=3, literals=1)),
    **dict.fromkeys(("det", "logdet", "trace", "sumlogdiag"), _INVARIANT),
    "det_sign": FunctionSignature("invariant", library="slogdet", part=0),
    **dict.fromkeys(
        ("lower_half", "lower_ones", "upper_ones"), FunctionSignature("constant", row=True, sizes=0)
    ),
    **dict.fromkeys(
        ("leading_rows", "lower_trapezoid"), FunctionSignature("constant", 2, 2, row=True, sizes=0)
    ),
    **dict.fromkeys(("ones", "zeros"), FunctionSignature("block", 2, MANY, sizes=0)),
    "extent": FunctionSignature("size", library="sum", sizes=0),
    "reshape": FunctionSignature("general", library="merge_axes", row=True),
    "pad": FunctionSignature("general", row=True),
    "roll": FunctionSignature("general", row=True),
    "sym": FunctionSignature("general", most=2, literals=1),
    "segment_sum": FunctionSignature("general", 3, 3, sizes=2),
    "tr": FunctionSignature("invariant", library="trace"),
    "diag": FunctionSignature("diagonal"),
    "kron": FunctionSignature("kronecker", 2, 2),
    "vec": FunctionSignature("columns_below"),
    "eye": FunctionSignature("identity", sizes=0),
    "vector": FunctionSignature("filled_vector", 1, 2, library="broadcast_to", sizes=1),
    "matrix": FunctionSignature("filled_matrix", 1, 3, library="broadcast_to", sizes=1),
    "where": FunctionSignature("entrywise", 3, 3),
    "logical_and": FunctionSignature("entrywise", 2, 2),
    "logical_or": FunctionSignature("entrywise", 2, 2),
    "logical_not": FunctionSignature("entrywise"),
    "square": FunctionSignature("entrywise"),
    "clip": FunctionSignature("entrywise", 3, 3),
}

#: Functions of which a literal may be a fraction.
FRACTIONS = frozenset(["norm"])

#: Library functions with several results, and this language's functions for each.
RESULT_FUNCTIONS = {
    "svd": ("svd_u", "svd_s", "svd_vh"),
    "qr": ("qr_q", "qr_r"),
    "lq": ("lq_l", "lq_q"),
    "gelqf": ("lq_q", "lq_l"),
    "eigh": ("eigvals", "eigvecs"),
    "syevd": ("eigvecs", "eigvals"),
    "slogdet": ("det_sign", "logdet"),
}

#: The library functions of operators.
OPERATOR_FUNCTIONS = {
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


def signature_of(name: str) -> FunctionSignature | None:
    """The signature of a function, whether the library has it or not; None for other names."""
    if name in FUNCTIONS:
        return FUNCTIONS[name]
    row = row_named(name)
    if row is None:
        return None
    if not row.parameters:
        return FunctionSignature("entrywise", row.operands, row.operands)
    return FunctionSignature("row", row.operands, row.operands, row=True)


def library_name(name: str) -> str:
    found = FUNCTIONS.get(name)
    return (found.library if found else "") or name


def available(name: str) -> bool:
    found = signature_of(name)
    return library_name(name) in LIBRARY or (found is not None and found.row)


def implementation(name: str) -> Callable[..., Any]:
    """What computes the function."""
    found = FUNCTIONS.get(name)
    if found and found.row:
        return partial(apply, TABLE[name])
    call = LIBRARY[library_name(name)]
    if found and found.part is not None:
        return lambda *args: call(*args)[found.part]
    return call


def closest_matrix_function(name: str) -> str:
    """The known function with the most similar name, or nothing."""
    rows = [n for n, row in TABLE.items() if row.elementwise and row.core]
    return closest_name(name, [n for n in {*FUNCTIONS, *rows} if available(n)])
