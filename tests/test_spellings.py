"""One model in several spellings: the same numbers, planned at the same cost."""

from __future__ import annotations

from math import prod
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from benchmarks import spellings
from benchmarks.problems import PROBLEMS, gp
from benchmarks.spelled import MODELS, processes
from tcalc.plan.lowering.make import make_plan
from tcalc.plan.lowering.memo import QUICK, Known
from tcalc.plan.lowering.orthonormal import orthonormal
from tcalc.plan.lowering.traces import traced
from tcalc.plan.steps import VIEW
from tcalc.rules.distances import by_differences
from tcalc.support.machine import NOMINAL_MACHINE

y, s = tc.var("y", "n"), tc.var("s")


@pytest.mark.parametrize("name", MODELS)
def test_all_spellings_of_a_model_cost_the_same_within_a_tenth(name: str) -> None:
    model = MODELS[name]
    spelled = [spellings.by_order(f, wrt) for f, wrt in model.spellings().values()]
    for order in zip(*spelled, strict=True) if model.function else [[e[-1] for e in spelled]]:
        flops = [tc.compile(e, backend="numpy").plan_for(n=model.n).flops for e in order]
        assert max(flops) < 1.1 * min(flops)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("order", [1, 2])
def test_derivatives_of_all_spellings_write_the_same_within_a_quarter(
    name: str, order: int
) -> None:
    """Parts of a vector are no products with arrays of zeros and ones."""
    model = MODELS[name]
    written = []
    for f, wrt in model.spellings().values():
        derivative = spellings.by_order(f, wrt)[order]
        plan = tc.compile(derivative, backend="c").plan_for(n=model.n)
        steps = [step for step in plan.steps if plan.origin[step.out] is not VIEW]
        written.append(sum([prod(step.shape) for step in steps]))
    assert max(written) < 1.25 * min(written)


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if model.function])
def test_all_spellings_have_the_derivatives_that_jax_finds(name: str) -> None:
    model, data = MODELS[name], MODELS[name].data(12)
    spelled, plain = model.spellings(), model.function
    assert plain is not None
    (_, first), *_ = spelled.values()
    parts = {v.name: data[v.name] for v in (first if isinstance(first, tuple) else (first,))}
    ends = np.cumsum([np.size(a) for a in parts.values()])

    def function(flat: Any) -> Any:
        pieces = zip(parts, jnp.split(flat, ends[:-1]), strict=True)
        return plain(jnp, data | {k: p.reshape(np.shape(parts[k])) for k, p in pieces})

    flat = np.concatenate([np.ravel(a) for a in parts.values()])
    wanted = function(flat), jax.grad(function)(flat), jax.hessian(function)(flat)
    for f, wrt in spelled.values():
        given = {k: a for k, a in data.items() if k in f.variables}
        value, gradient, hessian = [e(**given) for e in spellings.by_order(f, wrt)]
        slopes = gradient if isinstance(wrt, tuple) else (gradient,)
        pieces = np.concatenate([np.ravel(a) for a in slopes])
        found = value, pieces, spellings.flat(hessian, wrt, data)
        for one, two in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", processes())
def test_hessians_of_a_gaussian_process_are_the_experts(name: str) -> None:
    f, wrt = processes()[name]
    compiled, n = tc.compile(tc.hessian(f, wrt), backend="numpy"), 150
    assert spellings.products(compiled.plan_for(n=1000), 1000) < 5.2
    data = MODELS["gp"].data(n)
    found = compiled(**{k: a for k, a in data.items() if k in f.variables})
    apart = processes()["gram, apart"][1]
    wanted = spellings.flat(gp.hessian(data), apart, data)
    np.testing.assert_allclose(spellings.flat(found, wrt, data), wanted, rtol=1e-9, atol=1e-9)


#: How a vector of nine numbers is read: a matrix of two columns and three other numbers.
READ = {
    "apart": lambda v: (v[:6].reshape(3, 2), v[6:]),
    "turned": lambda v: (v[:6].reshape(2, 3).T, v[6:]),
    "twice": lambda v: (v[:6].reshape(3, 2) * (v[:6] @ v[:6]), v[6:]),
    "in two shapes": lambda v: (v[:6].reshape(3, 2) + v[:6].reshape(2, 3).T, v[6:]),
    "as a whole": lambda v: (v.reshape(3, 3)[:, :2], v.reshape(3, 3)[:, 2]),
    "as a whole and so": lambda v: (v.reshape(3, 3)[:, :2] * (v @ v), v.reshape(3, 3)[:, 2]),
    "behind a first axis": lambda v: (v.reshape(1, 9)[0, :6].reshape(3, 2), v[6:]),
}


