"""Random steps that are loops: folds with histories, stretches, conditions and loops inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tests import jets
from tests.jets import Jet
from tests.random_operations import Context, Extent, Operation, Shape

if TYPE_CHECKING:
    from tests.random_programs import Generator

#: One step of a loop, from a namespace, the state, a slice and something captured.
CELLS: dict[str, Callable[[Any, Any, Any, Any], Any]] = {
    "tanh": lambda xp, s, x, a: xp.tanh(a * s + x) + s * 0.5,
    "affine": lambda xp, s, x, a: a * s * 0.4 + x,
    "sine": lambda xp, s, x, a: xp.sin(s) * x + a,
    "ratio": lambda xp, s, x, a: (s + a) / (x * x + 1),
    "sum": lambda xp, s, x, a: s + x * a,
    "last": lambda xp, s, x, a: x * x + a,
}
ON_JETS = SimpleNamespace(**jets.ELEMENTWISE)


def _cell(g: Generator) -> str:
    name: str = g.pick(sorted(CELLS))
    return name


def _stacked(rows: Sequence[Jet], like: Jet) -> Jet:
    """Rows along a leading axis, of the kind of another one where there are none."""
    parts = [[getattr(r, f) for r in rows] for f in "vgh"]
    return Jet(
        *[
            np.stack(p) if p else np.zeros((0, *getattr(like, f).shape))
            for p, f in zip(parts, "vgh", strict=True)
        ]
    )


# --- one state, with slices of its shape ----------------------------------------------------------


def _scan(g: Generator) -> None:
    """A state as an entry, or as a row, of what is scanned."""
    fitting = [k for k, s in enumerate(g.shapes) if len(s) in (1, 2)]
    if not fitting:
        return
    x = g.pick(fitting)
    n, *rest = g.shapes[x]
    captured = [k for k, s in enumerate(g.shapes) if s in ((), tuple(rest))]
    if not captured:
        return
    history = g.chance(0.5)
    checkpoint = not history and isinstance(n, int) and g.chance(0.4)
    shape = g.shapes[x] if history else tuple(rest)
    g.emit(
        "scan", [x, g.pick(captured)], shape, extent=n, cell=_cell(g), row=tuple(rest),
        history=history, checkpoint=checkpoint, backward=g.chance(0.3),
    )  # fmt: skip


def _build_scan(
    c: Context, args: Sequence[Any], extent: Extent, cell: str, row: Shape,
    history: bool, checkpoint: bool, backward: bool,
) -> Any:  # fmt: skip
    x, a = args
    x = c.xp.flip(x, 0) if backward else x
    init = c.xp.ones(tuple([c.extent(e) for e in row]))
    options = {"history": history, "checkpoint": checkpoint}
    return c.xp.fold(lambda s, i: CELLS[cell](c.xp, s, x[i], a), init, c.extent(extent), **options)


def _scan_jets(
    c: Context, args: Sequence[Jet], extent: Extent, cell: str, row: Shape,
    history: bool, checkpoint: bool, backward: bool,
) -> Jet:  # fmt: skip
    x, a = args
    s = jets.constant(np.ones([int(c.extent(e)) for e in row]), c.total)
    first, rows = s, []
    order = range(int(c.extent(extent)))
    for i in reversed(order) if backward else order:
        s = CELLS[cell](ON_JETS, s, x[i], a)
        rows.append(s)
    return _stacked(rows, first) if history else s


# --- a matrix times the state, and a sum of what it was -------------------------------------------


def _recurrent(g: Generator) -> None:
    """A net over the rows of a matrix: two states, one of which reads the other."""
    weights = [k for k, s in enumerate(g.shapes) if len(s) == 2 and s[0] == s[1]]
    if not weights:
        return
    w = g.pick(weights)
    n = g.shapes[w][0]
    rows = [k for k, s in enumerate(g.shapes) if len(s) == 2 and s[1] == n]
    x, which = g.pick(rows), g.pick([0, 1])
    g.emit(
        "recurrent", [w, x], (n,) if which == 0 else (), size=n, extent=g.shapes[x][0], which=which
    )


def _build_recurrent(
    c: Context, args: Sequence[Any], size: Extent, extent: Extent, which: int
) -> Any:
    w, x = args
    init = c.xp.zeros((c.extent(size),)), c.xp.const(0.5)

    def step(state: Any, i: Any) -> Any:
        h, total = state
        h = c.xp.tanh(w @ h * 0.5 + x[i])
        return h, total * 0.9 + c.xp.sum(h * h)

    return c.xp.fold(step, init, c.extent(extent))[which]


def _recurrent_jets(
    c: Context, args: Sequence[Jet], size: Extent, extent: Extent, which: int
) -> Jet:
    w, x = args
    h = jets.constant(np.zeros(int(c.extent(size))), c.total)
    total = jets.constant(0.5, c.total)
    for i in range(int(c.extent(extent))):
        h = ON_JETS.tanh(w @ h * 0.5 + x[i])
        total = total * 0.9 + jets.reduce("sum", h * h, 0)
    return (h, total)[which]


# --- loops in loops -------------------------------------------------------------------------------


def _nested(g: Generator) -> None:
    """A loop over rows around a loop over columns, which begins with the outer state."""
    matrices = [k for k, s in enumerate(g.shapes) if len(s) == 2]
    scalars = [k for k, s in enumerate(g.shapes) if not s]
    if matrices and scalars:
        x = g.pick(matrices)
        rows, columns = g.shapes[x]
        g.emit(
            "nested", [x, g.pick(scalars)], (), rows=rows, columns=columns,
            cells=(_cell(g), _cell(g)), triangle=rows == columns and g.chance(0.5),
        )  # fmt: skip


def _build_nested(
    c: Context, args: Sequence[Any], rows: Extent, columns: Extent, cells: Any, triangle: bool
) -> Any:
    x, a = args

    def outer(s: Any, i: Any) -> Any:
        inner = lambda r, j: CELLS[cells[0]](c.xp, r, x[i, j], a)  # noqa: E731
        length = {"n": i, "limit": c.extent(columns)} if triangle else {"n": c.extent(columns)}
        return CELLS[cells[1]](c.xp, c.xp.fold(inner, s, **length), a, s)

    return c.xp.fold(outer, 0.5, c.extent(rows))


def _nested_jets(
    c: Context, args: Sequence[Jet], rows: Extent, columns: Extent, cells: Any, triangle: bool
) -> Jet:
    x, a = args
    s = jets.constant(0.5, c.total)
    for i in range(int(c.extent(rows))):
        r = s
        for j in range(i if triangle else int(c.extent(columns))):
            r = CELLS[cells[0]](ON_JETS, r, x[i, j], a)
        s = CELLS[cells[1]](ON_JETS, r, a, s)
    return s


# --- loops until a condition ----------------------------------------------------------------------


def _until(g: Generator) -> None:
    """A number that grows by what it reads, until it is large enough or the steps are made."""
    scalars = [k for k, s in enumerate(g.shapes) if not s]
    if scalars:
        limit = int(g.pick([0, 1, 4, 7]))
        places = [g.pick(scalars), g.pick(scalars)]
        g.emit("until", places, (), limit=limit, history=False)
        if g.chance(0.3):
            g.emit("until", places, (limit,), limit=limit, history=True)


def _grown(s: Any, a: Any, b: Any) -> Any:
    return s * 1.3 + a * a + b / (a * a + 1)


def _build_until(c: Context, args: Sequence[Any], limit: int, history: bool) -> Any:
    a, b = args
    return c.xp.fold(
        lambda s, i: _grown(s, a, b), 0.3, until=lambda s: s > 4, limit=limit, history=history
    ).state


def _until_jets(c: Context, args: Sequence[Jet], limit: int, history: bool) -> Jet:
    a, b = args
    s = first = jets.constant(0.3, c.total)
    rows = []
    while len(rows) < limit and not s.v > 4:
        s = _grown(s, a, b)
        rows.append(s)
    empty = jets.constant(0.0, c.total)
    return _stacked(rows + [empty] * (limit - len(rows)), first) if history else s


LOOPS: dict[str, Operation] = {
    "scan": Operation(_scan, _build_scan, _scan_jets, 4),
    "recurrent": Operation(_recurrent, _build_recurrent, _recurrent_jets, 2),
    "nested": Operation(_nested, _build_nested, _nested_jets, 2),
    "until": Operation(_until, _build_until, _until_jets),
}
