"""The header of a file of C: what other files include, and by what a file is known as tcalc's."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: The first line of every file, by which later ones know what they may overwrite.
MARK = "/* Written by tcalc. */"
HEADER_END = "#endif /* header */"
_TYPES = """
#include <stddef.h>

#ifndef REAL
#define REAL
#ifdef SINGLE /* the same in single precision */
typedef float real;
#else
typedef double real;
#endif
#endif
""".strip()

#: C++ includes the header, too.
_BEGIN = """
#ifdef __cplusplus
extern "C" {
#endif
""".strip()
_END = """
#ifdef __cplusplus
}
#endif
""".strip()


def header_text(name: str, functions: Sequence[Sequence[str]]) -> str:
    """The header that declares functions; its guard has the name."""
    guard = _guard(name)
    declared = [declared_lines(lines) for lines in functions]
    start = [MARK, f"#ifndef {guard}", f"#define {guard}"]
    return "\n".join([*start, "", _TYPES, "", _BEGIN, *declared, _END, "", HEADER_END])


def _guard(name: str) -> str:
    """The macro that a header is known by, from letters that C has in names."""
    word = re.sub(r"[^A-Za-z0-9]+", "_", name).strip("_").upper()
    return f"{word}_H" if word[:1].isalpha() else f"FILE_{word}_H"


def header_of(source: str) -> str:
    """The declarations of a file: what other files include."""
    head, _, _ = source.partition(HEADER_END)
    return head + HEADER_END + "\n"


def declarations(source: str) -> dict[str, list[str]]:
    """The parameters of a file's functions as they are declared, by name."""
    found = re.findall(r"^int (\w+)\(([^)]*)\);", source, re.MULTILINE)
    return {
        name: [
            re.sub(r"\s+", " ", p).replace("*restrict ", "*").replace("*", "* ").strip()
            for p in text.split(",")
        ]
        for name, text in found
    }


def declared_lines(lines_: Sequence[str]) -> str:
    """The comment and the declarations of a function's lines, without a word that C++ has not."""
    found, head = list[str](), list[str]()
    for line in lines_:
        if line == "{" and not head[0].startswith(("static", "FUNCTION")):
            found += [*head[:-1], f"{head[-1]};"]
        head = [] if line == "" else [*head, line]
    return "\n".join(found).replace("*restrict ", "*")
