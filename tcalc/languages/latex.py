r"""LaTeX: matrix notation, and index notation with \delta for unit tensors where that has none.

Only commands that KaTeX, MathJax and matplotlib's mathtext all know.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from string import Formatter
from typing import Any

import numpy as np

from ..graph.arraylike import surface
from ..graph.extents import Coef, Extent, Shape, show_shape
from ..graph.nodes import Expr
from ..graph.operators import Op
from ..graph.trees import Place, places
from .writing.layout import FormulaLayout
from .writing.nests import of_nests
from .writing.notation import (
    ATOM,
    COMPARE,
    POINTWISE,
    POWER,
    EinsumSpec,
    Fragment,
    Rope,
    Style,
    fragment_size,
    index_letters,
    join_ropes,
    rope_text,
)
from .writing.symbols import Symbols

GREEK = {
    "alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa",
    "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "upsilon", "phi", "chi", "psi",
    "omega", "Gamma", "Delta", "Theta", "Lambda", "Xi", "Pi", "Sigma", "Upsilon", "Phi", "Psi",
    "Omega",
}  # fmt: skip
SHORTENED = {"lam": "lambda", "eps": "epsilon"}
WORD = re.compile(r"\\(?!left|frac|sqrt|mathbf)[A-Za-z]+[({]")
OPENING = ("(", "{", "|", "[", "& ", r"\\ ", r"cases} ", ", ")
CLOSING = (")", "}", "|", "]", r"\right", " &", r" \\", ", ")


def symbol(name: str) -> str:
    """A name in LaTeX: digits at its end and parts behind an underscore are subscripts."""
    parts = [p for p in re.split(r"_+|(?<=[^\W\d_])(?=\d)", name) if p] or [name]
    shown = [_word(p) for p in parts]
    return shown[0] if len(shown) == 1 else f"{shown[0]}_{{{','.join(shown[1:])}}}"


def _word(word: str) -> str:
    word = SHORTENED.get(word, word)
    if word in GREEK:
        return f"\\{word}"
    plain = word.replace("_", r"\_")
    return plain if len(word) == 1 or word.isdigit() else f"\\mathrm{{{plain}}}"


def exact_symbol(name: str) -> str:
    """A name in LaTeX as it is: no two names look alike."""
    return f"\\mathrm{{{name.replace('_', chr(92) + '_')}}}"


def leading(rope: Rope) -> str:
    """The first part of a rope."""
    while not isinstance(rope, str):
        rope = next(part for part in rope if part)
    return rope


def spaced(rope: Rope) -> bool:
    """Does a factor start with a word, so that it needs more space beside it?"""
    return bool(WORD.match(leading(rope)))


def template(text: str) -> list[tuple[str, str]]:
    """A format string as literals, each with the field behind it; the last field is empty."""
    found, literal = [], ""
    for part, field, *_ in Formatter().parse(text):
        literal += part
        if field is not None:
            found.append((literal, field))
            literal = ""
    return [*found, (literal, "")]


def latex_parameter(key: str, value: Any) -> str:
    """A parameter of an operator as part of its subscript; axes are the last ones."""
    if key == "axis":
        count = len(value) if isinstance(value, tuple) else 1
        return r"\mathrm{last\,axis}" if count == 1 else f"\\mathrm{{last\\,{count}\\,axes}}"
    formula = getattr(value, "expr", None)
    if isinstance(formula, Expr):
        return to_latex(formula)
    if isinstance(value, bool):
        return f"\\mathrm{{{value}}}"
    if isinstance(value, tuple):
        value = show_shape(value).replace("*", " ")
    shown = symbol(value) if isinstance(value, str) and value.isidentifier() else str(value)
    return f"\\mathrm{{{key}}}={shown}" if key else shown


def subscripted(ropes: list[Rope], subscript: str) -> list[Rope]:
    """A subscript of the operator's name, or of the whole where it has none."""
    name = re.match(r"\\(operatorname\{\w+\}|(?!left|frac|sqrt)[a-z]+(?=\())", leading(ropes))
    if name is None:
        return [(*ropes, subscript)]
    first, *rest = ropes
    return [first[: name.end()], subscript, first[name.end() :], *rest]


