"""Sparse data entry by entry, where more than weights of rows and columns stands beside them.

P_ij f(A)_ij is needed at the entries of P alone: with their numbers, rows and columns as vectors it
is p_e f(A)[r_e, c_e], summed by the rows or columns that are kept. What makes an entry of f(A) of
few entries of A is computed there too, as the products of a sampled matrix are (SDDMM). For plans
only, as who computes knows which data are sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ...graph.applications import apply, rewritten
from ...graph.extents import ONE, Extent, Shape
from ...graph.factors import Factors, LabelledExpr, factors_of, indicates, selects
from ...graph.nodes import Add, Apply, Const, Einsum, Expr, Labels, Var, intern, postorder
from ...graph.normal import add, built, distribute, einsum, terms_of
from ...graph.products import atoms_of, is_zero, split_coef, zeros_node
from ...graph.properties import INTEGERS
from ...ops.choices import choice, operands_by_entry
from ...ops.selection import selection
from ...support.records import NamedTuple

#: What variables of entries are called, behind the matrix' name and a dot: nobody can give these.
PARTS = "data", "row", "column"
DIAGONAL = "diagonal"


class Entries(NamedTuple):
    """The entries of a sparse matrix as variables: their numbers, rows and columns."""

    matrix: Var
    numbers: Var
    rows: Var
    columns: Var

    @staticmethod
    def of(matrix: Var, count: int) -> Entries:
        made = [
            intern(Var, (f"{matrix.name}.{part}", (count,), INTEGERS if k else ()))
            for k, part in enumerate(PARTS)
        ]
        return Entries(matrix, *made)

    def selections(self) -> tuple[Expr, Expr]:
        """The tensors that take rows, and columns, of what stands beside the matrix."""
        rows, columns = self.matrix.shape
        return selection(self.rows, rows), selection(self.columns, columns)


def part_of(name: str) -> tuple[str, str]:
    """The matrix whose entries such a variable has, and which of its parts it is."""
    matrix, _, part = name.rpartition(".")
    return matrix, part


def by_entries(
    roots: Sequence[Expr],
    counts: Mapping[str, int],
    large: Collection[Shape],
    everywhere: bool = False,
) -> list[Expr]:
    """The roots with entries of sparse data, so many by name, where products need them.

    Parameters
    ----------
    roots : sequence of Expr
    counts : dict
        By name of sparse data, how many entries they have.
    large : collection of tuple
        Shapes of other data: roots of such a shape are written out where they are made of entries.
    everywhere : bool
        Whether all products with sparse data are to go by entries.
    """

    def opened(new: Expr, old: Expr) -> Expr:
        if not isinstance(new, Einsum):
            return new
        whole = factors_of(new)
        read = [_diagonal(op, word, counts) for op, word in whole.operands]
        if any(a is not b for (a, _), (b, _) in zip(read, whole.operands, strict=True)):
            return built(whole._replace(operands=read))
        sums = {
            k: terms_of(op)
            for k, op in enumerate(new.args)
            if [*map(id, new.args)].count(id(op)) == 1 and _adds_data(op, counts)
        }
        return add(distribute(new, sums)) if sums and new.summed else new

    def sampled(new: Expr, old: Expr) -> Expr:
        if not isinstance(new, Einsum) or not new.summed:
            return new
        found = _sampled_by(
            factors_of(new), counts, lambda op, word: everywhere or _meets(new, op, word)
        )
        return new if found is None else found

    found = rewritten(rewritten(roots, opened), sampled)
    return [_written_out(root, counts) if root.shape in large else root for root in found]


def _diagonal(op: Expr, word: Labels, counts: Mapping[str, int]) -> LabelledExpr:
    """An operand of a product, where it is the diagonal of sparse data a vector of its own."""
    if isinstance(op, Var) and op.name in counts and word[0] == word[1]:
        return intern(Var, (f"{op.name}.{DIAGONAL}", op.shape[:1], ())), word[:1]
    return op, word


def _adds_data(e: Expr, counts: Mapping[str, int]) -> bool:
    """Is this a sum of sparse data, each times a number or transposed?

    With others they might cancel, of which less is left in sums of what is multiplied out.
    """
    terms = [split_coef(term)[1] for term in terms_of(e)]
    inner = [term.args[0] if len(term.args) == 1 else term for term in terms]
    return len(terms) > 1 and all(isinstance(op, Var) and op.name in counts for op in inner)


def _written_out(root: Expr, counts: Mapping[str, int]) -> Expr:
    """A root that has the axes of sparse data, as an array."""
    whole = factors_of(root) if isinstance(root, Einsum) else atoms_of(root)
    found = _sampled_by(whole, counts, lambda op, word: set(word) <= set(whole.out))
    return root if found is None else found


def _sampled_by(
    whole: Factors, counts: Mapping[str, int], wanted: Callable[[Var, Labels], bool]
) -> Expr | None:
    """The product by entries of the first data that it is to be computed by, None without any.

    These are an operand, if that is `wanted`, or one is zero wherever they are.
    """
    for op, word in whole.operands:
        if len(set(word)) == 2 == len(word):
            for matrix in _data_below(op, counts):
                if wanted(matrix, word) if op is matrix else _vanishes(op, matrix):
                    return _sampled(whole, word, Entries.of(matrix, counts[matrix.name]))
    return None


def _data_below(e: Expr, counts: Mapping[str, int]) -> list[Var]:
    """Sparse data that an array is made of."""
    return [node for node in postorder([e]) if isinstance(node, Var) and node.name in counts]


def _vanishes(e: Expr, matrix: Var) -> bool:
    """Is every entry zero whose entry in the matrix is, whatever the others are?"""
    made = {id(matrix)}
    for node in postorder([e]):
        if not made.isdisjoint(map(id, node.args)):
            axes = tuple(range(node.ndim))
            places = operands_by_entry(node, axes)
            if not places or any(word != axes for arg, word in places if id(arg) in made):
                return False
            made.add(id(node))
    nothing = zeros_node(matrix.shape)

    def known(new: Expr, old: Expr) -> Expr:
        chosen = choice(new)
        return chosen[2] if chosen and is_zero(chosen[0]) else nothing if old is matrix else new

    (found,) = rewritten([e], known)
    return is_zero(found)


def _meets(e: Einsum, matrix: Var, word: Labels) -> bool:
    """Is more beside the matrix than products of it and arrays with one of its axes take?

    Another operand has both axes, or two that have one each are multiplied along a third, too.
    """
    pairs = list(zip(e.args, e.labels, strict=True))
    beside = [(op, set(own)) for op, own in pairs if op is not matrix]
    if any(op is matrix and own != word for op, own in pairs) or len(set(word)) < 2:
        return False
    if any(own.issuperset(word) for _, own in beside):
        # The sum of all entries of two arrays that are there is one product.
        return bool(e.out) or len(pairs) > 2 or not isinstance(beside[0][0], Var | Const)
    by_rows, by_columns = [set[int]().union(*[own for _, own in beside if k in own]) for k in word]
    return not by_rows.isdisjoint(by_columns & set(e.out))


def _sampled(whole: Factors, word: Labels, held: Entries) -> Expr:
    """The product with the entries of a matrix in place of its two axes, whose labels these are."""
    sampler, label = _Sampler(held), 1 + max(whole.extents)
    pairs = dict(zip(word, held.selections(), strict=True))
    operands: list[LabelledExpr] = [
        (chosen, (label, k)) for k, chosen in pairs.items() if k in whole.out
    ]
    operands += [sampler.operand(op, own, pairs, label) for op, own in whole.operands]
    extents = {**whole.extents, label: held.numbers.shape[0]}
    return built(Factors(operands, whole.out, extents, whole.coef))


class _Sampler:
    """Arrays at the entries of a matrix; each is found once."""

    def __init__(self, held: Entries) -> None:
        self.held = held
        self.known: dict[tuple[int, tuple[tuple[int, int], ...]], tuple[Expr, Expr]] = {}

    def operand(
        self, op: Expr, word: Labels, pairs: Mapping[int, Expr], label: int
    ) -> LabelledExpr:
        """An operand of a product, the labels of these selections taken by entries."""
        taken = {axis: pairs[k] for axis, k in enumerate(word) if k in pairs}
        if not taken:
            return op, word
        return self.at(op, taken), (label, *[k for k in word if k not in pairs])

    def at(self, e: Expr, taken: Mapping[int, Expr]) -> Expr:
        """The array with one axis of entries in front, in place of those that are taken."""
        key = id(e), tuple([(axis, id(chosen)) for axis, chosen in taken.items()])
        if key not in self.known:
            self.known[key] = e, self._at(e, taken)
        return self.known[key][1]

    def _at(self, e: Expr, taken: Mapping[int, Expr]) -> Expr:
        if e is self.held.matrix and [*map(id, taken.values())] == [
            *map(id, self.held.selections())
        ]:
            return self.held.numbers
        if isinstance(e, Add):
            return add([self.at(term, taken) for term in e.args])
        if isinstance(e, Apply) and e.op.elementwise and e.args:
            return apply(e.op, *[self.at(arg, taken) for arg in e.args], params=e.params)
        found = self._in_product(e, taken) if isinstance(e, Einsum) else None
        return _taken(e, taken, self.held.numbers.shape[0]) if found is None else found

    def _in_product(self, e: Einsum, taken: Mapping[int, Expr]) -> Expr | None:
        """A product by its operands' entries, where labels that are taken stand once in each."""
        pairs = {e.out[axis]: chosen for axis, chosen in taken.items()}
        if len(pairs) < len(taken) or any(e.out.count(k) > 1 for k in pairs):
            return None
        for op, own in zip(e.args, e.labels, strict=True):
            here = [k for k in own if k in pairs]
            if len(set(here)) < len(here) or (here and (selects(op) or indicates(op))):
                return None
        label = len(e.extents)
        whole = factors_of(e)
        operands = [self.operand(op, own, pairs, label) for op, own in whole.operands]
        out = (label, *[k for axis, k in enumerate(e.out) if axis not in taken])
        extents = {**whole.extents, label: self.held.numbers.shape[0]}
        return built(Factors(operands, out, extents, e.coef))


def _taken(e: Expr, taken: Mapping[int, Expr], count: Extent) -> Expr:
    """Entries of an array that is there as a whole."""
    label = e.ndim
    words = [tuple(range(e.ndim)), *[(label, axis) for axis in taken]]
    out = (label, *[k for k in range(e.ndim) if k not in taken])
    return einsum([e, *taken.values()], words, out, ONE, {label: count})
