"""Long chains, wide sharing, many layers, hash seeds, pickles and threads."""

from __future__ import annotations

import copy
import gc
import hashlib
import os
import pickle
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import tcalc as tc
from tcalc.backends.c.program import MOST, bind
from tcalc.calculus import deep_expressions
from tcalc.graph.nodes import Expr, postorder
from tcalc.graph.normal import bare
from tcalc.plan.steps import Step, TiledLoop, Unit
from tcalc.rules.strategy import Rule, simplify
from tests.fuzz import at_most

ROOT = Path(__file__).resolve().parent.parent
LONG = 100_000


def chain(kind: str, x: Expr, length: int) -> Expr:
    """A chain of one operation per step that no rule shortens."""
    e = x
    for k in range(length):
        if kind == "sin":
            e = tc.sin(e)
        elif kind == "sum":
            e = tc.sin(e) if k % 2 else e + tc.var(f"c{k % 7}")
        else:
            e = tc.sin(e) if k % 2 else e * tc.var(f"c{k % 7}")
    return e


@pytest.mark.parametrize("kind", ["product", "sin", "sum"])
def test_a_long_chain(kind: str) -> None:
    """Built, differentiated and evaluated at the default recursion limit."""
    x, limit, length = tc.var("x"), sys.getrecursionlimit(), LONG
    e = chain(kind, x, length)
    gradient = tc.grad(e, x, mode="reverse")
    assert len(postorder([gradient])) <= 5 * length + 100
    data = {"x": 0.3, **{f"c{k}": 0.2 + 0.1 * k for k in range(7)}}
    value, slope = 0.3, 1.0
    for k in range(length):
        if kind == "sin" or k % 2:
            value, slope = np.sin(value), slope * np.cos(value)
        elif kind == "sum":
            value += data[f"c{k % 7}"]
        else:
            value, slope = value * data[f"c{k % 7}"], slope * data[f"c{k % 7}"]
    assert e(**data) == pytest.approx(value, rel=1e-9)
    assert gradient(**data) == pytest.approx(slope, rel=1e-7, abs=1e-300)
    assert sys.getrecursionlimit() == limit


