"""The text of printed CUDA: what is one kernel, what libraries do, names, self-checks."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tcalc as tc
from benchmarks.printed_c import scipy_cblas
from tcalc.languages.source.cuda_module import functions
from tests.c_programs import Job
from tests.cuda_programs import (
    COMPILER,
    SHIM,
    SMALL,
    built,
    called,
    kernels,
    needs_compiler,
    problems,
    source_of,
)
from tests.test_code_c_text import CHECKED, KEYS, NAMES

X, w, c = tc.var("X", ("m", "n")), tc.var("w", "n"), tc.var("c")
A, B = tc.var("A", ("n", "n")), tc.var("B", ("n", "n"))


def own(e: Any) -> list[str]:
    """The kernels that are an expression's own."""
    return [name for name in kernels(tc.to_code(e, "cuda")) if name.startswith("f_kernel")]


def launcher(e: Any) -> str:
    return tc.to_code(e, "cuda").rpartition("\nint f(")[2]


def test_a_chain_of_entries_and_sums_of_it_are_one_kernel() -> None:
    e = tc.exp(tc.sin(w) * w) / (1 + w * w)
    assert len(own(e)) == 1
    assert len(own({"sum": tc.sum(e), "entries": e, "other": tc.sum(tc.sin(w))})) == 1


def test_value_and_gradient_read_data_in_two_kernels() -> None:
    f = tc.sum(tc.softplus(X @ w))
    assert len(own({"value": f, "gradient": tc.grad(f, w)})) == 2


def test_rows_are_blocks_and_entries_are_threads() -> None:
    source = tc.to_code((X @ w, tc.exp(X)), "cuda")
    assert source.count("BLOCK_STRIDE(i, m)") == 1
    assert source.count("THREAD_STRIDE(j, n)") == 1
    assert source.count("GRID_STRIDE(entry, m * n)") == 1


def test_nothing_is_atomic() -> None:
    g = tc.var("g", "m", integer=True)
    scattered = tc.grad(tc.sum(tc.exp(w[g])), w)
    windows = tc.build("n-2", lambda i: tc.sum(tc.build(3, lambda j: c * w[i + j])))
    overlapping = tc.grad(tc.sum(windows**2), w)
    for e in (scattered, overlapping, tc.sum(X), tc.cumsum(w)):
        assert "atomic" not in tc.to_code(e, "cuda")


def test_adjoints_of_windows_and_gathers_are_gathered() -> None:
    """No kernel adds to memory: an entry is the sum over the windows, or its segment."""
    k, v, g = tc.var("k", "r"), tc.var("v", "n-r+1"), tc.var("g", "m", integer=True)
    windows = tc.build("n-r+1", lambda i: tc.sum(tc.build("r", lambda j: w[i + j] * k[j])))
    for e in (
        tc.vjp(windows, w, v),
        tc.hessian(tc.sum(windows**2), w),
        tc.grad(tc.sum(w[g] ** 2), w),
    ):
        source = tc.to_code(e, "cuda").rpartition("FUNCTION")[2]
        assert not re.search(r"\w\[.*\] \+=", source)


def test_no_function_calls_itself() -> None:
    """Threads of a device have a kilobyte for what calls themselves, and nobody tells how often."""
    texts = functions()
    calls = {
        name: {word for word in texts if re.search(rf"\b{word}\(", _without_head(name, text))}
        for name, text in texts.items()
        if "struct" not in text
    }
    for name, called_ones in calls.items():
        reached, waiting = set[str](), set(called_ones)
        while waiting:
            word = waiting.pop()
            waiting |= calls.get(word, set()) - reached
            reached.add(word)
        assert name not in reached, name


def _without_head(name: str, text: str) -> str:
    """A function's text behind the place where it is defined."""
    return text.partition(f"{name}(")[2]


#: Functions of numbers that CUDA has (its programming guide, mathematical functions).
OF_DEVICE = frozenset([
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos",
    "cosh", "cospi", "cyl_bessel_i0", "cyl_bessel_i1", "erf", "erfc", "erfcinv", "erfcx",
    "erfinv", "exp", "exp10", "exp2", "expm1", "fabs", "fdim", "floor", "fma", "fmax", "fmin",
    "fmod", "frexp", "hypot", "ilogb", "isfinite", "isinf", "isnan", "j0", "j1", "jn", "ldexp",
    "lgamma", "llrint", "llround", "log", "log10", "log1p", "log2", "logb", "lrint", "lround",
    "max", "min", "modf", "nan", "nearbyint", "nextafter", "norm", "norm3d", "norm4d", "normcdf",
    "normcdfinv", "pow", "rcbrt", "remainder", "remquo", "rhypot", "rint", "rnorm", "rnorm3d",
    "rnorm4d", "round", "rsqrt", "scalbln", "scalbn", "signbit", "sin", "sincos", "sincospi",
    "sinh", "sinpi", "sqrt", "tan", "tanh", "tgamma", "trunc", "y0", "y1", "yn",
])  # fmt: skip


def test_functions_that_a_device_has_too_are_called_otherwise() -> None:
    shared = functions().keys() & OF_DEVICE
    assert shared
    assert all(f"#define {name} carried_{name}\n" in functions()[name] for name in shared)


