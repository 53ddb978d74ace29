"""Every measurement runs in a fresh process whose environment fixes the number of threads.

A job is JSON on standard input, its result JSON on standard output, and what it is doing one line
at a time on standard error.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, cast

ROOT = Path(__file__).resolve().parent.parent

Tell = Callable[[str], None]


def environment(threads: int, device: bool = False) -> dict[str, str]:
    """The same number of threads for BLAS, OpenMP and XLA; each picks its own instructions.

    A kernel family forced upon OpenBLAS would hold back all who compute with it, and not XLA. On a
    device jax takes no more memory than it needs, for it is not there alone.
    """
    names = (
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
        "NUMEXPR_NUM_THREADS",
        "NPROC",
    )
    eigen = "true" if threads > 1 else "false"
    flags = f"--xla_cpu_multi_thread_eigen={eigen} intra_op_parallelism_threads={threads}"
    platforms = "cuda,cpu" if device else "cpu"
    fixed = {"XLA_FLAGS": flags, "JAX_PLATFORMS": platforms, "JAX_ENABLE_X64": "1"}
    fixed |= {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"} if device else {}
    inherited = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    return {**inherited, **fixed, **dict.fromkeys(names, str(threads))}


def confine(threads: int) -> None:
    """Keep this process on as many processors as it may have threads, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])


def run(
    module: str, job: dict[str, Any], threads: int, tell: Tell, device: bool = False
) -> dict[str, Any]:
    """The result of a job in a fresh process; RuntimeError with its last words where it fails."""
    worker = subprocess.Popen(
        [sys.executable, "-m", f"benchmarks.{module}"],
        cwd=ROOT,
        env=environment(threads, device),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    stdin, stdout, stderr = cast(
        "tuple[IO[str], ...]", (worker.stdin, worker.stdout, worker.stderr)
    )
    said: list[str] = []
    try:
        with suppress(BrokenPipeError), stdin:
            json.dump({"threads": threads, "job": job}, stdin)
        for line in stderr:
            said.append(line.rstrip())
            tell(said[-1])
        output = stdout.read()
        if worker.wait() != 0:
            raise RuntimeError("\n".join([f"{module} {job} failed", *said[-20:]]))
    finally:
        if worker.poll() is None:
            worker.terminate()
            worker.wait()
    result: dict[str, Any] = json.loads(output)
    return result


def serve(answer: Callable[..., dict[str, Any]], confined: bool = True) -> None:
    """The other end: do the job that stands on standard input, on its threads' processors alone."""
    message = json.load(sys.stdin)
    if confined:
        confine(message["threads"])
    try:
        result = answer(**message["job"])
    except KeyboardInterrupt:
        sys.exit(130)
    json.dump(result, sys.stdout)
