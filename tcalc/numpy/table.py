"""The table: NumPy's functions by name, and ours. The parameters that ours has are understood.

A public function of ours with a name of NumPy's is NumPy's; rows are those that differ in name or
in parameters. Names are those below `numpy`, such as ``"linalg.norm"``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..loops import scans
from ..ops import (
    arithmetic,
    axes,
    bessel,
    constructors,
    cumulative,
    diagonals,
    differences,
    einsum,
    elementwise,
    entrywise,
    incomplete,
    indexing,
    joining,
    ordering,
    polynomials,
    products,
    reductions,
    reshape,
    special,
    stacking,
    statistics,
    triangles,
    views,
)
from ..ops.matrix import cholesky, eigh, inverse, lapack_names, lq, norms, svd
from . import adapters, sequences
from .special import COMPOSED

Function = Callable[..., Any]

_ARRAYS = (
    arithmetic, axes, constructors, cumulative, diagonals, differences, einsum, elementwise,
    entrywise, indexing, joining, ordering, polynomials, products, reductions, reshape, scans,
    special, stacking, statistics, triangles, views,
)  # fmt: skip
_MATRICES = (
    arithmetic, cholesky, diagonals, eigh, inverse, lapack_names, lq, norms, products, svd, views,
)  # fmt: skip


def _ours(modules: tuple[Any, ...], theirs: Any) -> dict[str, Function]:
    """Our public functions that NumPy's module has, too."""
    found = {name: getattr(module, name) for module in modules for name in module.__all__}
    return {name: found[name] for name in sorted(found) if hasattr(theirs, name)}


FUNCTIONS: dict[str, Function] = {
    **_ours(_ARRAYS, np),
    **{f"linalg.{name}": f for name, f in _ours(_MATRICES, np.linalg).items()},
    # other names
    **dict.fromkeys(("absolute", "fabs"), elementwise.abs),
    "true_divide": elementwise.divide,
    "remainder": elementwise.mod,
    **dict.fromkeys(("float_power", "pow"), elementwise.power),
    "bitwise_and": adapters.bitwise_and,
    "bitwise_or": adapters.bitwise_or,
    "bitwise_xor": adapters.bitwise_xor,
    **dict.fromkeys(("bitwise_not", "bitwise_invert", "invert"), adapters.bitwise_not),
    **dict.fromkeys(("fix",), entrywise.trunc),
    **dict.fromkeys(("around",), entrywise.round),
    **dict.fromkeys(("degrees",), entrywise.rad2deg),
    **dict.fromkeys(("radians",), entrywise.deg2rad),
    "acos": elementwise.arccos,
    "acosh": entrywise.arccosh,
    "asin": elementwise.arcsin,
    "asinh": entrywise.arcsinh,
    "atan": elementwise.arctan,
    "atan2": elementwise.arctan2,
    "atanh": entrywise.arctanh,
    "concat": joining.concatenate,
    "row_stack": stacking.vstack,
    "permute_dims": views.transpose,
    "trapz": differences.trapezoid,
    **dict.fromkeys(("cumulative_sum",), cumulative.cumsum),
    **dict.fromkeys(("cumulative_prod",), scans.cumprod),
    **dict.fromkeys(
        (
            "array", "asanyarray", "asarray", "asarray_chkfinite", "ascontiguousarray",
            "asfortranarray",
        ),
        joining.array,
    ),
    **dict.fromkeys(
        ("conj", "conjugate", "copy", "positive", "real", "real_if_close"),
        adapters.same,
    ),
    "empty_like": constructors.zeros_like,
    # other parameters
    **{name: getattr(adapters, name) for name in ("all", "any", "max", "mean", "min", "prod")},
    **{name: getattr(adapters, name) for name in ("angle", "block", "clip", "delete", "matvec")},
    **{name: getattr(adapters, name) for name in ("ndim", "ravel", "shape", "size", "std", "sum")},
    **{name: getattr(adapters, name) for name in ("var", "vecmat")},
    **{f"fft.{name}": getattr(adapters, name) for name in ("fftshift", "ifftshift")},
    **{
        name: getattr(sequences, name)
        for name in (
            "apply_along_axis", "bincount", "convolve", "correlate", "interp", "piecewise",
        )
    },
    "amax": adapters.max,
    "amin": adapters.min,
    "reshape": adapters.reshaped,
    **{
        f"linalg.{name}": getattr(adapters, name)
        for name in (
            "cholesky", "cond", "diagonal", "eigh", "eigvalsh", "lstsq", "matrix_norm", "multi_dot",
            "qr", "trace", "vector_norm",
        )
    },
}  # fmt: skip

