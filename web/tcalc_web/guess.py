"""Variables as the text suggests them, where nobody has declared them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from itertools import count, islice, product
from typing import Any

Reader = Callable[[str], Any]

_NAME = re.compile(r"[^\W\d_]\w*")
_STRING = re.compile(r"'[^'\n]*'(?=\s*,)")
_COMMENT = re.compile(r"[#%](?!\().*")
_GIVEN = re.compile(r"([^\W\d_]\w*)\s*(?:\[[^]]*\])?\s*=(?!=)")
#: Names of numbers in most papers, written out or not, with a number or a word behind them.
_NUMBER = re.compile(
    r"(alpha|gamma|delta|epsilon|eps|eta|kappa|lambda|lam|nu|rho|sigma|tau|omega|[αγδεηκλνρστω])"
    r"(\d|_\w*)*"
)
#: What the matrix language declares by its convention; letters with such numbers nobody writes.
_CONVENTION = re.compile(r"[A-Za-z]\d*")
_UNUSED = 70_001
#: How often it is tried which names are columns and which numbers.
_TRIALS = 8
#: What has another meaning in the languages.
_TAKEN = {"pi", "eye", "vector", "matrix", "inf", "nan"}


def guessed(
    expression: str, language: str, known: Collection[str], read: Reader | None = None
) -> dict[str, dict[str, Any]]:
    """Declarations of the names that have none and that the language does not declare by itself.

    In the matrix language upper case is a matrix, lower case a column or a number, with extents as
    letters in the same places have them; in the index language what stands before brackets has as
    many axes as there are subscripts. Whoever asked corrects them.

    Parameters
    ----------
    expression, language : str
    known : collection of str
        Names that are declared.
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
    for match in _NAME.finditer(text):
        name, after = match.group(), text[match.end() :].lstrip()
        if name in found or name in given or name in known or name in _TAKEN or after[:1] == "(":
            continue
        if language == "index":
            function = name in ("sum", "prod", "max", "min")
            if (name in bound and after[:1] != "[") or (function and after[:1] == "["):
                continue
            shape = _axes(name, after)
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


def _axes(name: str, after: str) -> list[str]:
    if after[:1] != "[":
        return []
    depth, count = 0, 1
    for character in after:
        depth += (character in "[(") - (character in "])")
        if not depth:
            break
        count += character == "," and depth == 1
    return [f"{name}{k}" for k in range(1, count + 1)]
