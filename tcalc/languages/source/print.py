"""Expressions as source code of programs that run without tcalc."""

from __future__ import annotations

from typing import Any

from ...calculus.transforms import jacobian
from ...graph.nodes import Derivative
from .program import SourceProgram
from .registry import LANGUAGES
from .selfcheck import difference_check, shape_check


def to_code(e: Any, language: str = "numpy", name: str = "f", check: bool = False) -> str:
    """Source of a function that computes the expression without tcalc.

    Parameters
    ----------
    e : expression, or nested tuples, lists and dicts of expressions
    language : str
        A row of `languages.source.registry`: ``"numpy"``.
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
    if language not in tuple(LANGUAGES):
        raise ValueError(f"no language {language!r}; one of {', '.join(LANGUAGES)}")
    spelling = LANGUAGES[language]
    usable = isinstance(name, str) and name.isidentifier() and name not in spelling.reserved
    if not usable:
        raise ValueError(f"a function needs an identifier of its own as name, not {name!r}")
    program = SourceProgram(spelling, e)
    functions = [program.function(name)]
    if check and isinstance(e, Derivative):
        before = e.of
        for v in e.wrt[:-1]:
            before = jacobian(before, v)
        earlier = SourceProgram(spelling, before)
        functions.append(earlier.function(f"{name}_before"))
        checked = difference_check(program, earlier, e.wrt, name)
    elif check:
        checked = shape_check(program, name)
    source = program.language.module([program.language.function(f) for f in functions])
    return source + program.language.check(checked) if check else source
