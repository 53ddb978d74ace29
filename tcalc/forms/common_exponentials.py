"""A law of exponentials that are multiples of each other: exp(x + log(y)) is y exp(x).

Densities at two points that a change of variables connects are such multiples: those of option
prices, with (log(s/k) + r t + v^2 t/2)^2 and (log(s/k) + r t - v^2 t/2)^2 in their exponents. Only
what is multiplied out shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import product as combinations

from ..graph.extents import ONE, Coef
from ..graph.factors import Factors, LabelledExpr
from ..graph.nodes import Add, Apply, Expr, Labels, postorder
from ..graph.normal import built, einsum, scale
from ..graph.operators import TABLE
from ..graph.products import atoms_of, filled
from ..graph.sums import collected
from ..ops.elementwise import log
from ..support.limits import spend
from ..support.records import NamedTuple
from .laws import law, once
from .powers import degree_of, powers
from .products import total

EXP, LOG = TABLE["exp"], TABLE["log"]
#: Terms of a sum that is multiplied out, and the highest power of a sum that is.
MAX_TERMS = 48
MAX_POWER = 3
#: The highest root among powers.
MAX_ROOT = 6


class _OtherForm(Exception):
    """There are more terms than are looked at, or a term has a unit tensor in it."""


@once
def _expanded(e: Expr) -> list[Expr]:
    """The terms of a sum that is multiplied out, with logarithms of products opened."""
    if isinstance(e, Add):
        found = [term for arg in e.args for term in _expanded(arg)]
        if len(found) > MAX_TERMS:
            raise _OtherForm
        return found
    if isinstance(e, Apply) and e.op is LOG:
        return _opened_log(e)
    product = _factors(e)
    if len(product.operands) == 1 and product.operands[0][0] is e:
        base, degree, rest = degree_of(e)
        if rest is not None or not isinstance(base, Add) or degree not in range(2, MAX_POWER + 1):
            return [e]
    choices: list[list[LabelledExpr]] = []
    for op, word in product.operands:
        base, degree, rest = degree_of(op)
        whole = rest is None and degree in range(1, MAX_POWER + 1)
        opens = whole and (isinstance(base, Add) or (isinstance(base, Apply) and base.op is LOG))
        terms = _expanded(base) if opens else [op]
        choices += [[(term, word) for term in terms]] * (int(degree) if opens else 1)
    count = 1
    for row in choices:
        count *= len(row)
    if count > MAX_TERMS:
        raise _OtherForm
    spend("steps", 4 * count)
    return [
        _merged(built(product._replace(operands=list(operands))))
        for operands in combinations(*choices)
    ]


def _opened_log(e: Apply) -> list[Expr]:
    """log(2 x^3/y) as log(2) + 3 log(x) - log(y); x^2 is positive where x is not."""
    product = _factors(e.args[0])
    if product.coef.times or product.coef.over or product.coef.value <= 0:
        return [e]
    degrees: dict[tuple[int, Labels], Fraction] = {}
    for op, word in product.operands:
        base, degree, _ = degree_of(op)
        degrees[id(base), word] = degrees.get((id(base), word), Fraction(0)) + degree
    if any(degree.numerator % 2 == 0 for degree in degrees.values()):
        return [e]
    found = [] if product.coef.value == 1 else [log(filled(product.coef, e.shape))]
    for op, word in product.operands:
        base, degree, rest = degree_of(op)
        factor, power = (op, 1.0) if rest is not None else (base, float(degree))
        found.append(scale(_placed(log(factor), word, product.out, e), Coef(power)))
    return found


def _placed(op: Expr, word: Labels, out: Labels, like: Expr) -> Expr:
    """An operand along the axes of a node that it stands in."""
    return einsum([op], [word], out, ONE, dict(zip(out, like.shape, strict=True)))


def _merged(e: Expr) -> Expr:
    """A product with one power of each base."""
    product = _factors(e)
    found: dict[tuple[int, Labels], list[Expr]] = {}
    for op, word in product.operands:
        found.setdefault((id(degree_of(op)[0]), word), []).append(op)
    operands: list[LabelledExpr] = []
    for (_, word), ops in found.items():
        degrees = [degree_of(op) for op in ops]
        if len(ops) > 1 and all(rest is None for _, _, rest in degrees):
            ops = powers(
                degrees[0][0], sum([degree for _, degree, _ in degrees], Fraction(0)), None
            )
        operands += [(op, word) for op in ops]
    return built(product._replace(operands=operands))


class _Term(NamedTuple):
    """A term: factors that are exponentials, their exponent multiplied out, the other factors."""

    exponentials: tuple[LabelledExpr, ...]
    exponent: list[Expr]
    others: tuple[LabelledExpr, ...]
    whole: Factors

    def size(self) -> tuple[int, int]:
        return len(self.exponentials), len(self.exponent)

    def times(self, exponentials: Sequence[LabelledExpr], more: Sequence[LabelledExpr]) -> Expr:
        """The other factors with other exponentials."""
        operands = [*self.others, *more, *exponentials]
        return _merged(built(self.whole._replace(operands=operands)))


def _split(term: Expr) -> _Term:
    product = _factors(term)
    exponentials: list[LabelledExpr] = []
    others: list[LabelledExpr] = []
    exponent: list[Expr] = []
    for op, word in product.operands:
        base, degree, rest = degree_of(op)
        if rest is None and isinstance(base, Apply) and base.op is EXP:
            exponentials.append((op, word))
            placed = _placed(base.args[0], word, product.out, term)
            exponent += _expanded(scale(placed, Coef(float(degree))))
        else:
            others.append((op, word))
    return _Term(tuple(exponentials), collected(exponent), tuple(others), product)


def _factors(term: Expr) -> Factors:
    """Its factors, under the labels of its axes."""
    product = atoms_of(term)
    names = {label: k for k, label in enumerate(product.out)}
    if len(names) < term.ndim:
        raise _OtherForm
    words = [(op, tuple([names[label] for label in word])) for op, word in product.operands]
    extents = {names[label]: extent for label, extent in product.extents.items()}
    return Factors(words, tuple(range(term.ndim)), extents, product.coef)


def _as_powers(exponent: Sequence[Expr]) -> list[LabelledExpr] | None:
    """exp(2 log(x) - log(y)) as x^2 and 1/y; None where it has other terms."""
    found: list[LabelledExpr] = []
    for term in exponent:
        product = _factors(term)
        plain = product.coef == Coef(product.coef.value) and len(product.operands) == 1
        op, word = product.operands[0] if plain else (term, ())
        if not isinstance(op, Apply) or op.op is not LOG or not math.isfinite(product.coef.value):
            return None
        degree = Fraction(product.coef.value).limit_denominator(MAX_ROOT)
        inner = degree_of(op.args[0])[1]
        if degree != product.coef.value or (degree.denominator > 1 and inner.numerator % 2 == 0):
            return None
        found += [(factor, word) for factor in powers(op.args[0], degree, None)]
    return found


@law(
    "multiples-of-one-exponential", "exp(x + log(y)) + y .* exp(x) = 2*y .* exp(x)", "Add",
    directed=True, given="what logarithms are of is positive",
)  # fmt: skip
def _of_one_exponential(e: Expr) -> Iterable[Expr | None]:
    """Terms with an exponential that is a multiple of another term's, where they merge then."""
    inside = {id(node) for node in postorder(e.args) if isinstance(node, Apply) and node.op is EXP}
    if len(inside) < 2:
        return
    try:
        terms = [_split(term) for term in _expanded(e)]
    except _OtherForm:
        return
    kinds: list[_Term] = []
    found: list[Expr] = []
    for term in sorted(terms, key=_Term.size):
        for kind in kinds:
            over = collected([*term.exponent, *[scale(t, Coef(-1)) for t in kind.exponent]])
            factors = _as_powers(over)
            if factors is not None:
                found.append(term.times(kind.exponentials, factors))
                break
        else:
            kinds.append(term)
            found.append(term.times(term.exponentials, ()))
    left = collected(found)
    if len(kinds) < len({term.exponentials for term in terms}) and len(left) < len(e.args):
        yield total(left, e)
