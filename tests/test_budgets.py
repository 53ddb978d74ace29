"""Budgets: every limit is seen where its work is done, and errors say what grew and what to do."""

from __future__ import annotations

import math
import pickle
import threading
from collections.abc import Callable
from typing import Any

import pytest

import tcalc as tc
from tcalc.app.cli import main
from tcalc.graph.nodes import Expr
from tcalc.integers.affine import Affine, Constraint
from tcalc.integers.polyhedra import System, SystemLimitError, irredundant
from tcalc.support.limits import LIMITS, for_text, spend, within


def chain(length: int) -> Expr:
    e = tc.var("x")
    for _ in range(length):
        e = tc.sin(e)
    return e


def doubled(times: int) -> Expr:
    e = tc.var("x", "n")
    for _ in range(times):
        e = tc.sin(e) * e
    return e


def simplex(count: int) -> System:
    names = [Affine.of(f"i{k}") for k in range(count)]
    total = Affine()
    for name in names:
        total += name
    return System([*map(Constraint, names), Constraint(100 - total)])


# Work of every kind, and the limit that is to stop it.
WORK: list[tuple[str, float, Callable[[], Any]]] = [
    ("nodes", 500, lambda: chain(1_000)),
    ("nodes", 500, lambda: tc.derivative(tc.parse("exp(exp(exp(a)))"), "a", 6)),
    ("nodes", 500, lambda: tc.parse("*".join(["A"] * 300))),
    ("steps", 1_000, lambda: irredundant(simplex(12))),
    ("steps", 1_000, lambda: tc.simplify(chain(1_000))),
    ("steps", 1_000, lambda: tc.compile(chain(100)).plan_for()),
    ("steps", 1_000, lambda: tc.parse("tr(" + "*".join(["A"] * 300) + ")")),
    ("seconds", 0.01, lambda: chain(10_000)),
    ("characters", 1_000, lambda: str(chain(1_000))),
    ("characters", 1_000, lambda: tc.to_latex(chain(1_000))),
]


@pytest.mark.parametrize(("name", "allowed", "work"), WORK, ids=range(len(WORK)))
def test_what_grows_is_stopped(name: str, allowed: float, work: Callable[[], Any]) -> None:
    with pytest.raises(tc.LimitError) as caught, tc.limits(**{name: allowed}):
        work()
    assert caught.value.limit == name
    assert LIMITS[name].what in str(caught.value)
    assert f"tc.limits({name}=…)" in str(caught.value)
    assert f"{allowed:,}" in str(caught.value)
    with tc.limits(**{name: math.inf}):
        work()


def test_python_has_no_limit_on_work_and_text_has() -> None:
    allowed = int(LIMITS["nodes"].text)
    spend("nodes", 10 * allowed)
    text = for_text(spend)
    text("nodes", allowed)
    with pytest.raises(tc.LimitError, match="nodes"):
        text("nodes", allowed + 1)
    with tc.limits(nodes=2 * allowed):
        text("nodes", allowed + 1)
        with pytest.raises(tc.LimitError, match="nodes"):
            text("nodes", allowed)


def test_what_is_spent_inside_is_spent_around() -> None:
    with tc.limits(nodes=100):
        with tc.limits(nodes=90):
            spend("nodes", 80)
        spend("nodes", 20)
        with pytest.raises(tc.LimitError, match="more than 100 "):
            spend("nodes", 1)
    with tc.limits(nodes=10), tc.limits(nodes=math.inf), pytest.raises(tc.LimitError, match="10 "):
        spend("nodes", 11)
    spend("nodes", 10**9)


def test_sizes_are_not_added_up() -> None:
    with tc.limits(digits=20, steps=5):
        for _ in range(10):
            within("digits", 20)
        with tc.limits(digits=30), pytest.raises(tc.LimitError, match="more than 20 "):
            within("digits", 25)
    within("digits", LIMITS["digits"].python)
    with pytest.raises(tc.LimitError):
        within("digits", LIMITS["digits"].python + 1)


def test_limits_hold_in_their_thread() -> None:
    found: list[Expr] = []
    with tc.limits(nodes=10):
        other = threading.Thread(target=lambda: found.append(chain(100)))
        other.start()
        other.join()
    assert found[0] is chain(100)


def test_values_of_limits_are_checked() -> None:
    for value, kind in (
        (-1, ValueError),
        (math.nan, ValueError),
        ("3", TypeError),
        (True, TypeError),
    ):
        with pytest.raises(kind, match="nodes="), tc.limits(nodes=value):
            pass
    with pytest.raises(TypeError, match="node"), tc.limits(node=3):  # type: ignore[call-arg]
        pass


def test_errors_are_of_one_family() -> None:
    assert issubclass(tc.LimitError, tc.Error)
    assert issubclass(SystemLimitError, tc.LimitError)
    error = tc.LimitError("too many", "nodes")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.limit) == (tc.LimitError, "too many", "nodes")


def test_the_command_line_sets_limits(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["derive", "exp(exp(a))", "--wrt", "a", "--order", "6"]
    assert main([*command, "--limit", "nodes=100"]) == 2
    assert "more than 100 expression nodes" in capsys.readouterr().err
    assert main([*command, "--limit", "nodes=1e5", "--limit", "seconds=60"]) == 0
    with pytest.raises(SystemExit):
        main([*command, "--limit", "node=1"])
    assert "nodes, steps, seconds" in capsys.readouterr().err
