"""Printed programs multiply as much as plans do: models with common products, counted in a run."""

from __future__ import annotations

import ast
import re
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from tcalc.graph.nodes import dimensions
from tcalc.graph.trees import leaves
from tcalc.plan.kinds.table import KINDS
from tests.shared import run_source

N, D = 150, 3
X, Z, y, s, w = (
    tc.var("X", ("n", "d")),
    tc.var("Z", ("m", "d")),
    tc.var("y", "n"),
    tc.var("s"),
    tc.var("w", "d"),
)
b, A, B = tc.var("b", "d"), tc.var("A", ("n", "n")), tc.var("B", ("n", "n"))
SIZES = {"n": N, "d": D, "m": 12}


def distances(one: tc.Expr, other: tc.Expr) -> tc.Expr:
    return (one[:, None, :] - other[None, :, :]) ** 2 @ tc.exp(w)


def evidence(kernel: tc.Expr, residual: tc.Expr) -> tc.Expr:
    factor = tc.linalg.cholesky(kernel)
    white = tc.linalg.solve_triangular(factor, residual, lower=True)
    return white @ white / 2 + tc.linalg.sumlogdiag(factor)


noise = tc.exp(s) * tc.eye("n")
across = tc.exp(-distances(X, Z))
#: Values, and the variables of their derivatives.
MODELS: dict[str, tuple[tc.Expr, tuple[str, ...]]] = {
    "squared exponential": (evidence(tc.exp(-distances(X, X) / 2) + noise, y), ("w", "s")),
    "rational quadratic": (evidence((1 + distances(X, X)) ** -2 + noise, y), ("w", "s")),
    "periodic": (evidence(tc.exp(-tc.sin(distances(X, X)) ** 2) + N * noise, y), ("w", "s")),
    "linear": (evidence(X @ tc.diag(tc.exp(w)) @ X.T + noise, y), ("w", "s")),
    "generalised least squares": (
        evidence(tc.exp(s) * A @ A.T + tc.eye("n"), y - X @ b),
        ("b", "s"),
    ),
    "inducing points": (evidence(across @ across.T + noise, y), ("w", "s")),
    "a quadratic form in two inverses": (
        y @ tc.inv(A @ A.T + noise) @ B @ tc.inv(A @ A.T + noise) @ y,
        ("s",),
    ),
    "products of three": (tc.sum((A @ B @ A) ** 2) + tc.trace(A @ B @ A @ B), ("A",)),
}  # fmt: skip
ORDERS = {
    "gradient": lambda e, wrt: tc.grad(e, wrt),
    "Hessian": lambda e, wrt: tc.hessian(e, wrt) if "A" not in wrt else tc.grad(e, wrt),
}


class Products(ast.NodeTransformer):
    """``a @ b`` as a call that is counted."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.op, ast.MatMult):
            return node
        return ast.Call(ast.Name("_matmul", ast.Load()), [node.left, node.right], [])


class Counting:
    """NumPy, and what programs call beside it, with the multiply-adds that they did."""

    def __init__(self, source: str) -> None:
        self.done = 0.0
        self.scope: dict[str, Any] = {}
        tree = ast.fix_missing_locations(Products().visit(ast.parse(source)))
        exec(compile(tree, "printed", "exec"), self.scope)
        for name in ("_cholesky", "_inverse_definite", "_solve_definite", "_solve_lower"):
            if name in self.scope:
                self.scope[name] = partial(getattr(self, name), self.scope[name])
        self.scope.update(np=self, _matmul=self.matmul)

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def matmul(self, a: Any, b: Any) -> Any:
        found = a @ b
        half = a.ndim == b.ndim == 2 and same(a, b.T)  # one triangle is computed
        self.done += np.size(found) * a.shape[-1] / (1 + half)
        return found

    def tensordot(self, a: Any, b: Any, axes: Any) -> Any:
        self.done += a.size * prod([n for k, n in enumerate(b.shape) if k not in axes[1]])
        return np.tensordot(a, b, axes)

    def vdot(self, a: Any, b: Any) -> Any:
        self.done += a.size
        return np.vdot(a, b)

    def einsum(self, signature: str, *arrays: Any) -> Any:
        extents: dict[str, int] = {}
        for word, a in zip(signature.partition("->")[0].split(","), arrays, strict=True):
            extents.update(zip(word, a.shape, strict=True))
        self.done += prod(extents.values()) if len(arrays) > 1 else 0
        return np.einsum(signature, *arrays)

    def _cholesky(self, call: Any, a: Any, **options: Any) -> Any:
        self.done += len(a) ** 3 / 6
        return call(a, **options)

    def _inverse_definite(self, call: Any, factor: Any, **options: Any) -> Any:
        self.done += len(factor) ** 3 / 3
        return call(factor, **options)

    def _solve_definite(self, call: Any, factor: Any, b: Any) -> Any:
        self.done += len(factor) * b.size
        return call(factor, b)

    def _solve_lower(self, call: Any, a: Any, b: Any, transposed: bool) -> Any:
        self.done += len(a) * b.size / 2
        return call(a, b, transposed)


def sizes_of(e: Any) -> dict[str, int]:
    """The extents of an expression's dimensions."""
    return {name: SIZES[name] for name in dimensions(leaves(e))}


