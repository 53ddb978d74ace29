"""Minima by gradient descent, of what has descents and derivatives inside: GradBench's `saddle` and
`particle`.

The descent goes on while the slope g and the next step are longer than 1e-5. Its rate, 1e-5 at
first, grows after ten steps downhill and shrinks where one would lead uphill.

`saddle` is the minimum in x, from `start`, of the maximum in y, from `start`, of
x'x - y'y + c x'y; the result is x and y. `particle` is the w by which a charge, that Euler's steps
take through the field of two others at (10, 0) and (10, 10 - w), crosses the axis next to the
origin.

Source: Pearlmutter and Siskind, Using programming language theory to make automatic differentiation
sound and efficient, 2008.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes

SMALL, PATIENCE, MOST = 1e-5, 10, 10_000
STEP = 0.1

# --- the descent, by every contestant's means -----------------------------------------------------


def by_tcalc(f: Callable[[Any], Any], start: Any, first: Any, name: str) -> Any:
    """The place where a descent from this rate ends; derivatives are by a variable of this name."""
    import tcalc as tc

    place = tc.var(name, start.shape)
    value = f(place)
    slope = tc.grad(value, place)

    def both(x: Any) -> tuple[Any, Any]:
        return value.subs({name: x}), slope.subs({name: x})

    def step(state: Any, t: Any) -> Any:
        x, here, g, rate, downhill = state
        patient = downhill < PATIENCE
        after = x - rate * g
        there, slope_there = both(after)
        going = patient * (there < here)
        slower = tc.where(patient, rate / 2, rate * 2)
        return (
            tc.where(going, after, x),
            tc.where(going, there, here),
            tc.where(going, slope_there, g),
            tc.where(going, rate, slower),
            tc.where(going, downhill + 1, 0),
        )

    def ended(state: Any) -> Any:
        _, _, g, rate, downhill = state
        size = tc.sqrt(tc.sum(g * g))
        return tc.maximum(size <= SMALL, (downhill < PATIENCE) * (rate * size <= SMALL))

    return tc.fold(step, (start, *both(start), first, 0.0), until=ended, limit=MOST).state[0]


def by_jax(f: Callable[[Any], Any], start: Any, first: Any) -> Any:
    """The same; forward derivatives, as jax has no others of such loops."""
    import jax
    import jax.numpy as jnp

    slope = jax.jacfwd(f)

    def step(state: Any) -> Any:
        x, here, g, rate, downhill = state
        patient = downhill < PATIENCE
        after = x - rate * g
        there = f(after)
        going = patient & (there < here)
        return (
            jnp.where(going, after, x),
            jnp.where(going, there, here),
            jax.lax.cond(going, lambda: slope(after), lambda: g),
            jnp.where(going, rate, jnp.where(patient, rate / 2, rate * 2)),
            jnp.where(going, downhill + 1, 0),
        )

    def goes_on(state: Any) -> Any:
        _, _, g, rate, downhill = state
        size = jnp.sqrt(jnp.sum(g * g))
        return (size > SMALL) & ((downhill >= PATIENCE) | (rate * size > SMALL))

    state = start, f(start), slope(start), first, 0
    return jax.lax.while_loop(goes_on, step, state)[0]


def by_hand(
    f: Callable[[Array], Any],
    slope: Callable[[Array], Array],
    start: Array,
    first: Any,
    rates: list[float] | None = None,
) -> Array:
    """The same, given the derivative; the rates of the steps that are made are added to a list."""
    made = [] if rates is None else rates
    x, here, g, downhill = start, f(start), slope(start), 0
    rate = float(first)
    while (size := float(np.sqrt(g @ g))) > SMALL:
        if downhill == PATIENCE:
            rate, downhill = rate * 2, 0
            continue
        if rate * size <= SMALL:
            break
        after = x - rate * g
        there = f(after)
        if there < here:
            made.append(rate)
            x, here, g, downhill = after, there, slope(after), downhill + 1
        else:
            rate, downhill = rate / 2, 0
    return x


# --- the saddle -----------------------------------------------------------------------------------


def height(xp: Any, x: Any, y: Any, c: Any) -> Any:
    return xp.sum(x * x) - xp.sum(y * y) + c * xp.sum(x * y)


def saddle(xp: Any, data: Any) -> Any:
    start, c, rate = data["start"], data["c"], data["rate"]

    def top(x: Any) -> Any:
        return by_jax(lambda y: -height(xp, x, y, c), start, rate)

    x = by_jax(lambda x: height(xp, x, top(x), c), start, rate)
    return xp.concatenate([x, top(x)])


def saddle_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    start, c, rate = tc.var("start", 2), tc.var("c"), tc.var("rate")

    def top(x: Any, name: str) -> Any:
        return by_tcalc(lambda y: -height(tc, x, y, c), start, rate, name)

    x = by_tcalc(lambda x: height(tc, x, top(x, "y"), c), start, rate, "x")
    return tc.concatenate([x, top(x, "z")])


def saddle_by_hand(data: Data) -> Array:
    start, c, rate = data["start"], data["c"], data["rate"]

    def top(x: Array) -> tuple[Array, float]:
        """y, and how it moves with x: y' = y - rate (2 y - c x) for every step that is made."""
        rates: list[float] = []
        y = by_hand(lambda y: -height(np, x, y, c), lambda y: 2 * y - c * x, start, rate, rates)
        moved: Any = 0.0
        for made in rates:
            moved -= made * (2 * moved - c)
        return y, moved

    def worst(x: Array) -> Any:
        return height(np, x, top(x)[0], c)

    def slope(x: Array) -> Array:
        y, moved = top(x)
        return 2 * x + c * y + moved * (c * x - 2 * y)

    x = by_hand(worst, slope, start, rate)
    return np.concatenate([x, top(x)[0]])


