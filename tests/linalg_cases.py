"""The one table of linear algebra cases, each with an oracle of its own in mpmath."""

# ruff: noqa: E501 (a row of a table is one line)

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np

import tcalc as tc
from tests.hyper import (
    adj,
    cholesky,
    det,
    diagonal,
    eigh,
    expm,
    frobenius,
    gram,
    inverse,
    largest,
    log_abs,
    logm,
    lq,
    pinv,
    power,
    product,
    qr,
    sign,
    singular_values,
    solve,
    sqrtm,
    swap,
    syevd,
    symmetric,
    total,
    triangle,
)
from tests.hyper_svd import lq_long, off_diagonal, pack, qr_wide, svd, unpack

la = tc.linalg


@dataclass(frozen=True)
class Case:
    """One call: `build` from tcalc's variables, `oracle` from arrays of Hypers without a batch.

    `inputs` are kinds of matrices by name (see `sample`); `empty`: is it defined at extent 0?
    `batch`: are leading axes a batch? The name starts with that of the function.
    """

    name: str
    inputs: dict[str, str]
    build: Callable[..., Any]
    oracle: Callable[..., Any]
    empty: bool = True
    batch: bool = True

    def __str__(self) -> str:
        return self.name


#: Results whose rows or columns have any sign: those of singular vectors are nobody's promise.
VECTORS = {"eigh": ("part 1",), "svd": ("part 0", "part 2")}


def signless(name: str, results: Collection[str]) -> frozenset[str]:
    """Those of a function or a row with these results: part 0, part 1, …"""
    return frozenset(VECTORS.get(re.split("[-_]", name)[0], ()) if "part 1" in results else ())


def shape_of(kind: str, sizes: dict[str, int]) -> tuple[int, ...]:
    """A kind is the letters of its extents, or the name of a kind of n x n matrices."""
    return tuple([sizes[c] for c in (kind if set(kind) <= set("mnk") else "nn")])


