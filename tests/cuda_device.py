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

from tests.c_programs import Job
from tests.cuda_programs import Launch, Ran
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
    launch = Launch(library, source, name, job, real, cupy)
    kinds = [p.split()[0] for p in launch.parameters]
    handles = {
        kind: handle(library._name, create) for kind, create in CREATE.items() if kind in kinds
    }
    status = launch(handles.get("cusolverDnHandle_t"), None, list(handles.values()))
    cupy.cuda.runtime.deviceSynchronize()
    return Ran(status, [a.get() for a in launch.results], 0, 0)
