"""Source code: one walker over the expression, every text left to a language.

Every node that is used twice, or is long, becomes an assignment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...contraction.nested import flatten
from ...graph.applications import parts
from ...graph.extents import extent_names, nominal
from ...graph.formulas import recorded
from ...graph.nodes import (
    Add,
    Apply,
    Const,
    Derivative,
    Einsum,
    Expr,
    Part,
    Var,
    dimensions,
    postorder,
    variables,
)
from ...graph.normal import bare
from ...graph.operators import Loop
from ...graph.products import Factors, factors_of, indicates, selects
from ...graph.trees import leaves, unflatten
from ...ops.matrix.divided_differences import Scalar, X
from ...rules.strategy import simplify
from ..writing.notation import takes_condition
from .formulas import applied, unknown, written
from .language import SUM, Code, FunctionText, Language, Operator, named, short_enough
from .products import Products
from .scope import FunctionScope, parameters, plain_key, unlike
from .values import Narrow, places, unscaled


class SourceProgram:
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
    """

    def __init__(
        self,
        language: type[Language],
        tree: Any,
        names: dict[str, str] | None = None,
        prefix: str = "t",
        around: SourceProgram | None = None,
    ) -> None:
        self.roots = [_stable(leaf) for leaf in leaves(tree)]
        self.tree = unflatten(tree, iter(self.roots))
        self.nodes = postorder(self.roots)
        self.variables = _variables(tree)
        given = parameters(self.variables, language.reserved, language.start)
        self.names = given if names is None else names
        self.around = around
        mine = {self.names[v.name]: v for v in self.variables.values()}
        taken = language.reserved.union(self.names.values())
        self.scope: FunctionScope = FunctionScope(mine, taken, prefix, language.start)
        if around is not None:
            self.scope = around.scope
        self.language = language(self.scope, around is not None)
        self.products = Products(self.language, self)
        extents = {n for node in self.nodes for n in node.shape if isinstance(n, str)}
        self.forms = sorted([n for n in extents if not n.isidentifier()])
        self.nestings = 0
        self.codes: dict[int, Code] = {}
        self.narrow: dict[int, Narrow] = {}
        self.whole: dict[int, Factors] = {}
        self.uses = Counter([id(arg) for node in self.nodes for arg in self.entries(node)])
        self.uses.update([id(root) for root in self.roots])
        self.integers = self.of_integers() if around is None else self
        self.waiting = self.read_once()
        self.opened = self.nested()
        self.ends = {id(root) for root in self.roots}
        self.made: list[Expr] = []  # nodes with code must live as long as it

    def function(self, name: str) -> FunctionText:
        """The whole as a function of all variables, in the order of their names."""
        self.scope.name = name
        result = self.walked()
        given = {p: self.scope.variables[p] for p in sorted(self.scope.variables)}
        return self.finished(name, given, result, sorted(self.scope.free))

    def walked(self) -> Code:
        """The result, after the statements that it takes."""
        for node in self.nodes:
            self.visit(node)
        return self.result(self.tree)

    def finished(
        self, name: str, given: Mapping[str, Var], result: Code, free: Sequence[str] = ()
    ) -> FunctionText:
        """The function of what is written."""
        body = tuple(self.scope.lines)
        bound = self.scope.read([result.text])
        return FunctionText(name, given, free, bound, body, result, _doc(self.roots))

    def result(self, tree: Any) -> Code:
        if isinstance(tree, dict):
            return self.language.mapping([(plain_key(key), self.result(tree[key])) for key in tree])
        if isinstance(tree, tuple | list):
            return self.language.sequence([self.result(value) for value in tree])
        return self.language.result(self.code(tree), tree.shape)

    # --- integers that index ---

    def entries(self, node: Expr) -> Sequence[Expr]:
        """The operands of which a node reads entries in this program's dtype."""
        if self.around is not None:
            return () if _counts(node) else node.args
        chosen = [id(arg) for arg in _indices(node)]
        return [arg for arg in node.args if id(arg) not in chosen] if chosen else node.args

    def of_integers(self) -> SourceProgram:
        """The program that writes what indexes, in integers, among the statements of this one."""
        chosen = [arg for node in self.nodes for arg in _indices(node)]
        return SourceProgram(type(self.language), tuple(chosen), self.names, around=self)

    def operand(self, node: Expr, k: int) -> Code:
        """One operand, in integers where that is what the node reads."""
        arg = node.args[k]
        if self.around is not None and _counts(node):
            return self.around.inner(arg)
        index = any(arg is other for other in _indices(node))
        return self.integer(arg) if index else self.code(arg)

    def integer(self, e: Expr) -> Code:
        """An array of integers, written now where it is not yet."""
        return self.integers.inner(e)

    # --- what products read ---

    def code(self, e: Expr) -> Code:
        if id(e) not in self.codes and indicates(e):  # most are read as places alone
            self.codes[id(e)] = named(self.language, self.products.indicator(e))
            self.made.append(e)
        return self.codes[id(e)]

    def inner(self, e: Expr) -> Code:
        for node in postorder([e]):
            if id(node) not in self.codes:
                self.waiting.discard(id(node))
                self.visit(node)
                self.made.append(node)
        return short_enough(self.language, self.code(e))

    def factors(self, node: Einsum) -> Factors:
        return self.whole.get(id(node)) or factors_of(node)

    def turned(self, e: Expr) -> bool:
        return id(e) in self.waiting

    def shared(self, e: Expr) -> bool:
        return self.uses[id(e)] > 1

    # --- nodes ---

    def read_once(self) -> set[int]:
        """Contractions that one outer product reads: they are written with the axes it wants."""
        return {
            id(arg)
            for node in self.nodes
            if isinstance(node, Einsum) and not node.summed
            for arg in node.args
            if isinstance(arg, Einsum) and arg.summed and arg.ndim > 1 and self.uses[id(arg)] == 1
        } | self.placed_once()

    def placed_once(self) -> set[int]:
        """Products with indicators that one sum reads; constants may be of higher precision."""
        if any(isinstance(node, Const) for node in self.nodes):
            return set()
        found: set[int] = set()
        for node in self.nodes:
            for term in node.args if isinstance(node, Add) else ():
                chain = [term] if unscaled(term)[1] is term else [term, unscaled(term)[1]]
                if places(chain[-1]) and all(indicates(e) or self.uses[id(e)] == 1 for e in chain):
                    found.update(map(id, chain))
        return found

    def opens(self, e: Einsum) -> bool:
        return self.uses[id(e)] == 1 and _contracts(e)

    def nested(self) -> set[int]:
        """Contractions that one other contraction reads: as in plans, they are part of that one."""
        counted = [arg for node in self.nodes if _counts(node) for arg in node.args]
        needed = {id(e) for e in [*self.roots, *counted]}
        for node in reversed(self.nodes):
            if id(node) not in needed:
                continue
            below: Iterable[Expr] = self.entries(node)
            if isinstance(node, Einsum) and _contracts(node):
                self.whole[id(node)] = whole = flatten(node, self.opens, nominal)
                below = [op for op, _ in whole.operands]
            needed.update(map(id, below))
        return {id(node) for node in self.nodes} - needed

    def visit(self, node: Expr) -> None:
        if id(node) in self.waiting or id(node) in self.opened or indicates(node):
            return
        code = self.made_of(node)
        if selects(node):  # in most places the integers alone are read
            self.codes[id(node)] = code
            return
        often = self.shared(node) and len(code.text) > 2 and id(node) not in self.narrow
        long = len(code.text) > self.language.width and id(node) not in self.ends
        self.codes[id(node)] = named(self.language, code) if often or long else code

    def made_of(self, node: Expr) -> Code:
        """A node from its operands."""
        if isinstance(node, Var):
            code = self.language.variable(self.names[node.name], node.shape)
            return self.language.constant(code) if node.integral else code
        if isinstance(node, Const):
            code = self.language.array(node.value)
            return self.language.constant(code) if node.value.dtype.kind == "i" else code
        if isinstance(node, Add):
            return self.sum(node)
        if isinstance(node, Apply):
            return self.apply(node)
        if isinstance(node, Part):
            return self.language.part(self.code(node.args[0]), node.index)
        assert isinstance(node, Einsum)
        if node.summed:
            return self.products.contraction(node, node.out)
        code, narrow = self.products.outer(node)
        if narrow is not None:
            self.narrow[id(node)] = narrow
        return code

    def sum(self, node: Add) -> Code:
        """A sum, of which terms that stand at places are added to one array of zeros."""
        if self.waiting.isdisjoint(map(id, node.args)):
            return self.language.add(self.entrywise(node))
        whole, terms = None, []
        for term in node.args:
            coef, product = unscaled(term)
            found = self.products.entries(product, coef) if id(term) in self.waiting else None
            if found is not None and found.where is not None:
                whole = self.products.among_zeros(found, whole)
            else:
                terms.append(self.inner(term) if found is None else found.code)
        terms = terms if whole is None else [whole, *terms]
        return self.language.add(terms) if terms[1:] else terms[0]

    def entrywise(self, node: Expr) -> list[Code]:
        """Operands of an entrywise node, not repeated along axes that others among them have."""
        every = set(range(node.ndim))
        whole = [Narrow(self.code(arg), every) for arg in node.args]
        small = [self.narrow.get(id(arg), n) for arg, n in zip(node.args, whole, strict=True)]
        enough = set().union(*[n.axes for n in small]) == every
        return [n.code for n in (small if enough else whole)]

    def apply(self, node: Apply) -> Code:
        op, language = node.op, self.language
        if isinstance(op, Loop):
            return self.loop(node, op)
        if op.elementwise and not selects(node):
            args = self.entrywise(node)
        else:
            args = [self.operand(node, k) for k in range(len(node.args))]
        args = [_condition(c) if takes_condition(op, k) else c for k, c in enumerate(args)]
        own = op.spelling.code.get(language.name.lower())
        if own is not None:
            return language.own(own, args)
        code = applied(language, self.operator(node), args)
        if code is None and op.kernels.formula is not None:
            code = written(language, recorded(op.kernels.formula, len(args)), args)
        if code is None:
            raise unknown(language, op.name, op.spelling.code)
        if not args:
            return language.constant(code)
        if all(c.weak for c in args):
            return language.scalar(code)
        truth = op.meaning.range == (0.0, 1.0) and not any(op.meaning.partials)
        return language.truth(code) if truth else code

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
        functions = [self.inside("function", e, {X.name: X.name}, [X]) for e in value.derivatives]
        return self.language.functions(functions)

    # --- functions inside this one ---

    def loop(self, node: Apply, row: Loop) -> Code:
        """A loop over a function of one step."""
        loop = row.iteration(node.params, range(len(parts(node))))
        names = {
            v.name: f"{letter}{k + 1}"
            for letter, group in zip("sxc", (loop.states, loop.slices, loop.fixed), strict=True)
            for k, v in enumerate(group)
        }
        name = self.inside("step", tuple(loop.following.values()), names, loop.variables)
        n, m = len(loop.states), len(loop.slices)
        args = [self.operand(node, k) for k in range(len(node.args))]
        operands = (args[:n], args[n : n + m], args[n + m :])
        return self.language.fold(name, operands, loop.times, loop.backward)

    def inside(self, stem: str, tree: Any, names: dict[str, str], given: Sequence[Var]) -> str:
        """The name of a function inside this one."""
        self.nestings += 1
        name = f"{unlike(stem, self.scope.taken, '_')}{self.nestings}"
        inner = SourceProgram(
            type(self.language), tree, names, f"{self.scope.prefix}{self.nestings}_"
        )
        inner.scope.within(self.scope)
        result = inner.walked()
        for dim, size in inner.scope.sizes.items():
            if size in inner.scope.free:
                self.language.assign(size, self.language.size(dim))
        read = {names[v.name]: v for v in given}
        function = inner.finished(name, read, result, sorted(inner.scope.free))
        self.scope.lines += self.language.nested(function)
        return name


