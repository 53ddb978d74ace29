"""Printed CUDA: NVRTC takes its kernels, and on a shim of the host it computes what plans do."""

from __future__ import annotations

import re
from functools import cache
from itertools import cycle
from pathlib import Path

import numpy as np
import pytest

import tcalc as tc
from tests import fuzz, nvrtc
from tests.c_programs import Job
from tests.cuda_programs import built, called, needs_compiler, problems, source_of
from tests.test_code_c import TABLES, jobs_of


@cache
def printed_of(table: str) -> str:
    return source_of(jobs_of(table))


@needs_compiler
@pytest.mark.parametrize("table", TABLES)
def test_functions_compute_what_expressions_mean_in_any_order_of_threads(
    table: str, tmp_path: Path
) -> None:
    with np.errstate(all="ignore"):
        assert not problems(jobs_of(table), tmp_path, 1e-11, source=printed_of(table))


@needs_compiler
def test_random_programs(tmp_path: Path) -> None:
    """Values, first and second derivatives."""
    cases = [found for seed in range(25) if (found := fuzz.case(seed)) is not None]
    jobs = []
    for c in cases:
        arrays = {name: np.asarray(a) for name, a in c.bind.items() if not isinstance(a, int)}
        sizes = {name: n for name, n in c.bind.items() if isinstance(n, int)}
        jobs.append(Job(str(c.seed), tuple([o.expression for o in c.outputs]), arrays, sizes))
    with np.errstate(all="ignore"):
        assert not problems(jobs, tmp_path, 1e-9)


@needs_compiler
@pytest.mark.parametrize("table", ["cases", "linear algebra"])
def test_single_precision(table: str, tmp_path: Path) -> None:
    """Values and gradients, of programs that have second derivatives too."""
    jobs, source = jobs_of(table), printed_of(table)
    assert not problems(jobs, tmp_path, 1e-4, "-DSINGLE", source=source, results=2)


@nvrtc.needed
@pytest.mark.parametrize(("table", "arch"), zip(TABLES, cycle(nvrtc.ARCHITECTURES), strict=False))
def test_kernels_compile_and_take_little_memory(table: str, arch: str) -> None:
    """Without optimisation, which takes minutes and refuses nothing.

    All threads that a device holds have their memory, however few of them run.
    """
    code = nvrtc.compile(printed_of(table), arch=arch, options=["--device-debug"]).decode()
    assert max(map(int, re.findall(r"__local_depot\d+\[(\d+)\]", code))) < 1024


@nvrtc.needed
@pytest.mark.parametrize("arch", nvrtc.ARCHITECTURES)
def test_kernels_of_single_precision_compile_with_optimisation(arch: str) -> None:
    options = ["-DSINGLE", "--use_fast_math"]
    code = nvrtc.compile(printed_of("places"), arch=arch, options=options)
    assert b"f0_kernel1" in code


BIG = {"m": 300, "n": 40, "q": 7}
X, w = tc.var("X", ("m", "n")), tc.var("w", "n")
A, x = tc.var("A", ("n", "n")), tc.var("x", "m")
g, u = tc.var("g", "m", integer=True), tc.var("u", "q")
P = tc.var("P", ("q", "n", "n"))
rate = tc.exp(X @ w + u[g])
convolved = tc.build("m-n+1", lambda i: tc.sum(tc.build("n", lambda j: x[i + j] * w[j])))
LARGE = {
    "value and gradient": {"f": tc.sum(rate), "g": tc.grad(tc.sum(rate), (w, u))},
    "grouped hessian": tc.hessian(tc.sum(rate), u),
    "softmax": tc.softmax(X, axis=1),
    "scans": (tc.cumsum(x), tc.grad(tc.sum(tc.cumsum(x) ** 2), x)),
    "norms": (tc.max(X), tc.argmin(X, axis=1), tc.logsumexp(X, axis=0), tc.prod(w), tc.norm(x)),
    "order": tc.sort(x),
    "windows": tc.grad(tc.sum((x[2:] - 2 * x[1:-1] + x[:-2]) ** 2), x),
    "overlapping windows": tc.grad(tc.sum(convolved**2), (x, w)),
    "columns": tc.sum(X * X, axis=0) + tc.sum(X) * w,
    "gaussian process": tc.grad(tc.linalg.logdet(A @ A.T + tc.eye("n")), A),
    "stacks": (
        P @ P,
        tc.einsum("iqj,qjk->qik", tc.transpose(P, (1, 0, 2)), tc.exp(P)),
        tc.einsum("qij,qkj->qik", P[:, ::-1], P[:, :, 1:4] @ P[:, 1:4]),
    ),
    "many steps": tc.fold(lambda s, i: tc.tanh(A @ s + w[i]), tc.zeros("n"), "n"),
}


def sample() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    given = {
        v.name: rng.normal(size=[BIG[str(n)] for n in v.shape]) / 4 for v in (X, w, A, P, x, u)
    }
    return given | {"g": rng.integers(0, BIG["q"], BIG["m"])}


@needs_compiler
def test_many_blocks_and_turns(tmp_path: Path) -> None:
    """Extents that no grid and no block covers at once."""
    jobs = [Job(name, tree, sample(), BIG) for name, tree in LARGE.items()]
    assert not problems(jobs, tmp_path, 1e-11)
    assert not problems(jobs, tmp_path, 1e-11, "-UTHREADS", "-DTHREADS=64")


@needs_compiler
@pytest.mark.parametrize("name", ["value and gradient", "scans", "norms"])
def test_a_barrier_that_is_missing_is_seen(name: str, tmp_path: Path) -> None:
    """The shim itself: threads run in an order that shows what is not synchronised."""
    job = Job(name, LARGE[name], sample(), BIG)
    source = source_of([job])
    wrong = re.sub(r"(held\[threadIdx.x\] = \w+;\n) *__syncthreads\(\);", r"\1", source)
    assert wrong != source
    library = built(wrong, tmp_path)
    found = [called(library, wrong, "f0", job, seed=seed).results for seed in (1, 2)]
    assert not all(np.array_equal(a, b) for a, b in zip(*found, strict=True))


@needs_compiler
def test_the_host_waits_only_to_know_of_refused_matrices_and_of_ends_of_loops(
    tmp_path: Path,
) -> None:
    """Values without control wait for nothing."""
    jobs = [Job(name, tree, sample(), BIG) for name, tree in LARGE.items()]
    source = source_of(jobs)
    library = built(source, tmp_path)
    for k, job in enumerate(jobs):
        waits = called(library, source, f"f{k}", job).waits
        assert waits == (job.name == "gaussian process"), job.name


@needs_compiler
def test_a_matrix_that_is_refused_is_a_status(tmp_path: Path) -> None:
    matrices = (
        (tc.linalg.cholesky(A), -np.eye(3), 1), (tc.linalg.cholesky(A), np.eye(3), 0),
        (tc.linalg.inv(A), np.zeros((3, 3)), 1), (tc.linalg.expm(A), np.full((3, 3), np.nan), 1),
    )  # fmt: skip
    jobs = [Job(str(e), e, {"A": a}, {"n": 3}) for e, a, _ in matrices]
    source = source_of(jobs)
    library = built(source, tmp_path)
    found = [called(library, source, f"f{k}", job).status for k, job in enumerate(jobs)]
    assert found == [status for _, _, status in matrices]
