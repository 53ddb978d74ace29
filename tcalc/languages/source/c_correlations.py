"""Sums over windows that overlap: a routine of C reads them where they lie."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from .c_contractions import BLOCK, merged
from .c_nests import Array, Call, Line, atom
from .c_values import Strided, Value, transposed
from .c_writer import Writer
from .places import View

#: Most axes of a kind that the routines take, and the fewest entries of a line that are worth it.
MOST, SHORT = 8, 8
#: Terms of a product of windows that are copied at a time.
DEPTH = 512


def strided(v: Value, starts: Sequence[str], view: View) -> Strided | None:
    """Where the entries of a view lie, if those of its array do."""
    if v.memory is None:
        return None
    apart = v.memory.strides
    start = [(1, v.memory.start)]
    start += [(1, _times(atom(n), stride)) for n, stride in zip(starts, apart, strict=True)]
    strides = [_total(zip(along, apart, strict=True)) for along in zip(*view.steps, strict=True)]
    return Strided(v.memory.name, _total(start), tuple(strides))


def _times(a: str, b: str) -> str:
    """The product of two atoms."""
    if "0" in (a, b):
        return "0"
    return " * ".join([n for n in (a, b) if n != "1"]) or "1"


def _total(terms: Iterable[tuple[int, str]]) -> str:
    """The sum of integers, some times each."""
    found = ""
    for times, n in terms:
        if times and n != "0":
            term = _times(str(abs(times)), n if times == 1 else atom(n))
            sign = "-" if times < 0 else "+"
            found += f" {sign} {term}" if found else "-" * (times < 0) + term
    return found or "0"


def by_windows(
    language: Writer, values: Sequence[Value], words: Sequence[Sequence[int]], out: Sequence[int]
) -> Value | None:
    """An array times windows of another one that overlap, along lines of these."""
    if len(values) != 2 or language.integers:
        return None
    if values[0].windows is None:
        values, words = values[::-1], words[::-1]
    (view, other), (word, right) = values, words
    windows = view.windows
    kept, summed = [k for k in word if k in out], [k for k in word if k not in out]
    left = [k for k in out if k not in word]
    if windows is None or other.overlaps or not _alone(word, right, out):
        return None
    sizes = dict(zip([*right, *word], [*other.shape, *view.shape], strict=True))
    if not summed or any(other.shape[right.index(k)] != sizes[k] for k in summed):
        return None
    apart = dict(zip(word, windows.strides, strict=True))
    lies = dict(zip(right, other.memory.strides, strict=True)) if other.memory else {}
    row, term = (
        max(labels, key=lambda k: language.length(sizes[k]), default=None)
        for labels in (
            [k for k in kept if apart[k] == "1"],
            [k for k in summed if apart[k] == lies.get(k, "1") == "1"],
        )
    )
    if not _worth(language, [sizes[k] for k in kept], [sizes[k] for k in summed], row, term):
        return None
    kept.sort(key=lambda k: k == row)
    summed.sort(key=lambda k: k == term)
    other = _in_lines(language, other, [right.index(k) for k in left], right, [*left, *summed])
    assert other.memory is not None
    reach = dict(zip(right, other.memory.strides, strict=True))
    array, found, stored = _stored(language, sizes, left, kept, row, out)
    assert found.memory is not None
    to = dict(zip(stored, found.memory.strides, strict=True))
    lines, apart_lines = _merged(other, [right.index(k) for k in left])
    _, lead = _merged(found, [stored.index(k) for k in left])
    result = _table(language, [(sizes[k], apart[k], to[k]) for k in kept])
    terms = _table(language, [(sizes[k], apart[k], reach[k]) for k in summed])
    axes = f"{len(kept)}, {result}, {len(summed)}, {terms}"
    arrays = f"{windows.pointer}, {other.memory.pointer}, {array.name}"
    call = f"correlate({lines}, {apart_lines}, {lead}, {axes}, {arrays})"
    language.emit(Call(call, (array.name,)), made=[array])
    return found if stored == [*out] else transposed(found, [stored.index(k) for k in out])


def by_own_windows(
    language: Writer, values: Sequence[Value], words: Sequence[Sequence[int]], out: Sequence[int]
) -> Value | None:
    """Windows that overlap, times themselves: copied by parts, for products of matrices."""
    if len(values) != 2 or language.integers:
        return None
    (view, other), (word, right) = values, words
    if out[:1] and out[0] in right:
        word, right = right, word
    windows, summed = view.windows, [k for k in word if k in right]
    if windows is None or (windows, view.shape) != (other.windows, other.shape):
        return None
    own, twins = ([k for k in labels if k not in summed] for labels in (word, right))
    own.sort(key=lambda k: out.index(k) if k in out else -1)
    pairs = [right[word.index(k)] for k in own]
    alike = all(right[word.index(k)] == k for k in summed) and sorted(pairs) == sorted(twins)
    if not own or not summed or not alike or [*own, *pairs] != [*out]:
        return None
    sizes = dict(zip(word, view.shape, strict=True))
    lengths = [prod([language.length(sizes[k]) for k in labels]) for labels in (own, summed)]
    if min(lengths) < BLOCK or max(len(own), len(summed)) > MOST:
        return None
    apart = dict(zip(word, windows.strides, strict=True))
    summed.sort(key=lambda k: apart[k] == "1")
    tables = [_table(language, [(sizes[k], apart[k], "0") for k in part]) for part in (own, summed)]
    rows, terms = (" * ".join([atom(sizes[k]) for k in part]) for part in (own, summed))
    array, found = language.storage([*[sizes[k] for k in own]] * 2)
    depth = f"smaller({DEPTH}, {terms})"
    space, _ = language.storage([rows, depth])
    axes = f"{len(own)}, {tables[0]}, {len(summed)}, {tables[1]}"
    call = f"windows_square({axes}, {windows.pointer}, {depth}, {space.name}, {array.name})"
    language.emit(Call(call, (array.name, space.name)), made=[array, space])
    return found


def _worth(
    language: Writer,
    kept: Sequence[str],
    summed: Sequence[str],
    row: int | None,
    term: int | None,
) -> bool:
    """Has one of the axes that lie along memory lines that are long enough, by guesses?"""
    results, terms = ([language.length(n) for n in extents] for extents in (kept, summed))
    if max(len(kept), len(summed)) > MOST or not kept or max(results + terms) < SHORT:
        return False
    return row is not None or (term is not None and max(terms) > max(results))


def _stored(
    language: Writer,
    sizes: Mapping[int, str],
    left: Sequence[int],
    kept: Sequence[int],
    row: int | None,
    out: Sequence[int],
) -> tuple[Array, Value, list[int]]:
    """The result, and the order of its axes: as they are wanted, where lines of it are one axis."""
    for order in ([*out], [*left, *kept]):
        array, found = language.storage([sizes[k] for k in order])
        lines = not left or merged(found, [order.index(k) for k in left])
        if lines and row in (None, order[-1]):
            break
    return array, found, order


def _merged(v: Value, axes: Sequence[int]) -> tuple[str, str]:
    """Axes as one that is known to be: its extent, and how far entries are apart."""
    found = merged(v, axes) if axes else ("1", "0")
    assert found is not None
    return found


def _alone(word: Sequence[int], right: Sequence[int], out: Sequence[int]) -> bool:
    """Is every axis kept that one operand has, and summed that both have?"""
    once = all(len(set(labels)) == len(labels) for labels in (word, right, out))
    return once and set(out) == set(word) ^ set(right)


def _in_lines(
    language: Writer, v: Value, lines: Sequence[int], word: Sequence[int], order: Sequence[int]
) -> Value:
    """The array in memory, some of its axes as one; in another order where it does not lie so."""
    if v.memory is not None and (not lines or merged(v, lines)):
        return v
    return language.filled(v.shape, v, order=[word.index(k) for k in order])


def _table(language: Writer, axes: Sequence[tuple[str, str, str]]) -> str:
    """A name for rows of numbers."""
    name = language.scope.fresh()
    rows = ", ".join([f"{{{', '.join(axis)}}}" for axis in axes])
    language.emit(Line(f"{name}[][3]", "=", f"{{{rows}}}", "const ptrdiff_t"))
    return name
