"""Plans against np.einsum: random products and sums, paths, memory, sharing, printing."""

from __future__ import annotations

import itertools
import random
from functools import reduce

import numpy as np
import pytest

from tcalc.contraction.common_subproducts import ContractionOperands
from tcalc.contraction.paths import EntryCounts, contraction_path, pair_time
from tcalc.graph.applications import apply
from tcalc.graph.extents import Coef
from tcalc.graph.nodes import Add, Einsum, Var, postorder
from tcalc.graph.normal import add, einsum, scale
from tcalc.graph.operators import operator_named
from tcalc.graph.variables import var
from tcalc.plan.lowering.make import cost, make_plan
from tcalc.run.compile import compile
from tcalc.support.machine import NOMINAL_MACHINE
from tcalc.support.namespaces import NUMPY
from tests.shared import plan_for_machine

EXTENTS = (0, 1, 2, 3, 5)


def dense(arrays, words, out, extents, coef=1.0):
    """The product by np.einsum, broadcasts by ones and unit tensors by assignment."""
    labels = list(dict.fromkeys(out))
    operands = []
    for array, word in zip(arrays, words, strict=True):
        operands += [array, list(word)]
    for label, extent in extents.items():
        if not any(label in word for word in words):
            operands += [np.ones(extent), [label]]
    core = np.einsum(*operands, labels) if operands else np.float64(1)
    result = np.zeros([extents[label] for label in out])
    grid = np.indices([extents[label] for label in labels])
    result[tuple([grid[labels.index(label)] for label in out])] = coef * core
    return result


def random_product(rng, number, dtype=np.float64, operands=5):
    """A random product, its arrays and its value: diagonals, broadcasts, units, all extents."""
    n_labels = rng.randint(1, 5)
    extents = {label: rng.choice(EXTENTS) for label in range(n_labels)}
    ops, words, values = [], [], {}
    pool = []
    for k in range(rng.randint(0, operands)):
        if pool and rng.random() < 0.3:
            op, word = rng.choice(pool)
            options = [
                [other for other in extents if extents[other] == extents[label]] for label in word
            ]
            word = tuple([rng.choice(o) for o in options])
        else:
            word = tuple(rng.choices(range(n_labels), k=rng.randint(0, 3)))
            op = var(f"a{number}_{k}", [extents[label] for label in word])
            values[op.name] = np.random.default_rng(rng.randrange(2**32)).standard_normal(op.shape)
            values[op.name] = values[op.name].astype(dtype)
            pool.append((op, word))
        ops.append(op)
        words.append(word)
    out = tuple(rng.choices(range(n_labels), k=rng.randint(0, 4)))
    coef = rng.choice([1, 1, -1, 2, 0.5, -3])
    used = {label: extents[label] for word in [*words, out] for label in word}
    node = einsum(ops, words, out, Coef(coef), used)
    arrays = [values[op.name].astype(np.float64) for op in ops]
    return node, values, dense(arrays, words, out, used, coef)


def assert_close(found, expected, tolerance=1e-11):
    size = np.abs(expected).max(initial=1)
    assert np.shape(found) == expected.shape
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * size)


@pytest.mark.parametrize("seed", range(40))
def test_random_products(seed):
    rng = random.Random(seed)
    for number in range(15):
        node, values, expected = random_product(rng, number)
        assert_close(compile(node)(values), expected)


@pytest.mark.parametrize("seed", range(10))
def test_float32_is_kept(seed):
    rng = random.Random(1000 + seed)
    for number in range(10):
        node, values, expected = random_product(rng, number, np.float32)
        found = compile(node)(values)
        if values and node.variables:
            assert found.dtype == np.float32
        assert_close(found, expected, 1e-4)


