"""The layout of whole expressions: matrix notation as far as it goes, einsum forms elsewhere.

Where shared parts would make the text long, they become statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..applied import application
from ..expr import Add, Apply, Const, Einsum, Expr, Part, Var, postorder
from ..normal import bare
from ..op import batch_axes
from ..products import symmetries
from .matrix_form import Factor, Form, Product, better, counted
from .style import SUM, Piece, Spec, Text, index_letters

MAX_TOKENS = 2_000
MIN_SHARED = 12


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
        if not isinstance(e, Expr):
            raise TypeError(f"formulas are written for one expression, not for {type(e).__name__}")
        e = bare(e)
        nodes = postorder((e,))
        last = self.run(nodes)
        shared = used_twice(nodes) if last.size > self.limit else set()
        if shared:
            self.shared = shared
            self.prefix = free_prefix(self.prefix, nodes)
            last = self.run(nodes)
        return self.style.statements(self.named, last)

    def run(self, nodes: Sequence[Expr]) -> Piece:
        self.named = []
        for node in nodes:
            form = self.form(node)
            shared = id(node) in self.shared and form.plain.size > MIN_SHARED
            whole = isinstance(node, Apply) and node.op.outputs > 1
            if shared and form.short is None and not whole:
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
        if isinstance(node, Part):
            return self.part(node)
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
        def added(pieces: list[Piece], _: list[bool]) -> Piece:
            return self.style.add(leading_sum(pieces))

        return self.both(node, added)

    def apply(self, node: Apply) -> Form:
        extra = parameters(node)
        if not node.op.elementwise or not node.args:
            args = [self.forms[id(arg)].plain for arg in node.args]
            return self.settled(node, self.style.call(node.op, extra, args, [False]), None)

        def called(pieces: list[Piece], scalar: list[bool]) -> Piece:
            return self.style.call(node.op, extra, pieces, scalar)

        return self.both(node, called)

    def part(self, node: Part) -> Form:
        """One output of an operator: a function of its own name."""
        whole = application(node)
        args = [self.forms[id(arg)].plain for arg in whole.args]
        name = whole.op.parts[node.index]
        return self.settled(node, self.style.function(name, args), None)

    def both(self, node: Expr, build: Callable[[list[Piece], list[bool]], Piece]) -> Form:
        """The piece from columns; that from rows only where it may save transposes."""
        plain = build(*self.entrywise(node, False))
        turned = build(*self.entrywise(node, True)) if plain.flips and node.shape else None
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
        fresh = index_letters()
        for label in [*node.out, *range(len(node.extents))]:
            if label not in names:
                names[label] = next(fresh)
        flat: list[tuple[str, Expr]] = []
        scalars: list[Factor] = []
        for (arg, word), power in counted(node):
            if not arg.ndim:
                scalars.append((self.forms[id(arg)], (), power))
                continue
            outside = tuple([names[label] for label in word])
            for _ in range(power):
                for op, letters in self.opened(node, arg, outside, fresh):
                    flat.append((letters, op))
        merged = self.merged(flat) if self.matrix else None
        words = [w for w, _ in merged or flat]
        pieces = [p for _, p in merged] if merged else [self.forms[id(op)].plain for _, op in flat]
        out = "".join([names[label] for label in node.out])
        standing = set("".join(words))
        sizes = {names[k]: node.extents[k] for k in node.out if names[k] not in standing}
        body = self.style.einsum(Spec(tuple(words), out, tuple(sizes.items())), pieces)
        plain = Product.scale(self.style, body, node.coef, scalars)
        short = None
        if not pieces and len(set(out)) == len(out):
            short = Product.scale(self.style, None, node.coef, scalars)
        return self.settled(node, plain, None)._replace(matrix=False, short=short)

    def merged(self, flat: Sequence[tuple[str, Expr]]) -> list[tuple[str, Piece]]:
        """Operands under the same letters as one, multiplied entry by entry."""
        groups: dict[str, dict[int, int]] = {}
        for word, op in flat:
            counts = groups.setdefault(word, {})
            counts[id(op)] = counts.get(id(op), 0) + 1
        found = []
        for word, counts in groups.items():
            factors = [(self.forms[key].plain, power) for key, power in counts.items()]
            found.append((word, self.style.pointwise(factors, False)))
        return found

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


def leading_sum(terms: list[Piece]) -> list[Piece]:
    """One nested sum can stand in front, where it needs no parentheses."""
    for k, p in enumerate(terms):
        if p.level == SUM and not p.negative:
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
            if arg.args and (id(arg), word) not in places:
                places.add((id(arg), word))
                counts[id(arg)] = counts.get(id(arg), 0) + 1
    return {key for key, count in counts.items() if count > 1}


def free_prefix(prefix: str, nodes: Sequence[Expr]) -> str:
    """A prefix whose numbered names no variable has."""
    taken = [node.name for node in nodes if isinstance(node, Var)]
    while any(name.startswith(prefix) and name[len(prefix) :].isdigit() for name in taken):
        prefix += "t"
    return prefix
