"""Plans that choose: equal parts made once, sums multiplied out or factored, loops, short axes."""

from __future__ import annotations

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph import trees
from tcalc.graph.normal import bare, einsum
from tcalc.graph.variables import var
from tcalc.ops.matrix.triangular import lower_ones
from tcalc.plan.lowering import candidates, make
from tcalc.plan.lowering.make import make_plan
from tcalc.run.compile import compile


def assert_close(found, wanted, tolerance: float) -> None:
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance)


def gemms(roots, n: int, **sizes: int) -> float:
    """Predicted operations in products of two n x n matrices."""
    return make_plan(roots, {"n": n, **sizes}).flops / (2 * n**3)


def test_twin_halves_are_made_once():
    S, T = var("S", ("n", "n"), symmetric=True), var("T", ("n", "n"), symmetric=True)
    A = var("A", ("n", "n"))
    trace = einsum([S, T, S, T], [(0, 1), (1, 2), (2, 3), (3, 0)], ())
    assert gemms([trace], 300) == pytest.approx(1, rel=0.02)
    unsymmetric = einsum([S, A, S, A], [(0, 1), (1, 2), (2, 3), (3, 0)], ())
    assert gemms([unsymmetric], 300) == pytest.approx(1, rel=0.02)
    turned = einsum([S, A, S, A], [(0, 1), (1, 2), (2, 3), (0, 3)], ())
    assert gemms([turned], 300) == pytest.approx(2, rel=0.02)
    rng = np.random.default_rng(0)
    s, t, a = rng.normal(size=(3, 5, 5))
    s, t = s + s.T, t + t.T
    assert_close(compile(trace)(S=s, T=t), np.trace(s @ t @ s @ t), 1e-10)
    assert_close(compile(unsymmetric)(S=s, A=a), np.trace(s @ a @ s @ a), 1e-10)
    assert_close(compile(turned)(S=s, A=a), np.trace(s @ a @ s @ a.T), 1e-10)


def test_products_that_exist_are_used():
    S, T = var("S", ("n", "n"), symmetric=True), var("T", ("n", "n"), symmetric=True)
    E = var("E", ("n", "n"), symmetric=True)
    first = einsum([S, T, S, T], [(0, 1), (1, 2), (2, 3), (3, 0)], ())
    second = einsum([S, T, S, E], [(0, 1), (1, 2), (2, 3), (3, 0)], ())
    third = einsum([S, E, S, E], [(0, 1), (1, 2), (2, 3), (3, 0)], ())
    assert gemms([first, second], 300) == pytest.approx(2, rel=0.02)
    assert gemms([first, second, third], 300) < 3.1
    rng = np.random.default_rng(0)
    s, t, e = [m + m.T for m in rng.normal(size=(3, 5, 5))]
    found = compile([first, second, third])(S=s, T=t, E=e)
    wanted = [np.trace(s @ p @ s @ q) for p, q in ((t, t), (t, e), (e, e))]
    assert_close(np.array(found), np.array(wanted), 1e-10)


def test_sums_are_multiplied_out_where_that_saves():
    S, M, x = var("S", ("n", "n")), var("M", ("n", "n")), var("x", "n")
    Sx = einsum([S, x], [(0, 1), (1,)], (0,))
    outer = einsum([Sx, x], [(0,), (1,)], (0, 1))
    trace = einsum(
        [S, outer + einsum([S, M], [(0, 1), (1, 2)], (0, 2)), M], [(0, 1), (1, 2), (2, 0)], ()
    )
    assert gemms([trace], 300) < 2.1
    rng = np.random.default_rng(0)
    s, m, v = rng.normal(size=(5, 5)), rng.normal(size=(5, 5)), rng.normal(size=5)
    wanted = np.trace(s @ (np.outer(s @ v, v) + s @ m) @ m)
    assert_close(compile(trace)(S=s, M=m, x=v), wanted, 1e-10)


def test_differences_of_data_are_never_multiplied_out():
    x, w = var("x", "n"), var("w", ("n", "n"))
    difference = x[:, None] - x[None, :]
    f = (difference * difference * w).sum()
    data = {"x": 1e8 + np.linspace(0, 1e-4, 400), "w": np.ones((400, 400))}
    exact = ((data["x"][:, None] - data["x"]) ** 2).sum()
    assert_close(compile(f)(data), exact, 1e-12)


