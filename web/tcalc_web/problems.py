"""What is wrong with a query that the schema refuses: in words, and where in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from typing import Any

from .schema import Query, Variable

#: One thing that pydantic has found.
Found = Mapping[str, Any]
#: Line and column from 1; of what is not at one place, None.
Place = tuple[int | None, int | None]

_NOWHERE: Place = (None, None)
_EXAMPLE = (
    'a query is a JSON object, such as {"expression": "x\'*A*x", "wrt": ["x"]}, sent with'
    " the header Content-Type: application/json"
)


def told(found: list[Found], body: object) -> tuple[str, Place]:
    """The first thing that is wrong, and its place in the text where it has one.

    Parameters
    ----------
    found : list of dict
        All that pydantic has found, their places in the body, which begin with a word of FastAPI's.
    body : object
        As it was sent, where that is no JSON.
    """
    unknown = [one for one in found if one["type"] == "extra_forbidden"]
    first = (unknown or found)[0]  # what is missing may be what is misspelt
    _, *place = first["loc"]
    if first["type"] == "json_invalid":
        line, column = _place(str(body), place[0])
        message = f"this is no JSON: {first['ctx']['error']}, line {line}, column {column}"
        return message, (line, column)
    if not place:
        return _EXAMPLE, _NOWHERE
    where: Place = _NOWHERE
    if place == ["expression"] and first["type"].startswith("string_too_"):
        where = _place(first["input"], first["ctx"].get("max_length", 0))
    words = _WORDS.get(first["type"])
    return f"{'.'.join(map(str, place))}: {words(first) if words else first['msg']}", where


def _place(text: str, offset: int) -> tuple[int, int]:
    before = text[:offset]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def choice(found: Found) -> str:
    """That a word is none of those that are known, and which is meant."""
    return _none_of(found["input"], re.findall(r"'([^']*)'", found["ctx"]["expected"]))


def _none_of(word: object, known: Iterable[str]) -> str:
    known = list(known)
    close = get_close_matches(str(word), known, 1)
    if close:
        return f"{_shown(word)} is unknown; did you mean {_shown(close[0])}?"
    return f"{_shown(word)} is none of {', '.join(known)}"


def _key(found: Found) -> str:
    _, *above, key = found["loc"]
    model = Variable if above else Query
    return _none_of(key, model.model_fields)


def _list(found: Found) -> str:
    given = found["input"]
    such = _shown([given] if isinstance(given, str | int) else [])
    return f"this is a list, such as {such}, not {_shown(given)}"


def _shown(value: object) -> str:
    """A value as JSON, shortened."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 64 else f"{text[:60]} …"


def _name(found: Found) -> str:
    return f"{_shown(found['input'])} is no name: letters and digits, a letter first"


_WORDS: dict[str, Callable[[Found], str]] = {
    "extra_forbidden": _key,
    "literal_error": choice,
    "list_type": _list,
    "string_pattern_mismatch": _name,
}