# --- the particle ---------------------------------------------------------------------------------

AT, MOVING = np.array([0.0, 8.0]), np.array([0.75, 0.0])


def potential(xp: Any, x: Any, w: Any) -> Any:
    """Of both charges."""
    low = xp.sqrt((x[0] - 10) ** 2 + x[1] ** 2)
    high = xp.sqrt((x[0] - 10) ** 2 + (x[1] - 10 + w) ** 2)
    return 1 / low + 1 / high


def crossing(x: Any, v: Any) -> Any:
    """The square of where it crosses the axis, on a straight line from here."""
    return (x[0] - x[1] / v[1] * v[0]) ** 2


def particle(xp: Any, data: Any) -> Any:
    import jax

    def missed(w: Any) -> Any:
        def goes_on(state: Any) -> Any:
            x, v = state
            return x[1] + STEP * v[1] >= 0

        def step(state: Any) -> Any:
            x, v = state
            return x + STEP * v, v - STEP * jax.grad(lambda x: potential(xp, x, w[0]))(x)

        return crossing(*jax.lax.while_loop(goes_on, step, (data["at"], data["moving"])))

    return by_jax(missed, data["w"], data["rate"])


def particle_expression(sizes: Sizes) -> Any:
    import tcalc as tc

    at, moving = tc.var("at", 2), tc.var("moving", 2)
    x, strength = tc.var("x", 2), tc.var("strength")
    force = -tc.grad(potential(tc, x, strength), x)

    def missed(w: Any) -> Any:
        def step(state: Any, t: Any) -> Any:
            place, v = state
            return place + STEP * v, v + STEP * force.subs({"x": place, "strength": w[0]})

        def crossed(state: Any) -> Any:
            place, v = state
            return place[1] + STEP * v[1] < 0

        return crossing(*tc.fold(step, (at, moving), until=crossed, limit=MOST).state)

    return by_tcalc(missed, tc.var("w", 1), tc.var("rate"), "trial")


def particle_by_hand(data: Data) -> Array:
    """Positions and velocities with their derivatives by w, step by step."""

    def path(w: float) -> tuple[Any, Any]:
        (x, y), (u, v) = data["at"], data["moving"]
        dx = dy = du = dv = 0.0
        while y + STEP * v >= 0:
            a, low, high = x - 10, y, y - 10 + w
            r, s = (a * a + low * low) ** -1.5, (a * a + high * high) ** -1.5
            dr = -3 * r ** (5 / 3) * (a * dx + low * dy)
            ds = -3 * s ** (5 / 3) * (a * dx + high * (dy + 1))
            along, up = a * (r + s), low * r + high * s
            d_along = dx * (r + s) + a * (dr + ds)
            d_up = dy * r + low * dr + (dy + 1) * s + high * ds
            x, y, u, v, dx, dy, du, dv = (
                x + STEP * u, y + STEP * v, u + STEP * along, v + STEP * up,
                dx + STEP * du, dy + STEP * dv, du + STEP * d_along, dv + STEP * d_up,
            )  # fmt: skip
        place = x - y / v * u
        moved = dx - (dy * u + y * du) / v + y * u * dv / (v * v)
        return place * place, 2 * place * moved

    def slope(w: Array) -> Array:
        return np.array([path(w[0])[1]])

    return by_hand(lambda w: path(w[0])[0], slope, data["w"], data["rate"])


def problem(
    name: str, text: str, wrt: str, data: dict[str, Array], *forms: Callable[..., Any]
) -> Problem:
    """The suite's own case, and a tiny one whose rates are larger at first."""
    objective, expression, hand = forms

    def case(label: str, rate: float) -> Case:
        def load(rng: np.random.Generator) -> dict[str, Array]:
            arrays = {name: np.array(array) for name, array in data.items()}
            return {**arrays, "rate": np.array(rate)}

        return Case(label, {"n": 1}, load, ("value",))

    whole = case("GradBench's", 1e-5)
    return Problem(
        name=name,
        wrt=wrt,
        text=text,
        objective=objective,
        expression=expression,
        cases={"tiny": (case("tiny", 0.02),), "small": (whole,), "paper": (whole,)},
        of_size=lambda n: whole,
        hand={"value": {"": Form(hand, lambda s: 1e6)}},
        claims=(Claim(("value", "tcalc c"), ("value", "jax"), 1.0),),
        without=("autograd", "torch", "tcalc-source"),
    )


DESCENTS = (
    problem(
        "saddle",
        "argmin_x argmax_y of x'x - y'y + c x'y, both by gradient descent",
        "start",
        {"start": np.ones(2), "c": np.array(0.3)},
        saddle,
        saddle_expression,
        saddle_by_hand,
    ),
    problem(
        "particle",
        "the w by which a charge in a field crosses the axis at the origin, by gradient descent",
        "w",
        {"w": np.zeros(1), "at": AT, "moving": MOVING},
        particle,
        particle_expression,
        particle_by_hand,
    ),
)
