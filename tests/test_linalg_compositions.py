"""Random compositions of matrix functions against autograd: values, gradients and Hessians.

Without settings the same functions are drawn every time. `TCALC_RANDOM` is a number of fresh ones;
`TCALC_SEED` replays one: the message of a failure names it.
"""

from __future__ import annotations

import itertools
import os
import random
from dataclasses import dataclass
from typing import Any

import autograd
import autograd.numpy as anp
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
from autograd.scipy.linalg import solve_triangular

import tcalc as tc
from tests.linalg_programs import Program, Reference, Tcalc, generated, read
from tests.shared import plan_for_machine

FRESH = "TCALC_RANDOM" in os.environ
COUNT = int(os.environ.get("TCALC_RANDOM", "48"))
SEED = os.environ.get("TCALC_SEED")
BATCHES = 1 if SEED else 12
MODES = ("forward", "reverse", "cross-country")
PAIRS = list(itertools.product(MODES, MODES))
#: Of functions whose matrices have a larger condition, or whose values are larger, nothing is told.
CONDITION, LARGEST = 1e3, 1e5

#: Seeds whose functions were wrong once.
CORPUS = [11, 28, 123, 141, 3689, 4400]
CORPUS += [87705687125, 50552365689, 419134626354, 789164966041]

#: Thresholds by setting: as they are, in place, in loops, with other plans tried.
SETTINGS: dict[str, dict[str, float]] = {
    "plain": {},
    "in place": {
        "ops.matrix.cholesky.LARGE": 2,
        "ops.matrix.definite.LARGE": 2,
        "support.triangles.BLOCK": 2,
        "ops.matrix.triangular.LARGE": 2,
        "ops.matrix.cholesky_pullback.BLOCK": 2,
    },
    "chosen": {},
    "loops": {},
}
#: What machines have instead, by setting.
MACHINES: dict[str, dict[str, float]] = {
    "plain": {},
    "in place": {"gram_rows": 2},
    "chosen": {"worth_choosing": 0},
    "loops": {"tile": 4, "wide_tile": 8, "large": 4, "many": 1, "smaller": 1, "short": 2},
}
MACHINES["all"] = {key: value for machine in MACHINES.values() for key, value in machine.items()}
SETTINGS["all"] = {key: value for setting in SETTINGS.values() for key, value in setting.items()}


# --- comparing ------------------------------------------------------------------------------------


@dataclass
class Wanted:
    """What autograd says of a program: value, gradients, and the block of the Hessian by a pair."""

    value: float
    gradients: dict[str, np.ndarray]
    block: np.ndarray
    condition: float


def oracle(program: Program, data: dict[str, np.ndarray], pair: tuple[str, str]) -> Wanted | None:
    seen: list[float] = []
    try:
        reference = Reference(np, scipy.linalg.solve_triangular, seen)
        value = float(program.run(reference, list(data.values())))
    except np.linalg.LinAlgError:
        return None
    condition = max([1.0, *seen])
    if not (condition < CONDITION and abs(value) < LARGEST):
        return None
    plain = Reference(anp, solve_triangular)
    places = {name: k for k, name in enumerate(program.shapes)}

    def of(*inputs: Any) -> Any:
        return program.run(plain, list(inputs))

    inputs = list(data.values())
    gradients = dict(zip(data, autograd.grad(of, tuple(range(len(inputs))))(*inputs), strict=True))
    one, two = (places[name] for name in pair)
    block = autograd.jacobian(autograd.grad(of, one), two)(*inputs)
    largest = max([np.abs(a).max(initial=0) for a in (block, *gradients.values())])
    return Wanted(value, gradients, block, condition) if largest < LARGEST else None


def close(found: Any, wanted: Any, condition: float, order: int, what: str) -> None:
    size = max(1.0, np.abs(wanted).max(initial=0))
    tolerance = min(1e-6, 1e-12 * condition ** (1 + order / 2)) * size
    assert np.shape(found) == np.shape(wanted), what
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance, err_msg=what)


