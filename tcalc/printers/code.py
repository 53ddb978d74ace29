"""Source code: one walker over the expression, the spelling left to a language.

Every node that is used twice, or is long, becomes an assignment. Contractions become matrix products
where they have that form; unit tensors are written onto diagonals of zeros.
"""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ..calculus import jacobian
from ..expr import (
    Add,
    Apply,
    Const,
    Derivative,
    Einsum,
    Expr,
    Labels,
    Var,
    dimensions,
    postorder,
    variables,
)
from ..extents import ONE, Coef, Extent
from ..nest import leaves
from ..normal import bare
from .languages import ATOM, LANGUAGES, PRODUCT, SUM, Code, NumPy
from .selfcheck import difference_check, shape_check
from .style import takes_condition

Operand = tuple[Code, Labels]
MIN_NAMED = 12


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
    if language not in LANGUAGES:
        raise ValueError(f"no language {language!r}; one of {', '.join(LANGUAGES)}")
    if not name.isidentifier() or keyword.iskeyword(name):
        raise ValueError(f"a function needs an identifier as name, not {name!r}")
    spelling = LANGUAGES[language]()
    program = Program(spelling, e)
    functions = [program.function(name)]
    if not check:
        return spelling.module(functions)
    before = e.of if isinstance(e, Derivative) else None
    if before is not None:
        for v in e.wrt[:-1]:
            before = jacobian(before, v)
        earlier = Program(spelling, before)
        functions.append(earlier.function(f"{name}_before"))
        return spelling.module(functions) + difference_check(program, earlier, e.wrt, name)
    return spelling.module(functions) + shape_check(program, name)


