"""Nests of loops as functions of their own, equal ones once.

Compilers take more than twice as long for a function that is twice as long, and the layers of a
model, or the directions of a Hessian, have the same nests on other arrays.
"""

from __future__ import annotations

import re

#: Around the block of a nest in a program.
BEGIN, END = "/* nest */", "/* end of nest */"
#: Nests of a program that are left where they are.
FEW = 6

_NEST = re.compile(rf"{re.escape(BEGIN)}\n(.*?)\n{re.escape(END)}", re.DOTALL)
#: Names with the number of a slot: its pointer, its entry, its sum.
_OF_SLOT = re.compile(r"\b([pta])(\d+)\b")
_POINTER, _ROWS = re.compile(r"\bp\d+\b"), re.compile(r"\bt\b")
#: What a block may name that is declared around it, besides pointers and the rows of a tile.
_AROUND = re.compile(r"\b(?:threads|chunk|first|last)\b")


def marked(nest: str) -> str:
    """The block of a nest, which may become a function."""
    return f"{BEGIN}\n{nest}\n{END}"


def outlined(program: str) -> str:
    """A program whose nests are functions before it, where there are many."""
    functions: dict[str, str] = {}
    if program.count(BEGIN) <= FEW:
        return _NEST.sub(r"\1", program)

    def called(found: re.Match[str]) -> str:
        block: str = found[1]
        if _AROUND.search(block):
            return block
        numbers: dict[str, int] = {}

        def numbered(name: re.Match[str]) -> str:
            return f"{name[1]}{numbers.setdefault(name[2], len(numbers))}"

        body = _OF_SLOT.sub(numbered, block)
        slots = {f"p{number}": f"p{slot}" for slot, number in numbers.items()}
        used = set(_POINTER.findall(body))
        pointers = [name for name in slots if name in used]
        rows = _ROWS.search(body) is not None
        taken = [*["long t"] * rows, *[f"real *{name}" for name in pointers]]
        given = [*["t"] * rows, *[slots[name] for name in pointers]]
        head = f"({', '.join(taken)})\n{body}"
        name = functions.setdefault(head, f"nest{len(functions)}")
        return f"{name}({', '.join(given)});"

    rest = _NEST.sub(called, program)
    heads = [
        f"static __attribute__((noinline)) void {name}{head}" for head, name in functions.items()
    ]
    return "\n".join([*heads, rest])
