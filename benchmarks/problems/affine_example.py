"""f = sum_ij exp(-sum_k ((a_ik + b_jk)^2 c_ii + d_{i+k}^3)), the example of affine indices.

By hand the square is expanded: the exponents are one matrix product of a and b, and what belongs to
rows and columns alone. With E the exponentials and r, s their sums by rows and by columns, weighted
by c, so are the four gradients.

Source: Urban and van der Smagt (2017), Automatic differentiation for tensor algebras.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import transforms
from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes

TEXT = "sum[i,j](exp(-sum[l]((a[i,l] + b[j,l])^2*c[i,i] + d[i+l]^3)))"
WRT = ("a", "b", "c", "d")
QUANTITIES = ("value", "gradient", "both")
Gradients = tuple[Array, Array, Array, Array]


def objective(xp: Any, data: Any) -> Any:
    """As the formula says, the square of all i, j and k."""
    a, b, c, d = (data[name] for name in WRT)
    i, k = np.ogrid[: a.shape[0], : a.shape[1]]
    weights = c[i[:, 0], i[:, 0]]
    squares = (a[:, None, :] + b[None, :, :]) ** 2 * weights[:, None, None]
    cubes = d[i + k][:, None, :] ** 3
    return xp.sum(xp.exp(-xp.sum(squares + cubes, 2)))


def expanded(data: Any) -> Any:
    """With jax: the square expanded into a matrix product."""
    import jax.numpy as jnp

    a, b, c, d = (data[name] for name in WRT)
    i, k = np.ogrid[: a.shape[0], : a.shape[1]]
    squares = jnp.sum(a * a, 1)[:, None] + 2 * (a @ b.T) + jnp.sum(b * b, 1)
    cubes = jnp.sum(d[i + k] ** 3, 1)
    return jnp.sum(jnp.exp(-(jnp.diagonal(c)[:, None] * squares + cubes[:, None])))


def mapped(data: Any) -> Any:
    """With jax: one entry, mapped over all."""
    import jax
    import jax.numpy as jnp

    a, b, c, d = (data[name] for name in WRT)

    def one(i: Any, row: Any, column: Any) -> Any:
        cubes = jax.lax.dynamic_slice(d, (i,), row.shape) ** 3
        return jnp.exp(-jnp.sum((row + column) ** 2 * c[i, i] + cubes))

    inner = jax.vmap(one, (None, None, 0))
    return jnp.sum(jax.vmap(inner, (0, 0, None))(jnp.arange(a.shape[0]), a, b))


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    return tc.parse_index(TEXT, a=("n", "k"), b=("m", "k"), c=("n", "n"), d=("n+k-1",))


def expanded_expression(sizes: Sizes) -> Any:
    """The square multiplied out, as an expert writes it."""
    import tcalc as tc

    return tc.expand(expression(sizes))


def arrays(n: int, m: int, k: int) -> Case:
    """Exponents of about -2, so that all exponentials count."""

    def load(rng: np.random.Generator) -> dict[str, Array]:
        return {
            "a": rng.standard_normal((n, k)),
            "b": rng.standard_normal((m, k)),
            "c": np.abs(rng.standard_normal((n, n))) / k,
            "d": rng.standard_normal(n + k - 1) / np.sqrt(k),
        }

    return Case(f"n={n}, m={m}, k={k}", {"n": n, "m": m, "k": k}, load, QUANTITIES)


def of_size(n: int) -> Case:
    return arrays(n, 4 * n // 3 + 1, max(1, n // 6))


class Exponentials:
    """E, what it is made of, and its sums."""

    def __init__(self, data: Data) -> None:
        a, b, c, d = (data[name] for name in WRT)
        self.weights = np.einsum("ii->i", c)
        self.inside = a @ b.T
        self.inside *= 2
        self.inside += np.einsum("ik,ik->i", a, a)[:, None]
        self.inside += np.einsum("jk,jk->j", b, b)
        self.cubes = np.convolve(d**3, np.ones(a.shape[1]), "valid")
        self.found = np.multiply(self.inside, -self.weights[:, None])
        self.found -= self.cubes[:, None]
        np.exp(self.found, out=self.found)


def value(data: Data) -> Any:
    return Exponentials(data).found.sum()


def slopes(data: Data, at: Exponentials) -> Gradients:
    a, b, c, d = (data[name] for name in WRT)
    e, weights = at.found, at.weights
    rows, columns = e.sum(axis=1), weights @ e
    of_a = e @ b
    of_a += rows[:, None] * a
    of_a *= -2 * weights[:, None]
    of_b = e.T @ (a * (-2 * weights)[:, None])
    of_b -= (2 * columns)[:, None] * b
    of_c = np.zeros_like(c)
    np.einsum("ii->i", of_c)[:] = -np.einsum("ij,ij->i", e, at.inside)
    of_d = -3 * d**2 * np.convolve(rows, np.ones(a.shape[1]))
    return of_a, of_b, of_c, of_d


def gradient(data: Data) -> Gradients:
    return slopes(data, Exponentials(data))


def both(data: Data) -> tuple[Any, Gradients]:
    at = Exponentials(data)
    return at.found.sum(), slopes(data, at)


def work(products: float) -> Any:
    """So many matrix products, and the exponentials."""
    return lambda s: s["n"] * s["m"] * (2.0 * products * s["k"] + 12)


def problem(name: str, expression: Any, *rivals: tuple[str, float]) -> Problem:
    """The example, of which tcalc is given one spelling; how many times the rivals it may take."""
    return Problem(
        name=name,
        wrt=WRT,
        text=TEXT,
        objective=objective,
        expression=expression,
        cases={
            "tiny": (arrays(3, 4, 5), arrays(4, 2, 1)),
            "small": (arrays(30, 40, 5),),
            "paper": (arrays(300, 400, 50),),
        },
        of_size=of_size,
        hand={
            "value": {"expanded": Form(value, work(1))},
            "gradient": {"expanded": Form(gradient, work(3))},
            "both": {"expanded": Form(both, work(3))},
        },
        batched=transforms.spelled({"expanded": expanded, "vmap": mapped}, WRT, QUANTITIES),
        claims=tuple([
            Claim((q, "tcalc"), (q, rival), limit, least=100)
            for q in QUANTITIES
            for rival, limit in rivals
        ]),
    )  # fmt: skip


PROBLEMS = (
    problem("affine-example", expression, ("jax", 1.0), ("jax vmap", 1.0)),
    problem("affine-example-expanded", expanded_expression, ("hand expanded", 1.5)),
)