class Program:
    """The statements of one function."""

    def __init__(self, language: NumPy, tree: Any) -> None:
        self.language = language
        self.tree = tree
        self.roots = [_expression(leaf) for leaf in leaves(tree)]
        self.nodes = postorder(self.roots)
        self.variables = {**variables(self.roots), **_origins(tree)}
        self.lines: list[str] = []
        self.codes: dict[int, Code] = {}
        self.short: dict[int, tuple[Code, set[int]]] = {}
        self.temporaries = 0
        self.names = _parameters(self.variables, language.reserved)
        self.taken = set(self.names.values()) | language.reserved
        self.prefix = _free("t", self.taken)
        self.sizes: dict[str, str] = {}
        self.needed: list[str] = []
        self.free: list[str] = []
        self.uses = Counter([id(arg) for node in self.nodes for arg in node.args])
        self.uses.update([id(root) for root in self.roots])
        self.turned = self.read_once()
        self.ends = {id(root) for root in self.roots}

    def function(self, name: str) -> list[str]:
        """The lines of the function."""
        for node in self.nodes:
            self.visit(node)
        result = self.result(self.tree)
        words = set(re.findall(r"\w+", "\n".join([*self.lines, result])))
        sizes = [line for line in self.needed if line.split(" ", 1)[0] in words]
        integers = {
            self.names[v.name] for v in self.variables.values() if "integer" in v.properties
        }
        return self.language.function(
            name, sorted(self.names.values()), sorted(self.free), integers,
            [*sizes, *self.lines], result, _doc(self.roots),
        )  # fmt: skip

    def result(self, tree: Any) -> str:
        if isinstance(tree, dict):
            items = [f"{key!r}: {self.result(value)}" for key, value in tree.items()]
            return "{" + ", ".join(items) + "}"
        if isinstance(tree, tuple | list):
            items = [self.result(value) for value in tree]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        root = _expression(tree)
        code = self.codes[id(root)]
        if code.weak:
            return self.language.full(code, ()).text + "[()]"
        return f"np.array({code.text})" if code.view or isinstance(root, Var) else code.text

    # --- names ---

    def assign(self, code: Code) -> Code:
        self.temporaries += 1
        name = f"{self.prefix}{self.temporaries}"
        self.lines.append(f"{name} = {code.text}")
        return code._replace(text=name, level=ATOM, condition="")

    def named(self, code: Code) -> Code:
        return code if code.text.isidentifier() else self.assign(code)

    def extent(self, extent: Extent) -> str:
        """An extent: a number, or names of dimensions bound before the first statement."""
        if isinstance(extent, int):
            return str(extent)
        if not re.fullmatch(r"[\w+*\- ()]+", extent):
            raise ValueError(f"the extent {extent!r} has no source")
        text = re.sub(r"[^\W\d]\w*", lambda m: self.dimension(m.group()), extent)
        return text if extent.isidentifier() else f"({text})"

    def dimension(self, dim: str) -> str:
        if dim not in self.sizes:
            self.sizes[dim] = _free(dim, self.taken, "_")
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

    def visit(self, node: Expr) -> None:
        if id(node) in self.turned:
            return
        code = self.code(node)
        often = self.uses[id(node)] > 1 and len(code.text) > 2 and id(node) not in self.short
        long = len(code.text) > self.language.width and id(node) not in self.ends
        if (often or long) and not code.text.isidentifier():
            code = self.assign(code)
        self.codes[id(node)] = code

    def code(self, node: Expr) -> Code:
        if isinstance(node, Var):
            return Code(self.names[node.name])
        if isinstance(node, Const):
            return self.language.array(node.value)
        if isinstance(node, Add):
            return self.sum(node)
        if isinstance(node, Apply):
            return self.apply(node)
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

    def apply(self, node: Apply) -> Code:
        op, language = node.op, self.language
        args = self.entrywise(node) if op.elementwise else [self.codes[id(a)] for a in node.args]
        args = [
            Code(c.condition, 0) if c.condition and takes_condition(op, k) else c
            for k, c in enumerate(args)
        ]
        for k in range(len(args)):
            if op.code.count(f"{{{k}}}") > 1:
                args[k] = self.named(args[k])
        text = language.apply(op.code, self.parameters(node), args)
        if not args:
            return Code(f"{text}.astype(dtype)")
        if all(c.weak for c in args):
            return Code(f"float({text})", weak=True)
        if op.range == (0.0, 1.0) and not any(op.partials):
            return language.truth(text)
        return Code(text, language.level(text))

    def parameters(self, node: Apply) -> dict[str, str]:
        values = {}
        for k, p in enumerate(node.params):
            dimension = isinstance(p, str) and p in dimensions([node])
            values[f"p[{k}]"] = self.extent(p) if dimension else repr(p)
        if node.op.core and node.params and isinstance(node.params[0], int):
            axes = tuple(range(-node.params[0], 0))
            values["axes"] = str(axes[0] if len(axes) == 1 else axes)
        return values

    # --- products ---

    def scaled(self, coef: Coef, factors: list[Code]) -> Code:
        """coef * factors, the number next to the smallest factor."""
        language, value = self.language, coef.value
        negative = math.copysign(1, value) < 0 and value == value
        first = [] if abs(value) == 1 and (factors or coef.times) else [language.number(abs(value))]
        first += [Code(self.extent(d), weak=True) for d in coef.times]
        code = language.multiply([*first, *factors])
        if coef.over:
            code = language.divide(code, [self.extent(d) for d in coef.over])
        return language.negate(code) if negative else code

    def outer(self, node: Einsum) -> Code:
        """A product without a summed label."""
        labels = list(dict.fromkeys(node.out))
        scalars: list[Code] = []
        groups: dict[tuple[int, ...], list[Code]] = {}
        for arg, word in zip(node.args, node.labels, strict=True):
            if word:
                order = [label for label in labels if label in word]
                groups.setdefault(tuple(order), []).append(self.aligned(arg, word, order))
            else:
                scalars.append(self.codes[id(arg)])
        factors = []
        for order in sorted(groups, key=lambda order: (len(order), order)):
            product = self.language.multiply(groups[order])
            factors.append(self.language.expand(product, [k in order for k in labels]))
        plain = node.coef == ONE and not scalars and len(factors) == 1
        code = factors[0] if plain else self.scaled(node.coef, scalars + factors)
        present = {axis for axis, label in enumerate(labels) if any(label in g for g in groups)}
        if len(labels) < len(node.out):
            return self.embedded(node, code, bool(factors))
        if len(present) == len(labels):
            return code
        if self.uses[id(node)] > 1 and len(code.text) > MIN_NAMED:
            code = self.named(code)
        self.short[id(node)] = (code, present)
        shape = [self.extent(e) for e in node.shape]
        return self.language.broadcast(code, shape) if factors else self.language.full(code, shape)

    def embedded(self, node: Einsum, core: Code, array: bool) -> Code:
        """A unit tensor times its core, written on a diagonal of zeros."""
        language = self.language
        if not array:
            core = language.full(core, [self.extent(e) for e in node.extents])
        if node.out == (0, 0):
            return language.diag(core)
        core = self.named(core)
        self.temporaries += 1
        name = f"{self.prefix}{self.temporaries}"
        self.lines += language.embed(name, core, node.out, [self.extent(e) for e in node.shape])
        return Code(name)

    def aligned(self, arg: Expr, word: Labels, order: list[int]) -> Code:
        """An operand with its axes in this order of labels."""
        if id(arg) in self.turned and isinstance(arg, Einsum):
            return self.short_enough(self.contraction(arg, [word.index(k) for k in order]))
        return self.arranged((self.codes[id(arg)], word), order)

    def arranged(self, operand: Operand, order: Sequence[int]) -> Code:
        """The operand with axes in this order, repeated labels read as diagonals."""
        code, word = operand
        if len(set(word)) < len(word):
            distinct = tuple(dict.fromkeys(word))
            code, word = self.language.diagonal(code, word, distinct), distinct
        return self.language.transpose(code, [word.index(label) for label in order])

    # --- contractions ---

    def contraction(self, node: Einsum, order: Sequence[int]) -> Code:
        """A product with summed labels; result axes in this order of its open labels."""
        language, out = self.language, tuple(order)
        operands = [
            (self.codes[id(arg)], word) for arg, word in zip(node.args, node.labels, strict=True)
        ]
        if len(operands) == 1 and operands[0][1] == (0, 0) and not out:
            return language.trace(operands[0][0])
        flat = [
            (
                self.arranged(operand, list(dict.fromkeys(operand[1]))),
                tuple(dict.fromkeys(operand[1])),
            )
            for operand in operands
        ]
        while len(flat) > 1:
            flat = self.alone_summed(flat, out)
            if len(flat) == 2:
                return self.pair(flat[0], flat[1], out)
            step = self.paired(flat, out, 1) or self.absorbed(flat) or self.paired(flat, out, 0)
            if step is None:
                return language.einsum([c for c, _ in flat], [w for _, w in flat], out)
            flat = step
        return self.arranged(self.summed(flat[0], out), out)

    def alone_summed(self, flat: list[Operand], out: Labels) -> list[Operand]:
        """Labels that only one operand has are summed there."""
        counts = Counter([label for _, word in flat for label in word])
        return [self.summed(f, [k for k in f[1] if k in out or counts[k] > 1]) for f in flat]

    def summed(self, operand: Operand, keep: Iterable[int]) -> Operand:
        code, word = operand
        kept = set(keep)
        axes = [k for k, label in enumerate(word) if label not in kept]
        if not axes:
            return operand
        rest = tuple([label for label in word if label in kept])
        return self.language.sum(code, axes, len(word)), rest

    def absorbed(self, flat: list[Operand]) -> list[Operand] | None:
        """An operand whose labels all stand in another one scales that one."""
        best: tuple[int, int, int] | None = None
        for i, (_, small) in enumerate(flat):
            for j, (_, large) in enumerate(flat):
                if i != j and set(small) <= set(large) and (len(small), i) < (len(large), j):
                    if best is None or (len(large), i, j) < best:
                        best = (len(large), i, j)
        if best is None:
            return None
        _, i, j = best
        (small, word), (large, target) = flat[i], flat[j]
        aligned = self.arranged((small, word), [k for k in target if k in word])
        factor = self.language.expand(aligned, [k in word for k in target])
        product = self.short_enough(self.language.multiply([large, factor]))
        return [f for k, f in enumerate(flat) if k not in (i, j)] + [(product, target)]

    def paired(self, flat: list[Operand], out: Labels, fewer: int) -> list[Operand] | None:
        """Two operands multiplied where that sums a label of theirs: the smallest result.

        The result has at least `fewer` axes less than the larger one.
        """
        options = []
        for i in range(len(flat)):
            for j in range(i + 1, len(flat)):
                rest = {k for m, (_, w) in enumerate(flat) if m not in (i, j) for k in w}
                joint = dict.fromkeys((*flat[i][1], *flat[j][1]))
                kept = tuple([k for k in joint if k in rest or k in out])
                largest = max(len(flat[i][1]), len(flat[j][1]))
                if len(kept) < len(joint) and len(kept) + fewer <= largest:
                    options.append((len(kept), i, j, kept))
        if not options:
            return None
        _, i, j, kept = min(options)
        product = self.short_enough(self.pair(flat[i], flat[j], kept))
        return [f for k, f in enumerate(flat) if k not in (i, j)] + [(product, kept)]

    def short_enough(self, code: Code) -> Code:
        return self.assign(code) if len(code.text) > self.language.width else code

    def pair(self, a: Operand, b: Operand, out: Labels) -> Code:
        """The product of two operands with the labels that are not in `out` summed."""
        language = self.language
        shared = [k for k in a[1] if k in b[1]]
        summed = [k for k in shared if k not in out]
        batch = [k for k in shared if k in out]
        left = [k for k in out if k in a[1] and k not in shared]
        right = [k for k in out if k in b[1] and k not in shared]
        if batch or not summed:
            return self.batched(a, b, out, (batch, left, right, summed))
        if len(summed) == 1 and len(left) < 2 and len(right) < 2:
            if out == (*right, *left) and right and (left or len(b[1]) > 1):
                a, b, left, right = b, a, right, left
            first, second = self.arranged(a, [*left, *summed]), self.arranged(b, [*summed, *right])
            return language.matmul(first, second)
        if not out:
            return language.inner(self.arranged(a, a[1]), self.arranged(b, a[1]))
        axes = ([a[1].index(k) for k in summed], [b[1].index(k) for k in summed])
        order = [k for k in a[1] if k in left] + [k for k in b[1] if k in right]
        found = language.tensordot(a[0], b[0], axes)
        return language.transpose(found, [order.index(k) for k in out])

    def batched(self, a: Operand, b: Operand, out: Labels, groups: tuple[list[int], ...]) -> Code:
        language = self.language
        batch, left, right, summed = groups
        if len(left) == len(right) == len(summed) == 1:
            found = language.matmul(
                self.arranged(a, [*batch, *left, *summed]),
                self.arranged(b, [*batch, *summed, *right]),
            )
            order = [*batch, *left, *right]
            return language.transpose(found, [order.index(k) for k in out])
        return language.einsum([a[0], b[0]], [a[1], b[1]], out)


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


def _parameters(found: dict[str, Var], reserved: frozenset[str]) -> dict[str, str]:
    """Identifiers of variables in the source."""
    names: dict[str, str] = {}
    for name in sorted(found):
        shown = name
        while (
            keyword.iskeyword(shown)
            or hasattr(builtins, shown)
            or shown in reserved
            or (shown != name and (shown in found or shown in names.values()))
        ):
            shown += "_"
        names[name] = shown
    return names


def _doc(roots: list[Expr]) -> str:
    shapes = [" x ".join(map(str, root.shape)) or "scalar" for root in roots]
    return f"Returns {', '.join(shapes)}."
