"""Every measurement runs in a fresh process whose environment fixes the number of threads.

A job is JSON on standard input, its result JSON on standard output, and what it is doing one line
at a time on standard error.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import IO, Any, cast

try:
    import resource
except ImportError:  # where the system is no Unix
    resource = None  # type: ignore[assignment]

ROOT = Path(__file__).resolve().parent.parent

Tell = Callable[[str], None]


@dataclass(frozen=True)
class Bounds:
    """What a job may take: seconds between two of its words, bytes of data; by default anything."""

    seconds: float | None = None
    bytes: int | None = None


class Failed(RuntimeError):
    """A job without a result: `why` in a few words, and what it said."""

    def __init__(self, job: str, why: str, said: list[str]) -> None:
        super().__init__("\n".join([f"{job} failed: {why}", *said[-20:]]))
        self.why, self.said = why, said


class Watch:
    """Ends a process that says nothing for longer than its bounds allow."""

    def __init__(self, worker: subprocess.Popen[str], seconds: float | None) -> None:
        self.worker, self.seconds, self.ended = worker, seconds, False
        self.timer: Timer | None = None

    def wound(self) -> None:
        """From now on it has the whole time again."""
        self.stopped()
        if self.seconds is not None:
            self.timer = Timer(self.seconds, self.end)
            self.timer.start()

    def stopped(self) -> None:
        if self.timer:
            self.timer.cancel()

    def end(self) -> None:
        self.ended = True
        self.worker.kill()


def environment(threads: int, device: bool = False) -> dict[str, str]:
    """The same number of threads for BLAS, OpenMP and XLA; each picks its own instructions.

    A kernel family forced upon OpenBLAS would hold back all who compute with it, and not XLA. On a
    device jax takes no more memory than it needs, for it is not there alone. Bytecode is kept, as
    by an installation: else every process would compile what stands in a checkout.
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
    dropped = "OPENBLAS_CORETYPE", "PYTHONDONTWRITEBYTECODE"
    inherited = {k: v for k, v in os.environ.items() if k not in dropped}
    return {**inherited, **fixed, **dict.fromkeys(names, str(threads))}


def confine(threads: int) -> None:
    """Keep this process on as many processors as it may have threads, where the system can."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])


def limit(size: int | None) -> None:
    """Allocations beyond so many bytes fail, where the system can see to it."""
    if size is not None and resource is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (size, size))


def run(
    module: str,
    job: dict[str, Any],
    threads: int,
    tell: Tell,
    device: bool = False,
    bounds: Bounds = Bounds(),
) -> dict[str, Any]:
    """The result of a job in a fresh process; Failed with its last words where it has none."""
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
    watch = Watch(worker, bounds.seconds)
    try:
        watch.wound()
        with suppress(BrokenPipeError), stdin:
            json.dump({"threads": threads, "bytes": bounds.bytes, "job": job}, stdin)
        for line in stderr:
            said.append(line.rstrip())
            tell(said[-1])
            watch.wound()
        output = stdout.read()
        status = worker.wait()
        if watch.ended or status:
            over = f"over {bounds.seconds:g} s" if watch.ended else ended(status)
            raise Failed(f"{module} {job}", over, said)
    finally:
        watch.stopped()
        if worker.poll() is None:
            worker.terminate()
            worker.wait()
    result: dict[str, Any] = json.loads(output)
    return result


def ended(status: int) -> str:
    """How a process ended; the system's killer of those that take all memory leaves no words."""
    if status == -signal.SIGKILL:
        return "out of memory"
    return f"signal {-status}" if status < 0 else f"status {status}"


def serve(answer: Callable[..., dict[str, Any]], confined: bool = True) -> None:
    """The other end: do the job that stands on standard input, on its threads' processors alone."""
    message = json.load(sys.stdin)
    if confined:
        confine(message["threads"])
    limit(message["bytes"])
    try:
        result = answer(**message["job"])
    except KeyboardInterrupt:
        sys.exit(130)
    json.dump(result, sys.stdout)


@contextmanager
def progress(total: int) -> Iterator[tuple[Tell, Any]]:
    """(tell what is being done, one step is done), on standard error."""
    bar: Any = None
    if sys.stderr.isatty():
        with suppress(ImportError):
            from tqdm import tqdm

            bar = tqdm(total=total, leave=False)
    if bar is None:
        yield lambda what: print(what, file=sys.stderr, flush=True), lambda count=1: None
        return
    with bar:
        yield bar.set_postfix_str, bar.update
