"""Printed C that sums over windows, against sums of shifted slices: all ends that lines have."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import tcalc as tc
from tests.c_programs import Job, built, called, compiled, needs_compiler

pytestmark = needs_compiler

Arrays = dict[str, np.ndarray]


class Case(NamedTuple):
    """A sum over windows; `shapes` are those of its variables, `naive` computes it."""

    e: tc.Expr
    shapes: Callable[[dict[str, int]], dict[str, tuple[int, ...]]]
    naive: Callable[[Arrays], np.ndarray]


def line(a: Arrays) -> np.ndarray:
    x, w = a["x"], a["w"]
    count = len(x) - len(w) + 1
    return sum((w[k] * x[k : k + count] for k in range(len(w))), np.zeros(count, x.dtype))


def image(a: Arrays) -> np.ndarray:
    x, w = a["x"], a["w"]
    (m, n), (p, q) = x.shape, w.shape
    found = np.zeros((m - p + 1, n - q + 1), x.dtype)
    for k, l in product(range(p), range(q)):
        found += w[k, l] * x[k : k + m - p + 1, l : l + n - q + 1]
    return found


def channels(a: Arrays) -> np.ndarray:
    x, w = a["x"], a["w"]
    _, _, p, q = w.shape
    m, n = x.shape[1] - p + 1, x.shape[2] - q + 1
    found = np.zeros((len(w), m, n), x.dtype)
    for k, l in product(range(p), range(q)):
        found += np.einsum("oc,cij->oij", w[:, :, k, l], x[:, k : k + m, l : l + n])
    return found


def of_masks(a: Arrays) -> np.ndarray:
    x, u = a["x"], a["u"]
    _, m, n = u.shape
    p, q = x.shape[1] - m + 1, x.shape[2] - n + 1
    found = np.zeros((len(u), len(x), p, q), x.dtype)
    for k, l in product(range(p), range(q)):
        found[:, :, k, l] = np.einsum("oij,cij->oc", u, x[:, k : k + m, l : l + n])
    return found


def of_images(a: Arrays) -> np.ndarray:
    w, u = a["w"], a["u"]
    (_, c, p, q), (_, m, n) = w.shape, u.shape
    found = np.zeros((c, m + p - 1, n + q - 1), w.dtype)
    for k, l in product(range(p), range(q)):
        found[:, k : k + m, l : l + n] += np.einsum("oc,oij->cij", w[:, :, k, l], u)
    return found


def spread(a: Arrays) -> np.ndarray:
    return np.convolve(a["u"], a["w"]) if min(len(a["u"]), len(a["w"])) else np.zeros(0)


def dilated(a: Arrays) -> np.ndarray:
    x, w = a["x"], a["w"]
    count = len(x) - 2 * len(w) + 2
    return sum((w[k] * x[2 * k : 2 * k + count] for k in range(len(w))), np.zeros(count, x.dtype))


def weights_of_dilated(a: Arrays) -> np.ndarray:
    x, u = a["x"], a["u"]
    return np.array([u @ x[k : k + len(u)] for k in range(0, len(x) - len(u) + 1, 2)])


def of_several(a: Arrays) -> np.ndarray:
    """Every line of x with all of w."""
    lines = [[line({"x": x, "w": w}) for w in a["w"]] for x in a["x"]]
    shape = (len(a["x"]), len(a["w"]), a["x"].shape[1] - a["w"].shape[1] + 1)
    return np.array(lines, a["x"].dtype).reshape(shape)


def strided(a: Arrays) -> np.ndarray:
    x, w = a["x"], a["w"]
    count = (len(x) - len(w)) // 2 + 1
    return np.array([w @ x[2 * i : 2 * i + len(w)] for i in range(count)])


LINE = tc.parse_index("y[i=0..n-p] = sum[k](w[k]*x[i+k])", x="n", w="p")
DEEP = tc.parse_index(
    "y[o,i=0..m-p,j=0..n-q] = sum[c,k,l](w[o,c,k,l]*x[c,i+k,j+l])",
    x=("a", "m", "n"), w=("b", "a", "p", "q"),
)  # fmt: skip
LEFT = tc.var("u", ("b", "m-p+1", "n-q+1"))
CASES = {
    "a line": Case(LINE, lambda s: {"x": (s["n"],), "w": (s["q"],)}, line),
    "by its weights": Case(
        tc.vjp(LINE, "w", tc.var("u", "n-p+1")),
        lambda s: {"x": (s["n"],), "u": (s["n"] - s["q"] + 1,), "w": (s["q"],)},
        lambda a: line({"x": a["x"], "w": a["u"]}),
    ),
    "by the line": Case(
        tc.vjp(LINE, "x", tc.var("u", "n-p+1")),
        lambda s: {"w": (s["q"],), "u": (s["n"] - s["q"] + 1,), "x": (s["n"],)},
        spread,
    ),
    "several lines": Case(
        tc.parse_index("y[b,c,i=0..n-q] = sum[k](w[c,k]*x[b,i+k])", x=("a", "n"), w=("b", "q")),
        lambda s: {"x": (s["a"], s["n"]), "w": (s["b"], s["q"])},
        of_several,
    ),
    "an image": Case(
        tc.parse_index(
            "y[i=0..m-p,j=0..n-q] = sum[k,l](w[k,l]*x[i+k,j+l])", x=("m", "n"), w=("p", "q")
        ),
        lambda s: {"x": (s["m"], s["n"]), "w": (s["p"], s["q"])},
        image,
    ),
    "channels": Case(
        DEEP,
        lambda s: {"x": (s["a"], s["m"], s["n"]), "w": (s["b"], s["a"], s["p"], s["q"])},
        channels,
    ),
    "by their masks": Case(
        tc.vjp(DEEP, "w", LEFT),
        lambda s: {
            "x": (s["a"], s["m"], s["n"]),
            "u": (s["b"], s["m"] - s["p"] + 1, s["n"] - s["q"] + 1),
            "w": (s["b"], s["a"], s["p"], s["q"]),
        },
        of_masks,
    ),
    "by their images": Case(
        tc.vjp(DEEP, "x", LEFT),
        lambda s: {
            "w": (s["b"], s["a"], s["p"], s["q"]),
            "u": (s["b"], s["m"] - s["p"] + 1, s["n"] - s["q"] + 1),
            "x": (s["a"], s["m"], s["n"]),
        },
        of_images,
    ),
}
SIZES = [
    dict(zip("mnpqab", s, strict=True))
    for s in [
        *[(3, n, 1, q, 2, 3) for n, q in product((1, 7, 9, 17, 31, 33, 70), (1, 3)) if q <= n],
        (1, 1, 1, 1, 1, 1), (6, 12, 6, 12, 1, 2), (20, 64, 3, 3, 3, 2), (9, 40, 5, 17, 5, 5),
        (30, 131, 7, 7, 1, 4), (5, 2000, 2, 300, 1, 1), (3, 5000, 1, 4, 2, 2), (4, 9, 2, 3, 0, 2),
        (4, 9, 2, 3, 2, 0), (300, 20, 2, 3, 2, 1), (2, 700, 1, 690, 1, 3),
    ]
]  # fmt: skip


@cache
def data(name: str, size: int, single: bool) -> Arrays:
    rng = np.random.default_rng(size)
    shapes = CASES[name].shapes(SIZES[size])
    return {n: rng.normal(size=s).astype("f" if single else "d") for n, s in shapes.items()}


@pytest.mark.parametrize(
    ("flags", "limit"),
    [
        (("-O3", "-march=native", "-fno-math-errno", "-fopenmp-simd"), 1e-12),
        (("-O1",), 1e-12),
        (("-O3", "-march=native", "-fopenmp-simd", "-DSINGLE"), 1e-4),
    ],
    ids=["fast", "plain", "single"],
)  # fmt: skip
def test_windows_of_all_lengths(flags: tuple[str, ...], limit: float, tmp_path: Path) -> None:
    single = "-DSINGLE" in flags
    jobs = [Job(name, case.e, {}, {}) for name, case in CASES.items()]
    for program in compiled(jobs, tmp_path, *flags):
        name = program.job.name
        assert "correlate(" in program.source, name
        for k, size in enumerate(SIZES):
            arrays, sizes = data(name, k, single), {**size}
            if len(arrays["x" if "x" in arrays else "w"].shape) == 1:
                sizes["p"] = size["q"]
            job = program.job._replace(arrays=arrays, sizes=sizes)
            status, (found,) = program._replace(job=job)(np.float32 if single else np.float64)
            expected = CASES[name].naive(arrays)
            scale = np.abs(expected).max(initial=1.0)
            assert status == 0
            np.testing.assert_allclose(
                found, expected, atol=limit * scale, err_msg=f"{name} {size}"
            )


@pytest.mark.parametrize("p", [1, 3, 20])
def test_windows_with_steps(p: int, tmp_path: Path) -> None:
    apart = tc.parse_index("y[i=0..n-2*p+1] = sum[k](w[k]*x[i+2*k])", x="n", w="p")
    further = tc.parse_index("y[i=0..m-1] = sum[k](w[k]*x[2*i+k])", x="2*m+p-2", w="p")
    weights = tc.vjp(apart, "w", tc.var("u", "n-2*p+2"))
    rng, m = np.random.default_rng(p), 50
    for e, n, naive, sizes in (
        (apart, 2 * p + 60, dilated, {}),
        (weights, 2 * p + 60, weights_of_dilated, {"n": 1000, "p": 10}),
        (further, 2 * m + p - 2, strided, {}),
    ):
        arrays: Arrays = {"x": rng.normal(size=n), "w": rng.normal(size=p)}
        arrays["u"] = rng.normal(size=n - 2 * p + 2)
        job, name = Job("f", e, arrays, {"n": n, "p": p, "m": m}), naive.__name__
        source = tc.to_code(e, "c", "f0", sizes=sizes)
        assert ("correlate(" in source) == (naive is not strided)
        status, (found,) = called(built(source, tmp_path, "-O1", name=name), source, "f0", job)
        assert status == 0
        np.testing.assert_allclose(found, naive(arrays), atol=1e-12)


@pytest.mark.parametrize("wild", [np.inf, -np.inf, np.nan])
def test_what_is_not_finite_stays_where_it_is(wild: float, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    arrays: Arrays = {"x": rng.normal(size=(1, 8, 75)), "w": rng.uniform(1, 2, size=(1, 1, 2, 3))}
    arrays["u"] = rng.uniform(1, 2, size=(1, 7, 73))
    arrays["x"][0, 3, 70] = wild
    sizes = {"m": 8, "n": 75, "p": 2, "q": 3, "a": 1, "b": 1}
    jobs = [Job(name, CASES[name].e, arrays, sizes) for name in ("channels", "by their masks")]
    for program in compiled(jobs, tmp_path, "-O3", "-march=native", "-fopenmp-simd"):
        _, (found,) = program()
        with np.errstate(invalid="ignore"):
            expected = CASES[program.job.name].naive(arrays)
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_nothing_of_the_windows_is_copied() -> None:
    """Only what is spread over more than its result is made: with margins of zeros."""
    for name, case in CASES.items():
        source = tc.to_code(case.e, "c")
        body = source[source.rindex("int f(") :]
        assert body.count("correlate(") == 1, name
        assert name in ("by the line", "by their images") or "(void)work;" in body, name


def test_short_lines_of_known_length_stay_loops() -> None:
    e = tc.parse_index("y[i=0..3] = sum[k=0..2](w[k]*x[i+k])", x=6, w=3)
    assert "correlate(" not in tc.to_code(e, "c")


def of_squares(a: Arrays) -> np.ndarray:
    x, (p, q) = a["x"], a["w"].shape
    m, n = x.shape[0] - p + 1, x.shape[1] - q + 1
    parts = np.array([x[k : k + m, l : l + n] for k, l in product(range(p), range(q))])
    return np.tensordot(parts, parts, ([1, 2], [1, 2])).reshape(p, q, p, q)


@pytest.mark.parametrize(("m", "n"), [(12, 20), (40, 33), (3, 700), (5, 520), (60, 2)])
def test_products_of_windows_with_themselves_copy_parts_of_them(
    m: int, n: int, tmp_path: Path
) -> None:
    hessian = tc.hessian(tc.sum(CASES["an image"].e ** 2) / 2, "w")
    source = tc.to_code(hessian, "c", "f0", sizes={"m": 40, "n": 40, "p": 3, "q": 3})
    assert source.count("windows_square(") > 1
    rng, sizes = np.random.default_rng(m), {"m": m, "n": n, "p": 3, "q": min(n, 4)}
    arrays: Arrays = {"x": rng.normal(size=(m, n)), "w": rng.normal(size=(3, sizes["q"]))}
    job = Job("f", hessian, arrays, sizes)
    status, (found,) = called(built(source, tmp_path, "-O2"), source, "f0", job)
    assert status == 0
    np.testing.assert_allclose(found, of_squares(arrays), atol=1e-11)
