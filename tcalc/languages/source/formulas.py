"""Operators in a language: by signs, by its own words, or by what their formulas are made of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from ...graph.formulas import Entry
from ...support.errors import UnsupportedError
from .language import SUM, Code, Language, Operator, named

#: What languages write by signs.
ARITHMETIC: dict[str, Callable[..., Code]] = {
    "add": lambda to, a, b: to.add([a, b]),
    "subtract": lambda to, a, b: to.add([a, to.negate(b)]),
    "multiply": lambda to, a, b: to.multiply([a, b]),
    "divide": lambda to, a, b: to.divide(a, [b]),
    "negative": lambda to, a: to.negate(a),
    "matmul": lambda to, a, b: to.matmul(a, b),
}


def applied(language: Language, op: Operator, args: Sequence[Code]) -> Code | None:
    """What an operator makes of its operands; None where there is no word for it."""
    if op.name in ARITHMETIC:
        return ARITHMETIC[op.name](language, *args)
    return language.call(op, args)


def written(language: Language, entry: Any, args: Sequence[Code]) -> Code:
    """A formula of operands.

    Parameters
    ----------
    language : Language
    entry : Entry or number
        The formula as `graph.formulas.recorded` gives it.
    args : sequence of Code
        The operands.

    Raises
    ------
    UnsupportedError
        Where the language has no word for a function in it.
    """
    if not isinstance(entry, Entry):
        return language.number(entry)
    if not entry.name:
        return args[int(entry.args[0])]
    operands = [written(language, arg, args) for arg in entry.args]
    code = applied(language, Operator(entry.name), operands)
    if code is None:
        raise unknown(language, entry.name)
    return code


def given(language: Language, entry: Any, args: Sequence[Code]) -> list[Code]:
    """The operands of a formula, under names where it reads them more than once."""
    counts = Counter(_read(entry))
    kept = [named(language, c) if counts[k] > 1 else c for k, c in enumerate(args)]
    return [replace(c, fresh=False) for c in kept]


def _read(entry: Any) -> Iterator[int]:
    """The operands that a formula reads, as often as it does."""
    if isinstance(entry, Entry):
        for arg in entry.args if entry.name else ():
            yield from _read(arg)
        if not entry.name:
            yield int(entry.args[0])


def unknown(
    language: Language, name: str, others: Iterable[str] = (), declared: bool = False
) -> UnsupportedError:
    """The error of an operator that cannot be written; `others` are languages that have it.

    One that is `declared` by a user may be given its text.
    """
    there = f"; there is some for {', '.join(sorted(others))}" if others else ""
    name, key = name.partition("#")[0], language.name.lower()
    say = f': tc.elementwise("{name}", ..., code={{"{key}": "..."}}) gives it' if declared else ""
    return UnsupportedError(f"no {language.name} source for {name}{there}{say}")


def condition(c: Code) -> Code:
    """A value of which is asked only whether it is 0."""
    if not c.condition:
        return c
    return replace(c, text=c.condition, level=SUM, name=False)
