"""Rows as C: expressions of entries for elementwise rows, functions for whole matrices.

In an expression ``{0}`` is the first operand's entry and ``{f}`` the suffix of C's functions for
the dtype. A row that is not here is computed as its formula says, or by its kernel.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ...graph.formulas import Entry, recorded
from ...graph.operators import Op
from ...support.c_text import routines
from ...support.records import NamedTuple

#: Rows that C's library has under the same name, and under another one.
_SAME = (
    "expm1", "exp2", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh",
    "cosh", "floor", "ceil", "rint", "cbrt", "erf", "erfc",
)  # fmt: skip
_OTHER = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "abs": "fabs",
}  # fmt: skip
_PAIRS = {"arctan2": "atan2", "hypot": "hypot", "power": "pow"}
_COMPARED = {
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==",
    "not_equal": "!=",
}  # fmt: skip
#: What is made of exp(-|x|), once for all of one entry.
OF_DECAY = ("sigmoid", "softplus", "sech", "tanh")
#: Rows that have arithmetic of our own, ``quick_`` before their names.
QUICK = ("exp", *OF_DECAY)
_ARITHMETIC = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}

ENTRIES: dict[str, str] = {
    **{name: f"{name}{{f}}({{0}})" for name in _SAME},
    **{name: f"{other}{{f}}({{0}})" for name, other in _OTHER.items()},
    **{name: f"{other}{{f}}({{0}}, {{1}})" for name, other in _PAIRS.items()},
    **{name: f"({{0}} {sign} {{1}} ? 1 : 0)" for name, sign in _COMPARED.items()},
    **{name: f"({{0}} {sign} {{1}})" for name, sign in _ARITHMETIC.items()},
    "negative": "(-{0})",
    "reciprocal": "(1 / {0})",
    "reciprocal0": "({0} == 0 ? 0 * {0} : 1 / {0})",
    "ndtr": "(erfc{f}({0} * (real)-0x1.6a09e667f3bcdp-1) / 2)",
    "gammaln": "({0} == -INFINITY ? {0} : lgamma{f}({0}))",
    "logaddexp": "quick_logaddexp({0}, {1})",
    **{name: f"quick_{name}({{0}})" for name in QUICK},
    "xlogy": "({0} == 0 && {1} == {1} ? 0 : {0} * log{f}({1}))",
    "sign": "({0} > 0 ? 1 : {0} < 0 ? -1 : {0} == 0 ? 0 : {0})",
    "mod": "_mod({0}, {1})",
    "maximum": "({0} > {1} || {0} != {0} ? {0} : {1})",
    "minimum": "({0} < {1} || {0} != {0} ? {0} : {1})",
    "logical_and": "({0} != 0 && {1} != 0 ? 1 : 0)",
    "logical_or": "({0} != 0 || {1} != 0 ? 1 : 0)",
    "logical_not": "({0} != 0 ? 0 : 1)",
    "isnan": "({0} != {0} ? 1 : 0)",
    "where": "({0} != 0 ? {1} : {2})",
}
_OF_TWO = ("betaln", "polygamma", "inverse_mills")
#: Functions of the library, of one entry each, for operators that have no other, where entries are
#: few: for many SciPy's kernels take as long, and what stands beside them keeps its vectors.
SPECIAL = {
    **{
        name: f"(real){name}({{0}}{', {1}' if name in _OF_TWO else ''})"
        for name in ("digamma", "log_ndtr", "erfinv", "erfcinv", "ndtri", *_OF_TWO)
    },
    "gamma": "(real)tgamma({0})",
    "beta": "(real)beta_function({0}, {1})",
}
FEW_ENTRIES = 1 << 12
_EXACT = (*_COMPARED, "logical_and", "logical_or", "logical_not", "maximum", "minimum", "where")
#: The same of integers, exact in 64 bits.
OF_INTEGERS = {**{name: ENTRIES[name] for name in _EXACT}, "abs": "labs({0})"}


@cache
def entry(row: Op) -> str:
    """C for an entry of an elementwise row's result; empty where only its kernel computes it."""
    if row.name in ENTRIES or row.kernels.formula is None:
        return ENTRIES.get(row.name, "")
    return _written(recorded(row.kernels.formula, len(row.core)))


