"""Views, constructors and the general product of expressions, under NumPy's names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..graph import normal
from ..graph.extents import ONE, Coef, Extent, show_shape
from ..graph.nodes import Expr
from ..graph.normal import view
from ..graph.products import filled
from ..graph.variables import check_extent, check_shape
from ..support.errors import Error, ShapeError
from .arithmetic import as_expr, check_axis, public

__all__ = [
    "einsum",
    "eye",
    "matrix_transpose",
    "ones",
    "transpose",
    "zeros",
]


@public
def transpose(a: object, axes: Sequence[int] | int | None = None, *more: int) -> Expr:
    """The array with its axes in another order, by default the reverse one."""
    e = as_expr(a)
    if isinstance(axes, int):
        axes = (axes, *more)
    perm = (
        list(range(e.ndim))[::-1]
        if axes is None
        else [check_axis(k, e.ndim, "transpose") for k in axes]
    )
    if sorted(perm) != list(range(e.ndim)):
        raise ShapeError(f"transpose: {axes} is not an order of the {e.ndim} axes")
    return view(e, perm)


@public
def matrix_transpose(a: object) -> Expr:
    """The array with its last two axes exchanged."""
    e = as_expr(a)
    if e.ndim < 2:
        raise ShapeError("a matrix transpose needs at least two axes")
    return view(e, [*range(e.ndim - 2), e.ndim - 1, e.ndim - 2])


# --- constructors ---------------------------------------------------------------------------------


@public
def eye(n: Extent) -> Expr:
    """The identity: a unit tensor, never stored."""
    return normal.einsum([], [], (0, 0), ONE, {0: check_extent(n, "the extent of eye")})


@public
def zeros(shape: Extent | Sequence[Extent] = ()) -> Expr:
    """An array of zeros; it is never stored."""
    return filled(Coef(0), check_shape(shape, "zeros"))


@public
def ones(shape: Extent | Sequence[Extent] = ()) -> Expr:
    """An array of ones; it is never stored."""
    return filled(ONE, check_shape(shape, "ones"))


@public
def einsum(spec: str, *operands: object, sizes: Mapping[str, Extent] | None = None) -> Expr:
    """A product in einsum form; unlike NumPy's, output letters may repeat (a unit tensor).

    Parameters
    ----------
    spec : str
        Such as ``"ij,jk->ik"``; ``->`` may be left out as in NumPy. ``"i->ii"`` embeds a diagonal.
    *operands : expressions or arrays
    sizes : mapping, optional
        Extents of output letters that no operand has.

    Raises
    ------
    ShapeError
        Where one letter has two extents, or letters and axes differ in number.
    """
    if not isinstance(spec, str):
        raise TypeError(f"einsum starts with text such as 'ij,jk->ik', not {type(spec).__name__}")
    exprs = [as_expr(a) for a in operands]
    text = spec.replace(" ", "")
    left, arrow, right = text.partition("->")
    words = left.split(",") if left or exprs else []
    letters = [c for word in words for c in word]
    if not all(c.isalpha() for c in [*letters, *right]):
        raise Error(f"einsum {spec!r}: indices are letters, with ',' and one '->' between them")
    if not arrow:
        right = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    if len(words) != len(exprs):
        raise Error(f"einsum {spec!r}: {len(words)} index groups for {len(exprs)} operands")
    extents = _letter_extents(spec, words, exprs)
    for c, n in _given_sizes(sizes).items():
        if c in right and extents.setdefault(c, n) != n:
            raise ShapeError(
                f"einsum {spec!r}: index {c} has extent {extents[c]}, and {n} in sizes="
            )
    for c in right:
        if c not in extents:
            raise ShapeError(f"einsum {spec!r}: no operand has index {c}; give sizes={{{c!r}: …}}")
    ids = {c: k for k, c in enumerate(sorted(extents))}
    return normal.einsum(
        exprs,
        [[ids[c] for c in word] for word in words],
        [ids[c] for c in right],
        ONE,
        {ids[c]: extent for c, extent in extents.items()},
    )


def _letter_extents(spec: str, words: list[str], exprs: list[Expr]) -> dict[str, Extent]:
    """The extents that operands give to the letters of an einsum."""
    extents: dict[str, Extent] = {}
    for k, (word, e) in enumerate(zip(words, exprs, strict=True)):
        if len(word) != e.ndim:
            raise ShapeError(
                f"einsum {spec!r}: {word!r} does not fit operand {k} of shape {show_shape(e.shape)}"
            )
        for c, extent in zip(word, e.shape, strict=True):
            if extents.setdefault(c, extent) != extent:
                raise ShapeError(
                    f"einsum {spec!r}: index {c} has extent {extents[c]} and, "
                    f"in operand {k}, extent {extent}"
                )
    return extents


def _given_sizes(sizes: Mapping[str, Extent] | None) -> dict[str, Extent]:
    if sizes is not None and not isinstance(sizes, Mapping):
        raise TypeError(f"einsum: sizes= is a mapping from letters to extents, not {sizes!r}")
    return {c: check_extent(n, f"einsum: index {c}") for c, n in (sizes or {}).items()}
