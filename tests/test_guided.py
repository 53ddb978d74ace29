"""Inputs that reach much of what reads texts, files and requests are answered, and soon."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pydantic", reason="the extra `web` is not installed")

from tests import guided

ENTRIES = guided.entries()
INPUTS = [(name, data) for name, found in guided.kept().items() for data in found]


@pytest.mark.parametrize("name", ENTRIES)
def test_inputs_that_were_found_are_answered(name: str) -> None:
    """Those that are kept, and those that a run begins with."""
    entry = ENTRIES[name]
    seeds = [text.encode() if isinstance(text, str) else text for text in entry.seeds]
    for data in [*seeds, *(data for other, data in INPUTS if other == name)]:
        said = guided.outcome(entry, data)
        assert not said.startswith("FAILED"), (said, data)


@pytest.mark.parametrize("name", ["matrix", "index", "einsum", "extent"])
def test_texts_with_changed_words_are_answered(name: str) -> None:
    rng, entry = random.Random(0), ENTRIES[name]
    words = guided.split(entry.words)
    for data in [data for other, data in INPUTS if other == name][:30]:
        changed = guided.mutated(data, words, rng)
        said = guided.outcome(entry, changed)
        assert not said.startswith("FAILED"), (said, changed)


def test_changed_bodies_are_bodies() -> None:
    rng, seed = random.Random(0), guided.BODIES[2].encode()
    bodies = [guided.mutated_body(seed, rng) for _ in range(50)]
    assert all(json.loads(body).keys() == json.loads(seed).keys() for body in bodies)
    assert len(set(bodies)) > 30


@pytest.mark.parametrize(
    "body",
    ["", "-", "[]", "[1, 2]", "[[1]]", '"text"', '"\\ud800"', "3", "9" * 900, "NaN", "null", "{}",
     "[" * 900, '{"a": NaN}', '{"expression": 3}', '{"expression": "\\ud800", "language": []}'],
)  # fmt: skip
def test_whatever_a_body_is_it_is_changed_and_answered(body: str) -> None:
    rng, data = random.Random(0), body.encode()
    for _ in range(100):
        assert isinstance(guided.mutated_body(data, rng), bytes)
    assert not guided.outcome(ENTRIES["web"], data).startswith("FAILED")


def looped(data: bytes) -> None:
    while True:
        pass


def deep(data: bytes) -> Any:
    return deep(data)


@pytest.mark.parametrize(
    ("read", "name"), [(looped, "Slow"), (deep, "RecursionError"), (bytes.fromhex, "TypeError")]
)
def test_what_is_no_answer_is_seen(
    read: Callable[[bytes], Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guided, "SECONDS", 0.05)
    said = guided.outcome(guided.Entry(read, "", ()), b"")
    assert said.startswith(f"FAILED {name}")


def test_what_is_slow_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guided, "SECONDS", 0.05)
    for read, failed in ((looped, True), (bytes.decode, False)):
        entry = guided.Entry(read, "", ())
        assert (
            guided.fails(entry, f"FAILED Slow: 'more than 2 s' at a:b:1\t{b'[:' + bytes([9])!r}")
            is failed
        )
    assert guided.fails(entry, "FAILED KeyError: ': b' at a:b:1\tb'n'")