def _written(e: Any) -> str:
    """A recorded formula in C; empty where it calls what is not known here."""
    if not isinstance(e, Entry):
        return f"(real){float(e)!r}"
    if not e.name:
        return f"{{{e.args[0]}}}"
    args = [_written(arg) for arg in e.args]
    known = e.name in ENTRIES and all(args)
    return ENTRIES[e.name].replace("{f}", "{{f}}").format(*args) if known else ""


def _own(name: str) -> str:
    """One of the texts that the C of this back end alone has."""
    return Path(__file__).with_name("routines").joinpath(name).read_text(encoding="utf-8")


#: What expressions above call.
ENTRY_FUNCTIONS = f"""
{_own("exp.c")}
static INLINED real _mod(real a, real b) {{
    real r = F(fmod)(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r == 0 ? F(copysign)((real)0, b) : r;
}}

#ifndef EXPONENTIALS
static INLINED real decay(real x) {{ return quick_exp(-F(fabs)(x)); }}
static INLINED real log1p_of_part(real x) {{ return F(log1p)(x); }}
static INLINED real where_negative(real x, real a, real b) {{ return x < 0 ? a : b; }}
static INLINED real quick_tanh(real x) {{ return F(tanh)(x); }}
static INLINED real quick_sech(real x) {{ real e = decay(x); return 2 * e / (1 + e * e); }}
#endif
{routines("decays.c")}"""


#: Reductions: functions of n entries in a row, or (`_across`) of m columns next to each other, of
#: which each has n entries, s apart.
REDUCTIONS = {
    "max": "_max",
    "min": "_min",
    "norm2": "_norm2",
    "logsumexp": "_logsumexp",
    "prod": "_prod",
}
#: Reductions of the entries of two arrays, which are s and t apart.
OF_PAIRS = {"weighted_logsumexp": "_weighted_logsumexp"}
#: Rows whose result has the operand's shape: 1 over how many entries of a row are the extreme one.
SHARES = {"hardmax": "_max", "hardmin": "_min"}
#: Rows whose result has the operand's shape: sums of the entries of a row up to each, or from each,
#: and the places of its entries in ascending order.
RUNNING = {"cumsum": "_sums_up_to", "revcumsum": "_sums_from", "argsort": "_places_in_order"}
#: The longest rows that are sorted: NumPy is faster at longer ones.
LONGEST = {"argsort": 64}
#: Rows that have the place of one entry along the last axis.
PLACES = {"argmax": "_place_of_max", "argmin": "_place_of_min"}
#: All of these, which go along the last axes.
ALONG_AXES = frozenset({*REDUCTIONS, *SHARES, *RUNNING, *PLACES, *OF_PAIRS})
_EXTREME = """
static inline real {name}(const real *x, long n) {{
    real found = x[0];
    int nan = 0;
    #pragma omp simd reduction({kind}: found) reduction(|: nan)
    for (long i = 0; i < n; i++) {{
        found = x[i] {sign} found ? x[i] : found;
        nan |= x[i] != x[i];
    }}
    return nan ? (real)NAN : found;
}}

static inline void {name}_across(const real *x, long n, long s, long m, real *out) {{
    for (long j = 0; j < m; j++)
        out[j] = x[j];
    for (long i = 1; i < n; i++)
        #pragma omp simd
        for (long j = 0; j < m; j++)
            out[j] = x[i * s + j] {sign} out[j] || x[i * s + j] != x[i * s + j] ? x[i * s + j]
                                                                               : out[j];
}}
"""
_EXTREME_PLACE = """
/* The first of equal entries, s apart; of NaN the first one. */
static inline real {name}(const real *x, long s, long n) {{
    long found = 0;
    for (long i = 1; i < n && x[found * s] == x[found * s]; i++)
        if (x[i * s] {sign} x[found * s] || x[i * s] != x[i * s])
            found = i;
    return (real)found;
}}
"""
#: The most columns that functions of several of them take.
COLUMNS = 64
_SIGNS = (("max", ">"), ("min", "<"))
REDUCTION_FUNCTIONS = "\n".join([
    f"enum {{ COLUMNS = {COLUMNS} }};",
    *[_EXTREME.format(name=f"_{word}", kind=word, sign=sign) for word, sign in _SIGNS],
    *[_EXTREME_PLACE.format(name=f"_place_of_{word}", sign=sign) for word, sign in _SIGNS],
    _own("reductions.c"),
])  # fmt: skip


