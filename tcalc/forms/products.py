"""Laws of sums and products: associativity, distribution."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from ..graph.extents import Coef
from ..graph.factors import Factors, LabelledExpr, factors_of, indicates, inlined, selects
from ..graph.nodes import Add, Einsum, Expr, Labels, postorder
from ..graph.normal import add, built, distribute, einsum, terms_of
from ..graph.products import atoms_of, multiple, split_coef, zeros_node
from ..graph.sums import collected
from ..languages.writing.constants import unrounded
from .laws import law, once
from .powers import degree_of

MAX_OPERANDS = 16
MAX_TERMS = 24
#: Terms of a sum that factors beside it are multiplied into.
MAX_MULTIPLIED = 8

# --- associativity --------------------------------------------------------------------------------


def opened(e: Expr) -> Factors:
    """The product that e is, contractions among its factors opened.

    Of a term with axes, factors that are scalars are left as they are; so is what is sliced.
    """
    whole = factors_of(e) if isinstance(e, Einsum) and e.summed else atoms_of(e)
    if any(indicates(op) for op, _ in whole.operands):
        return whole
    extents = dict(whole.extents)
    operands: list[LabelledExpr] = []
    for op, word in whole.operands:
        if isinstance(op, Einsum) and _opens(op, word) and (word or not e.ndim):
            operands += inlined(op, word, extents)
        else:
            operands.append((op, word))
    return whole._replace(operands=operands, extents=extents)


def _opens(e: Einsum, word: Labels) -> bool:
    """May a contraction be opened: none that is written as a slice or as indexing?"""
    whole = e.summed and len(set(word)) == len(word)
    return whole and not any(selects(op) or indicates(op) for op in e.args)


def _chained(product: Factors) -> bool:
    """Are operands matrices and vectors, every label between two of them or at an end?"""
    counts = Counter([label for _, word in product.operands for label in word])
    return all(op.ndim <= 2 and len(set(word)) == len(word) for op, word in product.operands) and (
        all(counts[label] <= (1 if label in product.out else 2) for label in counts)
    )


@law("associativity", "A*(B*(A*x)) = A*B*A*x", "Einsum", directed=True)
def _associativity(e: Expr) -> Iterable[Expr | None]:
    """A product of matrices in which no order is preferred."""
    assert isinstance(e, Einsum)
    arrays = [op for op in e.args if op.ndim]
    if not e.summed or len(arrays) < 2:  # the sum of a product's entries is that of what has a name
        return
    if not any(isinstance(op, Einsum) and op.summed for op in arrays):
        return
    product = opened(e)
    if len(product.operands) <= MAX_OPERANDS and _chained(product):
        yield built(product)


# --- sums -----------------------------------------------------------------------------------------


def settled(e: Expr) -> Expr:
    """The term with extents above and below the line cancelled: no axis is empty."""
    if not isinstance(e, Einsum) or not (e.coef.times and e.coef.over):
        return e
    times, over = Counter(e.coef.times), Counter(e.coef.over)
    coef = Coef(
        e.coef.value,
        tuple(sorted((times - over).elements())),
        tuple(sorted((over - times).elements())),
    )
    return e if coef == e.coef else multiple(split_coef(e)[1], coef)


def summands(e: Expr) -> list[Expr]:
    """The terms of a sum and of sums in it."""
    found: list[Expr] = []
    waiting = [e]
    while waiting:
        term = waiting.pop()
        inner = terms_of(term)
        if len(inner) > 1 and len(found) + len(waiting) + len(inner) <= MAX_TERMS:
            waiting.extend(reversed(inner))
        else:
            found.append(term)
    return found


def total(terms: Sequence[Expr], like: Expr) -> Expr:
    """The sum of terms, of which there may be none."""
    return add(terms) if terms else zeros_node(like.shape)


@law(
    "extent-over-itself", "extent(n)*x/extent(n) = x", "Einsum", directed=True,
    given="no axis is empty",
)  # fmt: skip
def _settled(e: Expr) -> Iterable[Expr | None]:
    yield settled(e)


@law(
    "rounded-number", "2.9999999999999996*x = 3*x", "Einsum", directed=True,
    given="a number within a few units in the last place of a simple one is that one, rounded",
)  # fmt: skip
def _rounded(e: Expr) -> Iterable[Expr | None]:
    coef, rest = split_coef(e)
    value = unrounded(coef.value)
    if value != coef.value:
        yield multiple(rest, coef._replace(value=value))


@law("sum-of-sums", "2*(A + B) + A' = 2*A + 2*B + A'", "Add")
def _flat(e: Expr) -> Iterable[Expr | None]:
    terms = summands(e)
    if len(terms) > len(e.args):
        yield total(list(map(settled, terms)), e)


@once
def multiplied_out(e: Expr) -> list[Expr]:
    """The terms of a product with sums in it, one sum after the other."""
    found: list[Expr] = []
    waiting = [e]
    while waiting:
        term = waiting.pop()
        inner = terms_of(term)
        if len(inner) == 1 and isinstance(term, Einsum):
            place = next((k for k, a in enumerate(term.args) if isinstance(a, Add)), None)
            if place is None:
                nested = opened(term)
                if any(isinstance(op, Add) for op, _ in nested.operands):
                    inner = _over_sum(nested)
            else:
                inner = distribute(term, {place: term.args[place].args})
        if len(inner) > 1 and len(found) + len(waiting) + len(inner) <= MAX_TERMS:
            waiting.extend(reversed(inner))
        else:
            found.append(settled(term))
    return found


def _over_sum(product: Factors) -> list[Expr]:
    k = next(k for k, (op, _) in enumerate(product.operands) if isinstance(op, Add))
    op, word = product.operands[k]
    rest = product.operands[:k] + product.operands[k + 1 :]
    return [built(product._replace(operands=[*rest, (t, word)])) for t in op.args]


def _multiplied_out(e: Expr) -> tuple[list[Expr], int] | None:
    """The terms of e, products with sums multiplied out where their terms then merge with others;
    and how many are left of them.
    """
    terms = e.args if isinstance(e, Add) else (e,)
    if isinstance(e, Einsum) and not any(isinstance(a, Add) for a in e.args):
        return None
    rows = [multiplied_out(t) for t in terms]
    if max(map(len, rows)) == 1:
        return None
    parts = [[split_coef(t)[1] for t in row] for row in rows]  # held while ids are compared
    keys = [list(map(id, row)) for row in parts]
    counts = Counter([key for row in keys for key in row])
    found: list[Expr] = []
    for term, row, own in zip(terms, rows, keys, strict=True):
        meets = any(counts[key] > 1 for key in own)
        found += row if meets else [term]
    left = len(collected(found))
    return (found, left) if left < len(found) else None


@law(
    "distribution", "A*(B + A) - A*B = A*A", "Add", "Einsum", directed=True, early=True,
    given="no axis is empty",
)  # fmt: skip
def _distribution(e: Expr) -> Iterable[Expr | None]:
    """Products with sums multiplied out, where no more terms are left then."""
    found = _multiplied_out(e)
    if found is not None and found[1] <= (len(e.args) if isinstance(e, Add) else 1):
        yield total(found[0], e)


@law(
    "terms-that-merge", "x .* (x + y) + (x + 2*y) .* y = x.^2 + 2*x .* y + 2*y.^2", "Add",
    given="no axis is empty",
)  # fmt: skip
def _terms_that_merge(e: Expr) -> Iterable[Expr | None]:
    """The same of entries where more terms are left, but shorter ones; also of one sum alone."""
    if any(isinstance(node, Einsum) and node.summed for node in postorder(e.args)):
        return
    for k, term in enumerate(e.args):
        others = [*e.args[:k], *e.args[k + 1 :]]
        if not isinstance(term, Einsum):
            continue
        for j, inner in enumerate(term.args):
            row = distribute(term, {j: inner.args}) if isinstance(inner, Add) else []
            if len(collected([*others, *row])) < len(others) + len(row):
                yield total([*others, *row], e)
    found = _multiplied_out(e)
    if found is not None and found[1] > len(e.args):
        yield total(found[0], e)


def _into_sum(e: Expr, every: bool) -> Iterable[Expr | None]:
    """Factors multiplied into a sum beside them: do they cancel in every term, or only in some?"""
    assert isinstance(e, Einsum)
    for k, op in enumerate(e.args):
        word = e.labels[k]
        if not isinstance(op, Add) or len(op.args) > MAX_MULTIPLIED or len(set(word)) < len(word):
            continue
        rows = [set(_factors_by_base(t, range(op.ndim))) for t in op.args]
        common, some = set.intersection(*rows), set.union(*rows)
        others = [j for j in range(len(e.args)) if j != k and set(e.labels[j]) <= set(word)]
        met = []
        for j in others:
            axes = [word.index(label) for label in e.labels[j]]
            if any(
                (*key, not above) in (common if every else some - common)
                for *key, above in _factors_by_base(e.args[j], axes)
            ):
                met.append(j)
        if met:
            words = [e.labels[j] for j in met]
            factors = [e.args[j] for j in met]
            terms = [einsum([t, *factors], [word, *words], word) for t in op.args]
            rest = [j for j in range(len(e.args)) if j != k and j not in met]
            ops, labels = [e.args[j] for j in rest], [e.labels[j] for j in rest]
            extents = dict(enumerate(e.extents))
            yield einsum([*ops, total(terms, op)], [*labels, word], e.out, e.coef, extents)


@law(
    "factor-over-terms", "x .* (y .* reciprocal(x) + z .* reciprocal(x)) = y + z", "Einsum",
    directed=True, given="what is divided by is not 0",
)  # fmt: skip
def _factor_over_terms(e: Expr) -> Iterable[Expr | None]:
    yield from _into_sum(e, True)


@law(
    "factor-into-sum", "x .* (y .* reciprocal(x) + z) = y + x .* z", "Einsum",
    given="what is divided by is not 0",
)  # fmt: skip
def _factor_into_sum(e: Expr) -> Iterable[Expr | None]:
    yield from _into_sum(e, False)


def _factors_by_base(e: Expr, axes: Sequence[int]) -> Iterator[tuple[int, Labels, bool]]:
    """The factors of a term: what they are powers of, its axes, do they stand above the line?"""
    product = atoms_of(e)
    names = dict(zip(product.out, axes, strict=True))
    for op, word in product.operands:
        base, degree, _ = degree_of(op)
        if set(word) <= set(names):
            yield id(base), tuple([names[label] for label in word]), degree >= 0


@law(
    "product-of-chains", "#('ij,jk,ij,jk,k->i', A, B, A, B, x) = (A .* A)*((B .* B)*x)", "Einsum",
    directed=True,
)  # fmt: skip
def _product_of_chains(e: Expr) -> Iterable[Expr | None]:
    """Chains of matrices from one index to another as the entrywise product of what each is."""
    assert isinstance(e, Einsum)
    product = opened(e)
    items = product.operands
    matrices = [word for _, word in items if len(set(word)) == 2]
    many = len(matrices) > 3 and len(items) <= MAX_OPERANDS
    if not (e.summed and many) or any(op.ndim > 2 for op, _ in items):
        return
    met = False
    while (pair := _beside(items, product.out) or _behind(items, product.out)) is not None:
        first, second = pair
        kept = tuple(sorted({*first[1]} ^ {*second[1]})) or first[1]
        met = met or kept == first[1]
        whole = built(Factors([first, second], kept, product.extents))
        rest = [item for item in items if item is not first and item is not second]
        items = [*rest, (whole, kept)]
    if met:
        yield built(product._replace(operands=items))


def _beside(items: Sequence[LabelledExpr], out: Labels) -> tuple[LabelledExpr, LabelledExpr] | None:
    """Two matrices at the same indices, both of which others have too: they are no diagonal."""
    counts = Counter([*out, *[label for _, word in items for label in {*word}]])
    for a, b in combinations([item for item in items if len({*item[1]}) == 2], 2):
        if {*a[1]} == {*b[1]} and all(counts[label] > 2 for label in a[1]):
            return a, b
    return None


def _behind(items: Sequence[LabelledExpr], out: Labels) -> tuple[LabelledExpr, LabelledExpr] | None:
    """A matrix and what an index joins with it that no other factor has."""
    for label in sorted({label for _, word in items for label in word}.difference(out)):
        found = [item for item in items if label in item[1]]
        if len(found) == 2 and 0 < len({*found[0][1]} ^ {*found[1][1]}) < 3:
            return found[0], found[1]
    return None
