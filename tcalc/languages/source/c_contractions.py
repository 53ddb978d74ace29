"""Contractions in C: products of matrices by a routine, all others as nests of loops."""

from __future__ import annotations

import re
from collections.abc import Sequence

from . import infix
from .c_nests import Call, Line, Node, nest
from .c_values import Value, entry_of, value
from .c_writer import Writer
from .language import Code


def product(language: Writer, a: Value, b: Value) -> Value:
    """A product of matrices; of a symmetric one half is computed."""
    half = symmetric(a, b)
    (left, ai, ak), (right, bk, bj) = matrix(language, a), matrix(language, b)
    array, found = language.storage((a.shape[0], b.shape[1]))
    sizes = f"{a.shape[0]}, {a.shape[1]}" if half else f"{a.shape[0]}, {b.shape[1]}, {a.shape[1]}"
    name = "symmetric_product" if half else "product"
    call = f"{name}({sizes}, {left}, {ai}, {ak}, {right}, {bk}, {bj}, {array.name})"
    language.emit(Call(call, (array.name,)), made=[array])
    return found


def symmetric(a: Value, b: Value) -> bool:
    """Are the terms of a product the same with rows and columns exchanged?"""
    if a.shape[0] != b.shape[1] or a.shape[0] == "1":
        return False
    one, other = (
        sorted([*factors(a.entry([i, "_k"]).text), *factors(b.entry(["_k", j]).text)])
        for i, j in (("_i", "_j"), ("_j", "_i"))
    )
    return one == other


def factors(text: str) -> list[str]:
    """The factors of a product, as text."""
    found, depth, start = list[str](), 0, 0
    for k, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if not depth and text.startswith((" * ", " + ", " - ", " / ", " ? "), k):
            if text[k + 1] != "*":
                return [text]
            found.append(text[start:k])
            start = k + 3
    return [*found, text[start:]]


def matrix(language: Writer, v: Value) -> tuple[str, str, str]:
    """A matrix in memory: a pointer, and how far rows and columns are apart."""
    strides = v.memory.strides if v.memory else ()
    if "1" not in strides or "0" in strides or language.integers:
        v = language.filled(v.shape, v)
    assert v.memory is not None
    rows, columns = v.memory.strides
    return v.memory.pointer, rows, columns


def einsum(
    language: Writer, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
) -> Value:
    every = list(dict.fromkeys([*out, *[k for word in words for k in word]]))
    values = [
        language.plain(c) if len(set(w)) < len(every) else value(c)
        for c, w in zip(factors, words, strict=True)
    ]
    extents: dict[int, str] = {}
    for v, word in zip(values, words, strict=True):
        for label, n in zip(word, v.shape, strict=True):
            if extents.get(label, "1") == "1":
                extents[label] = n
    names = dict(zip(every, language.index(len(every)), strict=True))
    entries = [entry_of(v, [names[k] for k in w]) for v, w in zip(values, words, strict=True)]
    body = infix.product([e for e in entries if e.text != "1"] or entries).text
    shape = tuple([extents[label] for label in out])
    order = _order(body, [names[k] for k in out], [names[k] for k in every if k not in out])
    over = {names[k]: extents[k] for k in every}
    if not out:
        found = language.zero()
        language.emit(*nest(order, [over[i] for i in order], [Line(found.text, "+=", body)]))
        return found
    array, found = language.storage(shape)
    target = found.entry([names[k] for k in out]).text
    add: Node = Line(target, "+=", body)
    inner = order[len(out) - 1 :] if order[-1] in [names[k] for k in out] else order[len(out) :]
    outer = order[: len(order) - len(inner)]
    own = [i for i in inner if i in [names[k] for k in out]]
    start = nest(own, [over[i] for i in own], [Line(target, "=", "0")])
    adding = nest(inner, [over[i] for i in inner], [add])
    language.emit(*nest(outer, [over[i] for i in outer], [*start, *adding]), made=[array])
    return found


def _order(body: str, out: list[str], summed: list[str]) -> list[str]:
    """The loops, outermost first: innermost runs along memory, where one can."""
    accesses = re.findall(r"\[([^\[\]]*)\]", body)

    def along(i: str) -> tuple[int, int]:
        rows = sum([a == i or a.endswith(f" + {i}") for a in accesses])
        return rows, sum([bool(re.search(rf"\b{i}\b", a)) for a in accesses]) - rows

    if not out or not summed:
        return [*out, *summed]
    apart = {i: along(i)[1] for i in (*out, *summed)}
    fast = [i for i in out if not apart[i] and along(i)[0]]
    if fast:
        last = fast[-1]
        return [*[i for i in out if i != last], *summed, last]
    last = max(summed, key=lambda i: (along(i)[0] - apart[i], summed.index(i)))
    return [*out, *[i for i in summed if i != last], last]