class Spread(NamedTuple):
    """A row of a vector's entries, or of all pairs of them: C for one, and a check.

    `check` is called with the operand, how far its entries are apart and their number, and is not 0
    where `entry` does not hold; `axes` are those of the result.
    """

    entry: str
    check: str
    axes: int = 2


#: Rows without their exceptional cases, which their kernels are for; the first parameter counts.
_GAPS = Spread("({1} == {0} ? 0 : 1 / ({1} - {0}))", "gaps_close")
_SVD_GAPS = Spread("({1} == {0} ? 0 : {1} / ({0} + {1}) / ({1} - {0}))", "gaps_close")
_RECIPROCAL = Spread("(1 / {0})", "zero_among", 1)
_KINDS = ("raise", "nan", "nuclear", "spectral")
SPREAD = {
    **{("gaps", kind): _GAPS for kind in ("raise", "nan")},
    **{("svd_gaps", kind): _SVD_GAPS for kind in (*_KINDS, "norm")},
    **{("svd_reciprocal", kind): _RECIPROCAL for kind in _KINDS},
}

#: Functions of C's library that GNU has for vectors too: of one and of two operands, the second
#: row of each since version 2.35.
VECTORS = (
    (("exp", "log", "sin", "cos"), ("pow",)),
    (
        ("expm1", "exp2", "log1p", "log2", "log10", "tan", "asin", "acos", "atan", "sinh", "cosh",
         "tanh", "erf", "erfc"),
        ("atan2", "hypot"),
    ),
)  # fmt: skip
#: Of these, what compilers would join with another function of the same number into one that has
#: no vectors: names that they do not know.
RENAMED = {"cos": "cosine"}
_VECTOR_NAMES = frozenset([name for one, two in VECTORS for name in (*one, *two)])


@cache
def in_vectors(row: Op) -> bool:
    """Is an entry of an elementwise row's result one function that is there for vectors, no more?

    NumPy has some of them for one entry at a time only.
    """
    name, suffix, _ = ENTRIES.get(row.name, "").partition("{f}")
    return row.name in QUICK or (bool(suffix) and name in _VECTOR_NAMES)


#: Rows that have a function of whole matrices of their name.
ROUTINES = frozenset(
    {
        "cholesky",
        "cholesky_pullback",
        "column_signs",
        "inverse_definite",
        "tri_inverse",
        "expm",
        "expm_frechet",
        "expm_frechet2",
        "adj_frechet",
    }
)
#: Rows that have a function of one square matrix; those of factors only want the factor.
GENERAL = frozenset({"inv", "logdet", "det", "det_sign", "adj", "logdet_definite"})
#: Rows of general matrices, and of those whose factors are several arrays, for which a call from
#: Python is no small part of the time. Large problems have better forms there.
FEW_ROWS = 64
OF_FACTORS = frozenset({"logdet_definite"})
#: Rows of which an entry is made of two operands' rows, by a function of both matrices.
PAIRWISE = frozenset({"squared_distances"})
#: Rows that move a triangle's entries: do they take them out of matrices, or put them back?
PACKED = {"extracttrian": True, "maketrian": False}
#: Rows with several results, by name: a function of a matrix that makes all of them, and whether it
#: is square.
SEVERAL = {
    **dict.fromkeys(("eigh", "eigh_nan", "eigh_epsilon"), ("eigh", True)),
    "lq": ("lq", False),
    "svd": ("svd", False),
}
