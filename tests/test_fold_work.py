"""How the work of making loops grows: with their bodies, not with bodies times states."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import tcalc as tc
from tcalc.rules import strategy


def chain(layers: int) -> tc.Expr:
    """Layers, each of which reads what the one before has become: a state's expression holds it."""
    w, x = tc.var("w", (layers, "k")), tc.var("x", ("n", "k"))

    def step(states: tuple[tc.Expr, ...], t: Any) -> tuple[tc.Expr, ...]:
        above, after = x[t], []
        for i, s in enumerate(states):
            above = tc.tanh(w[i] * s + above)
            after.append(above)
        return tuple(after)

    last = tc.fold(step, tuple([tc.zeros("k") for _ in range(layers)]), "n")
    return tc.sum(last[-1])


@pytest.fixture
def visited(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many nodes rules are tried on, as one number in a list."""
    found, rewritten = [0], strategy.rewritten

    def counted(roots: Any, change: Any, *more: Any) -> Any:
        def counting(new: Any, old: Any) -> Any:
            found[0] += 1
            return change(new, old)

        return rewritten(roots, counting, *more)

    monkeypatch.setattr(strategy, "rewritten", counted)
    return found


def test_shared_parts_of_states_are_simplified_once(visited: list[int]) -> None:
    counts = []
    for layers in (4, 16):
        visited[0] = 0
        tc.compile(tc.grad(chain(layers), "w"), backend="c").plan_for(n=8, k=3)
        counts.append(visited[0])
    assert counts[1] <= 6 * counts[0]  # the graph has four times the nodes


def test_rules_are_tried_once_on_what_none_of_them_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second pass looks at what the first one made."""
    x = tc.var("x", "n")
    e = tc.sum(tc.log(tc.exp(x)))
    for k in range(20):
        e = e + tc.sin(k * x[0] + tc.cos(x) @ x)
    tried: list[tuple[str, tc.Expr]] = []
    monkeypatch.setattr(
        strategy.Rule,
        "try_on",
        lambda rule, node, held=strategy.Rule.try_on: (
            tried.append((rule.name, node)) or held(rule, node)
        ),
    )
    fired: Counter[str] = Counter()
    kept = [e, tc.simplify(e, fired)]
    assert fired
    assert len(kept) == 2
    assert len(tried) == len({(name, id(node)) for name, node in tried})
