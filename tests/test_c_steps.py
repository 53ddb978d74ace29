"""C of single steps of every kind, beside their references, however operands lie in memory."""

from __future__ import annotations

from functools import cache
from operator import or_
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from tcalc.backends.c.forms import expressible, in_loops
from tcalc.backends.c.frames import Frame, StridedArray
from tcalc.backends.c.library import functions
from tcalc.backends.c.objects import INTEGER, spelled
from tcalc.backends.c.sharing import NAME
from tcalc.backends.c.source import FORMS, Source
from tcalc.backends.c.spelling import ENTRIES
from tcalc.plan.kinds.table import KINDS
from tests.test_kinds import DOUBLE, Made, agree, reads_factors, some

#: Kinds of steps with a form in C, and how many steps of each are tried.
WRITTEN = sorted({*FORMS, *ENTRIES, "sum", "vecdot", "einsum", "correlate", "into"} - {"factor"})
TRIED = 5
#: Kinds whose results may be added to what is there.
ADDING = {"sum", "vecdot", "einsum", "dot", "weighted"}
#: Kinds of which some steps have no text: of integers those with powers.
UNWRITTEN = {"integers"}
#: Kinds of products, whose matrices BLAS takes by columns too.
BY_COLUMNS = {"dot", "gram"}


def lying(a: Any, way: int) -> Any:
    """The same array: in order, by columns, with gaps, backwards, as part of longer rows."""
    a = np.asarray(a, INTEGER if np.asarray(a).dtype.kind in "iub" else DOUBLE)
    if way == 0 or not a.ndim:
        return np.array(a, order="C")
    if way == 1:
        return np.array(a, order="F")
    if way == 3:
        return a[(slice(None, None, -1),) * a.ndim].copy()[(slice(None, None, -1),) * a.ndim]
    key = slice(1, None, 2) if way == 2 else slice(0, -3)
    each = [slice(None) if way == 4 and k < a.ndim - 1 else key for k in range(a.ndim)]
    shape = [n if s == slice(None) else 2 * n + 1 if way == 2 else n + 3
             for n, s in zip(a.shape, each, strict=True)]  # fmt: skip
    whole = np.full(shape, 7, a.dtype)
    whole[tuple(each)] = a
    return whole[tuple(each)]


class Written(NamedTuple):
    """A step, its operands as they lie, the memory of its result, and its function."""

    made: Made
    arrays: dict[int, Any]
    out: Any
    adding: bool
    text: str


def written(made: Made, ways: list[int], adding: bool, in_steps: bool) -> Written:
    step, count = made.step, max(made.step.out, *made.step.args, 0) + 1
    arrays = {
        slot: lying(a, way) for slot, a, way in zip(step.args, made.arrays, ways, strict=True)
    }
    results = made.result if isinstance(made.result, tuple) else (made.result,)
    size = sum(np.size(r) for r in results)
    whole = KINDS[step.kind].integral
    shape = (size,) if len(results) > 1 else step.shape
    out: Any = np.full(shape, -9, INTEGER) if whole else np.full(shape, 0.5 if adding else np.nan)
    held = {**arrays, step.out: out}
    plan: Any = SimpleNamespace(
        owner=range(count), home=[None] * count, origin=[""] * count, transposed={}, by_kind={},
        integral={slot for slot, a in held.items() if a.dtype == INTEGER},
    )  # fmt: skip
    known = {
        k: StridedArray(a.shape, tuple([s // a.itemsize for s in a.strides]))
        for k, a in held.items()
    }
    frame = Frame(plan, known, adding={step.out} if adding else (), in_steps=in_steps)
    source = Source(frame, "d", lambda step: "return 1;")
    source.add(step)
    names = [
        f"{spelled(a.dtype)} *p{k} = (void *)table[{n}];" for n, (k, a) in enumerate(held.items())
    ]
    body = "\n".join([*names, source.body(lambda slot, steps: True), "return 0;"])
    text = f"int {NAME}(int start, char **table, char **given) {{\n{body}\n}}\n"
    return Written(made, arrays, out, adding, text)


@cache
def tried(kind: str) -> list[Written]:
    """A few steps of a kind, with operands that lie in all ways."""
    found = []
    fit = [made for made in some(kind) if fits(made)]
    for n, made in enumerate(fit[:: -(-len(fit) // TRIED)] if fit else []):
        plain = kind in ADDING and (kind != "dot" or not made.step.params)
        for way in range(5):
            ways = [way if way != 4 else (4 + k + n) % 5 for k in range(len(made.arrays))]
            found.append(written(made, ways, plain and way == n % 5, not has_form(made)))
    return found


def fits(made: Made) -> bool:
    """Has the step a form in C, alone or in a loop?"""
    if not all(isinstance(a, np.ndarray | np.generic) for a in made.arrays):
        return False
    sizes = [*map(np.size, made.arrays), *made.step.shape]
    formed = has_form(made) or in_loops(made.step)
    return all(sizes) and formed and not reads_factors(made.step)


def has_form(made: Made) -> bool:
    step, given = made.step, dict(zip(made.step.args, map(np.asarray, made.arrays), strict=True))
    shapes = {slot: a.shape for slot, a in given.items()}
    plan: Any = SimpleNamespace(shapes={**shapes, step.out: step.shape})
    return expressible(plan, step, {slot for slot, a in given.items() if a.dtype.kind in "iub"})


@pytest.mark.parametrize("kind", WRITTEN)
def test_steps_in_c_are_their_references(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step may be left to Python, but not where its operands lie in order."""
    monkeypatch.setattr("tcalc.backends.c.library.MOST", "-O0")
    monkeypatch.setattr("tcalc.backends.c.library.QUICK", "-O0")
    cases = tried(kind)
    done = 0
    for case, run in zip(cases, functions([c.text for c in cases], "d", 2), strict=True):
        made, held = case.made, [*{**case.arrays, case.made.step.out: case.out}.values()]
        if run(0, np.array([a.ctypes.data for a in held], np.uintp).ctypes.data, 0):
            by_columns = [kind in BY_COLUMNS and a.flags.f_contiguous for a in held]
            lies = [a.flags.c_contiguous for a in held]
            assert kind in UNWRITTEN or not all(map(or_, lies, by_columns))
            continue
        done += 1
        found: Any = case.out - 0.5 * case.adding
        if isinstance(made.result, tuple):  # one behind the other
            ends = np.cumsum([r.size for r in made.result])[:-1]
            parts = zip(np.split(found, ends), made.result, strict=True)
            found = tuple([f.reshape(r.shape) for f, r in parts])
        agree(found, made)
    assert done
