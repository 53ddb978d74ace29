"""Variables as the text suggests them, where nobody has declared them."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

_NAME = re.compile(r"[^\W\d_]\w*")
_STRING = re.compile(r"'[^'\n]*'(?=\s*,)")
_COMMENT = re.compile(r"[#%](?!\().*")
_GIVEN = re.compile(r"([^\W\d_]\w*)\s*(?:\[[^]]*\])?\s*=(?!=)")
#: Names of numbers in most papers, written out or not, with a number or a word behind them.
_NUMBER = re.compile(
    r"(alpha|beta|gamma|delta|epsilon|eps|eta|theta|kappa|lambda|lam|mu|nu|rho|sigma|tau|omega|[α-ω])"
    r"(\d|_\w*)*"
)
#: What has another meaning in the languages.
_TAKEN = {"pi", "eye", "vector", "matrix", "inf", "nan"}


def guessed(expression: str, language: str, known: Collection[str]) -> dict[str, dict[str, Any]]:
    """Declarations of the names that have none and that the language does not declare by itself.

    Upper case is a matrix of m rows and n columns, lower case a column of n entries, a Greek letter
    a number; in the index language what stands before brackets has as many axes as there are
    subscripts. Whoever asked corrects them.

    Parameters
    ----------
    expression, language : str
    known : collection of str
        Names that are declared.

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
        elif language == "matrix" and re.fullmatch(r"[A-Za-z]\d*", name):
            continue  # by convention
        elif language == "einsum":
            continue  # by use
        elif _NUMBER.fullmatch(name):
            shape = []
        else:
            shape = ["m", "n"] if name[0].isupper() else ["n"]
        found[name] = {"shape": shape, "properties": []}
    return found


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
