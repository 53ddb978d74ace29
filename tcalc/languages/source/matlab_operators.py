"""How MATLAB programs call operators, in the functions that MATLAB and Octave both have."""

from __future__ import annotations

from collections.abc import Callable

#: Functions of entries by the names of operators: MATLAB's, or those of `matlab_helpers`.
FUNCTIONS: dict[str, str] = {
    **{
        name: name
        for name in (
            "abs", "ceil", "cos", "cosh", "erf", "erfc", "erfcinv", "erfinv", "exp", "expm1",
            "floor", "gamma", "hypot", "isnan", "log", "log10", "log1p", "log2", "mod", "sign",
            "sin", "sinh", "sqrt", "tan", "tanh", "beta",
            "digamma", "gammasgn", "inverse_mills", "log_ndtr", "logaddexp", "polygamma", "rint",
            "spherical_jn", "stdtr", "where", "xlogy",
        )
    },
    "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh", "arctan": "atan",
    "arctan2": "atan2", "arctanh": "atanh", "maximum": "max", "minimum": "min",
    "gammaln": "log_gamma", "jv": "besselj", "yv": "bessely", "iv": "besseli", "kv": "besselk",
}  # fmt: skip

#: Of these all operands must have one shape.
STRICT = {"beta", "betaln", "jv", "yv", "iv", "kv", "ive", "gammainc", "gammaincc", "betainc"}

#: Reductions along one axis, which take several in turn.
REDUCTIONS = {
    "max": "max({0}, [], {axis})",
    "min": "min({0}, [], {axis})",
    "prod": "prod({0}, {axis})",
}

#: Of these results are double: places along axes.
PLACES = {"argmax", "argmin", "argsort"}

#: Conditions.
TRUTHS = {
    "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and",
    "logical_or", "logical_not", "isnan", "selection",
}  # fmt: skip

#: Operators by name, as `infix.filled` reads them: parameters are ``{p[0]}``, the axes of a
#: reduction ``{axes}``, the first of them ``{axis}``, one axis behind all ``{new}``.
TEMPLATES: dict[str, str | Callable[..., str]] = {
    **{name: f"{word}({{operands}})" for name, word in FUNCTIONS.items()},
    "betaln": "real(betaln({operands}))",
    "cbrt": "nthroot({0}, 3)",
    "exp2": "2 .^ {0}",
    "power": "{0} .^ {1}",
    "reciprocal": "1 ./ {0}",
    "logit": "log({0} ./ (1 - {0}))",
    "ndtr": "erfc(-{0} / sqrt(2)) / 2",
    "ndtri": "-sqrt(2) * erfcinv(2 * {0})",
    "rgamma": "1 ./ gamma({0})",
    "ive": "besseli({0}, {1}, 1)",
    "gammainc": "gammainc({1}, {0})",
    "gammaincc": "gammainc({1}, {0}, 'upper')",
    "betainc": "betainc({2}, {0}, {1})",
    "less": "{0} < {1}",
    "less_equal": "{0} <= {1}",
    "greater": "{0} > {1}",
    "greater_equal": "{0} >= {1}",
    "equal": "{0} == {1}",
    "not_equal": "{0} ~= {1}",
    "logical_and": "{0} & {1}",
    "logical_or": "{0} | {1}",
    "logical_not": "~{0}",
    "selection": "mod({0}, {p[0]}) == {new}",
    # reductions and vectors
    "argmax": "argmax({0}, {axis})",
    "argmin": "argmin({0}, {axis})",
    "argsort": "argsort({0}, {axis})",
    "norm2": "norm2({0}, {axes})",
    "norm": "norm_of_order({0}, {p[1]}, {axes})",
    "logsumexp": "logsumexp({0}, {axes})",
    "weighted_logsumexp": "logsumexp({0}, {axes}, {1})",
    "hardmax": "shares({0}, {axes}, @max)",
    "hardmin": "shares({0}, {axes}, @min)",
    "cumsum": "cumsum({0}, {axis})",
    "revcumsum": "flip(cumsum(flip({0}, {axis}), {axis}), {axis})",
    "iota": "(0:{p[0]} - 1)'",
    "merge_axes": lambda core, target: (
        f"merge({{0}}, {core}, [{target.strip('[(,)]')}], {{before}})"
    ),
    # numbers alone
    "eye": "eye({0})",
    "leading_rows": "eye({p[0]}, {p[1]})",
    "lower_half": "tril(ones({p[0]}), -1) + eye({p[0]}) / 2",
    "lower_ones": "tril(ones({p[0]}))",
    "lower_trapezoid": "tril(ones({p[0]}, {p[1]}))",
    "upper_ones": "triu(ones({p[0]}), 1)",
}  # fmt: skip

#: The same of one matrix, or of one vector that makes a matrix.
MATRICES: dict[str, str | Callable[..., str]] = {
    **{
        name: f"{name}({{0}})"
        for name in ("det", "det_sign", "diag", "inv", "pinv", "tril", "triu")
    },
    "matrix_transpose": "{0}'",
    **dict.fromkeys(("adj", "adj_frechet"), "adj({operands})"),
    "cholesky": "chol({0}, 'lower')",
    "cholesky_pullback": "cholesky_pullback({0}, {1})",
    "column_signs": "column_signs({0})",
    **dict.fromkeys(("eigh", "eigh_nan", "eigh_epsilon"), "eigh({0})"),
    "extractdiag": lambda offset: (
        "reshape(diag({0}), [], 1)" if offset == "0" else f"extractdiag({{0}}, {offset})"
    ),
    "extracttrian": "extracttrian({0}, {p[0]}, {p[1]})",
    "gaps": "gaps({0}, {p[0]})",
    "inverse_definite": "inv({0})",
    "least_squares_inverse": "pinv({0})",
    **dict.fromkeys(("logdet", "logdet_definite"), "logdet({0})"),
    "lower_triangle": "tril({0})",
    "lq": "lq({0})",
    "makediag": "diag({0}, {p[0]})",
    "maketrian": "maketrian({0}, {p[0]}, {p[1]})",
    "squared_distances": "squared_distances({0}, {1})",
    "svd": "svd_parts({0})",
    "svd_gaps": "svd_gaps({0}, {p[0]})",
    "svd_reciprocal": "svd_reciprocal({0}, {p[0]})",
    "tri_inverse": "inv(tril({0}))",
    **{
        f"{name}_frechet": f"frechet(@{name}, {{operands}})" for name in ("expm", "sqrtm", "logm")
    },
    "matrix_function": "spectral({p[0]}, {operands})",
    "matrix_function_trace": "spectral_trace({p[0]}, {operands})",
}  # fmt: skip