@pytest.mark.parametrize("seed", range(20))
def test_random_sums_of_products(seed):
    rng = random.Random(2000 + seed)
    for _ in range(5):
        shape = [rng.choice(EXTENTS)] * rng.randint(0, 3)
        total, terms, values = np.zeros(shape), [], {}
        for k in range(rng.randint(1, 5)):
            word = tuple(rng.sample(range(len(shape)), rng.randint(0, len(shape))))
            out = tuple([rng.choice(word) if word else 0 for _ in shape])
            if rng.random() < 0.6:
                out = tuple(range(len(shape)))
            v = var(f"b{k}", [shape[0] for _ in word])
            values[v.name] = np.random.default_rng(rng.randrange(2**32)).standard_normal(v.shape)
            coef = rng.choice([1, -1, 2, -0.5])
            used = dict.fromkeys({*word, *out}, shape[0] if shape else 0)
            terms.append(einsum([v], [word], out, Coef(coef), used))
            total = total + dense([values[v.name]], [word], out, used, coef)
        assert_close(compile(add(terms))(values), total)


def test_several_outputs_share_steps():
    A, B = var("A", ("n", "n")), var("B", ("n", "n"))
    AB = einsum([A, B], [(0, 1), (1, 2)], (0, 2))
    plan = make_plan([AB, scale(AB, Coef(2)), add([AB, A])], {"n": 10})
    assert [step.kind for step in plan.steps].count("dot") == 1


# --- whole graphs ---------------------------------------------------------------------------------


def interpreted(roots, values):
    """Every node on its own, all of it written out."""
    done = {}
    for node in postorder(roots):
        args = [done[id(a)] for a in node.args]
        if isinstance(node, Var):
            result = values[node.name].astype(np.float64)
        elif isinstance(node, Add):
            result = sum(args[1:], args[0])
        elif isinstance(node, Einsum):
            coef = node.coef.evaluate({})
            result = dense(args, node.labels, node.out, dict(enumerate(node.extents)), coef)
        else:
            result = np.asarray(node.op.kernels.compute(NUMPY, node.params, *args))
        done[id(node)] = result
    return [done[id(root)] for root in roots]


def random_graph(rng, size):
    """Products, sums and operators of earlier nodes, over few extents so that shapes meet."""
    extents = rng.sample(EXTENTS, 2) if rng.random() < 0.3 else rng.choice([(2, 3), (3, 5)])
    pool, values = [], {}
    for k in range(4):
        v = var(f"v{k}", rng.choices(extents, k=rng.choice([0, 1, 2, 2, 3])))
        values[v.name] = np.random.default_rng(rng.randrange(2**32)).uniform(-1, 1, v.shape)
        pool.append(v)
    for _ in range(size):
        kind = rng.random()
        e = rng.choice(pool)
        if kind < 0.3:
            op = operator_named(rng.choice(["sin", "tanh", "sigmoid", "softplus", "sign"]))
            new = apply(op, e)
        elif kind < 0.6:
            terms = [t for t in pool if t.shape == e.shape]
            coefs = [Coef(rng.choice([1, -1, 2, -3])) for _ in range(3)]
            new = add([scale(rng.choice(terms), coef) for coef in coefs])
        else:
            ops = [e, *rng.choices(pool, k=rng.randint(0, 2))]
            labels = {n: [2 * k, 2 * k + 1, 2 * k + 20] for k, n in enumerate(extents)}
            words = [tuple([rng.choice(labels[n]) for n in op.shape]) for op in ops]
            used = {}
            for op, word in zip(ops, words, strict=True):
                used.update(zip(word, op.shape, strict=True))
            out = rng.sample(sorted(used), min(len(used), rng.randint(0, 2)))
            if out and rng.random() < 0.2:
                out.append(out[0])
            new = einsum(ops, words, out, Coef(rng.choice([1, 1, -2])), used)
        if new.ndim <= 3:
            pool.append(new)
    return rng.sample(pool, min(len(pool), 4)) + pool[-2:], values


def laid_out(rng, array):
    """The same numbers with other strides."""
    kind = rng.randrange(4)
    if kind == 0 or not array.ndim:
        return array
    if kind == 1:
        return np.asfortranarray(array)
    if kind == 2:
        return np.repeat(array, 2, axis=-1)[..., ::2]
    return array[..., ::-1].copy()[..., ::-1]