class Latex(Style):
    """LaTeX without environments, unless statements need one."""

    pointwise_times = r" \odot "
    maps_to = r" \mapsto "

    def __init__(self) -> None:
        self.symbols = Symbols(symbol, exact_symbol)

    def name(self, name: str) -> Fragment:
        return Fragment(self.symbols[name])

    def number(self, value: float) -> Fragment:
        return Fragment(self.numeral(repr(value)))

    def numeral(self, text: str) -> str:
        if "*" in text:
            return r" \cdot ".join(map(self.numeral, text.split("*")))
        if text in ("inf", "nan"):
            return r"\infty" if text == "inf" else r"\mathrm{nan}"
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa} \\cdot 10^{{{int(exponent)}}}" if exponent else text

    def array(self, value: np.ndarray) -> Fragment:
        if not value.ndim:
            return Fragment(self.numeral(repr(value.item())))
        return Fragment((r"\mathrm{const}_{", r" \times ".join(map(str, value.shape)), "}"))

    def dimensions(self, names: Sequence[str]) -> list[str]:
        shown = []
        for name, power in sorted(Counter(names).items()):
            base = self.symbols[name] if name.isidentifier() else f"({name})"
            shown.append(base if power == 1 else f"{base}^{{{power}}}")
        return shown

    def ones(self, extent: Extent | None) -> Fragment:
        return Fragment(r"\mathbf{1}" if extent is None else f"\\mathbf{{1}}_{{{extent}}}")

    def filled(self, value: Fragment, shape: Shape) -> Fragment:
        if value.text == "0":
            return value
        ones = self.ones(shape[0])
        if len(shape) == 2:
            ones = self.chain([ones, self.transpose(self.ones(shape[1]))])
        return self.scale(ones, Coef(), [value]) if value.text != "1" else ones

    def block(self, name: str, shape: Shape) -> Fragment:
        if name == "zeros":
            return Fragment("0")
        return Fragment((r"\mathbf{1}_{", r" \times ".join(map(str, shape)), "}"))

    def eye(self, extent: Extent) -> Fragment:
        return Fragment(f"I_{{{extent}}}")

    def product(self, ropes: Sequence[Rope]) -> Rope:
        found: list[Rope] = []
        for k, rope in enumerate(ropes):
            if k:
                found.append(r" \, " if spaced(rope) or spaced(ropes[k - 1]) else " ")
            found.append(rope)
        return tuple(found)

    def scale(self, body: Fragment | None, coef: Coef, scalars: Sequence[Fragment]) -> Fragment:
        if coef.zero:
            return Fragment("0")
        scaled = super().scale(body, coef, scalars)
        if body is None or body.entry is None:
            return scaled
        letters, entry = body.entry
        inner = super().scale(entry, coef, scalars)
        return scaled._replace(entry=(letters, inner._replace(negative=False)))

    def parenthesised(self, rope: Rope) -> Rope:
        return (r"\left(", rope, r"\right)")

    def raised(self, p: Fragment) -> Rope:
        return (self.inside(p, ATOM), r"^{\top}")

    def powers(self, factors: Sequence[tuple[Fragment, int]]) -> list[tuple[Fragment, int]]:
        return list(factors)

    def power(self, p: Fragment, k: int, scalar: bool) -> Rope:
        return (self.inside(p, ATOM), f"^{{{k}}}" if scalar else f"^{{\\odot {k}}}")

    def fraction(self, above: list[Rope], below: list[str], numbers: int) -> Rope:
        first = [self.numeral(rope) for rope in above[:numbers]]
        rest = above[numbers:]
        if below:
            first = [f"\\frac{{{' '.join(first) or '1'}}}{{{' '.join(below)}}}"]
        elif first and rest and leading(rest[0])[0].isdigit():
            first.append(r"\cdot")
        return self.product([*first, *rest] or ["1"])

    def quotient(self, above: str, body: Fragment, negative: bool) -> Fragment:
        text = (r"\frac{", self.numeral(above), "}{", body.under, "}")
        return body._replace(text=text, negative=negative, under=None)

    def function(self, name: str, args: Sequence[Fragment], extra: Sequence[str] = ()) -> Fragment:
        ropes = [self.signed(p) for p in args] + list(extra)
        plain = name.replace("_", r"\_")
        text = (f"\\operatorname{{{plain}}}", self.parenthesised(join_ropes(", ", ropes)))
        return Fragment(text, ATOM, *fragment_size(args, 3 + len(ropes)))

    def output(
        self, op: Op, index: int, extra: Sequence[tuple[str, Any]], args: Sequence[Fragment]
    ) -> Fragment:
        """One output of several, by its symbol."""
        if not op.spelling.symbols:
            return super().output(op, index, extra, args)
        inner = self.parenthesised(join_ropes(", ", [self.signed(p) for p in args]))
        return Fragment((op.spelling.symbols[index], inner), ATOM, *fragment_size(args, 4))

    def call(
        self,
        op: Op,
        extra: Sequence[tuple[str, Any]],
        args: Sequence[Fragment],
        scalar: Sequence[bool],
    ) -> Fragment:
        """The row's template, with parentheses where it has none of its own."""
        parts = template(op.spelling.latex)
        ropes: list[Rope] = []
        level = ATOM
        for k, (literal, field) in enumerate(parts):
            ropes.append(literal)
            if not field:
                continue
            after = parts[k + 1][0]
            if literal.endswith(OPENING) and after.startswith(CLOSING):
                ropes.append(self.signed(args[int(field)]))
            else:
                raised = after.startswith("^")
                level = min(level, POWER if raised else COMPARE)
                ropes.append(self.inside(args[int(field)], ATOM if raised else POINTWISE))
        if parts[0][0].endswith("^{") or parts[0][0].startswith(r"\frac"):
            level = min(level, POWER)
        if extra:
            ropes = subscripted(
                ropes, f"_{{{', '.join([latex_parameter(*item) for item in extra])}}}"
            )
            level = min(level, POWER)
        under = args[0].text if op.spelling.infix == "1./" else None
        return Fragment(tuple(ropes), level, *fragment_size(args, 2), under=under)

    def einsum(self, spec: EinsumSpec, args: Sequence[Fragment]) -> Fragment:
        """Sum and product over indices, deltas for indices that repeat in the result."""
        fresh = index_letters()
        out = "".join(islice(fresh, len(spec.out)))
        names: dict[str, str] = {}
        deltas = []
        for letter, shown in zip(spec.out, out, strict=True):
            if names.setdefault(letter, shown) != shown:
                deltas.append(f"\\delta_{{{names[letter]}{shown}}}")
        for letter in "".join(spec.words):
            if letter not in names:
                names[letter] = next(fresh)
        summed = "".join([names[k] for k in names if k not in spec.out])
        words = ["".join([names[letter] for letter in word]) for word in spec.words]
        ropes: list[Rope] = [f"\\sum_{{{summed}}}"] if summed else []
        for word, p in zip(words, args, strict=True):
            base = self.inside(p, ATOM)
            marked = isinstance(base, str) and "_" in base
            ropes.append((("{", base, "}") if marked else base, f"_{{{word}}}"))
        body = join_ropes(" ", [*ropes, *deltas] or ["1"])
        entry = Fragment(body, POINTWISE, *fragment_size(args, 4 + len(deltas)), joins=True)
        return self.bracketed(out, entry) if out else entry

    def bracketed(self, out: str, entry: Fragment) -> Fragment:
        """The array with these entries."""
        text = (r"\left[", entry.text, r"\right]", f"_{{{out}}}")
        return Fragment(text, POWER, entry.size, entry.flips, entry=(out, entry))

    def add(self, terms: Sequence[Fragment]) -> Fragment:
        """A sum; arrays given by their entries under one bracket."""
        found = [p.entry for p in terms if p.entry]
        if len(found) < len(terms) or len({out for out, _ in found}) > 1:
            return super().add(terms)
        entries = [
            entry._replace(
                negative=p.negative,
                level=entry.level if p.negative else max(entry.level, POINTWISE),
            )
            for p, (_, entry) in zip(terms, found, strict=True)
        ]
        return self.bracketed(found[0][0], super().add(entries))

    def statements(self, named: Sequence[tuple[str, Fragment]], last: Fragment) -> str:
        if not named:
            return rope_text(self.signed(last))
        lines: list[Rope] = [
            (self.symbols[name], " &= ", self.signed(p), r" \\ ") for name, p in named
        ]
        return rope_text(
            (r"\begin{aligned} ", tuple(lines), "& ", self.signed(last), r" \end{aligned}")
        )


