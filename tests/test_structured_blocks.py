"""Compressed Hessians inside subspaces, and over several variables, against dense matrices."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tcalc as tc

RNG = np.random.default_rng(3)
N = 4


def spd(n: int = N) -> np.ndarray:
    a = RNG.normal(size=(n, n + 2))
    return a @ a.T / n + np.eye(n)


# --- inside subspaces -----------------------------------------------------------------------------


def coordinates(v: tc.Expr, n: int) -> np.ndarray:
    """An orthonormal basis of the matrices that v ranges over, by elimination of random ones."""
    draws = RNG.normal(size=(200, n, n))
    if {"symmetric", "positive_definite"} & set(v.properties):
        draws = (draws + draws.swapaxes(1, 2)) / 2
    if "lower" in v.properties:
        draws = np.tril(draws)
    if "upper" in v.properties:
        draws = np.triu(draws)
    if "diagonal" in v.properties:
        draws = draws * np.eye(n)
    u, s, _ = np.linalg.svd(draws.reshape(200, -1).T, full_matrices=False)
    return u[:, s > 1e-9 * s[0]]


SUBSPACES = [
    ("symmetric", "logdet(S)", "symmetric matrices: Kronecker"),
    ("symmetric", "tr(S*B*S*B)/2 + 3*norm2(S)^2", "symmetric matrices: Kronecker sum"),
    ("positive_definite", "logdet(S)/2 + x'*inv(S)*x/2", "coordinates"),
    ("lower", "norm2(S*B)^2 + sum(exp(S))", "coordinates"),
    ("upper", "norm2(S*B)^2 + sum(exp(S))", "coordinates"),
    ("diagonal", "norm2(S*B)^2 + sum(exp(S))", "coordinates"),
]


@pytest.mark.parametrize(("kind", "text", "way"), SUBSPACES)
def test_variables_with_properties_are_solved_inside_their_subspace(
    kind: str, text: str, way: str
) -> None:
    S = tc.var("S", ("n", "n"), **{kind: True})
    f = tc.parse(text, S=S, x=("n",), B=("n", "n"))
    basis = coordinates(S, N)
    point = (basis @ (basis.T @ spd().ravel())).reshape(N, N)
    point[np.abs(point) < 1e-12] = 0
    point = (point + point.T) / 2 if "symmetric" in S.properties else point
    data = {"S": point, "x": RNG.normal(size=N), "B": spd()}
    H = tc.hessian(f, S)
    held = tc.compile(H, structured=True)(**{k: data[k] for k in H.variables})
    matrix = H(**{k: data[k] for k in H.variables}).reshape(N * N, N * N)
    small = basis.T @ matrix @ basis
    g = RNG.normal(size=(N, N, 2))
    expected = basis @ np.linalg.solve(small, basis.T @ g.reshape(N * N, 2))
    np.testing.assert_allclose(held.solve(g), expected.reshape(g.shape), 1e-9, 1e-9)
    assert way in held.explain()
    assert held.slogdet() == pytest.approx(np.linalg.slogdet(small), rel=1e-9)
    inverse = basis @ np.linalg.inv(small) @ basis.T
    np.testing.assert_allclose(held.inverse().tomatrix(), inverse, 1e-9, 1e-9)
    np.testing.assert_allclose(held.inverse().diagonal().ravel(), np.diag(inverse), 1e-9, 1e-9)
    np.testing.assert_allclose(held.diagonal().ravel(), np.diag(matrix), 1e-9, 1e-9)
    assert held.trace() == pytest.approx(np.trace(matrix))
    np.testing.assert_allclose(held @ g, (matrix @ g.reshape(-1, 2)).reshape(g.shape), 1e-9, 1e-9)
    damped = basis @ np.linalg.solve(small + 2 * np.eye(len(small)), basis.T @ g[..., 0].ravel())
    found = held.solve(g[..., 0], damping=2)
    np.testing.assert_allclose(found.ravel(), damped, 1e-9, 1e-9)
    shifted = held + 2 * tc.identity_like(held)
    np.testing.assert_allclose(shifted.solve(g[..., 0]).ravel(), damped, 1e-9, 1e-9)
    np.testing.assert_allclose(shifted.todense() - held.todense(), (2 * basis @ basis.T).reshape(
        held.shape), 1e-9, 1e-9)  # fmt: skip
    np.testing.assert_allclose(held.operator() @ g[..., 0].ravel(), matrix @ g[..., 0].ravel())
    np.testing.assert_allclose(held.T.tomatrix(), matrix.T)
    doubled = held + held.T
    np.testing.assert_allclose(doubled.tomatrix(), matrix + matrix.T)


# --- several variables ----------------------------------------------------------------------------

FACTORS = tc.parse(
    "norm2(T - U*V')^2 + c*norm2(U)^2 + 2*c*norm2(V)^2",
    T=("n", "m"), U=("n", "k"), V=("m", "k"), c=(),
)  # fmt: skip


def factors(n: int = 7, m: int = 5, k: int = 2) -> dict[str, Any]:
    data = {"U": RNG.normal(size=(n, k)), "V": RNG.normal(size=(m, k)), "c": 0.3}
    return data | {"T": data["U"] @ data["V"].T + RNG.normal(size=(n, m)) / 20}


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [leaf for value in tree.values() for leaf in leaves(value)]
    return [leaf for v in tree for leaf in leaves(v)] if isinstance(tree, tuple) else [tree]


def flat(tree: Any) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in leaves(tree)])


def nested(template: Any, values: Any) -> Any:
    if isinstance(template, dict):
        return {key: nested(value, values) for key, value in template.items()}
    if isinstance(template, tuple):
        return tuple(nested(value, values) for value in template)
    return values(template)


def matrix_of(f: tc.Expr, names: list[str], data: dict[str, Any]) -> np.ndarray:
    """The dense Hessian over variables, block by block."""
    rows = []
    for x in names:
        row = [tc.jacobian(tc.grad(f, x), y)(**data) for y in names]
        pairs = zip(row, names, strict=True)
        rows.append([np.reshape(b, (np.size(data[x]), np.size(data[y]))) for b, y in pairs])
    return np.block(rows)


NESTS: list[Any] = [("U", "V"), ("V", ("U", "c")), {"a": "U", "b": ("V",)}, ("U",), (("V",),)]


@pytest.mark.parametrize("wrt", NESTS, ids=str)
def test_blocks_over_a_nest_of_variables(wrt: Any) -> None:
    data = factors()
    names = leaves(wrt)
    held = tc.compile(tc.hessian(FACTORS, wrt), structured=True)(**data)
    matrix = matrix_of(FACTORS, names, data)
    n = len(matrix)
    assert isinstance(held, tc.BlockStructured)
    assert held.shape == matrix.shape
    assert held.nbytes == sum(core.nbytes for core in held.cores)
    np.testing.assert_allclose(held.todense(), matrix, 1e-11, 1e-11)
    g = nested(wrt, lambda name: RNG.normal(size=np.shape(data[name])))
    eps = 1e-12 * np.linalg.cond(matrix)
    x = held.solve(g)
    assert type(x) is type(g)
    np.testing.assert_allclose(flat(x), np.linalg.solve(matrix, flat(g)), eps, eps)
    np.testing.assert_allclose(flat(held @ g), matrix @ flat(g), 1e-11, 1e-11)
    damped = held.solve(g, damping=1.5)
    expected = np.linalg.solve(matrix + 1.5 * np.eye(n), flat(g))
    np.testing.assert_allclose(flat(damped), expected, eps, eps)
    np.testing.assert_allclose(flat(held.factor(1.5).solve(g)), expected, eps, eps)
    assert held.slogdet() == pytest.approx(np.linalg.slogdet(matrix), rel=1e-9)
    assert held.logdet() == pytest.approx(np.linalg.slogdet(matrix)[1], rel=1e-9)
    assert held.trace() == pytest.approx(np.trace(matrix))
    np.testing.assert_allclose(flat(held.diagonal()), np.diag(matrix), 1e-11, 1e-11)
    exact = np.linalg.inv(matrix)
    inverse = held.inverse()
    np.testing.assert_allclose(inverse.todense(), exact, eps, eps)
    np.testing.assert_allclose(flat(inverse.diagonal()), np.diag(exact), eps, eps)
    mixed = (2 * held - held.T / 2 + tc.identity_like(held)).todense()
    np.testing.assert_allclose(mixed, 1.5 * matrix + np.eye(n), 1e-11, 1e-11)
    v = RNG.normal(size=n)
    np.testing.assert_allclose(held.to_scipy() @ v, matrix @ v, 1e-10, 1e-10)
    copy = pickle.loads(pickle.dumps(held))
    np.testing.assert_allclose(copy.todense(), matrix, 1e-11, 1e-11)
    assert repr(held).startswith("<BlockStructured over ")
    assert "solve: " in held.explain()


def test_blocks_are_indexed_as_the_nest_is() -> None:
    data = factors()
    held = tc.compile(tc.hessian(FACTORS, ("U", "V")), structured=True)(**data)
    (uu, uv), (vu, vv) = held
    assert [b.shape for b in (uu, uv, vu, vv)] == [
        (7, 2, 7, 2), (7, 2, 5, 2), (5, 2, 7, 2), (5, 2, 5, 2)
    ]  # fmt: skip
    np.testing.assert_array_equal(held[1][0].todense(), held.blocks()[0][1].T.todense())
    named = tc.compile(tc.hessian(FACTORS, {"u": "U", "v": "V"}), structured=True)(**data)
    np.testing.assert_allclose(named["u"]["v"].todense(), uv.todense())


def test_further_axes_are_more_right_hand_sides() -> None:
    data = factors()
    held = tc.compile(tc.hessian(FACTORS, ("U", "V")), structured=True)(**data)
    g = RNG.normal(size=(7, 2, 3)), RNG.normal(size=(5, 2, 3))
    x = held.solve(g)
    for k in range(3):
        one = held.solve((g[0][..., k], g[1][..., k]))
        np.testing.assert_allclose(x[0][..., k], one[0], 1e-9, 1e-12)
        np.testing.assert_allclose(x[1][..., k], one[1], 1e-9, 1e-12)


def test_the_variable_with_small_blocks_is_eliminated() -> None:
    data = factors(60, 8, 3)
    held = tc.compile(tc.hessian(FACTORS, ("V", "U")), structured=True)(**data)
    assert "Schur complement: U eliminated" in held.explain()
    assert "24 x 24 dense left" in held.explain()


def test_variables_that_nothing_couples_are_solved_alone() -> None:
    f = tc.parse("sum(x.^4) + sum(exp(y)) + y'*z + z'*z", x=("n",), y=("m",), z=("m",))
    data = {name: RNG.normal(size=k) for name, k in (("x", 6), ("y", 3), ("z", 3))}
    held = tc.compile(tc.hessian(f, ("x", "y", "z")), structured=True)(**data)
    matrix = matrix_of(f, ["x", "y", "z"], data)
    assert "2 groups of variables" in held.explain()
    g = (data["x"], data["y"], data["z"])
    np.testing.assert_allclose(flat(held.solve(g)), np.linalg.solve(matrix, flat(g)), 1e-9)
    np.testing.assert_allclose(held.inverse().todense(), np.linalg.inv(matrix), 1e-9, 1e-9)
    assert held.slogdet() == pytest.approx(np.linalg.slogdet(matrix))


def test_properties_in_a_nest() -> None:
    S = tc.var("S", ("n", "n"), symmetric=True)
    f = tc.parse("norm2(S*B - x*x')^2 + norm2(S)^2 + 9*x'*x", S=S, B=("n", "n"), x=("n",))
    data = {"S": spd(), "B": spd(), "x": RNG.normal(size=N)}
    held = tc.compile(tc.hessian(f, (S, "x")), structured=True)(**data)
    matrix = matrix_of(f, ["S", "x"], data)
    inside = coordinates(S, N)
    basis = np.block([
        [inside, np.zeros((N * N, N))], [np.zeros((N, inside.shape[1])), np.eye(N)]
    ])  # fmt: skip
    small = basis.T @ matrix @ basis
    g = RNG.normal(size=(N, N)), RNG.normal(size=N)
    expected = basis @ np.linalg.solve(small, basis.T @ flat(g))
    np.testing.assert_allclose(flat(held.solve(g)), expected, 1e-9, 1e-9)
    assert held.slogdet() == pytest.approx(np.linalg.slogdet(small))
    np.testing.assert_allclose(
        held.inverse().todense(), basis @ np.linalg.inv(small) @ basis.T, 1e-9, 1e-9
    )


def bundle(cameras: int, points: int, count: int) -> tuple[tc.Expr, dict[str, Any]]:
    """Every observation sees one camera and one point."""
    c, p = tc.var("C", ("c", 3)), tc.var("P", ("p", 2))
    i, j = (tc.var(name, ("o",), integer=True) for name in "ij")
    z, a = tc.var("z", ("o", 2)), tc.var("A", (3, 2, 2))
    seen = tc.einsum("oa,ob,abd->od", c[i], p[j], a)
    f = tc.sum((seen - z) ** 2) + tc.sum(c**2) + tc.sum(p**2)
    data = {
        "C": RNG.normal(size=(cameras, 3)), "P": RNG.normal(size=(points, 2)),
        "i": RNG.integers(0, cameras, count), "j": RNG.integers(0, points, count),
        "z": RNG.normal(size=(count, 2)), "A": RNG.normal(size=(3, 2, 2)) / 4,
    }  # fmt: skip
    return f, data


def test_cross_blocks_of_tables_stay_sparse() -> None:
    f, data = bundle(3, 9, 20)
    step = tc.compile(tc.hessian(f, ("C", "P")), structured=True)
    held = step(**data)
    matrix = matrix_of(f, ["C", "P"], data)
    np.testing.assert_allclose(held.todense(), matrix, 1e-11, 1e-11)
    g = data["C"], data["P"]
    x = held.solve(g, damping=4.0)
    expected = np.linalg.solve(matrix + 4 * np.eye(len(matrix)), flat(g))
    np.testing.assert_allclose(flat(x), expected, 1e-9, 1e-9)
    large = step(**bundle(40, 4000, 9000)[1])
    assert large.nbytes < 3_000_000
    assert large.to_scipy().nnz < 300_000
    assert "P eliminated" in large.explain()
    wide = large + 30 * tc.identity_like(large)
    g = RNG.normal(size=(40, 3)), RNG.normal(size=(4000, 2))
    np.testing.assert_allclose(flat(wide @ wide.solve(g)), flat(g), 1e-8, 1e-8)
    assert wide.inverse().diagonal()[1].shape == (4000, 2)


WRONG = [
    (lambda h, g: h.solve(g[:1]), TypeError, "tuple of 2"),
    (lambda h, g: h.solve({"U": g[0], "V": g[1]}), TypeError, "tuple of 2"),
    (lambda h, g: h.solve((g[0].T, g[1])), tc.ShapeError, r"U has shape \(2, 7\).*\(7, 2\)"),
    (lambda h, g: h @ (g[0], g[1][..., None]), tc.ShapeError, "V has shape"),
    (lambda h, g: h @ h, TypeError, "@"),
    (lambda h, g: h + 1, TypeError, "unsupported"),
    (lambda h, g: h.solve(g, damping="1e"), TypeError, "damping"),
]


@pytest.mark.parametrize(("call", "kind", "words"), WRONG)
def test_wrong_nests_are_named(call: Any, kind: type[Exception], words: str) -> None:
    data = factors()
    held = tc.compile(tc.hessian(FACTORS, ("U", "V")), structured=True)(**data)
    with pytest.raises(kind, match=words):
        call(held, (data["U"], data["V"]))


def test_singular_blocks_are_refused() -> None:
    f = tc.parse("norm2(T - U*V')^2", T=("n", "m"), U=("n", "k"), V=("m", "k"))
    data = factors()
    data["T"] = data["U"] @ data["V"].T
    held = tc.compile(tc.hessian(f, ("U", "V")), structured=True)(
        **{k: data[k] for k in ("T", "U", "V")}
    )
    g = data["U"], data["V"]
    with pytest.raises(tc.LinAlgError, match="damping="):
        held.solve(g)
    x = held.solve(g, damping=0.1)
    matrix = held.todense() + 0.1 * np.eye(held.shape[0])
    np.testing.assert_allclose(matrix @ flat(x), flat(g), 1e-8, 1e-8)


def test_extents_tell_calls_apart_however_they_are_passed() -> None:
    x, y, a, c = tc.var("x", "n"), tc.var("y", "µ"), tc.var("a"), tc.var("c")
    steps = tc.var("steps", (), integer=True)
    step = tc.compile(tc.hessian(tc.exp(a) * x @ x, x), structured=True, args=("a", "n"))
    for n in (3, 5, 3, np.array(2), np.array(4), np.int64(6)):
        held = step(0.0, n)
        assert held.shape == (n, n)
        assert held.trace() == 2 * n
    step = tc.compile(tc.hessian(tc.exp(a) * y @ y, y), structured=True)
    assert [step(a=1.0, **{"µ": n}).shape for n in (3, 5)] == [(3, 3), (5, 5)]
    count = tc.fold(lambda t, i: tc.tanh(t * c), c, steps)
    step = tc.compile(tc.hessian(count * x @ x, x), structured=True, args=("c", "steps", "x"))
    for times in (1, 2, np.array(3)):
        value = 0.3
        for _ in range(int(times)):
            value = np.tanh(0.3 * value)
        np.testing.assert_allclose(step(0.3, times, np.ones(2)).diagonal(), 2 * value)
        np.testing.assert_allclose(tc.compile(count)(c=0.3, steps=times), value)


def test_a_complement_that_cancels_is_singular() -> None:
    """H = vv' + diag(0, 0, e), e far below rounding: elimination leaves roundings, and no more."""
    u, w, a = tc.var("u", ()), tc.var("w", 3), tc.var("a", 3)
    f = (u / 3 + tc.sum(a * w)) ** 2 / 2 + tc.sum((w[1:] - w[:-1] * a[1:]) ** 2)
    H = tc.compile(tc.hessian(f, (u, w)), structured=True)(a=np.array([0.1, 0.3, 0.7]))
    assert np.linalg.cond(H.todense()) > 1e15
    with pytest.raises(tc.LinAlgError, match="singular"):
        H.solve((1.0, np.ones(3)))
