"""Products of operands that several contractions need: each becomes a node of its own.

Every contraction is multiplied pair by pair along its path. A pair that stands in several paths,
under any labels, is one canonical product; those that are there already take no time in later
paths. What one contraction alone needs stays inside it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ..graph.applications import with_args
from ..graph.extents import Extent
from ..graph.factors import Factors, LabelledExpr, components, indicates, selects
from ..graph.nodes import Add, Einsum, Expr, Labels, postorder
from ..graph.normal import sum_as_given
from ..graph.products import canonical_product, contraction, permuted, symmetries
from ..graph.sums import absent_axes
from ..support.records import NamedTuple
from .known_products import known_products
from .nested import Admits, Size, flatten
from .paths import EXACT_OPERANDS, path_of


def shared_products(
    roots: Sequence[Expr], opens: Callable[[Counter[int]], Admits], size: Size
) -> list[Expr]:
    """The roots, with products that several contractions need as nodes.

    Parameters
    ----------
    roots : sequence of Expr
    opens : callable
        Which nested contractions are part of others, given how often nodes are read.
    size : callable
        The number that an extent is.
    """
    found = _Paths(roots, opens, size)
    return _Rewriting(found).roots() if found.shared else list(roots)


class _Product(NamedTuple):
    """A product of operands on the way to a contraction; an operand itself has no `sides`.

    Two products that differ in the names of labels alone have one `node`, whose axes are `word`.
    """

    node: Expr
    word: Labels
    sides: tuple[_Product, ...] = ()

    def read_as(self, word: Labels) -> _Product:
        """The same under other labels, all of which its operands have too."""
        names = dict(zip(self.word, word, strict=True))
        sides = [s.read_as(tuple([names[label] for label in s.word])) for s in self.sides]
        return _Product(self.node, word, tuple(sides))


class _Paths:
    """The contractions below the roots along their paths.

    Attributes
    ----------
    nodes : list of Expr
        Nodes that are needed, operands first.
    whole : dict
        Contractions, with the nested ones that are part of them, by identity as everything here.
    products : dict
        The same along their paths.
    made : dict
        All products of these, by their nodes.
    shared : set
        The nodes of those that several contractions need.
    """

    def __init__(
        self, roots: Sequence[Expr], opens: Callable[[Counter[int]], Admits], size: Size
    ) -> None:
        self.roots, self.size = roots, size
        nodes = postorder(roots)
        uses = Counter([id(e) for e in [*roots, *[arg for node in nodes for arg in node.args]]])
        self.admits = opens(uses)
        self.whole: dict[int, Factors] = {}
        needed = {id(root) for root in roots}
        for node in reversed(nodes):
            if id(node) in needed:
                needed.update(map(id, self._read(node)))
        self.nodes = [node for node in nodes if id(node) in needed]
        self.products: dict[int, _Product] = {}
        self.made: dict[int, _Product] = {}
        self.meetings: dict[tuple[int, int], set[int]] = {}
        for node in self.nodes:
            if id(node) in self.whole:
                self.products[id(node)] = self._along_path(self.whole[id(node)])
        self.shared = self._shared()

    def _read(self, node: Expr) -> Sequence[Expr]:
        """The operands of a node, those of a contraction with the nested ones that are part."""
        if isinstance(node, Einsum) and node.summed:
            whole = flatten(node, self.admits, self.size)
            if not any(selects(op) or indicates(op) for op, _ in whole.operands):
                self.whole[id(node)] = whole
                return [op for op, _ in whole.operands]
        return node.args

    def _shared(self) -> set[int]:
        """Products that several need, but for those larger than all that is made in any case.

        Those are made anew by each: by blocks, where a program can.
        """
        reads = Counter([id(side.node) for made in self.made.values() for side in made.sides])
        reads.update([id(product.node) for product in self.products.values()])
        sums = [p.node for p in self.made.values() if _contracts(p.node)]
        largest = max([e.ndim for e in (*self.roots, *sums)], default=0)
        return {
            key
            for key, product in self.made.items()
            if reads[key] > 1 and product.node.ndim <= largest
        }

    def _along_path(self, whole: Factors) -> _Product:
        """The contraction as a tree of products, those that are there already before others."""
        out, extents = set(whole.out), whole.extents
        held = self._grouped(whole)
        if len(held) > EXACT_OPERANDS:
            return _Product(*_node([(p.node, p.word) for p in held], out, extents), tuple(held))
        sizes = {label: self.size(extent) for label, extent in extents.items()}
        arrays = [(id(p.node), symmetries(p.node)) for p in held]
        known = self._known(held, out, extents)
        path = path_of([p.word for p in held], whole.out, sizes, arrays, known)
        held = [p.read_as(word) for p, word in zip(held, path.words, strict=True)]
        rest = Counter([label for p in held for label in p.word])
        for i, j in path.pairs:
            rest.subtract(held[i].word + held[j].word)
            kept = out.union([label for label, count in rest.items() if count])
            held.append(self._multiplied([held[i], held[j]], kept, extents))
            rest.update(held[-1].word)
        return held[-1]

    def _grouped(self, whole: Factors) -> list[_Product]:
        """The operands; those with the same labels, all of them kept, are multiplied entrywise."""
        groups: dict[frozenset[int], list[_Product]] = {}
        for op, word in whole.operands:
            groups.setdefault(frozenset(word), []).append(_Product(op, word))
        found: list[_Product] = []
        for labels, members in groups.items():
            others = set(whole.out).union(*[g for g in groups if g != labels])
            if len(members) > 1 and labels and labels <= others:
                members = [self._multiplied(members, set(labels), whole.extents)]
            found += members
        return found

    def _multiplied(
        self, sides: Sequence[_Product], kept: set[int], extents: Mapping[int, Extent]
    ) -> _Product:
        found = _Product(*_node([(p.node, p.word) for p in sides], kept, extents), tuple(sides))
        self.made.setdefault(id(found.node), found)
        if len(sides) == 2:
            self.meetings.setdefault(_pair(*sides), set()).add(id(found.node))
        return found

    def _known(
        self, held: Sequence[_Product], out: set[int], extents: Mapping[int, Extent]
    ) -> tuple[tuple[int, int], ...]:
        """Sets of operands, as bits, of which products are there, and one half of each."""

        def met(one: _Product, two: _Product) -> bool:
            return bool(self.meetings.get(_pair(one, two)))

        def product(one: _Product, two: _Product, kept: set[int]) -> _Product | None:
            node, word = _node([(p.node, p.word) for p in (one, two)], kept, extents)
            return _Product(node, word) if id(node) in self.meetings[_pair(one, two)] else None

        found = known_products(held, [p.word for p in held], out, met, product)
        return tuple([(places, known.half) for places, known in found.items()])


class _Rewriting:
    """The nodes below the roots with shared products among them."""

    def __init__(self, paths: _Paths) -> None:
        self.paths = paths
        shared = [paths.made[key] for key in paths.shared]
        inside = {id(side.node) for product in shared for side in product.sides}
        for node in paths.nodes:
            if id(node) not in paths.whole:
                inside.difference_update(map(id, node.args))
        #: Sums that products alone read, in another order of axes.
        self.places = {
            id(node): order
            for node in paths.nodes
            if id(node) in inside and (order := matrices_last(node, paths.size))
        }
        self.done: dict[int, Expr] = {id(root): root for root in paths.roots if not root.args}
        self.written: dict[int, LabelledExpr] = {}

    def roots(self) -> list[Expr]:
        for node in self.paths.nodes:
            product = self.paths.products.get(id(node))
            if product is None:
                new = with_args(node, [self.done[id(arg)] for arg in node.args])
                order = self.places.get(id(node), ())
                moved = [permuted(term, order) for term in new.args] if order else []
                self.done[id(node)] = sum_as_given(moved) if order else new
            else:
                whole = self.paths.whole[id(node)]
                operands = self._operands(product, whole.extents)
                self.done[id(node)] = canonical_product(whole._replace(operands=operands))
        return [self.done[id(root)] for root in self.paths.roots]

    def _operands(self, product: _Product, extents: Mapping[int, Extent]) -> list[LabelledExpr]:
        """What stands for a product: it itself where it is shared, else those of its sides."""
        key, word = id(product.node), product.word
        if not product.sides:
            order = self.places.get(key, range(len(word)))
            return [(self.done[key], tuple([word[k] for k in order]))]
        if key not in self.paths.shared:
            return [o for side in product.sides for o in self._operands(side, extents)]
        if key not in self.written:
            operands = [o for side in product.sides for o in self._operands(side, extents)]
            node, names = _node(operands, set(word), extents)
            self.written[key] = node, tuple([word.index(label) for label in names])
        node, places = self.written[key]
        return [(node, tuple([word[k] for k in places]))]


def _pair(one: _Product, two: _Product) -> tuple[int, int]:
    first, second = sorted([id(one.node), id(two.node)])
    return first, second


def _contracts(e: Expr) -> bool:
    return isinstance(e, Einsum) and e.summed


def matrices_last(e: Expr, size: Size) -> Labels:
    """The axes of a sum of smaller arrays, those of all of them first; () as they are.

    So matrices stand last, which are multiplied where they stand.
    """
    absent = [absent_axes(term) for term in e.args]
    if not isinstance(e, Add) or not all(absent):
        return ()
    some = set().union(*absent)
    common = [axis for axis in range(e.ndim) if axis not in some]
    others = [axis for axis in range(e.ndim) if axis in some]
    extents = [size(extent) for extent in e.shape]
    if not common or max(extents[k] for k in common) > max(extents[k] for k in others):
        return ()
    return (*common, *others)


def _node(
    operands: list[LabelledExpr], kept: set[int], extents: Mapping[int, Extent]
) -> LabelledExpr:
    """The canonical product of operands, labels that are not kept summed, and its labels."""
    labels = dict.fromkeys([label for _, word in operands for label in word])
    outer = kept.intersection(labels)
    if len(outer) < len(labels) and len(components(operands, outer)) == 1:
        return contraction(operands, outer, extents)
    ordered = sorted(operands, key=lambda item: (-len(set(item[1])), item[0].order))
    word = tuple(dict.fromkeys([k for _, word in ordered for k in word if k in outer]))
    return canonical_product(Factors(operands, word, dict(extents))), word
