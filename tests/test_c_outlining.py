"""How much C a program becomes: equal nests of loops are one function."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c import compiler, library
from tcalc.backends.c.outlining import FEW, marked, outlined


@pytest.fixture
def programs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Programs as they are compiled, and how much is made of their loops."""
    found: list[tuple[str, str]] = []
    make = library.loaded

    def told(source: str, symbols: Sequence[str], *more: Any, level: str = "") -> Any:
        if level:
            found.append((source, level))
        return make(source, symbols, *more, level=level or compiler.MOST)

    monkeypatch.setattr(library, "loaded", told)
    return found


def layers(count: int) -> tuple[Any, dict[str, np.ndarray]]:
    """Value and gradients of a chain of gates, and data."""
    rng = np.random.default_rng(0)
    x = tc.var("x", (7, 5))
    gates = [tc.var(f"g{k}", 5) for k in range(count)]
    mixed, h = tc.var("mixed", (5, 5)), x
    for g in gates:
        h = tc.tanh(h * g) @ mixed
    data = {v.name: rng.normal(size=v.shape) / 2 for v in (x, mixed, *gates)}
    return tc.value_and_grad(tc.sum(h * h), tuple(gates)), data


def nests(program: str) -> int:
    return len(
        re.findall(r"^static __attribute__\(\(noinline\)\) void nest", program, re.MULTILINE)
    )


def test_further_layers_add_no_nests(programs: list[tuple[str, str]]) -> None:
    for count in (6, 12):
        outputs, data = layers(count)
        found = tc.compile(outputs, backend="c")(**data)
        wanted = tc.compile(outputs, backend="numpy")(**data)
        np.testing.assert_allclose(found[0], wanted[0], rtol=1e-10)
        for one, other in zip(found[1], wanted[1], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
    few, many = [nests(program) for program, _ in programs]
    assert 0 < many <= few + 2


def test_short_programs_are_not_cut(programs: list[tuple[str, str]]) -> None:
    x = tc.var("x", "n")
    tc.compile(tc.value_and_grad(tc.sum(tc.exp(x)), x), backend="c")(x=np.ones(3))
    ((program, level),) = programs
    assert nests(program) == 0
    assert level == compiler.MOST


def test_long_programs_are_compiled_quickly(
    programs: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "LONG", 1000)
    x = tc.var("x", "n")
    tc.compile(tc.sum(tc.exp(x) * tc.sin(x)), backend="c")(x=np.ones(3))
    assert programs[0][1] == compiler.QUICK


def test_nests_are_told_apart_by_all_but_their_slots() -> None:
    block = "{{\n    for (long i0 = 0; i0 < {n}; i0++)\n        p{b}[i0] = p{a}[i0] * {c};\n}}"
    kinds = [
        {"n": 8, "a": 1, "b": 2, "c": 2}, {"n": 8, "a": 5, "b": 3, "c": 2},
        {"n": 9, "a": 1, "b": 2, "c": 2}, {"n": 8, "a": 1, "b": 1, "c": 2},
        {"n": 8, "a": 1, "b": 2, "c": 3}, {"n": "t", "a": 1, "b": 2, "c": 2},
    ]  # fmt: skip
    blocks = [marked(block.format(**kind)) for kind in kinds]
    text = outlined("\n".join(blocks * FEW))
    assert nests(text) == len(kinds) - 1
    calls = text.splitlines()[-len(blocks) * FEW :]
    assert calls[:2] == ["nest0(p2, p1);", "nest0(p3, p5);"]
    assert calls[3] == "nest2(p1);"
    assert calls[5] == "nest4(t, p2, p1);"
    shared = marked(block.format(n="threads", a=1, b=2, c=2))
    assert nests(outlined("\n".join([*blocks, *[shared] * FEW]))) == len(kinds) - 1
