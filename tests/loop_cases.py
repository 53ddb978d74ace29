"""Loops for the tests: one step, written once, run by tcalc, by jax.lax.scan and by plain loops.

A step takes a namespace of functions, so that the same text builds an expression, is traced by jax,
and computes with NumPy, complex numbers included.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import tcalc as tc
from tcalc.graph.nodes import Expr
from tcalc.loops.closure_conversion import folded

Step = Callable[..., tuple[Any, ...]]


class Case(NamedTuple):
    """A loop: shapes of states, of slices and of what is captured, and one step.

    `kept` are the states of which the history counts. Integer slices are below `integers`.
    """

    name: str
    step: Step
    states: tuple[tuple[int, ...], ...]
    slices: tuple[tuple[int, ...], ...] = ()
    captured: tuple[tuple[int, ...], ...] = ()
    kept: tuple[int, ...] = ()
    integers: int = 0


def scan_of_expressions(
    body: Step, inits: Sequence[Any], xs: Sequence[Any], count: Any, history: bool = False
) -> list[Expr]:
    """The loop as expressions."""
    level = scan_of_expressions.level = scan_of_expressions.level + 1  # type: ignore[attr-defined]
    inits = [tc.const(i) if not isinstance(i, Expr) else i for i in inits]
    states = [tc.var(f"state{level}_{k}", i.shape) for k, i in enumerate(inits)]
    items = [
        tc.var(f"item{level}_{k}", x.shape[1:], integer="integer" in getattr(x, "properties", ()))
        for k, x in enumerate(xs)
    ]
    after = body(states, items)
    return folded(states, items, list(after), inits, list(xs), count, history)


scan_of_expressions.level = 0  # type: ignore[attr-defined]


def scan_of_jax(
    body: Step, inits: Sequence[Any], xs: Sequence[Any], count: int, history: bool = False
) -> Any:
    def step(s: Any, x: Any) -> Any:
        after = tuple(body(s, x))
        return after, after

    last, every = jax.lax.scan(step, tuple(inits), tuple(xs), length=count)
    return every if history else last


def scan_of_arrays(
    body: Step, inits: Sequence[Any], xs: Sequence[Any], count: int, history: bool = False
) -> Any:
    state, every = tuple(inits), []
    for i in range(count):
        state = tuple(body(state, [x[i] for x in xs]))
        every.append(state)
    if not history:
        return state
    return [
        np.stack([s[k] for s in every]) if every else np.zeros((0, *np.shape(init)))
        for k, init in enumerate(inits)
    ]


EXPRESSIONS = SimpleNamespace(
    tanh=tc.tanh, sin=tc.sin, exp=tc.exp, sum=tc.sum, outer=tc.outer, where=tc.where,
    inv=tc.linalg.inv, logdet=tc.linalg.logdet, cholesky=tc.linalg.cholesky, eye=tc.eye,
    take=lambda x, i: x[i], scan=scan_of_expressions,
)  # fmt: skip
JAX = SimpleNamespace(
    tanh=jnp.tanh, sin=jnp.sin, exp=jnp.exp, sum=jnp.sum, outer=jnp.outer, where=jnp.where,
    inv=jnp.linalg.inv, logdet=lambda a: jnp.linalg.slogdet(a)[1], cholesky=jnp.linalg.cholesky,
    eye=jnp.eye, take=lambda x, i: x[i], scan=scan_of_jax,
)  # fmt: skip
ARRAYS = SimpleNamespace(
    tanh=np.tanh, sin=np.sin, exp=np.exp, sum=np.sum, outer=np.outer,
    where=lambda c, a, b: np.where(np.real(c), a, b),
    inv=np.linalg.inv, logdet=lambda a: np.log(np.linalg.det(a)), cholesky=None, eye=np.eye,
    take=lambda x, i: x[np.real(i).astype(int)], scan=scan_of_arrays,
)  # fmt: skip


def _rnn(xp: Any, s: Any, x: Any, c: Any) -> Any:
    return (xp.tanh(c[0] @ s[0] + x[0]),)


def _linear(xp: Any, s: Any, x: Any, c: Any) -> Any:
    return (c[0] * s[0] + x[0] * c[1],)


def _logistic(xp: Any, s: Any, x: Any, c: Any) -> Any:
    return (c[0] * s[0] * (1 - s[0]),)


def _kalman(xp: Any, s: Any, x: Any, c: Any) -> Any:
    mean, cov, loss = s
    a, h = c
    mean, cov = a @ mean, a @ cov @ a.T + 0.3 * xp.eye(2)
    rest = x[0] - h @ mean
    spread = h @ cov @ h.T + 0.5 * xp.eye(1)
    gain = cov @ h.T @ xp.inv(spread)
    loss = loss + (rest @ xp.inv(spread) @ rest + xp.logdet(spread)) / 2
    return mean + gain @ rest, cov - gain @ h @ cov, loss


def _matrix(xp: Any, s: Any, x: Any, c: Any) -> Any:
    return (s[0] @ c[0] + xp.outer(x[0], x[0]) / (1 + xp.sum(s[0] * s[0])),)


def _ignores_slices(xp: Any, s: Any, x: Any, c: Any) -> Any:
    return (xp.tanh(c[0] * s[0]), s[1] + xp.sum(x[0] * s[0]))


def _ignores_states(xp: Any, s: Any, x: Any, c: Any) -> Any:
    return (xp.sin(c[0] * x[0]), 2 * s[0], s[2])


def _nested(xp: Any, s: Any, x: Any, c: Any) -> Any:
    def inner(t: Any, y: Any) -> Any:
        return (xp.sin(t[0] * y[0] + s[0]) + x[0],)

    (t,) = xp.scan(inner, [c[1]], [c[0]], 2)
    return (s[0] + 0.5 * t,)


def _nested_scan(xp: Any, s: Any, x: Any, c: Any) -> Any:
    def inner(t: Any, y: Any) -> Any:
        return (xp.tanh(t[0] + y[0] * c[0]),)

    (t,) = xp.scan(inner, [s[0]], [x[0]], 2, True)
    return (xp.sum(t * t),)


def _taken(xp: Any, s: Any, x: Any, c: Any) -> Any:
    index, y = x
    return (0.5 * s[0] + xp.take(c[0], index) * y,)


def _kinked(xp: Any, s: Any, x: Any, c: Any) -> Any:
    return (xp.where(s[0] > x[0], c[0] * s[0], xp.exp(-s[0])),)


def _coupled(xp: Any, s: Any, x: Any, c: Any) -> Any:
    position, speed, still = s
    speed = speed - c[0] * xp.sin(position) * still + x[0]
    return position + 0.1 * speed, speed, still


CASES = [
    Case("rnn", _rnn, ((2,),), ((2,),), ((2, 2),)),
    Case("rnn history", _rnn, ((2,),), ((2,),), ((2, 2),), kept=(0,)),
    Case("linear", _linear, ((2,),), ((),), ((), (2,)), kept=(0,)),
    Case("logistic map", _logistic, ((),), (), ((),)),
    Case("kalman", _kalman, ((2,), (2, 2), ()), ((1,),), ((2, 2), (1, 2)), kept=(0,)),
    Case("matrix", _matrix, ((2, 2),), ((2,),), ((2, 2),)),
    Case("state without slices", _ignores_slices, ((2,), ()), ((2,),), ((),), kept=(0, 1)),
    Case("slices without state", _ignores_states, ((2,), (2,), ()), ((2,),), ((),), kept=(1, 2)),
    Case("nested", _nested, ((),), ((),), ((2,), ()), kept=(0,)),
    Case("nested slices", _nested_scan, ((),), ((2,),), ((),)),
    Case("gather", _taken, ((2,),), ((), ()), ((3, 2),), kept=(0,), integers=1),
    Case("where", _kinked, ((2,),), ((2,),), ((),)),
    Case("coupled", _coupled, ((), (), ()), ((),), ((),), kept=(0, 1)),
]  # fmt: skip


def names(case: Case) -> list[str]:
    """Arguments of the loss: first states, arrays of slices, captured values."""
    return [
        *[f"init{k}" for k in range(len(case.states))],
        *[f"x{k}" for k in range(len(case.slices))],
        *[f"c{k}" for k in range(len(case.captured))],
    ]


def data(case: Case, count: int, seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = [*case.states, *[(count, *s) for s in case.slices], *case.captured]
    found = {n: rng.normal(size=s) for n, s in zip(names(case), shapes, strict=True)}
    for k in range(case.integers):
        found[f"x{k}"] = rng.integers(0, 3, size=(count, *case.slices[k]))
    for name, a in found.items():
        if name.startswith("init") and a.ndim == 2:
            found[name] = a @ a.T + np.eye(len(a))
    return found


def loss(case: Case, xp: Any, arguments: Sequence[Any], count: Any) -> Any:
    """A number that depends on all last states and on the histories that are kept."""
    n, m = len(case.states), len(case.slices)
    inits, xs, captured = arguments[:n], arguments[n : n + m], arguments[n + m :]

    def body(s: Any, x: Any) -> Any:
        return case.step(xp, s, x, captured)

    total = sum([xp.sum(xp.sin(s)) for s in xp.scan(body, inits, xs, count)])
    for k in case.kept:
        every = xp.scan(body, inits, xs, count, True)[k]
        total = total + xp.sum(every * every) / 2
    return total


def expression(case: Case, count: Any) -> Expr:
    """The loss of variables with these names."""
    shapes = [*case.states, *[(count, *s) for s in case.slices], *case.captured]
    variables = [
        tc.var(n, s, integer=n in [f"x{k}" for k in range(case.integers)])
        for n, s in zip(names(case), shapes, strict=True)
    ]
    found: Expr = loss(case, EXPRESSIONS, variables, count)
    return found
