"""Which products have a form in matrix notation, and the layout of whole expressions.

A product of operands with index labels is written as matrices, vectors and scalars where every
operand has at most two indices and the summed ones form a path: X_mi d_m Y_mj is X'*diag(d)*Y.
Everything else is an einsum form, with operands in matrix notation as far as they have one.

Matrices are laid out both as they are and transposed, vectors as columns and rows; of the spellings
of a product the one with the fewest transposes is taken. Where shared parts would make the text
long, they become statements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..expr import Add, Apply, Const, Einsum, Expr, Labels, Var, postorder
from ..extents import Coef, Extent
from ..normal import bare, symmetries
from ..op import batch_axes
from .style import ATOM, Piece, Spec, Text

MAX_TOKENS = 20_000
MIN_SHARED = 12
LETTERS = "ijklmnpqrstuvwxyzabcdefghoABCDEFGHIJKLMNOPQRSTUVWXYZ"

Factor = tuple["Form", Labels, int]  #: a form, its labels, how many times it stands there


class Form(NamedTuple):
    """The pieces of one node.

    Attributes
    ----------
    plain : Piece
        A scalar, a column, a matrix, or an array of more axes.
    turned : Piece
        The row, or the transposed matrix.
    short : Piece or None
        The scalar, where all entries are one scalar.
    summand : tuple or None
        What is summed over which extents, for a sum over all entries.
    diagonal : Piece or None
        The matrix whose diagonal this is.
    matrix : bool
        False for an einsum form.
    """

    plain: Piece
    turned: Piece
    short: Piece | None = None
    summand: tuple[Piece, tuple[Extent, ...]] | None = None
    diagonal: Piece | None = None
    matrix: bool = True


def better(a: Piece, b: Piece) -> Piece:
    return b if (b.flips, b.size) < (a.flips, a.size) else a


class Layout:
    """One expression in one style."""

    def __init__(
        self, style: Text, matrix: bool = True, limit: int = MAX_TOKENS, prefix: str = "t"
    ) -> None:
        self.style = style
        self.matrix = matrix
        self.limit = limit
        self.prefix = prefix
        self.forms: dict[int, Form] = {}
        self.named: list[tuple[str, Piece]] = []
        self.shared: set[int] = set()

    def text(self, e: Expr) -> str:
        """The text of an expression, with statements where sharing asks for them."""
        e = bare(e)
        nodes = postorder((e,))
        last = self.run(nodes)
        if last.size > self.limit:
            self.shared = used_twice(nodes)
            self.prefix = free_prefix(self.prefix, nodes)
            last = self.run(nodes)
        return self.style.statements(self.named, last)

    def run(self, nodes: Sequence[Expr]) -> Piece:
        self.named = []
        for node in nodes:
            form = self.form(node)
            if id(node) in self.shared and form.plain.size > MIN_SHARED and form.short is None:
                form = self.statement(node, form)
            self.forms[id(node)] = form
        return self.forms[id(nodes[-1])].plain

    def statement(self, node: Expr, form: Form) -> Form:
        name = f"{self.prefix}{len(self.named) + 1}"
        self.named.append((name, form.plain))
        return self.settled(node, self.style.name(name), None)

    # --- one node ---

    def form(self, node: Expr) -> Form:
        if isinstance(node, Var):
            return self.settled(node, self.style.name(node.name), None)
        if isinstance(node, Const):
            return self.settled(node, self.style.array(node.value), None)
        if isinstance(node, Add):
            return self.sum(node)
        if isinstance(node, Einsum):
            return self.product(node)
        assert isinstance(node, Apply)
        return self.apply(node)

    def settled(self, node: Expr, plain: Piece, turned: Piece | None) -> Form:
        """Both orientations of a node, each also as the transpose of the other."""
        if node.ndim not in (1, 2):
            return Form(plain, plain)
        if node.ndim == 2 and (1, 0) in symmetries(node):
            best = plain if turned is None else better(plain, turned)
            return Form(best, best)
        other = self.style.transpose(plain)
        if turned is None:
            return Form(plain, other)
        return Form(better(plain, self.style.transpose(turned)), better(other, turned))

    def entrywise(self, node: Expr, row: bool) -> tuple[list[Piece], list[bool]]:
        """Operands of a node that acts entry by entry; numbers need no shape beside arrays."""
        forms = [self.forms[id(arg)] for arg in node.args]
        shortened = any(f.short is None for f in forms)
        pieces = []
        for f in forms:
            short = f.short if shortened else None
            pieces.append(short or (f.turned if row else f.plain))
        scalar = [not node.shape or (shortened and f.short is not None) for f in forms]
        return pieces, scalar

    def sum(self, node: Add) -> Form:
        plain, turned = (
            self.style.add(leading_sum(self.entrywise(node, row)[0])) for row in (False, True)
        )
        return self.settled(node, plain, turned)

    def apply(self, node: Apply) -> Form:
        if not node.op.elementwise or not node.args:
            args = [self.forms[id(arg)].plain for arg in node.args]
            return self.settled(
                node, self.style.call(node.op, parameters(node), args, [False]), None
            )
        plain, turned = (
            self.style.call(node.op, parameters(node), *self.entrywise(node, row))
            for row in (False, True)
        )
        return self.settled(node, plain, turned)

    def product(self, node: Einsum) -> Form:
        product = Product(node, self.forms, self.style)
        if self.matrix and product.possible:
            found = product.contraction() if node.summed else product.outer()
        else:
            found = product.entrywise()
        if found is None:
            return self.einsum(node)
        if isinstance(found, Form):
            return found
        short = product.scaled(None) if node.shape and product.constant else None
        form = self.settled(node, *found)
        return form._replace(short=short, summand=product.summand, diagonal=product.diagonal)

    # --- einsum forms ---

    def einsum(self, node: Einsum) -> Form:
        """The product as #('...->...', operands), contractions in einsum form opened."""
        names: dict[int, str] = {}
        fresh = iter(LETTERS)
        for label in [*node.out, *range(len(node.extents))]:
            if label not in names:
                names[label] = next(fresh)
        groups: dict[str, list[tuple[Piece, int]]] = {}
        flat: list[tuple[str, Piece]] = []
        scalars: list[Factor] = []
        for (arg, word), power in counted(node):
            if not arg.ndim:
                scalars.append((self.forms[id(arg)], (), power))
                continue
            outside = tuple([names[label] for label in word])
            for op, letters in self.opened(node, arg, outside, fresh):
                piece = self.forms[id(op)].plain
                groups.setdefault(letters, []).append((piece, power))
                flat += [(letters, piece)] * power
        if self.matrix:
            flat = [(w, self.style.pointwise(factors, False)) for w, factors in groups.items()]
        words, pieces = [w for w, _ in flat], [p for _, p in flat]
        out = "".join([names[label] for label in node.out])
        standing = set("".join(words))
        sizes = {names[k]: node.extents[k] for k in node.out if names[k] not in standing}
        body = self.style.einsum(Spec(tuple(words), out, tuple(sizes.items())), pieces)
        plain = Product.scale(self.style, body, node.coef, scalars)
        short = None
        if not pieces and len(set(out)) == len(out):
            short = Product.scale(self.style, None, node.coef, scalars)
        return self.settled(node, plain, None)._replace(matrix=False, short=short)

    def opened(
        self, node: Einsum, arg: Expr, letters: tuple[str, ...], fresh: Iterator[str]
    ) -> list[tuple[Expr, str]]:
        """An operand, or in its place the operands of a contraction in einsum form."""
        if node.summed or self.forms[id(arg)].matrix or not isinstance(arg, Einsum):
            return [(arg, "".join(letters))]
        local = dict(zip(arg.out, letters, strict=True))
        for label in range(len(arg.extents)):
            if label not in local:
                local[label] = next(fresh)
        return [
            (op, "".join([local[label] for label in word]))
            for op, word in zip(arg.args, arg.labels, strict=True)
        ]


