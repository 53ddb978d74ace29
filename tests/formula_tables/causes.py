"""What makes a formula ugly, as predicates on its text."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from .evaluation import evaluate
from .oracle import data
from .row import SIZES, Formula
from .text import Node, read

#: Functions in the words of those who read formulas.
WORDS = {
    "exp", "log", "sqrt", "sin", "cos", "tan", "sinh", "cosh", "tanh", "sech", "arcsin",
    "arccos", "arctan", "sign", "abs", "erf", "sigmoid", "softplus", "relu", "gammaln",
    "digamma", "polygamma", "ndtr", "log_ndtr", "sum", "mean", "prod", "var", "std",
    "logsumexp", "norm1", "norm2", "norm", "tr", "det", "logdet", "max", "min", "softmax",
    "log_softmax", "cumsum", "inv", "adj", "expm", "logm", "sqrtm", "chol", "pinv", "sym",
    "kron", "diag", "vec", "eigvals", "eye", "vector", "matrix", "ones", "zeros", "where",
    "maximum", "minimum", "hardmax", "hardmin",
}  # fmt: skip

#: The length above which a formula is not read any more.
LONGEST = 250

#: Nodes of a subterm that a reader notices when it stands there twice.
NOTICED = 10


def unordered(node: Node, kinds: dict[int, str]) -> tuple[Any, ...]:
    """A key that is equal for trees that differ by the order of terms and of factors alone."""
    parts = [unordered(p, kinds) for p in node.parts]
    if node.head == "sum":
        return ("sum", *sorted(zip(node.value, parts, strict=True), key=repr))
    if node.head in (".*", "*"):
        factors = _factors(node, node.head)
        if node.head == ".*":
            return (".*", *sorted((unordered(f, kinds) for f in factors), key=repr))
        scalars = [unordered(f, kinds) for f in factors if kinds.get(id(f)) == "scalar"]
        others = [unordered(f, kinds) for f in factors if kinds.get(id(f)) != "scalar"]
        return ("*", *sorted(scalars, key=repr), *others)
    return (node.head, node.value if node.head != "einsum" else repr(node.value), *parts)


def _factors(node: Node, sign: str) -> list[Node]:
    left, right = node.parts
    return [*(_factors(left, sign) if left.head == sign else [left]), right]


def _kinds(row: Formula, node: Node) -> dict[int, str]:
    kinds: dict[int, str] = {}
    evaluate(node, data(row), SIZES, kinds)
    return kinds


def _outside_words(row: Formula, text: str) -> bool:
    return not set(re.findall(r"([a-z]\w*)\(", text)) <= WORDS


def _digits(row: Formula, text: str) -> bool:
    return bool(re.search(r"\d\.\d{5}", text))


def _long(row: Formula, text: str) -> bool:
    return len(text) > LONGEST


def _parentheses(row: Formula, text: str) -> bool:
    """Is a product of matrices a factor of another one, so that its order is written down?"""
    node = read(text)
    kinds = _kinds(row, node)
    return any(
        n.head == "*" and n.parts[1].head == "*" and kinds[id(n.parts[1])] != "scalar"
        for n in node.walk()
    )


def _equal_terms(row: Formula, text: str) -> bool:
    node = read(text)
    kinds = _kinds(row, node)
    return any(
        len({unordered(p, kinds) for p in n.parts}) < len(n.parts)
        for n in node.walk()
        if n.head == "sum"
    )


def _repeated(row: Formula, text: str) -> int:
    """How many nodes stand in subterms that were written before."""
    node = read(text)
    counts = Counter(n for n in node.walk() if n.size() >= NOTICED)
    return sum(n.size() * (count - 1) for n, count in counts.items())


def _repeats(row: Formula, text: str) -> bool:
    return _repeated(row, text) > _repeated(row, row.form)


def _common_factor(row: Formula, text: str) -> bool:
    """Do all terms of a sum of products begin, or end, alike?"""
    node = read(text)
    ends = [
        [_factors(p, "*") for p in n.parts]
        for n in node.walk()
        if n.head == "sum" and all(p.head == "*" for p in n.parts)
    ]
    return any(len({f[0] for f in e}) == 1 or len({f[-1] for f in e}) == 1 for e in ends)


def _order(row: Formula, text: str) -> bool:
    keys = [unordered(node, _kinds(row, node)) for node in (read(text), read(row.form))]
    return keys[0] == keys[1]


#: Causes by name, the first that holds is what a row is listed under.
CAUSES: dict[str, Callable[[Formula, str], bool]] = {
    "order of terms and factors alone": _order,
    "names that users do not write": _outside_words,
    "digits of a constant": _digits,
    "parentheses for an order of products": _parentheses,
    "equal terms": _equal_terms,
    "a common factor": _common_factor,
    "repeated subterms": _repeats,
    "length": _long,
}

#: What no printed form may have, wherever an expert's form has it not.
FORBIDDEN = (
    "names that users do not write",
    "digits of a constant",
    "parentheses for an order of products",
    "equal terms",
    "length",
)


def holds(name: str, row: Formula, text: str) -> bool:
    """Does a cause hold of a text? One that only the library reads has none but its words."""
    try:
        return CAUSES[name](row, text)
    except (SyntaxError, KeyError, TypeError, ValueError):
        return False


def cause(row: Formula, text: str) -> str:
    """The first cause that holds of a text that is not the expected one."""
    return next((name for name in CAUSES if holds(name, row, text)), "another form")
