"""Variables as the text suggests them, where nobody has declared them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count, islice, product
from typing import Any

Reader = Callable[[str], Any]

_NAME = re.compile(r"[^\W\d_]\w*")
_STRING = re.compile(r"'[^'\n]*'(?=\s*,)")
_COMMENT = re.compile(r"[#%](?!\().*")
_GIVEN = re.compile(r"\b([^\W\d_]\w*)\s*(?:\[[^]]*\])?\s*=(?!=)")
#: Names of numbers in most papers, written out or not, with a number or a word behind them.
_NUMBER = re.compile(
    r"(alpha|gamma|delta|epsilon|eps|eta|kappa|lambda|lam|nu|rho|sigma|tau|omega|[αγδεηκλνρστω])"
    r"(\d|_\w*)*"
)
#: What the matrix language declares by its convention; letters with such numbers nobody writes.
_CONVENTION = re.compile(r"[A-Za-z]\d*")
#: Where an index from 0 on is said to end.
_BOUNDS = re.compile(r"\b([^\W\d_]\w*)\s*=\s*0\s*\.\.\s*([^\W\d_]\w*)\s*-\s*1(?![\w*/.])")
_TOKEN = re.compile(r"[^\W\d_]\w*|\S")
#: What has indices in brackets and is no array.
_REDUCING = {"sum", "prod", "max", "min"}
_EXTENTS = "nmkpqrstuvw"
_UNUSED = 70_001
#: How often it is tried which names are columns and which numbers.
_TRIALS = 8
#: What has another meaning in the languages.
_TAKEN = {"pi", "eye", "vector", "matrix", "inf", "nan"}


def guessed(
    expression: str, language: str, known: Mapping[str, Any], read: Reader | None = None
) -> dict[str, dict[str, Any]]:
    """Declarations of the names that have none and that the language does not declare by itself.

    In the matrix language upper case is a matrix, lower case a column or a number, with extents as
    letters in the same places have them; in the index language what stands before brackets has as
    many axes as there are subscripts, and axes that one index subscripts are equally long. Whoever
    asked corrects them.

    Parameters
    ----------
    expression, language : str
    known : mapping
        What is declared, as `schema.Variable`, by name.
    read : callable, optional
        Of the matrix language; without it matrices are m by n and columns have n entries.

    Returns
    -------
    dict
        By name, as `schema.Variable`.
    """
    text = _COMMENT.sub("", _STRING.sub("", expression))
    given = {match.group(1) for match in _GIVEN.finditer(text)}
    bound = set()
    if language == "index":
        for inside in re.findall(r"\[([^]]*)\]", text):
            bound.update(_NAME.findall(inside))
    found: dict[str, dict[str, Any]] = {}
    arrays = _arrays(text, known) if language == "index" else {}
    for match in _NAME.finditer(text):
        name, after = match.group(), text[match.end() :].lstrip()
        if name in found or name in given or name in known or name in _TAKEN or after[:1] == "(":
            continue
        if language == "index":
            if (name in bound and after[:1] != "[") or (name in _REDUCING and after[:1] == "["):
                continue
            if name in arrays:
                found[name] = arrays[name]
                continue
            shape: list[str] = []
        elif language == "matrix" and _CONVENTION.fullmatch(name):
            continue  # by convention
        elif language == "einsum":
            continue  # by use
        elif _NUMBER.fullmatch(name):
            shape = []
        else:
            shape = ["m", "n"] if name[0].isupper() else ["n"]
        found[name] = {"shape": shape, "properties": []}
    if language == "matrix" and read is not None and found:
        for name, shape in _by_use(expression, list(found), read).items():
            found[name]["shape"] = shape
    return found


def _by_use(text: str, names: list[str], read: Reader) -> dict[str, list[Any]]:
    """The shapes that letters would have in the places of names, where that can be read."""
    kinds = [
        "Z" if name[0].isupper() else "gz" if _NUMBER.fullmatch(name) else "zg" for name in names
    ]
    for letters in islice(product(*kinds), _TRIALS):
        stand_in = {name: f"{x}{k}" for name, x, k in zip(names, letters, count(_UNUSED))}
        read_as = partial(_replaced, stand_in)
        try:
            used = read(_NAME.sub(read_as, text)).variables
        except ValueError:
            continue
        return {n: list(used[letter].shape) for n, letter in stand_in.items() if letter in used}
    return {}


def _replaced(words: Mapping[str, str], match: re.Match[str]) -> str:
    return words.get(match.group(), match.group())


class _Access:
    """What stands before brackets, and the text of its subscripts, in which brackets stay open."""

    def __init__(self, name: str, inside: bool) -> None:
        self.name, self.inside, self.subscripts = name, inside, [""]


def _accesses(text: str) -> list[_Access]:
    """Those of a text, in one pass; `inside` are those in the subscripts of others."""
    found: list[_Access] = []
    waiting: list[_Access | None] = []  # of open brackets; None: nothing is read there
    arrays, name = 0, ""  # open brackets that are subscripts, and the name before
    for token in _TOKEN.findall(text):
        top = waiting[-1] if waiting else None
        if token in ")]" and waiting:
            waiting.pop()
            arrays -= top is not None
        elif token == "," and top is not None:
            top.subscripts.append("")
        elif top is not None:
            top.subscripts[-1] += token
        if token == "[" and name and name not in _REDUCING:
            found.append(_Access(name, arrays > 0))
            waiting.append(found[-1])
            arrays += 1
        elif token in "([":
            waiting.append(None)
        name = token if _NAME.fullmatch(token) else ""
    return found


def _arrays(text: str, known: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Arrays by their subscripts: as long as each other where one index subscripts both.

    Those in the subscripts of others are integers.
    """
    accesses = _accesses(text)
    parent: dict[Any, Any] = {}

    def root(place: Any) -> Any:
        while place in parent:
            place = parent[place]
        return place

    for one in accesses:
        for axis, index in enumerate(one.subscripts):
            ends = root((one.name, axis)), root(index)
            if _NAME.fullmatch(index) and ends[0] != ends[1]:
                parent[ends[0]] = ends[1]
    extents: dict[Any, Any] = {root(index): name for index, name in _BOUNDS.findall(text)}
    for name, declared in known.items():
        extents |= {root((name, k)): e for k, e in enumerate(declared["shape"])}
    used = {*_NAME.findall(text), *map(str, extents.values())}
    letters = (letter for letter in _EXTENTS if letter not in used)
    found: dict[str, dict[str, Any]] = {}
    for one in accesses:
        if one.name not in found:
            shape = []
            for axis in range(len(one.subscripts)):
                place = root((one.name, axis))
                if place not in extents:
                    letter = "" if place == (one.name, axis) else next(letters, "")
                    extents[place] = letter or f"{one.name}{axis + 1}"
                shape.append(extents[place])
            found[one.name] = {"shape": shape, "properties": []}
        if one.inside:
            found[one.name]["properties"] = ["integer"]
    return found