class Product:
    """A product as powers of scalars, vectors and matrices."""

    def __init__(self, node: Einsum, forms: dict[int, Form], style: Text) -> None:
        self.node = node
        self.style = style
        self.summand: tuple[Piece, tuple[Extent, ...]] | None = None
        self.diagonal: Piece | None = None
        self.constant = False
        self.scalars: list[Factor] = []
        self.vectors: dict[int, list[Factor]] = {}
        self.matrices: dict[tuple[int, int], list[Factor]] = {}
        self.possible = len(set(node.out)) <= 2 and len(node.out) <= 2
        for (arg, word), power in counted(node):
            form = forms[id(arg)]
            if arg.ndim > 2:
                self.possible = False
            elif not word:
                self.scalars.append((form, word, power))
            elif arg.ndim == 1:
                self.vectors.setdefault(word[0], []).append((form, word, power))
            elif word[0] == word[1]:
                column = self.style.diag(form.plain)
                diagonal = Form(column, self.style.transpose(column), diagonal=form.plain)
                self.vectors.setdefault(word[0], []).append((diagonal, word, power))
            else:
                key = (min(word), max(word))
                self.matrices.setdefault(key, []).append((form, word, power))

    # --- factors ---

    @staticmethod
    def scale(style: Text, body: Piece | None, coef: Coef, scalars: Sequence[Factor]) -> Piece:
        """coef * scalars * body; a sum over as many entries as coef divides by is a mean."""
        pieces: list[Piece] = []
        for form, _, k in scalars:
            below = sorted(map(str, form.summand[1])) if form.summand and k == 1 else []
            if form.summand and below and not Counter(below) - Counter(coef.over):
                rest = Counter(coef.over) - Counter(below)
                coef = coef._replace(over=tuple(sorted(rest.elements())))
                pieces.append(style.mean(form.summand[0]))
            else:
                powers = style.powers([(form.plain, k)])
                pieces += [style.pointwise([power], True) for power in powers]
        return style.scale(body, coef, pieces)

    def scaled(self, body: Piece | None) -> Piece:
        return self.scale(self.style, body, self.node.coef, self.scalars)

    def vector(self, label: int, row: bool = False) -> Piece | None:
        """The product of all vectors on a label."""
        factors = self.vectors.get(label)
        if not factors:
            return None
        column, turned = (
            self.style.pointwise([(f.turned if r else f.plain, k) for f, _, k in factors], False)
            for r in (False, True)
        )
        if row:
            return better(self.style.transpose(column), turned)
        return better(column, self.style.transpose(turned))

    def table(self, i: int, j: int) -> Piece:
        """The product of all matrices on a pair of labels, rows i."""
        factors = self.matrices[min(i, j), max(i, j)]
        ways = []
        for order in ((i, j), (j, i)):
            pieces = [(f.plain if w == order else f.turned, k) for f, w, k in factors]
            ways.append(self.style.pointwise(pieces, False))
        if len(factors) == 1 and factors[0][2] == 1:
            return ways[0]
        return better(ways[0], self.style.transpose(ways[1]))

    # --- products without a summed label ---

    def outer(self) -> tuple[Piece, Piece | None] | Form | None:
        out, extents, style = self.node.out, self.node.extents, self.style
        self.constant = not self.vectors and not self.matrices and len(set(out)) == len(out)
        if not out:
            return self.scaled(None), None
        if len(out) == 1:
            column = self.vector(out[0])
            if column is None:
                return style.filled(self.scaled(None), self.node.shape), None
            row = self.vector(out[0], True)
            return self.scaled(column), row and self.scaled(row)
        i, j = out
        if i == j:
            core = self.vector(i)
            body = style.eye(extents[i]) if core is None else style.diag(core)
            scaled = self.scaled(body)
            return Form(scaled, scaled)
        if self.constant:
            return style.filled(self.scaled(None), self.node.shape), None
        return self.scaled(self.sheet(i, j)), self.scaled(self.sheet(j, i))

    def sheet(self, i: int, j: int) -> Piece:
        """A matrix without a summed label: scaled rows and columns, or a column times a row."""
        left, right = self.vector(i), self.vector(j)
        if self.matrices:
            before = left and self.style.diag(left)
            after = right and self.style.diag(right)
            body = self.table(i, j)
            return self.style.scaling(before, body, after) if before or after else body
        ones = self.style.ones
        column = left or ones(self.node.extents[i])
        row = self.vector(j, True) or self.style.transpose(ones(self.node.extents[j]))
        return self.style.chain([column, row])

    # --- contractions ---

    def contraction(self) -> tuple[Piece, Piece | None] | None:
        """A product with summed labels, coefficient 1 and distinct open labels."""
        open_labels = self.node.out
        n_summed = len(self.node.extents) - len(open_labels)
        if not open_labels and n_summed <= 2:
            return (self.total(), None) if n_summed == 1 else (self.double(), None)
        if len(open_labels) < 2 and (loop := self.cycle()) is not None:
            return (self.style.diag if open_labels else self.style.trace)(loop), None
        path = self.path()
        if path is None:
            return None
        there, back = self.along(path), self.along(path[::-1])
        if not open_labels:
            return better(there, back), None
        if path[0] != open_labels[0]:
            there, back = back, there
        if len(open_labels) == 2:
            return there, back
        self.diagonal = self.read_diagonally()
        if self.diagonal is not None:
            there = better(there, self.style.diag(self.diagonal))
        return there, back

    def summed(self, body: Piece) -> Piece:
        self.summand = (body, self.node.extents)
        return self.style.total(body)

    def total(self) -> Piece:
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
        if len(flat) != 2:
            return total
        u, v = flat
        return better(style.chain([u.turned, v.plain]), style.chain([v.turned, u.plain]))

    def double(self) -> Piece:
        """Everything on two labels, summed: sum(A.*B), sum(diag(x)*A*diag(y))."""
        return self.summed(better(self.sheet(0, 1), self.sheet(1, 0)))

    def read_diagonally(self) -> Piece | None:
        """The product whose diagonal this is: A*B for (A.*B')*vector(1)."""
        flat = [(f, w) for f, w, k in self.matrices.get((0, 1), []) for _ in range(k)]
        if self.vectors or len(self.node.extents) != 2 or len(flat) != 2:
            return None
        (a, one), (b, other) = flat
        first = a.plain if one == (0, 1) else a.turned
        second = b.turned if other == (0, 1) else b.plain
        swapped = b.plain if other == (0, 1) else b.turned
        behind = a.turned if one == (0, 1) else a.plain
        return better(self.style.chain([first, second]), self.style.chain([swapped, behind]))

    def neighbours(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {label: [] for label in range(len(self.node.extents))}
        for i, j in sorted(self.matrices):
            found[i].append(j)
            found[j].append(i)
        return found

    def path(self) -> list[int] | None:
        """The labels in a row, each joined to the next by matrices, open labels at the ends."""
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

    def along(self, path: list[int]) -> Piece:
        """The product of matrices along a path of labels; summed ends close with a vector."""
        style, open_labels = self.style, self.node.out
        factors = []
        if path[0] not in open_labels:
            factors.append(self.vector(path[0], True) or style.transpose(style.ones(None)))
        for i, j in zip(path, path[1:], strict=False):
            factors.append(self.table(i, j))
            if j is not path[-1] and (scale := self.vector(j)):
                factors.append(style.diag(scale))
        if path[-1] not in open_labels:
            factors.append(self.vector(path[-1]) or style.ones(None))
        return style.chain(factors)

    def cycle(self) -> Piece | None:
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
        for i, j in zip(path, path[1:], strict=False):
            factors.append(self.table(i, j))
            if scale := self.vector(j):
                factors.append(self.style.diag(scale))
        return self.style.chain(factors)

    # --- the einsum language ---

    def entrywise(self) -> tuple[Piece, Piece | None] | Form | None:
        """A product of arrays of one shape, entry by entry, and scalars."""
        node = self.node
        if node.summed or len(set(node.out)) < len(node.out):
            return None
        self.constant = not any(node.labels)
        if self.constant:
            if not node.shape:
                return self.scaled(None), None
            return None
        if any(word not in ((), node.out) for word in node.labels):
            return None
        every = [f for group in self.vectors.values() for f in group]
        every += [f for group in self.matrices.values() for f in group]
        body = self.style.pointwise([(f.plain, k) for f, _, k in every], False)
        scaled = self.scaled(body)
        return Form(scaled, scaled)


def counted(node: Einsum) -> list[tuple[tuple[Expr, Labels], int]]:
    """Operands with their labels, equal ones once with their number."""
    found: dict[tuple[int, Labels], list[Any]] = {}
    for arg, word in zip(node.args, node.labels, strict=True):
        found.setdefault((id(arg), word), [(arg, word), 0])[1] += 1
    return [(item, power) for item, power in found.values()]


def leading_sum(terms: list[Piece]) -> list[Piece]:
    """One nested sum can stand in front, where it needs no parentheses."""
    for k, p in enumerate(terms):
        if p.level < ATOM and p.level == 1 and not p.negative:
            return [p, *terms[:k], *terms[k + 1 :]]
    return terms


def parameters(node: Apply) -> list[tuple[str, Any]]:
    """Parameters as further arguments; the axes of a core where there are others before it."""
    op = node.op
    shown: list[tuple[str, Any]] = []
    params = node.params
    if op.core in ((-1,), (1,)):
        count = params[0] if op.core == (-1,) else 1
        params = params[1:] if op.core == (-1,) else params
        if batch_axes(node):
            shown.append(("axis", -1 if count == 1 else tuple(range(-count, 0))))
    return shown + [("", value) for value in params]


def used_twice(nodes: Sequence[Expr]) -> set[int]:
    """Nodes that stand in more than one place."""
    counts: dict[int, int] = {}
    for node in nodes:
        places: set[Any] = set()
        for k, arg in enumerate(node.args):
            word = node.labels[k] if isinstance(node, Einsum) else (k,)
            if (id(arg), word) not in places:
                places.add((id(arg), word))
                counts[id(arg)] = counts.get(id(arg), 0) + 1
    return {key for key, count in counts.items() if count > 1}


def free_prefix(prefix: str, nodes: Sequence[Expr]) -> str:
    """A prefix whose numbered names no variable has."""
    taken = [node.name for node in nodes if isinstance(node, Var)]
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in taken):
        prefix += "t"
    return prefix
