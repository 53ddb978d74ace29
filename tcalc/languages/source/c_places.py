"""Arrays in C that are filled, or read, at places: unit tensors, margins, windows, gathers."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.extents import Extent, Shape
from .c_nests import Line, Node, atom, nest
from .c_values import Value, added, affine, common_shape, entry_of, value, viewed
from .c_writer import Writer
from .language import Code
from .places import View


def embed(language: Writer, c: Code, out: Sequence[int], shape: Shape) -> Value:
    found = language.zeros(language.shape(shape))
    language.emit(*onto_diagonal(language, found, value(c), out, "="))
    return found


def onto_diagonal(
    language: Writer, array: Value, c: Value, out: Sequence[int], sign: str
) -> list[Node]:
    """A nest that writes, or adds, entries onto the diagonal that repeated labels are."""
    labels = list(dict.fromkeys(out))
    index = language.index(len(labels))
    target = array.entry([index[labels.index(label)] for label in out]).text
    over = [array.shape[out.index(label)] for label in labels]
    return nest(index, over, [Line(target, sign, entry_of(c, index).text)])


def pad(language: Writer, c: Code, shape: Shape, margins: Sequence[tuple[Extent, Extent]]) -> Value:
    v, ends = value(c), [language.shape(pair) for pair in margins]
    inner = language.shape(shape)
    whole = [
        added(*[atom(n) for n in (a, n, b) if n != "0"])
        for n, (a, b) in zip(inner, ends, strict=True)
    ]
    found = language.zeros(whole)
    index = language.index(len(inner))
    target = found.entry([added(i, a) for i, (a, _) in zip(index, ends, strict=True)]).text
    language.emit(*nest(index, inner, [Line(target, "=", entry_of(v, index).text)]))
    return found


def place(language: Writer, c: Code, whole: Shape, view: View, onto: Code | None = None) -> Value:
    v, found = value(c), value(onto) if onto is not None else language.zeros(language.shape(whole))
    index, starts = language.index(len(view.shape)), language.shape(view.starts)
    places = [affine(a, steps, index) for a, steps in zip(starts, view.steps, strict=True)]
    line = Line(found.entry(places).text, "+=", entry_of(v, index).text)
    language.emit(*nest(index, language.shape(view.shape), [line]))
    return found


def take(c: Code, keys: Sequence[Code | None]) -> Value:
    v = value(c)
    chosen = {k: value(key) for k, key in enumerate(keys) if key is not None}
    shared, places = common_shape(list(chosen.values())), list(chosen)
    rest = [k for k in range(len(v.shape)) if k not in places]
    apart = places[-1] - places[0] + 1 > len(places)
    at = 0 if apart else places[0]
    order: list[int | None] = [*rest[:at], *[None] * len(shared), *rest[at:]]
    extents = iter(shared)
    shape = [next(extents) if k is None else v.shape[k] for k in order]

    def entries(index: Sequence[str]) -> list[str]:
        common = list(index[at : at + len(shared)])
        kept = dict(zip(rest, [*index[:at], *index[at + len(shared) :]], strict=True))
        return [
            kept[k] if k in kept else from_start(entry_of(chosen[k], common).text, n)
            for k, n in enumerate(v.shape)
        ]

    return viewed(v, shape, entries)


def from_start(index: str, n: str) -> str:
    """An index that may count from the end."""
    return f"index_in({index}, {n})" if "[" in index or "-" in index else index


def segment_sum(language: Writer, c: Code, index: Code, extent: Extent) -> Value:
    v, key = value(c), value(index)
    rest = v.shape[len(key.shape) :]
    found = language.zeros((language.extent(extent), *rest))
    names = language.index(len(v.shape))
    place_ = from_start(entry_of(key, names[: len(key.shape)]).text, found.shape[0])
    target = found.entry([place_, *names[len(key.shape) :]]).text
    language.emit(*nest(names, v.shape, [Line(target, "+=", entry_of(v, names).text)]))
    return found
