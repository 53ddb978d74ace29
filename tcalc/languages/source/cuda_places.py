"""Scatters in CUDA: each entry gathers what belongs to it, so that no two threads meet.

Places that are affine in indices are solved for before a language writes them (`places`). Places
that are data have no other form that is the same every time: they are sorted, and then each segment
is a range.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...graph.extents import Extent
from .c_nests import Call, Line, Loop, Node, atom, nest
from .c_places import from_start
from .c_values import Value, entry_of, value
from .c_writer import Writer
from .language import Code


def segment_sum(language: Writer, c: Code, index: Code, extent: Extent) -> Value:
    """Slices of c added up, those of one segment in their order."""
    v, key = value(c), value(index)
    count = language.extent(extent)
    names = language.index(len(key.shape))
    keys, placed = language.storage(key.shape, kind="ptrdiff_t")
    line = Line(placed.entry(names).text, "=", from_start(entry_of(key, names).text, count))
    size = keys.size
    order, _ = language.storage((size,), kind="ptrdiff_t")
    other, _ = language.storage((size,), kind="ptrdiff_t")
    sort = Call(
        f"group_order({size}, {keys.name}, {order.name}, {other.name})", (order.name, other.name)
    )
    language.emit(*nest(names, key.shape, [line]), sort, made=[keys, order, other])
    rest = v.shape[len(key.shape) :]
    array, found = language.storage((count, *rest))
    segment, *others, turn = language.index(len(rest) + 2)
    first, turns, at, total = (language.scope.fresh() for _ in range(4))
    given = f"{atom(size)}, {keys.name}, {order.name}"
    places = _unravelled(at, key.shape)
    body: list[Node] = [
        Line(first, "=", f"group_start({given}, {segment})", "const ptrdiff_t"),
        Line(turns, "=", f"group_start({given}, {segment} + 1) - {first}", "const ptrdiff_t"),
        Line(total, "=", "0", language.kind),
        Loop(
            turn,
            turns,
            [
                Line(at, "=", f"{order.name}[{first} + {turn}]", "const ptrdiff_t"),
                Line(total, "+=", entry_of(v, [*places, *others]).text),
            ],
        ),
        Line(found.entry([segment, *others]).text, "=", total),
    ]
    language.emit(*nest([segment, *others], array.shape, body), made=[array])
    return found


def _unravelled(at: str, shape: Sequence[str]) -> list[str]:
    """The indices of an entry, row by row."""
    found, behind = list[str](), at
    for k, n in enumerate(reversed(shape)):
        last = k == len(shape) - 1
        found.insert(0, behind if last else f"({behind} % {atom(n)})")
        behind = f"({behind} / {atom(n)})"
    return found
