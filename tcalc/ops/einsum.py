"""The general product in einsum form: by text or lists of indices, with `...` and broadcasting."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from types import EllipsisType
from typing import Any

from ..graph import normal
from ..graph.extents import ONE, Extent
from ..graph.nodes import Expr
from ..graph.variables import check_extent
from ..support.errors import ParseError, ShapeError
from .arithmetic import as_expr, public
from .operands import shown_operands

__all__ = ["einsum"]

#: Indices of one operand or of the result: letters or numbers, and Ellipsis at most once.
Word = list[Any]


@public
def einsum(
    spec: Any, *operands: Any, sizes: Mapping[str, Extent] | None = None, optimize: Any = None
) -> Expr:
    """A product in einsum form; unlike NumPy's, output letters may repeat (a unit tensor).

    Parameters
    ----------
    spec : str
        Such as ``"ij,jk->ik"``; ``->`` may be left out as in NumPy, and ``...`` stands for axes
        that broadcast. ``"i->ii"`` embeds a diagonal. NumPy's other form, operands and lists of
        numbers in turn, is understood too.
    *operands : expressions or arrays
        An axis of extent 1 is stretched to that of the others with its index.
    sizes : mapping, optional
        Extents of output letters that no operand has.
    optimize : optional
        Not needed: plans choose the order of multiplications.

    Raises
    ------
    ParseError
        For text of another form.
    ShapeError
        Where one letter has two extents, or letters and axes differ in number.
    """
    words, out, arrays = (
        _from_text(spec, operands) if isinstance(spec, str) else _from_lists(spec, operands)
    )
    shown = repr(spec) if isinstance(spec, str) else ""
    what = f"einsum {shown}".strip()
    exprs = [as_expr(a) for a in arrays]
    if len(words) != len(exprs):
        told = f": {shown_operands(*exprs)}" if exprs else ""
        raise ShapeError(f"{what}: {len(words)} index groups for {len(exprs)} operands{told}")
    words = [_opened(what, k, w, e) for k, (w, e) in enumerate(zip(words, exprs, strict=True))]
    stretched = sorted({c for w in words for c in w if isinstance(c, tuple)})
    if out is None:
        named = [c for w in words for c in w if not isinstance(c, tuple)]
        out = [...] + sorted([c for c in set(named) if named.count(c) == 1])
    elif stretched and not _has_ellipsis(out):
        raise ShapeError(f"{what}: the result needs '...', as operands have it")
    right: list[Hashable] = []
    for c in out:
        right += stretched if isinstance(c, EllipsisType) else [c]
    extents = _extents(what, words, exprs)
    for c, n in _given_sizes(sizes).items():
        if c in right and extents.setdefault(c, n) != n:
            raise ShapeError(f"{what}: index {c} has extent {extents[c]}, and {n} in sizes=")
    for c in right:
        if c not in extents:
            raise ShapeError(f"{what}: no operand has index {c}; give sizes={{{c!r}: …}}")
    ids = {c: k for k, c in enumerate(sorted(extents, key=_rank))}
    numbers = {ids[c]: extent for c, extent in extents.items()}
    labels = []
    for w, e in zip(words, exprs, strict=True):
        labels.append([ids[c] for c in w])
        for axis, c in enumerate(w):
            if e.shape[axis] != extents[c]:  # of extent 1: summed alone
                labels[-1][axis] = len(numbers)
                numbers[len(numbers)] = 1
    return normal.einsum(exprs, labels, [ids[c] for c in right], ONE, numbers)


def _rank(c: Hashable) -> Any:
    return (isinstance(c, tuple), str(type(c)), c)


def _has_ellipsis(word: Word) -> bool:
    return any(isinstance(c, EllipsisType) for c in word)


# --- the two forms --------------------------------------------------------------------------------


def _from_text(spec: str, operands: Sequence[Any]) -> tuple[list[Word], Word | None, Sequence[Any]]:
    left, arrow, right = spec.partition("->")
    groups = left.split(",") if left.strip() or operands else []
    words, start = list[Word](), 0
    for group in groups:
        words.append(_letters(spec, start, group))
        start += len(group) + 1
    return words, _letters(spec, len(left) + 2, right) if arrow else None, operands


def _letters(spec: str, start: int, group: str) -> Word:
    """The indices of a group that starts at a place of the text."""
    word: Word = []
    for found in re.finditer(r"\.\.\.|\S", group):
        c = found.group()
        if ... in word if c == "..." else not c.isalpha():
            message = (
                "einsum: indices are letters, with ',' and one '->' between them, and one '...' in "
                "each group"
            )
            raise ParseError(message, spec, start + found.start())
        word.append(... if c == "..." else c)
    return word


def _from_lists(first: Any, rest: Sequence[Any]) -> tuple[list[Word], Word | None, Sequence[Any]]:
    """Operands and lists of indices in turn; one more list is that of the result."""
    given = [first, *rest]
    pairs, last = given[: len(given) // 2 * 2], given[len(given) // 2 * 2 :]
    lists = [*pairs[1::2], *last]
    for word in lists:
        if not isinstance(word, Sequence) or isinstance(word, str):
            raise TypeError(
                "einsum starts with text such as 'ij,jk->ik', or has a list of indices after each "
                f"operand, not {type(word).__name__}"
            )
    return [list(w) for w in pairs[1::2]], list(last[0]) if last else None, pairs[0::2]


# --- indices --------------------------------------------------------------------------------------


def _opened(what: str, k: int, word: Word, e: Expr) -> Word:
    """The word with one index per axis; those of an ellipsis are counted from the right."""
    more = e.ndim - len(word) + 1
    if _has_ellipsis(word) and more >= 0:
        at = word.index(...)
        return [*word[:at], *[("...", place - more) for place in range(more)], *word[at + 1 :]]
    if len(word) != e.ndim:
        shown = "".join("..." if isinstance(c, EllipsisType) else str(c) for c in word)
        raise ShapeError(f"{what}: {shown!r} does not fit operand {k}, {shown_operands(e)}")
    return word


def _extents(what: str, words: list[Word], exprs: list[Expr]) -> dict[Hashable, Extent]:
    """The extents that operands give to the indices; 1 is stretched."""
    extents: dict[Hashable, Extent] = {}
    for k, (word, e) in enumerate(zip(words, exprs, strict=True)):
        for c, extent in zip(word, e.shape, strict=True):
            known = extents.setdefault(c, extent)
            if known == 1 and isinstance(known, int):
                extents[c] = extent
            elif extent != known and not (extent == 1 and isinstance(extent, int)):
                first = next(e for e, w in zip(exprs, words, strict=True) if c in w)
                raise ShapeError(
                    f"{what}: index {c} has extent {known} in {shown_operands(first)}, and "
                    f"extent {extent} in operand {k}, {shown_operands(e)}"
                )
    return extents


def _given_sizes(sizes: Mapping[str, Extent] | None) -> dict[str, Extent]:
    if sizes is not None and not isinstance(sizes, Mapping):
        raise TypeError(f"einsum: sizes= is a mapping from letters to extents, not {sizes!r}")
    return {c: check_extent(n, f"einsum: index {c}") for c, n in (sizes or {}).items()}