def _condition(c: Code) -> Code:
    """A value of which is asked only whether it is 0."""
    if not c.condition:
        return c
    return replace(c, text=c.condition, level=SUM, name=False)


def _contracts(e: Einsum) -> bool:
    """Is e a contraction of arrays?"""
    return e.summed and not any(selects(arg) or indicates(arg) for arg in e.args)


def _stable(leaf: Any) -> Expr:
    """What is written: the form that is computed when the expression is called."""
    if not isinstance(leaf, Expr):
        raise TypeError(f"source is written for expressions, not for {type(leaf).__name__}")
    return leaf.projected if isinstance(leaf, Derivative) else simplify(leaf)


def _variables(tree: Any) -> dict[str, Var]:
    """Variables, also of what was differentiated: they stay parameters even if they cancelled."""
    found = leaves(tree)
    roots = [leaf for leaf in found if isinstance(leaf, Derivative)]
    kept = [e for root in roots for e in (root.of, *root.kept)]
    return variables([*map(bare, found), *kept])


def _counts(node: Expr) -> bool:
    """Are the values places along an axis, whatever the operands are?"""
    return isinstance(node, Apply) and node.op.meaning.places


def _indices(node: Expr) -> tuple[Expr, ...]:
    """The operands that are read as integers."""
    if selects(node):
        return node.args
    if isinstance(node, Apply) and isinstance(node.op, Loop):
        variables = node.op.iteration(node.params, ()).variables
        return tuple([a for a, v in zip(node.args, variables, strict=True) if v.integral])
    return ()


def _doc(roots: list[Expr]) -> str:
    shapes = [" x ".join(map(str, root.shape)) or "scalar" for root in roots]
    return f"Returns {', '.join(shapes)}."
