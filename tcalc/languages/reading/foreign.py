"""What other notations write, and what is written here instead: for messages of every language."""

from __future__ import annotations

import re

#: By a mark or a word that no language has: what to write. Words count where an operator is
#: expected, a dot in front of a name.
FOREIGN = {
    **dict.fromkeys(("np.", "numpy.", "jnp.", "tc."), "functions are named without it"),
    ".": "functions stand in front: sum(x) for x.sum()",
    "{": "what belongs together stands in parentheses, as in x^(-1)",
    "\\": "commands of LaTeX are not read, words without it are",
    ":=": "a statement is name = expression",
    "‖": "a norm is norm(x)",
    "√": "write sqrt(x)",
    "if": "a choice is where(condition, a, b)",
    "and": "write logical_and(a, b)",
    "or": "write logical_or(a, b)",
    "not": "write logical_not(a)",
}

#: Marks of transposes that are pasted, and how LaTeX has them.
TRANSPOSED = (*"’‘′´⊤", ".T", "^{T}", "^\\top", "^{\\top}", "^\\intercal")

#: What stands around an operand, by the function that is meant; an index behind it is its order.
FENCES = {"‖": "norm", "||": "norm", "|": "abs"}
_ORDER = re.compile(r"_?\{?([12₁₂∞]|inf)(?!\w)\}?")
_ORDERS = str.maketrans({"₁": "1", "₂": "2", "∞": "inf"})

#: By the name that others have for a function of one argument: its name here.
CALLED = {
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan")},
    "ln": "log", "lg": "log10", "ld": "log2", "sgn": "sign", "signum": "sign",
    "sqr": "square", "sigma": "sigmoid", "σ": "sigmoid", "logistic": "sigmoid",
    "lgamma": "gammaln", "loggamma": "gammaln", "psi": "digamma", "normcdf": "ndtr", "Phi": "ndtr",
    "inverse": "inv", "invert": "inv", "determinant": "det", "adjoint": "adj", "adjugate": "adj",
    "lse": "logsumexp", "average": "mean", "avg": "mean", "total": "sum", "Σ": "sum",
    "product": "prod", "Π": "prod", "amax": "max", "amin": "min", "frobenius": "norm",
}  # fmt: skip


def fenced(text: str, place: int) -> str:
    """What to write for an operand between bars that begin here; nothing where none does."""
    bar = next((bar for bar in FENCES if text.startswith(bar, place)), "")
    start = place + len(bar)
    end = text.find(bar, start) if bar else -1
    inner = text[start:end].strip()
    if end < 0 or not inner or "\n" in inner:
        return ""
    order = _ORDER.match(text, end + len(bar)) if FENCES[bar] == "norm" else None
    more = f", {order[1].translate(_ORDERS)}" if order else ""
    return f"{FENCES[bar]}({inner if len(inner) < 40 else '…'}{more})"
