"""A recurrent net: s_t = tanh(W s_(t-1) + U x_t + b), half the squared norm of its last state.

n steps of k states, s_0 = 0; the weights of the inputs U are data. The net is a sequential loop,
whose expression is the same for any n.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..namespaces import scan
from ..problem import USUAL, Array, Case, Claim, Data, Form, Problem, Sizes

TEXT = "sum(s_n^2) / 2 with s_t = tanh(W s_(t-1) + U x_t + b)"


def objective(xp: Any, data: Any) -> Any:
    W, U, b = data["W"], data["U"], data["b"]
    last = scan(xp, lambda s, x: xp.tanh(W @ s + U @ x + b), 0 * b, data["X"])
    return last @ last / 2


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    W, U, b = tc.var("W", ("k", "k")), tc.var("U", ("k", "k")), tc.var("b", "k")
    X = tc.var("X", ("n", "k"))
    last = tc.fold(lambda s, t: tc.tanh(W @ s + U @ X[t] + b), tc.zeros("k"), "n")
    return last @ last / 2


def of_size(n: int, k: int = 4, quantities: Sequence[str] = USUAL) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        W, U = rng.standard_normal((2, k, k)) / np.sqrt(k)
        return {"X": rng.standard_normal((n, k)), "W": W, "U": U, "b": rng.standard_normal(k)}

    return Case(f"n={n}, k={k}", {"n": n, "k": k}, load, tuple(quantities))


def states(data: Data) -> Array:
    """s_0 … s_n."""
    W, inputs = data["W"], data["X"] @ data["U"].T + data["b"]
    found = np.zeros((len(inputs) + 1, len(W)))
    for t, x in enumerate(inputs):
        np.tanh(W @ found[t] + x, out=found[t + 1])
    return found


def value(data: Data) -> Any:
    last = states(data)[-1]
    return last @ last / 2


def gradient(data: Data) -> tuple[Array, Array]:
    """Back through time; the weights' is one product at the end."""
    W, found = data["W"], states(data)
    slopes, inner = 1 - found[1:] ** 2, np.empty_like(found[1:])
    bar = found[-1]
    for t in range(len(inner) - 1, -1, -1):
        inner[t] = bar * slopes[t]
        bar = inner[t] @ W
    return inner.T @ found[:-1], inner.sum(axis=0)


def hessian(data: Data) -> Any:
    """The gradient's derivative along every parameter: forward, then back."""
    W, found = data["W"], states(data)
    k = len(W)
    eye = np.eye(k)
    along = [np.zeros((k, k * k + k))]
    for s, after in pairwise(found):
        moved = W @ along[-1] + np.hstack([np.kron(eye, s), eye])
        along.append((1 - after**2)[:, None] * moved)
    bar, along_bar = found[-1], along[-1]
    in_W, in_b = np.zeros((k, k, k * k + k)), np.zeros((k, k * k + k))
    for t in range(len(found) - 2, -1, -1):
        after, slope = found[t + 1], 1 - found[t + 1] ** 2
        inner = bar * slope
        along_inner = slope[:, None] * along_bar - (2 * bar * after)[:, None] * along[t + 1]
        in_W += along_inner[:, None] * found[t][:, None] + inner[:, None, None] * along[t]
        in_b += along_inner
        bar = inner @ W
        along_bar = W.T @ along_inner + np.hstack([np.kron(inner, eye), np.zeros((k, k))])
    weights, shapes = k * k, ((k, k), (k,))
    cut = [(slice(weights), shapes[0]), (slice(weights, None), shapes[1])]
    rows = zip((in_W, in_b), shapes, strict=True)
    return tuple([
        tuple([row[..., columns].reshape(*own, *other) for columns, other in cut])
        for row, own in rows
    ])  # fmt: skip


FIRST = ("value", "gradient")

PROBLEM = Problem(
    name="rnn",
    wrt=("W", "b"),
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (of_size(3, 2),),
        "small": (of_size(10), of_size(20)),
        "paper": (
            of_size(64, 16),
            of_size(64, 64, FIRST),
            of_size(1000, 16, FIRST),
            of_size(1000, 64, FIRST),
        ),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, lambda s: 4.0 * s["n"] * s["k"] ** 2)},
        "gradient": {"": Form(gradient, lambda s: 10.0 * s["n"] * s["k"] ** 2)},
        "hessian": {"": Form(hessian, lambda s: 10.0 * s["n"] * s["k"] ** 4)},
    },
    claims=(Claim(("gradient", "tcalc"), ("gradient", "hand"), 1.5),),
)