@pytest.mark.parametrize("name", READ)
def test_parts_are_derived_in_the_shape_in_which_they_are_read(name: str) -> None:
    n, rng = 20_000, np.random.default_rng(0)
    X, v = tc.var("X", ("n", 3)), tc.var("v", 9)
    data, at = rng.normal(size=(n, 3)), rng.normal(size=9) / 3

    def model(xp: Any, X: Any, v: Any) -> Any:
        weights, others = READ[name](v)
        return xp.sum(xp.tanh(X @ weights) ** 2, 1) @ xp.cos(X @ others)

    f = model(tc, X, v)
    wanted = jax.jacfwd(jax.grad(lambda v: model(jnp, data, v)))(at)
    both = tc.compile((tc.grad(f, v), tc.hessian(f, v)), backend="numpy")(X=data, v=at)
    np.testing.assert_allclose(both[0], jax.grad(lambda v: model(jnp, data, v))(at), rtol=1e-10)
    np.testing.assert_allclose(both[1], wanted, rtol=1e-10, atol=1e-10 * abs(wanted).max())
    rows = tc.tanh(X @ READ[name](v)[0])
    found = tc.compile(tc.derivative(rows, v, order=2), backend="numpy")(X=data[:3_000], v=at)
    curved = jax.jacfwd(jax.jacfwd(lambda v: jnp.tanh(data[:3_000] @ READ[name](v)[0])))(at)
    np.testing.assert_allclose(found, curved, rtol=1e-10, atol=1e-12)


def test_spellings_are_checked_and_counted() -> None:
    rows = spellings.rows(100, repeat=1)
    assert all(min(row["seconds"]) > 0 for row in rows)
    assert len(spellings.text(rows).splitlines()) == len(rows) + 1
    assert {row["model"] for row in rows} == MODELS.keys()
    assert all(min(row["operations"]) > 0 for row in rows)


def test_distances_from_slices_are_not_torn_apart() -> None:
    """Digits would cancel where points are near each other, whatever the centres are read from."""
    X, c = tc.var("X", ("n", 3)), tc.var("c", 17)
    read = {
        "whole": tc.var("C", (5, 3)),
        "slice": c[2:].reshape(5, 3),
        "rows": c[:15].reshape(5, 3),
    }
    for C in read.values():
        (v,) = C.variables.values()
        f = tc.sum(tc.min(tc.sum((X[:, None, :] - C) ** 2, axis=2), axis=1))
        gradient = tc.compile(tc.grad(f, v), backend="numpy")
        assert "weighted" in [step.kind for step in gradient.plan_for(n=20_000).steps]
        far, rng = 1e8, np.random.default_rng(0)
        data = {"X": far + rng.normal(size=(30_000, 3)), v.name: far + rng.normal(size=v.shape)}
        found = gradient(**data)
        C0 = C(**data)
        apart = data["X"][:, None, :] - C0
        nearest = np.argmin((apart**2).sum(2), axis=1)
        wanted = [-2 * apart[nearest == k, k].sum(0) for k in range(5)]
        np.testing.assert_allclose(found[found != 0], np.ravel(wanted), rtol=1e-10)


def test_parts_that_overlap_or_are_read_whole_are_no_parts() -> None:
    v, M = tc.var("v", 40), tc.var("M", (40, 40))
    f = tc.sum(tc.exp(M[:20, :20] @ v[:20]) * v[10:30]) + tc.sum(tc.sin(M @ v))
    data = {"v": np.linspace(-1, 1, 40), "M": np.random.default_rng(0).normal(size=(40, 40)) / 40}
    found, step = tc.hessian(f, v)(**data), 1e-6
    gradient = tc.grad(f, v)
    ahead = gradient(M=data["M"], v=data["v"] + step * np.eye(40)[3])
    back = gradient(M=data["M"], v=data["v"] - step * np.eye(40)[3])
    np.testing.assert_allclose(found[3], (ahead - back) / (2 * step), atol=1e-7)


# --- distances ------------------------------------------------------------------------------------

A, B, q = tc.var("A", ("n", "k")), tc.var("B", ("m", "k")), tc.var("q", "k")


def squares(e: Any) -> Any:
    return tc.sum(e * e, axis=1)