@pytest.mark.parametrize("short", [2, 64])
@pytest.mark.parametrize("tile", [1, 4, None])
@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed, tile, short, monkeypatch):
    plan_for_machine(monkeypatch, short=short)
    if tile:
        plan_for_machine(monkeypatch, tile=tile, wide_tile=4 * tile, large=4, worth_choosing=0)
    rng = random.Random(seed)
    roots, values = random_graph(rng, rng.randint(3, 25))
    with np.errstate(all="ignore"):
        expected = interpreted(roots, values)
    function = compile(roots)
    half = dict(list(values.items())[:2])
    bound = compile(roots, data=half)
    rest = {name: v for name, v in values.items() if name not in half}
    for k in range(3):
        arrays = {name: laid_out(rng, v) for name, v in values.items()}
        for found in (function(arrays), bound(rest)):
            for one, right in zip(found, expected, strict=True):
                if np.isfinite(right).all() and np.abs(right).max(initial=0) < 1e6:
                    assert_close(one, right, 1e-10)
                if one.ndim:
                    one += k + 1


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_long_arrays_run_in_tiles(dtype):
    z, y, W = var("z", "n"), var("y", "n"), var("W", ("n", "k"))
    f = (y * z).sum() + sum_of_exp(y * z)
    rows = einsum([apply(operator_named("exp"), W), z], [(0, 1), (0,)], (0, 1))
    function = compile([f, apply(operator_named("tanh"), y * z), rows, rows.sum(0), rows.sum(1)])
    rng = np.random.default_rng(0)
    a, b = rng.random(100_003).astype(dtype), rng.random(100_003).astype(dtype)
    c = rng.random((100_003, 3)).astype(dtype)
    table = np.exp(c.astype(float)) * a[:, None]
    expected = [(a * b).sum(dtype=float) + np.exp(a * b).sum(dtype=float), np.tanh(a * b), table]
    expected += [table.sum(0), table.sum(1)]
    for found, right in zip(function(z=a, y=b, W=c), expected, strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, right, rtol=1e-12 if dtype is np.float64 else 1e-5)


def sum_of_exp(e):
    return apply(operator_named("exp"), e).sum()


# --- paths ----------------------------------------------------------------------------------------


def path_time(words, keep, extents, pairs):
    """Time of a path, recomputed with sets."""
    size = EntryCounts(extents).__getitem__
    bits = lambda labels: sum(1 << label for label in labels)  # noqa: E731
    held, alive, total = [set(w) for w in words], set(range(len(words))), 0.0
    for i, j in pairs:
        alive -= {i, j}
        needed = set(keep).union(*[held[k] for k in alive])
        result = (held[i] | held[j]) & needed
        total += pair_time(bits(held[i]), bits(held[j]), bits(result), size, NOMINAL_MACHINE)
        alive.add(len(held))
        held.append(result)
    return total


def all_paths(held, alive):
    if len(alive) == 1:
        yield ()
    for i, j in itertools.combinations(sorted(alive), 2):
        for rest in all_paths(held + 1, (alive - {i, j}) | {held}):
            yield ((i, j), *rest)


@pytest.mark.parametrize("seed", range(15))
def test_paths_are_optimal(seed):
    rng = random.Random(seed)
    n = rng.randint(3, 5)
    extents = tuple([rng.choice([2, 3, 7, 20, 100]) for _ in range(5)])
    words = [tuple(rng.sample(range(5), rng.randint(0, 3))) for _ in range(n)]
    count = {label: sum(label in w for w in words) for label in range(5)}
    keep = tuple([k for k, c in count.items() if c == 1 or (c and rng.random() < 0.3)])
    best = min(path_time(words, keep, extents, p) for p in all_paths(n, frozenset(range(n))))
    given = ContractionOperands(tuple(words), tuple(range(n)), ((),) * n)
    found = contraction_path(given, keep, extents).pairs
    assert path_time(words, keep, extents, found) == pytest.approx(best)


def test_products_that_are_there_take_no_time():
    words = ((0, 1), (1, 2), (2, 3), (3, 4))
    given = ContractionOperands(words, (0, 1, 2, 3), ((),) * 4)
    extents = (10, 40, 10, 40, 10)  # best as (01)(23), where nothing is there
    assert contraction_path(given, (0, 4), extents).pairs == ((0, 1), (2, 3), (4, 5))
    middle = contraction_path(given, (0, 4), extents, ((0b0110, 0b0010),))
    assert (1, 2) not in middle.pairs  # 40 x 40: not worth reading
    known = ((0b0110, 0b0010), (0b0111, 0b0110))
    path = contraction_path(given, (0, 4), extents, known)
    assert path.pairs == ((1, 2), (4, 0), (5, 3))
    whole = contraction_path(
        ContractionOperands(((0, 3), (3, 4)), (0, 1), ((),) * 2), (0, 4), extents
    )
    assert path.time == whole.time


