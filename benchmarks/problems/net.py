"""Ten fully connected n x n layers, ReLU, softmax cross-entropy; Hessian of the first layer.

For one sample x the Hessian is M[p, p'] x[q] x[q'], with J the Jacobian of the last layer's output
with respect to the first layer's, s the softmax, and M = J' (diag(s) - s s') J.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes

LAYERS = 10
TEXT = "logsumexp(W10 relu(W9 ... relu(W1 x))) - t' W10 relu(W9 ... relu(W1 x))"


def objective(xp: Any, data: Any, layers: int = LAYERS) -> Any:
    z = data["W1"] @ data["x"]
    for k in range(2, layers + 1):
        z = data[f"W{k}"] @ xp.where(z > 0, z, 0.0)
    top = xp.max(z)
    return xp.log(xp.sum(xp.exp(z - top))) + top - data["t"] @ z


def expression(layers: int = LAYERS) -> Any:
    import tcalc as tc

    z = tc.var("W1", ("n", "n")) @ tc.var("x", ("n",))
    for k in range(2, layers + 1):
        z = tc.var(f"W{k}", ("n", "n")) @ tc.relu(z)
    return tc.logsumexp(z) - tc.var("t", ("n",)) @ z


def draw(n: int, layers: int, rng: np.random.Generator) -> dict[str, Array]:
    """Weights that keep activations of order one and, in small nets too, units switched on."""
    data = {"x": rng.standard_normal(n), "t": np.eye(n)[rng.integers(n)]}
    activation = data["x"]
    for k in range(1, layers + 1):
        on = np.zeros(n, dtype=bool)
        while 3 * on.sum() < n:
            weights = rng.standard_normal((n, n)) * np.sqrt(2 / n)
            on = weights @ activation > 0
        data[f"W{k}"] = weights
        activation = np.maximum(weights @ activation, 0)
    return data


def of_size(n: int) -> Case:
    return Case(f"n={n}", {"n": n}, lambda rng: draw(n, LAYERS, rng))


def forward(data: Data) -> list[Array]:
    """The layers' outputs before ReLU."""
    found = [data["W1"] @ data["x"]]
    for k in range(2, LAYERS + 1):
        found.append(data[f"W{k}"] @ np.maximum(found[-1], 0))
    return found


def softmax(z: Array) -> Array:
    e = np.exp(z - z.max())
    return np.asarray(e / e.sum())


def value(data: Data) -> Any:
    z = forward(data)[-1]
    top = z.max()
    return np.log(np.exp(z - top).sum()) + top - data["t"] @ z


def gradient(data: Data) -> Array:
    outputs = forward(data)
    back = softmax(outputs[-1]) - data["t"]
    for k in range(LAYERS, 1, -1):
        back = (back @ data[f"W{k}"]) * (outputs[k - 2] > 0)
    return np.outer(back, data["x"])


def middle(jacobian: Array, s: Array) -> Array:
    mean = s @ jacobian
    return jacobian.T @ (s[:, None] * jacobian) - np.outer(mean, mean)


def core(data: Data) -> tuple[Array, Array]:
    outputs = forward(data)
    jacobian = data[f"W{LAYERS}"] * (outputs[-2] > 0)
    for k in range(LAYERS - 1, 1, -1):
        jacobian = jacobian @ (data[f"W{k}"] * (outputs[k - 2] > 0))
    return middle(jacobian, softmax(outputs[-1])), data["x"]


def active_core(data: Data) -> tuple[Array, Array]:
    """As `core`, multiplying only rows and columns of units that are on."""
    outputs = forward(data)
    on = [np.flatnonzero(z > 0) for z in outputs]
    jacobian = data[f"W{LAYERS}"][:, on[-2]]
    for k in range(LAYERS - 1, 1, -1):
        jacobian = jacobian @ data[f"W{k}"][np.ix_(on[k - 1], on[k - 2])]
    found = np.zeros_like(data["W1"])
    found[np.ix_(on[0], on[0])] = middle(jacobian, softmax(outputs[-1]))
    return found, data["x"]


def hessian(data: Data) -> Array:
    m, x = core(data)
    return m[:, None, :, None] * np.outer(x, x)[:, None, :]


def product(core: tuple[Array, Array], data: Data, v: Array) -> Array:
    m, x = core
    return np.outer(m @ (v @ x), x)


def core_flops(s: Sizes) -> float:
    """The chain of LAYERS - 1 matrices, then M."""
    return 2.0 * (LAYERS - 1) * s["n"] ** 3


def hessian_flops(s: Sizes) -> float:
    return core_flops(s) + s["n"] ** 4


PROBLEM = Problem(
    name="net",
    wrt="W1",
    text=TEXT,
    objective=objective,
    expression=lambda sizes: expression(),
    cases={
        "tiny": (of_size(6),),
        "small": (of_size(20), of_size(40)),
        "paper": (of_size(20), of_size(40), of_size(80)),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, lambda s: 2.0 * LAYERS * s["n"] ** 2)},
        "gradient": {"": Form(gradient, lambda s: 4.0 * LAYERS * s["n"] ** 2)},
        "hessian": {"": Form(hessian, hessian_flops)},
        "core": {
            "": Form(core, core_flops),
            "active units": Form(active_core, lambda s: core_flops(s) / 4),
        },
    },
    product=product,
    claims=(
        Claim(("core", "tcalc"), ("core", "hand"), 1.5),
        Claim(("hessian", "tcalc"), ("hessian", "hand"), 1.25),
        Claim(("hessian", "tcalc"), ("hessian", "jax"), 1.0),
    ),
)