def _aligned(tree: Any, texts: Sequence[str]) -> str:
    pairs = zip(places(tree), texts, strict=True)
    rows = r" \\ ".join([rf"{_operator(at)}\colon\quad & {text}" for at, text in pairs])
    return rf"\begin{{aligned}} {rows} \end{{aligned}}"


def _operator(place: Place) -> str:
    """The derivative by variables, behind the place in a nest."""
    path = ",".join([str(k) if isinstance(k, int) else symbol(str(k)) for k in place.path])
    order = f"^{{{len(place.wrt)}}}" if len(place.wrt) > 1 else ""
    below = r" \, ".join([rf"\partial {symbol(name)}" for name in place.wrt])
    by = rf"\frac{{\partial{order}}}{{{below}}}" if place.wrt else ""
    return (rf"\left[{path}\right]" if path else "") + by


@of_nests(_aligned)
def to_latex(e: Expr) -> str:
    r"""The expression as LaTeX, without dollar signs.

    Parameters
    ----------
    e : Expr, or a nested tuple, list or dict of Expr
        Parts of a nest stand below each other, each with its variables or its place.

    Returns
    -------
    str

    Examples
    --------
    >>> import tcalc as tc
    >>> A, x = tc.var("A", ("n", "n")), tc.var("x", ("n",))
    >>> print(tc.to_latex(x @ A @ x))
    x^{\top} A x
    """
    return FormulaLayout(Latex()).text(e)


def repr_latex(e: Expr) -> str:
    """For notebooks."""
    return f"${to_latex(e)}$"


surface["repr_latex"] = repr_latex
