"""The factors of a product: quotients and reciprocals in it are factors below one line."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from ...graph.extents import ONE, Coef, Extent, Shape, inverse_extent, number, size_of
from ...graph.nodes import Apply, Einsum, Expr, Labels
from ...graph.normal import einsum
from ...ops.powers import whole_power
from ...support.records import NamedTuple

#: How deep quotients in quotients are opened.
DEPTH = 4

#: A factor: the expression, its labels, its exponent; and how many openings it stands in.
Place = tuple[Expr, Labels, int, int]


class Factors(NamedTuple):
    """A product as a coefficient and powers of operands with labels; exponents may be negative."""

    out: Labels
    extents: Shape
    coef: Coef
    powers: tuple[tuple[Expr, Labels, int], ...]

    @property
    def summed(self) -> set[int]:
        return set(range(len(self.extents))) - set(self.out)


def is_quotient(e: Expr) -> bool:
    """Is this written with a line?"""
    return isinstance(e, Apply) and e.op.spelling.infix in ("./", "1./")


def factors(node: Expr, opens: Callable[[Expr], bool]) -> Factors:
    """The factors of a product or a quotient, equal ones once; those that `opens` says are opened.

    Nothing cancels: what stands above and below the line does so in the text.
    """
    out = node.out if isinstance(node, Einsum) else tuple(range(node.ndim))
    extents = node.extents if isinstance(node, Einsum) else node.shape
    coef = node.coef if isinstance(node, Einsum) else ONE
    if isinstance(node, Einsum):
        start = [(arg, word, 1, 0) for arg, word in zip(node.args, node.labels, strict=True)]
    else:
        start = [(node, out, 1, 0)]
    found: dict[tuple[int, Labels, bool], list[Any]] = {}
    waiting: list[Place] = start[::-1]
    while waiting:
        e, word, power, depth = waiting.pop()
        inner = _opened(e, word, power, depth) if depth < DEPTH and opens(e) else None
        if inner is None:
            found.setdefault((id(e), word, power > 0), [e, word, 0])[2] += power
        else:
            coef = coef.by(_raised(e, power))
            waiting.extend(inner[::-1])
    powers = tuple([(e, word, power) for e, word, power in found.values()])
    made = Factors(out, extents, coef, powers)
    covered = {label for _, word, _ in powers for label in word}
    return made if made.summed <= covered else factors(node, lambda e: False)


class OpenedProducts:
    """Factors of nodes, each found once.

    Equal powers of several factors are one power of their product where that stands in the formula
    too: what a reader has seen is written again.

    Parameters
    ----------
    nodes : iterable of Expr
        The nodes of the formula.
    formed : callable
        ``formed(e)`` lets a factor that is no operand have a form.
    """

    def __init__(self, nodes: Iterable[Expr], formed: Callable[[Expr], object]) -> None:
        self.found: dict[tuple[int, int], tuple[Expr, Factors]] = {}
        self.standing = {id(e) for e in nodes if isinstance(e, Einsum) and len(e.args) > 1}
        self.formed = formed

    def of(self, node: Expr, opens: Callable[[Expr], bool], closed: int) -> Factors:
        """The factors, while as many nodes are closed to `opens`."""
        key = id(node), closed
        if key not in self.found:
            self.found[key] = node, self.grouped(factors(node, opens))
        return self.found[key][1]

    def grouped(self, product: Factors) -> Factors:
        """The product with (x .* y).^2 for x.^2 .* y.^2 where x .* y stands in the formula."""
        alike: dict[tuple[Labels, int], list[Expr]] = {}
        for e, word, power in product.powers:
            if abs(power) > 1:
                alike.setdefault((word, power), []).append(e)
        whole: dict[tuple[Labels, int], Expr] = {}
        for (word, power), members in alike.items():
            if len(members) < 2:
                continue
            axes = range(len(word))
            made = einsum(members, [axes] * len(members), axes)
            if id(made) in self.standing:
                self.formed(made)
                whole[word, power] = made
        powers = [(whole.get((word, power), e), word, power) for e, word, power in product.powers]
        return product._replace(powers=tuple(dict.fromkeys(powers))) if whole else product


def _raised(e: Expr, power: int) -> Coef:
    """The coefficient that an opened factor brings."""
    coef = e.coef if isinstance(e, Einsum) else ONE
    return coef if power > 0 else coef.inverse()


def _opened(e: Expr, word: Labels, power: int, depth: int) -> list[Place] | None:
    if is_quotient(e):
        *above, below = e.args
        return [*((a, word, power, depth + 1) for a in above), (below, word, -power, depth + 1)]
    if (raised := whole_power(e)) is not None:
        base, times = raised
        return [(base, word, times * power, depth + 1)]
    if depth and isinstance(e, Einsum) and _is_outer(e) and (abs(power) == 1 or e.coef is ONE):
        return list(_inside(e, word, power, depth + 1))
    return None


def _is_outer(e: Einsum) -> bool:
    """Is this a product without sums and unit tensors, of a finite number that is not 0?"""
    usual = not e.summed and len(set(e.out)) == len(e.out)
    return usual and 0 < size_of(e.coef.value) < math.inf


def _inside(e: Einsum, word: Labels, power: int, depth: int) -> Iterator[Place]:
    axis = dict(zip(e.out, word, strict=True))
    for arg, labels in zip(e.args, e.labels, strict=True):
        yield arg, tuple([axis[label] for label in labels]), power, depth


def with_counts(product: Factors, count_of: Callable[[Expr], Coef | None]) -> Factors:
    """The product of variances in place of sums of squares: `count_of` says of how many entries."""
    coef = product.coef
    for arg, _, power in product.powers:
        square = isinstance(arg, Einsum) and arg.summed and arg.ndim < 2 and len(arg.args) == 2
        if square and arg.args[0] is arg.args[1] and (count := count_of(arg)) is not None:
            for _ in range(abs(power)):
                coef = _cancelled(coef.by(count if power > 0 else count.inverse()))
    return product if coef is product.coef else product._replace(coef=coef)


def without_minus(product: Factors, named: Collection[int]) -> Factors:
    """The product with the other order of a difference in place of a minus sign.

    -sin(a - b) is sin(b - a), where the function has no name in the formula, and no factor of as
    many axes beside it, which may have the difference as it is.
    """
    if len([word for _, word, _ in product.powers if len(word) > 1]) > 1:
        return product
    for k, (arg, word, power) in enumerate(product.powers):
        odd = isinstance(arg, Apply) and arg._antisymmetries and power % 2
        if odd and product.coef.value < 0 and id(arg) not in named:
            turned = tuple([word[p] for p in arg._antisymmetries[0]])
            powers = (*product.powers[:k], (arg, turned, power), *product.powers[k + 1 :])
            return product._replace(coef=product.coef.by(number(-1)), powers=powers)
    return product


def _cancelled(coef: Coef) -> Coef:
    """The coefficient without dimensions that stand above and below the line."""
    times, over = Counter(coef.times), Counter(coef.over)
    rest = sorted((times - over).elements()), sorted((over - times).elements())
    return coef._replace(times=tuple(rest[0]), over=tuple(rest[1]))


def share_of(shape: Sequence[Extent]) -> Coef:
    """What a mean over a shape of named extents divides by, as a coefficient; else 1."""
    share = ONE
    for extent in shape:
        if isinstance(extent, int):
            return ONE
        share = share.by(inverse_extent(extent))
    return share
