"""Functions that are traced again: Python runs, and what it asks for is found instead of built."""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray

import tcalc as tc
import tcalc.numpy as tnp
from tcalc.graph import arraylike
from tcalc.graph.retracing import Retrace

jax.config.update("jax_enable_x64", True)
jnp: Any = jax.numpy
Array = NDArray[np.float64]
RNG = np.random.default_rng(0)
X, y, w = RNG.normal(size=(8, 3)), RNG.normal(size=8), RNG.normal(size=3)
SEQ, U = RNG.normal(size=(6, 3)), RNG.normal(size=(3, 3)) / 3


def logistic(xp: Any, a: Any) -> Any:
    return xp.sum(xp.log(1 + xp.exp(-y * (X @ a))))


def mixture(xp: Any, a: Any) -> Any:
    distances = xp.sum((X[:, None, :] - SEQ[None] * a) ** 2, axis=2)
    top = xp.max(-distances, axis=1)
    return xp.sum(xp.log(xp.sum(xp.exp(-distances - top[:, None]), axis=1)) + top)


def recurrent(xp: Any, a: Any) -> Any:
    h = a * 0.5
    for row in SEQ:
        h = xp.tanh(U @ h + row)
    return xp.sum(h * h)


def reshaped(xp: Any, a: Any) -> Any:
    b = xp.concatenate((a, w)).reshape(2, 3).T
    return xp.sum(xp.where(b > 0, b, -2 * b)[1:, ::-1] ** 2) + xp.linalg.norm(b) + a[0] ** 3