def test_a_long_chain_of_matrices_and_a_vector_is_contracted_from_the_vector():
    words = (*[(k, k + 1) for k in range(40)], (40,))
    given = ContractionOperands(words, tuple(range(41)), ((),) * 41)
    pairs = contraction_path(given, (0,), (50,) * 41).pairs
    assert path_time(words, (0,), (50,) * 41, pairs) < 40 * 50 * 50 * 2


def test_long_nested_products_are_reordered_where_that_is_faster():
    matrices = [var(f"A{k}", ("n", "n")) for k in range(100)]
    chain = reduce(lambda x, y: einsum([x, y], [(0, 1), (1, 2)], (0, 2)), matrices)
    e = einsum([chain, var("v", "n")], [(0, 1), (1,)], (0,))
    assert cost(e, {"n": 100})[0] == 100 * 2 * 100**2
    assert cost(chain, {"n": 100})[0] == 99 * 2 * 100**3


def test_nested_products_that_nobody_shares_are_reordered():
    A, B, v = var("A", ("n", "n")), var("B", ("n", "n")), var("v", "n")
    AB = einsum([A, B], [(0, 1), (1, 2)], (0, 2))
    ABv = einsum([AB, v], [(0, 1), (1,)], (0,))
    assert cost(ABv, {"n": 100})[0] == 4 * 100**2


# --- cost, memory, text ---------------------------------------------------------------------------


def test_flops_count_multiply_and_add():
    A, B = var("A", ("m", "k")), var("B", ("k", "n"))
    AB = einsum([A, B], [(0, 1), (1, 2)], (0, 2))
    assert make_plan([AB], {"m": 3, "k": 5, "n": 7}).flops == 2 * 3 * 5 * 7
    assert cost(AB)[0] == 2 * 100**3


def test_peak_memory_of_a_chain_does_not_grow():
    x = var("x", "n")
    e, sin = x, operator_named("sin")
    for _ in range(50):
        e = apply(sin, e)
    assert cost(e, {"n": 1000})[1] == 8000


def test_deep_chain():
    x = var("x", "n")
    e, sin, cos = x, operator_named("sin"), operator_named("cos")
    for k in range(100_000):
        e = apply(cos if k % 2 else sin, e)
    expected = value = np.array([0.5, 1.0])
    for k in range(100_000):
        value = np.cos(value) if k % 2 else np.sin(value)
    assert_close(compile(e)(x=expected), value)


def test_peak_prediction_against_tracemalloc():
    import tracemalloc

    X, y, v = var("X", ("m", "n")), var("y", "m"), var("v", ("m", "n"))
    weighted = einsum([X, y, X], [(0, 1), (0,), (0, 2)], (1, 2))
    node = add([weighted, einsum([X, v], [(0, 1), (0, 2)], (1, 2))])
    arrays = {"X": np.ones((400, 150)), "y": -np.ones(400), "v": np.ones((400, 150))}
    function = compile(node)
    predicted = function.plan_for(X=(400, 150), y=(400,), v=(400, 150)).peak_bytes
    tracemalloc.start()
    function(arrays)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert predicted / 2 < peak < predicted * 2


def test_plan_is_readable():
    A, B = var("A", ("n", "n")), var("B", ("n", "n"))
    text = str(compile(einsum([A, B], [(0, 1), (1, 2)], (0, 2))).plan)
    assert "assuming n = 100" in text
    assert "= dot(A[ij], B[jk]) -> [ik]" in text
    assert "2e+06 operations" in text


def test_kronecker_products_are_written_once():
    A, B = var("A", ("n", "n")), var("B", ("n", "n"))
    plan = make_plan([einsum([A, B], [(0, 2), (1, 3)], (0, 1, 2, 3))], {"n": 10})
    kinds = [step.kind for step in plan.steps]
    assert kinds.count("multiply") == 1
    assert "copy" not in kinds
    assert plan.peak_bytes == 8 * 10**4
