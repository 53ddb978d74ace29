"""Every text is read or refused, in words and under budgets, whatever it asks for."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcalc as tc
from tests import hostile_texts

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
def test_texts_are_read_or_refused_in_little_memory() -> None:
    """In a process of its own, with an alarm that only a text without end meets."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile_texts"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (lines[-1:], done.stderr[-500:])
    assert lines[-1] == "all read"
    assert not [line for line in lines if "FAILED" in line]
    assert len(lines) > len(list(hostile_texts.calls()))


# Texts that were read, and what they needed: none of them is to need much more again.
NEEDED: list[tuple[str, Callable[[], Any], int, int]] = [
    ("a product of matrices", lambda: tc.parse("tr(" + "*".join(["A"] * 400) + ")"), 2_000, 10_000),
    ("six nested sines to order 4",
     lambda: tc.derivative(tc.parse("sin(sin(sin(sin(sin(sin(a))))))"), "a", 4), 6_000, 6_000),
    ("order 8 of an exponential of one",
     lambda: tc.derivative(tc.parse("exp(exp(a))"), "a", 8), 10_000, 10_000),
    ("a thousand terms", lambda: tc.parse("+".join(f"x{k}" for k in range(1_000))), 10_000, 10_000),
    ("many steps", lambda: tc.parse(hostile_texts.doubled("sin({0}).*{0}", "x", 99)), 3_000, 9_000),
    ("a deep call", lambda: tc.parse(hostile_texts.nested("sin(", "x")), 10_000, 30_000),
    ("the power of a power", lambda: tc.parse("tr(((A)^1000000)^1000000)"), 500, 5_000),
    ("one entry often", lambda: tc.parse_index(f"f = {'x[0]+' * 2_000}1", x="n"), 3_000, 30_000),
    ("a loop with bounds", lambda: tc.parse_index(
        "f = sum[i=0..n-1, j=0..i, k=0..j, l=0..k](x[i]*x[j]*x[k]*x[l])", x="n"), 200, 60_000),
]  # fmt: skip


@pytest.mark.parametrize(("name", "call", "nodes", "steps"), NEEDED, ids=[row[0] for row in NEEDED])
def test_what_texts_need(name: str, call: Callable[[], Any], nodes: int, steps: int) -> None:
    with tc.limits(nodes=nodes, steps=steps):
        call()


def test_brackets_are_refused_where_they_are_too_deep() -> None:
    """The rest of the text is not read first."""
    deep = "(" * 10**6 + "a" + ")" * 10**6
    with tc.limits(steps=1000), pytest.raises(tc.ParseError, match=r"^1:100001: more than 1"):
        tc.parse(deep)


def test_powers_of_matrices_are_printed_as_powers() -> None:
    """Of a product, what is printed are its powers, never as many factors as the exponent says."""
    with tc.limits(characters=100):
        assert str(tc.parse("A^1000000*B*A^3*A^4")) == "A^1000000*B*A^7"