def patched(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    for name, value in SETTINGS[setting].items():
        monkeypatch.setattr(f"tcalc.{name}", value)
    plan_for_machine(monkeypatch, **MACHINES[setting])


def check(seed: int, program: Program, data: dict[str, np.ndarray], thorough: bool) -> bool:
    """All modes in one setting; False where the numbers are too large to compare."""
    rng = np.random.default_rng(seed)
    used = [name for k, name in enumerate(program.shapes) if k in read(program)]
    pair = (str(rng.choice(used)), str(rng.choice(used)))
    named = rng.random() < 0.5
    with np.errstate(all="ignore"):
        wanted = oracle(program, data, pair)
    if wanted is None:
        return False
    sizes = {data["A"].shape[0]: "n"} if named else {}
    inputs = {
        name: tc.var(name, tuple([sizes.get(e, e) for e in shape]))
        for name, shape in program.shapes.items()
    }
    f = program.run(Tcalc(), list(inputs.values()))
    arrays = {name: data[name].copy() for name in program.shapes}
    for a in arrays.values():
        a.setflags(write=False)
    setting = str(rng.choice(list(SETTINGS)))
    pairs = PAIRS if thorough else [PAIRS[k] for k in rng.permutation(len(PAIRS))[:2]]
    one, two = (inputs[name] for name in pair)
    with pytest.MonkeyPatch.context() as monkeypatch:
        patched(monkeypatch, setting)
        close(f(**arrays), wanted.value, wanted.condition, 0, f"value, {setting}")
        for mode in MODES:
            gradients = tc.grad(f, {name: inputs[name] for name in used}, mode=mode)
            for name in used if mode == MODES[seed % 3] or thorough else used[:1]:
                found = gradients[name](**arrays)
                what = f"gradient by {name}, {mode}, {setting}"
                close(found, wanted.gradients[name], wanted.condition, 1, what)
        for inner, outer in pairs:
            block = tc.jacobian(tc.grad(f, one, mode=inner), two, mode=outer)
            what = f"Hessian by {pair}, {inner} then {outer}, {setting}"
            close(block(**arrays), wanted.block, wanted.condition, 2, what)
        check_together(f, inputs, arrays, wanted, pair, rng)
    return True


def check_together(
    f: tc.Expr, inputs: Any, arrays: Any, wanted: Wanted, pair: tuple[str, str], rng: Any
) -> None:
    """Value, gradient and Hessian in one plan, some data bound, called again after overwriting."""
    one, two = (inputs[name] for name in pair)
    outputs = [f, tc.grad(f, one), tc.jacobian(tc.grad(f, one), two)]
    fixed = {name: arrays[name] for name in arrays if rng.random() < 0.3 and name in f.variables}
    rest = {name: a for name, a in arrays.items() if name not in fixed}
    function = tc.compile(outputs, data=fixed)
    right = [wanted.value, wanted.gradients[pair[0]], wanted.block]
    for _ in range(2):
        for order, (found, number) in enumerate(zip(function(rest), right, strict=True)):
            close(found, number, wanted.condition, order, f"together, order {order}")
            if np.ndim(found):
                found.fill(np.nan)


def attempt(seed: int, thorough: bool = False) -> bool:
    program, data = generated(seed)
    try:
        return check(seed, program, data, thorough)
    except Exception as error:
        raise AssertionError(f"TCALC_SEED={seed} TCALC_RANDOM=1\n{program}") from error


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_compositions(batch: int) -> None:
    draw = random.SystemRandom() if FRESH else random.Random(batch)
    done = 0
    while done < max(1, COUNT // BATCHES):
        seed = int(SEED) + done if SEED else draw.randrange(2**40)
        compared = attempt(seed, thorough=done % 4 == 0)
        done += 1 if compared or SEED else 0


def test_the_oracles_agree() -> None:
    program, data = next(p for p in map(generated, range(99)) if 6 < len(p[0].steps) < 9)
    wanted = oracle(program, data, ("A", "A"))
    assert wanted is not None
    reference = Reference(jnp, jax.scipy.linalg.solve_triangular)
    of = jax.jit(jax.value_and_grad(lambda data: program.run(reference, [data[k] for k in data])))
    value, gradients = of(data)
    np.testing.assert_allclose(value, wanted.value, rtol=1e-12)
    for name, found in gradients.items():
        close(found, wanted.gradients[name], wanted.condition, 1, name)


@pytest.mark.parametrize("seed", CORPUS)
def test_seeds_that_failed_once(seed: int) -> None:
    assert attempt(seed, thorough=True)


#: How two matrices of a batch are multiplied, some of which leave no batch, or nothing, behind.
MEETING = ["nia,naj->nij", "nia,naj->ij", "nia,naj->n", "nia,naj->", "nai,naj->ij", "nia,nja->ij",
           "nai,nja->ij", "nia,nai->", "nia,nia->a", "mia,nja->ij", "mia,naj->ij"]  # fmt: skip


@pytest.mark.parametrize("spec", MEETING)
def test_what_cancels_is_summed_over_its_batch(spec: str) -> None:
    """Products of matrices, their factors and inverses: of n identities the sum is n of them."""
    S = tc.var("S", (4, 3, 3))
    a = np.random.default_rng(0).normal(size=S.shape)
    a = a @ a.transpose(0, 2, 1) + np.eye(3)
    la = tc.linalg
    (lower, q), factor = la.lq(S), la.cholesky(S)
    matrices = [S, la.inv(S), la.pinv(S), factor, la.tri_inverse(factor), lower, q,
                la.tri_inverse(lower), la.eigh(S)[1], la.svd(S)[0]]  # fmt: skip
    pairs = [(m, tc.compile(m)(S=a)) for m in matrices]
    for (one, left), (two, right) in itertools.product(pairs, repeat=2):
        e = tc.simplify(tc.einsum(spec, one, two))
        wanted = np.einsum(spec, left, right)
        found = e(S=a) if e.variables else e()
        np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8, err_msg=str(e))