def test_a_long_chain_is_written() -> None:
    """In every language, at the default recursion limit, in a length that grows with the chain."""
    limit = sys.getrecursionlimit()
    assert LONG < len(str(chain("sin", tc.var("x"), LONG))) < 12 * LONG
    e = chain("sin", tc.var("x"), LONG // 10)
    for write in (tc.to_latex, tc.to_index, tc.to_einsum, tc.to_code):
        assert LONG // 10 < len(write(e)) < 2 * LONG
    assert sys.getrecursionlimit() == limit


def test_functions_of_c_walk_their_plan_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: what each asks of the whole plan is found once."""
    e: Expr = tc.var("x")
    for k in range(4 * MOST):
        e = tc.sin(e) + tc.var(f"v{k}")
    plan = tc.compile(e).plan
    walked, texts = Counter[str](), list[str]()

    def steps_of(unit: Unit) -> tuple[Step, ...]:
        walked["units"] += 1
        return unit.steps if isinstance(unit, TiledLoop) else (unit,)

    def functions(written: list[str], *_: object) -> list[None]:
        texts.extend(written)
        return [None] * len(written)

    monkeypatch.setattr("tcalc.plan.steps.steps_of", steps_of)
    monkeypatch.setattr("tcalc.backends.c.together.functions", functions)
    (value,) = bind(plan, np.dtype(float))([np.array(0.5)] * len(plan.inputs))
    expected = 0.5
    for _ in range(4 * MOST):
        expected = np.sin(expected) + 0.5
    assert value == pytest.approx(expected, rel=1e-12)
    assert len(texts) >= 8
    assert walked["units"] <= len(plan.units)


def test_what_rules_make_of_a_root_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where that is another node, which it is at every step of a chain."""
    e: Expr = tc.exp(tc.log(tc.exp(tc.var("x"))))
    for k in range(100):
        e = tc.cos(e) * tc.var(f"v{k}")
    first, tried = simplify(e), list[Expr]()
    monkeypatch.setattr(Rule, "try_on", lambda _, node: tried.append(node))
    assert first is not e
    assert simplify(e) is first
    assert simplify(first) is first
    assert not tried
    simplify(e, Counter())  # who counts what fires sees it fire
    assert tried


def test_a_chain_without_loops_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """When it is derived and when it is compiled, as one that has some."""
    looked: list[int] = []

    def look(roots: Sequence[Expr]) -> list[Expr]:
        looked.append(len(roots))
        return list(roots)

    monkeypatch.setattr(deep_expressions, "rolls", [look])
    x = tc.var("x")
    e: Expr = x
    for k in range(deep_expressions.DEEP):
        e = tc.sin(e) + tc.var(f"v{k}")
    key = (id(e),)
    tc.grad(e, x)
    tc.compile(e)
    assert looked == [1]
    assert key in deep_expressions._known
    del e
    gc.collect()
    assert key not in deep_expressions._known


def test_rules_of_sums_are_tried_where_their_terms_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on every sum of a chain."""
    x, y = tc.var("x"), tc.var("y")
    tried: list[str] = []
    monkeypatch.setattr(Rule, "try_on", lambda rule, _: tried.append(rule.name))
    simplify(tc.sin(x) + y)
    assert not {"pythagoras", "one-minus-sigmoid", "sigmoid-difference"}.intersection(tried)
    simplify(tc.sigmoid(x) - tc.sigmoid(-x))
    simplify(tc.sin(x) ** 2 + tc.cos(x) ** 2)
    simplify(1 - tc.sigmoid(x))
    assert {"pythagoras", "one-minus-sigmoid", "sigmoid-difference"} <= set(tried)


@pytest.mark.parametrize("mode", ["forward", "cross-country"])
def test_other_modes_on_a_long_chain(mode: str) -> None:
    x = tc.var("x")
    e = chain("sin", x, 10_000)
    reverse = tc.grad(e, x, mode="reverse")(x=0.3)
    assert tc.grad(e, x, mode=mode)(x=0.3) == pytest.approx(reverse, rel=1e-9)


def test_swelling_is_bounded() -> None:
    """e <- e sin(e), twenty times: at most 500 nodes, and its gradient too."""
    x = tc.var("x")
    e: Expr = x
    for _ in range(20):
        e = e * tc.sin(e)
    assert len(postorder([e])) <= 500
    for mode in ("forward", "reverse", "cross-country"):
        gradient = tc.grad(e, x, mode=mode)
        assert len(postorder([bare(gradient)])) <= 500
        value, slope = 1.1, 1.0
        for _ in range(20):
            value, slope = value * np.sin(value), slope * (np.sin(value) + value * np.cos(value))
        assert gradient(x=1.1) == pytest.approx(slope, rel=1e-9)


def _swollen(e: Expr, times: int = 28) -> Expr:
    for _ in range(times):
        e = e * tc.sin(e)
    return e


def _derived(order: int, looped: bool) -> tuple[Expr, dict[str, np.ndarray]]:
    """A derivative with 2^28 paths through it: walks that forget where they were do not end."""
    x = tc.var("x", (2,))
    e = tc.fold(lambda s, _: _swollen(s * x), tc.ones(2), 3) if looped else _swollen(x)
    return tc.derivative(tc.sum(e), x, order=order), {"x": np.array([0.3, 0.7])}


@pytest.mark.parametrize("looped", [False, True])
def test_what_is_read_twice_is_looked_at_once(looped: bool) -> None:
    found, point = _derived(1, looped)
    with at_most(100):
        value = tc.compile(found, backend="numpy")(point)
        np.testing.assert_allclose(tc.compile(found, backend="c")(point), value, rtol=1e-9)
        held = tc.compile(found, structured=True)(point)
        np.testing.assert_allclose(held.todense(), value, rtol=1e-9)
        for language in ("numpy", "c"):
            assert tc.to_code(found, language)
        assert found.text(where=True)


@pytest.mark.parametrize("looped", [False, True])
def test_what_second_derivatives_read_twice_is_looked_at_once(looped: bool) -> None:
    found, point = _derived(2, looped)
    with at_most(100):
        value = tc.compile(found, backend="numpy")(point)
    assert value.shape == (2, 2)
    if not looped:
        np.testing.assert_array_equal(value, np.diag(np.diagonal(value)))


def net_hessian_nodes(layers: int) -> int:
    x = tc.var("x", "n")
    h: Expr = x
    for k in range(layers):
        h = tc.relu(tc.var(f"W{k}", ("n", "n")) @ h)
    f = tc.logsumexp(h)
    return len(postorder([bare(tc.hessian(f, x, mode="forward"))]))


def test_a_net_hessian_is_linear_in_its_layers() -> None:
    ten, twenty, hundred = map(net_hessian_nodes, (10, 20, 100))
    assert hundred - twenty == pytest.approx(8 * (twenty - ten), rel=0.1)


# --- the same everywhere --------------------------------------------------------------------------

SCRIPT = """
import hashlib
import tcalc as tc
from tcalc.graph.nodes import postorder

X, y, w = tc.var("X", ("m", "n")), tc.var("y", "m"), tc.var("w", "n")
A, B = tc.var("A", ("n", "n")), tc.var("B", ("n", "n"))
found = []
for f, x in [
    (tc.sum(tc.log(1 + tc.exp(-y * (X @ w)))), w),
    (tc.sum((X @ A @ B - 1) ** 2 * tc.sin(X)), A),
    (tc.logsumexp(A @ w) * tc.norm(B @ w) + tc.logdet(A @ B), w),
]:
    for mode in ("forward", "reverse", "cross-country", "auto"):
        d = tc.derivative(f, x, 2, mode)
        found.append(d.order)
        for node in postorder([d]):
            found.append((type(node).__name__, node.shape, getattr(node, "labels", ())))
print(hashlib.sha256(repr(found).encode()).hexdigest())
"""

#: Put before the script: all keys of the table of nodes have one hash, and only equality tells them
#: apart.
ONE_HASH = """
from tcalc.graph import nodes

class Key(tuple):
    def __hash__(self):
        return 1

class Rows(dict):
    def get(self, key):
        return super().get(Key(key))

    def setdefault(self, key, value):
        return super().setdefault(Key(key), value)

    def __setitem__(self, key, value):
        super().__setitem__(Key(key), value)

    def __delitem__(self, key):
        super().__delitem__(Key(key))

table = nodes._table
old, table.rows = table.rows, Rows()
table.find = table.rows.get
for key, held in old.items():
    table.put(key, held())
assert len({hash(key) for key in table.rows}) == 1 < len(table.rows)
"""


def test_results_do_not_depend_on_hashes() -> None:
    """Those of 20 seeds, and one of all nodes."""

    def digest(seed: int, before: str = "") -> str:
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", before + SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    with ThreadPoolExecutor(2) as pool:
        found = {*pool.map(digest, range(20)), digest(0, ONE_HASH)}
    assert len(found) == 1


def test_nodes_do_not_depend_on_the_order_of_construction() -> None:
    """The same function of variables that were made in another order."""

    def build(flip: bool) -> str:
        names = ["p", "q", "r", "s"]
        made = {name: tc.var(name, "n") for name in (reversed(names) if flip else names)}
        terms = [tc.sin(made[a] * made[b]) for a in names for b in names]
        total = sum(terms[1:], terms[0])
        gradient = tc.grad(tc.sum(total), made["p"])
        rows = [(n.order, n.shape) for n in postorder([gradient])]
        return hashlib.sha256(repr(rows).encode()).hexdigest()

    first = build(False)
    assert build(True) == first


# --- pickles and copies ---------------------------------------------------------------------------


def test_deep_graphs_pickle() -> None:
    x = tc.var("x", "n")
    e = tc.sum(chain("product", x, 20_000))
    assert pickle.loads(pickle.dumps(e)) is e
    d = tc.grad(e, x)
    again = pickle.loads(pickle.dumps(d))
    assert again is d
    assert again.of is d.of
    assert copy.copy(e) is e
    assert copy.deepcopy({"e": [e]})["e"][0] is e


def test_a_pickle_from_another_process_is_the_same_node() -> None:
    code = (
        "import pickle, sys, tcalc as tc\n"
        "X, w = tc.var('X', ('m', 'n')), tc.var('w', 'n')\n"
        "sys.stdout.buffer.write(pickle.dumps(tc.hessian(tc.sum(tc.exp(X @ w)), w)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, check=True
    )
    X, w = tc.var("X", ("m", "n")), tc.var("w", "n")
    assert pickle.loads(done.stdout) is tc.hessian(tc.sum(tc.exp(X @ w)), w)


# --- threads --------------------------------------------------------------------------------------


def test_threads_build_one_node_and_compute_the_same_bits() -> None:
    """32 threads build, differentiate and evaluate the same and different expressions at once."""
    barrier = threading.Barrier(32)
    data = np.random.default_rng(0).normal(size=(30, 4))

    def work(k: int) -> tuple[Expr, bytes]:
        barrier.wait()
        X, v = tc.var("X", ("m", "n")), tc.var("v", "n")
        for j in range(3):
            tc.grad(tc.sum(tc.cos(X @ v) ** (2 + (k + j) % 5)), v)
        H = tc.hessian(tc.sum(tc.log(1 + tc.exp(X @ v * tc.sin(X @ v)))), v)
        return H, H(X=data, v=data[0]).tobytes()

    with ThreadPoolExecutor(32) as pool:
        results = list(pool.map(work, range(32)))
    assert len({id(H) for H, _ in results}) == 1
    assert len({bits for _, bits in results}) == 1


def test_what_can_be_done_without_leaves_steps_for_the_rest() -> None:
    """A search for a shorter form that would take all steps is given up, and is not remembered."""
    a, c, z = tc.var("a"), tc.var("c"), tc.var("z")
    second = tc.derivative(tc.log(tc.sigmoid(a - z) - tc.sigmoid(c - z)), z, order=2)
    with tc.limits(steps=200_000):
        limited = str(second)
    text = str(second)
    assert len(text) < len(limited)
    point = {"a": 1.5, "c": -0.5, "z": 0.25}
    for written in (limited, text):
        found = tc.parse(written, a=(), c=(), z=())(point)
        np.testing.assert_allclose(found, second(point), rtol=1e-12)
