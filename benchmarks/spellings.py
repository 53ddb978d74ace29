"""One model in several spellings: values that are checked, and what each spelling is planned at.

Counts, not times: predicted operations, those of matrix products and factorisations in products of
n x n matrices, and n x n arrays at the peak. A person should not have to know which spelling is
fast, so the columns should say the same in every row of a model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import nests
from .problem import Array
from .problems import gp

D = 4


@dataclass(frozen=True)
class Model:
    """Objectives by the name of the spelling, each with its variables; all are one function.

    `data` draws arrays for all of them.
    """

    name: str
    spellings: Callable[[], Mapping[str, tuple[Any, Any]]]
    data: Callable[[int], dict[str, Array]]


def _process(squared: str, X: Any, y: Any, parameters: tuple[Any, Any, Any]) -> Any:
    import tcalc as tc

    w, s, t = parameters
    if squared == "differences":
        distances = (X[:, None, :] - X[None, :, :]) ** 2 @ tc.exp(w)
    else:
        scaled = X * tc.exp(w / 2)
        lengths = tc.sum(scaled * scaled, axis=1)
        distances = lengths[:, None] + lengths[None, :] - 2 * scaled @ scaled.T
    kernel = tc.exp(s - distances / 2) + tc.exp(t) * tc.eye("n")
    factor = tc.linalg.cholesky(kernel)
    white = tc.linalg.solve_triangular(factor, y, lower=True)
    return white @ white / 2 + tc.linalg.sumlogdiag(factor)


def processes() -> dict[str, tuple[Any, Any]]:
    """A Gaussian process: distances in two ways, parameters apart or in one vector."""
    import tcalc as tc

    X, y, th = tc.var("X", ("n", D)), tc.var("y", "n"), tc.var("th", D + 2)
    apart = tc.var("w", D), tc.var("s"), tc.var("t")
    slices = th[:D], th[D], th[D + 1]
    return {
        f"{squared}, {how}": (_process(squared, X, y, parameters), wrt)
        for squared in ("differences", "gram")
        for how, parameters, wrt in (("apart", apart, apart), ("one vector", slices, th))
    }


def _process_data(n: int) -> dict[str, Array]:
    data = gp.of_size(n, D).load(np.random.default_rng(0))
    return {**data, "th": np.concatenate([data["w"], [data["s"], data["t"]]])}


def mixtures() -> dict[str, tuple[Any, Any]]:
    """Logits by a matrix, offsets and a scale, which are apart or in one vector."""
    import tcalc as tc

    Z, r = tc.var("Z", ("n", 7)), tc.var("r", "n")
    v, a, b, c = tc.var("v", 25), tc.var("a", (7, 3)), tc.var("b", 3), tc.var("c")

    def loss(a: Any, b: Any, c: Any) -> Any:
        scores = tc.exp(c) * (Z @ a) + b
        return tc.sum(tc.logsumexp(scores, axis=1)) + r @ tc.tanh(Z @ a) @ b

    return {
        "apart": (loss(a, b, c), (a, b, c)),
        "one vector": (loss(v[:21].reshape(7, 3), v[21:24], v[24]), v),
    }


def _mixture_data(n: int) -> dict[str, Array]:
    rng = np.random.default_rng(0)
    v = rng.normal(size=25) / 4
    parts = {"a": v[:21].reshape(7, 3), "b": v[21:24], "c": v[24]}
    return {"Z": rng.normal(size=(n, 7)), "r": rng.normal(size=n), "v": v, **parts}


MODELS = (Model("gp", processes, _process_data), Model("mixture", mixtures, _mixture_data))


def flat(blocks: nests.Nest, wrt: Any, data: Mapping[str, Array]) -> Array:
    """A Hessian by one variable or by several as one matrix."""
    if not isinstance(wrt, tuple):
        return np.asarray(blocks)
    sizes = [np.size(data[v.name]) for v in wrt]
    return np.block([
        [np.reshape(e, (m, k)) for e, k in zip(row, sizes, strict=True)]
        for row, m in zip(blocks, sizes, strict=True)
    ])  # fmt: skip


def products(plan: Any, n: int) -> float:
    """Operations of matrix products and factorisations, in products of n x n matrices."""
    counted = ("dot", "matmul", "gram", "trisolve", "over", "finish", "solve")
    return sum(step.flops for step in plan.steps if step.kind in counted) / (2 * n**3)


def rows(n: int, checked: int = 40) -> list[dict[str, Any]]:
    """Of every spelling what its Hessian is planned at for n, its values checked at a small n.

    Raises
    ------
    RuntimeError
        Where two spellings of one model differ.
    """
    import tcalc as tc

    found = []
    for model in MODELS:
        data, first = model.data(checked), None
        for name, (objective, wrt) in model.spellings().items():
            compiled = tc.compile(tc.hessian(objective, wrt), backend="numpy")
            names = objective.variables
            value = flat(compiled(**{k: a for k, a in data.items() if k in names}), wrt, data)
            first = value if first is None else first
            if not np.allclose(value, first, rtol=1e-8, atol=1e-8):
                raise RuntimeError(f"{model.name}, {name}: other values than its first spelling")
            plan = compiled.plan_for(n=n)
            peak = plan.peak_bytes / (8 * n * n)
            found.append({
                "model": model.name, "spelling": name, "operations": plan.flops,
                "products": products(plan, n), "matrices": peak,
            })  # fmt: skip
    return found


def show(n: int) -> None:
    """Print the counts of all models."""
    print(f"{'model':10} {'spelling':26} {'operations':>11} {'products':>9} {'n x n held':>10}")
    for row in rows(n):
        counts = f"{row['operations']:11.3g} {row['products']:9.3g} {row['matrices']:10.3g}"
        print(f"{row['model']:10} {row['spelling']:26} {counts}")
