"""Programs of C in a process that an address sanitizer watches: ``python -m tests.sanitized``.

Random programs of every family, and steps that memory of a workspace is held for. What they compute
is compared elsewhere too; here it is where they read and write that counts. ``--wrong`` writes one
entry too many, which has to be found.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

#: Random programs of each family.
COUNT = 4


def environment(cache: Path) -> dict[str, str] | None:
    """In which such a process runs; None where there is no address sanitizer."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    libraries = []
    for name in ("libasan.so", "libstdc++.so"):  # what throws looks for the second one
        asked = [compiler, f"-print-file-name={name}"]
        found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
        libraries.append(found)
    if not all(map(os.path.isabs, libraries)):
        return None
    found = {
        **os.environ,
        "CC": str(Path(__file__).with_name("sanitizing_cc")),
        "TCALC_CACHE": str(cache),
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": "detect_leaks=0",
        "PYTHONMALLOC": "malloc",
    }
    # Some kernels place programs where the sanitizer has its own memory.
    started = subprocess.run(
        [sys.executable, "-c", ""], env=found, capture_output=True, check=False
    )
    return None if started.returncode else found


def wrong() -> None:
    from tcalc.backends.c.compiler import loaded

    library = loaded("void beyond(double *x, long n) { x[n] = 1; }", ("beyond",))
    entries = (ctypes.c_double * 6)()
    library.beyond.argtypes = [ctypes.c_void_p, ctypes.c_long]
    library.beyond(ctypes.addressof(entries), 6)


def factorised() -> None:
    """Factors that steps share, several results, and vectors whose entries lie apart."""
    import numpy as np

    import tcalc as tc

    A, p, X = tc.var("A", ("n", "n")), tc.var("p", "n"), tc.var("X", ("m", "k"))
    w, v = tc.linalg.eigh(A)
    u, s, _ = tc.linalg.svd(X, full_matrices=False)
    likelihood = tc.linalg.logdet(A) + p @ tc.linalg.solve(A, p)
    outputs: list[Any] = [
        likelihood, tc.grad(likelihood, (A, p)), tc.grad(tc.sum(v[:, 0] ** 3 * w), A),
        tc.grad(tc.sum(u**3 * s), X), tc.grad(tc.sum(tc.linalg.expm(A / 9) ** 2), A),
        tc.cumsum(tc.digamma(p[::2] ** 2 + 1)), tc.grad(tc.linalg.det(A[:4, :4]), A),
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    step = tc.compile(outputs, backend="c")
    for n in (4, 20, 40):
        a, x = rng.normal(size=(n, 2 * n)), rng.normal(size=(n, 8))
        a[:, ::2] += 4 * np.eye(n)
        for given in (a[:, ::2], np.asfortranarray(a[:, ::2])):
            step(A=given, p=np.ones(2 * n)[::2] * np.arange(1, n + 1), X=x[:, ::2])
            step(A=given, p=np.ones(n), X=x[:, :4])


def programs() -> None:
    from tests.fuzz import CHECKS, FAMILIES, TOGETHER, Draw, Work, piece

    without = {*CHECKS, *TOGETHER} - {"c"}
    for family in ((), *[(name,) for name in FAMILIES]):
        _, _, mismatches = piece(Work(7_000_000, COUNT, without, Draw(family)))
        assert not mismatches, mismatches


def main(argv: Sequence[str]) -> int:
    if "--wrong" in argv:
        wrong()
    else:
        factorised()
        programs()
    print("all in bounds")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
