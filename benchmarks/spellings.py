"""One model in several spellings: values that are checked, and what each spelling is planned at.

Predicted operations of value, gradient and Hessian, those of matrix products and factorisations of
the Hessian in products of n x n matrices, and n x n arrays at its peak; where asked for,
milliseconds of all three in C, of spellings that take turns. A person should not have to
know which spelling is fast, so the columns should say the same in every row of a model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import Any

import numpy as np

from . import nests, processes
from .harness import timed
from .problem import Array
from .spelled import MODELS, Model

COLUMNS = ("value", "gradient", "Hessian", "products", "n x n")
TIMES = ("value ms", "gradient", "Hessian")


def flat(blocks: nests.Nest, wrt: Any, data: Mapping[str, Array]) -> Array:
    """A Hessian by one variable or by several as one matrix."""
    if not isinstance(wrt, tuple):
        size = np.size(data[wrt.name])
        return np.reshape(blocks, (size, size))
    sizes = [np.size(data[v.name]) for v in wrt]
    return np.block([
        [np.reshape(e, (m, k)) for e, k in zip(row, sizes, strict=True)]
        for row, m in zip(blocks, sizes, strict=True)
    ])  # fmt: skip


def products(plan: Any, n: int) -> float:
    """Operations of matrix products and factorisations, in products of n x n matrices."""
    counted = ("dot", "matmul", "gram", "trisolve", "over", "finish", "solve")
    return sum(step.flops for step in plan.steps if step.kind in counted) / (2 * n**3)


def by_order(objective: Any, wrt: Any) -> list[Any]:
    """Value, gradient and Hessian."""
    import tcalc as tc

    return [objective, tc.grad(objective, wrt), tc.hessian(objective, wrt)]


def times(model: Model, n: int, repeat: int) -> list[list[float]]:
    """Best seconds of value, gradient and Hessian in C, of each spelling."""
    import tcalc as tc

    data = model.data(n)
    calls = []
    for e, wrt in model.spellings().values():
        given = {k: a for k, a in data.items() if k in e.variables}
        steps = [tc.compile(f, backend="c") for f in by_order(e, wrt)]
        calls.append([partial(step, **given) for step in steps])
    best = [[inf] * len(of) for of in calls]
    for _ in range(repeat):
        for k, of in enumerate(calls):
            for order, call in enumerate(of):
                best[k][order] = min(best[k][order], timed(call, 1))
    return best


def rows(n: int | None = None, checked: int = 40, repeat: int = 0) -> list[dict[str, Any]]:
    """What every spelling is planned at for n, by default the model's; checked at a small n.

    Times are the best of so many turns, none where `repeat` is 0.

    Raises
    ------
    RuntimeError
        Where two spellings of one model differ.
    """
    import tcalc as tc

    found = []
    for model in MODELS.values():
        data, first, size = model.data(checked), None, n or model.n
        taken = times(model, size, repeat) if repeat else []
        for place, (name, (objective, wrt)) in enumerate(model.spellings().items()):
            names = objective.variables
            plans = []
            for e in by_order(objective, wrt):
                compiled = tc.compile(e, backend="numpy")
                plans.append(compiled.plan_for(n=size))
            value = flat(compiled(**{k: a for k, a in data.items() if k in names}), wrt, data)
            first = value if first is None else first
            if not np.allclose(value, first, rtol=1e-8, atol=1e-8):
                raise RuntimeError(f"{model.name}, {name}: other values than its first spelling")
            found.append({
                "model": model.name, "n": size, "spelling": name,
                "operations": [plan.flops for plan in plans],
                "products": products(plans[-1], size),
                "matrices": plans[-1].peak_bytes / (8 * size * size),
                "seconds": taken[place] if taken else [],
            })  # fmt: skip
    return found


def text(found: Sequence[dict[str, Any]]) -> str:
    """The counts of all models, a line a spelling."""
    measured = any(row.get("seconds") for row in found)
    columns = [*COLUMNS, *(TIMES if measured else ())]
    lines = [" ".join([f"{'model':10} {'n':>6} {'spelling':24}", *map("{:>9}".format, columns)])]
    for row in found:
        counts = [*row["operations"], row["products"], row["matrices"]]
        counts += [1e3 * seconds for seconds in row.get("seconds", ())]
        named = f"{row['model']:10} {row['n']:6} {row['spelling']:24}"
        lines.append(" ".join([named, *map("{:9.3g}".format, counts)]))
    return "\n".join(lines)


def run(n: int | None = None, repeat: int = 0) -> dict[str, Any]:
    return {"rows": rows(n, repeat=repeat)}


if __name__ == "__main__":
    processes.serve(run)