def test_short_axes_stand_between_long_ones():
    X, w = var("X", ("n", "d")), var("w", "d")
    square = (X[:, None, :] - X[None, :, :]) ** 2
    plan = make_plan([square @ w], {"n": 300, "d": 3})
    assert all(step.shape[-1] == 300 for step in plan.steps if len(step.shape) == 3 and step.flops)
    assert plan.peak_bytes < 3 * 8 * 300**2
    data = {"X": np.random.default_rng(0).normal(size=(300, 3)), "w": np.array([1.0, -2.0, 0.5])}
    wanted = ((data["X"][:, None] - data["X"]) ** 2) @ data["w"]
    assert_close(compile(square @ w)(data), wanted, 1e-12)


# --- choosing ------------------------------------------------------------------------------------


def gaussian_process():
    """The Hessian of a Gaussian process' likelihood: some of its blocks have candidates."""
    X, y, w = var("X", ("n", "d")), var("y", ("n",)), var("w", ("d",))
    s, t = var("s"), var("t")
    squares = (X[:, None, :] - X[None, :, :]) ** 2
    kernel = tc.exp(s - squares @ tc.exp(w) / 2) + tc.exp(t) * tc.eye("n")
    factor = tc.linalg.cholesky(kernel)
    white = tc.linalg.solve_triangular(factor, y, lower=True)
    return tc.hessian(white @ white / 2 + tc.linalg.sumlogdiag(factor), (w, s, t))


@pytest.mark.parametrize(("n", "most"), [(2, 5), (1000, 35)])
def test_choosing_lowers_a_bounded_number_of_times(n: int, most: int, monkeypatch) -> None:
    """To see how much there is to save, every value, the plan, and more only where it pays."""
    hessian = gaussian_process()
    assert all(leaf.values for leaf in trees.leaves(hessian))  # found before it is counted
    compiled = compile(hessian)
    calls = []

    class Counted(make.Lowering):
        def __init__(self, *args):
            calls.append(args)
            super().__init__(*args)

    monkeypatch.setattr(make, "Lowering", Counted)
    compiled.plan_for(n=n, d=4)
    assert len(calls) <= most


def test_candidates_are_chosen_by_the_sizes() -> None:
    W, V, Z = var("W", ("m", "k")), var("V", ("k", "n")), var("Z", ("n", "p"))
    x = tc.sin(Z @ var("q", "p"))
    jacobian = tc.jacobian(tc.exp(W @ tc.sin(V @ x)), "q")
    values = [bare(tc.jacobian(jacobian.of, "q", mode=mode)) for mode in ("forward", "reverse")]
    for sizes in ({"m": 900, "k": 800, "n": 700, "p": 2}, {"m": 2, "k": 700, "n": 800, "p": 900}):
        found = [make_plan([value], sizes).flops for value in candidates.chosen([values], sizes)]
        assert found == [min(make_plan([value], sizes).flops for value in values)]
        assert compile(jacobian).plan_for(**sizes).flops == found[0]


# --- factors in front of sums ---------------------------------------------------------------------


def test_common_factors_of_sums_are_multiplied_once():
    A, B, V = (var(name, ("n", "n")) for name in "ABV")
    f = V @ A @ V.T + 2 * (V @ B @ V.T).T
    assert gemms([f], 300) < 2.1
    rng = np.random.default_rng(0)
    a, b, v = rng.normal(size=(3, 80, 80))
    assert_close(compile(f)(A=a, B=b, V=v), v @ a @ v.T + 2 * v @ b.T @ v.T, 1e-9)


def test_pullbacks_of_factorisations_need_few_products():
    la = tc.linalg
    A, C, D = var("A", ("n", "n")), var("C", ("n", "n")), var("D", ("n", "n"))
    w, v = la.eigh(A)
    lower, q = la.lq(A)
    for f, most in (
        (tc.sum(C * v) + tc.sum(w * w * w), 3.1),
        (tc.sum(C * lower) + tc.sum(D * q), 3.6),
    ):
        plan = make_plan([bare(tc.grad(f, A))], {"n": 300})
        products = sum(s.flops for s in plan.steps if s.kind in ("dot", "trisolve", "gram"))
        assert products / (2 * 300**3) < most


