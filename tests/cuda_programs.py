"""Printed CUDA, run on the host: a shim emulates blocks, threads and barriers, BLAS and LAPACK are
SciPy's. Many functions are compiled together."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from benchmarks.printed_c import address, arguments, declared, scipy_cblas
from tcalc.graph.extents import extent_of
from tcalc.graph.trees import leaves
from tcalc.languages.source.cuda import Cuda
from tcalc.languages.source.cuda_module import module_text
from tcalc.languages.source.program import SourceProgram
from tests.c_programs import BEHIND, CANARY, Job

COMPILER = shutil.which("g++") or shutil.which("clang++")
SHIM = Path(__file__).with_name("cuda_shim")
STRICT = ("-std=c++17", "-Wall", "-Wunused-parameter", "-Werror", "-Wno-unused-function")
#: Few threads, so that loops over the grid turn more than once.
SMALL = ("-DTHREADS=4", "-DBLOCKS=3")
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")


def source_of(jobs: Sequence[Job]) -> str:
    """All functions in one file: f0, f1, …"""
    functions = []
    for k, job in enumerate(jobs):
        program = SourceProgram(Cuda, job.tree)
        functions.append(program.language.function(program.function(f"f{k}")))
    return module_text(functions)


def built(text: str, folder: Path, *flags: str, name: str = "printed") -> ctypes.CDLL:
    """The library of a file, on the shim."""
    path, library = folder / f"{name}.cu", folder / f"{name}.so"
    path.write_text(text)
    blas = scipy_cblas(folder)
    if not blas:
        pytest.skip("SciPy has no library with BLAS and LAPACK beside it")
    line = [str(COMPILER), *STRICT, *SMALL, f"-I{SHIM}", "-fPIC", "-shared", "-x", "c++", str(path)]
    line += ["-x", "none", *blas, *flags, "-o", str(library)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return ctypes.CDLL(str(library))


class Ran(NamedTuple):
    """The status and the results of a call, and what it took."""

    status: int
    results: list[np.ndarray]
    launches: int
    waits: int


class Launch:
    """A call of a launcher, whose arrays lie where `lib`, NumPy or CuPy, has its own.

    Attributes
    ----------
    parameters : list of str
        As they are declared.
    """

    def __init__(
        self, library: ctypes.CDLL, source: str, name: str, job: Job, real: Any, lib: Any = np
    ) -> None:
        self.library, self.name, self.job, self.lib = library, name, job, lib
        self.parameters = declared(source, name)
        self.results = [lib.full([int(extent_of(n, job.sizes)) for n in e.shape], np.nan, real)
                        for e in leaves(job.tree)]  # fmt: skip
        self._given, self._sizes, self._kept = arguments(
            self.parameters, job.arrays, job.sizes, self.results, real, place=lib.asarray
        )

    def __call__(self, solver: Any, stream: Any, handles: Sequence[Any]) -> int:
        """The status, once it has ended; `solver` is asked for the size of the workspace."""
        workspace = getattr(self.library, f"{self.name}_workspace")
        workspace.restype = ctypes.c_size_t
        size = workspace(*self._sizes, solver)
        memory = self.lib.full(size + BEHIND, CANARY, np.uint8)
        status: int = getattr(self.library, self.name)(
            *self._given, address(memory), stream, *handles
        )
        # Copying what it wrote waits until it has ended.
        assert (memory[size:] == CANARY).all(), f"{self.job.name} writes behind its workspace"
        return status


def called(
    library: ctypes.CDLL, source: str, name: str, job: Job, real: Any = np.float64, seed: int = 1
) -> Ran:
    """What a launcher gives: its threads in an order that the seed decides."""
    launch = Launch(library, source, name, job, real)
    counted = {
        n: ctypes.c_long.in_dll(library, f"shim_{n}") for n in ("launches", "waits", "broken")
    }
    for count in counted.values():
        count.value = 0
    ctypes.c_uint.in_dll(library, "shim_seed").value = seed
    status = launch(None, None, [None for p in launch.parameters if "Handle_t" in p])
    assert not counted["broken"].value, f"{job.name}: threads do not meet, or no block"
    return Ran(status, launch.results, counted["launches"].value, counted["waits"].value)


def problems(
    jobs: Sequence[Job],
    folder: Path,
    tolerance: float,
    *flags: str,
    source: str = "",
    results: int | None = None,
    library: ctypes.CDLL | None = None,
    call: Callable[..., Ran] = called,
) -> list[str]:
    """What is wrong with the first `results` of the functions of these expressions.

    In two orders of threads. They may be printed already, or compiled.
    """
    real = np.float32 if "-DSINGLE" in flags else np.float64
    source = source or source_of(jobs)
    library = library or built(source, folder, *flags)
    found = []
    for k, job in enumerate(jobs):
        first = call(library, source, f"f{k}", job, real)
        again = call(library, source, f"f{k}", job, real, seed=2)
        if first.status:
            found.append(f"{job.name}: status {first.status}")
        pairs = zip(first.results, again.results, strict=True)
        if not all(np.array_equal(a, b, equal_nan=True) for a, b in pairs):
            found.append(f"{job.name}: depends on the order of threads")
        triples = zip(leaves(job.tree), first.results, job.expected(), strict=True)
        for e, a, b in islice(triples, results):
            a, b = (abs(a), abs(b)) if job.unsigned else (a, b)
            error = np.abs(a - b).max(initial=0) / max(1, np.abs(b).max(initial=0))
            if not error <= tolerance:
                found.append(f"{job.name}: {str(e)[:60]}: {error:.1e}")
    return found


def kernels(source: str) -> list[str]:
    """The names of a file's kernels."""
    return re.findall(r"__global__ void (\w+)\(", source)
