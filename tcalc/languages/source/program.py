"""Source code: one walker over the expression, the spelling left to a language.

Every node that is used twice, or is long, becomes an assignment. Contractions become matrix
products where they have that form; unit tensors are written onto diagonals of zeros.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...calculus.transforms import jacobian
from ...contraction.nested import flatten
from ...graph.applications import application, parts
from ...graph.extents import Extent, extent_names, nominal
from ...graph.formulas import Entry, recorded
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
from ...graph.operators import Indicator, Loop
from ...graph.products import indicates, selects
from ...graph.trees import leaves
from ...ops.matrix.divided_differences import Scalar, X
from ...support.errors import UnsupportedError
from ..writing.notation import takes_condition
from .numpy import LANGUAGES, PRODUCT, SUM, Code, NumPy
from .products import Products
from .selfcheck import difference_check, shape_check


def to_code(e: Any, language: str = "numpy", name: str = "f", check: bool = False) -> str:
    """Source of a function that computes the expression without tcalc.

    Parameters
    ----------
    e : expression, or nested tuples, lists and dicts of expressions
    language : str
        ``"numpy"``.
    name : str
        Name of the function. Its parameters are the variables, sorted by name, then dimensions that
        no variable has. Names that mean something in the language get an underscore behind.
    check : bool
        Append a self-check: run as a script, the source compares a derivative with central
        differences of what it is the derivative of, on random data.

    Returns
    -------
    str
        The source of a module.
    """
    if language not in tuple(LANGUAGES):
        raise ValueError(f"no language {language!r}; one of {', '.join(LANGUAGES)}")
    spelling = LANGUAGES[language]()
    free = isinstance(name, str) and name.isidentifier() and not keyword.iskeyword(name)
    if not free or name in spelling.reserved:
        raise ValueError(f"a function needs an identifier of its own as name, not {name!r}")
    program = Program(spelling, e)
    functions = [program.function(name)]
    if not check:
        return spelling.module([*_needed(spelling.helpers, functions), *functions])
    if not isinstance(e, Derivative):
        whole = spelling.module([*_needed(spelling.helpers, functions), *functions])
        return whole + shape_check(program, name)
    before = e.of
    for v in e.wrt[:-1]:
        before = jacobian(before, v)
    earlier = Program(spelling, before)
    functions.append(earlier.function(f"{name}_before"))
    whole = spelling.module([*_needed(spelling.helpers, functions), *functions])
    return whole + difference_check(program, earlier, e.wrt, name)


def _needed(helpers: Mapping[str, str], functions: list[list[str]]) -> list[list[str]]:
    """The sources of the helpers that functions call."""
    called = set(re.findall(r"\b(\w+)\(", "\n".join(["\n".join(lines) for lines in functions])))
    return [text.split("\n") for name, text in helpers.items() if name in called]


class Program(Products):
    """The statements of one function."""

    def __init__(
        self, language: NumPy, tree: Any, names: dict[str, str] | None = None, prefix: str = "t"
    ) -> None:
        super().__init__(language)
        self.prefix = prefix
        self.tree = tree
        self.roots = [_expression(leaf) for leaf in leaves(tree)]
        self.nodes = postorder(self.roots)
        self.variables = {**variables(self.roots), **_origins(tree)}
        reserved = language.reserved.union(language.helpers)
        self.names = _parameters(self.variables, reserved) if names is None else names
        self.taken = set(self.names.values()) | reserved
        self.prefix = _free(self.prefix, self.taken)
        self.sizes: dict[str, str] = {}
        self.needed: list[str] = []
        self.free: list[str] = []
        self.steps = 0
        self.uses = Counter([id(arg) for node in self.nodes for arg in node.args])
        self.uses.update([id(root) for root in self.roots])
        self.turned = self.read_once()
        self.opened = self.nested()
        self.ends = {id(root) for root in self.roots}
        self.made: list[Expr] = []  # nodes with code must live as long as it

    def function(self, name: str) -> list[str]:
        """The lines of the function."""
        lines = self.statements()
        result = self.result(self.tree)
        integers = {self.names[v.name] for v in self.variables.values() if v.integral}
        return self.language.function(
            name, sorted(self.names.values()), sorted(self.free), integers,
            lines, result, _doc(self.roots),
        )  # fmt: skip

    def statements(self) -> list[str]:
        """The lines before the result."""
        for node in self.nodes:
            self.visit(node)
        words = set(re.findall(r"\w+", "\n".join([*self.lines, self.result(self.tree)])))
        return [*[line for line in self.needed if line.split(" ", 1)[0] in words], *self.lines]

    def result(self, tree: Any) -> str:
        if isinstance(tree, dict):
            if not all(isinstance(key, str | int | float | bool) for key in tree):
                raise TypeError("keys of outputs in source are strings and numbers")
            items = [f"{key!r}: {self.result(value)}" for key, value in tree.items()]
            return "{" + ", ".join(items) + "}"
        if isinstance(tree, tuple | list):
            items = [self.result(value) for value in tree]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        root = _expression(tree)
        code = self.codes[id(root)]
        if code.weak:
            return self.language.full(code, ()).text + "[()]"
        if not code.view and not isinstance(root, Var):
            return code.text
        return f"np.array({code.text}){'' if root.ndim else '[()]'}"

    # --- names ---

    def extent(self, extent: Extent) -> str:
        """An extent: a number, or names of dimensions bound before the first statement."""
        if isinstance(extent, int):
            return str(extent)
        if not re.fullmatch(r"[\w+*/\- ()]+", extent):
            raise ValueError(f"the extent {extent!r} has no source")
        text = re.sub(r"[^\W\d]\w*", lambda m: self.dimension(m.group()), extent)
        return text if extent.isidentifier() else f"({text})"

    def dimension(self, dim: str) -> str:
        if dim not in self.sizes:
            self.sizes[dim] = _free(_plain(dim), self.taken | set(self.sizes.values()), "_")
            source = next((v for v in self.variables.values() if dim in v.shape), None)
            if source is None:
                self.free.append(self.sizes[dim])
            else:
                size = self.language.extent(self.names[source.name], source.shape.index(dim))
                self.needed.append(f"{self.sizes[dim]} = {size}")
        return self.sizes[dim]

    # --- nodes ---

    def read_once(self) -> set[int]:
        """Contractions that one outer product reads: they are written with the axes it wants."""
        return {
            id(arg)
            for node in self.nodes
            if isinstance(node, Einsum) and not node.summed
            for arg in node.args
            if isinstance(arg, Einsum) and arg.summed and arg.ndim > 1 and self.uses[id(arg)] == 1
        }

    def opens(self, e: Einsum) -> bool:
        return self.uses[id(e)] == 1 and _contracts(e)

    def nested(self) -> set[int]:
        """Contractions that one other contraction reads: as in plans, they are part of that one."""
        needed = {id(root) for root in self.roots}
        for node in reversed(self.nodes):
            if id(node) not in needed:
                continue
            below: Iterable[Expr] = node.args
            if isinstance(node, Einsum) and _contracts(node):
                self.whole[id(node)] = whole = flatten(node, self.opens, nominal)
                below = [op for op, _ in whole.operands]
            needed.update(map(id, below))
        return {id(node) for node in self.nodes} - needed

    def visit(self, node: Expr) -> None:
        if id(node) in self.turned or id(node) in self.opened:
            return
        code = self.code(node)
        if selects(node):  # in most places the integers alone are read
            self.codes[id(node)] = code
            return
        often = self.uses[id(node)] > 1 and len(code.text) > 2 and id(node) not in self.short
        long = len(code.text) > self.language.width and id(node) not in self.ends
        if (often or long) and not code.text.isidentifier():
            code = self.assign(code)
        self.codes[id(node)] = code

    def inner(self, e: Expr) -> Code:
        for node in postorder([e]):
            if id(node) not in self.codes:
                self.turned.discard(id(node))
                self.visit(node)
                self.made.append(node)
        return self.short_enough(self.codes[id(e)])

    def code(self, node: Expr) -> Code:
        if isinstance(node, Var):
            return Code(self.names[node.name])
        if isinstance(node, Const):
            return self.language.array(node.value)
        if isinstance(node, Add):
            return self.sum(node)
        if isinstance(node, Apply):
            return self.apply(node)
        if isinstance(node, Part):
            view = isinstance(application(node).op, Loop)
            return Code(f"{self.codes[id(node.args[0])].text}[{node.index}]", view=view)
        assert isinstance(node, Einsum)
        if node.summed:
            return self.contraction(node, node.out)
        return self.outer(node)

    def entrywise(self, node: Expr) -> list[Code]:
        """Operands of an entrywise node, not repeated along axes that others among them have."""
        every = set(range(node.ndim))
        small = [self.short.get(id(arg), (self.codes[id(arg)], every)) for arg in node.args]
        if set().union(*[axes for _, axes in small]) < every:
            return [self.codes[id(arg)] for arg in node.args]
        return [code for code, _ in small]

    def sum(self, node: Add) -> Code:
        terms = []
        for code in self.entrywise(node):
            negative = code.level == PRODUCT and code.text.startswith("-")
            terms.append((negative, code._replace(text=code.text[negative:])))
        return self.language.add(sorted(terms, key=lambda t: (t[0], t[1].level != SUM)))

    def loop(self, node: Apply, row: Loop) -> Code:
        """A call of a helper with a function of one step."""
        loop = row.iteration(node.params, range(len(parts(node))))
        names = {
            v.name: f"{letter}{k + 1}"
            for letter, group in zip("sxc", (loop.states, loop.slices, loop.fixed), strict=True)
            for k, v in enumerate(group)
        }
        given = [names[v.name] for v in loop.variables]
        name = self.inside("step", tuple(loop.following.values()), names, given)
        n, m = len(loop.states), len(loop.slices)
        args = [self.codes[id(arg)].text for arg in node.args]
        groups = [
            self.language.shape(group) for group in (args[:n], args[n : n + m], args[n + m :])
        ]
        count = self.extent(loop.times)
        return Code(f"_fold({', '.join([name, *groups, count, str(loop.backward), 'dtype'])})")

    def inside(self, stem: str, tree: Any, names: dict[str, str], given: Sequence[str]) -> str:
        """The name of a function inside this one: of parameters that stand for variables."""
        self.steps += 1
        name, prefix = f"{_free(stem, self.taken, '_')}{self.steps}", f"{self.prefix}{self.steps}_"
        inner = Program(self.language, tree, names, prefix)
        lines = [*inner.statements(), f"return {inner.result(inner.tree)}"]
        sizes = [f"{size} = {self.extent(dim)}" for dim, size in inner.sizes.items()]
        free = [line for line in sizes if line.split(" ", 1)[0] in inner.free]
        head = f"def {name}({', '.join(given)}):"
        self.lines += [*free, head, *[f"    {line}" for line in lines]]
        return name

    def apply(self, node: Apply) -> Code:
        op, language = node.op, self.language
        if isinstance(op, Loop):
            return self.loop(node, op)
        if isinstance(op, Indicator):
            return Code(f"{language.indicator(node.params, self.extent)}.astype(dtype)")
        args = self.entrywise(node) if op.elementwise else [self.codes[id(a)] for a in node.args]
        args = [
            Code(c.condition, 0) if c.condition and takes_condition(op, k) else c
            for k, c in enumerate(args)
        ]
        template = language.template(op.spelling.source or op.name)
        if template:
            text = self.call(template, self.parameters(node), args)
        elif op.kernels.formula is not None:
            text = self.formula(recorded(op.kernels.formula, len(args)), args).text
        else:
            raise UnsupportedError(f"no {language.name} source for {op}")
        if not args:
            return Code(f"{text}.astype(dtype)")
        if all(c.weak for c in args):
            return Code(f"float({text})", weak=True)
        if op.meaning.range == (0.0, 1.0) and not any(op.meaning.partials):
            return language.truth(text)
        return Code(text, language.level(text))

    def call(self, template: str, values: dict[str, str], args: list[Code]) -> str:
        """A template with its operands, of which one that it has twice gets a name."""
        for k in range(len(args)):
            if template.count(f"{{{k}}}") > 1:
                args[k] = self.named(args[k])
        return self.language.apply(template, values, args)

    def formula(self, entry: Any, args: Sequence[Code]) -> Code:
        """What an operator that the language does not know is made of."""
        if not isinstance(entry, Entry):
            return self.language.number(entry)
        if not entry.name:
            return args[int(entry.args[0])]
        operands = [self.formula(arg, args) for arg in entry.args]
        text = self.call(self.language.template(entry.name), {}, operands)
        return Code(text, self.language.level(text))

    def parameters(self, node: Apply) -> dict[str, str]:
        values = {}
        for k, p in enumerate(node.params):
            known = not node.args or selects(node)
            dimension = isinstance(p, str) and known
            dimension = dimension and extent_names([p]) <= set(dimensions([node]))
            values[f"p[{k}]"] = self.extent(p) if dimension else self.parameter(p)
        if node.op.core and node.params and isinstance(node.params[0], int):
            axes = tuple(range(-node.params[0], 0))
            values["axes"] = str(axes[0] if len(axes) == 1 else axes)
        return values

    def parameter(self, value: Any) -> str:
        """A parameter of an operator: a literal, or a function of one number with derivatives."""
        if not isinstance(value, Scalar):
            return repr(value)
        names = {X.name: X.name}
        functions = [self.inside("function", e, names, [X.name]) for e in value.derivatives]
        return self.language.shape(functions)


def _contracts(e: Einsum) -> bool:
    """Is e a contraction of arrays?"""
    return e.summed and not any(selects(arg) or indicates(arg) for arg in e.args)


def _expression(leaf: Any) -> Expr:
    if not isinstance(leaf, Expr):
        raise TypeError(f"source is written for expressions, not for {type(leaf).__name__}")
    return bare(leaf)


def _origins(tree: Any) -> dict[str, Var]:
    """Variables of what was differentiated: they stay parameters even if they cancelled."""
    roots = [leaf.of for leaf in leaves(tree) if isinstance(leaf, Derivative)]
    return variables(roots)


def _free(name: str, taken: set[str], suffix: str = "t") -> str:
    """A name that is not taken, nor its numbered forms."""
    while any(re.fullmatch(rf"{re.escape(name)}\d*", other) for other in taken):
        name += suffix
    return name


def _plain(name: str) -> str:
    """A name free in Python, in ASCII: several spellings of other letters are read as one name."""
    if not name.isascii():
        name = "".join([ch if ch.isascii() else "_" for ch in name]) + "_"
    while keyword.iskeyword(name) or hasattr(builtins, name):
        name += "_"
    return name


def _parameters(found: dict[str, Var], reserved: frozenset[str]) -> dict[str, str]:
    """Identifiers of variables in the source."""
    names: dict[str, str] = {}
    for name in sorted(found):
        shown = _plain(name)
        while shown in reserved or (shown != name and (shown in found or shown in names.values())):
            shown = _plain(shown + "_")
        names[name] = shown
    return names


def _doc(roots: list[Expr]) -> str:
    shapes = [" x ".join(map(str, root.shape)) or "scalar" for root in roots]
    return f"Returns {', '.join(shapes)}."
