"""The text of a function of C: what it is given, its memory, its statements, in parts if many."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from ...support.c_text import indented
from .c_module import Prepared, comment, headed, parameter, prepared, storage_text, words_of
from .c_nests import lines
from .c_parts import WHOLE, Part, parted
from .c_writer import FEW, Writer
from .language import FunctionText
from .scope import unlike


def function_lines(language: Writer, f: FunctionText) -> list[str]:
    """A function of the module, after the one that tells its workspace and those that it calls."""
    found = prepared(language, f)
    taken = {*language.scope.taken, *found.sizes}
    given = {p: parameter(p, v) for p, v in f.parameters.items()}
    given |= {n: f"ptrdiff_t {n}" for n in found.sizes}
    given |= {out: f"real *restrict {out}" for out in found.outputs}
    body, parts = lines(found.nodes), list[Part]()
    if len(body) > WHOLE:
        known = [*given, *[a.name for a in found.stored]]
        parts, numbers = parted(unlike(f"{f.name}_part", taken, "_"), found.nodes, known)
        found = replace(found, stored=[*found.stored, *numbers])
        body = lines([part.call for part in parts])
    storage, total = storage_text(found.stored)
    head = [*given.values(), "void *restrict work"]
    unused = sorted({*f.parameters, *found.sizes, "work"} - words_of([*storage, *body]))
    function = indented([*storage, *[f"(void){n};" for n in unused], *body, "return 0;"])
    few = _few(language, found.sizes)
    inner = unlike(f"{f.name}_sized", taken, "_")
    whole = few and not parts
    return [
        *[line for own in language.scope.functions for line in [*own, ""]],
        *comment([found.effect(language.scope.refused), *found.about]),
        *headed(f"size_t {f.name}_workspace", [f"ptrdiff_t {n}" for n in found.sizes] or ["void"]),
        "{",
        *[f"    (void){n};" for n in found.sizes if n not in words_of([total])],
        f"    return {total};",
        "}",
        "",
        *[line for part in parts for line in _part(part, given, found, few)],
        *([*headed(f"static int {inner}", head), "{", *function, "}", ""] if whole else []),
        *headed(f"int {f.name}", head),
        "{",
        *indented(language.scope.refused),
        *(_chosen(inner, head, few) if whole else function),
        "}",
    ]


def _part(
    part: Part, given: Mapping[str, str], found: Prepared, few: Mapping[str, int]
) -> list[str]:
    """A part of a function as one; where extents are few, it is compiled for these too."""
    known = {**given, **{a.name: f"{a.kind} *restrict {a.name}" for a in found.stored}}
    head = [known[name] for name in part.given]
    body = indented([*lines(part.nodes), *(["return 0;"] if part.fails else [])])
    kind, back = ("int", "return ") if part.fails else ("void", "")
    few = {n: size for n, size in few.items() if n in part.given}
    if not few:
        return [*headed(f"static {kind} {part.name}", head), "{", *body, "}", ""]
    inner, other = f"{part.name}_sized", f"{part.name}_other"
    return [
        *[*headed(f"static INLINED {kind} {inner}", head), "{", *body, "}", ""],
        *[*headed(f"static SELDOM {kind} {other}", head), "{"],
        *[*indented(headed(f"{back}{inner}", part.given, ";")), "}", ""],
        *[*headed(f"static {kind} {part.name}", head), "{"],
        *indented([f"if ({_equal(few)})"]),
        *indented(indented(headed(f"{back}{inner}", _numbers(part.given, few), ";"))),
        *indented(["else", *indented(headed(f"{back}{other}", part.given, ";"))]),
        *["}", ""],
    ]


def _few(language: Writer, names: Sequence[str]) -> dict[str, int]:
    """The extents that are to be fast and so few that a loop costs less written out."""
    scope = language.scope
    known = {text: scope.known.get(dim, 0) for dim, text in scope.sizes.items()}
    return {n: known[n] for n in names if 0 < known.get(n, 0) < FEW}


def _chosen(name: str, head: Sequence[str], few: Mapping[str, int]) -> list[str]:
    """The call of a function of which compilers make another one for these extents."""
    given = [re.split(r"\W+", p)[-1] for p in head]
    return [
        f"    if ({_equal(few)})",
        "        /* compilers write such loops out */",
        *[f"        {line}" for line in headed(f"return {name}", _numbers(given, few), ";")],
        *[f"    {line}" for line in headed(f"return {name}", given, ";")],
    ]


def _equal(few: Mapping[str, int]) -> str:
    return " && ".join([f"{n} == {value}" for n, value in few.items()])


def _numbers(given: Sequence[str], few: Mapping[str, int]) -> list[str]:
    """What a function is given, with numbers for extents."""
    return [str(few.get(name, name)) for name in given]
