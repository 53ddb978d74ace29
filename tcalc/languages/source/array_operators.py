"""How programs over array modules call operators, in NumPy's words."""

from __future__ import annotations

from collections.abc import Callable

#: A text with fields, or a function of the parameters, written, that gives it.
Template = str | Callable[..., str]

#: Operators by name, as `infix.filled` reads them: parameters are ``{p[0]}``, the axes of a
#: reduction ``{axes}``, the dtype ``{dtype}``. Others are NumPy's
#: functions of their name where they act on entries.
TEMPLATES: dict[str, Template] = {
    **{
        name: f"special.{name}({{operands}})"
        for name in (
            "beta", "betainc", "betaln", "digamma", "erf", "erfc", "erfcinv", "erfinv", "gamma",
            "gammainc", "gammaincc", "gammaln", "gammasgn", "iv", "ive", "jv", "kv", "log_ndtr",
            "logit", "ndtr", "ndtri", "rgamma", "stdtr", "xlogy", "yv",
        )
    },
    "spherical_jn": "special.spherical_jn(np.asarray({0}, int), {1}).astype({dtype})",
    "polygamma": "special.polygamma({0}, {1}).astype({dtype})",
    "reciprocal": "1 / {0}",
    "reciprocal0": "np.where({0} == 0, 0, 1 / np.where({0} == 0, 1, {0}))",
    "inverse_mills": "_inverse_mills({0}, {1})",
    "power": "{0} ** {1}",
    "less": "({0} < {1})",
    "less_equal": "({0} <= {1})",
    "greater": "({0} > {1})",
    "greater_equal": "({0} >= {1})",
    "equal": "({0} == {1})",
    "not_equal": "({0} != {1})",
    "where": "np.where({0}, {1}, {2})",
    "matrix_transpose": "{0}.T",
    # reductions and vectors
    **{name: f"{{0}}.{name}(axis={{axes}})" for name in ("max", "min", "prod")},
    **{
        f"hard{name}": f"_shares({{0}}, {{0}}.{name}(axis={{axes}}, keepdims=True), {{axes}})"
        for name in ("max", "min")
    },
    **{name: f"{{0}}.{name}(axis={{axes}}).astype({{dtype}})" for name in ("argmax", "argmin")},
    "argsort": "{0}.argsort(axis={axes}, kind='stable').astype({dtype})",
    "norm2": "_norm2({0}, {axes})",
    "norm": "_norm({0}, {p[1]}, {axes})",
    "logsumexp": "special.logsumexp({0}, axis={axes})",
    "weighted_logsumexp": "special.logsumexp({0}, axis={axes}, b={1})",
    "cumsum": "np.cumsum({0}, axis=-1)",
    "revcumsum": "np.cumsum({0}[..., ::-1], axis=-1)[..., ::-1]",
    "iota": "np.arange({p[0]})",
    "merge_axes": "_merge({0}, {p[0]}, {p[1]})",
    "selection": "np.asarray({0})[..., None] % {p[0]} == np.arange({p[0]})",
    "squared_distances": "np.square({0}[..., :, None, :] - {1}[..., None, :, :]).sum(-1)",
    # matrices
    **dict.fromkeys(("adj", "adj_frechet"), "_adj({operands})"),
    "cholesky": "np.linalg.cholesky({0})",
    "cholesky_pullback": "_cholesky_pullback({0}, {1})",
    "column_signs": "_signs({0})",
    "det": "np.linalg.det({0})",
    "det_sign": "np.linalg.slogdet({0})[0]",
    **dict.fromkeys(
        ("eigh", "eigh_nan", "eigh_epsilon"),
        "np.linalg.eigh(({0} + np.swapaxes({0}, -1, -2)) / 2)",
    ),
    "extractdiag": "np.diagonal({0}, {p[0]}, -2, -1).copy()",
    "extracttrian": "_extracttrian({0}, {p[0]}, {p[1]})",
    "gaps": "_gaps({0}, {p[0]})",
    **dict.fromkeys(("inv", "inverse_definite"), "np.linalg.inv({0})"),
    **dict.fromkeys(("pinv", "least_squares_inverse"), "np.linalg.pinv({0})"),
    "leading_rows": "np.eye({p[0]}, {p[1]})",
    **dict.fromkeys(("logdet", "logdet_definite"), "np.linalg.slogdet({0})[1]"),
    "lower_half": "np.tril(np.ones(({p[0]}, {p[0]})), -1) + np.eye({p[0]}) / 2",
    "lower_ones": "np.tril(np.ones(({p[0]}, {p[0]})))",
    "lower_trapezoid": "np.tril(np.ones(({p[0]}, {p[1]})))",
    "lower_triangle": "np.tril({0})",
    "lq": "_lq({0})",
    "makediag": "_makediag({0}, {p[0]})",
    "maketrian": "_maketrian({0}, {p[0]}, {p[1]})",
    "svd": "np.linalg.svd({0}, full_matrices=False)",
    "svd_gaps": "_svd_gaps({0}, {p[0]})",
    "svd_reciprocal": "_svd_reciprocal({0}, {p[0]})",
    "tri_inverse": "np.linalg.inv(np.tril({0}))",
    "upper_ones": "np.triu(np.ones(({p[0]}, {p[0]})), 1)",
    # functions of matrices
    **{
        f"{name}_frechet": f'_frechet("{name}", {{operands}})' for name in ("expm", "sqrtm", "logm")
    },
    "matrix_function": "_spectral({p[0]}, {operands})",
    "matrix_function_trace": "{p[0]}[0]({1}).sum(axis=-1)",
}  # fmt: skip
