"""Products of matrices by parts of their rows, in loops that use these while they are in cache."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from ...support.records import NamedTuple
from .c_fusion import conflict, first_index, places
from .c_nests import Array, Call, Line, Loop, Node, atom, flat, mapped, replaced, targets

#: Rows of a part, and the most terms or columns: a product of more takes longer than its memory.
ROWS, FEW = 64, 32
#: The fewest entries that do not stay in cache.
MANY = 2**15

Guess = Callable[[str], int]


class Product(NamedTuple):
    """What a call of `product` is given: c = a b for m rows of n entries, of k terms each."""

    m: str
    n: str
    k: str
    a: str
    ai: str
    ak: str
    b: str
    bk: str
    bj: str
    c: str

    def call(self, when: str, **changed: str) -> Call:
        """Another product, under a condition."""
        given = ", ".join(self._replace(**changed))
        return Call(f"product({given})", (self.c,), when=when)


def by_parts(
    nodes: Sequence[Node], arrays: dict[str, Array], kept: Collection[str], length: Guess
) -> list[Node]:
    """The nodes with products, so many rows at a time, in loops over these.

    Products that one loop alone reads are in it, and those that alone read what a loop fills.
    `arrays` has the new extents; `length` guesses extents.
    """
    found = list(nodes)
    for node in nodes:
        product = _product(node)
        if product is None:
            continue
        for name, before in ((product.c, True), (product.a, False)):
            users = [n for n in found if name in n.names]
            alone = len(users) == 2 and users[not before] is node and name not in kept
            if alone and _large(product, name, arrays, length):
                loop, at = users[before], next(k for k, n in enumerate(found) if n is node)
                place = next(k for k, n in enumerate(found) if n is loop)
                between = found[min(at, place) + 1 : max(at, place)]
                if not any(conflict(n, node) for n in between):
                    fused = _fused(loop, node, product, name, arrays)
                    if fused is not None:
                        found[place] = fused
                        del found[at]
                        break
    return found


def _product(node: Node) -> Product | None:
    """Of a call without a condition."""
    if not isinstance(node, Call) or node.when or not node.text.startswith("product("):
        return None
    given, depth, start = list[str](), 0, len("product(")
    for k, character in enumerate(node.text[start:-1] + ",", start):
        if character == "," and not depth:
            given.append(node.text[start:k].strip())
            start = k + 1
        depth += (character in "([") - (character in ")]")
    return Product(*given)


def _large(p: Product, name: str, arrays: Mapping[str, Array], length: Guess) -> bool:
    """Is it an array of its own, row by row, that is slower to read again than to compute?"""
    if name not in arrays or len(arrays[name].shape) != 2:
        return False
    own = (p.m, p.n) if name == p.c else (p.m, p.k)
    short = p.k if name == p.c else p.n
    rows = name == p.c or (p.ak == "1" and atom(p.ai) == atom(p.k))
    whole = [atom(n) for n in arrays[name].shape] == [atom(n) for n in own]
    return rows and whole and length(own[0]) * length(own[1]) >= MANY and length(short) <= FEW


def _fused(loop: Node, node: Node, p: Product, name: str, arrays: dict[str, Array]) -> Loop | None:
    """The loop with the product, of some rows as it comes to the first or the last one of them.

    None where it is no loop over the rows of the array, or names what the product writes or reads.
    """
    if not isinstance(loop, Loop) or not loop.plain or loop.backward or loop.going:
        return None
    i, shape = loop.index, arrays[name].shape
    rows = all(at is not None and first_index(at, shape) == i for at in places(name, [loop]))
    others = node.names - {name}
    clash = loop.writes & others or (loop.names & {p.c} - {name})
    if atom(loop.extent) != atom(p.m) or not rows or clash:
        return None
    row = re.compile(rf"\b{name}(\[| \+ )(\(*){i} \* ")
    body = [mapped(n, lambda t: row.sub(rf"{name}\1\2{i} % {ROWS} * ", t)) for n in loop.body]
    arrays[name] = replace(arrays[name], shape=(f"smaller({ROWS}, {p.m})", shape[1]))
    if name == p.c:
        first = f"{p.a} + {i} * {atom(p.ai)}"
        body.insert(0, p.call(f"{i} % {ROWS} == 0", m=f"smaller({ROWS}, {p.m} - {i})", a=first))
    else:
        last = f"{i} % {ROWS} == {ROWS - 1} || {i} == {p.m} - 1"
        to = f"{p.c} + ({i} - {i} % {ROWS}) * {atom(p.n)}"
        body.append(p.call(last, m=f"{i} % {ROWS} + 1", c=to))
        (fused,) = replaced([loop.around(body)], _in_place(body, name, arrays))
        assert isinstance(fused, Loop)
        return fused
    return loop.around(body)


def _in_place(body: Sequence[Node], name: str, arrays: Mapping[str, Array]) -> dict[str, str]:
    """The array in the memory of one whose parts are read entry by entry where it is filled."""
    lines = [n for n in flat(body) if isinstance(n, Line)]
    own = [k for k, n in enumerate(lines) if name in n.names]
    for other, array in arrays.items():
        if other != name and array.shape == arrays[name].shape:
            reads = [k for k, n in enumerate(lines) if other in n.names]
            entries = {*places(name, lines), *places(other, lines)}
            filled = any(other in targets(n) for n in lines)
            if len(own) == len(entries) == 1 and reads and max(reads) <= own[0] and not filled:
                return {name: other}
    return {}
