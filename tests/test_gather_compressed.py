"""Compressed derivatives of models with groups and observations: sums by segments, or items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tests.test_gather_models import RNG, X, adjustment, b, cam, g, h, mixed, pts, u, v
from tests.test_structured_blocks import flat


def test_segments_compress_to_sums() -> None:
    lines = str(tc.compress(tc.hessian(mixed(), u))).splitlines()
    assert lines[0] == "H[i,j] = C1[i] * delta[i,j]   shape (q, q)"
    assert lines[1].startswith("  C1 = segment_sum(")
    blocks = tc.hessian(mixed(), (b, u, v))
    assert [c.shape for c in tc.compress(blocks[0][1]).cores] == [("n", "q")]
    assert [c.shape for c in tc.compress(blocks[1][2]).cores] == [("m",), ("m",), ("m",)]


def sized(m: int, n: int, q: int) -> dict[str, Any]:
    data = {"X": RNG.normal(size=(m, n)), "b": RNG.normal(size=n), "u": RNG.normal(size=q)}
    groups = {"g": RNG.integers(0, q, m), "h": RNG.integers(0, 3, m), "t": RNG.integers(0, 2, m)}
    return {**data, **groups, "v": RNG.normal(size=3)}


CORES = [
    ((40, 2, 5), [[(2, 2)], [(2, 5)], [(2, 3)], [(5,)], [(5, 3)], [(3,)]]),
    ((40, 2, 45), [[(2, 2)], [(2, 45)], [(2, 3)], [(45,)], [(40,)] * 3, [(3,)]]),
    ((40, 2, 90), [[(2, 2)], [(2, 40), (40,)], [(2, 3)], [(40,)] * 2, [(40,)] * 3, [(3,)]]),
]


@pytest.mark.parametrize(("sizes", "wanted"), CORES)
def test_sizes_choose_sums_or_items(sizes: tuple[int, int, int], wanted: list[Any]) -> None:
    data = sized(*sizes)
    held = tc.compile(tc.hessian(mixed(), (b, u, v)), structured=True)(data)
    found = [[c.shape for c in held[i][j].cores] for i in range(3) for j in range(i, 3)]
    assert found == wanted
    dense = tc.compile(tc.hessian(mixed(), (b, u, v)))(data)
    for i in range(3):
        for j in range(3):
            np.testing.assert_allclose(held[i][j].todense(), dense[i][j], 1e-11, 1e-13)
    g = tuple(data[name] for name in "buv")
    x = np.concatenate(held.solve(g, damping=1.0))
    matrix = held.todense() + np.eye(len(x))
    np.testing.assert_allclose(matrix @ x, np.concatenate(g), 1e-9)


@pytest.mark.parametrize(("n", "m", "k", "seen"), [(6, 5, 3, 30), (2, 3, 2, 50), (1, 4, 1, 3)])
def test_factorisations_of_what_was_seen(n: int, m: int, k: int, seen: int) -> None:
    """Cross blocks have terms with unit tensors and without, of observations by two segments."""
    U, V, r = tc.var("U", ("n", "k")), tc.var("V", ("m", "k")), tc.var("r", "o")
    i, j = (tc.var(name, "o", integer=True) for name in "ij")
    f = tc.sum((r - tc.sum(U[i] * V[j], axis=1)) ** 2) + tc.sum(U**2) + tc.sum(V**2)
    hessian = tc.hessian(f, (U, V))
    data: dict[str, Any] = {
        "U": RNG.normal(size=(n, k)), "V": RNG.normal(size=(m, k)), "r": RNG.normal(size=seen),
        "i": RNG.integers(0, n, seen), "j": RNG.integers(0, m, seen),
    }  # fmt: skip
    held = tc.compile(hessian, structured=True)(**data)
    blocks = tc.compile(hessian)(**data)
    wanted = np.block(
        [[e.reshape(a, -1) for e in row] for row, a in zip(blocks, (n * k, m * k), strict=True)]
    )
    residual = data["r"] - (data["U"][data["i"]] * data["V"][data["j"]]).sum(1)
    cross = np.zeros((n, k, m, k))
    for row, column, rest in zip(data["i"], data["j"], residual, strict=True):
        outer = np.outer(data["V"][column], data["U"][row])
        cross[row, :, column] += 2 * (outer - rest * np.eye(k))
    np.testing.assert_allclose(blocks[0][1], cross, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(held.todense(), wanted, rtol=1e-12, atol=1e-12)
    g = RNG.normal(size=(n, k)), RNG.normal(size=(m, k))
    np.testing.assert_allclose(
        wanted @ flat(held.solve(g, damping=20)) + 20 * flat(held.solve(g, damping=20)),
        flat(g),
        rtol=1e-9,
        atol=1e-9,
    )


def test_factorisations_are_held_by_what_was_seen() -> None:
    U, V, r = tc.var("U", ("n", "k")), tc.var("V", ("m", "k")), tc.var("r", "o")
    i, j = (tc.var(name, "o", integer=True) for name in "ij")
    cross = tc.hessian(tc.sum((r - tc.sum(U[i] * V[j], axis=1)) ** 2), (U, V))[0][1]
    at = tc.compress(cross).at({"n": 3000, "m": 400, "k": 5, "o": 40000})
    assert {core.shape for core in at.cores} == {("o",), ("k", "k", "o")}


def test_observations_stay_items_where_few_pairs_are_seen() -> None:
    step = tc.compile(tc.hessian(adjustment(), (cam, pts)), structured=True)
    for cameras, points, wanted in ((3, 4, (3, 6, 4, 3)), (5, 12, (6, 3, 30))):
        m = 30
        data = {
            "cam": RNG.normal(size=(cameras, 6)) * 0.1 + [0, 0, 0, 0, 0, 4],
            "pts": RNG.normal(size=(points, 3)), "obs": RNG.normal(size=(m, 2)),
            "c": RNG.integers(0, cameras, m), "p": RNG.integers(0, points, m),
        }  # fmt: skip
        held = step(data)
        assert [c.shape for c in held[0][0].cores] == [(cameras, 6, 6)]
        assert [c.shape for c in held[1][1].cores] == [(points, 3, 3)]
        cross = held[0][1]
        assert sorted(cross.cores[0].shape) == sorted(wanted)
        dense = tc.hessian(adjustment(), (cam, pts))[0][1](data)
        np.testing.assert_allclose(cross.todense(), dense, 1e-10, 1e-12)


W, Z, r = (
    tc.var("W", ("p", "k")),
    tc.var("Z", ("m", "r", "k")),
    tc.var("r", ("m", "r"), integer=True),
)
BITS = [
    lambda: X @ b,
    lambda: u[g],
    lambda: u[g] * tc.sum(W[h] ** 2, axis=1),
    lambda: tc.sum(u[r], axis=1),
    lambda: tc.einsum("mrk,mk->m", Z, W[h]),
    lambda: tc.mean(u) + u[g],
    lambda: tc.segment_sum(u[g], g, "q")[g],
]
AROUND = [
    lambda e: tc.sum(tc.softplus(e)),
    lambda e: tc.logsumexp(e),
    lambda e: tc.sum(e) ** 2,
    lambda e: tc.sum(tc.segment_sum(e, g, "q") ** 3),
]


@pytest.mark.parametrize("seed", range(25))
def test_random_models_with_groups(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def pick(options: list[Any]) -> Any:
        return options[rng.integers(len(options))]

    f = pick(AROUND)(pick(BITS)() + pick(BITS)()) + pick(AROUND)(pick(BITS)())
    q, p, k = (int(pick(options)) for options in ([1, 3, 30], [1, 4, 40], [1, 2]))
    n, m, many = (int(pick(options)) for options in ([1, 3], [1, 5, 25], [1, 3]))
    shapes = {"u": (q,), "W": (p, k), "b": (n,), "X": (m, n), "Z": (m, many, k)}
    data = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    data |= {"g": rng.integers(0, q, m), "h": rng.integers(0, p, m)}
    data["r"] = rng.integers(0, q, (m, many))
    names = [name for name in "WbuW"[seed % 2 :] if name in f.variables][:3]
    names = list(dict.fromkeys(names))
    H = tc.hessian(f, tuple(names))
    sizes = {"q": q, "p": p, "k": k, "n": n, "m": m, "r": many}
    known = tc.compile(H)._engine
    given = {name: data[name] for name in known.variables}
    given |= {name: sizes[name] for name in known.dimensions}
    held, dense = tc.compile(H, structured=True)(given), H(given)
    for i in range(len(names)):
        for j in range(len(names)):
            np.testing.assert_allclose(held[i][j].todense(), dense[i][j], 1e-9, 1e-9)
    matrix = held.todense() + 1e3 * np.eye(held.shape[0])
    rhs = tuple(rng.normal(size=shapes[name]) for name in names)
    np.testing.assert_allclose(matrix @ flat(held.solve(rhs, damping=1e3)), flat(rhs), 1e-7, 1e-7)
    spread = (held + 1e3 * tc.identity_like(held)).inverse().diagonal()
    np.testing.assert_allclose(flat(spread), np.diag(np.linalg.inv(matrix)), 1e-7)


#: Linear maps that place entries, on arrays of one or two axes, in NumPy's names.
PLACING = (
    lambda xp, x: x[1:],
    lambda xp, x: x[::-1],
    lambda xp, x: xp.take(x, [0, 1, 0], axis=0),
    lambda xp, x: xp.diag(x) if x.ndim == 1 else x.T,
    lambda xp, x: x[:, None] * xp.ones(2) if x.ndim == 1 else x[:, 0],
    lambda xp, x: xp.concatenate([x, x[:1]], axis=0),
)


@pytest.mark.parametrize("steps", [*product(PLACING, repeat=3)])
def test_maps_that_place_entries_one_after_another(steps: Sequence[Any]) -> None:
    """Jacobians are products of unit tensors, any label in several of them."""
    x = tc.var("x", "n")

    def run(xp: Any, x: Any) -> Any:
        for step in steps:
            x = step(xp, x)
        return x

    jacobian = tc.jacobian(run(tc, x), x)
    wanted = np.stack([run(np, row) for row in np.eye(5)], axis=-1)
    held = tc.compile(jacobian, structured=True)(x=np.ones(5))
    np.testing.assert_array_equal(held.todense(), wanted)
