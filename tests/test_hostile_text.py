"""Every text is read or refused, in words and under budgets, whatever it asks for."""

from __future__ import annotations

import collections
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tcalc as tc
from tcalc.support.limits import LIMITS, _active, attempted, exhausted, spend
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
    ("loops after each other", lambda: tc.parse(hostile_texts.doubled(
        "fold(s -> sin(s)*a + y[i], {0}, i=0..m-1)", "x", 40), x="n", y="m"), 3_000, 90_000),
]  # fmt: skip


def test_what_recurrences_need() -> None:
    """Polynomials of two states and of their parameters."""
    p = tc.var("p", 2)
    s, i, loss = 0.99, 0.01, 0.0
    for _ in range(8):
        new = p[0] * s * i
        s, i = s - new, i + new - p[1] * i
        loss += (i - 0.1) ** 2
    with tc.limits(steps=1_000_000):
        tc.grad(loss, p)


@pytest.mark.parametrize(("name", "call", "nodes", "steps"), NEEDED, ids=[row[0] for row in NEEDED])
def test_what_texts_need(name: str, call: Callable[[], Any], nodes: int, steps: int) -> None:
    with tc.limits(nodes=nodes, steps=steps + LIMITS["nodes"].steps * nodes):
        call()


#: Calls of functions, Python's own among them, that go into one step.
CALLS_OF_A_STEP = 25


def calls_of(work: Callable[[], Any]) -> tuple[int, str]:
    """How many functions some work calls and returns from, and how it ends."""
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        said = hostile_texts.outcome(work)
    finally:
        sys.setprofile(None)
    return calls, said


@pytest.mark.parametrize("name", [name for name, _ in hostile_texts.costly()])
def test_what_takes_time_takes_steps(name: str) -> None:
    """Work is measured in calls, which no load of the machine changes: no loop is uncounted."""
    arguments = dict(hostile_texts.costly())[name]
    with tc.limits(**{name: row.text for name, row in LIMITS.items()} | {"steps": 200_000}):
        budget = _active.get()
        calls, said = calls_of(lambda: hostile_texts.run_command(arguments))
    assert budget is not None
    assert "FAILED" not in said
    assert calls < CALLS_OF_A_STEP * (budget.spent["steps"] + 10_000)


#: Extents of many factors: of one name, of sums, of products, of what is no name; spelled out, too.
LONG_PRODUCTS = [
    "n^1000", "(e^888)^8", "((n^9)^9)^9", "(m+n)^200", "(m+n)^64*(m+k)", "(m*n)^60", "(n//2)^888",
    "min(m,n)^500", "(2*n+1)^1000", "*".join(["n"] * 400),
    "*".join(["(m+n)"] * 200), "min(m, n^200)", "(n^200)//3", "0*n^200", "n^200-n^200",
]  # fmt: skip


@pytest.mark.parametrize("extent", LONG_PRODUCTS, ids=[text[:20] for text in LONG_PRODUCTS])
@pytest.mark.parametrize(
    "read",
    [
        lambda extent: tc.parse(f"eye({extent})"),
        lambda extent: tc.parse(f"fold(s -> s*a, a, i=0..{extent})"),
        lambda extent: tc.parse_einsum(f"#('->ii', i={extent})"),
        lambda extent: tc.parse_einsum(f"extent({extent})*a"),
        lambda extent: tc.parse_index("f = x[0]", x=extent),
        lambda extent: tc.var("v", (extent,)),
    ],
    ids=["eye", "fold", "einsum", "extent", "declared", "var"],
)
def test_products_of_dimensions_are_refused_where_they_are_long(
    read: Callable[[str], Any], extent: str
) -> None:
    """Soon, whoever set no limit, and by the name of what grew; the steps are those of ^64."""
    with (
        tc.limits(steps=1_000_000, terms=10_000),
        pytest.raises(tc.LimitError, match="more than 64 factors in one product of dim") as caught,
    ):
        read(extent)
    assert caught.value.limit == "factors"
    with tc.limits(factors=3), pytest.raises(tc.LimitError, match="more than 3 factors"):
        read("*".join("n" * 17))


@pytest.mark.parametrize("step", ["{0}*{0}", "a*{0}*{0}", "tr(eye(n))*{0}", "{0}/n"])
@pytest.mark.parametrize("first", ["n*1.5", "a*n", "a/n", "tr(eye(n))*A", "A/tr(eye(n))"])
def test_products_with_dimensions_are_refused_where_they_are_long(first: str, step: str) -> None:
    """What is in front of arrays too, which statements would square over and over."""
    text = f"{hostile_texts.doubled(step, first, 80)};q78*eye(n)"
    with tc.limits(steps=1_000_000), pytest.raises(tc.LimitError) as caught:
        tc.parse(text)
    assert caught.value.limit == "factors"


@pytest.mark.parametrize(
    ("extent", "said"),
    [("(m*(m+n)^40)^3", "1000 terms"), ("n^1001", "beyond 1000: 1001"),
     ("1^" + "9" * 40, "beyond 1000: 9"), ("9^999", "300 digits")],
)  # fmt: skip
def test_extents_that_are_forms_are_not_told_to_be_none(extent: str, said: str) -> None:
    for read in (lambda e: tc.var("v", e), lambda e: tc.parse(f"eye({e})")):
        with tc.limits(terms=10_000), pytest.raises(tc.LimitError, match=said):
            read(extent)


def test_extents_in_extents_take_steps_where_they_are_read() -> None:
    """A quotient of a sum is read again for each that is around it."""
    text = dict(hostile_texts.extents())["floors of the power of a sum"]
    with tc.limits(steps=1_000_000):
        calls, said = calls_of(lambda: tc.var("v", (text,)))
        budget = _active.get()
    assert "LimitError" in said
    assert budget is not None
    assert calls < 9 * budget.spent["steps"]  # what takes steps here is Python's own


def test_what_is_attempted_ends_and_what_is_around_goes_on() -> None:
    with tc.limits(steps=1_000):
        assert attempted(lambda: spend("steps", 11), 10) is None
        assert not exhausted()
        assert attempted(lambda: 5, 10) == 5
        assert attempted(lambda: [spend("steps", 10) for _ in range(200)], 10_000) is None
        assert exhausted()  # it had less than it may take
        spend("steps", 100)  # and some is left for what is needed
        with pytest.raises(tc.LimitError, match="more than 1,000 steps"):
            spend("steps", 200)


def test_a_node_is_as_many_steps_as_it_takes() -> None:
    each = LIMITS["nodes"].steps
    with tc.limits(steps=10 * each):
        spend("nodes", 10)
        with pytest.raises(tc.LimitError, match="steps"):
            spend("nodes")


def test_time_is_that_of_the_processor() -> None:
    """What others do on the machine meanwhile, and waiting, is not counted."""
    with tc.limits(seconds=0.05):
        time.sleep(0.1)
        spend("steps")
        with pytest.raises(tc.LimitError, match="seconds"):
            collections.deque(iter(lambda: spend("steps"), 0), 0)


def test_brackets_are_refused_where_they_are_too_deep() -> None:
    """The rest of the text is not read first."""
    deep = "(" * 10**6 + "a" + ")" * 10**6
    with tc.limits(steps=1000), pytest.raises(tc.ParseError, match=r"^1:100001: more than 1"):
        tc.parse(deep)


def test_powers_of_matrices_are_printed_as_powers() -> None:
    """Of a product, what is printed are its powers, never as many factors as the exponent says."""
    with tc.limits(characters=100):
        assert str(tc.parse("A^1000000*B*A^3*A^4")) == "A^1000000*B*A^7"