@pytest.mark.parametrize(
    "e",
    [
        squares(A)[:, None] + squares(B)[None, :] - 2 * A @ B.T,
        3 - 0.5 * (squares(A * q)[:, None] + squares(B * q)[None, :]) + (A * q) @ (B * q).T,
        A @ B.T - squares(A)[:, None] / 2 - squares(B) / 2,
    ],
)
def test_inner_products_are_read_as_squared_differences(e: Any) -> None:
    (found,) = by_differences([tc.simplify(e)])
    assert found is not e
    rng = np.random.default_rng(0)
    data = {"A": rng.normal(size=(5, 3)), "B": rng.normal(size=(4, 3)), "q": rng.normal(size=3)}
    given = {name: data[name] for name in e.variables}
    np.testing.assert_allclose(found(**given), e(**given), rtol=1e-12, atol=1e-12)
    far = {**given, "A": 1e6 + given["A"], "B": 1e6 + given["B"]}
    if "q" not in given and not found(**given).min() < 0:
        near = ((far["A"][:, None] - far["B"]) ** 2).sum(2)
        np.testing.assert_allclose(found(**far), near, rtol=1e-12)


@pytest.mark.parametrize(
    "e",
    [
        squares(A)[:, None] + squares(B)[None, :] - A @ B.T,
        squares(A)[:, None] - squares(B)[None, :] - 2 * A @ B.T,
        squares(A)[:, None] + squares(B * q)[None, :] - 2 * A @ B.T,
    ],
)
def test_other_sums_are_no_distances(e: Any) -> None:
    e = tc.simplify(e)
    assert by_differences([e])[0] is e


@pytest.mark.parametrize(("k", "kernel"), [(3, True), (30, False)])
def test_a_plan_compares_differences_with_inner_products(k: int, kernel: bool) -> None:
    """A value written by inner products takes the differences of short rows."""
    e = -tc.sum(tc.logsumexp(A @ B.T - squares(A)[:, None] / 2 - squares(B) / 2, axis=1))
    plan = tc.compile(e, backend="numpy").plan_for(A=(20_000, k), B=(5, k))
    assert ("squared_distances" in str(plan)) == kernel


# --- traces ---------------------------------------------------------------------------------------

S = tc.var("S", ("n", "n"), positive_definite=True)
F, G = tc.var("F", ("n", "n", 3)), tc.var("G", ("n", "n"))
c = tc.var("c")
P = tc.linalg.inv(S + tc.exp(c) * tc.eye("n"))
Q = tc.linalg.inv(2 * S + tc.exp(s) * tc.eye("n"))


@pytest.mark.parametrize(
    "e",
    [
        tc.einsum("ab,bcp,cd,daq->pq", P, F, P, F),
        tc.einsum("ab,bcp,cd,da->p", P, F, P, G),
        tc.einsum("ab,bd,dap->p", P, P, F),
        tc.einsum("ab,bc,cd,dap->p", P, S, P, F),
        tc.einsum("ab,bc,cd,da->", P, S, P, S),
        tc.einsum("ab,bc,ac->", Q, S, G),
        tc.einsum("ab,ab->", G, P @ (G + S - tc.einsum("a,b->ab", P @ y, y)) @ P),
    ],
)
def test_traces_with_inverses_keep_their_values(e: Any) -> None:
    e = tc.simplify(e)
    (found,), _ = traced([e])
    assert found is not e
    rng = np.random.default_rng(0)
    n = 5
    root = rng.normal(size=(n, n))
    data = {"S": root @ root.T + np.eye(n), "F": rng.normal(size=(n, n, 3)), "c": 0.3, "s": 0.2,
            "G": rng.normal(size=(n, n)), "y": rng.normal(size=n)}  # fmt: skip
    given = {name: data[name] for name in e.variables}
    np.testing.assert_allclose(found(**given), e(**given), rtol=1e-10, atol=1e-12)


# --- orthonormal rows -----------------------------------------------------------------------------

#: Products with Q Q', which is the identity: D is diagonal, and so are 1 - D and Q (1 - D) Q'.
WITH_ROWS = [
    "ia,ja->ij",
    "ia,ja,j->i",
    "ia,ja,jk->ki",
    "ia,ja,ij->",
    "ia,ja->",
    "ia,ja,a->ij",
    "ia,ja,a,j->i",
    "ia,ja,a,a,jk->ik",
    "ia,ja,a,kb,lb,b,jk->il",
    "ia,ja,kb,lb,b,jk,li->",
    "ia,ja,kb,lb,b,jk,i->l",
    "ia,ja,a,kb,lb,b,jk,li->",
    "ia,ja,a->a",
    "ia,ja,ia->j",
    "ia,ia,a->i",
]