#: Elementwise functions that SciPy has as ufuncs, which follow NumPy's protocol.
SPECIAL: dict[str, Function] = {
    name: getattr(module, name)
    for module in (elementwise, special, bessel, incomplete)
    for name in module.__all__
} | COMPOSED

#: NumPy's methods of arrays, as the functions that they are.
METHODS: dict[str, Function] = {
    **{
        name: FUNCTIONS[name]
        for name in (
            "all", "any", "argmax", "argmin", "argsort", "clip", "copy", "conj", "conjugate",
            "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min", "prod", "ravel", "repeat",
            "round", "squeeze", "std", "sum", "swapaxes", "take", "trace", "var",
        )
    },
    "astype": adapters.astype,
    "flatten": adapters.ravel,
    "item": adapters.item,
    "reshape": adapters.resized,
    "size": adapters.size,
    "sort": adapters.sorted_in_place,
    "tolist": adapters.item,
    "transpose": adapters.transposed,
}  # fmt: skip

#: Methods of ufuncs: what they are of each.
REDUCE: dict[str, Function] = {
    "add": adapters.sum,
    "multiply": adapters.prod,
    "maximum": adapters.max,
    "minimum": adapters.min,
    "logaddexp": reductions.logsumexp,
    "logical_and": adapters.all,
    "logical_or": adapters.any,
}
ACCUMULATE: dict[str, Function] = {"add": cumulative.cumsum, "multiply": scans.cumprod}

#: What to write instead of functions that depend on more than shapes.
REPLACEMENTS = {
    **dict.fromkeys(
        ("nonzero", "argwhere", "flatnonzero", "extract", "compress"), "where(condition, a, b)"
    ),
    **dict.fromkeys(("apply_over_axes", "vectorize", "frompyfunc"), "vmap"),
    **dict.fromkeys(
        ("put", "put_along_axis", "place", "putmask", "copyto", "fill_diagonal"),
        "where(condition, a, b), or stack and concatenate parts",
    ),
    **dict.fromkeys(("add.at", "add.reduceat"), "segment_sum"),
    **dict.fromkeys(
        ("logaddexp.accumulate", "maximum.accumulate", "minimum.accumulate"),
        "a loop: fold(step, start, n, history=True)",
    ),
    **dict.fromkeys(("polynomial.polynomial.polyval", "polyder", "polyint"), "polyval or vander"),
    "polyfit": "linalg.lstsq of vander(x, degree + 1)",
    "logspace": "base ** linspace(start, stop, num)",
    "geomspace": "exp(linspace(log(start), log(stop), num))",
    "copysign": "abs(a) * where(b < 0, -1, 1)",
    "insert": "concatenate parts",
    "isclose": "abs(a - b) <= tolerance",
    "trim_zeros": "a slice",
    "resize": "tile and reshape",
    "choose": "where(condition, a, b), or stack(arrays)[index]",
    "modf": "trunc(x) and x - trunc(x)",
    "histogram": "comparisons: sum((low <= x[:, None]) & (x[:, None] < high), 0)",
    **dict.fromkeys(("array_equal", "allclose", "unique"), "values: call the expression first"),
    **dict.fromkeys(("save", "savez", "savetxt", "array2string"), "values: call it first"),
    "linalg.eig": "linalg.eigh of a symmetric matrix: other eigenvalues may be complex",
    "linalg.eigvals": "linalg.eigvalsh of a symmetric matrix: other eigenvalues may be complex",
    "linalg.matrix_rank": "linalg.svdvals, and count those above a bound",
    "linalg.tensorsolve": "linalg.solve of reshaped arrays",
    "linalg.tensorinv": "linalg.inv of a reshaped array",
    "searchsorted": "comparisons: sum(x[:, None] > bounds, 1)",
    "digitize": "comparisons: sum(x[:, None] > bounds, 1)",
    "fmod": "a - b * trunc(a / b)",
    "divmod": "floor_divide and mod",
    "unwrap": "values: call the expression first",
}