def sample(kind: str, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """A generic matrix of a kind: no symmetry, no common eigenvectors, no small condition."""
    a = rng.normal(size=shape)
    if kind == "positive":
        return a @ np.swapaxes(a, -1, -2) + 0.5 * np.eye(shape[-1]) + (a - a.swapaxes(-1, -2)) / 5
    if kind == "spectrum":
        return a + a.swapaxes(-1, -2) + np.diag(3.0 * np.arange(shape[-1])) + a / 7
    if kind == "factor":
        return a + np.eye(shape[-1]) * np.where(a > 0, 2.0, -2.0)
    if kind == "diagonal+":
        return a + np.eye(shape[-1]) * (0.5 - a + np.abs(a))
    return a


def _triangular(name: str, tcalc_name: Any, solving: bool) -> list[Case]:
    """All eight combinations of side, transposition and triangle, with a factor."""
    found = []
    for right in (False, True):
        for transpose in (False, True):
            for lower in (False, True):
                options = {"transpose": transpose, "rightside": right, "lower": lower}

                def oracle(a: Any, b: Any, options: Any = options) -> Any:
                    t = triangle(a, options["lower"])
                    t = inverse(t) if solving else t
                    t = t.T if options["transpose"] else t
                    return (product(b, t) if options["rightside"] else product(t, b)) * mp.mpf(-1.5)

                label = "".join("ny"[v] for v in options.values())
                found.append(
                    Case(
                        f"{name}-{label}",
                        {"A": "factor", "B": "kn" if right else "nk"},
                        lambda A, B, o=options: tcalc_name(A, B, alpha=-1.5, **o),
                        oracle,
                    )
                )
    return found


def _solve_triangular() -> list[Case]:
    return [
        Case(
            f"solve_triangular-{trans}-{'lower' if lower else 'upper'}",
            {"A": "factor", "b": "n" if lower else "nk"},
            lambda A, b, t=trans, w=lower: la.solve_triangular(A, b, trans=t, lower=w),
            lambda A, b, t=trans, w=lower: solve(triangle(A, w).T if t else triangle(A, w), b),
        )
        for trans in (0, 1)
        for lower in (False, True)
    ]


def eigh_function(A: tc.Expr, g: Callable[..., Any]) -> tc.Expr:
    w, V = la.eigh(A)
    return (V * g(w)[..., None, :]) @ V.mT


def eigenvalue_sum(A: tc.Expr, g: Callable[..., Any]) -> tc.Expr:
    return tc.sum(g(la.eigvalsh(A)), axis=-1)


CASES = [
    Case("cholesky", {"A": "positive"}, la.cholesky, cholesky),
    Case("potrf-lower", {"A": "positive"}, la.potrf, cholesky),
    Case("potrf-upper", {"A": "positive"}, lambda A: la.potrf(A, lower=False), lambda A: cholesky(A).T),
    Case("potri-lower", {"A": "factor"}, la.potri, lambda A: inverse(gram(A, True))),
    Case("potri-upper", {"A": "factor"}, lambda A: la.potri(A, lower=False), lambda A: inverse(gram(A, False))),
    Case("tri_inverse", {"A": "factor"}, la.tri_inverse, lambda A: inverse(triangle(A, True))),
    *_triangular("trsm", la.trsm, True),
    *_triangular("trmm", la.trmm, False),
    *_solve_triangular(),
    Case("cho_solve-lower", {"A": "factor", "b": "nk"}, lambda A, b: la.cho_solve((A, True), b), lambda A, b: solve(gram(A, True), b)),
    Case("cho_solve-upper", {"A": "factor", "b": "n"}, lambda A, b: la.cho_solve((A, False), b), lambda A, b: solve(gram(A, False), b)),
    Case("syrk", {"A": "mn"}, lambda A: la.syrk(A, alpha=2), lambda A: product(A, A.T) * 2),
    Case("syrk-transpose", {"A": "mn"}, lambda A: la.syrk(A, transpose=True, alpha=-0.5), lambda A: product(A.T, A) * mp.mpf(-0.5)),
    *[
        Case(
            f"gemm-{'ny'[s]}{'ny'[t]}",
            {"A": "mn" if s else "nm", "B": "km" if t else "mk", "C": "nk"},
            lambda A, B, C, s=s, t=t: la.gemm(A, B, C, s, t, alpha=1.5, beta=-2),
            lambda A, B, C, s=s, t=t: product(A.T if s else A, B.T if t else B) * mp.mpf(1.5) - C * 2,
        )
        for s in (False, True)
        for t in (False, True)
    ],
    Case("gemm2", {"A": "mn", "B": "kn"}, lambda A, B: la.gemm2(A, B, transpose_b=True, alpha=3), lambda A, B: product(A, B.T) * 3),
    Case("lq", {"A": "mn"}, la.lq, lq),
    Case("gelqf", {"A": "mn"}, la.gelqf, lambda A: swap(lq(A))),
    Case("qr", {"A": "nm"}, la.qr, qr),
    Case("lq-square", {"A": "general"}, la.lq, lq),
    Case("lq-tall", {"A": "nm"}, la.lq, lq_long),
    Case("qr-wide", {"A": "mn"}, la.qr, qr_wide),
    Case("svd-wide", {"A": "mn"}, la.svd, svd),
    Case("svd-tall", {"A": "nm"}, la.svd, svd),
    Case("svd-square", {"A": "general"}, la.svd, svd),
    Case("eigh", {"A": "spectrum"}, la.eigh, eigh),
    Case("eigvalsh", {"A": "spectrum"}, la.eigvalsh, lambda A: eigh(A)[0]),
    Case("svdvals-wide", {"A": "mn"}, la.svdvals, lambda A: svd(A)[1]),
    Case("svdvals-tall", {"A": "nm"}, la.svdvals, lambda A: svd(A)[1]),
    Case("kron", {"A": "mn", "B": "nk"}, la.kron, np.kron, batch=False),
    Case("sym", {"A": "general"}, la.sym, lambda A: (A + A.T) / 2),
    Case("expm", {"A": "general"}, la.expm, expm),
    Case("sqrtm", {"A": "positive"}, la.sqrtm, sqrtm),
    Case("logm", {"A": "positive"}, la.logm, logm),
    Case("matrix_function-exp", {"A": "general"}, lambda A: la.matrix_function(A, tc.exp), lambda A: expm(symmetric(A))),
    Case("eigh-sqrt", {"A": "positive"}, lambda A: eigh_function(A, tc.sqrt), lambda A: sqrtm(symmetric(A))),
    Case("eigh-sum-log", {"A": "positive"}, lambda A: eigenvalue_sum(A, tc.log), lambda A: log_abs(det(symmetric(A)))),
    Case("syevd", {"A": "spectrum"}, la.syevd, syevd),
    Case("inv", {"A": "general"}, la.inv, inverse),
    Case("inverse", {"A": "general"}, la.inverse, inverse),
    Case("solve", {"A": "general", "b": "nk"}, la.solve, solve),
    Case("solve-vector", {"A": "general", "b": "n"}, la.solve, solve),
    Case("det", {"A": "general"}, la.det, det),
    Case("logdet", {"A": "general"}, la.logdet, lambda A: log_abs(det(A))),
    Case("slogdet", {"A": "general"}, la.slogdet, lambda A: (sign(det(A)), log_abs(det(A)))),
    Case("pinv-wide", {"A": "mn"}, la.pinv, pinv),
    Case("pinv-tall", {"A": "nm"}, la.pinv, pinv),
    Case("lstsq-wide", {"A": "mn", "b": "mk"}, la.lstsq, lambda A, b: product(pinv(A), b)),
    Case("lstsq-tall", {"A": "nm", "b": "n"}, la.lstsq, lambda A, b: product(pinv(A), b)),
    Case("adj", {"A": "general"}, la.adj, adj),
    *[Case(f"matrix_power{n:+}", {"A": "general"}, lambda A, n=n: la.matrix_power(A, n), lambda A, n=n: power(A, n)) for n in (-2, -1, 0, 1, 3)],
    Case("sumlogdiag", {"A": "diagonal+"}, la.sumlogdiag, lambda A: total([A[k, k].log() for k in range(len(A))])),
    Case("extractdiag", {"A": "general"}, la.extractdiag, np.diagonal),
    Case("makediag", {"b": "n"}, la.makediag, diagonal),
    Case("extractdiag+1", {"A": "general"}, lambda A: la.extractdiag(A, 1), lambda A: np.diagonal(A, 1), empty=False),
    Case("makediag+1", {"b": "n"}, lambda b: la.makediag(b, 1), lambda b: off_diagonal(b, 1)),
    Case("makediag-2", {"b": "n"}, lambda b: la.makediag(b, -2), lambda b: off_diagonal(b, -2)),
    *[Case(f"extracttrian-{'ny'[w]}", {"A": "general"}, lambda A, w=w: la.extracttrian(A, lower=w), lambda A, w=w: pack(A, 0, w)) for w in (False, True)],
    *[Case(f"maketrian-{'ny'[w]}", {"b": "n"}, lambda b, w=w: la.maketrian(b, lower=w), lambda b, w=w: unpack(b, 0, w)) for w in (False, True)],
    *[Case(f"extracttrian{k:+}", {"A": "general"}, lambda A, k=k: la.extracttrian(A, k), lambda A, k=k: pack(A, k, k < 0), empty=False) for k in (-1, 1)],
    *[Case(f"maketrian{k:+}", {"b": "n"}, lambda b, k=k: la.maketrian(b, k), lambda b, k=k: unpack(b, k, k < 0)) for k in (-2, 1)],
    Case("trace", {"A": "general"}, lambda A: la.trace(A, axis1=-2, axis2=-1), lambda A: total(list(np.diagonal(A)))),
    Case("norm", {"A": "mn"}, lambda A: la.norm(A, axis=(-2, -1)), frobenius),
    Case("norm-vector", {"b": "n"}, lambda b: la.norm(b, axis=-1), frobenius),
    Case("norm-2", {"A": "mn"}, lambda A: la.norm(A, 2, axis=(-2, -1)), lambda A: singular_values(A)[-1], empty=False),
    Case("norm-2-tall", {"A": "nm"}, lambda A: la.norm(A, 2, axis=(-2, -1)), lambda A: singular_values(A.T)[-1], empty=False),
    Case("norm-nuc", {"A": "mn"}, lambda A: la.norm(A, "nuc", axis=(-2, -1)), lambda A: total(singular_values(A))),
    Case("norm-1", {"A": "mn"}, lambda A: la.norm(A, 1, axis=(-2, -1)), lambda A: largest([total(list(map(abs, column))) for column in A.T]), empty=False),
    Case("norm-inf", {"A": "mn"}, lambda A: la.norm(A, np.inf, axis=(-2, -1)), lambda A: largest([total(list(map(abs, row))) for row in A]), empty=False),
]  # fmt: skip