@pytest.mark.parametrize("n", [3, 129, 260])
def test_the_pullback_of_cholesky_is_one_kernel(n: int) -> None:
    A, C = var("A", ("n", "n")), var("C", ("n", "n"))
    g = tc.grad(tc.sum(C * tc.linalg.cholesky(A)), A)
    kinds = [str(s.params[0]) for s in make_plan([bare(g)], {"n": n}).steps if s.kind == "kernel"]
    assert "cholesky_pullback" in kinds
    rng = np.random.default_rng(0)
    a, c = rng.normal(size=(2, n, n))
    a = a @ a.T + n * np.eye(n)
    factor = np.linalg.cholesky(a)
    middle = np.tril(factor.T @ c)
    middle = (middle + np.tril(middle, -1).T) / 2
    wanted = np.linalg.solve(factor.T, np.linalg.solve(factor.T, middle).T)
    found = compile(g)(A=a, C=c)
    np.testing.assert_allclose(found, wanted, atol=1e-12 * np.abs(wanted).max())


def test_a_gradient_works_in_the_memory_of_its_factor() -> None:
    """The Cholesky factor is made over the kernel matrix, and its inverse over the factor."""
    la = tc.linalg
    X, y, w, t = var("X", ("n", "d")), var("y", "n"), var("w", "d"), var("t")
    squares = (X[:, None, :] - X[None, :, :]) ** 2
    factor = la.cholesky(tc.exp(-squares @ w) + t * tc.eye("n"))
    white = la.solve_triangular(factor, y, lower=True)
    gradient = tc.grad(white @ white / 2 + la.sumlogdiag(factor), (w, t))
    plan = tc.compile(gradient).plan_for(n=1000, d=4)
    assert plan.peak_bytes < 2.1 * 8 * 1000**2
    assert plan.flops < 1.3e9


# --- halves of products ---------------------------------------------------------------------------


def halves(expression, **sizes: int) -> list[str]:
    """Which halves of its products a plan computes."""
    plan = compile(expression).plan_for(**sizes)
    return [step.params[0] for step in plan.steps if step.kind == "dot" and step.params]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [256, 300, 384])
def test_symmetric_products_are_computed_by_half(n: int, dtype: type) -> None:
    V, S = var("V", ("n", "n")), var("S", ("n", "n"), symmetric=True)
    product = V @ S @ V.T
    assert halves(product, n=n) == ["symmetric"]
    rng = np.random.default_rng(n)
    v, s = rng.normal(size=(2, n, n)).astype(dtype)
    s = s + s.T
    found = product(V=v, S=s)
    assert found.dtype == dtype
    assert np.array_equal(found, found.T)
    wanted = v.astype(float) @ s.astype(float) @ v.T.astype(float)
    assert np.abs(found - wanted).max() < 64 * np.finfo(dtype).eps * np.abs(wanted).max()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_only_the_half_under_a_triangle_is_computed(dtype: type) -> None:
    A, B = var("A", ("n", "m")), var("B", ("m", "n"))
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(300, 70)).astype(dtype), rng.normal(size=(70, 300)).astype(dtype)
    tolerance = 64 * float(np.finfo(dtype).eps)
    mask = lower_ones("n")
    for e, half, wanted in (
        (mask * (A @ B), "lower", np.tril(a @ b)),
        (mask.T * (A @ B), "upper", np.triu(a @ b)),
    ):
        assert halves(e, n=300, m=70) == [half]
        assert_close(compile(e)(A=a, B=b), wanted, tolerance)
    declared = compile(var("P", ("n", "n"), lower=True) * (A @ B))
    assert_close(declared(P=np.tri(300), A=a, B=b), np.tril(a @ b), tolerance)


def test_pullbacks_under_triangles_compute_halves() -> None:
    A, C, D = var("A", ("m", "n")), var("C", ("m", "m")), var("D", ("m", "n"))
    factor, q = tc.linalg.lq(A)
    gradient = tc.grad(tc.sum(C * factor) + tc.sum(D * q), A)
    assert sorted(halves(gradient, m=300, n=400)) == ["lower", "upper"]
    rng = np.random.default_rng(1)
    values = {"A": rng.normal(size=(300, 400)), "C": rng.normal(size=(300, 300))}
    values["D"] = rng.normal(size=(300, 400))
    found = compile(gradient)(**values)
    lower, back = np.linalg.qr(values["A"].T)[::-1]
    signs = np.sign(np.diag(lower))
    L, Q = (lower * signs[:, None]).T, (back * signs).T
    M = np.tril(L.T @ np.tril(values["C"]) - values["D"] @ Q.T)
    inner = M + np.tril(M, -1).T
    assert_close(found, np.linalg.solve(L.T, inner @ Q + values["D"]), 1e-8)


