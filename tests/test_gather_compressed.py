"""Compressed derivatives of models with groups and observations: sums by segments, or items."""

from __future__ import annotations

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


@pytest.mark.parametrize("seed", range(60))
def test_unit_tensors_that_follow_each_other(seed: int) -> None:
    """Products of what selects, shifts and repeats, any label in several of them."""
    rng = np.random.default_rng(seed)
    sizes = {letter: int(rng.integers(1, 4)) for letter in "ijkl"}
    letters = list(sizes)
    ops: list[tc.Expr] = []
    words = []
    for _ in range(int(rng.integers(2, 5))):
        a, b = rng.choice(letters, 2, replace=False)
        rows, columns = sizes[a], sizes[b]
        kinds = (
            tc.take(tc.eye(columns), rng.integers(0, columns, rows), axis=0),
            tc.eye(rows, columns, k=int(rng.integers(-1, 2))),
            tc.const(rng.normal(size=(rows, columns))),
        )
        ops.append(kinds[int(rng.integers(3))])
        words.append(a + b)
    out = "".join(rng.permutation(sorted(set("".join(words)))))
    e = tc.einsum(",".join(words) + "->" + out, *ops) * tc.sum(u)
    held = tc.compile(tc.grad(e, u) if not out else tc.jacobian(e, u), structured=True)(
        u=np.ones(2)
    )
    wanted = tc.jacobian(e, u)(u=np.ones(2))
    arrays = [op(u=np.ones(2)) if op.variables else np.asarray(op()) for op in ops]
    dense = np.einsum(",".join(words) + "->" + out, *arrays)
    np.testing.assert_allclose(wanted, np.repeat(dense[..., None], 2, axis=-1), atol=1e-13)
    np.testing.assert_allclose(held.todense(), wanted, atol=1e-13)
