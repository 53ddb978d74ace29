"""Text of values in languages with infix operators: parentheses, signs, templates of operators."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from string import Formatter

from ...graph.extents import Extent, extent_from
from ...integers.affine import Affine, Congruence, Constraint, factors_of
from .language import ATOM, PRODUCT, SUM, Code


def operand(c: Code, level: int = ATOM) -> str:
    """The text, in parentheses where it binds less tightly than that."""
    return c.text if c.level >= level else f"({c.text})"


def product(factors: Sequence[Code], sign: str = " * ") -> Code:
    """Factors in this order; one of them alone is itself."""
    if len(factors) == 1:
        return factors[0]
    shown = [operand(c, PRODUCT if k == 0 else ATOM) for k, c in enumerate(factors)]
    return Code(sign.join(shown), PRODUCT, weak=all(c.weak for c in factors))


def quotient(c: Code, divisors: Sequence[Code]) -> Code:
    """A value over several."""
    shown = [operand(c, PRODUCT), *[operand(d) for d in divisors]]
    return Code(" / ".join(shown), PRODUCT, weak=all(d.weak for d in (c, *divisors)))


def negative(c: Code) -> Code:
    """A value with a minus sign in front, for a matrix product of the whole: it is smaller."""
    text = operand(c, ATOM if c.text.startswith("-") else PRODUCT)
    if c.level == PRODUCT and multiplies_matrices(c.text):
        return Code(f"-({text})", PRODUCT, negated=text)
    return Code(f"-{text}", PRODUCT, weak=c.weak)


def multiplies_matrices(text: str) -> bool:
    """Is the first sign outside of parentheses that of a matrix product?"""
    depth = 0
    for before, character in pairwise(text):
        depth += (before in "([{") - (before in ")]}")
        if depth == 0 and before == " " and character in "@*/":
            return character == "@"
    return False


def total(terms: Sequence[Code], plus: str = " + ", minus: str = " - ") -> Code:
    """Terms with a minus sign behind the others, sums in front."""
    signed = [(c.level == PRODUCT and c.text.startswith("-"), c) for c in terms]
    text = ""
    for below, c in sorted(signed, key=lambda term: (term[0], term[1].level != SUM)):
        shown = ((text and c.negated) or c.text[1:]) if below else operand(c, PRODUCT)
        text += (minus if below else plus) + shown if text else f"{'-' * below}{shown}"
    return Code(text, SUM, weak=all(c.weak for c in terms))


def level(text: str) -> int:
    """How tightly a text binds: a name, a call or a parenthesis is an atom, all else a sum."""
    head = re.match(r"[\w.]*", text)
    start = head.end() if head else 0
    if start == len(text):
        return ATOM
    depth = 0
    for k, character in enumerate(text[start:], start):
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            return ATOM if k == len(text) - 1 and character == ")" else SUM
    return SUM


def filled(
    template: str,
    values: Mapping[str, str],
    args: Sequence[Code],
    name: Callable[[Code], Code],
) -> Code:
    """A template with its operands, in parentheses where it has none of its own.

    Parameters
    ----------
    template : str
        Operands are ``{0}``, ``{1}``, all of them ``{operands}``.
    values : mapping
        Other fields.
    args : sequence of Code
    name : callable
        ``name(code)`` gives a value a name: an operand that the template has twice.
    """
    given = [name(c) if template.count(f"{{{k}}}") > 1 else c for k, c in enumerate(args)]
    parts = list(Formatter().parse(template))
    text = ""
    for k, (before, field, *_) in enumerate(parts):
        text += before
        if field is None:
            continue
        if field.isdigit():
            after = parts[k + 1][0] if k + 1 < len(parts) else ""
            enclosed = before.endswith(("(", ", ")) and after.startswith((")", ","))
            text += given[int(field)].text if enclosed else operand(given[int(field)])
        elif field == "operands":
            text += ", ".join([c.text for c in given])
        else:
            text += values[field]
    return Code(text, level(text))


def letters(word: Sequence[int], names: dict[int, str]) -> str:
    """Labels as letters, those that have none yet the next ones after `i`."""
    return "".join([names.setdefault(label, chr(105 + len(names))) for label in word])


def subscripts(words: Sequence[Sequence[int]], out: Sequence[int]) -> str:
    """The subscripts of einsum."""
    names: dict[int, str] = {}
    return ",".join([letters(w, names) for w in words]) + "->" + letters(out, names)


def condition(
    g: Constraint | Congruence,
    names: Mapping[str, str],
    size: Callable[[Extent], Code],
    times: str,
    divisible: str,
) -> str:
    """A condition on indices, its two sides without negative terms.

    Parameters
    ----------
    g : Constraint or Congruence
    names : mapping
        Texts of indices; other names are dimensions, of which `size` has the text.
    size : callable
    times : str
        The sign of a product.
    divisible : str
        A template of "is {0} divisible by {1}?".
    """
    sides: tuple[list[str], list[str]] = ([], [])
    for name, c in g.form.terms:
        parts = factors_of(name)
        shown = times.join([names.get(p) or size(extent_from(Affine.of(p))).text for p in parts])
        sides[c < 0].append(shown if abs(c) == 1 else f"{abs(c)} * {shown}")
    if g.form.constant:
        sides[g.form.constant < 0].append(str(abs(g.form.constant)))
    left, right = (" + ".join(side) or "0" for side in sides)
    if isinstance(g, Congruence):
        return divisible.format(left, g.modulus)
    return f"{left} {'==' if g.equality else '>='} {right}"


def given_sizes(sizes: Mapping[str, int]) -> list[str]:
    """Extents as further arguments, behind others."""
    return [str(sizes[name]) for name in sorted(sizes)]
