"""Random compositions of matrix functions against autograd: values, gradients, Hessians, all settings.

Without settings the same functions are drawn every time. `TCALC_RANDOM` is a number of fresh ones;
`TCALC_SEED` replays one: the message of a failure names it.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
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

FRESH = "TCALC_RANDOM" in os.environ
COUNT = int(os.environ.get("TCALC_RANDOM", "48"))
SEED = os.environ.get("TCALC_SEED")
BATCHES = 1 if SEED else 12
MODES = ("forward", "reverse", "cross-country")
PAIRS = list(itertools.product(MODES, MODES))
#: Of functions whose matrices have a larger condition, or whose values are larger, nothing is told.
CONDITION, LARGEST = 1e3, 1e5
la = tc.linalg

#: Seeds whose functions were wrong once.
CORPUS: list[int] = []

#: Thresholds by setting: as they are, in place, in loops, with other plans tried.
SETTINGS: dict[str, dict[str, float]] = {
    "plain": {},
    "in place": {
        "ops.cholesky.LARGE": 2,
        "ops.definite.LARGE": 2,
        "ops.definite.BLOCK": 2,
        "ops.triangles.LARGE": 2,
        "ops.pullbacks.BLOCK": 2,
        "lower.GRAM_ROWS": 2,
    },
    "chosen": {"plan.WORTH_CHOOSING": 0},
    "loops": {"loops.TILE": 4, "loops.LARGE": 4, "steps.MANY": 1, "steps.SMALLER": 1},
}
SETTINGS["all"] = {key: value for setting in SETTINGS.values() for key, value in setting.items()}


# --- what both sides can do -----------------------------------------------------------------------


class Tcalc:
    """Vocabulary of the programs in tcalc."""

    xp = tc

    def __getattr__(self, name: str) -> Any:
        return getattr(la, name)

    def solve_triangular(self, a: Any, b: Any, trans: int, lower: bool) -> Any:
        return la.solve_triangular(a, b, trans=trans, lower=lower)

    def cho_solve(self, a: Any, b: Any) -> Any:
        return la.cho_solve((a, True), b)

    def spectral(self, a: Any, g: Callable[..., Any]) -> Any:
        w, v = la.eigh(a)
        return (v * g(w)) @ v.T

    def eye(self, e: Any) -> Any:
        return tc.eye(e.shape[0])

    def diag(self, x: Any) -> Any:
        return tc.diag(x)


class Reference:
    """The same in autograd or jax; `seen` collects the conditions of what is inverted."""

    def __init__(self, xp: Any, triangular: Any, seen: list[float] | None = None) -> None:
        self.xp, self.triangular, self.seen = xp, triangular, seen

    def note(self, a: Any, gaps: bool = False) -> Any:
        if self.seen is not None:
            self.seen.append(float(np.linalg.cond(a)))
            if gaps:
                w = np.linalg.eigvalsh(a)
                self.seen.append(float(np.abs(w).max() / np.diff(w).min()))
        return a

    def inv(self, a: Any) -> Any:
        return self.xp.linalg.inv(self.note(a))

    def logdet(self, a: Any) -> Any:
        return self.xp.linalg.slogdet(self.note(a))[1]

    def det(self, a: Any) -> Any:
        return self.xp.linalg.det(self.note(a))

    def solve(self, a: Any, b: Any) -> Any:
        return self.xp.linalg.solve(self.note(a), b)

    def cholesky(self, a: Any) -> Any:
        return self.xp.linalg.cholesky(self.note((a + a.T) / 2))

    def eigvalsh(self, a: Any) -> Any:
        return self.xp.linalg.eigh(self.note((a + a.T) / 2, True))[0]

    def spectral(self, a: Any, g: Callable[..., Any]) -> Any:
        w, v = self.xp.linalg.eigh(self.note((a + a.T) / 2, True))
        return (v * g(w)) @ v.T

    def solve_triangular(self, a: Any, b: Any, trans: int, lower: bool) -> Any:
        self.note(np.tril(a) if lower else np.triu(a)) if self.seen is not None else None
        return self.triangular(a, b, trans=trans, lower=lower)

    def tri_inverse(self, a: Any) -> Any:
        return self.solve_triangular(a, np.eye(len(a)), 0, True)

    def potri(self, a: Any) -> Any:
        x = self.tri_inverse(a)
        return x.T @ x

    def cho_solve(self, a: Any, b: Any) -> Any:
        x = self.tri_inverse(a)
        return x.T @ (x @ b)

    def lq(self, a: Any) -> Any:
        factor = self.cholesky(a @ a.T)
        return factor, self.solve_triangular(factor, a, 0, True)

    def expm(self, a: Any) -> Any:
        total = term = np.eye(len(a))
        for k in range(1, 20):
            term = term @ a / k
            total = total + term
        return total

    def extractdiag(self, a: Any) -> Any:
        return self.xp.sum(a * np.eye(len(a)), axis=1)

    def sumlogdiag(self, a: Any) -> Any:
        return self.xp.sum(self.xp.log(self.extractdiag(a)))

    def syrk(self, a: Any, transpose: bool = False) -> Any:
        return a.T @ a if transpose else a @ a.T

    def trace(self, a: Any) -> Any:
        return self.xp.trace(a)

    def eye(self, e: Any) -> Any:
        return np.eye(len(e))

    def diag(self, x: Any) -> Any:
        return self.xp.diag(x)


Step = Callable[..., Any]
#: By kind of the result (scalar, vector, general, triangular, positive definite matrix, rectangle):
#: name, kinds of the operands, and what is done. A kind is also a general matrix, as "G" says.
MOVES: dict[str, list[tuple[str, str, Step]]] = {
    "P": [
        ("gram", "R", lambda k, r: r @ r.T + k.eye(r)),
        ("gram small", "G", lambda k, g: g @ g.T + 0.3 * k.eye(g)),
        ("syrk", "G", lambda k, g: k.syrk(g) + k.eye(g)),
        ("syrk'", "G", lambda k, g: k.syrk(g, transpose=True) + k.eye(g)),
        ("weighted gram", "Rs", lambda k, r, s: k.xp.exp(s) * (r @ r.T) + (s * s + 1) * k.eye(r)),
        ("gram of diagonal", "Gv", lambda k, g, v: (g * (v * v)) @ g.T + k.eye(g)),
        ("kernel", "vs", lambda k, v, s: kernel(k, v, k.xp.exp(-s * s)) + 0.2 * k.eye(v)),
        ("sum", "PP", lambda k, p, q: p + q),
        ("shifted", "Ps", lambda k, p, s: p + k.xp.exp(s) * k.eye(p)),
        ("scaled", "Ps", lambda k, p, s: (1 + s * s) * p),
        ("diagonal", "v", lambda k, v: k.diag(1 + v * v)),
        ("plus diagonal", "Pv", lambda k, p, v: p + k.diag(k.xp.exp(v))),
        ("congruent", "PR", lambda k, p, r: p + r @ r.T),
        ("between", "PG", lambda k, p, g: g @ p @ g.T + k.eye(g)),
        ("inverse between", "PG", lambda k, p, g: g.T @ k.inv(p) @ g + k.eye(g)),
        ("solve between", "PG", lambda k, p, g: g.T @ k.solve(p, g) + p),
        ("schur", "PP", lambda k, p, q: p * q),
        ("inv", "P", lambda k, p: k.inv(p)),
        ("potri", "L", lambda k, a: k.potri(a)),
        ("square of factor", "L", lambda k, a: a @ a.T),
        ("diag on both sides", "Pv", lambda k, p, v: p * (1 + v * v)[:, None] * (1 + v * v)),
        ("spectral exp", "P", lambda k, p: k.spectral(p, lambda w: k.xp.exp(-w) + 0.1)),
        ("outer", "Pv", lambda k, p, v: p + k.xp.outer(v, v)),
    ],
    "L": [
        ("cholesky", "P", lambda k, p: k.cholesky(p)),
        ("cholesky", "P", lambda k, p: k.cholesky(p)),
        ("cholesky+", "P", lambda k, p: k.cholesky(p + k.eye(p))),
        ("tri_inverse", "L", lambda k, a: k.tri_inverse(a)),
        ("lq", "G", lambda k, g: k.lq(g)[0]),
        ("lq wide", "R", lambda k, r: k.lq(r.T if r.shape[0] > r.shape[1] else r)[0]),
        ("product", "LL", lambda k, a, b: a @ b),
        ("scaled", "Ls", lambda k, a, s: k.xp.exp(s) * a),
        ("columns", "Lv", lambda k, a, v: a * (1 + v * v)),
    ],
    "G": [
        ("general", "G", lambda k, g: g),
        ("product", "GG", lambda k, g, h: g @ h),
        ("sum", "GG", lambda k, g, h: g + h),
        ("difference", "GG", lambda k, g, h: g - h.T),
        ("hadamard", "GG", lambda k, g, h: g * h),
        ("scaled", "Gs", lambda k, g, s: s * g),
        ("transpose", "G", lambda k, g: g.T),
        ("tanh", "G", lambda k, g: k.xp.tanh(g)),
        ("outer", "vv", lambda k, v, w: k.xp.outer(v, w)),
        ("difference of vectors", "vv", lambda k, v, w: v[:, None] - w),
        ("diag", "v", lambda k, v: k.diag(v)),
        ("solve", "PG", lambda k, p, g: k.solve(p, g)),
        ("solve right", "PG", lambda k, p, g: k.solve(p.T, g.T).T),
        ("inv", "PG", lambda k, p, g: k.inv(p) @ g),
        ("inv of shifted", "G", lambda k, g: k.inv(g + 3 * k.eye(g))),
        ("tri solve", "LG", lambda k, a, g: k.solve_triangular(a, g, 0, True)),
        ("tri solve'", "LG", lambda k, a, g: k.solve_triangular(a, g, 1, True)),
        ("upper solve", "LG", lambda k, a, g: k.solve_triangular(a.T, g, 0, False)),
        ("cho_solve", "LG", lambda k, a, g: k.cho_solve(a, g)),
        ("q", "G", lambda k, g: k.lq(g)[1]),
        ("factor times", "LG", lambda k, a, g: a @ g),
        ("factor' times", "LG", lambda k, a, g: a.T @ g),
        ("definite", "P", lambda k, p: p),
        ("triangular", "L", lambda k, a: a),
        ("spectral", "P", lambda k, p: k.spectral(p, lambda w: k.xp.log(w))),
        ("spectral", "G", lambda k, g: k.spectral(g + g.T, lambda w: k.xp.tanh(w))),
        ("expm", "G", lambda k, g: k.expm(0.1 * g)),
        ("rows scaled", "Gv", lambda k, g, v: g * v[:, None]),
    ],
    "v": [
        ("vector", "v", lambda k, v: v),
        ("tanh", "v", lambda k, v: k.xp.tanh(v)),
        ("product", "vv", lambda k, v, w: v * w),
        ("difference", "vv", lambda k, v, w: v - w),
        ("scaled", "vs", lambda k, v, s: s * v),
        ("matrix times", "Gv", lambda k, g, v: g @ v),
        ("times matrix", "Gv", lambda k, g, v: v @ g),
        ("solve", "Pv", lambda k, p, v: k.solve(p, v)),
        ("inv times", "Pv", lambda k, p, v: k.inv(p) @ v),
        ("solve general", "Gv", lambda k, g, v: k.solve(g + 3 * k.eye(g), v)),
        ("tri solve", "Lv", lambda k, a, v: k.solve_triangular(a, v, 0, True)),
        ("tri solve'", "Lv", lambda k, a, v: k.solve_triangular(a, v, 1, True)),
        ("cho_solve", "Lv", lambda k, a, v: k.cho_solve(a, v)),
        ("diagonal", "G", lambda k, g: k.extractdiag(g)),
        ("diagonal of inverse", "P", lambda k, p: k.extractdiag(k.inv(p))),
        ("row sums", "G", lambda k, g: k.xp.sum(g, axis=1)),
        ("eigenvalues", "P", lambda k, p: k.eigvalsh(p)),
    ],
    "s": [
        ("logdet", "P", lambda k, p: k.logdet(p)),
        ("logdet", "P", lambda k, p: k.logdet(p)),
        ("logdet shifted", "G", lambda k, g: k.logdet(g + 3 * k.eye(g))),
        ("det", "P", lambda k, p: k.det(p)),
        ("sumlogdiag", "P", lambda k, p: k.sumlogdiag(k.cholesky(p))),
        ("log of squares", "L", lambda k, a: k.xp.sum(k.xp.log(1 + k.extractdiag(a) ** 2))),
        ("trace", "G", lambda k, g: k.trace(g)),
        ("trace of product", "GG", lambda k, g, h: k.trace(g @ h)),
        ("trace inv", "PG", lambda k, p, g: k.trace(k.inv(p) @ g)),
        ("trace solve", "PQ", lambda k, p, q: k.trace(k.solve(p, q))),
        ("frobenius", "GG", lambda k, g, h: k.xp.sum(g * h)),
        ("squares", "G", lambda k, g: k.xp.sum(g * g)),
        ("tanh", "G", lambda k, g: k.xp.sum(k.xp.tanh(g))),
        ("dot", "vv", lambda k, v, w: v @ w),
        ("bilinear", "Gvv", lambda k, g, v, w: v @ g @ w),
        ("quadratic", "Pv", lambda k, p, v: v @ k.inv(p) @ v),
        ("quadratic solve", "Pv", lambda k, p, v: v @ k.solve(p, v)),
        ("whitened", "Pv", lambda k, p, v: norm2(k.solve_triangular(k.cholesky(p), v, 0, True))),
        ("whitened matrix", "PG", lambda k, p, g: norm2(k.tri_inverse(k.cholesky(p)) @ g)),
        ("cho quadratic", "Pv", lambda k, p, v: v @ k.cho_solve(k.cholesky(p), v)),
        ("gaussian", "Pv", lambda k, p, v: v @ k.solve(p, v) / 2 + k.logdet(p) / 2),
        ("spectral sum", "P", lambda k, p: k.xp.sum(k.xp.log(k.eigvalsh(p)))),
        ("spectral sum", "P", lambda k, p: k.xp.sum(k.xp.tanh(k.eigvalsh(p)))),
        ("product", "ss", lambda k, s, t: s * t),
        ("tanh of", "s", lambda k, s: k.xp.tanh(s)),
        ("longest row", "G", lambda k, g: k.xp.sqrt(k.xp.sum(g * g) + 1)),
    ],
}  # fmt: skip
MOVES["s"] = [(name, kinds.replace("Q", "P"), do) for name, kinds, do in MOVES["s"]]
#: What else a kind of operand may be.
ALSO = {"G": "GPL", "R": "RG", "P": "P", "L": "L", "v": "v", "s": "s"}


def kernel(k: Any, v: Any, weight: Any) -> Any:
    difference = v[:, None] - v
    return k.xp.exp(-weight * difference * difference)


def norm2(e: Any) -> Any:
    return (e * e).sum()


# --- programs -------------------------------------------------------------------------------------


@dataclass
class Program:
    """A straight-line program: data, which both sides run and a failure prints."""

    shapes: dict[str, tuple[int, ...]]
    kinds: list[str]
    steps: list[tuple[str, int, tuple[int, ...]]] = field(default_factory=list)
    terms: list[int] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"{k}: {name} {shape}" for k, (name, shape) in enumerate(self.shapes.items())]
        for kind, number, places in self.steps:
            lines.append(f"{len(lines)}: {kind} {MOVES[kind][number][0]} {places}")
        return "\n".join([*lines, f"sum of {self.terms}"])

    def run(self, vocabulary: Any, inputs: list[Any]) -> Any:
        values = list(inputs)
        for kind, number, places in self.steps:
            values.append(MOVES[kind][number][2](vocabulary, *[values[k] for k in places]))
        return sum([values[k] for k in self.terms[1:]], values[self.terms[0]])


def generated(seed: int, steps: int | None = None) -> tuple[Program, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    n = int(rng.choice([2, 3, 5], p=[0.4, 0.4, 0.2]))
    m = int(rng.choice([n, n + 2, max(1, n - 1)]))
    shapes: dict[str, tuple[int, ...]] = {"A": (n, n), "B": (n, n + 2 if m < n else m)}
    shapes |= {"x": (n,), "y": (n,), "z": ()}
    program = Program(shapes, ["G", "R", "v", "v", "s"])

    def place(kind: str) -> int | None:
        found = [k for k, other in enumerate(program.kinds) if other in ALSO[kind]]
        if not found:
            return None
        return found[-1 - min(len(found) - 1, int(rng.geometric(0.4)) - 1)]

    def grow(kind: str) -> bool:
        number = int(rng.integers(len(MOVES[kind])))
        places = [place(k) for k in MOVES[kind][number][1]]
        if any(k is None for k in places):
            return False
        program.steps.append((kind, number, tuple([k for k in places if k is not None])))
        program.kinds.append(kind)
        return True

    grow("P")
    for _ in range(int(rng.integers(1, 7)) if steps is None else steps):
        grow(str(rng.choice(list("PLGvs"), p=[0.25, 0.25, 0.25, 0.15, 0.1])))
    wanted = int(rng.integers(1, 4))
    while program.kinds.count("s") - 1 < wanted:
        grow("s")
    program.terms = [k for k, kind in enumerate(program.kinds) if kind == "s" and k > 4]
    data = {name: rng.normal(size=shape) * 0.7 for name, shape in shapes.items()}
    return program, data


def read(program: Program) -> set[int]:
    """Places of values that the result depends on."""
    found = set(program.terms)
    for k in reversed(range(len(program.shapes), len(program.kinds))):
        if k in found:
            found.update(program.steps[k - len(program.shapes)][2])
    return found


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