def data_of(e: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    names = {v.name: v for leaf in leaves(e) for v in leaf.variables.values()}
    return {
        name: rng.normal(size=[SIZES[str(n)] for n in v.shape]) / 4 for name, v in names.items()
    }


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.__array_interface__ == b.__array_interface__


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("model", MODELS)
def test_programs_multiply_as_much_as_plans(
    model: str, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Operations of products, factorisations and solves.

    Programs are for any extents: what plans save where matrices have few columns is not in them.
    """
    monkeypatch.setattr("tcalc.calculus.respelling.by_low_rank", lambda roots, sizes: list(roots))
    value, wrt = MODELS[model]
    e = ORDERS[order](value, wrt)
    data = data_of(e)
    program = Counting(tc.to_code(e, sizes=sizes_of(e)))
    found = leaves(program.scope["f"](**data))
    step = tc.compile(e, backend="functional")
    for one, other in zip(found, leaves(step(data)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-8)
    steps = step.plan_for(**{name: a.shape for name, a in data.items()}).steps
    speeds = ("gemm", "factorisation")
    planned = sum([t.flops for t in steps if KINDS[t.kind].speed in speeds])
    assert 2 * program.done <= 1.1 * planned


def products(source: str) -> int:
    """How many products stand in the function."""
    tree = ast.parse(source[source.index("def f(") :])
    calls = [
        node.func.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    matmuls = [node for node in ast.walk(tree) if isinstance(node, ast.MatMult)]
    return len(matmuls) + sum([calls.count(name) for name in ("tensordot", "einsum", "vdot")])


def test_what_several_contractions_need_is_computed_once() -> None:
    x, z = tc.var("x", "n"), tc.var("z", "n")
    cases = [
        ((A @ B @ x, A @ B @ z, tc.sum(A @ B * A)), 4),
        ((tc.trace(A @ B @ A @ B), A @ B), 2),
        ((x @ (A * B) @ z, (A * B) @ z), 2),
        ((A @ B @ x, B.T @ A.T), 2),
    ]
    for e, count in cases:
        assert products(tc.to_code(e, sizes={"n": 1000})) <= count
        data = data_of(e)
        for one, other in zip(run_source(e, data), tc.compile(e)(data), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def test_extents_decide_between_orders() -> None:
    """A chain of three matrices, of which either pair comes first."""
    one, two, three = (tc.var(k, tuple(v)) for k, v in (("P", "ab"), ("Q", "bc"), ("R", "cd")))
    e = one @ two @ three
    texts = [
        tc.to_code(e, sizes={"a": 1000, "b": 10, "c": 1000, "d": 10}),
        tc.to_code(e, sizes={"a": 10, "b": 1000, "c": 10, "d": 1000}),
    ]
    assert "return P @ (Q @ R)\n" in texts[0]
    assert "return P @ Q @ R\n" in texts[1]
    with pytest.raises(TypeError):
        tc.to_code(e, sizes={"a": 1.5})


@pytest.mark.parametrize("language", ["numpy", "c", "julia"])
def test_sizes_of_what_is_no_dimension_are_refused_by_name(language: str) -> None:
    x = tc.var("x", ("m", "k"))
    with pytest.raises(TypeError, match=r"^n, q are no dimensions of the expression \(k, m\)$"):
        tc.to_code([tc.sum(x), tc.exp(x)], language, sizes={"m": 3, "q": 4, "n": 5})
    cancelled = tc.grad(tc.sum(x + tc.var("y", "k")), x)
    assert tc.to_code(cancelled, language, sizes={"m": 3, "k": 4})


def test_sums_of_smaller_arrays_have_their_matrices_last() -> None:
    """Where all of them is made: the axis that all terms have stands first."""
    value, wrt = MODELS["squared exponential"]
    e = tc.hessian(value, wrt)
    source = tc.to_code(e, sizes=sizes_of(e))
    assert " = np.ascontiguousarray(X.T)\n" in source
    assert "[:, :, None] - t" in source
    assert re.search(r"\b(t\d+) \*= \1\n", source)  # squared in place
