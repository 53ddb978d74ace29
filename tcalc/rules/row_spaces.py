"""Functions of LQ factors that depend on the rows' space only, derived without the factors.

Where orthogonal matrices between L and Q cancel, as in sum(log(diag(L))), Q' Q, inv(L)' Q and
inv(L)' inv(L), derivatives by way of the triangle hold terms that cancel too, and masks that do not
look it. So these are seen first (`by_row_spaces`), derived as functions of the matrix, and made of
the factors again (`of_factors`). On the way W' A is P and G A is W, also where A is a product whose
factors stand among others, as those of its derivative by a scale of its columns do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..graph.applications import application, apply, rewritten
from ..graph.extents import Coef
from ..graph.factors import Factors, LabelledExpr, factors_of, inlined
from ..graph.nodes import Add, Apply, Einsum, Expr, Part, postorder
from ..graph.normal import built, terms_of
from ..graph.products import atoms_of
from ..ops.matrix.lq import LQ, lq_triangle_row, solved_rows
from ..ops.matrix.row_spaces import (
    DUAL,
    INVERSE,
    PROJECTOR,
    VOLUME,
    from_factors,
    is_row_space,
    row_space,
)
from ..ops.matrix.triangular import TRI_INVERSE
from .contracted import assigned, in_terms, opened, reaches
from .factors import OpenedProduct, log_diagonal
from .strategy import simplified

#: What two factors are whose first axes are contracted; and W and G times A over its rows.
PAIRS = {"QQ": PROJECTOR, "XQ": DUAL, "XX": INVERSE}
TIMES = {DUAL: PROJECTOR, INVERSE: DUAL}
#: How often what was seen is looked at once more.
PASSES = 4


def by_row_spaces(roots: Sequence[Expr]) -> Sequence[Expr]:
    """The roots simplified, with all that depends on the rows' space in terms of the matrix."""
    return _all_seen(simplified(roots))


def _all_seen(roots: Sequence[Expr]) -> Sequence[Expr]:
    if not any(map(_letter, postorder(roots))):
        return roots
    for _ in range(PASSES):
        before, roots = roots, rewritten(roots, lambda new, old: _seen(new))
        if all(a is b for a, b in zip(before, roots, strict=True)):
            break
    return roots


def of_factors(roots: Sequence[Expr]) -> list[Expr]:
    """The roots simplified, with what depends on the rows' space made of the matrix's factors."""
    roots = simplified(roots)
    if not any(map(is_row_space, postorder(roots))):
        return roots
    roots = rewritten(roots, lambda new, old: _reduced(new))
    roots = rewritten(roots, lambda new, old: _opened(new))
    return simplified(
        rewritten(roots, lambda new, old: from_factors(new) if is_row_space(new) else new)
    )


def by_triangles(spellings: Sequence[Sequence[Expr]]) -> list[list[Expr]]:
    """Roots with inv(L) A for Q where they are numbers that P, G and the volume are enough for.

    Their errors are of the condition of A then. Those of arrays may be less, as of a residual that
    is small, and those of what W is in would be of its square: both keep the Q of reflectors. What
    spellings of the same roots have in common is looked at once.
    """
    every = [root for roots in spellings for root in roots]
    if any(root.ndim for root in every) or not any(map(_letter, postorder(every))):
        return list(map(list, spellings))
    seen, changed = _all_seen(every), rewritten(every, _by_triangle)
    found = []
    for k, roots in enumerate(spellings):
        own = slice(k * len(roots), (k + 1) * len(roots))
        left = any(_letter(e) or is_row_space(e, DUAL) for e in postorder(seen[own]))
        found.append(list(roots) if left else changed[own])
    return found


def _by_triangle(e: Expr, _: Expr) -> Expr:
    if _letter(e) not in ("L", "Q"):
        return e
    whole = application(e)
    factor = apply(lq_triangle_row(), *whole.args, params=whole.params)
    (matrix,) = whole.args
    return factor if _letter(e) == "L" else solved_rows(matrix, factor)


def _opened(e: Expr) -> Expr:
    """What depends on the rows' space as a product of factors, of one set with those around it."""
    if not isinstance(e, Einsum) or not any(map(is_row_space, e.args)):
        return e
    whole = factors_of(e)
    operands: list[LabelledExpr] = []
    for op, word in whole.operands:
        made = from_factors(op) if is_row_space(op) else op
        operands += (
            inlined(made, word, whole.extents)
            if isinstance(made, Einsum) and made is not op
            else [(made, word)]
        )
    return built(whole._replace(operands=operands))


