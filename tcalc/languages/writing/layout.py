"""The layout of whole expressions: matrix notation as far as it goes, einsum forms elsewhere.

Where shared parts would make the text long, they become statements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice

from ...graph.applications import application
from ...graph.factors import indicates
from ...graph.nodes import Add, Apply, Const, Einsum, Expr, Labels, Part, Var, postorder
from ...graph.products import symmetries, zeros_node
from ...support.limits import spend
from .abbreviations import abbreviation, spread_of
from .calls import call_parameters, whole_call
from .comparisons import sides
from .einsum_forms import merged, named, opened, ordered
from .factors import Factors, OpenedProducts, is_quotient, with_counts, without_minus
from .forms import Forms
from .indexed import indexed
from .loops import Names, loop_of, repeated
from .matrix_form import FactorForm, NodeForm, ProductForm, as_one_factor, fewer_transposes
from .notation import INDEX_LETTERS, EinsumSpec, Fragment, index_letters
from .rolls import as_roll, with_rolls
from .sharing import free_prefix, nodes_and_names, used_twice
from .shifts import by_place
from .style import Style

MAX_TOKENS = 400  #: beyond which what is repeated has a name
MAX_PUSHED = 4  #: sums in sums through which a permutation of axes is pushed


def tokens(e: Expr) -> int:
    """The size of the text in the matrix language, everything shared written out; found once."""
    if not e._tokens:
        e._tokens = FormulaLayout(Style()).run(postorder([e])).size
    return e._tokens


class FormulaLayout:
    """One expression in one style."""

    def __init__(
        self, style: Style, matrix: bool = True, limit: int = MAX_TOKENS, prefix: str = "t"
    ) -> None:
        self.style = style
        self.matrix = matrix
        self.limit = limit
        self.prefix = prefix
        self.forms = Forms(self.form)
        self.products = OpenedProducts((), self.formed)
        self.made: list[Expr] = []  # held, as forms are known by ids of nodes
        self.unpermuted: dict[int, tuple[Fragment, Labels]] = {}
        self.named: list[tuple[str, Fragment]] = []
        self.shared: set[int] = set()
        self.replaced: set[int] = set()
        self.known: set[int] = set()  #: nodes that another layout has given a form
        self.names = Names(set())

    least = 12  #: the size above which what is shared gets a name

    def text(self, e: Expr) -> str:
        """The text of an expression, with statements where sharing asks for them.

        Whether it does is asked of the matrix language, so that all styles name the same.
        """
        nodes = self.prepared(e)
        if not self.limit or tokens(e) > self.limit:
            self.shared = used_twice(nodes)
            self.prefix = free_prefix(self.prefix, nodes)
        last = self.run(nodes)
        return self.style.statements(self.named, last)

    def prepared(self, e: Expr) -> list[Expr]:
        """The nodes of an expression; what has a name is known from here on."""
        nodes, known, stated = nodes_and_names(e)
        stated.update(self.style.stated)
        self.style.stated = {n for n in stated - known if n.isidentifier()}
        self.names = Names(stated | known)
        for name in sorted(known):
            self.style.name(name)  # before other names get symbols
        return nodes

    def run(self, nodes: Sequence[Expr]) -> Fragment:
        self.named, self.replaced = [], set()
        self.products = OpenedProducts(nodes if self.matrix else (), self.formed)
        for node in nodes:
            if id(node) not in self.shared and self.forms.may_wait(node):
                continue
            form = self.form(node)
            shared = id(node) in self.shared and form.plain.size > self.least
            whole = isinstance(node, Apply) and node.op.outputs > 1
            if shared and form.short is None and not whole:
                form = self.statement(node, form)
            self.forms[id(node)] = form
        return self.forms[id(nodes[-1])].plain

    def statement(self, node: Expr, form: NodeForm) -> NodeForm:
        name = self.new_name(node)
        symbol = self.style.name(name)
        self.replaced.add(id(node))
        if node.ndim == 2 and form.reads_turned:
            self.named.append((name, form.turned))
            return self.settled(node, self.style.transpose(symbol), symbol)
        self.named.append((name, form.plain))
        return self.settled(node, symbol, None)

    def new_name(self, node: Expr) -> str:
        return f"{self.prefix}{len(self.named) + 1}"

    # --- one node ---

    def form(self, node: Expr) -> NodeForm:
        spend("steps", self.style.formed + len(node.args))
        if isinstance(node, Var):
            return self.settled(node, self.style.name(node.name), None)
        if isinstance(node, Const) and node.ndim > 1 and 0 in node.shape:
            return self.form(zeros_node(node.shape))  # brackets say nothing of the other extents
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

    def settled(self, node: Expr, plain: Fragment, turned: Fragment | None) -> NodeForm:
        """Both orientations of a node, each also as the transpose of the other."""
        if node.ndim not in (1, 2):
            return NodeForm(plain, plain)
        if node.ndim == 2 and (1, 0) in symmetries(node):
            best = plain if turned is None else fewer_transposes(plain, turned)
            return NodeForm(best, best)
        other = self.style.transpose(plain)
        if turned is None:
            return NodeForm(plain, other)
        return NodeForm(
            fewer_transposes(plain, self.style.transpose(turned)), fewer_transposes(other, turned)
        )

    def entrywise(self, node: Expr, row: bool) -> tuple[list[Fragment], list[bool]]:
        """Operands of an entrywise node, and which are scalars: these broadcast beside arrays."""
        forms = self.operand_forms(node)
        shortened = any(f.short is None for f in forms)
        fragments = []
        for f in forms:
            short = f.short if shortened else None
            fragments.append(short or (f.turned if row else f.plain))
        scalar = [not node.shape or (shortened and f.short is not None) for f in forms]
        return fragments, scalar

    def operand_forms(self, node: Expr) -> list[NodeForm]:
        """Those of operands, terms that are an array shifted in a circle as one."""
        own = set(map(id, node.args))
        operands = with_rolls(node) if self.matrix and isinstance(node, Add) else node.args
        return [self.forms[id(e)] if id(e) in own else self.formed(e) for e in operands]

    def sum(self, node: Add) -> NodeForm:
        whole = as_roll(node) if self.matrix else None
        if whole is not None:
            texts = [
                self.style.function("roll", [self.formed(r.array).plain], r.given)
                for r in (whole, whole.turned)
                if r is not None
            ]
            return self.settled(node, texts[0], texts[1] if len(texts) > 1 else None)
        plain = self.added(node, False)
        turned = self.added(node, True) if plain.flips and node.shape else None
        return self.settled(node, plain, turned)

    def added(self, node: Add, row: bool) -> Fragment:
        """The sum, scalars in it as arrays where the style does not spread them."""
        terms, scalar = self.entrywise(node, row)
        if self.matrix and node.ndim in (1, 2):
            terms = [
                self.style.spread(p, node.ndim, row) if spreads else p
                for p, spreads in zip(terms, scalar, strict=True)
            ]
        order = by_place(node)
        if order is not None and len(order) == len(terms):
            return self.style.in_order([terms[k] for k in order])
        alike = self.matrix and node.ndim == 2 and not any(scalar)
        return self.style.together(terms) if alike else self.style.add(terms, node.ndim, scalar)

    def apply(self, node: Apply) -> NodeForm:
        if is_quotient(node) and self.style.quotients and (found := self.as_product(node)):
            return found
        if indicates(node):
            rows = self.indexed(node) if self.matrix and self.style.rows else None
            return rows or self.settled(node, self.style.indicator(node.params), None)
        if node.op.spelling.latex == "{0}":
            return as_one_factor(self.forms[id(node.args[0])], self.style)
        if not node.op.elementwise or not node.args:
            return self.settled(node, *whole_call(node, self.forms, self.style, self.matrix))
        if self.matrix and (short := abbreviation(node)) is not None:
            argument = self.formed(short.argument)
            return self.settled(node, *short.call(self.style, argument, node.ndim))
        if self.matrix and (moved := sides(node, self.forms)) is not None:
            return self.settled(node, self.style.compared(*moved), None)

        extra = call_parameters(node)

        def called(fragments: list[Fragment], scalar: list[bool]) -> Fragment:
            return self.style.call(node.op, extra, fragments, scalar)

        return self.both(node, called)

    def part(self, node: Part) -> NodeForm:
        """One output of an operator: a function of its own name."""
        whole = application(node)
        loop = loop_of(node)
        if loop is not None:
            forms = [self.forms[id(arg)] for arg in whole.args]
            settled = partial(self.settled, turned=None)
            fragment = repeated(node, loop, self.style, self.names, forms, settled, self.inner)
            return self.settled(node, fragment, None)
        args = [self.forms[id(arg)].plain for arg in whole.args]
        output = self.style.output(whole.op, node.index, call_parameters(whole), args)
        return self.settled(node, output, None)

    def inner(
        self, roots: Sequence[Expr], known: dict[int, NodeForm]
    ) -> tuple[list[tuple[str, Fragment]], list[Fragment]]:
        """Statements and fragments of expressions, the forms of some nodes in them being known."""
        layout = FormulaLayout(self.style, self.matrix, self.limit, f"{self.prefix}_")
        nodes = [node for node in postorder(roots) if id(node) not in known]
        for shared in (set(), used_twice(nodes)):
            layout.forms.update(known)
            layout.shared, layout.names = shared, self.names.inner()
            layout.known = set(known)
            if nodes:
                layout.run(nodes)
            fragments = [layout.forms[id(root)].plain for root in roots]
            if sum([fragment.size for fragment in fragments]) <= self.limit:
                break
        self.made += layout.made
        return layout.named, fragments

    def both(self, node: Expr, build: Callable[[list[Fragment], list[bool]], Fragment]) -> NodeForm:
        """The form from column operands, and from rows where these may save transposes."""
        plain = build(*self.entrywise(node, False))
        turned = build(*self.entrywise(node, True)) if plain.flips and node.shape else None
        return self.settled(node, plain, turned)

    def factors(self, node: Expr) -> Factors:
        """The factors of a product; quotients that have no name are opened in matrix notation."""
        closed, count = self.replaced | self.known, len(self.replaced)
        opens = self.style.quotients
        product = self.products.of(node, lambda e: opens and id(e) not in closed, count)
        product = with_counts(product, lambda e: self.forms[id(e)].entries)
        return without_minus(product, closed)

    def product(self, node: Einsum) -> NodeForm:
        found = (self.matrix and self.indexed(node)) or self.as_product(node) or self.einsum(node)
        spread = spread_of(node) if self.matrix and node.summed else None
        if spread is None:
            return found
        texts = spread.written(self.style, self.formed(spread.of), node.ndim)
        variance, total = [self.settled(node, p, None) for p in texts]
        return total._replace(variance=variance, entries=spread.entries)

    def as_product(self, node: Einsum | Apply) -> NodeForm | None:
        """A product or a quotient of factors, where the language has words for it."""
        product = ProductForm(self.factors(node), self.forms, self.style)
        if self.matrix and product.possible:
            found = product.contraction() if product.node.summed else product.outer()
        else:
            found = product.entrywise()
        if found is None or isinstance(found, NodeForm):
            return found
        short = product.scaled(None) if node.shape and product.constant else None
        form = self.settled(node, *found)
        return form._replace(short=short, summand=product.summand, diagonal=product.diagonal)

    def indexed(self, node: Expr) -> NodeForm | None:
        return indexed(node, self.style, self.formed, self.permuted)

    def formed(self, e: Expr) -> NodeForm:
        """The form of an expression that need not be part of the one that is written."""
        for node in postorder([e]):
            if id(node) not in self.forms:
                self.forms[id(node)] = self.form(node)
                self.made.append(node)
        return self.forms[id(e)]

    def permuted(self, node: Expr, fragment: Fragment, perm: Labels) -> NodeForm:
        """The form of a node whose axis k is axis perm[k] of the fragment."""
        if perm == tuple(range(node.ndim)):
            return self.settled(node, fragment, None)
        self.unpermuted[id(node)] = fragment, perm
        if node.ndim == 2:
            return self.settled(node, self.style.transpose(fragment), fragment)
        letters = "".join(islice(index_letters(), node.ndim))
        spec = EinsumSpec((letters,), "".join([letters[k] for k in perm]), ())
        return self.settled(node, self.style.einsum(spec, [fragment]), None)

    # --- einsum forms ---

    def einsum(self, node: Einsum) -> NodeForm:
        """The einsum form of a product that matrix notation has no form for."""
        plain = self.spelled(node, node.out)
        flat = self.matrix and node.ndim == 2
        turned = self.spelled(node, node.out[::-1]) if flat else None
        short = None
        if not any(node.labels) and len(set(node.out)) == len(node.out):
            short = ProductForm(self.factors(node), self.forms, self.style).scaled(None)
        return self.settled(node, plain, turned)._replace(matrix=False, short=short)

    def turned(self, e: Expr, perm: Labels, depth: int) -> Fragment:
        """An expression with permuted axes: axis k of the text is axis perm[k]."""
        named = id(e) in self.replaced
        if isinstance(e, Einsum) and not named:
            return self.spelled(e, tuple([e.out[k] for k in perm]), depth)
        if isinstance(e, Add) and not named and depth < MAX_PUSHED:
            return self.style.add([self.turned(term, perm, depth + 1) for term in e.args], e.ndim)
        form = self.forms[id(e)]
        if perm == tuple(range(e.ndim)):
            return form.plain
        letters = "".join(islice(index_letters(), e.ndim))
        word = "".join([letters[perm.index(k)] for k in range(e.ndim)])
        return self.style.einsum(EinsumSpec((word,), letters, ()), [form.plain])

    def spelled(self, node: Einsum, result: Labels, depth: int = 0) -> Fragment:
        """The product as #('...->...', operands), contractions in einsum form opened."""
        pushed = self.pushed(node, result, depth)
        if pushed is not None:
            return pushed
        fresh = index_letters()
        names = named([*result, *range(len(node.extents))], fresh)
        flat: list[tuple[str, Expr]] = []
        scalars: list[FactorForm] = []
        below: list[tuple[str, Fragment]] = []
        product = self.factors(node)
        for arg, word, power in product.powers:
            outside = arg, "".join([names[label] for label in word]), power
            for op, letters, own in opened(self.forms, node, outside, fresh, self.factors):
                if not letters:
                    scalars.append((self.forms[id(op)].factor, (), own))
                elif own < 0:
                    below += [self.placed(letters, op)] * -own
                else:
                    flat += [(letters, op)] * own
        placed = ordered([self.placed(*item) for item in flat])
        high = self.style.quotients and max([0, *[power for _, _, power in product.powers]]) > 2
        one = merged(self.style, placed, below) if self.matrix or below or high else placed
        words, fragments = [word for word, _ in one], [fragment for _, fragment in one]
        out, standing = "".join([names[label] for label in result]), set("".join(words))
        sizes = {names[k]: node.extents[k] for k in result if names[k] not in standing}
        if self.matrix and not fragments and len(sizes) == len(out) > 2:
            shape = tuple(sizes.values())
            if node.coef.zero and not scalars:
                return self.style.block("zeros", shape)
            ones = self.style.block("ones", shape)
            return ProductForm.scale(self.style, ones, product.coef, scalars)
        body = self.style.einsum(EinsumSpec(tuple(words), out, tuple(sizes.items())), fragments)
        return ProductForm.scale(self.style, body, product.coef, scalars)

    def pushed(self, node: Einsum, result: Labels, depth: int) -> Fragment | None:
        """A sum with permuted axes, the permutation in its terms."""
        scalars: list[FactorForm] = []
        larger: list[tuple[Add, Labels]] = []
        product = self.factors(node)
        for arg, word, power in product.powers:
            if not word:
                scalars.append((self.forms[id(arg)].factor, (), power))
            elif isinstance(arg, Add) and arg.ndim > 2 and power == 1 and not larger:
                larger.append((arg, word))
            else:
                return None
        if not larger or depth >= MAX_PUSHED:
            return None
        arg, word = larger[0]
        permuted = sorted(word) == sorted(result) and len(set(word)) == arg.ndim
        if not permuted or id(arg) in self.replaced:
            return None
        body = self.turned(arg, tuple([word.index(label) for label in result]), depth)
        return ProductForm.scale(self.style, body, product.coef, scalars)

    def placed(self, word: str, op: Expr) -> tuple[str, Fragment]:
        """An operand under its letters, turned where that saves a transpose."""
        form = self.forms[id(op)]
        if op.ndim > 2 and id(op) in self.unpermuted and id(op) not in self.replaced:
            fragment, perm = self.unpermuted[id(op)]
            letters = dict(zip(perm, word, strict=True))
            return "".join([letters[k] for k in range(op.ndim)]), fragment
        if op.ndim == 2 and (1, 0) in symmetries(op):
            return "".join(sorted(word, key=INDEX_LETTERS.find)), form.plain
        if op.ndim == 2 and self.matrix and form.reads_turned:
            return word[::-1], form.turned
        return word, form.plain
