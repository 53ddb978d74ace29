"""Contractions in C: products of matrices by a routine, all others as nests of loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod

from . import infix
from .c_nests import Call, Line, Loop, Node, atom, nest
from .c_orders import as_they_lie, operations, window
from .c_values import Value, entry_of, in_memory, transposed, value
from .c_writer import FEW, Writer
from .language import Code

#: Rows and columns of a product that is worth making its operands.
BLOCK = 8
#: Most terms of a product of so few rows, columns and terms each that compilers write it out.
WRITTEN_OUT = 1024


def product(language: Writer, a: Value, b: Value) -> Value:
    """A product of matrices; of a symmetric one half is computed."""
    half = symmetric(a, b)
    if not half and _few(language, [*a.shape, b.shape[1]]):
        return einsum(language, [a, b], [(0, 1), (1, 2)], (0, 2))
    (left, ai, ak), (right, bk, bj) = matrix(language, a), matrix(language, b)
    array, found = language.storage((a.shape[0], b.shape[1]))
    sizes = f"{a.shape[0]}, {a.shape[1]}" if half else f"{a.shape[0]}, {b.shape[1]}, {a.shape[1]}"
    name = "symmetric_product" if half else "product"
    call = f"{name}({sizes}, {left}, {ai}, {ak}, {right}, {bk}, {bj}, {array.name})"
    language.emit(Call(call, (array.name,)), made=[array])
    return replace(found, fresh=True)


def _few(language: Writer, extents: Sequence[str]) -> bool:
    """Are the extents of a product so few that it is sooner written out than a routine called?"""
    lengths = [language.length(n) for n in extents]
    return max(lengths) < FEW and prod(lengths) <= WRITTEN_OUT


def merged(v: Value, axes: Sequence[int]) -> tuple[str, str] | None:
    """Several axes as one: its extent, and how far entries are apart; None where they are not."""
    assert v.memory is not None
    strides = v.memory.strides
    for first, then in pairwise(axes):
        whole = atom(v.shape[then])
        whole = whole if strides[then] == "1" else f"{whole} * {strides[then]}"
        if strides[first] != whole:
            return None
    return " * ".join([atom(v.shape[k]) for k in axes]), strides[axes[-1]]


def by_product(
    language: Writer, values: Sequence[Value], words: Sequence[Sequence[int]], out: Sequence[int]
) -> Value | None:
    """A contraction of two arrays whose axes are those of matrices, several as one."""
    if len(values) != 2 or language.integers:
        return None
    if out[:1] and out[0] in words[1]:
        values, words = values[::-1], words[::-1]
    p, q = (list(w) for w in words)
    summed = [k for k in p if k in q]
    left, right = [k for k in out if k in p], [k for k in out if k in q]
    matrices = left and right and summed and [*left, *right] == list(out)
    if (
        not matrices
        or sorted([*left, *summed]) != sorted(p)
        or sorted([*summed, *right]) != sorted(q)
    ):
        return None
    if _few(language, [*values[0].shape, *[values[1].shape[q.index(k)] for k in right]]):
        return None
    sides = [(v, w, own) for v, w, own in zip(values, (p, q), (left, right), strict=True)]
    lengths = [prod([language.length(v.shape[w.index(k)]) for k in own]) for v, w, own in sides]
    if min(lengths) < BLOCK and any(
        v.memory is None and not _computed(language, v) for v in values
    ):
        return None
    if any(v.memory is not None and not _matrix(v, w, own, summed) for v, w, own in sides):
        return None
    half = _alike(sides, summed)
    a = _lying(language, values[0], p, left, summed)
    if half:
        b = transposed(a, [p.index(left[right.index(k)] if k in right else k) for k in q])
    else:
        b = _lying(language, values[1], q, right, summed)
    (m, ai), (k, ak) = _matrix(a, p, left, summed)
    (n, bj), (other, bk) = _matrix(b, q, right, summed)
    if k != other or "1" not in (ai, ak) or "1" not in (bk, bj) or "0" in (ai, ak, bk, bj):
        return None
    assert a.memory is not None
    assert b.memory is not None
    extents = [v.shape[w.index(x)] for v, w, part in ((a, p, left), (b, q, right)) for x in part]
    array, result = language.storage(tuple(extents))
    given = f"{a.memory.pointer}, {ai}, {ak}, {b.memory.pointer}, {bk}, {bj}"
    name = f"symmetric_product({m}, {k}" if half else f"product({m}, {n}, {k}"
    language.emit(Call(f"{name}, {given}, {array.name})", (array.name,)), made=[array])
    return replace(result, fresh=True)


def _alike(
    sides: Sequence[tuple[Value, Sequence[int], Sequence[int]]], summed: Sequence[int]
) -> bool:
    """Are both operands the same array, with its own axes and those that are summed?"""
    texts = []
    for v, word, own in sides:
        names = {k: f"_{n}" for n, k in enumerate([*own, *summed])}
        extents = [v.shape[word.index(k)] for k in names]
        texts.append((v.entry([names[k] for k in word]).text, extents))
    return texts[0] == texts[1]


def _matrix(
    v: Value, word: Sequence[int], own: Sequence[int], summed: Sequence[int]
) -> list[tuple[str, str]]:
    """An array in memory as a matrix: two groups of axes as one each; none where they are not."""
    found = [merged(v, [word.index(k) for k in group]) for group in (own, summed)]
    return [axis for axis in found if axis is not None] if None not in found else []


def _lying(
    language: Writer, v: Value, word: Sequence[int], own: Sequence[int], summed: Sequence[int]
) -> Value:
    """The array in memory; one that is made lies along the longer one of two groups of axes."""
    if v.memory is not None:
        return v
    groups = sorted(
        (own, summed) if word[-1] in summed else (summed, own),
        key=lambda group: prod([language.length(v.shape[word.index(k)]) for k in group]),
    )
    return language.filled(v.shape, v, order=[word.index(k) for group in groups for k in group])


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


def by_lags(
    language: Writer, values: Sequence[Value], words: Sequence[Sequence[int]], out: Sequence[int]
) -> Value | None:
    """The products of all windows of one line with all of another."""
    if len(values) != 2 or language.integers or sorted(map(len, (*words, out))) != [2, 2, 2]:
        return None
    if out[0] not in words[0]:
        values, words = values[::-1], words[::-1]
    sums = [k for k in words[0] if k in words[1]]
    if len(sums) != 1 or list(out) != [next(k for k in w if k not in sums) for w in words]:
        return None
    sizes, lines = list[str](), list[str]()
    for v, word in zip(values, words, strict=True):
        own, along = word.index(sums[0]) ^ 1, word.index(sums[0])
        line = window(v.entry(["_0", "_1"]).text, v.shape)
        if not line:
            return None
        sizes, lines = [*sizes, v.shape[own]], [*lines, line]
        count = v.shape[along]
    array, found = language.storage(tuple(sizes))
    call = f"lags({', '.join([*sizes, count, *lines, array.name])})"
    language.emit(Call(call, (array.name,)), made=[array])
    return found


def _computed(language: Writer, v: Value) -> bool:
    """Do entries of an array cost something, whenever they are read?"""
    text = entry_of(v, language.index(len(v.shape))).text
    return bool(v.shape and v.memory is None and operations(text) and not language.integers)


def einsum(
    language: Writer, factors: Sequence[Code], words: Sequence[Sequence[int]], out: Sequence[int]
) -> Value:
    every = list(dict.fromkeys([*out, *[k for word in words for k in word]]))
    values = [value(c) for c in factors]
    for form in language.forms:
        found = form(language, values, words, out)
        if found is not None:
            return found
    made: dict[str, Value] = {}  # arrays of which each entry is read again, before they are filled
    for k, (v, word) in enumerate(zip(values, words, strict=True)):
        if len(set(word)) == len(every):
            continue
        if _computed(language, v):
            name = language.scope.fresh()
            values[k], made[name] = in_memory(name, v.shape, whole=True), v
        else:
            values[k] = language.plain(v)
    extents: dict[int, str] = {}
    for v, word in zip(values, words, strict=True):
        for label, n in zip(word, v.shape, strict=True):
            if extents.get(label, "1") == "1":
                extents[label] = n
    names = dict(zip(every, language.index(len(every)), strict=True))
    entries = [entry_of(v, [names[k] for k in w]) for v, w in zip(values, words, strict=True)]
    body = infix.product([e for e in entries if e.text != "1"] or entries).text
    over = {names[k]: extents[k] for k in every}
    rows = [names[k] for k in out]
    if not out:
        return summed(language, body, list(over), over, made)
    array, found = language.storage(tuple([extents[label] for label in out]))
    nodes = adding(language, body, found.entry(rows).text, rows, over, made)
    language.emit(*nodes, made=[array])
    return found


def summed(
    language: Writer,
    body: str,
    order: Sequence[str],
    over: Mapping[str, str],
    made: Mapping[str, Value],
) -> Value:
    """The sum of all entries."""
    as_they_lie(language, made)
    found = language.zero()
    order = language.ordered(body, found.text, [], order, over)
    language.emit(*nest(order, [over[i] for i in order], [Line(found.text, "+=", body)]))
    return found


def adding(
    language: Writer,
    body: str,
    target: str,
    rows: Sequence[str],
    over: Mapping[str, str],
    made: Mapping[str, Value],
) -> list[Node]:
    """Loops that add up the entries of an array, which begin at zero.

    Arrays that are still to be `made` are filled as they lie best.
    """
    order = language.ordered(body, target, rows, [i for i in over if i not in rows], over)
    if not language.integers:
        body = language.turned(body, order[-1], over, made)
    short = _short(language, order, rows, over)
    order = short or order
    depth = next((k for k, i in enumerate(order) if i not in rows), len(order))
    outer, inner = order[:depth], order[depth:]
    own = [i for i in inner if i in rows]
    last: list[Node] = [Line(target, "+=", body)]
    if own and inner[-1] not in rows:
        local = language.scope.fresh()
        whole = nest(inner[-1:], [over[inner[-1]]], [Line(local, "+=", body)])
        last = [Line(local, "=", "0", language.kind), *whole, Line(target, "+=", local)]
        inner = inner[:-1]
    start = nest(own, [over[i] for i in own], [Line(target, "=", "0")])
    add = nest(inner, [over[i] for i in inner], last)
    add = [_written_out(node) for node in add] if short else add
    return nest(outer, [over[i] for i in outer], [*start, *add])


def _short(
    language: Writer, order: Sequence[str], rows: Sequence[str], over: Mapping[str, str]
) -> list[str]:
    """The loops with those of a sum innermost, where these and the last other one are so short that
    compilers write them out, and make vectors of what is next to each other then; else none.

    Entries of the result are numbers while they are added to, which they are in no other order.
    """
    sums = [i for i in order if i not in rows]
    if not sums or order[-1] not in rows:
        return []
    few = [language.length(over[i]) for i in (order[-1], *sums)]
    return [*[i for i in order if i in rows], *sums] if max(few) < FEW > prod(few) // FEW else []


def _written_out(node: Node) -> Node:
    """A nest of loops that compilers write out."""
    if not isinstance(node, Loop):
        return node
    return replace(node, body=[_written_out(inner) for inner in node.body], short=True)
