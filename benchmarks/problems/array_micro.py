"""Jacobians of small array expressions by forward mode: what comes out must not cost n passes.

Dot product, maximum and bilinear form give rows, so that directions pushed forward one by one cost
n passes over n entries; as formulas they cost one pass. Sums, scaled vectors and products with a
matrix have Jacobians that cost what it takes to write them.

Source: Shaikhha et al., Efficient differentiable programming in a functional array-processing
language, figure 11 and example 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import transforms
from ..problem import AnyClaim, Array, Case, Claim, Data, Form, Problem, Sizes

LARGE = (100, 1_000, 10_000)
SQUARE = (100, 1_000, 3_000)  # of results of n x n entries
FOURTH = (30, 100)  # of variables of n x n entries, for which jax pushes as many directions


@dataclass(frozen=True)
class Micro:
    """One expression of arrays.

    Attributes
    ----------
    name, text : str
    wrt : str
        The variable.
    shapes : mapping
        Of all arrays; axes are "n".
    call : callable
        ``call(xp, arrays)``, for tcalc's arrays too.
    by_hand : callable
        The Jacobian from the arrays.
    row : bool
        Is it of one value? Then reverse mode gives it in one pass, too.
    power : int
        Of n, what has to be read and written.
    """

    name: str
    text: str
    wrt: str
    shapes: Mapping[str, tuple[str, ...]]
    call: Callable[[Any, Mapping[str, Any]], Any]
    by_hand: Callable[[Data], Array]
    row: bool
    power: int

    def case(self, n: int) -> Case:
        def load(rng: np.random.Generator) -> dict[str, Array]:
            return {
                name: rng.standard_normal((n,) * len(shape)) for name, shape in self.shapes.items()
            }

        return Case(f"n={n}", {"n": n}, load, ("value",))

    def objective(self, xp: Any, data: Any) -> Any:
        return transforms.forward(
            xp, lambda x: self.call(xp, {**data, self.wrt: x}), data[self.wrt]
        )

    def reverse(self, arrays: Any, rhs: Any) -> Any:
        """With jax, by reverse mode."""
        import jax
        import jax.numpy as jnp

        return jax.jacrev(lambda x: self.call(jnp, {**arrays, self.wrt: x}))(arrays[self.wrt])

    def expression(self, sizes: Sizes) -> Any:
        import tcalc as tc

        variables = {name: tc.var(name, shape) for name, shape in self.shapes.items()}
        return tc.jacobian(self.call(tc, variables), self.wrt, mode="forward")

    def claims(self) -> tuple[AnyClaim, ...]:
        """No more than what an expert writes, which is one pass; rows far below jax's n passes."""
        mine, jax = ("value", "tcalc"), ("value", "jax")
        found = [Claim(mine, ("value", "hand"), 1.25), Claim(mine, jax, 1.0, least=100)]
        if self.row and self.power == 1:
            found.append(Claim(mine, jax, 0.01, least=10_000))
        return tuple(found)

    def problem(self) -> Problem:
        large: tuple[int, ...] = LARGE if self.power == 1 else SQUARE
        if len(self.shapes[self.wrt]) == 2:
            large = FOURTH
        return Problem(
            name=f"array-micro-{self.name}",
            wrt=self.wrt,
            text=f"Jacobian of {self.text} in {self.wrt}, by forward mode",
            objective=self.objective,
            expression=self.expression,
            cases={
                "tiny": (self.case(4),),
                "small": (self.case(large[0]),),
                "paper": tuple([self.case(n) for n in large]),
            },
            of_size=self.case,
            hand={"value": {"": Form(self.by_hand, lambda s: 1.0 * s["n"] ** self.power)}},
            batched={"value": {"reverse": self.reverse}},
            claims=self.claims(),
        )


def of_maximum(data: Data) -> Array:
    """Ties split evenly."""
    ties = data["a"] == data["a"].max()
    return ties / np.count_nonzero(ties)


VECTORS = {"a": ("n",), "b": ("n",)}
MICROS = (
    Micro(
        "dot",
        "dot(a, b)",
        "a",
        VECTORS,
        lambda xp, v: xp.dot(v["a"], v["b"]),
        lambda data: data["b"].copy(),
        True,
        1,
    ),
    Micro(
        "max",
        "max(a)",
        "a",
        {"a": ("n",)},
        lambda xp, v: xp.max(v["a"]),
        of_maximum,
        True,
        1,
    ),
    Micro(
        "bilinear",
        "u' M v",
        "M",
        {"u": ("n",), "M": ("n", "n"), "v": ("n",)},
        lambda xp, v: xp.dot(v["u"], v["M"] @ v["v"]),
        lambda data: np.multiply.outer(data["u"], data["v"]),
        True,
        2,
    ),
    Micro(
        "add",
        "a + b",
        "a",
        VECTORS,
        lambda xp, v: v["a"] + v["b"],
        lambda data: np.eye(len(data["a"])),
        False,
        2,
    ),
    Micro(
        "scale",
        "s a",
        "s",
        {"a": ("n",), "s": ()},
        lambda xp, v: v["s"] * v["a"],
        lambda data: data["a"].copy(),
        False,
        1,
    ),
    Micro(
        "matrix-vector",
        "M v",
        "v",
        {"M": ("n", "n"), "v": ("n",)},
        lambda xp, v: v["M"] @ v["v"],
        lambda data: data["M"].copy(),
        False,
        2,
    ),
)
PROBLEMS = tuple([micro.problem() for micro in MICROS])
