"""Which products have a form in matrix notation.

A product of operands with index labels is written as matrices, vectors and scalars where every
operand has at most two indices and the summed ones form a path: X_mi d_m Y_mj is X'*diag(d)*Y.
Both orientations are made: matrices as they are and transposed, vectors as columns and rows; of the
spellings of a product the one with the fewest transposes is taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from ...graph.extents import ONE, Coef, Extent, quotient_of
from ...graph.nodes import Labels
from ...support.records import NamedTuple
from .factors import Factors, share_of
from .notation import Fragment
from .style import Style

#: What further transposes may cost in a product of several whose diagonal is written.
DIAGONAL = 2
FactorForm = tuple["NodeForm", Labels, int]  #: a factor's form, its labels, its exponent


class NodeForm(NamedTuple):
    """The text of one node in both orientations, and other ways to write it.

    Attributes
    ----------
    plain : Fragment
        A scalar, a column, a matrix, or an array of more axes.
    turned : Fragment
        The row, or the transposed matrix.
    short : Fragment or None
        The scalar, where all entries are one scalar.
    summand : tuple or None
        What is summed over which extents, for a sum over all entries.
    diagonal : Fragment or None
        The matrix whose diagonal this is.
    matrix : bool
        Is it matrix notation, not an einsum form?
    entries, variance : Coef or None, NodeForm or None
        The number of entries, and the variance that it is multiplied with.
    """

    plain: Fragment
    turned: Fragment
    short: Fragment | None = None
    summand: tuple[Fragment, tuple[Extent, ...]] | None = None
    diagonal: Fragment | None = None
    matrix: bool = True
    entries: Coef | None = None
    variance: NodeForm | None = None

    @property
    def factor(self) -> NodeForm:
        """The form in products, whose coefficients have the number of entries of a variance."""
        return self if self.variance is None else self.variance

    @property
    def reads_turned(self) -> bool:
        """Has the row or the transposed matrix fewer transposes in it?"""
        return fewer_transposes(self.plain, self.turned) is not self.plain


def as_one_factor(form: NodeForm, style: Style) -> NodeForm:
    """Transposed as a whole where that leaves fewer transposes inside."""
    if form.turned.flips >= form.plain.flips:
        return form
    return NodeForm(style.transpose(form.turned), form.turned)


def fewer_transposes(a: Fragment, b: Fragment) -> Fragment:
    return b if (b.flips, b.size) < (a.flips, a.size) else a


class ProductForm:
    """A product as powers of scalars, vectors on a label and matrices on two labels."""

    def __init__(self, node: Factors, forms: dict[int, NodeForm], style: Style) -> None:
        self.node = node
        self.style = style
        self.summand: tuple[Fragment, tuple[Extent, ...]] | None = None
        self.diagonal: Fragment | None = None
        self.constant = False
        self.scalars: list[FactorForm] = []
        self.vectors: dict[int, list[FactorForm]] = {}
        self.matrices: dict[tuple[int, int], list[FactorForm]] = {}
        self.forms = forms
        self.possible = len(set(node.out)) <= 2 and len(node.out) <= 2
        for arg, word, power in node.powers:
            if arg.ndim > 2:
                self.possible = False
                continue
            form = forms[id(arg)].factor
            if not word:
                self.scalars.append((form, word, power))
            elif arg.ndim == 1:
                self.vectors.setdefault(word[0], []).append((form, word, power))
            elif word[0] == word[1]:
                column = self.style.diag(form.plain)
                diagonal = NodeForm(column, self.style.transpose(column), diagonal=form.plain)
                self.vectors.setdefault(word[0], []).append((diagonal, word, power))
            else:
                key = (min(word), max(word))
                self.matrices.setdefault(key, []).append((form, word, power))

    # --- factors ---

    @staticmethod
    def scale(
        style: Style, body: Fragment | None, coef: Coef, scalars: Sequence[FactorForm]
    ) -> Fragment:
        """coef * scalars * body; a sum over as many entries as coef divides by is a mean."""
        above: list[Fragment] = []
        below: list[Fragment] = []
        for form, _, k in scalars:
            share = share_of(form.summand[1]) if form.summand and k == 1 else ONE
            if form.summand and share.over and not Counter(share.over) - Counter(coef.over):
                rest = Counter(coef.over) - Counter(share.over)
                value = quotient_of(coef.value, share.value)
                coef = coef._replace(value=value, over=tuple(sorted(rest.elements())))
                above.append(style.mean(form.summand[0]))
            else:
                side = above if k > 0 else below
                side.append(style.pointwise([(form.plain, abs(k))], True))
        return style.scale(body, coef, above, below)

    def scaled(self, body: Fragment | None) -> Fragment:
        return self.scale(self.style, body, self.node.coef, self.scalars)

    def vector(self, label: int, row: bool = False) -> Fragment | None:
        """The product of all vectors on a label."""
        factors = self.vectors.get(label)
        if not factors:
            return None
        column, turned = (
            self.style.pointwise([(f.turned if r else f.plain, k) for f, _, k in factors], False)
            for r in (False, True)
        )
        if row:
            return fewer_transposes(turned, self.style.transpose(column))
        return fewer_transposes(column, self.style.transpose(turned))

    def table(self, i: int, j: int) -> Fragment:
        """The product of all matrices on a pair of labels, rows i."""
        factors = self.matrices[min(i, j), max(i, j)]
        ways = []
        for order in ((i, j), (j, i)):
            fragments = [(f.plain if w == order else f.turned, k) for f, w, k in factors]
            ways.append(self.style.pointwise(fragments, False))
        if len(factors) == 1 and factors[0][2] == 1:
            return ways[0]
        return fewer_transposes(ways[0], self.style.transpose(ways[1]))

    # --- products without a summed label ---

    def outer(self) -> tuple[Fragment, Fragment | None] | NodeForm | None:
        out, extents, style = self.node.out, self.node.extents, self.style
        self.constant = not self.vectors and not self.matrices and len(set(out)) == len(out)
        if not out:
            return self.scaled(None), None
        if len(out) == 1:
            column = self.vector(out[0])
            if column is None:
                return self.filled(), None
            row = self.vector(out[0], True)
            return self.scaled(column), row and self.scaled(row)
        i, j = out
        if i == j:
            core = self.vector(i)
            body = style.eye(extents[i]) if core is None else style.diag(core)
            scaled = self.scaled(body)
            return NodeForm(scaled, scaled)
        if self.constant:
            return self.filled(), None
        return self.scaled(self.sheet(i, j)), self.scaled(self.sheet(j, i))

    def filled(self) -> Fragment:
        shape = tuple([self.node.extents[label] for label in self.node.out])
        return self.style.filled(self.scaled(None), shape)

    def sheet(self, i: int, j: int) -> Fragment:
        """A matrix without a summed label: scaled rows and columns, or a column times a row."""
        left, right = self.vector(i), self.vector(j)
        if self.matrices:
            before = left and self.style.diag(left)
            after = right and self.style.diag(right)
            body = self.table(i, j)
            return self.style.chain([p for p in (before, body, after) if p is not None])
        ones = self.style.ones
        column = left or ones(self.node.extents[i])
        if left and self._same_products(i, j):  # as a square is read
            return self.style.chain([column, self.style.transpose(left)])
        row = self.vector(j, True) or self.style.transpose(ones(self.node.extents[j]))
        return self.style.chain([column, row])

    def _same_products(self, i: int, j: int) -> bool:
        """Have two labels the same vectors, and more than one?"""
        one, other = ([(id(f), k) for f, _, k in self.vectors.get(n, ())] for n in (i, j))
        return one == other and len(one) > 1

    # --- contractions ---

    def contraction(self) -> tuple[Fragment, Fragment | None] | None:
        """A product with summed labels and distinct free labels."""
        found = self.unscaled()
        if found is None or (self.node.coef == ONE and not self.scalars):
            return found
        self.summand = self.diagonal = None
        there, back = found
        return self.scaled(there), back and self.scaled(back)

    def unscaled(self) -> tuple[Fragment, Fragment | None] | None:
        """The contraction without its coefficient and scalars."""
        free_labels = self.node.out
        n_summed = len(self.node.extents) - len(free_labels)
        if not free_labels and n_summed <= 2:
            return (self.total(), None) if n_summed == 1 else (self.double(), None)
        if len(free_labels) < 2 and (loop := self.cycle()) is not None:
            return (self.style.diag if free_labels else self.style.trace)(loop), None
        path = self.path()
        if path is None:
            return None
        if not free_labels:
            return self.number(path), None
        there, back = self.along(path), self.along(path[::-1])
        if path[0] != free_labels[0]:
            there, back = back, there
        if len(free_labels) == 2:
            return there, back
        self.diagonal = self.read_diagonally()
        if self.diagonal is not None:
            allowed = DIAGONAL if len(self.diagonal.chained) > 2 else 0
            if self.diagonal.flips <= there.flips + allowed:
                there = self.style.diag(self.diagonal)
        return there, back

    def summed(self, body: Fragment, labels: Sequence[int] | None = None) -> Fragment:
        """The sum of all entries, which have these labels; by default all."""
        extents = self.node.extents
        self.summand = (body, tuple([extents[k] for k in labels or range(len(extents))]))
        return self.style.total(body)

    def number(self, path: list[int]) -> Fragment:
        """A product of matrices between vectors; without one at an end, the sum of its entries."""
        found = fewer_transposes(self.along(path), self.along(path[::-1]))
        ends = [label for label in (path[0], path[-1]) if label not in self.vectors]
        return self.summed(found, ends) if ends else found

    def total(self) -> Fragment:
        """Everything on one label, summed: tr(A), sum(x), x'*y."""
        factors = self.vectors[0]
        style = self.style
        body = self.vector(0)
        assert body is not None
        total = self.summed(body)
        if len(factors) == 1 and factors[0][2] == 1:
            matrix = factors[0][0].diagonal
            return total if matrix is None else style.trace(matrix)
        flat = [f for f, _, k in factors for _ in range(k)]
        if len(flat) != 2 or any(k < 0 for _, _, k in factors):
            return total
        u, v = flat
        return fewer_transposes(style.chain([u.turned, v.plain]), style.chain([v.turned, u.plain]))

    def double(self) -> Fragment:
        """Everything on two labels, summed: sum(A.*B), tr(A*B), sum(diag(x)*A*diag(y))."""
        total = self.summed(fewer_transposes(self.sheet(0, 1), self.sheet(1, 0)))
        pair = self.matrices.get((0, 1), [])
        if len(pair) == 1 and pair[0][2] == 1 and self.vectors:
            return self.number([0, 1])
        once = len(self.node.powers) == 2 == len(pair) and {k for _, _, k in pair} == {1}
        if once and pair[0][1] == pair[1][1][::-1]:
            chain = self.style.chain([form.plain for form, _, _ in pair])
            return fewer_transposes(total, self.style.trace(chain))
        return total

    def read_diagonally(self) -> Fragment | None:
        """The product whose diagonal this is: A*B for (A.*B')*vector(1)."""
        pair = self.matrices.get((0, 1), [])
        flat = [(f, w) for f, w, k in pair for _ in range(k)]
        if (
            any(k < 0 for _, _, k in pair)
            or self.vectors
            or len(self.node.extents) != 2
            or len(flat) != 2
        ):
            return None
        (a, one), (b, other) = flat
        first = a.plain if one == (0, 1) else a.turned
        second = b.turned if other == (0, 1) else b.plain
        swapped = b.plain if other == (0, 1) else b.turned
        behind = a.turned if one == (0, 1) else a.plain
        return fewer_transposes(
            self.style.chain([first, second]), self.style.chain([swapped, behind])
        )

    def neighbours(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {label: [] for label in range(len(self.node.extents))}
        for i, j in sorted(self.matrices):
            found[i].append(j)
            found[j].append(i)
        return found

    def path(self) -> list[int] | None:
        """The labels in a row, each joined to the next by matrices, free labels at the ends."""
        near = self.neighbours()
        ends = [label for label, others in near.items() if len(others) == 1]
        if len(ends) != 2 or any(len(others) > 2 for others in near.values()):
            return None
        if not set(self.node.out) <= set(ends):
            return None
        path = [ends[0]]
        while len(path) < len(near):
            onward = [label for label in near[path[-1]] if label not in path[-2:]]
            if not onward:
                return None
            path.append(onward[0])
        return path

    def along(self, path: list[int]) -> Fragment:
        """The product of matrices along a path of labels; one summed end closes with a vector.

        Vectors on free labels scale rows and columns, or the entries of a vector.
        """
        style, free_labels = self.style, self.node.out
        matrix = len(free_labels) == 2
        factors = []
        if path[0] not in free_labels:
            factors += self.end(path[0], True)
        elif matrix and (scale := self.vector(path[0])):
            factors.append(style.diag(scale))
        for i, j in pairwise(path):
            factors.append(self.table(i, j))
            if j is not path[-1] and (scale := self.vector(j)):
                factors.append(style.diag(scale))
        if path[-1] not in free_labels:
            factors += self.end(path[-1], False)
        elif matrix and (scale := self.vector(path[-1])):
            factors.append(style.diag(scale))
        chain = style.chain(factors)
        if len(free_labels) != 1 or free_labels[0] not in self.vectors:
            return chain
        row = path[-1] == free_labels[0]
        scales = [(f.turned if row else f.plain, k) for f, _, k in self.vectors[free_labels[0]]]
        return style.pointwise([(chain, 1), *scales], False)

    def end(self, label: int, row: bool) -> list[Fragment]:
        """What closes a product at a summed label; nothing where the sum is that of all entries."""
        held = self.vector(label, row)
        if held is not None or not self.node.out:
            return [] if held is None else [held]
        ones = self.style.ones(None)
        return [self.style.transpose(ones) if row else ones]

    def cycle(self) -> Fragment | None:
        """The product of matrices once round, where every label is joined to two others."""
        near = self.neighbours()
        if any(len(others) != 2 for others in near.values()):
            return None
        path = [0]
        while not path[1:] or path[-1] != 0:
            before = path[-2] if path[1:] else near[0][1]
            path.append(next(label for label in near[path[-1]] if label != before))
        if len(path) != len(near) + 1:
            return None
        factors = []
        for i, j in pairwise(path):
            factors.append(self.table(i, j))
            if scale := self.vector(j):
                factors.append(self.style.diag(scale))
        return self.style.chain(factors)

    # --- the einsum language ---

    def entrywise(self) -> tuple[Fragment, Fragment | None] | NodeForm | None:
        """A product of arrays of one shape, entry by entry, and scalars."""
        node = self.node
        if node.summed or len(set(node.out)) < len(node.out):
            return None
        words = [word for _, word, _ in node.powers]
        self.constant = not any(words)
        if self.constant:
            if not node.out:
                return self.scaled(None), None
            return None
        if any(word not in ((), node.out) for word in words):
            return None
        every = [(self.forms[id(a)], word, k) for a, word, k in node.powers if a.ndim > 2]
        every += [f for group in self.vectors.values() for f in group]
        every += [f for group in self.matrices.values() for f in group]
        body = self.style.pointwise([(f.plain, k) for f, _, k in every], False)
        scaled = self.scaled(body)
        return NodeForm(scaled, scaled)
