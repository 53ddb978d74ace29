"""The matrix language against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import tcalc as tc
from tcalc.graph.operators import TABLE
from tcalc.support.namespaces import NUMPY

DECLARED: dict[str, Any] = {
    **dict.fromkeys(("a", "b", "c"), ()),
    **dict.fromkeys(("x", "y"), ("n",)),
    "z": ("m",),
    **dict.fromkeys(("A", "P"), ("n", "n")),
    **dict.fromkeys(("B", "E"), ("m", "n")),
    "C": ("n", "k"),
    "S": tc.var("S", ("n", "n"), symmetric=True),
    "T3": ("n", "n", "n"),
    "v4": (4,),
    "F": (4, 4),
    "G": (2, 4),
    "mask_1": "n",
}
SIZES = {"m": 3, "n": 4, "k": 2}


def _values() -> dict[str, np.ndarray]:
    random = np.random.default_rng(7)
    found = {}
    for name, shape in DECLARED.items():
        extents = shape.shape if isinstance(shape, tc.Expr) else shape
        extents = (extents,) if isinstance(extents, str) else extents
        found[name] = random.uniform(0.3, 1.7, [SIZES.get(e, e) for e in extents])
    found["S"] = found["S"] + found["S"].T
    found["A"] = found["A"] + 2 * np.eye(4)
    found["S"] = found["S"] + 5 * np.eye(4)
    found["mask_1"] = np.array([0.0, 1.0, 0.0, 2.0])
    return found


VALUES = _values()


V = SimpleNamespace(**VALUES)
norm = np.linalg.norm
Reference = Callable[[], Any]

CASES: list[tuple[str, Reference, tuple[Any, ...]]] = [
    # precedence and associativity
    ("a + b*c", lambda: V.a + V.b * V.c, ()),
    ("a - b - c", lambda: V.a - V.b - V.c, ()),
    ("a - (b - c)", lambda: V.a - (V.b - V.c), ()),
    ("a/b/c", lambda: V.a / V.b / V.c, ()),
    ("a/b*c", lambda: V.a / V.b * V.c, ()),
    ("a*b/c*2", lambda: V.a * V.b / V.c * 2, ()),
    ("-a^2", lambda: -(V.a**2), ()),
    ("(-a)^2", lambda: V.a**2, ()),
    ("-a*b", lambda: -V.a * V.b, ()),
    ("a*-b", lambda: -V.a * V.b, ()),
    ("a - -b", lambda: V.a + V.b, ()),
    ("--a", lambda: V.a, ()),
    ("+a - +b", lambda: V.a - V.b, ()),
    ("a^-b", lambda: V.a**-V.b, ()),
    ("a^+2*b", lambda: V.a**2 * V.b, ()),
    ("a^b*c", lambda: V.a**V.b * V.c, ()),
    ("a^(b*c)", lambda: V.a ** (V.b * V.c), ()),
    ("(a^b)^c", lambda: (V.a**V.b) ** V.c, ()),
    ("a^(b^c)", lambda: V.a ** (V.b**V.c), ()),
    ("a^sin(b)'", lambda: V.a ** np.sin(V.b), ()),
    ("a^-sin(b) + 1", lambda: V.a ** -np.sin(V.b) + 1, ()),
    ("2^a'^b", lambda: (2**V.a) ** V.b, ()),
    ("x.^2'", lambda: V.x**2, ("n",)),
    ("x.^2'*y", lambda: V.x**2 @ V.y, ()),
    ("x'.^2*y", lambda: V.x**2 @ V.y, ()),
    ("x.^-a", lambda: V.x**-V.a, ("n",)),
    ("-x.^2", lambda: -(V.x**2), ("n",)),
    ("2.^x", lambda: 2**V.x, ("n",)),
    ("x.^y", lambda: V.x**V.y, ("n",)),
    ("1./x", lambda: 1 / V.x, ("n",)),
    ("1.*x", lambda: V.x, ("n",)),
    ("1.5.*x", lambda: 1.5 * V.x, ("n",)),
    ("1.'*x", lambda: V.x, ("n",)),
    ("1.e1*a", lambda: 10 * V.a, ()),
    ("1. + a", lambda: 1 + V.a, ()),
    (".5e-1*a + 1E+2", lambda: 0.05 * V.a + 100, ()),
    ("x*a./b", lambda: V.x * V.a / V.b, ("n",)),
    ("a*x.*y", lambda: V.a * V.x * V.y, ("n",)),
    ("B*x.*z", lambda: (V.B @ V.x) * V.z, ("m",)),
    ("z.*(B*x)", lambda: (V.B @ V.x) * V.z, ("m",)),
    # products of scalars, columns, rows and matrices
    ("x'*y", lambda: V.x @ V.y, ()),
    ("x*y'", lambda: np.outer(V.x, V.y), ("n", "n")),
    ("x*z'", lambda: np.outer(V.x, V.z), ("n", "m")),
    ("B*x", lambda: V.B @ V.x, ("m",)),
    ("z'*B", lambda: V.z @ V.B, ("n",)),
    ("B*C", lambda: V.B @ V.C, ("m", "k")),
    ("B'*z", lambda: V.B.T @ V.z, ("n",)),
    ("B.'*z", lambda: V.B.T @ V.z, ("n",)),
    ("z'*B*x", lambda: V.z @ V.B @ V.x, ()),
    ("x'*A*x", lambda: V.x @ V.A @ V.x, ()),
    ("x'*S*y", lambda: V.x @ V.S @ V.y, ()),
    ("(B*x)'", lambda: V.B @ V.x, ("m",)),
    ("B''", lambda: V.B, ("m", "n")),
    ("(B*C)'", lambda: (V.B @ V.C).T, ("k", "m")),
    ("a*B", lambda: V.a * V.B, ("m", "n")),
    ("B*a", lambda: V.a * V.B, ("m", "n")),
    ("x'*a", lambda: V.a * V.x, ("n",)),
    ("x'*y*x", lambda: (V.x @ V.y) * V.x, ("n",)),
    ("x*y'*x", lambda: V.x * (V.y @ V.x), ("n",)),
    ("v4'*x1", lambda: V.v4 @ V.x, ()),
    # entrywise
    ("B + E - 2*B", lambda: V.E - V.B, ("m", "n")),
    ("B.*E", lambda: V.B * V.E, ("m", "n")),
    ("B./E", lambda: V.B / V.E, ("m", "n")),
    ("x' + y'", lambda: V.x + V.y, ("n",)),
    ("x' - (y + 1)'", lambda: V.x - V.y - 1, ("n",)),
    ("a - B", lambda: V.a - V.B, ("m", "n")),
    ("x + 1", lambda: V.x + 1, ("n",)),
    ("a./B", lambda: V.a / V.B, ("m", "n")),
    ("B/a", lambda: V.B / V.a, ("m", "n")),
    ("x/3", lambda: V.x / 3, ("n",)),
    ("x/(x'*y)", lambda: V.x / (V.x @ V.y), ("n",)),
    ("exp(-B)", lambda: np.exp(-V.B), ("m", "n")),
    ("log(1 + exp(x'))", lambda: np.log1p(np.exp(V.x)), ("n",)),
    ("max(x, y)", lambda: np.maximum(V.x, V.y), ("n",)),
    ("min(B, 1)", lambda: np.minimum(V.B, 1), ("m", "n")),
    ("max(a, b)", lambda: np.maximum(V.a, V.b), ()),
    ("clip(x, 0.5, 1)", lambda: np.clip(V.x, 0.5, 1), ("n",)),
    ("square(B)", lambda: V.B**2, ("m", "n")),
    ("xlogy(x, y)", lambda: V.x * np.log(V.y), ("n",)),
    ("arctan2(x, 2)", lambda: np.arctan2(V.x, 2), ("n",)),
    ("abs(-x) + sign(x)", lambda: V.x + 1, ("n",)),
    # solve and matrix powers
    ("A\\x", lambda: np.linalg.solve(V.A, V.x), ("n",)),
    ("A\\C", lambda: np.linalg.solve(V.A, V.C), ("n", "k")),
    ("2*A\\x", lambda: np.linalg.solve(2 * V.A, V.x), ("n",)),
    ("A^0", lambda: np.eye(4), ("n", "n")),
    ("A^1", lambda: V.A, ("n", "n")),
    ("A^2", lambda: V.A @ V.A, ("n", "n")),
    ("A^7", lambda: np.linalg.matrix_power(V.A, 7), ("n", "n")),
    ("A^-1", lambda: np.linalg.inv(V.A), ("n", "n")),
    ("A^-3*x", lambda: np.linalg.matrix_power(V.A, -3) @ V.x, ("n",)),
    ("A^(1+1)", lambda: V.A @ V.A, ("n", "n")),
    ("A^2'", lambda: (V.A @ V.A).T, ("n", "n")),
    ("A'^2", lambda: (V.A @ V.A).T, ("n", "n")),
    ("A.^2", lambda: V.A**2, ("n", "n")),
    # functions on all entries
    ("sum(B)", lambda: V.B.sum(), ()),
    ("sum(x')", lambda: V.x.sum(), ()),
    ("mean(B)", lambda: V.B.mean(), ()),
    ("prod(B)", lambda: V.B.prod(), ()),
    ("max(B)", lambda: V.B.max(), ()),
    ("min(x)", lambda: V.x.min(), ()),
    ("sum(a) + max(b)", lambda: V.a + V.b, ()),
    ("var(B) + std(x)", lambda: V.B.var() + V.x.std(), ()),
    ("norm1(-x)", lambda: V.x.sum(), ()),
    ("norm1(-B)", lambda: V.B.sum(), ()),
    ("norm1(-a) + norm2(-b)", lambda: V.a + V.b, ()),
    ("norm2(x)", lambda: np.linalg.norm(V.x), ()),
    ("norm2(B)", lambda: np.linalg.norm(V.B), ()),
    ("norm2(A*x - y)^2", lambda: ((V.A @ V.x - V.y) ** 2).sum(), ()),
    ("logsumexp(x)", lambda: scipy.special.logsumexp(V.x), ()),
    ("logsumexp(B)", lambda: scipy.special.logsumexp(V.B), ()),
    ("softmax(x)", lambda: scipy.special.softmax(V.x), ("n",)),
    ("log_softmax(x')*y", lambda: scipy.special.log_softmax(V.x) @ V.y, ()),
    # matrix functions
    ("tr(A*S)", lambda: np.trace(V.A @ V.S), ()),
    ("trace(x*x')", lambda: V.x @ V.x, ()),
    ("det(A)", lambda: np.linalg.det(V.A), ()),
    ("logdet(A)", lambda: np.linalg.slogdet(V.A)[1], ()),
    ("inv(A)*x", lambda: np.linalg.solve(V.A, V.x), ("n",)),
    ("adj(A)", lambda: np.linalg.det(V.A) * np.linalg.inv(V.A), ("n", "n")),
    ("diag(x)", lambda: np.diag(V.x), ("n", "n")),
    ("diag(x')", lambda: np.diag(V.x), ("n", "n")),
    ("diag(A)", lambda: np.diag(V.A), ("n",)),
    ("-diag(S)", lambda: -np.diag(V.S), ("n",)),
    ("diag(z)*B", lambda: np.diag(V.z) @ V.B, ("m", "n")),
    ("B*diag(x)", lambda: V.B * V.x, ("m", "n")),
    ("kron(a, B)", lambda: V.a * V.B, ("m", "n")),
    ("B ⊗ 2", lambda: 2 * V.B, ("m", "n")),
    ("x ⊗ z'", lambda: np.outer(V.x, V.z), ("n", "m")),
    ("x' ⊗ z", lambda: np.outer(V.z, V.x), ("m", "n")),
    ("chol(S)", lambda: np.linalg.cholesky(V.S), ("n", "n")),
    ("cholesky(S)'*x", lambda: np.linalg.cholesky(V.S).T @ V.x, ("n",)),
    ("tri_inverse(chol(S))*x", lambda: np.linalg.solve(np.linalg.cholesky(V.S), V.x), ("n",)),
    ("lower_triangle(A)", lambda: np.tril(V.A), ("n", "n")),
    ("expm(A)", lambda: scipy.linalg.expm(V.A), ("n", "n")),
    ("sqrtm(S)*sqrtm(S)", lambda: V.S, ("n", "n")),
    ("logm(S)*x", lambda: scipy.linalg.logm(V.S) @ V.x, ("n",)),
    ("det_sign(-A)", lambda: np.linalg.slogdet(-V.A)[0], ()),
    ("sumlogdiag(A)", lambda: np.log(np.diag(V.A)).sum(), ()),
    # factorisations, whose parts are functions of their own
    ("eigvals(S) + x", lambda: np.linalg.eigvalsh(V.S) + V.x, ("n",)),
    ("eigvalsh(S)", lambda: np.linalg.eigvalsh(V.S), ("n",)),
    ("eigvecs(S)*diag(eigvals(S))*eigvecs(S)'", lambda: V.S, ("n", "n")),
    ("diag(column_signs(eigvecs(S))).^2", lambda: np.eye(4), ("n", "n")),
    ("svdvals(C)", lambda: np.linalg.svd(V.C)[1], ("min(k,n)",)),
    ("svd_u(C)*diag(svd_s(C))*svd_vh(C)", lambda: V.C, ("n", "k")),
    ("svd_u(G)*diag(svd_s(G))*svd_vh(G)", lambda: V.G, (2, 4)),
    ("qr_q(C)*qr_r(C)", lambda: V.C, ("n", "k")),
    ("qr_q(G)*qr_r(G)", lambda: V.G, (2, 4)),
    ("lq_l(B)*lq_q(B)", lambda: V.B, ("m", "n")),
    ("lq_l(G')*lq_q(G')", lambda: V.G.T, (4, 2)),
    ("pinv(C)*x", lambda: np.linalg.pinv(V.C) @ V.x, ("k",)),
    ("lstsq(C, x)", lambda: np.linalg.lstsq(V.C, V.x)[0], ("k",)),
    ("lstsq(C, B')", lambda: np.linalg.lstsq(V.C, V.B.T)[0], ("k", "m")),
    ("norm(x) + norm(B) + norm(-a)", lambda: norm(V.x) + norm(V.B) + V.a, ()),
    ("norm(x, 1) + norm(x, inf)", lambda: norm(V.x, 1) + norm(V.x, np.inf), ()),
    ("norm(C, 2) + norm(C, 1)", lambda: norm(V.C, 2) + norm(V.C, 1), ()),
    # entries that move, with literals
    ("cumsum(x)", lambda: np.cumsum(V.x), ("n",)),
    ("revcumsum(x)", lambda: np.cumsum(V.x[::-1])[::-1], ("n",)),
    ("extracttrian(F)", lambda: V.F[np.tril_indices(4)], (10,)),
    ("extracttrian(F, -1, True)'*vector(1, 6)", lambda: V.F[np.tril_indices(4, -1)].sum(), ()),
    ("maketrian(extracttrian(F, 0, False), 0, False)", lambda: np.triu(V.F), (4, 4)),
    ("extractdiag(F, +1)", lambda: np.diag(V.F, 1), (3,)),
    ("extractdiag(A)", lambda: np.diag(V.A), ("n",)),
    ("makediag(v4, -1)", lambda: np.diag(V.v4, -1), (5, 5)),
    ("lower_ones(4) .* F", lambda: np.tril(V.F), (4, 4)),
    ("leading_rows(2, 4)*F", lambda: V.F[:2], (2, 4)),
    # constants, sizes given and inferred
    ("pi*a", lambda: np.pi * V.a, ()),
    ("A + a*eye", lambda: V.A + V.a * np.eye(4), ("n", "n")),
    ("eye*x", lambda: V.x, ("n",)),
    ("eye(n)*x", lambda: V.x, ("n",)),
    ("eye(4)*v4", lambda: V.v4, (4,)),
    ("eye(2) + eye", lambda: 2 * np.eye(2), (2, 2)),
    ("x + vector(a)", lambda: V.x + V.a, ("n",)),
    ("vector(1)'*x", lambda: V.x.sum(), ()),
    ("vector(a, 3)", lambda: np.full(3, V.a), (3,)),
    ("vector(a, n) + x", lambda: V.x + V.a, ("n",)),
    ("matrix(2) + B", lambda: V.B + 2, ("m", "n")),
    ("B*matrix(1)*C'", lambda: V.B @ np.ones((4, 2)) @ V.C.T, ("m", "n")),
    ("matrix(a, 2, 3)", lambda: np.full((2, 3), V.a), (2, 3)),
    ("matrix(a, m, 2)'*B", lambda: np.full((2, 3), V.a) @ V.B, (2, "n")),
    ("z*vector(1)' + B", lambda: V.B + V.z[:, None], ("m", "n")),
    # dimensions as numbers
    ("sum(x)/n", lambda: V.x.mean(), ()),
    ("n*x - x.*n/2/m", lambda: 4 * V.x - V.x * 4 / 6, ("n",)),
    ("vector(1/k, k)", lambda: np.full(2, 0.5), ("k",)),
    # comparisons
    ("where(x > 1, x, 0)", lambda: np.where(V.x > 1, V.x, 0), ("n",)),
    ("where(x >= y, x, y)", lambda: np.maximum(V.x, V.y), ("n",)),
    ("where((x < y), 1, 2)", lambda: np.where(V.x < V.y, 1, 2), ("n",)),
    ("where(a <= b, B, E)", lambda: V.B if V.a <= V.b else V.E, ("m", "n")),
    ("where(a == a + 1, x, y)", lambda: V.y, ("n",)),
    ("where(x + 1 != y*2, 1, x)", lambda: np.ones(4), ("n",)),
    ("where(mask_1, x, y)", lambda: np.where(V.mask_1 != 0, V.x, V.y), ("n",)),
    (
        "where(logical_and(x > 0.5, logical_not(y > 1)), x, 0)",
        lambda: np.where((V.x > 0.5) & ~(V.y > 1), V.x, 0),
        ("n",),
    ),
    ("y .* (x > 1)", lambda: V.y * (V.x > 1), ("n",)),
    ("sum(x <= y) + (a == b)", lambda: np.sum(V.x <= V.y) + (V.a == V.b), ()),
    ("x != y", lambda: np.asarray(V.x != V.y, dtype=float), ("n",)),
    ("where(x, x > 1, y)", lambda: np.where(V.x != 0, V.x > 1, V.y), ("n",)),
    # other spellings
    ("x⊙y⊘x − y", lambda: 0 * V.x, ("n",)),
    ("a·xᵀ*y", lambda: V.a * V.x @ V.y, ()),
    ("A² ᵀ + a²", lambda: (V.A @ V.A).T + V.a**2, ("n", "n")),
    ("Aᵀ²", lambda: (V.A @ V.A).T, ("n", "n")),
    # statements, comments, lines
    ("r = A*x - y; r'*r", lambda: ((V.A @ V.x - V.y) ** 2).sum(), ()),
    ("r = x\n\ns = r + y;\ns.*r\n", lambda: (V.x + V.y) * V.x, ("n",)),
    ("value = x'*y", lambda: V.x @ V.y, ()),
    ("# first\nsum(x # entries\n) % all", lambda: V.x.sum(), ()),
    ("sum(\n x\n + y)\n", lambda: (V.x + V.y).sum(), ()),
    (";;\r\n a ;; \n # end", lambda: V.a, ()),
    ("sum = x'*y; sum*2", lambda: 2 * V.x @ V.y, ()),
    # what was asked of the language by its users
    (
        "sum(log(1 + exp(-z .* (B*x))))",
        lambda: np.log1p(np.exp(-V.z * (V.B @ V.x))).sum(),
        (),
    ),
    ("logdet(A'*A + eye)", lambda: np.linalg.slogdet(V.A.T @ V.A + np.eye(4))[1], ()),
]


@pytest.mark.parametrize(("text", "reference", "shape"), CASES, ids=[c[0] for c in CASES])
def test_value(text: str, reference: Reference, shape: tuple[Any, ...]) -> None:
    e = tc.parse(text, **DECLARED)
    assert e.shape == shape
    sizes = {name: SIZES[name] for name in SIZES if name not in VALUES}
    found = e(**VALUES, **sizes, x1=VALUES["x"])
    np.testing.assert_allclose(found, reference(), rtol=1e-12, atol=1e-12)


ELEMENTWISE = sorted(name for name, row in TABLE.items() if row.elementwise and row.core)


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_every_elementwise_row_is_a_function(name: str) -> None:
    row = TABLE[name]
    names = ["x", "y", "w"][: len(row.core)]
    values = {
        n: np.linspace(low, high, 5) for n, (low, high) in zip(names, row.domain, strict=True)
    }
    found = tc.parse(f"{name}({', '.join(names)})")(**values)
    np.testing.assert_allclose(found, row.kernels.compute(NUMPY, (), *values.values()), rtol=1e-14)


def test_scaling_holds_no_square_matrix() -> None:
    scaled = tc.parse("diag(z)*B", **DECLARED)
    assert scaled is tc.parse("B", **DECLARED) * tc.parse("z", **DECLARED)[:, None]


# --- undeclared names -----------------------------------------------------------------------------

UNDECLARED = [
    ("x'*A*x", {"A": ("n", "n"), "x": ("n",)}),
    ("sum(log(1 + exp(-y .* (X*w))))", {"X": ("m", "n"), "w": ("n",), "y": ("m",)}),
    ("A*B*x", {"A": ("m", "n"), "B": ("n", "p"), "x": ("p",)}),
    ("a*x1'*b2 + h'*Z9", {"Z9": ("m", "n"), "a": (), "b2": (), "h": ("m",), "x1": ("n",)}),
    ("n*m'", {"m": ("q",), "n": ("p",)}),
    ("v'*x", {"v": ("k",), "x": ("k",)}),
    ("B'*x + eye(n)*y", {"B": ("m", "n"), "x": ("m",), "y": ("n",)}),
    ("tr(X) + sum(v4' + w')", {"X": ("n", "n"), "v4": (4,), "w": (4,)}),
]


@pytest.mark.parametrize(("text", "shapes"), UNDECLARED)
def test_undeclared_names(text: str, shapes: dict[str, tuple[Any, ...]]) -> None:
    declared = {"v": ("k",), "v4": (4,), "unused": ("s", "t")}
    found = {
        name: variable.shape for name, variable in tc.parse(text, **declared).variables.items()
    }
    assert found == shapes


def test_fresh_dimensions_are_many_and_distinct() -> None:
    text = " + ".join(f"sum(x{k})" for k in range(50))
    shapes = [variable.shape for variable in tc.parse(text).variables.values()]
    assert len(set(shapes)) == 50
    assert ("m1",) in shapes


def test_declarations() -> None:
    x = tc.var("x", 3, nonnegative=True)
    assert tc.parse("q'", q=x) is x
    assert tc.parse("x", x=3) is tc.var("x", 3)
    assert tc.parse("S - S'", S=tc.var("S", (2, 2), symmetric=True)) + 0 is tc.zeros((2, 2))
    for wrong in (1.5, None, np.zeros(3), True):
        with pytest.raises(TypeError, match=r"x|declared"):
            tc.parse("1", x=wrong)
    with pytest.raises(TypeError, match="str"):
        tc.parse(b"x")  # type: ignore[arg-type]
