"""How C writes operators of entries: by signs, its library, functions of `routines/`."""

from __future__ import annotations

from collections.abc import Callable

from .infix import filled, operand
from .language import SUM, Code

#: Below sums: comparisons and choices.
CHOICE = SUM - 1

_SAME = (
    "exp", "expm1", "exp2", "log", "log1p", "log2", "log10", "sqrt", "sin", "cos", "tan", "sinh",
    "cosh", "tanh", "floor", "ceil", "rint", "cbrt", "erf", "erfc", "hypot",
)  # fmt: skip
_OTHER = {
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh",
    "arctanh": "atanh", "abs": "fabs", "arctan2": "atan2", "power": "pow", "gamma": "tgamma",
    "beta": "beta_function", "iv": "bessel_i", "ive": "bessel_ie", "jv": "bessel_j",
    "kv": "bessel_k", "yv": "bessel_y", "spherical_jn": "spherical_j",
}  # fmt: skip
#: Functions of `routines/`.
_OWN = (
    "betainc", "betaln", "digamma", "erfcinv", "erfinv", "gammainc", "gammaincc",
    "gammaln", "gammasgn", "log_ndtr", "logaddexp", "logcosh", "logit", "maximum", "minimum", "mod",
    "ndtr", "ndtri", "polygamma", "reciprocal0", "relu", "rgamma", "sech", "sigmoid", "sign",
    "softplus", "stdtr", "xlogy", "inverse_mills",
)  # fmt: skip

#: Those that `routines/quick.c` has beside others.
QUICK = ("logaddexp", "sech", "sigmoid", "softplus", "tanh")

#: Templates of entries, as `infix.filled` reads them.
ENTRIES: dict[str, str] = {
    **{name: f"{name}({{operands}})" for name in (*_SAME, *_OWN)},
    **{f"vector_{name}": f"vector_{name}({{operands}})" for name in QUICK},
    **{name: f"{other}({{operands}})" for name, other in _OTHER.items()},
    "reciprocal": "1 / {0}",
    "stop_gradient": "{0}",
}
#: The same of integers that index.
INTEGERS: dict[str, str] = {
    "abs": "index_abs({0})", "maximum": "index_max({0}, {1})", "minimum": "index_min({0}, {1})",
    "mod": "index_mod({0}, {1})", "floor": "{0}", "ceil": "{0}", "rint": "{0}",
    "sign": "index_sign({0})",
}  # fmt: skip
_COMPARED = {
    "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==",
    "not_equal": "!=",
}  # fmt: skip


def real(c: Code) -> Code:
    """The entry, a truth value as a number."""
    return Code(f"(real){operand(c)}") if c.condition else c


def truth(c: Code) -> str:
    """An entry as a condition."""
    return c.condition or f"{operand(c)} != 0"


def _condition(text: str) -> Code:
    return Code(text, CHOICE, condition=text)


def _compared(sign: str) -> Callable[..., Code]:
    return lambda a, b: _condition(f"{operand(a, SUM)} {sign} {operand(b, SUM)}")


def _joined(sign: str) -> Callable[..., Code]:
    return lambda a, b: _condition(f"({truth(a)}) {sign} ({truth(b)})")


#: Entries that are conditions, or chosen by them.
CHOSEN: dict[str, Callable[..., Code]] = {
    **{name: _compared(sign) for name, sign in _COMPARED.items()},
    "logical_and": _joined("&&"),
    "logical_or": _joined("||"),
    "logical_not": lambda a: _condition(f"!({truth(a)})"),
    "isnan": lambda a: _condition(f"isnan({a.text})"),
    "where": lambda c, a, b: Code(
        f"{truth(c)} ? {operand(a, SUM)} : {operand(b, SUM)}", CHOICE
    ),
}  # fmt: skip


def entry(name: str, integers: bool) -> Callable[..., Code] | None:
    """A function of entries' texts; None where C has no word for the operator."""
    if name in CHOSEN:
        return CHOSEN[name]
    template = INTEGERS.get(name) if integers else None
    template = template or ENTRIES.get(name)
    if template is None:
        return None
    known = template

    def written(*entries: Code) -> Code:
        return filled(known, {}, [real(e) for e in entries], lambda c: c)

    return written