def test_libraries_are_called_by_their_names() -> None:
    source = tc.to_code(A @ B, "cuda")
    assert "cublasDgemm" in source
    assert "cublasSgemm" in source
    assert "cusolver" not in source
    assert "LAUNCH(" not in launcher(A @ B)
    names = {
        "potrf": tc.linalg.cholesky(A), "getrf": tc.linalg.inv(A), "syevd": tc.linalg.eigvalsh(A),
        "gesvd": tc.linalg.svdvals(X), "geqrf": tc.linalg.qr(X)[0],
    }  # fmt: skip
    for name, e in names.items():
        assert f"cusolverDnD{name}" in tc.to_code(e, "cuda")


def test_a_stack_of_products_is_one_call() -> None:
    P, Q = tc.var("P", ("s", "t", "m", "k")), tc.var("Q", ("s", "t", "n", "k"))
    for e in (P @ tc.swapaxes(Q, -1, -2), tc.einsum("stmk,stnk->stmn", P, Q)):
        text = launcher(e)
        assert text.count("library_batched_product(on, s * t, m, n, k, ") == 1
        assert "LAUNCH(" not in text


def test_entries_alone_need_no_library() -> None:
    source = tc.to_code(tc.sum(tc.exp(w)), "cuda")
    assert "cublas" not in source
    assert "cusolver" not in source


def test_numbers_have_the_type_of_the_program() -> None:
    source = tc.to_code(tc.exp(w) * 0.5 + 1 / 3, "cuda")
    assert "real(0.5)" in source
    assert "real(0.333333" in source


def test_functions_of_two_numbers_are_given_one_type() -> None:
    """Of others compilers take the host's, which the device does not have."""
    mixed = (
        r"\b(hypot|fmod|fmax|fmin|copysign|atan2|ldexp)\((?:\d+, .*|(?:[^,()]|\([^()]*\))*, \d+)\)"
    )
    for name, text in functions().items():
        assert not re.search(mixed, text), name


@needs_compiler
def test_names_are_words_that_mean_nothing_else(tmp_path: Path) -> None:
    own_names = [*NAMES, "stream", "blas", "blocks", "threadIdx", "THREADS", "entry", "new", "x"]
    given = [tc.var(name, ("n", name) if name.isascii() else "n") for name in own_names]
    e = sum(
        [tc.sum(tc.exp(v) @ tc.sigmoid(v)[0] if v.ndim == 2 else v) for v in given], tc.const(0)
    )
    e = tc.sum(e) if e.ndim else e
    built(tc.to_code(e, "cuda"), tmp_path)


@needs_compiler
def test_keys_are_no_code(tmp_path: Path) -> None:
    given = {"c": np.array(1.5), "w": np.ones(2)}
    trees = [{key: 2 * c, "other": {key: w + c}} for key in [*KEYS, "t1", "part", "sums"]]
    jobs = [Job(str(k), tree, given, {"n": 2}) for k, tree in enumerate(trees)]
    assert not problems(jobs, tmp_path, 1e-15)


@pytest.mark.parametrize("bad", ["int", "exp", "main", "stream", "block_sum", "new", "__f"])
def test_names_of_functions_are_checked(bad: str) -> None:
    with pytest.raises(ValueError, match="identifier"):
        tc.to_code(w, "cuda", bad)


def checked(source: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """The self-check, run on the shim."""
    (folder / "checked.cu").write_text(source)
    line = [str(COMPILER), "-std=c++17", *SMALL, f"-I{SHIM}", "-x", "c++", "checked.cu"]
    line += ["-x", "none", *scipy_cblas(folder), "-o", "checked"]
    subprocess.run(line, cwd=folder, check=True)
    return subprocess.run(["./checked"], cwd=folder, capture_output=True, text=True, check=False)


@needs_compiler
@pytest.mark.parametrize("e", CHECKED, ids=lambda e: str(e)[:30])
def test_self_checks_pass(e: tc.Expr, tmp_path: Path) -> None:
    found = checked(tc.to_code(e, "cuda", check=True), tmp_path)
    assert found.returncode == 0, found.stdout + found.stderr
    assert "central differences" in found.stdout


@needs_compiler
def test_a_self_check_fails_on_wrong_source(tmp_path: Path) -> None:
    source = tc.to_code(tc.grad(tc.sum(w**3), w), "cuda", check=True)
    right = "real(3.0) * (w[i] * w[i])"
    assert right in source
    assert checked(source.replace(right, "real(2.9) * (w[i] * w[i])"), tmp_path).returncode == 1


@needs_compiler
def test_ones_own_function_has_the_text_that_c_has(tmp_path: Path) -> None:
    squared = tc.elementwise(
        "squared_on_device", lambda a: a * a, lambda a, y: 2 * a, code={"c": "{0} * {0}"}
    )
    job = Job("own", tc.sum(squared(tc.exp(w))), {"w": np.arange(3.0)}, {"n": 3})
    assert not problems([job], tmp_path, 1e-12)


@needs_compiler
def test_launches_of_a_loop_are_counted_by_its_length(tmp_path: Path) -> None:
    state = tc.fold(lambda s, i: tc.tanh(A @ s + w[i]), tc.zeros("n"), "n")
    counts = []
    for n in (3, 6):
        job = Job("loop", state, {"A": np.eye(n), "w": np.ones(n)}, {"n": n})
        source = source_of([job])
        counts.append(called(built(source, tmp_path, name=f"n{n}"), source, "f0", job).launches)
    assert 0 < counts[1] - counts[0] <= 3 * 3
