"""C for a shared library: the function, and the same with pointers alone, as R's `.C` calls it."""

from __future__ import annotations

import re
from typing import Any

from .c import C
from .c_header import declarations
from .c_module import headed, module_text
from .c_nests import atom
from .language import FunctionText
from .print import function_name
from .program import SourceProgram


def library_source(e: Any, name: str, file: str) -> str:
    """A file whose second function takes pointers alone, and its workspace from the heap.

    Parameters
    ----------
    e : expression, or nested tuples, lists and dicts of expressions
    name : str
        Of the function; the other one is ``name_pointers``. Its sizes and indices are `int`, and
        its last parameter is the status: 2 where there is no memory.
    file : str
        What the file is called, without its ending; its header is guarded by that name.
    """
    program = SourceProgram(C, e)
    text = program.function(function_name(name, C.reserved))
    lines = program.language.function(text)
    assert isinstance(program.language, C)
    pointers = _pointers(program.language, text, module_text([lines]))
    return module_text([lines, pointers], file=file)


def _pointers(language: C, f: FunctionText, source: str) -> list[str]:
    """The lines of the function with pointers alone."""
    head, call, body, ends = list[str](), list[str](), list[str](), list[str]()
    sizes = [p.split()[-1] for p in _declared(source, f.name) if _is_size(p, f)]
    for p in _declared(source, f.name):
        word = p.split()[-1]
        if word == "work":
            call.append(word)
        elif p.startswith("const ptrdiff_t"):
            size = " * ".join(map(atom, language.shape(f.parameters[word].shape)))
            size = _read(size, sizes)
            head.append(f"const int *{word}")
            call.append(f"{word}_")
            body += [
                f"ptrdiff_t *{word}_ = malloc((size_t)({size}) * sizeof(ptrdiff_t) + 1);",
                f"for (ptrdiff_t i_ = 0; {word}_ && i_ < {size}; i_++)",
                f"    {word}_[i_] = {word}[i_];",
            ]
            ends.append(f"{word}_")
        elif p.startswith("ptrdiff_t"):
            head.append(f"const int *{word}")
            call.append(f"*{word}")
        elif "*" in p:
            head.append(p.replace("* ", "*"))
            call.append(word)
        else:
            head.append(f"const real *{word}")
            call.append(f"*{word}")
    ready = " && ".join(["work", *ends])
    given = ", ".join([f"*{n}" for n in sizes])
    return [
        f"/* {f.name} with pointers alone; status 2: no memory. */",
        *headed(f"void {f.name}_pointers", [*head, "int *status"]),
        "{",
        *[f"    {line}" for line in body],
        f"    void *work = malloc({f.name}_workspace({given}) + 1);",
        f"    *status = {ready} ? {f.name}({', '.join(call)}) : 2;",
        *[f"    free({array});" for array in [*ends, "work"]],
        "}",
    ]


def _declared(source: str, name: str) -> list[str]:
    return declarations(source)[name]


def _is_size(p: str, f: FunctionText) -> bool:
    return p.startswith("ptrdiff_t") and p.split()[-1] not in f.parameters


def _read(size: str, sizes: list[str]) -> str:
    """An extent of sizes that are read through pointers."""
    return re.sub(r"[A-Za-z_]\w*", lambda m: f"*{m[0]}" if m[0] in sizes else m[0], size)
