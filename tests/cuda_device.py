"""Printed CUDA on a device: nvcc compiles it, CuPy brings arrays, and CUDA its libraries."""

from __future__ import annotations

import ctypes
import importlib
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.printed_c import address, arguments, declared
from tcalc.graph.extents import extent_of
from tcalc.graph.trees import leaves
from tests.c_programs import BEHIND, CANARY, Job
from tests.cuda_programs import Ran
from tests.cupy_stand_in import has_device

NVCC = shutil.which("nvcc")
FLAGS = ("-std=c++17", "-O3", "-arch=native", "-shared", "-Xcompiler", "-fPIC")
needs_device = pytest.mark.skipif(
    NVCC is None or not has_device(), reason="no device that CuPy finds, or no nvcc"
)


def built(text: str, folder: Path, *flags: str, name: str = "printed") -> ctypes.CDLL:
    """The library of a file."""
    path, library = folder / f"{name}.cu", folder / f"{name}.so"
    path.write_text(text)
    line = [str(NVCC), *FLAGS, *flags, str(path), "-lcublas", "-lcusolver", "-o", str(library)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]
    return ctypes.CDLL(str(library))


@cache
def handle(library: str, create: str) -> ctypes.c_void_p:
    """What a library of CUDA's knows a caller by."""
    found = ctypes.c_void_p()
    assert getattr(ctypes.CDLL(library), create)(ctypes.byref(found)) == 0
    return found


CREATE = {"cublasHandle_t": "cublasCreate_v2", "cusolverDnHandle_t": "cusolverDnCreate"}


def called(
    library: ctypes.CDLL, source: str, name: str, job: Job, real: Any = np.float64, seed: int = 1
) -> Ran:
    """What a launcher gives; threads of a device come in an order that nobody chooses."""
    cupy = importlib.import_module("cupy")
    results = [cupy.full([int(extent_of(n, job.sizes)) for n in e.shape], np.nan, real)
               for e in leaves(job.tree)]  # fmt: skip
    parameters = declared(source, name)
    given, sizes, _kept = arguments(
        parameters, job.arrays, job.sizes, results, real, place=cupy.asarray
    )
    kinds = [p.split()[0] for p in parameters]
    handles = {
        kind: handle(library._name, create) for kind, create in CREATE.items() if kind in kinds
    }
    workspace = getattr(library, f"{name}_workspace")
    workspace.restype = ctypes.c_size_t
    size = workspace(*sizes, handles.get("cusolverDnHandle_t"))
    memory = cupy.full(size + BEHIND, CANARY, np.uint8)
    status = getattr(library, name)(*given, address(memory), None, *handles.values())
    cupy.cuda.runtime.deviceSynchronize()
    assert (memory[size:] == CANARY).all(), f"{job.name} writes behind its workspace"
    return Ran(status, [a.get() for a in results], 0, 0)
