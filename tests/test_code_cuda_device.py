"""Printed CUDA where there is a device: optimised, with as many threads as its users have."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests import cuda_device
from tests.c_programs import Job
from tests.cuda_device import needs_device
from tests.cuda_programs import problems, source_of
from tests.test_code_c import TABLES, jobs_of
from tests.test_code_cuda import BIG, LARGE, sample

pytestmark = [pytest.mark.gpu, needs_device]
TOGETHER = 8  # functions in a file, which nvcc takes a minute for


def wrong(jobs: Sequence[Job], folder: Path, tolerance: float, *flags: str, results: int = 3):
    """What is wrong, files being compiled side by side."""
    parts = [jobs[k : k + TOGETHER] for k in range(0, len(jobs), TOGETHER)]
    sources = [source_of(part) for part in parts]
    compiled = partial(build, folder, flags)
    with ThreadPoolExecutor() as pool:
        libraries = list(pool.map(compiled, sources, range(len(parts))))
    return [
        problem
        for part, source, library in zip(parts, sources, libraries, strict=True)
        for problem in problems(
            part, folder, tolerance, *flags, source=source, results=results,
            library=library, call=cuda_device.called,
        )
    ]  # fmt: skip


def build(folder: Path, flags: Sequence[str], source: str, number: int):
    return cuda_device.built(source, folder, *flags, name=f"part{number}")


@pytest.mark.parametrize("table", TABLES)
def test_functions_compute_what_expressions_mean(table: str, tmp_path: Path) -> None:
    with np.errstate(all="ignore"):
        assert not wrong(jobs_of(table), tmp_path, 1e-11)


@pytest.mark.parametrize("table", ["cases", "linear algebra"])
def test_single_precision(table: str, tmp_path: Path) -> None:
    assert not wrong(jobs_of(table), tmp_path, 1e-4, "-DSINGLE", results=2)


def test_many_blocks_and_turns(tmp_path: Path) -> None:
    jobs = [Job(name, tree, sample(), BIG) for name, tree in LARGE.items()]
    assert not wrong(jobs, tmp_path, 1e-11)
    assert not wrong(jobs, tmp_path, 1e-11, "-DTHREADS=64", "-DBLOCKS=3")
