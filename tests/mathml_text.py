"""Reads MathML: a formula's tree as text of the matrix language, independently of its printers."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Array = Any

#: Elements of MathML Core that formulas have, with their attributes.
CORE = {
    "math": {"display", "alttext"}, "mrow": set(), "mi": {"mathvariant"}, "mn": set(),
    "mo": {"form", "stretchy", "lspace", "rspace"}, "mtext": set(), "mspace": {"width"},
    "msup": set(), "msub": set(), "msubsup": set(), "munder": set(), "mover": set(),
    "munderover": set(), "mfrac": set(), "msqrt": set(), "mroot": set(), "mtr": set(),
    "mtable": {"displaystyle"}, "mtd": {"style"},
}  # fmt: skip
CHILDREN = {
    "msup": 2,
    "msub": 2,
    "msubsup": 3,
    "munder": 2,
    "munderover": 3,
    "mover": 2,
    "mfrac": 2,
    "mroot": 2,
}
TOKENS = {"mi", "mn", "mo", "mtext", "mspace"}
SIGNS = {
    "\u2062": " * ", "⋅": " * ", "\u2061": "", "⊙": " .* ", "⊘": " ./ ", "−": "-", "≤": " <= ",
    "≥": " >= ", "≠": " != ", "<": " < ", ">": " > ", "=": " == ",
}  # fmt: skip
NAMES = {"σ": "sigmoid", "λ": "lam", "π": "pi", "𝟏": "vector(1)"}


def checked(markup: str) -> ET.Element:
    """The tree of a formula: well-formed, of MathML Core, with the right number of children."""
    tree = ET.fromstring(markup)
    for element in tree.iter():
        assert element.tag in CORE, element.tag
        assert set(element.attrib) <= CORE[element.tag], (element.tag, element.attrib)
        if element.tag in TOKENS:
            assert len(element) == 0
        else:
            assert not (element.text or "").strip()
            assert len(element) == CHILDREN.get(element.tag, len(element)), markup
        assert not (element.tail or "").strip()
    return tree


def text_of(element: ET.Element) -> str:
    """The formula of an element in the matrix language."""
    return WRITERS.get(element.tag, _row)(element)


def _row(element: ET.Element) -> str:
    children = list(element)
    shown = [text_of(child) for child in children]
    marks = [child.text for child in children if child.tag == "mo"]
    if marks and marks[0] == "{":
        return shown[1]
    if marks[:1] == ["‖"]:
        return f"norm2({shown[1]})"
    if marks[:1] == ["|"] and len(children) == 3:
        return f"abs({shown[1]})"
    if marks[:1] == ["("]:
        return "".join(shown)
    if marks[:1] == ["["]:  # Iverson's bracket
        return f"({shown[1]})"
    text = "".join(shown).replace("logabs((det(", "logdet(((")
    return f"({text})" if element.tag == "mrow" and "," not in marks else text


def _token(element: ET.Element) -> str:
    text = element.text or ""
    return SIGNS.get(text, NAMES.get(text, text))


def _power(element: ET.Element) -> str:
    *base, above = element
    inside = base[0] if len(base) == 1 else _with_tag("msub", base)
    text, exponent = text_of(inside), "".join(above.itertext()).replace("−", "-")
    if exponent == "⊤":
        return f"({text})'"
    if exponent == "-⊤":
        return f"inv({text})'"
    if exponent == "-1":
        return f"inv({text})"
    if exponent.startswith("⊙"):
        written = text_of(above).removeprefix("(").removeprefix(" .* ").removesuffix(")")
        return f"({text}).^({written})"
    return f"({text})^({text_of(above)})"


def _with_tag(tag: str, children: list[ET.Element]) -> ET.Element:
    found = ET.Element(tag)
    found.extend(children)
    return found


def _subscripted(element: ET.Element) -> str:
    base, below = ("".join(child.itertext()) for child in element)
    if base == "𝟏":
        return f"vector(1, {below})"
    return f"eye({below})" if base == "I" else f"{base}_{below}"


def _fraction(element: ET.Element) -> str:
    above, below = map(text_of, element)
    return f"(({above})/({below}))"


def _cases(element: ET.Element) -> str:
    (yes, condition), (no, _) = element
    return f"where({text_of(condition)}, {text_of(yes)}, {text_of(no)})"


WRITERS = {
    "mi": _token, "mn": _token, "mo": _token, "mtext": _token, "msup": _power, "msubsup": _power,
    "msub": _subscripted, "mfrac": _fraction, "mtable": _cases,
    "msqrt": lambda element: f"sqrt({_row(element)})",
}  # fmt: skip


# --- arrays by their entries ----------------------------------------------------------------------


def _terms(row: ET.Element) -> Iterator[tuple[float, list[ET.Element]]]:
    """The terms of a sum: their signs and factors."""
    factors: list[ET.Element] = []
    sign = 1.0
    for child in row:
        if child.text in ("+", "−"):
            if factors:
                yield sign, factors
            sign, factors = (1.0 if child.text == "+" else -1.0), []
        elif child.text not in ("\u2062", "⋅"):
            factors.append(child)
    yield sign, factors


def entries(
    element: ET.Element, letters: str, value: Callable[[str], Array], shape: tuple[int, ...]
) -> Array:
    """The array of the entries that an index form gives, of all factors by their values."""
    known = dict(zip(letters, shape, strict=True))
    total: Any = 0.0
    for sign, factors in _terms(element):
        scale, words, arrays = sign, [], []
        for factor in factors:
            if factor.tag == "munder":
                continue
            if factor.tag == "msub" and factor[0].text != "𝟏":
                word = "".join(factor[1].itertext()).replace("\u2063", "")
                words.append(word)
                arrays.append(
                    "δ" if factor[0].text == "δ" else _factor(factor[0], word, value, known)
                )
            else:
                scale = scale * _factor(factor, "", value, known)
        for k, word in enumerate(words):
            if isinstance(arrays[k], str):
                arrays[k] = np.eye(known[word[0]])
        total = total + scale * np.einsum(f"{','.join(words)}->{letters}", *arrays)
    return np.asarray(total)


def _factor(
    element: ET.Element, letters: str, value: Callable[[str], Array], known: dict[str, int]
) -> Array:
    """A factor: a sum of index forms in parentheses, or matrix notation."""
    inside = element[1] if len(element) == 3 and element.tag == "mrow" else None
    indexed = inside is not None and any(child.tag == "msub" for child in inside)
    if inside is None or not indexed:
        return value(text_of(element))
    return entries(inside, letters, value, tuple([known[letter] for letter in letters]))


def value_of(tree: ET.Element, value: Callable[[str], Array], shape: tuple[int, ...]) -> Array:
    """The value of a formula of that shape, given the value of texts in the matrix language."""
    (row,) = tree
    total: Any = 0.0
    for sign, factors in _terms(row if row.tag == "mrow" else tree):
        scale: Any = sign
        for factor in factors:
            bracket = factor.tag == "msub" and len(factor[0]) == 3 and factor[0][0].text == "["
            if bracket:
                letters = "".join(factor[1].itertext()).replace("\u2063", "")
                scale = scale * entries(factor[0][1], letters, value, shape)
            else:
                scale = scale * value(text_of(factor))
        total = total + scale
    return np.asarray(total)