def test_what_others_read_is_computed_whole() -> None:
    A, B = var("A", ("n", "n")), var("B", ("n", "n"))
    product = A @ B
    mask = tc.linalg.cholesky(var("K", ("n", "n"), positive_definite=True))
    assert halves([mask * product, product], n=300) == []
    assert halves([mask * product, tc.sum(product)], n=300) in ([], ["lower"])
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(2, 300, 300))
    found, whole = compile([mask * product, product])(A=a, B=b, K=np.eye(300))
    assert_close(whole, a @ b, 1e-11)
    assert_close(found, np.diag(np.diag(a @ b)), 1e-11)


def test_a_hessian_through_a_kernel_takes_few_products() -> None:
    """d + 1 matrices times the inverse, its factor, and nothing larger than they are twice."""
    plan = compile(gaussian_process()).plan_for(n=1000, d=4)
    assert plan.flops < 5.7 * 2 * 1000**3
    assert plan.peak_bytes < 14 * 8 * 1000**2


def kinds_of(f, sizes: dict[str, int]) -> list[str]:
    steps = make_plan([bare(f)], sizes).steps
    return [str(s.params[0]) if s.kind in ("kernel", "ufunc") else s.kind for s in steps]


@pytest.mark.parametrize("sizes", [(3, 4, 2), (30, 40, 5), (1, 50, 90), (3, 0, 2), (3, 4, 0)])
def test_squared_distances_are_one_kernel(sizes: tuple[int, int, int]) -> None:
    n, m, k = sizes
    text = "sum[i,j](w[i,j]*exp(-sum[l](s[i]*(a[l,i] - b[j,l] + g[l] + 2*h[i])^2 + c[l])/5))"
    shapes = {"a": ("k", "n"), "b": ("m", "k"), "c": ("k",), "g": ("k",), "h": ("n",),
              "s": ("n",), "w": ("n", "m")}  # fmt: skip
    f = tc.parse_index(text, **shapes)
    known = {"n": n, "m": m, "k": k}
    assert kinds_of(f, known).count("squared_distances") == 1
    rng = np.random.default_rng(n)
    data = {v: rng.uniform(0, 1, [known[x] for x in shape]) for v, shape in shapes.items()}
    a, b, g, h = (data[v] for v in "abgh")
    d = a.T[:, None] - b + g + 2 * h[:, None, None]
    wanted = data["s"][:, None] * (d * d).sum(2) + data["c"].sum()
    assert_close(compile(f)(**data), (data["w"] * np.exp(-wanted / 5)).sum(), 1e-12)


def test_squares_of_other_sums_are_not_distances() -> None:
    a, b, x = var("a", ("n", "k")), var("b", ("m", "k")), var("x", ("n", "m", "k"))
    wide = a[:, None, :] + b
    for f in (tc.sum(tc.exp(tc.sum((wide + x) ** 2, 2))), tc.sum(tc.exp(tc.sum(wide**2, 1))),
              tc.sum(tc.exp(tc.sum((a + 1) ** 2, 1)))):  # fmt: skip
        found = kinds_of(f, {"n": 5, "m": 6, "k": 7})
        assert "squared_distances" not in found
    rng = np.random.default_rng(0)
    u, v = rng.normal(size=(5, 7)), rng.normal(size=(6, 7))
    wanted = np.exp(((u[:, None] + v) ** 2).sum(1) / 9).sum()
    assert_close(compile(tc.sum(tc.exp(tc.sum(wide**2, 1) / 9)))(a=u, b=v), wanted, 1e-12)


def test_a_quotient_is_the_same_beside_its_gradient() -> None:
    """x times 1 / y is not x / y where 1 / y overflows."""
    x, y = var("x", ("n",)), var("y", ("n",))
    f = tc.sum(x / y)
    both = compile((f, tc.grad(f, "x")))
    assert both(x=[1e-310], y=[1e-310])[0] == 1
