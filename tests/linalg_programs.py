"""Random compositions of matrix functions as programs that tcalc, autograd and jax can run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tcalc as tc

la = tc.linalg

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
        ("lq wide", "R", lambda k, r: k.lq(r)[0]),
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