@pytest.mark.parametrize("spec", WITH_ROWS)
@pytest.mark.parametrize("weight", [lambda d: 1 - d, lambda d: d * 2 - 3, lambda d: d + d**2 + 1])
def test_products_with_orthonormal_rows_keep_their_values(spec: str, weight: Any) -> None:
    rng = np.random.default_rng(len(spec))
    arrays = {"A": rng.normal(size=(3, 5)), "d": rng.normal(size=5), "x": rng.normal(size=3)}
    arrays["B"] = rng.normal(size=(3, 3))
    v = {name: tc.var(name, a.shape) for name, a in arrays.items()}
    q = tc.linalg.lq(v["A"])[1]
    given = {"A": q, "d": weight(v["d"]), "x": v["x"], "B": v["B"]}
    held = {**arrays, "A": q(A=arrays["A"]), "d": weight(arrays["d"])}
    kinds = {5: "d", 3: "x"}
    sizes = dict.fromkeys("ijkl", 3) | dict.fromkeys("ab", 5)
    words = spec.partition("->")[0].split(",")
    names = [kinds[sizes[w]] if len(w) == 1 else "A" if w[1] in "ab" else "B" for w in words]
    e = tc.einsum(spec, *[given[name] for name in names])
    (found,) = orthonormal([e])
    wanted = np.einsum(spec, *[held[name] for name in names])
    value = found({name: a for name, a in arrays.items() if name in found.variables})
    np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9)
    if "ia,ja" in spec and words.count("ia") == 1 and not spec.endswith("->a"):
        assert found is not e


#: Products in which no identity stands: of two factorisations, of L, and of other items of a batch;
#: and those of batches in which one does.
BATCHED = {
    "q:ia,p:ja,d:a->ij": False,
    "l:ik,l:jk,x:j->i": False,
    "b:nia,b:mja->nmij": False,
    "b:nia,b:nja->ij": True,
    "b:nia,b:nja,x:j->ni": True,
    "b:nia,b:nja,d:a,x:j->ni": True,
    "q:ia,q:jb,d:a->ij": False,
    "q:ia,q:ja,r:ab->ijb": False,
}


@pytest.mark.parametrize("spec", BATCHED)
def test_only_rows_of_one_matrix_are_orthonormal(spec: str) -> None:
    rng = np.random.default_rng(len(spec))
    shapes = {"A": (3, 5), "C": (3, 5), "N": (2, 3, 5), "d": (5,), "x": (3,), "r": (5, 5)}
    arrays = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    v = {name: tc.var(name, shape) for name, shape in shapes.items()}
    factors = {name: tc.linalg.lq(v[name]) for name in "ACN"}
    given = {"q": factors["A"][1], "p": factors["C"][1], "l": factors["A"][0], "b": factors["N"][1],
             "d": 1 - v["d"], "x": v["x"], "r": v["r"]}  # fmt: skip
    held = {k: e({n: arrays[n] for n in e.variables}) for k, e in given.items()}
    words, _, out = spec.partition("->")
    names, plain = zip(*[word.split(":") for word in words.split(",")], strict=True)
    e = tc.einsum(f"{','.join(plain)}->{out}", *[given[name] for name in names])
    (found,) = orthonormal([e])
    value = found({name: arrays[name] for name in found.variables})
    wanted = np.einsum(f"{','.join(plain)}->{out}", *[held[name] for name in names])
    np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-9)
    assert (found is not e) == BATCHED[spec]


def test_a_search_takes_as_long_as_some_calls() -> None:
    """Of hundreds of nodes all spellings are tried only where calls take long enough."""
    problem = PROBLEMS["sparse-gp"]
    blocks = tc.hessian(problem.expression({"n": 10, "m": 4, "d": 2}), ("z", "w"))
    roots, counts = [blocks[0][0].first, blocks[1][1].first], []
    for n in (300, 3000, 1_000_000):
        known: Known = {}
        make_plan(roots, {"n": n, "m": 4, "d": 2}, known=known)
        (memo,) = known.values()
        tried = [lowered for lowered, _ in memo.lowered.values()]
        *before, _ = [len(lowered.lowering.b.steps) for lowered in tried]
        assert sum(before) <= QUICK + max(t.time for t in tried) / NOMINAL_MACHINE.worth_trying
        counts.append(len(tried))
    assert counts[0] == 1 < counts[1] < counts[2]