MODELS = [logistic, mixture, recurrent, reshaped]


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Operations on expressions that are not found, by name."""
    counts: Counter[str] = Counter()
    for name, operation in list(arraylike.surface.items()):

        def counted(*args: Any, name: str = name, operation: Any = operation, **more: Any) -> Any:
            counts[name] += 1
            return operation(*args, **more)

        monkeypatch.setitem(arraylike.surface, name, counted)
    return counts


@pytest.mark.parametrize("model", MODELS)
def test_what_was_built_is_found(model: Callable[..., Any], built: Counter[str]) -> None:
    g = tc.grad(lambda a: model(np, a))
    for k in range(3):
        at = w + k / 8
        wanted = jax.grad(lambda a: model(jnp, a))(at)
        built.clear()
        np.testing.assert_allclose(g(at), wanted, rtol=1e-10, atol=1e-12)
        assert (sum(built.values()) > 0) == (k == 0)


def oscillators(xp: Any, p: Any) -> Any:
    """Steps of which each puts an array together."""
    x = xp.array([1.0, 0.5, -0.2])
    for _ in range(5):
        x = x + 0.1 * xp.array([p[0] * (x[1] - x[0]), x[0] * (p[1] - x[2]), x[0] * x[1] - p[2]])
    return xp.sum(xp.stack([x, p]) ** 2)


def test_functions_of_the_namespace_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from tcalc.numpy import namespace

    names: list[str] = []

    def counted(key: str, *rest: Any) -> Any:
        names.append(key)
        return translated(key, *rest)

    translated = namespace.translated
    monkeypatch.setattr(namespace, "translated", counted)
    g = tc.grad(lambda p: oscillators(tnp, p))
    for k in range(3):
        at = w + k / 8
        np.testing.assert_allclose(g(at), jax.grad(lambda p: oscillators(jnp, p))(at), rtol=1e-10)
        assert (len(names) > 0) == (k == 0)
        names.clear()


def test_functions_go_over_to_c_as_expressions_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TCALC_BACKEND", raising=False)
    g = tc.grad(lambda a: logistic(np, a))
    found = [g(w), g(w)]
    assert tc.wait_for_compiler(60)
    found += [g(w), g(w)]
    (traced,) = g._kept.values()
    assert traced.compiled._engine.entries
    for a in found:
        np.testing.assert_allclose(a, found[0], rtol=1e-13)


def test_only_what_changes_is_built(built: Counter[str]) -> None:
    held = {"scale": 2.0}
    g = tc.grad(lambda a: np.sum(np.sin(a) * np.exp(a)) * held["scale"])
    g(w)
    before = built["array_ufunc"], built["array_function"]
    built.clear()
    held["scale"] = 3.0
    np.testing.assert_allclose(g(w), 3 * np.exp(w) * (np.sin(w) + np.cos(w)))
    assert built == {"multiply": 1}
    assert min(before) > 0


#: Equal numbers that are not the same, one after the other.
NUMBERS = [0.0, -0.0, 1, True, 1.0, np.float64(1), np.int64(1), math.nan, 2, 2.0, math.inf, False]


@pytest.mark.parametrize("turn", [1, -1])
def test_numbers_are_told_apart(turn: int) -> None:
    held: list[Any] = [None]

    def f(a: Any) -> Any:
        return tc.where(a > 0, np.arctan2(held[0] * 1.0, -a), a * held[0])

    again = tc.vmap(f)
    for number in NUMBERS[::turn]:
        held[0] = number
        for at in (w, np.zeros(3)):
            found, fresh = again(at), tc.vmap(f)(at)
            np.testing.assert_array_equal(found, fresh)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(fresh))
            with np.errstate(invalid="ignore"):
                wanted = np.where(at > 0, np.arctan2(number * 1.0, -at), at * number)
            np.testing.assert_array_equal(found, wanted)


def test_captured_arrays_are_those_of_the_call() -> None:
    held = {"X": X.copy(), "y": y.copy()}
    g = tc.grad(lambda a: np.sum((held["X"] @ a - held["y"]) ** 2))

    def check() -> None:
        residual = held["X"] @ w - held["y"]
        np.testing.assert_allclose(g(w), 2 * held["X"].T @ residual, rtol=1e-12)

    check()
    held["X"] *= 2  # in place
    check()
    held["y"] = np.ones(8)
    check()
    held["X"], held["y"] = X[:5], y[:5]
    check()
    held["X"] = X[:5].astype(np.float32).astype(float)
    check()
    held["y"] = held["X"] @ w
    check()


def test_arrays_that_are_lists_or_integers_or_conditions() -> None:
    held: dict[str, Any] = {}

    def f(a: Any) -> Any:
        picked = a[held["places"]] * held["list"]
        return np.sum(np.where(held["mask"], picked, 0) ** held["power"])

    g = tc.grad(f)
    for places, numbers, mask, power in (
        ([0, 2], [1.0, 2.0], [True, False], 2), ([1, 1], [1.0, 2.0], [True, True], 2),
        ([1, 1], [3.0, 2.0], [False, True], 3), ([0, 2], [1.0, 2.0], [True, False], 2.5),
    ):  # fmt: skip
        held.update(places=np.array(places), list=numbers, mask=np.array(mask), power=power)
        wanted = jax.grad(
            lambda a: jnp.sum(
                jnp.where(held["mask"], a[held["places"]] * jnp.array(held["list"]), 0)
                ** held["power"]
            )
        )(abs(w))
        np.testing.assert_allclose(g(abs(w)), wanted, rtol=1e-12)


PLACES, SEEN = np.array([[0, 2], [1, 2], [2, 0]]), np.array([0, 3, 0])


def picked(xp: Any, a: Any) -> Any:
    ends = a[PLACES[:, 0]] - a[PLACES[:, 1]]  # views, new ones at every call
    again = a[PLACES[:, 0]] + a[np.array([2, 1])][0]
    where = xp.where(SEEN == 0, xp.exp(a), 2 * a) * np.arange(3)
    return xp.sum(ends**2 * again) + xp.sum(where) + a[xp.array([1, 1])] @ a[:2]


def test_indices_and_masks_are_found_by_their_entries(built: Counter[str]) -> None:
    g = tc.grad(lambda a: picked(np, a))
    for k in range(3):
        at = w + k / 8
        built.clear()
        np.testing.assert_allclose(g(at), jax.grad(lambda a: picked(jnp, a))(at), rtol=1e-12)
        assert (sum(built.values()) > 0) == (k == 0)


def test_entries_that_change_are_told() -> None:
    """Of two index arrays at places that are swapped, changed in place, or one for both."""
    one, two, mask = np.array([0, 1]), np.array([2, 1]), np.array([True, False])
    held = {"one": one, "two": two, "mask": mask}

    def f(a: Any) -> Any:
        return np.sum(np.where(held["mask"], a[held["one"]] * 2, a[held["two"]] ** 2))

    g = tc.grad(f)

    def check() -> None:
        wanted = np.zeros(3)
        first, second, flags = held["one"], held["two"], held["mask"]
        np.add.at(wanted, first, np.where(flags, 2, 0))
        np.add.at(wanted, second, np.where(flags, 0, 2 * w[second]))
        for _ in range(2):
            np.testing.assert_allclose(g(w), wanted, rtol=1e-12)

    check()
    held["one"], held["two"] = two, one
    check()
    held["two"] = two
    check()
    two[0] = 1
    check()
    mask[:] = [False, True]
    held["one"] = np.array([1, 1], np.int32)
    check()
    held["one"], held["two"] = one, one.copy()
    check()


def test_indices_that_are_kept_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcalc.graph.retracing.BYTES", 1)
    monkeypatch.setattr("tcalc.graph.retracing.MOST", 1000)
    places = np.zeros(20, int)
    g = tc.grad(lambda a: np.sum(a[places]))
    for k in range(60):
        places[:] = k % 3
        places[0] = k // 20
        np.testing.assert_array_equal(g(w), np.bincount(places, minlength=3))
        assert g._retrace._bytes <= 1000 + 2 * places.nbytes


def test_nothing_piles_up() -> None:
    def f(a: Any) -> Any:
        moved = tc.fold(lambda s, i: tc.tanh(s * a[i]) + tc.const(w)[i], 0.3, 3)
        rows = tc.build(3, lambda i: a[i] * np.sum(a * w))
        return moved + np.sum(rows) + tc.grad(lambda b: np.sum(b * b * a))(a) @ w

    g = tc.grad(f)
    sizes = []
    for _ in range(4):
        g(w)
        gc.collect()
        sizes.append((len(g._retrace._known), len(g._kept)))
    assert sizes[1:] == sizes[:-1]


def test_operations_that_are_kept_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tcalc.graph.retracing.MOST", 10)
    held = [0.0]
    g = tc.grad(lambda a: np.sum(np.exp(a * held[0]) * a))
    for k in range(20):
        held[0] = float(k)
        np.testing.assert_allclose(g(w), np.exp(k * w) * (1 + k * w))
        assert max(len(g._retrace._known), len(g._retrace._past)) <= 10 + 4


def test_long_traces_are_found_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Though one of them has more operations than are kept of others."""
    monkeypatch.setattr("tcalc.graph.retracing.MOST", 10)
    kept, keep = [], Retrace._keep

    def counted(self: Retrace, *args: Any) -> None:
        kept.append(1)
        keep(self, *args)

    monkeypatch.setattr(Retrace, "_keep", counted)

    def f(a: Any) -> Any:
        for k in range(20):
            a = np.sin(a) * np.exp(-a * k)
        return np.sum(a)

    g = tc.grad(f)
    counts = []
    for _ in range(4):
        g(w)
        counts.append(len(kept))
    assert counts[0] > 40
    assert set(counts) == {counts[0]}


def test_operations_are_kept_that_read_no_other_variables() -> None:
    """Those of all the operands' variables too; what reads another one is asked again."""
    x, z = tc.var("x", 3), tc.var("z", 3)
    e = tc.sin(tc.exp(tc.cos(x)))
    for read, times in ((x, 1), (z, 2)):
        asked = []

        def operation(e: Any, read: Any = read, asked: list[Any] = asked) -> Any:
            asked.append(e)
            return e + read

        kept = Retrace()
        assert kept.result(operation, (e,), {}) is kept.result(operation, (e,), {})
        assert len(asked) == times
