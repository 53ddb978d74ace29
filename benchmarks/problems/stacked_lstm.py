"""A stacked LSTM with diagonal weights that predicts a text bit by bit: GradBench's `lstm` eval.

Layers stand above each other; gate g of layer i computes from its input (forget, output) or from
its own last hidden state (input, change), entry by entry: W_ig * input + B_ig. A character is b
bits; f is the mean over the text of minus bits * (p - log(2 + sum exp p)) for the prediction p of
the next.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..namespaces import scan
from ..problem import Array, Case, Claim, Data, Form, Problem, Sizes
from ..suite import Eval

TEXT = "-mean_t,b of next bits * (p - log(2 + sum exp p)), p by layers of LSTM cells"

FORGET, INPUT, OUTPUT, CHANGE = range(4)


def sigmoid(xp: Any, x: Any) -> Any:
    return 1 / (1 + xp.exp(-x))


def character(xp: Any, main: Any, extra: Any, state: Any, now: Any, following: Any) -> Any:
    """The states of all layers after one character, and what its prediction adds to the loss."""
    hidden, cells, total = state
    above, hidden_after, cells_after = now * extra[0], [], []
    for i in range(len(hidden)):
        weights, offsets = main[i, 0], main[i, 1]
        forget = sigmoid(xp, above * weights[FORGET] + offsets[FORGET])
        entering = sigmoid(xp, hidden[i] * weights[INPUT] + offsets[INPUT])
        leaving = sigmoid(xp, above * weights[OUTPUT] + offsets[OUTPUT])
        change = xp.tanh(hidden[i] * weights[CHANGE] + offsets[CHANGE])
        cell = cells[i] * forget + entering * change
        above = leaving * xp.tanh(cell)
        cells_after.append(cell)
        hidden_after.append(above)
    guess = above * extra[1] + extra[2]
    loss = xp.sum(following * (guess - xp.log(2 + xp.sum(xp.exp(guess)))))
    return tuple(hidden_after), tuple(cells_after), total + loss


def objective(xp: Any, data: Any) -> Any:
    main, extra = data["main"], data["extra"]
    layers = len(main)

    def step(state: Any, bits: Any) -> Any:
        return character(xp, main, extra, state, *bits)

    start = tuple([data["hidden"][i] for i in range(layers)])
    inner = tuple([data["cells"][i] for i in range(layers)])
    now, following = data["bits"], data["following"]
    total = scan(xp, step, (start, inner, 0 * now[0, 0]), (now, following))[2]
    return -total / (now.shape[0] * now.shape[1])


def expression(sizes: Sizes) -> Any:
    import tcalc as tc

    layers = sizes["layers"]
    main, extra = tc.var("main", (layers, 2, 4, "b")), tc.var("extra", (3, "b"))
    start, inner = tc.var("hidden", (layers, "b")), tc.var("cells", (layers, "b"))
    bits, following = tc.var("bits", ("n", "b")), tc.var("following", ("n", "b"))

    def step(state: Any, t: Any) -> Any:
        return character(tc, main, extra, state, bits[t], following[t])

    first = tuple([start[i] for i in range(layers)]), tuple([inner[i] for i in range(layers)])
    total = tc.fold(step, (*first, tc.zeros(())), "n")[2]
    return -total / tc.sum(tc.ones(("n", "b")))


def case(characters: int, layers: int, bits: int) -> Case:
    def load(rng: np.random.Generator) -> dict[str, Array]:
        text = rng.integers(0, 2, (characters, bits)).astype(float)
        hidden, cells = rng.random((2, layers, bits))
        return {
            "main": rng.random((layers, 2, 4, bits)),
            "extra": rng.random((3, bits)),
            "hidden": hidden,
            "cells": cells,
            "bits": text[:-1],
            "following": text[1:],
        }

    sizes = {"n": characters - 1, "layers": layers, "b": bits}
    label = f"{layers} layers, {characters} characters of {bits} bits"
    return Case(label, sizes, load, ("value", "gradient", "both"))


def of_size(n: int) -> Case:
    return case(n, 2, 8)


def forward(data: Data) -> tuple[float, list[Any]]:
    """The loss, and what every step leaves for the way back."""
    main, extra = data["main"], data["extra"]
    hidden, cells = list(data["hidden"]), list(data["cells"])
    total, kept = 0.0, []
    for now, following in zip(data["bits"], data["following"], strict=True):
        above, steps = now * extra[0], []
        for i, (weights, offsets) in enumerate(main):
            own = np.stack([above, hidden[i], above, hidden[i]])
            gates = own * weights + offsets
            gates[:CHANGE] = 1 / (1 + np.exp(-gates[:CHANGE]))
            np.tanh(gates[CHANGE], out=gates[CHANGE])
            before = cells[i]
            cells[i] = before * gates[FORGET] + gates[INPUT] * gates[CHANGE]
            bent = np.tanh(cells[i])
            steps.append((own, gates, before, bent))
            above = hidden[i] = gates[OUTPUT] * bent
        guess = above * extra[1] + extra[2]
        powers = np.exp(guess)
        norm = 2 + powers.sum()
        total += following @ guess - following.sum() * np.log(norm)
        kept.append((steps, above, following - following.sum() * powers / norm))
    return total, kept


def value(data: Data) -> Any:
    return -forward(data)[0] / data["bits"].size


def both(data: Data) -> tuple[Any, tuple[Array, Array]]:
    """Back through the characters, and through the layers of each."""
    main, extra = data["main"], data["extra"]
    total, kept = forward(data)
    in_main, in_extra = np.zeros_like(main), np.zeros_like(extra)
    hidden_bar, cell_bar = np.zeros((2, *data["hidden"].shape))
    for (steps, last, guess_bar), now in zip(kept[::-1], data["bits"][::-1], strict=True):
        in_extra[1] += guess_bar * last
        in_extra[2] += guess_bar
        bar = guess_bar * extra[1]
        for i in range(len(main) - 1, -1, -1):
            own, gates, before, bent = steps[i]
            bar = bar + hidden_bar[i]
            cell = cell_bar[i] + bar * gates[OUTPUT] * (1 - bent * bent)
            inner = np.stack([cell * before, cell * gates[CHANGE], bar * bent, cell * gates[INPUT]])
            inner[:CHANGE] *= gates[:CHANGE] * (1 - gates[:CHANGE])
            inner[CHANGE] *= 1 - gates[CHANGE] ** 2
            in_main[i, 0] += inner * own
            in_main[i, 1] += inner
            through = inner * main[i, 0]
            cell_bar[i] = cell * gates[FORGET]
            hidden_bar[i] = through[INPUT] + through[CHANGE]
            bar = through[FORGET] + through[OUTPUT]
        in_extra[0] += bar * now
    count = -data["bits"].size
    return total / count, (in_main / count, in_extra / count)


def given(data: Data) -> dict[str, Any]:
    """Rows of weights and offsets, and of hidden states and cells, by turns."""
    layers, b = data["hidden"].shape
    state = np.stack([data["hidden"], data["cells"]], axis=1).reshape(2 * layers, b)
    text = np.vstack([data["bits"], data["following"][-1:]])
    return {
        "main_params": data["main"].reshape(2 * layers, 4 * b).tolist(),
        "extra_params": data["extra"].tolist(),
        "state": state.tolist(),
        "sequence": text.tolist(),
    }


def read(found: list[float], data: Data) -> tuple[Array, Array]:
    main = data["main"]
    return np.reshape(found[: main.size], main.shape), np.reshape(found[main.size :], (3, -1))


def operations(times: float) -> Any:
    return lambda s: times * s["n"] * s["layers"] * s["b"]


PROBLEM = Problem(
    name="stacked-lstm",
    wrt=("main", "extra"),
    text=TEXT,
    objective=objective,
    expression=expression,
    cases={
        "tiny": (case(4, 2, 3),),
        "small": (case(64, 2, 8),),
        "paper": (case(1024, 2, 14), case(1024, 6, 14)),
    },
    of_size=of_size,
    hand={
        "value": {"": Form(value, operations(60))},
        "gradient": {"": Form(lambda data: both(data)[1], operations(120))},
        "both": {"": Form(both, operations(120))},
    },
    suite=Eval(
        "lstm",
        given,
        {"value": ("objective", lambda found, data: found), "gradient": ("jacobian", read)},
        ("manual", "tapenade"),
    ),
    claims=(
        Claim(("value", "tcalc c"), ("value", "jax"), 1.0),
        Claim(("gradient", "tcalc c"), ("gradient", "jax"), 1.0),
        Claim(("gradient", "tcalc c"), ("gradient", "gradbench"), 1.5),
    ),
)
