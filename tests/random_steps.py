"""Random steps of Python's loops: ``python -m tests.random_steps --seed S --count N``.

What becomes a fold has the values, slopes and curvatures of what it was. The programs run on
NumPy's arrays too, with complex numbers where slopes are asked for, so that nothing of what they
are compared with is shared.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import tcalc as tc
from tcalc.loops.rolling import with_fold

N, STEPS, RATES = 3, 24, np.array([0.7, -0.4, 0.9])
SEEN = np.random.default_rng(1).uniform(-1, 1, (STEPS, N))

Op = tuple[str, str, Callable[..., Any]]
#: Shapes of the operands and of the result: s is (), v (N,) and m (N, N).
OPS: list[Op] = [
    *[(kind, kind, f) for kind in "svm" for f in (
        lambda xp, x: xp.sin(x), lambda xp, x: xp.tanh(x), lambda xp, x: x * x,
        lambda xp, x: 1 / (1 + x * x), lambda xp, x: 0.3 - x,
    )],
    *[(kind + kind, kind, f) for kind in "svm" for f in (
        lambda xp, x, y: x + y, lambda xp, x, y: x - y, lambda xp, x, y: x * y,
    )],
    ("v", "m", lambda xp, x: x[:, None] - x[None]),
    ("v", "m", lambda xp, x: x[None] - x[:, None]),
    ("vv", "m", lambda xp, x, y: x[:, None] - y),
    ("vv", "m", lambda xp, x, y: x[:, None] * y),
    ("vv", "m", lambda xp, x, y: xp.tanh(x[:, None] + y)),
    ("m", "m", lambda xp, x: x.T),
    ("m", "m", lambda xp, x: x - x.T),
    ("m", "m", lambda xp, x: x + x.T),
    ("mm", "m", lambda xp, x, y: 0.2 * (x @ y)),
    ("mv", "m", lambda xp, x, y: x * y),
    ("mv", "m", lambda xp, x, y: x * y[:, None]),
    ("mv", "v", lambda xp, x, y: 0.3 * (x @ y)),
    ("mv", "v", lambda xp, x, y: 0.3 * (y @ x)),
    ("m", "v", lambda xp, x: 0.3 * x.sum(0)),
    ("m", "v", lambda xp, x: 0.3 * x.sum(1)),
    ("m", "s", lambda xp, x: 0.2 * x.sum()),
    ("v", "v", lambda xp, x: x[::-1]),
    ("vs", "v", lambda xp, x, y: x * y),
    ("v", "s", lambda xp, x: x[0]),
    ("vv", "s", lambda xp, x, y: 0.3 * (x * y).sum()),
]  # fmt: skip
#: Of programs from seed `MORE_FROM` on, too.
MORE: list[Op] = [
    *[(kind, kind, f) for kind in "svm" for f in (
        lambda xp, x: xp.exp(-x * x), lambda xp, x: xp.sqrt(1 + x * x), lambda xp, x: xp.cos(3 * x),
    )],
    *[(kind + kind, kind, f) for kind in "sv" for f in (
        lambda xp, x, y: x / (1 + y * y), lambda xp, x, y: xp.where(real(x) > 0.1, y, 0.5 * x),
        lambda xp, x, y: xp.maximum(x, 0.3 * y),
    )],
    ("v", "v", lambda xp, x: xp.cumsum(x)),
    ("v", "v", lambda xp, x: xp.roll(x, 1)),
    ("v", "v", lambda xp, x: x - x.mean()),
    ("v", "v", lambda xp, x: x / xp.sqrt(1 + (x * x).sum())),
    ("v", "v", lambda xp, x: xp.exp(x) / xp.exp(x).sum()),
    ("v", "v", lambda xp, x: xp.concatenate([x[1:], x[:1] * 0.5])),
    ("v", "m", lambda xp, x: xp.outer(x, x)),
    ("v", "m", lambda xp, x: xp.diag(x)),
    ("m", "v", lambda xp, x: xp.diagonal(x)),
    ("m", "s", lambda xp, x: 0.3 * xp.trace(x)),
    ("m", "m", lambda xp, x: xp.tril(x)),
    ("m", "m", lambda xp, x: (x + x.T) / 2),
    ("m", "m", lambda xp, x: 0.3 * (x @ x.T)),
    ("m", "m", lambda xp, x: x[::-1]),
    ("mv", "v", lambda xp, x, y: xp.linalg.solve(3 * xp.eye(N) + 0.1 * x, y)),
    ("m", "m", lambda xp, x: xp.linalg.inv(3 * xp.eye(N) + 0.1 * x)),
    ("m", "s", lambda xp, x: 0.1 * xp.linalg.det(2 * xp.eye(N) + 0.1 * x)),
    ("vs", "s", lambda xp, x, y: xp.tanh(x * y).sum() / N),
]  # fmt: skip
MORE_FROM = 1_000_000


def real(x: Any) -> Any:
    return x.real if isinstance(x, np.ndarray | np.generic) else x


def program(seed: int) -> Callable[[Any, Any], Any]:
    """A loop on up to three states, the rates p, and in some a row of what is seen."""
    rng, ops = np.random.default_rng(seed), OPS if seed < MORE_FROM else [*OPS, *MORE]
    kinds = [
        str(kind) for kind in rng.choice(["s", "v", "m"], rng.integers(1, 4), p=[0.2, 0.5, 0.3])
    ]
    kinds[0] = "vm"[rng.integers(2)]
    around = "sss" + "v" * int(rng.integers(2))
    made: list[tuple[Op, tuple[int, ...]]] = []
    known, wanted = [*kinds, *around], rng.integers(3, 9)
    while len(made) < wanted:
        op = ops[rng.integers(len(ops))]
        places = [[k for k, kind in enumerate(known) if kind == one] for one in op[0]]
        if all(places):
            made.append((op, tuple([int(rng.choice(at[-3:])) for at in places])))
            known.append(op[1])
    ends = [
        (
            int(rng.choice([k for k, other in enumerate(known) if other == kind][-3:])),
            rng.integers(3),
        )
        for kind in kinds
    ]
    begin = {"s": 0.3, "v": np.linspace(-0.5, 0.6, N), "m": np.sin(np.arange(9.0).reshape(3, 3))}
    total = bool(rng.integers(2))

    def run(xp: Any, p: Any) -> Any:
        states, seen = [p[0] * begin[kind] for kind in kinds], 0.0
        for t in range(STEPS):
            values = [*states, p[0], p[1], p[2], SEEN[t]][: len(kinds) + len(around)]
            for (_, _, f), at in made:
                values.append(f(xp, *[values[k] for k in at]))
            moved = [xp.tanh(values[k]) for k, _ in ends]  # so that no state grows
            states = [
                (state + 0.05 * new, new, 0.9 * state + p[2] * new / 9)[how]
                for state, new, (_, how) in zip(states, moved, ends, strict=True)
            ]
            if total:
                seen = seen + (states[0] * states[0]).sum()
        return seen + sum([xp.sin(state).sum() for state in states])

    return run


def slope_of(run: Callable[[Any, Any], Any], at: np.ndarray) -> np.ndarray:
    """By complex steps, which lose no digits (Squire and Trapp 1998)."""
    return np.array([run(np, at + 1e-30j * e).imag / 1e-30 for e in np.eye(len(at))])


def none(rows: Any) -> None:
    """Variables that do not stand for arrays."""


def expression(run: Callable[[Any, Any], Any]) -> tc.Expr:
    return tc.sum(run(tc.numpy, tc.var("p", RATES.shape)))


def compare(seed: int, curved: bool) -> None:
    """Raise an AssertionError where a program differs, with steps as they are or turned axes."""
    run = program(seed)
    with np.errstate(all="ignore"):
        value, slope = run(np, RATES), slope_of(run, RATES)
    near = {"rtol": 1e-9, "atol": 1e-11 * max(1, abs(slope).max()), "err_msg": f"seed {seed}"}
    for turned in (False, True):
        found = with_fold([expression(run)], none, turned)
        if found is not None:
            np.testing.assert_allclose(found[0](p=RATES), value, **near)
    np.testing.assert_allclose(tc.grad(lambda p: run(np, p))(RATES), slope, **near)
    if curved:
        h = 1e-5 * np.eye(len(RATES))
        wanted = [(slope_of(run, RATES + e) - slope_of(run, RATES - e)) / 2e-5 for e in h]
        near = {
            "rtol": 1e-5,
            "atol": 1e-5 * max(1, np.abs(wanted).max()),
            "err_msg": f"seed {seed}",
        }
        np.testing.assert_allclose(tc.hessian(lambda p: run(np, p))(RATES), wanted, **near)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    given = parser.parse_args()
    wrong = 0
    for seed in range(given.seed, given.seed + given.count):
        try:
            compare(seed, curved=seed % 5 == 0)
        except Exception as problem:  # all are told of
            wrong += 1
            print(f"{seed}: {type(problem).__name__}: {problem}", flush=True)
    print(f"{given.count} programs, {wrong} that differ")


if __name__ == "__main__":
    main()
