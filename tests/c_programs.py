"""Printed C, compiled with warnings as errors, many functions in one library, and run by ctypes."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import tcalc as tc
from benchmarks.printed_c import arguments, declared, scipy_cblas
from tcalc.graph.extents import extent_of
from tcalc.graph.trees import leaves
from tcalc.languages.source.c_header import HEADER_END, header_of

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler")
#: What stands behind the workspace, and is not written to.
CANARY, BEHIND = 0xA5, 64

#: A CBLAS of one function, which counts its calls.
COUNTING = """
enum { CblasRowMajor, CblasNoTrans, CblasTrans, CblasUpper, CblasLower };
int calls;
static void cblas_dgemm(int order, int turn_a, int turn_b, int m, int n, int k, double alpha,
                        const double *a, int lda, const double *b, int ldb, double beta, double *c,
                        int ldc)
{
    (void)order;
    calls++;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (turn_a == CblasTrans ? a[l * lda + i] : a[i * lda + l])
                       * (turn_b == CblasTrans ? b[j * ldb + l] : b[l * ldb + j]);
            c[i * ldc + j] = alpha * sum + (beta == 0 ? 0 : beta * c[i * ldc + j]);
        }
}
"""


class Job(NamedTuple):
    """Expressions in one function, and what it is called with.

    `unsigned` ones are compared without signs, see `linalg_cases.signless`.
    """

    name: str
    tree: Any
    arrays: Mapping[str, np.ndarray]
    sizes: Mapping[str, int]
    unsigned: bool = False

    @property
    def read(self) -> dict[str, np.ndarray]:
        known = {n for e in leaves(self.tree) for n in e.variables}
        return {n: a for n, a in self.arrays.items() if n in known}

    def expected(self) -> list[np.ndarray]:
        """Values by plans on NumPy."""
        free = {d for e in leaves(self.tree) for d in tc.graph.nodes.dimensions([e])}
        axes = {d for e in leaves(self.tree) for v in e.variables.values() for d in v.shape}
        given = {d: n for d, n in self.sizes.items() if d in free - axes}
        found = tc.compile(self.tree, backend="numpy")(self.read, **given)
        return [np.asarray(a) for a in leaves(found)]


def printed(job: Job, number: int) -> str:
    return tc.to_code(job.tree, "c", f"f{number}")


def joined(sources: Sequence[str]) -> str:
    """Programs in one file, what several of them carry along once."""
    pieces: dict[str, None] = {}
    for source in sources:
        rest = source.partition(HEADER_END)[2].strip()
        pieces.update(dict.fromkeys(re.split(r"\n\n(?=/\*|static|#)", rest)))
    return "".join(map(header_of, sources)) + "\n\n".join(pieces) + "\n"


def built(text: str, folder: Path, *flags: str, name: str = "printed") -> ctypes.CDLL:
    """The library of a file."""
    path = folder / f"{name}.c"
    path.write_text(text)
    library = folder / f"{name}.so"
    line = [str(COMPILER), *STRICT, "-fPIC", "-shared", str(path), "-o", str(library)]
    done = subprocess.run([*line, *flags, "-lm"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return ctypes.CDLL(str(library))


def called(
    library: ctypes.CDLL, source: str, name: str, job: Job, real: Any = np.float64
) -> tuple[int, list[np.ndarray]]:
    """The status and the results, nothing written behind the workspace that was asked for."""
    results = [np.full([int(extent_of(n, job.sizes)) for n in e.shape], np.nan, real)
               for e in leaves(job.tree)]  # fmt: skip
    given, sizes, _kept = arguments(declared(source, name), job.arrays, job.sizes, results, real)
    workspace = getattr(library, f"{name}_workspace")
    workspace.restype = ctypes.c_size_t
    size = workspace(*sizes)
    memory = np.full(size + BEHIND, CANARY, np.uint8)
    status = getattr(library, name)(*given, ctypes.c_void_p(memory.ctypes.data))
    assert (memory[size:] == CANARY).all(), f"{job.name} writes behind its workspace"
    return status, results


class Program(NamedTuple):
    """One of several functions that were compiled together."""

    library: ctypes.CDLL
    source: str
    name: str
    job: Job

    def __call__(self, real: Any = np.float64) -> tuple[int, list[np.ndarray]]:
        return called(self.library, self.source, self.name, self.job, real)


def all_printed(jobs: Sequence[Job]) -> list[str]:
    """A file for each of them: of f0, f1, …"""
    return [printed(job, k) for k, job in enumerate(jobs)]


def compiled(
    jobs: Sequence[Job], folder: Path, *flags: str, sources: Sequence[str] = ()
) -> list[Program]:
    """Functions of these expressions by one start of the compiler; `sources` if printed already."""
    sources = sources or all_printed(jobs)
    library = built(joined(sources), folder, *flags)
    return [
        Program(library, source, f"f{k}", job)
        for k, (job, source) in enumerate(zip(jobs, sources, strict=True))
    ]


def problems(
    jobs: Sequence[Job],
    folder: Path,
    tolerance: float,
    *flags: str,
    sources: Sequence[str] = (),
    results: int | None = None,
) -> list[str]:
    """What is wrong with the first `results` of the functions of these expressions.

    They are compiled together.
    """
    real = np.float32 if "-DSINGLE" in flags else np.float64
    found = []
    for program in compiled(jobs, folder, *flags, sources=sources):
        job, (status, computed) = program.job, program(real)
        if status:
            found.append(f"{job.name}: status {status}")
        triples = zip(leaves(job.tree), computed, job.expected(), strict=True)
        for e, a, b in islice(triples, results):
            a, b = (abs(a), abs(b)) if job.unsigned else (a, b)
            error = np.abs(a - b).max(initial=0) / max(1, np.abs(b).max(initial=0))
            if not error <= tolerance:
                found.append(f"{job.name}: {str(e)[:60]}: {error:.1e}")
    return found


def blas(folder: Path) -> list[str]:
    """Flags for the BLAS that SciPy brings."""
    flags = scipy_cblas(folder)
    if not flags:
        pytest.skip("SciPy has no library with CBLAS beside it")
    return ["-DCBLAS", *flags]