# --- seeing what depends on the rows' space -------------------------------------------------------


def _letter(e: Expr) -> str:
    """L or Q for the factors, X for the inverse of L; nothing for others."""
    if isinstance(e, Apply) and e.op is TRI_INVERSE:
        return "X" if _letter(e.args[0]) == "L" else ""
    return "LQ"[e.index] if isinstance(e, Part) and application(e).op is LQ else ""


def _whole(e: Expr) -> Apply:
    """The factorisation of which e is a factor, or the inverse of one."""
    return application(e.args[0] if isinstance(e, Apply) else e)


def _seen(e: Expr) -> Expr:
    if not isinstance(e, Einsum) or not e.summed:
        return e
    found = log_diagonal(
        e,
        lambda factor: _letter(factor) == "L",
        lambda factor: row_space(VOLUME, _whole(factor).args[0], _whole(factor).params),
    )
    found = next(_pairs(e), None) if found is None else found
    return e if found is None else _seen(found)


def _pairs(e: Einsum) -> Iterator[Expr]:
    """The product with two factors that are contracted over their first axes replaced."""
    for label in OpenedProduct(e).summed:
        whole = OpenedProduct(e)
        places = whole.places(label)
        if len(places) != 2:
            continue
        whole.inline_all(places, lambda op: bool(_letter(op)))
        pair = [(op, word) for op, word in whole.operands if label in word and _letter(op)]
        if len(pair) != 2 or len(whole.places(label)) != 2:
            continue
        pair.sort(key=lambda item: "XQL".index(_letter(item[0])))
        (one, first), (two, second) = pair
        name = PAIRS.get(_letter(one) + _letter(two))
        same = _whole(one) is _whole(two) and first[:-2] == second[:-2]
        if name and same and first[-2] == second[-2] == label:
            made = row_space(name, _whole(one).args[0], _whole(one).params)
            rest = [o for o in whole.operands if label not in o[1]]
            yield whole.with_operands([*rest, (made, (*first[:-2], first[-1], second[-1]))])


# --- products with the matrix ---------------------------------------------------------------------


def _reduced(e: Expr) -> Expr:
    """The product with P for W' A and W for G A; as it is where there are none."""
    if not isinstance(e, Einsum) or not e.summed or not _with_one(e):
        return e
    found = _times_matrix(factors_of(e))
    return e if found is None else found


def _with_one(e: Expr) -> bool:
    """Is W or G a factor of a product, or of one in it?"""
    return reaches(e, lambda factor: is_row_space(factor, *TIMES), (Einsum, Add))


def _times_matrix(whole: Factors) -> Expr | None:
    """The product so changed, sums in it multiplied out where one of their terms can be."""
    whole = opened(whole, _with_one)
    for k, (op, _) in enumerate(whole.operands):
        if len(terms_of(op)) > 1 and _with_one(op):
            return in_terms(whole, k, _times_matrix)
    shorter = _without_matrix(whole)
    if shorter is None:
        return None
    further = _times_matrix(shorter)
    return built(shorter) if further is None else further


def _without_matrix(whole: Factors) -> Factors | None:
    """The product with the first W or G that meets its matrix replaced, without the matrix."""
    for n, (op, word) in enumerate(whole.operands):
        if not is_row_space(op, *TIMES) or len(set(word)) < len(word):
            continue
        assert isinstance(op, Apply)
        matrix = atoms_of(op.args[0])
        plain = not (matrix.coef.times or matrix.coef.over) and len({*matrix.out}) == op.ndim
        others = [o for j, o in enumerate(whole.operands) if j != n]
        for axis in (-2, -1) if op.op.name == INVERSE else (-2,):
            known = dict(zip(matrix.out, (*word[:-2], word[axis]), strict=False))
            for rest, labels in assigned(matrix.operands, others, known) if plain else ():
                row, column = word[axis], labels[matrix.out[-1]]
                if row == column or row in whole.out or any(row in w for _, w in rest):
                    continue
                made = row_space(TIMES[op.op.name], op.args[0], op.params)
                coef = whole.coef.by(Coef(1 / float(matrix.coef.value)))
                operands = [*rest, (made, (*word[:-2], word[-3 - axis], column))]
                return whole._replace(operands=operands, coef=coef)
    return None
