"""How Julia programs call operators, in the standard library and SpecialFunctions."""

from __future__ import annotations

from collections.abc import Callable

#: Functions of one entry by the names of operators: Julia's, or those of `julia_helpers`.
FUNCTIONS: dict[str, str] = {
    **{
        name: name
        for name in (
            "abs", "cbrt", "ceil", "cos", "cosh", "digamma", "erf", "erfc", "erfcinv", "erfinv",
            "exp", "exp2", "expm1", "floor", "gamma", "hypot", "isnan", "log", "log10", "log1p",
            "log2", "mod", "sign", "sin", "sinh", "sqrt", "tan", "tanh", "beta",
            "betainc", "gammainc", "gammaincc", "gammasgn", "inverse_mills", "log_ndtr",
            "logaddexp", "logit", "ndtr", "ndtri", "spherical_jn", "stdtr", "xlogy",
        )
    },
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan", "arctanh": "atanh", "maximum": "max", "minimum": "min", "rint": "round",
    "gammaln": "log_gamma", "betaln": "logbeta", "polygamma": "polygamma_of", "where": "ifelse",
    "jv": "besselj", "yv": "bessely", "iv": "besseli", "kv": "besselk", "ive": "besselix",
}  # fmt: skip

#: What the package SpecialFunctions defines.
SPECIAL = {
    "beta", "beta_inc", "besseli", "besselix", "besselj", "besselk", "bessely", "digamma", "erf",
    "erfc", "erfcinv", "erfcx", "erfinv", "gamma", "gamma_inc", "logabsgamma", "logbeta",
    "polygamma",
}  # fmt: skip

#: What the standard library's LinearAlgebra defines.
LINEAR = {
    "I", "Symmetric", "cholesky", "det", "diag", "diagm", "dot", "eigen", "kron", "logabsdet",
    "mul!", "pinv", "qr", "svd", "tr", "tril", "triu",
}  # fmt: skip

#: Conditions.
TRUTHS = {
    "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and",
    "logical_or", "logical_not", "isnan", "selection",
}  # fmt: skip

#: Of these results are integers: places along axes.
PLACES = {"argmax", "argmin", "argsort"}

#: Reductions along several axes.
REDUCTIONS = {"max": "maximum", "min": "minimum", "prod": "prod"}

#: Operators by name, as `infix.filled` reads them: parameters are ``{p[0]}``, a dot for functions
#: of entries ``{d}``, the axes of a reduction ``{axes}``, the first of them ``{axis}``, one axis
#: behind all ``{new}``.
TEMPLATES: dict[str, str | Callable[..., str]] = {
    **{name: f"{word}{{d}}({{operands}})" for name, word in FUNCTIONS.items()},
    "power": "{0} {d}^ {1}",
    "reciprocal": "1 {d}/ {0}",
    "rgamma": "1 {d}/ gamma{d}({0})",
    "less": "{0} {d}< {1}",
    "less_equal": "{0} {d}<= {1}",
    "greater": "{0} {d}> {1}",
    "greater_equal": "{0} {d}>= {1}",
    "equal": "{0} {d}== {1}",
    "not_equal": "{0} {d}!= {1}",
    "logical_and": "{0} {d}& {1}",
    "logical_or": "{0} {d}| {1}",
    "logical_not": "{d}!{0}",
    "selection": "mod.({0}, {p[0]}) .== {new}",
    # reductions and vectors
    "argmax": "place_of(argmax, {0}, {axis})",
    "argmin": "place_of(argmin, {0}, {axis})",
    "argsort": "argsort({0}, {axis})",
    "norm2": "norm2({0}, {axes})",
    "norm": "norm_of_order({0}, {p[1]}, {axes})",
    "logsumexp": "logsumexp({0}, {axes})",
    "weighted_logsumexp": "logsumexp({0}, {axes}, {1})",
    "hardmax": "shares(maximum, {0}, {axes})",
    "hardmin": "shares(minimum, {0}, {axes})",
    "cumsum": "cumsum({0}, dims={axis})",
    "revcumsum": "reverse(cumsum(reverse({0}, dims={axis}), dims={axis}), dims={axis})",
    "iota": "0:{p[0]} - 1",
    "merge_axes": "merge_axes({0}, {p[0]}, {p[1]})",
    # numbers alone
    "eye": "Matrix(I({0}))",
    "leading_rows": "Matrix(I, {p[0]}, {p[1]})",
    "lower_half": "tril(ones({p[0]}, {p[0]}), -1) + I / 2",
    "lower_ones": "tril(ones({p[0]}, {p[0]}))",
    "lower_trapezoid": "tril(ones({p[0]}, {p[1]}))",
    "upper_ones": "triu(ones({p[0]}, {p[0]}), 1)",
}  # fmt: skip

#: The same of one matrix, or of one vector that makes a matrix.
MATRICES: dict[str, str | Callable[..., str]] = {
    **{name: f"{name}({{0}})" for name in ("det", "diag", "inv", "pinv", "tril", "triu")},
    "matrix_transpose": "{0}'",
    **dict.fromkeys(("adj", "adj_frechet"), "adj({operands})"),
    "cholesky": "Matrix(cholesky(Symmetric({0}, :L)).L)",
    "cholesky_pullback": "cholesky_pullback({0}, {1})",
    "column_signs": "column_signs({0})",
    "det_sign": "last(logabsdet({0}))",
    **dict.fromkeys(("eigh", "eigh_nan", "eigh_epsilon"), "eigh({0})"),
    "extractdiag": lambda offset: "diag({0})" if offset == "0" else f"diag({{0}}, {offset})",
    "extracttrian": "extracttrian({0}, {p[0]}, {p[1]})",
    "gaps": "gaps({0}, {p[0]})",
    "inverse_definite": "inv({0})",
    "least_squares_inverse": "pinv({0})",
    **dict.fromkeys(("logdet", "logdet_definite"), "first(logabsdet({0}))"),
    "lower_triangle": "tril({0})",
    "lq": "lq_parts({0})",
    "makediag": lambda offset: "diagm({0})" if offset == "0" else f"diagm({offset} => {{0}})",
    "maketrian": "maketrian({0}, {p[0]}, {p[1]})",
    "squared_distances": "squared_distances({0}, {1})",
    "svd": "svd_parts({0})",
    "svd_gaps": "svd_gaps({0}, {p[0]})",
    "svd_reciprocal": "svd_reciprocal({0}, {p[0]})",
    "tri_inverse": "inv(tril({0}))",
    **{
        f"{name}_frechet": f"frechet({word}, {{operands}})"
        for name, word in (("expm", "exp"), ("sqrtm", "sqrt"), ("logm", "log"))
    },
    "matrix_function": "spectral({p[0]}, {operands})",
    "matrix_function_trace": "spectral_trace({p[0]}, {operands})",
}  # fmt: skip
