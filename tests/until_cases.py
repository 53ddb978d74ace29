"""Loops that end at a condition, for the tests: written once, run by tcalc and by plain loops.

Plain loops of Python find the numbers of steps; as many steps are then differentiated by jax.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache, reduce
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import tcalc as tc

LIMIT = 30


class Ended(NamedTuple):
    state: Any
    steps: Any
    met: Any


class Plain:
    """`fold` as a loop of Python; how its conditions end it is kept in `ends`, or taken from it."""

    def __init__(self, xp: Any, ends: Sequence[tuple[int, bool]] | None = None) -> None:
        self.xp, self.known = xp, None if ends is None else iter(ends)
        self.ends: list[tuple[int, bool]] = []

    def __call__(
        self, step: Any, init: Any, n: Any = None, history: bool = False, *,
        until: Any = None, limit: Any = None,
    ) -> Any:  # fmt: skip
        if until is None:
            return reduce(step, range(n), init)
        states = [init]
        if self.known is None:
            while len(states) <= limit and not until(states[-1]):
                states.append(step(states[-1], len(states) - 1))
            self.ends.append((len(states) - 1, bool(until(states[-1]))))
            count, met = self.ends[-1]
        else:
            count, met = next(self.known)
            for i in range(count):
                states.append(step(states[-1], i))
        if history:
            zero = self.xp.zeros(np.shape(init))
            return Ended(self.xp.stack([*states[1:], *[zero] * (limit - count)]), count, met)
        return Ended(states[-1], count, met)


NUMPY = SimpleNamespace(abs=np.abs, sum=np.sum, sin=np.sin, eye=np.eye, zeros=np.zeros, max=np.max,
                        stack=np.stack)  # fmt: skip
JAX = SimpleNamespace(abs=jnp.abs, sum=jnp.sum, sin=jnp.sin, eye=jnp.eye, zeros=jnp.zeros,
                      max=jnp.max, stack=jnp.stack)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Case:
    """A number made of arrays by loops, and the shapes of these; integers are below `integers`."""

    name: str
    loss: Callable[..., Any]
    shapes: dict[str, tuple[int, ...]]
    integers: dict[str, int] = field(default_factory=dict)

    def arrays(self, seed: int = 0, batch: int = 0) -> dict[str, Any]:
        rng, lead = np.random.default_rng(seed), (batch,) * bool(batch)
        found: dict[str, Any] = {}
        for name, shape in self.shapes.items():
            if name in self.integers:
                found[name] = rng.integers(0, self.integers[name], size=shape)
            else:
                found[name] = rng.uniform(0.5, 1.5, size=(*lead, *shape))
        return found

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple([name for name in self.shapes if name not in self.integers])

    def expression(self) -> tc.Expr:
        variables = {
            name: tc.var(name, shape, integer=name in self.integers)
            for name, shape in self.shapes.items()
        }
        found: tc.Expr = self.loss(tc, tc.fold, **variables)
        return found


@cache
def by_jax(case: Case, seed: int, batch: int = 0, item: int = 0) -> tuple[Any, Any, Any]:
    """The value, the gradients and the Hessian by the first target, of one item of a batch."""
    arrays = case.arrays(seed, batch)
    if batch:
        arrays = {n: a if n in case.integers else a[item] for n, a in arrays.items()}
    plain = Plain(np)
    case.loss(NUMPY, plain, **arrays)

    def loss(*targets: Any) -> Any:
        given = arrays | dict(zip(case.targets, targets, strict=True))
        return case.loss(JAX, Plain(jnp, plain.ends), **given)

    values = [jnp.asarray(arrays[name]) for name in case.targets]
    gradients = jax.grad(loss, tuple(range(len(values))))
    value, by_each, hessian = (jax.jit(f)(*values) for f in (loss, gradients, jax.hessian(loss)))
    return value, by_each, hessian


def root(xp: Any, fold: Any, a: Any) -> Any:
    end = fold(lambda s, i: (s + a / s) / 2, 1.0, until=lambda s: xp.abs(s * s - a) < 1e-6,
               limit=LIMIT)  # fmt: skip
    return end.state * a + end.steps


def descent(xp: Any, fold: Any, m: Any, b: Any, rate: Any) -> Any:
    """Gradient descent, until the gradient is small."""
    matrix = m @ m.T + xp.eye(2)
    end = fold(lambda x, i: x - rate / 10 * (matrix @ x - b), xp.zeros(2),
               until=lambda x: xp.max(xp.abs(matrix @ x - b)) < 0.2, limit=LIMIT)  # fmt: skip
    return xp.sum(end.state * end.state)


def slices(xp: Any, fold: Any, x: Any, w: Any) -> Any:
    """Several states; a step reads its index and a slice at it."""
    end = fold(lambda s, i: (s[0] + w * x[i] * s[1], s[1] + i * xp.sin(s[0])), (0.1, 1.0),
               until=lambda s: s[0] > 4, limit=LIMIT)  # fmt: skip
    total, other = end.state
    return total * other * end.steps


def inverse(xp: Any, fold: Any, m: Any) -> Any:
    """The iteration of Newton and Schulz."""
    a, one = m @ m.T + xp.eye(2), xp.eye(2)
    end = fold(lambda x, i: 2 * x - x @ a @ x, a / xp.sum(a * a),
               until=lambda x: xp.sum((a @ x - one) ** 2) < 1e-3, limit=LIMIT)  # fmt: skip
    return xp.sum(end.state * m)


def chased(xp: Any, fold: Any, x: Any, after: Any) -> Any:
    """A state that is an index."""
    end = fold(lambda s, i: (after[s[0]], s[1] * xp.sin(x[s[0]])), (3, 1.0),
               until=lambda s: s[0] == 0, limit=LIMIT)  # fmt: skip
    return end.state[1]


def limited(xp: Any, fold: Any, a: Any) -> Any:
    end = fold(lambda s, i: xp.sin(a * s), 0.8, until=lambda s: s < 0, limit=4)
    return end.state + end.met * a


def none(xp: Any, fold: Any, a: Any) -> Any:
    """The first state meets the condition."""
    end = fold(lambda s, i: xp.sin(a * s), a * a, until=lambda s: s > 0, limit=4)
    return end.state + end.steps


def rows(xp: Any, fold: Any, x: Any, w: Any) -> Any:
    end = fold(lambda s, i: s * w + xp.sin(x[i]), xp.zeros(2), history=True,
               until=lambda s: xp.sum(s) > 5, limit=8)  # fmt: skip
    return xp.sum(end.state**2)


def inside(xp: Any, fold: Any, x: Any, w: Any) -> Any:
    """In each step of a loop one that ends at a condition, of whose first slices it reads one."""

    def step(s: Any, t: Any) -> Any:
        start = xp.sin(s) + x[t, 0] / 4
        end = fold(lambda r, j: r * w + x[t, j] ** 2, start, until=lambda r: r > 3, limit=5)
        return end.state / 2 + end.steps * s

    return fold(step, 0.3, 3)


def outside(xp: Any, fold: Any, x: Any, w: Any) -> Any:
    """A condition around a loop."""
    end = fold(lambda s, i: fold(lambda r, j: r + xp.sin(r * w + x[j]), s, 3), 0.1,
               until=lambda s: s > 4, limit=9)  # fmt: skip
    return end.state * w


CASES = [
    Case("root", root, {"a": ()}),
    Case("descent", descent, {"m": (2, 2), "b": (2,), "rate": ()}),
    Case("slices", slices, {"x": (LIMIT,), "w": ()}),
    Case("inverse", inverse, {"m": (2, 2)}),
    Case("chased", chased, {"x": (5,), "after": (5,)}, {"after": 5}),
    Case("limited", limited, {"a": ()}),
    Case("none", none, {"a": ()}),
    Case("rows", rows, {"x": (8, 2), "w": ()}),
    Case("inside", inside, {"x": (3, 5), "w": ()}),
    Case("outside", outside, {"x": (3,), "w": ()}),
]  # fmt: skip
