"""What people write who know other languages, and what is written here instead: for messages."""

from __future__ import annotations

from ..reading.foreign import CALLED
from ..reading.tree import Node, SyntaxTree
from .functions import FUNCTIONS, signature_of

#: By the name that somebody calls: what to write, in which {0} and {1} are the arguments.
INSTEAD = {
    **{name: f"{call}({{0}})" for name, call in CALLED.items()},
    "atan2": "arctan2({0}, {1})",
    "pow": "{0} .^ {1}, of scalars {0}^{1}",
    "heaviside": "where({0} > 0, 1, 0)",
    "step": "where({0} > 0, 1, 0)",
    "dot": "{0}'*{1}",
    "inner": "{0}'*{1}",
    "vdot": "{0}'*{1}",
    "outer": "{0}*{1}'",
    "hadamard": "{0} .* {1}",
    "times": "{0} .* {1}",
    "multiply": "{0} .* {1}",
    "matmul": "{0}*{1}",
    "mtimes": "{0}*{1}",
    "mm": "{0}*{1}",
    "cross": "#('ijk,j,k->i', E, {0}, {1}), where E of shape (3, 3, 3) holds the signs",
    "solve": "{0} \\ {1}",
    "mldivide": "{0} \\ {1}",
    "transpose": "{0}'",
    "eig": "eigvals({0}) and eigvecs({0})",
    "lu": "{0} \\ b to solve, det({0}), or inv({0})",
    "rank": "tr(pinv({0})*{0}), as a rank has no derivative",
    "cond": "norm({0}, 2)*norm(inv({0}), 2)",
    "identity": "eye(n)",
    "I": "eye(n)",
    "tensorproduct": "kron({0}, {1})",
    "ones": "vector(1, n) for a column, ones(m, n) for a matrix",
    "zeros": "vector(0, n) for a column, zeros(m, n) for a matrix",
    "linspace": "iota(n), which is 0, 1, … n - 1, and arithmetic",
    "arange": "iota(n), which is 0, 1, … n - 1",
    "range": "iota(n), which is 0, 1, … n - 1",
    **dict.fromkeys(("size", "length", "numel", "len"), "extent(n) of the dimension's name n"),
    "einsum": "#('ij,jk->ik', {0}, {1})",
    "repmat": "{0}*vector(1, n)' to repeat a column",
    "round": "floor({0} + 0.5)",
    "cot": "1 ./ tan({0})",
    "sec": "1 ./ cos({0})",
    "csc": "1 ./ sin({0})",
    "sort": "{0}[argsort({0})]",
    **dict.fromkeys(("flip", "reverse", "rev"), "{0}[::-1]"),
    "diff": "{0}[1:] - {0}[:-1]",
    "cumprod": "exp(cumsum(log({0})))",
    **dict.fromkeys(("cov", "covariance"), "C'*C/m of C = {0} - vector(1, m)*vector(1)'*{0}/m"),
    "if": "where(condition, a, b)",
    "sumsq": "sum({0}.^2)",
    "sqnorm": "sum({0}.^2)",
    "log_det": "logdet({0})",
    "const": "a declared variable in its place: arrays of more than 64 numbers are not printed",
}

#: By an exponent that is none: what to write.
TRANSPOSES = {
    **dict.fromkeys(("T", "t", "H", "tr"), "a transpose is written {0}'"),
    **dict.fromkeys(("-T", "-t", "(-T)"), "the inverse of a transpose is written inv({0})'"),
}


def instead(name: str, arguments: list[str]) -> str:
    """What to write in place of a call; nothing where that is not known."""
    shown = [*arguments, "…", "…"] if arguments else ["…", "…"]
    known = INSTEAD.get(name) or INSTEAD.get(name.lower())
    if known:
        return known.format(*shown)
    lower = next((other for other in FUNCTIONS if other.lower() == name.lower()), name.lower())
    if lower != name and signature_of(lower) is not None:
        return f"{lower}({', '.join(arguments) or '…'})"
    return ""


def called_array(name: str, node: Node, tree: SyntaxTree) -> str:
    """What to write for an array with arguments: numbers are subscripts."""
    entries = len(node.args) > 1 or any(tree.nodes[place].kind == "number" for place in node.args)
    product = f"a product is written {name}*(…)"
    return f"entries are {name}[…], counted from 0, and {product}" if entries else product


def called(name: str, power: str, argument: str) -> str:
    """What to write for ``sin x`` and ``sin^2(x)``."""
    call = f"{name}({argument})"
    return f"{call}.^{power}, of a scalar {call}^{power}" if power else call
