"""Values of the index language: expressions whose axes are labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ...graph.applications import apply
from ...graph.extent_forms import Least, atom_of, is_nonnegative
from ...graph.extents import ONE, Extent, extent_coef, extent_from, number
from ...graph.factors import LabelledExpr
from ...graph.nodes import Add, Apply, Expr, Labels, postorder
from ...graph.normal import add, einsum, scale, view
from ...graph.operators import TABLE
from ...graph.products import filled, multiple, numeral, numeric_value, split_coef
from ...integers.affine import Affine, Guard, factors_of
from ...ops.affine_entries import integral
from ...ops.indicator import indicator, label_of
from ...ops.reductions import arange
from ...support.misspelt import closest_name
from ...support.records import NamedTuple
from ..reading.library import LIBRARY
from ..reading.rows import RowCall, applied_row, row_named

#: Functions of entries that are no row of the operator table: the least and the greatest number of
#: arguments.
OTHER_FUNCTIONS = {
    "where": (3, 3), "square": (1, 1), "clip": (3, 3), "max": (2, 99), "min": (2, 99),
    "ceil": (1, 1), "greater": (2, 2), "greater_equal": (2, 2),
}  # fmt: skip
#: Coefficients up to this stay as they are modulo a dimension: doubles hold their multiples.
LARGE = 2**20
#: The value of every reduction over an empty range.
NEUTRAL_ELEMENT = {
    "sum": 0.0, "prod": 1.0, "max": -float("inf"), "min": float("inf"),
    "logsumexp": -float("inf"), "norm2": 0.0,
}  # fmt: skip
#: The operators of comparisons.
COMPARISON_FUNCTIONS = {
    "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal", "==": "equal",
    "!=": "not_equal",
}  # fmt: skip


class Labelled(NamedTuple):
    """An expression and the labels of its axes, which are distinct and sorted."""

    expr: Expr
    word: Labels


SCALAR_ONE = Labelled(numeral(1), ())


def label_union(values: Iterable[Labelled]) -> Labels:
    return tuple(sorted({label for v in values for label in v.word}))


def contracted(
    operands: Sequence[LabelledExpr], out: Labels, extents: Mapping[int, Extent]
) -> Labelled:
    """The product of operands, summed over the labels that are not in `out`."""
    ops, words = [op for op, _ in operands], [word for _, word in operands]
    return Labelled(einsum(ops, words, out, ONE, {k: extents[k] for k in out}), out)


def labelled_multiple(v: Labelled, factor: int) -> Labelled:
    return Labelled(scale(v.expr, number(factor)), v.word)


def expanded(v: Labelled, word: Labels, extents: Mapping[int, Extent]) -> Expr:
    """The value repeated along the labels that it does not have."""
    return v.expr if v.word == word else contracted([v], word, extents).expr


def labelled_modulo(form: Affine, modulus: Affine, extents: Mapping[int, Extent]) -> Labelled:
    """The values of one affine form modulo another, without labels, exact in doubles.

    Coefficients are taken modulo it first: a number now, a dimension when it has an extent.
    """
    divisor = labelled_affine(modulus, extents)
    values = [Labelled(numeral(0), ())]
    for name, c in (*form.terms, ("", form.constant)):
        value = SCALAR_ONE if not name else labelled_affine(Affine.of(name), extents)
        if not modulus.terms and modulus.constant > 0:
            values.append(labelled_multiple(value, c % modulus.constant))
        elif abs(c) < LARGE:
            values.append(labelled_multiple(value, c))
        else:
            values.append(labelled_product([_residue(c, divisor, extents), value], extents))
    return labelled_call("mod", [labelled_sum(values, extents), divisor], extents)


def _residue(c: int, divisor: Labelled, extents: Mapping[int, Extent]) -> Labelled:
    """A number of any size modulo a dimension."""
    low = Labelled(numeral(c % LARGE), ())
    if not -LARGE < c < LARGE:
        high = _residue(c // LARGE, divisor, extents)
        low = labelled_sum([labelled_multiple(high, LARGE), low], extents)
    elif c < 0:
        low = Labelled(numeral(c), ())
    return labelled_call("mod", [low, divisor], extents)


def _reduced(v: Labelled, modulus: Labelled) -> Labelled:
    """A value that is congruent modulo a number, with small coefficients."""
    n = numeric_value(modulus.expr)
    if n is None or n < 1 or modulus.word:
        return v
    terms: list[Expr] = []
    for term in v.expr.args if isinstance(v.expr, Add) else (v.expr,):
        coef, rest = split_coef(term)
        terms.append(multiple(rest, coef._replace(value=int(coef.value) % int(n))))
    return Labelled(add(terms), v.word)


def labelled_call(name: str, values: Sequence[Labelled], extents: Mapping[int, Extent]) -> Labelled:
    """A function of entries, over all labels of its arguments."""
    if name == "mod" and len(values) == 2 and all(integral(v.expr) for v in values):
        values = [_reduced(values[0], values[1]), values[1]]
    word = label_union(values)
    args = [expanded(v, word, extents) for v in values]
    if name in ("max", "min"):
        found = args[0]
        for arg in args[1:]:
            found = LIBRARY[f"{name}imum"](found, arg)
        return Labelled(found, word)
    if name == "ceil":
        return labelled_multiple(
            Labelled(LIBRARY["floor"](labelled_multiple(values[0], -1).expr), word), -1
        )
    call: Callable[..., Expr] = LIBRARY[name] if name in LIBRARY else partial(apply, TABLE[name])
    return Labelled(call(*args), word)


def entry_arity(name: str) -> tuple[int, int] | None:
    """How many arguments a function of entries takes; None where there is none of that name."""
    if name in OTHER_FUNCTIONS:
        return OTHER_FUNCTIONS[name]
    row = TABLE.get(name)
    if row is None or not row.elementwise or not row.core:
        return None
    return len(row.core), len(row.core)


def _row(name: str) -> RowCall | None:
    """The row of a function of whole arrays, and which of its results is meant."""
    found = row_named(name)
    return found if found is not None and found.parameters else None


def array_operands(name: str) -> int | None:
    """How many whole arrays a function takes; None where there is none of that name."""
    found = _row(name)
    return None if found is None else len(found.op.core)


def array_call(name: str, operands: Sequence[Expr], params: Sequence[Any]) -> Expr:
    """A function of whole arrays; of all axes where no parameter says of how many of the last."""
    row = _row(name)
    assert row is not None
    if row.op.core[:1] == (-1,) and len(params) < max(map(len, row.op.admitted)):
        params = [operands[0].ndim, *params]
    # A row of vectors is of the last axis here; the library's function may be of all entries.
    if row.part < 0 and name in LIBRARY and not params and row.op.core != (1,):
        value: Expr = LIBRARY[name](*operands)
        return value
    return applied_row(row, operands, params)


def closest_entry_function(name: str) -> str:
    """The known function with the most similar name, or nothing."""
    return closest_name(name, {*OTHER_FUNCTIONS, *[n for n in TABLE if entry_arity(n)]})


def labelled_product(values: Sequence[Labelled], extents: Mapping[int, Extent]) -> Labelled:
    """The product, summed over nothing."""
    if len(values) == 1:
        return values[0]
    return contracted(values, label_union(values), extents)


def labelled_sum(values: Sequence[Labelled], extents: Mapping[int, Extent]) -> Labelled:
    word = label_union(values)
    return Labelled(add([expanded(v, word, extents) for v in values]), word)


def _factor(name: str, extents: Mapping[int, Extent]) -> Labelled:
    """The value of an index, a dimension, or a quotient or minimum of dimensions."""
    label, atom = label_of(name), atom_of(name)
    if label is not None:
        return Labelled(arange(extents[label]), (label,))
    if is_nonnegative(Affine.of(name)) or atom is None:
        return Labelled(filled(extent_coef(extent_from(Affine.of(name))), ()), ())
    if isinstance(atom, Least):
        return labelled_call("min", [labelled_affine(f, extents) for f in atom.forms], extents)
    quotient = [labelled_affine(f, extents) for f in (atom.form, Affine((), atom.divisor))]
    return labelled_call("floor", [labelled_call("divide", quotient, extents)], extents)


def labelled_affine(form: Affine, extents: Mapping[int, Extent]) -> Labelled:
    """The values of an affine form in labels and dimensions."""
    terms = [Labelled(numeral(form.constant), ())] if form.constant or not form.terms else []
    for name, c in form.terms:
        values = [_factor(part, extents) for part in factors_of(name)]
        terms.append(labelled_multiple(labelled_product(values, extents), c))
    return labelled_sum(terms, extents)


def mask_of(guards: Iterable[Guard], extents: Mapping[int, Extent]) -> Labelled:
    """1 where conditions hold, else 0."""
    operands = indicator(extents, guards)
    if not operands:
        return SCALAR_ONE
    word = tuple(sorted({label for _, w in operands for label in w}))
    return contracted(operands, word, extents)


# --- what binds indices ---------------------------------------------------------------------------


def reduced_over(
    name: str,
    body: Labelled,
    labels: Sequence[int],
    guards: Sequence[Guard],
    extents: Mapping[int, Extent],
) -> Labelled:
    """The reduction (sum, product, …) of a value over labels, where conditions hold."""
    mask = mask_of(guards, extents)
    outer = tuple([k for k in label_union([body, mask]) if k not in labels])
    if name == "sum":
        return _summed(body, labels, mask, outer, extents)
    word = (*outer, *labels)
    if any(extents[k] == 0 for k in labels):
        return Labelled(numeral(NEUTRAL_ELEMENT[name], ()), ())
    whole = contracted([body], word, extents).expr
    if mask.word:
        chosen = contracted([mask], word, extents).expr
        whole = LIBRARY["where"](chosen, whole, numeral(NEUTRAL_ELEMENT[name], whole.shape))
    return Labelled(apply(TABLE[name], whole, params=(len(labels),)), outer)


def _summed(
    body: Labelled,
    labels: Sequence[int],
    mask: Labelled,
    outer: Labels,
    extents: Mapping[int, Extent],
) -> Labelled:
    if any(extents[k] == 0 for k in labels):
        return Labelled(numeral(0), ())
    operands: list[LabelledExpr] = [body]
    if mask.word and restricted(body.expr):
        word = label_union([body, mask])
        chosen, whole = expanded(mask, word, extents), expanded(body, word, extents)
        operands = [(LIBRARY["where"](chosen, whole, numeral(0, whole.shape)), word)]
    if mask is not SCALAR_ONE:
        operands.append(mask)
    placed = {k for _, word in operands for k in word}
    operands += [(filled(ONE, (extents[k],)), (k,)) for k in labels if k not in placed]
    return contracted(operands, outer, extents)


def summed_partially(body: Labelled, label: int, other: int, from_on: bool) -> Labelled:
    """The sums of a value over a label up to another one, or from that on, of the same range."""
    axis = body.word.index(label)
    sums = LIBRARY["revcumsum" if from_on else "cumsum"](body.expr, axis)
    word = [other if x == label else x for x in body.word]
    order = sorted(range(len(word)), key=lambda k: word[k])
    return Labelled(view(sums, order), tuple(sorted(word)))


def combined_pieces(
    name: str, values: Sequence[Labelled], extents: Mapping[int, Extent]
) -> Labelled:
    """The reduction of the values of a reduction over disjoint pieces of a range."""
    if not values:
        return Labelled(numeral(NEUTRAL_ELEMENT[name]), ())
    if len(values) == 1:
        return values[0]
    pairs = {"sum": "add", "prod": "multiply", "logsumexp": "logaddexp", "norm2": "hypot"}
    found = values[0]
    for value in values[1:]:
        found = labelled_call(pairs.get(name, name), [found, value], extents)
    return found


def restricted(e: Expr) -> bool:
    """Is an operator inside whose value may be no finite number, so that 0 times it is not 0?"""
    return any(
        isinstance(node, Apply)
        and (any(s is not None for s in node.op.meaning.safe) or any(node.op.core))
        for node in postorder((e,))
    )


def with_axes(v: Labelled, word: Labels, extents: Mapping[int, Extent]) -> Expr:
    """The value with its axes in a given order, repeated along those that it does not have."""
    if sorted(v.word) == sorted(word):
        return view(v.expr, [v.word.index(k) for k in word])
    return contracted([v], word, extents).expr
