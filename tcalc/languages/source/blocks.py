"""Contractions of large sums, block by block of one axis: no array of all of a sum is made.

A sum such as x_ik - y_jk has more axes than what it is made of. Where contractions alone read it,
it is computed for some rows at a time, as plans compute it tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, runtime_checkable

from ...contraction.nested import Size
from ...contraction.shared_products import matrices_last
from ...graph.extents import Extent, Shape
from ...graph.factors import Factors, indicates, selects
from ...graph.nodes import Add, Einsum, Expr, Labels, Var
from ...graph.normal import built, einsum, sum_as_given
from ...graph.sums import absent_axes
from ...graph.variables import var
from ...support.records import NamedTuple
from .language import Code, Language, named
from .values import NodeCodes

#: The extent of a block.
ROWS = "block_rows"


def large(e: Expr, least: float) -> bool:
    """Is e a sum with so many axes, of terms that all lack some of them?"""
    return isinstance(e, Add) and e.ndim >= least and all(map(_repeats, e.args))


def _repeats(e: Expr) -> bool:
    if not isinstance(e, Einsum) or e.summed:
        return False
    # Rows of a diagonal are no rows of the array that it is read from.
    plain = all(len(set(word)) == len(word) for word in (e.out, *e.labels))
    return plain and bool(absent_axes(e)) and not any(indicates(a) or selects(a) for a in e.args)


def read_by_blocks(nodes: Iterable[Expr], whole: Mapping[int, Factors], least: float) -> set[int]:
    """The large sums that nothing but contractions reads, by their identity."""
    found: set[int] = set()
    other: set[int] = set()
    for node in nodes:
        inside = [op for op, _ in whole[id(node)].operands] if id(node) in whole else []
        found.update([id(op) for op in inside if large(op, least)])
        other.update([id(arg) for arg in node.args if not any(arg is op for op in inside)])
    return found - other


def sliced(nodes: Iterable[Expr], sums: set[int]) -> set[int]:
    """What terms of large sums are made of: blocks take slices of it, so that it is written."""
    return {id(arg) for e in nodes if id(e) in sums for term in e.args for arg in term.args}


@runtime_checkable
class Blockwise(Protocol):
    """A language that has loops over blocks."""

    def by_columns(self, c: Code) -> Code:
        """The transpose of a matrix, its rows together in memory."""

    def blocks(
        self,
        step: str,
        args: Sequence[tuple[Code, int | None]],
        axis: int | None,
        shape: Shape,
        cut: Sequence[Extent],
    ) -> Code:
        """An array of this shape, of which `step` computes a block.

        Parameters
        ----------
        step : str
            The function of one block.
        args : sequence of (Code, int or None)
            Its operands, and the axis of which it reads some rows.
        axis : int or None
            The axis of the result that is cut; None: blocks are added up.
        shape : Shape
        cut : sequence of Extent
            How many rows there are, and the extents of one row of the largest array in a step.
        """


class Blocks:
    """The contractions of one program that are computed by blocks.

    Parameters
    ----------
    language : Language
    values : NodeCodes
    sums : set of int
        Large sums that are not made as a whole.
    """

    def __init__(self, language: Language, values: NodeCodes, sums: set[int]) -> None:
        self.language, self.values, self.sums = language, values, sums

    def written(self, whole: Factors, order: Labels, scaled: Callable[[Code], Code]) -> Code | None:
        """A contraction, result axes in this order; None where it is computed at once.

        A number or a vector among its operands is `scaled`.
        """
        large = [(op, word) for op, word in whole.operands if id(op) in self.sums]
        label = _common([word for _, word in large])
        if label is None or not isinstance(self.language, Blockwise):
            return None
        block = _Block(label, self.sums, self.values.extent)
        product = block.product(whole._replace(out=order))
        step = self.values.inside("block", product, block.names)
        codes = [self.values.code(s.of) for s in block.slices]
        small = [k for k, s in enumerate(block.slices) if s.of.ndim < 2][:1]
        codes = [scaled(c) if k in small else c for k, c in enumerate(codes)]
        args = [
            (self.values.columns(s.of) if s.turned else named(self.language, c), s.axis)
            for c, s in zip(codes, block.slices, strict=True)
        ]
        axis = order.index(label) if label in order else None
        shape = tuple([whole.extents[k] for k in order])
        cut = [whole.extents[label], *[whole.extents[k] for k in large[0][1] if k != label]]
        return self.language.blocks(step, args, axis, shape, cut)


def _common(words: Sequence[Labels]) -> int | None:
    """The first label that all have."""
    return next((k for k in words[0] if all(k in w for w in words)), None) if words else None


class _Slice(NamedTuple):
    """An operand of a block: the variable for it, the expression, and which axis is cut, if any;
    whether its transpose is given."""

    variable: Var
    of: Expr
    axis: int | None
    turned: bool = False


class _Block:
    """A contraction for some rows of one label, of which the large sums are made anew."""

    def __init__(self, label: int, sums: set[int], size: Size) -> None:
        self.label, self.sums, self.size = label, sums, size
        self.slices: list[_Slice] = []

    @property
    def names(self) -> dict[str, Var]:
        return {s.variable.name: s.variable for s in self.slices}

    def product(self, whole: Factors) -> Expr:
        operands = []
        for op, word in whole.operands:
            axis = word.index(self.label) if self.label in word else None
            if id(op) in self.sums:
                order = matrices_last(op, self.size) or tuple(range(op.ndim))
                part = sum_as_given([self._term(term, axis, order) for term in op.args])
                word = tuple([word[k] for k in order])
            else:
                part = self._cut(op, axis)
            operands.append((part, word))
        extents = {k: ROWS if k == self.label else n for k, n in whole.extents.items()}
        return built(whole._replace(operands=operands, extents=extents))

    def _cut(self, e: Expr, axis: int | None, turned: bool = False) -> Expr:
        """What stands for an operand, or for the transpose of a matrix."""
        for known in self.slices:
            if known.of is e and (known.axis, known.turned) == (axis, turned):
                return known.variable
        shape = [ROWS if k == axis else n for k, n in enumerate(e.shape[:: -1 if turned else 1])]
        self.slices.append(_Slice(var(f"x{len(self.slices) + 1}", shape), e, axis, turned))
        return self.slices[-1].variable

    def _term(self, e: Expr, axis: int | None, order: Labels) -> Expr:
        """A term of a large sum, its axes in this order, for some rows of what was that axis.

        Rows of matrices lie together where they run along the last axes.
        """
        assert isinstance(e, Einsum)
        label, out = None if axis is None else e.out[axis], tuple([e.out[k] for k in order])
        args, words = [], []
        for arg, word in zip(e.args, e.labels, strict=True):
            turned = arg.ndim == 2 and out.index(word[0]) > out.index(word[1])
            words.append(word[::-1] if turned else word)
            cut = words[-1].index(label) if label in word else None
            args.append(self._cut(arg, cut, turned))
        extents = {k: ROWS if k == label else n for k, n in enumerate(e.extents)}
        return einsum(args, words, out, e.coef, extents)
