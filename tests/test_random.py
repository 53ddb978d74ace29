"""Random expressions over all node kinds: every mode and order against naive loops and jax.

Without settings the same expressions are drawn every time. `TCALC_RANDOM` is a number of fresh
ones; `TCALC_SEED` replays one: the message of a failure names it.
"""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import tcalc as tc
from tests.cases import Reference
from tests.random_corpus import CORPUS
from tests.random_programs import Generator, Program, build, drawn, evaluated, holding

FRESH = "TCALC_RANDOM" in os.environ
COUNT = int(os.environ.get("TCALC_RANDOM", "320"))
SEED = os.environ.get("TCALC_SEED")
BATCHES = 1 if SEED else 16
MODES = ("forward", "reverse", "cross-country", "auto")
LIMIT = 1e5


def check(generator: Generator, with_jax: bool = False) -> bool:
    """One expression in all modes; False where its numbers are too large to compare."""
    program = generator.program
    wanted = evaluated(program, arrays := generator.arrays())
    if not wanted.largest < LIMIT:
        return False
    variables = {name: tc.var(name, shape) for name, shape in program.shapes.items()}
    e = build(program, tc, list(variables.values()), lambda extent: extent)
    bind = {**arrays, **program.extents}
    compare = Comparison(bind, 1e-11 * max(1.0, wanted.largest))
    compare(e, wanted.jet.v, "value")
    for name, x in variables.items():
        for mode in MODES:
            compare(tc.derivative(e, x, 1, mode), wanted.first(name), f"d/d{name} {mode}")
            compare(tc.derivative(e, x, 2, mode), wanted.second(name, name), f"d2/d{name}2 {mode}")
    a, b = generator.pick(list(variables)), generator.pick(list(variables))
    inner, outer = generator.pick(MODES), generator.pick(MODES)
    nested = tc.jacobian(tc.jacobian(e, variables[a], mode=inner), variables[b], mode=outer)
    compare(nested, wanted.second(a, b), f"d/d{a} {inner}, then d/d{b} {outer}")
    if with_jax:
        compute = lambda data: build(program, Reference, [data[k] for k in arrays], generator.size)  # noqa: E731
        found = jax.jit(lambda data: (compute(data), jax.jacrev(compute)(data)))(arrays)
        close = {"rtol": 0, "atol": compare.tolerance}
        np.testing.assert_allclose(wanted.jet.v, found[0], **close)
        for name in arrays:
            first = wanted.first(name)
            np.testing.assert_allclose(first, jnp.reshape(found[1][name], first.shape), **close)
    return True


@dataclass
class Comparison:
    bind: dict[str, Any]
    tolerance: float

    def __call__(self, e: tc.Expr, wanted: np.ndarray, what: str) -> None:
        found = e(**self.bind)
        assert found.shape == wanted.shape, (what, found.shape, wanted.shape)
        assert found.dtype == np.float64, what
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=self.tolerance, err_msg=what)


def attempt(seed: int, with_jax: bool = False) -> bool:
    generator = drawn(seed)
    try:
        return check(generator, with_jax)
    except Exception as error:
        message = f"TCALC_SEED={seed} TCALC_RANDOM=1\n{generator.program}"
        raise AssertionError(message) from error


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_expressions(batch: int) -> None:
    done = 0
    draw = random.SystemRandom() if FRESH else random.Random(batch)
    while done < max(1, COUNT // BATCHES):
        seed = int(SEED) + done if SEED else draw.randrange(2**40)
        compared = attempt(seed, with_jax=done % 20 == 0)
        done += 1 if compared or SEED else 0


@pytest.mark.parametrize(("seed", "program"), CORPUS)
def test_programs_that_failed_once(seed: int, program: Program) -> None:
    assert check(holding(program, seed))
