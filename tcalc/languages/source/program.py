"""Source code: one walker over the expression, every text left to a language.

Every node that is used twice, or is long, becomes an assignment.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any

from ...contraction.nested import flatten
from ...graph.applications import parts
from ...graph.extents import Extent, extent_names, nominal
from ...graph.factors import Factors, factors_of, indicates, selects
from ...graph.formulas import recorded
from ...graph.nodes import Add, Apply, Const, Einsum, Expr, Part, Var, dimensions, postorder
from ...graph.operators import Loop
from ...graph.trees import leaves, unflatten
from ...ops.matrix.divided_differences import Scalar, X
from ...plan.lowering.orders import hoped_orders
from ...support.limits import spend
from ..writing.notation import takes_condition
from .blocks import ROWS, Blocks, Blockwise, read_by_blocks, sliced
from .formulas import applied, condition, given, unknown, written
from .language import Code, FunctionText, Language, Operator, named, short_enough
from .nodes import (
    below,
    compares_numbers,
    contracts,
    counts,
    described,
    hoisted,
    index_places,
    indices,
    parameters_of,
    placed_once,
    read_once,
    scaled_ahead,
)
from .planned import machine_of, written_form
from .products import Products
from .refused import refusals
from .scope import FunctionScope, parameters, plain_key, unlike
from .solves import factored, solvable
from .sums import Sums, embedded_once
from .turns import Turns
from .values import Embedding

#: Arrays of so many times fewer entries than the largest are not large.
LARGE = 2
#: Steps that the text of a node takes.
WRITTEN = 150


class SourceProgram(Sums):
    """The statements of one function, and of its `products` what they read of it.

    Parameters
    ----------
    language : type of Language
    tree : expression, or nested tuples, lists and dicts of expressions
        The result.
    names : dict, optional
        Parameters by the names of the variables, where these are given.
    prefix : str
        What temporaries start with.
    around : SourceProgram, optional
        The program of whose function this one writes the integers that index, nothing else.
    sizes : mapping, optional
        Extents of dimensions, by which forms are chosen.
    times : int, optional
        How often it runs, of a step; 0 where forms stay as they are.
    """

    def __init__(
        self,
        language: type[Language],
        tree: Any,
        names: dict[str, str] | None = None,
        prefix: str = "t",
        around: SourceProgram | None = None,
        sizes: Mapping[str, int] | None = None,
        times: int = 0,
    ) -> None:
        self.sizes = sizes or {}
        results, whole = leaves(tree), names is None and around is None
        machine = machine_of(language.own_words)
        self.roots = written_form(results, self.sizes, machine, 1 if whole else times)
        if "ahead" in language.own_words:
            self.roots = hoisted(self.roots, self.sizes, machine)
        self.tree = unflatten(tree, iter(self.roots))
        self.nodes = postorder(self.roots)
        self.orders = hoped_orders(self.roots, self.nodes) if not whole else {}
        self.variables = parameters_of(tree)
        free = parameters(self.variables, language.reserved, language.start)
        self.names = free if names is None else names
        self.around = around
        mine = {self.names[v.name]: v for v in self.variables.values()}
        taken = language.reserved.union(self.names.values())
        own = FunctionScope(mine, taken, prefix, language.start, dimensions(self.roots))
        own.known = self.sizes
        self.scope: FunctionScope = own if around is None else around.scope
        self.language = language(self.scope, around is not None)
        self.scope.refused += refusals(self.language, results) if whole else []
        self.products = Products(self.language, self)
        extents = {n for node in self.nodes for n in node.shape if isinstance(n, str)}
        self.forms: Collection[Extent] = sorted([n for n in extents if not n.isidentifier()])
        self.often = names is not None and around is None and ROWS not in extents
        self.nestings = 0
        Sums.__init__(self, self.nodes, [v.ndim for v in self.variables.values()])
        self.whole: dict[int, Factors] = {}
        self.uses.update([id(arg) for node in self.nodes for arg in self.entries(node)])
        self.uses.update([id(root) for root in self.roots])
        again = Counter([id(n.args[0]) for n in self.nodes if factored(language, n)])
        self.uses.subtract({matrix: count - 1 for matrix, count in again.items()})
        self.integers = self.of_integers() if around is None else self
        self.waiting |= read_once(self.nodes, self.uses) | placed_once(self.nodes, self.uses)
        self.units = (
            embedded_once(self.nodes, self.uses, self.language.embedding_axes)
            if isinstance(self.language, Embedding)
            else set()
        )
        self.waiting |= self.units
        self.opened = self.nested()
        self.unmade = {id(n) for n in self.nodes if solvable(language, n, self.shared(n))}
        least = math.inf if ROWS in extents else max(3, self.largest + 1)
        sums = read_by_blocks(self.nodes, self.whole, least) - set(map(id, self.roots))
        self.products.blocks = Blocks(self.language, self, sums)
        if isinstance(self.language, Blockwise):
            self.unmade |= sums
            self.waiting -= sliced(self.nodes, sums)
        self.ends.update(map(id, self.roots))
        self.turned_matrices: dict[int, Code] = {}
        self.made: list[Expr] = []  # nodes with code must live as long as it

    def function(self, name: str) -> FunctionText:
        """The whole as a function of all variables, in the order of their names."""
        self.scope.name = name
        given = {p: self.scope.variables[p] for p in sorted(self.scope.variables)}
        return self.finished(name, given, self.walked(), sorted(self.scope.free))

    def walked(self) -> Code:
        """The result, after the statements that it takes."""
        for node in self.nodes:
            if id(node) not in self.codes and id(node) not in self.unmade:
                self.visit(node)
        return self.result(self.tree)

    def finished(
        self, name: str, given: Mapping[str, Var], result: Code, free: Sequence[str] = ()
    ) -> FunctionText:
        """The function of what is written."""
        self.scope.drop_unread(result.text)
        body = tuple(self.scope.lines)
        bound, self.scope.large = self.scope.read([result.text]), self.large()
        return FunctionText(name, given, free, bound, body, result, described(self.roots))

    def large(self) -> Set[str]:
        """The largest temporaries, if they have more entries than any parameter."""
        codes = [(e, self.codes[id(e)]) for e in [*self.nodes, *self.made] if id(e) in self.codes]
        sizes = {c.text: self.entries_of(e) for e, c in codes if c.text in self.scope.temporaries}
        given = max(map(self.entries_of, self.variables.values()), default=0)
        least = max([given, *[size // LARGE for size in sizes.values()]])
        return {name for name, size in sizes.items() if size > least}

    def entries_of(self, e: Expr) -> int:
        return math.prod(map(self.extent, e.shape))

    def result(self, tree: Any) -> Code:
        if isinstance(tree, dict):
            return self.language.mapping([(plain_key(key), self.result(tree[key])) for key in tree])
        if isinstance(tree, tuple | list):
            return self.language.sequence([self.result(value) for value in tree])
        code = self.code(tree)
        code = replace(code, view=self.to_copy(tree, code))
        return self.language.result(code, tree.shape)

    # --- integers that index ---

    def entries(self, node: Expr) -> Sequence[Expr]:
        """The operands of which a node reads entries in this program's dtype."""
        if self.around is not None:
            return () if counts(node) else node.args
        chosen = index_places(node)
        return [a for k, a in enumerate(node.args) if k not in chosen] if chosen else node.args

    def of_integers(self) -> SourceProgram:
        """The program that writes what indexes, in integers, among the statements of this one."""
        chosen = [arg for node in self.nodes for arg in indices(node)]
        return SourceProgram(
            type(self.language), tuple(chosen), self.names, around=self, sizes=self.sizes
        )

    def operand(self, node: Expr, k: int) -> Code:
        """One operand, in integers where that is what the node reads."""
        arg = node.args[k]
        if self.around is not None and counts(node):
            return self.around.inner(arg)
        return self.integer(arg) if k in index_places(node) else self.code(arg)

    def integer(self, e: Expr) -> Code:
        """An array of integers, written now where it is not yet."""
        return self.integers.inner(e)

    # --- what products read ---

    def code(self, e: Expr) -> Code:
        if id(e) not in self.codes and indicates(e):  # most are read as places alone
            self.codes[id(e)] = named(self.language, self.products.indicator(e))
            self.made.append(e)
        for late in (self.unmade, self.waiting):  # no reader took it for a part of its own
            if id(e) in late:
                late.discard(id(e))
                self.visit(e)
        return self.codes[id(e)]

    def kept(self, e: Expr) -> Code:
        self.codes[id(e)] = code = named(self.language, self.inner(e))
        return code

    def columns(self, e: Expr) -> Code:
        if not isinstance(self.language, Blockwise):
            return self.language.transpose(self.code(e), [1, 0])
        if id(e) not in self.turned_matrices:
            code = self.language.by_columns(self.code(e))
            self.turned_matrices[id(e)] = named(self.language, code)
        return self.turned_matrices[id(e)]

    def unwritten(self, e: Expr) -> bool:
        return id(e) in self.unmade

    def inner(self, e: Expr) -> Code:
        for node in below(e, self.codes, self.entries):
            for late in (self.waiting, self.opened):  # others read it as a part of a product
                late.discard(id(node))
            self.visit(node)
            self.made.append(node)
        return short_enough(self.language, self.code(e))

    def factors(self, node: Einsum) -> Factors:
        return self.whole.get(id(node)) or factors_of(node)

    def extent(self, extent: Extent) -> int:
        return nominal(extent, self.sizes)

    def turned(self, e: Expr) -> bool:
        return id(e) in self.waiting

    # --- nodes ---

    def opens(self, e: Einsum) -> bool:
        return self.uses[id(e)] == 1 and contracts(e)

    def nested(self) -> set[int]:
        """Contractions that one other product reads: as in plans, they are part of that one."""
        counted = [arg for node in self.nodes if counts(node) for arg in node.args]
        needed = {id(e) for e in [*self.roots, *counted]}
        for node in reversed(self.nodes):
            if id(node) not in needed:
                continue
            below: Iterable[Expr] = self.entries(node)
            if isinstance(node, Einsum) and (
                contracts(node) or scaled_ahead(node, self.opens, self.extent)
            ):
                self.whole[id(node)] = whole = flatten(node, self.opens, self.extent)
                below = [op for op, _ in whole.operands]
            needed.update(map(id, below))
        return {id(node) for node in self.nodes} - needed

    def visit(self, node: Expr) -> None:
        spend("steps", WRITTEN)
        if id(node) in self.waiting or id(node) in self.opened or indicates(node):
            return
        code = self.made_of(node)
        if self.makes(node, code):
            self.fresh.add(id(node))
        code = replace(code, fresh=False)
        if selects(node):  # in most places the integers alone are read
            self.codes[id(node)] = code
            return
        often = self.shared(node) and len(code.text) > 2 and id(node) not in self.narrow
        long = len(code.text) > self.language.width and id(node) not in self.ends
        self.codes[id(node)] = named(self.language, code) if often or long else code

    def made_of(self, node: Expr) -> Code:
        """A node from its operands."""
        if self.around is not None and compares_numbers(node):
            return self.language.whole_numbers(self.around.inner(node))
        if isinstance(node, Var):
            code = self.language.variable(self.names[node.name], node.shape)
            return self.language.constant(code) if node.integral or self.around else code
        if isinstance(node, Const):
            code, counted = self.language.array(node.value), node.value.dtype.kind == "i"
            return self.language.constant(code) if counted and self.around is None else code
        if isinstance(node, Add):
            return self.sum(node)
        if isinstance(node, Apply):
            return self.apply(node)
        if isinstance(node, Part):
            code = self.language.part(self.operand(node, 0), node.index)
            return self.language.constant(code) if self.around else code
        assert isinstance(node, Einsum)
        if node.summed or id(node) in self.whole:
            return self.products.as_read(node, node.out, node.coef)
        code, narrow = self.products.outer(node)
        if narrow is not None:
            self.narrow[id(node)] = narrow
        return code

    def apply(self, node: Apply) -> Code:
        op, language = node.op, self.language
        if isinstance(op, Loop):
            return self.loop(node, op)
        if factored(language, node):
            return self.products.solves.of_factor(node)
        if op.elementwise and not selects(node):
            args = self.entrywise(node, node.args)
        else:
            owned = [self.owned(arg, node) for arg in node.args]
            args = [replace(self.operand(node, k), fresh=f) for k, f in enumerate(owned)]
        args = [condition(c) if takes_condition(op, k) else c for k, c in enumerate(args)]
        if (own := op.spelling.code.get(language.name.lower())) is not None:
            return language.own(own, args)
        code = applied(language, self.operator(node), args)
        if code is None and op.kernels.formula is not None:
            formula = recorded(op.kernels.formula, len(args))
            code = written(language, formula, given(language, formula, args))
        if code is None:
            raise unknown(language, op.name, op.spelling.code, op.elementwise and op.kernels.host)
        if not args:
            return language.constant(code)
        if all(c.weak for c in args):
            return language.scalar(code)
        code = language.truth(code) if op.meaning.truth else code
        return replace(code, view=True) if op.meaning.regroups else code

    def operator(self, node: Apply) -> Operator:
        op = node.op
        core = op.cores(node.params)[0] if op.core else 0
        shapes = [part.shape for part in parts(node)] if op.parts else [node.shape]
        return Operator(op.spelling.source or op.name, self.parameters(node), core, shapes)

    def parameters(self, node: Apply) -> list[str]:
        """Parameters of an operator: extents where they name dimensions, literals, functions."""
        extents = set(dimensions([node])) if not node.args or selects(node) else set()
        return [
            f"({', '.join([self.language.size(n).text for n in p])},)"
            if isinstance(p, tuple) and node.op.meaning.regroups
            else self.language.size(p).text
            if isinstance(p, str) and extents and extent_names([p]) <= extents
            else self.parameter(p)
            for p in node.params
        ]

    def parameter(self, value: Any) -> str:
        """A literal, or a function of one number with its derivatives."""
        if not isinstance(value, Scalar):
            return self.language.literal(value)
        functions = [self.inside("function", e, {X.name: X}) for e in value.derivatives]
        return self.language.functions(functions)

    # --- functions inside this one ---

    def loop(self, node: Apply, row: Loop) -> Code:
        """A loop over a function of one step."""
        loop = row.iteration(node.params, range(len(parts(node))))
        names = {
            f"{letter}{k + 1}": v
            for letter, group in zip("sxc", (loop.states, loop.slices, loop.fixed), strict=True)
            for k, v in enumerate(group)
        }
        times = self.extent(loop.times) if "ahead" in self.language.own_words else 0
        name = self.inside("step", tuple(loop.following.values()), names, times)
        n, m = len(loop.states), len(loop.states) + len(loop.slices)
        args = [self.operand(node, k) for k in range(len(node.args))]
        return self.language.fold(name, (args[:n], args[n:m], args[m:]), Turns.of(loop))

    def inside(self, stem: str, tree: Any, names: Mapping[str, Var], times: int = 0) -> str:
        self.nestings += 1
        name = f"{unlike(stem, self.scope.taken, '_')}{self.nestings}"
        given = {v.name: p for p, v in names.items()}
        prefix = f"{self.scope.prefix}{self.nestings}_"
        inner = SourceProgram(type(self.language), tree, given, prefix, None, self.sizes, times)
        inner.scope.within(self.scope)
        result = inner.walked()
        for dim, size in inner.scope.sizes.items():
            if size in inner.scope.free and (own := self.language.size(dim)).text != size:
                self.language.assign(size, own)
        text = inner.finished(name, names, result, sorted(inner.scope.free))
        self.scope.lines += self.language.nested(text)
        return name
