"""Chains of many contractions: their order is exact, and no length breaks or hangs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.contraction import chains
from tcalc.contraction.chains import chain_of, chain_pairs
from tcalc.contraction.paths import path_of
from tcalc.support.machine import NOMINAL_MACHINE as MACHINE


def least_time(p: list[int]) -> float:
    """The time of the fastest order of a chain, by plain recursion over intervals."""
    n = len(p) - 1
    cost = {(i, i + 1): 0.0 for i in range(n)}
    for length in range(2, n + 1):
        for i in range(n - length + 1):
            j = i + length
            cost[i, j] = min(
                cost[i, k]
                + cost[k, j]
                + MACHINE.read * (p[i] * p[k] + p[k] * p[j])
                + MACHINE.write * p[i] * p[j]
                + p[i] * p[k] * p[j] / MACHINE.gemm
                for k in range(i + 1, j)
            )
    return cost[0, n]


def multiplications(p: list[float], pairs: list[tuple[int, int]]) -> float:
    ends = [(k, k + 1) for k in range(len(p) - 1)]
    total = 0.0
    for one, two in pairs:
        (low, middle), (same, high) = ends[one], ends[two]
        assert middle == same
        total += p[low] * p[middle] * p[high]
        ends.append((low, high))
    assert ends[-1] == (0, len(p) - 1)
    return total


def chain_words(p: list[int]) -> list[tuple[int, ...]]:
    return [(k, k + 1) for k in range(len(p) - 1)]


@pytest.mark.parametrize("seed", range(8))
def test_chains_have_the_fastest_order(seed: int) -> None:
    rng = random.Random(seed)
    p = [rng.randint(1, 40) for _ in range(rng.randint(10, 40))]
    words = chain_words(p)
    order = list(range(len(words)))
    rng.shuffle(order)
    names = rng.sample(range(1000), len(p))
    shuffled = [tuple([names[k] for k in words[w]][:: rng.choice((1, -1))]) for w in order]
    extents = {names[k]: extent for k, extent in enumerate(p)}
    found = path_of(shuffled, (names[0], names[-1]), extents)
    assert found.time == pytest.approx(least_time(p))


@pytest.mark.parametrize("seed", range(8))
def test_orders_of_very_long_chains_are_nearly_the_best(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(seed)
    p: list[float] = [rng.randint(1, 60) for _ in range(50)]
    chain = chains.Chain(list(range(len(p) - 1)), p)
    best = {(i, i + 1): 0.0 for i in range(len(p) - 1)}
    for length in range(2, len(p)):
        for i in range(len(p) - length):
            j = i + length
            best[i, j] = min(best[i, k] + best[k, j] + p[i] * p[k] * p[j] for k in range(i + 1, j))
    monkeypatch.setattr(chains, "EXACT_CHAIN", 2)
    found = multiplications(p, chain_pairs(chain, MACHINE))
    assert found <= 1.155 * best[0, len(p) - 1]


def test_what_is_a_chain() -> None:
    ones = dict.fromkeys(range(9), 2)
    assert chain_of([(0, 1), (1, 2), (2,)], (0,), ones)
    assert chain_of([(0, 1), (1, 2), (2, 0)], (), ones)  # a trace
    assert chain_of([(5, 0, 1), (1, 2, 6), (2, 6, 3, 4)], (5, 0, 3, 4), ones)
    assert not chain_of([(0, 1), (0, 2), (0, 3), (0, 4)], (), ones)  # one label in all
    assert not chain_of([(0, 1), (1, 2, 5), (2, 3)], (0, 3, 5), ones)  # kept in between
    assert not chain_of([(0, 1, 2), (1, 3), (2, 4), (0, 5)], (3, 4, 5), ones)  # a star
    assert not chain_of([(0, 1), (1, 2), (3, 4)], (0, 2, 3, 4), ones)  # two of them


def matrices(count: int, n: int) -> list[Any]:
    return [tc.var(f"A{k}", (n, n)) for k in range(count)]


def product(factors: list[Any]) -> Any:
    e = factors[0]
    for factor in factors[1:]:
        e = e @ factor
    return e


@pytest.mark.parametrize("count", [20, 100, 300, 1000])
def test_many_matrices_times_a_vector(count: int) -> None:
    n, x = 8, tc.var("x", 8)
    e = product(matrices(count, n)) @ x
    program = tc.compile(e)
    assert program.plan.flops == 2 * n * n * count
    rng = np.random.default_rng(0)
    values = {f"A{k}": rng.normal(size=(n, n)) / np.sqrt(n) for k in range(count)}
    expected = at = rng.normal(size=n)
    for k in reversed(range(count)):
        expected = values[f"A{k}"] @ expected
    np.testing.assert_allclose(program(**values, x=at), expected, rtol=1e-8, atol=1e-300)


def test_gradients_of_long_chains() -> None:
    n, count = 5, 60
    x, y = tc.var("x", n), tc.var("y", n)
    e = y @ (product(matrices(count, n)) @ x)
    g = tc.compile(tc.grad(e, x))
    assert g.plan.flops <= 2 * n * n * count
    rng = np.random.default_rng(0)
    values = {f"A{k}": rng.normal(size=(n, n)) for k in range(count)}
    expected = at = rng.normal(size=n)
    for k in range(count):
        expected = expected @ values[f"A{k}"]
    np.testing.assert_allclose(g(**values, y=at, x=at), expected, rtol=1e-9)


def test_traces_of_long_chains() -> None:
    n, count = 5, 40
    e = tc.trace(product(matrices(count, n)))
    rng = np.random.default_rng(0)
    values = {f"A{k}": rng.normal(size=(n, n)) for k in range(count)}
    expected = np.eye(n)
    for k in range(count):
        expected = expected @ values[f"A{k}"]
    np.testing.assert_allclose(e(**values), np.trace(expected), rtol=1e-9)


def test_three_thousand_matrices() -> None:
    n, count = 3, 3000
    e = product(matrices(count, n)) @ tc.var("x", n)
    assert tc.compile(e).plan.flops == 2 * n * n * count
