r"""LaTeX templates of operators as MathML.

Read are the commands that rows of the library have, and those that formulas of users are likely to
have. Nothing is refused: any other command is shown as a function of its name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Protocol

from .markup import APPLY, THIN, TIMES, Box, Markup, box, leaf, sign, single, word
from .writing.notation import Rope
from .writing.symbols import GREEK

TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|\s+|.", re.DOTALL)
SYMBOLS = {
    "le": "≤", "leq": "≤", "ge": "≥", "geq": "≥", "ne": "≠", "neq": "≠", "approx": "≈", "sim": "∼",
    "equiv": "≡", "in": "∈", "wedge": "∧", "vee": "∨", "neg": "¬", "cdot": "⋅", "times": "×",
    "odot": "⊙", "oslash": "⊘", "otimes": "⊗", "oplus": "⊕", "circ": "∘", "ast": "∗", "star": "⋆",
    "pm": "±", "mp": "∓", "to": "→", "mapsto": "↦", "mid": "∣", "prod": "∏", "sum": "∑", "int": "∫",
    "bmod": "mod", "ldots": "…", "cdots": "⋯", "dots": "…", "prime": "′", "dagger": "†",
}  # fmt: skip
LETTERS = {
    "top": "⊤", "infty": "∞", "partial": "∂", "nabla": "∇", "ell": "ℓ", "varphi": "φ", "phi": "ϕ",
    "varepsilon": "ε", "epsilon": "ϵ", "vartheta": "ϑ", "hbar": "ℏ", "emptyset": "∅",
}  # fmt: skip
DELIMITERS = {
    "|": "|", r"\|": "‖", r"\lfloor": "⌊", r"\rfloor": "⌋", r"\lceil": "⌈", r"\rceil": "⌉",
    r"\{": "{", r"\}": "}", r"\lvert": "|", r"\rvert": "|", r"\lVert": "‖", r"\rVert": "‖",
    r"\langle": "⟨", r"\rangle": "⟩", "(": "(", ")": ")", "[": "[", "]": "]", ".": "",
}  # fmt: skip
CLOSING = {"(": ")", "[": "]", "{": "}", "|": "|", "‖": "‖", "⌊": "⌋", "⌈": "⌉", "⟨": "⟩"}
ALPHABETS = {
    "mathbf": "BOLD", "boldsymbol": "BOLD", "bm": "BOLD", "mathcal": "SCRIPT", "mathscr": "SCRIPT",
    "mathbb": "DOUBLE-STRUCK", "mathfrak": "FRAKTUR",
}  # fmt: skip
ROMAN = {"operatorname", "mathrm", "mathsf", "mathtt", "mathit"}
TEXT = {"text", "textrm", "mbox"}
ACCENTS = {
    "hat": "^", "widehat": "^", "bar": "¯", "overline": "¯", "tilde": "~", "vec": "→", "dot": "˙",
}  # fmt: skip
SPACES = {r"\,", r"\;", r"\:", r"\!", r"\ ", r"\quad", r"\qquad", "~"}
#: Commands that show nothing.
IGNORED = {"displaystyle", "textstyle", "limits", "nolimits", "big", "Big", "bigl", "bigr"}


def greek(name: str) -> Markup:
    """A Greek letter by its name: large ones upright, as in LaTeX."""
    case = "SMALL" if name.islower() else "CAPITAL"
    called = {"lambda": "LAMDA"}.get(name.lower(), name.upper())
    letter = LETTERS.get(name) or unicodedata.lookup(f"GREEK {case} LETTER {called}")
    return leaf("mi", letter) if name.islower() else word(letter)


def styled(text: str, alphabet: str) -> str:
    """Letters and digits of another alphabet, where Unicode has them."""

    def letter(c: str) -> str:
        name = unicodedata.name(c, "").replace("LATIN ", "").replace(" LETTER", "")
        for prefix in ("MATHEMATICAL ", ""):
            try:
                return unicodedata.lookup(f"{prefix}{alphabet} {name}")
            except KeyError:
                continue
        return c

    return "".join(map(letter, text))


def invisible(left: str, right: str, space: bool) -> Markup:
    """The operator between two items: application of the left one, or multiplication.

    A function's name has space around it, but none before parentheses.
    """
    if left == "function":
        return leaf("mo", APPLY, **({} if right == "(" else {"rspace": THIN}))
    if right == "(" and not space:
        return leaf("mo", APPLY)
    return leaf("mo", TIMES, **({"lspace": THIN} if right == "function" else {}))


class Item:
    """A part of a row.

    Attributes
    ----------
    kind : str
        An operand, a function, an operator, or the left one of the fences around it.
    """

    __slots__ = ("kind", "rope")

    def __init__(self, rope: Rope, kind: str = "operand") -> None:
        self.rope, self.kind = rope, kind


class Marks(Protocol):
    """The marks that a template is composed of, as in `Typeset`; and whether one is tall."""

    def superscript(self, base: Rope, above: Rope) -> Rope: ...
    def subscript(self, base: Rope, below: Rope) -> Rope: ...
    def over(self, above: Rope, below: Rope) -> Rope: ...
    def fenced(self, left: str, rope: Rope, right: str) -> Rope: ...
    def tall(self, rope: Rope) -> bool: ...


class TemplateReader:
    """Reads one template: LaTeX, and in every second place a part that is written already."""

    def __init__(self, parts: Sequence[Rope], style: Marks) -> None:
        self.style = style
        self.tokens: list[str | Item] = []
        for k, part in enumerate(parts):
            self.tokens += [Item(part)] if k % 2 else TOKEN.findall(part)
        self.at = 0

    def read(self) -> Rope:
        rows = [self.row(())]
        while self.at < len(self.tokens):  # what closes nothing
            self.at += 1
            rows.append(self.row(()))
        return single(tuple(rows))

    # --- tokens ---

    @property
    def token(self) -> str | Item | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def taken(self, wanted: str) -> bool:
        found = self.token == wanted
        self.at += found
        return found

    def skip_space(self) -> bool:
        start = self.at
        while isinstance(self.token, str) and (self.token.isspace() or self.token in SPACES):
            self.at += 1
        return self.at > start

    def argument(self) -> Rope:
        """A group in braces, or the next token."""
        self.skip_space()
        if self.taken("{"):
            found = self.row(("}",))
            self.taken("}")
            return found
        item = self.item()
        return "" if item is None else item.rope

    def text(self) -> str:
        """The characters of a group in braces."""
        self.skip_space()
        found: list[str] = []
        if self.taken("{"):
            while self.token is not None and self.token != "}":
                if isinstance(self.token, str):
                    found.append(self.token.removeprefix("\\"))
                self.at += 1
            self.taken("}")
        return "".join(found)

    # --- rows ---

    def row(self, ends: Sequence[str]) -> Rope:
        """Items up to one of the ends, with the operators between them that LaTeX leaves out."""
        items: list[tuple[Item, bool]] = []
        while True:
            space = self.skip_space()
            if self.token is None or self.token in ends or self.token in ("}", r"\right", r"\end"):
                break
            item = self.item()
            if item is not None:
                items.append((self.scripts(item), space))
        ropes = [items[0][0].rope] if items else []
        for (left, _), (right, space) in pairwise(items):
            if "operator" not in (left.kind, right.kind):
                ropes.append(invisible(left.kind, right.kind, space))
            ropes.append(right.rope)
        return tuple(ropes)

    def scripts(self, item: Item) -> Item:
        """The item with its subscripts and superscripts."""
        rope, marks = item.rope, {"_": self.style.subscript, "^": self.style.superscript}
        found: dict[str, list[Rope]] = {mark: [] for mark in marks}
        while isinstance(self.token, str) and self.token in marks:
            mark = self.token
            self.at += 1
            found[mark].append(self.argument())
        for mark, scripts in found.items():
            for script in scripts:
                rope = marks[mark](rope, script)
        return Item(rope, item.kind)

    def item(self) -> Item | None:
        """The next item, without scripts; None for a token that shows nothing."""
        token = self.token
        self.at += 1
        if token is None or isinstance(token, Item):
            return token
        delimiter = DELIMITERS.get(token)
        if delimiter in CLOSING:
            return self.fenced(delimiter)
        if token == "{":
            self.at -= 1
            return Item(single(self.argument()))
        if token[0] == "\\" and token[1:].isalpha():
            return self.command(token[1:])
        if token[0].isdecimal():
            return Item(leaf("mn", token))
        if token.isalpha():
            return Item(leaf("mi", token))
        return Item(sign(token.removeprefix("\\")), "operator")

    def fenced(self, left: str) -> Item:
        closing = CLOSING[left]
        inside = self.row([token for token, shown in DELIMITERS.items() if shown == closing])
        if isinstance(self.token, str) and DELIMITERS.get(self.token) == closing:
            self.at += 1
        return Item(self.style.fenced(left, inside, closing), left)

    def command(self, name: str) -> Item | None:
        for names, read in COMMANDS:
            if name in names:
                return read(self, name)
        if name in GREEK or name in LETTERS:
            letter = greek(name) if name in GREEK else word(LETTERS[name])
            return Item(letter)
        return None if name in IGNORED else Item(word(name), "function")

    # --- commands ---

    def fraction(self, _: str) -> Item:
        above = self.argument()
        return Item(self.style.over(above, self.argument()))

    def root(self, _: str) -> Item:
        index: Rope = ""
        if self.taken("["):
            index = self.row(("]",))
            self.taken("]")
        inside = self.argument()
        if index:
            return Item(box("mroot", single(inside), single(index), tall=self.style.tall(inside)))
        return Item(box("msqrt", inside, tall=self.style.tall(inside)))

    def roman(self, name: str) -> Item:
        return Item(word(self.text()), "function" if name == "operatorname" else "operand")

    def words(self, _: str) -> Item:
        return Item(leaf("mtext", self.text()))

    def alphabet(self, name: str) -> Item:
        text = styled(self.text(), ALPHABETS[name])
        return Item(leaf("mn" if text.isdecimal() else "mi", text))

    def accent(self, name: str) -> Item:
        mark = leaf("mo", ACCENTS[name], stretchy="false")
        return Item(box("mover", single(self.argument()), mark))

    def symbol(self, name: str) -> Item:
        return Item(sign(SYMBOLS[name]), "operator")

    def delimited(self, _: str) -> Item:
        """Between left and right delimiters."""
        left = self.delimiter()
        inside = self.row(())
        if self.taken(r"\right"):
            return Item(self.style.fenced(left, inside, self.delimiter()), left)
        return Item(single((left, inside)))

    def delimiter(self) -> str:
        self.skip_space()
        token = self.token
        self.at += token is not None
        return DELIMITERS.get(token, "") if isinstance(token, str) else ""

    def environment(self, _: str) -> Item:
        """Rows of cells: cases have a brace before them."""
        name = self.text()
        rows: list[list[Rope]] = [[]]
        while self.token is not None and self.token != r"\end":
            rows[-1].append(self.row(("&", r"\\")))
            if self.taken(r"\\"):
                rows.append([])
            elif not self.taken("&") and self.token != r"\end":
                self.at += 1  # what closes nothing
        self.taken(r"\end")
        self.text()
        found = table([row for row in rows if any(row)], "text-align: left; padding-left: 0")
        return Item(box("mrow", leaf("mo", "{"), found, tall=True) if name == "cases" else found)


def table(rows: Sequence[Sequence[Rope]], *styles: str, **given: str) -> Box:
    """A table, its columns in these styles, further ones aligned to the left."""
    every = [*styles, *["text-align: left"] * max([0, *map(len, rows)])]
    lines = [
        box("mtr", *[box("mtd", cell, style=s) for cell, s in zip(row, every, strict=False)])
        for row in rows
    ]
    return box("mtable", *lines, tall=True, **given)


#: How commands are read, by their names.
COMMANDS: list[tuple[set[str], Callable[[TemplateReader, str], Item]]] = [
    ({"frac", "dfrac", "tfrac"}, TemplateReader.fraction),
    ({"sqrt"}, TemplateReader.root),
    (ROMAN, TemplateReader.roman),
    (TEXT, TemplateReader.words),
    (set(SYMBOLS), TemplateReader.symbol),
    (set(ALPHABETS), TemplateReader.alphabet),
    (set(ACCENTS), TemplateReader.accent),
    ({"left"}, TemplateReader.delimited),
    ({"begin"}, TemplateReader.environment),
]
